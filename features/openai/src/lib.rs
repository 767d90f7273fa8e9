//! OpenAI's Responses API: what to send, and what comes back.
//!
//! The host does the rest: it sends, waits, tries again, and puts the key in, which never comes here. Each exchange has
//! an instance of its own.
//!
//! The formats are those of OpenAI's documentation, "Responses", "Streaming responses", "Reasoning models", "Function
//! calling", "Structured outputs" and "Conversation state" (developers.openai.com/api/docs), and of the types of its
//! Python SDK 3.57.0, as of November 2026.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle};

pub mod answer;
pub mod ask;
pub mod item;

struct OpenAi;

impl Lifecycle for OpenAi {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("openai")
    }
}

model_wire::provider!(OpenAi, answer::Responses, ask::outgoing);

conductor_feature::feature!(OpenAi, "../feature.toml", [providers, exchange_details]);
