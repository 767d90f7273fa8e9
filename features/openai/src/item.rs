//! The items that an answer consists of, and the marks by which they go back.
//!
//! A response is kept nowhere (`store: false`), so the API wants a model's reasoning back with the next question: sealed,
//! with its id. It also wants to know of each text whether it was a comment on the way or the answer (its phase). Both
//! become marks of thoughts: the first of the thought itself, the second of a thought without text after the text.

use model_wire::Str;
use serde::Deserialize;

/// What marks of sealed reasoning begin with; the item's id, `:` and what is sealed follow.
pub const REASONING: &str = "openai:reasoning:";
/// What marks of phases begin with.
pub const PHASE: &str = "openai:phase:";

/// An item of an answer: a message, reasoning, or a tool call.
#[derive(Debug, Deserialize)]
pub struct Item<'a> {
    /// `message`, `reasoning`, `function_call`, or that of a tool of the API's own.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// The item's id.
    #[serde(borrow, default)]
    pub id: Option<Str<'a>>,
    /// Of a call: its id.
    #[serde(borrow, default)]
    pub call_id: Option<Str<'a>>,
    /// Of a call: the tool.
    #[serde(borrow, default)]
    pub name: Option<Str<'a>>,
    /// Of a call: its arguments.
    #[serde(borrow, default)]
    pub arguments: Option<Str<'a>>,
    /// Of a message: whether it is the answer.
    #[serde(borrow, default)]
    pub phase: Option<Str<'a>>,
    /// Of reasoning: itself, sealed.
    #[serde(borrow, default)]
    pub encrypted_content: Option<Str<'a>>,
    /// Of reasoning: what may be shown of it.
    #[serde(borrow, default)]
    pub summary: Option<Vec<Piece<'a>>>,
    /// Of a message or reasoning: its texts.
    #[serde(borrow, default)]
    pub content: Option<Vec<Piece<'a>>>,
}

/// A text of an item.
#[derive(Debug, Deserialize)]
pub struct Piece<'a> {
    /// `output_text`, `refusal`, `summary_text` or `reasoning_text`.
    #[serde(borrow, rename = "type")]
    pub kind: Str<'a>,
    /// The text.
    #[serde(borrow, default)]
    pub text: Option<Str<'a>>,
    /// Of a refusal: its text.
    #[serde(borrow, default)]
    pub refusal: Option<Str<'a>>,
}

/// The mark for sealed reasoning.
pub fn reasoning_mark(id: &str, sealed: &str) -> String {
    format!("{REASONING}{id}:{sealed}")
}

/// The id and what is sealed, of what follows [`REASONING`] in a mark.
pub fn sealed(mark: &str) -> Option<(&str, &str)> {
    mark.split_once(':')
}
