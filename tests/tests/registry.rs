//! Features from a registry of others, while a host runs; and then without it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};

use conductor_tests::conductor::{command, guest};
use conductor_tests::home::Home;
use conductor_tests::process::Process;
use conductor_tests::registry::Registry;
use conductor_tests::wait;
use serde_json::{Value, json};

const NAME: &str = "hostile-tools";

/// A server that takes connections and never answers; reports each.
fn silence() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (told, called) = mpsc::channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            held.push(stream);
            if told.send(()).is_err() {
                return;
            }
        }
    });
    (port, called)
}

/// The guest with tools of every tier, with other words in the same places.
fn release(home: &Home, file: &str, changes: &[(&str, &str)]) -> (PathBuf, String) {
    let mut bytes = fs::read(guest(NAME)).unwrap();
    for (from, to) in changes {
        assert_eq!(from.len(), to.len());
        let places: Vec<usize> =
            bytes.windows(from.len()).enumerate().filter(|(_, w)| *w == from.as_bytes()).map(|(at, _)| at).collect();
        assert!(!places.is_empty(), "{from:?} is not in {NAME}");
        places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to.as_bytes()));
    }
    let path = home.write(file, bytes);
    let digest = home.json(&["feature", "inspect", path.to_str().unwrap(), "--json"])["digest"].clone();
    (path, digest.as_str().unwrap().to_owned())
}

/// What was done, by the receipts, oldest first.
fn receipts(home: &Home) -> Vec<Value> {
    let folder = fs::read_dir(home.path().join("features/receipts")).unwrap();
    let read = |path: PathBuf| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
    let mut receipts: Vec<Value> = folder.map(|entry| read(entry.unwrap().path())).collect();
    receipts.sort_by_key(|receipt| receipt["at"].as_u64());
    receipts
}

/// The hosts that a list of capabilities names.
fn hosts(capabilities: &Value) -> Vec<&str> {
    let lists = capabilities.as_array().unwrap().iter().filter_map(|capability| capability["http"].as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

fn feature(home: &Home, arguments: &[&str]) -> Value {
    home.json(&[&["feature"], arguments, &["--json"]].concat())
}

fn works(home: &Home) {
    let end = home.conductor(&["tool", "call", "look", "{}"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
}

// FEA-3, FEA-4, FEA-11, FEA-12: every change that there is to an installed feature, out of a real registry and
// under a running host; and the same feature when the registry is gone.
#[test]
fn a_feature_lives_through_a_registry_and_without_it() {
    let Some(registry) = Registry::start() else { return };
    let home = Home::new("");
    let (port, called) = silence();
    let server = format!("127.0.0.1:{port}");
    assert_eq!(server.len(), "granted.example".len(), "ports that are given out have five digits");
    let here = ("granted.example", server.as_str());
    let (first, first_digest) = release(&home, "first.wasm", &[here]);
    let more = [here, ("version = \"1.0.0\"", "version = \"2.0.0\""), ("sly.example", "new.example")];
    let (second, second_digest) = release(&home, "second.wasm", &more);
    registry.push("tools", "1", &first, &first_digest);
    registry.push("tools", "2", &second, &second_digest);
    let host = home.run();
    let version = |wanted: &str| host.feature_when(NAME, |feature| feature["package"]["version"] == wanted);
    let there = |status: &Value| status["features"].as_array().unwrap().iter().any(|it| it["name"] == NAME);

    // Installed, and at once in the host that runs.
    let report = feature(&home, &["install", &registry.reference("tools", "1"), "--grant", "network"]);
    assert_eq!((&report["what"], &report["digest"]), (&json!("install"), &json!(first_digest)));
    assert!(report["source"].to_string().contains("sha256:"), "{report}");
    host.status_when(there);
    version("1.0.0");
    works(&home);

    // The next one asks for more: that is shown, and not given.
    let report = feature(&home, &["upgrade", NAME, &registry.reference("tools", "2")]);
    assert_eq!((&report["what"], &report["version"]), (&json!("upgrade"), &json!("2.0.0")));
    assert_eq!(hosts(&report["denied"]), ["new.example"], "{report}");
    assert!(hosts(&report["granted"]).contains(&server.as_str()), "{report}");
    version("2.0.0");
    works(&home);

    let report = feature(&home, &["downgrade", NAME]);
    assert_eq!((&report["what"], &report["digest"]), (&json!("downgrade"), &json!(first_digest)));
    version("1.0.0");
    works(&home);

    // Revoked while a tool waits for an answer: the call ends there and then.
    let args = json!({ "how": "fetch", "url": format!("http://{server}/") }).to_string();
    let call = Process::start(&mut command(home.path(), &["tool", "call", "look", &args]));
    called.recv_timeout(wait::TEST_TIMEOUT).unwrap();
    let report = feature(&home, &["revoke", NAME, "network"]);
    assert_eq!(hosts(&report["granted"]), [""; 0]);
    let (end, _) = call.wait();
    assert_ne!(end.code, Some(0));
    assert!(end.err.contains("taken away while it worked") || end.err.contains("revoked"), "{}", end.err);
    // It goes on with what is left to it.
    host.feature_when(NAME, |feature| feature["grants"]["http"] == json!([]));
    works(&home);
    let refused = home.conductor(&["tool", "call", "look", &args]);
    assert!(refused.code != Some(0) && refused.err.contains("no http"), "{}", refused.err);

    feature(&home, &["disable", NAME]);
    host.status_when(|status| !there(status));
    feature(&home, &["enable", NAME]);
    host.status_when(there);
    feature(&home, &["remove", NAME]);
    host.status_when(|status| !there(status));

    // Once more, for a start without the registry.
    feature(&home, &["install", &registry.reference("tools", "2"), "--grant", "network"]);
    host.status_when(there);
    let done: Vec<Value> = receipts(&home).iter().map(|receipt| receipt["what"].clone()).collect();
    let wanted = ["install", "upgrade", "downgrade", "revoke", "disable", "enable", "remove", "install"];
    assert_eq!(json!(done), json!(wanted));
    host.stop();
    drop(registry);
    let host = home.run();
    let offline = host.feature(NAME);
    assert_eq!((&offline["package"]["digest"], &offline["refused"]), (&json!(second_digest), &Value::Null));
    works(&home);
}

/// A key of an author whom this home trusts: its file, and its public half.
fn author(home: &Home) -> (String, String) {
    let key = home.path().join("anna.key").to_str().unwrap().to_owned();
    let public = home.conductor(&["feature", "key", "new", &key]).out.trim().to_owned();
    home.conductor(&["feature", "trust", "anna", &public]);
    (key, public)
}

// FEA-11, FEA-12: what an author publishes is what others install, and its signer is on it.
#[test]
fn what_is_published_can_be_installed() {
    let Some(registry) = Registry::start_with_account() else { return };
    let home = Home::new("");
    let (key, public) = author(&home);
    let key = key.as_str();
    let lamp = guest("hello");
    let lamp = lamp.to_str().unwrap();
    let (to, (name, password)) = (registry.reference("lamp", "1"), Registry::ACCOUNT);
    let publish = |more: &[&str], password: &str| {
        let arguments = [&["feature", "publish", &to, lamp], more].concat();
        Process::start(command(home.path(), &arguments).env("CONDUCTOR_REGISTRY_PASSWORD", password)).wait().0
    };

    let unsigned = publish(&["--user", name], password);
    assert_eq!(unsigned.code, Some(2));
    assert!(unsigned.err.contains("it is not signed") && unsigned.err.contains("--key"), "{}", unsigned.err);
    let nameless = publish(&["--key", key], password);
    assert!(nameless.code == Some(1) && nameless.err.contains("--user"), "{}", nameless.err);
    let wrong = publish(&["--key", key, "--user", name], "open barley");
    assert!(wrong.code == Some(1) && wrong.err.contains("401"), "{}", wrong.err);
    assert!(!wrong.err.contains("barley"), "{}", wrong.err);

    let signed = ["--key", key, "--user", name, "--json"];
    let done = publish(&signed, password);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let done: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&done["signers"], &done["unchanged"]), (&json!([public]), &json!(false)));
    let again = publish(&signed, password);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap()["unchanged"], true, "{}", again.err);
    let other = publish(&["--unsigned", "--user", name], password);
    assert!(other.code == Some(1) && other.err.contains("another package already"), "{}", other.err);
}

// FEA-11: the same without an account, up to the feature that is installed.
#[test]
fn a_published_package_is_installed_with_its_signer() {
    let Some(registry) = Registry::start() else { return };
    let home = Home::new("");
    let (key, _) = author(&home);
    let lamp = guest("hello");
    // Without a tag it is the version's.
    let to = registry.reference("lamp", "");
    let done = feature(&home, &["publish", to.trim_end_matches(':'), lamp.to_str().unwrap(), "--key", &key]);
    let report = feature(&home, &["install", done["reference"].as_str().unwrap()]);
    assert_eq!(report["digest"], done["digest"], "{report}");
    assert!(report["source"].to_string().contains(done["manifest"].as_str().unwrap()), "{report}");
    assert!(report["signers"].to_string().contains("anna"), "{report}");
}
