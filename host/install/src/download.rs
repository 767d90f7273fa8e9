//! Downloads: a GET with redirects, each of whose targets is checked before it is dialled (SSRF protection).
//!
//! A person names one place. What that place answers (a redirect, a realm for tokens) may name others, and those may be
//! anywhere on the internet, but not on this machine or in its networks: a registry must not be able to send requests
//! to a router. So a request goes to the `Origin` that the person named, wherever that leads, or over TLS to public
//! addresses. Names are resolved once, checked, and dialled at just the addresses that were checked.
//!
//! What is sent to a registry ([`crate::publish`]) follows the same rules, and no redirect.
//!
//! An answer is read up to a limit, hashed while it comes, and has to keep coming: there are timeouts for its head, for
//! every pause, and for all that one fetch does.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
    LOCATION, USER_AGENT,
};
use reqwest::{Method, StatusCode, Url};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};
use tokio_stream::StreamExt as _;

use crate::error::SourceError;
use crate::hex;
use conductor_net::address::not_public;
use conductor_services::http::network::{Incoming, Network, Outgoing};

/// How often one request may be redirected.
pub const MAX_REDIRECTS: usize = 5;

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From a request to the head of its answer, looking up the name and connecting included.
    pub head: Duration,
    /// Between two pieces of a body.
    pub stall: Duration,
    /// All that one fetch does.
    pub total: Duration,
}

impl Timeouts {
    /// 30 s, 20 s, and 120 s for everything.
    pub const DEFAULT: Self =
        Self { head: Duration::from_secs(30), stall: Duration::from_secs(20), total: Duration::from_secs(120) };
    /// For uploads, where the head of an answer comes after the whole request: 300 s, 20 s, and 600 s for everything.
    pub const UPLOAD: Self =
        Self { head: Duration::from_secs(300), stall: Duration::from_secs(20), total: Duration::from_secs(600) };
}

/// The headers of a request, and what its response has to be.
#[derive(Debug, Clone, Default)]
pub struct Expected<'e> {
    /// The most bytes of a body that are read.
    pub max: u64,
    /// The length that the body must have, where that is known.
    pub size: Option<u64>,
    /// The SHA-256 that the body must have, lower-case hex.
    pub digest: Option<&'e str>,
    /// The media types that are asked for.
    pub accept: Option<&'e str>,
    /// A token for the origin, which no other place is sent.
    pub token: Option<&'e HeaderValue>,
}

impl Expected<'_> {
    /// Anything of at most `max` bytes.
    pub fn at_most(max: u64) -> Self {
        Self { max, ..Self::default() }
    }
}

/// What is sent to a registry, beside the URL.
#[derive(Debug, Clone)]
pub struct Upload<'u> {
    /// POST, PUT or HEAD.
    pub method: Method,
    /// The media type of the body; of what is asked for, where there is no body. Empty: any.
    pub kind: &'u str,
    /// What is sent.
    pub body: &'u [u8],
    /// The value of `Authorization` for the origin, which no other place is sent.
    pub authorization: Option<&'u HeaderValue>,
}

/// What came of an [`Upload`].
#[derive(Debug)]
pub struct Uploaded {
    /// Any status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body, at most [`MAX_ANSWER`] bytes.
    pub body: Vec<u8>,
}

/// The most of the body of an answer to an [`Upload`] that is read, in bytes (64 KiB).
pub const MAX_ANSWER: u64 = 64 * 1024;

/// A whole answer with status 200.
#[derive(Debug)]
pub struct Downloaded {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
    /// The SHA-256 of the body, lower-case hex.
    pub digest: String,
}

/// Asks for what belongs to one origin.
#[derive(Debug)]
pub struct Downloader<'n> {
    network: &'n dyn Network,
    /// What a person named: it may be anywhere.
    origin: Origin,
    /// Who is sent an authorization: the same, but where a token is asked for.
    authorized: Origin,
    timeouts: Timeouts,
    deadline: Instant,
}

/// Scheme, host and port of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// `None` if the URL has no host, or a scheme without a known port.
    fn of(url: &Url) -> Option<Self> {
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str()?.trim_end_matches('.').to_owned(),
            port: url.port_or_known_default()?,
        })
    }
}

impl<'n> Downloader<'n> {
    /// For what a person named with `url`. The time that all its requests have begins now.
    pub fn new(network: &'n dyn Network, url: &Url, timeouts: Timeouts) -> Self {
        let origin = Origin::of(url).unwrap_or(Origin { scheme: String::new(), host: String::new(), port: 0 });
        Self { network, authorized: origin.clone(), origin, timeouts, deadline: Instant::now() + timeouts.total }
    }

    /// The same for another origin, in what is left of the time. Where that may be is still what the first allows.
    pub(super) fn for_origin(&self, url: &Url) -> Downloader<'n> {
        let other = Origin::of(url).unwrap_or_else(|| self.origin.clone());
        let Self { network, timeouts, deadline, .. } = *self;
        Downloader { network, origin: self.origin.clone(), authorized: other, timeouts, deadline }
    }

    /// Gets what is at `url`.
    ///
    /// # Errors
    /// [`SourceError::Fetch`] if a place may not be asked, the server says anything but 200, or a limit is reached;
    /// [`SourceError::Digest`] if other bytes come than expected.
    pub async fn get(&self, url: &Url, expected: &Expected<'_>) -> Result<Downloaded, SourceError> {
        let (place, answer) = self.ask(url, expected).await?;
        let failed = |message: String| SourceError::Fetch { url: without_query(&place), message };
        if answer.status != StatusCode::OK.as_u16() {
            return Err(failed(format!("the server says {}", status(answer.status))));
        }
        self.read(answer, &place, expected).await
    }

    /// The headers of the response for `url` if its status is 401; else `None`.
    ///
    /// # Errors
    /// [`SourceError::Fetch`], as [`get`](Self::get).
    pub async fn challenge(&self, url: &Url, expected: &Expected<'_>) -> Result<Option<HeaderMap>, SourceError> {
        let (place, answer) = self.ask(url, expected).await?;
        // Who else wants a token is not who the person named.
        let challenges = answer.status == StatusCode::UNAUTHORIZED.as_u16() && self.is_origin(&place);
        Ok(challenges.then_some(answer.headers))
    }

    /// Sends something to `url`. Nothing is followed: a redirect is an answer like others.
    ///
    /// # Errors
    /// [`SourceError::Fetch`] if the place may not be asked, can't be reached, or takes too long to answer.
    pub async fn send(&self, url: &Url, upload: &Upload<'_>) -> Result<Uploaded, SourceError> {
        let failed = |message: String| SourceError::Fetch { url: without_query(url), message };
        let by = self.deadline.min(Instant::now() + self.timeouts.head);
        let mut headers = self.headers(url, upload.authorization);
        if !upload.kind.is_empty() {
            let name = if upload.body.is_empty() { ACCEPT } else { CONTENT_TYPE };
            headers.insert(name, HeaderValue::from_str(upload.kind).map_err(|error| failed(error.to_string()))?);
        }
        let exchange = self.dial(upload.method.clone(), url, headers, upload.body.to_vec());
        let answer = timeout_at(by, exchange).await.map_err(|_| failed("there was no answer in time".to_owned()))?;
        let mut answer = answer.map_err(failed)?;
        let mut body = Vec::new();
        while (body.len() as u64) < MAX_ANSWER && upload.method != Method::HEAD {
            let by = self.deadline.min(Instant::now() + self.timeouts.stall);
            // What is said beside the status is for a message only.
            let Ok(Some(Ok(piece))) = timeout_at(by, answer.body.next()).await else { break };
            let room = usize::try_from(MAX_ANSWER).unwrap_or(usize::MAX) - body.len();
            body.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Ok(Uploaded { status: answer.status, headers: answer.headers, body })
    }

    fn is_origin(&self, url: &Url) -> bool {
        Origin::of(url).as_ref() == Some(&self.origin)
    }

    /// The place that answers in the end, and its answer, whose body is still to come.
    async fn ask(&self, url: &Url, expected: &Expected<'_>) -> Result<(Url, Incoming), SourceError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let failed = |message: String| SourceError::Fetch { url: without_query(&url), message };
            let by = self.deadline.min(Instant::now() + self.timeouts.head);
            let answer = timeout_at(by, self.exchange(&url, expected))
                .await
                .map_err(|_| failed("there was no answer in time".to_owned()))?
                .map_err(failed)?;
            if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
                return Ok((url, answer));
            }
            let to = answer.headers.get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| url.join(to).ok());
            let mut to = to.ok_or_else(|| failed("redirects to nowhere".to_owned()))?;
            to.set_fragment(None);
            url = to;
        }
        Err(SourceError::Fetch { url: without_query(&url), message: "too many redirects".to_owned() })
    }

    async fn exchange(&self, url: &Url, expected: &Expected<'_>) -> Result<Incoming, String> {
        let mut headers = self.headers(url, expected.token);
        if let Some(accept) = expected.accept {
            headers.insert(ACCEPT, HeaderValue::from_str(accept).map_err(|error| error.to_string())?);
        }
        self.dial(Method::GET, url, headers, Vec::new()).await
    }

    /// What every request says. Only the origin gets the authorization.
    fn headers(&self, url: &Url, authorization: Option<&HeaderValue>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // Some servers refuse who does not say what they are.
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("conductor/", env!("CARGO_PKG_VERSION"))));
        // What is hashed and counted is what crosses the network.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(authorization) = authorization.filter(|_| Origin::of(url).as_ref() == Some(&self.authorized)) {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers
    }

    /// Sends one request to where `url` may be dialled.
    async fn dial(&self, method: Method, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<Incoming, String> {
        may_be_asked(url)?;
        let addresses = self.addresses(url).await?;
        let request = Outgoing { addresses, method, url: url.clone(), headers, body };
        self.network.exchange(request).await.map_err(|error| error.to_string())
    }

    /// Where `url` may be dialled.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let Origin { scheme, host, port } = Origin::of(url).ok_or("names no host")?;
        let bare = host.trim_matches(['[', ']']);
        let found = match bare.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => self.network.resolve(bare).await.map_err(|error| format!("can't be resolved: {error}"))?,
        };
        if found.is_empty() {
            return Err("the name has no address".to_owned());
        }
        // The host that the person named leads where it leads, over TLS at any port; without TLS it is this very place.
        let is_named =
            self.is_origin(url) || (scheme == "https" && self.origin.scheme == "https" && host == self.origin.host);
        for address in &found {
            if scheme == "http" && !address.is_loopback() {
                return Err(format!("resolves to {address}, not to this machine; use https"));
            }
            if let Some(kind) = not_public(*address).filter(|_| !is_named) {
                return Err(format!(
                    "leads to {address}, {kind}; only {}://{}:{} itself may be there",
                    self.origin.scheme, self.origin.host, self.origin.port
                ));
            }
        }
        Ok(found.into_iter().map(|address| (address, port).into()).collect())
    }

    async fn read(&self, answer: Incoming, place: &Url, expected: &Expected<'_>) -> Result<Downloaded, SourceError> {
        let failed = |message: String| SourceError::Fetch { url: without_query(place), message };
        let Incoming { headers, body: mut pieces, .. } = answer;
        if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            return Err(failed("is sent in an encoding that was not asked for".to_owned()));
        }
        let max = expected.size.unwrap_or(expected.max).min(expected.max);
        let too_large = || failed(format!("has more than {max} bytes; the rest was not read"));
        let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|length| length > max) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        let mut hash = Sha256::new();
        loop {
            let by = self.deadline.min(Instant::now() + self.timeouts.stall);
            let piece = timeout_at(by, pieces.next()).await.map_err(|_| failed("did not come in time".to_owned()))?;
            let Some(piece) = piece else { break };
            let piece = piece.map_err(|error| failed(error.to_string()))?;
            if (body.len() + piece.len()) as u64 > max {
                return Err(too_large());
            }
            hash.update(&piece);
            body.extend_from_slice(&piece);
        }
        if let Some(size) = expected.size.filter(|size| *size != body.len() as u64) {
            return Err(failed(format!("has {} bytes, not {size}", body.len())));
        }
        let digest = hex(&hash.finalize());
        if let Some(wanted) = expected.digest.filter(|wanted| **wanted != digest) {
            return Err(SourceError::Digest { url: without_query(place), wanted: wanted.to_owned(), found: digest });
        }
        Ok(Downloaded { headers, body, digest })
    }
}

/// A status as messages show it: the number, and its meaning where it has one.
pub(super) fn status(code: u16) -> String {
    StatusCode::from_u16(code).map_or_else(|_| code.to_string(), |status| status.to_string())
}

/// A URL as messages and receipts show it: a query may hold what is secret.
pub(super) fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// Only over TLS, unless it stays on this machine; and without a password in it.
pub(super) fn may_be_asked(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a name or a password in a URL would be written down");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if url.host_str().is_some_and(is_this_machine) => Ok(()),
        "http" => Err("http is only for this machine; use https"),
        _ => Err("only https is fetched"),
    }
}

/// Whether a host is this machine by its name alone.
pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests;
