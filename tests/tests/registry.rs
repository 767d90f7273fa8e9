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
