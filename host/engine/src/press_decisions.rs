//! Press decisions: what an action's choices answered when a key went down, kept until it comes up.

use conductor_event::hash::key_of;
use conductor_event::{Answers, DeviceId, Event, HidEvent, MidiMessage, RuleId};

use crate::choice::Choices;
use crate::condition::EvalContext;
use crate::rule::Rule;
use crate::trigger::{Edge, Trigger};

/// How the presses that have not ended yet were decided.
#[derive(Debug)]
pub(crate) struct PressDecisions {
    presses: Vec<Press>,
}

/// Presses that are remembered. Of more at once the oldest is decided again when it ends.
const MAX_PRESSES: usize = 256;

#[derive(Debug)]
struct Press {
    rule: RuleId,
    generation: u64,
    device: DeviceId,
    control: Control,
    answers: Answers,
}

/// Something that is pressed and let go of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Control {
    Note {
        channel: u8,
        note: u8,
    },
    Button(u16),
    /// A continuous control: a hash of what identifies it on its device.
    Moving(u64),
}

impl PressDecisions {
    pub(crate) fn new() -> Self {
        Self { presses: Vec::with_capacity(MAX_PRESSES) }
    }

    /// What the conditions say by which a rule's action decides, for an event. Allocates nothing.
    #[inline]
    pub(crate) fn of_rule<A>(
        &mut self,
        rule: &Rule<A>,
        generation: u64,
        device: &DeviceId,
        event: &Event,
        context: &EvalContext<'_>,
    ) -> Answers {
        match &rule.choices {
            None => Answers::default(),
            Some(choices) => self.answers((rule.id, generation), (&rule.trigger, choices), device, event, context),
        }
    }

    fn answers(
        &mut self,
        (rule, generation): (RuleId, u64),
        (trigger, choices): (&Trigger, &Choices),
        device: &DeviceId,
        event: &Event,
        context: &EvalContext<'_>,
    ) -> Answers {
        let Some((control, is_down)) = control(trigger, choices.holds, event) else { return choices.answers(context) };
        let found = self.presses.iter().position(|press| {
            (press.rule, press.generation, press.control) == (rule, generation, control) && press.device == *device
        });
        match (found, is_down) {
            (Some(place), false) => self.presses.swap_remove(place).answers,
            (Some(place), true) if matches!(control, Control::Moving(_)) => self.presses[place].answers,
            (Some(place), true) => {
                // Its end was lost.
                self.presses[place].answers = choices.answers(context);
                self.presses[place].answers
            }
            (None, false) => choices.answers(context),
            (None, true) => {
                let answers = choices.answers(context);
                if self.presses.len() == MAX_PRESSES {
                    self.presses.remove(0);
                }
                self.presses.push(Press { rule, generation, device: device.clone(), control, answers });
                answers
            }
        }
    }

    /// A device is gone: its presses have no end.
    pub(crate) fn forget(&mut self, device: &DeviceId) {
        self.presses.retain(|press| press.device != *device);
    }
}

/// The controller that the sustain pedal moves (MIDI 1.0).
const SUSTAIN: u8 = 64;

/// The control that an event presses (`true`) or releases, if the rule matches both.
fn control(trigger: &Trigger, holds: bool, event: &Event) -> Option<(Control, bool)> {
    let matches_both = match trigger {
        Trigger::Note { edge, .. } | Trigger::Button { edge, .. } => *edge == Edge::Both,
        trigger => !trigger.is_gesture(),
    };
    if !matches_both {
        return None;
    }
    let (kind, number) = match *event {
        Event::Midi(MidiMessage::NoteOn { channel, note, .. }) => return Some((Control::Note { channel, note }, true)),
        Event::Midi(MidiMessage::NoteOff { channel, note, .. }) => {
            return Some((Control::Note { channel, note }, false));
        }
        Event::Hid(HidEvent::Button { button, pressed }) => return Some((Control::Button(button), pressed)),
        // A pedal is forwarded to where it must be let up again.
        Event::Midi(MidiMessage::ControlChange { channel, controller, .. }) if holds || controller == SUSTAIN => {
            (u64::from(channel), u64::from(controller))
        }
        _ if !holds => return None,
        Event::Osc(ref message) => (0, key_of(message.address().as_bytes())),
        Event::ArtNet(ref change) => (u64::from(change.universe), u64::from(change.channel)),
        Event::Midi(_) | Event::Hid(_) => (event.channel().map_or(16, u64::from), u64::from(event.number())),
        Event::Gesture(_) | Event::Variable(_) | Event::Musical(_) => return None,
    };
    let mut key = [0; 17];
    key[0] = event.kind() as u8;
    key[1..9].copy_from_slice(&kind.to_le_bytes());
    key[9..].copy_from_slice(&number.to_le_bytes());
    Some((Control::Moving(key_of(&key)), event.is_pressed()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Condition, Environment};
    use crate::input_state::InputState;
    use crate::trigger::{NumberRange, ValueRange};
    use conductor_event::{OscArg, OscMessage};

    /// Asks a rule's only choice, whether the mode is "Live", for one event after the other.
    struct Asker {
        decided: PressDecisions,
        trigger: Trigger,
        choices: Choices,
    }

    impl Asker {
        fn new(trigger: Trigger, holds: bool) -> Self {
            let choices = Choices { conditions: vec![Condition::ModeIs("Live".into())], holds };
            Self { decided: PressDecisions::new(), trigger, choices }
        }

        fn by(&mut self, mode: &str, event: impl Into<Event>) -> bool {
            let (environment, held) = (Environment::unknown(), InputState::new());
            let context = EvalContext { at: 0, mode: Some(mode), environment: &environment, held: &held };
            let (device, event) = (DeviceId::new("pads"), event.into());
            let of_rule = (&self.trigger, &self.choices);
            self.decided.answers((RuleId(0), 0), of_rule, &device, &event, &context).holds(0)
        }
    }

    fn notes(edge: Edge) -> Trigger {
        Trigger::Note { notes: NumberRange::ALL, velocity: ValueRange::SEVEN_BIT, edge, channel: None }
    }

    fn on(note: u8) -> MidiMessage {
        MidiMessage::NoteOn { channel: 0, note, velocity: 100 }
    }

    fn off(note: u8) -> MidiMessage {
        MidiMessage::NoteOff { channel: 0, note, velocity: 0 }
    }

    fn cc(controller: u8, value: u8) -> MidiMessage {
        MidiMessage::ControlChange { channel: 0, controller, value }
    }

    #[test]
    fn a_release_is_decided_as_its_press_was() {
        let mut asked = Asker::new(notes(Edge::Both), false);
        assert!(asked.by("Live", on(36)));
        assert!(!asked.by("Play", on(37)), "another note is decided for itself");
        assert!(asked.by("Play", off(36)));
        assert!(!asked.by("Live", off(37)));
        assert!(asked.by("Live", off(36)), "a release without a press is decided now");
        assert!(asked.by("Live", on(36)));
        assert!(!asked.by("Play", on(36)), "its end was lost");
        assert!(!asked.by("Live", off(36)));
    }

    #[test]
    fn a_release_that_is_heard_alone_is_decided_now() {
        let mut asked = Asker::new(notes(Edge::Release), false);
        assert!(!asked.by("Play", off(36)));
        assert!(asked.by("Live", off(36)));
        assert!(asked.decided.presses.len() <= 1);
        let mut asked = Asker::new(notes(Edge::Press), false);
        (0..128).for_each(|note| assert!(asked.by("Live", on(note))));
        assert!(asked.decided.presses.is_empty(), "nothing is kept for a release that will not come");
    }

    #[test]
    fn what_moves_is_decided_anew_unless_it_holds_something() {
        let any = Trigger::ControlChange { controllers: NumberRange::ALL, value: ValueRange::SEVEN_BIT, channel: None };
        let mut forwarded = Asker::new(any.clone(), false);
        assert!(forwarded.by("Live", cc(7, 127)));
        assert!(!forwarded.by("Play", cc(7, 126)));
        assert!(forwarded.by("Live", cc(SUSTAIN, 127)));
        assert!(forwarded.by("Play", cc(SUSTAIN, 0)), "a pedal comes up where it went down");

        let mut held = Asker::new(any, true);
        assert!(held.by("Live", cc(7, 64)));
        assert!(held.by("Play", cc(7, 100)), "still pressed");
        assert!(!held.by("Play", cc(8, 100)), "another one");
        assert!(held.by("Play", cc(7, 63)));
        assert!(!held.by("Play", cc(7, 64)));
    }

    #[test]
    fn osc_is_told_apart_by_its_address() {
        let address = "/a".to_owned();
        let mut held = Asker::new(Trigger::Osc { address, arg: None }, true);
        let osc = |address: &str, value| OscMessage::new(address, vec![OscArg::Float(value)]);
        assert!(held.by("Live", Event::Osc(osc("/a", 1.0).into())));
        assert!(!held.by("Play", Event::Osc(osc("/b", 1.0).into())));
        assert!(held.by("Play", Event::Osc(osc("/a", 0.0).into())));
    }

    #[test]
    fn more_presses_than_are_remembered_are_decided_again() {
        let mut asked = Asker::new(notes(Edge::Both), false);
        for channel in 0..3 {
            for note in 0..128 {
                asked.by("Live", MidiMessage::NoteOn { channel, note, velocity: 1 });
            }
        }
        assert_eq!(asked.decided.presses.len(), MAX_PRESSES);
        let off = |channel| MidiMessage::NoteOff { channel, note: 5, velocity: 0 };
        assert!(!asked.by("Play", off(0)), "forgotten");
        assert!(asked.by("Play", off(2)));
        asked.decided.forget(&DeviceId::new("pads"));
        assert!(asked.decided.presses.is_empty());
    }
}
