//! The record from its first row to its last, and the ways of tampering with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::caller::{Caller, Door, Scope};
use crate::*;
use conductor_stdx::clock::Clock;

/// A home that goes away.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("conductor-audit-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn agent() -> Caller {
    Caller::client(Door::McpSocket, Scope::Agent, Some("test"))
}

fn entry(number: u32) -> Entry {
    Entry::new(Kind::Tool, "call", &agent(), &format!("tool_{number}")).with("args", serde_json::json!({ "n": number }))
}

/// A chain of so many rows.
fn chain(home: &Home, rows: u32) -> Chain {
    let chain = Chain::at(home.path());
    let entries: Vec<_> = (1..=rows).map(entry).collect();
    chain.append(&entries).unwrap();
    assert_eq!(wrong(&chain), None);
    chain
}

/// The first row that is wrong, and why.
fn wrong(chain: &Chain) -> Option<(i64, String)> {
    chain.verify().unwrap().wrong.map(|wrong| (wrong.number, wrong.why))
}

fn alter(chain: &Chain, sql: &str) {
    Connection::open(chain.file()).unwrap().execute_batch(sql).unwrap();
}

/// Writes a row, and all after it, as a host would, but for the head: without the host's key.
fn write_anew(chain: &Chain, from: i64, change: impl Fn(&mut Row)) {
    let mut rows = chain.after(0, 10_000).unwrap();
    let mut before = chain::NOTHING.to_owned();
    let file = Connection::open(chain.file()).unwrap();
    for row in &mut rows {
        if row.number == from {
            change(row);
        }
        row.hash = row.hash_after(&before);
        before.clone_from(&row.hash);
        let set = "UPDATE rows SET subject = ?1, hash = ?2 WHERE number = ?3";
        file.execute(set, rusqlite::params![row.subject, row.hash, row.number]).unwrap();
    }
}

#[test]
fn rows_come_back_as_they_were_written() {
    let home = Home::new();
    let chain = chain(&home, 3);
    chain
        .append(&[Entry::new(Kind::Plan, "apply", &Caller::client(Door::Socket, Scope::Owner, Some("cli")), "p1")
            .refused("stale")
            .took(Duration::from_millis(2))])
        .unwrap();
    let rows = chain.find(None, None, 0, 50).unwrap();
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let row = &rows[3];
    assert_eq!((row.kind.as_str(), row.what.as_str(), row.who.as_str()), ("plan", "apply", "socket:owner \"cli\""));
    assert_eq!((row.outcome.as_str(), row.took, row.detail.as_str()), ("refused", Some(2000), r#"{"reason":"stale"}"#));
    assert!(row.at > 1_700_000_000_000);
    assert_eq!(chain.find(Some(Kind::Plan), None, 0, 50).unwrap(), std::slice::from_ref(row));
    assert_eq!(chain.find(None, Some("mcp"), 0, 2).unwrap(), rows[1..3]);
    assert_eq!(chain.find(None, None, row.at + 1, 50).unwrap(), []);
    #[cfg(unix)]
    for file in [chain.file(), chain.head_file()] {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn nothing_is_on_record_where_nobody_was() {
    let home = Home::new();
    let chain = Chain::at(home.path());
    assert_eq!(chain.verify().unwrap().wrong, None);
    assert_eq!(chain.after(0, 10).unwrap(), []);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "looking makes nothing");
}

// PLN-4
#[test]
fn every_change_of_a_row_is_found_at_that_row() {
    for column in [
        "at", "kind", "what", "who", "subject", "outcome", "took", "detail", "hash", "door", "scope", "client",
        "elicited",
    ] {
        let home = Home::new();
        let chain = chain(&home, 9);
        let to = if matches!(column, "at" | "took" | "elicited") { "7" } else { "'x'" };
        alter(&chain, &format!("UPDATE rows SET {column} = {to} WHERE number = 5"));
        let (number, why) = wrong(&chain).unwrap();
        assert_eq!(number, 5, "{column}: {why}");
        assert!(why.contains("not what was written"), "{column}: {why}");
    }
}

// PLN-4
#[test]
fn rows_that_are_removed_inserted_or_reordered_are_found() {
    let swap = "UPDATE rows SET number = 100 WHERE number = 4; UPDATE rows SET number = 4 WHERE number = 5;
                UPDATE rows SET number = 5 WHERE number = 100;";
    let shift = "DELETE FROM rows WHERE number = 4; UPDATE rows SET number = number - 1 WHERE number > 4;";
    let insert = "UPDATE rows SET number = number + 100 WHERE number > 3;
                  INSERT INTO rows SELECT 4, at, kind, what, who, subject, outcome, took, detail, hash, door, scope,
                  client, elicited FROM rows
                  WHERE number = 3; UPDATE rows SET number = number - 99 WHERE number > 100;";
    let cases = [
        ("DELETE FROM rows WHERE number = 4", 4, "it is missing"),
        ("DELETE FROM rows WHERE number = 1", 1, "it is missing"),
        (swap, 4, "not what was written"),
        (shift, 4, "not what was written"),
        (insert, 4, "not what was written"),
        ("DELETE FROM rows WHERE number > 6", 7, "the rows after 6 are gone, up to 9"),
        ("DELETE FROM rows", 1, "the rows after 0 are gone, up to 9"),
        ("DELETE FROM rows; DELETE FROM head", 1, "audit.head knows a row 9"),
        ("DELETE FROM head", 9, "its head is gone"),
        ("UPDATE head SET mac = hash", 9, "not written with this host's key"),
        ("DELETE FROM rows WHERE number > 6; UPDATE head SET number = 6", 6, "not written with this host's key"),
    ];
    for (sql, row, said) in cases {
        let home = Home::new();
        let chain = chain(&home, 9);
        alter(&chain, sql);
        let (number, why) = wrong(&chain).unwrap();
        assert_eq!(number, row, "{sql}: {why}");
        assert!(why.contains(said), "{sql}: {why}");
    }
}

// PLN-4: without the host's key, right hashes are of no use.
#[test]
fn a_chain_that_is_written_anew_or_carried_on_by_somebody_else_is_found() {
    let home = Home::new();
    let chain = chain(&home, 9);
    write_anew(&chain, 3, |row| row.subject = "innocent".to_owned());
    for beside in [true, false] {
        let (number, why) = wrong(&chain).unwrap();
        assert!(number == 9 && why.contains("written anew"), "{number} {why}");
        if beside {
            fs::remove_file(chain.head_file()).unwrap();
        }
    }

    let home = Home::new();
    let chain = self::chain(&home, 9);
    let last = chain.after(8, 1).unwrap().remove(0);
    let more = Row { number: 10, subject: "invented".to_owned(), ..last.clone() };
    let hash = more.hash_after(&last.hash);
    alter(
        &chain,
        &format!(
            "INSERT INTO rows SELECT 10, at, kind, what, who, 'invented', outcome, took, detail, '{hash}', door,
             scope, client, elicited FROM rows
             WHERE number = 9"
        ),
    );
    let (number, why) = wrong(&chain).unwrap();
    assert_eq!((number, why.contains("not added by a host")), (10, true), "{why}");
}

// PLN-4: an older file in the place of the newer one, and none at all.
#[test]
fn a_file_that_is_put_back_or_taken_away_is_found() {
    let home = Home::new();
    let chain = chain(&home, 3);
    let older = fs::read(chain.file()).unwrap();
    chain.append(&[entry(4), entry(5)]).unwrap();
    fs::write(chain.file(), older).unwrap();
    let (number, why) = wrong(&chain).unwrap();
    assert_eq!((number, why.contains("audit.head knows a row 5")), (4, true), "{why}");
    fs::remove_file(chain.file()).unwrap();
    assert!(wrong(&chain).unwrap().1.contains("audit.head knows a row 5"));
    fs::write(chain.head_file(), "5 00 00\n").unwrap();
    chain.append(&[entry(1)]).unwrap();
    assert!(wrong(&chain).unwrap().1.contains("audit.head was not written with this host's key"));
}

// PLN-4: a host that goes on does not cover up what it found.
#[test]
fn what_was_altered_stays_on_record_when_the_chain_goes_on() {
    for sql in ["DELETE FROM rows WHERE number > 6", "DELETE FROM head", "DELETE FROM rows; DELETE FROM head"] {
        let home = Home::new();
        let chain = chain(&home, 9);
        alter(&chain, sql);
        let (before, why) = wrong(&chain).unwrap();
        chain.append(&[entry(10)]).unwrap();
        chain.append(&[entry(11)]).unwrap();
        let (after, said) = wrong(&chain).unwrap();
        assert!(said.contains(&why) && after >= before.min(7), "{sql}: {before} {why}; {after} {said}");
        let rows = chain.find(Some(Kind::Audit), None, 0, 9).unwrap();
        assert_eq!(rows.len(), 1, "it is said once");
    }
}

#[test]
fn processes_and_threads_write_one_chain() {
    let home = Home::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let chain = Chain::at(home.path());
            scope.spawn(move || (0..25).for_each(|number| chain.append(&[entry(writer * 100 + number)]).unwrap()));
        }
    });
    let chain = Chain::at(home.path());
    let verdict = chain.verify().unwrap();
    assert_eq!((verdict.rows, verdict.wrong), (100, None));
}

#[test]
fn what_waits_is_written_in_its_order_and_what_is_required_is_there_before_the_answer() {
    let home = Home::new();
    let audit = Audit::start(home.path(), Clock::start()).unwrap();
    (1..=100).for_each(|number| audit.note(entry(number)));
    audit.require(entry(101)).unwrap();
    let rows = Chain::at(home.path()).after(0, 1000).unwrap();
    let subjects: Vec<_> = rows.iter().map(|row| row.subject.clone()).collect();
    assert_eq!(subjects, (1..=101).map(|number| format!("tool_{number}")).collect::<Vec<_>>());
    assert_eq!(audit.status(), AuditStatus { written: 101, lost: 0, trouble: None });
}

// REL-3
#[test]
fn a_record_that_can_not_be_written_says_so_and_counts_what_is_missing() {
    let home = Home::new();
    let audit = Audit::start(home.path(), Clock::start()).unwrap();
    audit.require(entry(1)).unwrap();
    // Where the journal would be there is something else: nothing can be written, by root neither.
    let in_the_way = home.path().join("audit.sqlite-journal");
    fs::create_dir(&in_the_way).unwrap();
    audit.note(entry(2));
    let error = audit.require(entry(3)).unwrap_err().to_string();
    assert!(error.contains("audit.sqlite") && error.contains("make room"), "{error}");
    let status = audit.status();
    assert_eq!((status.written, status.lost), (1, 2));
    assert_eq!(status.trouble, Some(error));

    fs::remove_dir(&in_the_way).unwrap();
    audit.require(entry(4)).unwrap();
    let status = audit.status();
    assert_eq!((status.lost, status.trouble), (2, None));
    let chain = Chain::at(home.path());
    let rows = chain.after(1, 10).unwrap();
    assert_eq!((rows[0].what.as_str(), rows[0].detail.as_str()), ("missed", r#"{"entries":2}"#));
    assert_eq!((rows[1].subject.as_str(), wrong(&chain)), ("tool_4", None));
}

#[test]
fn what_is_no_record_is_not_written_over() {
    let home = Home::new();
    let chain = Chain::at(home.path());
    fs::write(chain.file(), "a diary, which is not an audit").unwrap();
    let error = chain.append(&[entry(1)]).unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");
    assert!(chain.verify().is_err());
    assert!(fs::read_to_string(chain.file()).unwrap().starts_with("a diary"));
}

#[test]
fn without_a_home_nothing_is_kept_and_nothing_refused() {
    let audit = Audit::none();
    audit.note(entry(1));
    assert_eq!(audit.require(entry(2)), Ok(()));
    assert_eq!(audit.status(), AuditStatus::default());
}

// PLN-4: what older hosts wrote verifies on, is carried on, and can't pass for what this one writes.
#[test]
fn a_chain_of_an_older_host_verifies_and_goes_on() {
    let home = Home::new();
    chain::write_layout_1(home.path(), 3);
    let chain = Chain::at(home.path());
    assert_eq!((wrong(&chain), chain.verify().unwrap().rows), (None, 3));
    assert_eq!(chain.find(None, Some("mcp:old"), 0, 9).unwrap().len(), 3);
    chain.append(&[entry(4)]).unwrap();
    assert_eq!((wrong(&chain), chain.verify().unwrap().rows), (None, 4));
    let rows = chain.after(0, 9).unwrap();
    assert_eq!((rows[2].door.as_deref(), rows[2].who.as_str()), (None, "mcp:old by elicitation"));
    assert_eq!(rows[3].door.as_deref(), Some("mcp-socket"));

    for (sql, row) in [
        ("UPDATE rows SET door = 'socket', scope = 'owner', elicited = 0 WHERE number = 2", 2),
        ("UPDATE rows SET door = NULL, scope = NULL, client = NULL, elicited = NULL WHERE number = 4", 4),
    ] {
        let home = Home::new();
        chain::write_layout_1(home.path(), 3);
        let chain = Chain::at(home.path());
        chain.append(&[entry(4)]).unwrap();
        alter(&chain, sql);
        assert_eq!(wrong(&chain).map(|(number, _)| number), Some(row), "{sql}");
    }

    // A later layout is not carried on with rows of this one.
    alter(&chain, "PRAGMA user_version = 3");
    assert!(chain.append(&[entry(5)]).unwrap_err().to_string().contains("layout 3"));
}

// PLN-4: door, scope, claim and elicitation are columns that the host fills.
#[test]
fn who_did_it_is_in_columns_of_its_own() {
    let home = Home::new();
    let chain = Chain::at(home.path());
    let lent = Caller::client(Door::Tcp, Scope::Control, Some("conductor-cli"));
    let named = Caller::client(Door::McpSocket, Scope::Agent, Some("test by elicitation"));
    let entries = [&lent, &named, &agent().by_elicitation(), &Caller::feature("builtin:x"), &Caller::host()];
    chain.append(&entries.map(|who| Entry::new(Kind::Tool, "call", who, "x"))).unwrap();
    let columns = |row: &Row| (row.door.clone(), row.scope.clone(), row.client.clone(), row.elicited);
    let text = |text: &str| Some(text.to_owned());
    let rows: Vec<_> = chain.after(0, 9).unwrap().iter().map(columns).collect();
    assert_eq!(
        rows,
        [
            (text("tcp"), text("control"), text("conductor-cli"), Some(0)),
            (text("mcp-socket"), text("agent"), text("test by elicitation"), Some(0)),
            (text("mcp-socket"), text("agent"), text("test"), Some(1)),
            (text("feature"), None, text("builtin:x"), Some(0)),
            (text("host"), None, None, Some(0)),
        ]
    );
}
