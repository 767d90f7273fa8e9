//! HTTP: nothing but the granted hosts is dialled, and the secret never comes back.

use crate::lab::{Lab, Play, SECRET, Tools};

fn fetch(tools: &Tools, url: &str, more: &str) -> Result<String, String> {
    tools.look(&format!(r#"{{"how": "fetch", "url": "{url}"{more}}}"#)).map_err(|error| error.to_string())
}

#[test]
fn other_hosts_are_not_dialled() {
    let lab = Lab::new();
    let tools = lab.tools();
    for url in [
        "https://evil.example/",
        "https://granted.example.evil/",
        "https://granted.example@evil.example/",
        "https://granted.example:pass@evil.example/",
        "https://evil.example#granted.example/",
        "https://evil.example\\\\@granted.example/",
        "https://granted.example:8443/",
        "http://granted.example/",
        "https://169.254.169.254/latest/meta-data/",
        "http://169.254.169.254/",
        "http://[::ffff:169.254.169.254]/",
        "https://2852039166/",
        "https://0x7f.1/",
        "https://127.0.0.1/",
        "file:///etc/passwd",
        "gopher://granted.example/",
        "https:///granted.example",
        "https://granted.example\\u0000.evil.example/",
        "https://gr\\u0430nted.example/",
        "",
    ] {
        assert!(fetch(&tools, url, "").is_err(), "{url}");
    }
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
    tools.goes_on();
}

#[test]
fn a_granted_name_that_leads_inside_is_not_dialled() {
    let lab = Lab::new();
    let error = fetch(&lab.tools(), "https://sly.example/", "").unwrap_err();
    assert!(error.contains("127.0.0.1"), "{error}");
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}

#[test]
fn a_redirect_is_not_followed() {
    let lab = Lab::new();
    let there = vec![("location", "https://evil.example/".to_owned())];
    lab.stage.plays.lock().unwrap().push_back(Play::Answer(302, there, String::new()));
    let answer = fetch(&lab.tools(), "https://granted.example/", "").unwrap();
    assert!(answer.contains("\"status\":302"), "{answer}");
    assert_eq!(lab.stage.dialled.lock().unwrap().len(), 1);
}

#[test]
fn headers_that_steer_the_connection_are_refused() {
    let lab = Lab::new();
    let tools = lab.tools();
    for header in ["host", "connection", "transfer-encoding", "content-length", "proxy-authorization", "upgrade"] {
        let more = format!(r#", "headers": {{"{header}": "evil.example"}}"#);
        assert!(fetch(&tools, "https://granted.example/", &more).is_err(), "{header}");
    }
    let split = r#", "headers": {"x-a": "b\r\nhost: evil.example"}"#;
    assert!(fetch(&tools, "https://granted.example/", split).is_err());
    assert!(fetch(&tools, "https://granted.example/", r#", "method": "CONNECT""#).is_err());
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}

#[test]
fn a_secret_goes_to_its_host_only() {
    let lab = Lab::new();
    let tools = lab.tools();
    let secret = r#", "secret": "key""#;
    let error = fetch(&tools, "https://other.example/", secret).unwrap_err();
    assert!(error.contains("key") && !error.contains(SECRET), "{error}");
    assert!(fetch(&tools, "https://granted.example/", r#", "secret": "another""#).is_err());
    assert!(fetch(&tools, "https://granted.example/", r#", "secret": "key", "header": "host""#).is_err());
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}

/// What the feature gets to see, says in a diagnostic, and puts into a query holds no secret.
#[test]
fn a_secret_that_is_echoed_is_taken_out() {
    let lab = Lab::new();
    let echo = vec![("x-echo", format!("Bearer {SECRET}"))];
    lab.stage.plays.lock().unwrap().push_back(Play::Answer(200, echo, format!("you sent {SECRET}")));
    let tools = lab.tools();
    let url = "https://granted.example/?key=***";
    let answer = fetch(&tools, url, r#", "secret": "key""#).unwrap();
    assert!(answer.contains("you sent ***") && !answer.contains(SECRET), "{answer}");
    assert!(lab.said.try_iter().all(|message| !message.text.contains(SECRET)));
    let dialled = lab.stage.dialled.lock().unwrap();
    assert!(!dialled[0].url.as_str().contains(SECRET));
    assert_eq!(dialled[0].headers["authorization"], format!("Bearer {SECRET}"));
}

#[test]
fn other_datagram_targets_are_not_dialled() {
    let lab = Lab::new();
    let tools = lab.tools();
    for target in
        ["192.0.2.1:9", "127.0.0.2:9", "169.254.169.254:80", "[::1]:9", "localhost:9", "user@127.0.0.1:9", "127.1:9"]
    {
        assert!(tools.look(&format!(r#"{{"how": "target", "target": "{target}"}}"#)).is_err(), "{target}");
    }
    assert!(lab.datagrams.dialled.lock().unwrap().is_empty());
}
