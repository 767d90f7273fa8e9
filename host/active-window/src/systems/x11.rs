//! The active window under X, from the window manager: the root window's `_NET_ACTIVE_WINDOW` (EWMH).
//!
//! The server reports when that property changes, and when the front window's title does.

use std::os::fd::AsFd as _;

use x11rb::connection::Connection as _;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, Window};
use x11rb::rust_connection::RustConnection;

use super::display::{End, WatchError, is_wayland, is_x};
use super::names::{class, is_here, program};
use super::{ActiveWindow, Application};

/// The longest property that is read whole, in 4-byte units.
const MAX_PROPERTY_UNITS: u32 = 1024;

/// Reports the active window until the watch ends.
///
/// # Errors
/// Why the X server does not report it, or no longer does.
pub(super) fn follow(end: &End, notify: &mut dyn FnMut(ActiveWindow)) -> Result<(), WatchError> {
    if !is_x() {
        return Err(WatchError::NoSuchDisplay);
    }
    Display::open()
        .and_then(|mut display| display.follow(end, notify))
        .map_err(|reason| WatchError::Because(format!("no X display reports which application is in front: {reason}")))
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
    connection: RustConnection,
    atoms: Atoms,
    root: Window,
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
        let report = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
        connection.change_window_attributes(root, &report)?.check()?;
        Ok(Self { connection, atoms, root, active: None })
    }

    fn follow(&mut self, end: &End, notify: &mut dyn FnMut(ActiveWindow)) -> Result<(), String> {
        loop {
            notify(self.front().map_err(|error| error.to_string())?);
            // A window that comes to the front changes several properties at once.
            while !self.has_changed().map_err(|error| error.to_string())? {
                if end.or_readable(self.connection.stream().as_fd()).map_err(|error| error.to_string())? {
                    return Ok(());
                }
            }
        }
    }

    /// Takes in all reports that came, and says whether one of them matters.
    fn has_changed(&self) -> Result<bool, ConnectionError> {
        let mut matters = false;
        while let Some(event) = self.connection.poll_for_event()? {
            matters |= self.matters(&event);
        }
        Ok(matters)
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

    fn front(&mut self) -> Result<ActiveWindow, ConnectionError> {
        let active = self.windows(self.atoms._NET_ACTIVE_WINDOW)?;
        let window = active.unwrap_or_default();
        self.listen_to(Some(window).filter(|&window| window != 0))?;
        if window == 0 {
            let has_manager = active.is_some() || self.windows(self.atoms._NET_SUPPORTING_WM_CHECK)?.is_some();
            return Ok(if is_wayland() {
                ActiveWindow::Unknown(
                    "under Wayland only applications that use X are known when they are in front".to_owned(),
                )
            } else if has_manager {
                ActiveWindow::Nothing
            } else {
                ActiveWindow::Unknown("no window manager tells which window is active".to_owned())
            });
        }
        let (instance, class) = class(&self.property(window, AtomEnum::WM_CLASS.into())?);
        let pid = self.property(window, self.atoms._NET_WM_PID)?;
        let machine = self.property(window, self.atoms.WM_CLIENT_MACHINE)?;
        let pid = pid.first_chunk().copied().map(u32::from_ne_bytes).filter(|_| is_here(&machine));
        let names = [class, instance, pid.and_then(program).unwrap_or_default()];
        let mut title = self.property(window, self.atoms._NET_WM_NAME)?;
        if title.is_empty() {
            title = self.property(window, AtomEnum::WM_NAME.into())?;
        }
        let title = String::from_utf8_lossy(&title).into_owned();
        // Without a name it may be gone already; then another report is on its way.
        Ok(Application::named(names, title).into())
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

    /// The first window in a property of the root window; `None` if it has no such property.
    fn windows(&self, name: Atom) -> Result<Option<Window>, ConnectionError> {
        Ok(self.property(self.root, name)?.first_chunk().copied().map(u32::from_ne_bytes))
    }

    /// The bytes of a property; empty where the window has none, or is gone.
    fn property(&self, window: Window, name: Atom) -> Result<Vec<u8>, ConnectionError> {
        let asked = self.connection.get_property(false, window, name, AtomEnum::ANY, 0, MAX_PROPERTY_UNITS)?;
        match asked.reply() {
            Ok(property) => Ok(property.value),
            Err(ReplyError::X11Error(_)) => Ok(Vec::new()),
            Err(ReplyError::ConnectionError(error)) => Err(error),
        }
    }
}
