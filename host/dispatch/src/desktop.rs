//! The worker for desktop actions: keys, text, the mouse, the volume.
//!
//! One thread owns the connection, which is made when it is first needed. Without a display the action
//! fails and says so; the next one tries again, so that a host that was started before the desktop, or
//! outlives it, works as soon as there is one.
//!
//! `system` is the desktop of this machine. `absent` takes its place in a build without the feature `desktop`.

#[cfg(any(test, not(feature = "desktop")))]
mod absent;
pub mod recorded;
#[cfg(feature = "desktop")]
mod system;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::ledger::{Ledger, Owner};
use super::queue::{Inbox, Job, Next, Queue};
use super::variables::View;
use super::{Envelope, Reason, WorkerCounters};
use conductor_config::{Axis, Key, Keystroke, MouseButton, MouseClick, NamedKey, Scroll, Stroke, VolumeOperation};
use conductor_observer::{Observation, Observer};
use conductor_scheduling::event_thread;
use conductor_stdx::plural::plural;

#[cfg(not(feature = "desktop"))]
pub use self::absent::{UNAVAILABLE, connect};
#[cfg(feature = "desktop")]
pub use self::system::{UNAVAILABLE, connect};

/// A virtual keyboard and mouse. Dropping it releases keys and buttons that are down.
pub trait Desktop: Send {
    /// Moves a key down or up.
    ///
    /// # Errors
    /// When the desktop refuses it or is gone, as text.
    fn key(&mut self, key: Key, down: bool) -> Result<(), String>;

    /// Types a text.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn text(&mut self, text: &str) -> Result<(), String>;

    /// Moves a mouse button down or up.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn button(&mut self, button: MouseButton, down: bool) -> Result<(), String>;

    /// Moves the pointer to this pixel, from the top left.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn point(&mut self, x: u16, y: u16) -> Result<(), String>;

    /// Turns the wheel by this many clicks, down or right where positive.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String>;
}

/// How to get a desktop; the error says why there is none.
pub type Connect = Box<dyn FnMut() -> Result<Box<dyn Desktop>, String> + Send>;

/// What to do there.
#[derive(Debug, Clone, PartialEq)]
pub enum DesktopAction {
    /// Strike keys.
    Keystroke(Keystroke),
    /// Type a text.
    Text(Box<str>),
    /// Click.
    Click(MouseClick),
    /// Turn the wheel, by a number that may name these variables.
    Scroll(Scroll, View),
    /// Strike a volume key this many times.
    Volume(VolumeOperation, u8),
}

impl DesktopAction {
    /// What it is, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Keystroke(keystroke) => {
                let keys: Vec<String> = keystroke.all().map(|key| key.to_string()).collect();
                format!("Keystroke {}", keys.join("+"))
            }
            Self::Text(text) => format!("Text of {}", plural(text.chars().count(), "character")),
            Self::Click(click) => format!("MouseClick {:?}", click.button),
            Self::Scroll(..) => "Scroll".to_owned(),
            Self::Volume(operation, _) => format!("VolumeControl {operation:?}"),
        }
    }
}

/// The way to the worker. Clones share it.
pub type DesktopQueue = Queue<(Envelope, Arc<DesktopAction>)>;

impl Job for (Envelope, Arc<DesktopAction>) {
    fn may_switch_off(&self) -> bool {
        let (envelope, action) = self;
        let stroke = match &**action {
            DesktopAction::Keystroke(keystroke) => keystroke.stroke,
            DesktopAction::Click(click) => click.stroke,
            _ => return false,
        };
        stroke == Stroke::Release || stroke == Stroke::Hold && !envelope.presses()
    }
}

/// Starts the worker.
///
/// # Errors
/// When the system has no thread left.
pub fn start(connect: Connect, observer: Observer) -> std::io::Result<(DesktopQueue, JoinHandle<()>)> {
    let (queue, inbox) = Queue::new("desktop");
    let worker = Worker {
        name: Arc::clone(queue.name()),
        counters: Arc::clone(queue.counters()),
        observer,
        connect,
        desktop: None,
        held: Ledger::default(),
    };
    let thread = std::thread::Builder::new().name("desktop".into()).spawn(move || {
        event_thread();
        worker.run(inbox);
    })?;
    Ok((queue, thread))
}

/// Something that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Down {
    Key(Key),
    Button(MouseButton),
}

struct Worker {
    name: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    connect: Connect,
    desktop: Option<Box<dyn Desktop>>,
    held: Ledger<Down>,
}

impl Worker {
    fn run(mut self, mut inbox: Inbox<(Envelope, Arc<DesktopAction>)>) {
        loop {
            match inbox.next(None) {
                Next::Job((envelope, action)) => match self.perform(&envelope, &action) {
                    Ok(()) => drop(self.counters.done.fetch_add(1, Ordering::Relaxed)),
                    Err(reason) => {
                        self.counters.failure(&reason);
                        self.observer.put(Observation::Failure(envelope.failure(&self.name, reason)));
                    }
                },
                Next::Release(release) => {
                    let up = self.held.release(&release);
                    self.let_up(up);
                }
                Next::ReleaseAll => self.let_everything_up(),
                Next::Command(()) | Next::Timeout | Next::Look => {}
                Next::Stop => break,
            }
        }
        self.let_everything_up();
    }

    fn let_everything_up(&mut self) {
        let up = self.held.release_all();
        self.let_up(up);
    }

    /// Failures are ignored: then there is no desktop any more on which keys could be down.
    fn let_up(&mut self, up: Vec<Down>) {
        for down in up.into_iter().rev() {
            let _ = self.shift(down, false);
        }
    }

    fn perform(&mut self, envelope: &Envelope, action: &DesktopAction) -> Result<(), Reason> {
        match action {
            DesktopAction::Keystroke(keystroke) => {
                let keys: Vec<Down> = keystroke.all().map(Down::Key).collect();
                self.stroke(&keys, keystroke.stroke, envelope)
            }
            DesktopAction::Click(click) => {
                let (stroke, presses) = (click.stroke, envelope.presses());
                if let (Some(x), Some(y), true) = (click.x, click.y, stroke != Stroke::Hold || presses) {
                    self.on_desktop(|desktop| desktop.point(x, y))?;
                }
                self.stroke(&[Down::Button(click.button)], stroke, envelope)
            }
            DesktopAction::Text(text) => self.on_desktop(|desktop| desktop.text(text)),
            DesktopAction::Scroll(scroll, view) => {
                let clicks = scroll.amount.eval(&view.of(&envelope.numbers(), &envelope.device)).clamp(-100, 100);
                if clicks == 0 { Ok(()) } else { self.on_desktop(|desktop| desktop.scroll(clicks, scroll.axis)) }
            }
            DesktopAction::Volume(operation, steps) => {
                let (key, times) = match operation {
                    VolumeOperation::Up => (NamedKey::VolumeUp, *steps),
                    VolumeOperation::Down => (NamedKey::VolumeDown, *steps),
                    VolumeOperation::Mute => (NamedKey::VolumeMute, 1),
                };
                (0..times).try_for_each(|_| self.stroke(&[Down::Key(Key::Named(key))], Stroke::Tap, envelope))
            }
        }
    }

    fn stroke(&mut self, keys: &[Down], stroke: Stroke, envelope: &Envelope) -> Result<(), Reason> {
        match stroke {
            Stroke::Tap => {
                // What somebody holds is down already, and stays down.
                let free: Vec<Down> = keys.iter().copied().filter(|key| !self.held.is_on(*key)).collect();
                for (index, key) in free.iter().enumerate() {
                    if let Err(reason) = self.shift(*key, true) {
                        self.let_up(free[..index].to_vec());
                        return Err(reason);
                    }
                }
                free.iter().rev().try_for_each(|key| self.shift(*key, false))
            }
            Stroke::Press => self.press(keys, envelope),
            Stroke::Hold if envelope.presses() => self.press(keys, envelope),
            Stroke::Hold => {
                let owner = Owner::from(envelope);
                keys.iter()
                    .rev()
                    .try_for_each(|key| if self.held.let_go(*key, &owner) { self.shift(*key, false) } else { Ok(()) })
            }
            Stroke::Release => keys.iter().rev().try_for_each(|key| {
                self.held.is_off_now(*key);
                self.shift(*key, false)
            }),
        }
    }

    fn press(&mut self, keys: &[Down], envelope: &Envelope) -> Result<(), Reason> {
        for key in keys {
            if !self.held.is_on(*key) {
                self.shift(*key, true)?;
            }
            self.held.hold(*key, Owner::from(envelope));
        }
        Ok(())
    }

    fn shift(&mut self, key: Down, down: bool) -> Result<(), Reason> {
        self.on_desktop(|desktop| match key {
            Down::Key(key) => desktop.key(key, down),
            Down::Button(button) => desktop.button(button, down),
        })
    }

    /// Does something on the desktop, which is connected to first if there is no connection. After a failure the
    /// connection is dropped: its display may be gone.
    fn on_desktop(&mut self, act: impl FnOnce(&mut dyn Desktop) -> Result<(), String>) -> Result<(), Reason> {
        let mut desktop = match self.desktop.take() {
            Some(desktop) => desktop,
            None => (self.connect)().map_err(Reason::Unavailable)?,
        };
        act(&mut *desktop).map_err(Reason::Failed)?;
        self.desktop = Some(desktop);
        Ok(())
    }
}
