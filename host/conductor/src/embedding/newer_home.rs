//! Homes that a newer version was used in: a host that went on in one would leave out what it can't read.

use std::fmt;
use std::path::{Path, PathBuf};

use conductor_install::store::{self, PackageStore, StoreError};
use rusqlite::{Connection, OpenFlags};

/// Each record that is one SQLite file, and its newest layout that is known. What features store is theirs: a store of
/// a newer layout is refused to its feature alone.
const RECORDS: [(&str, i64); 3] = [
    ("audit.sqlite", conductor_audit::chain::LAYOUT),
    ("conversations.sqlite", conductor_chat::store::LAYOUT as i64),
    ("plans.sqlite", conductor_host::control::plan::store::LAYOUT),
];

/// A home that a newer version was used in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerHome {
    /// The home.
    pub home: PathBuf,
    /// What only a newer version can read; at least one.
    pub records: Vec<NewerRecord>,
}

/// A file of a home that only a newer version can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerRecord {
    /// Its path within the home.
    pub file: String,
    /// The layout that it has.
    pub found: i64,
    /// The newest layout that this version knows.
    pub known: i64,
}

impl std::error::Error for NewerHome {}

impl fmt::Display for NewerHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: a newer version of conductor was used in this home:", self.home.display())?;
        for (nth, NewerRecord { file, found, known }) in self.records.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma} {file} has layout {found} (this version knows up to {known})")?;
        }
        write!(f, ". Nothing was changed. Start the newer version, or use another home")
    }
}

/// Rejects a home if a newer version left a record there that this one can't read. What can't be read for another
/// reason is left to those who keep it.
pub(super) fn check(home: &Path) -> Result<(), NewerHome> {
    let in_files = RECORDS.iter().filter_map(|(file, known)| {
        let found = layout(&home.join(file))?;
        (found > *known).then(|| NewerRecord { file: (*file).to_owned(), found, known: *known })
    });
    let records: Vec<_> = in_files.chain(installed(home)).collect();
    if records.is_empty() { Ok(()) } else { Err(NewerHome { home: home.to_owned(), records }) }
}

/// The layout of a record; `None` if there is none, or it can't be read.
fn layout(file: &Path) -> Option<i64> {
    // Not for reading alone: then what SQLite makes beside the file would stay there.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let record = Connection::open_with_flags(file, flags).ok()?;
    record.pragma_query_value(None, "user_version", |row| row.get(0)).ok()
}

/// What is installed, if only a newer version can read it.
fn installed(home: &Path) -> Option<NewerRecord> {
    match PackageStore::at(home).installed() {
        Err(StoreError::Layout { found, .. }) if found > store::LAYOUT => Some(NewerRecord {
            file: "features/installed.toml".to_owned(),
            found: found.into(),
            known: store::LAYOUT.into(),
        }),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::*;

    /// A home whose record says that it has this layout.
    fn with(file: &str, layout: i64) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        let record = Connection::open(home.path().join(file)).unwrap();
        record.pragma_update(None, "user_version", layout).unwrap();
        home
    }

    #[test]
    fn a_record_of_this_version_or_an_older_one_is_no_reason() {
        assert_eq!(check(tempfile::tempdir().unwrap().path()), Ok(()), "an empty home");
        for (file, known) in RECORDS {
            for layout in [0, 1, known] {
                assert_eq!(check(with(file, layout).path()), Ok(()), "{file}, {layout}");
            }
        }
    }

    #[test]
    fn a_newer_record_is_named_and_left_as_it_is() {
        for (file, known) in RECORDS {
            let home = with(file, known + 1);
            let before = std::fs::read(home.path().join(file)).unwrap();
            let newer = check(home.path()).unwrap_err();
            assert_eq!(newer.records, [NewerRecord { file: file.to_owned(), found: known + 1, known }]);
            assert_eq!(std::fs::read(home.path().join(file)).unwrap(), before);
            assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside {file}");
        }
    }

    #[test]
    fn what_a_newer_version_installed_is_named() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("features")).unwrap();
        let set =
            |layout: u32| std::fs::write(home.path().join("features/installed.toml"), format!("layout = {layout}\n"));
        set(store::LAYOUT + 1).unwrap();
        let said = check(home.path()).unwrap_err().to_string();
        assert!(said.contains("features/installed.toml has layout 3 (this version knows up to 2)"), "{said}");
        set(0).unwrap();
        assert_eq!(check(home.path()), Ok(()), "that is damage, which has its own message");
    }

    #[test]
    fn what_is_no_record_is_left_to_its_reader() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("plans.sqlite"), "no database").unwrap();
        std::fs::create_dir(home.path().join("audit.sqlite")).unwrap();
        assert_eq!(check(home.path()), Ok(()));
    }
}
