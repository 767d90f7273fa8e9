//! Which edges of a control a mapping is about: its press, its release, or both.

use conductor_engine as engine;

use conductor_config::{self as config, TriggerEvent};

/// Which edge of a note counts where the mapping does not say: what is forwarded or held needs its end,
/// or it would never end.
pub(super) fn edge(said: Option<config::Edge>, action: &config::Action) -> engine::Edge {
    match said {
        Some(config::Edge::Press) => engine::Edge::Press,
        Some(config::Edge::Release) => engine::Edge::Release,
        Some(config::Edge::Both) => engine::Edge::Both,
        None if wants_both(action) => engine::Edge::Both,
        None => engine::Edge::Press,
    }
}

/// Whether the rule matches releases only because its action needs them, not because the mapping says so.
pub(super) fn hears_releases_of_itself(event: &TriggerEvent, action: &config::Action) -> bool {
    let unsaid = match event {
        TriggerEvent::Note { on, .. }
        | TriggerEvent::NoteRange { on, .. }
        | TriggerEvent::GamepadButton { on, .. }
        | TriggerEvent::Key { on, .. } => on.is_none(),
        TriggerEvent::VelocityRange { .. } => true,
        _ => false,
    };
    unsaid && wants_both(action)
}

/// What the branches of an action make of releases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Releases {
    /// What the trigger says.
    AsSaid,
    /// They are for those that want them: the others would be done a second time.
    ForSome,
}

/// Whether an action does something for as long as a control is pressed: holds it down, or moves the pointer or an
/// axis.
pub(super) fn holds(action: &config::Action) -> bool {
    match action {
        config::Action::Keystroke(keystroke) => keystroke.stroke == config::Stroke::Hold,
        config::Action::MouseClick(click) => click.stroke == config::Stroke::Hold,
        config::Action::MouseMove(moving) => moving.motion == config::Motion::Speed,
        config::Action::VirtualGamepad(pad) => pad.holds(),
        config::Action::Sequence(sequence) => sequence.actions.iter().any(holds),
        config::Action::Repeat(repeat) => holds(&repeat.action),
        config::Action::Conditional(conditional) => branches(conditional).any(holds),
        _ => false,
    }
}

/// Whether an action holds something down for a trigger of which no release comes.
pub(super) fn holds_on(event: &TriggerEvent, action: &config::Action) -> bool {
    let is_gesture = matches!(
        event,
        TriggerEvent::LongPress { .. }
            | TriggerEvent::DoubleTap { .. }
            | TriggerEvent::NoteChord { .. }
            | TriggerEvent::GamepadButtonChord { .. }
            | TriggerEvent::KeyChord { .. }
            | TriggerEvent::NoteSequence { .. }
            | TriggerEvent::GamepadButtonSequence { .. }
            | TriggerEvent::KeySequence { .. }
    );
    is_gesture && holds(action)
}

fn branches(conditional: &config::Conditional) -> impl Iterator<Item = &config::Action> {
    std::iter::once(&*conditional.then).chain(conditional.otherwise.as_deref())
}

/// Whether an action is about the end of a note as much as about its beginning.
pub(super) fn wants_both(action: &config::Action) -> bool {
    match action {
        config::Action::MidiForward(_) => true,
        config::Action::Conditional(conditional) => branches(conditional).any(wants_both),
        config::Action::Keystroke(keystroke) => keystroke.stroke == config::Stroke::Hold,
        config::Action::MouseClick(click) => click.stroke == config::Stroke::Hold,
        config::Action::MouseMove(moving) => moving.motion == config::Motion::Speed,
        config::Action::VirtualGamepad(pad) => pad.holds(),
        _ => false,
    }
}

/// What ends the press that a trigger matches. `None` if it matches releases itself, or what has none.
pub(super) fn release_of(trigger: &engine::Trigger) -> Option<engine::Trigger> {
    use engine::{Edge, Trigger, ValueRange};
    match *trigger {
        Trigger::Note { notes, edge: Edge::Press, channel, .. } => {
            Some(Trigger::Note { notes, velocity: ValueRange::SEVEN_BIT, edge: Edge::Release, channel })
        }
        Trigger::Button { buttons, edge: Edge::Press } => Some(Trigger::Button { buttons, edge: Edge::Release }),
        _ => None,
    }
}

/// Whether a trigger matches both the press and the release of a control.
pub(super) fn is_both(trigger: &engine::Trigger) -> bool {
    use engine::{Edge, Trigger};
    matches!(trigger, Trigger::Note { edge: Edge::Both, .. } | Trigger::Button { edge: Edge::Both, .. })
}
