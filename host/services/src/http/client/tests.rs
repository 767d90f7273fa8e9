//! The client against servers that are not what they seem.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::{fmt, io};

use hyper::body::Bytes;
use tokio::sync::mpsc;

use crate::http::SecretUse;
use crate::http::account::MAX_IN_FLIGHT;
use crate::http::client::*;
use crate::http::network::Answer;
use crate::http::secrets::SecretError;
use conductor_package::admission::Provenance;

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

/// A scripted network that records requests.
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
    let account = HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled });
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
        ..Request::default()
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
    assert!(text.contains("write `http = [\"10.1.2.3\"]` under [features.chat.grants], too"), "{text}");
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
    let headers =
        vec![("x-echo", format!("Bearer {SECRET}, {SECRET}").into_bytes()), ("x-hunter2-hunter2", b"\xff".to_vec())];
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
    assert!(text.starts_with("granted.example: bad certificate for ***\\u{1b}[2Jxxx"), "{text}");
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
async fn requests_beyond_those_that_may_be_under_way_are_refused() {
    let waits = (0..MAX_IN_FLIGHT).map(|number| if number % 2 == 0 { Play::Hang } else { Play::Stall });
    let stage = stage(waits.chain([ok("one more")])).grant("192.0.2.7");
    let send = || Box::pin(stage.send(get("https://192.0.2.7/")));
    let mut under_way = Vec::new();
    for _ in 0..MAX_IN_FLIGHT {
        let mut one = send();
        assert!(tokio::time::timeout(Duration::ZERO, &mut one).await.is_err(), "it hangs");
        under_way.push(one);
    }
    assert_eq!(stage.dialled().len(), MAX_IN_FLIGHT);
    assert!(matches!(send().await, Err(HttpError::Exhausted(_))));
    assert_eq!(stage.dialled().len(), MAX_IN_FLIGHT);
    under_way.pop();
    assert_eq!(send().await.unwrap().body, b"one more");
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
        let (done, ()) = tokio::join!(client.send(account, scope, get("https://granted.example/"), revoked), revoke);
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
