//! What happens to a MIDI message that is forwarded: another channel, another number, another value.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod scale;

use conductor_event::MidiMessage;

pub use scale::Scale;

/// Changes a message on its way out. The default changes nothing.
///
/// | Message | channel | number | value |
/// |---|---|---|---|
/// | note-on | `channel` | `note` | velocity |
/// | note-off | `channel` | `note` | left alone |
/// | poly aftertouch | `channel` | `note` | pressure |
/// | control change | `channel` | `controller` | value |
/// | aftertouch | `channel` | | pressure |
/// | pitch bend | `channel` | | value, in 14 bits |
/// | program change | `channel` | left alone | |
/// | system messages | left alone | | |
///
/// Values are brought from the input range to the whole way, go through scale and offset, then inversion,
/// then the curve, and are brought to the output range; they end between 0 and 127 (pitch bend 0 and 16 383). A note-on keeps a velocity of at least 1, as 0 would make it a note-off. The
/// release velocity stays: what shapes a stroke says nothing about letting go.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct MidiTransform {
    /// The channel to send on, 0 to 15.
    pub channel: Option<u8>,
    /// The controller to send as, 0 to 127.
    pub controller: Option<u8>,
    /// The note to send as, 0 to 127.
    pub note: Option<u8>,
    /// Velocity, pressure or value is multiplied by this.
    pub velocity_scale: Option<f32>,
    /// And this is added, in 7-bit steps (a pitch bend moves by 129 for each).
    pub velocity_offset: Option<i16>,
    /// Turns values upside down: 0 becomes 127.
    pub invert: bool,
    /// Bends the response.
    pub curve: Option<Curve>,
    /// The values that count, in 7-bit steps: the first becomes 0, the last 127.
    pub input_range: Option<(u8, u8)>,
    /// Where the values end up, in 7-bit steps, its lower end first.
    pub output_range: Option<(u8, u8)>,
}

/// A response curve from 0 to 127 onto 0 to 127. All but the table rise from 0 to 127 without ever
/// falling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Curve {
    /// As it is.
    Linear,
    /// Steep at first: ln(1 + x) / ln(128) for x from 0 to 127.
    Logarithmic,
    /// Flat at first: (e^x - 1) / (e - 1) for x from 0 to 1.
    Exponential,
    /// Flat at both ends: 3x² - 2x³ for x from 0 to 1.
    SCurve,
    /// One value for each, 0 to 127. Between two of them, pitch bend takes a straight line.
    Lut(Box<[u8; 128]>),
}

/// What is wrong with a transform.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TransformError {
    /// A channel above 15.
    #[error("channel {0} does not exist; channels are 0 to 15")]
    Channel(u8),
    /// A note or controller above 127.
    #[error("{what} {number} does not exist; write a number from 0 to 127")]
    Number {
        /// "note" or "controller".
        what: &'static str,
        /// The number.
        number: u8,
    },
    /// A scale that is not a finite number.
    #[error("a scale of {0} makes no sense; write a number such as 0.5 or 1.2")]
    Scale(f32),
    /// A table with a value above 127.
    #[error("entry {index} of the table is {value}; a table holds values from 0 to 127")]
    Table {
        /// Which entry, from 0.
        index: usize,
        /// Its value.
        value: u8,
    },
}

impl MidiTransform {
    /// Checks everything that [`apply`](Self::apply) takes for granted.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn validate(&self) -> Result<(), Vec<TransformError>> {
        let mut errors = Vec::new();
        if let Some(channel) = self.channel
            && channel > 15
        {
            errors.push(TransformError::Channel(channel));
        }
        for (what, number) in [("controller", self.controller), ("note", self.note)] {
            if let Some(number) = number
                && number > 127
            {
                errors.push(TransformError::Number { what, number });
            }
        }
        if let Some(scale) = self.velocity_scale
            && !scale.is_finite()
        {
            errors.push(TransformError::Scale(scale));
        }
        if let Some(Curve::Lut(table)) = &self.curve {
            let too_high = table.iter().enumerate().filter(|&(_, &value)| value > 127);
            errors.extend(too_high.map(|(index, &value)| TransformError::Table { index, value }));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The message as it goes out. Allocates nothing.
    pub fn apply(&self, message: &MidiMessage) -> MidiMessage {
        let on = |channel| self.channel.unwrap_or(channel);
        let key = |note| self.note.unwrap_or(note);
        match *message {
            MidiMessage::NoteOn { channel, note, velocity } => {
                MidiMessage::NoteOn { channel: on(channel), note: key(note), velocity: self.seven_bit(velocity).max(1) }
            }
            MidiMessage::NoteOff { channel, note, velocity } => {
                MidiMessage::NoteOff { channel: on(channel), note: key(note), velocity }
            }
            MidiMessage::PolyAftertouch { channel, note, pressure } => MidiMessage::PolyAftertouch {
                channel: on(channel),
                note: key(note),
                pressure: self.seven_bit(pressure),
            },
            MidiMessage::ControlChange { channel, controller, value } => MidiMessage::ControlChange {
                channel: on(channel),
                controller: self.controller.unwrap_or(controller),
                value: self.seven_bit(value),
            },
            MidiMessage::Aftertouch { channel, pressure } => {
                MidiMessage::Aftertouch { channel: on(channel), pressure: self.seven_bit(pressure) }
            }
            MidiMessage::PitchBend { channel, value } => {
                MidiMessage::PitchBend { channel: on(channel), value: self.value(value, 16_383) }
            }
            MidiMessage::ProgramChange { channel, program } => {
                MidiMessage::ProgramChange { channel: on(channel), program }
            }
            ref system => system.clone(),
        }
    }

    fn seven_bit(&self, value: u8) -> u8 {
        self.value(value.into(), 127) as u8
    }

    /// Scale and offset, inversion, curve, for values from 0 to `most`.
    fn value(&self, value: u16, most: u16) -> u16 {
        let top = f32::from(most);
        let scale = self.velocity_scale.unwrap_or(1.0);
        let offset = f32::from(self.velocity_offset.unwrap_or(0)) * (top / 127.0);
        let mut value = f32::from(value);
        if let Some(range) = self.input_range {
            value = Scale { from: unit(range), ..Scale::WHOLE }.apply(value / top) * top;
        }
        value = (value * scale + offset).clamp(0.0, top);
        if self.invert {
            value = top - value;
        }
        if let Some(curve) = &self.curve {
            value = curve.at(value / top) * top;
        }
        if let Some(range) = self.output_range {
            value = Scale { to: unit(range), ..Scale::WHOLE }.apply(value / top) * top;
        }
        // The cast takes NaN, which only a scale that is refused could give, to 0.
        value.round().clamp(0.0, top) as u16
    }
}

/// A range of 7-bit steps as parts of the way.
fn unit((first, last): (u8, u8)) -> (f32, f32) {
    (f32::from(first) / 127.0, f32::from(last) / 127.0)
}

impl Curve {
    /// The curve at `x`, both from 0 to 1.
    fn at(&self, x: f32) -> f32 {
        match self {
            Self::Linear => x,
            Self::Logarithmic => (x * 127.0).ln_1p() / 128_f32.ln(),
            Self::Exponential => x.exp_m1() / 1_f32.exp_m1(),
            Self::SCurve => x * x * (3.0 - 2.0 * x),
            Self::Lut(table) => {
                let place = x * 127.0;
                let below = place as usize;
                let entry = |index: usize| f32::from(table[index.min(127)]);
                let (low, high) = (entry(below), entry(below + 1));
                (low + (high - low) * place.fract()) / 127.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn cc(value: u8) -> MidiMessage {
        MidiMessage::ControlChange { channel: 0, controller: 74, value }
    }

    fn value_of(message: MidiMessage) -> u16 {
        match message {
            MidiMessage::ControlChange { value, .. } => value.into(),
            MidiMessage::NoteOn { velocity, .. } => velocity.into(),
            MidiMessage::Aftertouch { pressure, .. } | MidiMessage::PolyAftertouch { pressure, .. } => pressure.into(),
            MidiMessage::PitchBend { value, .. } => value,
            other => panic!("{other:?} has no value"),
        }
    }

    fn with_curve(curve: Curve) -> MidiTransform {
        MidiTransform { curve: Some(curve), ..Default::default() }
    }

    #[test]
    fn a_part_of_the_way_becomes_another() {
        let transform =
            MidiTransform { input_range: Some((20, 100)), output_range: Some((10, 50)), ..Default::default() };
        let values: Vec<u16> = [0, 20, 60, 100, 127].map(|value| value_of(transform.apply(&cc(value)))).into();
        assert_eq!(values, [10, 10, 30, 50, 50]);
        let bend = MidiMessage::PitchBend { channel: 0, value: 16_383 };
        assert_eq!(value_of(transform.apply(&bend)), 6450);
        let turned = MidiTransform { invert: true, ..transform };
        assert_eq!(value_of(turned.apply(&cc(0))), 50);
    }

    #[test]
    fn the_default_changes_nothing() {
        let messages = [
            cc(64),
            MidiMessage::NoteOn { channel: 3, note: 60, velocity: 1 },
            MidiMessage::NoteOff { channel: 3, note: 60, velocity: 0 },
            MidiMessage::PitchBend { channel: 3, value: 8192 },
            MidiMessage::ProgramChange { channel: 3, program: 7 },
            MidiMessage::SysEx(Arc::from([0xF0, 0xF7])),
            MidiMessage::SongPosition(7),
        ];
        for message in messages {
            assert_eq!(MidiTransform::default().apply(&message), message);
        }
    }

    #[test]
    fn channel_and_number_move_where_they_exist() {
        let transform = MidiTransform { channel: Some(9), controller: Some(1), note: Some(40), ..Default::default() };
        assert_eq!(transform.apply(&cc(5)), MidiMessage::ControlChange { channel: 9, controller: 1, value: 5 });
        assert_eq!(
            transform.apply(&MidiMessage::NoteOff { channel: 0, note: 60, velocity: 3 }),
            MidiMessage::NoteOff { channel: 9, note: 40, velocity: 3 }
        );
        assert_eq!(
            transform.apply(&MidiMessage::ProgramChange { channel: 0, program: 5 }),
            MidiMessage::ProgramChange { channel: 9, program: 5 }
        );
    }

    #[test]
    fn values_are_scaled_then_inverted_then_bent() {
        let mut table = Box::new([0; 128]);
        table[107] = 55;
        let transform = MidiTransform {
            velocity_scale: Some(2.0),
            velocity_offset: Some(-10),
            invert: true,
            curve: Some(Curve::Lut(table)),
            ..Default::default()
        };
        // 15 * 2 - 10 = 20; 127 - 20 = 107; the table says 55.
        assert_eq!(value_of(transform.apply(&cc(15))), 55);
    }

    #[test]
    fn an_offset_needs_no_scale() {
        let transform = MidiTransform { velocity_offset: Some(10), ..Default::default() };
        assert_eq!(value_of(transform.apply(&cc(5))), 15);
        assert_eq!(value_of(transform.apply(&cc(120))), 127);
    }

    #[test]
    fn a_note_that_is_played_stays_played() {
        let transform = MidiTransform { velocity_scale: Some(0.0), ..Default::default() };
        let note = MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 };
        assert_eq!(value_of(transform.apply(&note)), 1);
    }

    #[test]
    fn pitch_bend_keeps_its_fourteen_bits() {
        let bend =
            |transform: &MidiTransform, value| value_of(transform.apply(&MidiMessage::PitchBend { channel: 0, value }));
        let half = MidiTransform { velocity_scale: Some(0.5), ..Default::default() };
        assert_eq!(bend(&half, 8191), 4096);
        let inverted = MidiTransform { invert: true, ..Default::default() };
        assert_eq!(bend(&inverted, 0), 16_383);
        let straight = with_curve(Curve::Lut(Box::new(std::array::from_fn(|n| n as u8))));
        for value in [0, 1, 8191, 8192, 12_345, 16_383] {
            assert_eq!(bend(&straight, value), value);
        }
    }

    #[test]
    fn curves_go_through_known_points() {
        let at = |curve, value| value_of(with_curve(curve).apply(&cc(value)));
        assert_eq!(at(Curve::Linear, 77), 77);
        // ln(64) / ln(128) = 6/7.
        assert_eq!(at(Curve::Logarithmic, 63), 109);
        assert_eq!(at(Curve::Exponential, 64), 48);
        assert_eq!(at(Curve::SCurve, 32), 20);
    }

    #[test]
    fn nonsense_is_refused_all_at_once() {
        let mut table = Box::new([0; 128]);
        table[3] = 200;
        let transform = MidiTransform {
            channel: Some(16),
            controller: Some(128),
            note: Some(255),
            velocity_scale: Some(f32::INFINITY),
            curve: Some(Curve::Lut(table)),
            ..Default::default()
        };
        let errors = transform.validate().unwrap_err();
        assert_eq!(errors.len(), 5, "{errors:?}");
        assert_eq!(MidiTransform::default().validate(), Ok(()));
        let nan = MidiTransform { velocity_scale: Some(f32::NAN), ..Default::default() };
        assert!(nan.validate().is_err());
    }

    fn curve() -> impl Strategy<Value = Option<Curve>> {
        prop_oneof![
            Just(None),
            Just(Some(Curve::Linear)),
            Just(Some(Curve::Logarithmic)),
            Just(Some(Curve::Exponential)),
            Just(Some(Curve::SCurve)),
            proptest::collection::vec(any::<u8>(), 128).prop_map(|table| Some(Curve::Lut(table.try_into().unwrap()))),
        ]
    }

    proptest! {
        #[test]
        fn values_stay_in_range(
            scale in proptest::option::of(any::<f32>()),
            velocity_offset in proptest::option::of(any::<i16>()),
            invert: bool,
            curve in curve(),
            value in 0u8..128,
            bend in 0u16..16_384,
        ) {
            let transform = MidiTransform {
                velocity_scale: scale, velocity_offset, invert, curve, ..Default::default()
            };
            let (channel, note) = (0, 0);
            for message in [
                cc(value),
                MidiMessage::Aftertouch { channel, pressure: value },
                MidiMessage::PolyAftertouch { channel, note, pressure: value },
                MidiMessage::NoteOn { channel, note, velocity: value },
            ] {
                prop_assert!(value_of(transform.apply(&message)) <= 127);
            }
            let note_on = MidiMessage::NoteOn { channel, note, velocity: value };
            prop_assert!(value_of(transform.apply(&note_on)) >= 1);
            let bend = MidiMessage::PitchBend { channel, value: bend };
            prop_assert!(value_of(transform.apply(&bend)) <= 16_383);
        }
    }

    #[test]
    fn built_in_curves_rise_from_nothing_to_everything() {
        for curve in [Curve::Linear, Curve::Logarithmic, Curve::Exponential, Curve::SCurve] {
            let transform = with_curve(curve);
            let small: Vec<_> = (0..=127).map(|v| transform.value(v, 127)).collect();
            let fine: Vec<_> = (0..=16_383).map(|v| transform.value(v, 16_383)).collect();
            assert!(small.is_sorted() && fine.is_sorted(), "{transform:?}");
            assert_eq!((small[0], small[127]), (0, 127));
            assert_eq!((fine[0], fine[16_383]), (0, 16_383));
        }
    }
}
