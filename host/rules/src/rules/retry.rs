//! Which actions are tried again, and how.

use std::sync::Arc;
use std::time::Duration;

use conductor_config::{self as config, MidiMessage, PathStep};
use conductor_dispatch::Action;
use conductor_dispatch::retry::Retry;

use super::Compiler;

impl Compiler<'_> {
    /// The action of a mapping, tried again where that is asked for.
    pub(super) fn retried(
        &mut self,
        mapping: &config::Mapping,
        action: Action,
        path: &[PathStep<'_>],
    ) -> Option<Action> {
        let Some(config::Retry { times, after_ms }) = mapping.retry else { return Some(action) };
        if let Err(message) = may_come_late(&mapping.action) {
            self.error(&[path, &["retry".into()]].concat(), message);
            return None;
        }
        let scripts = self.workers.scripts();
        let scripts = self.started(scripts, path)?;
        let retry = Retry::new(action.clone(), times, Duration::from_millis(after_ms.into()), scripts);
        Some(Action::Retried { retry: Arc::new(retry), action: Box::new(action) })
    }
}

/// Whether an action does what it should when it is done a little later: not a press whose end may be over by then.
fn may_come_late(action: &config::Action) -> Result<(), String> {
    match action {
        config::Action::Feature { .. } | config::Action::Launch(_) | config::Action::Shell(_) => Ok(()),
        config::Action::SendMidi(send)
            if !matches!(send.message, MidiMessage::NoteOn { .. } | MidiMessage::NoteOff { .. }) =>
        {
            Ok(())
        }
        config::Action::Sequence(_) | config::Action::Repeat(_) | config::Action::Conditional(_) => {
            Err("what has several actions is not tried again as a whole: give each a mapping of its own".into())
        }
        _ => {
            Err("only actions of features, `Launch`, `Shell`, and `SendMidi` without a note are tried again: what is \
                  pressed may be over by then"
                .into())
        }
    }
}
