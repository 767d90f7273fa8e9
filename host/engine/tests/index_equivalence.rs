//! The index against the definition: for any rules and any event, a match through the index gives
//! what asking every rule in turn would give (ENG-7).

mod small_world;

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;
use small_world::{event, trigger};

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

const MODES: [&str; 3] = ["Play", "Mix", "Edit"];
const DEVICES: [&str; 4] = ["pads", "keys", "keys #2", "fader box"];

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
        let (environment, held) = (Environment::unknown(), InputState::new());
        let moment = EvalContext { at: 0, mode: None, environment: &environment, held: &held };
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
            controllers: NumberRange::one((n % 128) as u16),
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
