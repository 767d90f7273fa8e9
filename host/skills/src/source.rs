//! Where a skill is installed from.

use std::path::{Path, PathBuf};

use crate::github::GitHub;

/// A place with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// One that comes with the program, by name or old name.
    Bundled(String),
    /// A folder.
    Folder(PathBuf),
    /// A gzipped tar file, with the SHA-256 that it must have where a person named one.
    Archive(PathBuf, Option<String>),
    /// The same behind a URL, with the SHA-256 (lower-case hex) that it must have.
    Url(String, String),
    /// A folder in a repository of GitHub.
    GitHub(GitHub),
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no source: {why}. Write the name of a bundled skill, a folder, an archive (.tar.gz), https://…#sha256=HEX, or \
     github:owner/repository/path@commit"
)]
pub struct SourceError {
    text: String,
    why: String,
}

impl Source {
    /// Reads what a person wrote. `digest` is the SHA-256 that they named beside it.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub fn parse(text: &str, digest: Option<&str>) -> Result<Self, SourceError> {
        let wrong = |why: &str| SourceError { text: text.to_owned(), why: why.to_owned() };
        let (place, fragment) = match text.split_once("#sha256=") {
            Some((place, digest)) => (place, Some(digest)),
            None => (text, None),
        };
        let digest = fragment.or(digest).map(|digest| {
            let hex = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
            let is_digest = hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_digest.then_some(hex).ok_or_else(|| wrong("a digest is 64 hex digits"))
        });
        let digest = digest.transpose()?;
        if let Some(place) = place.strip_prefix("github:") {
            if digest.is_some() {
                return Err(wrong("what a repository has is pinned by a commit, not by a digest"));
            }
            return GitHub::parse(place).map(Self::GitHub).map_err(wrong);
        }
        if place.contains("://") {
            let digest = digest.ok_or_else(|| wrong("a URL needs the digest of what it should bring"))?;
            return Ok(Self::Url(place.to_owned(), digest));
        }
        let path = Path::new(place);
        if [".tar.gz", ".tgz"].iter().any(|end| place.ends_with(end)) {
            return Ok(Self::Archive(path.to_owned(), digest));
        }
        if digest.is_some() {
            return Err(wrong("only an archive has a digest"));
        }
        if place.contains(['/', '\\']) || matches!(place, "." | "..") || path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if place.is_empty() { Err(wrong("it is empty")) } else { Ok(Self::Bundled(place.to_owned())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_told_by_how_it_is_written() {
        let digest = "ab".repeat(32);
        assert_eq!(Source::parse("conductor-learn", None), Ok(Source::Bundled("conductor-learn".into())));
        assert_eq!(Source::parse("./lamp", None), Ok(Source::Folder("./lamp".into())));
        assert_eq!(Source::parse("lamp.tar.gz", None), Ok(Source::Archive("lamp.tar.gz".into(), None)));
        let url = format!("https://example.org/lamp.tgz#sha256={digest}");
        assert_eq!(Source::parse(&url, None), Ok(Source::Url("https://example.org/lamp.tgz".into(), digest.clone())));
        assert!(matches!(Source::parse("github:acme/kit/lamp", None), Ok(Source::GitHub(_))));
        assert_eq!(
            Source::parse("x.tgz", Some(&format!("sha256:{digest}"))),
            Ok(Source::Archive("x.tgz".into(), Some(digest.clone())))
        );
        for (text, digest) in [
            ("https://example.org/lamp.tgz", None),
            ("https://example.org/lamp.tgz#sha256=12", None),
            ("github:acme", None),
            ("github:acme/kit/lamp", Some(digest.as_str())),
            ("./lamp", Some(digest.as_str())),
            ("", None),
        ] {
            assert!(Source::parse(text, digest).is_err(), "{text}");
        }
    }
}
