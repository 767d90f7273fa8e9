//! What an exchange took and cost: as its API says, else estimated; by the cost that the API says, else by prices of a day.

use std::time::Duration;

use crate::costs::{self, Allowance};
use crate::pieces::Pieces;
use crate::record::Tokens;
use crate::{Message, Part, Question, Usage};
use conductor_package::descriptor::ModelDeclaration;

/// What is known of an exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'e> {
    pub(crate) pieces: &'e Pieces,
    /// Whether it came to the answer's end.
    pub(crate) is_whole: bool,
    /// How long it took.
    pub(crate) took: Duration,
    /// What it cost, as the API says.
    pub(crate) cost: Option<u64>,
    /// Tokens written to a cache, as the API says.
    pub(crate) cache_written: u64,
}

/// What is known of the prices of a model.
pub(crate) struct Tariff {
    /// What its feature or the configuration says of it.
    pub(crate) declared: Option<ModelDeclaration>,
    /// Whether it costs nothing.
    pub(crate) is_free: bool,
    /// As [`Charge::prices_as_of`].
    pub(crate) prices_as_of: Option<String>,
}

/// What an exchange took and cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    /// Tokens.
    pub tokens: Tokens,
    /// Whether the API did not say them, so that they are estimated.
    pub estimated: bool,
    /// In billionths of a US dollar. `None` if unknown.
    pub cost: Option<u64>,
    /// The day of the prices that the cost was calculated by: `2026-11-24`. `None` if the API said the cost, or the
    /// configuration has the prices.
    pub prices_as_of: Option<String>,
}

impl Charge {
    /// What an exchange with a model of this tariff took and cost.
    pub(crate) fn of(tariff: Tariff, taken: &Taken<'_>, allowed: &Allowance) -> Self {
        let Taken { pieces, is_whole, took, cost, cache_written } = *taken;
        let Tariff { declared, is_free, prices_as_of } = tariff;
        let said = pieces.usage.map(tokens).unwrap_or_default();
        let estimated = !is_whole || (said.input == 0 && said.output == 0);
        let tokens = if estimated {
            let thinks = declared.as_ref().and_then(|model| model.thinks);
            allowed.estimated(pieces.came, took, thinks.unwrap_or(!is_free && !is_whole), said)
        } else {
            said
        };
        let (cost, prices_as_of) = match cost {
            // On this computer nothing is charged, whatever is counted.
            _ if is_free => (Some(0), None),
            Some(cost) => (Some(cost), None),
            None => {
                let cost = costs::cost(declared.as_ref(), tokens, cache_written);
                (cost, prices_as_of.filter(|_| cost.is_some()))
            }
        };
        Self { tokens, estimated, cost, prices_as_of }
    }
}

/// The bytes of a question, about.
pub(crate) fn size(question: &Question) -> usize {
    let tool = |tool: &crate::Tool| tool.name.len() + tool.description.len() + tool.input.len();
    let tools: usize = question.tools.iter().map(tool).sum();
    question.instructions.len() + tools + question.messages.iter().map(of_message).sum::<usize>()
}

/// The bytes of a message, about.
pub(crate) fn of_message(message: &Message) -> usize {
    let part = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::Image(image) => image.data.len(),
        Part::Reasoning(thought) => thought.text.len() + thought.mark.as_ref().map_or(0, String::len),
        Part::ToolCall(call) => call.args.len() + call.name.len() + call.mark.as_ref().map_or(0, String::len),
        Part::ToolResult(result) => result.content.len() + result.name.len(),
    };
    message.parts.iter().map(|one| part(one) + 32).sum()
}

fn tokens(usage: Usage) -> Tokens {
    let Usage { input, cached, output } = usage;
    Tokens { input: input.into(), cached: cached.into(), output: output.into() }
}
