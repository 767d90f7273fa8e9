//! For how long a mode is active that a mapping asks for.

use conductor_config::{self as config, Lasts, TriggerEvent};
use conductor_engine as engine;

/// For how long the mode of a mapping's action is active.
///
/// # Errors
/// Where the action says different things, or one that its trigger or its place does not allow.
pub(super) fn of(mapping: &config::Mapping) -> Result<engine::Lasts, String> {
    let mut asked = Vec::new();
    collect(&mapping.action, false, &mut asked)?;
    let Some(&lasts) = asked.first() else { return Ok(engine::Lasts::default()) };
    if asked.iter().any(|other| *other != lasts) {
        return Err("the modes that one mapping changes to all last in the same way: give each the same `lasts`".into());
    }
    if lasts == Lasts::WhileHeld {
        if !is_of_keys(&mapping.trigger.event) {
            return Err(
                "no key is held with this trigger; `lasts = \"while_held\"` needs a press of notes or buttons, a \
                        long press, a double tap, a chord or a sequence"
                    .into(),
            );
        }
        if mapping.defer {
            return Err(
                "the key may be up when a mapping with `defer` fires; `lasts = \"while_held\"` goes without it".into(),
            );
        }
    }
    Ok(match lasts {
        Lasts::UntilChanged => engine::Lasts::UntilChanged,
        Lasts::WhileHeld => engine::Lasts::WhileHeld,
        Lasts::OnePress => engine::Lasts::OnePress,
    })
}

fn collect(action: &config::Action, is_later: bool, asked: &mut Vec<Lasts>) -> Result<(), String> {
    match action {
        config::Action::ModeChange(change) if is_later && change.lasts != Lasts::UntilChanged => {
            Err("in a `Sequence` or `Repeat` a mode is active until another one is chosen: leave `lasts` out".into())
        }
        config::Action::ModeChange(change) => {
            asked.push(change.lasts);
            Ok(())
        }
        config::Action::NextMode(_) | config::Action::PreviousMode(_) => {
            asked.push(Lasts::UntilChanged);
            Ok(())
        }
        config::Action::Conditional(conditional) => {
            collect(&conditional.then, is_later, asked)?;
            conditional.otherwise.as_deref().map_or(Ok(()), |otherwise| collect(otherwise, is_later, asked))
        }
        config::Action::Sequence(sequence) => {
            sequence.actions.iter().try_for_each(|action| collect(action, true, asked))
        }
        config::Action::Repeat(repeat) => collect(&repeat.action, true, asked),
        _ => Ok(()),
    }
}

/// Whether a trigger is for keys that go down.
fn is_of_keys(event: &TriggerEvent) -> bool {
    match event {
        TriggerEvent::Note { on, .. }
        | TriggerEvent::NoteRange { on, .. }
        | TriggerEvent::GamepadButton { on, .. }
        | TriggerEvent::Key { on, .. } => *on != Some(config::Edge::Release),
        TriggerEvent::VelocityRange { .. }
        | TriggerEvent::LongPress { .. }
        | TriggerEvent::DoubleTap { .. }
        | TriggerEvent::NoteChord { .. }
        | TriggerEvent::GamepadButtonChord { .. }
        | TriggerEvent::KeyChord { .. }
        | TriggerEvent::NoteSequence { .. }
        | TriggerEvent::GamepadButtonSequence { .. }
        | TriggerEvent::KeySequence { .. } => true,
        _ => false,
    }
}
