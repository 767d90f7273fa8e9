//! The gesture engine: for any events, the same rules fire with any number of ticks, and nothing is
//! left over.

use std::sync::Arc;

use conductor_engine::{Engine, Firing, RuleSetHandle, RuleSource, Sink, compile};
use conductor_event::{Cause, DeviceEvent, DeviceId, Event, HidEvent, Nanos, Record, RuleId};

use crate::bytes::Bytes;
use crate::rules_from::{DEVICES, MODES, MS, Sense, event, rules};

type Action = Option<&'static str>;

/// Longer than any gesture.
const FOR_EVER: Nanos = 2 * 3_600_000 * MS;
const MAX_EVENTS: usize = 200;

#[derive(Default)]
struct Heard {
    fired: Vec<(Nanos, DeviceId, RuleId, Event)>,
    inputs: usize,
}

impl Sink<Action> for Heard {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        self.fired.push((firing.at, firing.device.clone(), firing.rule.id, firing.event.clone()));
        firing.rule.action.map(Arc::from)
    }

    fn record(&mut self, record: Record) {
        self.inputs += usize::from(record.cause == Cause::Input);
    }
}

/// What happens, after a pause.
#[derive(Clone)]
enum Step {
    Event(DeviceId, Event),
    Reload(usize),
    Gone(DeviceId),
    Mode(&'static str),
    /// The clock jumps back by so much.
    Back(Nanos),
}

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let sources: Vec<_> = (0..1 + bytes.below(2)).map(|_| rules(&mut bytes, 10, Sense::All)).collect();
    // Rules may still be wrong: with conditions that stand too deep.
    if sources.iter().any(|source| compile(source.clone()).is_err()) {
        return;
    }
    let devices = DEVICES.map(DeviceId::new);
    let mut steps = Vec::new();
    while !bytes.is_empty() && steps.len() < MAX_EVENTS {
        let pause = bytes.pick(&[0, 0, 1, MS, 3 * MS, 10 * MS, 49 * MS, 50 * MS, 250 * MS, 300 * MS]);
        let what = bytes.byte();
        let device = devices[usize::from(what & 3) % devices.len()].clone();
        let step = match what >> 2 {
            0 => Step::Reload(bytes.below(2).into()),
            1 => Step::Gone(device),
            2 => Step::Mode(bytes.pick(&MODES)),
            3 => Step::Back(Nanos::from(bytes.word()) * 10_000),
            _ => Step::Event(device, event(&mut bytes)),
        };
        steps.push((pause, step));
    }
    let events = steps.iter().filter(|(_, step)| matches!(step, Step::Event(..))).count();

    let never = play(&sources, &steps, &devices, |_, _, _, _| {});
    assert_eq!(never.inputs, events, "every event is recorded, once");
    let at_deadlines = play(&sources, &steps, &devices, |engine, _, to, heard| {
        while let Some(deadline) = engine.deadline().filter(|deadline| *deadline <= to) {
            engine.advance(deadline, heard);
        }
    });
    assert!(never.fired == at_deadlines.fired, "{:?}\n{:?}", never.fired, at_deadlines.fired);
    let often = play(&sources, &steps, &devices, |engine, from, to, heard| {
        for step in 0..4 {
            engine.advance(from + (to - from) / 4 * step, heard);
        }
    });
    assert!(never.fired == often.fired, "{:?}\n{:?}", never.fired, often.fired);
}

/// Plays the steps; `tick` advances the clock in between.
fn play(
    sources: &[RuleSource<Action>],
    steps: &[(Nanos, Step)],
    devices: &[DeviceId],
    mut tick: impl FnMut(&mut Engine<Action>, Nanos, Nanos, &mut Heard),
) -> Heard {
    let compiled = |index: usize| match compile(sources[index % sources.len()].clone()) {
        Ok(set) => set,
        Err(errors) => panic!("{errors:?}"),
    };
    let rules = Arc::new(RuleSetHandle::new(compiled(0)));
    let mut engine = Engine::new(Arc::clone(&rules), Arc::default());
    let mut heard = Heard::default();
    // Not at 0, so that the clock can jump back. What the engine takes for now never does.
    let (mut clock, mut now) = (1_000 * MS, 1_000 * MS);
    for (pause, step) in steps {
        clock += pause;
        if clock > now {
            tick(&mut engine, now, clock, &mut heard);
        }
        now = now.max(clock);
        match step {
            Step::Event(device, event) => {
                let event = DeviceEvent { device: device.clone(), event: event.clone() };
                engine.event(clock, event, &mut heard);
            }
            // The clock is advanced first: these events carry no time.
            Step::Reload(index) => {
                engine.advance(now, &mut heard);
                rules.swap(compiled(*index));
            }
            Step::Gone(device) => {
                engine.advance(now, &mut heard);
                engine.forget(device, &mut heard);
            }
            Step::Mode(mode) => {
                engine.advance(now, &mut heard);
                let _ = engine.set_mode(mode, &mut heard);
            }
            Step::Back(by) => {
                engine.advance(now, &mut heard);
                clock = clock.saturating_sub(*by);
            }
        }
        assert!(engine.deadline().is_none_or(|deadline| deadline > now), "what is due was done");
    }
    now += FOR_EVER;
    engine.advance(now, &mut heard);
    assert_eq!(engine.deadline(), None, "nothing takes for ever");
    for device in devices {
        // Sticks and triggers that are still out are all that may be left.
        let middle = (128..=131).map(|stick| HidEvent::Stick { stick, value: 0.0 });
        let middle = middle.chain((132..=133).map(|trigger| HidEvent::Trigger { trigger, value: 0.0 }));
        for moved in middle {
            let event = DeviceEvent { device: device.clone(), event: moved.into() };
            engine.event(now, event, &mut Heard::default());
        }
    }
    engine.advance(now + FOR_EVER, &mut heard);
    assert!(engine.is_idle(), "nothing is under way, and nothing waits");
    assert!(heard.fired.is_sorted_by_key(|fire| fire.0), "time runs forward");
    heard
}
