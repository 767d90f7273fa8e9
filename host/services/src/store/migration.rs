//! Migration of a store's data from one version to another, in one transaction.
//!
//! ```text
//! FeatureStores::to_migrate ─▶ Migration ─▶ commit ─▶ Migrated ─▶ confirm
//!                                 └─ drop: rolled back    └─ drop: the data is as it was before
//! ```
//!
//! Meanwhile all other handles of the store are refused, and afterwards those for the version before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::{COUNTED, FeatureStores, Found, IN_MEMORY, Open, Shared, StoreHandle, closed, connect, refusal};
use crate::error::ServiceError;

/// The data as it was before a migration, until that is confirmed.
const KEEP: &str = "
    DROP TABLE IF EXISTS previous;
    CREATE TABLE previous (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    INSERT INTO previous SELECT key, value FROM entries;";

const RESTORE: &str = "
    DELETE FROM entries;
    INSERT INTO entries SELECT key, value FROM previous;
    DROP TABLE previous;";

/// Where stores in memory, for features that are tried out, find the data of those that serve.
#[derive(Debug, Clone)]
pub enum Originals {
    /// In this home. What another process, or another [`FeatureStores`] of this one, has open can't be read.
    Home(std::path::PathBuf),
    /// In the stores of the host that runs here.
    Live(Arc<FeatureStores>),
}

impl FeatureStores {
    /// Stores in memory, empty at first, like [`in_memory`](Self::in_memory). A migration is tried on a copy of what
    /// `originals` hold.
    pub fn trial(originals: Option<Originals>) -> Self {
        Self { originals, ..Self::in_memory() }
    }

    /// The version of the data in the store of this name; `None` if it holds none, or if these stores are in memory and
    /// the original can't be read now.
    ///
    /// # Errors
    /// As [`feature`](Self::feature).
    pub fn data_version(&self, name: &str) -> Result<Option<u32>, ServiceError> {
        let version = match (&self.originals, &self.folder) {
            (Some(Originals::Live(stores)), _) => stores.data_version(name)?,
            (Some(Originals::Home(home)), _) => {
                let version =
                    original(home, name).and_then(|original| original.map(|it| data_version(&it)).transpose());
                version.unwrap_or_else(|error| {
                    tracing::debug!("store of {name}: its version can't be read now: {error}");
                    None
                })
            }
            (None, _) => match self.existing(name)? {
                Some(handle) => handle.with_open(|open| Ok((!is_empty(&open.connection)?).then_some(open.version)))?,
                None => None,
            },
        };
        Ok(version.filter(|version| *version > 0))
    }

    /// Keeps the file of a store open, if there is one.
    ///
    /// # Errors
    /// As [`feature`](Self::feature).
    pub fn existing(&self, name: &str) -> Result<Option<StoreHandle>, ServiceError> {
        let file = self.folder.as_ref().map(|folder| folder.join(format!("{name}.sqlite")));
        if !file.is_some_and(|file| file.exists()) {
            return Ok(None);
        }
        Ok(Some(self.feature(name, 0)?.handle))
    }

    /// Begins the migration of a store; in memory, that of a copy. `quota` is as in [`feature`](Self::feature).
    ///
    /// # Errors
    /// As [`feature`](Self::feature); `Unavailable` if another migration is under way, or there is no original to copy.
    pub fn to_migrate(&self, name: &str, quota: u64) -> Result<Migration, ServiceError> {
        let handle = match &self.originals {
            None => self.feature(name, quota)?.handle,
            Some(originals) => {
                let copy = originals.copy(name)?;
                let shared = Shared { feature: name.to_owned(), state: parking_lot::Mutex::new(Some(copy)) };
                StoreHandle { shared: Arc::new(shared), quota, version: None, migrates: false }
            }
        };
        Migration::begin(handle)
    }
}

impl Originals {
    /// A copy of one store, in memory.
    fn copy(&self, name: &str) -> Result<Open, ServiceError> {
        let gone = || ServiceError::Unavailable(format!("store of {name}: there is nothing to try a migration on"));
        match self {
            Self::Home(home) => {
                let original = original(home, name).map_err(|error| refusal(name, &error))?.ok_or_else(gone)?;
                copied(&original).map_err(|error| refusal(name, &error))
            }
            Self::Live(stores) => stores.feature(name, 0)?.handle.with_open(|open| copied(&open.connection)),
        }
    }
}

/// Opens the file of a store that is not open now. `None` if there is no such file.
fn original(home: &Path, name: &str) -> rusqlite::Result<Option<Connection>> {
    let path = home.join("store").join(format!("{name}.sqlite"));
    if !path.is_file() {
        return Ok(None);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    connection
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
    Ok(Some(connection))
}

/// The version of the data in a file; 0 if it holds none. A file without one is of the first.
fn data_version(connection: &Connection) -> rusqlite::Result<u32> {
    if is_empty(connection)? {
        return Ok(0);
    }
    let is_versioned =
        connection.query_row("SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'data'", [], |row| row.get(0))?;
    if is_versioned { connection.query_row("SELECT version FROM data", [], |row| row.get(0)) } else { Ok(1) }
}

pub(super) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM entries)", [], |row| row.get(0))
}

fn copied(original: &Connection) -> rusqlite::Result<Open> {
    let damaged = || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None);
    let Found::Store(mut connection) = connect(Path::new(IN_MEMORY))? else { return Err(damaged()) };
    let version = data_version(original)?;
    {
        let change = connection.transaction()?;
        let mut rows = original.prepare("SELECT key, value FROM entries")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (key, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            change.execute("INSERT INTO entries VALUES (?1, ?2)", params![key, value])?;
        }
        let counted: i64 = change.query_row(COUNTED, [], |row| row.get(0))?;
        change.execute("UPDATE used SET bytes = ?1", [counted])?;
        change.execute("UPDATE data SET version = ?1", [version])?;
        change.commit()?;
    }
    Ok(Open { connection, version, is_migrating: false })
}

/// A migration under way: an open transaction. Dropping it rolls it back.
#[derive(Debug)]
pub struct Migration {
    handle: StoreHandle,
    from: u32,
    is_over: bool,
}

impl Migration {
    fn begin(handle: StoreHandle) -> Result<Self, ServiceError> {
        let from = handle.with_open(|open| {
            open.connection.execute_batch("BEGIN IMMEDIATE")?;
            if let Err(error) = open.connection.execute_batch(KEEP) {
                open.roll_back();
                return Err(error);
            }
            open.is_migrating = true;
            Ok(open.version)
        })?;
        let handle = StoreHandle { migrates: true, version: None, ..handle };
        Ok(Self { handle, from, is_over: false })
    }

    /// The version of the data before.
    pub fn from(&self) -> u32 {
        self.from
    }

    /// The store as the migration sees and changes it. Refused when the migration is over.
    pub fn table(&self) -> StoreHandle {
        self.handle.clone()
    }

    /// Makes the changes permanent, as data of version `to`. They are on disk when this returns.
    ///
    /// # Errors
    /// `Exhausted` when the disk is full, `Failed` when it failed; the data is as it was.
    pub fn commit(mut self, to: u32) -> Result<Migrated, ServiceError> {
        self.handle.with_open(|open| {
            open.connection.execute("UPDATE data SET version = ?1", [to])?;
            open.connection.execute_batch("COMMIT")?;
            (open.version, open.is_migrating) = (to, false);
            Ok(())
        })?;
        self.is_over = true;
        Ok(Migrated { handle: self.handle.clone(), from: self.from, to, is_confirmed: false })
    }
}

impl Drop for Migration {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Some(open) = self.handle.shared.lock().as_mut() {
            open.roll_back();
            open.is_migrating = false;
        }
    }
}

/// A store whose data was migrated. Unless that is confirmed, dropping this brings the data before back.
#[derive(Debug)]
pub struct Migrated {
    handle: StoreHandle,
    from: u32,
    to: u32,
    is_confirmed: bool,
}

impl Migrated {
    /// The version before, and the version now.
    pub fn versions(&self) -> (u32, u32) {
        (self.from, self.to)
    }

    /// Forgets the data before.
    pub fn confirm(mut self) {
        self.is_confirmed = true;
        let dropped = self.with_migrated(|open| open.connection.execute_batch("DROP TABLE IF EXISTS previous"));
        // What is left takes room, until the store is opened next.
        if let Err(error) = dropped {
            tracing::warn!("{error}");
        }
    }

    fn restore(&self) -> Result<(), ServiceError> {
        self.with_migrated(|open| {
            let change = open.connection.transaction()?;
            change.execute_batch(RESTORE)?;
            let counted: i64 = change.query_row(COUNTED, [], |row| row.get(0))?;
            change.execute("UPDATE used SET bytes = ?1", [counted])?;
            change.execute("UPDATE data SET version = ?1", [self.from])?;
            change.commit()?;
            open.version = self.from;
            Ok(())
        })
    }

    /// Does something with the store if its data is still what the migration made of it.
    fn with_migrated(&self, work: impl FnOnce(&mut Open) -> rusqlite::Result<()>) -> Result<(), ServiceError> {
        let mut state = self.handle.shared.lock();
        let open = state.as_mut().ok_or_else(|| closed(&self.handle.shared.feature))?;
        if open.is_migrating || open.version != self.to {
            return Ok(());
        }
        work(open).map_err(|error| refusal(&self.handle.shared.feature, &error))
    }
}

impl Drop for Migrated {
    fn drop(&mut self) {
        if !self.is_confirmed
            && let Err(error) = self.restore()
        {
            tracing::error!("the data before a migration can't be restored: {error}");
        }
    }
}

/// Brings the schema of a store that is there up to date, and forgets what an unconfirmed migration kept: the host that
/// made it was killed, and the package that it was for is the one that is installed.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DROP TABLE IF EXISTS previous;
         CREATE TABLE IF NOT EXISTS data (version INTEGER NOT NULL) STRICT;
         INSERT INTO data SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM data);",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(stores: &FeatureStores) -> StoreHandle {
        stores.feature("lamp", 100).unwrap().handle
    }

    struct Home(std::path::PathBuf);

    impl Home {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-migration-{test}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_empty_store_takes_the_version_of_its_first_package() {
        let home = Home::new("empty");
        let stores = FeatureStores::open(&home.0).unwrap();
        assert_eq!(stores.data_version("lamp").unwrap(), None, "there is no file");
        let seven = store(&stores).of_version(7).unwrap();
        assert_eq!(stores.data_version("lamp").unwrap(), None, "there is no data");
        seven.set("a", b"1").unwrap();
        assert_eq!(stores.data_version("lamp").unwrap(), Some(7));
        let error = store(&stores).of_version(6).unwrap_err().to_string();
        assert!(error.contains("its data has version 7 now, and this instance works with version 6"), "{error}");
        drop((seven, stores));
        assert_eq!(FeatureStores::open(&home.0).unwrap().data_version("lamp").unwrap(), Some(7), "it is on disk");
    }

    #[test]
    fn a_migration_is_one_transaction_that_others_wait_for_in_vain() {
        let stores = FeatureStores::in_memory();
        let before = store(&stores).of_version(1).unwrap();
        before.set("a", b"1").unwrap();
        let migration = stores.to_migrate("lamp", 100).unwrap();
        let table = migration.table();
        table.set("a", b"2").unwrap();
        table.set("b", b"2").unwrap();
        assert!(matches!(table.set("c", &[0; 100]), Err(ServiceError::Exhausted(_))), "the quota holds");
        assert!(matches!(before.get("a"), Err(ServiceError::Unavailable(_))));
        assert!(stores.to_migrate("lamp", 100).is_err(), "one at a time");
        drop(migration);
        assert_eq!((before.get("a").unwrap().as_deref(), before.used().unwrap()), (Some(&b"1"[..]), 2));
        assert!(table.set("a", b"3").is_err(), "it is over");

        let migration = stores.to_migrate("lamp", 100).unwrap();
        migration.table().set("b", b"2").unwrap();
        let migrated = migration.commit(2).unwrap();
        assert!(before.get("a").is_err());
        drop(migrated);
        assert_eq!((before.keys("", None).unwrap(), before.used().unwrap()), (vec!["a".to_owned()], 2));

        let migration = stores.to_migrate("lamp", 100).unwrap();
        migration.table().set("b", b"2").unwrap();
        migration.commit(2).unwrap().confirm();
        assert_eq!(store(&stores).of_version(2).unwrap().keys("", None).unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_killed_migration_leaves_nothing_and_a_file_from_before_has_version_1() {
        let home = Home::new("killed");
        let stores = FeatureStores::open(&home.0).unwrap();
        store(&stores).set("a", b"1").unwrap();
        let file = home.0.join("store/lamp.sqlite");
        drop(stores);
        {
            let connection = Connection::open(&file).unwrap();
            connection.execute_batch("DROP TABLE data; CREATE TABLE previous (x)").unwrap();
        }
        let stores = FeatureStores::open(&home.0).unwrap();
        assert_eq!(stores.data_version("lamp").unwrap(), Some(1));
        let kept = store(&stores).with_open(|open| {
            open.connection
                .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'previous'", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(kept.unwrap(), 0);
    }
}
