//! The way to the API and back.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use super::stage::{Browser, ConnectionEvent, SHELL};
use super::{Limits, Stage};

/// A chunk that ends an answer in good order.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A browser that reads lines from the host, and has the first of them.
fn reader(stage: &Stage, cookie: &str) -> Browser {
    let mut browser = Browser::connect(stage.port);
    browser.send("GET /v1/lines", &[&stage.host_header(), cookie], b"");
    let (head, mut body) = browser.head();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/x-ndjson"), "{head}");
    while !body.ends_with(b"{\"n\":1}\n\r\n") {
        let mut byte = [0];
        browser.0.read_exact(&mut byte).unwrap();
        body.extend(byte);
    }
    browser
}

#[test]
fn only_what_is_named_goes_on_and_comes_back() {
    let stage = Stage::new(Limits::default());
    let (cookie, origin) = (stage.sign_in(), stage.origin());
    let headers = [
        &*cookie,
        &origin,
        SHELL,
        "content-type: application/json",
        "accept: application/json",
        "user-agent: Browser/1.0",
        "authorization: Bearer 1234",
        "x-forwarded-for: 10.0.0.1",
        "referer: http://127.0.0.1/",
        "accept-language: de",
        "te: trailers",
        "keep-alive: timeout=5",
        "x-hop: 1",
        "proxy-authorization: Basic x",
    ];
    let answer = stage.ask("POST /v1/mode?a=b", &headers, b"{\"mode\":\"Mix\"}");
    assert_eq!((answer.status, answer.text()), (200, "{\"ok\":true}".to_owned()));
    assert_eq!(stage.host.next(), ConnectionEvent::Body(14));
    let heads = stage.host.heads();
    let mut lines: Vec<_> = heads[0].trim_end().lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept: application/json",
            "content-length: 14",
            "content-type: application/json",
            "host: conductor",
            "post /v1/mode?a=b http/1.1",
            "user-agent: conductor-ui",
        ]
    );
    for (name, value) in [
        ("content-type", Some("application/json")),
        ("content-length", Some("11")),
        ("cache-control", Some("no-store")),
        ("referrer-policy", Some("no-referrer")),
        ("x-content-type-options", Some("nosniff")),
        ("cross-origin-opener-policy", Some("same-origin")),
        ("cross-origin-resource-policy", Some("same-origin")),
        ("set-cookie", None),
        ("server", None),
        ("x-hop", None),
        ("access-control-allow-origin", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
}

#[test]
fn a_body_over_the_limit_is_refused_however_it_comes() {
    let stage = Stage::new(Limits { body_bytes: 1000, ..Limits::default() });
    let cookie = stage.sign_in();
    assert_eq!(stage.ask("POST /v1/mode", &[&cookie, SHELL], &[b'x'; 1000]).status, 200);
    assert_eq!(stage.host.next(), ConnectionEvent::Body(1000));
    assert_eq!(stage.ask("POST /v1/mode", &[&cookie, SHELL], &[b'x'; 1001]).code(), "too_long");
    assert_eq!(stage.host.heads().len(), 1, "the host knows nothing of it");
    let chunked = [&*cookie, SHELL, "transfer-encoding: chunked"];
    let host = stage.host_header();
    let whole: Vec<u8> = [b"320\r\n".to_vec(), vec![b'x'; 800], b"\r\n".to_vec()].concat().repeat(2);
    let mut headers = vec![host.as_str()];
    headers.extend(chunked);
    let answer = stage.raw("POST /v1/mode", &headers, &[&whole[..], LAST_CHUNK].concat());
    assert_eq!((answer.status, answer.code()), (413, "too_long".to_owned()));
    assert!(matches!(stage.host.next(), ConnectionEvent::Body(size) if size < 1000), "no more of it went on");
}

#[test]
fn requests_that_can_be_read_two_ways_are_one_or_none() {
    let stage = Stage::new(Limits::default());
    let (cookie, host) = (stage.sign_in(), stage.host_header());
    for headers in [
        ["content-length: 5", "transfer-encoding: chunked"],
        ["content-length: 5", "content-length: 6"],
        ["transfer-encoding: chunked", "transfer-encoding: identity"],
    ] {
        let mut browser = Browser::connect(stage.port);
        let smuggled = b"0\r\n\r\nPOST /v1/stop HTTP/1.1\r\nhost: conductor\r\n\r\n";
        let all = [&*host, &cookie, SHELL, headers[0], headers[1]];
        browser.send("POST /v1/mode", &all, smuggled);
        let _ = browser.0.shutdown(std::net::Shutdown::Write);
        browser.rest();
        assert!(
            stage.host.heads().iter().all(|head| !head.contains("/v1/stop")),
            "{headers:?}: {:?}",
            stage.host.heads()
        );
    }
}

#[test]
fn lines_come_as_the_host_says_them_and_end_when_it_goes() {
    let stage = Stage::new(Limits::default());
    let cookie = stage.sign_in();
    let mut browser = reader(&stage, &cookie);
    // In the middle of the answer.
    stage.host_stops();
    stage.host.end.send(()).unwrap();
    assert!(!browser.rest().ends_with(LAST_CHUNK), "an answer that was cut off does not look whole");
    let gone = stage.ask("GET /v1/status", &[&cookie], b"");
    assert_eq!((gone.status, gone.code()), (502, "unavailable".to_owned()));
    assert!(gone.text().contains("conductor run") && gone.header("retry-after") == Some("1"), "{gone:?}");
    assert_eq!(stage.ask("GET /v1/status", &[], b"").status, 401, "what is wrong with the host is not for strangers");
}

#[test]
fn a_browser_that_leaves_ends_what_the_host_says() {
    let stage = Stage::new(Limits::default());
    let cookie = stage.sign_in();
    drop(reader(&stage, &cookie));
    assert_eq!(stage.host.next(), ConnectionEvent::Left);
}

#[test]
fn streams_end_with_their_session() {
    let stage = Stage::new(Limits { sessions: 1, ..Limits::default() });
    let cookie = stage.sign_in();
    let mut lines = reader(&stage, &cookie);
    let mut socket = socket(&stage, &cookie);
    let other = stage.sign_in();
    assert!(!lines.rest().ends_with(LAST_CHUNK));
    assert_eq!(socket.rest(), b"");
    assert_eq!((stage.host.next(), stage.host.next()), (ConnectionEvent::Left, ConnectionEvent::Left));
    let status = |cookie: &str| stage.ask("GET /v1/status", &[cookie], b"").status;
    assert_eq!((status(&cookie), status(&other)), (401, 200));
}

/// A WebSocket that is open.
fn socket(stage: &Stage, cookie: &str) -> Browser {
    let mut browser = Browser::connect(stage.port);
    let headers = [
        &*stage.host_header(),
        cookie,
        &stage.origin(),
        "connection: keep-alive, Upgrade",
        "upgrade: WebSocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: abc",
        "sec-websocket-extensions: permessage-deflate",
        "sec-websocket-protocol: x",
    ];
    browser.send("GET /v1/stream?after=start", &headers, b"");
    let (head, rest) = browser.head();
    assert!(head.starts_with("http/1.1 101") && head.contains("sec-websocket-accept: abc"), "{head}");
    assert!(!head.contains("extensions") && rest.is_empty());
    browser
}

#[test]
fn a_web_socket_carries_both_ways() {
    let stage = Stage::new(Limits::default());
    let cookie = stage.sign_in();
    // The host of the stage says what it hears.
    let mut browser = socket(&stage, &cookie);
    for text in [&b"one"[..], b"two"] {
        browser.0.write_all(text).unwrap();
        let mut heard = [0; 3];
        browser.0.read_exact(&mut heard).unwrap();
        assert_eq!(heard, text);
    }
    let head = &stage.host.heads()[0];
    assert!(head.starts_with("get /v1/stream?after=start ") && head.contains("sec-websocket-key: abc"), "{head}");
    assert!(!head.contains("cookie") && !head.contains("extensions") && !head.contains("protocol"), "{head}");
    drop(browser);
    assert_eq!(stage.host.next(), ConnectionEvent::Left);
}

#[test]
fn a_web_socket_takes_a_place_among_the_connections() {
    let stage = Stage::new(Limits { connections: 1, ..Limits::default() });
    let cookie = stage.sign_in();
    // The connection that signed in gives its place back when the server has seen its end.
    let deadline = std::time::Instant::now() + super::stage::TEST_TIMEOUT;
    let ask = || {
        let mut browser = Browser::connect(stage.port);
        browser.send("GET /", &[&stage.host_header(), "connection: close"], b"");
        String::from_utf8(browser.rest()).unwrap()
    };
    while ask().contains("too many connections") {
        assert!(std::time::Instant::now() < deadline);
    }
    let open = loop {
        let mut browser = Browser::connect(stage.port);
        let headers = [&*stage.host_header(), &cookie, &stage.origin(), "connection: upgrade", "upgrade: websocket"];
        browser.send("GET /v1/stream", &headers, b"");
        if browser.head().0.starts_with("http/1.1 101") {
            break browser;
        }
        assert!(std::time::Instant::now() < deadline);
    };
    assert!(ask().contains("too many connections"));
    drop(open);
    assert_eq!(stage.host.next(), ConnectionEvent::Left);
}

#[test]
fn a_browser_that_does_not_read_holds_the_host_back_and_is_cut_off() {
    let stage = Stage::new(Limits { stall_timeout: Duration::from_secs(3), ..Limits::default() });
    let cookie = stage.sign_in();
    let mut browser = Browser::connect(stage.port);
    browser.send("GET /v1/flood", &[&stage.host_header(), &cookie], b"");
    match stage.host.next() {
        ConnectionEvent::Full(sent) => assert!(sent < 32 * 1024 * 1024, "{sent} bytes are on their way"),
        told => panic!("{told:?}"),
    }
    assert_eq!(stage.host.next(), ConnectionEvent::Left);
    drop(browser);
}
