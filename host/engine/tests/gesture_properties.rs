//! For any events, and any number of ticks: the same rules fire, and nothing is left over
//! (ENG-4, REL-2).

use std::sync::Arc;

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;

type Fire = (Nanos, String, RuleId, String, Answers);

#[derive(Default)]
struct Heard(Vec<Fire>, usize);

impl Sink<Option<Arc<str>>> for Heard {
    fn fire(&mut self, firing: Firing<'_, Option<Arc<str>>>) -> Option<Arc<str>> {
        let (device, event) = (firing.device.to_string(), firing.event.to_string());
        self.0.push((firing.at, device, firing.rule.id, event, firing.answers));
        firing.rule.action.clone()
    }

    fn record(&mut self, record: Record) {
        self.1 += usize::from(record.cause == Cause::Input);
    }
}

const MS: Nanos = 1_000_000;

fn trigger() -> impl Strategy<Value = Trigger> {
    let key = || 0u16..4;
    let keys = || (key(), 0u16..3).prop_map(|(first, more)| NumberRange { first, last: first + more });
    let time = || select(vec![MS, 20 * MS, 50 * MS, 51 * MS, 300 * MS]);
    let velocity = || select(vec![ValueRange::SEVEN_BIT, ValueRange { min: 64, max: 127 }]);
    let channel = None;
    prop_oneof![
        3 => (keys(), velocity())
            .prop_map(move |(notes, velocity)| Trigger::Note { notes, velocity, edge: Edge::Press, channel }),
        1 => keys().prop_map(move |notes| Trigger::Note {
            notes, velocity: ValueRange::SEVEN_BIT, edge: Edge::Both, channel
        }),
        3 => (keys(), velocity(), time())
            .prop_map(move |(keys, velocity, after)| Trigger::LongPress { keys, velocity, channel, after }),
        3 => (keys(), velocity(), select(vec![2, 2, 3, 4]), time()).prop_map(
            move |(keys, velocity, taps, within)| Trigger::DoubleTap { keys, velocity, channel, taps, within }
        ),
        2 => (proptest::collection::vec(key(), 2..4), time())
            .prop_map(move |(keys, within)| Trigger::Sequence { keys, channel, within }),
        3 => (key(), 1u16..3, time()).prop_map(move |(first, more, within)| Trigger::Chord {
            keys: vec![first, first + more], channel, within
        }),
        1 => key().prop_map(move |controller| Trigger::FineControl {
            controllers: NumberRange::one(controller), value: ValueRange::FOURTEEN_BIT, channel, fine_first: false }),
        1 => Just(Trigger::GamepadStick {
            sticks: NumberRange::one(128), push: Push::Positive, dead_zone: 0.5, readings: Readings::First
        }),
        1 => Just(Trigger::LongPress {
            keys: NumberRange::one(128), velocity: ValueRange::SEVEN_BIT, channel: None, after: 20 * MS
        }),
    ]
}

fn rules() -> impl Strategy<Value = RuleSource<Option<Arc<str>>>> {
    let mode = || select(vec![None, None, Some("Play"), Some("Live")]);
    let device = select(vec![None, None, Some("pads")]);
    let condition = select(vec![
        None,
        None,
        Some(Condition::NoteHeld { notes: NumberRange::one(3), channel: None, device: None }),
        Some(Condition::Never),
    ]);
    let bit = |weight| proptest::bool::weighted(weight);
    let held = |note| Condition::NoteHeld { notes: NumberRange::one(note), channel: None, device: None };
    let choices = select(vec![vec![], vec![held(2)], vec![Condition::ModeIs("Live".into()), held(1)]]);
    let rule = (trigger(), (mode(), choices), device, bit(0.5), bit(0.2), -1..2, condition, mode());
    proptest::collection::vec(rule, 1..12).prop_map(|rules| RuleSource {
        modes: vec!["Play".into(), "Live".into()],
        rules: rules
            .into_iter()
            .map(|(trigger, (mode, conditions), device, defer, consume, priority, condition, next)| RuleSpec {
                scope: mode.map_or(Scope::Global, |mode| Scope::Mode(mode.into())),
                device: device.map(Into::into),
                defer: defer && trigger.can_defer(),
                consume,
                priority,
                condition,
                choices: Choices { conditions, holds: false },
                ..RuleSpec::new(trigger, next.map(Arc::from))
            })
            .collect(),
    })
}

/// What happens: after a pause, on one of two devices.
fn events() -> impl Strategy<Value = Vec<(Nanos, &'static str, Event)>> {
    let pause = select(vec![0, 1, MS, 10 * MS, 49 * MS, 50 * MS, 250 * MS, 300 * MS]);
    let note = 0u8..6;
    let event = prop_oneof![
        5 => (note.clone(), 1u8..128)
            .prop_map(|(note, velocity)| MidiMessage::NoteOn { channel: 0, note, velocity }.into()),
        4 => note.prop_map(|note| MidiMessage::NoteOff { channel: 0, note, velocity: 0 }.into()),
        1 => (select(vec![0u8, 1, 32, 33, 123]), 0u8..128).prop_map(|(controller, value)| {
            MidiMessage::ControlChange { channel: 0, controller, value }.into()
        }),
        1 => (-1.0f32..1.0).prop_map(|value| HidEvent::Stick { stick: 128, value }.into()),
        1 => any::<bool>().prop_map(|pressed| HidEvent::Button { button: 128, pressed }.into()),
    ];
    proptest::collection::vec((pause, select(vec!["pads", "pads", "keys"]), event), 1..80)
}

/// Plays events; `tick` advances the clock in between.
fn play(
    source: &RuleSource<Option<Arc<str>>>,
    events: &[(Nanos, &'static str, Event)],
    mut tick: impl FnMut(&mut Engine<Option<Arc<str>>>, Nanos, Nanos, &mut Heard),
) -> Heard {
    let set = compile(source.clone()).expect("valid rules");
    let rules = Arc::new(RuleSetHandle::new(set));
    let mut engine = Engine::new(rules, Arc::default());
    let mut heard = Heard::default();
    let mut now = 0;
    for (pause, device, event) in events {
        tick(&mut engine, now, now + pause, &mut heard);
        now += pause;
        let event = DeviceEvent { device: DeviceId::new(device), event: event.clone() };
        engine.event(now, event, &mut heard);
    }
    tick(&mut engine, now, now + 3_600_000 * MS, &mut heard);
    engine.advance(now + 3_600_000 * MS, &mut heard);
    assert_eq!(engine.deadline(), None, "an hour later nothing is due");
    for device in ["pads", "keys"] {
        // A stick that is still pushed is all that may be left.
        let middle =
            DeviceEvent { device: DeviceId::new(device), event: HidEvent::Stick { stick: 128, value: 0.0 }.into() };
        engine.event(now + 3_600_000 * MS, middle, &mut Heard::default());
    }
    assert!(engine.is_idle(), "nothing is under way, and nothing waits");
    heard
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// No stuck state for any sequence of events, and nothing depends on the number of ticks.
    #[test]
    fn how_often_time_is_told_does_not_matter(source in rules(), events in events(), steps in 1u64..7) {
        let never = play(&source, &events, |_, _, _, _| {});
        prop_assert_eq!(never.1, events.len(), "every event is recorded");
        let at_deadlines = play(&source, &events, |engine, _, to, heard| {
            while let Some(deadline) = engine.deadline().filter(|deadline| *deadline <= to) {
                engine.advance(deadline, heard);
            }
        });
        prop_assert_eq!(&never.0, &at_deadlines.0);
        let often = play(&source, &events, |engine, from, to, heard| {
            let step = ((to - from) / steps).max(1);
            for n in 0..steps {
                engine.advance((from + n * step).min(to), heard);
            }
        });
        prop_assert_eq!(&never.0, &often.0);
    }

    /// One device is as if the other were not there.
    #[test]
    fn devices_have_nothing_to_do_with_each_other(source in rules(), events in events()) {
        // But for what rules share on purpose: the mode, and what is held anywhere.
        let mut source = source;
        for rule in &mut source.rules {
            rule.action = None;
            rule.condition = None;
            rule.choices.conditions.clear();
        }
        let of = |heard: Heard, device: &str| -> Vec<Fire> {
            heard.0.into_iter().filter(|fire| fire.1 == device).collect()
        };
        let mut now = 0;
        let mut alone = Vec::new();
        let mut last = 0;
        for (pause, device, event) in &events {
            now += pause;
            if *device == "pads" {
                alone.push((now - last, "pads", event.clone()));
                last = now;
            }
        }
        let together = play(&source, &events, |_, _, _, _| {});
        let alone = play(&source, &alone, |_, _, _, _| {});
        prop_assert_eq!(of(together, "pads"), of(alone, "pads"));
    }

    /// Time that runs backwards, rules that are replaced and devices that go away in the middle leave
    /// nothing behind, either.
    #[test]
    fn nothing_is_stuck_whatever_happens(
        sources in proptest::collection::vec(rules(), 1..4),
        events in events(),
        odd in proptest::collection::vec((0usize..80, 0u8..4, any::<u32>()), 0..40),
    ) {
        let compiled = |index: usize| compile(sources[index % sources.len()].clone()).expect("valid rules");
        let rules = Arc::new(RuleSetHandle::new(compiled(0)));
        let mut engine = Engine::new(Arc::clone(&rules), Arc::default());
        let mut heard = Heard::default();
        let mut now = 1_000 * MS;
        for (index, (pause, device, event)) in events.iter().enumerate() {
            let mut at = now + pause;
            for (_, what, number) in odd.iter().filter(|(at, _, _)| *at == index) {
                match what {
                    0 => { rules.swap(compiled(*number as usize)); }
                    1 => engine.forget(&DeviceId::new(device), &mut heard),
                    2 => at = at.saturating_sub(u64::from(*number)),
                    _ => { let _ = engine.set_mode("Live", &mut heard); }
                }
            }
            now = now.max(at);
            engine.event(at, DeviceEvent { device: DeviceId::new(device), event: event.clone() }, &mut heard);
        }
        engine.advance(now + 3_600_000 * MS, &mut heard);
        prop_assert_eq!(engine.deadline(), None);
        for device in ["pads", "keys"] {
            engine.forget(&DeviceId::new(device), &mut heard);
        }
        prop_assert!(engine.is_idle());
        prop_assert!(heard.0.is_sorted_by_key(|fire| fire.0), "time runs forward");
    }
}
