//! Sticks and triggers that come to rest: no rule that follows one is left with another value than 0.

use std::collections::HashMap;
use std::sync::Arc;

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;

type Action = Option<Arc<str>>;

/// The last reading that each rule got, and how often it got 0 twice in a row.
#[derive(Default)]
struct Last {
    values: HashMap<RuleId, f64>,
    repeated: usize,
    all: Vec<(RuleId, f64, u16)>,
}

impl Sink<Action> for Last {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        let value = firing.event.value();
        let before = self.values.insert(firing.rule.id, value);
        self.repeated += usize::from(before == Some(0.0) && value == 0.0);
        self.all.push((firing.rule.id, value, firing.position));
        firing.rule.action.clone()
    }
}

fn stick(push: Push, dead_zone: f32) -> Trigger {
    Trigger::GamepadStick { sticks: NumberRange { first: 128, last: 129 }, push, dead_zone, readings: Readings::Each }
}

fn pull(threshold: f32) -> Trigger {
    Trigger::GamepadTrigger { triggers: NumberRange::one(133), threshold, readings: Readings::Each }
}

fn engine(rules: Vec<RuleSpec<Action>>) -> (Engine<Action>, Arc<RuleSetHandle<Action>>) {
    let rules = Arc::new(RuleSetHandle::new(set(rules)));
    (Engine::new(Arc::clone(&rules), Arc::default()), rules)
}

fn set(rules: Vec<RuleSpec<Action>>) -> RuleSet<Action> {
    compile(RuleSource { modes: vec!["Play".into(), "Live".into()], rules }).expect("valid rules")
}

fn moved(number: u16, value: f32) -> DeviceEvent<Event> {
    let event = match number {
        132.. => HidEvent::Trigger { trigger: number, value: value.abs() },
        _ => HidEvent::Stick { stick: number, value },
    };
    DeviceEvent { device: DeviceId::new("pad"), event: event.into() }
}

#[test]
fn the_return_is_a_reading_of_0_once_and_keeps_the_position() {
    let (mut engine, _) = engine(vec![RuleSpec::new(stick(Push::Any, 0.2), None), RuleSpec::new(pull(0.1), None)]);
    let mut last = Last::default();
    for (number, value) in [(129, 0.8), (129, 0.1), (129, 0.0), (129, 0.05), (133, 0.5), (133, 0.0), (133, 0.0)] {
        engine.event(0, moved(number, value), &mut last);
    }
    let fired: Vec<_> = last.all.iter().map(|&(rule, value, position)| (rule.0, value as f32, position)).collect();
    assert_eq!(fired, [(0, 0.8, 1), (0, 0.0, 1), (1, 0.5, 0), (1, 0.0, 0)]);
    assert!(engine.is_idle());
}

#[test]
fn a_device_that_goes_away_has_come_to_rest() {
    let (mut engine, _) = engine(vec![RuleSpec::new(stick(Push::Positive, 0.2), None)]);
    let mut last = Last::default();
    engine.event(0, moved(128, 0.8), &mut last);
    engine.event(0, moved(129, 0.9), &mut last);
    engine.forget(&DeviceId::new("pad"), &mut last);
    assert_eq!(last.all.iter().filter(|(_, value, _)| *value == 0.0).count(), 2);
    assert!(engine.is_idle());
}

#[test]
fn rules_that_come_while_a_stick_is_out_hear_of_its_rest() {
    let (mut engine, rules) = engine(vec![RuleSpec::new(stick(Push::Any, 0.2), None)]);
    let mut last = Last::default();
    engine.event(0, moved(128, 0.8), &mut last);
    rules.swap(set(vec![RuleSpec::new(stick(Push::Any, 0.2), None), RuleSpec::new(stick(Push::Negative, 0.2), None)]));
    engine.event(1, moved(128, 0.0), &mut last);
    let fired: Vec<_> = last.all.iter().map(|&(rule, value, _)| (rule.0, value as f32)).collect();
    assert_eq!(fired, [(0, 0.8), (0, 0.0)], "not the rule that the stick was never out for");
    assert!(engine.is_idle());
}

/// What happens to the pad.
#[derive(Clone, Debug)]
enum Step {
    Moved(u16, f32),
    Mode(&'static str),
    Gone,
}

fn rule() -> impl Strategy<Value = RuleSpec<Action>> {
    let push = select(vec![Push::Any, Push::Positive, Push::Negative]);
    let zone = select(vec![0.0_f32, 0.1, 0.2, 0.5, 1.0]);
    let trigger = prop_oneof![
        4 => (push, zone.clone()).prop_map(|(push, zone)| stick(push, zone)),
        1 => zone.prop_map(pull),
    ];
    let scope = select(vec![None, Some("Play"), Some("Live")]);
    let mode = select(vec![None, None, None, Some("Live"), Some("Play")]);
    (trigger, scope, mode, -1..2, proptest::bool::weighted(0.2)).prop_map(
        |(trigger, scope, mode, priority, consume)| RuleSpec {
            scope: scope.map_or(Scope::Global, |mode| Scope::Mode(mode.into())),
            priority,
            consume,
            ..RuleSpec::new(trigger, mode.map(Arc::from))
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let value = select(vec![-1.0_f32, -0.6, -0.15, 0.0, 0.05, 0.15, 0.3, 0.6, 1.0]);
    prop_oneof![
        8 => (select(vec![128_u16, 129, 133]), value).prop_map(|(number, value)| Step::Moved(number, value)),
        2 => select(vec!["Play", "Live"]).prop_map(Step::Mode),
        1 => Just(Step::Gone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn nothing_is_left_moving_whatever_happens(
        rules in proptest::collection::vec(rule(), 1..8),
        steps in proptest::collection::vec(step(), 0..40),
        unplugged in any::<bool>(),
    ) {
        let (mut engine, _) = engine(rules);
        let mut last = Last::default();
        for (at, step) in (0..).zip(&steps) {
            match step {
                Step::Moved(number, value) => {
                    engine.event(at, moved(*number, *value), &mut last);
                }
                Step::Mode(mode) => engine.set_mode(mode, &mut last).expect("a mode"),
                Step::Gone => engine.forget(&DeviceId::new("pad"), &mut last),
            }
        }
        if unplugged {
            engine.forget(&DeviceId::new("pad"), &mut last);
        } else {
            for number in [128, 129, 133] {
                engine.event(99, moved(number, 0.0), &mut last);
            }
        }
        // One rule may follow two axes, so that its last reading is of either: both are at rest.
        prop_assert!(last.values.values().all(|value| *value == 0.0), "{:?}", last.all);
        prop_assert!(engine.is_idle());
    }
}
