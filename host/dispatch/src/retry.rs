//! Retries: an action that failed is tried again, where its mapping asks for it.
//!
//! A worker that can't do an action says so by [`Envelope::failure`]. If there are tries left, that begins a script, which
//! waits and hands the action over once more, for the same event. Each try that fails is a failure like any other.

use std::sync::Arc;
use std::time::Duration;

use super::script::{Script, ScriptQueue, Step};
use super::{Action, Envelope};

/// How an action is tried again.
#[derive(Debug)]
pub struct Retry {
    /// How often at most.
    times: u8,
    script: Arc<Script>,
    scripts: ScriptQueue,
}

impl Retry {
    /// Retries the action at most `times` times, each `after` it failed; `scripts` run the retries. They end when rules
    /// are replaced.
    pub fn new(action: Action, times: u8, after: Duration, scripts: ScriptQueue) -> Self {
        let script = Script {
            name: "Retry".into(),
            steps: [Step::Wait(after), Step::Do(action)].into(),
            cancel_on_mode_change: false,
            cancel_on_reload: true,
        };
        Self { times, script: Arc::new(script), scripts }
    }

    /// The tries for an event.
    pub(crate) fn tries(self: &Arc<Self>) -> Tries {
        Tries { left: self.times, retry: Arc::clone(self) }
    }
}

/// The tries that are left for an event.
#[derive(Debug, Clone)]
pub struct Tries {
    left: u8,
    retry: Arc<Retry>,
}

impl Tries {
    /// Has the action be tried once more, if it may be. Where there is no room for that it is not.
    pub(crate) fn go_on(&self, envelope: &Envelope) {
        let Some(left) = self.left.checked_sub(1) else { return };
        let tries = Some(Self { left, retry: Arc::clone(&self.retry) });
        let next = Envelope { tries, ..envelope.clone() };
        let _ = self.retry.scripts.try_put((next, Arc::clone(&self.retry.script)));
    }
}
