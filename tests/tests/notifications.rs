//! What features notify agents of: numbered, kept over restarts, read at the command line, bounded. Over MCP: `mcp.rs`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use conductor_tests::conductor::{self, command};
use conductor_tests::home::Home;
use conductor_tests::osc::{Tablet, free_port, mappings};
use conductor_tests::process::Process;
use conductor_tests::wait;
use serde_json::{Value, json};

/// The notifications that are kept, as soon as there are so many.
fn kept(home: &Home, count: usize) -> Vec<Value> {
    let page = || home.json(&["notifications", "--json"])["notifications"].as_array().unwrap().clone();
    wait::until(|| Some(page()).filter(|all| all.len() == count), || format!("{:#?}", page())).0
}

fn numbers(notifications: &[Value]) -> Vec<u64> {
    notifications.iter().map(|one| one["sequence"].as_u64().unwrap()).collect()
}

/// The next notification of the stream, from its beginning.
fn streamed(home: &Home) -> Value {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.set_read_timeout(Some(wait::TEST_TIMEOUT)).unwrap();
    write!(stream, "GET /v1/events?after=start&kinds=notification HTTP/1.1\r\nhost: conductor\r\n\r\n").unwrap();
    let lines = BufReader::new(stream).lines();
    lines.map(Result::unwrap).find_map(|line| serde_json::from_str(&line).ok().filter(Value::is_object)).unwrap()
}

// FEA-15, FEA-18: what a feature notifies of is there after a restart under the same number, with and without a host;
// the stream has the numbers of the log; and a text that looks like a line, an escape or another feature's word is text.
#[test]
fn notifications_are_kept_numbered_and_read_again() {
    let port = free_port();
    let forged = r#"type = 'WorkItemMark', text = "\u001b[2J\n{\"sequence\":99,\"feature\":\"builtin:status-tools\"}""#;
    let plain = "type = 'WorkItemMark', text = 'the singer wants more reverb'";
    let home = Home::new(&mappings(port, &[("/plain", plain), ("/forged", forged)]));
    assert_eq!(home.conductor(&["notifications"]).out, "no notification is kept");
    let host = home.run();
    host.port_is("tablet", "open");
    let tablet = Tablet::to(port);
    let follow = Process::start(&mut command(home.path(), &["notifications", "--follow", "--json"]));
    tablet.send("/plain", []);
    let line = follow.out.line("the singer wants more reverb");
    let one: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&one["sequence"], &one["feature"]), (&json!(1), &json!("builtin:work-items")));
    let live = streamed(&home);
    assert_eq!(
        (&live["sequence"], &live["text"], &live["sink"]),
        (&one["sequence"], &one["text"], &json!("notification"))
    );

    tablet.send("/forged", []);
    let both = kept(&home, 2);
    assert_eq!((&both[0], numbers(&both)), (&one, vec![1, 2]));
    assert_eq!(both[1]["feature"], "builtin:work-items");
    assert!(!both[1]["text"].as_str().unwrap().contains(char::is_control), "{}", both[1]);
    follow.out.line("\"sequence\":2");
    let shown = home.conductor(&["notifications"]).out;
    assert!(shown.contains("\\u{1b}[2J\\u{a}{") && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(shown.lines().count(), 2, "{shown}");

    host.stop();
    assert_eq!(kept(&home, 2), both, "the files say the same");
    let last = Process::start(&mut command(home.path(), &["notifications", "--follow", "--limit", "1"]));
    assert!(last.out.line("status-tools").trim_start().starts_with("2 "));
    let host = home.run();
    host.port_is("tablet", "open");
    tablet.send("/plain", []);
    assert_eq!(numbers(&kept(&home, 3)), [1, 2, 3], "numbers go on");
    assert!(last.out.line("more reverb").trim_start().starts_with("3 "), "{}", last.out.text());
    follow.out.line("\"sequence\":3");
    let followed: Vec<Value> = follow.out.all().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(numbers(&followed), [1, 2, 3], "each once, over a restart");
    let of = |arguments: &[&str]| {
        let page = home.json(&[&["notifications", "--json"][..], arguments].concat());
        numbers(page["notifications"].as_array().unwrap())
    };
    assert_eq!(of(&["--limit", "2"]), [2, 3]);
    assert_eq!(of(&["--feature", "work-items", "--limit", "1"]), [3]);
    assert_eq!(of(&["--feature", "builtin:work-items"]), [1, 2, 3]);
    assert_eq!(of(&["--feature", "status-tools"]), [0; 0]);
    assert_eq!(home.conductor(&["notifications", "--limit", "1001"]).code, Some(2));
}

// FEA-15: a feature that floods is kept within its bounds, and what was left out of it is counted.
#[test]
fn a_flood_of_notifications_is_bounded_and_counted() {
    let (home, guest) = (Home::empty(), conductor::guest("hostile-tools"));
    let pins = home.pins(&guest);
    let path = guest.display();
    home.configure(&format!("[features.hostile-tools]\npath = '{path}'\n{pins}grants = {{ notify = true }}\n"));
    let _host = home.run();
    let flood = home.conductor(&["tool", "call", "look", r#"{"how": "notifications"}"#]);
    assert_eq!(flood.code, Some(0), "{}", flood.err);
    let page = || home.json(&["notifications", "--json", "--limit", "1000"]);
    let counted = |page: &Value| {
        let all = page["notifications"].as_array().unwrap();
        let before: u64 = all.iter().filter_map(|one| one["left_out"].as_u64()).sum();
        all.len() as u64 + before + page["left_out"]["project:hostile-tools"].as_u64().unwrap_or(0)
    };
    // Each was kept or counted.
    let (page, _) = wait::until(|| Some(page()).filter(|page| counted(page) == 10_000), || format!("{:.2000}", page()));
    let all = page["notifications"].as_array().unwrap();
    assert!((50..1000).contains(&all.len()) && page["more"] == false, "{} were kept", all.len());
    for one in all {
        assert_eq!(one["feature"], "project:hostile-tools");
        assert!(one["text"].as_str().unwrap().len() <= 4096);
    }
    let shown = home.conductor(&["notifications"]).out;
    assert!(shown.contains("more of project:hostile-tools were left out"), "{shown:.2000}");
}
