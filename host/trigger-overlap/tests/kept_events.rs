//! A rule that consumes keeps events from another only where that is known of their triggers: what plans say of programs that
//! are held back depends on it.

use std::sync::Arc;

use conductor_engine::*;
use conductor_trigger_overlap::Overlap as _;
use proptest::prelude::*;
use proptest::sample::select;

const MS: Nanos = 1_000_000;

/// When the rule with the action 2 has fired.
#[derive(Default)]
struct Second(Vec<Nanos>);

impl Sink<u8> for Second {
    fn fire(&mut self, firing: Firing<'_, u8>) -> Option<Arc<str>> {
        if firing.rule.action == 2 {
            self.0.push(firing.at);
        }
        None
    }

    fn record(&mut self, _: Record) {}
}

fn keys() -> impl Strategy<Value = NumberRange> {
    (0u16..4, 0u16..2).prop_map(|(first, more)| NumberRange { first, last: first + more })
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let edge = || select(vec![Edge::Press, Edge::Release, Edge::Both]);
    let channel = || select(vec![None, None, Some(0), Some(1)]);
    let time = || select(vec![20 * MS, 60 * MS]);
    let velocity = ValueRange::SEVEN_BIT;
    prop_oneof![
        4 => (keys(), edge(), channel())
            .prop_map(move |(notes, edge, channel)| Trigger::Note { notes, velocity, edge, channel }),
        2 => (keys(), channel(), time())
            .prop_map(move |(keys, channel, after)| Trigger::LongPress { keys, velocity, channel, after }),
        2 => (keys(), channel(), time()).prop_map(
            move |(keys, channel, within)| Trigger::DoubleTap { keys, velocity, channel, taps: 2, within }
        ),
        2 => (0u16..4, 0u16..4, channel(), time())
            .prop_map(|(one, two, channel, within)| Trigger::Sequence { keys: vec![one, two], channel, within }),
        2 => (0u16..4, 1u16..3, channel(), time())
            .prop_map(|(one, more, channel, within)| Trigger::Chord { keys: vec![one, one + more], channel, within }),
        2 => (select(vec![1u16, 6, 33, 38, 98, 99]), channel()).prop_map(move |(number, channel)| {
            Trigger::ControlChange { controllers: NumberRange::one(number), value: velocity, channel }
        }),
        1 => (select(vec![1u16, 6]), channel()).prop_map(|(number, channel)| Trigger::Turn {
            controllers: NumberRange::one(number), encoding: Encoding::TwosComplement, way: Rotation::Any, channel
        }),
        1 => channel().prop_map(|channel| Trigger::FineControl {
            controllers: NumberRange::one(1), value: ValueRange::FOURTEEN_BIT, channel, fine_first: false }),
        1 => channel().prop_map(|channel| Trigger::Parameter {
            registered: false, parameter: 129, value: ValueRange::FOURTEEN_BIT, channel
        }),
        1 => channel().prop_map(|channel| Trigger::MidiAny { channel }),
    ]
}

fn events() -> impl Strategy<Value = Vec<(Nanos, Event)>> {
    let pause = select(vec![0, MS, 10 * MS, 19 * MS, 30 * MS, 70 * MS]);
    let (channel, note) = (|| 0u8..2, || 0u8..5);
    let cc = |channel, controller, value| Event::from(MidiMessage::ControlChange { channel, controller, value });
    let one = prop_oneof![
        4 => (channel(), note()).prop_map(
            |(channel, note)| vec![MidiMessage::NoteOn { channel, note, velocity: 100 }.into()]
        ),
        4 => (channel(), note()).prop_map(
            |(channel, note)| vec![MidiMessage::NoteOff { channel, note, velocity: 0 }.into()]
        ),
        2 => (channel(), select(vec![1u8, 6, 33]), 0u8..128)
            .prop_map(move |(channel, number, value)| vec![cc(channel, number, value)]),
        // The parameter 129 as a device sends it.
        1 => (channel(), 0u8..128).prop_map(
            move |(at, value)| vec![cc(at, 99, 1), cc(at, 98, 1), cc(at, 6, value), cc(at, 38, value)]
        ),
    ];
    proptest::collection::vec((pause, one), 1..12).prop_map(|parts| {
        let each = parts.into_iter().flat_map(|(pause, events)| {
            events.into_iter().enumerate().map(move |(number, event)| (if number == 0 { pause } else { 0 }, event))
        });
        each.collect()
    })
}

/// When the second of these rules fires.
fn second(rules: Vec<RuleSpec<u8>>, events: &[(Nanos, Event)]) -> Vec<Nanos> {
    let set = compile(RuleSource { modes: vec!["Play".into()], rules }).expect("valid rules");
    let mut engine = Engine::new(Arc::new(RuleSetHandle::new(set)), Arc::default());
    let (mut now, mut fired) = (0, Second::default());
    for (pause, event) in events {
        now += pause;
        engine.event(now, DeviceEvent { device: DeviceId::new("pads"), event: event.clone() }, &mut fired);
    }
    engine.advance(now + 1000 * MS, &mut fired);
    fired.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6000))]

    #[test]
    fn what_a_rule_keeps_from_another_was_known(
        one in trigger(), other in trigger(), suppresses in any::<bool>(), events in events()
    ) {
        let first = RuleSpec { priority: 1, consume: true, swallows_release: suppresses, ..RuleSpec::new(one.clone(), 1) };
        let (alone, behind) = (
            second(vec![RuleSpec::new(other.clone(), 2)], &events),
            second(vec![first, RuleSpec::new(other.clone(), 2)], &events),
        );
        if behind.len() < alone.len() || alone.iter().any(|at| !behind.contains(at)) {
            prop_assert!(one.may_keep_from(suppresses, &other), "{alone:?}, then {behind:?}");
        }
    }
}
