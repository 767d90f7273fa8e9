//! The plan store: pending plans, and the undo history (applied revisions), kept in `<home>/plans.sqlite`.
//!
//! A change of the configuration file is a write-ahead log of three steps, so that a process that is killed between
//! two of them leaves file and record in agreement: the store records the [intention](PlanStore::intend),
//! with the hash that the file will have; the host replaces the file atomically; the store
//! [records](PlanStore::done) that it is done. An intention that it finds when it is opened is resolved by
//! the file's hash.

use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};
use serde::de::DeserializeOwned;

use super::risk::{Level, Risk};
use super::{Base, Plan, PlanError, PlanSummary, Proposal, Revision, RiskSummary, state_hash};
use conductor_audit::caller::Caller;
use conductor_config_text::{diff, edit};
use conductor_sandbox::host_view::{MAX_CHANGES, MAX_CHANGES_BYTES};
use conductor_stdx::clock::Clock;
use conductor_stdx::digest::hex;
use conductor_terminal::shortened;

/// Plans that wait at once.
pub const MAX_PLANS: usize = 64;
/// Of those, plans of one caller, or that one feature proposes by itself: none may take all places.
pub const MAX_OWN: usize = 16;
/// Places that are kept for the owner: what agents and features have made waits in the others.
pub const OWNER_RESERVE: usize = 16;
/// Characters of a description, which is one line.
pub const MAX_DESCRIPTION: usize = 500;
/// Bytes of a description in a list.
const MAX_LISTED: usize = 500;
/// Revisions that are kept.
pub const MAX_REVISIONS: i64 = 100;
/// How long a plan waits, unless the environment says otherwise.
pub const PLAN_TIMEOUT: Duration = Duration::from_secs(300);

/// How long a plan that has expired is known as such, in milliseconds.
const EXPIRED_RETENTION: u64 = 3_600_000;

/// How long to wait for another process that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

const SCHEMA: &str = "
    CREATE TABLE plans (
        id TEXT NOT NULL PRIMARY KEY,
        proposer TEXT NOT NULL,
        description TEXT NOT NULL,
        changes TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        base TEXT NOT NULL,
        diff TEXT NOT NULL,
        risk TEXT NOT NULL,
        told INTEGER NOT NULL DEFAULT 0,
        caller TEXT NOT NULL DEFAULT '',
        by_owner INTEGER NOT NULL DEFAULT 0,
        touched_files TEXT NOT NULL DEFAULT '[]'
    ) STRICT;
    CREATE TABLE revisions (
        number INTEGER NOT NULL PRIMARY KEY,
        description TEXT NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        undone INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE intention (
        one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
        step TEXT NOT NULL,
        hash TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 3;";

/// The layout of the file that this version makes, the newest one that it knows.
pub const LAYOUT: i64 = 3;

/// What makes of each layout the next one; the first makes 2 of 1.
const MIGRATIONS: [&str; 2] = [
    // Whether it was reported that the plan has expired.
    "ALTER TABLE plans ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
     PRAGMA user_version = 2;",
    // Who had it made, whether that was the owner, and which files it changes.
    "ALTER TABLE plans ADD COLUMN caller TEXT NOT NULL DEFAULT '';
     ALTER TABLE plans ADD COLUMN by_owner INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE plans ADD COLUMN touched_files TEXT NOT NULL DEFAULT '[]';
     UPDATE plans SET caller = proposer;
     PRAGMA user_version = 3;",
];

/// One change of the file.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A plan becomes the last revision; what was undone before can't be redone any more.
    Apply {
        /// The plan's id.
        plan: String,
        /// What it does.
        description: String,
        /// The configuration without it.
        before: String,
        /// The configuration with it.
        after: String,
    },
    /// The revision of this number is undone.
    Undo {
        /// Its number.
        number: i64,
    },
    /// The revision of this number is redone.
    Redo {
        /// Its number.
        number: i64,
    },
}

/// Plans and revisions. See the module.
#[derive(Debug)]
pub struct PlanStore {
    record: Mutex<Connection>,
    clock: Clock,
    expires: Duration,
}

impl PlanStore {
    /// The store of this home.
    ///
    /// # Errors
    /// [`PlanError::Record`]: the file can't be read or written, or is none of ours.
    pub fn open(home: &Path, clock: Clock, expires: Duration) -> Result<Self, PlanError> {
        let path = home.join("plans.sqlite");
        let record = Connection::open(&path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // Configurations contain private values.
            let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600));
        }
        Self::new(record, clock, expires)
    }

    /// A desk that forgets when it is dropped.
    ///
    /// # Errors
    /// [`PlanError::Record`] where memory is short.
    pub fn in_memory(clock: Clock, expires: Duration) -> Result<Self, PlanError> {
        Self::new(Connection::open_in_memory()?, clock, expires)
    }

    /// How long a plan waits.
    pub fn expires(&self) -> Duration {
        self.expires
    }

    fn new(record: Connection, clock: Clock, expires: Duration) -> Result<Self, PlanError> {
        record.busy_timeout(BUSY_TIMEOUT)?;
        record.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;")?;
        let version: i64 = record.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match usize::try_from(version) {
            Ok(0) => record.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?,
            Ok(older) if version < LAYOUT => {
                record.execute_batch(&format!("BEGIN; {} COMMIT;", MIGRATIONS[older - 1..].concat()))?;
            }
            Ok(_) if version == LAYOUT => {}
            _ => return Err(PlanError::Layout { found: version, known: LAYOUT }),
        }
        Ok(Self { record: Mutex::new(record), clock, expires })
    }

    fn record(&self) -> MutexGuard<'_, Connection> {
        self.record.lock()
    }

    fn change<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, PlanError>) -> Result<T, PlanError> {
        let mut record = self.record();
        let transaction = record.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let result = work(&transaction)?;
        transaction.commit()?;
        Ok(result)
    }

    /// Puts a proposal into the store, for the configuration `base`. `judge` checks the text that the configuration
    /// would have, whole, and says how far the plan reaches; it runs without a lock.
    ///
    /// # Errors
    /// See [`PlanError`]; then nothing waits.
    pub fn propose(
        &self,
        proposal: Proposal,
        base: &Base,
        judge: impl FnOnce(&str) -> Result<Risk, PlanError>,
    ) -> Result<Plan, PlanError> {
        let Proposal { proposer, caller, description, privileged, changes } = proposal;
        if changes.is_empty() || changes.len() > MAX_CHANGES {
            let count = changes.len();
            return Err(PlanError::Invalid(format!("a plan has 1 to {MAX_CHANGES} changes, not {count}")));
        }
        let size: usize = changes.iter().map(|change| change.to_string().len()).sum();
        if size > MAX_CHANGES_BYTES {
            return Err(PlanError::Invalid(format!(
                "the changes have {size} bytes; a plan has at most {MAX_CHANGES_BYTES}"
            )));
        }
        one_line(&description)?;
        let after = edit::edited(&base.text, &changes)?;
        if after == base.text {
            return Err(PlanError::NoChange);
        }
        let by_owner = caller.as_ref().is_some_and(Caller::is_owner);
        let caller = caller.map_or_else(|| proposer.clone(), |caller| caller.to_string());
        // There is no need to judge what can't wait; that it can is decided when it is written down.
        let created = self.clock.wall();
        has_place(&self.record(), created, &caller, by_owner)?;
        let mut risk = judge(&after)?;
        if privileged {
            risk.raise(Level::Privileged, "a privileged tool proposes it".to_owned());
        }
        let plan = Plan {
            id: uuid()?,
            proposer,
            caller,
            description,
            changes,
            created,
            expires: created + u64::try_from(self.expires.as_millis()).unwrap_or(u64::MAX / 2),
            base: state_hash(&base.text),
            touched_files: vec![base.file.clone()],
            diff: diff::unified(&base.file, &base.text, &after),
            risk,
        };
        self.change(|record| {
            has_place(record, created, &plan.caller, by_owner)?;
            record.execute(
                "INSERT INTO plans (id, proposer, description, changes, created, expires, base, diff, risk, caller, \
                 by_owner, touched_files) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                params![
                    plan.id,
                    plan.proposer,
                    plan.description,
                    json(&plan.changes),
                    ms(plan.created),
                    ms(plan.expires),
                    plan.base,
                    plan.diff,
                    json(&plan.risk),
                    plan.caller,
                    by_owner,
                    json(&plan.touched_files),
                ],
            )?;
            Ok(())
        })?;
        Ok(plan)
    }

    /// Every plan that waits, oldest first.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn waiting(&self) -> Result<Vec<Plan>, PlanError> {
        waiting(&self.record(), self.clock.wall())
    }

    /// The same as lists show it, without reading what the plans change.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn summaries(&self) -> Result<Vec<PlanSummary>, PlanError> {
        const QUERY: &str = "SELECT id, proposer, caller, description, created, expires, base, risk,
            json_array_length(changes) AS changes, octet_length(diff) AS diff_bytes
            FROM plans WHERE expires > ?1 ORDER BY created, rowid";
        let record = self.record();
        let mut query = record.prepare(QUERY)?;
        let plans = query.query_map([ms(self.clock.wall())], summary)?.collect::<Result<_, _>>()?;
        Ok(plans)
    }

    /// The description of a plan. `None` if no plan of this id waits.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn description(&self, id: &str) -> Result<Option<String>, PlanError> {
        let query = "SELECT description FROM plans WHERE id = ?1 AND expires > ?2";
        Ok(self.record().query_row(query, params![id, ms(self.clock.wall())], |row| row.get(0)).optional()?)
    }

    /// One plan that waits.
    ///
    /// # Errors
    /// [`PlanError::NotFound`], [`PlanError::Expired`].
    pub fn plan(&self, id: &str) -> Result<Plan, PlanError> {
        let found = self.record().query_row("SELECT * FROM plans WHERE id = ?1", [id], plan).optional()?;
        let plan = found.ok_or_else(|| PlanError::NotFound(id.to_owned()))?;
        if plan.expires <= self.clock.wall() { Err(PlanError::Expired(plan.id)) } else { Ok(plan) }
    }

    /// The ids of the plans that have expired since this was last asked, with who proposed them. Those that
    /// expired long ago are forgotten.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn expired(&self) -> Result<Vec<(String, String)>, PlanError> {
        let now = self.clock.wall();
        let query = "SELECT id, proposer FROM plans WHERE expires <= ?1 AND NOT told ORDER BY expires";
        let read = |record: &Connection| {
            let mut found = record.prepare(query)?;
            let plans = found.query_map([ms(now)], |row| Ok((row.get(0)?, row.get(1)?)))?;
            plans.collect::<rusqlite::Result<Vec<_>>>()
        };
        let expired = read(&self.record())?;
        // Most of the time there is nothing to write.
        if !expired.is_empty() {
            self.change(|record| {
                record.execute("UPDATE plans SET told = 1 WHERE expires <= ?1", [ms(now)])?;
                record.execute("DELETE FROM plans WHERE expires <= ?1", [ms(now.saturating_sub(EXPIRED_RETENTION))])?;
                Ok(())
            })?;
        }
        Ok(expired)
    }

    /// Takes a plan out of the store, undone.
    ///
    /// # Errors
    /// [`PlanError::NotFound`].
    pub fn reject(&self, id: &str) -> Result<(), PlanError> {
        match self.record().execute("DELETE FROM plans WHERE id = ?1", [id])? {
            0 => Err(PlanError::NotFound(id.to_owned())),
            _ => Ok(()),
        }
    }

    /// The revision that an undo takes back.
    ///
    /// # Errors
    /// [`PlanError::Nothing`].
    pub fn to_undo(&self) -> Result<Revision, PlanError> {
        self.revision("WHERE NOT undone ORDER BY number DESC", "undo")
    }

    /// The revision that a redo brings back.
    ///
    /// # Errors
    /// [`PlanError::Nothing`].
    pub fn to_redo(&self) -> Result<Revision, PlanError> {
        self.revision("WHERE undone ORDER BY number", "redo")
    }

    fn revision(&self, which: &str, what: &'static str) -> Result<Revision, PlanError> {
        let query = format!("SELECT number, description, before, after FROM revisions {which} LIMIT 1");
        let found = self.record().query_row(&query, [], |row| {
            Ok(Revision { number: row.get(0)?, description: row.get(1)?, before: row.get(2)?, after: row.get(3)? })
        });
        found.optional()?.ok_or(PlanError::Nothing(what))
    }

    /// Writes down what is about to be done to the file, whose hash will be `hash`.
    ///
    /// # Errors
    /// [`PlanError::Record`]; then it must not be done.
    pub fn intend(&self, step: &Step, hash: &str) -> Result<(), PlanError> {
        self.record().execute("INSERT OR REPLACE INTO intention VALUES (1, ?1, ?2)", params![json(step), hash])?;
        Ok(())
    }

    /// Writes down that it was done.
    ///
    /// # Errors
    /// [`PlanError::Record`]; the intention stays, and is decided when the store is opened next.
    pub fn done(&self, step: &Step) -> Result<(), PlanError> {
        self.change(|record| done(record, step))
    }

    /// Forgets the intention: the file is as it was.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn not_done(&self) -> Result<(), PlanError> {
        self.record().execute("DELETE FROM intention", [])?;
        Ok(())
    }

    /// Decides what was left intended, by the text that the file has, and says what that was and whether it
    /// was done. To be called before anything else is done.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn settle(&self, text: &str) -> Result<Option<(Step, bool)>, PlanError> {
        self.change(|record| {
            let found: Option<(String, String)> = record
                .query_row("SELECT step, hash FROM intention", [], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((step, hash)) = found else { return Ok(None) };
            let Ok(step) = serde_json::from_str::<Step>(&step) else {
                record.execute("DELETE FROM intention", [])?;
                return Ok(None);
            };
            let was_done = hash == state_hash(text);
            if was_done {
                done(record, &step)?;
            } else {
                record.execute("DELETE FROM intention", [])?;
            }
            Ok(Some((step, was_done)))
        })
    }
}

fn done(record: &Transaction<'_>, step: &Step) -> Result<(), PlanError> {
    match step {
        Step::Apply { plan, description, before, after } => {
            record.execute("DELETE FROM plans WHERE id = ?1", [plan])?;
            record.execute("DELETE FROM revisions WHERE undone", [])?;
            let last: i64 = record.query_row("SELECT coalesce(max(number), 0) FROM revisions", [], |row| row.get(0))?;
            record.execute(
                "INSERT INTO revisions VALUES (?1, ?2, ?3, ?4, 0)",
                params![last + 1, description, before, after],
            )?;
            record.execute("DELETE FROM revisions WHERE number <= ?1", [last + 1 - MAX_REVISIONS])?;
        }
        Step::Undo { number } => drop(record.execute("UPDATE revisions SET undone = 1 WHERE number = ?1", [number])?),
        Step::Redo { number } => drop(record.execute("UPDATE revisions SET undone = 0 WHERE number = ?1", [number])?),
    }
    record.execute("DELETE FROM intention", [])?;
    Ok(())
}

/// Checks that a description is one line of at most [`MAX_DESCRIPTION`] characters.
///
/// # Errors
/// [`PlanError::Invalid`] if it is not.
pub fn one_line(description: &str) -> Result<(), PlanError> {
    let count = description.chars().count();
    if count > MAX_DESCRIPTION {
        let what = format!("the description has {count} characters; it is one line of at most {MAX_DESCRIPTION}");
        return Err(PlanError::Invalid(what));
    }
    if description.contains(['\n', '\r']) {
        let what = "the description has several lines; say in one what the plan does, and the rest in your own answer";
        return Err(PlanError::Invalid(what.to_owned()));
    }
    Ok(())
}

/// A random UUID (RFC 9562, version 4), as hex digits without hyphens.
fn uuid() -> Result<String, PlanError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| PlanError::Full(format!("no randomness: {error}")))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(hex(&bytes))
}

/// Whether one more plan of this caller can wait.
fn has_place(record: &Connection, now: u64, caller: &str, by_owner: bool) -> Result<(), PlanError> {
    let count = |which: &str, value: &dyn rusqlite::ToSql| -> rusqlite::Result<usize> {
        let query = format!("SELECT count(*) FROM plans WHERE expires > ?1 AND {which}");
        let count: i64 = record.query_row(&query, params![ms(now), value], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    };
    let (places, whose) =
        if by_owner { (MAX_PLANS, "") } else { (MAX_PLANS - OWNER_RESERVE, "of agents and features ") };
    let waiting = if by_owner { count("?2 IS NOT NULL", &true)? } else { count("by_owner = ?2", &false)? };
    if waiting >= places {
        return Err(PlanError::Full(format!(
            "{places} plans {whose}are waiting already; a person has to decide first (`conductor plan list`)"
        )));
    }
    if count("caller = ?2", &caller)? >= MAX_OWN {
        return Err(PlanError::Full(format!(
            "{MAX_OWN} plans that {caller} had made are waiting already; a person has to decide first"
        )));
    }
    Ok(())
}

fn waiting(record: &Connection, now: u64) -> Result<Vec<Plan>, PlanError> {
    let mut query = record.prepare("SELECT * FROM plans WHERE expires > ?1 ORDER BY created, rowid")?;
    let plans = query.query_map([ms(now)], plan)?.collect::<Result<_, _>>()?;
    Ok(plans)
}

fn plan(row: &rusqlite::Row<'_>) -> rusqlite::Result<Plan> {
    Ok(Plan {
        id: row.get("id")?,
        proposer: row.get("proposer")?,
        caller: row.get("caller")?,
        description: row.get("description")?,
        changes: from_json(row, "changes")?,
        created: row.get::<_, i64>("created")?.unsigned_abs(),
        expires: row.get::<_, i64>("expires")?.unsigned_abs(),
        base: row.get("base")?,
        touched_files: from_json(row, "touched_files")?,
        diff: row.get("diff")?,
        risk: from_json(row, "risk")?,
    })
}

fn summary(row: &rusqlite::Row<'_>) -> rusqlite::Result<PlanSummary> {
    let risk: Risk = from_json(row, "risk")?;
    let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
    Ok(PlanSummary {
        id: row.get("id")?,
        proposer: row.get("proposer")?,
        caller: row.get("caller")?,
        description: shortened(&row.get::<_, String>("description")?, MAX_LISTED),
        changes: number("changes")?,
        created: number("created")?,
        expires: number("expires")?,
        base: row.get("base")?,
        // That is for who knows the configuration.
        stale: false,
        diff_bytes: number("diff_bytes")?,
        risk: RiskSummary { level: risk.level, notes: risk.notes.len() },
    })
}

fn from_json<T: DeserializeOwned>(row: &rusqlite::Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error)))
}

fn json(value: &impl serde::Serialize) -> String {
    // Plain data with text for keys always has a JSON form.
    serde_json::to_string(value).unwrap_or_default()
}

/// SQLite's integers are signed.
fn ms(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
