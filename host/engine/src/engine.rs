//! The engine whole: events go in, rules that fire come out.
//!
//! One thread owns it. It has no clock: time comes in with each event, and between events its owner
//! waits for [`deadline`](Engine::deadline) and then says so with [`advance`](Engine::advance). What comes
//! out does not depend on how often that is called, or whether an event was first.
//!
//! For an event, in this order: what is due by then; the rules for the event itself, in the order of
//! rules; its [`Record`]; the gestures that it completes; the rules that waited and now need not. A mode
//! that one of them asks for is active from the next event on. What a message of the clock brings about comes after it; see
//! [`musical`](crate::musical).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use conductor_event::hash::KeyState;
use conductor_event::{
    Answers, Cause, DeviceEvent, DeviceId, Event, Fired, MidiMessage, ModeIx, Nanos, Record, RuleId,
};
use conductor_musical_time::Change;

use crate::condition::{EnvironmentHandle, EvalContext};
use crate::firing::{Firing, Sink};
use crate::gesture::{Attempts, Deferred, Goal, Here, MAX_DEFERRED, MAX_RULE_SETS, Work};
use crate::handle::{RuleSetGuard, RuleSetHandle};
use crate::input_state::{InputState, parameter};
use crate::key::{Key, KeyChange};
use crate::mode::{ActiveMode, NextMode, UnknownMode};
use crate::musical::{Grid, Musical};
use crate::press_decisions::PressDecisions;
use crate::rule::Rule;
use crate::rule_set::RuleSet;

/// Events that one event brings about, one through the other; further ones are left out.
const MAX_CHAIN: usize = 16;

/// Devices for which gestures are found.
const MAX_DEVICES: usize = 1024;

/// Presses whose releases are kept from rules, at most.
const MAX_SWALLOWED: usize = 64;

/// A press whose release is kept from the rules after the one that consumed it.
#[derive(Debug)]
struct Swallowed {
    device: DeviceId,
    key: Key,
    by: RuleId,
    generation: u64,
}

/// The engine. See the [module](self).
pub struct Engine<A> {
    rules: Arc<RuleSetHandle<A>>,
    environment: Arc<EnvironmentHandle>,
    mode: ActiveMode,
    held: InputState,
    decided: PressDecisions,
    swallowed: Vec<Swallowed>,
    kept: [Option<RuleSetGuard<A>>; MAX_RULE_SETS],
    gestures: Gestures,
    /// The clock; `None` if there is none, and before its time is kept.
    musical: Option<Box<Musical>>,
    /// The latest time that has been said.
    now: Nanos,
}

/// What is under way on all devices.
#[derive(Default)]
struct Gestures {
    devices: Vec<Attempts>,
    places: HashMap<DeviceId, usize, KeyState>,
    /// What each device is due next and has under way, as it was taken account of last.
    accounts: Vec<Account>,
    /// How much is under way in each rule set, on all devices.
    by_set: [u32; MAX_RULE_SETS],
    /// The earliest deadline; [`Nanos::MAX`] if nothing is due ever.
    deadline: Nanos,
    /// Whether anything is under way, or waits.
    is_busy: bool,
    untracked: u64,
}

#[derive(Clone, Copy)]
struct Account {
    deadline: Nanos,
    by_set: [u16; MAX_RULE_SETS],
}

impl<A> Engine<A> {
    /// An engine for the rules in `rules`, with what `environment` says.
    pub fn new(rules: Arc<RuleSetHandle<A>>, environment: Arc<EnvironmentHandle>) -> Self {
        Self {
            rules,
            environment,
            mode: ActiveMode::new(),
            held: InputState::new(),
            decided: PressDecisions::new(),
            swallowed: Vec::with_capacity(MAX_SWALLOWED),
            kept: [const { None }; MAX_RULE_SETS],
            gestures: Gestures { deadline: Nanos::MAX, ..Gestures::default() },
            musical: None,
            now: 0,
        }
    }

    /// When [`advance`](Self::advance) has something to do, if no event comes before; `None` if never.
    #[inline]
    pub fn deadline(&self) -> Option<Nanos> {
        let clock = self.musical.as_ref().map_or(Nanos::MAX, |musical| musical.clock.deadline());
        let deadline = self.gestures.deadline.min(clock);
        (deadline != Nanos::MAX).then_some(deadline)
    }

    /// Whether [`advance`](Self::advance) has something to do that events have begun: a gesture, or an action that waits. The
    /// clock goes on without end.
    pub fn is_unsettled(&self) -> bool {
        let waits = self.musical.as_ref().is_some_and(|musical| !musical.held.is_empty());
        self.gestures.deadline != Nanos::MAX || waits
    }

    /// Goes by the clock of the rules in use from `now` on; to be called again when they are replaced. A clock that is the
    /// same goes on, and what waited for it is dropped. Before the first call there are no beats, and nothing waits.
    pub fn keep_time(&mut self, now: Nanos) {
        self.now = self.now.max(now);
        let before = self.musical.take();
        self.musical = self.rules.load().clock().map(|source| match before {
            Some(mut musical) if *musical.source == **source => {
                musical.source = Arc::clone(source);
                musical.held.clear();
                musical
            }
            _ => Box::new(Musical::new(source, self.now)),
        });
    }

    /// Leaves out what a clock by tempo missed if it is far behind `now`, as after the computer was asleep.
    pub fn catch_up(&mut self, now: Nanos) {
        if let Some(musical) = &mut self.musical {
            musical.clock.catch_up(now);
        }
    }

    /// How many gestures could not begin, or rules not wait, because there was no room. See
    /// [`gesture`](crate::gesture).
    pub fn untracked(&self) -> u64 {
        self.gestures.untracked
    }

    /// Whether no gesture is under way and no rule waits.
    pub fn is_idle(&self) -> bool {
        !self.gestures.is_busy
    }

    /// The rules that are asked.
    pub fn rules(&self) -> &Arc<RuleSetHandle<A>> {
        &self.rules
    }

    /// What the system said last.
    pub fn environment(&self) -> &Arc<EnvironmentHandle> {
        &self.environment
    }

    /// What is held now.
    pub fn held(&self) -> &InputState {
        &self.held
    }

    /// The name of the active mode; none before the first event, and for rules without modes.
    pub fn mode(&self) -> Option<&str> {
        self.mode.name()
    }

    /// The place of the active mode in the rule set that is in use.
    pub fn mode_index(&mut self) -> ModeIx {
        let rules = self.rules.load();
        self.mode.index(&rules, rules.generation())
    }

    /// The mode that was chosen last: the active one, or the one that comes after those that are active for a while.
    pub fn chosen_mode(&self) -> Option<&Arc<str>> {
        self.mode.chosen()
    }

    /// Makes another mode active. What was active for a while is so no longer.
    ///
    /// # Errors
    /// If there is no such mode; then nothing changes.
    pub fn set_mode(&mut self, name: &str, sink: &mut impl Sink<A>) -> Result<(), UnknownMode> {
        self.on_grid(sink, |engine, sink| {
            let rules = engine.rules.load();
            engine.mode.set(&rules, rules.generation(), name)?;
            tell_mode(&engine.mode, &rules, sink);
            Ok(())
        })
    }

    /// A device has gone: what was under way on it ends, and nothing of it is held. Its sticks and triggers have
    /// come to rest for the rules that follow them.
    pub fn forget(&mut self, device: &DeviceId, sink: &mut impl Sink<A>) {
        self.on_grid(sink, |engine, grid| {
            engine.forget_on(device, grid);
            let Some(musical) = &mut grid.musical else { return };
            musical.held.retain(|held| held.device != *device);
            if musical.source.device.as_ref() == Some(device)
                && let Some(change) = musical.clock.lose()
            {
                engine.musical_change(change, grid);
                engine.consequences(grid);
            }
        });
    }

    fn forget_on(&mut self, device: &DeviceId, sink: &mut impl Sink<A>) {
        if let Some(&place) = self.gestures.places.get(device) {
            let Self { mode: active, environment, held, decided, kept, gestures, now, .. } = self;
            let environment = environment.load();
            let context = EvalContext { at: *now, mode: active.name(), environment: &environment, held };
            let attempts = &mut gestures.devices[place];
            let untracked = &mut gestures.untracked;
            let mut work = Work { kept, attempts, untracked, context, decided, sink, next_mode: None };
            work.rest(|_, _| true);
            let next_mode = work.next_mode.take();
            gestures.devices[place].clear();
            gestures.account(place);
            if let Some(next) = next_mode {
                change_mode(active, &self.rules.load(), next, sink);
            }
            self.let_go();
        }
        if self.mode.forget(device) {
            self.changed_mode(sink);
        }
        self.held.forget(device);
        self.decided.forget(device);
        self.swallowed.retain(|press| press.device != *device);
    }

    /// It is `now`: does what is due.
    pub fn advance(&mut self, now: Nanos, sink: &mut impl Sink<A>) {
        self.on_grid(sink, |engine, grid| engine.advance_on(now, grid));
    }

    #[inline]
    fn advance_on<S: Sink<A>>(&mut self, now: Nanos, grid: &mut Grid<'_, S>) {
        let now = self.now.max(now);
        while self.gestures.deadline.min(grid.deadline()) <= now {
            let (gesture, clock) = (self.gestures.deadline, grid.deadline());
            self.now = now.min(clock).max(self.now);
            if gesture <= self.now {
                self.do_what_is_due(grid);
            } else if let Some(change) = grid.musical.as_mut().and_then(|musical| musical.clock.advance(clock)) {
                self.musical_change(change, grid);
            }
            self.consequences(grid);
        }
        self.now = now;
    }

    /// Has something done with what waits for the grid before the sink.
    #[inline]
    fn on_grid<S: Sink<A>, R>(&mut self, sink: &mut S, work: impl FnOnce(&mut Self, &mut Grid<'_, S>) -> R) -> R {
        let mut grid = Grid { sink, musical: self.musical.take() };
        let done = work(self, &mut grid);
        self.musical = grid.musical;
        done
    }

    /// Does what follows from a change of the clock: its event, and then what waits for this place of the grid.
    fn musical_change<S: Sink<A>>(&mut self, change: Change, grid: &mut Grid<'_, S>) {
        let Some(musical) = &mut grid.musical else { return };
        let time = musical.clock.time();
        let event = musical.clock.event(change);
        if !time.plays {
            // One from before may still be on.
            musical.held.retain(|held| matches!(KeyChange::of(&held.event), KeyChange::Up(_) | KeyChange::AllUp(_)));
        }
        grid.sink.musical_time(&musical.source.follower, time, change);
        if let Some(event) = event {
            let device = musical.device.clone();
            self.meet_rules(DeviceEvent { device, event: Event::Musical(event) }, grid);
        }
        let pulse = match change {
            Change::Pulse(pulse) => pulse,
            // The ends that have waited go now: 0 is on every grid.
            Change::Stopped | Change::Lost => 0,
            _ => return,
        };
        while let Some(held) = grid.musical.as_mut().and_then(|musical| musical.take_held(pulse)) {
            let rules = self.rules.load();
            let (device, event, generation) = (&held.device, &held.event, held.generation);
            let Some(rule) = rules.rules().get(held.rule.0 as usize).filter(|_| rules.generation() == generation)
            else {
                continue;
            };
            let (at, position, answers) = (self.now, held.position, held.answers);
            if let Some(mode) = grid.sink.fire(Firing { at, device, event, rule, position, answers, generation }) {
                change_mode(&mut self.mode, &rules, NextMode::new(mode, rule, device, event), grid);
            }
        }
    }

    /// An event has come. Returns how many rules fired for the event itself. What it brought about is done, too.
    pub fn event(&mut self, at: Nanos, event: DeviceEvent<Event>, sink: &mut impl Sink<A>) -> u32 {
        self.on_grid(sink, |engine, grid| {
            engine.advance_on(at, grid);
            let total = engine.one_event(event, grid);
            engine.consequences(grid);
            total
        })
    }

    /// Does what actions brought about at once. A chain of such events ends after [`MAX_CHAIN`], so that two that bring
    /// each other about do not go on for ever.
    fn consequences<S: Sink<A>>(&mut self, sink: &mut Grid<'_, S>) {
        for link in 0..=MAX_CHAIN {
            let Some(event) = sink.brought_about() else { return };
            if link < MAX_CHAIN {
                self.one_event(event, sink);
            }
        }
        while sink.brought_about().is_some() {}
    }

    fn one_event<S: Sink<A>>(&mut self, event: DeviceEvent<Event>, grid: &mut Grid<'_, S>) -> u32 {
        let change = grid.musical.as_mut().and_then(|musical| musical.hear(self.now, &event));
        let total = self.meet_rules(event, grid);
        if let Some(change) = change {
            self.musical_change(change, grid);
        }
        total
    }

    fn meet_rules(&mut self, event: DeviceEvent<Event>, sink: &mut impl Sink<A>) -> u32 {
        if !self.mode.has_layers() {
            return self.ask_rules(event, sink);
        }
        let DeviceEvent { device, event } = event;
        let event = normalized(event);
        let change = KeyChange::of(&event);
        if self.mode.before(&device, change) {
            self.changed_mode(sink);
        }
        let total = self.ask_rules(DeviceEvent { device, event }, sink);
        if change.pressed().is_some() && self.mode.has_layers() && self.mode.after_press() {
            self.changed_mode(sink);
        }
        total
    }

    /// The rule from which on none is asked for an event: the one that swallowed the press of a key that comes up now.
    #[inline]
    fn asks_before(&mut self, device: &DeviceId, event: &Event, generation: u64) -> RuleId {
        let mut first = RuleId(u32::MAX);
        if !self.swallowed.is_empty() {
            let change = KeyChange::of(event);
            self.swallowed.retain(|press| {
                let is_over = press.device == *device && change.lets_go(press.key);
                // After all notes off, or a press without a release before, there is nothing to keep.
                if is_over && matches!(change, KeyChange::Up(_)) && press.generation == generation {
                    first = first.min(press.by);
                }
                !is_over
            });
        }
        first
    }

    /// Another mode is active without having been asked for.
    fn changed_mode(&mut self, sink: &mut impl Sink<A>) {
        let rules = self.rules.load();
        self.mode.index(&rules, rules.generation());
        tell_mode(&self.mode, &rules, sink);
    }

    fn ask_rules(&mut self, event: DeviceEvent<Event>, sink: &mut impl Sink<A>) -> u32 {
        let DeviceEvent { device, event } = event;
        let event = normalized(event);
        let rules = self.rules.load();
        let generation = rules.generation();
        let mode = self.mode.index(&rules, generation);
        let asks_before = self.asks_before(&device, &event, generation);
        if (rules.has_gestures() || self.gestures.is_busy)
            && let Some(place) = self.gestures.place(&device)
            && (!self.gestures.devices[place].is_idle() || rules.has_gesture_for(mode, &device, &event))
        {
            return self.event_with_gestures(rules, place, DeviceEvent { device, event }, asks_before, sink);
        }
        if rules.remembers() {
            self.held.take(&device, &event);
        }
        let mut asked = EventContext {
            at: self.now,
            device: &device,
            event: &event,
            generation,
            asks_before,
            next_mode: None,
            swallowed: &mut self.swallowed,
        };
        let fired = match rules.has_conditions() {
            false => asked.ask(rules.matches(mode, &device, &event), |_| Answers::default(), sink, None),
            true => {
                let environment = self.environment.load();
                let context =
                    EvalContext { at: self.now, mode: self.mode.name(), environment: &environment, held: &self.held };
                let decided = &mut self.decided;
                let answers = |rule: &Rule<A>| decided.of_rule(rule, generation, &device, &event, &context);
                asked.ask(rules.matches_at(mode, &device, &event, &context), answers, sink, None)
            }
        };
        let (total, next_mode) = (fired.total(), asked.next_mode);
        // What an event has changed comes after it on the record, too.
        sink.record(Record { at: self.now, device, event, cause: Cause::Input, mode, generation, fired });
        if let Some(next) = next_mode {
            change_mode(&mut self.mode, &rules, next, sink);
        }
        total
    }

    #[inline(never)]
    fn event_with_gestures(
        &mut self,
        rules: RuleSetGuard<A>,
        place: usize,
        event: DeviceEvent<Event>,
        asks_before: RuleId,
        sink: &mut impl Sink<A>,
    ) -> u32 {
        let set = self.keep(rules, sink);
        let DeviceEvent { device, event } = event;
        let Self { environment, mode: active, held, decided, swallowed, kept, gestures, now, .. } = self;
        let Some(rules) = &kept[set] else { return 0 };
        let generation = rules.generation();
        let mode = active.index(rules, generation);
        let stood = if rules.remembers() { held.take(&device, &event) } else { None };
        let environment = environment.load();

        let mut asked = EventContext {
            at: *now,
            device: &device,
            event: &event,
            generation,
            asks_before,
            next_mode: None,
            swallowed,
        };
        let mut deferred = Deferred::default();
        let name = active.name();
        let context = EvalContext { at: *now, mode: name, environment: &environment, held };
        let answers = |rule: &Rule<A>| decided.of_rule(rule, generation, &device, &event, &context);
        let fired = asked.ask(rules.matches_at(mode, &device, &event, &context), answers, sink, Some(&mut deferred));
        let next_mode = asked.next_mode;
        let total = fired.total();
        sink.record(Record {
            at: *now,
            device: device.clone(),
            event: event.clone(),
            cause: Cause::Input,
            mode,
            generation,
            fired,
        });

        let mut work = Work {
            kept,
            attempts: &mut gestures.devices[place],
            untracked: &mut gestures.untracked,
            context,
            decided,
            sink,
            next_mode,
        };
        let here = Here { set: set as u8, rules, mode, consumed: deferred.consumed, event: &event, fired };
        let put = work.event(&here, &deferred, stood);
        let next_mode = work.next_mode.take();
        if let Some((channel, value)) = put {
            held.put_controller(&device, channel, parameter::COARSE, (value >> 7) as u8);
            held.put_controller(&device, channel, parameter::FINE, (value & 127) as u8);
        }
        if let Some(next) = next_mode {
            change_mode(active, rules, next, sink);
        }
        gestures.account(place);
        self.let_go();
        total
    }

    /// Does what is due by now, in the order of time, and at the same time device by device.
    #[inline(never)]
    fn do_what_is_due(&mut self, sink: &mut impl Sink<A>) {
        while self.gestures.deadline <= self.now {
            let Self { mode: active, environment, held, decided, kept, gestures, .. } = self;
            let at = gestures.deadline;
            let environment = environment.load();
            let context = EvalContext { at, mode: active.name(), environment: &environment, held };
            let mut next_mode = None;
            for place in 0..gestures.devices.len() {
                if gestures.accounts[place].deadline > at {
                    continue;
                }
                let attempts = &mut gestures.devices[place];
                let untracked = &mut gestures.untracked;
                let mut work = Work { kept, attempts, untracked, context, decided, sink, next_mode };
                work.expire();
                next_mode = work.next_mode;
                gestures.account(place);
            }
            if let Some(next) = next_mode {
                let rules = self.rules.load();
                change_mode(active, &rules, next, sink);
            }
            self.let_go();
        }
    }

    /// The place among the kept of the rule set that is in use now.
    fn keep(&mut self, rules: RuleSetGuard<A>, sink: &mut impl Sink<A>) -> usize {
        let same =
            |kept: &Option<RuleSetGuard<A>>| kept.as_ref().is_some_and(|kept| kept.generation() == rules.generation());
        if let Some(place) = self.kept.iter().position(same) {
            return place;
        }
        // A stick that is out goes on being out, but not for rules that are no more. The new ones know where it
        // stood.
        if self.gestures.is_busy {
            for place in 0..self.gestures.devices.len() {
                self.gestures.devices[place].end(|attempt| matches!(attempt.goal, Goal::Return | Goal::Rest));
                self.gestures.account(place);
            }
            self.let_go();
        }
        let place = match self.kept.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                let oldest =
                    (0..MAX_RULE_SETS).min_by_key(|&place| self.kept[place].as_ref().map(RuleSetGuard::generation));
                let place = oldest.unwrap_or(0);
                self.end_set(place, sink);
                place
            }
        };
        self.kept[place] = Some(rules);
        place
    }

    /// Ends what is under way in a rule set; what waits in it fires.
    #[cold]
    fn end_set(&mut self, set: usize, sink: &mut impl Sink<A>) {
        let Self { mode, environment, held, decided, kept, gestures, now, .. } = self;
        let environment = environment.load();
        let context = EvalContext { at: *now, mode: mode.name(), environment: &environment, held };
        for place in 0..gestures.devices.len() {
            let attempts = &mut gestures.devices[place];
            attempts.end(|attempt| usize::from(attempt.set) == set);
            let untracked = &mut gestures.untracked;
            let mut work = Work { kept, attempts, untracked, context, decided, sink, next_mode: None };
            while let Some(waiting) = work.attempts.take_waiting(set as u8) {
                work.fire_waiting(waiting);
            }
            gestures.account(place);
        }
    }

    /// Lets go of rule sets in which nothing is under way.
    fn let_go(&mut self) {
        for (kept, under_way) in self.kept.iter_mut().zip(self.gestures.by_set) {
            if under_way == 0 && kept.is_some() {
                *kept = None;
            }
        }
    }
}

impl<A> fmt::Debug for Engine<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("rules", &self.rules)
            .field("mode", &self.mode)
            .field("now", &self.now)
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

impl Gestures {
    /// Where what is under way on a device is; made with its first event. `None` if there are too many.
    fn place(&mut self, device: &DeviceId) -> Option<usize> {
        if let Some(&place) = self.places.get(device) {
            return Some(place);
        }
        let place = self.devices.len();
        if place == MAX_DEVICES {
            self.untracked += 1;
            return None;
        }
        self.devices.push(Attempts::new(device.clone()));
        self.accounts.push(Account { deadline: Nanos::MAX, by_set: [0; MAX_RULE_SETS] });
        self.places.insert(device.clone(), place);
        Some(place)
    }

    /// Takes account of what has changed on a device.
    fn account(&mut self, place: usize) {
        let account = &mut self.accounts[place];
        let by_set = self.devices[place].by_set();
        for ((total, now), before) in self.by_set.iter_mut().zip(by_set).zip(account.by_set) {
            *total = *total + u32::from(now) - u32::from(before);
        }
        let deadline = self.devices[place].deadline();
        let is_earliest = account.deadline == self.deadline;
        *account = Account { deadline, by_set };
        if is_earliest || deadline < self.deadline {
            self.deadline = self.accounts.iter().map(|account| account.deadline).min().unwrap_or(Nanos::MAX);
        }
        self.is_busy = self.by_set != [0; MAX_RULE_SETS];
    }
}

fn change_mode<A>(active: &mut ActiveMode, rules: &RuleSetGuard<A>, next: NextMode, sink: &mut impl Sink<A>) {
    if active.change(rules, rules.generation(), next) {
        tell_mode(active, rules, sink);
    }
}

fn tell_mode<A>(active: &ActiveMode, rules: &RuleSet<A>, sink: &mut impl Sink<A>) {
    let named = |(_, name): &(usize, &Arc<str>)| Some(&***name) == active.name();
    if let Some((index, name)) = rules.modes().iter().enumerate().find(named) {
        sink.mode(name, ModeIx(index as u16));
    }
}

/// A press with velocity 0 is a release, in events from any source.
fn normalized(event: Event) -> Event {
    match event {
        Event::Midi(MidiMessage::NoteOn { channel, note, velocity: 0 }) => {
            MidiMessage::NoteOff { channel, note, velocity: 0 }.into()
        }
        event => event,
    }
}

/// One event, and what its rules ask for.
struct EventContext<'a> {
    at: Nanos,
    device: &'a DeviceId,
    event: &'a Event,
    generation: u64,
    /// Only rules before this one are asked.
    asks_before: RuleId,
    next_mode: Option<NextMode>,
    swallowed: &'a mut Vec<Swallowed>,
}

impl EventContext<'_> {
    /// Fires the rules that match, with the answers for each. With room for them, rules that defer are put
    /// there instead.
    #[inline]
    fn ask<'r, A: 'r>(
        &mut self,
        matches: impl Iterator<Item = crate::rule_set::Match<'r, A>>,
        mut answers: impl FnMut(&Rule<A>) -> Answers,
        sink: &mut impl Sink<A>,
        mut deferred: Option<&mut Deferred>,
    ) -> Fired {
        let mut fired = Fired::new();
        for found in matches {
            let rule = found.rule;
            if rule.id >= self.asks_before {
                continue;
            }
            if let Some(deferred) = &mut deferred {
                if rule.defer && deferred.count < MAX_DEFERRED {
                    deferred.rules[deferred.count] = (rule.id.0, found.position);
                    deferred.count += 1;
                    continue;
                }
                if rule.consume {
                    deferred.consumed = Some(rule.priority);
                }
            }
            fired.push(rule.id);
            let (at, device, event, generation) = (self.at, self.device, self.event, self.generation);
            if rule.swallows_release
                && let Some(key) = KeyChange::of(event).pressed()
            {
                self.swallowed.truncate(MAX_SWALLOWED - 1);
                self.swallowed.push(Swallowed { device: device.clone(), key, by: rule.id, generation });
            }
            let answers = answers(rule);
            let next = sink.fire(Firing { at, device, event, rule, position: found.position, answers, generation });
            let next = next.map(|mode| NextMode::new(mode, rule, device, event));
            self.next_mode = next.or(self.next_mode.take());
        }
        fired
    }
}
