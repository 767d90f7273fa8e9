//! What stands in front of a screen: the list of keys, a question, a line that is typed, an event that was opened.

use conductor_chat::record::Approval;
use conductor_host::host::PlanView;
use conductor_terminal::typed::Line;

use super::State;
use super::light::LightRequest;
use super::live::Row;
use super::mappings::MappingLight;
use crate::api::{Act, Explained};

/// What stands in front of the screen.
#[derive(Debug)]
pub(crate) enum Overlay {
    Keys { scroll: usize },
    Question(Question),
    Line(Prompt),
    Explanation(Explanation),
}

/// A question that is answered by yes or no.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asks: String,
    pub(crate) about: About,
    pub(crate) scroll: usize,
    then: Then,
}

/// What a person should know before answering.
#[derive(Debug)]
pub(crate) enum About {
    Nothing,
    Text(String),
    Plan(Box<PlanView>),
    /// A call of a tool.
    Call(Approval),
}

/// What a yes leads to.
#[derive(Debug, Clone)]
pub(super) enum Then {
    Do(Act),
    /// A person types more than a key that is hit by habit.
    Type {
        asks: String,
        phrase: Phrase,
        act: Act,
    },
}

/// What has to be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phrase {
    /// These digits, or more of this id.
    Digits { digits: String, id: String },
    /// This.
    Whole(String),
}

impl Phrase {
    fn is_met(&self, typed: &str) -> bool {
        match self {
            Self::Digits { digits, id } => typed.starts_with(digits.as_str()) && id.starts_with(typed),
            Self::Whole(phrase) => typed == phrase.trim(),
        }
    }
}

/// A line that is asked for.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) asks: String,
    pub(crate) line: Line,
    pub(crate) purpose: Purpose,
    /// Why what was typed before is not taken. `None` if nothing was typed, or it was edited since.
    pub(crate) refused: Option<String>,
}

impl Prompt {
    pub(super) fn new(asks: impl Into<String>, line: Line, purpose: Purpose) -> Self {
        Self { asks: asks.into(), line, purpose, refused: None }
    }
}

/// What a line is for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Purpose {
    /// What rows, flow and mappings have to have.
    Filter,
    /// What to say in a conversation.
    Say { id: u64 },
    /// What a learned control, or a mapping, should do.
    Action,
    /// What is in this field of the form of an action.
    Field(String),
    /// What its light shows while it is held.
    Light(Box<LightRequest>),
    /// What the light of a mapping that is there shows while it is held.
    MappingLight(Box<MappingLight>),
    /// The phrase that an action waits for.
    Phrase { phrase: Phrase, act: Box<Act> },
}

/// An event, or something else that happened, that was opened.
#[derive(Debug)]
pub(crate) struct Explanation {
    pub(crate) row: Row,
    /// `None` until the host has answered, and of what is no event.
    pub(crate) rules: Option<Result<Vec<Explained>, String>>,
    pub(crate) scroll: usize,
}

impl State {
    pub(super) fn ask(&mut self, asks: &str, about: About, then: Then) {
        self.overlay = Some(Overlay::Question(Question { asks: asks.to_owned(), about, scroll: 0, then }));
    }

    /// A person's yes.
    pub(super) fn agreed(&mut self) {
        let Some(Overlay::Question(question)) = self.overlay.take() else { return };
        match question.then {
            Then::Do(act) => self.requests.act(act),
            Then::Type { asks, phrase, act } => {
                let purpose = Purpose::Phrase { phrase, act: Box::new(act) };
                self.overlay = Some(Overlay::Line(Prompt::new(asks, Line::default(), purpose)));
            }
        }
    }

    pub(super) fn back(&mut self) {
        match self.overlay.take() {
            Some(Overlay::Line(Prompt { purpose: Purpose::Filter, .. })) => self.filter(""),
            // To the line before it, which was typed already.
            Some(Overlay::Line(Prompt { purpose: Purpose::Light(request), .. })) => {
                self.ask_action(&request.proposal.action);
            }
            // To the list of actions; the form is kept.
            Some(Overlay::Line(Prompt { purpose: Purpose::Field(_), .. })) => {
                let kind = self.learn.form.as_ref().map(|form| form.kind.clone()).unwrap_or_default();
                self.ask_action_line(&kind);
            }
            Some(_) => {}
            None => self.chat.open = None,
        }
    }

    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Line)) {
        if let Some(Overlay::Line(prompt)) = &mut self.overlay {
            edit(&mut prompt.line);
            self.typed();
        }
    }

    /// A filter holds while it is typed, and an action is explained. What was refused is another text now.
    pub(super) fn typed(&mut self) {
        let Some(Overlay::Line(Prompt { purpose, line, refused, .. })) = &mut self.overlay else { return };
        *refused = None;
        let text = line.text().to_owned();
        match purpose {
            Purpose::Filter => self.filter(&text),
            Purpose::Action => {
                (self.learn.action_at, self.learn.wanted) = (0, None);
                self.look_for_keys(&text);
            }
            Purpose::Field(name) => {
                if let Some(form) = &mut self.learn.form {
                    form.set(name, &text);
                }
            }
            _ => {}
        }
    }

    pub(super) fn submit(&mut self) {
        let Some(Overlay::Line(Prompt { line, purpose, asks, .. })) = self.overlay.take() else { return };
        let text = line.text().trim().to_owned();
        match purpose {
            Purpose::Filter => {}
            Purpose::Say { .. } if text.is_empty() => {}
            Purpose::Say { id } if self.is_answering(id) => {
                self.write(id, &text, Some("the answer is not complete yet"));
            }
            Purpose::Say { id } => {
                self.chat.open.iter_mut().for_each(|open| open.back = 0);
                self.requests.act(Act::Say { id, text });
            }
            Purpose::Action => self.submit_action_line(text),
            Purpose::Field(name) => self.submit_field(&name),
            Purpose::Light(request) => self.submit_light(request, &text),
            Purpose::MappingLight(light) => self.submit_mapping_light(light, &text),
            Purpose::Phrase { phrase, act } if phrase.is_met(&text) => self.requests.act(*act),
            Purpose::Phrase { phrase, act } => {
                let again = Prompt::new(asks, Line::default(), Purpose::Phrase { phrase, act });
                self.overlay =
                    Some(Overlay::Line(Prompt { refused: Some("that is something else".to_owned()), ..again }));
            }
        }
    }
}
