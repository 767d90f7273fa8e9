//! Archives of skills: gzipped tar files, read into memory with a limit (decompression bombs). Nothing is written, and
//! no link is followed.

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use crate::folder::{self, SKILL_FILE};
use crate::limits::{MAX_FILES, MAX_TOTAL};
use conductor_terminal::excerpt;

/// Bytes of an archive of one skill.
pub const MAX_ARCHIVE: u64 = 8 * 1024 * 1024;
/// Bytes that are unpacked at most, of what is not kept as well.
const MAX_UNPACKED: u64 = 512 * 1024 * 1024;
/// Entries that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// The files of a skill, by path.
pub type Files = Vec<(String, Cow<'static, [u8]>)>;

/// Why an archive has no skill.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It can't be unpacked.
    #[error("is no gzipped tar archive: {0}")]
    Format(#[from] io::Error),
    /// It is a bomb.
    #[error("unpacks to more than {0} bytes")]
    TooLarge(u64),
    /// It has too many entries.
    #[error("has more than {0} entries")]
    TooMany(usize),
    /// A name that leads elsewhere.
    #[error("{0:?}: no file of a skill may be called so")]
    Name(String),
    /// A link, a device.
    #[error("{0}: is a link or a device; a skill has files and folders only")]
    NotAFile(String),
    /// There is no skill at the place that was named.
    #[error("has no SKILL.md {}", if .0.is_empty() { "in it".to_owned() } else { format!("in {}", .0) })]
    NoSkill(String),
    /// There are several.
    #[error("has several skills: {0}; name one of them")]
    Several(String),
}

/// The files of the one skill in an archive, and the name of its folder; `None` if it lies at the top.
///
/// # Errors
/// See [`ArchiveError`].
pub fn skill(archive: &[u8]) -> Result<(Option<String>, Files), ArchiveError> {
    let files = unpack(archive, |path| Some(path.to_owned()))?;
    let depth = |path: &str| path.matches('/').count();
    let mut found: Vec<&str> = files
        .iter()
        .filter_map(|(path, _)| path.strip_suffix(SKILL_FILE))
        .filter(|at| at.is_empty() || at.ends_with('/'))
        .collect();
    let least = found.iter().map(|at| depth(at)).min().ok_or_else(|| ArchiveError::NoSkill(String::new()))?;
    found.retain(|at| depth(at) == least);
    let [at] = found[..] else {
        return Err(ArchiveError::Several(excerpt(&found.join(", "), 256)));
    };
    let at = at.to_owned();
    let inner = |(path, bytes): (String, _)| Some((path.strip_prefix(&at)?.to_owned(), bytes));
    let name = at.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
    Ok((name, files.into_iter().filter_map(inner).collect()))
}

/// The files of the folder `path` in the archive of a repository, whose files all lie in one folder.
///
/// # Errors
/// See [`ArchiveError`].
pub fn of_repository(archive: &[u8], path: &str) -> Result<Files, ArchiveError> {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let files = unpack(archive, |name| {
        let (_, inner) = name.split_once('/')?;
        Some(inner.strip_prefix(&prefix)?.to_owned()).filter(|inner| !inner.is_empty())
    })?;
    if files.iter().any(|(path, _)| path == SKILL_FILE) {
        Ok(files)
    } else {
        Err(ArchiveError::NoSkill(path.to_owned()))
    }
}

/// The files for whose paths `keep` has a name, under that name.
fn unpack(archive: &[u8], keep: impl Fn(&str) -> Option<String>) -> Result<Files, ArchiveError> {
    let mut tar = Archive::new(GzDecoder::new(archive).take(MAX_UNPACKED));
    let (mut files, mut total) = (Files::new(), 0_u64);
    for (number, entry) in tar.entries()?.enumerate() {
        if number == MAX_ENTRIES {
            return Err(ArchiveError::TooMany(MAX_ENTRIES));
        }
        let entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.strip_prefix("./").unwrap_or(&path);
        let kind = entry.header().entry_type();
        // What describes other entries, and folders, which files name anyway.
        if matches!(kind, EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let Some(inner) = keep(path) else { continue };
        if !folder::is_inner_path(&inner) {
            return Err(ArchiveError::Name(excerpt(path, 256)));
        }
        if !kind.is_file() {
            return Err(ArchiveError::NotAFile(excerpt(path, 256)));
        }
        if files.len() > MAX_FILES {
            return Err(ArchiveError::TooMany(MAX_FILES));
        }
        let mut bytes = Vec::new();
        entry.take(MAX_TOTAL - total + 1).read_to_end(&mut bytes)?;
        total += bytes.len() as u64;
        if total > MAX_TOTAL {
            return Err(ArchiveError::TooLarge(MAX_TOTAL));
        }
        files.retain(|(path, _)| *path != inner);
        files.push((inner, bytes.into()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const TEXT: &str = "---\nname: lamp\ndescription: Lights.\n---\nTurn it on.\n";

    /// An archive of files, links (with a target) and nothing else.
    fn archive(entries: &[(&str, Option<&str>, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, link, bytes) in entries {
            let mut header = tar::Header::new_ustar();
            // Past what the library would refuse to write.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_mode(0o644);
            match link {
                Some(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_link_name(target).unwrap();
                    header.set_size(0);
                }
                None => header.set_size(bytes.len() as u64),
            }
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        gzip(&tar.into_inner().unwrap())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_skill_lies_at_the_top_or_in_a_folder() {
        let text = TEXT.as_bytes();
        let (name, files) = skill(&archive(&[("SKILL.md", None, text), ("references/a.md", None, b"a")])).unwrap();
        assert_eq!((name, files.len()), (None, 2));
        let (name, files) =
            skill(&archive(&[("./kit/lamp/SKILL.md", None, text), ("README.md", None, b"no")])).unwrap();
        assert_eq!((name.as_deref(), files.len()), (Some("lamp"), 1));
        let several = archive(&[("a/SKILL.md", None, text), ("b/SKILL.md", None, text)]);
        assert!(matches!(skill(&several), Err(ArchiveError::Several(_))));
        assert!(matches!(skill(&archive(&[("a.md", None, b"x")])), Err(ArchiveError::NoSkill(_))));
        assert!(matches!(skill(b"no archive"), Err(ArchiveError::Format(_))));
    }

    #[test]
    fn of_a_repository_only_the_folder_that_was_named_is_taken() {
        let repository = archive(&[
            ("acme-kit-0a1b/skills/lamp/SKILL.md", None, TEXT.as_bytes()),
            ("acme-kit-0a1b/skills/lamp/references/a.md", None, b"a"),
            ("acme-kit-0a1b/skills/lamp-2/SKILL.md", None, b"another"),
            ("acme-kit-0a1b/link", Some("/etc/passwd"), b""),
        ]);
        let files = of_repository(&repository, "skills/lamp").unwrap();
        assert_eq!(files.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["SKILL.md", "references/a.md"]);
        assert!(matches!(of_repository(&repository, "skills"), Err(ArchiveError::NoSkill(_))));
    }

    #[test]
    fn names_that_lead_out_links_and_bombs_are_refused() {
        for path in ["../SKILL.md", "/etc/x", "lamp/../../x", "a\\b", "a//b"] {
            let wrong = archive(&[("SKILL.md", None, TEXT.as_bytes()), (path, None, b"x")]);
            assert!(matches!(skill(&wrong), Err(ArchiveError::Name(_))), "{path}");
        }
        let link = archive(&[("SKILL.md", None, TEXT.as_bytes()), ("references/x", Some("../../../etc/passwd"), b"")]);
        assert!(matches!(skill(&link), Err(ArchiveError::NotAFile(_))));
        let bomb = archive(&[("SKILL.md", None, TEXT.as_bytes()), ("zeros", None, &vec![0; 5 << 20])]);
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        assert!(matches!(skill(&bomb), Err(ArchiveError::TooLarge(_))));
        let names: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
        let many: Vec<(&str, Option<&str>, &[u8])> =
            names.iter().map(|name| (name.as_str(), None, b"".as_slice())).collect();
        assert!(matches!(skill(&archive(&many)), Err(ArchiveError::TooMany(_))));
    }
}
