//! The system's gamepads, through gilrs: evdev and udev on Linux, IOKit, Windows' own.
//!
//! gilrs belongs to one thread, which waits for events, takes the dead zone out of them, and hands them to the pads' sinks.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use conductor_event::HidEvent;
use conductor_scheduling::event_thread;
use crossbeam_channel::{Receiver, Sender, TryRecvError};
use gilrs::ev::filter::{Filter as _, axis_dpad_to_button};
use gilrs::{Axis, Button, Event, EventType, Gilrs, GilrsBuilder};
use parking_lot::{Mutex, MutexGuard};

use super::{BACKEND, VIRTUAL_GAMEPAD, unreachable};
use crate::{
    Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, PortMetadata, Protocol, UsbDevice,
};

/// Why this build has no gamepads; `None`, since it has.
pub const UNAVAILABLE: Option<&str> = None;

/// How long the thread may take to notice that a pad is to be opened or closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long it waits for more while values wait for their turn.
const SETTLE_INTERVAL: Duration = Duration::from_millis(2);

/// The backend. Its thread starts when it is first asked for pads.
#[derive(Debug, Default)]
pub struct GamepadBackend {
    pads: Option<Pads>,
}

impl GamepadBackend {
    /// Connects to the system when it is first asked for pads.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The way to the thread. Dropping it ends it.
#[derive(Debug)]
struct Pads {
    jobs: Option<Sender<Job>>,
    listed: Arc<Mutex<Vec<PortInfo>>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Job {
    Open(String, Box<EventSink>),
    Close(String),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl Pads {
    fn start() -> Result<Self, PortError> {
        let (sender, jobs) = crossbeam_channel::unbounded();
        let listed: Arc<Mutex<Vec<PortInfo>>> = Arc::default();
        let (ready, started) = crossbeam_channel::bounded(1);
        let found = Arc::clone(&listed);
        let thread = std::thread::Builder::new().name("gamepads".into()).spawn(move || {
            event_thread();
            // Values as they come: our own dead zone is the binding's, and jitter is for rules to smooth.
            let gilrs = GilrsBuilder::new().with_default_filters(false).set_update_state(false).build();
            let gilrs = match gilrs {
                Ok(gilrs) => gilrs,
                Err(error) => return drop(ready.send(Err(unreachable(error)))),
            };
            *lock(&found) = ports(&gilrs);
            let _ = ready.send(Ok(()));
            work(gilrs, &jobs, &found);
        });
        let thread = thread.map_err(unreachable)?;
        started.recv().unwrap_or_else(|_| Err(unreachable("their thread ended")))?;
        Ok(Self { jobs: Some(sender), listed, thread: Some(thread) })
    }

    fn send(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }
}

impl Drop for Pads {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Every pad that is plugged in. Twins have one name and two keys.
fn ports(gilrs: &Gilrs) -> Vec<PortInfo> {
    // The host's own would play itself.
    let others = gilrs.gamepads().filter(|(_, pad)| pad.os_name() != VIRTUAL_GAMEPAD);
    let pads = others.map(|(id, pad)| {
        let usb = pad.vendor_id().zip(pad.product_id()).map(|(vendor_id, product_id)| {
            let (serial, bus, address, path) = (None, None, None, None);
            UsbDevice { vendor_id, product_id, serial, bus, address, path }
        });
        let name = if pad.os_name().is_empty() { pad.name() } else { pad.os_name() };
        let info = PortInfo::new(name, &format!("gamepad {id}"), BACKEND, Protocol::Hid, Direction::Input);
        PortInfo { metadata: PortMetadata { usb, ..PortMetadata::default() }, ..info }
    });
    pads.collect()
}

fn work(mut gilrs: Gilrs, jobs: &Receiver<Job>, found: &Mutex<Vec<PortInfo>>) {
    let mut open: HashMap<String, OpenPad> = HashMap::new();
    loop {
        loop {
            match jobs.try_recv() {
                Ok(Job::Open(key, sink)) => {
                    if let Some(mut before) = open.insert(key, OpenPad::new(sink)) {
                        before.rest();
                    }
                }
                Ok(Job::Close(key)) => {
                    if let Some(mut closed) = open.remove(&key) {
                        closed.rest();
                    }
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        let settled = open.values_mut().all(|pad| pad.sink.settle());
        let event = gilrs.next_event_blocking(Some(if settled { POLL_INTERVAL } else { SETTLE_INTERVAL }));
        let Some(Event { id, event, .. }) = event.filter_ev(&axis_dpad_to_button, &mut gilrs).inspect(|event| {
            gilrs.update(event);
        }) else {
            continue;
        };
        if matches!(event, EventType::Connected | EventType::Disconnected) {
            *lock(found) = ports(&gilrs);
            // Sticks and triggers of a pad that is gone return to rest.
            if let Some(pad) = open.get_mut(&format!("gamepad {id}")) {
                pad.rest();
            }
        } else if let Some(pad) = open.get_mut(&format!("gamepad {id}")) {
            pad.take(event);
        }
    }
}

/// A pad that is listened to.
#[derive(Debug)]
struct OpenPad {
    sink: Box<EventSink>,
    /// Where the sticks' axes and the triggers were last, by their numbers from 128 on.
    axes: [f32; 6],
}

impl OpenPad {
    fn new(sink: Box<EventSink>) -> Self {
        Self { sink, axes: [0.0; 6] }
    }

    fn take(&mut self, event: EventType) {
        match event {
            EventType::ButtonPressed(button, _) => self.button(button, true),
            EventType::ButtonReleased(button, _) => self.button(button, false),
            EventType::ButtonChanged(Button::LeftTrigger2, value, _) => self.axis(132, value),
            EventType::ButtonChanged(Button::RightTrigger2, value, _) => self.axis(133, value),
            EventType::AxisChanged(axis, value, _) => match axis {
                Axis::LeftStickX => self.axis(128, value),
                Axis::LeftStickY => self.axis(129, value),
                Axis::RightStickX => self.axis(130, value),
                Axis::RightStickY => self.axis(131, value),
                // A trigger without a mapping, which rests at one end of its axis.
                Axis::LeftZ => self.axis(132, f32::midpoint(value, 1.0)),
                Axis::RightZ => self.axis(133, f32::midpoint(value, 1.0)),
                _ => {}
            },
            _ => {}
        }
    }

    /// Its sticks and triggers are let go of: it is unplugged, or not listened to any more.
    fn rest(&mut self) {
        HidEvent::STICKS.chain(HidEvent::TRIGGERS).for_each(|number| self.axis(number, 0.0));
    }

    fn button(&mut self, button: Button, pressed: bool) {
        if let Some(button) = number(button) {
            self.sink.hid(HidEvent::Button { button, pressed });
        }
    }

    fn axis(&mut self, number: u16, value: f32) {
        let value = beyond(self.sink.dead_zone(), value);
        let before = &mut self.axes[usize::from(number - 128)];
        // Within the dead zone a pad that trembles says nothing.
        if *before != value {
            *before = value;
            self.sink.hid(match number {
                132.. => HidEvent::Trigger { trigger: number, value: value.max(0.0) },
                _ => HidEvent::Stick { stick: number, value },
            });
        }
    }
}

/// A value from -1 to 1 with the dead zone taken out: what is beyond it is stretched over the whole range.
fn beyond(dead_zone: f32, value: f32) -> f32 {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-1.0, 1.0) };
    if value.abs() <= dead_zone { 0.0 } else { ((value.abs() - dead_zone) / (1.0 - dead_zone)).copysign(value) }
}

/// The number of a button (see [`HidEvent::Button`]); `None` if usual pads do not have it.
fn number(button: Button) -> Option<u16> {
    Some(match button {
        Button::South => 128,
        Button::East => 129,
        Button::West => 130,
        Button::North => 131,
        Button::DPadUp => 132,
        Button::DPadDown => 133,
        Button::DPadLeft => 134,
        Button::DPadRight => 135,
        Button::LeftTrigger => 136,
        Button::RightTrigger => 137,
        Button::LeftThumb => 138,
        Button::RightThumb => 139,
        Button::Start => 140,
        Button::Select => 141,
        Button::Mode => 142,
        Button::LeftTrigger2 => 143,
        Button::RightTrigger2 => 144,
        Button::C | Button::Z | Button::Unknown => return None,
    })
}

struct OpenInput {
    jobs: Sender<Job>,
    key: String,
}

impl Connection for OpenInput {}

impl Drop for OpenInput {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::Close(std::mem::take(&mut self.key)));
    }
}

impl PortBackend for GamepadBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        let pads = match &self.pads {
            Some(pads) => pads,
            None => self.pads.insert(Pads::start()?),
        };
        if pads.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            self.pads = None;
            return Err(unreachable("their thread ended"));
        }
        Ok(lock(&pads.listed).clone())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let jobs = self.pads.as_ref().and_then(|pads| pads.jobs.clone());
        let (Some(pads), Some(jobs)) = (&self.pads, jobs) else { return Err(unreachable("they were never listed")) };
        pads.send(Job::Open(port.key.clone(), Box::new(sink)));
        Ok(Box::new(OpenInput { jobs, key: port.key.clone() }))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(PortError(format!("{} is a gamepad, which takes no MIDI", port.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // PRT-4
    #[test]
    fn within_the_dead_zone_nothing_moves_and_beyond_it_the_whole_way_is_left() {
        for (value, expected) in [(0.05, 0.0), (-0.1, 0.0), (1.0, 1.0), (-1.0, -1.0), (2.0, 1.0), (f32::NAN, 0.0)] {
            assert_eq!(beyond(0.1, value), expected, "{value}");
        }
        assert!((beyond(0.1, 0.55) - 0.5).abs() < 1e-6 && (beyond(0.1, -0.55) + 0.5).abs() < 1e-6);
        assert_eq!(beyond(0.0, 0.01), 0.01);
    }

    #[test]
    fn every_button_has_its_own_number() {
        let buttons = [
            Button::South,
            Button::East,
            Button::West,
            Button::North,
            Button::DPadUp,
            Button::DPadDown,
            Button::DPadLeft,
            Button::DPadRight,
            Button::LeftTrigger,
            Button::RightTrigger,
            Button::LeftThumb,
            Button::RightThumb,
            Button::Start,
            Button::Select,
            Button::Mode,
            Button::LeftTrigger2,
            Button::RightTrigger2,
        ];
        let numbers: Vec<u16> = buttons.into_iter().filter_map(number).collect();
        assert_eq!(numbers, HidEvent::BUTTONS.collect::<Vec<_>>());
    }
}
