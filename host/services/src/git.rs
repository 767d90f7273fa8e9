//! Read-only access to a git repository at one commit, confined to its folder.
//!
//! The granted folder has to hold the whole repository: one whose objects or references lie elsewhere, by a
//! link, a file in `.git`'s place or a list of alternates, is not opened. Of the machine's own settings for git
//! none are read, and of the repository's none that could start anything. What is in it may be hostile: sizes
//! are looked at before anything is unpacked, and unpacking has a limit of its own.

use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice as _;
use gix::hash::Prefix;
use gix::object::Kind as ObjectKind;
use gix::objs::tree::EntryKind;
use gix::{ObjectId, ThreadSafeRepository};

use crate::error::{ServiceError, shown};
use crate::files::{MAX_FILE, MAX_NAMES, MAX_PATH};
use conductor_stdx::plain_file;

/// Bytes of one commit, tag or folder that are read (4 MiB).
const MAX_OBJECT: u64 = 4 * 1024 * 1024;
/// Bytes that unpacking one object may take at once, its ancestors in the pack too (32 MiB). Under this name
/// `gix` reads it from its configuration.
const UNPACKING: &str = "gitoxide.objects.allocLimit=33554432";
/// The longest revision, in bytes: that of a reference's name.
const MAX_REVISION: usize = 255;
/// Bytes of a reference, and of a file of settings (1 MiB).
const MAX_SMALL_FILE: u64 = 1024 * 1024;
/// Bytes of the list of packed references (64 MiB).
const MAX_PACKED_REFS: u64 = 64 * 1024 * 1024;
/// References that are not packed, packs, and the folders that they are in.
const MAX_FILES: usize = 10_000;
/// Tags that lead to tags.
const MAX_TAGS: usize = 8;
/// Commits that a revision goes back, from the one that it names.
const MAX_STEPS: usize = 100;

/// What a name in a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Module,
}

/// A name in a folder of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name alone.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// In bytes; 0 for folders and modules.
    pub size: u64,
}

/// A granted repository.
#[derive(Debug, Clone)]
pub struct Repository {
    opened: ThreadSafeRepository,
}

/// One commit of it.
#[derive(Debug)]
pub struct Snapshot {
    opened: ThreadSafeRepository,
    commit: ObjectId,
    top: ObjectId,
}

impl Repository {
    /// Opens the repository in a folder of this machine.
    ///
    /// # Errors
    /// `Unavailable` when there is none, or when parts of it lie outside of the folder.
    pub fn open(path: &Path) -> Result<Self, ServiceError> {
        let none = |why: &str| ServiceError::Unavailable(format!("{}: {why}", path.display()));
        let outside = || none("parts of this repository lie outside of the granted folder");
        if !path.is_dir() {
            return Err(none("the granted folder is not there"));
        }
        // As the library looks for it: below the folder, or the folder itself. All that leads elsewhere is found before
        // the library follows it.
        let inner = path.join(".git");
        let git = if inner.exists() { &inner } else { path };
        if !git.is_dir() || !is_within(git, path) {
            return Err(outside());
        }
        plain_files(git)?;
        if ["commondir", "objects/info/alternates"].iter().any(|lead| git.join(lead).exists()) {
            return Err(outside());
        }
        let options = gix::open::Options::isolated().config_overrides([UNPACKING]);
        let opened = options.open(path).map_err(|_| none("the granted folder holds no git repository"))?;
        let local = opened.to_thread_local();
        let objects = local.common_dir().join("objects");
        let whole = [local.git_dir(), local.common_dir(), &objects].into_iter().all(|part| is_within(part, path));
        if !whole {
            return Err(outside());
        }
        Ok(Self { opened })
    }

    /// The commit that a revision means now: `HEAD` or `@`, a branch, a tag, or the first digits of a commit, at least four.
    /// After it, as often as wanted, up to 100 commits back: `~N`, N commits back along the first parents, and `^N`, the parent
    /// of that number; without N it is 1, and `^0` is the commit itself. Nothing else of git's syntax is read.
    ///
    /// # Errors
    /// - `Invalid`: not a revision, or not one of a commit.
    /// - `Unavailable`: it is not there, or its digits begin more than one object.
    /// - `Exhausted`: it is larger than what is read.
    pub fn at(&self, revision: &str) -> Result<Snapshot, ServiceError> {
        let repository = self.opened.to_thread_local();
        // What was there when it was opened may have been replaced.
        plain_files(repository.common_dir())?;
        let (name, parents) = parsed(revision)?;
        let mut here = commit(&repository, resolve(&repository, name)?, revision)?;
        for number in parents {
            let parent = here.parent_ids().nth(number - 1).map(gix::Id::detach);
            let parent = parent.ok_or_else(|| {
                let (so_far, which) = (here.id, if number == 1 { String::new() } else { format!(" {number}") });
                ServiceError::Unavailable(format!("{}: the commit {so_far} has no parent{which}", shown(revision)))
            })?;
            here = commit(&repository, parent, revision)?;
        }
        let top = here.tree_id().map_err(|_| damaged(revision))?.detach();
        Ok(Snapshot { opened: self.opened.clone(), commit: here.id, top })
    }
}

impl Snapshot {
    /// The commit's 40 hexadecimal digits.
    pub fn commit(&self) -> String {
        self.commit.to_string()
    }

    /// The whole file, at most 4 MiB; of a symbolic link, where it points to.
    ///
    /// # Errors
    /// - `Invalid`: not a path, or not a file.
    /// - `Unavailable`: it is not there.
    /// - `Exhausted`: it has more than 4 MiB.
    /// - `Failed`: the repository is damaged.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, ServiceError> {
        let repository = self.opened.to_thread_local();
        match self.find(&repository, path)? {
            (Kind::File | Kind::Link, id) => {
                let file = object(&repository, id, MAX_FILE as u64, path)?;
                if file.kind == ObjectKind::Blob { Ok(file.detach().data) } else { Err(damaged(path)) }
            }
            (Kind::Folder | Kind::Module, _) => Err(ServiceError::Invalid(format!("{}: is not a file", shown(path)))),
        }
    }

    /// What is in a folder, in the order of the names' bytes; `.` is the top. Where there are more than 1000
    /// names, the first 1000. Git allows what file systems do not: control characters and backslashes. What is no name in
    /// a path (not UTF-8, `..`, with `/`) is listed with U+0000 before it, which no name has, and can't be read.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn names(&self, path: &str) -> Result<Vec<Entry>, ServiceError> {
        let repository = self.opened.to_thread_local();
        let folder = match path {
            "." => self.top,
            _ => match self.find(&repository, path)? {
                (Kind::Folder, id) => id,
                _ => return Err(ServiceError::Invalid(format!("{}: is not a folder", shown(path)))),
            },
        };
        let data = object(&repository, folder, MAX_OBJECT, path)?;
        let mut entries = Vec::new();
        for entry in names_in(&data, path)? {
            // Nothing is passed over: a reviewer of a commit would not miss what is not listed.
            let name = match entry.0.to_str() {
                Ok(name) if is_name(name) => name.to_owned(),
                _ => format!("\0{}", entry.0.to_str_lossy()),
            };
            let size = match entry.1 {
                Kind::File | Kind::Link => repository.find_header(entry.2).map_err(|_| damaged(path))?.size(),
                Kind::Folder | Kind::Module => 0,
            };
            entries.push(Entry { name, kind: entry.1, size });
        }
        // A commit has folders in the order of their names with a slash behind.
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        entries.truncate(MAX_NAMES);
        Ok(entries)
    }

    fn find(&self, repository: &gix::Repository, path: &str) -> Result<(Kind, ObjectId), ServiceError> {
        check(path)?;
        let mut here = (Kind::Folder, self.top);
        for name in path.split('/') {
            if here.0 != Kind::Folder {
                return Err(ServiceError::Unavailable(format!("{}: is not there in this commit", shown(path))));
            }
            let data = object(repository, here.1, MAX_OBJECT, path)?;
            let found = names_in(&data, path)?.into_iter().find(|entry| entry.0 == name.as_bytes());
            let (_, kind, id) = found
                .ok_or_else(|| ServiceError::Unavailable(format!("{}: is not there in this commit", shown(path))))?;
            here = (kind, id);
        }
        Ok(here)
    }
}

/// The name that a revision begins with, and the numbers of the parents, from 1, by which it goes back from there.
fn parsed(revision: &str) -> Result<(&str, Vec<usize>), ServiceError> {
    let wrong = |why: &str| ServiceError::Invalid(format!("{}: {why}", shown(revision)));
    let syntax = "a revision is HEAD, a branch, a tag or the digits of a commit, and then ~N or ^N as in HEAD~1";
    if revision.len() > MAX_REVISION || revision.contains(char::is_control) {
        return Err(wrong(syntax));
    }
    // No name of a reference has these characters.
    let (name, mut rest) = revision.split_at(revision.find(['~', '^']).unwrap_or(revision.len()));
    let mut parents = Vec::new();
    while let Some(sign) = rest.chars().next() {
        let after = rest.strip_prefix(['~', '^']).ok_or_else(|| wrong(syntax))?;
        let (digits, further) = after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        let number: Option<usize> = if digits.is_empty() { Some(1) } else { digits.parse().ok() };
        let number = number.filter(|number| *number <= MAX_STEPS - parents.len());
        let number = number.ok_or_else(|| wrong(&format!("at most {MAX_STEPS} commits back are looked at")))?;
        match sign {
            '~' => parents.extend(std::iter::repeat_n(1, number)),
            _ if number > 0 => parents.push(number),
            _ => {}
        }
        rest = further;
    }
    Ok((if name == "@" { "HEAD" } else { name }, parents))
}

/// The object that a name means: all digits of an object, a reference, or the first digits of an object.
fn resolve(repository: &gix::Repository, name: &str) -> Result<ObjectId, ServiceError> {
    let absent = |why: &str| ServiceError::Unavailable(format!("{}: {why}", shown(name)));
    let no_such = "there is no such branch, tag or commit in the repository";
    if let Ok(id) = ObjectId::from_hex(name.as_bytes()) {
        return Ok(id);
    }
    if let Some(mut reference) = repository.try_find_reference(name).ok().flatten() {
        return reference.follow_to_object().map(gix::Id::detach).map_err(|_| absent(no_such));
    }
    let digits = Prefix::from_hex(name).map_err(|_| absent(no_such))?;
    match repository.objects.lookup_prefix(digits, None) {
        Ok(Some(Ok(id))) => Ok(id),
        Ok(Some(Err(()))) => Err(absent("more than one object begins with these digits; give more of them")),
        Ok(None) | Err(_) => Err(absent(no_such)),
    }
}

/// The commit that an object is, or leads to as a tag.
fn commit<'r>(repository: &'r gix::Repository, mut id: ObjectId, of: &str) -> Result<gix::Commit<'r>, ServiceError> {
    for _ in 0..=MAX_TAGS {
        let object = object(repository, id, MAX_OBJECT, of)?;
        match object.kind {
            ObjectKind::Tag => {
                let tag = object.try_into_tag().map_err(|_| damaged(of))?;
                id = tag.target_id().map_err(|_| damaged(of))?.detach();
            }
            ObjectKind::Commit => return object.try_into_commit().map_err(|_| damaged(of)),
            ObjectKind::Tree | ObjectKind::Blob => {
                return Err(ServiceError::Invalid(format!("{}: is not a commit", shown(of))));
            }
        }
    }
    Err(ServiceError::Invalid(format!("{}: more than {MAX_TAGS} tags lead to tags", shown(of))))
}

/// Looks at the files that the library reads whole or waits for: opening a pipe would hold its thread for good, and a
/// device has no end.
fn plain_files(git: &Path) -> Result<(), ServiceError> {
    for name in ["HEAD", "config", "config.worktree", "commondir", "gitdir", "shallow"] {
        plain(&git.join(name), MAX_SMALL_FILE)?;
    }
    plain(&git.join("packed-refs"), MAX_PACKED_REFS)?;
    // References may be in nested folders; packs are mapped, so their size does not matter.
    let mut folders = vec![(git.join("refs"), MAX_SMALL_FILE)];
    folders.extend(["objects/info", "objects/pack"].map(|folder| (git.join(folder), u64::MAX)));
    let mut left = MAX_FILES;
    while let Some((folder, most)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let Some(fewer) = left.checked_sub(1) else {
                let why = format!("more than {MAX_FILES} references and packs; `git gc` packs them");
                return Err(ServiceError::Exhausted(format!("{}: {why}", git.display())));
            };
            left = fewer;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push((entry.path(), most)),
                _ => plain(&entry.path(), most)?,
            }
        }
    }
    Ok(())
}

/// Rejects a path that exists and is not a regular file (links followed), or that has more than `most` bytes.
fn plain(path: &Path, most: u64) -> Result<(), ServiceError> {
    let Ok(about) = std::fs::metadata(path) else { return Ok(()) };
    let wrong = |why: String| ServiceError::Unavailable(format!("{}: {why}", path.display()));
    plain_file::plain(&about).map_err(|error| wrong(error.to_string()))?;
    let size = about.len();
    if size > most { Err(wrong(format!("has {size} bytes; at most {most} are read"))) } else { Ok(()) }
}

/// An object of at most this many bytes.
fn object<'r>(
    repository: &'r gix::Repository,
    id: ObjectId,
    most: u64,
    of: &str,
) -> Result<gix::Object<'r>, ServiceError> {
    let digits = id.to_string();
    let (folder, name) = digits.split_at(2);
    plain(&repository.common_dir().join("objects").join(folder).join(name), u64::MAX).map_err(|_| damaged(of))?;
    let header = repository.try_find_header(id).map_err(|_| damaged(of))?;
    let Some(header) = header else {
        return Err(ServiceError::Unavailable(format!("{}: is not in the repository", shown(of))));
    };
    if header.size() > most {
        let size = header.size();
        return Err(ServiceError::Exhausted(format!("{}: has {size} bytes; at most {most} are read", shown(of))));
    }
    repository.find_object(id).map_err(|_| damaged(of))
}

/// An entry of a folder: name, kind, object.
type Named<'a> = (&'a [u8], Kind, ObjectId);

/// The entries of a folder.
fn names_in<'a>(folder: &'a gix::Object<'_>, path: &str) -> Result<Vec<Named<'a>>, ServiceError> {
    if folder.kind != ObjectKind::Tree {
        return Err(damaged(path));
    }
    let tree = gix::objs::TreeRefIter::from_bytes(&folder.data, folder.id.kind());
    let entry = |entry: gix::objs::tree::EntryRef<'a>| {
        let kind = match entry.mode.kind() {
            EntryKind::Tree => Kind::Folder,
            EntryKind::Blob | EntryKind::BlobExecutable => Kind::File,
            EntryKind::Link => Kind::Link,
            EntryKind::Commit => Kind::Module,
        };
        (entry.filename.as_bytes(), kind, entry.oid.to_owned())
    };
    tree.map(|found| found.map(entry).map_err(|_| damaged(path))).collect()
}

/// Whether a path in a commit may have this name. It is not a name of this computer's files, so any other character is allowed.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

fn check(path: &str) -> Result<(), ServiceError> {
    let refuse = |what: &str| {
        let shown = shown(path);
        Err(ServiceError::Invalid(format!(
            "{shown}: {what}; a path is relative to the commit's top, such as src/lib.rs"
        )))
    };
    match path {
        long if long.len() > MAX_PATH => refuse("is too long"),
        _ if path.contains('\0') => refuse("has U+0000, which stands before what is no name in a path"),
        _ if !path.split('/').all(is_name) => refuse("has no name where one belongs"),
        _ => Ok(()),
    }
}

/// What the library says of a damaged repository may quote what is in it, so it is not passed on.
fn damaged(path: &str) -> ServiceError {
    ServiceError::Failed(format!("{}: the repository is damaged there; `git fsck` tells how", shown(path)))
}

/// Whether something lies below a folder, every link on the way followed.
fn is_within(part: &Path, folder: &Path) -> bool {
    let real = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    matches!((real(part), real(folder)), (Some(part), Some(folder)) if part.starts_with(&folder))
}

#[cfg(test)]
#[path = "git/tests.rs"]
mod tests;
