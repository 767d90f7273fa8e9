//! Responses: bodies, the shape of errors, and the headers of every response, as the content security policy (CSP).

use std::error::Error;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// Why a body ends before its end.
pub(super) type BodyError = Box<dyn Error + Send + Sync>;
/// A body, which may still be coming.
pub(super) type Body = UnsyncBoxBody<Bytes, BodyError>;

/// Nothing but what this server has is loaded, no script or style stands in a page, and no page of others frames ours.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

/// A body that is complete.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// An answer that is no page of the shell's, and that no cache keeps.
pub(super) fn fresh(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A page of a few words, for people.
pub(super) fn page(status: StatusCode, text: &str) -> Response<Body> {
    let html = format!("<!doctype html>\n<html lang=\"en\"><title>Conductor</title>\n<p>{text}</p>\n</html>\n");
    fresh(status, "text/html; charset=utf-8", whole(html))
}

/// Why a request is not done. As JSON it has the shape of the API's errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ErrorAnswer {
    pub(super) status: StatusCode,
    /// A word that stays as it is, as the API has them.
    code: &'static str,
    /// What is wrong and what to do, for people.
    error: String,
}

impl ErrorAnswer {
    pub(super) fn new(status: StatusCode, code: &'static str, error: impl Into<String>) -> Self {
        Self { status, code, error: error.into() }
    }

    /// 403.
    pub(super) fn forbidden(error: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", error)
    }

    /// The answer. The connection ends with it: what is left of the request is not read.
    pub(super) fn into_response(self) -> Response<Body> {
        let json = serde_json::json!({ "error": self.error, "code": self.code });
        let mut response = fresh(self.status, "application/json", whole(json.to_string()));
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if matches!(self.status, StatusCode::BAD_GATEWAY | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Adds the headers that every answer to a browser has.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
