//! A simulated desktop, for tests and demos: the active window is set by calls.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use super::{ActiveWindow, ActiveWindowWatch, Application, Callback};

/// A simulated active window. Clones share it.
#[derive(Clone)]
pub struct SimulatedActiveWindow(Arc<Mutex<Inner>>);

struct Inner {
    front: ActiveWindow,
    notify: Option<Callback>,
}

impl std::fmt::Debug for SimulatedActiveWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SimulatedActiveWindow").field(&self.inner().front).finish()
    }
}

impl Default for SimulatedActiveWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl SimulatedActiveWindow {
    /// A desktop with nothing in front.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner { front: ActiveWindow::Nothing, notify: None })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// A watch of it, for one host.
    pub fn watch(&self) -> Box<dyn ActiveWindowWatch> {
        Box::new(self.clone())
    }

    /// Something else is in front.
    pub fn put(&self, front: ActiveWindow) {
        let mut inner = self.inner();
        inner.front = front;
        if let Some(notify) = &inner.notify {
            notify(inner.front.clone());
        }
    }

    /// An application of this name and title is in front.
    pub fn application(&self, name: &str, title: &str) {
        self.put(ActiveWindow::Application(Application { names: vec![name.to_owned()], title: title.to_owned() }));
    }
}

impl ActiveWindowWatch for SimulatedActiveWindow {
    fn start(self: Box<Self>, notify: Callback) -> std::io::Result<Box<dyn Send>> {
        let mut inner = self.inner();
        notify(inner.front.clone());
        inner.notify = Some(notify);
        drop(inner);
        Ok(Box::new(Watching(*self)))
    }
}

struct Watching(SimulatedActiveWindow);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.inner().notify = None;
    }
}
