//! A window on a Wayland display, with a name and a title.

use std::fs::File;
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_buffer::WlBuffer;
use wayland_client::protocol::wl_compositor::WlCompositor;
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_shm::{Format, WlShm};
use wayland_client::protocol::wl_shm_pool::WlShmPool;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_client::{Connection, Dispatch, QueueHandle, delegate_noop};
use wayland_protocols::xdg::shell::client::xdg_surface::{self, XdgSurface};
use wayland_protocols::xdg::shell::client::xdg_toplevel::XdgToplevel;
use wayland_protocols::xdg::shell::client::xdg_wm_base::{self, XdgWmBase};

use crate::folder::Folder;

/// How wide and how high it is, in pixels of four bytes.
const SIDE: i32 = 64;

/// An open window. Dropping it closes it.
#[derive(Debug)]
pub struct WaylandWindow {
    line: UnixStream,
    connection: Connection,
    toplevel: XdgToplevel,
}

impl WaylandWindow {
    /// Opens it.
    pub fn open(display: &Path, application: &str, title: &str) -> Self {
        let line = UnixStream::connect(display).unwrap();
        let connection = Connection::from_socket(line.try_clone().unwrap()).unwrap();
        let (globals, mut queue) = registry_queue_init::<Client>(&connection).unwrap();
        let handle = queue.handle();
        let compositor: WlCompositor = globals.bind(&handle, 1..=4, ()).unwrap();
        let shell: XdgWmBase = globals.bind(&handle, 1..=1, ()).unwrap();
        let memory: WlShm = globals.bind(&handle, 1..=1, ()).unwrap();

        let surface = compositor.create_surface(&handle, ());
        let role = shell.get_xdg_surface(&surface, &handle, ());
        let toplevel = role.get_toplevel(&handle, ());
        toplevel.set_app_id(application.to_owned());
        toplevel.set_title(title.to_owned());
        surface.commit();
        let mut client = Client::default();
        while !client.may_draw {
            queue.blocking_dispatch(&mut client).unwrap();
        }
        surface.attach(Some(&black(&memory, &handle)), 0, 0);
        surface.commit();
        connection.flush().unwrap();
        // It answers the compositor until the line is cut.
        thread::spawn(move || while queue.blocking_dispatch(&mut client).is_ok() {});
        Self { line, connection, toplevel }
    }

    /// Gives it another title.
    pub fn retitle(&self, title: &str) {
        self.toplevel.set_title(title.to_owned());
        self.connection.flush().unwrap();
    }
}

impl Drop for WaylandWindow {
    fn drop(&mut self) {
        // The compositor may have gone before.
        let _ = self.line.shutdown(Shutdown::Both);
    }
}

/// Something to show.
fn black(memory: &WlShm, handle: &QueueHandle<Client>) -> WlBuffer {
    let folder = Folder::new("pixels");
    let pixels = File::options().create_new(true).read(true).write(true).open(folder.path().join("pixels")).unwrap();
    let size = SIDE * SIDE * 4;
    pixels.set_len(size.unsigned_abs().into()).unwrap();
    let pool = memory.create_pool(pixels.as_fd(), size, handle, ());
    pool.create_buffer(0, SIDE, SIDE, SIDE * 4, Format::Xrgb8888, handle, ())
}

/// The events that it has received.
#[derive(Debug, Default)]
struct Client {
    may_draw: bool,
}

impl Dispatch<XdgSurface, ()> for Client {
    fn event(
        client: &mut Self,
        surface: &XdgSurface,
        event: xdg_surface::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_surface::Event::Configure { serial } = event {
            surface.ack_configure(serial);
            client.may_draw = true;
        }
    }
}

impl Dispatch<XdgWmBase, ()> for Client {
    fn event(
        _: &mut Self,
        shell: &XdgWmBase,
        event: xdg_wm_base::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_wm_base::Event::Ping { serial } = event {
            shell.pong(serial);
        }
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Client {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

delegate_noop!(Client: WlCompositor);
delegate_noop!(Client: WlShmPool);
delegate_noop!(Client: ignore WlShm);
delegate_noop!(Client: ignore WlSurface);
delegate_noop!(Client: ignore WlBuffer);
delegate_noop!(Client: ignore XdgToplevel);
