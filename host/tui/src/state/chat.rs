//! Conversations with models: the list, and the one that is open, as its events make it.

use std::collections::VecDeque;

use conductor_chat::record::{Approval, ChatEvent, Outcome, PlanOutcome, Recorded};
use conductor_chat::store::ConversationView;
use conductor_screen_text::beginning;
use conductor_terminal::typed::Line;

use super::State;
use super::overlay::{About, Overlay, Phrase, Prompt, Purpose, Then};
use crate::api::{Act, Answer, Query};
use crate::input::Screen;

/// Parts of a conversation that are kept, and bytes of all of them: the host has the rest.
const MAX_PARTS: usize = 1000;
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of one part.
const MAX_PART: usize = 64 * 1024;

/// A part of a conversation as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// What the person said.
    Said(String),
    /// What a model says, which is Markdown.
    Answer { text: String },
    /// A call of a tool.
    Call { call: String, tool: String, args: String, result: Option<(String, bool)> },
    /// A plan that was proposed, with its description, and its outcome.
    Plan { id: String, description: String, outcome: Option<PlanOutcome> },
    /// A call that waited for a person.
    Approval { tool: String, effect: String, agreed: Option<bool>, id: String },
    /// A feature notified of something; its text was escaped when it was kept.
    Notification { feature: String, text: String },
    /// A remark of the host.
    Remark { text: String, is_wrong: bool },
}

impl Part {
    fn bytes(&self) -> usize {
        match self {
            Self::Said(text) | Self::Remark { text, .. } => text.len(),
            Self::Answer { text, .. } | Self::Notification { text, .. } => text.len(),
            Self::Call { args, result, .. } => args.len() + result.as_ref().map_or(0, |(text, _)| text.len()),
            Self::Plan { description, .. } => 32 + description.len(),
            Self::Approval { effect, .. } => effect.len(),
        }
    }
}

/// A conversation that is open.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) id: u64,
    /// The number of the last event that was taken in.
    pub(crate) last: u64,
    pub(crate) parts: VecDeque<Part>,
    bytes: usize,
    /// Whether older parts were dropped here.
    pub(crate) is_cut: bool,
    /// Whether a turn is under way.
    pub(crate) is_turn: bool,
    /// The call that waits for a person.
    pub(crate) approval: Option<Approval>,
    /// The model that was asked last; empty if none was.
    pub(crate) model: String,
    pub(crate) answers: u64,
    pub(crate) tokens: (u64, u64),
    /// In billionths of a US dollar, of the answers whose cost is known.
    pub(crate) cost: u64,
    /// Answers whose cost is not known.
    pub(crate) unknown: u64,
    /// Lines between the end and the last line that is shown.
    pub(crate) back: usize,
}

impl Conversation {
    pub(crate) fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    /// The plan that was proposed last and waits.
    pub(crate) fn waiting_plan(&self) -> Option<&str> {
        self.waiting_plans().last()
    }

    /// Every plan that was proposed here and waits.
    pub(crate) fn waiting_plans(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Plan { id, outcome: None, .. } => Some(id.as_str()),
            _ => None,
        })
    }

    /// Takes in an event. One that was taken in already changes nothing.
    pub(crate) fn take(&mut self, one: Recorded) {
        if one.number <= self.last {
            return;
        }
        self.last = one.number;
        match one.event {
            ChatEvent::Message { text } => {
                self.is_turn = true;
                self.push(Part::Said(text));
            }
            ChatEvent::Asked { model } => self.model = model,
            ChatEvent::Text { text } => self.more(&text),
            ChatEvent::Call { call, tool, args, .. } => self.push(Part::Call { call, tool, args, result: None }),
            ChatEvent::CallEnded { call, tool, result, failed } => self.end_call(&call, tool, &result, failed),
            ChatEvent::Answered { usage, cost, notes, .. } => {
                self.answers += 1;
                self.tokens = (self.tokens.0 + usage.input, self.tokens.1 + usage.output);
                self.cost += cost.unwrap_or(0);
                self.unknown += u64::from(cost.is_none());
                notes.into_iter().for_each(|text| self.push(Part::Remark { text, is_wrong: false }));
            }
            ChatEvent::ModelFailed { model, error } => {
                // What it has said of the answer is not part of the conversation.
                if matches!(self.parts.back(), Some(Part::Answer { .. })) {
                    self.pop_back();
                }
                self.push(Part::Remark { text: format!("{model} gave no answer: {error}"), is_wrong: true });
            }
            ChatEvent::Approval { asked, .. } => {
                let Approval { id, tool, effect, .. } = asked.clone();
                self.push(Part::Approval { tool, effect, agreed: None, id });
                self.approval = Some(asked);
            }
            ChatEvent::ApprovalDecided { id, agreed: decided, .. } => {
                self.approval = self.approval.take().filter(|asked| asked.id != id);
                let open = self.parts.iter_mut().rev().find_map(|part| match part {
                    Part::Approval { id: of, agreed, .. } if *of == id => Some(agreed),
                    _ => None,
                });
                open.into_iter().for_each(|agreed| *agreed = Some(decided));
            }
            ChatEvent::Plan { plan, description, .. } => self.push(Part::Plan { id: plan, description, outcome: None }),
            ChatEvent::PlanDecided { plan, outcome: decided } => {
                for part in &mut self.parts {
                    if let Part::Plan { id, outcome, .. } = part
                        && *id == plan
                    {
                        *outcome = Some(decided);
                    }
                }
            }
            ChatEvent::Notification { feature, text, left_out, .. } => {
                if left_out > 0 {
                    let text = format!("{left_out} notifications before the next one are left out");
                    self.push(Part::Remark { text, is_wrong: false });
                }
                self.push(Part::Notification { feature, text });
            }
            ChatEvent::TurnEnded { outcome, why } => {
                (self.is_turn, self.approval) = (false, None);
                if let Some(text) = ended(outcome, why.as_deref()) {
                    self.push(Part::Remark { text, is_wrong: outcome != Outcome::Cancelled });
                }
            }
            ChatEvent::Reasoning { .. }
            | ChatEvent::ReasoningEnded { .. }
            | ChatEvent::CallBegun { .. }
            | ChatEvent::Compacted { .. } => {}
        }
    }

    /// More of what the model says.
    fn more(&mut self, more: &str) {
        if let Some(Part::Answer { text, .. }) = self.parts.back_mut()
            && text.len() < MAX_PART
        {
            text.push_str(more);
            self.bytes += more.len();
        } else {
            self.push(Part::Answer { text: more.to_owned() });
        }
    }

    fn end_call(&mut self, of: &str, tool: String, text: &str, failed: bool) {
        let ended = (beginning(text, MAX_PART).to_owned(), failed);
        let open = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Call { call, result: result @ None, .. } if call == of => Some(result),
            _ => None,
        });
        match open {
            Some(result) => {
                self.bytes += ended.0.len();
                *result = Some(ended);
            }
            None => self.push(Part::Call { call: of.to_owned(), tool, args: String::new(), result: Some(ended) }),
        }
    }

    fn push(&mut self, part: Part) {
        self.bytes += part.bytes();
        self.parts.push_back(part);
        while self.parts.len() > MAX_PARTS || (self.bytes > MAX_BYTES && self.parts.len() > 1) {
            self.is_cut = true;
            if let Some(part) = self.parts.pop_front() {
                self.bytes = self.bytes.saturating_sub(part.bytes());
            }
        }
    }

    fn pop_back(&mut self) {
        if let Some(part) = self.parts.pop_back() {
            self.bytes = self.bytes.saturating_sub(part.bytes());
        }
    }
}

/// How a turn ended, for people. `None` if there is nothing to say.
fn ended(outcome: Outcome, why: Option<&str>) -> Option<String> {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Some(match outcome {
        Outcome::Done => return None,
        Outcome::Cancelled => "the turn was cancelled".to_owned(),
        Outcome::Short => format!("the answer was cut short{why}"),
        Outcome::Limit => format!("the turn reached a limit{why}"),
        Outcome::Failed => format!("there is no answer{why}"),
        Outcome::CutOff => format!("the host ended in the middle of the turn{why}"),
    })
}

/// The list of conversations, and the one that is open.
#[derive(Debug, Default)]
pub(crate) struct Chat {
    pub(crate) list: Vec<ConversationView>,
    pub(crate) at: usize,
    pub(crate) open: Option<Conversation>,
}

impl State {
    pub(super) fn ask_for_conversation(&mut self) {
        if let Some(Conversation { id, last, .. }) = self.chat.open {
            self.requests.ask(Query::Conversation { id, after: last });
        }
    }

    /// Asks what to say, and says why what was typed before is not sent; what stands in front of the screen stays there.
    pub(super) fn write(&mut self, id: u64, text: &str, refused: Option<&str>) {
        if self.screen == Screen::Chat && self.overlay.is_none() {
            let prompt = Prompt::new("say", Line::new(text), Purpose::Say { id });
            self.overlay = Some(Overlay::Line(Prompt { refused: refused.map(str::to_owned), ..prompt }));
        }
    }

    /// Whether the conversation is open and a turn of it is under way.
    pub(super) fn is_answering(&self, id: u64) -> bool {
        self.chat.open.as_ref().is_some_and(|open| open.id == id && open.is_turn)
    }

    pub(super) fn ask_agree(&mut self) {
        let Some(open) = &self.chat.open else { return };
        let Some(asked) = open.approval.clone() else { return };
        let (id, phrase) = (asked.id.clone(), asked.phrase.clone());
        let answer = |phrase| Answer { id, agreed: true, phrase };
        let conversation = open.id;
        let asks = asks(phrase.is_some());
        let then = match phrase {
            None => Then::Do(Act::Approve { conversation, answer: answer(None) }),
            Some(phrase) => Then::Type {
                asks: format!("To agree, type {}", phrase.trim()),
                act: Act::Approve { conversation, answer: answer(Some(phrase.clone())) },
                phrase: Phrase::Whole(phrase),
            },
        };
        self.ask(asks, About::Call(asked), then);
    }

    pub(super) fn decline(&mut self) {
        let Some(open) = &self.chat.open else { return };
        let Some(asked) = &open.approval else { return };
        let answer = Answer { id: asked.id.clone(), agreed: false, phrase: None };
        self.requests.act(Act::Approve { conversation: open.id, answer });
    }
}

/// The question whether a call is made; `for_good` is one that takes a second yes.
fn asks(for_good: bool) -> &'static str {
    if for_good { "It can't be taken back. Call it?" } else { "Call it?" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_takes_a_second_yes_is_said_to_be_for_good() {
        assert_eq!([false, true].map(asks), ["Call it?", "It can't be taken back. Call it?"]);
    }

    fn events(said: &[serde_json::Value]) -> Conversation {
        let mut conversation = Conversation::new(1);
        for (number, event) in said.iter().enumerate() {
            let mut event = event.clone();
            event["number"] = json!(number + 1);
            event["at"] = json!(0);
            let event: Recorded = serde_json::from_value(event).unwrap();
            conversation.take(event.clone());
            // A second time it says nothing new.
            conversation.take(event);
        }
        conversation
    }

    #[test]
    fn events_make_a_conversation() {
        let usage = json!({ "input": 10, "cached": 0, "output": 5 });
        let conversation = events(&[
            json!({ "kind": "message", "text": "hi" }),
            json!({ "kind": "asked", "model": "m" }),
            json!({ "kind": "text", "text": "Hel" }),
            json!({ "kind": "text", "text": "lo" }),
            json!({ "kind": "call", "call": "1", "tool": "t", "args": "{}" }),
            json!({ "kind": "answered", "model": "m", "stop": "tools", "usage": usage, "cost": 7 }),
            json!({ "kind": "plan", "call": "1", "plan": "abc", "description": "Add it." }),
            json!({ "kind": "call_ended", "call": "1", "tool": "t", "result": "done" }),
        ]);
        let parts: Vec<&Part> = conversation.parts.iter().collect();
        let answer = Part::Answer { text: "Hello".into() };
        let call =
            Part::Call { call: "1".into(), tool: "t".into(), args: "{}".into(), result: Some(("done".into(), false)) };
        let plan = Part::Plan { id: "abc".into(), description: "Add it.".into(), outcome: None };
        assert_eq!(parts, [&Part::Said("hi".into()), &answer, &call, &plan]);
        assert_eq!((conversation.waiting_plan(), conversation.is_turn, conversation.cost), (Some("abc"), true, 7));
    }

    #[test]
    fn what_a_model_said_of_a_failed_answer_is_taken_back() {
        let conversation = events(&[
            json!({ "kind": "message", "text": "hi" }),
            json!({ "kind": "text", "text": "Hel" }),
            json!({ "kind": "model_failed", "model": "m", "error": "gone" }),
            json!({ "kind": "turn_ended", "outcome": "failed" }),
        ]);
        assert!(!conversation.parts.iter().any(|part| matches!(part, Part::Answer { .. })));
        assert!(!conversation.is_turn);
    }

    #[test]
    fn memory_is_bounded() {
        let mut conversation = Conversation::new(1);
        for number in 1..=3000 {
            let text = "x".repeat(4000);
            conversation.take(Recorded { number, at: 0, event: ChatEvent::Message { text } });
        }
        assert!(conversation.parts.len() <= MAX_PARTS && conversation.bytes <= MAX_BYTES && conversation.is_cut);
    }
}
