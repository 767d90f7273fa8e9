//! Observations as JSON, for clients: names and numbers instead of handles.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use conductor_control_names::ControlNames;
use conductor_event::{Nanos, RuleId};
use conductor_host::host::Host;
use conductor_observer::sink_message::SinkKind;
use conductor_observer::{ChatChange, LockChange, ModelChange, Observation, PlanChange, PlanStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        /// What the control is called, such as `pad 3`, if the profile of its device is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        control: Option<String>,
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
    /// Lights of an output show something else than when `GET /v1/lights` was last asked. Once after each answer.
    Lights {
        /// What rules call the output.
        device: String,
    },
    /// A feature says something.
    Message {
        /// Its id.
        feature: String,
        /// `diagnostic`, `alert` or `notification`.
        sink: String,
        /// What.
        text: String,
        /// Of a notification that is kept: its number, which `after` of `GET /v1/notifications` takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sequence: Option<u64>,
    },
    /// A port was opened or closed, or can't be had.
    Port {
        /// What.
        text: String,
        /// Whether something is wrong.
        trouble: bool,
    },
    /// Other rules are in use, or were refused.
    Reload {
        /// What.
        text: String,
        /// Whether something is wrong; the old rules stay then.
        trouble: bool,
    },
    /// Something became of a plan.
    Plan {
        /// What.
        step: PlanStep,
        /// Its id; `null` if a revision was undone or redone.
        plan: Option<String>,
        /// Who proposed it, or who decided.
        who: String,
        /// What it does, in its proposer's words; empty where that is not known any more.
        description: String,
    },
    /// The show was locked or unlocked.
    Lock {
        /// Whether it is locked now.
        locked: bool,
        /// Who did it, as the audit names callers.
        by: String,
    },
    /// Something happened in a conversation with a model. For the owner alone.
    Chat {
        /// The conversation.
        conversation: u64,
        /// The number of the event in it, after which `GET /v1/conversations/ID/events` goes on.
        number: u64,
        /// The event, as the conversation has it: its `kind`, and what belongs to that. A text of more than 8 KiB is cut.
        event: Value,
    },
    /// A model answers again, or gives no answers any more.
    Model {
        /// Its name under `[models]`.
        model: String,
        /// Why it gives no answer; `null` if it answers.
        error: Option<String>,
    },
    /// Something is missing here.
    Gap {
        /// How many observations, of any kind; `null` if that is unknown, because the host has been restarted.
        lost: Option<u64>,
    },
}

/// What a stream can be asked for. An alert, a diagnostic and a notification are all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Kind {
    Event,
    Failure,
    Mode,
    Lights,
    Port,
    Reload,
    Plan,
    Lock,
    Chat,
    Model,
    Diagnostic,
    Alert,
    Notification,
}

impl Kind {
    /// Every kind.
    pub const ALL: [(&str, Self); 13] = [
        ("event", Self::Event),
        ("failure", Self::Failure),
        ("mode", Self::Mode),
        ("lights", Self::Lights),
        ("port", Self::Port),
        ("reload", Self::Reload),
        ("plan", Self::Plan),
        ("lock", Self::Lock),
        ("chat", Self::Chat),
        ("model", Self::Model),
        ("diagnostic", Self::Diagnostic),
        ("alert", Self::Alert),
        ("notification", Self::Notification),
    ];

    /// What an observation is.
    pub fn of(observation: &Observation) -> Self {
        match observation {
            Observation::Event(_) => Self::Event,
            Observation::Failure(_) => Self::Failure,
            Observation::Mode(_) => Self::Mode,
            Observation::Lights(_) => Self::Lights,
            Observation::Port(_) | Observation::PortTrouble(_) => Self::Port,
            Observation::Reload(_) | Observation::Refused(_) => Self::Reload,
            Observation::Plan(_) => Self::Plan,
            Observation::Lock(_) => Self::Lock,
            Observation::Chat(_) => Self::Chat,
            Observation::Model(_) => Self::Model,
            Observation::Sink(message) => match message.kind {
                SinkKind::Diagnostic(_) => Self::Diagnostic,
                SinkKind::Alert => Self::Alert,
                SinkKind::Notification => Self::Notification,
            },
        }
    }
}

impl ObservationView {
    /// The view of an observation of this host.
    pub fn of(observation: &Observation, host: &Host) -> Self {
        Self::new(observation, |rule, generation| host.rule_name(rule, generation))
    }

    /// The same, with the name of the control that an event is of, if the profile of its device is known.
    pub fn named(observation: &Observation, host: &Host, names: &ControlNames) -> Self {
        let mut view = Self::of(observation, host);
        if let (Self::Event { control, .. }, Observation::Event(record)) = (&mut view, observation) {
            names.refresh(|| host.ports());
            *control = names.of(&record.device.to_string(), &record.event);
        }
        view
    }

    /// The view of an observation. `rule` returns what a rule of a generation is called.
    pub fn new(observation: &Observation, rule: impl Fn(RuleId, u64) -> String) -> Self {
        match observation {
            Observation::Event(record) => Self::Event {
                at: record.at,
                device: record.device.to_string(),
                event: record.event.to_string(),
                control: None,
                rules: record.fired.ids().iter().map(|id| rule(*id, record.generation)).collect(),
            },
            Observation::Failure(failure) => Self::Failure {
                at: failure.at,
                rule: rule(failure.rule, failure.generation),
                worker: failure.worker.to_string(),
                reason: failure.reason.to_string(),
            },
            Observation::Mode(mode) => Self::Mode { mode: mode.to_string() },
            Observation::Lights(device) => Self::Lights { device: device.to_string() },
            Observation::Port(text) => Self::Port { text: text.clone(), trouble: false },
            Observation::PortTrouble(text) => Self::Port { text: text.clone(), trouble: true },
            Observation::Reload(text) => Self::Reload { text: text.clone(), trouble: false },
            Observation::Refused(text) => Self::Reload { text: text.clone(), trouble: true },
            Observation::Plan(PlanChange { step, plan, who, description }) => {
                Self::Plan { step: *step, plan: plan.clone(), who: who.clone(), description: description.clone() }
            }
            Observation::Lock(LockChange { locked, by }) => Self::Lock { locked: *locked, by: by.clone() },
            Observation::Chat(ChatChange { conversation, number, event }) => Self::Chat {
                conversation: *conversation,
                number: *number,
                event: serde_json::from_str(event).unwrap_or_default(),
            },
            Observation::Model(ModelChange { model, error }) => {
                Self::Model { model: model.clone(), error: error.clone() }
            }
            Observation::Sink(message) => Self::Message {
                feature: message.feature.to_string(),
                sink: match message.kind {
                    SinkKind::Diagnostic(_) => "diagnostic",
                    SinkKind::Alert => "alert",
                    SinkKind::Notification => "notification",
                }
                .to_owned(),
                text: message.text.clone(),
                sequence: message.sequence,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use conductor_event::{Cause, DeviceId, MidiMessage, ModeIx, Record};
    use conductor_observer::failure::{Failure, Reason};
    use conductor_observer::sink_message::{Severity, SinkMessage};
    use serde_json::json;

    use super::*;

    const GENERATION: u64 = 3;

    fn shown(observation: &Observation) -> Value {
        let rule = |rule: RuleId, generation: u64| format!("rule {} of {generation}", rule.0);
        serde_json::to_value(ObservationView::new(observation, rule)).unwrap()
    }

    fn message(kind: SinkKind, sequence: Option<u64>) -> Observation {
        let feature = "project:lamp".to_owned().try_into().unwrap();
        Observation::Sink(SinkMessage { feature, kind, text: "it is dark".to_owned(), left_out: 0, sequence })
    }

    #[test]
    fn rules_are_named_by_the_generation_that_they_are_of() {
        let event = |generation| {
            Observation::Event(Record {
                at: 5,
                device: DeviceId::new("pads"),
                event: MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 }.into(),
                cause: Cause::Input,
                mode: ModeIx::NONE,
                generation,
                fired: [RuleId(0), RuleId(9)].into_iter().collect(),
            })
        };
        let of_now = json!({
            "kind": "event", "at": 5, "device": "pads", "event": "note-on 36 100",
            "rules": ["rule 0 of 3", "rule 9 of 3"],
        });
        assert_eq!(shown(&event(GENERATION)), of_now);
        assert_eq!(shown(&event(GENERATION - 1))["rules"], json!(["rule 0 of 2", "rule 9 of 2"]));

        let failure = |generation| {
            Observation::Failure(Failure {
                at: 6,
                device: DeviceId::new("pads"),
                rule: RuleId(0),
                generation,
                worker: "synth".into(),
                reason: Reason::TargetNotBound("synth".to_owned()),
            })
        };
        let of_now = json!({
            "kind": "failure", "at": 6, "rule": "rule 0 of 3", "worker": "synth",
            "reason": "no port is bound to \"synth\"",
        });
        assert_eq!(shown(&failure(GENERATION)), of_now);
        assert_eq!(shown(&failure(GENERATION + 1))["rule"], "rule 0 of 4");
    }

    #[test]
    fn a_message_says_its_sink_and_a_number_only_if_it_is_kept() {
        let said =
            |sink: &str| json!({ "kind": "message", "feature": "project:lamp", "sink": sink, "text": "it is dark" });
        assert_eq!(shown(&message(SinkKind::Diagnostic(Severity::Warning), None)), said("diagnostic"));
        assert_eq!(shown(&message(SinkKind::Alert, None)), said("alert"));
        let mut kept = said("notification");
        kept["sequence"] = json!(12);
        assert_eq!(shown(&message(SinkKind::Notification, Some(12))), kept);
    }

    #[test]
    fn good_news_and_bad_news_have_one_kind_each() {
        let ports = [Observation::Port("open".to_owned()), Observation::PortTrouble("gone".to_owned())];
        assert_eq!(ports.each_ref().map(Kind::of), [Kind::Port; 2]);
        assert_eq!(shown(&ports[0]), json!({ "kind": "port", "text": "open", "trouble": false }));
        assert_eq!(shown(&ports[1]), json!({ "kind": "port", "text": "gone", "trouble": true }));
        let reloads = [Observation::Reload("new".to_owned()), Observation::Refused("old".to_owned())];
        assert_eq!(reloads.each_ref().map(Kind::of), [Kind::Reload; 2]);
        assert_eq!(shown(&reloads[0]), json!({ "kind": "reload", "text": "new", "trouble": false }));
        assert_eq!(shown(&reloads[1]), json!({ "kind": "reload", "text": "old", "trouble": true }));
    }

    #[test]
    fn of_lights_it_is_said_whose_they_are() {
        let lights = Observation::Lights("pads".into());
        assert_eq!((Kind::of(&lights), shown(&lights)), (Kind::Lights, json!({ "kind": "lights", "device": "pads" })));
    }

    #[test]
    fn a_stream_can_be_asked_for_each_sink_by_itself() {
        let kinds = [SinkKind::Diagnostic(Severity::Info), SinkKind::Alert, SinkKind::Notification];
        let asked = [Kind::Diagnostic, Kind::Alert, Kind::Notification];
        assert_eq!(kinds.map(|kind| Kind::of(&message(kind, None))), asked);
        for (name, kind) in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
        }
    }

    #[test]
    fn an_event_of_a_conversation_is_json_within_json() {
        let change =
            |event: &str| Observation::Chat(ChatChange { conversation: 4, number: 9, event: Arc::from(event) });
        let told = json!({ "kind": "chat", "conversation": 4, "number": 9, "event": { "kind": "text", "text": "hi" } });
        assert_eq!(shown(&change(r#"{"kind":"text","text":"hi"}"#)), told);
        let unknown = Observation::Model(ModelChange { model: "m".to_owned(), error: None });
        assert_eq!(shown(&unknown), json!({ "kind": "model", "model": "m", "error": null }));
    }

    #[test]
    fn what_a_client_reads_is_what_was_written() {
        let gap = ObservationView::Gap { lost: None };
        assert_eq!(serde_json::to_value(&gap).unwrap(), json!({ "kind": "gap", "lost": null }));
        // A host of before controls had names, and one that keeps no notifications, leave those out.
        let event = json!({ "kind": "event", "at": 1, "device": "d", "event": "clock", "rules": [] });
        let read: ObservationView = serde_json::from_value(event).unwrap();
        assert!(matches!(&read, ObservationView::Event { control: None, .. }), "{read:?}");
    }
}
