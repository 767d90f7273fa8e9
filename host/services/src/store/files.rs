//! The files of stores: listing, deletion, and migration of those that older hosts named by short names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::store::{ServiceError, connect, damaged, misshapen, refusal};
use conductor_package::FeatureId;
use conductor_package::id::DataKey;

/// How long the host that serves has to close a store of a feature that was removed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is looked whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What SQLite keeps beside a file.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The file of one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// The store's name; see [`DataKey`].
    pub key: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its size, in bytes.
    pub bytes: u64,
}

impl StoreFile {
    /// Whether a feature with this id keeps, or kept, its data there.
    pub fn belongs_to(&self, id: &FeatureId) -> bool {
        let stem = id.file_stem();
        self.key == stem || self.key.strip_prefix(&stem).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Whether it is not of a feature that comes with the host.
    pub fn is_from_elsewhere(&self) -> bool {
        !self.key.starts_with("builtin_")
    }

    /// The last part of the id of the feature that owns it; `None` if its name is no feature's.
    pub fn feature_name(&self) -> Option<&str> {
        let mut parts = self.key.split('_');
        match parts.next()? {
            "plugin" => parts.nth(1),
            _ => parts.next(),
        }
    }
}

/// Every store in this home, in the order of names.
///
/// # Errors
/// The folder can't be read.
pub fn list(home: &Path) -> io::Result<Vec<StoreFile>> {
    let entries = match fs::read_dir(home.join("store")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(key) = name.to_str().and_then(|name| name.strip_suffix(".sqlite")) else { continue };
        if key.contains('_') && !key.contains('.') && entry.file_type()?.is_file() {
            files.push(StoreFile { key: key.to_owned(), path: entry.path(), bytes: entry.metadata()?.len() });
        }
    }
    files.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(files)
}

/// Deletes a store, once no process has it open any more.
///
/// # Errors
/// `Unavailable`: a host still has it open after five seconds. `Failed`: the system refused. Nothing is deleted
/// then.
pub fn remove(home: &Path, key: &str) -> Result<(), ServiceError> {
    let path = home.join("store").join(format!("{key}.sqlite"));
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    loop {
        match connect(&path) {
            Err(error) if !damaged(&error) && !misshapen(&error) && Instant::now() >= deadline => {
                return Err(refusal(key, &error));
            }
            Err(error) if !damaged(&error) && !misshapen(&error) => std::thread::sleep(POLL_INTERVAL),
            // The connection is closed with this.
            Ok(_) | Err(_) => break,
        }
    }
    let failed = |error: io::Error| ServiceError::Failed(format!("{}: {error}", path.display()));
    fs::remove_file(&path).map_err(failed)?;
    for beside in BESIDE {
        match fs::remove_file(with_suffix(&path, beside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Renames files that older hosts kept as `<source>-<name>.sqlite` for the features that own them: one that
/// comes with the host, or one of `installed` with just this id. A file without a known owner (a plugin's, or that
/// of a package that is not installed) becomes `<source>-<name>.unattributed.sqlite`, which no feature ever opens.
///
/// # Errors
/// The folder can't be read, or a file not be renamed. A file that another process has open is left for the next
/// time.
pub fn adopt(home: &Path, installed: &[(FeatureId, DataKey)]) -> io::Result<()> {
    let folder = home.join("store");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let Some(old) = name.to_str().and_then(|name| name.strip_suffix(".sqlite")) else { continue };
        let Some((source, feature)) = old.split_once('-').filter(|_| !old.contains(['_', '.'])) else { continue };
        if !matches!(source, "builtin" | "project" | "plugin") {
            continue;
        }
        let path = folder.join(format!("{old}.sqlite"));
        // Closing it puts what is in its log into the file.
        if let Err(error) = connect(&path)
            && !damaged(&error)
            && !misshapen(&error)
        {
            tracing::warn!("{}: can't be taken over yet: {error}", path.display());
            continue;
        }
        let id = FeatureId::try_from(format!("{source}:{feature}")).ok();
        let known = match id {
            Some(id) if id.is_builtin() => Some(DataKey::new(&id, None)),
            Some(id) => installed.iter().find(|(known, _)| *known == id).map(|(_, key)| key.clone()),
            None => None,
        };
        let new = known.map(|key| folder.join(format!("{}.sqlite", key.as_str()))).filter(|new| !new.exists());
        let new = new.unwrap_or_else(|| {
            let aside = folder.join(format!("{old}.unattributed.sqlite"));
            tracing::warn!(
                "the owner of the data in {} is unknown; no feature gets it. It is kept as {}",
                path.display(),
                aside.display()
            );
            aside
        });
        fs::rename(&path, &new)?;
        for beside in BESIDE {
            match fs::rename(with_suffix(&path, beside), with_suffix(&new, beside)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::FeatureStores;

    struct Home(PathBuf);

    impl Home {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("conductor-store-files-{test}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// Keeps a word in the store of this name.
        fn keep(&self, key: &str, word: &str) {
            FeatureStores::open(&self.0)
                .unwrap()
                .feature(key, 1000)
                .unwrap()
                .handle
                .set("word", word.as_bytes())
                .unwrap();
        }

        fn kept(&self, key: &str) -> Option<Vec<u8>> {
            FeatureStores::open(&self.0).unwrap().feature(key, 1000).unwrap().handle.get("word").unwrap()
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn id(text: &str) -> FeatureId {
        FeatureId::try_from(text.to_owned()).unwrap()
    }

    // FEA-19, FEA-22: data that can't be attributed is handed to no feature, now or later.
    #[test]
    fn data_of_older_hosts_goes_to_those_whose_it_is() {
        let home = Home::new("adopt");
        for old in ["builtin-work-items", "project-lamp", "project-gone", "plugin-notes"] {
            home.keep(old, old);
        }
        let key = DataKey::new(&id("project:lamp"), Some(&"a".repeat(64)));
        adopt(&home.0, &[(id("project:lamp"), key.clone())]).unwrap();
        assert_eq!(home.kept("builtin_work-items").as_deref(), Some(&b"builtin-work-items"[..]));
        assert_eq!(home.kept(key.as_str()).as_deref(), Some(&b"project-lamp"[..]));
        // A later feature of this name finds nothing.
        let late = [("project:gone", "b"), ("plugin:x:notes", "c")]
            .map(|(text, owner)| (id(text), DataKey::new(&id(text), Some(&owner.repeat(64)))));
        adopt(&home.0, &late).unwrap();
        for (_, key) in &late {
            assert_eq!(home.kept(key.as_str()), None);
        }
        assert!(home.0.join("store/project-gone.unattributed.sqlite").is_file());
        assert!(home.0.join("store/plugin-notes.unattributed.sqlite").is_file());
    }

    #[test]
    fn a_store_that_is_there_is_not_replaced_by_an_older_one() {
        let home = Home::new("both");
        home.keep("builtin_work-items", "new");
        home.keep("builtin-work-items", "old");
        adopt(&home.0, &[]).unwrap();
        assert_eq!(home.kept("builtin_work-items").as_deref(), Some(&b"new"[..]));
        assert!(home.0.join("store/builtin-work-items.unattributed.sqlite").is_file());
    }

    #[test]
    fn stores_are_listed_by_feature_and_deleted_when_they_are_closed() {
        let home = Home::new("remove");
        let keys = ["project_notes_aa", "plugin_ann_notes_bb", "project_notes-2_cc", "builtin_notes"];
        for key in keys {
            home.keep(key, key);
        }
        let files = list(&home.0).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.feature_name().unwrap()).collect();
        assert_eq!(names, ["notes", "notes", "notes-2", "notes"]);
        let of = |text: &str| files.iter().filter(|file| file.belongs_to(&id(text))).count();
        assert_eq!(
            (of("project:notes"), of("project:notes-2"), of("plugin:ann:notes"), of("plugin:x:notes")),
            (1, 1, 1, 0)
        );
        let stores = FeatureStores::open(&home.0).unwrap();
        let open = stores.feature("project_notes_aa", 1000).unwrap();
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| remove(&home.0, "project_notes_aa"));
            drop(open);
            removal.join().unwrap().unwrap();
        });
        assert_eq!(list(&home.0).unwrap().len(), 3);
        assert_eq!(home.kept("project_notes_aa"), None);
    }
}
