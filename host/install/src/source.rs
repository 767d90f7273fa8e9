//! Sources: where a package is fetched from, and how its bytes are verified.
//!
//! Everything is fetched into memory, with a limit; nothing is written and nothing is run. What
//! comes over a network ([`crate::download`]) is compared with a digest: a URL's own, or the one in
//! an OCI manifest ([`crate::oci`]).

use std::path::{Path, PathBuf};

use oci_client::Reference;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::download::{Downloader, Expected, Timeouts, may_be_asked, without_query};
pub use crate::error::SourceError;
use crate::{digest_of, oci};
use conductor_package::Package;
use conductor_package::file::MAX_PACKAGE;
use conductor_services::http::{Network, SystemNetwork};

/// Where a package is to be fetched from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file of this machine.
    File(PathBuf),
    /// A URL, with the SHA-256 (lower-case hex) that the bytes must have.
    Url(Url, String),
    /// A tag or a digest in an OCI registry.
    Oci(Box<Reference>),
    /// A feature that comes with the host, and its file.
    Bundled(String, PathBuf),
}

/// Where an installed package came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Origin {
    /// A file of this machine.
    File {
        /// Absolute.
        path: PathBuf,
    },
    /// A URL.
    Url {
        /// Without query and fragment.
        url: String,
    },
    /// An OCI registry.
    Oci {
        /// `host/repository:tag`, or with `@sha256:…`.
        reference: String,
        /// The digest of the manifest, `sha256:` and lower-case hex.
        manifest: String,
    },
    /// It came with the host.
    Bundled {
        /// Its name.
        name: String,
    },
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File { path } => write!(f, "{}", path.display()),
            Self::Url { url } => f.write_str(url),
            Self::Oci { reference, manifest } => write!(f, "oci://{reference} (manifest {manifest})"),
            Self::Bundled { name } => write!(f, "bundled {name}"),
        }
    }
}

/// A package that was fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The package, described and not yet checked.
    pub package: Package,
    /// Where it came from.
    pub origin: Origin,
}

impl Source {
    /// Reads what a person wrote. `bundled` is the folder of the bundled features; `digest` is the
    /// SHA-256 that the package must have, where a person named it beside a URL.
    ///
    /// # Errors
    /// [`SourceError::Unknown`].
    pub fn parse(text: &str, digest: Option<&str>, bundled: Option<&Path>) -> Result<Self, SourceError> {
        let unknown = |why: &str| SourceError::Unknown(text.to_owned(), why.to_owned());
        if let Some(reference) = text.strip_prefix("oci://") {
            let reference: Reference = reference.parse().map_err(|error| unknown(&format!("{error}")))?;
            if reference.digest().is_some_and(|digest| digest_of(digest).is_none() || !digest.starts_with("sha256:")) {
                return Err(unknown("its digest is not sha256"));
            }
            return Ok(Self::Oci(Box::new(reference)));
        }
        if text.contains("://") {
            let mut url: Url = text.parse().map_err(|error| unknown(&format!("{error}")))?;
            may_be_asked(&url).map_err(unknown)?;
            let fragment = url.fragment().and_then(|fragment| fragment.strip_prefix("sha256="));
            let digest = fragment.or(digest).and_then(digest_of).ok_or_else(|| {
                unknown("a URL needs the digest of what it should bring: put #sha256= and 64 hex digits behind it")
            })?;
            url.set_fragment(None);
            return Ok(Self::Url(url, digest));
        }
        let path = PathBuf::from(text);
        if path.exists() || text.contains(['/', '\\']) || text.ends_with(".wasm") {
            return Ok(Self::File(path));
        }
        let file = bundled.map(|folder| folder.join(format!("{text}.wasm"))).filter(|file| file.is_file());
        file.map(|file| Self::Bundled(text.to_owned(), file))
            .ok_or_else(|| unknown("there is no such file and no such bundled feature"))
    }

    /// The source that an installed package can be fetched from again; `None` if it is a URL, which names
    /// one package.
    pub fn again(origin: &Origin, bundled: Option<&Path>) -> Option<Self> {
        match origin {
            Origin::File { path } => Some(Self::File(path.clone())),
            Origin::Url { .. } => None,
            Origin::Oci { reference, .. } => reference.parse().ok().map(Box::new).map(Self::Oci),
            Origin::Bundled { name } => Some(Self::Bundled(name.clone(), bundled?.join(format!("{name}.wasm")))),
        }
    }

    /// Fetches the package. Blocks; not to be called from asynchronous code.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub fn fetch(&self) -> Result<Fetched, SourceError> {
        self.fetch_over(&SystemNetwork::new(), Timeouts::DEFAULT)
    }

    /// The same over another network, and with other timeouts.
    ///
    /// # Errors
    /// See [`SourceError`].
    pub fn fetch_over(&self, network: &dyn Network, timeouts: Timeouts) -> Result<Fetched, SourceError> {
        match self {
            Self::File(path) => {
                let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                Ok(Fetched { package: Package::read(path)?, origin: Origin::File { path: absolute } })
            }
            Self::Bundled(name, path) => {
                Ok(Fetched { package: Package::read(path)?, origin: Origin::Bundled { name: name.clone() } })
            }
            Self::Url(url, digest) => {
                let shown = without_query(url);
                let downloader = Downloader::new(network, url, timeouts);
                let expected = Expected { digest: Some(digest), ..Expected::at_most(MAX_PACKAGE) };
                let bytes = run(&shown, downloader.get(url, &expected))??.body;
                let package = Package::from_bytes(Path::new(&shown), bytes)?;
                Ok(Fetched { package, origin: Origin::Url { url: shown } })
            }
            Self::Oci(reference) => {
                let shown = format!("oci://{}", reference.whole());
                let (bytes, manifest) = run(&shown, oci::pull(network, timeouts, reference))??;
                let package = Package::from_bytes(Path::new(&shown), bytes)?;
                Ok(Fetched { package, origin: Origin::Oci { reference: reference.whole(), manifest } })
            }
        }
    }
}

/// Does what is asynchronous. Blocks.
pub(super) fn run<T>(shown: &str, job: impl Future<Output = T>) -> Result<T, SourceError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let failed = |error: std::io::Error| SourceError::Fetch { url: shown.to_owned(), message: error.to_string() };
    let runtime = runtime.map_err(failed)?;
    let done = runtime.block_on(job);
    // Looking up a name can't be interrupted.
    runtime.shutdown_background();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Source::parse(text, None, None).unwrap_err().to_string()
    }

    #[test]
    fn a_source_is_a_file_a_url_a_reference_or_a_name() {
        let digest = "ab".repeat(32);
        let url = format!("https://example.org/lamp.wasm?t=1#sha256={digest}");
        match Source::parse(&url, None, None).unwrap() {
            Source::Url(url, wanted) => {
                assert_eq!((url.as_str(), wanted), ("https://example.org/lamp.wasm?t=1", digest.clone()));
                assert_eq!(without_query(&url), "https://example.org/lamp.wasm");
            }
            other => panic!("{other:?}"),
        }
        let beside = Source::parse("https://example.org/x", Some(&format!("sha256:{digest}")), None);
        assert!(matches!(beside, Ok(Source::Url(..))));
        assert!(matches!(Source::parse("oci://example.org/lamp:1", None, None), Ok(Source::Oci(_))));
        assert!(matches!(Source::parse("lamp.wasm", None, None), Ok(Source::File(_))));
        assert!(matches!(Source::parse("./lamp", None, None), Ok(Source::File(_))));
    }

    #[test]
    fn what_can_not_be_trusted_to_bring_the_right_bytes_is_refused() {
        let digest = "ab".repeat(32);
        assert!(refused("https://example.org/lamp.wasm").contains("needs the digest"));
        assert!(refused(&format!("https://example.org/x#sha256={}", "xy".repeat(32))).contains("needs the digest"));
        assert!(refused(&format!("http://example.org/x#sha256={digest}")).contains("use https"));
        assert!(refused(&format!("http://127.0.0.1.example.org/x#sha256={digest}")).contains("use https"));
        assert!(refused(&format!("https://me:word@example.org/x#sha256={digest}")).contains("would be written down"));
        assert!(refused(&format!("ftp://example.org/x#sha256={digest}")).contains("only https"));
        assert!(refused("oci://Example/UPPER").contains("is no source"));
        assert!(refused("no-such-feature").contains("no such bundled feature"));
        assert!(Source::parse(&format!("http://[::1]:80/x#sha256={digest}"), None, None).is_ok());
    }
}
