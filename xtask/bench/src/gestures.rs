//! What an event costs where gestures are looked for, beside the original engine's event processor.
//!
//! The original detects all gestures and leaves them to the rules; here only gestures that rules use are detected. So
//! both are measured with rules for all gestures, on every key.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use conductor_core::EventProcessor;
use conductor_core::event_processor::MidiEvent;
use conductor_engine::{
    Engine, Firing, NumberRange, RuleSetHandle, RuleSource, RuleSpec, Sink, Trigger, ValueRange, compile,
};
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage, Nanos};

use crate::allocations;
use crate::measure::{Work, nanos_per_call};
use crate::report::{Limit, Section, Unit};

const PEER: &str = "conductor-core 0.1.0";
const MS: Nanos = 1_000_000;
/// Between two events.
const PACE: Nanos = 5 * MS;

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let taps = |index: u64| (index.is_multiple_of(2), (index / 2 % 12) as u8);
    let rolls = |index: u64| (index % 8 < 4, (index % 4) as u8);
    for (name, keys) in [("single keys, up and down", taps as Keys), ("four keys together, up and down", rolls)] {
        let [none, long, all, peer] = nanos_per_call([
            ours(&[], keys)?,
            ours(&[Gesture::LongPress], keys)?,
            ours(&[Gesture::LongPress, Gesture::DoubleTap, Gesture::Chord], keys)?,
            original(keys),
        ]);
        section.beside(format!("{name}, nothing looked for"), none, Unit::Nanoseconds, PEER, peer);
        section.beside(format!("{name}, long presses"), long, Unit::Nanoseconds, PEER, peer);
        section.beside(format!("{name}, long presses, double taps, chords"), all, Unit::Nanoseconds, PEER, peer);
        section.target(format!("{name}, all"), all / peer, Unit::Times, Limit::AtMost(1.0));
        let mut work = ours(&[Gesture::LongPress, Gesture::DoubleTap, Gesture::Chord], keys)?;
        work(1024);
        let asked = allocations::per_call(4096, &mut work);
        section.target(format!("{name}, allocations"), asked, Unit::Count, Limit::AtMost(0.0));
    }
    Ok(())
}

/// Whether a key goes down, and which, by the number of the event.
type Keys = fn(u64) -> (bool, u8);

#[derive(Clone, Copy)]
enum Gesture {
    LongPress,
    DoubleTap,
    Chord,
}

struct Count(u64);

impl Sink<()> for Count {
    fn fire(&mut self, firing: Firing<'_, ()>) -> Option<Arc<str>> {
        black_box(firing.position);
        self.0 += 1;
        None
    }
}

/// The engine, with rules for what is wanted on every key; times as the original has them.
fn ours(wanted: &[Gesture], keys: Keys) -> Result<Work<'static>> {
    let trigger = |wanted: &Gesture| match wanted {
        Gesture::LongPress => Trigger::LongPress {
            keys: NumberRange::ALL,
            velocity: ValueRange::SEVEN_BIT,
            channel: None,
            after: 2_000 * MS,
        },
        Gesture::DoubleTap => Trigger::DoubleTap {
            keys: NumberRange::ALL,
            velocity: ValueRange::SEVEN_BIT,
            channel: None,
            taps: 2,
            within: 300 * MS,
        },
        Gesture::Chord => Trigger::Chord { keys: vec![0, 1, 2, 3], channel: None, within: 50 * MS },
    };
    let rules = wanted.iter().map(|wanted| RuleSpec::new(trigger(wanted), ())).collect();
    let set = compile(RuleSource { modes: Vec::new(), rules }).map_err(|errors| anyhow!("{errors:?}"))?;
    let mut engine = Engine::new(Arc::new(RuleSetHandle::new(set)), Arc::default());
    let (device, mut sink, mut index) = (DeviceId::new("pads"), Count(0), 0);
    Ok(Box::new(move |calls| {
        for _ in 0..calls {
            let (down, note) = keys(index);
            let message = match down {
                true => MidiMessage::NoteOn { channel: 0, note, velocity: 100 },
                false => MidiMessage::NoteOff { channel: 0, note, velocity: 0 },
            };
            let event = DeviceEvent { device: device.clone(), event: Event::from(message) };
            black_box(engine.event(index * PACE, event, &mut sink));
            index += 1;
        }
    }))
}

fn original(keys: Keys) -> Work<'static> {
    let mut processor = EventProcessor::new();
    let (mut time, mut index) = (Instant::now(), 0);
    Box::new(move |calls| {
        for _ in 0..calls {
            let (down, note) = keys(index);
            let event = match down {
                true => MidiEvent::NoteOn { note, velocity: 100, channel: 0, time },
                false => MidiEvent::NoteOff { note, channel: 0, time },
            };
            black_box(processor.process(black_box(event)));
            time += Duration::from_nanos(PACE);
            index += 1;
        }
    })
}
