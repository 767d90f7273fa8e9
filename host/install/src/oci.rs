//! OCI registries: a manifest with one layer, which is the package, and bearer tokens for reading them.

use oci_client::Reference;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciImageManifest};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use serde::Deserialize;

use crate::digest_of;
use crate::download::{Downloader, Expected, Timeouts, is_this_machine};
use crate::error::SourceError;
use conductor_package::file::MAX_PACKAGE;
use conductor_services::http::Network;
use conductor_terminal::{MAX_TEXT, excerpt};

/// The largest OCI manifest that is read, in bytes (1 MiB).
pub const MAX_MANIFEST: u64 = 1024 * 1024;

/// The largest answer with a token that is read, in bytes (64 KiB).
pub const MAX_TOKEN: u64 = 64 * 1024;

/// The largest `WWW-Authenticate` header that is looked at, in bytes (8 KiB).
pub const MAX_CHALLENGE: usize = 8 * 1024;

/// The media type of the one layer of a package in an OCI registry.
pub const MEDIA_TYPE: &str = "application/wasm";

/// Where a token is to be had, as a registry says with 401.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The URL to ask. Anything may stand there.
    pub realm: String,
    /// What the registry calls itself.
    pub service: Option<String>,
}

impl Challenge {
    /// The first `Bearer` challenge in a `WWW-Authenticate` header. `None` if there is none with a realm, or if the
    /// header is malformed or longer than [`MAX_CHALLENGE`].
    pub fn parse(header: &str) -> Option<Self> {
        if header.len() > MAX_CHALLENGE {
            return None;
        }
        let challenges = http_auth::parse_challenges(header).ok()?;
        let bearer = challenges.into_iter().find(|challenge| challenge.scheme.eq_ignore_ascii_case("bearer"))?;
        let param = |wanted: &str| {
            let named = bearer.params.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            named.map(|(_, value)| value.to_unescaped())
        };
        Some(Self { realm: param("realm")?, service: param("service") })
    }

    /// The URL that is asked for a token to do `actions`, such as `pull`, in `repository`.
    ///
    /// # Errors
    /// The realm is no URL.
    pub(super) fn url(&self, repository: &str, actions: &str) -> Result<Url, String> {
        let mut url: Url = self.realm.parse().map_err(|error| format!("its realm for tokens is no URL: {error}"))?;
        url.set_fragment(None);
        let mut query = url.query_pairs_mut();
        if let Some(service) = &self.service {
            query.append_pair("service", service);
        }
        // Not the scope that the registry names: no more is needed.
        query.append_pair("scope", &format!("repository:{repository}:{actions}"));
        drop(query);
        Ok(url)
    }
}

/// Where the API of a repository is, without a slash at its end. Without TLS on this machine only.
pub(super) fn base(reference: &Reference) -> String {
    let registry = reference.resolve_registry();
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    let scheme = if is_this_machine(host) { "http" } else { "https" };
    format!("{scheme}://{registry}/v2/{}", reference.repository())
}

/// The package, and the digest of its manifest (`sha256:` and hex). A tag is looked up once; from there on only digests
/// count.
///
/// # Errors
/// See [`SourceError`].
pub(super) async fn pull(
    network: &dyn Network,
    timeouts: Timeouts,
    reference: &Reference,
) -> Result<(Vec<u8>, String), SourceError> {
    let shown = format!("oci://{}", reference.whole());
    let base = base(reference);
    let failed = |message: String| SourceError::Fetch { url: shown.clone(), message };
    let url = |path: String| Url::parse(&format!("{base}/{path}")).map_err(|error| failed(error.to_string()));
    let wrong = |message: String| SourceError::Manifest { reference: shown.clone(), message };

    let name = reference.digest().or(reference.tag()).unwrap_or("latest");
    let manifest_url = url(format!("manifests/{name}"))?;
    let downloader = Downloader::new(network, &manifest_url, timeouts);
    let expected = Expected { accept: Some(OCI_IMAGE_MEDIA_TYPE), ..Expected::at_most(MAX_MANIFEST) };
    let token = match downloader.challenge(&manifest_url, &expected).await? {
        Some(headers) => Some(token(&downloader, &headers, reference.repository()).await?),
        None => None,
    };
    let token = token.as_ref();

    let wanted = reference.digest().and_then(digest_of);
    let expected = Expected { digest: wanted.as_deref(), token, ..expected };
    let manifest = downloader.get(&manifest_url, &expected).await?;
    let said = manifest.headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
    if let Some(said) = said.and_then(|said| said.strip_prefix("sha256:")).filter(|said| *said != manifest.digest) {
        let wanted = excerpt(said, 64);
        return Err(SourceError::Digest { url: manifest_url.to_string(), wanted, found: manifest.digest });
    }
    let parsed: OciImageManifest = serde_json::from_slice(&manifest.body)
        .map_err(|error| wrong(format!("its manifest is not understood: {}", excerpt(&error.to_string(), MAX_TEXT))))?;
    let [layer] = parsed.layers.as_slice() else {
        return Err(wrong(format!("it has {} layers; a package has one", parsed.layers.len())));
    };
    if layer.media_type != MEDIA_TYPE {
        let kind = excerpt(&layer.media_type, 128);
        return Err(wrong(format!("its layer is of type {kind}; a package's is {MEDIA_TYPE}")));
    }
    let digest = layer.digest.strip_prefix("sha256:").and_then(digest_of);
    let digest =
        digest.ok_or_else(|| wrong(format!("its layer's digest {} is not sha256", excerpt(&layer.digest, 128))))?;
    let size = u64::try_from(layer.size).ok().filter(|size| *size <= MAX_PACKAGE);
    let size = size.ok_or_else(|| wrong(format!("its layer has {} bytes; at most {MAX_PACKAGE}", layer.size)))?;

    let expected = Expected { max: MAX_PACKAGE, size: Some(size), digest: Some(&digest), accept: None, token };
    let package = downloader.get(&url(format!("blobs/sha256:{digest}"))?, &expected).await?;
    Ok((package.body, format!("sha256:{}", manifest.digest)))
}

/// A token, as a value of `Authorization`.
async fn token(downloader: &Downloader<'_>, headers: &HeaderMap, repository: &str) -> Result<HeaderValue, SourceError> {
    let failed =
        |message: &str| SourceError::Fetch { url: "the registry's token".to_owned(), message: message.to_owned() };
    let challenge = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .find_map(|header| Challenge::parse(header.to_str().ok()?))
        .ok_or_else(|| failed("it says 401, and not where a token is to be had without a password"))?;
    let url = challenge.url(repository, "pull").map_err(|why| failed(&why))?;
    let answer = downloader.get(&url, &Expected::at_most(MAX_TOKEN)).await?;
    bearer(&answer.body).map_err(|why| failed(&why))
}

/// What a server of tokens answered, as a value of `Authorization`.
pub(super) fn bearer(answer: &[u8]) -> Result<HeaderValue, String> {
    #[derive(Deserialize)]
    struct Token {
        token: Option<String>,
        access_token: Option<String>,
    }
    let Token { token, access_token } =
        serde_json::from_slice(answer).map_err(|_| "what came is no JSON object".to_owned())?;
    let token = token.or(access_token).ok_or("what came holds no token")?;
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| "what came is no token".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(header: &str) -> Option<(String, Option<String>)> {
        Challenge::parse(header).map(|challenge| (challenge.realm, challenge.service))
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others() {
        let realm = "https://auth.example/token".to_owned();
        let header = format!(
            "Basic realm=\"x\", Bearer realm=\"{realm}\",service=\"registry\",scope=\"repository:a:pull,push\""
        );
        assert_eq!(parsed(&header), Some((realm.clone(), Some("registry".into()))));
        assert_eq!(parsed(&format!("bearer REALM=\"{realm}\"")), Some((realm, None)));
        for none in ["", "Basic realm=\"x\"", "Bearer service=\"x\"", "Bearer realm=\"x", "Bearer"] {
            assert_eq!(parsed(none), None, "{none}");
        }
        assert_eq!(parsed(&format!("Bearer realm=\"{}\"", "x".repeat(MAX_CHALLENGE))), None, "too long");
    }

    #[test]
    fn only_pulling_is_asked_for() {
        let challenge = Challenge { realm: "https://auth.example/t?a=b#c".into(), service: Some("a&scope=b".into()) };
        let url = challenge.url("lamp/one", "pull").unwrap();
        assert_eq!(
            url.as_str(),
            "https://auth.example/t?a=b&service=a%26scope%3Db&scope=repository%3Alamp%2Fone%3Apull"
        );
        assert!(Challenge { realm: "/token".into(), service: None }.url("x", "pull").is_err());
    }
}
