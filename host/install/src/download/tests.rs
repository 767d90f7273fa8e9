//! Hostile registries, over a simulated network.

use std::io;
use std::sync::Mutex;

use reqwest::header::HeaderName;
use tokio_util::bytes::Bytes;

use crate::download::*;
use crate::source::{Fetched, Source};
use conductor_services::http::network::{Answer, BodyStream, NetworkError};

/// What a place answers.
enum Play {
    Says(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Zeros without end.
    Endless,
    /// A body that begins and never goes on.
    Stalls,
    /// No head at all.
    Silent,
    /// A byte now and then, without end.
    Drips,
}

/// Answers by the URL that is asked, and notes who was dialled.
struct Lying<F> {
    names: Vec<(&'static str, &'static str)>,
    plays: F,
    asked: Mutex<Vec<String>>,
}

impl<F> std::fmt::Debug for Lying<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lying")
    }
}

impl<F: Fn(&str) -> Play + Send + Sync> Network for Lying<F> {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
        let found = self.names.iter().find(|(name, _)| *name == host).map(|(_, address)| address.parse().unwrap());
        Box::pin(async move { found.map(|address| vec![address]).ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
        let token = request.headers.get(AUTHORIZATION).map_or("", |token| token.to_str().unwrap());
        let host = request.addresses[0];
        self.asked.lock().unwrap().push(format!("{} at {host} {token}", request.url).trim_end().to_owned());
        let play = (self.plays)(request.url.as_str());
        Box::pin(async move {
            let ok = |body: BodyStream| Ok(Incoming { status: 200, headers: HeaderMap::new(), body });
            match play {
                Play::Says(status, list, body) => {
                    let mut headers = HeaderMap::new();
                    for (name, value) in list {
                        headers.append(HeaderName::from_static(name), value.parse().unwrap());
                    }
                    Ok(Incoming { status, headers, body: Box::pin(tokio_stream::once(Ok(Bytes::from(body)))) })
                }
                Play::Endless => {
                    ok(Box::pin(tokio_stream::iter(std::iter::repeat_with(|| Ok(Bytes::from(vec![0; 4096]))))))
                }
                Play::Stalls => ok(Box::pin(tokio_stream::pending())),
                Play::Silent => std::future::pending().await,
                Play::Drips => {
                    let drip = || Ok(Bytes::from_static(b" "));
                    ok(Box::pin(tokio_stream::iter(std::iter::repeat_with(drip)).then(|drop| async {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        drop
                    })))
                }
            }
        })
    }
}

const SHORT: Timeouts =
    Timeouts { head: Duration::from_millis(300), stall: Duration::from_millis(300), total: Duration::from_secs(2) };

/// What comes of fetching `source`, and what was asked for.
fn fetch(source: &str, plays: impl Fn(&str) -> Play + Send + Sync) -> (Result<Fetched, String>, Vec<String>) {
    let names = vec![
        ("registry.example", "93.184.216.34"),
        ("auth.example", "93.184.216.35"),
        ("inside.example", "10.0.0.7"),
        ("sly.example", "127.0.0.1"),
        ("metadata.example", "169.254.169.254"),
    ];
    let network = Lying { names, plays, asked: Mutex::default() };
    let fetched =
        Source::parse(source, None, None).unwrap().fetch_over(&network, SHORT).map_err(|error| error.to_string());
    let asked = network.asked.lock().unwrap().clone();
    (fetched, asked)
}

fn failed(source: &str, plays: impl Fn(&str) -> Play + Send + Sync) -> (String, Vec<String>) {
    let (fetched, asked) = fetch(source, plays);
    (fetched.map(drop).unwrap_err(), asked)
}

fn says(status: u16, headers: &[(&'static str, &str)], body: impl Into<Vec<u8>>) -> Play {
    Play::Says(status, headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(), body.into())
}

fn to(place: &str) -> Play {
    says(302, &[("location", place)], "")
}

const OCI: &str = "oci://registry.example/lamp:1";

fn url() -> String {
    format!("https://registry.example/lamp.wasm#sha256={}", "ab".repeat(32))
}

#[test]
fn a_redirect_leads_to_public_places_over_tls_and_to_no_others() {
    for (place, why) in [
        ("http://127.0.0.1:8080/x", "a loopback address"),
        ("http://localhost/x", "can't be resolved"),
        ("https://127.0.0.1/x", "a loopback address"),
        ("https://[::1]/x", "a loopback address"),
        ("https://2130706433/x", "a loopback address"),
        ("https://inside.example/x", "a private address"),
        ("https://sly.example/x", "a loopback address"),
        ("https://metadata.example/latest", "a link-local address"),
        ("https://[::ffff:10.0.0.1]/x", "a private address"),
        ("http://auth.example/x", "use https"),
        ("https://me:word@auth.example/x", "would be written down"),
        ("file:///etc/passwd", "only https"),
        ("https://", "redirects to nowhere"),
    ] {
        for source in [url(), OCI.to_owned()] {
            let (error, asked) =
                failed(&source, |url| if url.contains("registry.example") { to(place) } else { to("/") });
            assert!(error.contains(why), "{place}: {error}");
            assert!(asked.iter().all(|asked| asked.contains("registry.example/")), "{place}: {asked:?}");
        }
    }
    let (error, asked) = failed(&url(), |url| {
        if url.contains("registry.example") { to("https://auth.example/lamp") } else { says(200, &[], "lamp") }
    });
    assert!(error.contains("has the digest") && asked.len() == 2, "{error} {asked:?}");
}

#[test]
fn redirects_come_to_an_end() {
    let (error, asked) = failed(&url(), |_| to("/again"));
    assert!(error.contains("too many redirects"), "{error}");
    assert_eq!(asked.len(), MAX_REDIRECTS + 1);
}

#[test]
fn a_host_that_a_person_named_may_be_in_their_own_network() {
    let source = format!("https://inside.example/lamp.wasm#sha256={}", "ab".repeat(32));
    let (error, asked) = failed(&source, |_| says(200, &[], "lamp"));
    assert!(error.contains("has the digest"), "{error}");
    assert_eq!(asked, ["https://inside.example/lamp.wasm at 10.0.0.7:443"]);
}

fn challenge(realm: &str) -> Play {
    says(401, &[("www-authenticate", &format!("Bearer realm=\"{realm}\",service=\"registry\""))], "")
}

#[test]
fn a_realm_for_tokens_is_a_public_place_or_the_registry_itself() {
    for (realm, why) in [
        ("http://127.0.0.1:5000/token", "a loopback address"),
        ("http://auth.example/token", "use https"),
        ("https://inside.example/token", "a private address"),
        ("https://metadata.example/token", "a link-local address"),
        ("https://[fd00::1]/token", "a unique-local address"),
        ("https://192.168.1.1/token", "a private address"),
        ("ftp://auth.example/token", "only https"),
        ("token", "is no URL"),
    ] {
        let (error, asked) =
            failed(OCI, |url| if url.contains("/v2/") { challenge(realm) } else { says(200, &[], "{}") });
        assert!(error.contains(why), "{realm}: {error}");
        assert_eq!(asked, ["https://registry.example/v2/lamp/manifests/1 at 93.184.216.34:443"], "{realm}");
    }
    // From one port of this machine to another: what listens there is not the registry.
    let (error, asked) = failed("oci://127.0.0.1:5000/lamp:1", |url| {
        if url.contains("/v2/") { challenge("http://127.0.0.1:5001/token") } else { says(200, &[], "{}") }
    });
    assert!(error.contains("a loopback address") && asked.len() == 1, "{error} {asked:?}");
}

/// The token goes to the registry, and to no host that the registry names.
#[test]
fn a_token_stays_with_the_registry() {
    let digest = conductor_stdx::digest::sha256(b"lamp");
    let manifest = format!(
        r#"{{"schemaVersion":2,"config":{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:{digest}","size":2}},
            "layers":[{{"mediaType":"application/wasm","digest":"sha256:{digest}","size":4}}]}}"#
    );
    let first = std::sync::atomic::AtomicBool::new(true);
    let (error, asked) = failed(OCI, |url| match url {
        _ if url.contains("auth.example/token") => says(200, &[], r#"{"access_token":"sesame"}"#),
        _ if url.contains("/blobs/") => to("https://auth.example/blob"),
        _ if url.contains("auth.example/blob") => says(200, &[], "lamp"),
        _ if first.swap(false, std::sync::atomic::Ordering::Relaxed) => challenge("https://auth.example/token"),
        _ => says(200, &[], manifest.as_str()),
    });
    assert!(error.contains("is not WebAssembly"), "{error}");
    let blob = format!("https://registry.example/v2/lamp/blobs/sha256:{digest} at 93.184.216.34:443 Bearer sesame");
    assert_eq!(
        asked,
        [
            "https://registry.example/v2/lamp/manifests/1 at 93.184.216.34:443",
            "https://auth.example/token?service=registry&scope=repository%3Alamp%3Apull at 93.184.216.35:443",
            "https://registry.example/v2/lamp/manifests/1 at 93.184.216.34:443 Bearer sesame",
            &blob,
            "https://auth.example/blob at 93.184.216.35:443",
        ]
    );
}

#[test]
fn answers_without_end_are_cut_off() {
    let (error, _) =
        failed(OCI, |url| if url.contains("/v2/") { challenge("https://auth.example/t") } else { Play::Endless });
    assert!(error.contains("more than 65536 bytes"), "{error}");
    let (error, _) = failed(OCI, |_| Play::Endless);
    assert!(error.contains("more than 1048576 bytes"), "{error}");
    let (error, _) = failed(&url(), |_| Play::Endless);
    assert!(error.contains("more than 33554432 bytes"), "{error}");
    let (error, _) = failed(&url(), |_| says(200, &[("content-length", "99999999999")], "x"));
    assert!(error.contains("more than 33554432 bytes"), "{error}");
}

#[test]
fn what_hangs_stalls_or_drips_is_left() {
    for (play, why) in [
        ((|| Play::Silent) as fn() -> Play, "no answer in time"),
        (|| Play::Stalls, "did not come in time"),
        (|| Play::Drips, "did not come in time"),
    ] {
        for source in [url(), OCI.to_owned()] {
            let (error, _) = failed(&source, |_| play());
            assert!(error.contains(why), "{source}: {error}");
        }
    }
}

#[test]
fn what_is_no_package_is_told_apart() {
    let manifest = |layers: &str| {
        format!(
            r#"{{"schemaVersion":2,"config":{{"mediaType":"x","digest":"sha256:x","size":2}},"layers":[{layers}]}}"#
        )
    };
    let layer =
        |kind: &str, digest: &str, size: i64| format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":{size}}}"#);
    let good = format!("sha256:{}", "ab".repeat(32));
    let wasm = "application/wasm";
    let index = r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:x","size":1}]}"#;
    for (answer, why) in [
        (index.to_owned(), "is not understood"),
        ("[".repeat(10_000), "is not understood"),
        (manifest(""), "has 0 layers"),
        (manifest(&format!("{0},{0}", layer(wasm, &good, 1))), "has 2 layers"),
        (manifest(&layer("text/\\u001b[2J", &good, 1)), "is of type text/"),
        (manifest(&layer(wasm, "md5:0", 1)), "is not sha256"),
        (manifest(&layer(wasm, &good, 1 << 40)), "at most 33554432"),
        (manifest(&layer(wasm, &good, -1)), "at most 33554432"),
    ] {
        let (error, asked) = failed(OCI, |_| says(200, &[], answer.as_str()));
        assert!(error.contains(why) && !error.contains('\u{1b}'), "{error:?}");
        assert_eq!(asked.len(), 2, "{why}: looked up and read, and nothing after it");
    }
    let (good, manifest, layer) = (&good, &manifest, &layer);
    let blob = |body: &'static str| {
        failed(OCI, move |url| {
            if url.contains("/blobs/") { says(200, &[], body) } else { says(200, &[], manifest(&layer(wasm, good, 4))) }
        })
        .0
    };
    assert!(blob("lamp").contains("has the digest"), "{}", blob("lamp"));
    assert!(blob("lamps").contains("more than 4 bytes"), "{}", blob("lamps"));
    assert!(blob("la").contains("has 2 bytes, not 4"), "{}", blob("la"));
    let (error, _) = failed(OCI, |_| says(200, &[("docker-content-digest", "sha256:00")], manifest("")));
    assert!(error.contains("has the digest"), "{error}");
    let (error, _) = failed(&url(), |_| says(200, &[("content-encoding", "gzip")], "bomb"));
    assert!(error.contains("encoding that was not asked for"), "{error}");
}

#[test]
fn tokens_that_are_none_are_refused() {
    for (answer, why) in [
        (r#"{"token": 7}"#, "no JSON object"),
        ("{}", "holds no token"),
        (r#"{"token": "a\nhost: b"}"#, "is no token"),
        ("<html>", "no JSON object"),
    ] {
        let (error, _) = failed(OCI, |url| {
            if url.contains("/v2/") { challenge("https://auth.example/t") } else { says(200, &[], answer) }
        });
        assert!(error.contains(why), "{error}");
    }
    let (error, _) = failed(OCI, |_| says(401, &[("www-authenticate", "Basic realm=\"x\"")], ""));
    assert!(error.contains("without a password"), "{error}");
}
