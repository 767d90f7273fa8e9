//! The hash chain: rows in `<home>/audit.sqlite`, each bound to the one before by its hash.
//!
//! A row's hash is the SHA-256 of the hash before it (64 hex digits; zeros for the first) and of the row's
//! content, which is a JSON array without blanks: `[number, at, kind, what, who, subject, outcome, took, detail]`
//! for a row of format 1, and for one of format 2 the same followed by `door, scope, client, elicited`. A row that has
//! no door is of format 1, which older hosts wrote; such rows verify on, and a file that holds them is continued. The
//! last number and hash stand in the file once more, under a MAC with the host's key: the *head*. Without the key the
//! chain can't be ended elsewhere, and so can't leave rows out at its end, add some, or write all of it anew. The head
//! also stands beside the file, in `audit.head`, which shows when the file was replaced by an older one or removed
//! (rollback protection).
//!
//! Several processes may add rows, each in an exclusive transaction. Before it adds any it checks whether the chain
//! still ends as the head says. If not, it records that first, so that going on does not cover it up.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::Mac as _;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::entry::{Entry, Kind};
use conductor_stdx::atomic_file::replace;
use conductor_stdx::clock::unix_millis;
use conductor_stdx::digest::{hex, sha256};
use conductor_stdx::host_key::HostKey;
use conductor_stdx::{plain_file, private_file};

/// How long to wait for another process that adds rows.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// What stands for the hash before the first row.
pub(super) const NOTHING: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// What a row is called that says that the chain was found altered.
pub(super) const ALTERED: &str = "altered";

/// The largest head that is read, in bytes: one line of a number and two hashes.
const MAX_HEAD: u64 = 4096;

const SCHEMA: &str = "
    CREATE TABLE rows (
        number INTEGER NOT NULL PRIMARY KEY,
        at INTEGER NOT NULL,
        kind TEXT NOT NULL,
        what TEXT NOT NULL,
        who TEXT NOT NULL,
        subject TEXT NOT NULL,
        outcome TEXT NOT NULL,
        took INTEGER,
        detail TEXT NOT NULL,
        hash TEXT NOT NULL,
        door TEXT,
        scope TEXT,
        client TEXT,
        elicited INTEGER
    ) STRICT;
    CREATE TABLE head (
        one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
        number INTEGER NOT NULL,
        hash TEXT NOT NULL,
        mac TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 2;";
/// The layout of the file that this version makes, the newest one that it knows.
pub const LAYOUT: i64 = 2;
/// What a file of version 1 lacks.
const FROM_1: &str = "
    ALTER TABLE rows ADD COLUMN door TEXT;
    ALTER TABLE rows ADD COLUMN scope TEXT;
    ALTER TABLE rows ADD COLUMN client TEXT;
    ALTER TABLE rows ADD COLUMN elicited INTEGER;
    PRAGMA user_version = 2;";

/// The file was written by a later version of this program.
#[derive(Debug, thiserror::Error)]
#[error("it has layout {0}, and this version of conductor knows up to {LAYOUT}; use the newer one")]
struct TooNew(i64);

/// Why the record can't be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// It can't be written.
    #[error(
        "the audit can't be written: {file}: {why}. What has to be on record is not done until it can be: make room, \
         or make the folder writable"
    )]
    Unwritable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// It can't be read.
    #[error("the audit can't be read: {file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// From 1, without gaps.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// See [`Kind`].
    pub kind: String,
    /// What was done, or should have been: `call`, `apply`, `install`.
    pub what: String,
    /// Who wanted it, as text: `socket:owner "conductor-cli"`, `feature "builtin:x"`, `host`. See
    /// [`Caller`]. Of format 1: `mcp:NAME`, `api:NAME`, a feature's id, `host`.
    pub who: String,
    /// The subject: a tool, a plan, a feature, a secret.
    pub subject: String,
    /// See [`Outcome`](crate::Outcome).
    pub outcome: String,
    /// Microseconds; `None` if nothing was waited for.
    pub took: Option<i64>,
    /// More, as the text of a JSON object.
    pub detail: String,
    /// 64 hex digits.
    pub hash: String,
    /// The door that they came through; `None` in a row of format 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub door: Option<String>,
    /// How much the door let them do; `None` if it is not a client.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub scope: Option<String>,
    /// What the client calls itself, or a feature's id, with escapes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// 1 if an agent's program says that its user has answered, else 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub elicited: Option<i64>,
}

impl Row {
    /// The hash that the row must have after a row with the hash `before`.
    pub fn hash_after(&self, before: &str) -> String {
        let Self { number, at, kind, what, who, subject, outcome, took, detail, .. } = self;
        let Self { door, scope, client, elicited, .. } = self;
        let content = match door {
            None => serde_json::to_vec(&(number, at, kind, what, who, subject, outcome, took, detail)),
            Some(_) => serde_json::to_vec(&(
                number, at, kind, what, who, subject, outcome, took, detail, door, scope, client, elicited,
            )),
        };
        // Numbers and texts always have a JSON form.
        sha256(&[before.as_bytes(), &content.unwrap_or_default()].concat())
    }

    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get("number")?,
            at: row.get("at")?,
            kind: row.get("kind")?,
            what: row.get("what")?,
            who: row.get("who")?,
            subject: row.get("subject")?,
            outcome: row.get("outcome")?,
            took: row.get("took")?,
            detail: row.get("detail")?,
            hash: row.get("hash")?,
            door: added(row, "door")?,
            scope: added(row, "scope")?,
            client: added(row, "client")?,
            elicited: added(row, "elicited")?,
        })
    }
}

/// The value of a column that a file of version 1 does not have.
fn added<T: rusqlite::types::FromSql>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    match row.as_ref().column_index(column) {
        Ok(index) => row.get(index),
        Err(_) => Ok(None),
    }
}

/// Where a chain ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: i64,
    pub(super) hash: String,
    mac: String,
}

impl Head {
    fn new(number: i64, hash: &str, key: &HostKey) -> Self {
        let mac = hex(&Self::mac(number, hash, key).finalize().into_bytes());
        Self { number, hash: hash.to_owned(), mac }
    }

    fn mac(number: i64, hash: &str, key: &HostKey) -> hmac::Hmac<sha2::Sha256> {
        let mut mac = key.mac();
        mac.update(format!("audit head\0{number} {hash}").as_bytes());
        mac
    }

    /// Whether this host's key vouches for it.
    pub(super) fn is_ours(&self, key: &HostKey) -> bool {
        let mac = Self::mac(self.number, &self.hash, key);
        conductor_stdx::digest::unhex(&self.mac).is_some_and(|said| mac.verify_slice(&said).is_ok())
    }

    fn line(&self) -> String {
        format!("{} {} {}\n", self.number, self.hash, self.mac)
    }

    fn from_line(line: &str) -> Option<Self> {
        let [number, hash, mac] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        Some(Self { number: number.parse().ok()?, hash: hash.to_owned(), mac: mac.to_owned() })
    }
}

/// What `audit.head` says.
#[derive(Debug)]
pub(super) enum HeadFile {
    /// It does not exist.
    Missing,
    /// It says where the chain ended.
    Head(Head),
    /// This host's key does not vouch for it.
    Foreign,
}

/// The audit of one home.
#[derive(Debug, Clone)]
pub struct Chain {
    home: PathBuf,
}

impl Chain {
    /// The chain of this home. Nothing is made or opened.
    pub fn at(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// The home.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The file with the rows.
    pub fn file(&self) -> PathBuf {
        self.home.join("audit.sqlite")
    }

    /// The file with the head.
    pub fn head_file(&self) -> PathBuf {
        self.home.join("audit.head")
    }

    /// Adds rows, all of them or none, and returns when they are on the disk. Waits for other processes that
    /// do so, too.
    ///
    /// # Errors
    /// [`AuditError::Unwritable`]; nothing was added then.
    pub fn append(&self, entries: &[Entry]) -> Result<(), AuditError> {
        // The database keeps processes apart; this keeps the threads of this one apart beside the file, too.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock();
        let unwritable = |why: String| AuditError::Unwritable { file: self.file().display().to_string(), why };
        let key = HostKey::of(&self.home).map_err(|error| unwritable(format!("the host's key: {error}")))?;
        private_file::make(&self.file()).map_err(|error| unwritable(error.to_string()))?;
        let head = self.add(entries, &key).map_err(|error| unwritable(error.to_string()))?;
        // The rows are there; what goes wrong now must not say that they are not.
        let beside = self.head_file();
        if let Err(error) = private_file::make(&beside).and_then(|()| replace(&beside, head.line().as_bytes())) {
            tracing::warn!("{}: {error}", beside.display());
        }
        Ok(())
    }

    fn add(&self, entries: &[Entry], key: &HostKey) -> Result<Head, Box<dyn std::error::Error>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(self.file(), flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            0 => transaction.execute_batch(SCHEMA)?,
            1 => transaction.execute_batch(FROM_1)?,
            LAYOUT => {}
            // Rows that this host can't follow must not be followed by some of its own.
            newer => return Err(TooNew(newer).into()),
        }
        let last = last(&transaction)?;
        let (mut number, mut hash) = last.clone().unwrap_or((0, NOTHING.to_owned()));
        let mut altered = None;
        if let Some(why) = self.altered(&transaction, last, key)? {
            tracing::error!("{}: {why}", self.file().display());
            altered = Some(Entry::new(Kind::Audit, ALTERED, &Caller::host(), "audit").failed(why));
        }
        for entry in altered.iter().chain(entries) {
            number += 1;
            let row = row(number, entry, &hash);
            insert(&transaction, &row)?;
            hash = row.hash;
        }
        let head = Head::new(number, &hash, key);
        let Head { number, hash, mac } = &head;
        transaction.execute("INSERT OR REPLACE INTO head VALUES (1, ?1, ?2, ?3)", params![number, hash, mac])?;
        transaction.commit()?;
        Ok(head)
    }

    /// Why the chain does not end as this host left it; `None` if it does.
    fn altered(
        &self,
        connection: &Connection,
        last: Option<(i64, String)>,
        key: &HostKey,
    ) -> rusqlite::Result<Option<String>> {
        let head = head(connection)?;
        if let Some(why) = ends_elsewhere(last.as_ref(), head.as_ref(), key) {
            return Ok(Some(why));
        }
        let last = last.map_or(0, |(number, _)| number);
        let hash_of = |number| {
            let query = "SELECT hash FROM rows WHERE number = ?1";
            connection.query_row(query, [number], |row| row.get::<_, String>(0)).optional()
        };
        Ok(match self.beside(key) {
            HeadFile::Head(beside)
                if beside.number > last || hash_of(beside.number)?.as_ref() != Some(&beside.hash) =>
            {
                Some(put_back(&beside, last))
            }
            HeadFile::Foreign => Some(FOREIGN.to_owned()),
            _ => None,
        })
    }

    /// What stands beside the file.
    pub(super) fn beside(&self, key: &HostKey) -> HeadFile {
        let Ok(text) = plain_file::read_text(&self.head_file(), MAX_HEAD) else { return HeadFile::Missing };
        match Head::from_line(&text) {
            // Made, and not written yet.
            None if text.is_empty() => HeadFile::Missing,
            Some(head) if head.is_ours(key) => HeadFile::Head(head),
            _ => HeadFile::Foreign,
        }
    }

    /// The host's key of this home.
    pub(super) fn key(&self) -> Result<HostKey, AuditError> {
        HostKey::read(&self.home).map_err(|error| self.unreadable(format!("the host's key: {error}")))
    }

    /// Opens the file for reading; `None` if there is no file.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub(super) fn reader(&self) -> Result<Option<Connection>, AuditError> {
        if !self.file().exists() {
            return Ok(None);
        }
        let open = || {
            // For writing where that is allowed: what a killed writer left half done is put right by the next one.
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(self.file(), flags)?;
            connection.busy_timeout(BUSY_TIMEOUT)?;
            let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('rows', 'head')";
            // Its writer was killed before it had a table: that is as if it were not there.
            let there: i64 = connection.query_row(tables, [], |row| row.get(0))?;
            Ok((there == 2).then_some(connection))
        };
        open().map_err(|error: rusqlite::Error| self.unreadable(error.to_string()))
    }

    pub(super) fn unreadable(&self, why: String) -> AuditError {
        AuditError::Unreadable { file: self.file().display().to_string(), why }
    }

    /// The rows after the one with this number, at most `limit`, oldest first.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub fn after(&self, number: i64, limit: u32) -> Result<Vec<Row>, AuditError> {
        let Some(connection) = self.reader()? else { return Ok(Vec::new()) };
        rows_after(&connection, number, limit).map_err(|error| self.unreadable(error.to_string()))
    }

    /// The number of the last row; 0 if there is none.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub fn last(&self) -> Result<i64, AuditError> {
        let Some(connection) = self.reader()? else { return Ok(0) };
        let last = last(&connection).map_err(|error| self.unreadable(error.to_string()))?;
        Ok(last.map_or(0, |(number, _)| number))
    }

    /// The last rows, at most `limit`, oldest first: of this kind, where `client` is in who wanted it, and not
    /// before `since` (milliseconds since 1970).
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub fn find(
        &self,
        kind: Option<Kind>,
        client: Option<&str>,
        since: i64,
        limit: u32,
    ) -> Result<Vec<Row>, AuditError> {
        let Some(connection) = self.reader()? else { return Ok(Vec::new()) };
        let found = || {
            let mut query = connection.prepare(
                "SELECT * FROM rows WHERE at >= ?1 AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR instr(who, ?3))
                 ORDER BY number DESC LIMIT ?4",
            )?;
            let rows = query.query_map(params![since, kind.map(Kind::as_str), client, limit], Row::of)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut rows = found().map_err(|error| self.unreadable(error.to_string()))?;
        rows.reverse();
        Ok(rows)
    }
}

pub(super) const FOREIGN: &str = "audit.head was not written with this host's key";

pub(super) fn put_back(beside: &Head, last: i64) -> String {
    format!(
        "audit.head knows a row {} that is not in the file, which ends at {last}: rows were removed, or another file \
         was put in its place",
        beside.number
    )
}

/// Why the head does not stand for the last row; `None` if it does.
pub(super) fn ends_elsewhere(last: Option<&(i64, String)>, head: Option<&Head>, key: &HostKey) -> Option<String> {
    match (last, head) {
        (None, None) => None,
        (Some((last, _)), None) => Some(format!("the file ends at row {last}, and its head is gone")),
        (_, Some(head)) if !head.is_ours(key) => Some(
            "the head was not written with this host's key: another program wrote it, or the key was replaced".into(),
        ),
        (last, Some(head)) => {
            let there = last.map_or(0, |(number, _)| *number);
            match there.cmp(&head.number) {
                std::cmp::Ordering::Less => Some(format!("the rows after {there} are gone, up to {}", head.number)),
                std::cmp::Ordering::Greater => {
                    Some(format!("the rows after {} were not added by a host of this home", head.number))
                }
                std::cmp::Ordering::Equal if last.is_some_and(|(_, hash)| *hash != head.hash) => Some(format!(
                    "row {there} is not the one that was written: it, or all before it, were written anew"
                )),
                std::cmp::Ordering::Equal => None,
            }
        }
    }
}

pub(super) fn last(connection: &Connection) -> rusqlite::Result<Option<(i64, String)>> {
    let query = "SELECT number, hash FROM rows ORDER BY number DESC LIMIT 1";
    connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

pub(super) fn head(connection: &Connection) -> rusqlite::Result<Option<Head>> {
    let query = "SELECT number, hash, mac FROM head";
    let head = |row: &rusqlite::Row<'_>| Ok(Head { number: row.get(0)?, hash: row.get(1)?, mac: row.get(2)? });
    connection.query_row(query, [], head).optional()
}

pub(super) fn rows_after(connection: &Connection, number: i64, limit: u32) -> rusqlite::Result<Vec<Row>> {
    let mut query = connection.prepare_cached("SELECT * FROM rows WHERE number > ?1 ORDER BY number LIMIT ?2")?;
    query.query_map(params![number, limit], Row::of)?.collect()
}

fn row(number: i64, entry: &Entry, before: &str) -> Row {
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let at = if entry.at == 0 { unix_millis() } else { entry.at };
    let mut row = Row {
        number,
        at: signed(at),
        kind: entry.kind.as_str().to_owned(),
        what: entry.what.clone(),
        who: entry.who.to_string(),
        subject: entry.subject.clone(),
        outcome: entry.outcome.as_str().to_owned(),
        took: entry.took.map(signed),
        detail: serde_json::Value::Object(entry.detail.clone()).to_string(),
        hash: String::new(),
        door: Some(entry.who.door().as_str().to_owned()),
        scope: entry.who.scope().map(|scope| scope.as_str().to_owned()),
        client: entry.who.name().map(str::to_owned),
        elicited: Some(entry.who.is_by_elicitation().into()),
    };
    row.hash = row.hash_after(before);
    row
}

fn insert(transaction: &Transaction<'_>, row: &Row) -> rusqlite::Result<()> {
    let Row { number, at, kind, what, who, subject, outcome, took, detail, hash, door, scope, client, elicited } = row;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO rows (number, at, kind, what, who, subject, outcome, took, detail, hash, door, scope, client,
                           elicited)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    insert
        .execute(params![
            number, at, kind, what, who, subject, outcome, took, detail, hash, door, scope, client, elicited
        ])
        .map(drop)
}

/// Writes a file as hosts did that knew layout 1 only.
#[cfg(test)]
pub(super) fn write_layout_1(home: &Path, rows: i64) {
    let chain = Chain::at(home);
    private_file::make(&chain.file()).expect("a home that can be written");
    let file = Connection::open(chain.file()).expect("a new file");
    let added = "        hash TEXT NOT NULL,\n        door TEXT,\n        scope TEXT,\n        client TEXT,\n        \
                 elicited INTEGER\n";
    assert!(SCHEMA.contains(added));
    let schema = SCHEMA.replace(added, "        hash TEXT NOT NULL\n").replace("user_version = 2", "user_version = 1");
    file.execute_batch(&schema).expect("the schema of version 1");
    let key = HostKey::of(home).expect("a home that can be written");
    let mut hash = NOTHING.to_owned();
    for number in 1..=rows {
        let text = |text: &str| text.to_owned();
        let mut row = Row {
            number,
            at: 1,
            kind: text("tool"),
            what: text("call"),
            who: text("mcp:old by elicitation"),
            subject: format!("tool_{number}"),
            outcome: text("done"),
            took: None,
            detail: text("{}"),
            hash: String::new(),
            door: None,
            scope: None,
            client: None,
            elicited: None,
        };
        row.hash = row.hash_after(&hash);
        let Row { at, kind, what, who, subject, outcome, took, detail, .. } = &row;
        let values = params![number, at, kind, what, who, subject, outcome, took, detail, row.hash];
        file.execute("INSERT INTO rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)", values).expect("a row");
        hash = row.hash;
    }
    let head = Head::new(rows, &hash, &key);
    file.execute("INSERT INTO head VALUES (1, ?1, ?2, ?3)", params![head.number, head.hash, head.mac]).expect("a head");
    replace(&chain.head_file(), head.line().as_bytes()).expect("a home that can be written");
}
