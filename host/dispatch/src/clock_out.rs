//! The clock that goes out: what the clock of the rules says, to the outputs that get it as a MIDI clock.

use conductor_musical_time::Change;
use conductor_musical_time::MusicalTime;

use super::clock_message::ClockMessage;
use super::midi_out::{MidiJob, MidiQueue};

/// The outputs that get the clock.
#[derive(Debug, Clone, Default)]
pub struct ClockOut(Vec<MidiQueue>);

impl ClockOut {
    /// These outputs.
    pub fn new(outputs: Vec<MidiQueue>) -> Self {
        Self(outputs)
    }

    /// The clock has changed. Waits for nothing and allocates nothing: an output that has no room misses it.
    pub fn follow(&self, time: MusicalTime, change: Change) {
        let Some(message) = ClockMessage::of(time, change) else { return };
        for output in &self.0 {
            let _ = output.try_put(MidiJob::Clock(message));
        }
    }
}
