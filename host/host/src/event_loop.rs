//! The event loop of the engine: events in, envelopes out.
//!
//! The engine is a [`Strand`]: one thread at a time works with it. A port's thread puts an event into the engine's queue,
//! enters if no thread is inside, does what waits in the queue, leaves, and then has the workers of what fired do their
//! jobs (run to completion). So an event usually wakes no thread at all. The engine thread, which owns the strand, sleeps
//! until a gesture's time is up, or until something comes from a thread that must not work for long.
//!
//! Nothing inside waits, locks, allocates or parses; envelopes are handed over with `try_send`.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use arrayvec::ArrayVec;
use conductor_engine::{ClockChange, Engine, EnvironmentHandle, Firing, Follower, MusicalTime, RuleSetHandle, Sink};
use conductor_event::{DeviceEvent, Event, ModeIx, Nanos, Record};
use crossbeam_channel::{Receiver, TryRecvError};

mod profile_mode;

use self::profile_mode::ProfileMode;
use conductor_dispatch::feature_worker::FeatureWorker;
use conductor_dispatch::ledger::Release;
use conductor_dispatch::releases::Releases;
use conductor_dispatch::variables::MAX_BROUGHT_ABOUT;
use conductor_dispatch::{Action, Envelope, Failure, Reason};
use conductor_observer::{Observation, Observer};
use conductor_ports::engine_input::{Input, Inputs};
use conductor_scheduling::{event_thread, timer_slack};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell::Carrier;
use conductor_stdx::pace::CARRY_BUDGET;
use conductor_stdx::strand::Strand;

/// Inputs that are done before the workers of what fired are seen to.
const MAX_INPUTS: usize = 64;
/// Workers that are seen to together; further ones do what was handed over on their own threads.
const MAX_FIRED: usize = 16;

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
    let mut engine = Engine::new(rules, environment);
    engine.keep_time(clock.now());
    own(EventLoop::new(engine, clock, inputs.queue.clone(), out), inputs)
}

/// Starts the thread that owns the engine, and has other threads work in its place.
fn own(event_loop: EventLoop, inputs: Inputs) -> std::io::Result<JoinHandle<()>> {
    let observer = event_loop.out.observer.clone();
    let shared =
        Arc::new(Shared { strand: Strand::new(event_loop, inputs.bell.clone()), queue: inputs.queue, observer });
    let carrier: Arc<dyn Carrier> = Arc::clone(&shared) as _;
    inputs.bell.carried_by(Arc::downgrade(&carrier));
    std::thread::Builder::new().name("engine".into()).spawn(move || shared.own())
}

/// The engine, for the thread that owns it and for those that bring events.
struct Shared {
    strand: Strand<EventLoop>,
    /// What waits, for a look from outside.
    queue: Receiver<Input>,
    observer: Observer,
}

/// What is to be done after the engine was left.
struct PassResult {
    turn: Turn,
    fired: Fired,
    /// Whether the engine thread sleeps for too long: something is due before.
    rings: bool,
}

impl Shared {
    /// Does what the engine thread is there for, until the end.
    fn own(&self) {
        event_thread();
        timer_slack::remove();
        loop {
            let mut event_loop = self.strand.enter();
            let turn = event_loop.turn();
            let fired = std::mem::take(&mut event_loop.out.fired);
            if matches!(turn, Turn::Idle) {
                event_loop.sleeps_until = event_loop.engine.deadline();
            }
            let until = event_loop.moment();
            drop(event_loop);
            self.see_to(fired, Instant::now() + CARRY_BUDGET);
            match turn {
                Turn::Ended => return,
                // What came while it was inside is not rung for.
                Turn::Idle if self.queue.is_empty() => self.strand.bell().wait(until),
                Turn::Idle | Turn::More => {}
            }
        }
    }

    /// Enters, does what waits, and leaves. `None` if a thread is inside.
    fn turn(&self) -> Option<PassResult> {
        let mut event_loop = self.strand.try_enter()?;
        let turn = event_loop.turn();
        let fired = std::mem::take(&mut event_loop.out.fired);
        Some(PassResult { turn, fired, rings: event_loop.is_due_sooner() })
    }

    /// Has the workers do what was handed over to them; from `until` on, by their own threads.
    fn see_to(&self, fired: Fired, until: Instant) {
        fired.iter().for_each(|feature| feature.carry(until));
        self.observer.wake();
    }
}

impl Carrier for Shared {
    fn carry(&self) {
        let until = Instant::now() + CARRY_BUDGET;
        loop {
            let Some(PassResult { turn, fired, rings }) = self.turn() else { return };
            if rings || matches!(turn, Turn::Ended) {
                self.strand.bell().ring();
            }
            self.see_to(fired, until);
            if self.queue.is_empty() {
                return;
            }
            if Instant::now() >= until {
                return self.strand.bell().ring();
            }
        }
    }
}

/// How the work with the engine has ended.
enum Turn {
    /// Nothing waits.
    Idle,
    /// There may be more to do.
    More,
    /// For good.
    Ended,
}

struct EventLoop {
    engine: Engine<Action>,
    clock: Clock,
    queue: Receiver<Input>,
    profile_mode: Option<ProfileMode>,
    /// Whether the end has come.
    ended: bool,
    /// Until when the engine thread sleeps; `None` if until it is rung for.
    sleeps_until: Option<Nanos>,
    out: Out,
}

impl EventLoop {
    fn new(engine: Engine<Action>, clock: Clock, queue: Receiver<Input>, out: Out) -> Self {
        Self { engine, clock, queue, profile_mode: None, ended: false, sleeps_until: None, out }
    }

    /// Does what waits and what is due, a bounded number of inputs.
    fn turn(&mut self) -> Turn {
        for _ in 0..MAX_INPUTS {
            if self.ended {
                return Turn::Ended;
            }
            match self.next() {
                Ok(input) => self.ended = self.take(input).is_break(),
                Err(TryRecvError::Empty) => return Turn::Idle,
                Err(TryRecvError::Disconnected) => self.ended = true,
            }
        }
        if self.ended { Turn::Ended } else { Turn::More }
    }

    fn take(&mut self, input: Input) -> ControlFlow<()> {
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
            Input::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Another profile applies, or none any more.
    fn change_profile(&mut self, next: Option<&Arc<str>>) {
        // Before the first event none is active; the first mode becomes so here.
        self.engine.mode_index();
        let rules = self.engine.rules().load();
        let Some(current) = self.engine.chosen_mode().cloned() else { return };
        if let Some(mode) = ProfileMode::change(&mut self.profile_mode, next, &current)
            && self.engine.set_mode(&mode, &mut self.out).is_err()
            && let Some(first) = rules.modes().first()
        {
            // The mode to go back to is in the rules no longer.
            let _ = self.engine.set_mode(first, &mut self.out);
        }
    }

    /// Tells of the rules that are gone.
    fn reloaded(&mut self) {
        self.engine.keep_time(self.clock.now());
        let rules = self.engine.rules().load();
        self.out.releases.notify(&Release::Rules(rules.generation()));
        // The mode may have another number now.
        let mode = self.engine.mode().and_then(|name| rules.mode_index(name)).unwrap_or(ModeIx(0));
        self.out.releases.notify(&Release::Mode(mode));
    }

    /// The next input. What is due before it is done meanwhile.
    fn next(&mut self) -> Result<Input, TryRecvError> {
        loop {
            // The time first, then the queue: what came before that time is in it, and may undo what is due.
            let due = self.engine.deadline().map(|deadline| (deadline, self.clock.now()));
            match (self.queue.try_recv(), due) {
                (Err(TryRecvError::Empty), Some((deadline, now))) if deadline <= now => {
                    self.engine.catch_up(now);
                    self.engine.advance(deadline, &mut self.out);
                }
                (next, _) => return next,
            }
        }
    }

    /// Until when the engine thread is to sleep; `None` if until it is rung for.
    fn moment(&self) -> Option<Instant> {
        self.engine.deadline().and_then(|deadline| self.clock.moment(deadline))
    }

    /// Whether something is due before the engine thread wakes. True once for each deadline.
    fn is_due_sooner(&mut self) -> bool {
        let Some(deadline) = self.engine.deadline() else { return false };
        let sooner = self.sleeps_until.is_none_or(|until| deadline < until);
        if sooner {
            self.sleeps_until = Some(deadline);
        }
        sooner
    }
}

/// Features whose workers have got something to do.
type Fired = ArrayVec<FeatureWorker, MAX_FIRED>;

/// Failures of one event that are kept until the event itself is observed; further ones are observed before.
const MAX_FAILURES: usize = 16;

/// Where what the engine decides goes.
struct Out {
    releases: Releases,
    observer: Observer,
    /// What has failed for the event that is being decided about: it is observed after the event.
    failures: Vec<Failure>,
    /// Whose workers are to be seen to when the engine is left.
    fired: Fired,
    /// The changes of variables that come next.
    brought_about: VecDeque<DeviceEvent<Event>>,
}

impl Out {
    fn new(releases: Releases, observer: Observer) -> Self {
        let brought_about = VecDeque::with_capacity(MAX_BROUGHT_ABOUT);
        let failures = Vec::with_capacity(MAX_FAILURES);
        Self { releases, observer, failures, fired: Fired::new(), brought_about }
    }
}

impl Sink<Action> for Out {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        let envelope = || Envelope::of(&firing);
        let fired = &mut self.fired;
        let mut wake = |feature: &FeatureWorker| {
            if !fired.iter().any(|other| other.is(feature)) && fired.try_push(feature.clone()).is_err() {
                feature.ring();
            }
        };
        if let Err((worker, reason)) = firing.rule.action.hand_over(envelope, &mut wake) {
            self.failed(&envelope(), worker, reason);
        }
        Action::at_once(&firing, &mut self.brought_about)
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.brought_about.pop_front()
    }

    fn musical_time(&mut self, follower: &Follower, time: MusicalTime, change: ClockChange) {
        follower.follow(time, change);
    }

    fn record(&mut self, record: Record) {
        self.observer.put_quietly(Observation::Event(record));
        self.failures.drain(..).for_each(|failure| self.observer.put_quietly(Observation::Failure(failure)));
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

    use conductor_engine::{NumberRange, RuleSource, RuleSpec, Trigger, ValueRange};
    use conductor_event::{Cause, DeviceId, MidiMessage, Nanos};
    use crossbeam_channel::Receiver;

    use super::*;
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_ports::engine_input::queue;
    use conductor_stdx::doorbell::Sender;

    const LONG: Nanos = 20_000_000;

    /// An engine with a rule for a long press of note 36, and what it says.
    fn engine(clock: Clock) -> (Unstarted, Receiver<Observation>) {
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
        let (queue, inputs) = queue();
        let event_loop = EventLoop::new(engine, clock, inputs.queue.clone(), Out::new(Releases::default(), observer));
        (Unstarted { event_loop, inputs, queue }, told)
    }

    struct Unstarted {
        event_loop: EventLoop,
        inputs: Inputs,
        queue: Sender<Input>,
    }

    fn started(it: Unstarted) -> (Sender<Input>, JoinHandle<()>) {
        (it.queue, own(it.event_loop, it.inputs).unwrap())
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
        let (it, told) = engine(clock);
        let (queue, thread) = started(it);
        let at = clock.now();
        queue.send(note(at, ON)).unwrap();
        assert_eq!(found(&told, 2), [(Cause::Input, at), (Cause::Gesture, at + LONG)]);
        queue.send(Input::Stop).unwrap();
        thread.join().unwrap();
    }

    #[test]
    fn by_hand_it_wakes_when_the_clock_was_moved() {
        let (clock, hand) = Clock::manual();
        let (it, told) = engine(clock);
        let (queue, thread) = started(it);
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
        let (it, told) = engine(clock);
        hand.advance(Duration::from_secs(1));
        let queue = &it.queue;
        queue.send(note(0, ON)).unwrap();
        queue.send(note(LONG - 1, OFF)).unwrap();
        queue.send(note(LONG, ON)).unwrap();
        queue.send(Input::Gone(DeviceId::new("pads"))).unwrap();
        queue.send(note(3 * LONG, OFF)).unwrap();
        queue.send(Input::Stop).unwrap();
        started(it).1.join().unwrap();
        assert_eq!(found(&told, 4), [0, LONG - 1, LONG, 3 * LONG].map(|at| (Cause::Input, at)));
    }
}
