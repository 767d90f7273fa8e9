//! The engine thread: events in, envelopes out.
//!
//! One ordinary thread that sleeps until something comes, or until a gesture's time is up. It owns the
//! engine, and hands envelopes over with `try_send`: nothing here waits, locks, allocates or parses.

use std::sync::Arc;
use std::thread::JoinHandle;

use conductor_engine::{Engine, EnvironmentHandle, Firing, ModeIx, Record, RuleSetHandle, Sink};
use crossbeam_channel::{RecvError, TryRecvError};

mod profile_mode;

use self::profile_mode::ProfileMode;
use conductor_dispatch::ledger::Release;
use conductor_dispatch::releases::Releases;
use conductor_dispatch::{Action, Envelope, Failure, Reason};
use conductor_observer::{Observation, Observer};
use conductor_ports::engine_input::{Input, Inputs};
use conductor_stdx::clock::Clock;

/// Starts the engine thread. It ends on [`Input::Stop`], or when all senders are dropped. Subscribers of
/// `releases` are notified when a mode is left, rules are replaced or a device is gone.
///
/// # Errors
/// When the system has no thread left.
pub fn start(
    rules: Arc<RuleSetHandle<Action>>,
    environment: Arc<EnvironmentHandle>,
    clock: Clock,
    inputs: Inputs,
    releases: Releases,
    observer: Observer,
) -> std::io::Result<JoinHandle<()>> {
    let out = Out::new(releases, observer);
    let event_loop = EventLoop { engine: Engine::new(rules, environment), clock, profile_mode: None, out };
    std::thread::Builder::new().name("engine".into()).spawn(move || event_loop.run(&inputs))
}

struct EventLoop {
    engine: Engine<Action>,
    clock: Clock,
    profile_mode: Option<ProfileMode>,
    out: Out,
}

impl EventLoop {
    fn run(mut self, inputs: &Inputs) {
        while let Ok(input) = self.next(inputs) {
            match input {
                Input::Event { at, event } => {
                    self.engine.event(at, event, &mut self.out);
                }
                Input::SetMode(mode) => {
                    // Unknown modes are left alone.
                    let _ = self.engine.set_mode(&mode, &mut self.out);
                }
                Input::Profile(next) => self.change_profile(next.as_ref()),
                Input::Gone(device) => {
                    self.engine.forget(&device, &mut self.out);
                    self.out.releases.notify(&Release::Device(device));
                }
                Input::Reloaded => self.reloaded(),
                Input::Moved => {}
                Input::Stop => break,
            }
        }
    }

    /// Another profile applies, or none any more.
    fn change_profile(&mut self, next: Option<&Arc<str>>) {
        let index = usize::from(self.engine.mode_index().0);
        let rules = self.engine.rules().load();
        let Some(current) = rules.modes().get(index) else { return };
        if let Some(mode) = ProfileMode::change(&mut self.profile_mode, next, current)
            && self.engine.set_mode(&mode, &mut self.out).is_err()
            && let Some(first) = rules.modes().first()
        {
            // The mode to go back to is in the rules no longer.
            let _ = self.engine.set_mode(first, &mut self.out);
        }
    }

    /// Tells of the rules that are gone.
    fn reloaded(&self) {
        let rules = self.engine.rules().load();
        self.out.releases.notify(&Release::Rules(rules.generation()));
        // The mode may have another number now.
        let mode = self.engine.mode().and_then(|name| rules.mode_index(name)).unwrap_or(ModeIx(0));
        self.out.releases.notify(&Release::Mode(mode));
    }

    /// The next input. What is due before it is done meanwhile.
    fn next(&mut self, inputs: &Inputs) -> Result<Input, RecvError> {
        loop {
            // The time first, then the queue: what came before that time is in it, and may undo what is due.
            let due = self.engine.deadline().map(|deadline| (deadline, self.clock.now()));
            match (inputs.queue.try_recv(), due) {
                (Ok(input), _) => return Ok(input),
                (Err(TryRecvError::Disconnected), _) => return Err(RecvError),
                (Err(TryRecvError::Empty), Some((deadline, now))) if deadline <= now => {
                    self.engine.advance(deadline, &mut self.out);
                }
                (Err(TryRecvError::Empty), due) => {
                    inputs.bell.wait(due.and_then(|(deadline, _)| self.clock.moment(deadline)));
                }
            }
        }
    }
}

/// Failures of one event that are kept until the event itself is observed; further ones are observed before.
const MAX_FAILURES: usize = 16;

/// Where what the engine decides goes.
struct Out {
    releases: Releases,
    observer: Observer,
    /// What has failed for the event that is being decided about: it is observed after the event.
    failures: Vec<Failure>,
}

impl Out {
    fn new(releases: Releases, observer: Observer) -> Self {
        Self { releases, observer, failures: Vec::with_capacity(MAX_FAILURES) }
    }
}

impl Sink<Action> for Out {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        let envelope = || Envelope {
            at: firing.at,
            device: firing.device.clone(),
            event: firing.event.clone(),
            position: firing.position,
            answers: firing.answers,
            rule: firing.rule.id,
            generation: firing.generation,
            mode: firing.rule.mode,
        };
        if let Err((worker, reason)) = firing.rule.action.hand_over(envelope) {
            self.failed(&envelope(), worker, reason);
        }
        Action::next_mode(&firing)
    }

    fn record(&mut self, record: Record) {
        self.observer.put(Observation::Event(record));
        self.failures.drain(..).for_each(|failure| self.observer.put(Observation::Failure(failure)));
    }

    fn mode(&mut self, name: &Arc<str>, mode: ModeIx) {
        self.releases.notify(&Release::Mode(mode));
        self.observer.put(Observation::Mode(Arc::clone(name)));
    }
}

impl Out {
    #[cold]
    fn failed(&mut self, envelope: &Envelope, worker: &Arc<str>, reason: Reason) {
        let failure = envelope.failure(worker, reason);
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(failure);
        } else {
            self.observer.put(Observation::Failure(failure));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use conductor_engine::{
        Cause, DeviceEvent, DeviceId, MidiMessage, Nanos, NumberRange, RuleSource, RuleSpec, Trigger, ValueRange,
    };
    use crossbeam_channel::Receiver;

    use super::*;
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_ports::engine_input::queue;
    use conductor_stdx::doorbell::Sender;

    const LONG: Nanos = 20_000_000;

    /// An engine with a rule for a long press of note 36, and what it says.
    fn engine(clock: Clock) -> (EventLoop, Receiver<Observation>) {
        let trigger = Trigger::LongPress {
            keys: NumberRange::one(36),
            velocity: ValueRange::SEVEN_BIT,
            channel: None,
            after: LONG,
        };
        let rules = vec![RuleSpec::new(trigger, Action::Suppress)];
        let rules = conductor_engine::compile(RuleSource { modes: Vec::new(), rules }).unwrap();
        let (_, said) = SinkQueue::new();
        let (observer, observed, _) = observer::start(said, None).unwrap();
        let told = observed.subscribe();
        let engine = Engine::new(Arc::new(RuleSetHandle::new(rules)), Arc::default());
        (EventLoop { engine, clock, profile_mode: None, out: Out::new(Releases::default(), observer) }, told)
    }

    fn started(event_loop: EventLoop) -> (Sender<Input>, JoinHandle<()>) {
        let (queue, inputs) = queue();
        (queue, std::thread::spawn(move || event_loop.run(&inputs)))
    }

    fn note(at: Nanos, message: MidiMessage) -> Input {
        Input::Event { at, event: DeviceEvent { device: DeviceId::new("pads"), event: message.into() } }
    }

    const ON: MidiMessage = MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 };
    const OFF: MidiMessage = MidiMessage::NoteOff { channel: 0, note: 36, velocity: 0 };

    /// The times of what was found, until there is nothing more to come.
    fn found(told: &Receiver<Observation>, records: usize) -> Vec<(Cause, Nanos)> {
        let next = || told.recv_timeout(Duration::from_secs(30)).expect("an observation");
        let records = std::iter::repeat_with(next)
            .filter_map(|observation| match observation {
                Observation::Event(record) => Some((record.cause, record.at)),
                _ => None,
            })
            .take(records);
        records.collect()
    }

    /// ENG-4: the thread wakes by itself, and the gesture is found as of its very time.
    #[test]
    fn it_wakes_for_a_deadline() {
        let clock = Clock::start();
        let (event_loop, told) = engine(clock);
        let (queue, thread) = started(event_loop);
        let at = clock.now();
        queue.send(note(at, ON)).unwrap();
        assert_eq!(found(&told, 2), [(Cause::Input, at), (Cause::Gesture, at + LONG)]);
        queue.send(Input::Stop).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn by_hand_it_wakes_when_the_clock_was_moved() {
        let (clock, hand) = Clock::manual();
        let (event_loop, told) = engine(clock);
        let (queue, thread) = started(event_loop);
        queue.send(note(0, ON)).unwrap();
        hand.advance(Duration::from_nanos(LONG));
        queue.send(Input::Moved).unwrap();
        assert_eq!(found(&told, 2), [(Cause::Input, 0), (Cause::Gesture, LONG)]);
        queue.send(Input::Stop).unwrap();
        thread.join().unwrap();
    }

    /// What came in time counts, though the thread comes to it late.
    #[test]
    fn an_end_that_waits_in_the_queue_is_heard_before_the_deadline() {
        let (clock, hand) = Clock::manual();
        let (event_loop, told) = engine(clock);
        hand.advance(Duration::from_secs(1));
        let (queue, inputs) = queue();
        queue.send(note(0, ON)).unwrap();
        queue.send(note(LONG - 1, OFF)).unwrap();
        queue.send(note(LONG, ON)).unwrap();
        queue.send(Input::Gone(DeviceId::new("pads"))).unwrap();
        queue.send(note(3 * LONG, OFF)).unwrap();
        queue.send(Input::Stop).unwrap();
        event_loop.run(&inputs);
        assert_eq!(found(&told, 4), [0, LONG - 1, LONG, 3 * LONG].map(|at| (Cause::Input, at)));
    }
}
