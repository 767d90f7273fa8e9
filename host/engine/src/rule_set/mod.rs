//! The compiled rule set: immutable, and indexed so that an event only meets rules that may match it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use conductor_event::hash::StableHasher;
use conductor_event::{DeviceId, Event, ModeIx};

use crate::condition::{Condition, EvalContext};
use crate::encoder::Encoding;
use crate::musical::ClockSource;
use crate::rule::Rule;
use crate::trigger::Trigger;

mod index;

use index::{ASK_CONDITION, ASK_TRIGGER, CONSUME, Entry, Index, Lanes, NO_NUMBER, Probe};

/// One rule that an event met.
pub struct Match<'a, A> {
    /// The rule.
    pub rule: &'a Rule<A>,
    /// How far into the trigger's number range the event is, from 0; 0 where there is no range.
    pub position: u16,
}

impl<A> Clone for Match<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Match<'_, A> {}

impl<A> fmt::Debug for Match<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Match").field("rule", &self.rule.id).field("position", &self.position).finish()
    }
}

/// An immutable set of rules with its index. Made by [`compile`](crate::compile()).
///
/// Rules are asked in this order: higher priority first; among equals, rules for a device before rules
/// for every device; among those, the order of the file. Being for one mode or for all of them does not
/// change the order.
pub struct RuleSet<A> {
    modes: Vec<Arc<str>>,
    rules: Vec<Rule<A>>,
    fingerprint: u64,
    index: Index,
    /// Of the rules for gestures, by the events that they are begun or carried on by, and of those that follow
    /// a stick or trigger.
    gestures: Option<Box<Index>>,
    /// Whether any rule has a condition, or an action that decides by one.
    has_conditions: bool,
    /// Whether any rule asks what is held.
    remembers: bool,
    /// The mode below each; empty if there is none below any.
    below: Vec<ModeIx>,
    /// The clock that its rules go by.
    clock: Option<Arc<ClockSource>>,
}

impl<A> RuleSet<A> {
    /// Modes that an event falls through to, one after the other, at most.
    pub const MAX_BELOW: usize = 16;

    /// Indexes rules that are checked, sorted and numbered.
    pub(crate) fn build(modes: Vec<Arc<str>>, rules: Vec<Rule<A>>) -> Self {
        let fingerprint = fingerprint(&modes, &rules);
        let index = Index::of_events(modes.len(), &rules);
        let gestures = Index::with_memory(modes.len(), &rules).map(Box::new);
        let has_conditions = rules.iter().any(|rule| rule.condition.is_some() || rule.choices.is_some());
        let remembers = rules.iter().any(asks_what_is_held);
        Self { modes, rules, fingerprint, index, gestures, has_conditions, remembers, below: Vec::new(), clock: None }
    }

    /// Has the engine remember what is held even if no rule asks: somebody else does.
    #[must_use]
    pub fn remembering(mut self) -> Self {
        self.remembers = true;
        self
    }

    /// Has its rules go by a clock. Without one nothing waits for the grid, and there are no beats.
    #[must_use]
    pub fn with_clock(mut self, clock: ClockSource) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// The clock that its rules go by.
    pub fn clock(&self) -> Option<&Arc<ClockSource>> {
        self.clock.as_ref()
    }

    /// Has modes lie above others. What no rule of a mode itself fires for goes on to the rules of the mode below, unless it
    /// was consumed; the same for gestures, by what they begin with. `below` has the mode below each, [`ModeIx::NONE`]
    /// if there is none. After 16 modes an event goes no further.
    #[must_use]
    pub fn layered(mut self, below: Vec<ModeIx>) -> Self {
        if below.iter().any(|mode| *mode != ModeIx::NONE) {
            let mut hasher = StableHasher::default();
            (self.fingerprint, &below).hash(&mut hasher);
            self.fingerprint = hasher.finish();
            self.below = below;
        }
        self
    }

    /// A mode, and those below it, from the upper to the lower.
    pub fn layers(&self, mode: ModeIx) -> impl Iterator<Item = ModeIx> {
        let below = |mode: &ModeIx| self.below.get(usize::from(mode.0)).copied().filter(|mode| *mode != ModeIx::NONE);
        std::iter::successors(Some(mode), below).take(Self::MAX_BELOW + 1)
    }

    /// Whether there are rules for gestures, or that follow a stick or trigger.
    #[inline]
    pub fn has_gestures(&self) -> bool {
        self.gestures.is_some()
    }

    /// Whether there are rules with a condition, or with an action that decides by one.
    #[inline]
    pub fn has_conditions(&self) -> bool {
        self.has_conditions
    }

    /// Whether what is held has to be remembered.
    #[inline]
    pub fn remembers(&self) -> bool {
        self.remembers
    }

    /// Whether any rule for a gesture may care about the event.
    #[inline]
    pub(crate) fn has_gesture_for(&self, mode: ModeIx, device: &DeviceId, event: &Event) -> bool {
        let find = |index| self.search(index, mode, device, event, None).next().is_some();
        self.gestures.as_ref().is_some_and(|index| find(index))
    }

    /// The rules for gestures that the event may begin or carry on, and those that follow what moves, in order.
    pub(crate) fn gestures_at<'a>(
        &'a self,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        context: &'a EvalContext<'a>,
    ) -> Option<Matches<'a, A>> {
        self.gestures.as_ref().map(|index| self.search(index, mode, device, event, Some(context)))
    }

    /// The rules that `event` from `device` meets in `mode`, in order, up to and including the first that
    /// consumes it. Conditions are taken to hold.
    ///
    /// Takes no lock and allocates nothing. A mode that is not in the set (as [`ModeIx::NONE`]) meets the
    /// global rules.
    #[inline]
    pub fn matches<'a>(&'a self, mode: ModeIx, device: &'a DeviceId, event: &'a Event) -> Matches<'a, A> {
        self.search(&self.index, mode, device, event, None)
    }

    /// The same, but for rules whose condition does not hold at this moment.
    #[inline]
    pub fn matches_at<'a>(
        &'a self,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        context: &'a EvalContext<'a>,
    ) -> Matches<'a, A> {
        self.search(&self.index, mode, device, event, Some(context))
    }

    /// Inlined by force, as what it leads to: it is called for matches and for gestures, and to hand over
    /// what was just written takes as long as to find it.
    #[inline(always)]
    fn search<'a>(
        &'a self,
        index: &'a Index,
        mode: ModeIx,
        device: &'a DeviceId,
        event: &'a Event,
        context: Option<&'a EvalContext<'a>>,
    ) -> Matches<'a, A> {
        Matches {
            rules: &self.rules,
            below: &self.below,
            level: 0,
            is_covered: false,
            index,
            event,
            context,
            probe: Probe::new(event),
            mode,
            device,
            lanes: Lanes::default(),
            searched: false,
        }
    }

    /// The index of the mode with this name.
    pub fn mode_index(&self, name: &str) -> Option<ModeIx> {
        self.modes.iter().position(|mode| **mode == *name).map(|index| ModeIx(index as u16))
    }

    /// The names of the modes, in the order of the file.
    pub fn modes(&self) -> &[Arc<str>] {
        &self.modes
    }

    /// The rules, in the order in which they are asked: a rule's [`RuleId`](crate::RuleId) is its place
    /// here.
    pub fn rules(&self) -> &[Rule<A>] {
        &self.rules
    }

    /// A hash of the modes and of all rules but for their places and actions: the same for the same
    /// source in every run and on every platform.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// Two sets are equal when their modes and rules are; the index follows from them.
impl<A: PartialEq> PartialEq for RuleSet<A> {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint && self.modes == other.modes && self.rules == other.rules
    }
}

impl<A> fmt::Debug for RuleSet<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet")
            .field("modes", &self.modes)
            .field("rules", &self.rules.len())
            .field("fingerprint", &format_args!("{:016x}", self.fingerprint))
            .finish_non_exhaustive()
    }
}

fn asks_what_is_held<A>(rule: &Rule<A>) -> bool {
    let mut asks = matches!(
        rule.trigger,
        Trigger::FineControl { .. }
            | Trigger::Parameter { .. }
            | Trigger::Turn { encoding: Encoding::Difference | Encoding::Wrapping, .. }
            | Trigger::GamepadStick { .. }
            | Trigger::GamepadTrigger { .. }
    );
    for condition in rule.conditions() {
        condition.each(&mut |condition| {
            asks |= matches!(condition, Condition::NoteHeld { .. } | Condition::CcValueInRange { .. });
        });
    }
    asks
}

fn fingerprint<A>(modes: &[Arc<str>], rules: &[Rule<A>]) -> u64 {
    let mut hasher = StableHasher::default();
    modes.hash(&mut hasher);
    for rule in rules {
        rule.name.hash(&mut hasher);
        rule.device.hash(&mut hasher);
        rule.mode.hash(&mut hasher);
        rule.trigger.hash(&mut hasher);
        if let Some(condition) = &rule.condition {
            condition.hash(&mut hasher);
        }
        if let Some(choices) = &rule.choices {
            choices.hash(&mut hasher);
        }
        if rule.defer {
            rule.defer.hash(&mut hasher);
        }
        if let Some(grid) = rule.quantize {
            grid.hash(&mut hasher);
        }
        rule.priority.hash(&mut hasher);
        rule.consume.hash(&mut hasher);
    }
    hasher.finish()
}

/// The rules an event meets, in order. See [`RuleSet::matches`].
pub struct Matches<'a, A> {
    rules: &'a [Rule<A>],
    /// The mode below each.
    below: &'a [ModeIx],
    /// How many modes the event has fallen through.
    level: usize,
    /// Whether a rule of the mode has been found, so that nothing goes on to the one below.
    is_covered: bool,
    index: &'a Index,
    event: &'a Event,
    /// `None` if conditions are taken to hold.
    context: Option<&'a EvalContext<'a>>,
    probe: Probe,
    mode: ModeIx,
    device: &'a DeviceId,
    lanes: Lanes,
    /// Whether the lanes have been looked for. That waits for the first `next`, when the iterator stands
    /// where it is used: to move what was written a moment ago takes as long as to find it.
    searched: bool,
}

impl<'a, A> Iterator for Matches<'a, A> {
    type Item = Match<'a, A>;

    #[inline(always)]
    fn next(&mut self) -> Option<Match<'a, A>> {
        if !self.searched {
            self.searched = true;
            let ids = self.index.buckets_of(self.mode, self.device);
            self.index.find(&ids, &self.probe, self.event, &mut self.lanes);
        }
        loop {
            let Some(entry) = self.lanes.next(&self.index.entries) else {
                if self.below.is_empty() || !self.falls_through() {
                    return None;
                }
                continue;
            };
            if !(entry.min <= self.probe.value && self.probe.value <= entry.max) {
                continue;
            }
            let rule = &self.rules[entry.rank as usize];
            if entry.flags & (ASK_TRIGGER | ASK_CONDITION) != 0 && !self.agrees(entry, rule) {
                continue;
            }
            self.is_covered |= rule.mode.is_some();
            if entry.flags & CONSUME != 0 {
                self.is_covered = true;
                self.lanes.clear();
            }
            let position = match entry.base {
                NO_NUMBER => 0,
                base => self.probe.number - base,
            };
            return Some(Match { rule, position });
        }
    }
}

impl<A> Matches<'_, A> {
    /// Looks for the rules of the mode below. False if there is none, or nothing is left for it.
    #[inline(never)]
    fn falls_through(&mut self) -> bool {
        let Some(&below) = self.below.get(usize::from(self.mode.0)) else { return false };
        if self.is_covered || self.level == RuleSet::<A>::MAX_BELOW || below == ModeIx::NONE {
            return false;
        }
        self.level += 1;
        self.mode = below;
        let ids = self.index.buckets_of(below, self.device).of_the_mode();
        self.index.find(&ids, &self.probe, self.event, &mut self.lanes);
        true
    }

    /// Asks the rule what its entry does not say.
    #[inline(never)]
    fn agrees(&self, entry: Entry, rule: &Rule<A>) -> bool {
        (entry.flags & ASK_TRIGGER == 0 || rule.trigger.matches(self.event).is_some())
            && match (&rule.condition, self.context) {
                (Some(condition), Some(context)) => condition.holds(context),
                _ => true,
            }
    }
}

impl<A> fmt::Debug for Matches<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matches").field("event", self.event).finish_non_exhaustive()
    }
}
