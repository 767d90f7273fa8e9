//! JACK's own thread: once in every cycle, with a deadline of a millisecond or two.
//!
//! Nothing here waits, locks or allocates. Room for all ports is there from the beginning.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender};
use jack::{Control, MidiIn, MidiOut, Port, ProcessHandler, ProcessScope, RawMidi};

use crate::{MAX_OUT, MAX_PORTS, frames, reader};

/// What the caller's threads ask for.
pub(crate) enum Change {
    /// Hear this port too.
    Hear(u32, Port<MidiIn>),
    /// Say what is sent to this one.
    Say(Box<Says>),
    /// Let go of this one.
    Retire(u32),
}

/// A port that JACK's thread does not look at any more.
pub(crate) enum Retired {
    Heard(u32, Port<MidiIn>),
    Said(Box<Says>),
}

impl Retired {
    pub(crate) fn id(&self) -> u32 {
        match self {
            Self::Heard(id, _) => *id,
            Self::Said(says) => says.id,
        }
    }
}

/// An output.
pub(crate) struct Says {
    id: u32,
    pub(crate) port: Port<MidiOut>,
    waiting: rtrb::Consumer<u8>,
    room: [u8; MAX_OUT],
    ending: Ending,
}

/// How far the end of an output is.
#[derive(PartialEq)]
enum Ending {
    /// It is open.
    No,
    /// It is closed once what waits has been said.
    Asked,
    /// The last of it was said in the cycle before: now everybody has heard it.
    Said,
}

impl Says {
    pub(crate) fn new(id: u32, port: Port<MidiOut>, waiting: rtrb::Consumer<u8>) -> Self {
        Self { id, port, waiting, room: [0; MAX_OUT], ending: Ending::No }
    }

    /// Says what waits, as far as this cycle has room for it. Returns whether the port is to be let go of.
    fn say(&mut self, scope: &ProcessScope, lost: &AtomicU64) -> bool {
        let mut writer = self.port.writer(scope);
        if self.ending == Ending::Said {
            return true;
        }
        let mut said = 0;
        while let Some((_, bytes)) = frames::next(&mut self.waiting, &mut self.room) {
            if writer.write(&RawMidi { time: 0, bytes }).is_err() {
                if said > 0 {
                    return false;
                }
                // What does not fit into an empty cycle never will.
                lost.fetch_add(1, Ordering::Relaxed);
            }
            said += 1;
            let length = bytes.len();
            frames::take(&mut self.waiting, length);
        }
        if self.ending == Ending::Asked {
            self.ending = Ending::Said;
        }
        false
    }
}

/// What is done in every cycle.
pub(crate) struct Cycle {
    changes: Receiver<Change>,
    retired: Sender<Retired>,
    inputs: Vec<(u32, Port<MidiIn>)>,
    outputs: Vec<Box<Says>>,
    heard: rtrb::Producer<u8>,
    reader: Thread,
    lost: Arc<AtomicU64>,
    cycles: Arc<AtomicU64>,
}

impl Cycle {
    pub(crate) fn new(
        changes: Receiver<Change>,
        retired: Sender<Retired>,
        heard: rtrb::Producer<u8>,
        reader: Thread,
        lost: Arc<AtomicU64>,
        cycles: Arc<AtomicU64>,
    ) -> Self {
        let (inputs, outputs) = (Vec::with_capacity(MAX_PORTS), Vec::with_capacity(MAX_PORTS));
        Self { changes, retired, inputs, outputs, heard, reader, lost, cycles }
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Hear(id, port) => self.inputs.push((id, port)),
            Change::Say(says) => self.outputs.push(says),
            Change::Retire(id) => {
                if let Some(place) = self.inputs.iter().position(|(known, _)| *known == id) {
                    let (id, port) = self.inputs.swap_remove(place);
                    // There is room for every port that there can be.
                    let _ = self.retired.try_send(Retired::Heard(id, port));
                } else if let Some(says) = self.outputs.iter_mut().find(|says| says.id == id) {
                    says.ending = Ending::Asked;
                }
            }
        }
    }
}

impl ProcessHandler for Cycle {
    fn process(&mut self, _: &jack::Client, scope: &ProcessScope) -> Control {
        while let Ok(change) = self.changes.try_recv() {
            self.change(change);
        }
        let mut some = false;
        for (id, port) in &self.inputs {
            for midi in port.iter(scope) {
                some = true;
                if midi.bytes.len() > reader::MAX_IN || !frames::put(&mut self.heard, *id, midi.bytes) {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if some {
            self.reader.unpark();
        }
        let mut place = 0;
        while let Some(says) = self.outputs.get_mut(place) {
            if says.say(scope, &self.lost) {
                let says = self.outputs.swap_remove(place);
                let _ = self.retired.try_send(Retired::Said(says));
            } else {
                place += 1;
            }
        }
        self.cycles.fetch_add(1, Ordering::Release);
        Control::Continue
    }
}
