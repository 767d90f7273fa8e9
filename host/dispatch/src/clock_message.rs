//! Messages of the clock of the rules to an output, and the MIDI clock that the output makes of them.

use conductor_musical_time::Change;
use conductor_musical_time::MusicalTime;

/// A message of the clock to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMessage {
    /// This pulse is reached, from 0.
    Pulse(u64),
    /// It plays from the beginning.
    Start,
    /// It plays on, at this pulse.
    Continue(u64),
    /// It stands.
    Stop,
    /// It stands at this pulse.
    Place(u64),
}

impl ClockMessage {
    /// What a change of the clock is to an output; `None` if it is nothing.
    pub(crate) fn of(time: MusicalTime, change: Change) -> Option<Self> {
        match change {
            Change::Pulse(pulse) => Some(Self::Pulse(pulse)),
            Change::Started => Some(Self::Start),
            Change::Continued => Some(Self::Continue(time.next)),
            Change::Stopped | Change::Lost => Some(Self::Stop),
            // Of one that plays, the next pulse says where it is.
            Change::Moved if time.plays => None,
            Change::Moved => Some(Self::Place(time.next)),
        }
    }
}

/// What has been sent to a port of the clock.
#[derive(Debug, Default)]
pub(crate) struct InStep {
    /// Whether it counts as the clock does.
    is_in_step: bool,
    /// The next pulse, by what was sent.
    next: Option<u64>,
}

/// Pulses in a sixteenth, the unit of song positions.
const PULSES_PER_SONG_STEP: u64 = 6;

impl InStep {
    /// Has `send` send the MIDI messages for this. A port that comes while the clock plays is placed at the next
    /// sixteenth.
    pub(crate) fn follow(&mut self, message: ClockMessage, mut send: impl FnMut(conductor_event::MidiMessage)) {
        use conductor_event::MidiMessage;
        let place = |pulse: u64| u16::try_from(pulse / PULSES_PER_SONG_STEP).unwrap_or(u16::MAX).min(0x3FFF);
        let is_elsewhere = |pulse: u64| self.next.map(place) != Some(place(pulse));
        let next = match message {
            ClockMessage::Pulse(pulse) => {
                if !self.is_in_step && pulse == 0 {
                    self.is_in_step = true;
                    send(MidiMessage::Start);
                } else if !self.is_in_step && pulse.is_multiple_of(PULSES_PER_SONG_STEP) {
                    self.is_in_step = true;
                    send(MidiMessage::SongPosition(place(pulse)));
                    send(MidiMessage::Continue);
                }
                send(MidiMessage::Clock);
                pulse + 1
            }
            ClockMessage::Start => {
                self.is_in_step = true;
                send(MidiMessage::Start);
                0
            }
            ClockMessage::Continue(pulse) => {
                if pulse.is_multiple_of(PULSES_PER_SONG_STEP) && is_elsewhere(pulse) {
                    send(MidiMessage::SongPosition(place(pulse)));
                }
                self.is_in_step = true;
                send(MidiMessage::Continue);
                pulse
            }
            ClockMessage::Place(pulse) => {
                if is_elsewhere(pulse) {
                    send(MidiMessage::SongPosition(place(pulse)));
                }
                pulse
            }
            ClockMessage::Stop => return self.stop(send),
        };
        self.next = Some(next);
    }

    /// Has a port stand that plays.
    pub(crate) fn stop(&mut self, mut send: impl FnMut(conductor_event::MidiMessage)) {
        if std::mem::take(&mut self.is_in_step) {
            send(conductor_event::MidiMessage::Stop);
        }
    }

    /// Another port is attached, to which nothing was sent.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use conductor_event::MidiMessage::{self, Clock, Continue, SongPosition, Start, Stop};

    use super::*;

    fn told(step: &mut InStep, messages: &[ClockMessage]) -> Vec<MidiMessage> {
        let mut sent = Vec::new();
        messages.iter().for_each(|message| step.follow(*message, |message| sent.push(message)));
        sent
    }

    // ENG-14
    #[test]
    fn a_port_hears_start_pulses_stop_and_where_it_goes_on() {
        use ClockMessage as C;
        let mut step = InStep::default();
        let first = [C::Start, C::Pulse(0), C::Pulse(1), C::Stop, C::Stop];
        assert_eq!(told(&mut step, &first), [Start, Clock, Clock, Stop]);
        assert_eq!(told(&mut step, &[C::Place(96), C::Place(96)]), [SongPosition(16)], "once");
        assert_eq!(told(&mut step, &[C::Continue(96), C::Pulse(96)]), [Continue, Clock]);
        assert_eq!(told(&mut step, &[C::Stop, C::Continue(98)]), [Stop, Continue], "it stands there already");
    }

    #[test]
    fn a_port_that_comes_late_goes_on_at_the_next_sixteenth() {
        let mut step = InStep::default();
        let pulses: Vec<_> = (94..98).map(ClockMessage::Pulse).collect();
        assert_eq!(told(&mut step, &pulses), [Clock, Clock, SongPosition(16), Continue, Clock, Clock]);
        step.forget();
        assert_eq!(told(&mut step, &[ClockMessage::Pulse(0)]), [Start, Clock]);
        assert_eq!(told(&mut step, &[ClockMessage::Stop]), [Stop]);
        // A song position has 14 bits.
        assert_eq!(told(&mut step, &[ClockMessage::Place(u64::MAX)]), [SongPosition(0x3FFF)]);
    }
}
