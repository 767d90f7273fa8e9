//! The index against the definition: whatever the rules and the event, a match through the index gives
//! what asking every rule in turn would give (ENG-7).

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;

/// What `RuleSet::matches` means, said plainly: sort, ask everyone, stop after one that consumes.
fn ask_everyone(source: &RuleSource<usize>, mode: ModeIx, device: &DeviceId, event: &Event) -> Vec<(usize, u16)> {
    let mut rules: Vec<_> = source.rules.iter().collect();
    rules.sort_by_key(|rule| (-rule.priority, rule.device.is_none()));
    let mut found = Vec::new();
    for rule in rules {
        let awake = match &rule.scope {
            Scope::Global => true,
            Scope::Mode(name) => source.modes.get(usize::from(mode.0)) == Some(name),
        };
        let listens = rule.device.as_deref().is_none_or(|name| name == device.as_str())
            && rule.condition != Some(Condition::Never);
        if let (true, true, Some(position)) = (awake, listens, rule.trigger.matches(event)) {
            found.push((rule.action, position));
            if rule.consume {
                break;
            }
        }
    }
    found
}

// The worlds of rules and events are small on purpose: so that they meet.

const MODES: [&str; 3] = ["Play", "Mix", "Edit"];
const DEVICES: [&str; 4] = ["pads", "keys", "keys #2", "fader box"];
const ADDRESSES: [&str; 6] = ["/mixer/1/fader", "/mixer/2/fader", "/mixer", "/", "/transport", "x"];
const PATTERNS: [&str; 6] = ["/mixer/*/fader", "/mixer/[12]/fader", "/mixer", "/*", "/{mixer,x}", "/t*"];

fn numbers() -> impl Strategy<Value = NumberRange> {
    prop_oneof![
        2 => Just(NumberRange::ALL),
        4 => (0u8..4).prop_map(NumberRange::one),
        2 => (0u8..4, 0u8..4).prop_map(|(first, more)| NumberRange { first, last: first + more }),
        1 => (120u8..128).prop_map(|first| NumberRange { first, last: 127 }),
        1 => (0u8..128).prop_map(|last| NumberRange { first: 0, last }),
    ]
}

fn number() -> impl Strategy<Value = u8> {
    prop_oneof![4 => 0u8..6, 1 => 118u8..128, 1 => 0u8..128]
}

fn values(most: u16) -> impl Strategy<Value = ValueRange> {
    prop_oneof![
        2 => Just(ValueRange { min: 0, max: most }),
        1 => (0..=most, 0..=most)
            .prop_map(|(a, b)| ValueRange { min: a.min(b), max: a.max(b) }),
    ]
}

fn channel() -> impl Strategy<Value = Option<u8>> {
    select(vec![None, None, Some(0), Some(1), Some(15)])
}

fn sysex_pattern() -> impl Strategy<Value = SysExPattern> {
    select(vec!["F0", "F0 7E", "F0 ?E", "F0 7E ?? 06", "F0 00 20", "F0 F7"])
        .prop_map(|text| text.parse().expect("a pattern"))
}

fn arg_test() -> impl Strategy<Value = Option<OscArgTest>> {
    let range = (0usize..2, -1.0..1.0, 0.0..1.0)
        .prop_map(|(index, min, more)| Some(OscArgTest { index, min, max: min + more }));
    prop_oneof![Just(None), range]
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let edge = || select(vec![Edge::Press, Edge::Release, Edge::Both]);
    prop_oneof![
        4 => (numbers(), values(127), edge(), channel()).prop_map(
            |(notes, velocity, edge, channel)| Trigger::Note { notes, velocity, edge, channel }
        ),
        2 => (numbers(), values(127), channel()).prop_map(|(controllers, value, channel)| {
            Trigger::ControlChange { controllers, value, channel }
        }),
        1 => (values(127), channel())
            .prop_map(|(value, channel)| Trigger::Aftertouch { value, channel }),
        1 => (numbers(), values(127), channel())
            .prop_map(|(notes, value, channel)| Trigger::PolyAftertouch { notes, value, channel }),
        1 => (values(16_383), channel())
            .prop_map(|(value, channel)| Trigger::PitchBend { value, channel }),
        1 => (numbers(), channel())
            .prop_map(|(programs, channel)| Trigger::ProgramChange { programs, channel }),
        1 => sysex_pattern().prop_map(|pattern| Trigger::SysEx { pattern }),
        1 => channel().prop_map(|channel| Trigger::MidiAny { channel }),
        1 => (select(&ADDRESSES[..5]), arg_test())
            .prop_map(|(address, arg)| Trigger::Osc { address: address.into(), arg }),
        1 => (select(&PATTERNS[..]), arg_test()).prop_map(|(pattern, arg)| Trigger::OscPattern {
            pattern: OscPattern::parse(pattern).expect("a pattern"),
            arg,
        }),
        1 => (128u8..=144, 0u8..4, edge()).prop_map(|(first, more, edge)| Trigger::GamepadButton {
            buttons: NumberRange { first, last: (first + more).min(144) },
            edge,
        }),
        1 => (128u8..=131, select(vec![Push::Negative, Push::Positive, Push::Any]), 0.0f32..1.0).prop_map(
            |(stick, push, dead_zone)| Trigger::GamepadStick {
                sticks: NumberRange::one(stick),
                push,
                dead_zone,
                readings: Readings::Each,
            }
        ),
        1 => (132u8..=133, 0.0f32..1.0).prop_map(|(first, threshold)| Trigger::GamepadTrigger {
            triggers: NumberRange { first, last: 133 },
            threshold,
            readings: Readings::Each,
        }),
        1 => (0u16..2, 1u16..4, 0u16..4, values(255)).prop_map(|(universe, first, more, value)| Trigger::ArtNet {
            universe,
            channels: DmxRange { first, last: first + more },
            value,
        }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let c = || select(vec![0u8, 1, 2, 15]);
    let d = || 0u8..128;
    let osc_arg = prop_oneof![
        (-2.0f32..2.0).prop_map(OscArg::Float),
        (-1..3).prop_map(OscArg::Int),
        any::<bool>().prop_map(OscArg::Bool),
        Just(OscArg::Nil),
    ];
    let midi = prop_oneof![
        4 => (c(), number(), 1u8..128)
            .prop_map(|(channel, note, velocity)| MidiMessage::NoteOn { channel, note, velocity }),
        2 => (c(), number(), d())
            .prop_map(|(channel, note, velocity)| MidiMessage::NoteOff { channel, note, velocity }),
        2 => (c(), number(), d()).prop_map(|(channel, controller, value)| {
            MidiMessage::ControlChange { channel, controller, value }
        }),
        1 => (c(), number(), d()).prop_map(|(channel, note, pressure)| {
            MidiMessage::PolyAftertouch { channel, note, pressure }
        }),
        1 => (c(), number())
            .prop_map(|(channel, program)| MidiMessage::ProgramChange { channel, program }),
        1 => (c(), d()).prop_map(|(channel, pressure)| MidiMessage::Aftertouch { channel, pressure }),
        1 => (c(), 0u16..16_384).prop_map(|(channel, value)| MidiMessage::PitchBend { channel, value }),
        1 => select(vec![&[0xF0, 0xF7][..], &[0xF0, 0x7E, 0x10, 0x06, 0xF7], &[0xF0, 0x00, 0x20, 0xF7], &[]])
            .prop_map(|bytes| MidiMessage::SysEx(bytes.into())),
        1 => select(vec![MidiMessage::Clock, MidiMessage::SongSelect(3), MidiMessage::TimeCode(1)]),
    ];
    let osc = (select(&ADDRESSES[..]), proptest::collection::vec(osc_arg, 0..3))
        .prop_map(|(address, args)| Event::from(OscMessage { address: address.into(), args }));
    let gamepad = prop_oneof![
        (128u8..=144, any::<bool>()).prop_map(|(button, pressed)| GamepadEvent::Button { button, pressed }),
        (128u8..=131, -1.0f32..=1.0).prop_map(|(stick, value)| GamepadEvent::Stick { stick, value }),
        (132u8..=133, 0.0f32..=1.0).prop_map(|(trigger, value)| GamepadEvent::Trigger { trigger, value }),
    ];
    let artnet = (0u16..3, 1u16..8, any::<u8>()).prop_map(|(universe, channel, value)| ArtNetChange {
        universe,
        channel,
        value,
        previous: 0,
    });
    prop_oneof![
        5 => midi.prop_map(Event::Midi),
        1 => osc,
        1 => gamepad.prop_map(Event::Gamepad),
        1 => artnet.prop_map(Event::ArtNet)
    ]
}

fn source() -> impl Strategy<Value = RuleSource<usize>> {
    let scope = select(vec![None, Some(0), Some(1), Some(2)]).prop_map(|mode| match mode {
        None => Scope::Global,
        Some(mode) => Scope::Mode(MODES[mode].into()),
    });
    let device = select(vec![None, None, Some(DEVICES[0]), Some(DEVICES[1]), Some(DEVICES[2])]);
    let condition = select(vec![None, None, None, Some(Condition::Always), Some(Condition::Never)]);
    let rule = (scope, device, trigger(), -1..2, proptest::bool::weighted(0.1), condition);
    proptest::collection::vec(rule, 0..40).prop_map(|rules| RuleSource {
        modes: MODES.map(Into::into).to_vec(),
        rules: rules
            .into_iter()
            .enumerate()
            .map(|(action, (scope, device, trigger, priority, consume, condition))| RuleSpec {
                condition,
                scope,
                device: device.map(Into::into),
                priority,
                consume,
                ..RuleSpec::new(trigger, action)
            })
            .collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_index_answers_as_every_rule_in_turn_would(
        source in source(),
        events in proptest::collection::vec((0u16..4, 0usize..4, event()), 1..40),
    ) {
        let set = compile(source.clone()).expect("valid rules");
        let (facts, held) = (Facts::unknown(), Held::new());
        let moment = Moment { at: 0, mode: None, facts: &facts, held: &held };
        for (mode, device, event) in events {
            let mode = if mode == 3 { ModeIx::NONE } else { ModeIx(mode) };
            let device = DeviceId::new(DEVICES[device]);
            let found: Vec<_> = set
                .matches_at(mode, &device, &event, &moment)
                .map(|found| (found.rule.action, found.position))
                .collect();
            prop_assert_eq!(found, ask_everyone(&source, mode, &device, &event), "{}", event);
        }
    }
}

#[test]
fn a_hundred_thousand_rules_answer_as_well() {
    let modes = (0..10).map(|n| format!("Mode {n}")).collect();
    let mut source = RuleSource { modes, rules: Vec::new() };
    for n in 0..100_000_usize {
        let channel = (n / 128 % 17) as u8;
        let trigger = Trigger::ControlChange {
            controllers: NumberRange::one((n % 128) as u8),
            value: ValueRange::SEVEN_BIT,
            channel: (channel < 16).then_some(channel),
        };
        source.rules.push(RuleSpec {
            scope: Scope::Mode(format!("Mode {}", n % 7)),
            device: (n % 3 > 0).then(|| format!("device {}", n % 11)),
            ..RuleSpec::new(trigger, n)
        });
    }
    let set = compile(source.clone()).expect("valid rules");
    for n in 0..200_u32 {
        let (mode, device) = (ModeIx((n % 7) as u16), DeviceId::new(&format!("device {}", n % 11)));
        let (channel, controller) = ((n % 16) as u8, (n * 37 % 128) as u8);
        let event = MidiMessage::ControlChange { channel, controller, value: 64 }.into();
        let found: Vec<_> =
            set.matches(mode, &device, &event).map(|found| (found.rule.action, found.position)).collect();
        assert_eq!(found, ask_everyone(&source, mode, &device, &event), "{n}");
    }
}
