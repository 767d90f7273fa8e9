//! Windows on an X server, and a window manager that says which one is active, as EWMH wants it.

use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, Window, WindowClass};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

x11rb::atom_manager! {
    /// The properties of windows.
    Atoms: AtomsCookie {
        _NET_ACTIVE_WINDOW,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
        UTF8_STRING,
        WM_CLIENT_MACHINE,
    }
}

/// A window manager, and the client whose windows it manages.
#[derive(Debug)]
pub struct WindowManager {
    connection: RustConnection,
    atoms: Atoms,
    root: Window,
}

impl WindowManager {
    /// Manages the windows of a display.
    pub fn start(display: &str) -> Self {
        let (connection, screen) = x11rb::connect(Some(display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let atoms = Atoms::new(&connection).unwrap().reply().unwrap();
        let manager = Self { connection, atoms, root };
        let own = manager.window("manager", "Manager", "");
        manager.set(root, manager.atoms._NET_SUPPORTING_WM_CHECK, AtomEnum::WINDOW, own);
        manager.activate(None);
        manager
    }

    /// A window with this instance, class and title. It says that this process has made it.
    pub fn window(&self, instance: &str, class: &str, title: &str) -> Window {
        let window = self.connection.generate_id().unwrap();
        let (kind, looks) = (WindowClass::INPUT_OUTPUT, CreateWindowAux::new());
        self.connection.create_window(0, window, self.root, 0, 0, 9, 9, 0, kind, 0, &looks).unwrap().check().unwrap();
        let names = format!("{instance}\0{class}\0");
        self.text(window, AtomEnum::WM_CLASS.into(), AtomEnum::STRING.into(), &names);
        self.set(window, self.atoms._NET_WM_PID, AtomEnum::CARDINAL, std::process::id());
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        self.text(window, self.atoms.WM_CLIENT_MACHINE, AtomEnum::STRING.into(), machine.trim_end());
        self.retitle(window, title);
        window
    }

    /// The window has another title.
    pub fn retitle(&self, window: Window, title: &str) {
        self.text(window, self.atoms._NET_WM_NAME, self.atoms.UTF8_STRING, title);
    }

    /// The window is active, or none is.
    pub fn activate(&self, window: Option<Window>) {
        self.set(self.root, self.atoms._NET_ACTIVE_WINDOW, AtomEnum::WINDOW, window.unwrap_or_default());
    }

    /// The window is gone, though it is active still: so it is for a moment whenever one closes.
    pub fn close(&self, window: Window) {
        self.connection.destroy_window(window).unwrap().check().unwrap();
    }

    fn text(&self, window: Window, property: u32, kind: u32, text: &str) {
        let mode = PropMode::REPLACE;
        self.connection.change_property8(mode, window, property, kind, text.as_bytes()).unwrap().check().unwrap();
    }

    fn set(&self, window: Window, property: u32, kind: AtomEnum, value: u32) {
        let mode = PropMode::REPLACE;
        self.connection.change_property32(mode, window, property, kind, &[value]).unwrap().check().unwrap();
    }
}
