//! The worker for desktop actions: keys, text, the mouse, the volume, a virtual gamepad.
//!
//! One thread owns the connection, which is made when it is first needed. Without a display the action
//! fails and says so; the next one tries again, so that a host that was started before the desktop, or
//! outlives it, works as soon as there is one.
//!
//! `system` is the desktop of this machine, `gamepad` the gamepad that it makes there, which needs no display. `absent` takes
//! their place in a build without the feature `desktop`. `pointer` is how fast the pointer moves, `axes` where sticks stand.

#[cfg(any(test, not(feature = "desktop")))]
mod absent;
mod axes;
#[cfg(feature = "desktop")]
mod gamepad;
mod pointer;
pub mod recorded;
#[cfg(feature = "desktop")]
mod system;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Instant;

use self::axes::Axes;
use self::pointer::Pointer;
use super::ledger::{Ledger, Owner};
use super::queue::{Inbox, Job, Next, Queue};
use super::variables::View;
use super::{Envelope, Reason, WorkerCounters};
use conductor_config::{
    Axis, Key, Keystroke, Motion, MouseButton, MouseClick, MouseMove, NamedKey, NumberExpr, Scroll, Stroke,
    VolumeOperation,
};
use conductor_observer::{Observation, Observer};
use conductor_scheduling::event_thread;
use conductor_stdx::plural::plural;

pub use self::pointer::Speed;

#[cfg(not(feature = "desktop"))]
pub use self::absent::{GAMEPAD_UNAVAILABLE, UNAVAILABLE, connect};
#[cfg(feature = "desktop")]
pub use self::gamepad::GAMEPAD_UNAVAILABLE;
#[cfg(feature = "desktop")]
pub use self::system::{UNAVAILABLE, connect};

/// Pixels, or pixels a second, that a motion of the pointer has at most in each direction: as many as places of it there are.
const MAX_MOTION: i32 = i16::MAX as i32;

/// A virtual keyboard, mouse and gamepad. Dropping it releases keys and buttons that are down. After an error it is used
/// again, and connects anew if what it was connected to is gone.
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

    /// Moves the pointer by this many pixels, right and down where positive.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn move_by(&mut self, x: i32, y: i32) -> Result<(), String>;

    /// The pointer has this speed from now on: for desktops that show what is done. Others have nothing to do, since their
    /// pointer is moved by [`step`](Self::step).
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn set_speed(&mut self, _speed: Speed) -> Result<(), String> {
        Ok(())
    }

    /// Moves the pointer by the pixels that are due by its speed: for desktops that have one.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn step(&mut self, _x: i32, _y: i32) -> Result<(), String> {
        Ok(())
    }

    /// Turns the wheel by this many clicks, down or right where positive.
    ///
    /// # Errors
    /// As for [`key`](Self::key).
    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String>;

    /// Plugs the gamepad in, if it is not: programs look for gamepads before one is played. Desktops that only show what is
    /// done have nothing to do.
    ///
    /// # Errors
    /// If the system has no virtual gamepads, or this user may not make one, as text.
    fn plug_gamepad(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Moves a button of the gamepad down or up, 128 to 144. It is plugged in first, if it is not.
    ///
    /// # Errors
    /// As for [`plug_gamepad`](Self::plug_gamepad), or if the system refuses it.
    fn gamepad_button(&mut self, button: u8, down: bool) -> Result<(), String>;

    /// Moves an axis of a stick of the gamepad, 128 to 131, to a place from -32767 to 32767, right and up positive; or pulls an
    /// analog trigger, 132 or 133, by 0 to 32767.
    ///
    /// # Errors
    /// As for [`gamepad_button`](Self::gamepad_button).
    fn gamepad_axis(&mut self, axis: u8, value: i16) -> Result<(), String>;
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
    /// Move the pointer, by numbers that may name these variables.
    Move(MouseMove, View),
    /// Turn the wheel, by a number that may name these variables.
    Scroll(Scroll, View),
    /// Strike a volume key this many times.
    Volume(VolumeOperation, u8),
    /// Move a button of the gamepad.
    GamepadButton(u8, Stroke),
    /// Move an axis of a stick of the gamepad, or pull an analog trigger, by a number that may name these variables.
    GamepadAxis(u8, NumberExpr, View),
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
            Self::Move(..) => "MouseMove".to_owned(),
            Self::Scroll(..) => "Scroll".to_owned(),
            Self::Volume(operation, _) => format!("VolumeControl {operation:?}"),
            Self::GamepadButton(..) | Self::GamepadAxis(..) => "VirtualGamepad".to_owned(),
        }
    }
}

/// A rule plays the gamepad, so that it is to be plugged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlugGamepad;

/// The way to the worker. Clones share it.
pub type DesktopQueue = Queue<(Envelope, Arc<DesktopAction>), PlugGamepad>;

impl Job for (Envelope, Arc<DesktopAction>) {
    fn may_switch_off(&self) -> bool {
        let (envelope, action) = self;
        let stroke = match &**action {
            DesktopAction::Keystroke(keystroke) => keystroke.stroke,
            DesktopAction::Click(click) => click.stroke,
            DesktopAction::GamepadButton(_, stroke) => *stroke,
            DesktopAction::Move(moving, _) => return moving.motion == Motion::Speed,
            DesktopAction::GamepadAxis(..) => return true,
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
        pointer: Pointer::default(),
        axes: Axes::default(),
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
    GamepadButton(u8),
}

struct Worker {
    name: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    connect: Connect,
    desktop: Option<Box<dyn Desktop>>,
    held: Ledger<Down>,
    pointer: Pointer,
    axes: Axes,
}

impl Worker {
    fn run(mut self, mut inbox: Inbox<(Envelope, Arc<DesktopAction>), PlugGamepad>) {
        loop {
            self.step();
            match inbox.next(self.pointer.due()) {
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
                    let _ = self.change_speed(|pointer, now| pointer.release(&release, now));
                    self.let_go_of_axes(|owner| release.takes(owner));
                }
                Next::ReleaseAll => self.let_everything_up(),
                Next::Command(PlugGamepad) => {
                    if let Err(reason) = self.on_desktop(|desktop| desktop.plug_gamepad()) {
                        tracing::warn!("{reason}");
                    }
                }
                Next::Timeout | Next::Look => {}
                Next::Stop => break,
            }
        }
        self.let_everything_up();
    }

    fn let_everything_up(&mut self) {
        let up = self.held.release_all();
        self.let_up(up);
        let _ = self.change_speed(|pointer, _| pointer.stop());
        self.let_go_of_axes(|_| true);
    }

    /// Failures are ignored, as of keys: a gamepad that is gone has nothing out.
    fn let_go_of_axes(&mut self, goes: impl Fn(&Owner) -> bool) {
        for (axis, place) in self.axes.release(goes) {
            let _ = self.on_desktop(|desktop| desktop.gamepad_axis(axis, place));
        }
    }

    /// Has the pointer go on if it moves and a step is due. Without a desktop it stands.
    fn step(&mut self) {
        if let Some((x, y)) = self.pointer.step(Instant::now())
            && self.on_desktop(|desktop| desktop.step(x, y)).is_err()
        {
            self.pointer.stop();
        }
    }

    /// Changes what the rules make of the pointer's speed. If the desktop refuses it, the pointer stands.
    fn change_speed(&mut self, change: impl FnOnce(&mut Pointer, Instant)) -> Result<(), Reason> {
        let before = self.pointer.speed();
        change(&mut self.pointer, Instant::now());
        let speed = self.pointer.speed();
        if speed == before {
            return Ok(());
        }
        self.on_desktop(|desktop| desktop.set_speed(speed)).inspect_err(|_| self.pointer.stop())
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
            DesktopAction::Move(moving, view) => self.move_pointer(moving, view, envelope),
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
            DesktopAction::GamepadButton(button, stroke) => {
                self.stroke(&[Down::GamepadButton(*button)], *stroke, envelope)
            }
            DesktopAction::GamepadAxis(axis, value, view) => self.move_axis(*axis, value, view, envelope),
        }
    }

    fn move_pointer(&mut self, moving: &MouseMove, view: &View, envelope: &Envelope) -> Result<(), Reason> {
        let numbers = [&moving.x, &moving.y];
        let [x, y] = numbers.map(|number| {
            let number = number.as_ref()?.eval(&view.of(&envelope.numbers(), &envelope.device));
            Some(number.clamp(-MAX_MOTION, MAX_MOTION))
        });
        let (x, y) = (x.unwrap_or_default(), y.unwrap_or_default());
        match moving.motion {
            Motion::By if (x, y) == (0, 0) => Ok(()),
            Motion::By => self.on_desktop(|desktop| desktop.move_by(x, y)),
            Motion::To => {
                let [x, y] = [x, y].map(|place| u16::try_from(place).unwrap_or(0));
                self.on_desktop(|desktop| desktop.point(x, y))
            }
            Motion::Speed => {
                let speed =
                    if ends(numbers.into_iter().flatten(), envelope) { Speed::default() } else { Speed { x, y } };
                self.change_speed(|pointer, now| pointer.set(Owner::from(envelope), speed, now))
            }
        }
    }

    fn move_axis(&mut self, axis: u8, value: &NumberExpr, view: &View, envelope: &Envelope) -> Result<(), Reason> {
        let number = value.eval(&view.of(&envelope.numbers(), &envelope.device)).clamp(-MAX_MOTION, MAX_MOTION);
        let wanted = if ends([value], envelope) { 0 } else { i16::try_from(number).unwrap_or(0) };
        let place = self.axes.set(axis, Owner::from(envelope), wanted);
        self.on_desktop(|desktop| desktop.gamepad_axis(axis, place))
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
            Down::GamepadButton(button) => desktop.gamepad_button(button, down),
        })
    }

    /// Does something on the desktop, which is connected to first if there is no connection.
    fn on_desktop(&mut self, act: impl FnOnce(&mut dyn Desktop) -> Result<(), String>) -> Result<(), Reason> {
        let desktop = match &mut self.desktop {
            Some(desktop) => desktop,
            none => none.insert((self.connect)().map_err(Reason::Unavailable)?),
        };
        act(&mut **desktop).map_err(Reason::Failed)
    }
}

/// Whether this event ends what goes on for as long as a control is pressed: a number that is fixed goes on while the control
/// is pressed, and one that is made from the event until the control is let go of.
fn ends<'n>(numbers: impl IntoIterator<Item = &'n NumberExpr>, envelope: &Envelope) -> bool {
    let is_fixed = !numbers.into_iter().any(|number| matches!(number, NumberExpr::Calculated(_)));
    if is_fixed { !envelope.presses() } else { envelope.lets_go() }
}
