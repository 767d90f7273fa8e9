//! A provider: encodes requests for an API, and decodes its responses. The host does the rest.
//!
//! Every exchange has an instance of its own, so there is at most one response to decode.

use std::cell::RefCell;

use conductor_feature::chat::{Event, Part, StopReason};
use conductor_feature::provider::{Outgoing, Request, Secret};
use conductor_feature::provider_registrar::Registrar;
use conductor_feature::{Context, Error, Providers};
use serde::{Deserialize, Serialize};

use crate::{{Type}};

/// What the API takes.
#[derive(Serialize)]
struct Ask {
    model: String,
    text: String,
}

/// What it gives.
#[derive(Deserialize)]
struct Answer {
    say: String,
}

thread_local! {
    static STATUS: RefCell<u16> = const { RefCell::new(0) };
    static BODY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Registers the provider that feature.toml declares.
pub fn install(ctx: &Context) -> Result<(), Error> {
    Registrar::open(ctx)?.register("{{name}}")
}

impl Providers for {{Type}} {
    fn begin(request: Request) -> Result<Outgoing, Error> {
        let text = |part: Part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        };
        let said = request.question.messages.into_iter().flat_map(|message| message.parts);
        let ask = Ask { model: request.model, text: said.filter_map(text).collect::<Vec<_>>().join("\n") };
        let base = request.endpoint.url.unwrap_or_else(|| "https://api.example.com/v1".into());
        Ok(Outgoing {
            method: "POST".into(),
            url: format!("{base}/say"),
            headers: vec![("content-type".into(), "application/json".into())],
            body: serde_json::to_vec(&ask).map_err(|error| Error::Failed(error.to_string()))?,
            secret: Some(Secret {
                id: request.endpoint.secret.unwrap_or_else(|| "{{name}}-key".into()),
                header: "authorization".into(),
                prefix: "Bearer ".into(),
            }),
        })
    }

    fn head(status: u16, _headers: Vec<(String, String)>) {
        STATUS.set(status);
    }

    // An API that streams would tell events here, as they come; bytes are cut anywhere.
    fn body(bytes: Vec<u8>) -> Vec<Event> {
        BODY.with_borrow_mut(|body| body.extend(bytes));
        Vec::new()
    }

    fn end() -> Vec<Event> {
        let (status, body) = (STATUS.take(), BODY.take());
        if status != 200 {
            return vec![Event::Failed(Error::Failed(format!("the API says {status}")))];
        }
        match serde_json::from_slice::<Answer>(&body) {
            Ok(answer) => vec![Event::Text(answer.say), Event::Stop(StopReason::Done)],
            Err(error) => vec![Event::Failed(Error::Failed(format!("the answer is not understood: {error}")))],
        }
    }
}
