//! The active window under Wayland, if the compositor shows its windows to other programs
//! (`wlr-foreign-toplevel-management-unstable-v1`): sway, Hyprland, labwc, Wayfire, niri and others. KDE's does not,
//! but [has another way](super::kwin); GNOME's does not at all.

use std::error::Error;
use std::io::ErrorKind;

use wayland_client::backend::WaylandError;
use wayland_client::globals::{BindError, GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle, event_created_child};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_handle_v1::{
    self as handle, State, ZwlrForeignToplevelHandleV1 as Handle,
};
use wayland_protocols_wlr::foreign_toplevel::v1::client::zwlr_foreign_toplevel_manager_v1::{
    self as manager, ZwlrForeignToplevelManagerV1 as Manager,
};

use super::display::{End, WatchError, is_wayland};
use super::names::application_id;
use super::{ActiveWindow, Application};

/// Reports the active window until the watch ends.
///
/// # Errors
/// Why the compositor does not report it, or no longer does.
pub(super) fn follow(end: &End, notify: &mut dyn FnMut(ActiveWindow)) -> Result<(), WatchError> {
    if !is_wayland() {
        return Err(WatchError::NoSuchDisplay);
    }
    let because = |error: &dyn Error| WatchError::Because(no_compositor(error));
    let connection = Connection::connect_to_env().map_err(|error| because(&error))?;
    let (globals, mut queue) = registry_queue_init::<Windows>(&connection).map_err(|error| because(&error))?;
    globals.bind::<Manager, _, _>(&queue.handle(), 1..=3, ()).map_err(|error| match error {
        BindError::NotPresent => {
            WatchError::Because("this Wayland compositor does not report which application is in front".to_owned())
        }
        error => because(&error),
    })?;
    let mut windows = Windows::default();
    // The compositor lists the existing windows before it answers.
    queue.roundtrip(&mut windows).map_err(|error| because(&error))?;
    loop {
        if windows.is_over {
            return Err(WatchError::Lost(
                "the Wayland compositor stopped reporting which application is in front".into(),
            ));
        }
        notify(windows.front());
        if wait(end, &mut queue, &mut windows).map_err(|error| WatchError::Lost(no_compositor(&error)))? {
            return Ok(());
        }
    }
}

fn no_compositor(error: &dyn Error) -> String {
    format!("no Wayland compositor reports which application is in front: {error}")
}

/// Waits for the compositor's next events and handles all of them; returns true if the watch has ended instead.
fn wait(end: &End, queue: &mut EventQueue<Windows>, windows: &mut Windows) -> Result<bool, WaylandError> {
    queue.flush()?;
    if let Some(reading) = queue.prepare_read() {
        if end.or_readable(reading.connection_fd())? {
            return Ok(true);
        }
        match reading.read() {
            Err(WaylandError::Io(error)) if error.kind() == ErrorKind::WouldBlock => {}
            read => drop(read?),
        }
    }
    // Only a protocol error of ours would be another.
    queue.dispatch_pending(windows).map_err(|error| WaylandError::Io(std::io::Error::other(error)))?;
    Ok(false)
}

/// The windows of all applications.
#[derive(Debug, Default)]
struct Windows {
    windows: Vec<(Handle, Window)>,
    is_over: bool,
}

/// A window: its current state, and its pending state until the compositor has sent all changes.
#[derive(Debug, Default)]
struct Window {
    now: About,
    next: About,
}

#[derive(Debug, Default, Clone)]
struct About {
    /// Empty if it has none.
    application: String,
    title: String,
    is_active: bool,
}

impl Windows {
    fn front(&self) -> ActiveWindow {
        let active = self.windows.iter().rfind(|(_, window)| window.now.is_active);
        let named = |now: &About| Application::named(application_id(&now.application), now.title.clone());
        active.and_then(|(_, window)| named(&window.now)).into()
    }
}

impl Dispatch<Manager, ()> for Windows {
    fn event(windows: &mut Self, _: &Manager, event: manager::Event, (): &(), _: &Connection, _: &QueueHandle<Self>) {
        match event {
            manager::Event::Toplevel { toplevel } => windows.windows.push((toplevel, Window::default())),
            manager::Event::Finished => windows.is_over = true,
            _ => {}
        }
    }

    event_created_child!(Windows, Manager, [manager::EVT_TOPLEVEL_OPCODE => (Handle, ())]);
}

impl Dispatch<Handle, ()> for Windows {
    fn event(
        windows: &mut Self,
        sender: &Handle,
        event: handle::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        let windows = &mut windows.windows;
        let Some(place) = windows.iter().position(|(window, _)| window == sender) else { return };
        let window = &mut windows[place].1;
        match event {
            handle::Event::AppId { app_id } => window.next.application = app_id,
            handle::Event::Title { title } => window.next.title = title,
            handle::Event::State { state } => window.next.is_active = is_active(&state),
            handle::Event::Done => window.now = window.next.clone(),
            handle::Event::Closed => {
                sender.destroy();
                windows.remove(place);
            }
            _ => {}
        }
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Windows {
    // What else the compositor offers, now or later, is of no interest.
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

/// Whether a window with these states has the keyboard: they are numbers of four bytes in the machine's order.
fn is_active(states: &[u8]) -> bool {
    states.as_chunks().0.iter().any(|state| u32::from_ne_bytes(*state) == State::Activated as u32)
}
