//! Work on what is under way on one device: how gestures begin, are found and fail.

use conductor_event::{
    Cause, ChordEvent, Event, Fired, GestureEvent, HidEvent, MidiMessage, ModeIx, Nanos, Record, RuleId,
};

use super::attempts::{Attempt, Attempts, Goal, MAX_RULE_SETS, Presses, Waiting};
use crate::condition::EvalContext;
use crate::firing::{Firing, Sink};
use crate::handle::RuleSetGuard;
use crate::input_state::{fourteen_bits, parameter};
use crate::key::{Key, KeyChange};
use crate::mode::NextMode;
use crate::press_decisions::PressDecisions;
use crate::rule::Rule;
use crate::rule_set::RuleSet;
use crate::trigger::{Push, Readings, Trigger};

/// Rules that may have to wait for the gesture that follows from one press, at most.
pub(crate) const MAX_DEFERRED: usize = 16;
/// How long the coarse part of a control waits for the fine part. Between them is one message of three
/// bytes, which takes a millisecond on a MIDI cable.
const FINE_PART: Nanos = 3_000_000;

/// The rules that defer and matched an event, in order.
#[derive(Default)]
pub(crate) struct Deferred {
    pub(crate) rules: [(u32, u16); MAX_DEFERRED],
    pub(crate) count: usize,
    /// The priority of the rule that consumed the event for gestures, too.
    pub(crate) consumed: Option<i32>,
}

/// The event that gestures are looked for in.
pub(crate) struct Here<'a, A> {
    pub(crate) set: u8,
    pub(crate) rules: &'a RuleSet<A>,
    pub(crate) mode: ModeIx,
    /// The priority of the rule that consumed it.
    pub(crate) consumed: Option<i32>,
    pub(crate) event: &'a Event,
    /// The rules that fired for the event itself.
    pub(crate) fired: Fired,
}

/// Work on what is under way on one device.
pub(crate) struct Work<'a, A, S> {
    pub(crate) kept: &'a [Option<RuleSetGuard<A>>; MAX_RULE_SETS],
    pub(crate) attempts: &'a mut Attempts,
    pub(crate) untracked: &'a mut u64,
    /// When it is, and what holds then.
    pub(crate) context: EvalContext<'a>,
    pub(crate) decided: &'a mut PressDecisions,
    pub(crate) sink: &'a mut S,
    pub(crate) next_mode: Option<NextMode>,
}

/// A gesture that was found.
struct Found {
    set: u8,
    rank: u32,
    position: u16,
    mode: ModeIx,
    presses: Presses,
    event: Event,
}

impl<A, S: Sink<A>> Work<'_, A, S> {
    /// Looks for gestures in an event. `stood` is where the controller, stick or trigger of the event
    /// was before. Returns what an increment makes of the selected parameter, and on which channel.
    pub(crate) fn event(&mut self, here: &Here<'_, A>, deferred: &Deferred, stood: Option<f32>) -> Option<(u8, u16)> {
        let change = KeyChange::of(here.event);
        if !matches!(change, KeyChange::None) {
            self.keys_up(change);
        }
        if let KeyChange::Down(key, velocity) = change {
            self.key_down(here, key, velocity, deferred);
        }
        match *here.event {
            Event::Midi(MidiMessage::ControlChange { channel, controller, value }) => {
                self.control(here, channel, controller, value, stood)
            }
            Event::Hid(HidEvent::Stick { stick: number, value })
            | Event::Hid(HidEvent::Trigger { trigger: number, value }) => {
                let stood = stood.unwrap_or(0.0);
                self.way(here, number, value, stood);
                self.follow(here, number, value, stood);
                None
            }
            _ => None,
        }
    }

    /// A key goes down: gestures begin, or are completed.
    fn key_down(&mut self, here: &Here<'_, A>, key: Key, velocity: u8, deferred: &Deferred) {
        let serial = self.attempts.next_serial();
        // Whether a gesture was found in this press already, and whether it was consumed.
        let (mut found_one, mut consumed) = (false, false);
        let (device, context) = (self.attempts.device.clone(), self.context);
        for candidate in here.rules.gestures_at(here.mode, &device, here.event, &context).into_iter().flatten() {
            let rule = candidate.rule;
            if here.consumed.is_some_and(|priority| rule.priority <= priority) || consumed || found_one && rule.defer {
                continue;
            }
            let attempt = |goal, time: Nanos| Attempt {
                set: here.set,
                rank: rule.id.0,
                goal,
                key,
                serial,
                latest: serial,
                velocity,
                position: candidate.position,
                mode: here.mode,
                began: self.context.at,
                deadline: self.context.at.saturating_add(time),
                defers: rule.defer,
            };
            let found = match &rule.trigger {
                Trigger::LongPress { after, .. } => {
                    self.begin(attempt(Goal::LongPress, *after));
                    None
                }
                Trigger::DoubleTap { taps, within, .. } => {
                    self.begin(attempt(Goal::NextTap, *within));
                    self.last_tap(here, rule.id, key, *taps)
                }
                Trigger::Sequence { keys, within, .. } => {
                    self.begin(attempt(Goal::NextKey, *within));
                    self.whole_sequence(here, rule.id, keys)
                }
                Trigger::Chord { keys, within, .. } => {
                    self.begin(attempt(Goal::Chord, *within));
                    self.whole_chord(here, rule.id, keys)
                }
                _ => None,
            };
            if let Some(found) = found
                && self.complete(found, rule)
            {
                found_one = true;
                consumed = rule.consume;
            }
        }
        // Taps of this key and sequences that have not gone on with it can't go on with a later one, either.
        self.attempts.end(|attempt| {
            let is_asked = attempt.goal == Goal::NextKey || attempt.goal == Goal::NextTap && attempt.key == key;
            is_asked && attempt.latest != serial
        });

        for &(rank, position) in &deferred.rules[..deferred.count] {
            if !found_one {
                let presses = Presses::from_iter([serial]);
                let event = here.event.clone();
                self.wait(Waiting { set: here.set, rank, presses, event, position, mode: here.mode });
            }
        }
        self.settle();
    }

    /// Several taps of one key, if the one that began just now is the last. The others have as long as that.
    fn last_tap(&mut self, here: &Here<'_, A>, rule: RuleId, key: Key, taps: u8) -> Option<Found> {
        let of_rule = |attempt: &Attempt| {
            (attempt.goal, attempt.set, attempt.rank, attempt.key) == (Goal::NextTap, here.set, rule.0, key)
        };
        let taken = || self.attempts.attempts().iter().filter(|attempt| of_rule(attempt));
        let (first, last) = (*taken().next()?, *taken().next_back()?);
        if taken().count() < usize::from(taps) {
            self.attempts.go_on(&last, of_rule);
            return None;
        }
        let presses: Presses = taken().map(|attempt| attempt.serial).collect();
        self.attempts.end(of_rule);
        let gesture = GestureEvent::DoubleTap {
            press: key.press(last.velocity),
            first_velocity: first.velocity,
            interval_ms: millis(last.began - first.began),
        };
        let Attempt { set, rank, position, mode, .. } = first;
        Some(Found { set, rank, position, mode, presses, event: Event::Gesture(gesture) })
    }

    /// The sequence of a rule, if the press that began just now is its last. One that it is not the next of begins anew.
    fn whole_sequence(&mut self, here: &Here<'_, A>, rule: RuleId, keys: &[u16]) -> Option<Found> {
        let of_rule =
            |attempt: &Attempt| (attempt.goal, attempt.set, attempt.rank) == (Goal::NextKey, here.set, rule.0);
        let taken = || self.attempts.attempts().iter().filter(|attempt| of_rule(attempt));
        let last = *taken().next_back()?;
        if !taken().map(|attempt| attempt.key.number()).eq(keys.iter().copied().take(taken().count())) {
            let begins = last.key.number() == *keys.first()?;
            self.attempts.end(|attempt| of_rule(attempt) && (attempt.serial != last.serial || !begins));
            return None;
        }
        if taken().count() < keys.len() {
            self.attempts.go_on(&last, of_rule);
            return None;
        }
        let presses: Presses = taken().map(|attempt| attempt.serial).collect();
        let took = millis(last.began - taken().next()?.began);
        let chord = ChordEvent::new(taken().map(|attempt| attempt.key.press(attempt.velocity)), took);
        self.attempts.end(of_rule);
        let event = Event::Gesture(GestureEvent::Chord(chord));
        Some(Found { set: here.set, rank: rule.0, position: 0, mode: here.mode, presses, event })
    }

    /// The chord of a rule, if all its keys are down and none of them too long ago.
    fn whole_chord(&mut self, here: &Here<'_, A>, rule: RuleId, keys: &[u16]) -> Option<Found> {
        let of_rule =
            |attempt: &Attempt| attempt.set == here.set && attempt.rank == rule.0 && attempt.goal == Goal::Chord;
        let mut members = [None; ChordEvent::MAX_KEYS];
        for (member, &number) in members.iter_mut().zip(keys) {
            // The latest, where a note is down on several channels.
            *member = self.attempts.attempts().iter().rfind(|a| of_rule(a) && a.key.number() == number).copied();
            (*member)?;
        }
        let members = || members.iter().flatten();
        let first = members().map(|member| member.began).min().unwrap_or(self.context.at);
        let presses: Presses = members().map(|member| member.serial).collect();
        self.attempts.end(|attempt| of_rule(attempt) && presses.has(attempt.serial));
        let took = millis(self.context.at - first);
        let chord = ChordEvent::new(members().map(|member| member.key.press(member.velocity)), took);
        let event = Event::Gesture(GestureEvent::Chord(chord));
        Some(Found { set: here.set, rank: rule.0, position: 0, mode: here.mode, presses, event })
    }

    /// Keys come up: what needs them to be down ends.
    fn keys_up(&mut self, change: KeyChange) {
        let holds = |attempt: &Attempt| matches!(attempt.goal, Goal::LongPress | Goal::Chord);
        self.attempts.end(|attempt| holds(attempt) && change.lets_go(attempt.key));
        self.settle();
    }

    /// A controller moves. Returns what an increment makes of the selected parameter, on which channel.
    fn control(
        &mut self,
        here: &Here<'_, A>,
        channel: u8,
        controller: u8,
        value: u8,
        stood: Option<f32>,
    ) -> Option<(u8, u16)> {
        let mut put = None;
        let (device, context) = (self.attempts.device.clone(), self.context);
        for candidate in here.rules.gestures_at(here.mode, &device, here.event, &context).into_iter().flatten() {
            let rule = candidate.rule;
            if here.consumed.is_some_and(|priority| rule.priority <= priority) {
                continue;
            }
            let held = |number| context.held.controller(&device, channel, number).unwrap_or(0);
            let gesture = match &rule.trigger {
                Trigger::Turn { encoding, way, .. } => {
                    let steps = encoding.steps(value, stood.map(|stood| stood as u8));
                    way.is(steps).then_some(GestureEvent::Turn { channel, controller, steps })
                }
                Trigger::FineControl { fine_first, .. } => {
                    let (coarse, is_fine) = (controller % 32, controller >= 32);
                    let low = if is_fine || *fine_first { held(coarse + 32) } else { 0 };
                    let (key, value) = (Key::note(channel, coarse), fourteen_bits(held(coarse), low));
                    self.part(here, rule, key, is_fine != *fine_first, value, None, candidate.position)
                }
                Trigger::Parameter { registered, parameter: wanted, .. } => {
                    let Some(selected) = context.held.parameter(&device, channel) else { continue };
                    if selected != (*registered, *wanted) {
                        continue;
                    }
                    let now = fourteen_bits(held(parameter::COARSE), held(parameter::FINE));
                    let (is_last, value) = match controller {
                        parameter::COARSE => (false, fourteen_bits(value, 0)),
                        parameter::INCREMENT => (true, (now + 1).min(16_383)),
                        parameter::DECREMENT => (true, now.saturating_sub(1)),
                        _ => (true, now),
                    };
                    if matches!(controller, parameter::INCREMENT | parameter::DECREMENT) {
                        put = Some((channel, value));
                    }
                    let key = Key::note(channel, parameter::COARSE);
                    self.part(here, rule, key, is_last, value, Some(selected), 0)
                }
                _ => None,
            };
            let Some(gesture) = gesture else { continue };
            let (rank, position, mode) = (rule.id.0, candidate.position, here.mode);
            let presses = Presses::default();
            self.fire_found(&Found { set: here.set, rank, position, mode, presses, event: Event::Gesture(gesture) });
            if rule.consume {
                break;
            }
        }
        put
    }

    /// A part of a control comes for a rule: the last completes it, the coarse one waits for it.
    #[expect(clippy::too_many_arguments, reason = "what an attempt at it needs to know")]
    fn part(
        &mut self,
        here: &Here<'_, A>,
        rule: &Rule<A>,
        key: Key,
        is_last: bool,
        value: u16,
        parameter: Option<(bool, u16)>,
        position: u16,
    ) -> Option<GestureEvent> {
        let of_rule = |attempt: &Attempt| {
            matches!(attempt.goal, Goal::FinePart { .. })
                && (attempt.set, attempt.rank, attempt.key) == (here.set, rule.id.0, key)
        };
        self.attempts.end(of_rule);
        if is_last {
            return wanted(&rule.trigger, value).then(|| control_event(key, parameter, value));
        }
        self.begin(Attempt {
            set: here.set,
            rank: rule.id.0,
            goal: Goal::FinePart { value, parameter },
            key,
            serial: 0,
            latest: 0,
            velocity: 0,
            position,
            mode: here.mode,
            began: self.context.at,
            deadline: self.context.at.saturating_add(FINE_PART),
            defers: false,
        });
        None
    }

    /// A stick or trigger moves from where it stood.
    fn way(&mut self, here: &Here<'_, A>, number: u16, value: f32, stood: f32) {
        let key = Key::button(number);
        let kept = self.kept;
        self.attempts.end(|attempt| {
            attempt.goal == Goal::Return
                && attempt.key == key
                && rule_of(kept, attempt.set, attempt.rank)
                    .is_none_or(|rule| !is_there(&rule.trigger, value, Readings::MARGIN))
        });
        let (device, context) = (self.attempts.device.clone(), self.context);
        for candidate in here.rules.gestures_at(here.mode, &device, here.event, &context).into_iter().flatten() {
            let rule = candidate.rule;
            let is_out = self.attempts.find(here.set, rule.id.0, Goal::Return, key).is_some();
            if rule.trigger.reports_rest() || is_out || !is_there(&rule.trigger, value, 0.0) {
                continue;
            }
            self.begin_way(here, rule, Goal::Return, key, candidate.position);
            // It was there before the rule was.
            if is_there(&rule.trigger, stood, Readings::MARGIN) {
                continue;
            }
            if here.consumed.is_some_and(|priority| rule.priority <= priority) {
                continue;
            }
            let (rank, position, mode) = (rule.id.0, candidate.position, here.mode);
            let event = here.event.clone();
            self.fire_found(&Found { set: here.set, rank, position, mode, presses: Presses::default(), event });
            if rule.consume {
                break;
            }
        }
    }

    /// A stick or trigger moves from where it stood, for the rules that follow it. Those that took the reading
    /// wait for its return. Those that it leaves fire once more, with a reading of 0: rules of the active mode
    /// that could have taken where it stood, and every rule that took a reading before, in any mode.
    fn follow(&mut self, here: &Here<'_, A>, number: u16, value: f32, stood: f32) {
        let key = Key::button(number);
        let mut consumed = here.consumed;
        let (device, context) = (self.attempts.device.clone(), self.context);
        for candidate in here.rules.gestures_at(here.mode, &device, here.event, &context).into_iter().flatten() {
            let (rule, position) = (candidate.rule, candidate.position);
            if !rule.trigger.reports_rest() {
                continue;
            }
            let (set, rank) = (here.set, rule.id.0);
            let is_same = |attempt: &Attempt| {
                (attempt.set, attempt.rank, attempt.goal, attempt.key) == (set, rank, Goal::Rest, key)
            };
            let is_followed = self.attempts.find(set, rank, Goal::Rest, key).is_some();
            if takes(&rule.trigger, value) {
                let has_fired = here.fired.may_have(rule.id);
                if is_followed && has_fired && value == 0.0 {
                    // Without a dead zone, rest is a reading as any other.
                    self.attempts.end(is_same);
                } else if !is_followed && has_fired && value != 0.0 {
                    self.begin_way(here, rule, Goal::Rest, key, position);
                }
                continue;
            }
            let is_consumed = consumed.is_some_and(|priority| rule.priority <= priority);
            if is_followed || is_there(&rule.trigger, stood, 0.0) && !is_consumed {
                self.attempts.end(is_same);
                self.fire_rest(set, rank, key, position, here.mode);
                consumed = if rule.consume { Some(rule.priority) } else { consumed };
            }
        }
        self.rest(|attempt, trigger| attempt.key == key && (value == 0.0 || !takes(trigger, value)));
    }

    /// Fires the rules that follow the sticks and triggers that `is_back` picks once more, with 0.
    pub(crate) fn rest(&mut self, is_back: impl Fn(&Attempt, &Trigger) -> bool) {
        let kept = self.kept;
        let is_over = |attempt: &Attempt| {
            attempt.goal == Goal::Rest
                && rule_of(kept, attempt.set, attempt.rank).is_none_or(|rule| is_back(attempt, &rule.trigger))
        };
        while let Some(Attempt { set, rank, key, position, mode, .. }) = self.attempts.take(is_over) {
            self.fire_rest(set, rank, key, position, mode);
        }
    }

    fn fire_rest(&mut self, set: u8, rank: u32, key: Key, position: u16, mode: ModeIx) {
        let number = key.number();
        let at_rest = if HidEvent::STICKS.contains(&number) {
            HidEvent::Stick { stick: number, value: 0.0 }
        } else {
            HidEvent::Trigger { trigger: number, value: 0.0 }
        };
        self.fire_found(&Found { set, rank, position, mode, presses: Presses::default(), event: at_rest.into() });
    }

    /// A stick or trigger is out: its return is waited for.
    fn begin_way(&mut self, here: &Here<'_, A>, rule: &Rule<A>, goal: Goal, key: Key, position: u16) {
        self.begin(Attempt {
            set: here.set,
            rank: rule.id.0,
            goal,
            key,
            serial: 0,
            latest: 0,
            velocity: 0,
            position,
            mode: here.mode,
            began: self.context.at,
            deadline: Nanos::MAX,
            defers: false,
        });
    }

    /// Time is up for some attempts.
    pub(crate) fn expire(&mut self) {
        while let Some(attempt) = self.attempts.take_due(self.context.at) {
            let Attempt { set, rank, position, mode, key, .. } = attempt;
            let Some(rule) = rule_of(self.kept, set, rank) else { continue };
            match attempt.goal {
                Goal::LongPress => {
                    let held_ms = millis(attempt.deadline - attempt.began);
                    let gesture = GestureEvent::LongPress { press: key.press(attempt.velocity), held_ms };
                    let presses = [attempt.serial].into_iter().collect();
                    self.complete(Found { set, rank, position, mode, presses, event: Event::Gesture(gesture) }, rule);
                }
                Goal::FinePart { value, parameter } if wanted(&rule.trigger, value) => {
                    let event = Event::Gesture(control_event(key, parameter, value));
                    self.fire_found(&Found { set, rank, position, mode, presses: Presses::default(), event });
                }
                Goal::FinePart { .. } | Goal::NextTap | Goal::NextKey | Goal::Chord | Goal::Return | Goal::Rest => {}
            }
        }
        self.settle();
    }

    fn begin(&mut self, attempt: Attempt) {
        if !self.attempts.begin(attempt) {
            *self.untracked += 1;
        }
    }

    /// A gesture is complete: its rule fires, or waits if it defers. True if it fired. What waits is looked
    /// at when all that the event begins has begun: see `settle`.
    fn complete(&mut self, found: Found, rule: &Rule<A>) -> bool {
        if rule.defer {
            let Found { set, rank, position, mode, presses, event } = found;
            self.wait(Waiting { set, rank, presses, event, position, mode });
            return false;
        }
        self.fire_found(&found);
        self.attempts.used_up(&found.presses, found.rank, rule.consume);
        true
    }

    fn wait(&mut self, waiting: Waiting) {
        if let Err(waiting) = self.attempts.wait(waiting) {
            *self.untracked += 1;
            self.fire_waiting(waiting);
        }
    }

    /// Fires what has waited long enough.
    fn settle(&mut self) {
        while let Some(waiting) = self.attempts.take_settled() {
            self.fire_waiting(waiting);
        }
    }

    pub(crate) fn fire_waiting(&mut self, waiting: Waiting) {
        let Waiting { set, rank, presses, event, position, mode } = waiting;
        let found = Found { set, rank, position, mode, presses, event };
        self.fire_found(&found);
        if let Event::Gesture(_) = found.event
            && let Some(rule) = rule_of(self.kept, set, rank)
        {
            self.attempts.used_up(&found.presses, rank, rule.consume);
        }
    }

    fn fire_found(&mut self, found: &Found) {
        let Some(rules) = self.kept.get(usize::from(found.set)).and_then(Option::as_ref) else { return };
        let Some(rule) = rules.rules().get(found.rank as usize) else { return };
        let (at, device, generation) = (self.context.at, &self.attempts.device, rules.generation());
        let event = &found.event;
        let answers = self.decided.of_rule(rule, generation, device, event, &self.context);
        let next = self.sink.fire(Firing { at, device, event, rule, position: found.position, answers, generation });
        let next = next.map(|mode| NextMode::new(mode, rule, device, event));
        self.next_mode = next.or(self.next_mode.take());
        let trigger = &rule.trigger;
        let is_found = matches!(event, Event::Gesture(_)) || trigger.is_gesture() || trigger.reports_rest();
        let cause = if is_found { Cause::Gesture } else { Cause::Wait };
        let fired = Fired::from_iter([rule.id]);
        let (device, event) = (device.clone(), event.clone());
        self.sink.record(Record { at, device, event, cause, mode: found.mode, generation, fired });
    }
}

fn rule_of<A>(kept: &[Option<RuleSetGuard<A>>; MAX_RULE_SETS], set: u8, rank: u32) -> Option<&Rule<A>> {
    kept.get(usize::from(set))?.as_ref()?.rules().get(rank as usize)
}

/// Whether a rule for a control wants this value.
fn wanted(trigger: &Trigger, value: u16) -> bool {
    match trigger {
        Trigger::FineControl { value: range, .. } | Trigger::Parameter { value: range, .. } => range.contains(value),
        _ => false,
    }
}

fn control_event(key: Key, parameter: Option<(bool, u16)>, value: u16) -> GestureEvent {
    let channel = key.press(0).channel().unwrap_or(0);
    match parameter {
        None => GestureEvent::FineControl { channel, controller: key.number() as u8, value },
        Some((registered, parameter)) => GestureEvent::Parameter { channel, registered, parameter, value },
    }
}

/// Whether a stick or trigger is where the rule wants it, give or take a margin.
fn is_there(trigger: &Trigger, value: f32, margin: f32) -> bool {
    match *trigger {
        // A margin that reaches the middle would keep the rule from ever counting again.
        Trigger::GamepadStick { push, dead_zone, .. } => reaches(push, value, dead_zone, margin),
        Trigger::GamepadTrigger { threshold, .. } => reaches(Push::Positive, value, threshold, margin),
        _ => false,
    }
}

/// Whether a rule that follows a stick or trigger fires for this reading.
fn takes(trigger: &Trigger, value: f32) -> bool {
    match *trigger {
        Trigger::GamepadStick { push, dead_zone, .. } => push.reaches(value, dead_zone),
        Trigger::GamepadTrigger { threshold, .. } => value >= threshold,
        _ => false,
    }
}

fn reaches(push: Push, value: f32, least: f32, margin: f32) -> bool {
    let least = least - margin;
    if least > 0.0 { push.reaches(value, least) } else { push.reaches(value, f32::MIN_POSITIVE) }
}

fn millis(nanos: Nanos) -> u32 {
    u32::try_from(nanos / 1_000_000).unwrap_or(u32::MAX)
}
