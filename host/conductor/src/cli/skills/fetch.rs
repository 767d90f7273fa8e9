//! Fetching skills: archives from files and URLs, and folders of repositories, pinned to a commit.
//!
//! What comes over the network is asked for as packages are: with limits, redirects that are checked, and nothing but TLS
//! to other machines.

use std::path::Path;

use super::super::Failure;
use conductor_install::download::{Downloader, Expected, Timeouts};
use conductor_services::http::SystemNetwork;
use conductor_skills::archive::{self, MAX_ARCHIVE};
use conductor_skills::github::{self, GitHub, MAX_REPOSITORY};
use conductor_skills::install::Prepared;
use conductor_stdx::digest::sha256;
use conductor_stdx::plain_file;

/// The environment variable with the address of another API of GitHub, such as that of an Enterprise Server.
const API: &str = "CONDUCTOR_GITHUB_API";
/// Bytes of an answer that is the id of a commit.
const MAX_COMMIT: u64 = 4096;

/// The skill in an archive of this machine.
pub(super) fn archive(file: &Path, digest: Option<&str>) -> Result<Prepared, Failure> {
    let failed = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", file.display());
    let bytes = plain_file::read(file, MAX_ARCHIVE).map_err(|error| failed(&error))?;
    let found = sha256(&bytes);
    if let Some(wanted) = digest.filter(|wanted| **wanted != found) {
        let other = format!("has the digest sha256:{found}, not sha256:{wanted}; it was altered, or is another file");
        return Err(failed(&other).into());
    }
    let (name, files) = archive::skill(&bytes).map_err(|error| failed(&error))?;
    let origin = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(Prepared::new(name.as_deref(), files, format!("{}#sha256={found}", origin.display()))?)
}

/// The skill in an archive behind a URL.
pub(super) fn url(url: &str, digest: &str) -> Result<Prepared, Failure> {
    let asked = Server::new(url)?;
    let bytes = asked.get(url, &Expected { digest: Some(digest), ..Expected::at_most(MAX_ARCHIVE) })?;
    let (name, files) = archive::skill(&bytes).map_err(|error| anyhow::anyhow!("{url}: {error}"))?;
    Ok(Prepared::new(name.as_deref(), files, format!("{url}#sha256={digest}"))?)
}

/// The skill in a folder of a repository. A branch or a tag becomes the commit that it stands for now.
pub(super) fn github(place: &GitHub) -> Result<Prepared, Failure> {
    let api = std::env::var(API).unwrap_or_else(|_| github::API.to_owned());
    let api = api.trim_end_matches('/');
    let asked = Server::new(api)?;
    let commit = match place.commit() {
        Some(commit) => commit.to_ascii_lowercase(),
        None => {
            let accept = Some(github::COMMIT_TYPE);
            let answer = asked.get(&place.commit_url(api), &Expected { accept, ..Expected::at_most(MAX_COMMIT) })?;
            github::commit(&answer)
                .ok_or_else(|| anyhow::anyhow!("{place}: the server does not say which commit that is"))?
        }
    };
    let repository = asked.get(&place.archive_url(api, &commit), &Expected::at_most(MAX_REPOSITORY))?;
    let files =
        archive::of_repository(&repository, &place.path).map_err(|error| anyhow::anyhow!("{place}: {error}"))?;
    let pinned = GitHub { reference: Some(commit), ..place.clone() };
    Ok(Prepared::new(place.folder(), files, pinned.to_string())?)
}

/// One place that is asked, and where it leads.
struct Server {
    network: SystemNetwork,
    origin: reqwest::Url,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    fn new(origin: &str) -> Result<Self, Failure> {
        let origin = parsed(origin)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self { network: SystemNetwork::new(), origin, runtime })
    }

    fn get(&self, url: &str, expected: &Expected<'_>) -> Result<Vec<u8>, Failure> {
        let url = parsed(url)?;
        let downloader = Downloader::new(&self.network, &self.origin, Timeouts::DEFAULT);
        let downloaded = self.runtime.block_on(downloader.get(&url, expected));
        Ok(downloaded?.body)
    }
}

fn parsed(url: &str) -> Result<reqwest::Url, Failure> {
    url.parse().map_err(|error| Failure::Wrong(format!("conductor: {url:?} is no URL: {error}")))
}
