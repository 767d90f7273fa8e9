//! Who comes in: links, cookies, and pages of others.

use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use super::stage::{Browser, SHELL};
use super::{Answer, Limits, Stage};

const LONG: Duration = Duration::from_secs(600);

fn quick() -> Limits {
    Limits { wrong_delay: Duration::ZERO, ..Limits::default() }
}

fn status(stage: &Stage, headers: &[&str]) -> Answer {
    stage.ask("GET /v1/status", headers, b"")
}

#[test]
fn a_link_signs_one_browser_in_once() {
    let stage = Stage::new(quick());
    assert_eq!(status(&stage, &[]).status, 401);
    let link = format!("GET {}", stage.link());
    assert_eq!(stage.ask(&link.replace("GET", "HEAD"), &[], b"").status, 405, "to look at a link does not use it");
    let answer = stage.ask(&link, &[], b"");
    let cookie = answer.header("set-cookie").unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "path=/; max-age=43200; httponly; samesite=strict");
    assert!(pair.starts_with(&format!("conductor-shell-{}=", stage.port)) && pair.len() > 64, "{pair}");
    assert_eq!((answer.status, answer.header("cache-control")), (303, Some("no-store")));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "no other site sees the link");
    let cookie = format!("cookie: {pair}");
    assert_eq!(status(&stage, &[&cookie]).text(), "{\"ok\":true}");

    let again = stage.ask(&link, &[], b"");
    assert_eq!((again.status, again.header("set-cookie")), (401, None));
    assert!(again.text().contains("used already"), "{}", again.text());
    let back = stage.ask(&link, &[&cookie], b"");
    assert_eq!((back.status, back.header("set-cookie")), (303, None), "a browser that is signed in may go back to it");
}

#[test]
fn an_old_link_and_one_that_was_replaced_sign_in_no_browser() {
    let stage = Stage::new(Limits { link_life: Duration::ZERO, ..quick() });
    assert_eq!(stage.ask(&format!("GET {}", stage.link()), &[], b"").status, 401);
    let stage = Stage::new(quick());
    let (first, second) = (stage.link(), stage.link());
    assert_eq!(stage.ask(&format!("GET {first}"), &[], b"").status, 401);
    assert_eq!(stage.ask(&format!("GET {second}"), &[], b"").status, 303);
}

#[test]
fn a_session_ends_in_time_and_a_cookie_opens_its_own_port_alone() {
    let short = Stage::new(Limits { session_life: Duration::ZERO, ..quick() });
    assert_eq!(status(&short, &[&short.sign_in()]).code(), "unauthorized");
    let (one, other) = (Stage::new(quick()), Stage::new(quick()));
    let (cookie, others) = (one.sign_in(), other.sign_in());
    assert_eq!((status(&one, &[&cookie]).status, status(&other, &[&cookie]).status), (200, 401));
    let renamed = cookie.replace(&one.port.to_string(), &other.port.to_string());
    assert_eq!(status(&other, &[&renamed]).code(), "unauthorized");
    // As a browser sends them: those of all ports of this computer.
    let both = format!("{cookie}; {}", others.strip_prefix("cookie: ").unwrap());
    assert_eq!((status(&one, &[&both]).status, status(&other, &[&both]).status), (200, 200));
}

#[test]
fn wrong_links_and_cookies_wait_and_only_so_many_at_once() {
    let stage = Stage::new(Limits { wrong_delay: LONG, wrong_at_once: 1, ..Limits::default() });
    let host = stage.host_header();
    let wrong = format!("cookie: conductor-shell-{}={}", stage.port, "0".repeat(64));
    let mut first = Browser::connect(stage.port);
    first.send("GET /v1/status", &[&host, &wrong], b"");
    // It takes the place at some time; from then on there is none.
    let refused = loop {
        let mut next = Browser::connect(stage.port);
        next.0.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        next.send(&format!("GET /sign-in/{}", "0".repeat(64)), &[&host, "connection: close"], b"");
        let mut answer = Vec::new();
        if std::io::Read::read_to_end(&mut next.0, &mut answer).is_ok() {
            break String::from_utf8(answer).unwrap();
        }
    };
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 1"), "{refused}");
    let cookie = stage.sign_in();
    assert_eq!(status(&stage, &[&cookie]).status, 200, "who is right does not wait");
    assert_eq!(status(&stage, &[]).status, 401, "and who says nothing guesses nothing");
}

#[test]
fn a_page_of_others_is_refused_whatever_cookie_the_browser_adds() {
    let stage = Stage::new(quick());
    let (cookie, port) = (stage.sign_in(), stage.port);
    let (host, own) = (stage.host_header(), stage.origin());
    let local = [format!("host: localhost:{port}"), format!("origin: http://localhost:{port}")];
    assert_eq!(stage.raw("GET /v1/status", &[&local[0], &local[1], &cookie], b"").status, 200);
    let beside = format!("origin: http://127.0.0.1:{}", port ^ 1);
    let secure = format!("origin: https://127.0.0.1:{port}");
    let rebound = format!("host: evil.example:{port}");
    let other_port = format!("host: 127.0.0.1:{}", port ^ 1);
    let before = stage.host.heads().len();
    for headers in [
        vec![rebound.as_str()],
        vec![&other_port],
        vec!["host: 127.0.0.1"],
        vec![],
        vec![&host, &rebound],
        vec![&host, &host],
        vec![&host, "origin: https://evil.example"],
        vec![&host, "origin: null"],
        vec![&host, "origin: "],
        vec![&host, &beside],
        vec![&host, &secure],
        vec![&host, &local[1]],
        vec![&host, &own, "origin: https://evil.example"],
        vec![&host, "sec-fetch-site: cross-site"],
        vec![&host, "sec-fetch-site: same-site"],
        vec![&host, "sec-fetch-site: same-origin", "sec-fetch-site: cross-site"],
    ] {
        for line in ["GET /v1/status", "POST /v1/undo", "OPTIONS /v1/undo"] {
            let mut all = headers.clone();
            all.extend([cookie.as_str(), SHELL]);
            let answer = stage.raw(line, &all, b"");
            let expected = if headers.is_empty() { [400, 403].contains(&answer.status) } else { answer.status == 403 };
            assert!(expected, "{line} {headers:?}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let elsewhere = stage.ask(&format!("GET http://evil.example:{port}/v1/status"), &[&cookie], b"");
    assert_eq!(elsewhere.code(), "forbidden");
    assert_eq!(stage.ask("POST /v1/undo", &[&cookie, SHELL, "sec-fetch-site: none"], b"").status, 403);
    assert_eq!(stage.host.heads().len(), before, "the host knows nothing of it");
    assert_eq!(status(&stage, &[&cookie, &own, "sec-fetch-site: same-origin"]).status, 200);
    assert_eq!(status(&stage, &[&cookie, "sec-fetch-site: none"]).status, 200, "a person typed the address");
}

#[test]
fn what_changes_anything_needs_the_header_that_forms_can_not_send() {
    let stage = Stage::new(quick());
    let (cookie, own) = (stage.sign_in(), stage.origin());
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"] {
        let line = format!("{method} /v1/undo");
        for wrong in ["accept: */*", "x-conductor-shell: 0", "x-conductor-shell: 1, 1"] {
            assert_eq!(stage.ask(&line, &[&cookie, &own, wrong], b"").code(), "forbidden", "{method} {wrong}");
        }
        assert_eq!(stage.ask(&line, &[&cookie, SHELL, SHELL], b"").status, 403);
    }
    assert_eq!(stage.host.heads().len(), 0);
    assert_eq!(stage.ask("POST /v1/undo", &[&cookie, &own, SHELL], b"{}").status, 200);
    assert_eq!(stage.ask("POST /v1/undo", &[SHELL], b"{}").status, 401, "the header alone opens nothing");
}

#[test]
fn a_web_socket_is_for_pages_of_ours() {
    let stage = Stage::new(quick());
    let (cookie, own) = (stage.sign_in(), stage.origin());
    let handshake =
        ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-key: abc"];
    let open = |more: &[&str]| {
        let mut browser = Browser::connect(stage.port);
        let host = stage.host_header();
        let headers: Vec<&str> = [host.as_str()].into_iter().chain(handshake).chain(more.iter().copied()).collect();
        browser.send("GET /v1/stream", &headers, b"");
        browser.head().0.split(' ').nth(1).unwrap().parse::<u16>().unwrap()
    };
    assert_eq!(open(&[&cookie]), 403, "without an Origin");
    assert_eq!(open(&[&cookie, "origin: https://evil.example"]), 403);
    assert_eq!(open(&[&own]), 401);
    assert_eq!(stage.host.heads().len(), 0);
    assert_eq!(open(&[&cookie, &own]), 101);
}

#[test]
fn no_path_leads_past_the_api() {
    let stage = Stage::new(quick());
    let cookie = stage.sign_in();
    let tricks = [
        "/v1",
        "/v1/",
        "//v1/status",
        "/v1//status",
        "/v1/status/",
        "/v1/.",
        "/v1/..",
        "/v1/../",
        "/v1/../mcp",
        "/v1/../../etc/passwd",
        "/v1/./status",
        "/v1/x/../status",
        "/v1/%2e",
        "/v1/%2e%2e",
        "/v1/%2e%2e/mcp",
        "/v1/.%2e/mcp",
        "/v1/%2E./mcp",
        "/v1/..%2fmcp",
        "/v1/..%2Fmcp",
        "/v1/x%2f..%2f..%2fmcp",
        "/v1/%2fmcp",
        "/v1%2fstatus",
        "/v1%2F..%2Fmcp",
        "/v1/..%5cmcp",
        "/v1/..\\mcp",
        "/v1\\..\\mcp",
        "/v1/%5c",
        "/v1/%00",
        "/v1/status%00",
        "/v1/%0d%0aGET%20/mcp",
        "/v1/%0a",
        "/v1/%7f",
        "/v1/%",
        "/v1/%2",
        "/v1/%zz",
        "/v1/%+2e",
        "/V1/status",
        "/%76%31/status",
        "/%761/status",
        "/v%31/mcp",
        "/./v1/status",
        "/../v1/status",
        "/x/../v1/status",
        "/%2e/v1/status",
        "/%2e%2e/v1/mcp",
        "/sign-in/../v1/status",
        "/sign-in",
        "/sign-in/",
        "/sign-in/a/b",
        "/SIGN-IN/a",
        "/..;/v1/status",
        "/v1/..;/mcp",
        "mcp",
        "*",
        "http://127.0.0.1/v1/../mcp",
        "/v1/../?x=/v1/",
    ];
    assert!(tricks.len() >= 40);
    for trick in tricks {
        let answer = stage.ask(&format!("GET {trick}"), &[&cookie], b"");
        let is_name = trick == "/v1/..;/mcp" || trick == "/..;/v1/status";
        assert!(is_name || [400, 403, 404].contains(&answer.status), "{trick}: {answer:?}");
    }
    // Names that only look like tricks are names: of the API, where they stand behind `/v1/`, and pages elsewhere.
    let came: Vec<_> = stage.host.heads().iter().map(|head| head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(came, ["get /v1/..;/mcp http/1.1"]);
    assert_eq!(stage.ask("GET /v1/models/a%2Fb?x=../..//%00", &[&cookie], b"").status, 200, "a name with a slash");
    assert!(stage.host.heads()[1].starts_with("get /v1/models/a%2fb?x=../..//%00 "));
}

#[test]
fn too_many_connections_and_slow_or_long_heads_are_cut() {
    let stage = Stage::new(Limits { connections: 2, ..quick() });
    let [one, two] = [0; 2].map(|_| Browser::connect(stage.port));
    let mut third = Browser::connect(stage.port);
    assert!(String::from_utf8(third.rest()).unwrap().starts_with("HTTP/1.1 503"));
    drop((one, two));

    let stage = Stage::new(Limits { head_timeout: Duration::from_millis(50), ..quick() });
    let mut slow = Browser::connect(stage.port);
    std::io::Write::write_all(&mut slow.0, b"GET / HTTP/1.1\r\nhost: ").unwrap();
    slow.rest();
    let mut idle = Browser::connect(stage.port);
    assert_eq!(idle.rest(), b"");

    let stage = Stage::new(quick());
    let long = format!("x-long: {}", "x".repeat(64 * 1024));
    assert_eq!(stage.ask("GET /", &[&long], b"").status, 431);
}

// Where the system says whose a connection is.
#[test]
#[cfg(target_os = "linux")]
fn another_user_of_the_computer_is_not_answered() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can be another user");
    }
    let stage = Stage::new(quick());
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3", stage.port);
    let ask = |user: u32| Command::new("bash").args(["-c", &script]).uid(user).output().unwrap().stdout;
    assert!(String::from_utf8(ask(0)).unwrap().starts_with("HTTP/1."));
    assert_eq!(String::from_utf8(ask(65534)).unwrap(), "");
    drop(TcpStream::connect(("127.0.0.1", stage.port)).unwrap());
}
