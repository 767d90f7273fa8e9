//! The rule compiler: it says everything that is wrong; and what it compiles answers as every rule in turn
//! would, and the same each time.

use conductor_engine::{
    Condition, Environment, EnvironmentHandle, EvalContext, InputState, RuleSetHandle, RuleSource, Scope, compile,
};
use conductor_event::{DeviceId, Event, ModeIx};

use crate::bytes::Bytes;
use crate::rules_from::{DEVICES, MODES, Sense, event, rules};

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let sense = bytes.pick(&[Sense::All, Sense::All, Sense::Some]);
    let source = rules(&mut bytes, 24, sense);
    let set = match compile(source.clone()) {
        Ok(set) => set,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.iter().all(|error| !error.to_string().is_empty()));
            for error in errors.iter().filter(|error| error.rule.is_some()) {
                assert_eq!(
                    error.rule.and_then(|rule| source.rules.get(rule)).map(|rule| rule.place),
                    Some(error.place)
                );
            }
            return;
        }
    };
    assert_eq!(set.rules().len(), source.rules.len());
    assert_eq!(compile(source.clone()).map(|again| again.fingerprint()), Ok(set.fingerprint()));
    let (environment, mut held) = (Environment::unknown(), InputState::new());
    let handle = std::sync::Arc::new(RuleSetHandle::new(set));
    let engine =
        conductor_engine::Engine::new(std::sync::Arc::clone(&handle), std::sync::Arc::new(EnvironmentHandle::new()));
    let set = handle.load();
    for _ in 0..64 {
        if bytes.is_empty() {
            break;
        }
        let mode = bytes.below(4);
        let device = DeviceId::new(bytes.pick(&DEVICES));
        let event = event(&mut bytes);
        let _ = held.take(&device, &event);
        let name = MODES.get(usize::from(mode)).copied();
        let context = EvalContext { at: 0, mode: name, environment: &environment, held: &held };
        let mode = name.map_or(ModeIx::NONE, |_| ModeIx(mode.into()));
        let found: Vec<_> =
            set.matches_at(mode, &device, &event, &context).map(|found| (found.rule.place, found.position)).collect();
        assert_eq!(found, ask_everyone(&source, name, &device, &event, &context), "{event}");
        let _ = engine.explain(0, &device, &event);
    }
}

/// What a match means, said plainly: sort, ask everyone, stop after one that consumes.
fn ask_everyone(
    source: &RuleSource<Option<&'static str>>,
    mode: Option<&str>,
    device: &DeviceId,
    event: &Event,
    context: &EvalContext<'_>,
) -> Vec<(conductor_engine::Place, u16)> {
    let mut rules: Vec<_> = source.rules.iter().collect();
    rules.sort_by_key(|rule| (-rule.priority, rule.device.is_none()));
    let mut found = Vec::new();
    for rule in rules {
        let awake = match &rule.scope {
            Scope::Global => true,
            Scope::Mode(name) => mode == Some(name),
        };
        let listens = rule.device.as_deref().is_none_or(|name| name == device.as_str());
        let holds = |condition: &Condition| condition.holds(context);
        if let (true, true, Some(position)) = (awake, listens, rule.trigger.matches(event))
            && rule.condition.as_ref().is_none_or(holds)
        {
            found.push((rule.place, position));
            if rule.consume {
                break;
            }
        }
    }
    found
}
