//! One request, from a feature's words to a response that a feature may see.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{HeaderMap, HeaderValue};
use tokio::sync::SemaphorePermit;
use tokio_stream::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::account::HttpAccount;
use super::network::{Incoming, Network, NetworkError, Outgoing, Pieces};
use super::request::{self, Checked, CheckedSecret};
use super::scope::{HttpScope, Site};
use super::secrets::{Blotter, Secret, SecretWitness, Secrets};
use super::{HttpError, Request, Response, address};

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
    witness: Option<Arc<dyn SecretWitness>>,
    timeout: Duration,
}

impl HttpClient {
    /// A client that gives each exchange [`TIMEOUT`].
    pub fn new(network: Arc<dyn Network>, secrets: Arc<dyn Secrets>) -> Self {
        Self { network, secrets, witness: None, timeout: TIMEOUT }
    }

    /// The same, with somebody who is told of every secret that is sent.
    #[must_use]
    pub fn witnessed(mut self, witness: Arc<dyn SecretWitness>) -> Self {
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
    /// - `Unavailable`: the name has no address, the secret no value, or nobody answers.
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

    /// The same, with an answer that is handed over as it comes: dropping it ends the exchange.
    ///
    /// # Errors
    /// As [`send`](Self::send), as far as the head of the answer.
    pub async fn stream<'a>(
        &self,
        account: &'a HttpAccount,
        scope: &HttpScope,
        request: Request,
        patience: Patience,
        revoked: &CancellationToken,
    ) -> Result<Streamed<'a>, HttpError> {
        let head = async {
            let Opened { place, site, secret, incoming } = self.open(account, scope, request, patience.request).await?;
            let (status, headers) =
                head(&incoming, secret.as_ref()).map_err(|error| error.explained(&site, secret.as_ref()))?;
            Ok(Streamed {
                _place: place,
                status,
                headers,
                site,
                blotter: secret.clone().map(Blotter::new),
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
        let Opened { place: _place, site, secret, incoming } =
            self.open(account, scope, request, request::MAX_BODY).await?;
        whole(incoming, secret.as_ref()).await.map_err(|error| error.explained(&site, secret.as_ref()))
    }

    /// Sends a request whose body has at most `most` bytes, and waits for the head of the answer.
    async fn open<'a>(
        &self,
        account: &'a HttpAccount,
        scope: &HttpScope,
        request: Request,
        most: usize,
    ) -> Result<Opened<'a>, HttpError> {
        let Checked { method, url, site, mut headers, body, secret } =
            request::check(request, scope, account.feature(), most)?;
        let place = account.enter(Instant::now())?;
        let addresses = self.addresses(scope, &site, account.feature()).await?;
        let secret = match secret {
            Some(usage) => Some(self.add_secret(usage, &mut headers, account.feature(), &site).await?),
            None => None,
        };
        match self.network.exchange(Outgoing { addresses, method, url, headers, body }).await {
            Ok(incoming) => Ok(Opened { place, site, secret, incoming }),
            Err(error) => Err(ExchangeError::from(error).explained(&site, secret.as_ref())),
        }
    }

    /// Where `site` may be dialled: all its addresses, each of them checked.
    async fn addresses(&self, scope: &HttpScope, site: &Site, feature: &str) -> Result<Vec<SocketAddr>, HttpError> {
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
                    "{} resolves to {address}, {kind}; if that is meant, write `http = [\"{itself}\"]`, too, under \
                     [features.{feature}.grants]",
                    site.host
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
        let CheckedSecret { id, header, prefix } = usage;
        let (secrets, wanted) = (Arc::clone(&self.secrets), id.clone());
        let secret = tokio::task::spawn_blocking(move || secrets.get(&wanted))
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
pub struct Patience {
    /// Time until the head of the answer is there.
    pub head: Duration,
    /// Time from one piece of its body to the next.
    pub pause: Duration,
    /// Bytes of the request's body.
    pub request: usize,
    /// Bytes of the answer's body.
    pub answer: usize,
}

/// An exchange whose answer has begun.
struct Opened<'a> {
    place: SemaphorePermit<'a>,
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
    blotter: Option<Blotter>,
    pieces: Pieces,
    read: usize,
    patience: Patience,
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
            return Ok(self.blotter.take().map(Blotter::rest).filter(|rest| !rest.is_empty()));
        };
        let piece = piece.map_err(|error| failed(error.into()))?;
        self.read += piece.len();
        if self.read > self.patience.answer {
            return Err(failed(ExchangeError::TooLarge("the response's body is too large")));
        }
        Ok(Some(match &mut self.blotter {
            Some(blotter) => blotter.pass(&piece),
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
            Self::Status(status) => HttpError::Failed(text(format!("the status {status} is none of 200-599"))),
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
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;
    use std::{fmt, io};

    use hyper::body::Bytes;
    use tokio::sync::mpsc;

    use super::super::SecretUse;
    use super::super::network::Answer;
    use super::super::secrets::SecretError;
    use super::*;

    const SECRET: &str = "Hunter2-hunter2";

    /// What the other side does.
    enum Play {
        Answer(u16, Vec<(&'static str, Vec<u8>)>, Vec<Vec<u8>>),
        Fail(NetworkError),
        /// Never a head.
        Hang,
        /// A head, and never a body.
        Stall,
    }

    fn ok(body: &str) -> Play {
        Play::Answer(200, vec![], vec![body.into()])
    }

    /// A network that plays what it is told, and keeps what it was asked.
    struct Script {
        names: Mutex<Vec<(&'static str, &'static [&'static str])>>,
        plays: Mutex<VecDeque<Play>>,
        resolved: Mutex<Vec<String>>,
        dialled: Mutex<Vec<Outgoing>>,
        started: mpsc::UnboundedSender<()>,
    }

    impl fmt::Debug for Script {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Script")
        }
    }

    impl Network for Script {
        fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
            self.resolved.lock().unwrap().push(host.to_owned());
            let mut names = self.names.lock().unwrap();
            // A name that stands there twice leads elsewhere the second time.
            let found = names.iter().position(|(name, _)| *name == host).map(|at| names.remove(at).1);
            let found = found.ok_or_else(|| io::Error::other("no such name"));
            Box::pin(async move { Ok(found?.iter().map(|text| text.parse().unwrap()).collect()) })
        }

        fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
            self.dialled.lock().unwrap().push(request);
            let play = self.plays.lock().unwrap().pop_front().expect("nothing more was to be sent");
            self.started.send(()).unwrap();
            Box::pin(async move {
                match play {
                    Play::Answer(status, list, pieces) => {
                        let mut headers = HeaderMap::new();
                        for (name, value) in list {
                            headers.append(name, HeaderValue::from_bytes(&value).unwrap());
                        }
                        let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
                        Ok(Incoming { status, headers, body: Box::pin(tokio_stream::iter(pieces)) })
                    }
                    Play::Fail(error) => Err(error),
                    Play::Hang => std::future::pending().await,
                    Play::Stall => {
                        Ok(Incoming { status: 200, headers: HeaderMap::new(), body: Box::pin(tokio_stream::pending()) })
                    }
                }
            })
        }
    }

    #[derive(Debug)]
    struct OneSecret;

    impl Secrets for OneSecret {
        fn get(&self, id: &str) -> Result<Secret, SecretError> {
            match id {
                "key" => Secret::new(id, SECRET.into()),
                "short" => Secret::new(id, "1234567".into()),
                _ => Err(SecretError::Missing { id: id.into(), remedy: "set it".into() }),
            }
        }
    }

    /// A feature with its grant, and the world that it sends into.
    struct Stage {
        script: Arc<Script>,
        client: HttpClient,
        account: HttpAccount,
        scope: HttpScope,
        revoked: CancellationToken,
        started: mpsc::UnboundedReceiver<()>,
    }

    fn stage(plays: impl IntoIterator<Item = Play>) -> Stage {
        let (sender, started) = mpsc::unbounded_channel();
        let script = Arc::new(Script {
            names: Mutex::new(vec![
                ("granted.example", &["192.0.2.1", "2001:db8::1"]),
                ("granted.example", &["127.0.0.1"]),
                ("other.example", &["192.0.2.2"]),
                ("empty.example", &[]),
            ]),
            plays: Mutex::new(plays.into_iter().collect()),
            resolved: Mutex::default(),
            dialled: Mutex::default(),
            started: sender,
        });
        let scope = toml::from_str(
            r#"
            hosts = ["granted.example", "granted.example:8443", "other.example", "empty.example", "unknown.example"]
            secrets = [
                { id = "key", hosts = ["granted.example"] },
                { id = "short", hosts = ["granted.example"] },
                { id = "missing", hosts = ["granted.example"] },
            ]
            "#,
        )
        .unwrap();
        let client = HttpClient::new(Arc::<Script>::clone(&script), Arc::new(OneSecret));
        let account = HttpAccount::new("chat");
        Stage { script, client, account, scope, revoked: CancellationToken::new(), started }
    }

    impl Stage {
        /// The same with `name` leading to `addresses`.
        fn name(self, name: &'static str, addresses: &'static [&'static str]) -> Self {
            self.script.names.lock().unwrap().insert(0, (name, addresses));
            self.grant(name)
        }

        fn grant(mut self, host: &str) -> Self {
            self.scope.hosts.push(host.parse().unwrap());
            self
        }

        async fn send(&self, request: Request) -> Result<Response, HttpError> {
            self.client.send(&self.account, &self.scope, request, &self.revoked).await
        }

        fn dialled(&self) -> Vec<Outgoing> {
            self.script.dialled.lock().unwrap().clone()
        }

        fn dialled_addresses(&self) -> Vec<String> {
            self.dialled().iter().flat_map(|sent| &sent.addresses).map(ToString::to_string).collect()
        }
    }

    fn get(url: &str) -> Request {
        Request { method: "GET".into(), url: url.into(), ..Request::default() }
    }

    fn with_secret(url: &str, id: &str) -> Request {
        let secret = SecretUse { id: id.into(), header: "authorization".into(), prefix: "Bearer ".into() };
        Request { secret: Some(secret), ..get(url) }
    }

    #[tokio::test]
    async fn a_request_is_sent_as_it_was_asked_to_all_the_names_addresses() {
        let stage = stage([Play::Answer(201, vec![("x-a", b"b".to_vec())], vec![b"hel".to_vec(), b"lo".to_vec()])]);
        let request = Request {
            method: "POST".into(),
            url: "https://granted.example:8443/path?a=b".into(),
            headers: vec![("accept".into(), "text/plain".into())],
            body: b"body".to_vec(),
            secret: None,
        };
        let response = stage.send(request).await.unwrap();
        let expected = Response { status: 201, headers: vec![("x-a".into(), "b".into())], body: b"hello".to_vec() };
        assert_eq!(response, expected);
        let sent = stage.dialled().remove(0);
        assert_eq!(stage.dialled_addresses(), ["192.0.2.1:8443", "[2001:db8::1]:8443"]);
        assert_eq!((sent.method.as_str(), sent.url.as_str()), ("POST", "https://granted.example:8443/path?a=b"));
        assert_eq!((sent.headers.len(), &sent.headers["accept"]), (1, &HeaderValue::from_static("text/plain")));
        assert_eq!(sent.body, b"body");
    }

    #[tokio::test]
    async fn a_refused_request_leaves_no_trace_outside() {
        let stage = stage([]);
        let denied = ["https://evil.example/", "https://granted.evil/", "https://granted.example:444/"];
        let invalid = ["https://granted.example@evil/", "http://granted.example/", "https://granted.example./"];
        for url in denied {
            assert!(matches!(stage.send(get(url)).await, Err(HttpError::Denied(_))), "{url}");
        }
        for url in invalid {
            assert!(matches!(stage.send(get(url)).await, Err(HttpError::Invalid(_))), "{url}");
        }
        let elsewhere = stage.send(with_secret("https://other.example/", "key")).await;
        assert!(matches!(elsewhere, Err(HttpError::Denied(_))), "{elsewhere:?}");
        assert!(stage.script.resolved.lock().unwrap().is_empty());
        assert!(stage.dialled().is_empty());
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_denied() {
        let inside: [&[&str]; 8] = [
            &["127.0.0.1"],
            &["169.254.169.254"],
            &["10.1.2.3"],
            &["::1"],
            &["fd00::1"],
            &["::ffff:169.254.169.254"],
            &["0.0.0.0"],
            // One bad address is enough, wherever it stands.
            &["192.0.2.1", "192.168.0.1"],
        ];
        for addresses in inside {
            let stage = stage([]).name("sly.example", addresses);
            let refused = stage.send(get("https://sly.example/")).await;
            assert!(matches!(refused, Err(HttpError::Denied(_))), "{addresses:?}: {refused:?}");
            assert!(stage.dialled().is_empty());
        }
    }

    #[tokio::test]
    async fn an_address_inside_is_reached_when_the_grant_names_it() {
        let stage = stage([ok("")]).name("nas.example", &["10.1.2.3"]);
        let Err(HttpError::Denied(text)) = stage.send(get("https://nas.example/")).await else { panic!() };
        assert!(text.contains("write `http = [\"10.1.2.3\"]`, too, under [features.chat.grants]"), "{text}");
        let stage = stage.name("nas.example", &["10.1.2.3"]).grant("10.1.2.3");
        stage.send(get("https://nas.example/")).await.unwrap();
        assert_eq!(stage.dialled_addresses(), ["10.1.2.3:443"]);
    }

    #[tokio::test]
    async fn a_granted_address_is_dialled_without_a_look_up() {
        let stage = stage([ok(""), ok("")]).grant("127.0.0.1:8080").grant("[::1]");
        stage.send(get("http://127.0.0.1:8080/")).await.unwrap();
        stage.send(get("http://[::1]/")).await.unwrap();
        assert_eq!(stage.dialled_addresses(), ["127.0.0.1:8080", "[::1]:80"]);
        assert!(stage.script.resolved.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn localhost_is_this_machine_and_nothing_else() {
        let here = stage([ok("")]).name("localhost", &["127.0.0.1", "::1"]);
        here.send(get("http://localhost/")).await.unwrap();
        assert_eq!(here.dialled_addresses(), ["127.0.0.1:80", "[::1]:80"]);
        let away = stage([]).name("localhost", &["192.0.2.1"]);
        assert!(matches!(away.send(get("http://localhost/")).await, Err(HttpError::Denied(_))));
        assert!(away.dialled().is_empty());
    }

    #[tokio::test]
    async fn a_name_is_resolved_once_so_that_it_can_not_lead_elsewhere_after_the_check() {
        let stage = stage([ok(""), ok("")]);
        stage.send(get("https://granted.example/")).await.unwrap();
        assert_eq!(*stage.script.resolved.lock().unwrap(), ["granted.example"]);
        assert_eq!(stage.dialled_addresses(), ["192.0.2.1:443", "[2001:db8::1]:443"]);
        // The next request asks again, and is denied what the name leads to by then.
        assert!(matches!(stage.send(get("https://granted.example/")).await, Err(HttpError::Denied(_))));
        assert_eq!(stage.dialled().len(), 1);
    }

    #[tokio::test]
    async fn what_is_not_there_is_unavailable() {
        let stage = stage([Play::Fail(NetworkError::Unreachable("connection refused".into()))]);
        for (request, told) in [
            (get("https://unknown.example/"), "unknown.example"),
            (get("https://empty.example/"), "empty.example"),
            (get("https://other.example/"), "other.example: connection refused"),
        ] {
            let Err(HttpError::Unavailable(text)) = stage.send(request).await else { panic!("{told}") };
            assert!(text.contains(told), "{text}");
        }
    }

    #[tokio::test]
    async fn a_redirect_comes_as_it_is() {
        let there = vec![("location", b"https://evil.example/".to_vec())];
        let stage = stage([Play::Answer(302, there, vec![])]);
        let response = stage.send(get("https://granted.example/")).await.unwrap();
        assert_eq!(response.status, 302);
        assert_eq!(response.headers, [("location".to_owned(), "https://evil.example/".to_owned())]);
        assert_eq!(stage.dialled().len(), 1);
    }

    #[tokio::test]
    async fn a_secret_goes_into_its_header_and_never_comes_back() {
        let headers = vec![
            ("x-echo", format!("Bearer {SECRET}, {SECRET}").into_bytes()),
            ("x-hunter2-hunter2", b"\xff".to_vec()),
        ];
        // The secret arrives in two pieces.
        let pieces = vec![b"{\"got\": \"Hunter2-".to_vec(), b"hunter2\"}".to_vec()];
        let stage = stage([Play::Answer(200, headers, pieces)]);
        let response = stage.send(with_secret("https://granted.example/", "key")).await.unwrap();
        let sent = stage.dialled().remove(0);
        assert_eq!(sent.headers["authorization"], format!("Bearer {SECRET}"));
        assert!(!sent.url.as_str().contains(SECRET));
        assert!(!format!("{sent:?}").contains(SECRET), "{sent:?}");
        assert_eq!(response.body, b"{\"got\": \"***\"}");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(response.headers, [pair("x-echo", "Bearer ***, ***"), pair("x-***", "\u{fffd}")]);
    }

    #[tokio::test]
    async fn an_error_holds_no_secret_and_nothing_that_controls_a_terminal() {
        let why = format!("bad certificate for {SECRET}\x1b[2J{}", "x".repeat(4096));
        let stage = stage([Play::Fail(NetworkError::Broken(why))]);
        let error = stage.send(with_secret("https://granted.example/", "key")).await.unwrap_err();
        let HttpError::Failed(text) = error else { panic!("{error:?}") };
        assert!(text.starts_with("granted.example: bad certificate for *** [2Jxxx"), "{text}");
        assert!(text.len() < 1100, "{}", text.len());
    }

    #[tokio::test]
    async fn a_secret_that_can_not_be_protected_or_found_is_not_used() {
        for id in ["short", "missing"] {
            let stage = stage([]);
            let refused = stage.send(with_secret("https://granted.example/", id)).await;
            assert!(matches!(&refused, Err(HttpError::Unavailable(text)) if text.contains(id)), "{refused:?}");
            assert!(stage.dialled().is_empty());
        }
    }

    #[tokio::test]
    async fn a_response_is_cut_off_where_it_gets_too_large() {
        let mib = || vec![b'x'; 1024 * 1024];
        let full = stage([Play::Answer(200, vec![], vec![mib(), mib(), mib(), mib()])]);
        assert_eq!(full.send(get("https://granted.example/")).await.unwrap().body.len(), MAX_BODY);
        for play in [
            Play::Answer(200, vec![], vec![mib(), mib(), mib(), mib(), b"x".to_vec()]),
            Play::Answer(200, vec![("x", b"y".to_vec()); MAX_HEADERS + 1], vec![]),
            Play::Answer(200, vec![("x", vec![b'y'; MAX_HEADER_BYTES])], vec![]),
        ] {
            let cut = stage([play]).send(get("https://granted.example/")).await;
            assert!(matches!(cut, Err(HttpError::Exhausted(_))), "{cut:?}");
        }
    }

    #[tokio::test]
    async fn a_status_beyond_the_contract_is_a_failure() {
        for status in [101, 199, 600, 999] {
            let refused = stage([Play::Answer(status, vec![], vec![])]).send(get("https://granted.example/")).await;
            assert!(matches!(refused, Err(HttpError::Failed(_))), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn requests_beyond_the_rate_are_refused() {
        let stage = stage([]);
        // In an hour, so that nothing is refilled while the test runs.
        let soon = Instant::now() + Duration::from_secs(3600);
        while stage.account.enter(soon).is_ok() {}
        assert!(matches!(stage.send(get("https://granted.example/")).await, Err(HttpError::Exhausted(_))));
        assert!(stage.script.resolved.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn requests_beyond_four_under_way_are_refused() {
        let stage = stage([Play::Hang, Play::Hang, Play::Stall, Play::Stall, ok("fifth")]).grant("192.0.2.7");
        let send = || Box::pin(stage.send(get("https://192.0.2.7/")));
        let mut under_way = Vec::new();
        for _ in 0..4 {
            let mut one = send();
            assert!(tokio::time::timeout(Duration::ZERO, &mut one).await.is_err(), "it hangs");
            under_way.push(one);
        }
        assert_eq!(stage.dialled().len(), 4);
        assert!(matches!(send().await, Err(HttpError::Exhausted(_))));
        assert_eq!(stage.dialled().len(), 4);
        under_way.pop();
        assert_eq!(send().await.unwrap().body, b"fifth");
    }

    #[tokio::test]
    async fn revoking_the_grant_ends_an_exchange_at_once() {
        for play in [Play::Hang, Play::Stall] {
            let mut stage = stage([play]);
            let Stage { client, account, scope, revoked, started, .. } = &mut stage;
            let revoke = async {
                started.recv().await.unwrap();
                revoked.cancel();
            };
            let (done, ()) =
                tokio::join!(client.send(account, scope, get("https://granted.example/"), revoked), revoke);
            assert_eq!(done, Err(HttpError::Denied("the grant was revoked".into())));
            // From then on nothing is even looked up.
            assert_eq!(stage.send(get("https://granted.example/")).await, done);
            assert_eq!(stage.script.resolved.lock().unwrap().len(), 1);
        }
    }

    #[tokio::test]
    async fn an_exchange_that_takes_too_long_fails() {
        for play in [Play::Hang, Play::Stall] {
            let mut stage = stage([play]);
            stage.client = stage.client.with_timeout(Duration::from_millis(20));
            let late = stage.send(get("https://granted.example/")).await;
            assert!(matches!(late, Err(HttpError::Failed(_))), "{late:?}");
        }
    }
}
