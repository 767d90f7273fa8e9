//! Plays events against rules in the time of a script: what is due in between, gestures and what actions go on with,
//! happens at its own time.
//!
//! What rules start is done by a [`Performer`]. [`AtOnce`] does only what a rule does without a worker; one with recorded
//! sinks says what goes out.

use std::collections::VecDeque;
use std::sync::Arc;

use conductor_engine::{
    ClockChange, Engine, EnvironmentHandle, Firing, Follower, MusicalTime, RuleSetHandle, Sink, UnknownMode, rule_name,
};
use conductor_event::{DeviceEvent, DeviceId, Event, ModeIx, Nanos, Record, RuleId};

use crate::effect::Effect;

/// How long what was started is followed after the last event, where it does not end by itself.
pub const FOLLOW_TIMEOUT: Nanos = 3_600_000_000_000;
/// How often it may go on in that time.
const MAX_STEPS: usize = 20_000;

/// Something that went out.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// When, in nanoseconds from the start.
    pub at: Nanos,
    /// The rule that asked for it; `None` if none did, such as a note that ends with its mode.
    pub rule: Option<RuleId>,
    /// What.
    pub effect: Effect,
}

/// What an action that goes on later asks of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Another mode.
    Mode(Arc<str>),
    /// An event, such as the change of a variable.
    Event(DeviceEvent<Event>),
}

/// Does what rules start.
pub trait Performer<A> {
    /// A rule fires. Returns the mode that it changes to, and adds the events that it brings about at once.
    fn fire(&mut self, firing: &Firing<'_, A>, brought_about: &mut VecDeque<DeviceEvent<Event>>) -> Option<Arc<str>>;

    /// Another mode is active.
    fn mode(&mut self, at: Nanos, mode: ModeIx) {
        let _ = (at, mode);
    }

    /// A device is unplugged.
    fn gone(&mut self, at: Nanos, device: &DeviceId) {
        let _ = (at, device);
    }

    /// The clock has changed: what follows it or a variable of it does.
    fn follow(&mut self, at: Nanos) {
        let _ = at;
    }

    /// When something that was started goes on; `None` if nothing does.
    fn due(&self) -> Option<Nanos> {
        None
    }

    /// Goes on with what is due at this time.
    fn advance(&mut self, at: Nanos) -> Vec<Request> {
        let _ = at;
        Vec::new()
    }

    /// What went out since the last call, in order.
    fn sent(&mut self) -> Vec<Sent> {
        Vec::new()
    }
}

/// Does only what the rule does at once, by this function: it returns the mode that it changes to, and adds the events
/// that it brings about.
#[derive(Debug)]
pub struct AtOnce<F>(pub F);

impl<A, F> Performer<A> for AtOnce<F>
where
    F: Fn(&Firing<'_, A>, &mut VecDeque<DeviceEvent<Event>>) -> Option<Arc<str>>,
{
    fn fire(&mut self, firing: &Firing<'_, A>, brought_about: &mut VecDeque<DeviceEvent<Event>>) -> Option<Arc<str>> {
        (self.0)(firing, brought_about)
    }
}

/// Something that happened while events were played.
#[derive(Debug)]
pub enum Happened {
    /// A rule fired.
    Fired {
        /// When.
        at: Nanos,
        /// Which.
        rule: RuleId,
        /// What it is called: `rule 3` without a name.
        name: String,
        /// Which of the conditions held by which its action decides.
        decided: Vec<bool>,
    },
    /// Something went out.
    Sent(Sent),
    /// All rules that an event or a gesture meets have been asked.
    Asked(Record),
}

/// Plays events against rules.
pub struct Player<'p, A> {
    engine: Engine<A>,
    out: Out<'p, A>,
}

impl<A> std::fmt::Debug for Player<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("now", &self.out.now).finish_non_exhaustive()
    }
}

impl<'p, A> Player<'p, A> {
    /// A player at the time 0, in the first mode.
    pub fn new(
        rules: &Arc<RuleSetHandle<A>>,
        environment: &Arc<EnvironmentHandle>,
        performer: &'p mut dyn Performer<A>,
    ) -> Self {
        let out = Out { performer, now: 0, happened: Vec::new(), brought_about: VecDeque::new() };
        let mut engine = Engine::new(Arc::clone(rules), Arc::clone(environment));
        engine.keep_time(0);
        Self { engine, out }
    }

    /// The time up to which everything has happened.
    pub fn now(&self) -> Nanos {
        self.out.now
    }

    /// Whether its rules go by a clock.
    pub fn keeps_time(&self) -> bool {
        self.engine.rules().load().clock().is_some()
    }

    /// The engine, to ask it something.
    pub fn engine(&mut self) -> &mut Engine<A> {
        &mut self.engine
    }

    /// What happened since the last call, in order.
    pub fn happened(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.out.happened)
    }

    /// An event comes.
    pub fn event(&mut self, at: Nanos, event: DeviceEvent<Event>) {
        self.advance(at);
        self.engine.event(at, event, &mut self.out);
    }

    /// Makes another mode the active one.
    ///
    /// # Errors
    /// If there is no such mode.
    pub fn set_mode(&mut self, mode: &str) -> Result<(), UnknownMode> {
        self.advance(self.out.now);
        self.engine.set_mode(mode, &mut self.out)
    }

    /// A device is unplugged.
    pub fn forget(&mut self, device: &DeviceId) {
        self.advance(self.out.now);
        self.engine.forget(device, &mut self.out);
        self.out.performer.gone(self.out.now, device);
        self.out.take_sent();
    }

    /// Has everything happen that is due by this time.
    pub fn advance(&mut self, to: Nanos) {
        // A clock that is followed for that long says nothing more.
        if self.engine.deadline().is_some_and(|deadline| to.saturating_sub(deadline) > FOLLOW_TIMEOUT) {
            self.engine.catch_up(to);
        }
        // What goes on for ever does so at its own times, a bounded number of them.
        for _ in 0..MAX_STEPS {
            match self.next_due() {
                Some(at) if at <= to => self.go_on(at),
                _ => break,
            }
        }
        self.out.now = to;
        self.engine.advance(to, &mut self.out);
    }

    /// Has everything happen that is still due. False where something goes on for longer than it is followed.
    pub fn finish(&mut self) -> bool {
        let until = self.out.now.saturating_add(FOLLOW_TIMEOUT);
        for _ in 0..MAX_STEPS {
            if !self.engine.is_unsettled() && self.out.performer.due().is_none() {
                return true;
            }
            match self.next_due() {
                None => return true,
                Some(at) if at > until => return false,
                Some(at) => self.go_on(at),
            }
        }
        false
    }

    /// Has only what was started go on, without the gestures that are under way.
    pub fn finish_actions(&mut self) {
        let until = self.out.now.saturating_add(FOLLOW_TIMEOUT);
        for _ in 0..MAX_STEPS {
            match self.out.performer.due() {
                Some(at) if at <= until => self.perform_due(at),
                _ => return,
            }
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        [self.engine.deadline(), self.out.performer.due()].into_iter().flatten().min()
    }

    fn go_on(&mut self, at: Nanos) {
        if self.engine.deadline().is_some_and(|deadline| deadline <= at) {
            self.out.now = at;
            self.engine.advance(at, &mut self.out);
        } else {
            self.perform_due(at);
        }
    }

    fn perform_due(&mut self, at: Nanos) {
        self.out.now = self.out.now.max(at);
        let requests = self.out.performer.advance(at);
        self.out.take_sent();
        for request in requests {
            match request {
                // Unknown modes are left alone, as a host does.
                Request::Mode(mode) => drop(self.engine.set_mode(&mode, &mut self.out)),
                Request::Event(event) => drop(self.engine.event(self.out.now, event, &mut self.out)),
            }
        }
    }
}

struct Out<'p, A> {
    performer: &'p mut dyn Performer<A>,
    now: Nanos,
    happened: Vec<Happened>,
    brought_about: VecDeque<DeviceEvent<Event>>,
}

impl<A> Out<'_, A> {
    fn take_sent(&mut self) {
        self.happened.extend(self.performer.sent().into_iter().map(Happened::Sent));
    }
}

impl<A> Sink<A> for Out<'_, A> {
    fn musical_time(&mut self, follower: &Follower, time: MusicalTime, change: ClockChange) {
        follower.follow(time, change);
        if !change.is_between_beats() {
            self.performer.follow(self.now);
            self.take_sent();
        }
    }

    fn fire(&mut self, firing: Firing<'_, A>) -> Option<Arc<str>> {
        let choices = firing.rule.choices.as_ref().map_or(0, |choices| choices.conditions.len());
        let decided = (0..choices).map(|number| firing.answers.holds(number)).collect();
        let (rule, name) = (firing.rule.id, rule_name(firing.rule));
        self.happened.push(Happened::Fired { at: firing.at, rule, name, decided });
        let mode = self.performer.fire(&firing, &mut self.brought_about);
        self.take_sent();
        mode
    }

    fn record(&mut self, record: Record) {
        self.happened.push(Happened::Asked(record));
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.brought_about.pop_front()
    }

    fn mode(&mut self, _: &Arc<str>, mode: ModeIx) {
        self.performer.mode(self.now, mode);
        self.take_sent();
    }
}
