//! A registry on a simulated network: what is sent to it, to whom, and what becomes of its answers.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderName};
use tokio_util::bytes::Bytes;

use super::*;
use conductor_services::http::network::{Answer, Incoming, NetworkError, Outgoing};

/// A registry that keeps what it is sent, and checks who it is.
#[derive(Debug, Default)]
struct Shelf {
    /// What `Authorization` has to be; none wanted if empty.
    wants: &'static str,
    /// What it answers to who is not let in.
    challenge: &'static str,
    /// Where uploads go, as `location`.
    uploads: &'static str,
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
    asked: Mutex<Vec<String>>,
}

impl Network for Shelf {
    fn resolve<'a>(&'a self, host: &'a str) -> Answer<'a, io::Result<Vec<IpAddr>>> {
        let address = match host {
            "registry.example" => "93.184.216.34",
            "auth.example" => "93.184.216.35",
            _ => "10.0.0.7",
        };
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }

    fn exchange(&self, request: Outgoing) -> Answer<'_, Result<Incoming, NetworkError>> {
        let answer = self.answer(&request);
        Box::pin(async move {
            let (status, said, body) = answer;
            let mut headers = HeaderMap::new();
            for (name, value) in said {
                headers.insert(HeaderName::from_static(name), value.parse().unwrap());
            }
            Ok(Incoming { status, headers, body: Box::pin(tokio_stream::once(Ok(Bytes::from(body)))) })
        })
    }
}

impl Shelf {
    fn answer(&self, request: &Outgoing) -> (u16, Vec<(&'static str, String)>, Vec<u8>) {
        let authorization = request.headers.get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
        let (host, path) = (request.url.host_str().unwrap(), request.url.path().to_owned());
        self.asked.lock().unwrap().push(format!("{} {host}{path} {authorization}", request.method).trim_end().into());
        if host == "auth.example" {
            return (200, vec![], br#"{"token":"sesame"}"#.to_vec());
        }
        if !self.wants.is_empty() && authorization != self.wants {
            let body = br#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}"#.to_vec();
            return (401, vec![("www-authenticate", self.challenge.into())], body);
        }
        let mut kept = self.kept.lock().unwrap();
        let digest = |bytes: &[u8]| format!("sha256:{}", sha256(bytes));
        match request.method.as_str() {
            // As Docker's registry: what is not asked for by its type is not there.
            "HEAD" if path.contains("/manifests/") && !request.headers.contains_key(ACCEPT) => (404, vec![], vec![]),
            "HEAD" => match kept.get(&path) {
                Some(bytes) => (200, vec![("docker-content-digest", digest(bytes))], vec![]),
                None => (404, vec![], vec![]),
            },
            "POST" => (202, vec![("location", self.uploads.into())], vec![]),
            _ => {
                let named =
                    request.url.query_pairs().find(|(key, _)| key == "digest").map(|(_, value)| value.into_owned());
                let place = named.map_or(path, |digest| format!("/v2/lamp/blobs/{digest}"));
                let said = digest(&request.body);
                kept.insert(place, request.body.clone());
                (201, vec![("docker-content-digest", said)], vec![])
            }
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The smallest package that there is, with a word in it that makes it another one.
fn package(word: &str) -> Package {
    let descriptor = format!(
        "id = 'project:lamp'\nname = 'Lamp'\nversion = '1.2.0+{word}'\ncontract = '0.1'\nsummary = 'Lights.'\n"
    );
    let name = b"conductor:feature";
    let content = [&[u8::try_from(name.len()).unwrap()], name.as_slice(), descriptor.as_bytes()].concat();
    // A component with nothing but a custom section, whose length is a LEB128 number of two bytes.
    let length = [u8::try_from(content.len() % 128).unwrap() | 0x80, u8::try_from(content.len() / 128).unwrap()];
    let bytes = [b"\0asm\x0d\0\x01\0\0".as_slice(), &length, &content].concat();
    Package::from_bytes(Path::new("lamp.wasm"), bytes).unwrap()
}

fn shelf() -> Shelf {
    Shelf { uploads: "/v2/lamp/blobs/uploads/7?state=x", ..Shelf::default() }
}

const SHORT: Timeouts =
    Timeouts { head: Duration::from_millis(300), stall: Duration::from_millis(300), total: Duration::from_secs(2) };

fn put(shelf: &Shelf, package: &Package, account: Option<&Account>, replace: bool) -> Result<Published, String> {
    let to = Destination::parse("oci://registry.example/lamp", &package.info.descriptor.version).unwrap();
    publish_over(shelf, SHORT, package, &to, account, replace).map_err(|error| error.to_string())
}

#[test]
fn the_manifest_comes_after_all_that_it_names() {
    let (shelf, package) = (shelf(), package("a"));
    let published = put(&shelf, &package, None, false).unwrap();
    assert_eq!(published.reference, "registry.example/lamp:1.2.0-a");
    let asked = shelf.asked();
    assert_eq!(asked.last().unwrap(), "PUT registry.example/v2/lamp/manifests/1.2.0-a");
    let kept = shelf.kept.lock().unwrap();
    let manifest = &kept["/v2/lamp/manifests/1.2.0-a"];
    assert_eq!(published.manifest, format!("sha256:{}", sha256(manifest)));
    let manifest: Value = serde_json::from_slice(manifest).unwrap();
    for entry in [&manifest["config"], &manifest["layers"][0]] {
        let blob = &kept[&format!("/v2/lamp/blobs/{}", entry["digest"].as_str().unwrap())];
        assert_eq!(entry["size"], blob.len());
    }
    assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "project:lamp");
}

#[test]
fn a_tag_that_names_another_package_is_replaced_only_when_that_is_meant() {
    let (shelf, first) = (shelf(), package("a"));
    put(&shelf, &first, None, false).unwrap();
    let before = shelf.asked().len();
    assert!(put(&shelf, &first, None, false).unwrap().is_unchanged);
    assert_eq!(shelf.asked().len(), before + 1, "what is there is not sent again");
    shelf.kept.lock().unwrap().insert("/v2/lamp/manifests/1.2.0-b".into(), b"another".to_vec());
    let second = package("b");
    let refused = put(&shelf, &second, None, false).unwrap_err();
    assert!(refused.contains("another package already") && refused.contains("--replace"), "{refused}");
    assert!(!put(&shelf, &second, None, true).unwrap().is_unchanged);
}

#[test]
fn a_password_goes_to_the_registry_or_to_its_own_place_for_tokens() {
    let account = Account { name: "anna".into(), password: "secret".into() };
    let basic = Shelf { wants: "Basic YW5uYTpzZWNyZXQ=", challenge: "Basic realm=\"x\"", ..shelf() };
    put(&basic, &package("a"), Some(&account), false).unwrap();
    assert_eq!(basic.asked()[0], "HEAD registry.example/v2/lamp/manifests/1.2.0-a", "not before it is asked for");
    let bearer = Shelf {
        wants: "Bearer sesame",
        challenge: "Bearer realm=\"https://auth.example/token\",service=\"s\"",
        // Storage elsewhere gets what is uploaded, and no token.
        uploads: "https://auth.example/upload",
        ..shelf()
    };
    // This place for uploads answers 200, as no registry does.
    let refused = put(&bearer, &package("a"), Some(&account), false).unwrap_err();
    assert!(refused.contains("the server says 200"), "{refused}");
    let asked = bearer.asked();
    assert_eq!(asked[1], "GET auth.example/token Basic YW5uYTpzZWNyZXQ=");
    assert_eq!(asked[2], "HEAD registry.example/v2/lamp/manifests/1.2.0-a Bearer sesame");
    assert_eq!(asked.last().unwrap(), "PUT auth.example/upload");
}

#[test]
fn nothing_is_sent_where_a_registry_must_not_lead() {
    let package = package("a");
    let account = Account { name: "anna".into(), password: "secret".into() };
    for realm in ["http://auth.example/token", "https://inside.example/token", "https://127.0.0.1/token"] {
        let challenge: &'static str = format!("Bearer realm=\"{realm}\"").leak();
        let shelf = Shelf { wants: "Bearer sesame", challenge, ..shelf() };
        put(&shelf, &package, Some(&account), false).unwrap_err();
        assert_eq!(shelf.asked().len(), 1, "{realm}: {:?}", shelf.asked());
    }
    let shelf = Shelf { uploads: "https://inside.example/upload", ..shelf() };
    let refused = put(&shelf, &package, None, false).unwrap_err();
    assert!(refused.contains("a private address"), "{refused}");
}

#[test]
fn a_refusal_says_what_the_registry_said_and_what_to_do() {
    let shelf = Shelf { wants: "Basic x", challenge: "Basic realm=\"x\"", ..shelf() };
    let refused = put(&shelf, &package("a"), None, false).unwrap_err();
    assert!(refused.contains("401 Unauthorized") && refused.contains("--user"), "{refused}");
    let account = Account { name: "anna".into(), password: "wrong".into() };
    let refused = put(&shelf, &package("a"), Some(&account), false).unwrap_err();
    assert!(refused.contains("401 Unauthorized") && !refused.contains("--user"), "{refused}");
    assert_eq!(format!("{account:?}"), "Account { name: \"anna\", .. }");
}

#[test]
fn a_destination_is_a_repository_with_a_tag() {
    let tag = |text: &str| Destination::parse(text, "1.2.0+x").map(|to| to.shown()).map_err(|error| error.to_string());
    assert_eq!(tag("oci://127.0.0.1:5000/a/lamp").unwrap(), "oci://127.0.0.1:5000/a/lamp:1.2.0-x");
    assert_eq!(tag("oci://ghcr.io/a/lamp:beta").unwrap(), "oci://ghcr.io/a/lamp:beta");
    assert!(tag("ghcr.io/a/lamp").unwrap_err().contains("oci://"));
    let digest = format!("1@sha256:{}", "ab".repeat(32));
    for version in ["../../other/manifests/1", "1/../2", "1?x", "1#x", "1 beta", ":1", "", digest.as_str()] {
        let refused = Destination::parse("oci://ghcr.io/a/lamp", version).unwrap_err().to_string();
        assert!(refused.contains("is no tag; name one"), "{version}: {refused}");
        let named = Destination::parse("oci://ghcr.io/a/lamp:beta", version).unwrap();
        assert_eq!(named.shown(), "oci://ghcr.io/a/lamp:beta");
    }
    assert!(tag(&format!("oci://ghcr.io/a/lamp@sha256:{}", "ab".repeat(32))).unwrap_err().contains("name a tag"));
}
