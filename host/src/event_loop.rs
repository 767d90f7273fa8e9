//! The engine thread: events in, envelopes out.
//!
//! One ordinary thread that sleeps until something comes. It reads the rule set through its
//! handle, owns the mode, and hands envelopes over with `try_send`: nothing here waits, locks,
//! allocates or parses.

use std::sync::Arc;
use std::thread::JoinHandle;

use conductor_engine::{ActiveMode, DeviceEvent, Event, Fired, Nanos, Record, RuleSetHandle};
use crossbeam_channel::{Receiver, Sender};

use crate::dispatch::midi_out::MidiJob;
use crate::dispatch::{Action, Envelope, Failure, Reason};
use crate::observer::{Observation, Observer};

/// Inputs that the queue holds; see [`crate::ports::sink`] for what happens beyond.
pub const QUEUE: usize = 8192;

/// What the engine thread is told.
#[derive(Debug)]
pub enum Input {
    /// Something happened on a port.
    Event {
        /// When.
        at: Nanos,
        /// Where, and what.
        event: DeviceEvent<Event>,
    },
    /// Another mode, from outside the rules.
    SetMode(Arc<str>),
    /// End.
    Stop,
}

/// Starts the engine thread. It ends on [`Input::Stop`], or when nobody can send to it any more.
///
/// # Errors
/// When the system has no thread left.
pub fn start(
    rules: Arc<RuleSetHandle<Action>>,
    observer: Observer,
) -> std::io::Result<(Sender<Input>, JoinHandle<()>)> {
    let (sender, inputs) = crossbeam_channel::bounded(QUEUE);
    let engine = EventLoop { rules, mode: ActiveMode::new(), observer };
    let thread = std::thread::Builder::new().name("engine".into()).spawn(move || engine.run(&inputs))?;
    Ok((sender, thread))
}

struct EventLoop {
    rules: Arc<RuleSetHandle<Action>>,
    mode: ActiveMode,
    observer: Observer,
}

impl EventLoop {
    fn run(mut self, inputs: &Receiver<Input>) {
        for input in inputs {
            match input {
                Input::Event { at, event } => self.event(at, event),
                Input::SetMode(mode) => {
                    let rules = self.rules.load();
                    self.change_mode(&rules, &mode);
                }
                Input::Stop => break,
            }
        }
    }

    fn event(&mut self, at: Nanos, event: DeviceEvent<Event>) {
        let rules = self.rules.load();
        let generation = rules.generation();
        let mode = self.mode.index(&rules, generation);
        let DeviceEvent { device, event } = event;
        let mut fired = Fired::new();
        let mut next_mode = None;
        for found in rules.matches(mode, &device, &event) {
            let rule = found.rule;
            fired.push(rule.id);
            let envelope = || Envelope {
                at,
                device: device.clone(),
                event: event.clone(),
                position: found.position,
                rule: rule.id,
                generation,
            };
            let (handed_over, worker) = match &rule.action {
                Action::Feature(action) => (action.try_perform(envelope()), action.feature()),
                Action::SendMidi { queue, message } => {
                    (queue.try_put(MidiJob::Send(envelope(), Arc::clone(message))), queue.target())
                }
                Action::MidiForward { queue, transform } => {
                    (queue.try_put(MidiJob::Forward(envelope(), transform.clone())), queue.target())
                }
                // From the next event on: the rules of this one are already being asked.
                Action::ModeChange { mode } => {
                    next_mode = Some(mode);
                    continue;
                }
                Action::Suppress => continue,
                Action::Missing { name, reason } => (Err(Reason::Missing(Arc::clone(reason))), name),
            };
            if let Err(reason) = handed_over {
                self.failed(&envelope(), worker, reason);
            }
        }
        if let Some(mode) = next_mode {
            self.change_mode(&rules, mode);
        }
        self.observer.put(Observation::Event(Record { at, device, event, mode, generation, fired }));
    }

    #[cold]
    fn failed(&self, envelope: &Envelope, worker: &Arc<str>, reason: Reason) {
        self.observer.put(Observation::Failure(Failure::new(envelope, worker, reason)));
    }

    fn change_mode(&mut self, rules: &conductor_engine::RuleSetGuard<Action>, mode: &Arc<str>) {
        if self.mode.set(rules, rules.generation(), mode).is_ok() {
            self.observer.put(Observation::Mode(Arc::clone(mode)));
        }
    }
}
