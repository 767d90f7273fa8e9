//! Skills in repositories of GitHub: `github:owner/repo/path`, with `@` and a branch, a tag or a commit behind it.
//!
//! What a branch or a tag stands for is asked first. Everything is then fetched by that commit, which is what is kept on
//! record, so that what was looked at is what is installed.

use crate::folder;

/// Where the API of github.com is.
pub const API: &str = "https://api.github.com";
/// The media type that has the API answer with the id of a commit alone.
pub const COMMIT_TYPE: &str = "application/vnd.github.sha";
/// Bytes of the archive of a repository.
pub const MAX_REPOSITORY: u64 = 64 * 1024 * 1024;

/// A folder in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitHub {
    /// Who it belongs to.
    pub owner: String,
    /// How it is called.
    pub repository: String,
    /// The folder in it; empty for the whole repository.
    pub path: String,
    /// The branch, tag or commit; `None` for the newest commit of the default branch.
    pub reference: Option<String>,
}

impl GitHub {
    /// Reads what stands behind `github:`.
    ///
    /// # Errors
    /// Why it names no folder of a repository.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (place, reference) = match text.split_once('@') {
            Some((place, reference)) => (place, Some(reference)),
            None => (text, None),
        };
        let mut parts = place.splitn(3, '/');
        let (owner, repository) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let path = parts.next().unwrap_or_default().trim_matches('/');
        let is_name = |name: &str| {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            !name.is_empty() && name.len() <= 100 && name.bytes().all(fits) && !matches!(name, "." | "..")
        };
        if !is_name(owner) || !is_name(repository) {
            return Err("write github:owner/repository/path");
        }
        if !path.is_empty() && !folder::is_inner_path(path) {
            return Err("the path has to be names with / between them");
        }
        let is_reference = |name: &str| name.split('/').all(is_name) && name.len() <= 200;
        if reference.is_some_and(|name| !is_reference(name)) {
            return Err("behind @ stands a branch, a tag or a commit");
        }
        Ok(Self {
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            path: path.to_owned(),
            reference: reference.map(str::to_owned),
        })
    }

    /// The commit, if one is named in full.
    pub fn commit(&self) -> Option<&str> {
        self.reference.as_deref().filter(|name| commit(name.as_bytes()).is_some())
    }

    /// Where the API says which commit is meant.
    pub fn commit_url(&self, api: &str) -> String {
        let (owner, repository) = (&self.owner, &self.repository);
        format!("{api}/repos/{owner}/{repository}/commits/{}", self.reference.as_deref().unwrap_or("HEAD"))
    }

    /// Where the API has the archive of a commit.
    pub fn archive_url(&self, api: &str, commit: &str) -> String {
        format!("{api}/repos/{}/{}/tarball/{commit}", self.owner, self.repository)
    }

    /// The folder's name, where it is not the whole repository.
    pub fn folder(&self) -> Option<&str> {
        self.path.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

impl std::fmt::Display for GitHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "github:{}/{}", self.owner, self.repository)?;
        if !self.path.is_empty() {
            write!(f, "/{}", self.path)?;
        }
        self.reference.as_ref().map_or(Ok(()), |reference| write!(f, "@{reference}"))
    }
}

/// The id of a commit in an answer: 40 hex digits. `None` if it is anything else.
pub fn commit(answer: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(answer).ok()?.trim();
    (text.len() == 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit())).then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_owner_a_repository_a_path_and_perhaps_a_reference() {
        let place = GitHub::parse("acme/kit/skills/lights@v1.2").unwrap();
        assert_eq!(place.to_string(), "github:acme/kit/skills/lights@v1.2");
        assert_eq!(place.folder(), Some("lights"));
        assert_eq!(place.commit_url("http://x"), "http://x/repos/acme/kit/commits/v1.2");
        assert_eq!(place.archive_url("http://x", "ab"), "http://x/repos/acme/kit/tarball/ab");
        let whole = GitHub::parse("acme/lights").unwrap();
        assert_eq!((whole.folder(), whole.commit_url("x")), (None, "x/repos/acme/lights/commits/HEAD".to_owned()));
        let pinned = GitHub::parse(&format!("a/b/c@{}", "0a".repeat(20))).unwrap();
        assert_eq!(pinned.commit(), Some("0a".repeat(20).as_str()));
        assert_eq!(place.commit(), None);
    }

    #[test]
    fn what_could_lead_elsewhere_is_refused() {
        for text in [
            "",
            "acme",
            "acme/",
            "../x/y",
            "acme/kit/../..",
            "acme/kit/a//b",
            "acme/kit?x=1",
            "acme/kit/x@../y",
            "acme/kit@",
            "acme/ki t/x",
            "acme/kit/a\\b",
            "acme/kit/x@a b",
        ] {
            assert!(GitHub::parse(text).is_err(), "{text}");
        }
        assert_eq!(commit(b"<html>"), None);
        assert_eq!(commit("0A".repeat(20).as_bytes()), Some("0a".repeat(20)));
    }
}
