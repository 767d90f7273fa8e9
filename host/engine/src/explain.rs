//! Explaining: for an event, which rules were looked at, which of them fire, and why the others do not.
//!
//! This asks every rule in turn and is for people who wonder, not for the event path. It changes nothing.

use std::fmt;

use conductor_event::{DeviceId, Event, ModeIx, Nanos, RuleId};

use crate::choice::Choices;
use crate::condition::EvalContext;
use crate::engine::Engine;
use crate::rule::Rule;
use crate::rule_set::Match;
use crate::trigger::{Edge, NumberRange, Push, Trigger, ValueRange};

/// What a rule makes of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It fires.
    Fires,
    /// The event begins the gesture that it waits for, or carries it on.
    Begins,
    /// It would fire, and waits until no other gesture can follow from the press.
    Waits,
    /// It is for another channel.
    Channel,
    /// It is for other values: of velocity, pressure, position, argument.
    Value,
    /// It is for another channel and other values.
    ChannelAndValue,
    /// It is for another device.
    Device,
    /// It is for another mode.
    Mode,
    /// Its condition does not hold.
    Condition,
    /// A rule before it consumes the event.
    Consumed(RuleId),
}

impl Verdict {
    /// Whether the rule does something with the event.
    pub fn is_awake(&self) -> bool {
        matches!(self, Self::Fires | Self::Begins | Self::Waits)
    }
}

/// What one rule makes of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The rule.
    pub rule: RuleId,
    /// What it makes of it.
    pub verdict: Verdict,
    /// More about it, as text: which mode, which device, which condition, which branch the
    /// action takes. Empty if there is no more.
    pub detail: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.detail;
        let decided = |f: &mut fmt::Formatter<'_>| if detail.is_empty() { Ok(()) } else { write!(f, "; {detail}") };
        match self.verdict {
            Verdict::Fires => f.write_str("fires").and_then(|()| decided(f)),
            Verdict::Begins => f.write_str("a gesture begins, or goes on"),
            Verdict::Waits => f.write_str("waits until no other gesture can come of it").and_then(|()| decided(f)),
            Verdict::Channel => f.write_str("is for another channel"),
            Verdict::Value => f.write_str("is for other values"),
            Verdict::ChannelAndValue => f.write_str("is for another channel, and other values"),
            Verdict::Device => write!(f, "is for the device {detail}"),
            Verdict::Mode => write!(f, "is for the mode {detail}"),
            Verdict::Condition => write!(f, "asks that {detail}"),
            Verdict::Consumed(_) => write!(f, "{detail} has consumed it"),
        }
    }
}

impl<A> Engine<A> {
    /// What each rule for such an event makes of it, in the order of rules, if it came now. Rules for other
    /// keys, controllers, addresses or kinds of event are left out.
    pub fn explain(&self, at: Nanos, device: &DeviceId, event: &Event) -> Vec<Explanation> {
        let rules = self.rules().load();
        let active = self.mode().and_then(|name| rules.mode_index(name));
        let mode = active.unwrap_or(if rules.modes().is_empty() { ModeIx::NONE } else { ModeIx(0) });
        let mode_name = |mode: ModeIx| rules.modes().get(usize::from(mode.0)).map(|name| &**name);
        let mut held = self.held().clone();
        held.take(device, event);
        let environment = self.environment().load();
        let context = EvalContext { at, mode: mode_name(mode), environment: &environment, held: &held };

        // Rules of a mode below are asked where no rule above keeps the event from them.
        let is_reached = |rule: &Rule<A>, of: ModeIx| {
            let gestures = rules.gestures_at(mode, device, event, &context).into_iter().flatten();
            let is_same = |found: Match<'_, A>| found.rule.id == rule.id;
            let mut asked = rules.matches_at(mode, device, event, &context).chain(gestures);
            rules.layers(mode).any(|layer| layer == of)
                && (rule.condition.as_ref().is_some_and(|condition| !condition.holds(&context)) || asked.any(is_same))
        };

        let mut consumer: Option<&Rule<A>> = None;
        let mut explanations = Vec::new();
        // What comes at once comes first: the rules for the event itself, then those for gestures.
        let (gestures, at_once): (Vec<_>, Vec<_>) = rules.rules().iter().partition(|rule| rule.trigger.is_gesture());
        for rule in at_once.into_iter().chain(gestures) {
            let Some(mismatch) = compare(&rule.trigger, event) else { continue };
            let is_gesture = rule.trigger.is_gesture();
            let consumer_of_it =
                consumer.filter(|consumer| !is_gesture || !consumer.defer && rule.priority <= consumer.priority);
            let besides = match mismatch {
                Some(Verdict::Channel) => ", and for another channel",
                Some(Verdict::ChannelAndValue) => ", and for another channel and other values",
                Some(_) => ", and for other values",
                None => "",
            };
            let (verdict, detail) = if let Some(other) = rule.device.as_ref().filter(|other| *other != device) {
                (Verdict::Device, format!("{:?}{besides}", other.as_str()))
            } else if let Some(other) = rule.mode.filter(|other| *other != mode && !is_reached(rule, *other)) {
                (Verdict::Mode, format!("{:?}{besides}", mode_name(other).unwrap_or_default()))
            } else if let Some(verdict) = mismatch {
                (verdict, String::new())
            } else if let Some(condition) = rule.condition.as_ref().filter(|condition| !condition.holds(&context)) {
                (Verdict::Condition, condition.to_string())
            } else if let Some(consumer) = consumer_of_it {
                (Verdict::Consumed(consumer.id), crate::rule::rule_name(consumer))
            } else if is_gesture {
                (Verdict::Begins, String::new())
            } else {
                if rule.consume {
                    consumer = Some(rule);
                }
                let verdict = if rule.defer && rules.has_gestures() { Verdict::Waits } else { Verdict::Fires };
                (verdict, rule.choices.as_ref().map(|choices| decisions(choices, &context)).unwrap_or_default())
            };
            explanations.push(Explanation { rule: rule.id, verdict, detail });
        }
        explanations
    }
}

/// Which branches an action takes: `if the mode is "Play": then; if note 36 is down: else`.
fn decisions(choices: &Choices, context: &EvalContext<'_>) -> String {
    let answers = choices.answers(context);
    let decided = choices
        .conditions
        .iter()
        .enumerate()
        .map(|(number, condition)| format!("if {condition}: {}", answers.branch(number)));
    decided.collect::<Vec<_>>().join("; ")
}

/// Whether a trigger is for such an event at all, and if so, what keeps it from matching.
fn compare(trigger: &Trigger, event: &Event) -> Option<Option<Verdict>> {
    let matches = |any_channel: bool, any_value: bool| {
        stand_ins(trigger).iter().any(|trigger| {
            let mut trigger = trigger.clone();
            widen(&mut trigger, any_channel, any_value);
            trigger.matches(event).is_some()
        })
    };
    if matches(false, false) {
        Some(None)
    } else if matches(true, false) {
        Some(Some(Verdict::Channel))
    } else if matches(false, true) {
        Some(Some(Verdict::Value))
    } else {
        matches(true, true).then_some(Some(Verdict::ChannelAndValue))
    }
}

/// Triggers for the events that a gesture is begun or carried on by; for what is no gesture, itself.
pub fn stand_ins(trigger: &Trigger) -> Vec<Trigger> {
    let press = |keys: NumberRange, velocity, channel| match keys.first {
        0..=127 => Trigger::Note { notes: keys, velocity, edge: Edge::Press, channel },
        _ => Trigger::Button { buttons: keys, edge: Edge::Press },
    };
    let control = |controllers, channel| Trigger::ControlChange { controllers, value: ValueRange::SEVEN_BIT, channel };
    match *trigger {
        Trigger::LongPress { keys, velocity, channel, .. } | Trigger::DoubleTap { keys, velocity, channel, .. } => {
            vec![press(keys, velocity, channel)]
        }
        Trigger::Chord { ref keys, channel, .. } | Trigger::Sequence { ref keys, channel, .. } => {
            keys.iter().map(|&key| press(NumberRange::one(key), ValueRange::SEVEN_BIT, channel)).collect()
        }
        Trigger::Turn { controllers, channel, .. } => vec![control(controllers, channel)],
        Trigger::FineControl { controllers: NumberRange { first, last }, channel, .. } => vec![
            control(NumberRange { first, last }, channel),
            control(NumberRange { first: first + 32, last: last + 32 }, channel),
        ],
        Trigger::Parameter { channel, .. } => {
            let data = crate::input_state::parameter::DATA;
            data.iter().map(|&controller| control(NumberRange::one(controller.into()), channel)).collect()
        }
        Trigger::GamepadStick { sticks, push, dead_zone, .. } => {
            vec![Trigger::GamepadStick { sticks, push, dead_zone, readings: crate::trigger::Readings::Each }]
        }
        Trigger::GamepadTrigger { triggers, threshold, .. } => {
            vec![Trigger::GamepadTrigger { triggers, threshold, readings: crate::trigger::Readings::Each }]
        }
        _ => vec![trigger.clone()],
    }
}

/// Takes out what a trigger asks of the channel, or of the value.
fn widen(trigger: &mut Trigger, any_channel: bool, any_value: bool) {
    const ANY: ValueRange = ValueRange { min: 0, max: u16::MAX };
    if any_channel
        && let Trigger::Note { channel, .. }
        | Trigger::ControlChange { channel, .. }
        | Trigger::Aftertouch { channel, .. }
        | Trigger::PolyAftertouch { channel, .. }
        | Trigger::PitchBend { channel, .. }
        | Trigger::ProgramChange { channel, .. } = trigger
    {
        *channel = None;
    }
    if any_value {
        match trigger {
            Trigger::Note { velocity: value, .. }
            | Trigger::ControlChange { value, .. }
            | Trigger::Aftertouch { value, .. }
            | Trigger::PolyAftertouch { value, .. }
            | Trigger::PitchBend { value, .. }
            | Trigger::ArtNet { value, .. } => *value = ANY,
            Trigger::Osc { arg, .. } | Trigger::OscPattern { arg, .. } => *arg = None,
            Trigger::GamepadStick { push, dead_zone, .. } => (*push, *dead_zone) = (Push::Any, 0.0),
            Trigger::GamepadTrigger { threshold, .. } => *threshold = 0.0,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::compile::compile;
    use crate::condition::Condition;
    use crate::firing::{Firing, Sink};
    use crate::handle::RuleSetHandle;
    use crate::rule::{RuleSource, RuleSpec, Scope};
    use conductor_event::{DeviceEvent, MidiMessage};

    struct Fired(Vec<RuleId>);

    impl Sink<()> for Fired {
        fn fire(&mut self, firing: Firing<'_, ()>) -> Option<Arc<str>> {
            self.0.push(firing.rule.id);
            None
        }
    }

    #[test]
    fn every_reason_is_given() {
        let note = |first, last, min, channel| Trigger::Note {
            notes: NumberRange { first, last },
            velocity: ValueRange { min, max: 127 },
            edge: Edge::Press,
            channel,
        };
        let long =
            Trigger::LongPress { keys: NumberRange::one(36), velocity: ValueRange::SEVEN_BIT, channel: None, after: 1 };
        let rule = |name: &str, trigger| RuleSpec { name: Some(name.into()), ..RuleSpec::new(trigger, ()) };
        let here = || note(36, 36, 0, None);
        let down = Condition::NoteHeld { notes: NumberRange::one(36), channel: None, device: None };
        let choices = Choices { conditions: vec![down, Condition::ModeIs("Live".into())], holds: false };
        let rules = vec![
            RuleSpec { priority: 9, ..rule("strong", long.clone()) },
            rule("another key", note(37, 40, 0, None)),
            rule("channel", note(36, 36, 0, Some(3))),
            rule("hard", note(36, 36, 120, None)),
            rule("both", note(36, 36, 120, Some(3))),
            RuleSpec { scope: Scope::Mode("Live".into()), ..rule("mode", here()) },
            RuleSpec { condition: Some(Condition::Never), ..rule("condition", here()) },
            rule("fires", here()),
            RuleSpec { defer: true, ..rule("waits", here()) },
            RuleSpec { consume: true, ..rule("consumer", here()) },
            RuleSpec { priority: -1, device: Some("keys".into()), ..rule("device", here()) },
            RuleSpec { priority: -1, ..rule("too late", here()) },
            rule("weak", long),
            RuleSpec { choices, priority: 8, ..rule("decides", here()) },
        ];
        let set = compile(RuleSource { modes: vec!["Play".into(), "Live".into()], rules }).unwrap();
        let handle = Arc::new(RuleSetHandle::new(set));
        let mut engine = Engine::new(Arc::clone(&handle), Arc::default());
        let (pads, event) =
            (DeviceId::new("pads"), Event::from(MidiMessage::NoteOn { channel: 0, note: 36, velocity: 64 }));
        let told: Vec<String> = engine
            .explain(0, &pads, &event)
            .iter()
            .map(|told| format!("{} {told}", handle.load().rules()[told.rule.0 as usize].name.as_deref().unwrap()))
            .collect();
        assert_eq!(
            told,
            [
                r#"decides fires; if note 36 is down: then; if the mode is "Live": else"#,
                "channel is for another channel",
                "hard is for other values",
                "both is for another channel, and other values",
                r#"mode is for the mode "Live""#,
                "condition asks that never",
                "fires fires",
                "waits waits until no other gesture can come of it",
                "consumer fires",
                r#"device is for the device "keys""#,
                "too late consumer has consumed it",
                "strong a gesture begins, or goes on",
                "weak consumer has consumed it",
            ]
        );
        let awake: Vec<RuleId> = engine
            .explain(0, &pads, &event)
            .into_iter()
            .filter(|told| told.verdict == Verdict::Fires)
            .map(|told| told.rule)
            .collect();
        let mut fired = Fired(Vec::new());
        engine.event(0, DeviceEvent { device: pads, event }, &mut fired);
        assert_eq!(fired.0, awake, "and so it is");
    }
}
