//! ENG-10: whatever is pressed, released and unplugged, in whatever order, a mode that is active for a while ends.

use std::sync::Arc;

use conductor_engine::*;
use proptest::prelude::*;
use proptest::sample::select;

type Action = Option<Arc<str>>;

const MODES: [&str; 4] = ["Play", "A", "B", "C"];
const DEVICES: [&str; 2] = ["pads", "keys"];
const KEYS: u8 = 4;

struct ActionNames(Option<Arc<str>>);

impl Sink<Action> for ActionNames {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        firing.rule.action.clone()
    }

    fn mode(&mut self, name: &Arc<str>, _: ModeIx) {
        self.0 = Some(Arc::clone(name));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Key(&'static str, u8, bool),
    AllOff(&'static str),
    Gone(&'static str),
    Reload(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (select(DEVICES.to_vec()), 0..KEYS, any::<bool>()).prop_map(|(device, key, down)| Step::Key(device, key, down)),
        1 => select(DEVICES.to_vec()).prop_map(Step::AllOff),
        1 => select(DEVICES.to_vec()).prop_map(Step::Gone),
        1 => (1..=MODES.len()).prop_map(Step::Reload),
    ];
    proptest::collection::vec(step, 0..60)
}

/// Rules that ask for a mode for a while.
fn rules() -> impl Strategy<Value = Vec<RuleSpec<Action>>> {
    let keys = || (0..u16::from(KEYS)).prop_map(NumberRange::one);
    let velocity = ValueRange::SEVEN_BIT;
    let trigger = prop_oneof![
        3 => keys().prop_map(move |notes| Trigger::Note { notes, velocity, edge: Edge::Press, channel: None }),
        1 => keys().prop_map(move |notes| Trigger::Note { notes, velocity, edge: Edge::Both, channel: None }),
        1 => keys().prop_map(move |keys| Trigger::LongPress { keys, velocity, channel: None, after: 2_000_000 }),
        1 => keys().prop_map(move |keys| Trigger::DoubleTap { keys, velocity, channel: None, taps: 2, within: 90_000_000 }),
        1 => (0..KEYS, 0..KEYS).prop_map(|(a, b)| Trigger::Sequence { keys: vec![a.into(), b.into()], channel: None, within: 90_000_000 }),
        1 => (0..KEYS - 1).prop_map(|a| Trigger::Chord { keys: vec![a.into(), (a + 1).into()], channel: None, within: 90_000_000 }),
    ];
    let lasts = select(vec![Lasts::WhileHeld, Lasts::WhileHeld, Lasts::OnePress]);
    let rule = (trigger, lasts, select(MODES.to_vec()), select(vec![None, Some("Play"), Some("A")]));
    let rule = rule.prop_map(|(trigger, lasts, to, scope)| RuleSpec {
        lasts,
        scope: scope.map_or(Scope::Global, |mode| Scope::Mode(mode.into())),
        ..RuleSpec::new(trigger, Some(to.into()))
    });
    proptest::collection::vec(rule, 1..8)
}

fn set(rules: &[RuleSpec<Action>], modes: usize) -> RuleSet<Action> {
    let modes: Vec<String> = MODES[..modes].iter().map(|&mode| mode.into()).collect();
    let is_there = |rule: &&RuleSpec<Action>| match &rule.scope {
        Scope::Mode(mode) => modes.contains(mode),
        Scope::Global => true,
    };
    let rules = rules.iter().filter(is_there).cloned().collect();
    compile(RuleSource { modes, rules }).expect("rules that are right")
}

fn note(device: &str, key: u8, down: bool) -> DeviceEvent<Event> {
    let message = match down {
        true => MidiMessage::NoteOn { channel: 0, note: key, velocity: 64 },
        false => MidiMessage::NoteOff { channel: 0, note: key, velocity: 0 },
    };
    DeviceEvent { device: DeviceId::new(device), event: message.into() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn no_mode_stays_that_nothing_holds(rules in rules(), steps in steps(), unplugs in any::<bool>()) {
        let handle = Arc::new(RuleSetHandle::new(set(&rules, MODES.len())));
        let mut engine = Engine::new(Arc::clone(&handle), Arc::default());
        let mut told = ActionNames(None);
        let mut now = 0;
        // A key that no rule waits for: the first event, and the press that a mode for one press waits for.
        engine.event(now, note("pads", 100, true), &mut told);
        for step in steps {
            now += 40_000_000;
            match step {
                Step::Key(device, key, down) => {
                    engine.event(now, note(device, key, down), &mut told);
                }
                Step::AllOff(device) => {
                    let event = MidiMessage::ControlChange { channel: 0, controller: 123, value: 0 }.into();
                    engine.event(now, DeviceEvent { device: DeviceId::new(device), event }, &mut told);
                }
                Step::Gone(device) => engine.forget(&DeviceId::new(device), &mut told),
                Step::Reload(modes) => {
                    handle.swap(set(&rules, modes));
                    // The mode is another then without being told, as everything is.
                    told.0 = None;
                }
            }
        }
        now += 1_000_000_000;
        engine.advance(now, &mut told);
        for device in DEVICES {
            if unplugs {
                engine.forget(&DeviceId::new(device), &mut told);
            }
            for key in 0..KEYS {
                engine.event(now, note(device, key, false), &mut told);
            }
        }
        engine.event(now, note("pads", 100, true), &mut told);
        engine.event(now, note("pads", 100, false), &mut told);
        engine.mode_index();
        prop_assert_eq!(engine.mode(), Some("Play"), "nothing chose another mode for good");
        prop_assert_eq!(engine.chosen_mode().map(|mode| &**mode), engine.mode());
        if let Some(told) = told.0 {
            prop_assert_eq!(&*told, "Play", "and this was said");
        }
    }
}
