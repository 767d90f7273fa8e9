//! Validation of a request, before a name is resolved or anything is sent.

use std::net::IpAddr;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use crate::http::{HttpError, Request, SecretUse};
use conductor_net::endpoint::checked_host;
use conductor_net::http_scope::{HostPattern, HttpScope, Site};
use conductor_package::admission::Grantee;
use conductor_package::consent;

/// Bytes of a URL.
pub const MAX_URL: usize = 8 * 1024;
/// Headers of a request, the secret's among them.
pub const MAX_HEADERS: usize = 64;
/// Bytes of a request's header names and values together, the secret's prefix among them.
pub const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Bytes of a request's body.
pub const MAX_BODY: usize = 1024 * 1024;

/// Headers that steer the connection, which is the host's. So do all that begin with `proxy-`.
const REFUSED_HEADERS: [&str; 10] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
    "http2-settings",
];

/// Headers that ask for a response in another form or in pieces, in which an echoed secret would not
/// be found.
const REFUSED_WITH_SECRET: [&str; 3] = ["accept-encoding", "range", "if-range"];

/// A request that the grant covers.
#[derive(Debug)]
pub struct Checked {
    /// One of those that the contract lists.
    pub method: Method,
    /// Without a user part and a fragment.
    pub url: Url,
    /// Where the URL leads.
    pub site: Site,
    /// Without the secret's.
    pub headers: HeaderMap,
    /// What is sent.
    pub body: Vec<u8>,
    /// The secret to add: granted for `site`.
    pub secret: Option<CheckedSecret>,
}

/// A use of a secret that is granted for where it goes.
#[derive(Debug)]
pub struct CheckedSecret {
    /// Its id.
    pub id: String,
    /// The header that it goes into.
    pub header: HeaderName,
    /// What stands before it.
    pub prefix: String,
    /// The variable of the environment that has its value. `None` if it is where secrets are kept.
    pub variable: Option<String>,
}

/// Checks a request of `feature` against what was granted to it. Its body may have `most` bytes.
pub fn check(request: Request, scope: &HttpScope, feature: &Grantee, most: usize) -> Result<Checked, HttpError> {
    let method = checked_method(&request.method)?;
    let (url, site) = checked_url(&request.url)?;
    if !scope.covers(&site) {
        return Err(HttpError::Denied(format!(
            "{site} is not granted; {}",
            feature.advice(&format!("http = [\"{site}\"]"), &consent::word("network", &format!("http:{site}")))
        )));
    }
    let headers = checked_headers(&request.headers, request.secret.as_ref())?;
    if request.body.len() > most {
        let most = most / (1024 * 1024);
        return Err(HttpError::Invalid(format!("a body has at most {most} MiB, not {} bytes", request.body.len())));
    }
    let secret = request.secret.map(|usage| checked_secret(usage, &headers, scope, &site, feature)).transpose()?;
    let secret = secret.map(|secret| CheckedSecret { variable: request.variable, ..secret });
    Ok(Checked { method, url, site, headers, body: request.body, secret })
}

fn checked_method(text: &str) -> Result<Method, HttpError> {
    match text {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        "HEAD" => Ok(Method::HEAD),
        _ => Err(HttpError::Invalid("a method is GET, POST, PUT, PATCH, DELETE or HEAD, in capitals".into())),
    }
}

pub fn checked_url(text: &str) -> Result<(Url, Site), HttpError> {
    let invalid = |why: &str| HttpError::Invalid(format!("the URL {why}; write https://host/path?query"));
    if text.len() > MAX_URL {
        return Err(invalid("has more than 8 KiB"));
    }
    // The parser would drop line breaks and tabs in silence.
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(invalid("holds a blank or a control character, which has to be percent-encoded"));
    }
    let url = Url::parse(text).map_err(|error| invalid(&format!("can't be read: {error}")))?;
    let secure = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(invalid("is not https")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("holds a user or a password, which belong into a header"));
    }
    if url.fragment().is_some() {
        return Err(invalid("holds a fragment (#...), which is never sent"));
    }
    let site = checked_site(text, &url, secure).ok_or_else(|| {
        invalid(&format!(
            "does not write its host the one way that it is read, which would be {:?}",
            url.host_str().unwrap_or_default()
        ))
    })?;
    if !secure && !is_this_machine(&site.host) {
        return Err(invalid("is http, which goes to this machine only (localhost, 127.0.0.1, [::1])"));
    }
    Ok((url, site))
}

/// The host and port, if they are written the way they are read: no other spelling of an address, no
/// escapes, no letters that are mapped to others, no backslash. What was granted, what a person sees
/// in a log and what is dialled are then the same word.
fn checked_site(text: &str, url: &Url, secure: bool) -> Option<Site> {
    let (_, rest) = text.split_once("://")?;
    let written: HostPattern = rest.split(['/', '?', '#']).next()?.parse().ok()?;
    let read = url.host_str()?;
    let read = read.strip_prefix('[').and_then(|read| read.strip_suffix(']')).unwrap_or(read);
    let host = checked_host(read)?;
    let port = url.port_or_known_default()?;
    (written.host() == host && written.port_or(secure) == port).then_some(Site { host, port, secure })
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn checked_headers(list: &[(String, String)], secret: Option<&SecretUse>) -> Result<HeaderMap, HttpError> {
    let added = secret.map(|secret| (&secret.header, &secret.prefix));
    let all = || list.iter().map(|(name, value)| (name, value)).chain(added);
    if all().count() > MAX_HEADERS {
        return Err(HttpError::Invalid(format!(
            "a request has at most {MAX_HEADERS} headers, the secret's among them"
        )));
    }
    if all().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_HEADER_BYTES {
        return Err(HttpError::Invalid("a request's headers have at most 16 KiB, names and values together".into()));
    }
    let mut headers = HeaderMap::with_capacity(list.len() + 1);
    for (name, value) in list {
        let name = checked_name(name)?;
        if secret.is_some() && REFUSED_WITH_SECRET.contains(&name.as_str()) {
            return Err(HttpError::Invalid(format!("the header {name} can't be set in a request with a secret")));
        }
        let value = checked_value(&name, value)?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn checked_name(text: &str) -> Result<HeaderName, HttpError> {
    // `from_lowercase` would do, if it told capitals from the rest.
    let name = HeaderName::from_bytes(text.as_bytes()).ok().filter(|name| name.as_str() == text).ok_or_else(|| {
        HttpError::Invalid(format!("{text:?} is not a header's name; write lower case letters, digits and hyphens"))
    })?;
    if REFUSED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
        return Err(HttpError::Invalid(format!("the header {name} is the host's to set; leave it out")));
    }
    Ok(name)
}

fn checked_value(name: &HeaderName, text: &str) -> Result<HeaderValue, HttpError> {
    HeaderValue::from_str(text)
        .map_err(|_| HttpError::Invalid(format!("the value of the header {name} holds a control character")))
}

fn checked_secret(
    usage: SecretUse,
    headers: &HeaderMap,
    scope: &HttpScope,
    site: &Site,
    feature: &Grantee,
) -> Result<CheckedSecret, HttpError> {
    let SecretUse { id, header, prefix } = usage;
    if !scope.covers_secret(&id, site) {
        return Err(HttpError::Denied(format!(
            "the secret {id:?} is not granted for {site}; {}",
            feature.advice(
                &format!("secrets = [{{ id = {id:?}, hosts = [\"{site}\"] }}]"),
                &consent::word(&format!("secret:{id}"), &site.to_string())
            )
        )));
    }
    let header = checked_name(&header)?;
    checked_value(&header, &prefix)?;
    if headers.contains_key(&header) {
        return Err(HttpError::Invalid(format!("the header {header} is the secret's; leave it out of the headers")));
    }
    Ok(CheckedSecret { id, header, prefix, variable: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(hosts: &[&str]) -> HttpScope {
        HttpScope { hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(), secrets: Vec::new() }
    }

    fn get(url: &str) -> Request {
        Request { method: "GET".into(), url: url.into(), ..Request::default() }
    }

    fn site(url: &str, hosts: &[&str]) -> Result<String, HttpError> {
        check(get(url), &scope(hosts), &chat(), MAX_BODY)
            .map(|checked| format!("{} {}", checked.site.host, checked.site.port))
    }

    fn chat() -> Grantee {
        Grantee { name: "chat".into(), provenance: conductor_package::admission::Provenance::Bundled }
    }

    #[track_caller]
    fn denied(url: &str, hosts: &[&str]) {
        assert!(matches!(site(url, hosts), Err(HttpError::Denied(_))), "{url}: {:?}", site(url, hosts));
    }

    #[track_caller]
    fn invalid(url: &str, hosts: &[&str]) {
        assert!(matches!(site(url, hosts), Err(HttpError::Invalid(_))), "{url}: {:?}", site(url, hosts));
    }

    #[test]
    fn what_is_granted_passes() {
        let granted = ["granted.example", "granted.example:8443", "xn--bcher-kva.example", "localhost:80", "127.0.0.1"];
        assert_eq!(site("https://granted.example/a?b=c%20d", &granted).unwrap(), "granted.example 443");
        assert_eq!(site("https://granted.example", &granted).unwrap(), "granted.example 443");
        assert_eq!(site("https://granted.example:443/", &granted).unwrap(), "granted.example 443");
        assert_eq!(site("HTTPS://Granted.EXAMPLE:8443/", &granted).unwrap(), "granted.example 8443");
        assert_eq!(site("https://xn--bcher-kva.example/", &granted).unwrap(), "xn--bcher-kva.example 443");
        assert_eq!(site("http://localhost/", &granted).unwrap(), "localhost 80");
        assert_eq!(site("http://127.0.0.1/", &granted).unwrap(), "127.0.0.1 80");
        assert_eq!(site("http://[0::1]/", &["[::1]"]).unwrap(), "::1 80");
    }

    #[test]
    fn other_hosts_and_ports_are_denied() {
        let granted = ["granted.example"];
        for url in [
            "https://evil.example/",
            "https://granted.evil/",
            "https://granted.example.evil/",
            "https://notgranted.example/",
            "https://sub.granted.example/",
            "https://evil.example/granted.example",
            "https://evil.example/?https://granted.example/",
            "https://granted.example:8443/",
            "https://granted.example:80/",
            "https://xn--grantd-4of.example/",
            "http://localhost/",
            "http://127.0.0.1/",
        ] {
            denied(url, &granted);
        }
        denied("https://granted.example/", &[]);
        denied("https://granted.example/", &["granted.example:8443"]);
        denied("http://127.0.0.1/", &["localhost"]);
        denied("http://127.0.0.2/", &["127.0.0.1"]);
        let Err(HttpError::Denied(text)) = site("https://evil.example:8443/", &granted) else { panic!() };
        assert!(text.contains("`http = [\"evil.example:8443\"]` under [features.chat.grants]"), "{text}");
    }

    #[test]
    fn a_url_that_could_be_read_in_two_ways_is_invalid() {
        // All of these are granted in every reading, so that only the spelling is refused.
        let granted = ["granted.example", "evil.example", "evil", "127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"];
        for url in [
            "https://granted.example@evil/",
            "https://granted.example:pass@evil/",
            "https://@evil/",
            "https://:@evil/",
            "https://granted.example\\@evil/",
            "https:\\\\granted.example/",
            "https:granted.example/",
            "https:/granted.example/",
            "https:///granted.example/",
            "https://granted.example./",
            "https://granted.example:/",
            "https://granted.example/#part",
            "https://granted.example/#",
            "https://%67ranted.example/",
            "https://ｇranted.example/",
            "https://granted。example/",
            "https://granted.\u{ad}example/",
            "https://bücher.example/",
            "https://granted.exa\tmple/",
            "https://granted.example/\r\nhost:evil",
            " https://granted.example/",
            "https://granted.example/a b",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://127.0.0.1./",
            "https://0/",
            "http://2130706433/",
            "http://granted.example/",
            "http://evil/",
            "http://0.0.0.0/",
            "http://[::ffff:127.0.0.1]/",
            "ftp://granted.example/",
            "file:///etc/passwd",
            "ws://127.0.0.1/",
            "data:text/plain,granted.example",
            "granted.example",
            "//granted.example/",
            "",
        ] {
            invalid(url, &granted);
        }
        invalid(&format!("https://granted.example/{}", "a".repeat(MAX_URL)), &granted);
    }

    #[test]
    fn only_the_listed_methods_pass() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] {
            let request = Request { method: method.into(), ..get("https://granted.example/") };
            assert_eq!(check(request, &scope(&["granted.example"]), &chat(), MAX_BODY).unwrap().method, method);
        }
        for method in ["get", "CONNECT", "TRACE", "OPTIONS", "GET / HTTP/1.1\r\nhost: evil\r\n\r\nGET", ""] {
            let request = Request { method: method.into(), ..get("https://granted.example/") };
            assert!(matches!(
                check(request, &scope(&["granted.example"]), &chat(), MAX_BODY),
                Err(HttpError::Invalid(_))
            ));
        }
    }

    fn with_headers(headers: &[(&str, &str)]) -> Result<HeaderMap, HttpError> {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let request = Request { headers, ..get("https://granted.example/") };
        check(request, &scope(&["granted.example"]), &chat(), MAX_BODY).map(|checked| checked.headers)
    }

    #[test]
    fn headers_can_neither_steer_the_connection_nor_smuggle_others_in() {
        let kept = with_headers(&[("accept", "a"), ("accept", "b"), ("x-empty", "")]).unwrap();
        assert_eq!(kept.get_all("accept").iter().collect::<Vec<_>>(), ["a", "b"]);
        for (name, value) in [
            ("host", "evil"),
            ("connection", "x"),
            ("content-length", "0"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("proxy-authorization", "x"),
            ("proxy-connection", "x"),
            ("keep-alive", "x"),
            ("expect", "100-continue"),
            ("Host", "evil"),
            ("Accept", "x"),
            ("x y", "x"),
            ("x:y", "x"),
            ("x\r\nhost", "evil"),
            ("", "x"),
            (":authority", "evil"),
            ("x", "a\r\nhost: evil"),
            ("x", "a\nb"),
            ("x", "a\rb"),
            ("x", "a\0b"),
        ] {
            let refused = with_headers(&[(name, value)]);
            assert!(matches!(refused, Err(HttpError::Invalid(_))), "{name:?}: {value:?}");
        }
    }

    #[test]
    fn sizes_have_their_limits() {
        assert!(with_headers(&[("x", "y"); MAX_HEADERS]).is_ok());
        assert!(matches!(with_headers(&[("x", "y"); MAX_HEADERS + 1]), Err(HttpError::Invalid(_))));
        assert!(with_headers(&[("x", &"y".repeat(MAX_HEADER_BYTES - 1))]).is_ok());
        assert!(matches!(with_headers(&[("x", &"y".repeat(MAX_HEADER_BYTES))]), Err(HttpError::Invalid(_))));
        let body = |size: usize| {
            let request = Request { body: vec![0; size], ..get("https://granted.example/") };
            check(request, &scope(&["granted.example"]), &chat(), MAX_BODY)
        };
        assert!(body(MAX_BODY).is_ok());
        assert!(matches!(body(MAX_BODY + 1), Err(HttpError::Invalid(_))));
    }

    #[test]
    fn a_secret_goes_only_where_it_is_granted_and_only_into_a_header_of_its_own() {
        let scope: HttpScope = toml::from_str(
            r#"
            hosts = ["granted.example", "granted.example:8443", "other.example"]
            secrets = [{ id = "key", hosts = ["granted.example"] }]
            "#,
        )
        .unwrap();
        let send = |url: &str, id: &str, header: &str, prefix: &str, more: &[(&str, &str)]| {
            let secret = SecretUse { id: id.into(), header: header.into(), prefix: prefix.into() };
            let headers = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            check(Request { headers, secret: Some(secret), ..get(url) }, &scope, &chat(), MAX_BODY)
        };
        let here = "https://granted.example/";
        assert!(send(here, "key", "authorization", "Bearer ", &[("accept", "x")]).is_ok());
        for (url, id) in
            [("https://other.example/", "key"), ("https://granted.example:8443/", "key"), (here, "another"), (here, "")]
        {
            let refused = send(url, id, "authorization", "Bearer ", &[]);
            assert!(matches!(refused, Err(HttpError::Denied(_))), "{url} {id}: {refused:?}");
        }
        for (header, prefix, more) in [
            ("authorization", "Bearer ", ("authorization", "mine")),
            ("host", "", ("accept", "x")),
            ("Authorization", "", ("accept", "x")),
            ("authorization", "x\r\ny: ", ("accept", "x")),
            ("authorization", "", ("accept-encoding", "gzip")),
            ("authorization", "", ("range", "bytes=0-3")),
        ] {
            let refused = send(here, "key", header, prefix, &[more]);
            assert!(matches!(refused, Err(HttpError::Invalid(_))), "{header} {prefix} {more:?}: {refused:?}");
        }
    }
}
