//! A chat completion: one request to a model, and its streamed answer, with retries and backoff.
//!
//! The provider's instance says what to send; the request then takes the same guarded way as every other
//! ([`conductor_services::http`]), under the grant of the provider's feature. Too many requests and errors of the
//! server are retried a few times, after the server's `Retry-After` or with exponential backoff. The response
//! goes through the provider piece by piece.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::Gathering;
use super::queue::Place;
use super::{Event, Question};
use conductor_registry::Provider;
use conductor_sandbox::CallError;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::exchange::{Abilities, Endpoint, Exchange, Outgoing, Report, Request};
use conductor_sandbox::model_view::Answer;
use conductor_sandbox::runnable::{check_quarantine, record_trap};
use conductor_sandbox::state::FeatureFacts;
use conductor_services::error::ServiceError;
use conductor_services::http::{self, HttpError, HttpScope, SecretUse, StreamLimits, Streamed};
use conductor_terminal::excerpt;

/// Times that a request is sent at most.
pub const MAX_ATTEMPTS: u32 = 4;
/// How long to wait before the second attempt where the server does not say; it doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
/// The longest that a server may ask to wait: beyond that, its refusal is the answer.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Time for everything, from the question to the last piece of the answer.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(600);
/// What one request may take. Models that are not streamed think for minutes before they say a word.
const REQUEST_TIMEOUTS: StreamLimits = StreamLimits {
    head: Duration::from_secs(300),
    pause: Duration::from_secs(120),
    request: 4 * 1024 * 1024,
    answer: 8 * 1024 * 1024,
};
/// Bytes of an answer that go into the provider at once.
const MAX_PIECE: usize = 64 * 1024;
/// Bytes of why a server refuses to answer, beyond which no more is read.
const MAX_REFUSAL: usize = 128 * 1024;
/// Events that wait for the caller.
const QUEUE_CAPACITY: usize = 64;

/// What is asked of which model.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The provider, as its feature calls it.
    pub provider: String,
    /// The model, as the provider calls it.
    pub model: String,
    /// The base URL; `None` if it is the provider's default.
    pub url: Option<String>,
    /// The id of the secret; `None` if it is the provider's default, or there is none.
    pub secret: Option<String>,
    /// The variable of the host's environment that has its value; `None` if it is where secrets are kept.
    pub variable: Option<String>,
    /// Whether it may only be asked at an address of this machine.
    pub local_only: bool,
    /// What the model can do.
    pub abilities: Abilities,
    /// What to ask.
    pub question: Question,
}

/// An answer on its way. Dropping it ends the exchange.
#[derive(Debug)]
pub struct Completion {
    events: mpsc::Receiver<Event>,
    state: Arc<AnswerState>,
}

/// What there is of an answer when its events have ended.
#[derive(Debug, Default)]
struct AnswerState {
    report: OnceLock<Report>,
    /// The whole answer, until it is taken.
    answer: Mutex<Option<Answer>>,
    /// Whether it was sent, and not refused.
    is_charged: Arc<AtomicBool>,
}

impl Completion {
    /// The next event. The last ones are `stop`, which `usage` may follow, or `failed`; then there is none.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, if it is there already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// What the API says of the answer beside its events: the cost, what went otherwise than asked for. `None` before
    /// [`next`](Self::next) has returned `None`, and where the provider does not report it.
    pub fn report(&self) -> Option<&Report> {
        self.state.report.get()
    }

    /// Whether the API may charge for it, from now on: it was sent, and not refused so far.
    pub(crate) fn charged(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.state.is_charged)
    }

    /// The whole answer, once. `None` before [`next`](Self::next) has returned `None`, and where there is no whole answer.
    pub fn take_answer(&self) -> Option<Answer> {
        self.state.answer.lock().take()
    }
}

/// Sends the request, and returns the events of the answer as they come. `cancelled` ends it at any moment. `place` is
/// given back with its end.
pub fn complete(provider: Provider, ask: Ask, place: Place, cancelled: CancellationToken) -> Completion {
    let (events, received) = mpsc::channel(QUEUE_CAPACITY);
    let runtime = provider.feature.runtime().clone();
    let state = Arc::<AnswerState>::default();
    let shared = Arc::clone(&state);
    runtime.spawn(async move {
        let _place = place;
        let gone = events.clone();
        let done = tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(Error::Failed("it was cancelled".into())),
            () = gone.closed() => return,
            done = tokio::time::timeout(TOTAL_TIMEOUT, run(&provider, ask, &events, &shared)) => {
                done.unwrap_or_else(|_| Err(Error::Failed(format!("no whole answer within {} s", TOTAL_TIMEOUT.as_secs()))))
            }
        };
        if let Err(error) = done {
            let _ = events.send(Event::Failed(error)).await;
        }
    });
    Completion { events: received, state }
}

/// An error of the instance, in the contract's words. Traps count against the feature.
fn explained(facts: &FeatureFacts, error: CallError) -> Error {
    match error {
        CallError::Refused(refusal) => refusal.into(),
        CallError::Trapped(reason) => {
            record_trap(facts);
            Error::Failed(format!("the provider of {}: {reason}", facts.descriptor.id))
        }
    }
}

async fn run(provider: &Provider, ask: Ask, events: &mpsc::Sender<Event>, state: &AnswerState) -> Result<(), Error> {
    let facts = provider.feature.facts();
    let failed = |error| explained(facts, error);
    check_quarantine(facts).map_err(failed)?;
    let scope = facts.http_scope(&provider.network)?;
    let Ask { provider: name, model, url, secret, variable, local_only, abilities, question } = ask;
    let endpoint = Endpoint { url, secret };
    let request = Request { provider: name, model, endpoint, question, stream: abilities.streams };
    let (mut exchange, outgoing) = Exchange::begin(&provider.feature, &request, abilities).await.map_err(failed)?;
    if local_only && !is_here(&outgoing.url) {
        return Err(Error::Denied(format!("{LOCAL_ONLY}; it would be asked at {}", excerpt(&outgoing.url, 200))));
    }
    let mut answer = sent(facts, &scope, outgoing, variable, &state.is_charged).await?;
    exchange.head(answer.status, &answer.headers).await.map_err(failed)?;

    let mut gathering = Gathering::default();
    let mut broken = None;
    let is_refusal = !(200..300).contains(&answer.status);
    let mut size = 0;
    loop {
        match answer.next().await {
            // The status says it; who goes on and on about why is not listened to.
            Ok(Some(_)) if is_refusal && size > MAX_REFUSAL => break,
            Ok(Some(piece)) => {
                size += piece.len();
                for piece in piece.chunks(MAX_PIECE) {
                    let received = exchange.body(piece).await.map_err(failed)?;
                    pass(received, &mut gathering, events).await?;
                }
            }
            Ok(None) => break,
            Err(_) if is_refusal => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    if broken.is_none() {
        let received = exchange.end().await.map_err(failed)?;
        pass(received, &mut gathering, events).await?;
    }
    match exchange.report().await {
        Ok(report) => report.into_iter().for_each(|report| drop(state.report.set(report))),
        // The answer is there all the same.
        Err(error) => {
            let error = ServiceError::from(failed(error));
            tracing::warn!(feature = %facts.descriptor.id, "no report of an exchange: {error}");
        }
    }
    match (gathering.answer(), broken) {
        // All was said before it broke.
        (Some(answer), _) => {
            *state.answer.lock() = Some(answer);
            Ok(())
        }
        (None, Some(error)) => Err(error.into()),
        (None, None) => Err(Error::Failed("the answer was cut off".into())),
    }
}

/// Looks at events, and passes them on to the caller.
async fn pass(received: Vec<Event>, gathering: &mut Gathering, events: &mpsc::Sender<Event>) -> Result<(), Error> {
    for event in received {
        gathering.take(event.clone())?;
        // A caller that is gone ends this elsewhere.
        let _ = events.send(event).await;
    }
    Ok(())
}

/// Sends a request, again where that may help, and returns the answer that counts. `is_charged` is whether an API may have
/// it and has not refused it: also where its answer is not read, or never came.
async fn sent<'a>(
    facts: &'a FeatureFacts,
    scope: &HttpScope,
    outgoing: Outgoing,
    variable: Option<String>,
    is_charged: &AtomicBool,
) -> Result<Streamed<'a>, Error> {
    let Outgoing { method, url, headers, body, secret } = outgoing;
    let secret = secret.map(|secret| SecretUse { id: secret.id, header: secret.header, prefix: secret.prefix });
    let request = http::Request { method, url, headers, body, secret, variable };
    let mut pause = INITIAL_BACKOFF;
    let mut attempt = 1;
    loop {
        let client = &facts.services.http;
        let (account, request) = (&facts.http_account, request.clone());
        let answer = client.stream(account, scope, request, REQUEST_TIMEOUTS, facts.ended(), is_charged).await?;
        is_charged.store((200..300).contains(&answer.status), Ordering::Release);
        let again = answer.status == 429 || answer.status >= 500;
        let wait = retry_after(&answer.headers, SystemTime::now()).unwrap_or(pause);
        if !again || attempt == MAX_ATTEMPTS || wait > MAX_BACKOFF {
            return Ok(answer);
        }
        tracing::info!(feature = %facts.descriptor.id, "status {}; tried again in {wait:?}", answer.status);
        // Its place is given back while it waits.
        drop(answer);
        tokio::select! {
            () = facts.ended().cancelled() => return Err(HttpError::Denied("the grant was revoked".into()).into()),
            () = tokio::time::sleep(wait) => {}
        }
        pause *= 2;
        attempt += 1;
    }
}

/// Why a model elsewhere is not asked.
pub(crate) const LOCAL_ONLY: &str = "only models on this computer may be asked (`local_only = true` under [llm])";

/// Whether a URL leads to this machine.
pub(crate) fn is_here(url: &str) -> bool {
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    // The client refuses `localhost` where it resolves to another machine.
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// What a server says about when to come back: seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &[(String, String)], now: SystemTime) -> Option<Duration> {
    let (_, value) = headers.iter().find(|(name, _)| name == "retry-after")?;
    match value.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_told_by_its_host() {
        for here in ["http://localhost:11434/v1", "http://127.0.0.1", "http://[::1]:8080/v1", "http://127.1.2.3/v1"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "https://api.openai.com/v1",
            "https://localhost.example.com/",
            "https://user@localhost.example.com/",
            "https://x.example/?localhost",
            "localhost",
            "",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn a_server_says_when_to_come_back_in_seconds_or_by_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |value: &str| retry_after(&[("retry-after".into(), value.into())], now);
        assert_eq!(after("3"), Some(Duration::from_secs(3)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO), "a date that is over");
        assert_eq!(after("soon"), None);
        assert_eq!(after("-1"), None);
        assert_eq!(retry_after(&[], now), None);
    }
}
