//! The flight recorder: the last events and what the rules made of them, always on.

use crate::Nanos;
use crate::device::DeviceId;
use crate::event::Event;
use crate::fired::{Fired, ModeIx};

/// Why rules were asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Cause {
    /// The event came.
    #[default]
    Input,
    /// The event had come, and what a rule waited for is now ruled out.
    Wait,
    /// A gesture was found.
    Gesture,
}

/// One event and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When it came, or was found.
    pub at: Nanos,
    /// Where it came from.
    pub device: DeviceId,
    /// What came.
    pub event: Event,
    /// Why it is recorded: only an [`Input`](Cause::Input) can be played again.
    pub cause: Cause,
    /// The mode that was active.
    pub mode: ModeIx,
    /// The generation of the rule set that was in use; ids and modes are of that set.
    pub generation: u64,
    /// The rules that fired.
    pub fired: Fired,
}

impl Record {
    /// Whether the event itself has been recorded before: a rule has only come to it later.
    pub fn is_repeated(&self) -> bool {
        self.cause != Cause::Input && !self.event.kind().is_gesture()
    }
}

/// A ring of the last records. Its memory is taken when it is made, and recording takes no more; the
/// record that falls out is dropped by [`push`](Self::push).
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    ring: Vec<Record>,
    capacity: usize,
    /// Where the next record goes once the ring is full; there the oldest is.
    next: usize,
    recorded: u64,
}

impl FlightRecorder {
    /// Room for `capacity` records. With room for none it only counts.
    pub fn new(capacity: usize) -> Self {
        Self { ring: Vec::with_capacity(capacity), capacity, next: 0, recorded: 0 }
    }

    /// Adds a record; the oldest makes room for it.
    pub fn push(&mut self, record: Record) {
        self.recorded += 1;
        if self.ring.len() < self.capacity {
            self.ring.push(record);
        } else if let Some(oldest) = self.ring.get_mut(self.next) {
            *oldest = record;
            self.next = (self.next + 1) % self.capacity;
        }
    }

    /// The records that are still there, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Record> {
        let (newer, older) = self.ring.split_at(self.next);
        older.iter().chain(newer)
    }

    /// How many are there now.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// How many have been pushed, ever.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// How many there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::midi::MidiMessage;

    fn record(at: Nanos) -> Record {
        Record {
            at,
            device: DeviceId::new("pads"),
            event: MidiMessage::Clock.into(),
            cause: Cause::Input,
            mode: ModeIx(0),
            generation: 0,
            fired: Fired::new(),
        }
    }

    #[test]
    fn the_last_ones_stay_in_order() {
        let mut recorder = FlightRecorder::new(3);
        for at in 0..8 {
            recorder.push(record(at));
            let kept: Vec<_> = recorder.iter().map(|record| record.at).collect();
            assert_eq!(kept, ((at + 1).saturating_sub(3)..=at).collect::<Vec<_>>());
        }
        assert_eq!((recorder.recorded(), recorder.len(), recorder.capacity()), (8, 3, 3));
    }

    #[test]
    fn without_room_it_counts() {
        let mut recorder = FlightRecorder::new(0);
        recorder.push(record(1));
        assert_eq!((recorder.recorded(), recorder.is_empty()), (1, true));
    }
}
