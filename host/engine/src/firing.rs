//! Rules that fire, and the sink that takes them.

use std::sync::Arc;

use conductor_event::{Answers, DeviceEvent, DeviceId, Event, ModeIx, Nanos, Record};
use conductor_musical_time::{Change, Follower, MusicalTime};

use crate::rule::Rule;

/// A rule that fires.
#[derive(Debug)]
pub struct Firing<'a, A> {
    /// When: as the event came, or as the time for a gesture was up.
    pub at: Nanos,
    /// The device.
    pub device: &'a DeviceId,
    /// What the rule fires for: the event, or the gesture with everything that belongs to it.
    pub event: &'a Event,
    /// The rule.
    pub rule: &'a Rule<A>,
    /// How far into the trigger's number range the event is, from 0; 0 where there is no range.
    pub position: u16,
    /// What the conditions say by which the rule's action decides.
    pub answers: Answers,
    /// Which rule set the rule is in.
    pub generation: u64,
}

/// Where what the engine decides goes.
pub trait Sink<A> {
    /// A rule fires. The mode that is returned, if there is one in the rule set, will be the active one for
    /// the next event.
    fn fire(&mut self, firing: Firing<'_, A>) -> Option<Arc<str>>;

    /// All rules that an event or a gesture meets have been asked.
    fn record(&mut self, record: Record) {
        let _ = record;
    }

    /// What an action that was fired has brought about at once, such as the change of a variable, the first thing first.
    /// It is asked for until there is nothing more.
    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        None
    }

    /// The clock that rules go by has another time. Its follower is to get it, unless what happens only is rehearsed.
    fn musical_time(&mut self, follower: &Follower, time: MusicalTime, change: Change) {
        let _ = (follower, time, change);
    }

    /// Another mode is active: its name, and its place in the rule set that is in use.
    fn mode(&mut self, name: &Arc<str>, index: ModeIx) {
        let _ = (name, index);
    }
}
