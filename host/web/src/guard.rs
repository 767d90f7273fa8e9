//! The guard against cross-site request forgery (CSRF) and DNS rebinding, which every request passes first.
//!
//! A page of another site can have the browser send requests here, with our cookie where the browser thinks that is the
//! same site (another port of this computer is), and can point a name of its own at 127.0.0.1. So the `Host` has to be
//! ours, the `Origin` too where there is one, and what changes anything needs a header that no page of another origin
//! can send without asking first, which is always refused.

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};

use super::answer::ErrorAnswer;

/// The header of each request that is neither GET nor HEAD.
const SHELL: HeaderName = HeaderName::from_static("x-conductor-shell");
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The host's API.
    Api,
    /// A link that signs in.
    SignIn,
    /// A page, or a file of one.
    Page,
}

/// Says what a request to the server at `port` is for.
///
/// # Errors
/// 403 for one that a page of others could have sent; 400 for a path that could be read in more than one way.
pub(super) fn check<B>(port: u16, request: &Request<B>) -> Result<Place, ErrorAnswer> {
    let (headers, method) = (request.headers(), request.method());
    let host = only(headers, header::HOST).filter(|host| is_ours(host, port));
    let named = request.uri().authority().is_none_or(|authority| Some(authority.as_str()) == host);
    let Some(host) = host.filter(|_| named) else {
        return Err(ErrorAnswer::forbidden(format!("the Host has to be 127.0.0.1:{port} or localhost:{port}")));
    };
    let mut origins = headers.get_all(header::ORIGIN).iter().peekable();
    let has_origin = origins.peek().is_some();
    let own = |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| origin.eq_ignore_ascii_case(host));
    if !origins.all(|origin| origin.to_str().is_ok_and(own)) {
        return Err(ErrorAnswer::forbidden("web pages of another origin may not ask"));
    }
    let place = place(request.uri().path())
        .ok_or_else(|| ErrorAnswer::new(StatusCode::BAD_REQUEST, "bad_request", "this is no path of the web shell"))?;
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if !reads && only(headers, SHELL) != Some("1") {
        return Err(ErrorAnswer::forbidden(format!("a {method} needs the header `{SHELL}: 1`")));
    }
    // Browsers ask for WebSockets of any origin, and leave it to the server.
    let upgrades = headers.contains_key(header::UPGRADE);
    if upgrades && !has_origin {
        return Err(ErrorAnswer::forbidden("a WebSocket needs the Origin of the page that asks"));
    }
    // Where a browser says for which page it asks; of WebSockets not all say the same. `none` is a person who typed the
    // address.
    let from_page = headers.get_all(SITE).iter().all(|site| site == "same-origin" || (reads && site == "none"));
    if place == Place::Api && !upgrades && !from_page {
        return Err(ErrorAnswer::forbidden("web pages of another site may not ask"));
    }
    Ok(place)
}

/// The value of a header that occurs exactly once.
pub(super) fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

fn is_ours(host: &str, port: u16) -> bool {
    let (name, said) = host.rsplit_once(':').unwrap_or((host, "80"));
    (name == "127.0.0.1" || name.eq_ignore_ascii_case("localhost")) && said == port.to_string()
}

/// What a path is for; `None` if it means another path once it is decoded or shortened.
fn place(path: &str) -> Option<Place> {
    let path = path.strip_prefix('/')?;
    if path.is_empty() {
        return Some(Place::Page);
    }
    let decoded = path.split('/').map(decoded).collect::<Option<Vec<_>>>()?;
    if !decoded.iter().all(|segment| is_plain(segment)) {
        return None;
    }
    let [first, rest @ ..] = &decoded[..] else { return None };
    let first = first.split(|byte| *byte == b'/').next()?;
    let (raw, _) = path.split_once('/').unwrap_or((path, ""));
    match raw {
        "v1" => (!rest.is_empty()).then_some(Place::Api),
        "sign-in" => (rest.len() == 1).then_some(Place::SignIn),
        // Almost one of them, such as `V1`, `%761` or `v1%2Fstatus`.
        _ if [b"v1".as_slice(), b"sign-in"].iter().any(|name| first.eq_ignore_ascii_case(name)) => None,
        _ => Some(Place::Page),
    }
}

/// A segment as it is after `%41` was made `A`; `None` if something else follows a `%`.
fn decoded(segment: &str) -> Option<Vec<u8>> {
    let mut bytes = segment.bytes();
    let mut decoded = Vec::with_capacity(segment.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

/// Whether a segment is a name. A name of the API may have a slash in it (`%2F`), but no path.
fn is_plain(segment: &[u8]) -> bool {
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..");
    !segment.iter().any(|byte| byte.is_ascii_control() || *byte == b'\\')
        && segment.split(|byte| *byte == b'/').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_one_thing_or_nothing() {
        for (path, expected) in [
            ("/", Some(Place::Page)),
            ("/live", Some(Place::Page)),
            ("/assets/index-0a1b2c3d.js", Some(Place::Page)),
            ("/v10/status", Some(Place::Page)),
            ("/v1/status", Some(Place::Api)),
            ("/v1/models/a%2Fb/check", Some(Place::Api)),
            ("/v1/skills/100%25", Some(Place::Api)),
            ("/sign-in/0123", Some(Place::SignIn)),
            ("/sign-in/0123/4", None),
            ("/sign-in", None),
            ("/v1", None),
            ("/v1/", None),
            ("/v1//status", None),
            ("//v1/status", None),
            ("/V1/status", None),
            ("/%761/status", None),
            ("/v1%2Fstatus", None),
            ("/v1/../status", None),
            ("/v1/%2e%2E/status", None),
            ("/v1/a%2f..%2Fb", None),
            ("/v1/a\\b", None),
            ("/v1/a%5cb", None),
            ("/v1/a%00", None),
            ("/v1/a%0d%0ab", None),
            ("/v1/a%", None),
            ("/v1/a%4", None),
            ("/v1/a%+1", None),
            ("*", None),
            ("", None),
        ] {
            assert_eq!(place(path), expected, "{path}");
        }
    }

    #[test]
    fn a_host_is_this_computer_at_this_port() {
        for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080"] {
            assert!(is_ours(host, 8080), "{host}");
        }
        for host in
            ["127.0.0.1", "127.0.0.1:8081", "127.0.0.1.evil.example:8080", "evil.example:8080", "[::1]:8080", ""]
        {
            assert!(!is_ours(host, 8080), "{host}");
        }
        assert!(is_ours("localhost", 80), "browsers leave this port out");
    }
}
