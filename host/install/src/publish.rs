//! Publishing: a package as an image with one layer in an OCI registry, where [`crate::source`] finds it.
//!
//! Blobs first, then the manifest that names them; until the manifest is there, nothing can be installed. A tag that
//! names another package is left as it is, unless replacing it is meant.

use oci_client::Reference;
use oci_client::manifest::OCI_IMAGE_MEDIA_TYPE;
use reqwest::header::{HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::download::{Downloader, Timeouts, Upload, Uploaded, status, without_query};
use crate::oci::{self, Challenge, MEDIA_TYPE};
use crate::sha256;
use crate::source::{self, SourceError};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use conductor_package::Package;
use conductor_services::http::{Network, SystemNetwork};
use conductor_terminal::{MAX_TEXT, excerpt};

/// The media type of the configuration of an image that has none, and its content.
const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");

/// Whatever a tag may name: a registry says that there is nothing if it is not asked for just that.
const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json, */*";

/// Where a package goes: a repository and a tag of an OCI registry.
#[derive(Debug, Clone)]
pub struct Destination(Reference);

/// An account of a registry.
#[derive(Clone)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its password, or a token that stands for one.
    pub password: String,
}

/// Without the password.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A package that is in a registry now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// `host/repository:tag`.
    pub reference: String,
    /// The digest of the manifest, `sha256:` and lower-case hex.
    pub manifest: String,
    /// Whether the tag named just this package already, so that nothing was sent.
    pub is_unchanged: bool,
}

/// Why a package was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The text names no place in a registry.
    #[error("\"{0}\" is no place to publish to: {1}. Write oci://host/repository:tag; without a tag it is the version")]
    Destination(String, String),
    /// The registry can't be reached, or may not be asked.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The registry wants to know who this is, or does not let them.
    #[error("{url}: the registry refuses it ({message}){}", if *is_anonymous { "; name an account with --user" } else { "" })]
    Refused {
        /// What was asked for.
        url: String,
        /// What the registry said.
        message: String,
        /// Whether no account was named.
        is_anonymous: bool,
    },
    /// The registry answered otherwise than registries do.
    #[error("{url}: {message}")]
    Registry {
        /// What was asked for.
        url: String,
        /// What it answered.
        message: String,
    },
    /// The tag names another package.
    #[error(
        "{reference} is another package already (manifest {manifest}); publish under another tag, or replace it with \
         --replace"
    )]
    Taken {
        /// `oci://host/repository:tag`.
        reference: String,
        /// The digest of its manifest.
        manifest: String,
    },
}

impl Destination {
    /// Reads `oci://host/repository:tag`; without a tag it is `version`.
    ///
    /// # Errors
    /// [`PublishError::Destination`].
    pub fn parse(text: &str, version: &str) -> Result<Self, PublishError> {
        let wrong = |why: &str| PublishError::Destination(text.to_owned(), why.to_owned());
        let place = text.strip_prefix("oci://").ok_or_else(|| wrong("it does not begin with oci://"))?;
        let reference: Reference = place.parse().map_err(|error| wrong(&format!("{error}")))?;
        if reference.digest().is_some() {
            return Err(wrong("a digest is what comes of publishing; name a tag"));
        }
        let has_tag = place.rsplit('/').next().is_some_and(|last| place.contains('/') && last.contains(':'));
        if has_tag {
            return Ok(Self(reference));
        }
        // A tag has no `+`, which a version may have. A version is any text of the package's, and could lead to another
        // repository.
        let tag = version.replace('+', "-");
        let tagged = format!("{place}:{tag}").parse::<Reference>().ok();
        let tagged = tagged.filter(|tagged| tagged.tag() == Some(&tag) && tagged.digest().is_none());
        tagged.map(Self).ok_or_else(|| wrong(&format!("the version {version:?} is no tag; name one")))
    }

    /// `oci://host/repository:tag`.
    pub fn shown(&self) -> String {
        format!("oci://{}", self.0.whole())
    }
}

/// Publishes a package. `replace`: also where the tag names another one. Blocks; not to be called from asynchronous code.
///
/// # Errors
/// See [`PublishError`].
pub fn publish(
    package: &Package,
    to: &Destination,
    account: Option<&Account>,
    replace: bool,
) -> Result<Published, PublishError> {
    publish_over(&SystemNetwork::new(), Timeouts::UPLOAD, package, to, account, replace)
}

/// The same over another network, and with other timeouts.
///
/// # Errors
/// See [`PublishError`].
pub fn publish_over(
    network: &dyn Network,
    timeouts: Timeouts,
    package: &Package,
    to: &Destination,
    account: Option<&Account>,
    replace: bool,
) -> Result<Published, PublishError> {
    let shown = to.shown();
    source::run(&shown, async {
        let base = oci::base(&to.0);
        let parsed = Url::parse(&base).map_err(|error| registry_error(&base, &error.to_string()))?;
        let downloader = Downloader::new(network, &parsed, timeouts);
        let mut registry = Registry { downloader, base, account, authorization: None, repository: to.0.repository() };
        registry.put(package, to, replace).await
    })?
}

/// A repository, while something is sent to it.
struct Registry<'r> {
    downloader: Downloader<'r>,
    /// Without a slash at its end.
    base: String,
    account: Option<&'r Account>,
    /// What the registry accepted, or is going to be asked with.
    authorization: Option<HeaderValue>,
    repository: &'r str,
}

impl Registry<'_> {
    async fn put(&mut self, package: &Package, to: &Destination, replace: bool) -> Result<Published, PublishError> {
        let manifest = manifest(package).to_string();
        let digest = format!("sha256:{}", sha256(manifest.as_bytes()));
        let url = self.url(&format!("manifests/{}", to.0.tag().unwrap_or("latest")))?;
        let published = |is_unchanged| Published { reference: to.0.whole(), manifest: digest.clone(), is_unchanged };

        let there = self.ask(&Method::HEAD, &url, ANY_MANIFEST, b"").await?;
        if there.status == 200 {
            let found = text(&there.headers, "docker-content-digest").unwrap_or("unknown");
            if found == digest {
                return Ok(published(true));
            }
            if !replace {
                let manifest = excerpt(found, 80);
                return Err(PublishError::Taken { reference: to.shown(), manifest });
            }
        } else if there.status != 404 {
            return Err(self.refused(&url, &there));
        }
        self.blob(&package.info.digest, &package.bytes).await?;
        self.blob(&sha256(EMPTY.1), EMPTY.1).await?;
        let put = self.ask(&Method::PUT, &url, OCI_IMAGE_MEDIA_TYPE, manifest.as_bytes()).await?;
        if put.status != 201 {
            return Err(self.refused(&url, &put));
        }
        match text(&put.headers, "docker-content-digest") {
            Some(said) if said != digest => {
                let said = excerpt(said, 80);
                Err(registry_error(
                    url.as_str(),
                    &format!("it says that the manifest has the digest {said}, not {digest}"),
                ))
            }
            _ => Ok(published(false)),
        }
    }

    /// Sends a blob that is not there yet. `digest` is lower-case hex.
    async fn blob(&mut self, digest: &str, content: &[u8]) -> Result<(), PublishError> {
        let url = self.url(&format!("blobs/sha256:{digest}"))?;
        if self.ask(&Method::HEAD, &url, "", b"").await?.status == 200 {
            return Ok(());
        }
        let url = self.url("blobs/uploads/")?;
        let begun = self.ask(&Method::POST, &url, "", b"").await?;
        if begun.status != 202 {
            return Err(self.refused(&url, &begun));
        }
        let location = text(&begun.headers, LOCATION.as_str()).and_then(|location| url.join(location).ok());
        let mut to = location.ok_or_else(|| registry_error(url.as_str(), "it does not say where to upload to"))?;
        to.set_fragment(None);
        to.query_pairs_mut().append_pair("digest", &format!("sha256:{digest}"));
        let put = self.ask(&Method::PUT, &to, "application/octet-stream", content).await?;
        if put.status == 201 { Ok(()) } else { Err(self.refused(&to, &put)) }
    }

    /// Sends a request; once more with a token or a password, if the registry wants one.
    async fn ask(&mut self, method: &Method, url: &Url, kind: &str, body: &[u8]) -> Result<Uploaded, PublishError> {
        let authorization = self.authorization.clone();
        let upload = Upload { method: method.clone(), kind, body, authorization: authorization.as_ref() };
        let answer = self.downloader.send(url, &upload).await?;
        if answer.status != 401 || authorization.is_some() {
            return Ok(answer);
        }
        let Some(value) = self.authorize(&answer.headers).await? else { return Ok(answer) };
        self.authorization = Some(value.clone());
        let upload = Upload { authorization: Some(&value), ..upload };
        Ok(self.downloader.send(url, &upload).await?)
    }

    /// What a registry that says 401 wants to have: a token from the place that it names, or the account itself.
    /// `None` if there is nothing to offer.
    async fn authorize(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, PublishError> {
        let basic = self.account.map(basic).transpose()?;
        let named = |header: &HeaderValue| Challenge::parse(header.to_str().ok()?);
        let Some(challenge) = headers.get_all(WWW_AUTHENTICATE).iter().find_map(named) else { return Ok(basic) };
        let realm = challenge.realm.clone();
        let url = challenge
            .url(self.repository, "pull,push")
            .map_err(|why| registry_error(&excerpt(&realm, MAX_TEXT), &why))?;
        // The place that gives tokens is the registry's choice, and it is who checks the account.
        let tokens = self.downloader.for_origin(&url);
        let upload = Upload { method: Method::GET, kind: "", body: b"", authorization: basic.as_ref() };
        let answer = tokens.send(&url, &upload).await?;
        if answer.status != 200 {
            return Err(self.refused(&url, &answer));
        }
        let token = oci::bearer(&answer.body).map_err(|why| registry_error(&without_query(&url), &why))?;
        Ok(Some(token))
    }

    fn url(&self, path: &str) -> Result<Url, PublishError> {
        let text = format!("{}/{path}", self.base);
        Url::parse(&text).map_err(|error| registry_error(&text, &error.to_string()))
    }

    /// What an answer that is not what was wanted comes to.
    fn refused(&self, url: &Url, answer: &Uploaded) -> PublishError {
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let first = &said["errors"][0];
        let why =
            [&first["code"], &first["message"]].into_iter().filter_map(Value::as_str).collect::<Vec<_>>().join(": ");
        let mut message = format!("the server says {}", status(answer.status));
        if !why.is_empty() {
            message = format!("{message}: {}", excerpt(&why, MAX_TEXT));
        }
        let url = without_query(url);
        if matches!(answer.status, 401 | 403) {
            return PublishError::Refused { url, message, is_anonymous: self.account.is_none() };
        }
        PublishError::Registry { url, message }
    }
}

/// The account as a value of `Authorization`.
fn basic(account: &Account) -> Result<HeaderValue, PublishError> {
    let encoded = BASE64_STANDARD.encode(format!("{}:{}", account.name, account.password));
    let value = HeaderValue::from_str(&format!("Basic {encoded}"));
    let mut value = value.map_err(|error| registry_error(&account.name, &error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn registry_error(url: &str, message: &str) -> PublishError {
    PublishError::Registry { url: url.to_owned(), message: message.to_owned() }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The manifest of an image with the package as its one layer. The same package gives the same manifest.
fn manifest(package: &Package) -> Value {
    let entry = |kind: &str, digest: &str, size: usize| json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size });
    let descriptor = &package.info.descriptor;
    let mut annotations = json!({
        "org.opencontainers.image.title": descriptor.id.to_string(),
        "org.opencontainers.image.version": descriptor.version.to_string(),
    });
    let optional = [
        ("org.opencontainers.image.description", &descriptor.summary),
        ("org.opencontainers.image.licenses", &descriptor.license),
    ];
    for (key, text) in optional {
        if let Some(text) = text {
            annotations[key] = json!(text);
        }
    }
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE_MEDIA_TYPE,
        "artifactType": MEDIA_TYPE,
        "config": entry(EMPTY.0, &sha256(EMPTY.1), EMPTY.1.len()),
        "layers": [entry(MEDIA_TYPE, &package.info.digest, package.bytes.len())],
        "annotations": annotations,
    })
}

#[cfg(test)]
mod tests;
