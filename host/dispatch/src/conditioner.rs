//! Signal conditioning of values for one output, with the state that it needs: smoothing, and soft takeover.

use std::collections::HashMap;

use conductor_event::{MidiMessage, ModeIx, RuleId};
use conductor_midi_transform::MidiTransform;

use super::Envelope;
use super::ledger::{Owner, Release};
use super::smoothing::{OneEuro, Pickup, Smoothing};

/// How an event is passed on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Forwarding {
    /// What is changed.
    pub transform: MidiTransform,
    /// How strongly continuous values are smoothed before; `None` if they are not.
    pub smoothing: Option<Smoothing>,
    /// Whether continuous values are held back until they reach what they move.
    pub pickup: bool,
}

/// Sources and targets that are remembered; beyond that all are forgotten, and begin anew.
const MAX_TRACKED: usize = 4096;
/// How near is near enough to pick up, in the way's parts: one and a half steps of 7 bits.
const PICKUP_TOLERANCE: f32 = 1.5 / 127.0;

/// What a continuous message moves: its status with the channel, and which controller or note.
type Parameter = (u8, u8);

/// A controller of a device, as one rule sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SourceKey {
    device: u64,
    rule: RuleId,
    generation: u64,
    parameter: Parameter,
}

#[derive(Debug)]
struct Source {
    owner: Owner,
    mode: Option<ModeIx>,
    filter: OneEuro,
    pickup: Pickup,
}

/// What is remembered for one output.
#[derive(Debug, Default)]
pub struct Conditioner {
    sources: HashMap<SourceKey, Source>,
    /// The value of each parameter, and which source moved it there; `None` if it was something else.
    stands: HashMap<Parameter, (f32, Option<SourceKey>)>,
}

impl Conditioner {
    /// The message that is to be sent for an event; `None` if it is held back.
    pub fn forward(
        &mut self,
        envelope: &Envelope,
        forwarding: &Forwarding,
        message: &MidiMessage,
    ) -> Option<MidiMessage> {
        let Some((parameter, value)) = continuous(message) else { return Some(forwarding.transform.apply(message)) };
        if forwarding.smoothing.is_none() && !forwarding.pickup {
            return Some(forwarding.transform.apply(message));
        }
        let key = SourceKey {
            device: envelope.device.key(),
            rule: envelope.rule,
            generation: envelope.generation,
            parameter,
        };
        if self.sources.len() >= MAX_TRACKED && !self.sources.contains_key(&key) {
            self.sources.clear();
        }
        let source = self.sources.entry(key).or_insert_with(|| Source {
            owner: Owner::from(envelope),
            mode: envelope.mode,
            filter: OneEuro::default(),
            pickup: Pickup::default(),
        });
        let message = match &forwarding.smoothing {
            Some(smoothing) => {
                forwarding.transform.apply(&with(message, source.filter.smooth(smoothing, envelope.at, value)))
            }
            None => forwarding.transform.apply(message),
        };
        if forwarding.pickup
            && let Some((target, value)) = continuous(&message)
        {
            let stands = self.stands.get(&target);
            if stands.is_some_and(|(_, by)| *by != Some(key)) {
                // Somebody else moved it meanwhile. Where this source was last is still worth knowing.
                source.pickup.dispossess();
            }
            if !source.pickup.passes(value, stands.map(|(at, _)| *at), PICKUP_TOLERANCE) {
                return None;
            }
            self.stands.insert(target, (value, Some(key)));
        }
        Some(message)
    }

    /// Remembers where a message that something else sent puts what it moves.
    pub fn sent(&mut self, message: &MidiMessage) {
        let Some((target, value)) = continuous(message) else { return };
        if self.stands.len() >= MAX_TRACKED && !self.stands.contains_key(&target) {
            self.stands.clear();
        }
        let stands = self.stands.entry(target).or_insert((value, None));
        // What a source has just forwarded stands there already.
        if (stands.0 - value).abs() > f32::EPSILON {
            *stands = (value, None);
        }
    }

    /// Forgets sources whose rules are gone, and takes from those that fall asleep what they have picked up:
    /// they may be moved for something else meanwhile.
    pub fn release(&mut self, release: &Release) {
        match release {
            Release::Mode(active) => {
                let asleep = |source: &&mut Source| source.mode.is_some_and(|mode| mode != *active);
                self.sources.values_mut().filter(asleep).for_each(|source| source.pickup.lose());
            }
            gone => self.sources.retain(|_, source| !gone.takes(&source.owner)),
        }
    }
}

/// What a message moves, and how far, from 0 to 1; `None` if it moves nothing continuous.
fn continuous(message: &MidiMessage) -> Option<(Parameter, f32)> {
    let seven = |value: u8| f32::from(value) / 127.0;
    Some(match *message {
        MidiMessage::PolyAftertouch { channel, note, pressure } => ((0xA0 | channel, note), seven(pressure)),
        MidiMessage::ControlChange { channel, controller, value } => ((0xB0 | channel, controller), seven(value)),
        MidiMessage::Aftertouch { channel, pressure } => ((0xD0 | channel, 0), seven(pressure)),
        MidiMessage::PitchBend { channel, value } => ((0xE0 | channel, 0), f32::from(value) / 16_383.0),
        _ => return None,
    })
}

/// The same message with another value, from 0 to 1.
fn with(message: &MidiMessage, value: f32) -> MidiMessage {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped to what fits")]
    let steps = |most: f32| (value * most).round().clamp(0.0, most) as u16;
    let seven = u8::try_from(steps(127.0)).unwrap_or(127);
    match *message {
        MidiMessage::PolyAftertouch { channel, note, .. } => {
            MidiMessage::PolyAftertouch { channel, note, pressure: seven }
        }
        MidiMessage::ControlChange { channel, controller, .. } => {
            MidiMessage::ControlChange { channel, controller, value: seven }
        }
        MidiMessage::Aftertouch { channel, .. } => MidiMessage::Aftertouch { channel, pressure: seven },
        MidiMessage::PitchBend { channel, .. } => MidiMessage::PitchBend { channel, value: steps(16_383.0) },
        ref other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use conductor_event::{Answers, DeviceId};

    use super::*;

    fn cc(value: u8) -> MidiMessage {
        MidiMessage::ControlChange { channel: 0, controller: 7, value }
    }

    fn envelope(device: &str, mode: Option<u16>) -> Envelope {
        Envelope {
            at: 0,
            device: DeviceId::new(device),
            event: cc(0).into(),
            position: 0,
            pattern: None,
            answers: Answers::default(),
            rule: RuleId(mode.unwrap_or(9).into()),
            generation: 0,
            mode: mode.map(ModeIx),
            tries: None,
        }
    }

    const PICKUP: fn() -> Forwarding = || Forwarding { pickup: true, ..Forwarding::default() };

    // ENG-9: what another fader moved is picked up, not pulled away.
    #[test]
    fn a_fader_takes_over_where_the_other_has_left_it() {
        let mut conditioner = Conditioner::default();
        let (left, right) = (envelope("left", None), envelope("right", None));
        let mut move_to = |who: &Envelope, value| conditioner.forward(who, &PICKUP(), &cc(value)).is_some();
        assert!(move_to(&left, 100), "nothing is known yet");
        assert!(move_to(&left, 20));
        assert!(!move_to(&right, 90));
        assert!(!move_to(&right, 30));
        assert!(move_to(&right, 10), "it passed 20");
        assert!(!move_to(&left, 50), "now the right one has it");
        assert!(move_to(&left, 10));
    }

    #[test]
    fn a_mode_that_was_left_has_to_pick_up_again() {
        let mut conditioner = Conditioner::default();
        let play = envelope("left", Some(0));
        assert!(conditioner.forward(&play, &PICKUP(), &cc(100)).is_some());
        conditioner.release(&Release::Mode(ModeIx(1)));
        assert!(conditioner.forward(&play, &PICKUP(), &cc(3)).is_none());
        assert!(conditioner.forward(&play, &PICKUP(), &cc(99)).is_some());
        // What others send counts, too.
        conditioner.sent(&cc(1));
        assert!(conditioner.forward(&play, &PICKUP(), &cc(90)).is_none());
        conditioner.release(&Release::Rules(1));
        assert!(conditioner.sources.is_empty());
    }

    #[test]
    fn smoothing_is_for_values_that_move_and_for_each_source_its_own() {
        let smoothing = Some(Smoothing { min_cutoff: 1.0, beta: 0.0 });
        let forwarding = Forwarding { smoothing, ..Forwarding::default() };
        let mut conditioner = Conditioner::default();
        let mut at = |device: &str, at, message: MidiMessage| {
            conditioner.forward(&Envelope { at, ..envelope(device, None) }, &forwarding, &message).unwrap()
        };
        assert_eq!(at("left", 0, cc(60)), cc(60));
        let MidiMessage::ControlChange { value, .. } = at("left", 10_000_000, cc(80)) else { panic!() };
        assert!((61..75).contains(&value), "{value}");
        assert_eq!(at("right", 10_000_000, cc(80)), cc(80));
        let note = MidiMessage::NoteOn { channel: 0, note: 1, velocity: 5 };
        assert_eq!(at("left", 20_000_000, note.clone()), note);
    }
}
