//! The pages: the built front-end, as it was embedded when this was compiled.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;

use bytes::Bytes;
use conductor_stdx::digest::sha256;
use flate2::read::GzDecoder;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use super::answer::{Body, ErrorAnswer, fresh, page, whole};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page that every path without a file has: the front-end reads the path.
const INDEX: &str = "index.html";
/// The folder whose files have a hash of their content in their name.
const HASHED: &str = "assets/";
/// Where there are no pages.
const NOT_BUILT: &str = "This <code>conductor</code> was built without the web shell. <code>cargo xtask web</code> builds \
                         its pages, which takes Node; then build <code>conductor</code> again. The API is served all \
                         the same.";

/// Files by their path.
#[derive(Debug, Clone)]
pub struct Pages(BTreeMap<String, File>);

#[derive(Debug, Clone)]
struct File {
    /// As gzip has it.
    compressed: Bytes,
    digest: String,
}

impl Pages {
    /// Those that were there when this was compiled; empty if the front-end was not built.
    pub fn embedded() -> Self {
        Self::of(EMBEDDED.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::from_static(bytes))))
    }

    /// These: paths such as `assets/x.js`, with their content compressed by gzip.
    pub fn of(files: impl IntoIterator<Item = (String, Bytes)>) -> Self {
        let file = |(name, compressed): (String, Bytes)| (name, File { digest: sha256(&compressed), compressed });
        Self(files.into_iter().map(file).collect())
    }

    /// Answers a request for a page or a file.
    ///
    /// # Errors
    /// 404 for a file that there is not; 405 for another method than GET and HEAD.
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Result<Response<Body>, ErrorAnswer> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let error = "pages can only be read";
            return Err(ErrorAnswer::new(StatusCode::METHOD_NOT_ALLOWED, "bad_request", error));
        }
        let path = request.uri().path().trim_start_matches('/');
        let (name, file) = match self.0.get_key_value(path) {
            Some(found) => found,
            None if path.contains('.') => {
                return Err(ErrorAnswer::new(StatusCode::NOT_FOUND, "not_found", "there is no such file"));
            }
            None => match self.0.get_key_value(INDEX) {
                Some(index) => index,
                None => return Ok(page(StatusCode::SERVICE_UNAVAILABLE, NOT_BUILT)),
            },
        };
        Ok(file.answer(name, request.headers()))
    }
}

impl File {
    fn answer(&self, name: &str, headers: &HeaderMap) -> Response<Body> {
        let compressed = takes_gzip(headers);
        // A strong tag is of the bytes that are sent.
        let tag = format!("\"{}{}\"", &self.digest, if compressed { "" } else { "-plain" });
        let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known.flat_map(|tags| tags.split(',')).any(|known| known.trim() == tag);
        let (status, body) = match (is_known, compressed) {
            (true, _) => (StatusCode::NOT_MODIFIED, Bytes::new()),
            (false, true) => (StatusCode::OK, self.compressed.clone()),
            (false, false) => (StatusCode::OK, self.plain()),
        };
        let mut response = fresh(status, kind(name), whole(body));
        let cache = if is_hashed(name) { "public, max-age=31536000, immutable" } else { "no-cache" };
        let mut set = |name: HeaderName, value: Cow<'static, str>| {
            HeaderValue::try_from(&*value).map(|value| drop(response.headers_mut().insert(name, value)))
        };
        let _ = set(header::CACHE_CONTROL, cache.into());
        let _ = set(header::VARY, "accept-encoding".into());
        let _ = set(header::ETAG, tag.into());
        if compressed && !is_known {
            let _ = set(header::CONTENT_ENCODING, "gzip".into());
        }
        response
    }

    fn plain(&self) -> Bytes {
        let mut plain = Vec::new();
        // Made by the build, of files of the build.
        let read = GzDecoder::new(&*self.compressed).read_to_end(&mut plain);
        read.map(|_| plain.into()).unwrap_or_default()
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Whether a name has a hash of the content: `assets/NAME-8CHARACT.EXTENSION`.
fn is_hashed(name: &str) -> bool {
    let stem = name.strip_prefix(HASHED).and_then(|name| name.rsplit_once('.')).map_or("", |(stem, _)| stem);
    let is_hash = |hash: &[u8]| hash.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    stem.as_bytes().split_last_chunk::<8>().is_some_and(|(before, hash)| before.ends_with(b"-") && is_hash(hash))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_with_a_hash_stays_in_caches() {
        for name in ["assets/index-0a1b2c3d.js", "assets/a-b-0A1_2-3d.css"] {
            assert!(is_hashed(name), "{name}");
        }
        for name in ["index.html", "index-0a1b2c3d.js", "assets/index.js", "assets/0a1b2c3d.js", "assets/x-0a1b2c3d"] {
            assert!(!is_hashed(name), "{name}");
        }
    }

    #[test]
    fn a_client_says_whether_it_takes_gzip() {
        let takes =
            |value: &str| takes_gzip(&[(header::ACCEPT_ENCODING, value.parse().unwrap())].into_iter().collect());
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate, gzip, br"));
        assert!(!takes("") && !takes("br") && !takes("gzip;q=0") && !takes("gzip; q=0.000, br"));
    }
}
