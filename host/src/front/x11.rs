//! The application in front under X, as window managers tell it: the root window's `_NET_ACTIVE_WINDOW` (EWMH).
//!
//! The server reports when that property changes, and when the front window's title does. The thread waits
//! for these reports and for nothing else; a display that is lost is looked for again.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use x11rb::connection::Connection as _;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _, CreateWindowAux, EventMask,
    Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

use super::names::{class, distinct, is_here, program};
use super::{Application, Front, FrontWatch, Tell};

/// How long it is until a display that is not there is looked for again.
const AGAIN: Duration = Duration::from_secs(5);
/// The longest property that is read whole, in 4-byte units.
const LONGEST: u32 = 1024;

/// What is in front under X.
#[derive(Debug)]
pub(super) struct X11Watch;

impl FrontWatch for X11Watch {
    fn start(self: Box<Self>, tell: Tell) -> std::io::Result<Box<dyn Send>> {
        if env::var_os("DISPLAY").is_none_or(|display| display.is_empty()) {
            let reason = if is_wayland() {
                "Wayland does not tell which application is in front, and there is no X display"
            } else {
                "there is no X display (DISPLAY is not set) that could tell which application is in front"
            };
            tell(Front::Unknown(reason.to_owned()));
            return Ok(Box::new(()));
        }
        let (end, ended) = crossbeam_channel::bounded::<()>(0);
        let line = Arc::<Line>::default();
        let watching = Watching { line: Arc::clone(&line), _end: end };
        std::thread::Builder::new().name("front".into()).spawn(move || watch(&line, &ended, &tell))?;
        Ok(Box::new(watching))
    }
}

fn is_wayland() -> bool {
    env::var_os("WAYLAND_DISPLAY").is_some_and(|display| !display.is_empty())
}

/// The connection that the thread waits at, for whoever wants it to end.
#[derive(Default)]
struct Line {
    is_over: AtomicBool,
    /// With a window of our own, for a message that wakes.
    open: Mutex<Option<(Arc<RustConnection>, Window)>>,
}

/// Ends the thread when it is dropped.
struct Watching {
    line: Arc<Line>,
    _end: Sender<()>,
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.line.is_over.store(true, Ordering::SeqCst);
        let open = self.line.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((connection, window)) = &*open {
            let wake = ClientMessageEvent::new(32, *window, AtomEnum::NONE, [0; 5]);
            // Where the server is gone, the thread has woken already.
            let _ = connection.send_event(false, *window, EventMask::NO_EVENT, wake);
            let _ = connection.flush();
        }
    }
}

fn watch(line: &Line, ended: &Receiver<()>, tell: &Tell) {
    let mut told = None;
    let mut tell = |front: Front| {
        if told.as_ref() != Some(&front) {
            told = Some(front.clone());
            tell(front);
        }
    };
    while !line.is_over.load(Ordering::SeqCst) {
        let lost = match Display::open() {
            Ok(mut display) => {
                let window = (Arc::clone(&display.connection), display.own);
                *line.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(window);
                let lost = display.follow(&line.is_over, &mut tell);
                *line.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
                lost
            }
            Err(reason) => Some(reason),
        };
        let Some(reason) = lost else { return };
        tell(Front::Unknown(format!("no X display tells which application is in front: {reason}")));
        if ended.recv_timeout(AGAIN) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

x11rb::atom_manager! {
    /// The properties that are looked at.
    Atoms: AtomsCookie {
        _NET_ACTIVE_WINDOW,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
        WM_CLIENT_MACHINE,
    }
}

struct Display {
    connection: Arc<RustConnection>,
    atoms: Atoms,
    root: Window,
    /// A window of our own, which nobody sees.
    own: Window,
    /// The window that is active, and reports when its title changes.
    active: Option<Window>,
}

impl Display {
    fn open() -> Result<Self, String> {
        let (connection, screen) = x11rb::connect(None).map_err(|error| error.to_string())?;
        Self::on(connection, screen).map_err(|error| error.to_string())
    }

    fn on(connection: RustConnection, screen: usize) -> Result<Self, ReplyError> {
        let root = connection.setup().roots[screen].root;
        let atoms = Atoms::new(&connection)?.reply()?;
        let own = connection.generate_id().map_err(|_| ConnectionError::UnknownError)?;
        let (class, looks) = (WindowClass::INPUT_ONLY, CreateWindowAux::new());
        connection.create_window(0, own, root, -1, -1, 1, 1, 0, class, 0, &looks)?.check()?;
        let report = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection.change_window_attributes(root, &report)?.check()?;
        Ok(Self { connection: Arc::new(connection), atoms, root, own, active: None })
    }

    /// Tells what is in front until it is over; or why that is not possible any more.
    fn follow(&mut self, is_over: &AtomicBool, tell: &mut dyn FnMut(Front)) -> Option<String> {
        loop {
            match self.front() {
                Ok(front) => tell(front),
                Err(error) => return Some(error.to_string()),
            }
            loop {
                if is_over.load(Ordering::SeqCst) {
                    return None;
                }
                match self.connection.wait_for_event() {
                    Ok(event) if self.matters(&event) => break,
                    Ok(_) => {}
                    Err(error) => return Some(error.to_string()),
                }
            }
            // A window that comes to the front changes several properties at once.
            while let Ok(Some(_)) = self.connection.poll_for_event() {}
        }
    }

    fn matters(&self, event: &Event) -> bool {
        match event {
            Event::PropertyNotify(changed) if changed.window == self.root => {
                [self.atoms._NET_ACTIVE_WINDOW, self.atoms._NET_SUPPORTING_WM_CHECK].contains(&changed.atom)
            }
            Event::PropertyNotify(changed) => Some(changed.window) == self.active,
            _ => false,
        }
    }

    fn front(&mut self) -> Result<Front, ConnectionError> {
        let active = self.windows(self.atoms._NET_ACTIVE_WINDOW)?;
        let window = active.unwrap_or_default();
        self.listen_to(Some(window).filter(|&window| window != 0))?;
        if window == 0 {
            let has_manager = active.is_some() || self.windows(self.atoms._NET_SUPPORTING_WM_CHECK)?.is_some();
            return Ok(if is_wayland() {
                Front::Unknown("under Wayland only applications that use X are known when they are in front".to_owned())
            } else if has_manager {
                Front::Nothing
            } else {
                Front::Unknown("no window manager tells which window is active".to_owned())
            });
        }
        let (instance, class) = class(&self.property(window, AtomEnum::WM_CLASS.into())?);
        let pid = self.property(window, self.atoms._NET_WM_PID)?;
        let machine = self.property(window, self.atoms.WM_CLIENT_MACHINE)?;
        let pid = pid.first_chunk().copied().map(u32::from_ne_bytes).filter(|_| is_here(&machine));
        let names = distinct([class, instance, pid.and_then(program).unwrap_or_default()]);
        let mut title = self.property(window, self.atoms._NET_WM_NAME)?;
        if title.is_empty() {
            title = self.property(window, AtomEnum::WM_NAME.into())?;
        }
        let title = String::from_utf8_lossy(&title).into_owned();
        Ok(match names.is_empty() {
            // It has no name to go by, or is gone already: then another report is on its way.
            true => Front::Nothing,
            false => Front::Application(Application { names, title }),
        })
    }

    /// Has a window report changes of its properties, and the one before no longer.
    fn listen_to(&mut self, window: Option<Window>) -> Result<(), ConnectionError> {
        let before = std::mem::replace(&mut self.active, window);
        if before == window {
            return Ok(());
        }
        for (window, mask) in [(before, EventMask::NO_EVENT), (window, EventMask::PROPERTY_CHANGE)] {
            if let Some(window) = window {
                // A window that is gone reports nothing more; that is no error of ours.
                self.connection
                    .change_window_attributes(window, &ChangeWindowAttributesAux::new().event_mask(mask))?
                    .ignore_error();
            }
        }
        Ok(())
    }

    /// The first window in a property of the root window; none where it has no such property.
    fn windows(&self, name: Atom) -> Result<Option<Window>, ConnectionError> {
        Ok(self.property(self.root, name)?.first_chunk().copied().map(u32::from_ne_bytes))
    }

    /// The bytes of a property; empty where the window has none, or is gone.
    fn property(&self, window: Window, name: Atom) -> Result<Vec<u8>, ConnectionError> {
        let asked = self.connection.get_property(false, window, name, AtomEnum::ANY, 0, LONGEST)?;
        match asked.reply() {
            Ok(property) => Ok(property.value),
            Err(ReplyError::X11Error(_)) => Ok(Vec::new()),
            Err(ReplyError::ConnectionError(error)) => Err(error),
        }
    }
}
