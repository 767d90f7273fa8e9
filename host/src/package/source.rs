//! Sources: where a package is fetched from, and how it is told that just those bytes came.
//!
//! Everything is fetched into memory, with a limit; nothing is written and nothing is run. What
//! comes over a network is compared with a digest: a URL's own, or the one in an OCI manifest.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oci_client::manifest::OciImageManifest;
use oci_client::secrets::RegistryAuth;
use oci_client::{Reference, RegistryOperation};
use reqwest::header::{ACCEPT, HeaderMap};
use reqwest::{StatusCode, Url};
use serde::{Deserialize, Serialize};

use super::sha256;
use crate::feature::package::MAX_PACKAGE;
use crate::feature::{Package, PackageError};

/// The largest OCI manifest that is read, in bytes (1 MiB).
pub const MAX_MANIFEST: u64 = 1024 * 1024;

/// The media type of the one layer of a package in an OCI registry.
pub const MEDIA_TYPE: &str = "application/wasm";

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const FETCH_WITHIN: Duration = Duration::from_secs(120);
const MAX_REDIRECTS: usize = 5;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source.
    #[error(
        "\"{0}\" is no source: {1}. Write a file, https://…#sha256=HEX, oci://host/repository:tag, or the name of a bundled feature"
    )]
    Unknown(String, String),
    /// The package that was fetched is none.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The network or the server.
    #[error("{url}: {message}")]
    Fetch {
        /// What was asked for.
        url: String,
        /// Why it did not come.
        message: String,
    },
    /// Other bytes came.
    #[error("{url}: has the digest sha256:{found}, not sha256:{wanted}; it was altered, or is another package")]
    Digest {
        /// What was asked for.
        url: String,
        /// Lower-case hex.
        wanted: String,
        /// Lower-case hex.
        found: String,
    },
    /// What lies in the registry is no package.
    #[error("{reference}: is no package: {message}")]
    Manifest {
        /// The reference.
        reference: String,
        /// Why.
        message: String,
    },
}

fn digest_of(text: &str) -> Option<String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    (hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit())).then_some(hex)
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

    /// The source that an installed package can be fetched from again; none for a URL, which stands
    /// for one package.
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
                let (bytes, _) = run(&shown, get(&client(url)?, url, None, None, MAX_PACKAGE))??;
                same(&shown, digest, &bytes)?;
                let package = Package::from_bytes(Path::new(&shown), bytes)?;
                Ok(Fetched { package, origin: Origin::Url { url: shown } })
            }
            Self::Oci(reference) => {
                let shown = format!("oci://{}", reference.whole());
                let (bytes, manifest) = run(&shown, pull(reference))??;
                let package = Package::from_bytes(Path::new(&shown), bytes)?;
                Ok(Fetched { package, origin: Origin::Oci { reference: reference.whole(), manifest } })
            }
        }
    }
}

/// A URL as messages and receipts show it: a query may hold what is secret.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// Only over TLS, unless it stays on this machine; and without a password in it.
fn may_be_asked(url: &Url) -> Result<(), &'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a name or a password in a URL would be written down");
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if url.host_str().is_some_and(is_this_machine) => Ok(()),
        "http" => Err("http is only for this machine; use https"),
        _ => Err("only https is fetched"),
    }
}

fn is_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn failed(url: &str, error: &dyn std::error::Error) -> SourceError {
    // The reason is in the last of the causes; the first ones repeat the URL.
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    SourceError::Fetch { url: url.to_owned(), message: last.to_string() }
}

fn run<T>(shown: &str, job: impl Future<Output = T>) -> Result<T, SourceError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    Ok(runtime.map_err(|error| failed(shown, &error))?.block_on(job))
}

fn client(url: &Url) -> Result<reqwest::Client, SourceError> {
    // Whoever was first decided; there is only one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        if attempt.previous().len() > MAX_REDIRECTS {
            attempt.error("too many redirects")
        } else if let Err(why) = may_be_asked(attempt.url()) {
            attempt.error(why)
        } else {
            attempt.follow()
        }
    });
    let mut builder =
        reqwest::Client::builder().redirect(redirects).connect_timeout(CONNECT_WITHIN).timeout(FETCH_WITHIN);
    if url.host_str().is_some_and(is_this_machine) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| failed(&without_query(url), &error))
}

/// The body and the headers of an answer 200.
async fn get(
    client: &reqwest::Client,
    url: &Url,
    accept: Option<&str>,
    token: Option<&str>,
    limit: u64,
) -> Result<(Vec<u8>, HeaderMap), SourceError> {
    let shown = without_query(url);
    let mut response = send(client, url, accept, token).await?;
    if response.status() != StatusCode::OK {
        let message = format!("the server says {}", response.status());
        return Err(SourceError::Fetch { url: shown, message });
    }
    let too_large = |shown: &str| SourceError::Fetch {
        url: shown.to_owned(),
        message: format!("has more than {limit} bytes; the rest was not read"),
    };
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(too_large(&shown));
    }
    let headers = response.headers().clone();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&shown, &error))? {
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large(&shown));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, headers))
}

async fn send(
    client: &reqwest::Client,
    url: &Url,
    accept: Option<&str>,
    token: Option<&str>,
) -> Result<reqwest::Response, SourceError> {
    let mut request = client.get(url.clone());
    if let Some(accept) = accept {
        request = request.header(ACCEPT, accept);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request.send().await.map_err(|error| failed(&without_query(url), &error))
}

fn same(url: &str, wanted: &str, bytes: &[u8]) -> Result<(), SourceError> {
    let found = sha256(bytes);
    if found == wanted {
        return Ok(());
    }
    Err(SourceError::Digest { url: url.to_owned(), wanted: wanted.to_owned(), found })
}

/// The package and the digest of its manifest. A tag is looked up once; from there on only digests count.
async fn pull(reference: &Reference) -> Result<(Vec<u8>, String), SourceError> {
    let shown = format!("oci://{}", reference.whole());
    let registry = reference.resolve_registry();
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let scheme = if is_this_machine(host) { "http" } else { "https" };
    let base = format!("{scheme}://{registry}/v2/{}", reference.repository());
    let url = |path: String| {
        Url::parse(&format!("{base}/{path}"))
            .map_err(|error| SourceError::Fetch { url: shown.clone(), message: error.to_string() })
    };
    let name = reference.digest().or(reference.tag()).unwrap_or("latest");
    let manifest_url = url(format!("manifests/{name}"))?;
    let client = client(&manifest_url)?;
    let accept = Some(oci_client::manifest::OCI_IMAGE_MEDIA_TYPE);

    let mut token = None;
    if send(&client, &manifest_url, accept, None).await?.status() == StatusCode::UNAUTHORIZED {
        let protocol = oci_client::client::ClientProtocol::HttpsExcept(
            Some(registry.to_owned()).filter(|_| scheme == "http").into_iter().collect(),
        );
        let config = oci_client::client::ClientConfig {
            protocol,
            connect_timeout: Some(CONNECT_WITHIN),
            read_timeout: Some(FETCH_WITHIN),
            ..Default::default()
        };
        let registry = oci_client::Client::new(config);
        token = registry
            .auth(reference, &RegistryAuth::Anonymous, RegistryOperation::Pull)
            .await
            .map_err(|error| failed(&shown, &error))?;
    }
    let token = token.as_deref();

    let (manifest, headers) = get(&client, &manifest_url, accept, token, MAX_MANIFEST).await?;
    let said = headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
    for wanted in [reference.digest(), said].into_iter().flatten().filter_map(|digest| digest.strip_prefix("sha256:")) {
        same(manifest_url.as_str(), wanted, &manifest)?;
    }
    let wrong = |message: String| SourceError::Manifest { reference: shown.clone(), message };
    let parsed: OciImageManifest =
        serde_json::from_slice(&manifest).map_err(|error| wrong(format!("its manifest is not understood: {error}")))?;
    let [layer] = parsed.layers.as_slice() else {
        return Err(wrong(format!("it has {} layers; a package has one", parsed.layers.len())));
    };
    if layer.media_type != MEDIA_TYPE {
        return Err(wrong(format!("its layer is of type {}; a package's is {MEDIA_TYPE}", layer.media_type)));
    }
    let digest = layer.digest.strip_prefix("sha256:").and_then(digest_of);
    let digest = digest.ok_or_else(|| wrong(format!("its layer's digest {} is not sha256", layer.digest)))?;
    let size = u64::try_from(layer.size).ok().filter(|size| *size <= MAX_PACKAGE);
    let size = size.ok_or_else(|| wrong(format!("its layer has {} bytes; at most {MAX_PACKAGE}", layer.size)))?;

    let blob_url = url(format!("blobs/sha256:{digest}"))?;
    let (bytes, _) = get(&client, &blob_url, None, token, size).await?;
    same(&without_query(&blob_url), &digest, &bytes)?;
    Ok((bytes, format!("sha256:{}", sha256(&manifest))))
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
