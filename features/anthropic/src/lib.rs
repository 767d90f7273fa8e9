//! Anthropic's Messages API: what to send, and what comes back.
//!
//! The host does the rest: it sends, waits, tries again, and puts the key in, which never comes here. Each exchange has
//! an instance of its own.
//!
//! The formats are those of Anthropic's documentation, "Messages", "Streaming messages", "Thinking", "Tool use", "Prompt
//! caching", "Structured outputs" and "Errors" (platform.claude.com/docs), and of the types of its Python SDK 2.13.0, as of
//! November 2026.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle};

pub mod answer;
pub mod ask;
pub mod generation;

struct Anthropic;

impl Lifecycle for Anthropic {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("anthropic")
    }
}

model_wire::provider!(Anthropic, answer::Messages, ask::outgoing);

conductor_feature::feature!(Anthropic, "../feature.toml", [providers, exchange_details]);
