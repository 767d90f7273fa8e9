//! OpenAI's Chat Completions, at any base URL: what to send, and what comes back.
//!
//! The host does the rest: it sends, waits, tries again, and puts the key in, which never comes here. Each
//! exchange has an instance of its own, so there is one answer to read at most.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::cell::RefCell;

use conductor_feature::chat::Event;
use conductor_feature::provider::{Outgoing, Request};
use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Lifecycle, Providers};

pub mod answer;
pub mod ask;
mod lines;

use answer::Answer;

struct OpenAiCompatible;

thread_local! {
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
}

impl Lifecycle for OpenAiCompatible {
    fn install(ctx: &Context) -> Result<(), Error> {
        Registrar::open(ctx)?.register("openai-compatible")
    }
}

/// Works with the answer that is being read.
fn with_answer(work: impl FnOnce(&mut Answer) -> Vec<Event>) -> Vec<Event> {
    ANSWER.with_borrow_mut(|answer| match answer {
        Some(answer) => work(answer),
        None => vec![Event::Failed(Error::Failed("the answer has no head".into()))],
    })
}

impl Providers for OpenAiCompatible {
    fn begin(request: Request) -> Result<Outgoing, Error> {
        ask::outgoing(request)
    }

    fn head(status: u16, headers: Vec<(String, String)>) {
        ANSWER.set(Some(Answer::new(status, &headers)));
    }

    fn body(bytes: Vec<u8>) -> Vec<Event> {
        with_answer(|answer| answer.push(&bytes))
    }

    fn end() -> Vec<Event> {
        with_answer(Answer::end)
    }
}

conductor_feature::feature!(OpenAiCompatible, "../feature.toml", [providers]);
