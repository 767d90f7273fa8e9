//! The event stream: observations of the host, one JSON object each, with a cursor for resuming.
//!
//! Every client reads the [history](conductor_observer::history) at its own pace. One that is slower than the host
//! gets the number of lost observations; nothing waits for it, and nothing is kept for it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::door::Client;
use super::error::{Code, ErrorResponse};
use super::scope::Scope;
use conductor_chat::conversations::NO_ANSWER;
use conductor_control_names::ControlNames;
use conductor_host::control::trouble::Misconduct;
use conductor_host::host::Host;
use conductor_observation::{Kind, ObservationView};
use conductor_observer::history::{History, HistoryEntry};
use conductor_observer::{ModelChange, Observation, is_private};
use conductor_stdx::digest::hex;

/// What is sent at once, at most.
const MAX_BATCH: usize = 256;
/// How long observations are batched for a client, so that many clients cost little.
const BATCH_INTERVAL: Duration = Duration::from_millis(10);

/// From where, and what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamQuery {
    /// What came after this cursor, as far as it is kept; `start` for all that is. Default: from now on.
    #[serde(default)]
    pub after: Option<String>,
    /// Only these, with commas between them: event, failure, mode, lights, port, reload, plan, lock, diagnostic,
    /// alert, notification, model, and for the owner chat. Default: all that the client may see.
    #[serde(default)]
    pub kinds: Option<String>,
}

/// One message of the stream.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamItem {
    /// Where in the stream this is: what `after` takes.
    pub cursor: String,
    /// What happened.
    #[serde(flatten)]
    pub what: ObservationView,
}

/// A client's place in the stream.
#[derive(Debug)]
pub(super) struct Reader {
    host: Weak<Host>,
    history: History,
    last: watch::Receiver<u64>,
    /// The last that was sent, or lost.
    position: u64,
    /// `None` if it is all.
    kinds: Option<BTreeSet<Kind>>,
    /// Whether keys are shown that are typed (see [`is_private`]), and what APIs of models say.
    is_owner: bool,
    names: Arc<ControlNames>,
    /// What is sent first.
    first: Option<Arc<str>>,
    gathered: Instant,
    /// Its place among its client's streams.
    _permit: OwnedSemaphorePermit,
}

/// What tells the cursors of this process from those of others.
fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    RUN.get_or_init(|| {
        let mut run = [0; 4];
        // Without randomness the number of the process has to do.
        if getrandom::fill(&mut run).is_err() {
            run = std::process::id().to_be_bytes();
        }
        hex(&run)
    })
}

fn cursor(number: u64) -> String {
    format!("{}.{number}", run())
}

fn line(number: u64, what: ObservationView) -> String {
    // Of strings and numbers only: nothing in it can't be written.
    serde_json::to_string(&StreamItem { cursor: cursor(number), what }).unwrap_or_default()
}

impl Reader {
    /// A client's place, as it asks for it.
    ///
    /// # Errors
    /// 400 for a cursor or a kind that there is not; 403 for a kind that the client may not see; 429 if the client has too many streams.
    pub(super) fn new(
        host: &Arc<Host>,
        names: Arc<ControlNames>,
        client: &Client,
        which: StreamQuery,
    ) -> Result<Self, ErrorResponse> {
        let mut kinds = which.kinds.as_deref().map(kinds).transpose()?;
        // What is said in conversations is the owner's.
        let is_owner = client.holder.scope() >= Scope::Owner;
        if !is_owner {
            if kinds.as_ref().is_some_and(|kinds| kinds.contains(&Kind::Chat)) {
                let why = "events of the kind \"chat\" ask for the scope `owner`";
                return Err(ErrorResponse::new(StatusCode::FORBIDDEN, Code::Forbidden, why));
            }
            let others = || Kind::ALL.iter().map(|(_, kind)| *kind).filter(|kind| *kind != Kind::Chat).collect();
            kinds = Some(kinds.unwrap_or_else(others));
        }
        let history = host.observed().history().clone();
        let permit = client.quota.stream().inspect_err(|_| client.note(None, Misconduct::Streams))?;
        let last = history.last();
        let newest = *last.borrow();
        let (position, first) = match which.after.as_deref() {
            None => (newest, None),
            Some("start") => (history.start(), None),
            Some(after) => match place(after)? {
                (of, number) if of == run() && number <= newest => (number, None),
                // Of another run: what came between is not known.
                _ => {
                    let start = history.start();
                    (start, Some(line(start, ObservationView::Gap { lost: None }).into()))
                }
            },
        };
        // Weak, so that an open stream does not keep a stopping host alive.
        let host = Arc::downgrade(host);
        Ok(Self {
            host,
            history,
            last,
            position,
            kinds,
            is_owner,
            names,
            first,
            gathered: Instant::now(),
            _permit: permit,
        })
    }

    /// The next messages, at least one; `None` if the host is gone.
    pub(super) async fn next(&mut self) -> Option<Vec<Arc<str>>> {
        let mut messages: Vec<Arc<str>> = self.first.take().into_iter().collect();
        loop {
            let moments = self.history.after(self.position, MAX_BATCH);
            if moments.is_empty() && messages.is_empty() {
                // Changed since it was last looked at, or waited for.
                self.last.changed().await.ok()?;
                tokio::time::sleep_until(self.gathered + BATCH_INTERVAL).await;
                self.gathered = Instant::now();
                self.last.borrow_and_update();
                continue;
            }
            let host = self.host.upgrade()?;
            for moment in &moments {
                self.take(&host, moment, &mut messages);
            }
            if !messages.is_empty() {
                return Some(messages);
            }
        }
    }

    fn take(&mut self, host: &Host, moment: &HistoryEntry, messages: &mut Vec<Arc<str>>) {
        let lost = moment.number - self.position - 1;
        self.position = moment.number;
        if lost > 0 {
            messages.push(line(moment.number - 1, ObservationView::Gap { lost: Some(lost) }).into());
        }
        let is_shown = self.is_owner || !matches!(&moment.observation, Observation::Event(seen) if is_private(seen));
        if is_shown && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&Kind::of(&moment.observation))) {
            let whole = || ObservationView::named(&moment.observation, host, &self.names);
            messages.push(match for_others(&moment.observation).filter(|_| !self.is_owner) {
                Some(view) => line(moment.number, view).into(),
                None => moment.line(|| line(moment.number, whole())),
            });
        }
    }
}

/// What clients other than the owner's are shown of an observation. `None` if it is the same.
fn for_others(observation: &Observation) -> Option<ObservationView> {
    match observation {
        Observation::Model(ModelChange { model, error: Some(_) }) => {
            Some(ObservationView::Model { model: model.clone(), error: Some(NO_ANSWER.to_owned()) })
        }
        _ => None,
    }
}

fn kinds(text: &str) -> Result<BTreeSet<Kind>, ErrorResponse> {
    let kind = |word: &str| {
        let found = Kind::ALL.into_iter().find(|(name, _)| *name == word.trim());
        found.map(|(_, kind)| kind).ok_or_else(|| {
            let names = Kind::ALL.map(|(name, _)| name).join(", ");
            ErrorResponse::bad_request(format!("there are no events of the kind {word:?}; there are {names}"))
        })
    };
    text.split(',').map(kind).collect()
}

/// The run and the number of a cursor.
fn place(text: &str) -> Result<(&str, u64), ErrorResponse> {
    let place = text.split_once('.').and_then(|(run, number)| Some((run, number.parse().ok()?)));
    place.ok_or_else(|| {
        let mut shown = String::new();
        let _ = write!(shown, "{text:.40?} is not a cursor; write one that the stream has sent, or `start`");
        ErrorResponse::bad_request(shown)
    })
}
