//! The notifications of features: page by page, in the host's words and in the client's types.

use conductor_api::client::Client;
use conductor_observer::notification_log::{NotificationLog, NotificationQuery, Order};
use conductor_observer::sink_message::{SinkKind, SinkMessage};
use serde_json::{Value, json};

use super::client::get;
use super::{SHOW, Stage};

/// Keeps what a feature says in the home of a host, as one before it would have.
fn keep(log: &mut NotificationLog, feature: &str, text: &str, left_out: u64) -> u64 {
    let feature = serde_json::from_value(json!(feature)).unwrap();
    let message =
        SinkMessage { feature, kind: SinkKind::Notification, text: text.to_owned(), left_out, sequence: None };
    log.append(&message).unwrap()
}

fn numbers(page: &Value) -> Vec<u64> {
    page["notifications"].as_array().unwrap().iter().map(|one| one["sequence"].as_u64().unwrap()).collect()
}

// FEA-18, API-1: what features said is read again after a cursor, in either order, of one feature or of all.
#[test]
fn notifications_are_read_page_by_page() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let read = |query: &str| {
        let (status, page) = get(home, &format!("/v1/notifications{query}"));
        assert_eq!(status, 200, "{query}: {page}");
        page
    };
    assert_eq!(read(""), json!({ "notifications": [], "more": false, "lost": 0, "last": 0 }));
    let mut log = NotificationLog::new(home);
    keep(&mut log, "project:desk", "one", 0);
    keep(&mut log, "builtin:lamp", "two\n\u{1b}[2J", 5);
    keep(&mut log, "project:desk", "three", 0);

    let page = read("?after=1&limit=1");
    assert_eq!((numbers(&page), &page["more"], &page["last"]), (vec![2], &json!(true), &json!(3)));
    let second = &page["notifications"][0];
    assert_eq!((&second["feature"], &second["name"]), (&json!("builtin:lamp"), &json!("lamp")));
    assert_eq!((&second["text"], &second["left_out"]), (&json!("two\n\u{1b}[2J"), &json!(5)));
    assert!(second["at"].as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!(numbers(&read("?order=newest&limit=2")), [3, 2]);
    assert_eq!(numbers(&read("?feature=desk")), [1, 3]);
    assert_eq!(numbers(&read("?feature=builtin%3Alamp&order=newest")), [2]);
    assert_eq!(read("?feature=desk")["lost"], Value::Null);
    assert_eq!(numbers(&read("?after=18446744073709551615")), [0; 0]);

    // The client's types are the host's.
    let query = NotificationQuery {
        limit: 2,
        feature: Some("project:desk".to_owned()),
        order: Order::Newest,
        ..NotificationQuery::default()
    };
    let page = Client::new(home).notifications(&query).unwrap();
    let texts: Vec<&str> = page.notifications.iter().map(|one| one.text.as_str()).collect();
    assert_eq!((texts, page.last), (vec!["three", "one"], 3));
    let odd = NotificationQuery { feature: Some("a&limit=0#\u{1b}".to_owned()), ..NotificationQuery::default() };
    assert!(Client::new(home).notifications(&odd).unwrap().notifications.is_empty(), "a name is a name");
}
