//! Observations as people and programs see them: words and numbers, no handles.

use conductor_engine::{Nanos, Rule, RuleId, RuleSet};
use serde::{Deserialize, Serialize};

use crate::dispatch::Action;
use crate::observer::Observation;
use crate::service::sinks::SinkKind;

/// One observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObservationView {
    /// An event, and what came of it.
    Event {
        /// Nanoseconds since the host started.
        at: Nanos,
        /// Where it came from.
        device: String,
        /// What it was, in the words of the timeline language.
        event: String,
        /// The rules that fired, in order: name or number, and action.
        rules: Vec<String>,
    },
    /// An action that was not done.
    Failure {
        /// When the event came.
        at: Nanos,
        /// The rule that asked for it.
        rule: String,
        /// Who should have done it.
        worker: String,
        /// Why it was not.
        reason: String,
    },
    /// Another mode is active.
    Mode {
        /// Its name.
        mode: String,
    },
    /// A feature says something.
    Message {
        /// Its id.
        feature: String,
        /// `diagnostic`, `alert` or `notification`.
        sink: String,
        /// What.
        text: String,
    },
    /// Ports and reloads.
    Note {
        /// What.
        text: String,
    },
}

impl ObservationView {
    /// Puts an observation into words. Rules are named only if they are of this set.
    pub fn new(observation: &Observation, rules: &RuleSet<Action>, generation: u64) -> Self {
        match observation {
            Observation::Event(record) => Self::Event {
                at: record.at,
                device: record.device.to_string(),
                event: record.event.to_string(),
                rules: record.fired.ids().iter().map(|id| rule(*id, rules, generation == record.generation)).collect(),
            },
            Observation::Failure(failure) => Self::Failure {
                at: failure.at,
                rule: rule(failure.rule, rules, generation == failure.generation),
                worker: failure.worker.to_string(),
                reason: failure.reason.to_string(),
            },
            Observation::Mode(mode) => Self::Mode { mode: mode.to_string() },
            Observation::Port(text)
            | Observation::PortTrouble(text)
            | Observation::Reload(text)
            | Observation::Refused(text) => Self::Note { text: text.clone() },
            Observation::Sink(message) => Self::Message {
                feature: message.feature.to_string(),
                sink: match message.kind {
                    SinkKind::Diagnostic(_) => "diagnostic",
                    SinkKind::Alert => "alert",
                    SinkKind::Notification => "notification",
                }
                .to_owned(),
                text: message.text.clone(),
            },
        }
    }
}

/// A rule for people: its name if it has one, and what it does.
pub fn rule(id: RuleId, rules: &RuleSet<Action>, known: bool) -> String {
    match rules.rules().get(id.0 as usize).filter(|_| known) {
        Some(rule) => described(rule),
        None => format!("rule {}", id.0),
    }
}

/// A rule for people, wherever it is from.
pub fn described(rule: &Rule<Action>) -> String {
    match &rule.name {
        Some(name) => format!("{name} ({})", rule.action.describe()),
        None => rule.action.describe(),
    }
}
