//! The thread that calls listeners, which may take their time: JACK's own must not.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::{self, JoinHandle, Thread};

use crate::frames;

/// The longest message that comes in, in bytes. JACK's own buffers hold half of it.
pub(crate) const MAX_IN: usize = 1 << 16;

/// Who listens on a port.
type Listener = Box<dyn FnMut(&[u8]) + Send>;

/// Who listens on which port.
#[derive(Default)]
pub(crate) struct Listeners {
    by_port: Mutex<HashMap<u32, Listener>>,
}

impl Listeners {
    fn all(&self) -> MutexGuard<'_, HashMap<u32, Listener>> {
        self.by_port.lock()
    }

    pub(crate) fn add(&self, port: u32, listener: Listener) {
        self.all().insert(port, listener);
    }

    /// Waits for a message that is just being heard.
    pub(crate) fn remove(&self, port: u32) {
        let removed = self.all().remove(&port);
        // Not under the lock: dropping it may take a while.
        drop(removed);
    }
}

/// The thread. Dropping this waits until it has handed out everything; JACK's end of the ring has to be gone by then.
pub(crate) struct Reader {
    thread: Option<JoinHandle<()>>,
    handle: Thread,
}

impl Reader {
    pub(crate) fn start(mut heard: rtrb::Consumer<u8>, listeners: Arc<Listeners>) -> std::io::Result<Self> {
        let thread = thread::Builder::new().name("jack reader".into()).spawn(move || {
            let mut room = vec![0; MAX_IN];
            loop {
                // Looked at first: what was put in before the end is still handed out.
                let ended = heard.is_abandoned();
                while let Some((port, message)) = frames::next(&mut heard, &mut room) {
                    if let Some(listen) = listeners.all().get_mut(&port) {
                        listen(message);
                    }
                    let length = message.len();
                    frames::take(&mut heard, length);
                }
                if ended {
                    return;
                }
                thread::park();
            }
        })?;
        let handle = thread.thread().clone();
        Ok(Self { thread: Some(thread), handle })
    }

    /// What JACK's thread wakes.
    pub(crate) fn thread(&self) -> Thread {
        self.handle.clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.handle.unpark();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join();
        }
    }
}
