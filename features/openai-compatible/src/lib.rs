//! OpenAI's Chat Completions, at any base URL: what to send, and what comes back.
//!
//! The host does the rest: it sends, waits, tries again, and puts the key in, which never comes here. Each exchange has
//! an instance of its own.
//!
//! Three providers, which differ in where they are asked and in what they add to the format: `openai-compatible`,
//! `openrouter` and `litellm`. The formats are those of OpenAI's documentation, "Chat Completions" (developers.openai.com),
//! of OpenRouter's, "Streaming", "Usage accounting", "Reasoning tokens" and "Errors" (openrouter.ai/docs), and of
//! LiteLLM's, "Thinking / reasoning content" and "Response headers" (docs.litellm.ai), as of November 2026.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle};

pub mod answer;
pub mod ask;

struct OpenAiCompatible;

impl Lifecycle for OpenAiCompatible {
    fn install(ctx: &Context) -> Result<(), Error> {
        let registrar = Registrar::open(ctx)?;
        ask::PROVIDERS.iter().try_for_each(|(name, _)| registrar.register(name))
    }
}

model_wire::provider!(OpenAiCompatible, answer::ChatCompletions, ask::outgoing);

conductor_feature::feature!(OpenAiCompatible, "../feature.toml", [providers, exchange_details]);
