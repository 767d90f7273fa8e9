//! Google's Gemini API: what to send, and what comes back.
//!
//! The host does the rest: it sends, waits, tries again, and puts the key in, which never comes here. Each exchange has
//! an instance of its own.
//!
//! The formats are those of Google's documentation, "Generating content", "Function calling", "Thought signatures",
//! "Gemini thinking", "Structured outputs" and "Safety settings" (ai.google.dev/gemini-api/docs), and of the types of its
//! Python SDK google-genai 3.6.1, as of November 2026.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle};

pub mod answer;
pub mod ask;

struct Gemini;

impl Lifecycle for Gemini {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("gemini")
    }
}

model_wire::provider!(Gemini, answer::Content, ask::outgoing);

conductor_feature::feature!(Gemini, "../feature.toml", [providers, exchange_details]);
