//! Key-value stores of features: one SQLite file a feature.
//!
//! The file is `<home>/store/<key>.sqlite`; see [`DataKey`](conductor_package::id::DataKey). One connection a
//! feature, shared by all handles, closed with the last of them, and locked for this process, so that every
//! change is one transaction and two hosts can't mix up a store. A change is synced before the call returns.
//!
//! The data has a version, which the feature's package declares; see [`migration`].

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use crate::error::{ServiceError, shown};

pub mod files;
pub mod migration;

pub use self::migration::{Migrated, Migration, Originals};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 512;
/// The longest value, in bytes (1 MiB).
pub const MAX_VALUE: usize = 1024 * 1024;
/// The most keys in one answer.
pub const MAX_KEYS: usize = 1000;

/// The longest name of a store, in bytes: that of the longest [`DataKey`](conductor_package::id::DataKey). What is
/// put behind it fits into a file name.
const MAX_NAME: usize = 192;
/// How long to wait for another process that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// SQLite's name for a database in memory.
const IN_MEMORY: &str = ":memory:";

/// What a store is made of. Keys are blobs, so that their order is that of their bytes. One tree
/// without a second index: a damaged page can't leave the two in disagreement.
const SCHEMA: &str = "
    CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE used (bytes INTEGER NOT NULL) STRICT;
    INSERT INTO used VALUES (0);
    CREATE TABLE data (version INTEGER NOT NULL) STRICT;
    INSERT INTO data VALUES (1);
    PRAGMA user_version = 1;";
/// The layout that [`SCHEMA`] makes.
const LAYOUT: i64 = 1;
/// The layouts that a newer version may have made. A greater number is damage.
const NEWER_LAYOUTS: RangeInclusive<i64> = LAYOUT + 1..=100;

/// The sum that `used` holds, counted anew.
const COUNTED: &str = "SELECT coalesce(sum(length(key) + length(value)), 0) FROM entries";

/// All stores of one home, or stores in memory.
#[derive(Debug)]
pub struct FeatureStores {
    /// `None` if the stores are in memory.
    folder: Option<PathBuf>,
    /// Of stores in memory: where migrations find data to be tried on.
    originals: Option<Originals>,
    open: Mutex<HashMap<String, Weak<Shared>>>,
}

/// A store that was opened.
#[derive(Debug)]
pub struct OpenedStore {
    /// The way to the data.
    pub handle: StoreHandle,
    /// Where the file that was there went: it was damaged, or no store. The store began anew, empty; a person should
    /// hear of it.
    pub set_aside: Option<PathBuf>,
}

/// One feature's data. Clones share it; calls from several threads take turns.
#[derive(Debug, Clone)]
pub struct StoreHandle {
    shared: Arc<Shared>,
    /// In bytes, keys and values together.
    quota: u64,
    /// The version that the data must have; `None` if any will do.
    version: Option<u32>,
    /// Whether it is that of the migration under way.
    migrates: bool,
}

/// What all handles of one feature share.
#[derive(Debug)]
struct Shared {
    feature: String,
    /// `None` if damage was found, until the store is opened again.
    state: Mutex<Option<Open>>,
}

/// A store that is open.
#[derive(Debug)]
struct Open {
    connection: Connection,
    /// The version of the data.
    version: u32,
    /// Whether a migration's transaction is open.
    is_migrating: bool,
}

impl Open {
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        let version = connection.query_row("SELECT version FROM data", [], |row| row.get(0))?;
        Ok(Self { connection, version, is_migrating: false })
    }

    /// Rolls the transaction back, if one is open.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!("a migration can't be rolled back: {error}");
        }
    }
}

impl FeatureStores {
    /// The stores in this home. Makes `<home>/store` if it is missing; on Unix with access for the
    /// owner alone.
    ///
    /// # Errors
    /// `Unavailable` when the folder is not there and can't be made. The text names the folder: it is
    /// for the person, not for a feature.
    pub fn open(home: &Path) -> Result<Self, ServiceError> {
        let folder = home.join("store");
        make_folder(home, &folder).map_err(|error| {
            ServiceError::Unavailable(format!(
                "{}: can't be made: {error}; features' data needs a folder that Conductor may write to",
                folder.display()
            ))
        })?;
        Ok(Self { folder: Some(folder), originals: None, open: Mutex::default() })
    }

    /// Stores in memory, empty at first: for trial instances of features, while those that serve may have their
    /// files open.
    pub fn in_memory() -> Self {
        Self { folder: None, originals: None, open: Mutex::default() }
    }

    /// Opens the store of one feature. `name` is 1 to 192 of a-z, 0-9, `-` and `_`; `quota` is in bytes,
    /// keys and values together, and holds for this handle. May wait for the disk: the file is
    /// checked whole when it is opened first.
    ///
    /// # Errors
    /// - `Invalid`: not such a name.
    /// - `Unavailable`: the file can't be opened or written, or another process has it open.
    /// - `Exhausted`: the disk is full.
    /// - `Failed`: the disk failed.
    pub fn feature(&self, name: &str, quota: u64) -> Result<OpenedStore, ServiceError> {
        // Nothing else ever becomes part of a path.
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(ServiceError::Invalid(format!(
                "{} is no name of a store; names are 1 to {MAX_NAME} of a-z, 0-9, - and _",
                shown(name)
            )));
        }
        let shared = {
            let mut open = self.open.lock();
            open.retain(|_, shared| shared.strong_count() > 0);
            open.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
                let new = Arc::new(Shared { feature: name.to_owned(), state: Mutex::new(None) });
                open.insert(name.to_owned(), Arc::downgrade(&new));
                new
            })
        };
        let mut set_aside = None;
        {
            let mut state = shared.lock();
            if state.is_none() {
                let (opened, aside) = self.connect(name)?;
                *state = Some(Open::new(opened).map_err(|error| refusal(name, &error))?);
                set_aside = aside;
            }
        }
        Ok(OpenedStore { handle: StoreHandle { shared, quota, version: None, migrates: false }, set_aside })
    }

    /// Opens the file, or sets it aside and begins a new one.
    fn connect(&self, name: &str) -> Result<(Connection, Option<PathBuf>), ServiceError> {
        let Some(folder) = &self.folder else {
            let made = connect(Path::new(IN_MEMORY)).map_err(|error| refusal(name, &error))?;
            return match made {
                Found::Store(made) => Ok((made, None)),
                Found::Newer(_) | Found::NoStore => Err(closed(name)),
            };
        };
        let path = folder.join(format!("{name}.sqlite"));
        let error = match connect(&path) {
            Ok(Found::Store(connection)) => return Ok((connection, None)),
            Ok(Found::Newer(found)) => return Err(newer(name, found)),
            Ok(Found::NoStore) => None,
            Err(error) => Some(error),
        };
        if let Some(error) = error
            && !damaged(&error)
            && !misshapen(&error)
            // SQLite also calls a file read-only that names a format newer than it knows.
            && !(error.sqlite_error_code() == Some(ErrorCode::ReadOnly) && writable(&path))
        {
            return Err(refusal(name, &error));
        }
        let aside = set_aside(folder, name).map_err(|error| {
            ServiceError::Unavailable(format!("store of {name}: is damaged and can't be set aside: {error}"))
        })?;
        match connect(&path) {
            Ok(Found::Store(connection)) => Ok((connection, Some(aside))),
            Ok(Found::Newer(_) | Found::NoStore) => {
                Err(ServiceError::Failed(format!("store of {name}: a new file is damaged at once; check the disk")))
            }
            Err(error) => Err(refusal(name, &error)),
        }
    }
}

impl StoreHandle {
    /// The same for data of this version alone. A store that holds nothing takes the version.
    ///
    /// # Errors
    /// `Unavailable` if its data has another version, `Failed` when the disk failed.
    pub fn of_version(self, version: u32) -> Result<Self, ServiceError> {
        self.with_open(|open| {
            if open.version != version && !open.is_migrating && migration::is_empty(&open.connection)? {
                open.connection.execute("UPDATE data SET version = ?1", [version])?;
                open.version = version;
            }
            Ok(())
        })?;
        let handle = Self { version: Some(version), ..self };
        handle.with(|_| Ok(()))?;
        Ok(handle)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// `Invalid` for a key that is not 1 to 512 bytes, `Failed` when the disk failed.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        check_key(key)?;
        self.with(|connection| {
            let mut get = connection.prepare_cached("SELECT value FROM entries WHERE key = ?1")?;
            get.query_row([key.as_bytes()], |row| row.get(0)).optional()
        })
    }

    /// Sets the value of `key`, at most 1 MiB; it is on disk when this returns.
    ///
    /// # Errors
    /// - `Invalid`: a key that is not 1 to 512 bytes, or a longer value.
    /// - `Exhausted`: it would take more than the quota, or the disk is full. Nothing changed.
    /// - `Failed`: the disk failed.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        self.put(key, value, None).map(|_| ())
    }

    /// Sets the value of `key` if it still is `expected` (`None`: not there). False when it is not,
    /// and nothing changed.
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    pub fn swap(&self, key: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<bool, ServiceError> {
        self.put(key, value, Some(expected))
    }

    /// Removes `key`; that is on disk when this returns. False when it was not there.
    ///
    /// # Errors
    /// `Invalid` for a key that is not 1 to 512 bytes, `Exhausted` when the disk is full, `Failed`
    /// when it failed.
    pub fn delete(&self, key: &str) -> Result<bool, ServiceError> {
        check_key(key)?;
        self.with(|connection| {
            let change = connection.savepoint()?;
            let freed: Option<i64> = change
                .prepare_cached("DELETE FROM entries WHERE key = ?1 RETURNING length(key) + length(value)")?
                .query_row([key.as_bytes()], |row| row.get(0))
                .optional()?;
            let Some(freed) = freed else { return Ok(false) };
            change.prepare_cached("UPDATE used SET bytes = bytes - ?1")?.execute([freed])?;
            change.commit()?;
            Ok(true)
        })
    }

    /// Keys that begin with `prefix` and come after `after`, in the order of their bytes, at most
    /// 1000. To read on, pass the last key as `after`.
    ///
    /// # Errors
    /// `Failed` when the disk failed.
    pub fn keys(&self, prefix: &str, after: Option<&str>) -> Result<Vec<String>, ServiceError> {
        // The next text after `after` is `after` with a zero behind it. No UTF-8 holds 255, so
        // a prefix can always be counted up at its last byte.
        let mut first = prefix.as_bytes().to_vec();
        if let Some(after) = after.filter(|after| *after >= prefix) {
            first = [after.as_bytes(), &[0]].concat();
        }
        let mut end = prefix.as_bytes().to_vec();
        match end.last_mut() {
            Some(last) => *last += 1,
            None => end.push(u8::MAX),
        }
        self.with(|connection| {
            let mut keys = connection.prepare_cached(
                "SELECT CAST(key AS TEXT) FROM entries WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3",
            )?;
            keys.query_map(params![first, end, MAX_KEYS as i64], |row| row.get(0))?.collect()
        })
    }

    /// How many bytes keys and values take together.
    ///
    /// # Errors
    /// `Failed` when the disk failed.
    pub fn used(&self) -> Result<u64, ServiceError> {
        self.with(|connection| connection.query_row("SELECT bytes FROM used", [], |row| row.get(0)))
            .map(|bytes: i64| u64::try_from(bytes).unwrap_or(0))
    }

    /// Sets the value if the present one is what `expected` says; `None` expects nothing.
    fn put(&self, key: &str, value: &[u8], expected: Option<Option<&[u8]>>) -> Result<bool, ServiceError> {
        check_key(key)?;
        if value.len() > MAX_VALUE {
            return Err(ServiceError::Invalid(format!(
                "the value of {} has {} bytes; a value may have at most {MAX_VALUE}",
                shown(key),
                value.len()
            )));
        }
        let quota = i64::try_from(self.quota).unwrap_or(i64::MAX);
        let length = |bytes: &[u8]| i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let done = self.with(|connection| {
            let change = connection.savepoint()?;
            let present: Option<(i64, bool)> = change
                .prepare_cached("SELECT length(key) + length(value), value IS ?2 FROM entries WHERE key = ?1")?
                .query_row(params![key.as_bytes(), expected.flatten()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let as_expected = match expected {
                None => true,
                Some(None) => present.is_none(),
                Some(Some(_)) => present.is_some_and(|(_, same)| same),
            };
            if !as_expected {
                return Ok(Put::Differs);
            }
            let before: i64 = change.prepare_cached("SELECT bytes FROM used")?.query_row([], |row| row.get(0))?;
            let after = before - present.map_or(0, |(bytes, _)| bytes) + length(key.as_bytes()) + length(value);
            // After a quota was lowered, what makes the store no larger is still let through.
            if after > quota && after > before {
                return Ok(Put::Full { before, after });
            }
            change
                .prepare_cached(
                    "INSERT INTO entries VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                )?
                .execute(params![key.as_bytes(), value])?;
            change.prepare_cached("UPDATE used SET bytes = ?1")?.execute([after])?;
            change.commit()?;
            Ok(Put::Done)
        })?;
        match done {
            Put::Done => Ok(true),
            Put::Differs => Ok(false),
            Put::Full { before, after } => Err(ServiceError::Exhausted(format!(
                "the store holds {before} bytes and would hold {after}, but its quota is {}; delete what is not \
                 needed, or ask for a larger quota",
                self.quota
            ))),
        }
    }

    /// Does something with the connection. When the file turns out to be damaged it is closed, so
    /// that the next opening checks it and begins anew.
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, ServiceError> {
        self.with_open(|open| match self.admitted(open) {
            Ok(()) => work(&mut open.connection).map(Ok),
            Err(error) => Ok(Err(error)),
        })?
    }

    /// Whether this handle may work with the store as it is now.
    fn admitted(&self, open: &Open) -> Result<(), ServiceError> {
        let feature = &self.shared.feature;
        if self.migrates {
            // SQLite ends a transaction by itself when the disk is full, and what came then would be kept.
            if !open.is_migrating || open.connection.is_autocommit() {
                return Err(ServiceError::Failed(format!("store of {feature}: its migration is over")));
            }
        } else if open.is_migrating {
            return Err(ServiceError::Unavailable(format!(
                "store of {feature}: its data is being migrated for another version of the feature"
            )));
        } else if let Some(version) = self.version.filter(|version| *version != open.version) {
            return Err(ServiceError::Unavailable(format!(
                "store of {feature}: its data has version {} now, and this instance works with version {version}",
                open.version
            )));
        }
        Ok(())
    }

    /// Does something with the store, whether this handle may work with its data or not.
    fn with_open<T>(&self, work: impl FnOnce(&mut Open) -> rusqlite::Result<T>) -> Result<T, ServiceError> {
        let mut state = self.shared.lock();
        let Some(open) = state.as_mut() else {
            return Err(closed(&self.shared.feature));
        };
        work(open).map_err(|error| {
            if damaged(&error) {
                *state = None;
            }
            refusal(&self.shared.feature, &error)
        })
    }
}

impl Shared {
    /// A panic while it was held has rolled its transaction back: the connection is as good as new.
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.state.lock()
    }
}

/// How a change ended.
enum Put {
    Done,
    Differs,
    Full { before: i64, after: i64 },
}

fn check_key(key: &str) -> Result<(), ServiceError> {
    if (1..=MAX_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(ServiceError::Invalid(format!("the key {} has {} bytes; a key has 1 to {MAX_KEY}", shown(key), key.len())))
}

/// What a file of a store turned out to be.
enum Found {
    Store(Connection),
    /// A store that a newer version made, with its layout.
    Newer(i64),
    /// Damaged, or of another program.
    NoStore,
}

/// Opens and checks a file, or makes it.
fn connect(path: &Path) -> rusqlite::Result<Found> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // FULL syncs the log with every commit. The limit keeps it from staying large after one large
    // change. The file may be damaged, so nothing in its schema is trusted.
    connection.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE;
         PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA journal_size_limit = 4194304;",
    )?;
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // SQLite would only say so at the first write.
    if change.is_readonly("main")? {
        return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY), None));
    }
    let version: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let empty: bool = change.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if version == 0 && empty {
        change.execute_batch(SCHEMA)?;
    } else {
        let state: String = change.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if NEWER_LAYOUTS.contains(&version) && state == "ok" && has_entries(&change)? {
            return Ok(Found::Newer(version));
        }
        if version != LAYOUT || state != "ok" {
            return Ok(Found::NoStore);
        }
        migration::prepare(&change)?;
        let used: Option<i64> = change.query_row("SELECT sum(bytes) FROM used", [], |row| row.get(0))?;
        let counted: i64 = change.query_row(COUNTED, [], |row| row.get(0))?;
        if used != Some(counted) {
            change.execute("DELETE FROM used", [])?;
            change.execute("INSERT INTO used VALUES (?1)", [counted])?;
        }
    }
    change.commit()?;
    Ok(Found::Store(connection))
}

/// Whether it has the table of a store.
fn has_entries(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'entries'", [], |row| row.get(0))
}

/// Renames a store's file, and what SQLite keeps beside it, to a name that is free.
fn set_aside(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let mut seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let aside = loop {
        let aside = folder.join(format!("{name}.corrupt-{seconds}.sqlite"));
        if !aside.try_exists()? {
            break aside;
        }
        seconds += 1;
    };
    // The file first: SQLite throws a log away that belongs to no file.
    std::fs::rename(folder.join(format!("{name}.sqlite")), &aside)?;
    for beside in ["-wal", "-shm", "-journal"] {
        let from = folder.join(format!("{name}.sqlite{beside}"));
        if from.try_exists()? {
            let mut to = aside.clone().into_os_string();
            to.push(beside);
            std::fs::rename(from, to)?;
        }
    }
    Ok(aside)
}

/// Makes the stores' folder, and syncs its name to the disk.
fn make_folder(home: &Path, folder: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes are Unix's"))]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => return Ok(()),
        made => made?,
    }
    #[cfg(unix)]
    std::fs::File::open(home)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = home;
    Ok(())
}

/// Whether this process may write to a file.
fn writable(path: &Path) -> bool {
    std::fs::OpenOptions::new().write(true).open(path).is_ok()
}

/// Whether SQLite says that the file is damaged, or is no database. A value of another type than the
/// tables allow, or a key that is no text, is damage as well.
fn damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error};
    match error {
        FromSqlConversionFailure(..) | IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..) => true,
        error => matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)),
    }
}

/// Whether it is an error of SQL: at the opening, where the SQL is always the same, a file of another
/// shape or format answers so.
fn misshapen(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code & 0xFF);
    matches!(error, rusqlite::Error::SqlInputError { .. }) || code == Some(rusqlite::ffi::SQLITE_ERROR)
}

fn closed(feature: &str) -> ServiceError {
    ServiceError::Failed(format!(
        "store of {feature}: its file is damaged; it is set aside, and a new one begins, when the feature starts again"
    ))
}

fn newer(feature: &str, found: i64) -> ServiceError {
    ServiceError::Unavailable(format!(
        "store of {feature}: has layout {found}, and this version of conductor knows up to {LAYOUT}; use the newer one"
    ))
}

/// SQLite's error as the contract has it.
fn refusal(feature: &str, error: &rusqlite::Error) -> ServiceError {
    use ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly};
    if damaged(error) {
        return closed(feature);
    }
    match error.sqlite_error_code() {
        Some(DiskFull) => ServiceError::Exhausted(format!("store of {feature}: the disk is full; nothing changed")),
        Some(DatabaseBusy | DatabaseLocked) => ServiceError::Unavailable(format!(
            "store of {feature}: another process has it open; stop the other Conductor that uses this home"
        )),
        Some(CannotOpen | PermissionDenied | ReadOnly) => ServiceError::Unavailable(format!(
            "store of {feature}: store/{feature}.sqlite in Conductor's home can't be written: {error}; check its owner \
             and permissions"
        )),
        _ => ServiceError::Failed(format!("store of {feature}: {error}")),
    }
}

#[cfg(test)]
mod tests;
