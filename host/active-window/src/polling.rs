//! The application in front on macOS and Windows, which is asked for a few times a second: both tell it at once,
//! and neither notifies a thread without a user interface.
//!
//! macOS tells the title of another application's window only to programs that may record the screen.

use std::path::Path;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use super::{ActiveWindow, ActiveWindowWatch, Application, Tell, changes};

/// How often it is asked for.
const PERIOD: Duration = Duration::from_millis(250);

/// What is in front on a system that has to be asked.
#[derive(Debug)]
pub(super) struct AskedWatch;

impl ActiveWindowWatch for AskedWatch {
    fn start(self: Box<Self>, tell: Tell) -> std::io::Result<Box<dyn Send>> {
        let (watching, ended) = bounded::<()>(0);
        std::thread::Builder::new().name("front".into()).spawn(move || {
            let mut tell = changes(tell);
            loop {
                tell(front());
                if ended.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected) {
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
        Err(error) => ActiveWindow::Unknown(format!("the system does not tell which application is in front: {error}")),
    }
}
