//! What compiles, in which order, and what is refused.

use conductor_local_time::{Days, TimeRange};
use conductor_message_pattern::{OscPattern, SysExPattern};

use super::*;
use crate::encoder::Encoding;
use crate::trigger::{Edge, Push, Readings, Rotation};

fn note(first: u16, last: u16, min: u16, max: u16, channel: Option<u8>) -> Trigger {
    Trigger::Note { notes: NumberRange { first, last }, velocity: ValueRange { min, max }, edge: Edge::Press, channel }
}

fn rule(trigger: Trigger) -> RuleSpec<()> {
    RuleSpec::new(trigger, ())
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let mut first = rule(note(60, 50, 100, 20, Some(16)));
    first.place = Place::bytes(10..40);
    first.name = Some("Boom".into());
    first.scope = Scope::Mode("Live".into());
    let mut second =
        rule(Trigger::Osc { address: "fader".into(), arg: Some(OscArgTest { index: 0, min: f64::NAN, max: 1.0 }) });
    second.place = Place::bytes(50..80);
    second.device = Some(String::new());
    let source = RuleSource { modes: vec!["A".into(), "A".into(), "".into()], rules: vec![first, second] };

    let errors = compile(source).unwrap_err();
    let told: Vec<_> = errors.iter().map(|e| (e.place.range().map(|r| r.start), e.to_string())).collect();
    assert_eq!(
        told.iter().map(|(at, text)| (*at, text.as_str())).collect::<Vec<_>>(),
        [
            (None, r#"there are two modes called "A"; give each its own name"#),
            (None, "a mode needs a name"),
            (Some(10), r#"rule "Boom": there is no mode called "Live"; there are "A", "A", """#),
            (
                Some(10),
                r#"rule "Boom": notes 60 to 50 is not a range; write two numbers from 0 to 127, the lower first"#
            ),
            (
                Some(10),
                r#"rule "Boom": velocity 100 to 20 is not a range; write two numbers from 0 to 127, the lower first"#
            ),
            (Some(10), r#"rule "Boom": channel 16 does not exist; channels are 0 to 15"#),
            (Some(50), "rule 2: the device has no name; leave the filter out to listen to every device"),
            (Some(50), r#"rule 2: OSC address "fader": an OSC address starts with '/', as in /mixer/1/fader"#),
            (Some(50), "rule 2: argument 0: NaN to 1 is not a range; write two numbers, the lower first"),
        ]
    );
}

#[test]
fn every_trigger_is_checked() {
    let all = NumberRange::ALL;
    let too_far = NumberRange { first: 0, last: 128 };
    let (seven, too_much) = (ValueRange::SEVEN_BIT, ValueRange { min: 0, max: 128 });
    let channel = Some(99);
    let readings = Readings::Each;
    let press = |keys, velocity, channel, after| Trigger::LongPress { keys, velocity, channel, after };
    let tap = |keys, within| Trigger::DoubleTap { keys, velocity: seven, channel: None, taps: 2, within };
    let chord = |keys: &[u16], within| Trigger::Chord { keys: keys.into(), channel: None, within };
    let bad_arg = Some(OscArgTest { index: 0, min: 1.0, max: 0.0 });
    let wrong = [
        note(0, 128, 0, 127, None),
        note(0, 0, 0, 128, None),
        Trigger::ControlChange { controllers: too_far, value: seven, channel: None },
        Trigger::ControlChange { controllers: all, value: too_much, channel: None },
        Trigger::ControlChange { controllers: all, value: seven, channel },
        Trigger::Aftertouch { value: too_much, channel: None },
        Trigger::Aftertouch { value: seven, channel },
        Trigger::PolyAftertouch { notes: too_far, value: seven, channel: None },
        Trigger::PolyAftertouch { notes: all, value: too_much, channel: None },
        Trigger::PolyAftertouch { notes: all, value: seven, channel },
        Trigger::PitchBend { value: ValueRange { min: 0, max: 16_384 }, channel: None },
        Trigger::PitchBend { value: seven, channel },
        Trigger::ProgramChange { programs: too_far, channel: None },
        Trigger::ProgramChange { programs: all, channel },
        Trigger::SysEx { pattern: SysExPattern::new([]) },
        Trigger::SysEx { pattern: SysExPattern::new([(0x7E, 0xFF)]) },
        Trigger::MidiAny { channel },
        Trigger::Osc { address: "/a b".into(), arg: None },
        Trigger::Osc { address: "/a".into(), arg: bad_arg },
        Trigger::OscPattern { pattern: OscPattern::parse("/*").unwrap().into(), arg: bad_arg },
        Trigger::Button { buttons: NumberRange { first: 127, last: 130 }, edge: Edge::Press },
        Trigger::Button { buttons: NumberRange { first: 140, last: 257 }, edge: Edge::Press },
        Trigger::Button { buttons: NumberRange { first: 257, last: 1024 }, edge: Edge::Press },
        Trigger::Button { buttons: NumberRange::one(256), edge: Edge::Press },
        Trigger::GamepadStick { sticks: NumberRange::one(132), push: Push::Any, dead_zone: 0.1, readings },
        Trigger::GamepadStick { sticks: NumberRange::one(128), push: Push::Any, dead_zone: f32::NAN, readings },
        Trigger::GamepadTrigger { triggers: NumberRange::one(132), threshold: 1.5, readings },
        Trigger::ArtNet { universe: 32_768, channels: DmxRange { first: 1, last: 1 }, value: seven },
        Trigger::ArtNet { universe: 0, channels: DmxRange { first: 0, last: 1 }, value: seven },
        Trigger::ArtNet { universe: 0, channels: DmxRange { first: 1, last: 513 }, value: seven },
        Trigger::ArtNet {
            universe: 0,
            channels: DmxRange { first: 1, last: 1 },
            value: ValueRange { min: 0, max: 256 },
        },
        press(NumberRange { first: 120, last: 130 }, seven, None, 1),
        press(NumberRange { first: 140, last: 145 }, seven, None, 1),
        press(all, too_much, None, 1),
        press(all, seven, channel, 1),
        press(all, seven, None, 0),
        tap(too_far, 1),
        tap(all, MAX_GESTURE + 1),
        chord(&[1], 1),
        chord(&[1, 1], 1),
        chord(&[2, 1], 1),
        chord(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 1),
        chord(&[100, 130], 1),
        chord(&[136, 257], 1),
        chord(&[1, 2], 0),
        Trigger::Turn { controllers: too_far, encoding: Encoding::IncDec, way: Rotation::Any, channel: None },
        Trigger::Turn { controllers: all, encoding: Encoding::IncDec, way: Rotation::Any, channel },
        Trigger::FineControl { controllers: NumberRange::one(32), value: seven, channel: None, fine_first: false },
        Trigger::FineControl { controllers: NumberRange::one(31), value: seven, channel, fine_first: false },
        Trigger::Parameter { registered: true, parameter: 16_384, value: seven, channel: None },
        Trigger::Parameter { registered: true, parameter: 0, value: seven, channel },
    ];
    for trigger in wrong {
        let source = RuleSource { modes: vec![], rules: vec![rule(trigger.clone())] };
        let errors = compile(source).expect_err(&format!("{trigger:?}"));
        assert_eq!(errors.len(), 1, "{trigger:?}: {errors:?}");
    }
}

#[test]
fn only_what_can_wait_may() {
    let both =
        Trigger::Note { notes: NumberRange::one(1), velocity: ValueRange::SEVEN_BIT, edge: Edge::Both, channel: None };
    for (trigger, may) in [(note(1, 1, 0, 127, None), true), (both, false), (Trigger::MidiAny { channel: None }, false)]
    {
        let spec = RuleSpec { defer: true, ..rule(trigger) };
        assert_eq!(compile(RuleSource { modes: vec![], rules: vec![spec] }).is_ok(), may);
    }
}

#[test]
fn every_condition_is_checked_wherever_it_stands() {
    let held = |notes, channel, device: Option<&str>| Condition::NoteHeld {
        notes,
        channel,
        device: device.map(DeviceId::new),
    };
    let deep = (0..Condition::MAX_DEPTH).fold(Condition::Always, |inner, _| Condition::Not(Box::new(inner)));
    let wrong = [
        Condition::ModeIs("Live".into()),
        Condition::TimeRange(TimeRange { from: 86_400, to: 0 }),
        Condition::DayOfWeek(Days::default()),
        held(NumberRange { first: 2, last: 1 }, None, None),
        held(NumberRange::one(1), Some(16), None),
        held(NumberRange::one(1), None, Some("")),
        Condition::CcValueInRange { controller: 128, value: ValueRange::SEVEN_BIT, channel: None, device: None },
        deep,
    ];
    for condition in wrong {
        let nested = match &condition {
            Condition::Not(_) => condition.clone(),
            _ => Condition::Or(vec![Condition::Always, Condition::Not(Box::new(condition.clone()))]),
        };
        let mut spec = rule(note(1, 1, 0, 127, None));
        spec.condition = Some(nested.clone());
        let errors = compile(RuleSource { modes: vec!["Play".into()], rules: vec![spec] }).unwrap_err();
        assert_eq!(errors.len(), 1, "{condition}: {errors:?}");
        assert_eq!(check_standalone_condition(&nested, &["Play".into()]).len(), 1);
        let choices = Choices { conditions: vec![nested.clone()], holds: false };
        let spec = RuleSpec { choices, ..RuleSpec::new(Trigger::MidiAny { channel: None }, ()) };
        assert_eq!(compile(RuleSource { modes: vec!["Play".into()], rules: vec![spec] }).unwrap_err().len(), 1);
    }
    assert_eq!(check_standalone_condition(&Condition::ModeIs("Play".into()), &["Play".into()]), []);
}

#[test]
fn order_is_priority_then_device_then_file() {
    let spec = |priority, device: Option<&str>, action| RuleSpec {
        priority,
        device: device.map(Into::into),
        ..RuleSpec::new(note(1, 1, 0, 127, None), action)
    };
    let source = RuleSource {
        modes: vec![],
        rules: vec![
            spec(0, None, "e"),
            spec(0, Some("pads"), "c"),
            spec(5, None, "b"),
            spec(0, Some("keys"), "d"),
            spec(-1, Some("pads"), "g"),
            spec(0, None, "f"),
            spec(5, Some("pads"), "a"),
        ],
    };
    let set = compile(source).unwrap();
    let order: String = set.rules().iter().map(|rule| rule.action).collect();
    assert_eq!(order, "abcdefg");
    assert!(set.rules().iter().enumerate().all(|(rank, rule)| rule.id.0 as usize == rank));
}

#[test]
fn too_many_modes_is_one_error() {
    let modes = (0..=ModeIx::MAX_MODES).map(|n| n.to_string()).collect();
    let errors = compile(RuleSource::<()> { modes, rules: vec![] }).unwrap_err();
    assert_eq!(errors.len(), 1);
}
