//! The HTTP client: one request, from a feature's arguments to the response that it may see.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderValue};
use tokio::sync::SemaphorePermit;
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::http::account::HttpAccount;
use crate::http::network::{BodyStream, Incoming, Network, NetworkError, Outgoing};
use crate::http::request::{self, Checked, CheckedSecret};
use crate::http::secrets::{Redactor, Secret, SecretAudit, Secrets, from_environment};
use crate::http::{HttpError, Request, Response};
use conductor_net::address;
use conductor_net::http_scope::{HttpScope, Site};
use conductor_package::admission::Grantee;
use conductor_package::consent;

/// How long a whole exchange may take, from the name to the last byte of the body.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a response's body.
pub const MAX_BODY: usize = 4 * 1024 * 1024;
/// Headers of a response.
pub const MAX_HEADERS: usize = 100;
/// Bytes of a response's header names and values together.
pub const MAX_HEADER_BYTES: usize = 64 * 1024;

/// Sends what grants allow. One serves all features; it runs within a `tokio` runtime.
#[derive(Debug, Clone)]
pub struct HttpClient {
    network: Arc<dyn Network>,
    secrets: Arc<dyn Secrets>,
    witness: Option<Arc<dyn SecretAudit>>,
    timeout: Duration,
}

impl HttpClient {
    /// A client that gives each exchange [`TIMEOUT`].
    pub fn new(network: Arc<dyn Network>, secrets: Arc<dyn Secrets>) -> Self {
        Self { network, secrets, witness: None, timeout: TIMEOUT }
    }

    /// The same, with an audit of every secret that is sent.
    #[must_use]
    pub fn witnessed(mut self, witness: Arc<dyn SecretAudit>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// The same with another timeout, of at most [`TIMEOUT`].
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.min(TIMEOUT);
        self
    }

    /// Sends a request of the feature that `account` belongs to, and waits for the whole response.
    /// Dropping the future, or cancelling `revoked`, ends the exchange at once.
    ///
    /// # Errors
    /// - `Denied`: `scope` covers not this host and port, or not the secret for them; a name leads to
    ///   an address that is not public; `revoked` was cancelled.
    /// - `Invalid`: the request breaks the contract.
    /// - `Exhausted`: the account's rate or places are used up; the response is too large.
    /// - `Unavailable`: the name has no address, the secret no value, or no server answers.
    /// - `Failed`: the connection broke, or the time ran out.
    pub async fn send(
        &self,
        account: &HttpAccount,
        scope: &HttpScope,
        request: Request,
        revoked: &CancellationToken,
    ) -> Result<Response, HttpError> {
        tokio::select! {
            biased;
            () = revoked.cancelled() => Err(was_revoked()),
            done = tokio::time::timeout(self.timeout, self.exchange(account, scope, request)) => {
                let late = |_| Err(HttpError::Failed(format!("no whole answer within {:?}", self.timeout)));
                done.unwrap_or_else(late).map_err(HttpError::kept)
            }
        }
    }

    /// The same, with an answer that is handed over as it comes: dropping it ends the exchange. There may be many at once
    /// ([`MAX_STREAMS`](crate::http::account::MAX_STREAMS)); more wait for their turn. `is_sent` is set as soon as the server
    /// may have the request, whatever the outcome.
    ///
    /// # Errors
    /// As [`send`](Self::send), as far as the head of the answer.
    pub async fn stream<'a>(
        &self,
        account: &'a HttpAccount,
        scope: &HttpScope,
        request: Request,
        patience: StreamLimits,
        revoked: &CancellationToken,
        is_sent: &AtomicBool,
    ) -> Result<Streamed<'a>, HttpError> {
        let place = tokio::select! {
            biased;
            () = revoked.cancelled() => return Err(was_revoked()),
            place = account.enter_stream() => place,
        };
        let head = async {
            let checked = request::check(request, scope, account.grantee(), patience.request)?;
            let Opened { site, secret, incoming } = self.open(account, scope, checked, is_sent).await?;
            let (status, headers) =
                head(&incoming, secret.as_ref()).map_err(|error| error.explained(&site, secret.as_ref()))?;
            Ok(Streamed {
                _place: place,
                status,
                headers,
                site,
                redactor: secret.clone().map(Redactor::new),
                secret,
                pieces: incoming.body,
                read: 0,
                patience,
                revoked: revoked.clone(),
            })
        };
        tokio::select! {
            biased;
            () = revoked.cancelled() => Err(was_revoked()),
            done = tokio::time::timeout(patience.head, head) => {
                let late = |_| Err(HttpError::Failed(format!("no answer within {:?}", patience.head)));
                done.unwrap_or_else(late).map_err(HttpError::kept)
            }
        }
    }

    async fn exchange(
        &self,
        account: &HttpAccount,
        scope: &HttpScope,
        request: Request,
    ) -> Result<Response, HttpError> {
        let checked = request::check(request, scope, account.grantee(), request::MAX_BODY)?;
        let _place = account.enter(Instant::now())?;
        let is_sent = AtomicBool::new(false);
        let Opened { site, secret, incoming } = self.open(account, scope, checked, &is_sent).await?;
        whole(incoming, secret.as_ref()).await.map_err(|error| error.explained(&site, secret.as_ref()))
    }

    /// Sends a request for which there is a place, and waits for the head of the answer.
    async fn open(
        &self,
        account: &HttpAccount,
        scope: &HttpScope,
        checked: Checked,
        is_sent: &AtomicBool,
    ) -> Result<Opened, HttpError> {
        let Checked { method, url, site, mut headers, body, secret } = checked;
        let addresses = self.addresses(scope, &site, account.grantee()).await?;
        let secret = match secret {
            Some(usage) => Some(self.add_secret(usage, &mut headers, account.feature(), &site).await?),
            None => None,
        };
        // Before the connection is there, since whatever ends this may do so at any moment after it.
        is_sent.store(true, Ordering::Release);
        match self.network.exchange(Outgoing { addresses, method, url, headers, body }).await {
            Ok(incoming) => Ok(Opened { site, secret, incoming }),
            Err(error) => {
                is_sent.store(!matches!(error, NetworkError::Unreachable(_)), Ordering::Release);
                Err(ExchangeError::from(error).explained(&site, secret.as_ref()))
            }
        }
    }

    /// Where `site` may be dialled: all its addresses, each of them checked.
    async fn addresses(&self, scope: &HttpScope, site: &Site, feature: &Grantee) -> Result<Vec<SocketAddr>, HttpError> {
        let found = match site.host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.network.resolve(&site.host).await.map_err(|error| {
                HttpError::Unavailable(format!("the name {} can't be resolved: {error}", site.host))
            })?,
        };
        if found.is_empty() {
            return Err(HttpError::Unavailable(format!("the name {} has no address", site.host)));
        }
        for &address in &found {
            if site.host == "localhost" {
                if !address.is_loopback() {
                    return Err(HttpError::Denied(format!("localhost resolves to {address}, not to this machine")));
                }
            } else if let Some(kind) = address::not_public(address)
                && !scope.covers_address(address, site)
            {
                let itself = Site { host: address.to_string(), ..site.clone() };
                return Err(HttpError::Denied(format!(
                    "{} resolves to {address}, {kind}; if that is meant, {}, too",
                    site.host,
                    feature.advice(
                        &format!("http = [\"{itself}\"]"),
                        &consent::word("network", &format!("http:{itself}"))
                    )
                )));
            }
        }
        Ok(found.into_iter().map(|address| (address, site.port).into()).collect())
    }

    async fn add_secret(
        &self,
        usage: CheckedSecret,
        headers: &mut HeaderMap,
        feature: &str,
        site: &Site,
    ) -> Result<Secret, HttpError> {
        let CheckedSecret { id, header, prefix, variable } = usage;
        let (secrets, wanted) = (Arc::clone(&self.secrets), id.clone());
        let get = move || match variable {
            Some(variable) => from_environment(&wanted, &variable, std::env::var_os(&variable)),
            None => secrets.get(&wanted),
        };
        let secret = tokio::task::spawn_blocking(get)
            .await
            .map_err(|_| HttpError::Unavailable("the secret could not be read".into()))?
            .map_err(|error| HttpError::Unavailable(error.to_string()))?;
        let value = secret
            .header(&prefix)
            .ok_or_else(|| HttpError::Invalid(format!("the secret's prefix can't stand in the header {header}")))?;
        headers.insert(header, value);
        if let Some(witness) = &self.witness {
            witness.sent(feature, &id, &site.to_string(), &secret);
        }
        Ok(secret)
    }
}

fn was_revoked() -> HttpError {
    HttpError::Denied("the grant was revoked".into())
}

/// How long, and how much, an answer that is handed over as it comes may be.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Time until the head of the response has arrived.
    pub head: Duration,
    /// Time from one piece of its body to the next.
    pub pause: Duration,
    /// Bytes of the request's body.
    pub request: usize,
    /// Bytes of the answer's body.
    pub answer: usize,
}

/// An exchange whose answer has begun.
struct Opened {
    site: Site,
    secret: Option<Secret>,
    incoming: Incoming,
}

/// An answer that is handed over as it comes, without the secret.
pub struct Streamed<'a> {
    _place: SemaphorePermit<'a>,
    /// 200-599.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    site: Site,
    secret: Option<Secret>,
    redactor: Option<Redactor>,
    pieces: BodyStream,
    read: usize,
    patience: StreamLimits,
    revoked: CancellationToken,
}

impl std::fmt::Debug for Streamed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streamed").field("site", &self.site).field("status", &self.status).finish_non_exhaustive()
    }
}

impl Streamed<'_> {
    /// The next piece of the body, which may be empty; none at its end.
    ///
    /// # Errors
    /// `Denied` when the grant is revoked, `Exhausted` when the answer is too large, `Failed` when it breaks
    /// off or pauses for too long. There is nothing more to come then.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        let Self { pieces, patience, revoked, .. } = self;
        let piece = tokio::select! {
            biased;
            () = revoked.cancelled() => return Err(was_revoked()),
            piece = tokio::time::timeout(patience.pause, pieces.next()) => piece,
        };
        let piece = piece.map_err(|_| {
            HttpError::Failed(format!("{}: nothing more came for {:?}", self.site, self.patience.pause))
        })?;
        let failed = |error: ExchangeError| error.explained(&self.site, self.secret.as_ref()).kept();
        let Some(piece) = piece else {
            return Ok(self.redactor.take().map(Redactor::rest).filter(|rest| !rest.is_empty()));
        };
        let piece = piece.map_err(|error| failed(error.into()))?;
        self.read += piece.len();
        if self.read > self.patience.answer {
            return Err(failed(ExchangeError::TooLarge("the response's body is too large")));
        }
        Ok(Some(match &mut self.redactor {
            Some(redactor) => redactor.pass(&piece),
            None => piece.into(),
        }))
    }
}

/// Why there is no whole response.
enum ExchangeError {
    Network(NetworkError),
    TooLarge(&'static str),
    Status(u16),
}

impl From<NetworkError> for ExchangeError {
    fn from(error: NetworkError) -> Self {
        Self::Network(error)
    }
}

impl ExchangeError {
    /// The error as the feature sees it. What the other side wrote may be in it, so the secret is
    /// taken out.
    fn explained(self, site: &Site, secret: Option<&Secret>) -> HttpError {
        let text = |why: String| {
            let why = match secret {
                Some(secret) => clean(why.into_bytes(), secret),
                None => why,
            };
            format!("{site}: {why}")
        };
        match self {
            Self::Network(NetworkError::Unreachable(why)) => HttpError::Unavailable(text(why)),
            Self::Network(NetworkError::Broken(why)) => HttpError::Failed(text(why)),
            Self::Network(why @ NetworkError::HeadTooLarge) => HttpError::Exhausted(text(why.to_string())),
            Self::TooLarge(what) => HttpError::Exhausted(text(what.to_owned())),
            Self::Status(status) => HttpError::Failed(text(format!("the status {status} is not within 200-599"))),
        }
    }
}

fn clean(bytes: Vec<u8>, secret: &Secret) -> String {
    String::from_utf8_lossy(&secret.taken_out_of(bytes)).into_owned()
}

/// A response's status and headers, as long as they keep within the limits, without the secret.
fn head(incoming: &Incoming, secret: Option<&Secret>) -> Result<(u16, Vec<(String, String)>), ExchangeError> {
    let Incoming { status, headers, .. } = incoming;
    if !(200..=599).contains(status) {
        return Err(ExchangeError::Status(*status));
    }
    if headers.len() > MAX_HEADERS {
        return Err(ExchangeError::TooLarge("the response has more than 100 headers"));
    }
    if headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum::<usize>() > MAX_HEADER_BYTES {
        return Err(ExchangeError::TooLarge("the response's headers have more than 64 KiB"));
    }
    let header = |name: &str, value: &HeaderValue| match secret {
        Some(secret) => {
            let name = String::from_utf8_lossy(&secret.taken_out_of_name(name)).into_owned();
            (name, clean(value.as_bytes().to_vec(), secret))
        }
        None => (name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()),
    };
    Ok((*status, headers.iter().map(|(name, value)| header(name.as_str(), value)).collect()))
}

/// Reads a response to its end, as long as it keeps within the limits, and takes the secret out.
async fn whole(incoming: Incoming, secret: Option<&Secret>) -> Result<Response, ExchangeError> {
    let (status, headers) = head(&incoming, secret)?;
    let mut pieces = incoming.body;
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if body.len() + piece.len() > MAX_BODY {
            return Err(ExchangeError::TooLarge("the response's body has more than 4 MiB"));
        }
        body.extend_from_slice(&piece);
    }
    if let Some(secret) = secret {
        body = secret.taken_out_of(body);
    }
    Ok(Response { status, headers, body })
}

#[cfg(test)]
mod tests;
