//! A skill's folder, as far as it may be read: plain files below it. No path leads out of it, also by no link.

use std::io::{self, Read as _};

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::limits::{MAX_DEPTH, MAX_FILES, MAX_PATH, MAX_TOTAL};
use crate::problem::Problem;
use conductor_terminal::{excerpt, is_hidden};

/// The file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// A file of a folder, and by what its change is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) path: String,
    pub(crate) size: u64,
    modified: Option<std::time::SystemTime>,
    /// Device, inode, and time of the last change, which programs can't set.
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(path: String, metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use cap_std::fs::MetadataExt as _;
        Self {
            path,
            size: metadata.len(),
            modified: metadata.modified().ok().map(cap_std::time::SystemTime::into_std),
            #[cfg(unix)]
            identity: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// When the file was last written.
    pub(crate) fn modified(&self) -> Option<std::time::SystemTime> {
        self.modified
    }
}

/// All files of a folder, sorted by path, and what can't be part of a skill.
pub(crate) fn list(folder: &Dir) -> (Vec<Stamp>, Vec<Problem>) {
    let mut walk = Walk { found: Vec::new(), problems: Vec::new(), total: 0 };
    walk.folder(folder, "", 0);
    walk.found.sort_by(|a, b| a.path.cmp(&b.path));
    (walk.found, walk.problems)
}

struct Walk {
    found: Vec<Stamp>,
    problems: Vec<Problem>,
    total: u64,
}

impl Walk {
    /// Lists a folder; `false` if there is too much, and no more is to be looked at.
    fn folder(&mut self, folder: &Dir, prefix: &str, depth: usize) -> bool {
        let unreadable =
            |error: &io::Error| Problem::Unreadable { path: shown(prefix), message: excerpt(&error.to_string(), 256) };
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(unreadable(&error));
                return true;
            }
        };
        // Empty folders and links count as well, so that no folder is endless.
        for (number, entry) in entries.enumerate() {
            if number > MAX_FILES || self.found.len() > MAX_FILES {
                self.problems.push(Problem::TooManyFiles { max: MAX_FILES });
                return false;
            }
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.problems.push(unreadable(&error));
                    continue;
                }
            };
            let name = entry.file_name();
            let path = format!("{prefix}{}", name.to_string_lossy());
            let Some(name) = name.to_str().filter(|name| is_file_name(name)).filter(|_| path.len() <= MAX_PATH) else {
                self.problems.push(Problem::FileName { path: excerpt(&path, MAX_PATH) });
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    if depth == MAX_DEPTH {
                        self.problems.push(Problem::TooDeep { path, max: MAX_DEPTH });
                    } else {
                        match folder.open_dir(name) {
                            Ok(inner) if !self.folder(&inner, &format!("{path}/"), depth + 1) => return false,
                            Ok(_) => {}
                            Err(error) => self.problems.push(unreadable(&error)),
                        }
                    }
                }
                Ok(kind) if kind.is_file() || kind.is_symlink() => match folder.metadata(name) {
                    Ok(metadata) if metadata.is_file() => {
                        self.total = self.total.saturating_add(metadata.len());
                        self.found.push(Stamp::of(path, &metadata));
                        if self.total > MAX_TOTAL {
                            self.problems.push(Problem::TotalTooLarge { max: MAX_TOTAL });
                            return false;
                        }
                    }
                    _ if kind.is_symlink() => self.problems.push(Problem::Link { path }),
                    Ok(_) => self.problems.push(Problem::NotAFile { path }),
                    Err(error) => self.problems.push(unreadable(&error)),
                },
                Ok(_) => self.problems.push(Problem::NotAFile { path }),
                Err(error) => self.problems.push(unreadable(&error)),
            }
        }
        true
    }
}

fn shown(prefix: &str) -> String {
    if prefix.is_empty() { ".".to_owned() } else { prefix.to_owned() }
}

/// Whether a file of a skill may have this name: one that is the same in a shell, an address and a text.
fn is_file_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    !name.is_empty() && name.chars().all(fits) && name != "." && name != ".."
}

/// Whether a path is one of a file below a folder: names with `/` between them.
pub(crate) fn is_inner_path(path: &str) -> bool {
    path.len() <= MAX_PATH && path.split('/').count() <= MAX_DEPTH + 1 && path.split('/').all(is_file_name)
}

/// Reads a plain file below a folder, at most `max` bytes, without waiting for the other end of a pipe.
///
/// # Errors
/// The system's; [`io::ErrorKind::FileTooLarge`]; [`io::ErrorKind::InvalidInput`] if it is no plain file.
pub(crate) fn read(folder: &Dir, path: &str, max: u64) -> io::Result<Vec<u8>> {
    let not_plain = || io::Error::new(io::ErrorKind::InvalidInput, "is no plain file");
    if !folder.metadata(path)?.is_file() {
        return Err(not_plain());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        // Another thing may stand there by now.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file: File = folder.open_with(path, &options)?;
    if !file.metadata()?.is_file() {
        return Err(not_plain());
    }
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Whether a character has no place in a skill: one that can't be seen, or moves what is around it. Line feeds and tabs
/// may stay, and so may joiners and selectors of emoji.
pub(crate) fn is_out_of_place(c: char) -> bool {
    is_hidden(c) && !matches!(c, '\n' | '\t' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Text without what has no place in a skill.
///
/// # Errors
/// [`Problem::NotText`], or the first [`Problem::HiddenCharacter`].
pub(crate) fn text(path: &str, bytes: Vec<u8>) -> Result<String, Problem> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Problem::NotText { path: path.to_owned(), line: 1 + good.iter().filter(|byte| **byte == b'\n').count() }
    })?;
    for (line, content) in text.split('\n').enumerate() {
        let content = content.strip_suffix('\r').unwrap_or(content);
        let hidden = content.chars().enumerate().find(|(_, c)| is_out_of_place(*c));
        if let Some((column, c)) = hidden {
            let (line, column, code) = (line + 1, column + 1, u32::from(c));
            return Err(Problem::HiddenCharacter { path: path.to_owned(), line, column, code });
        }
    }
    Ok(text)
}
