//! The active window on macOS and Windows, by polling a few times a second: a query is cheap, and neither system
//! notifies a thread without a user interface.
//!
//! macOS gives the title of another application's window only to programs that may record the screen.

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::{ActiveWindow, ActiveWindowWatch, Application, Callback, changes};

/// The pause between two queries.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Watches the active window by polling.
#[derive(Debug)]
pub(super) struct PollingWatch;

impl ActiveWindowWatch for PollingWatch {
    fn start(self: Box<Self>, notify: Callback) -> std::io::Result<Box<dyn Send>> {
        let (watching, ended) = bounded::<()>(0);
        std::thread::Builder::new().name("front".into()).spawn(move || {
            let mut notify = changes(notify);
            loop {
                notify(front());
                if ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        })?;
        Ok(Box::new(watching))
    }
}

fn front() -> ActiveWindow {
    match x_win::get_active_window() {
        Ok(window) => {
            let program = Path::new(&window.info.path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Application::named([window.info.name, window.info.exec_name, program], window.title).into()
        }
        Err(error) => {
            ActiveWindow::Unknown(format!("the system does not report which application is in front: {error}"))
        }
    }
}
