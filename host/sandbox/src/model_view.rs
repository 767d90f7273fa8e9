//! The host's models, as services for features see them.

use std::fmt;
use std::pin::Pin;

use crate::bindings::Error;
use crate::bindings::imports::chat::{Part, Question, StopReason, Usage};

/// A whole answer of a model.
#[derive(Debug, Clone)]
pub struct Answer {
    /// What it said.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it took, by the API's count.
    pub usage: Usage,
    /// Bytes of text in it: what it took at least, whatever was counted.
    pub size: usize,
}

/// What a [`ModelView`] answers later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The host's models, as services for features see them.
pub trait ModelView: fmt::Debug + Send + Sync {
    /// The models that there are.
    fn names(&self) -> Vec<String>;

    /// Asks a model, for the feature `asker` (its id), and waits for the whole answer. Dropping the future
    /// ends it.
    ///
    /// # Errors
    /// As the contract's `ask`.
    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<Answer, Error>>;
}
