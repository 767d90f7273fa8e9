//! The same source always compiles to the same set (ENG-7).

use conductor_engine::*;

fn source() -> RuleSource<String> {
    let mut rules = Vec::new();
    for n in 0..200_u16 {
        let channel = (n % 3 == 0).then_some((n % 16) as u8);
        let trigger = match n % 6 {
            0 => Trigger::Note {
                notes: NumberRange { first: n % 60, last: n % 60 + 20 },
                velocity: ValueRange { min: 1, max: 100 },
                edge: Edge::Both,
                channel,
            },
            1 => {
                Trigger::ControlChange { controllers: NumberRange::one(n % 128), value: ValueRange::SEVEN_BIT, channel }
            }
            2 => Trigger::Osc { address: format!("/fader/{}", n % 9), arg: None },
            3 => Trigger::OscPattern {
                pattern: OscPattern::parse("/fader/[0-4]").expect("a pattern").into(),
                arg: Some(OscArgTest { index: 0, min: 0.25, max: 0.75 }),
            },
            4 => Trigger::SysEx { pattern: "F0 7E ?? 06".parse().expect("a pattern") },
            _ => Trigger::MidiAny { channel },
        };
        rules.push(RuleSpec {
            scope: if n % 4 == 0 { Scope::Global } else { Scope::Mode(format!("Mode {}", n % 4)) },
            device: (n % 5 == 0).then(|| format!("device {}", n % 7)),
            priority: i32::from(n % 3) - 1,
            consume: n % 50 == 0,
            name: Some(format!("rule {n}")),
            place: Place::bytes(usize::from(n) * 100..usize::from(n) * 100 + 80),
            ..RuleSpec::new(trigger, format!("action {n}"))
        });
    }
    RuleSource { modes: (1..4).map(|n| format!("Mode {n}")).collect(), rules }
}

fn compiled(change: impl FnOnce(&mut RuleSource<String>)) -> RuleSet<String> {
    let mut source = source();
    change(&mut source);
    compile(source).expect("valid rules")
}

/// Everything the set says to a fixed run of events.
fn answers(set: &RuleSet<String>) -> Vec<(RuleId, u16)> {
    let mut answers = Vec::new();
    for n in 0..128_u8 {
        let device = DeviceId::new(&format!("device {}", n % 7));
        let fader = OscMessage::new(format!("/fader/{}", n % 9), vec![OscArg::Float(f32::from(n) / 127.0)]);
        let events: [Event; 4] = [
            MidiMessage::NoteOn { channel: n % 16, note: n, velocity: 64 }.into(),
            MidiMessage::ControlChange { channel: n % 16, controller: n, value: 1 }.into(),
            MidiMessage::SysEx([0xF0, 0x7E, n, 0x06, 0xF7].into()).into(),
            fader.into(),
        ];
        for event in events {
            let found = set.matches(ModeIx(u16::from(n % 3)), &device, &event);
            answers.extend(found.map(|found| (found.rule.id, found.position)));
        }
    }
    answers
}

#[test]
fn compiling_twice_gives_the_same_set() {
    let (first, second) = (compiled(|_| {}), compiled(|_| {}));
    assert_eq!(first, second);
    assert_eq!(first.fingerprint(), second.fingerprint());
    assert_eq!(answers(&first), answers(&second));
    assert!(answers(&first).len() > 1000, "there is something to compare");
}

/// The number is not important, but it must not depend on the run, the platform or the build.
#[test]
fn the_fingerprint_is_the_same_everywhere() {
    assert_eq!(format!("{:016x}", compiled(|_| {}).fingerprint()), "c27fc8f4e947e81c");
}

#[test]
fn the_fingerprint_sees_every_change_of_meaning_and_nothing_else() {
    let original = compiled(|_| {}).fingerprint();
    type Change = fn(&mut RuleSource<String>);
    let changes: [(&str, Change); 8] = [
        ("mode name", |source| source.modes.push("Mode 4".into())),
        ("order", |source| source.rules.swap(1, 7)),
        ("scope", |source| source.rules[1].scope = Scope::Global),
        ("device", |source| source.rules[1].device = Some("device 1".into())),
        ("trigger", |source| source.rules[1].trigger = Trigger::MidiAny { channel: Some(4) }),
        ("priority", |source| source.rules[1].priority = 7),
        ("consume", |source| source.rules[1].consume = true),
        ("name", |source| source.rules[1].name = None),
    ];
    for (what, change) in changes {
        assert_ne!(compiled(change).fingerprint(), original, "{what}");
    }
    let moved = compiled(|source| source.rules[1].place = Place::NONE);
    assert_eq!(moved.fingerprint(), original, "place");
    let other_action = compiled(|source| source.rules[1].action.clear());
    assert_eq!(other_action.fingerprint(), original, "action");
    assert_ne!(other_action, compiled(|_| {}), "equality does see actions");
}

#[test]
fn errors_come_in_the_same_order_each_time() {
    let broken = || {
        let mut source = source();
        for rule in &mut source.rules {
            rule.trigger = Trigger::MidiAny { channel: Some(16) };
            rule.scope = Scope::Mode("Nowhere".into());
        }
        compile(source).expect_err("broken rules")
    };
    let errors = broken();
    assert_eq!(errors.len(), 400);
    assert_eq!(errors, broken());
    assert!(errors.is_sorted_by_key(|error| error.rule));
}
