//! Features' own data: keys and values on disk, one SQLite file a feature.
//!
//! The file is `<home>/store/<feature>.sqlite`. One connection a feature, shared by all handles and
//! locked for this process, so that every change is one transaction and two hosts can't mix up a
//! store. A change is synced before the call returns.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use super::refusal::{Refusal, shown};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 512;
/// The longest value, in bytes (1 MiB).
pub const MAX_VALUE: usize = 1024 * 1024;
/// The most keys in one answer.
pub const MAX_KEYS: usize = 1000;

/// The longest name of a feature, in bytes: what a descriptor allows.
const MAX_NAME: usize = 128;
/// How long to wait for another process that has the file open.
const BUSY: Duration = Duration::from_secs(2);

/// SQLite's name for a file that is none.
const IN_MEMORY: &str = ":memory:";

/// What a store is made of. Keys are blobs, so that their order is that of their bytes. One tree
/// without a second index: a damaged page can't leave the two in disagreement.
const SCHEMA: &str = "
    CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE used (bytes INTEGER NOT NULL) STRICT;
    INSERT INTO used VALUES (0);
    PRAGMA user_version = 1;";

/// The sum that `used` holds, counted anew.
const COUNTED: &str = "SELECT coalesce(sum(length(key) + length(value)), 0) FROM entries";

/// All stores of one home, or of nobody.
#[derive(Debug)]
pub struct FeatureStores {
    /// None where nothing is kept.
    folder: Option<PathBuf>,
    open: Mutex<HashMap<String, Arc<Shared>>>,
}

/// A store that was opened.
#[derive(Debug)]
pub struct OpenedStore {
    /// The way to the data.
    pub handle: StoreHandle,
    /// Where the file that was there went: it was damaged, or no store of this version. The store
    /// began anew, empty; a person should hear of it.
    pub set_aside: Option<PathBuf>,
}

/// One feature's data. Clones share it; calls from several threads take turns.
#[derive(Debug, Clone)]
pub struct StoreHandle {
    shared: Arc<Shared>,
    /// In bytes, keys and values together.
    quota: u64,
}

/// What all handles of one feature share.
#[derive(Debug)]
struct Shared {
    feature: String,
    /// `None` after damage was found, until the store is opened again.
    connection: Mutex<Option<Connection>>,
}

impl FeatureStores {
    /// The stores in this home. Makes `<home>/store` where it is missing; on Unix nobody but the
    /// owner may look into it.
    ///
    /// # Errors
    /// `Unavailable` when the folder is not there and can't be made. The text names the folder: it is
    /// for the person, not for a feature.
    pub fn open(home: &Path) -> Result<Self, Refusal> {
        let folder = home.join("store");
        make_folder(home, &folder).map_err(|error| {
            Refusal::Unavailable(format!(
                "{}: can't be made: {error}; features' data needs a folder that Conductor may write to",
                folder.display()
            ))
        })?;
        Ok(Self { folder: Some(folder), open: Mutex::default() })
    }

    /// Stores that begin empty and are forgotten: for features that are only tried out, while those that serve
    /// may have their files open.
    pub fn forgetful() -> Self {
        Self { folder: None, open: Mutex::default() }
    }

    /// Opens the store of one feature. `name` is 1 to 128 of a-z, 0-9 and `-`; `quota` is in bytes,
    /// keys and values together, and holds for this handle. May wait for the disk: the file is
    /// checked whole when it is opened first.
    ///
    /// # Errors
    /// - `Invalid`: not such a name.
    /// - `Unavailable`: the file can't be opened or written, or another process has it open.
    /// - `Exhausted`: the disk is full.
    /// - `Failed`: the disk failed.
    pub fn feature(&self, name: &str, quota: u64) -> Result<OpenedStore, Refusal> {
        // Nothing else ever becomes part of a path.
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
            return Err(Refusal::Invalid(format!(
                "{} is no name of a feature; names are 1 to {MAX_NAME} of a-z, 0-9 and -",
                shown(name)
            )));
        }
        let shared = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(Shared { feature: name.to_owned(), connection: Mutex::new(None) });
            Arc::clone(open.entry(name.to_owned()).or_insert_with(new))
        };
        let mut set_aside = None;
        {
            let mut connection = shared.lock();
            if connection.is_none() {
                let (opened, aside) = self.connect(name)?;
                *connection = Some(opened);
                set_aside = aside;
            }
        }
        Ok(OpenedStore { handle: StoreHandle { shared, quota }, set_aside })
    }

    /// Opens the file, or sets it aside and begins a new one.
    fn connect(&self, name: &str) -> Result<(Connection, Option<PathBuf>), Refusal> {
        let Some(folder) = &self.folder else {
            let made = connect(Path::new(IN_MEMORY)).map_err(|error| refusal(name, &error))?;
            return made.map(|made| (made, None)).ok_or_else(|| closed(name));
        };
        let path = folder.join(format!("{name}.sqlite"));
        let error = match connect(&path) {
            Ok(Some(connection)) => return Ok((connection, None)),
            Ok(None) => None,
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
            Refusal::Unavailable(format!("store of {name}: is damaged and can't be set aside: {error}"))
        })?;
        match connect(&path) {
            Ok(Some(connection)) => Ok((connection, Some(aside))),
            Ok(None) => Err(Refusal::Failed(format!("store of {name}: a new file is damaged at once; check the disk"))),
            Err(error) => Err(refusal(name, &error)),
        }
    }
}

impl StoreHandle {
    /// The value of `key`.
    ///
    /// # Errors
    /// `Invalid` for a key that is not 1 to 512 bytes, `Failed` when the disk failed.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Refusal> {
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
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), Refusal> {
        self.put(key, value, None).map(|_| ())
    }

    /// Sets the value of `key` if it still is `expected` (`None`: not there). False when it is not,
    /// and nothing changed.
    ///
    /// # Errors
    /// Those of [`set`](Self::set).
    pub fn swap(&self, key: &str, expected: Option<&[u8]>, value: &[u8]) -> Result<bool, Refusal> {
        self.put(key, value, Some(expected))
    }

    /// Removes `key`; that is on disk when this returns. False when it was not there.
    ///
    /// # Errors
    /// `Invalid` for a key that is not 1 to 512 bytes, `Exhausted` when the disk is full, `Failed`
    /// when it failed.
    pub fn delete(&self, key: &str) -> Result<bool, Refusal> {
        check_key(key)?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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
    pub fn keys(&self, prefix: &str, after: Option<&str>) -> Result<Vec<String>, Refusal> {
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
    pub fn used(&self) -> Result<u64, Refusal> {
        self.with(|connection| connection.query_row("SELECT bytes FROM used", [], |row| row.get(0)))
            .map(|bytes: i64| u64::try_from(bytes).unwrap_or(0))
    }

    /// Sets the value if the present one is what `expected` says; `None` expects nothing.
    fn put(&self, key: &str, value: &[u8], expected: Option<Option<&[u8]>>) -> Result<bool, Refusal> {
        check_key(key)?;
        if value.len() > MAX_VALUE {
            return Err(Refusal::Invalid(format!(
                "the value of {} has {} bytes; a value may have at most {MAX_VALUE}",
                shown(key),
                value.len()
            )));
        }
        let quota = i64::try_from(self.quota).unwrap_or(i64::MAX);
        let length = |bytes: &[u8]| i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let done = self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
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
            Put::Full { before, after } => Err(Refusal::Exhausted(format!(
                "the store holds {before} bytes and would hold {after}, but its quota is {}; delete what is not \
                 needed, or ask for a larger quota",
                self.quota
            ))),
        }
    }

    /// Does something with the connection. When the file turns out to be damaged it is closed, so
    /// that the next opening checks it and begins anew.
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, Refusal> {
        let mut connection = self.shared.lock();
        let Some(open) = connection.as_mut() else {
            return Err(closed(&self.shared.feature));
        };
        work(open).map_err(|error| {
            if damaged(&error) {
                *connection = None;
            }
            refusal(&self.shared.feature, &error)
        })
    }
}

impl Shared {
    /// A panic while it was held has rolled its transaction back: the connection is as good as new.
    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a change ended.
enum Put {
    Done,
    Differs,
    Full { before: i64, after: i64 },
}

fn check_key(key: &str) -> Result<(), Refusal> {
    if (1..=MAX_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(Refusal::Invalid(format!("the key {} has {} bytes; a key has 1 to {MAX_KEY}", shown(key), key.len())))
}

/// Opens a file and checks it whole, or makes it. `None` when it is no whole store of this version.
fn connect(path: &Path) -> rusqlite::Result<Option<Connection>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
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
        if version != 1 || state != "ok" {
            return Ok(None);
        }
        let used: Option<i64> = change.query_row("SELECT sum(bytes) FROM used", [], |row| row.get(0))?;
        let counted: i64 = change.query_row(COUNTED, [], |row| row.get(0))?;
        if used != Some(counted) {
            change.execute("DELETE FROM used", [])?;
            change.execute("INSERT INTO used VALUES (?1)", [counted])?;
        }
    }
    change.commit()?;
    Ok(Some(connection))
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

/// Whether this process may write to a file, whatever is in it.
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

fn closed(feature: &str) -> Refusal {
    Refusal::Failed(format!(
        "store of {feature}: its file is damaged; it is set aside, and a new one begins, when the feature starts again"
    ))
}

/// SQLite's error as the contract has it.
fn refusal(feature: &str, error: &rusqlite::Error) -> Refusal {
    use ErrorCode::{CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly};
    if damaged(error) {
        return closed(feature);
    }
    match error.sqlite_error_code() {
        Some(DiskFull) => Refusal::Exhausted(format!("store of {feature}: the disk is full; nothing changed")),
        Some(DatabaseBusy | DatabaseLocked) => Refusal::Unavailable(format!(
            "store of {feature}: another process has it open; stop the other Conductor that uses this home"
        )),
        Some(CannotOpen | PermissionDenied | ReadOnly) => Refusal::Unavailable(format!(
            "store of {feature}: store/{feature}.sqlite in Conductor's home can't be written: {error}; check its owner \
             and permissions"
        )),
        _ => Refusal::Failed(format!("store of {feature}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};
    use std::thread;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// A home that goes away with the test.
    struct Home(PathBuf);

    impl Home {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-store-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn stores(&self) -> FeatureStores {
            FeatureStores::open(&self.0).unwrap()
        }

        /// The file of the feature `lamp`.
        fn file(&self) -> PathBuf {
            self.0.join("store/lamp.sqlite")
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn lamp(stores: &FeatureStores, quota: u64) -> StoreHandle {
        let opened = stores.feature("lamp", quota).unwrap();
        assert_eq!(opened.set_aside, None);
        opened.handle
    }

    fn invalid<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
        match result {
            Err(Refusal::Invalid(text)) => text,
            other => panic!("not invalid: {other:?}"),
        }
    }

    fn exhausted<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
        match result {
            Err(Refusal::Exhausted(text)) => text,
            other => panic!("not exhausted: {other:?}"),
        }
    }

    #[test]
    fn what_is_tried_out_forgets_and_is_in_nobodys_way() {
        let home = Home::new("forgetful");
        let serves = lamp(&home.stores(), MIB);
        serves.set("key", b"kept").unwrap();
        let tried = FeatureStores::forgetful();
        let (one, other) = (lamp(&tried, MIB), lamp(&tried, MIB));
        assert_eq!(one.get("key").unwrap(), None);
        one.set("key", b"tried").unwrap();
        assert_eq!(other.get("key").unwrap().as_deref(), Some(&b"tried"[..]));
        assert!(tried.feature("desk", 1).unwrap().handle.set("key", b"value").is_err(), "the quota holds");
        assert_eq!(serves.get("key").unwrap().as_deref(), Some(&b"kept"[..]));
        drop((one, other, tried));
        assert_eq!(lamp(&FeatureStores::forgetful(), MIB).get("key").unwrap(), None);
    }

    #[test]
    fn what_is_set_is_there_for_all_handles_and_after_a_restart() {
        let home = Home::new("kept");
        let stores = home.stores();
        let (one, other) = (lamp(&stores, MIB), lamp(&stores, MIB));
        assert_eq!(one.get("scene").unwrap(), None);
        one.set("scene", b"blue").unwrap();
        one.set("empty", b"").unwrap();
        assert_eq!(other.get("scene").unwrap().as_deref(), Some(b"blue".as_slice()));
        assert_eq!(other.get("empty").unwrap().as_deref(), Some(b"".as_slice()));
        // Another feature has its own.
        let desk = stores.feature("desk-2", MIB).unwrap().handle;
        assert_eq!(desk.get("scene").unwrap(), None);

        drop((one, other, desk, stores));
        let again = lamp(&home.stores(), MIB);
        assert_eq!(again.get("scene").unwrap().as_deref(), Some(b"blue".as_slice()));
        assert!(again.delete("scene").unwrap());
        assert!(!again.delete("scene").unwrap());
        assert_eq!(again.get("scene").unwrap(), None);
    }

    #[test]
    fn keys_and_values_have_bounds() {
        let home = Home::new("bounds");
        let store = lamp(&home.stores(), 8 * MIB);
        let (long, too_long) = ("ö".repeat(256), "x".repeat(513));
        store.set(&long, &vec![7; MAX_VALUE]).unwrap();
        assert_eq!(store.get(&long).unwrap().unwrap().len(), MAX_VALUE);
        store.set("with\0zero", b"1").unwrap();
        assert_eq!(store.keys("with\0", None).unwrap(), ["with\0zero"]);
        for key in ["", too_long.as_str()] {
            assert!(invalid(store.get(key)).contains("1 to 512"));
            assert!(invalid(store.set(key, b"")).contains("1 to 512"));
            assert!(invalid(store.swap(key, None, b"")).contains("1 to 512"));
            assert!(invalid(store.delete(key)).contains("1 to 512"));
        }
        assert!(invalid(store.set("k", &vec![0; MAX_VALUE + 1])).contains("1048576"));
        assert!(invalid(store.swap("k", None, &vec![0; MAX_VALUE + 1])).contains("1048576"));
        assert_eq!(store.get("k").unwrap(), None);
    }

    #[test]
    fn the_quota_counts_keys_and_values_through_replacing_and_deleting() {
        let home = Home::new("quota");
        let stores = home.stores();
        let store = lamp(&stores, 20);
        store.set("ab", &[0; 8]).unwrap();
        assert_eq!(store.used().unwrap(), 10);
        store.set("cd", &[0; 8]).unwrap();
        assert_eq!(store.used().unwrap(), 20);
        let text = exhausted(store.set("e", b""));
        assert!(text.contains("20") && text.contains("21"), "{text}");
        // A larger value in a full store is refused and changes nothing; a smaller one makes room.
        exhausted(store.set("ab", &[1; 9]));
        exhausted(store.swap("ab", Some(&[0; 8]), &[1; 9]));
        assert_eq!(store.get("ab").unwrap().as_deref(), Some([0; 8].as_slice()));
        store.set("ab", &[1; 8]).unwrap();
        store.set("ab", &[1; 3]).unwrap();
        assert_eq!(store.used().unwrap(), 15);
        store.set("e", &[0; 4]).unwrap();
        assert_eq!(store.used().unwrap(), 20);
        assert!(store.delete("cd").unwrap());
        assert!(!store.delete("cd").unwrap());
        assert_eq!(store.used().unwrap(), 10);
        assert!(store.swap("cd", None, &[0; 8]).unwrap());
        assert_eq!(store.used().unwrap(), 20);

        // A lower quota keeps what is there: it can be read, shrunk and deleted, not grown.
        let lower = lamp(&stores, 12);
        exhausted(lower.set("f", b""));
        exhausted(lower.set("ab", &[1; 4]));
        lower.set("ab", &[1; 2]).unwrap();
        lower.set("ab", &[2; 2]).unwrap();
        assert!(lower.delete("cd").unwrap());
        lower.set("f", b"").unwrap();
        assert_eq!(lower.used().unwrap(), 10);
    }

    #[test]
    fn a_quota_that_was_miscounted_on_disk_is_counted_anew() {
        let home = Home::new("miscounted");
        lamp(&home.stores(), MIB).set("key", b"value").unwrap();
        for wrong in ["UPDATE used SET bytes = -7000", "DELETE FROM used", "INSERT INTO used VALUES (5)"] {
            Connection::open(home.file()).unwrap().execute_batch(wrong).unwrap();
            assert_eq!(lamp(&home.stores(), MIB).used().unwrap(), 8);
        }
    }

    #[test]
    fn swap_changes_only_what_is_as_expected() {
        let home = Home::new("swap");
        let store = lamp(&home.stores(), MIB);
        assert!(!store.swap("k", Some(b""), b"1").unwrap());
        assert!(store.swap("k", None, b"1").unwrap());
        assert!(!store.swap("k", None, b"2").unwrap());
        assert!(!store.swap("k", Some(b"2"), b"3").unwrap());
        assert!(!store.swap("k", Some(b"1\0"), b"3").unwrap());
        assert_eq!(store.get("k").unwrap().as_deref(), Some(b"1".as_slice()));
        assert!(store.swap("k", Some(b"1"), b"").unwrap());
        assert!(!store.swap("k", None, b"4").unwrap());
        assert!(store.swap("k", Some(b""), b"4").unwrap());
    }

    #[test]
    fn four_threads_that_swap_lose_no_update() {
        let home = Home::new("race");
        let stores = home.stores();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store = lamp(&stores, MIB);
                    for _ in 0..50 {
                        loop {
                            let old = store.get("count").unwrap();
                            let count: u32 =
                                old.as_deref().map_or(0, |old| str::from_utf8(old).unwrap().parse().unwrap());
                            if store.swap("count", old.as_deref(), (count + 1).to_string().as_bytes()).unwrap() {
                                break;
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(lamp(&stores, MIB).get("count").unwrap().as_deref(), Some(b"200".as_slice()));
        assert_eq!(lamp(&stores, MIB).used().unwrap(), 8);
    }

    #[test]
    fn keys_come_in_the_order_of_their_bytes_a_thousand_at_a_time() {
        let home = Home::new("keys");
        let store = lamp(&home.stores(), MIB);
        let mut all: Vec<String> =
            ["a", "B", "a/", "a/1", "a/10", "a/2", "a0", "ä", "\u{10ffff}", "\u{ffff}", "%", "_"]
                .map(str::to_owned)
                .into();
        for key in &all {
            store.set(key, b"").unwrap();
        }
        all.sort_unstable();
        assert_eq!(store.keys("", None).unwrap(), all);
        assert_eq!(store.keys("a/", None).unwrap(), ["a/", "a/1", "a/10", "a/2"]);
        assert_eq!(store.keys("a/", Some("a/1")).unwrap(), ["a/10", "a/2"]);
        // `after` need not be there, nor lie among what begins with the prefix.
        assert_eq!(store.keys("a/", Some("a/11")).unwrap(), ["a/2"]);
        assert_eq!(store.keys("a/", Some("")).unwrap().len(), 4);
        assert_eq!(store.keys("a/", Some("B")).unwrap().len(), 4);
        assert!(store.keys("a/", Some("b")).unwrap().is_empty());
        assert!(store.keys("a/2", Some("a/2")).unwrap().is_empty());
        // No pattern: only itself begins with it.
        assert_eq!(store.keys("%", None).unwrap(), ["%"]);
        assert_eq!(store.keys("\u{10ffff}", None).unwrap(), ["\u{10ffff}"]);
        assert!(store.keys(&"a".repeat(600), None).unwrap().is_empty());

        // Written at once, as a thousand syncs would take their time.
        let many: Vec<String> = (0..2345).map(|n| format!("many/{n:04}")).collect();
        store
            .with(|connection| {
                let change = connection.transaction()?;
                for key in &many {
                    change.execute("INSERT INTO entries VALUES (?1, x'')", [key.as_bytes()])?;
                }
                change.commit()
            })
            .unwrap();
        let (mut read, mut sizes) = (Vec::<String>::new(), Vec::new());
        loop {
            let page = store.keys("many/", read.last().map(String::as_str)).unwrap();
            sizes.push(page.len());
            if page.is_empty() {
                break;
            }
            read.extend(page);
        }
        assert_eq!(sizes, [1000, 1000, 345, 0]);
        assert_eq!(read, many);
    }

    #[test]
    fn only_names_of_features_become_files() {
        let home = Home::new("names");
        let stores = home.stores();
        let long = "x".repeat(129);
        for name in ["", ".", "..", "../lamp", "a/b", "a\\b", "a.b", "Lamp", "lämp", "a\0", "a b", "project:a", &long]
        {
            assert!(invalid(stores.feature(name, MIB)).contains("a-z, 0-9 and -"), "{name:?}");
        }
        assert_eq!(fs::read_dir(home.0.join("store")).unwrap().count(), 0);
        stores.feature(&"x".repeat(128), MIB).unwrap();
    }

    #[test]
    fn a_home_that_cannot_be_written_is_unavailable() {
        let home = Home::new("unwritable");
        let file = home.0.join("file");
        fs::write(&file, b"").unwrap();
        for home in [file.clone(), home.0.join("missing")] {
            assert!(matches!(FeatureStores::open(&home), Err(Refusal::Unavailable(_))));
        }
        // A file in the folder's place, and a folder in the database's.
        fs::write(home.0.join("store"), b"").unwrap();
        assert!(matches!(FeatureStores::open(&home.0), Err(Refusal::Unavailable(_))));
        fs::remove_file(home.0.join("store")).unwrap();
        fs::create_dir_all(home.file()).unwrap();
        let stores = home.stores();
        assert!(matches!(stores.feature("lamp", MIB), Err(Refusal::Unavailable(_))));
        // That harms no other feature, and is over when the cause is.
        stores.feature("desk", MIB).unwrap();
        fs::remove_dir(home.file()).unwrap();
        lamp(&stores, MIB);
    }

    #[test]
    fn a_store_that_another_host_has_open_is_unavailable() {
        let home = Home::new("two-hosts");
        let first = home.stores();
        lamp(&first, MIB).set("k", b"v").unwrap();
        let second = home.stores();
        assert!(
            matches!(second.feature("lamp", MIB), Err(Refusal::Unavailable(text)) if text.contains("another process"))
        );
        drop(first);
        assert_eq!(lamp(&second, MIB).get("k").unwrap().as_deref(), Some(b"v".as_slice()));
    }

    /// A store with some pages: small entries and large ones.
    fn filled(home: &Home) -> Vec<u8> {
        let store = lamp(&home.stores(), 8 * MIB);
        for n in 0..20_u8 {
            store.set(&format!("key-{n}"), &vec![n; 1000 * usize::from(n)]).unwrap();
        }
        drop(store);
        fs::read(home.file()).unwrap()
    }

    /// What is beside the store's own file, by name.
    fn set_aside_files(home: &Home) -> Vec<String> {
        let names = fs::read_dir(home.0.join("store")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(".corrupt-")).collect()
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_a_fresh_one_begins() {
        let home = Home::new("damaged");
        let whole = filled(&home);
        type Damage = fn(&mut Vec<u8>);
        let damage: [(&str, Damage); 8] = [
            ("its first bytes", |bytes| bytes[..16].fill(0x55)),
            ("the schema's page", |bytes| bytes[100..600].fill(0xFF)),
            ("the second page", |bytes| bytes[4096..8192].fill(0xA5)),
            ("all but the first page", |bytes| bytes[4096..].fill(0)),
            ("cut within the header", |bytes| bytes.truncate(50)),
            ("cut within a page", |bytes| bytes.truncate(10_000)),
            ("cut after the first page", |bytes| bytes.truncate(4096)),
            ("no database at all", |bytes| *bytes = b"This is a shopping list.\n".repeat(100)),
        ];
        for (n, (what, damage)) in damage.into_iter().enumerate() {
            let mut bytes = whole.clone();
            damage(&mut bytes);
            fs::write(home.file(), &bytes).unwrap();
            let stores = home.stores();
            let opened = stores.feature("lamp", MIB).unwrap();
            let aside = opened.set_aside.unwrap_or_else(|| panic!("{what}: was not seen"));
            let name = aside.file_name().unwrap().to_str().unwrap();
            let seconds = name.strip_prefix("lamp.corrupt-").and_then(|rest| rest.strip_suffix(".sqlite")).unwrap();
            assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000, "{name}");
            assert_eq!(fs::read(&aside).unwrap(), bytes, "{what}: what is set aside is kept as it was");
            assert_eq!(set_aside_files(&home).len(), n + 1, "each has its own name");
            assert_eq!((opened.handle.used().unwrap(), opened.handle.keys("", None).unwrap()), (0, vec![]), "{what}");
            opened.handle.set("new", b"life").unwrap();
            // It is said once: who opens it next finds a whole store.
            lamp(&stores, MIB);
            drop((opened.handle, stores));
            assert_eq!(lamp(&home.stores(), MIB).get("new").unwrap().as_deref(), Some(b"life".as_slice()), "{what}");
        }
    }

    #[test]
    fn whichever_byte_is_wrong_the_store_opens() {
        let home = Home::new("bytes");
        let whole = filled(&home);
        let offsets = (0..120).chain((120..whole.len()).step_by(whole.len() / 60));
        let mut seen = 0;
        for offset in offsets {
            let mut bytes = whole.clone();
            bytes[offset] ^= 0xFF;
            fs::write(home.file(), &bytes).unwrap();
            let opened =
                home.stores().feature("lamp", 8 * MIB).unwrap_or_else(|error| panic!("byte {offset}: {error}"));
            // What SQLite can't tell from a value stays; whatever is there, it can be used.
            seen += usize::from(opened.set_aside.is_some());
            let store = opened.handle;
            for key in store.keys("", None).unwrap() {
                store.get(&key).unwrap();
            }
            store.set("key-3", b"new").unwrap();
            assert_eq!(store.get("key-3").unwrap().as_deref(), Some(b"new".as_slice()), "byte {offset}");
        }
        assert!(seen >= 30, "only {seen} were seen");
    }

    #[test]
    fn another_programs_database_is_set_aside() {
        let home = Home::new("foreign");
        fs::create_dir(home.0.join("store")).unwrap();
        for schema in [
            "CREATE TABLE songs (title TEXT)",
            "CREATE TABLE songs (title TEXT); PRAGMA user_version = 1",
            "CREATE TABLE entries (key BLOB); CREATE TABLE used (bytes INTEGER); PRAGMA user_version = 1",
            "PRAGMA user_version = 2",
        ] {
            Connection::open(home.file()).unwrap().execute_batch(schema).unwrap();
            let opened = home.stores().feature("lamp", MIB).unwrap();
            assert!(opened.set_aside.is_some(), "{schema}");
            opened.handle.set("k", b"v").unwrap();
            drop(opened);
            fs::remove_file(home.file()).unwrap();
        }
    }

    #[test]
    fn damage_found_while_running_costs_the_store_its_content_and_nothing_else() {
        let home = Home::new("running");
        let bytes = filled(&home);
        let stores = home.stores();
        let (store, desk) = (lamp(&stores, MIB), stores.feature("desk", MIB).unwrap().handle);
        let mut file = fs::OpenOptions::new().write(true).open(home.file()).unwrap();
        file.write_all(&bytes[..4096]).unwrap();
        file.write_all(&vec![0xA5; bytes.len() - 4096]).unwrap();
        drop(file);
        // What was checked at the opening may still be in memory; drop it.
        store.with(|connection| connection.execute_batch("PRAGMA shrink_memory")).unwrap();
        for _ in 0..2 {
            assert!(matches!(store.get("key-19"), Err(Refusal::Failed(text)) if text.contains("damaged")));
        }
        desk.set("still", b"here").unwrap();
        // Opened again, all handles have the new one.
        let opened = stores.feature("lamp", MIB).unwrap();
        assert!(opened.set_aside.is_some());
        opened.handle.set("k", b"v").unwrap();
        assert_eq!(store.get("k").unwrap().as_deref(), Some(b"v".as_slice()));
    }

    /// This test runs itself in a second process, as the writer that is killed.
    #[test]
    fn what_was_acknowledged_survives_a_kill() {
        const ROLE: &str = "CONDUCTOR_TEST_STORE_WRITER";
        if let Some(home) = std::env::var_os(ROLE) {
            let store = lamp(&FeatureStores::open(Path::new(&home)).unwrap(), 64 * MIB);
            println!();
            for n in 0.. {
                store.set(&format!("key-{n}"), &vec![0xAB; n % 5000]).unwrap();
                println!("set {n}");
            }
        }
        let home = Home::new("kill");
        let mut set = 0;
        for round in 1..=5 {
            let mut writer = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "service::store::tests::what_was_acknowledged_survives_a_kill", "--nocapture"])
                .env(ROLE, &home.0)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
            let mut number = || {
                lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("set ")?.parse::<usize>().ok())
            };
            // Killed at work, each time a bit later.
            while number().expect("the writer ended by itself") < round * 70 {}
            writer.kill().unwrap();
            writer.wait().unwrap();
            set = set.max(round * 70);
            while let Some(n) = number() {
                set = set.max(n);
            }
            let store = lamp(&home.stores(), 64 * MIB);
            let mut bytes = 0;
            for n in 0..=set {
                let key = format!("key-{n}");
                assert_eq!(store.get(&key).unwrap(), Some(vec![0xAB; n % 5000]), "{key} in round {round}");
                bytes += key.len() + n % 5000;
            }
            // At most the one that was set, but not yet acknowledged, is there beyond.
            let keys = store.keys("", None).unwrap().len();
            assert!(keys == set + 1 || keys == set + 2, "{keys} keys, {} acknowledged", set + 1);
            if keys == set + 2 {
                bytes += format!("key-{}", set + 1).len() + (set + 1) % 5000;
                // The next round may not come as far; it is there all the same.
                set += 1;
            }
            assert_eq!(store.used().unwrap(), bytes as u64);
        }
    }
}
