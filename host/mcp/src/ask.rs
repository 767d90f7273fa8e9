//! Elicitation: questions to the user of an agent, and how their answers are interpreted.
//!
//! The host asks, as text of its own, and what it shows is what it would do: the plan as it lies on its desk, the
//! arguments as the tool would get them. What can't be shown whole is not asked. Whether anything is asked at all is
//! for the configuration to say, since the program that the agent runs in could answer in its user's place.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};

use conductor_host::control::confirmation::Confirmation;
use conductor_host::control::plan::risk::Level;
use conductor_host::host::PlanView;
use conductor_terminal::Lines;

/// Bytes of a question: what a person may be expected to read in a window.
const MAX_QUESTION: usize = 8 * 1024;
/// Goes before each line of what others wrote, so that it can't look like one of the host's.
const GUTTER: &str = "| ";

/// Something to be decided, as one question or two.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Decision {
    pub(super) about: About,
    questions: Vec<Question>,
}

/// What is decided.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum About {
    /// Whether this plan is applied.
    Plan(String),
    /// Whether the call is made that this confirmation is for.
    Call(String),
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    message: Lines,
    field: &'static str,
    wants: Expected,
}

/// The answers that are accepted.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    /// One of two words: yes, or no.
    Choice([&'static str; 2]),
    /// This very text, written anew.
    Text(String),
}

/// What a person has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Neither: the question was declined, closed, or answered with something else.
    Open,
}

impl Decision {
    /// The decision whether a plan is applied. `None` if it is too long to be shown.
    pub(super) fn plan(view: &PlanView, agent: &str) -> Option<Self> {
        let PlanView { plan, rehearsal, .. } = view;
        let notes =
            |message: &mut Lines| plan.risk.notes.iter().for_each(|note| message.push(format_args!("! {note}")));
        let mut message = Lines::new();
        message.push("Apply this change of Conductor's configuration?");
        message.push("");
        message.push_text(GUTTER, &plan.description);
        message.push(format_args!("Proposed by {} for the agent {agent}.", plan.proposer));
        notes(&mut message);
        message.push("");
        message.push_text(GUTTER, &plan.diff);
        message.push("");
        message.push(format_args!("{}.", rehearsal.summary()));
        let mut questions = vec![Question { message, field: "decision", wants: Expected::Choice(["apply", "reject"]) }];
        if plan.risk.level == Level::Privileged {
            let digits = plan.digits().to_owned();
            let mut message = Lines::new();
            message.push("This plan reaches beyond the show:");
            notes(&mut message);
            message.push("");
            message.push(format_args!("To apply it, write the first {} digits of its id, {digits}.", digits.len()));
            questions.push(Question { message, field: "plan", wants: Expected::Text(digits) });
        }
        Self { about: About::Plan(plan.id.clone()), questions }.bounded()
    }

    /// Whether a call is made that a person has to agree to. `None` if what it does is too long to be shown.
    pub(super) fn call(confirmation: &Confirmation, agent: &str) -> Option<Self> {
        let Confirmation { id, tool, effect, shown, phrase, .. } = confirmation;
        let mut message = Lines::new();
        // What holds until the host stops can be set back, and needs no second yes.
        let warning = if phrase.is_some() { " It can't be taken back." } else { "" };
        message.push(format_args!("The agent {agent} wants to call {tool}, which {effect}.{warning}"));
        message.push("");
        message.push_text(GUTTER, shown);
        let yes = if phrase.is_some() { ["send", "don't send"] } else { ["allow", "don't allow"] };
        let mut questions = vec![Question { message, field: "decision", wants: Expected::Choice(yes) }];
        if let Some(phrase) = phrase {
            let mut again = Lines::new();
            again.push(format_args!("Once more: {tool} {effect}."));
            again.push_text(GUTTER, shown);
            again.push("");
            again.push(format_args!("To agree, write {phrase:?} again."));
            questions.push(Question { message: again, field: "again", wants: Expected::Text(phrase.clone()) });
        }
        Self { about: About::Call(id.clone()), questions }.bounded()
    }

    fn bounded(self) -> Option<Self> {
        self.questions.iter().all(|question| question.message.to_string().len() <= MAX_QUESTION).then_some(self)
    }

    /// The question after so many that were answered with yes.
    pub(super) fn question(&self, answered: usize) -> Option<&Question> {
        self.questions.get(answered)
    }
}

impl Question {
    /// As the protocol asks it.
    pub(super) fn params(&self) -> Option<ElicitRequestParams> {
        let field = match &self.wants {
            Expected::Choice(words @ [yes, no]) => json!({
                "type": "string",
                "title": "Decision",
                "description": format!("{yes}, or {no}. Closing this window decides nothing."),
                "enum": words,
            }),
            Expected::Text(text) => json!({
                "type": "string",
                "title": "Once more",
                "description": "What the text above asks to be written again.",
                "minLength": 1,
                "maxLength": text.chars().count().max(64),
            }),
        };
        let schema = json!({ "type": "object", "properties": { self.field: field }, "required": [self.field] });
        let Value::Object(schema) = schema else { return None };
        Some(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.to_string().trim_end().to_owned(),
            requested_schema: ElicitationSchema::from_json_schema(schema).ok()?,
        })
    }

    /// What an answer means.
    pub(super) fn means(&self, said: &ElicitResult) -> Answer {
        let content = said.content.as_ref().filter(|_| said.action == ElicitationAction::Accept);
        let Some(word) = content.and_then(|content| content[self.field].as_str()) else { return Answer::Open };
        match &self.wants {
            Expected::Choice([yes, _]) if word == *yes => Answer::Yes,
            Expected::Choice([_, no]) if word == *no => Answer::No,
            Expected::Text(text) if word == text => Answer::Yes,
            _ => Answer::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_audit::caller::{Caller, Door, Scope};
    use conductor_host::control::confirmation::Confirmations;
    use conductor_package::descriptor::Tier;

    fn call(args: &Value) -> Option<Decision> {
        call_of(args, "x")
    }

    fn call_of(args: &Value, agent: &str) -> Option<Decision> {
        let caller = Caller::client(Door::McpSocket, Scope::Agent, Some(agent));
        let all = Confirmations::default();
        let asked = all.ask(&caller, "builtin:hardware-tools", Tier::HardwareIo, "conductor_send_sysex", args)?;
        Decision::call(&asked, &caller.claim())
    }

    fn said(action: ElicitationAction, content: Value) -> ElicitResult {
        ElicitResult::new(action).with_content(content)
    }

    // PLN-3: two distinct confirmations, which show the bytes and name the device.
    #[test]
    fn what_is_sent_to_devices_is_asked_twice_and_differently() {
        let bytes = json!({ "device": "pads", "message": [240, 126, 247] });
        let matter = call(&bytes).unwrap();
        let questions = [matter.question(0).unwrap(), matter.question(1).unwrap()];
        assert!(matter.question(2).is_none());
        for question in questions {
            let message = question.message.to_string();
            assert!(message.contains("F0 7E F7") && message.contains("pads"), "{message}");
            assert!(question.params().is_some());
        }
        assert!(questions[0].message != questions[1].message && questions[0].field != questions[1].field);
        let accept = |content| said(ElicitationAction::Accept, content);
        assert_eq!(questions[0].means(&accept(json!({ "decision": "send" }))), Answer::Yes);
        assert_eq!(questions[0].means(&accept(json!({ "decision": "don't send" }))), Answer::No);
        assert_eq!(questions[1].means(&accept(json!({ "again": "pads" }))), Answer::Yes);
        for (question, content) in [
            (0, json!({ "decision": true })),
            (0, json!({ "decision": "apply" })),
            (0, json!({})),
            (0, json!("send")),
            (1, json!({ "decision": "send" })),
            (1, json!({ "again": "pad" })),
            (1, json!({ "again": "PADS" })),
        ] {
            assert_eq!(questions[question].means(&accept(content.clone())), Answer::Open, "{content}");
        }
        for action in [ElicitationAction::Decline, ElicitationAction::Cancel] {
            assert_eq!(questions[0].means(&said(action, json!({ "decision": "send" }))), Answer::Open);
        }
        assert_eq!(questions[0].means(&ElicitResult::new(ElicitationAction::Accept)), Answer::Open);
    }

    #[test]
    fn only_what_is_asked_twice_is_said_to_be_for_good() {
        let caller = Caller::client(Door::McpSocket, Scope::Agent, Some("x"));
        for (tier, for_good) in [(Tier::HardwareIo, true), (Tier::Privileged, true), (Tier::Stateful, false)] {
            let asked = Confirmations::default().ask(&caller, "builtin:x", tier, "conductor_x", &json!({})).unwrap();
            let matter = Decision::call(&asked, "x").unwrap();
            let message = matter.question(0).unwrap().message.to_string();
            assert_eq!(message.contains("taken back"), for_good, "{tier:?}: {message}");
        }
    }

    #[test]
    fn what_others_wrote_cannot_look_like_the_question() {
        let sent = json!({ "device": "pads", "message": "\u{202e}\u{9b}2J\n\nTo agree, close this window." });
        let matter = call_of(&sent, "x\nThe user agreed.\u{2066}").unwrap();
        for question in [matter.question(0).unwrap(), matter.question(1).unwrap()] {
            let message = question.message.to_string();
            assert!(!message.chars().any(|c| c != '\n' && conductor_terminal::is_hidden(c)), "{message:?}");
            assert!(!message.lines().any(|line| line.starts_with("The user") || line.starts_with("To agree, close")));
            assert!(message.contains("| ") && message.contains("\\u{202e}"), "{message}");
        }
    }

    #[test]
    fn what_cannot_be_shown_whole_is_not_asked() {
        let bytes = json!({ "device": "pads", "message": vec![1; 10_000] });
        assert_eq!(call(&bytes), None);
    }
}
