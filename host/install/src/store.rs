//! The package store: the folder `<home>/features`, which holds what is installed.
//!
//! `installed.toml` is the truth, as a lockfile is: each feature with its version, digest and grants. Packages lie in
//! `blobs/<sha256>.wasm`, and are hashed whenever they are read. A change is made under a lock, and the file is replaced as
//! a whole: a process that is killed in the middle leaves the set as it was before, or as it is after. What such a one
//! leaves lying about is swept away when the store is opened next.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::receipt::{FeatureInstallReport, What};
use crate::sha256;
use crate::signature::PublicKey;
use crate::source::Origin;
use conductor_audit::caller::Caller;
use conductor_audit::{AuditError, Chain, Entry, Kind, Outcome};
use conductor_package::capability::CapabilityRequest;
use conductor_package::consent;
use conductor_package::file::MAX_PACKAGE;
use conductor_package::id::DataKey;
use conductor_package::{Contributions, FeatureId};
use conductor_stdx::atomic_file::replace;
use conductor_stdx::plain_file;

/// The layout of `installed.toml` that this version writes, the newest one that it knows.
pub const LAYOUT: u32 = 2;

/// The oldest layout that is read. It had neither `owner` nor `replaces_bundled`.
const OLDEST_LAYOUT: u32 = 1;

/// The largest `installed.toml` that is read, in bytes (16 MiB).
const MAX_STATE: u64 = 16 * 1024 * 1024;

/// How many receipts are kept.
pub const MAX_RECEIPTS: usize = 200;

/// Everything that is installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    layout: u32,
    /// By name, the last part of the id.
    #[serde(default)]
    pub features: BTreeMap<String, InstalledFeature>,
}

impl Default for Installed {
    fn default() -> Self {
        Self { layout: LAYOUT, features: BTreeMap::new() }
    }
}

/// One installed feature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledFeature {
    /// Its source-qualified id.
    pub id: FeatureId,
    /// Whether hosts load it.
    pub enabled: bool,
    /// The package that is in use.
    pub current: Release,
    /// The one that was in use before, to go back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Release>,
    /// Whether a person said that it takes the place of the feature that comes with the host under its name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_bundled: bool,
    /// The contributions that a person refused, of whatever package is in use.
    #[serde(default, skip_serializing_if = "Contributions::is_empty")]
    pub refused: Contributions,
}

impl InstalledFeature {
    /// Who owns its data beside its id; `None` if it comes with the host.
    pub fn owner(&self) -> Option<String> {
        (!self.id.is_builtin()).then(|| self.current.owner().to_owned())
    }

    /// Under what its data is kept.
    pub fn data(&self) -> DataKey {
        DataKey::new(&self.id, self.owner().as_deref())
    }
}

/// One package of a feature, with what a person decided about just these bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The author's version.
    pub version: String,
    /// SHA-256 of the package, lower-case hex.
    pub digest: String,
    /// Milliseconds since 1970.
    pub installed_at: u64,
    /// Whose signatures it carries, trusted or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signers: Vec<PublicKey>,
    /// Where it came from.
    pub origin: Origin,
    /// What it may use: each request as far as it was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<CapabilityRequest>,
    /// Whom its data belongs to: the public key of the trusted signer, or the digest of the package that was
    /// installed first and upgraded to this one. `None` in sets of layout 1; see [`owner`](Self::owner).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl Release {
    /// Whom its data belongs to, in hex.
    pub fn owner(&self) -> &str {
        self.owner.as_deref().unwrap_or(&self.digest)
    }
}

/// Why the store can't be used, or what is wrong in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A change has to be on record before it is made, and can't be.
    #[error(transparent)]
    Unrecorded(#[from] AuditError),
    /// The system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{}: is not understood: {message}", path.display())]
    State {
        /// `installed.toml`.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A newer Conductor wrote it.
    #[error("{}: has layout {found}, and this version of conductor knows up to {LAYOUT}; use the newer one", path.display())]
    Layout {
        /// `installed.toml`.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// The bytes are not those that were installed.
    #[error("{}: was altered: its digest is sha256:{found}, not the one in its name; install it anew", path.display())]
    Altered {
        /// The package.
        path: PathBuf,
        /// The digest of the bytes that are there.
        found: String,
    },
}

fn at(path: &Path) -> impl Fn(io::Error) -> StoreError + '_ {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

/// The store of one home.
#[derive(Debug, Clone)]
pub struct PackageStore {
    folder: PathBuf,
    audit: Chain,
    who: Caller,
}

impl PackageStore {
    /// The store below `home`, for reading. Nothing is made or swept.
    pub fn at(home: &Path) -> Self {
        Self { folder: home.join("features"), audit: Chain::at(home), who: Caller::cli() }
    }

    /// The store below `home`, for changing: makes its folders, and sweeps away what a killed
    /// process left behind.
    ///
    /// # Errors
    /// A folder can't be made, or the set can't be read.
    pub fn open(home: &Path) -> Result<Self, StoreError> {
        let store = Self::at(home);
        for folder in [store.blobs(), store.receipts()] {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&folder).map_err(at(&folder))?;
        }
        let _lock = store.lock()?;
        store.sweep(&store.installed()?)?;
        Ok(store)
    }

    /// The same on behalf of another caller than the command line, whom the audit names.
    #[must_use]
    pub fn by(mut self, who: Caller) -> Self {
        self.who = who;
        self
    }

    /// `installed.toml`, which changes whenever the set does.
    pub fn state_file(&self) -> PathBuf {
        self.folder.join("installed.toml")
    }

    /// Where a package of this digest lies.
    pub fn blob(&self, digest: &str) -> PathBuf {
        self.blobs().join(format!("{digest}.wasm"))
    }

    /// The folder of the receipts.
    pub fn receipts(&self) -> PathBuf {
        self.folder.join("receipts")
    }

    fn blobs(&self) -> PathBuf {
        self.folder.join("blobs")
    }

    /// Everything that is installed. Nothing is where there is no store.
    ///
    /// # Errors
    /// The file can't be read or understood.
    pub fn installed(&self) -> Result<Installed, StoreError> {
        let path = self.state_file();
        let text = match plain_file::read_text(&path, MAX_STATE) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Installed::default()),
            Err(error) => return Err(at(&path)(error)),
        };
        #[derive(Deserialize)]
        struct Header {
            layout: u32,
        }
        let wrong = |error: toml::de::Error| StoreError::State { path: path.clone(), message: error.to_string() };
        let Header { layout } = toml::from_str(&text).map_err(wrong)?;
        if !(OLDEST_LAYOUT..=LAYOUT).contains(&layout) {
            return Err(StoreError::Layout { path, found: layout });
        }
        let installed: Installed = toml::from_str(&text).map_err(wrong)?;
        Ok(Installed { layout: LAYOUT, ..installed })
    }

    /// The bytes of a package, which are just those that were installed.
    ///
    /// # Errors
    /// They can't be read, or were altered.
    pub fn read(&self, digest: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.blob(digest);
        let bytes = plain_file::read(&path, MAX_PACKAGE).map_err(at(&path))?;
        let found = sha256(&bytes);
        if found == digest { Ok(bytes) } else { Err(StoreError::Altered { path, found }) }
    }

    /// Puts a package there without installing it, and says where. It stays until the store is
    /// opened next, or for good once it is installed.
    ///
    /// # Errors
    /// It can't be written.
    pub fn stage(&self, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let _lock = self.lock()?;
        self.put(bytes)
    }

    fn put(&self, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let digest = sha256(bytes);
        let path = self.blob(&digest);
        // One that was altered is mended.
        if self.read(&digest).is_err() {
            replace(&path, bytes).map_err(at(&path))?;
        }
        Ok(path)
    }

    /// The last receipts, oldest first: one for each change of the set. One that can't be understood is left out.
    ///
    /// # Errors
    /// They can't be listed.
    pub fn read_receipts(&self) -> Result<Vec<FeatureInstallReport>, StoreError> {
        let folder = self.receipts();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut paths = files(&folder)?;
        paths.sort();
        let receipt = |path: &PathBuf| {
            let read = plain_file::read(path, MAX_STATE).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if read.is_none() {
                tracing::warn!("{}: is no receipt", path.display());
            }
            read
        };
        let is_receipt = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "json");
        Ok(paths.iter().filter(is_receipt).filter_map(receipt).collect())
    }

    /// Changes the set atomically, under an exclusive lock. If `change` returns an error,
    /// nothing changes. `package` is put there first, if the change needs one. The audit log has
    /// the intent before the change, and the outcome after it.
    ///
    /// # Errors
    /// Those of `change`, and what the system refuses.
    pub fn change<E: From<StoreError> + std::fmt::Display>(
        &self,
        package: Option<&[u8]>,
        change: impl FnOnce(&mut Installed) -> Result<FeatureInstallReport, E>,
    ) -> Result<FeatureInstallReport, E> {
        let _lock = self.lock()?;
        let mut installed = self.installed()?;
        let report = change(&mut installed).inspect_err(|error| {
            self.record(Entry::new(Kind::Package, "change", &self.who, "").refused(error));
        })?;
        let entry = self.entry(&report);
        self.audit.append(&[entry.clone().outcome(Outcome::Begun)]).map_err(StoreError::from)?;
        let changed = package.map_or(Ok(()), |bytes| self.put(bytes).map(drop)).and_then(|()| {
            let path = self.state_file();
            let text = toml::to_string(&installed)
                .map_err(|error| StoreError::State { path: path.clone(), message: error.to_string() })?;
            replace(&path, text.as_bytes()).map_err(at(&path))
        });
        self.record(match &changed {
            Ok(()) => entry,
            Err(error) => entry.failed(error),
        });
        changed?;
        // The set has changed: what goes wrong now must not say that it has not.
        if let Err(error) = self.write_receipt(&report).and_then(|()| self.sweep(&installed)) {
            tracing::warn!("{error}");
        }
        Ok(report)
    }

    fn entry(&self, report: &FeatureInstallReport) -> Entry {
        let kind = if matches!(report.what, What::Grant | What::Revoke) { Kind::Grant } else { Kind::Package };
        let granted: Vec<String> = report.granted.iter().map(consent::line).collect();
        Entry::new(kind, report.what.word(), &self.who, report.id.as_str())
            .with("version", report.version.as_str())
            .with("digest", report.digest.as_str())
            .with("source", report.source.to_string())
            .with("granted", granted.join(", "))
    }

    /// Puts on record what can't be helped any more.
    fn record(&self, entry: Entry) {
        if let Err(error) = self.audit.append(&[entry]) {
            tracing::warn!("{error}");
        }
    }

    fn write_receipt(&self, report: &FeatureInstallReport) -> Result<(), StoreError> {
        let folder = self.receipts();
        let mut at_ms = report.at;
        let path = loop {
            let path = folder.join(format!("{at_ms:013}-{}-{}.json", report.feature, report.what.word()));
            if !path.exists() {
                break path;
            }
            at_ms += 1;
        };
        let text = serde_json::to_vec_pretty(report).map_err(|error| at(&path)(error.into()))?;
        replace(&path, &text).map_err(at(&path))
    }

    /// Removes temporary files, packages that nothing refers to, and all but the last receipts.
    fn sweep(&self, installed: &Installed) -> Result<(), StoreError> {
        let mut wanted: Vec<PathBuf> = Vec::new();
        for feature in installed.features.values() {
            wanted.push(self.blob(&feature.current.digest));
            wanted.extend(feature.previous.iter().map(|release| self.blob(&release.digest)));
        }
        let is_temporary = |path: &Path| path.extension().is_some_and(|extension| extension == "tmp");
        for path in files(&self.folder)?.into_iter().filter(|path| is_temporary(path)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        for path in files(&self.blobs())?.into_iter().filter(|path| !wanted.contains(path)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        let (temporary, mut receipts): (Vec<_>, Vec<_>) =
            files(&self.receipts())?.into_iter().partition(|path| is_temporary(path));
        receipts.sort();
        let old = receipts.len().saturating_sub(MAX_RECEIPTS);
        for path in receipts.drain(..old).chain(temporary) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        Ok(())
    }

    /// Waits for the exclusive lock on the set. The system releases it when this process ends,
    /// even if it is killed.
    fn lock(&self) -> Result<File, StoreError> {
        let path = self.folder.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
        file.lock().map_err(at(&path))?;
        Ok(file)
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let entries = entries.collect::<io::Result<Vec<_>>>().map_err(at(folder))?;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|e| e.path())
        .collect())
}
