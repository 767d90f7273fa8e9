//! Numbers that go on, lines that are torn, bounds that hold, and texts that lie.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::sink_message::SinkKind;

/// A home that is gone with the test.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("conductor-notifications-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn log(&self) -> NotificationLog {
        NotificationLog::new(&self.0)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join("notifications").join(name)
    }

    fn page(&self, query: &NotificationQuery) -> NotificationPage {
        read(&self.0, query).unwrap()
    }

    /// Everything that is kept, oldest first.
    fn all(&self) -> Vec<Notification> {
        self.page(&NotificationQuery::default()).notifications
    }

    fn add_bytes(&self, name: &str, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).create(true).open(self.file(name)).unwrap();
        file.write_all(bytes).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn message(feature: &str, text: &str) -> SinkMessage {
    SinkMessage {
        feature: FeatureId::try_from(feature.to_owned()).unwrap(),
        kind: SinkKind::Notification,
        text: text.to_owned(),
        left_out: 0,
        sequence: None,
    }
}

fn numbers(page: &NotificationPage) -> Vec<u64> {
    page.notifications.iter().map(|notification| notification.sequence).collect()
}

fn texts(notifications: &[Notification]) -> Vec<&str> {
    notifications.iter().map(|notification| notification.text.as_str()).collect()
}

// FEA-15, FEA-18
#[test]
fn numbers_go_on_over_features_and_restarts() {
    let home = Home::new();
    assert_eq!(home.page(&NotificationQuery::default()), NotificationPage { lost: Some(0), ..Default::default() });
    let mut log = home.log();
    let mut last = log.last();
    assert_eq!(*last.borrow_and_update(), 0);
    assert_eq!(log.append(&message("project:desk", "one")).unwrap(), 1);
    assert_eq!(log.append(&SinkMessage { left_out: 7, ..message("builtin:lamp", "two") }).unwrap(), 2);
    assert!(last.has_changed().unwrap() && *last.borrow() == 2);
    drop(log);
    let mut log = home.log();
    assert_eq!(*log.last().borrow(), 2);
    assert_eq!(log.append(&message("project:desk", "three")).unwrap(), 3);
    let all = home.all();
    assert_eq!(texts(&all), ["one", "two", "three"]);
    assert_eq!((all[1].feature.as_str(), &*all[1].name, all[1].left_out), ("builtin:lamp", "lamp", 7));
    assert!(all[0].at > 1_600_000_000_000 && all[0].at <= all[2].at, "milliseconds since 1970");
}

// FEA-18
#[test]
fn a_line_that_a_power_cut_tore_is_skipped_and_its_number_was_never_given_out() {
    let home = Home::new();
    home.log().append(&message("project:desk", "whole")).unwrap();
    let line = std::fs::read(home.file("project_desk.jsonl")).unwrap();
    for torn in [&line[..line.len() / 2], &[0; 512], b"{\"sequence\":9", b"\xff\xfe"] {
        home.add_bytes("project_desk.jsonl", torn);
        assert_eq!(home.all().last().unwrap().sequence, *home.log().last().borrow());
        let before = *home.log().last().borrow();
        assert_eq!(home.log().append(&message("project:desk", "after it")).unwrap(), before + 1);
    }
    assert_eq!(texts(&home.all()), ["whole", "after it", "after it", "after it", "after it"]);
    // More of them than are looked at from the end.
    home.add_bytes("project_desk.jsonl", &[b'x'; 100_000]);
    assert_eq!(*home.log().last().borrow(), 5);
    assert_eq!(home.log().append(&message("project:desk", "and on")).unwrap(), 6);
    assert_eq!(home.all().len(), 6);
}

// FEA-15
#[test]
fn a_feature_that_floods_displaces_only_its_own_and_the_reader_says_how_many() {
    let home = Home::new();
    let mut log = home.log();
    log.append(&message("project:desk", "the one word")).unwrap();
    let flood = message("project:lamp", &"x".repeat(MAX_TEXT));
    for _ in 0..1000 {
        log.append(&flood).unwrap();
        let size = |name: &str| std::fs::metadata(home.file(name)).map_or(0, |file| file.len());
        assert!(size("project_lamp.jsonl") <= MAX_BYTES && size("project_lamp.old.jsonl") <= MAX_BYTES);
    }
    let mut query = NotificationQuery { limit: 100, ..Default::default() };
    let (mut seen, mut lost) = (Vec::new(), 0);
    loop {
        let page = home.page(&query);
        lost += page.lost.unwrap();
        query.after = page.notifications.last().unwrap().sequence;
        seen.extend(page.notifications);
        if !page.more {
            break;
        }
    }
    assert_eq!(seen[0].text, "the one word");
    assert!(lost > 400 && seen.len() > 250, "{lost} of 1001 are gone, {} are there", seen.len());
    assert_eq!(seen.len() as u64 + lost, 1001, "each was read or counted");
    let newest = home.page(&NotificationQuery { order: Order::Newest, limit: 10, ..Default::default() });
    assert_eq!((newest.notifications[0].sequence, newest.lost, newest.more), (1001, Some(0), true));
}

#[test]
fn features_beyond_so_many_displace_the_one_that_was_silent_for_longest() {
    let home = Home::new();
    let mut log = home.log();
    let name = |number: usize| format!("project:feature-{number}");
    for number in 0..MAX_FEATURES {
        log.append(&message(&name(number), "first")).unwrap();
    }
    log.append(&message(&name(0), "again")).unwrap();
    log.append(&message("project:new", "hello")).unwrap();
    let kept = page::features(&folder(&home.0)).unwrap();
    assert_eq!(kept.len(), MAX_FEATURES);
    let is_kept = |name: &str| kept.iter().any(|feature| feature.as_str() == name);
    assert!(is_kept("project:new") && is_kept(&name(0)) && !is_kept(&name(1)) && is_kept(&name(2)));
    assert_eq!(home.page(&NotificationQuery::default()).lost, Some(1));
}

#[test]
fn a_page_has_so_many_after_a_cursor_of_one_feature_or_of_all() {
    let home = Home::new();
    let mut log = home.log();
    for number in 1..=10 {
        let feature = if number % 2 == 0 { "project:even" } else { "plugin:0123456789abcdef:odd" };
        log.append(&message(feature, &number.to_string())).unwrap();
    }
    let query = |after, limit, feature: &str, order| NotificationQuery {
        after,
        limit,
        feature: Some(feature.to_owned()).filter(|feature| !feature.is_empty()),
        order,
        ..Default::default()
    };
    let page = home.page(&query(3, 4, "", Order::Oldest));
    assert_eq!((numbers(&page), page.more, page.lost, page.last), (vec![4, 5, 6, 7], true, Some(0), 10));
    let page = home.page(&query(7, 4, "", Order::Oldest));
    assert_eq!((numbers(&page), page.more), (vec![8, 9, 10], false));
    let page = home.page(&query(0, 3, "", Order::Newest));
    assert_eq!((numbers(&page), page.more, page.lost), (vec![10, 9, 8], true, Some(0)));
    let page = home.page(&query(8, 3, "", Order::Newest));
    assert_eq!((numbers(&page), page.more), (vec![10, 9], false));
    let page = home.page(&query(0, 2, "even", Order::Oldest));
    assert_eq!((numbers(&page), page.more, page.lost), (vec![2, 4], true, None));
    let page = home.page(&query(4, 9, "plugin:0123456789abcdef:odd", Order::Newest));
    assert_eq!(numbers(&page), [9, 7, 5]);
    assert_eq!(numbers(&home.page(&query(0, 9, "other", Order::Oldest))), [0; 0]);
    assert_eq!(numbers(&home.page(&query(10, 9, "", Order::Oldest))), [0; 0]);
    assert_eq!(numbers(&home.page(&query(u64::MAX, 9, "", Order::Newest))), [0; 0]);
    let few_bytes = NotificationQuery { max_bytes: 1, ..query(2, 9, "", Order::Oldest) };
    assert_eq!((numbers(&home.page(&few_bytes)), home.page(&few_bytes).more), (vec![3], true), "one at least");
}

#[test]
fn a_page_is_bounded_however_long_the_texts_are_in_json() {
    let home = Home::new();
    let mut log = home.log();
    for number in 0..160 {
        log.append(&message(&format!("project:feature-{}", number % 8), &"\u{1}".repeat(MAX_TEXT))).unwrap();
    }
    let page = home.page(&NotificationQuery::default());
    let json = serde_json::to_string(&page.notifications).unwrap();
    assert!(page.more && json.len() <= MAX_PAGE_BYTES && json.len() > MAX_PAGE_BYTES / 2, "{}", json.len());
}

// FEA-15: what a feature says is text, whatever it looks like.
#[test]
fn a_text_is_one_lines_text_and_cut() {
    let home = Home::new();
    let mut log = home.log();
    let forged = "x\"}\n{\"sequence\":99,\"at\":1,\"feature\":\"builtin:lamp\",\"text\":\"forged\"}\n\u{1b}[2J\u{202e}";
    log.append(&message("project:desk", forged)).unwrap();
    log.append(&message("project:desk", &"é".repeat(MAX_TEXT))).unwrap();
    let all = home.all();
    assert_eq!((all.len(), all[0].text.as_str(), all[0].feature.as_str()), (2, forged, "project:desk"));
    assert_eq!(all[1].text, "é".repeat(MAX_TEXT / 2), "cut between characters");
    let bytes = std::fs::read(home.file("project_desk.jsonl")).unwrap();
    assert_eq!(bytes.iter().filter(|byte| byte.is_ascii_control()).count(), 2, "the line feeds of two lines");
}

#[test]
fn a_line_in_another_features_file_is_nobodys() {
    let home = Home::new();
    home.log().append(&message("project:desk", "mine")).unwrap();
    let line = b"{\"sequence\":5,\"at\":1,\"feature\":\"builtin:lamp\",\"text\":\"forged\"}\n";
    home.add_bytes("project_desk.jsonl", line);
    home.add_bytes("no id.jsonl", line);
    home.add_bytes("builtin_lamp.jsonl", b"{\"at\":1,\"feature\":\"builtin:lamp\",\"text\":\"without a number\"}\n");
    assert_eq!(texts(&home.all()), ["mine"]);
    assert_eq!(*home.log().last().borrow(), 1);
}

// Two hosts never write one log; the second goes on as soon as the first is gone.
#[test]
fn one_log_has_one_writer() {
    let home = Home::new();
    let (mut first, mut second) = (home.log(), home.log());
    assert_eq!(first.append(&message("project:desk", "first")).unwrap(), 1);
    let refused = second.append(&message("project:desk", "second")).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy, "{refused}");
    assert_eq!(first.append(&message("project:desk", "first again")).unwrap(), 2);
    drop(first);
    assert_eq!(second.append(&message("project:desk", "second")).unwrap(), 3);
    assert_eq!(texts(&home.all()), ["first", "first again", "second"]);
}

#[test]
fn what_can_not_be_kept_uses_up_its_number_and_leaves_no_half_line() {
    let home = Home::new();
    let mut log = home.log();
    log.append(&message("project:desk", "one")).unwrap();
    // A folder stands where the file of another feature should.
    std::fs::create_dir(home.file("project_lamp.jsonl")).unwrap();
    log.append(&message("project:lamp", "lost")).unwrap_err();
    std::fs::remove_dir(home.file("project_lamp.jsonl")).unwrap();
    assert_eq!(log.append(&message("project:lamp", "three")).unwrap(), 3);
    let page = home.page(&NotificationQuery::default());
    assert_eq!((numbers(&page), page.lost), (vec![1, 3], Some(1)));
}
