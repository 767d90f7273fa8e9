//! The store: what was appended is there, whole, in order, also after the process was killed.

use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::usage::{UsageBy, Used, UsedBy};
use super::*;
use crate::charge::Charge;
use crate::record::{PlanOutcome, Tokens};

fn said(text: &str) -> ChatEvent {
    ChatEvent::Message { text: text.into() }
}

fn text(text: &str) -> ChatEvent {
    ChatEvent::Text { text: text.into() }
}

fn over(outcome: Outcome) -> ChatEvent {
    ChatEvent::TurnEnded { outcome, why: None }
}

fn searched(store: &ConversationStore, words: &str) -> Vec<u64> {
    let query = ConversationQuery { limit: None, search: Some(words.into()) };
    store.list(&query).unwrap().iter().map(|view| view.id).collect()
}

// LLM-4
#[test]
fn a_conversation_is_listed_searched_forked_and_deleted() {
    let store = ConversationStore::in_memory().unwrap();
    let first = store.begin(Some("big")).unwrap().id;
    let second = store.begin(None).unwrap().id;
    store.append(first, &[said("  map the\nred pad ")]).unwrap();
    store.append(first, &[ChatEvent::Asked { model: "big".into() }, text("Cert"), text("ainly, the lamp.")]).unwrap();
    store.append(first, &[over(Outcome::Done)]).unwrap();
    store.append(second, &[said("hello")]).unwrap();

    let views = store.list(&ConversationQuery::default()).unwrap();
    assert_eq!(views.iter().map(|view| view.title.as_str()).collect::<Vec<_>>(), ["hello", "map the red pad"]);
    assert_eq!(searched(&store, "certainly lamp"), [first], "pieces of a word are one");
    assert_eq!(searched(&store, "certainly\0lamp"), [first]);
    for words in ["hello", "h", "hel"] {
        assert_eq!(searched(&store, words), [second], "{words}");
    }
    for words in ["certain lamp", "ello", "lamp hello", "\0", "\"", "* OR (", "", "said:x NEAR"] {
        assert_eq!(searched(&store, words), [0_u64; 0], "{words}");
    }
    let fork = store.fork(first, Some(3)).unwrap();
    assert_eq!((fork.last, fork.model.as_deref()), (4, Some("big")));
    let events = store.all_events(fork.id).unwrap();
    assert!(matches!(&events[3].event, ChatEvent::TurnEnded { outcome: Outcome::CutOff, .. }), "{events:?}");
    store.delete(first).unwrap();
    assert!(matches!(store.delete(first), Err(StoreError::NotFound(id)) if id == first));
    assert!(matches!(store.append(first, &[said("x")]), Err(StoreError::NotFound(_))));
    assert_eq!(searched(&store, "lamp"), [0_u64; 0], "the fork was cut before it was said whole");
    assert!(store.begin(None).unwrap().id > fork.id, "no number is given twice");
}

#[test]
fn what_can_not_be_copied_leaves_no_fork() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said("hello"), over(Outcome::Done)]).unwrap();
    store.0.lock().execute("UPDATE events SET event = '?' WHERE number = 2", []).unwrap();
    let damaged = store.fork(id, None);
    assert!(matches!(damaged, Err(StoreError::Damaged(_))), "{damaged:?}");
    let views = store.list(&ConversationQuery::default()).unwrap();
    assert_eq!(views.iter().map(|view| view.id).collect::<Vec<_>>(), [id]);
}

// LLM-4
#[test]
fn an_event_that_is_not_understood_takes_no_other_conversation_with_it() {
    let home = tempfile::tempdir().unwrap();
    let store = ConversationStore::open(home.path()).unwrap();
    let damaged = store.begin(None).unwrap().id;
    store.append(damaged, &[said("hello"), text("Well")]).unwrap();
    store.0.lock().execute("UPDATE events SET event = '?' WHERE number = 2", []).unwrap();
    let whole = store.begin(None).unwrap().id;
    store.append(whole, &[said("hello"), over(Outcome::Done)]).unwrap();
    drop(store);
    let store = ConversationStore::open(home.path()).unwrap();
    assert_eq!(store.all_events(whole).unwrap().len(), 2);
    assert_eq!(store.view(damaged).unwrap().last, 3, "its turn is closed");
    assert!(matches!(store.all_events(damaged), Err(StoreError::Damaged(_))));
    store.delete(damaged).unwrap();
}

#[test]
fn after_the_largest_number_there_is_nothing() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said("hello")]).unwrap();
    assert_eq!(store.events(id, u64::MAX, 10).unwrap(), []);
}

#[test]
fn what_was_said_in_a_conversation_that_is_deleted_is_not_in_the_file_any_more() {
    const SAID: &str = "nobody but us two reads about the octopus";
    let home = tempfile::tempdir().unwrap();
    let is_there = || {
        let bytes = std::fs::read(home.path().join("conversations.sqlite")).unwrap();
        bytes.windows(SAID.len()).any(|some| some == SAID.as_bytes())
    };
    let store = ConversationStore::open(home.path()).unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said(SAID), over(Outcome::Done)]).unwrap();
    drop(store);
    assert!(is_there(), "the log is in the file when the store is closed");
    let store = ConversationStore::open(home.path()).unwrap();
    store.delete(id).unwrap();
    drop(store);
    assert!(!is_there());
}

#[test]
fn plans_belong_to_the_conversation_that_they_were_proposed_in() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    store
        .append(
            id,
            &[
                said("x"),
                ChatEvent::Plan { call: "a".into(), plan: "p".into(), description: "d".into() },
                over(Outcome::Done),
            ],
        )
        .unwrap();
    let fork = store.fork(id, None).unwrap();
    assert_eq!(store.of_plan("p").unwrap(), Some(id), "not to {}", fork.id);
    store.append(id, &[ChatEvent::PlanDecided { plan: "p".into(), outcome: PlanOutcome::Applied }]).unwrap();
    assert_eq!(store.of_plan("p").unwrap(), None);
}

// LLM-5
#[test]
fn costs_add_up_and_what_is_unknown_stays_so() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    let charge = |cost, estimated, day: Option<&str>| Charge {
        tokens: Tokens { input: 10, cached: 4, output: 2 },
        estimated,
        cost,
        prices_as_of: day.map(str::to_owned),
    };
    let conversation = UsedBy::Conversation(id);
    let keep = |by, model, charge: &Charge| {
        store.append_answer(&Used { by, model, provider: "p", charge }, &[]).unwrap();
    };
    keep(conversation, "a", &charge(Some(7), false, Some("2026-11-24")));
    keep(conversation, "a", &charge(None, false, None));
    keep(conversation, "b", &charge(Some(5), true, None));
    let days: Vec<_> = store.usage(UsageBy::Model).unwrap().into_iter().map(|row| row.prices_as_of).collect();
    assert_eq!(days, [Some("2026-11-24".to_owned()), None]);
    let rows = store.usage(UsageBy::Model).unwrap();
    let row = |row: &usage::UsageRow| (row.of.clone(), row.exchanges, row.cost, row.unknown, row.estimated);
    assert_eq!(rows.iter().map(row).collect::<Vec<_>>(), [("a".into(), 2, 7, 1, 0), ("b".into(), 1, 5, 0, 1)]);
    store.delete(id).unwrap();
    let today = store.used_today().unwrap();
    assert_eq!((today.exchanges, today.cost, today.tokens.input), (3, 12, 30), "also of what was deleted");
    assert_eq!(store.usage(UsageBy::Conversation).unwrap()[0].of, id.to_string());
    assert_eq!(store.usage(UsageBy::Day).unwrap().len(), 1);
    // What features take is beside that, and in no limit of conversations.
    let of_feature = charge(Some(90), false, Some("2026-10-01"));
    let by = UsedBy::Feature("builtin:council");
    store.append_usage(&Used { by, model: "a", provider: "p", charge: &of_feature }).unwrap();
    let row = &store.usage(UsageBy::Conversation).unwrap()[0];
    assert_eq!((row.of.as_str(), row.exchanges, row.cost), ("builtin:council", 1, 90));
    let row = &store.usage(UsageBy::Model).unwrap()[0];
    assert_eq!((row.cost, row.prices_as_of.as_deref()), (97, Some("2026-10-01")), "the first of them");
    assert_eq!(store.used_today().unwrap(), today);
}

#[test]
fn a_later_layout_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    drop(ConversationStore::open(home.path()).unwrap());
    let file = Connection::open(home.path().join("conversations.sqlite")).unwrap();
    let later = LAYOUT + 1;
    file.pragma_update(None, "user_version", later).unwrap();
    drop(file);
    let error = ConversationStore::open(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::Layout { found } if found == later), "{error}");
}

#[test]
fn a_file_of_the_first_layout_is_read_and_brought_to_this_one() {
    let home = tempfile::tempdir().unwrap();
    let file = Connection::open(home.path().join("conversations.sqlite")).unwrap();
    file.execute_batch(SCHEMA).unwrap();
    file.execute_batch(
        "INSERT INTO conversations VALUES (3, 'hello', NULL, 1, 1, 0, 0, 0);
         INSERT INTO usage VALUES (3, 1, '2026-11-24', 'm', 'p', 10, 0, 2, 7);",
    )
    .unwrap();
    drop(file);
    // Twice: the second time nothing is left to do.
    for _ in 0..2 {
        let store = ConversationStore::open(home.path()).unwrap();
        assert_eq!(store.view(3).unwrap().title, "hello");
        let rows = store.usage(UsageBy::Model).unwrap();
        assert_eq!((rows[0].cost, rows[0].tokens.input, rows[0].estimated), (7, 10, 0));
    }
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let store = ConversationStore::open(home.path()).unwrap();
    store.begin(None).unwrap();
    for file in ["conversations.sqlite", "conversations.sqlite-wal"] {
        let mode = std::fs::metadata(home.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn a_conversation_that_is_full_still_ends_its_turn() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said("x")]).unwrap();
    let long = text(&"x".repeat(1024 * 1024));
    let full = (0..100).find_map(|_| store.append(id, std::slice::from_ref(&long)).err());
    assert!(matches!(full, Some(StoreError::TooLong(_))), "{full:?}");
    store.append(id, &[over(Outcome::Failed)]).unwrap();
}

// LLM-5
#[test]
fn what_an_answer_took_counts_if_its_conversation_is_full() {
    let store = ConversationStore::in_memory().unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said("x")]).unwrap();
    let long = text(&"x".repeat(1024 * 1024));
    while store.append(id, std::slice::from_ref(&long)).is_ok() {}
    let before = store.view(id).unwrap();
    let charge = Charge { tokens: Tokens { input: 10, cached: 0, output: 2 }, cost: Some(7), ..Charge::default() };
    let used = Used { by: UsedBy::Conversation(id), model: "m", provider: "p", charge: &charge };
    let full = store.append_answer(&used, std::slice::from_ref(&long));
    assert!(matches!(full, Err(StoreError::TooLong(_))), "{full:?}");
    let today = store.used_today().unwrap();
    assert_eq!((today.exchanges, today.tokens, today.cost), (1, charge.tokens, 7));
    assert_eq!(store.view(id).unwrap(), before, "no event is kept");
}

fn any_event() -> impl Strategy<Value = ChatEvent> {
    prop_oneof![
        ".{0,20}".prop_map(|text| said(&text)),
        ".{0,20}".prop_map(|piece| text(&piece)),
        Just(ChatEvent::Asked { model: "m".into() }),
        ".{0,9}".prop_map(|plan| ChatEvent::Plan { call: "a".into(), plan, description: String::new() }),
        ".{0,9}".prop_map(|args| ChatEvent::Call { call: "a".into(), tool: "t".into(), args, mark: None }),
        Just(over(Outcome::Done)),
    ]
}

proptest! {
    // LLM-4: what was kept is what is read, page by page, after the store was opened anew.
    #[test]
    fn what_was_kept_is_read(batches in prop::collection::vec(prop::collection::vec(any_event(), 0..6), 0..8), page in 1_usize..7) {
        let home = tempfile::tempdir().unwrap();
        let store = ConversationStore::open(home.path()).unwrap();
        let id = store.begin(None).unwrap().id;
        let mut kept = Vec::new();
        for batch in &batches {
            kept.extend(store.append(id, batch).unwrap());
        }
        drop(store);
        let store = ConversationStore::open(home.path()).unwrap();
        let (mut read, mut after) = (Vec::new(), 0);
        loop {
            let more = store.events(id, after, page).unwrap();
            let Some(last) = more.last() else { break };
            after = last.number;
            read.extend(more);
        }
        let is_open = batches.iter().flatten().rev().find_map(|event| match event {
            ChatEvent::Message { .. } => Some(true),
            ChatEvent::TurnEnded { .. } => Some(false),
            _ => None,
        });
        if is_open == Some(true) {
            let end = read.pop().unwrap();
            prop_assert!(matches!(end.event, ChatEvent::TurnEnded { outcome: Outcome::CutOff, .. }), "{end:?}");
        }
        prop_assert_eq!(read, kept);
    }
}

/// Set for the process that is killed below.
const CHILD: &str = "CONDUCTOR_CHAT_STORE_CHILD";

/// Appends to a conversation until it is killed, and says what was kept.
#[test]
#[allow(clippy::disallowed_methods, reason = "its own text, for the test that started it")]
fn child_that_is_killed() {
    let Some(home) = std::env::var_os(CHILD) else { return };
    let store = ConversationStore::open(Path::new(&home)).unwrap();
    let id = store.begin(None).unwrap().id;
    store.append(id, &[said("go")]).unwrap();
    let mut out = std::io::stdout().lock();
    loop {
        let kept = store.append(id, &[text("piece "), text("by piece ")]).unwrap();
        std::io::Write::write_all(&mut out, format!("kept {id} {}\n", kept[1].number).as_bytes()).unwrap();
        std::io::Write::flush(&mut out).unwrap();
    }
}

// LLM-4: kill -9 loses nothing that was shown, and the turn says that it was cut off.
#[test]
fn nothing_that_was_shown_is_lost_by_a_kill() {
    use std::io::BufRead as _;
    let home = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::child_that_is_killed", "--nocapture"])
            .env(CHILD, home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut shown = lines.filter_map(|line| line.split_once("kept ").map(|(_, rest)| rest.to_owned()));
        let last = shown.by_ref().take(1 + round * 7).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it ended was shown, too.
        let last = shown.filter(|line| line.split(' ').count() == 2).last().unwrap_or(last);
        let (id, number) = last.split_once(' ').unwrap();
        let (id, number): (u64, u64) = (id.parse().unwrap(), number.parse().unwrap());
        let store = ConversationStore::open(home.path()).unwrap();
        let events = store.all_events(id).unwrap();
        assert!(events.len() as u64 > number, "{} events, and {number} were shown", events.len());
        assert!(events.iter().zip(1..).all(|(event, number)| event.number == number));
        let end = events.last().unwrap();
        assert!(matches!(end.event, ChatEvent::TurnEnded { outcome: Outcome::CutOff, .. }), "{end:?}");
        store.append(id, &[said("go on")]).unwrap();
    }
}
