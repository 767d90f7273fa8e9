//! The conversation store: every conversation of one home, in `<home>/conversations.sqlite`, which only its owner can
//! read.
//!
//! A conversation is its events (see [`record`](crate::record)). They are appended in transactions that are synced to the
//! disk before [`append`](ConversationStore::append) returns, so that what was shown is there after a power cut. A turn
//! without an end is closed as cut off when the store is opened: by then no process works on it.
//!
//! What people and models said is indexed for [`search`](ConversationStore::list) message by message, since streamed
//! pieces end within words. What exchanges took and cost is kept beside, also of conversations that were deleted; see
//! [`usage`].

use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::{ChatEvent, Outcome, Recorded};
use conductor_stdx::clock::unix_millis;
use conductor_stdx::private_file;
use conductor_terminal::excerpt;

pub mod usage;

/// Conversations that are kept. The person deletes some before there are more.
pub const MAX_CONVERSATIONS: u64 = 10_000;
/// Bytes of one conversation (64 MiB).
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Conversations or events that are returned at once.
pub const MAX_PAGE: usize = 1000;
/// Bytes of events that are returned at once, beyond the first.
const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of one answer that are found by a search, its last ones.
const MAX_INDEXED: usize = 1024 * 1024;
/// Bytes of a title.
const MAX_TITLE: usize = 80;
/// Bytes of what is searched for.
const MAX_SEARCH: usize = 500;
/// How long to wait for another process that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        model TEXT,
        created INTEGER NOT NULL,
        changed INTEGER NOT NULL,
        last INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        within_turn INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX conversations_by_change ON conversations (changed);
    CREATE TABLE events (
        conversation INTEGER NOT NULL,
        number INTEGER NOT NULL,
        at INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (conversation, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE plans (
        plan TEXT NOT NULL PRIMARY KEY,
        conversation INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE usage (
        conversation INTEGER NOT NULL,
        at INTEGER NOT NULL,
        day TEXT NOT NULL,
        model TEXT NOT NULL,
        provider TEXT NOT NULL,
        input INTEGER NOT NULL,
        cached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        cost INTEGER
    ) STRICT;
    CREATE INDEX usage_by_day ON usage (day);
    CREATE VIRTUAL TABLE said USING fts5(text, conversation UNINDEXED, number UNINDEXED);
    PRAGMA user_version = 1;";

/// What brings the layout from each version to the next, from 1 on.
const MIGRATIONS: [&str; 2] = [
    "ALTER TABLE usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE usage ADD COLUMN feature TEXT;
     ALTER TABLE usage ADD COLUMN prices_as_of TEXT;",
];

/// The layout of the file that this version makes, the newest one that it knows.
pub const LAYOUT: usize = 1 + MIGRATIONS.len();

/// Why something is not kept or not found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such conversation.
    #[error("there is no conversation {0}; `conductor chat list` shows those there are")]
    NotFound(u64),
    /// There is no room for one more.
    #[error("{MAX_CONVERSATIONS} conversations are kept; delete some with `conductor chat delete`")]
    Full,
    /// The conversation is too long.
    #[error("the conversation {0} has {max} MiB and takes no more; begin another one", max = MAX_BYTES / 1024 / 1024)]
    TooLong(u64),
    /// The file was written by a later version.
    #[error("conversations.sqlite has the layout {found}; this version knows {LAYOUT}")]
    Layout {
        /// The layout of the file.
        found: usize,
    },
    /// The file can't be made.
    #[error("conversations.sqlite: {0}")]
    File(#[from] std::io::Error),
    /// The file can't be read or written.
    #[error("conversations.sqlite: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// What is in the file is not understood.
    #[error("conversations.sqlite: an event is not understood: {0}")]
    Damaged(#[from] serde_json::Error),
}

/// A conversation, without what was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationView {
    /// Its number. It is never given to another one.
    pub id: u64,
    /// The beginning of the first message; empty before that.
    pub title: String,
    /// The model that it goes on with, by its name under `[models]`. `None` if it is the default.
    pub model: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created: u64,
    /// When its last event was kept, in milliseconds since 1970.
    pub changed: u64,
    /// The number of its last event; 0 if it has none.
    pub last: u64,
    /// What was found, with the words before and after it. Only where something was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Which conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConversationQuery {
    /// At most this many, 1 to 1000. Default: 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// Only those in which one message has all these words; of the last word its beginning is enough, so that a search may be
    /// shown while it is written. Default: all, the last changed first.
    #[serde(default)]
    pub search: Option<String>,
}

/// The conversations of one home.
#[derive(Debug)]
pub struct ConversationStore(Mutex<Connection>);

impl ConversationStore {
    /// The store of this home. Turns that were cut off are closed.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let path = home.join("conversations.sqlite");
        // What SQLite makes beside it has the same permissions.
        private_file::make(&path)?;
        Self::new(Connection::open(&path)?)
    }

    /// A store that forgets when it is dropped.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn in_memory() -> Result<Self, StoreError> {
        Self::new(Connection::open_in_memory()?)
    }

    fn new(connection: Connection) -> Result<Self, StoreError> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // FULL syncs the log with every commit. The file may be damaged, so nothing in its schema is trusted. What is deleted is
        // overwritten.
        connection.execute_batch(
            "PRAGMA trusted_schema = OFF;
             PRAGMA secure_delete = ON;
             PRAGMA cell_size_check = ON;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             PRAGMA journal_size_limit = 4194304;",
        )?;
        let store = Self(Mutex::new(connection));
        store.change(lay_out)?;
        store.close_turns()?;
        Ok(store)
    }

    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut connection = self.0.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Ends the turns that have no end.
    fn close_turns(&self) -> Result<(), StoreError> {
        self.change(|change| {
            let mut query = change.prepare("SELECT id FROM conversations WHERE within_turn")?;
            let cut_off: Vec<u64> = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for conversation in cut_off {
                let why = "the host ended in the middle of this turn; say something to go on".to_owned();
                append(change, conversation, &[ChatEvent::TurnEnded { outcome: Outcome::CutOff, why: Some(why) }])?;
            }
            Ok(())
        })
    }

    /// Begins a conversation with a model, or the default one.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn begin(&self, model: Option<&str>) -> Result<ConversationView, StoreError> {
        self.change(|change| {
            let count: u64 = change.query_row("SELECT count(*) FROM conversations", [], |row| row.get(0))?;
            if count >= MAX_CONVERSATIONS {
                return Err(StoreError::Full);
            }
            change.execute(
                "INSERT INTO conversations (title, model, created, changed, last, bytes, within_turn)
                 VALUES ('', ?1, ?2, ?2, 0, 0, 0)",
                params![model, unix_millis()],
            )?;
            let id = u64::try_from(change.last_insert_rowid()).unwrap_or_default();
            view(change, id)
        })
    }

    /// Has a conversation go on with another model.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn set_model(&self, id: u64, model: &str) -> Result<(), StoreError> {
        self.change(|change| {
            let changed = change.execute("UPDATE conversations SET model = ?2 WHERE id = ?1", params![id, model])?;
            if changed == 0 { Err(StoreError::NotFound(id)) } else { Ok(()) }
        })
    }

    /// Appends events. They are on the disk when this returns.
    ///
    /// # Errors
    /// See [`StoreError`]; then none of them is kept.
    pub fn append(&self, id: u64, events: &[ChatEvent]) -> Result<Vec<Recorded>, StoreError> {
        self.change(|change| append(change, id, events))
    }

    /// One conversation.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn view(&self, id: u64) -> Result<ConversationView, StoreError> {
        view(&self.0.lock(), id)
    }

    /// Conversations, the last changed first; of a search the best match first.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn list(&self, query: &ConversationQuery) -> Result<Vec<ConversationView>, StoreError> {
        let limit = query.limit.unwrap_or(100).clamp(1, MAX_PAGE);
        let connection = self.0.lock();
        let Some(words) = query.search.as_deref().map(matched) else {
            let mut found = connection
                .prepare("SELECT *, NULL AS found FROM conversations ORDER BY changed DESC, id DESC LIMIT ?1")?;
            return Ok(found.query_map([limit], as_view)?.collect::<Result<_, _>>()?);
        };
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut hits = connection.prepare(
            "SELECT conversation, snippet(said, 0, '', '', '…', 12) FROM said WHERE said MATCH ?1 ORDER BY rank LIMIT 5000",
        )?;
        let hits = hits.query_map([words], |row| Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?)))?;
        let mut views: Vec<ConversationView> = Vec::new();
        for hit in hits {
            let (id, found) = hit?;
            if views.len() == limit {
                break;
            }
            if views.iter().all(|view| view.id != id) {
                views.push(ConversationView { found: Some(found), ..view(&connection, id)? });
            }
        }
        Ok(views)
    }

    /// Events after the number `after`, oldest first: at most `most`, and fewer where they are long. Empty at the end.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn events(&self, id: u64, after: u64, most: usize) -> Result<Vec<Recorded>, StoreError> {
        let connection = self.0.lock();
        view(&connection, id)?;
        let mut query = connection.prepare_cached(
            "SELECT number, at, event FROM events WHERE conversation = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
        )?;
        // The largest number that the file can have.
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let mut rows = query.query(params![id, after, most])?;
        let (mut events, mut size) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let text: String = row.get(2)?;
            size += text.len();
            if size > MAX_PAGE_BYTES && !events.is_empty() {
                break;
            }
            events.push(Recorded { number: row.get(0)?, at: row.get(1)?, event: serde_json::from_str(&text)? });
        }
        Ok(events)
    }

    /// All events of a conversation.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn all_events(&self, id: u64) -> Result<Vec<Recorded>, StoreError> {
        let mut all = Vec::new();
        loop {
            let page = self.events(id, all.last().map_or(0, |one: &Recorded| one.number), MAX_PAGE)?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// The conversation in which a plan was proposed, if it was not decided yet.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn of_plan(&self, plan: &str) -> Result<Option<u64>, StoreError> {
        let query = "SELECT conversation FROM plans WHERE plan = ?1";
        Ok(self.0.lock().query_row(query, [plan], |row| row.get(0)).optional()?)
    }

    /// Deletes a conversation. What it cost is kept.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn delete(&self, id: u64) -> Result<(), StoreError> {
        self.change(|change| {
            if change.execute("DELETE FROM conversations WHERE id = ?1", [id])? == 0 {
                return Err(StoreError::NotFound(id));
            }
            for table in ["events", "plans", "said"] {
                change.execute(&format!("DELETE FROM {table} WHERE conversation = ?1"), [id])?;
            }
            Ok(())
        })
    }

    /// Begins a conversation with the events of another one up to the number `through`; all of them if it is `None`. Plans
    /// stay with the one that they were proposed in. A turn that this cuts is closed.
    ///
    /// # Errors
    /// See [`StoreError`]; then there is no fork.
    pub fn fork(&self, id: u64, through: Option<u64>) -> Result<ConversationView, StoreError> {
        let from = self.view(id)?;
        let fork = self.begin(from.model.as_deref())?;
        let copied = self.copy(id, fork.id, through.unwrap_or(from.last));
        if copied.is_err() {
            // Why it was not copied says more than why this fails, too.
            let _ = self.delete(fork.id);
        }
        copied
    }

    /// Appends the events of a conversation up to the number `through` to a fork that has none.
    fn copy(&self, id: u64, fork: u64, through: u64) -> Result<ConversationView, StoreError> {
        let mut after = 0;
        loop {
            let page = self.events(id, after, MAX_PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.number;
            let events: Vec<ChatEvent> =
                page.into_iter().filter(|one| one.number <= through).map(|one| one.event).collect();
            self.change(|change| write(change, fork, &events, false))?;
            if after >= through {
                break;
            }
        }
        self.change(|change| {
            let query = "SELECT within_turn FROM conversations WHERE id = ?1";
            if change.query_row(query, [fork], |row| row.get(0))? {
                append(change, fork, &[ChatEvent::TurnEnded { outcome: Outcome::CutOff, why: None }])?;
            }
            view(change, fork)
        })
    }
}

/// Brings the file to the layout of this version.
fn lay_out(change: &Transaction<'_>) -> Result<(), StoreError> {
    let found: usize = change.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found == 0 {
        change.execute_batch(SCHEMA)?;
    }
    let missing = MIGRATIONS.get(found.max(1) - 1..).ok_or(StoreError::Layout { found })?;
    for migration in missing {
        change.execute_batch(migration)?;
    }
    // A later layout is left as it is.
    if !missing.is_empty() {
        change.pragma_update(None, "user_version", LAYOUT)?;
    }
    Ok(())
}

fn append(change: &Transaction<'_>, id: u64, events: &[ChatEvent]) -> Result<Vec<Recorded>, StoreError> {
    write(change, id, events, true)
}

/// Appends events; `is_new` if they did not happen in another conversation.
fn write(change: &Transaction<'_>, id: u64, events: &[ChatEvent], is_new: bool) -> Result<Vec<Recorded>, StoreError> {
    let find = "SELECT last, bytes, title, within_turn FROM conversations WHERE id = ?1";
    let found =
        change.query_row(find, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).optional()?;
    let (mut last, mut bytes, mut title, mut within): (u64, u64, String, bool) =
        found.ok_or(StoreError::NotFound(id))?;
    let at = unix_millis();
    let mut kept = Vec::with_capacity(events.len());
    for event in events {
        last += 1;
        let text = serde_json::to_string(event)?;
        bytes += text.len() as u64;
        // An end has its place always.
        if bytes > MAX_BYTES && !matches!(event, ChatEvent::TurnEnded { .. }) {
            return Err(StoreError::TooLong(id));
        }
        change
            .prepare_cached("INSERT INTO events (conversation, number, at, event) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![id, last, at, text])?;
        match event {
            ChatEvent::Message { text } => {
                within = true;
                index(change, id, last, text)?;
                if title.is_empty() {
                    title = excerpt(&text.split_whitespace().collect::<Vec<_>>().join(" "), MAX_TITLE);
                }
            }
            ChatEvent::Answered { .. } | ChatEvent::ModelFailed { .. } | ChatEvent::TurnEnded { .. } => {
                index(change, id, last, &unindexed(change, id, last)?)?;
            }
            ChatEvent::Plan { plan, .. } if is_new => {
                change.execute("INSERT OR REPLACE INTO plans VALUES (?1, ?2)", params![plan, id])?;
            }
            ChatEvent::PlanDecided { plan, .. } if is_new => {
                change.execute("DELETE FROM plans WHERE plan = ?1", [plan])?;
            }
            _ => {}
        }
        within &= !matches!(event, ChatEvent::TurnEnded { .. });
        kept.push(Recorded { number: last, at, event: event.clone() });
    }
    change.execute(
        "UPDATE conversations SET last = ?2, bytes = ?3, title = ?4, changed = ?5, within_turn = ?6 WHERE id = ?1",
        params![id, last, bytes, title, at, within],
    )?;
    Ok(kept)
}

fn index(change: &Transaction<'_>, id: u64, number: u64, text: &str) -> Result<(), StoreError> {
    if !text.trim().is_empty() {
        change
            .prepare_cached("INSERT INTO said (text, conversation, number) VALUES (?1, ?2, ?3)")?
            .execute(params![text, id, number])?;
    }
    Ok(())
}

/// What the model said in its last answer before the event `number`.
fn unindexed(change: &Transaction<'_>, id: u64, number: u64) -> Result<String, StoreError> {
    let mut query = change
        .prepare_cached("SELECT event FROM events WHERE conversation = ?1 AND number < ?2 ORDER BY number DESC")?;
    let mut rows = query.query(params![id, number])?;
    let (mut pieces, mut size) = (Vec::new(), 0);
    while let Some(row) = rows.next()?
        && size < MAX_INDEXED
    {
        match serde_json::from_str(&row.get::<_, String>(0)?) {
            Ok(ChatEvent::Text { text }) => {
                size += text.len();
                pieces.push(text);
            }
            Ok(
                ChatEvent::Reasoning { .. }
                | ChatEvent::ReasoningEnded { .. }
                | ChatEvent::Call { .. }
                | ChatEvent::CallBegun { .. },
            ) => {}
            // Also one that is not understood: what follows it is kept all the same, the end of a turn above all.
            _ => break,
        }
    }
    pieces.reverse();
    Ok(pieces.concat())
}

fn view(connection: &Connection, id: u64) -> Result<ConversationView, StoreError> {
    let query = "SELECT *, NULL AS found FROM conversations WHERE id = ?1";
    connection.query_row(query, [id], as_view).optional()?.ok_or(StoreError::NotFound(id))
}

fn as_view(row: &Row<'_>) -> rusqlite::Result<ConversationView> {
    Ok(ConversationView {
        id: row.get("id")?,
        title: row.get("title")?,
        model: row.get("model")?,
        created: row.get("created")?,
        changed: row.get("changed")?,
        last: row.get("last")?,
        found: row.get("found")?,
    })
}

/// Words as the index takes them: each a string, so that nothing in them is its syntax, and the last one a prefix.
fn matched(words: &str) -> String {
    let words = &words[..words.floor_char_boundary(MAX_SEARCH)];
    // The index takes a NUL for the end of what is searched for.
    let each = words.split(|one: char| one.is_whitespace() || one == '\0').filter(|word| !word.is_empty());
    let quoted = each.map(|word| format!("\"{}\"", word.replace('"', "\"\"")));
    let mut all = quoted.collect::<Vec<_>>().join(" ");
    if !all.is_empty() {
        all.push('*');
    }
    all
}

#[cfg(test)]
mod tests;
