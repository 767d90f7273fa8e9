//! Installing skills: from any source into a folder of the search path, and out of it again.
//!
//! A skill is checked as a whole in memory, written beside its place and put there by one rename, so that an agent finds
//! the old one or the new one. No file of it is executable. What was installed where, from where and with which digest is
//! on record in the home, so that removing takes away only what was installed and was not changed since. The audit has
//! what is about to be done before it is, and what came of it.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::archive::Files;
use crate::library::HOME_FOLDER;
use crate::problem::{Problem, RejectedSkill, Severity};
use crate::skill::{ReadError, Skill};
use conductor_audit::caller::Caller;
use conductor_audit::{self as audit, AuditError, Chain, Entry, Kind};
use conductor_stdx::{atomic_file, plain_file};

/// The record of what was installed, in the folder of skills of the home.
const RECORD: &str = ".installed.json";
/// What is locked while the record is changed.
const LOCK: &str = ".installed.lock";
/// Bytes of the record.
const MAX_RECORD: u64 = 1024 * 1024;

/// A skill that may be installed.
#[derive(Debug)]
pub struct Prepared {
    skill: Skill,
    files: Files,
    origin: String,
}

/// One skill on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The folder, absolute.
    pub folder: PathBuf,
    /// Where it came from; with the commit, where that is a repository.
    pub origin: String,
    /// [`Skill::digest`] of what was written.
    pub digest: String,
}

/// What installing has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was installed.
    Installed,
    /// It replaced another version.
    Replaced,
    /// The same version was installed already.
    Unchanged,
}

/// Why nothing was installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// It is no skill.
    #[error("it is no skill that can be installed: {0}")]
    Refused(#[from] RejectedSkill),
    /// One of its files can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Another skill has this name.
    #[error("{} already exists, and is another skill; --replace puts this in its place", .0.display())]
    Exists(PathBuf),
    /// It does not exist.
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    /// It was put there by someone else.
    #[error("{} was not installed by `conductor skills install`; --force removes it all the same", .0.display())]
    NotInstalled(PathBuf),
    /// It was changed.
    #[error("{} was changed since it was installed; --force removes it with the changes", .0.display())]
    Changed(PathBuf),
    /// It can't be recorded in the audit log.
    #[error("it can't be recorded in the audit log, so nothing was done: {0}")]
    Audit(#[from] AuditError),
    /// The record of installed skills is invalid.
    #[error("{}: is no record of installed skills: {message}", file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// Why.
        message: String,
    },
    /// The system.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Prepared {
    /// The skill that these files are. Its folder was called `folder`; without one, it gets the name that it says.
    ///
    /// # Errors
    /// [`InstallError::Refused`], also for what is only against the specification: others would not load it.
    pub fn new(folder: Option<&str>, files: Files, origin: String) -> Result<Self, InstallError> {
        let skill = match folder {
            Some(folder) => Skill::from_files(folder, files.clone())?,
            // The name that it says is what it is compared with.
            None => Skill::from_files("", files.clone()).or_else(|refused| match said(&refused) {
                Some(name) => Skill::from_files(&name, files.clone()),
                None => Err(refused),
            })?,
        };
        if skill.findings.iter().any(|finding| finding.severity() > Severity::Advice) {
            return Err(RejectedSkill { name: skill.name, problems: skill.findings }.into());
        }
        Ok(Self { skill, files, origin })
    }

    /// The skill in a folder.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`InstallError::Read`].
    pub fn of_folder(folder: &Path) -> Result<Self, InstallError> {
        let folder = folder.canonicalize().map_err(|source| InstallError::Io { path: folder.to_owned(), source })?;
        let skill = Skill::load(&folder)?;
        let origin = folder.display().to_string();
        Self::of_skill(&skill, origin)
    }

    /// A skill that was loaded.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`InstallError::Read`].
    pub fn of_skill(skill: &Skill, origin: String) -> Result<Self, InstallError> {
        let mut files = vec![("SKILL.md".to_owned(), skill.text().as_bytes().to_vec().into())];
        for file in skill.resources() {
            files.push((file.path.clone(), skill.bytes(&file.path)?.into()));
        }
        Self::new(Some(&skill.name), files, origin)
    }

    /// The skill.
    pub fn skill(&self) -> &Skill {
        &self.skill
    }

    /// Where it is from.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Writes the skill into the folder `into`, as a folder of its name; in place of another one only with `replace`. The
    /// record and the audit are those of `home`; `who` is who has asked for it.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing has changed then.
    pub fn install(
        &self,
        home: &Path,
        into: &Path,
        replace: bool,
        who: &Caller,
    ) -> Result<(PathBuf, Outcome), InstallError> {
        let what = if replace { "replace" } else { "install" };
        let audited = Audited::new(home, what, who, &self.skill.name, into);
        let audited = audited.with("source", &self.origin).with("digest", &format!("sha256:{}", self.skill.digest()));
        let done = self.put(home, into, replace, &audited);
        audited.end(done)
    }

    fn put(
        &self,
        home: &Path,
        into: &Path,
        replace: bool,
        audited: &Audited,
    ) -> Result<(PathBuf, Outcome), InstallError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| InstallError::Io { path, source }
        };
        fs::create_dir_all(into).map_err(at(into))?;
        let into = into.canonicalize().map_err(at(into))?;
        let target = into.join(&self.skill.name);
        let record = Record::lock(home)?;
        let is_there = target.symlink_metadata().is_ok();
        if is_there {
            let same =
                !target.is_symlink() && Skill::load(&target).is_ok_and(|old| old.digest() == self.skill.digest());
            if same {
                return Ok((target, Outcome::Unchanged));
            }
            if !replace {
                return Err(InstallError::Exists(target));
            }
        }
        audited.begin()?;
        let staged = tempfile::Builder::new().prefix(".new-").tempdir_in(&into).map_err(at(&into))?;
        let folder = staged.path().join("skill");
        for (path, bytes) in &self.files {
            let file = folder.join(path);
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent).map_err(at(parent))?;
            }
            fs::write(&file, bytes).map_err(at(&file))?;
        }
        if is_there {
            // It goes away with the folder that is staged in.
            fs::rename(&target, staged.path().join("old")).map_err(at(&target))?;
        }
        if let Err(source) = fs::rename(&folder, &target) {
            if is_there {
                let _ = fs::rename(staged.path().join("old"), &target);
            }
            return Err(InstallError::Io { path: target, source });
        }
        let receipt = Receipt { folder: target.clone(), origin: self.origin.clone(), digest: self.skill.digest() };
        record.change(|receipts| {
            receipts.retain(|one| one.folder != target);
            receipts.push(receipt);
        })?;
        Ok((target, if is_there { Outcome::Replaced } else { Outcome::Installed }))
    }
}

/// The name that a skill says, of one that is refused only since it is not in a folder of that name.
fn said(refused: &RejectedSkill) -> Option<String> {
    refused.problems.iter().find_map(|problem| match problem {
        Problem::NameIsNotFolder { name, .. } => Some(name.clone()),
        _ => None,
    })
}

/// Removes the skill `name` from the folder `from`, as `who` has asked for. With `force` also one that is not on record, or
/// was changed.
///
/// # Errors
/// See [`InstallError`]; nothing has changed then.
pub fn remove(home: &Path, from: &Path, name: &str, force: bool, who: &Caller) -> Result<PathBuf, InstallError> {
    let audited = Audited::new(home, "remove", who, name, from);
    let done = take_away(home, from, name, force, &audited);
    audited.end(done)
}

fn take_away(home: &Path, from: &Path, name: &str, force: bool, audited: &Audited) -> Result<PathBuf, InstallError> {
    let missing = || InstallError::Missing(from.join(name));
    if crate::problem::check_name(name).is_err() {
        return Err(missing());
    }
    let target = from.canonicalize().map_err(|_| missing())?.join(name);
    let metadata = target.symlink_metadata().map_err(|_| missing())?;
    let record = Record::lock(home)?;
    let known = receipts(home)?.into_iter().find(|receipt| receipt.folder == target);
    if !force {
        let known = known.ok_or_else(|| InstallError::NotInstalled(target.clone()))?;
        let same = !metadata.is_symlink() && Skill::load(&target).is_ok_and(|skill| skill.digest() == known.digest);
        if !same {
            return Err(InstallError::Changed(target));
        }
    }
    audited.begin()?;
    // A link goes, not what it leads to.
    let removed = if metadata.is_dir() { fs::remove_dir_all(&target) } else { fs::remove_file(&target) };
    removed.map_err(|source| InstallError::Io { path: target.clone(), source })?;
    record.change(|receipts| receipts.retain(|one| one.folder != target))?;
    Ok(target)
}

/// What the audit gets to know of a change.
struct Audited {
    chain: Chain,
    entry: Entry,
    has_begun: Cell<bool>,
}

impl Audited {
    fn new(home: &Path, what: &str, who: &Caller, skill: &str, folder: &Path) -> Self {
        let entry = Entry::new(Kind::Skill, what, who, skill).with("folder", folder.display().to_string());
        Self { chain: Chain::at(home), entry, has_begun: Cell::new(false) }
    }

    fn with(mut self, key: &str, value: &str) -> Self {
        self.entry = self.entry.with(key, value);
        self
    }

    /// Puts on record that something is about to change.
    fn begin(&self) -> Result<(), InstallError> {
        self.chain.append(&[self.entry.clone().outcome(audit::Outcome::Begun)])?;
        self.has_begun.set(true);
        Ok(())
    }

    /// Puts on record what came of it. What changes nothing, since it is as it was asked for, is left out.
    fn end<T>(self, done: Result<T, InstallError>) -> Result<T, InstallError> {
        let entry = match (&done, self.has_begun.get()) {
            (Ok(_), true) => self.entry,
            (Err(error), true) => self.entry.failed(error),
            (Err(error), false) => self.entry.refused(error),
            (Ok(_), false) => return done,
        };
        // What was done can't be helped any more.
        if let Err(error) = self.chain.append(&[entry]) {
            tracing::warn!("{error}");
        }
        done
    }
}

/// What is on record in a home.
///
/// # Errors
/// [`InstallError::Record`], [`InstallError::Io`].
pub fn receipts(home: &Path) -> Result<Vec<Receipt>, InstallError> {
    let file = home.join(HOME_FOLDER).join(RECORD);
    match plain_file::read(&file, MAX_RECORD) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| InstallError::Record { file: file.clone(), message: error.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(InstallError::Io { path: file, source }),
    }
}

/// The record, locked.
struct Record<'h> {
    home: &'h Path,
    _lock: File,
}

impl<'h> Record<'h> {
    fn lock(home: &'h Path) -> Result<Self, InstallError> {
        let folder = home.join(HOME_FOLDER);
        let path = folder.join(LOCK);
        let locked = fs::create_dir_all(&folder).and_then(|()| {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            file.lock().map(|()| file)
        });
        locked.map(|lock| Self { home, _lock: lock }).map_err(|source| InstallError::Io { path, source })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Receipt>)) -> Result<(), InstallError> {
        let mut all = receipts(self.home)?;
        change(&mut all);
        let file = self.home.join(HOME_FOLDER).join(RECORD);
        let text = serde_json::to_string_pretty(&all)
            .map_err(|error| InstallError::Record { file: file.clone(), message: error.to_string() })?;
        atomic_file::replace(&file, text.as_bytes()).map_err(|source| InstallError::Io { path: file, source })
    }
}

#[cfg(test)]
mod tests;
