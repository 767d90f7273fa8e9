//! What is installed survives bad packages, altered bytes, lying registries and SIGKILL.
//!
//! Most packages here are tiny components of text; where one has to run, it is the guest `hello` that
//! `cargo xtask features` builds. Nothing leaves this machine.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_config as config;
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage};
use conductor_host::host::Host;
use conductor_install::installation::{self, Change, ChangeError, GrantWords, InstallPlan, InstallRequest};
use conductor_install::receipt::{FeatureInstallReport, What};
use conductor_install::signature::{self, TrustedSigners};
use conductor_install::source::{Fetched, Origin, Source};
use conductor_install::store::{MAX_RECEIPTS, PackageStore, StoreError};
use conductor_package::capability::CapabilityRequest;
use conductor_package::file::MAX_PACKAGE;
use conductor_package::id::DataKey;
use conductor_package::{Contributions, Package};
use conductor_ports::engine_input::Input;
use conductor_services::store::FeatureStores;
use sha2::{Digest as _, Sha256};

/// A folder of its own for one test.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cond-inst-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    /// `conductor feature <arguments>`.
    fn feature(&self, arguments: &[&str]) -> Output {
        self.conductor("feature", arguments).output().unwrap()
    }

    fn conductor(&self, command: &str, arguments: &[&str]) -> Command {
        let mut conductor = Command::new(env!("CARGO_BIN_EXE_conductor"));
        conductor.arg("--home").arg(&self.0).arg(command).args(arguments);
        conductor.env("CONDUCTOR_FEATURES", features()).env_remove("CONDUCTOR_LOG").stdin(Stdio::null());
        conductor
    }

    /// The notes of the receipt of an installation, which is taken back.
    fn plan_notes(&self, package: &[u8]) -> String {
        let path = self.write("stranger.wasm", package);
        let receipt = self.json(&["install", &path, "--json"]);
        self.json(&["remove", "hello", "--json"]);
        receipt["diagnostics"].to_string()
    }

    /// What a command prints as JSON. It has to succeed.
    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.feature(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn features() -> PathBuf {
    std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from)
}

fn hello() -> PathBuf {
    features().join("tests/hello.wasm")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

const NETWORK: &str =
    "[[capabilities]]\nkind = 'network'\npurpose = 'lamp'\nrequired = true\nreason = 'Talk to the lamp.'\n";
const ALERT: &str = "[[capabilities]]\nkind = 'alert'\nreason = 'Say that it is dark.'\n";

/// A package of the feature `lamp` that fits its descriptor. It can't run.
fn lamp(version: &str, capabilities: &str) -> Vec<u8> {
    cannot_run("lamp", &format!("{version}'\n{capabilities}#'"))
}

/// A package that fits its descriptor, and can't run.
fn cannot_run(name: &str, version: &str) -> Vec<u8> {
    let descriptor = format!("id = 'project:{name}'\nname = 'Lamp'\ncontract = '0.1'\nversion = '{version}'\n");
    let wat = format!(
        "(component (core module (@custom \"conductor:feature\" {descriptor:?})) (instance $nothing)
            (export \"conductor:feature/lifecycle@0.1.0\" (instance $nothing)))"
    );
    wat::parse_str(wat).unwrap()
}

fn fetched(bytes: Vec<u8>) -> Fetched {
    let path = PathBuf::from("/lamp.wasm");
    Fetched { package: Package::from_bytes(&path, bytes).unwrap(), origin: Origin::File { path } }
}

/// Installs or upgrades, granting these words.
fn put(
    store: &PackageStore,
    bytes: Vec<u8>,
    upgrade: bool,
    words: &[&str],
) -> Result<FeatureInstallReport, ChangeError> {
    let plan = InstallPlan::new(store, fetched(bytes), InstallRequest::default(), upgrade)?;
    let words: Vec<GrantWords> = words.iter().map(|words| words.parse().unwrap()).collect();
    let given = GrantWords::select(&words, &plan.package.info.descriptor.capabilities)?;
    let grants = plan.grants(given)?;
    plan.commit(store, grants)
}

fn scopes(requests: &[CapabilityRequest]) -> Vec<String> {
    requests.iter().map(|request| format!("{} {}", request.key(), request.capability.scope().join(" "))).collect()
}

/// FEA-8: a package that is none, does not fit, or can't run is refused, and nothing has changed.
#[test]
fn a_bad_package_changes_nothing() {
    let home = Home::new();
    assert_eq!(home.json(&["install", hello().to_str().unwrap(), "--json"])["feature"], "hello");
    let state = home.0.join("features/installed.toml");
    let before = std::fs::read(&state).unwrap();

    let good = std::fs::read(hello()).unwrap();
    let builtin = std::fs::read(features().join("osc-output.wasm")).unwrap();
    let undeclared = lamp("1", "[[actions]]\nname = 'On'\nsummary = ''\n");
    let mut altered = signature::sign(&good, &signature::new_key().unwrap()).unwrap();
    let middle = altered.len() - 20;
    altered[middle] ^= 1;
    for (bytes, why) in [
        (b"hello".to_vec(), "is not WebAssembly"),
        (wat::parse_str("(module)").unwrap(), "is a core WebAssembly module"),
        (good[..good.len() / 2].to_vec(), "truncated"),
        (wat::parse_str("(component)").unwrap(), "carries no descriptor"),
        (undeclared, "declares the action On, but does not export"),
        (lamp("1", ""), "nothing was changed: lamp: "),
        (builtin, "only features that come with the host are `builtin:`"),
        (good.clone(), "is installed already"),
        (altered, "does not fit"),
        (vec![0; usize::try_from(MAX_PACKAGE).unwrap() + 1], "a package may have at most"),
    ] {
        let file = home.write("bad.wasm", &bytes);
        let output = home.feature(&["install", &file]);
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(err(&output).contains(why), "{why}: {}", err(&output));
        assert_eq!(std::fs::read(&state).unwrap(), before, "{why}");
    }
    let good = home.write("good.wasm", &good);
    let other = format!("sha256:{}", "00".repeat(32));
    assert!(err(&home.feature(&["upgrade", "hello", &good, "--digest", &other])).contains("not sha256:0000"));
    assert!(err(&home.feature(&["install", &good, "--name", "bye"])).contains("calls itself \"hello\""));
    assert_eq!(home.feature(&["install", "https://example.org/x.wasm"]).status.code(), Some(2));
    assert_eq!(std::fs::read(&state).unwrap(), before);
}

/// FEA-11: a process that is killed while installing leaves the old state or the new one.
#[test]
fn a_kill_at_any_moment_leaves_the_set_before_or_after() {
    let home = Home::new();
    PackageStore::open(&home.0).unwrap();
    let (mut kills, mut between, mut last) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(12);
    while Instant::now() < end && kills < 200 {
        let mut child = installing(&home, last);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // It lives until it works, and then for a random moment.
        lines.find(|line| line.contains("start ")).unwrap();
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(u16::from_le_bytes(random)) / 4));
        child.kill().unwrap();
        child.wait().unwrap();
        let (mut started, mut done) = (last + 1, last);
        for line in lines {
            match line.split_once(' ') {
                Some(("start", number)) => started = number.parse().unwrap_or(started),
                Some(("done", number)) => done = number.parse().unwrap_or(done),
                _ => {}
            }
        }

        let store = PackageStore::open(&home.0).unwrap();
        let feature = &store.installed().unwrap().features["lamp"];
        let version: u32 = feature.current.version.parse().unwrap();
        assert!(version == done || version == started, "{version}, with {started} started and {done} done");
        assert!(installation::describe(&store, feature).is_ok());
        for folder in ["features", "features/blobs", "features/receipts"] {
            for entry in std::fs::read_dir(home.0.join(folder)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(!name.ends_with(".tmp"), "{folder}/{name} was left behind");
            }
        }
        assert!(std::fs::read_dir(home.0.join("features/blobs")).unwrap().count() <= 2);
        assert!(std::fs::read_dir(store.receipts()).unwrap().count() <= MAX_RECEIPTS);
        (kills, between, last) = (kills + 1, between + u32::from(started != done), version);
    }
    eprintln!("{kills} kills, {between} of them during an installation, {last} installations");
    assert!(kills >= 20, "only {kills} kills");
    assert!(between > 0);
}

/// A process of its own that does what `installing_child` does.
fn installing(home: &Home, after: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "installing_child", "--ignored", "--nocapture"])
        .env("CONDUCTOR_TEST_HOME", &home.0)
        .env("CONDUCTOR_TEST_AFTER", after.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "is the child of a_kill_at_any_moment_leaves_the_set_before_or_after"]
fn installing_child() {
    let (Some(home), Ok(after)) = (std::env::var_os("CONDUCTOR_TEST_HOME"), std::env::var("CONDUCTOR_TEST_AFTER"))
    else {
        return;
    };
    let after: u32 = after.parse().unwrap();
    let store = PackageStore::open(Path::new(&home)).unwrap();
    if after == 0 && store.installed().unwrap().features.is_empty() {
        put(&store, lamp("0", ""), false, &[]).unwrap();
    }
    // The test's name stands on a line that is begun but not ended.
    println!();
    for number in after + 1..=after + 200 {
        println!("start {number}");
        put(&store, lamp(&number.to_string(), ""), true, &[]).unwrap();
        println!("done {number}");
    }
}

/// FEA-11: bytes are hashed whenever they are loaded.
#[test]
fn an_altered_blob_is_refused_and_mended_by_installing_anew() {
    let home = Home::new();
    let digest = home.json(&["install", hello().to_str().unwrap(), "--json"])["digest"].as_str().unwrap().to_owned();
    let store = PackageStore::at(&home.0);
    let mut bytes = store.read(&digest).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(store.blob(&digest), &bytes).unwrap();

    assert!(matches!(store.read(&digest), Err(StoreError::Altered { .. })));
    let listed = home.json(&["list", "--json"]);
    let hello_now = listed.as_array().unwrap().iter().find(|feature| feature["name"] == "hello").unwrap();
    assert!(hello_now["refused"].as_str().unwrap().contains("was altered"), "{hello_now:#}");
    assert!(err(&home.feature(&["info", "hello"])).contains("was altered"));

    home.json(&["upgrade", "hello", "--json"]);
    assert!(store.read(&digest).is_ok());
    std::fs::write(store.blob(&digest), b"").unwrap();
    home.json(&["remove", "hello", "--json"]);
    assert!(store.installed().unwrap().features.is_empty());
    assert!(!store.blob(&digest).exists());
}

/// What a fake registry answers, by path: further headers and the body.
type Answers = Arc<Mutex<HashMap<String, (String, Vec<u8>)>>>;

/// A server on this machine that gives just these answers, for as long as the test lives.
fn serve() -> (u16, Answers) {
    let answers = Answers::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = Arc::clone(&answers);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else { continue };
            let head: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let path = first.split([' ', '?']).nth(1).unwrap().to_owned();
            let answer = served.lock().unwrap().get(&path).cloned();
            let knows_word = head.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer open"));
            let (status, (headers, body)) = match answer {
                // A registry names the realm where clients get a token.
                _ if path.starts_with("/v2/kept/") && !knows_word || path == "/v2/" => {
                    let realm = format!("www-authenticate: Bearer realm=\"http://127.0.0.1:{port}/word\"\r\n");
                    ("401 Unauthorized", (realm, Vec::new()))
                }
                Some(answer) => ("200 OK", answer),
                None => ("404 Not Found", Default::default()),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (port, answers)
}

/// Puts a package into a fake registry, and returns the manifest and its digest.
fn publish(answers: &Answers, tag: &str, package: &[u8], media_type: &str) -> (Vec<u8>, String) {
    let layer = sha256(package);
    let manifest = serde_json::json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": format!("sha256:{}", sha256(b"{}")), "size": 2 },
        "layers": [{ "mediaType": media_type, "digest": format!("sha256:{layer}"), "size": package.len() }],
    });
    let manifest = serde_json::to_vec(&manifest).unwrap();
    let digest = format!("sha256:{}", sha256(&manifest));
    let mut answers = answers.lock().unwrap();
    let header = format!("docker-content-digest: {digest}\r\n");
    answers.insert(format!("/v2/lamp/manifests/{tag}"), (header.clone(), manifest.clone()));
    answers.insert(format!("/v2/lamp/manifests/{digest}"), (header, manifest.clone()));
    answers.insert(format!("/v2/lamp/blobs/sha256:{layer}"), (String::new(), package.to_vec()));
    (manifest, digest)
}

fn fetch(source: &str) -> Result<Fetched, String> {
    Source::parse(source, None, None).and_then(|source| source.fetch()).map_err(|error| error.to_string())
}

/// FEA-11: only the bytes that a manifest names are taken, and only the manifest that a digest names.
#[test]
fn a_registry_that_lies_is_found_out() {
    let (port, answers) = serve();
    let (first, second) = (lamp("1", ""), lamp("2", ""));
    let (manifest, digest) = publish(&answers, "v", &first, "application/wasm");
    let tag = format!("oci://127.0.0.1:{port}/lamp:v");
    let pinned = format!("oci://127.0.0.1:{port}/lamp@{digest}");

    let got = fetch(&tag).unwrap();
    assert_eq!(got.package.bytes, first);
    let reference = format!("127.0.0.1:{port}/lamp:v");
    assert_eq!(got.origin, Origin::Oci { reference, manifest: digest.clone() });
    assert_eq!(fetch(&pinned).unwrap().package.bytes, first);

    // The tag moves on: who named a digest is not led elsewhere.
    let (other_manifest, _) = publish(&answers, "v", &second, "application/wasm");
    assert_eq!(fetch(&tag).unwrap().package.info.descriptor.version, "2");
    assert_eq!(fetch(&pinned).unwrap().package.info.descriptor.version, "1");
    let by_digest = format!("/v2/lamp/manifests/{digest}");
    answers.lock().unwrap().insert(by_digest, (String::new(), other_manifest.clone()));
    assert!(fetch(&pinned).unwrap_err().contains("it was altered"));

    // A manifest that is not the one that its header names.
    let header = format!("docker-content-digest: {digest}\r\n");
    answers.lock().unwrap().insert("/v2/lamp/manifests/v".into(), (header, other_manifest));
    assert!(fetch(&tag).unwrap_err().contains("it was altered"));

    // A package that is not the one in the manifest: altered, or of another length.
    answers.lock().unwrap().insert("/v2/lamp/manifests/v".into(), (String::new(), manifest));
    let blob = format!("/v2/lamp/blobs/sha256:{}", sha256(&first));
    answers.lock().unwrap().insert(blob.clone(), (String::new(), lamp("3", "")));
    assert!(fetch(&tag).unwrap_err().contains("it was altered"));
    answers.lock().unwrap().insert(blob, (String::new(), vec![0; first.len() + 1]));
    assert!(fetch(&tag).unwrap_err().contains("the rest was not read"));

    publish(&answers, "v", &first, "application/vnd.oci.image.layer.v1.tar");
    assert!(fetch(&tag).unwrap_err().contains("its layer is of type"));
    assert!(fetch(&format!("oci://127.0.0.1:{port}/lamp:w")).unwrap_err().contains("404"));
    let long = vec![b' '; 1024 * 1024 + 1];
    answers.lock().unwrap().insert("/v2/lamp/manifests/v".into(), (String::new(), long));
    assert!(fetch(&tag).unwrap_err().contains("the rest was not read"));
}

/// FEA-11: a registry that issues tokens to all clients gets its token back.
#[test]
fn a_registry_may_want_a_word_that_it_gives_to_everybody() {
    let (port, answers) = serve();
    publish(&answers, "v", &lamp("1", ""), "application/wasm");
    let kept: Vec<_> = answers.lock().unwrap().iter().map(|(path, answer)| (path.clone(), answer.clone())).collect();
    for (path, answer) in kept {
        answers.lock().unwrap().insert(path.replace("/v2/lamp/", "/v2/kept/"), answer);
    }
    let source = format!("oci://127.0.0.1:{port}/kept:v");
    assert!(fetch(&source).is_err(), "it gives no word yet");
    answers.lock().unwrap().insert("/word".into(), (String::new(), br#"{"token":"open"}"#.to_vec()));
    assert_eq!(fetch(&source).unwrap().package.info.descriptor.version, "1");
}

/// FEA-11: a URL brings the bytes of its digest, or nothing.
#[test]
fn a_url_brings_the_bytes_of_its_digest_or_nothing() {
    let (port, answers) = serve();
    let package = lamp("1", "");
    answers.lock().unwrap().insert("/lamp.wasm".into(), (String::new(), package.clone()));
    let url = |digest: &str| format!("http://127.0.0.1:{port}/lamp.wasm#sha256={digest}");
    assert_eq!(fetch(&url(&sha256(&package))).unwrap().package.bytes, package);
    assert!(fetch(&url(&"00".repeat(32))).unwrap_err().contains("it was altered"));
}

/// FEA-11: an upgrade asks only for what goes beyond what was granted, and without consent nothing changes.
#[test]
fn an_upgrade_asks_for_the_difference_only() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    let first = format!("{NETWORK}udp = ['10.0.0.1:*', '10.0.0.2:9']\n");
    match put(&store, lamp("1", &first), false, &[]) {
        Err(error @ ChangeError::NotGranted { .. }) => {
            assert_eq!(
                error.to_string(),
                "lamp needs network:lamp (Talk to the lamp.); grant it with --grant network:lamp=10.0.0.2:9"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(store.installed().unwrap().features.is_empty());
    let report = put(&store, lamp("1", &first), false, &["network"]).unwrap();
    assert_eq!(scopes(&report.granted), ["network:lamp 10.0.0.1:* 10.0.0.2:9"]);

    let second = format!("{NETWORK}udp = ['10.0.0.1:7', '10.0.0.3:*']\n{ALERT}");
    let plan = InstallPlan::new(&store, fetched(lamp("2", &second)), InstallRequest::default(), true).unwrap();
    assert_eq!(scopes(&plan.kept), ["network:lamp 10.0.0.1:7"]);
    assert_eq!(scopes(&plan.asked), ["network:lamp 10.0.0.3:*", "alert "]);
    let report = put(&store, lamp("2", &second), true, &["network=10.0.0.3:5"]).unwrap();
    assert_eq!(scopes(&report.granted), ["network:lamp 10.0.0.1:7 10.0.0.3:5"]);
    assert_eq!(scopes(&report.denied), ["network:lamp 10.0.0.3:*", "alert "]);
    let asks_elsewhere = put(&store, lamp("3", &second), true, &["network=10.0.0.9:5"]).unwrap_err();
    assert!(asks_elsewhere.to_string().contains("only for 10.0.0.1:7, 10.0.0.3:*"), "{asks_elsewhere}");

    // What was taken away does not come back with the version before.
    let trusted = TrustedSigners::default();
    let revoke = Change::Revoke(vec!["network=10.0.0.2:9".parse().unwrap()]);
    assert!(installation::change(&store, "lamp", revoke, &trusted).is_err(), "this version was not granted it");
    installation::change(&store, "lamp", Change::Revoke(Vec::new()), &trusted).unwrap();
    let back = InstallPlan::back(&store, "lamp", trusted.clone()).unwrap();
    assert!(matches!(back.grants(Vec::new()), Err(ChangeError::NotGranted { .. })));

    // Who looked at something else than what is there now decides nothing.
    let (one, other) = (
        InstallPlan::new(&store, fetched(lamp("4", "")), InstallRequest::default(), true).unwrap(),
        InstallPlan::new(&store, fetched(lamp("5", "")), InstallRequest::default(), true).unwrap(),
    );
    one.commit(&store, Vec::new()).unwrap();
    assert!(matches!(other.commit(&store, Vec::new()), Err(ChangeError::Raced { .. })));
    let report = InstallPlan::back(&store, "lamp", trusted).unwrap();
    assert_eq!((report.what, report.package.info.descriptor.version.as_str()), (What::Downgrade, "2"));
}

/// FEA-11: grants go on to a new package only if whom a person trusts signed it again.
#[test]
fn grants_are_not_taken_over_by_a_package_that_the_trusted_signer_did_not_sign() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    let (anna, bert) = (signature::new_key().unwrap(), signature::new_key().unwrap());
    TrustedSigners::add(&home.0, "anna", (&anna).into()).unwrap();
    let wanted = || InstallRequest { trusted: TrustedSigners::read(&home.0).unwrap(), ..InstallRequest::default() };
    let package = |version: &str, key| fetched(signature::sign(&lamp(version, ALERT), key).unwrap());

    let plan = InstallPlan::new(&store, package("1", &anna), wanted(), false).unwrap();
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    let asked = plan.asked.clone();
    let report = plan.commit(&store, asked).unwrap();
    assert_eq!(report.signers, ["anna"]);

    let by_anna = InstallPlan::new(&store, package("2", &anna), wanted(), true).unwrap();
    assert_eq!((by_anna.kept.len(), by_anna.asked.len()), (1, 0));
    for stranger in [package("2", &bert), fetched(lamp("2", ALERT))] {
        let plan = InstallPlan::new(&store, stranger, wanted(), true).unwrap();
        assert_eq!((plan.kept.len(), plan.asked.len()), (0, 1));
        assert!(plan.notes.iter().any(|note| note.contains("nothing granted is taken over")), "{:?}", plan.notes);
    }
}

/// FEA-11: signatures on the command line, from a new key to a trusted name.
#[test]
fn a_package_is_signed_trusted_and_refused_when_altered() {
    let home = Home::new();
    let out = |arguments: &[&str]| {
        let output = home.feature(arguments);
        assert!(output.status.success(), "{}", err(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let key = home.0.join("key").display().to_string();
    let signed = home.0.join("signed.wasm").display().to_string();
    let public = out(&["key", "new", &key]);
    out(&["sign", hello().to_str().unwrap(), "--key", &key, "-o", &signed]);
    assert!(out(&["inspect", &signed]).contains(&format!("unknown signer {}", public.trim())));
    out(&["trust", "anna", public.trim()]);
    assert_eq!(home.json(&["install", &signed, "--json"])["signers"][0], "anna");

    let mut bytes = std::fs::read(&signed).unwrap();
    // A letter in the descriptor: still a valid component.
    let at = bytes.windows(5).position(|word| word == b"Hello").unwrap();
    bytes[at] = b'J';
    let altered = home.write("altered.wasm", &bytes);
    for command in [&["upgrade", "hello", &altered][..], &["inspect", &altered]] {
        let output = home.feature(command);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains("was altered after it was signed"), "{}", err(&output));
    }
    assert_eq!(home.json(&["info", "hello", "--json"])["signers"][0]["name"], "anna");
}

/// FEA-11: what came over a network starts without one; a running host takes over what is installed.
#[test]
fn a_running_host_takes_over_what_is_installed_and_what_is_taken_away() {
    let home = Home::new();
    let (port, answers) = serve();
    let package = std::fs::read(hello()).unwrap();
    answers.lock().unwrap().insert("/hello.wasm".into(), (String::new(), package.clone()));
    let url = format!("http://127.0.0.1:{port}/hello.wasm#sha256={}", sha256(&package));
    home.json(&["install", &url, "--json"]);
    answers.lock().unwrap().clear();

    let mapping = "[[global_mappings]]\ntrigger = { type = 'Note', note = 1 }\naction = { type = 'Hello' }\n";
    let loaded = config::parse(mapping, "config.toml").unwrap();
    let host = Host::builder().home(&home.0).start(&loaded).unwrap();
    let feature = || host.status().features.into_iter().find(|feature| feature.name == "hello").unwrap();
    assert!(feature().refused.is_none());

    // A rule names it, so the rule stays; but it does nothing any more.
    let store = PackageStore::open(&home.0).unwrap();
    let trusted = TrustedSigners::default();
    installation::change(&store, "hello", Change::Enable(false), &trusted).unwrap();
    let reloaded = host.reload_features().unwrap();
    let warning = reloaded.warnings.render(false);
    assert!(warning.contains("no feature that is installed has the action \"Hello\""), "{warning}");
    assert!(host.status().features.is_empty());
    installation::change(&store, "hello", Change::Enable(true), &trusted).unwrap();
    host.reload_features().unwrap();
    assert!(feature().refused.is_none());

    // Without a rule that names it, it goes.
    host.reload("", "config.toml").unwrap();
    installation::change(&store, "hello", Change::Remove, &trusted).unwrap();
    host.reload_features().unwrap();
    assert!(host.status().features.is_empty());
    host.stop();
}

/// FEA-11: an upgrade that can't be installed on this machine is taken back.
#[test]
fn an_upgrade_that_can_not_be_installed_is_taken_back() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    let good = std::fs::read(hello()).unwrap();
    put(&store, good.clone(), false, &["all"]).unwrap();
    let host = Host::builder().home(&home.0).start(&config::parse("", "config.toml").unwrap()).unwrap();
    assert!(host.roll_back_bad_upgrades().is_empty(), "nothing is wrong");

    // Past the command line, which would have tried it first.
    put(&store, cannot_run("hello", "9"), true, &["all"]).unwrap();
    host.reload_features().unwrap();
    let done = host.roll_back_bad_upgrades();
    assert!(done[0].contains("version 9 was taken back for"), "{done:?}");
    let feature = host.status().features.into_iter().find(|feature| feature.name == "hello").unwrap();
    assert_eq!((feature.refused, feature.package.unwrap().digest), (None, sha256(&good)));
    assert!(host.roll_back_bad_upgrades().is_empty(), "and not forth again");
    host.stop();
}

/// FEA-11: an upgrade that traps thrice in a minute is taken back while the show goes on.
#[test]
fn an_upgrade_that_keeps_trapping_is_taken_back() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    let old = std::fs::read(features().join("tests/hostile.wasm")).unwrap();
    let new = signature::sign(&old, &signature::new_key().unwrap()).unwrap();
    put(&store, old.clone(), false, &["all"]).unwrap();
    let mapping =
        "[[global_mappings]]\ntrigger = { type = 'Note', note = 1 }\naction = { type = 'Misbehave', how = 'trap' }\n";
    let loaded = config::parse(mapping, "config.toml").unwrap();
    let host = Host::builder().home(&home.0).start(&loaded).unwrap();
    put(&store, new.clone(), true, &["all"]).unwrap();
    host.reload_features().unwrap();
    let hostile = || host.status().features.into_iter().find(|feature| feature.name == "hostile").unwrap();
    assert_eq!(hostile().package.unwrap().digest, sha256(&new));

    let event = Event::Midi(MidiMessage::NoteOn { channel: 0, note: 1, velocity: 1 });
    for traps in 1..=3 {
        assert!(host.roll_back_bad_upgrades().is_empty(), "not yet");
        let event = DeviceEvent { device: DeviceId::new("pad"), event: event.clone() };
        host.queue().send(Input::Event { at: host.clock().now(), event }).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while hostile().trapped < traps {
            assert!(Instant::now() < end, "{:?}", hostile());
            std::thread::yield_now();
        }
    }
    let done = host.roll_back_bad_upgrades();
    assert!(done[0].contains("it trapped 3 times within a minute"), "{done:?}");
    assert_eq!(hostile().package.unwrap().digest, sha256(&old));
    host.stop();
}

/// FEA-22: one command binds the grants of the file to the package that is there, after showing what they give.
#[test]
fn grants_of_the_configuration_are_bound_to_a_package_by_one_command() {
    let home = Home::new();
    let asks = format!("{NETWORK}udp = ['10.0.0.1:*', '*:*']\n{ALERT}");
    home.write("lamp.wasm", &lamp("1", &asks));
    let text = "# Mine.\n[features.lamp]\npath = 'lamp.wasm' # built here\n\
                [features.lamp.grants]\nudp = ['10.0.0.1:9']\n";
    let file = home.write("config.toml", text.as_bytes());
    let pin = |arguments: &[&str]| home.feature(&[&["pin", "lamp"], arguments].concat());
    let written = || std::fs::read_to_string(&file).unwrap();

    let asked = pin(&[]);
    assert_eq!((asked.status.code(), written().as_str()), (Some(2), text), "it was not confirmed: {}", err(&asked));
    let pinned = pin(&["--yes"]);
    assert!(pinned.status.success(), "{}", err(&pinned));
    let shown = err(&pinned);
    let digest = sha256(&lamp("1", &asks));
    for line in ["network: UDP to 10.0.0.1:9", "asks for alert", &format!("sha256:{digest}"), "signed by    none"] {
        assert!(shown.contains(line), "no {line}: {shown}");
    }
    let loaded = config::parse(&written(), "config.toml").unwrap();
    let feature = &loaded.config.features["lamp"];
    assert_eq!(feature.id.as_deref(), Some("project:lamp"));
    assert_eq!(feature.digest, Some(format!("sha256:{digest}")));
    assert!(written().contains("# Mine.") && written().contains("# built here"), "{}", written());
    assert!(String::from_utf8_lossy(&pin(&[]).stdout).contains("is pinned to this package"), "nothing is asked twice");

    // The next build is another package.
    home.write("lamp.wasm", &lamp("2", &asks));
    assert!(pin(&["--yes"]).status.success());
    assert!(written().contains(&sha256(&lamp("2", &asks))) && !written().contains(&digest));
    let none = home.feature(&["pin", "fan", "--yes"]);
    assert!(none.status.code() == Some(2) && err(&none).contains("there is no [features.fan]"), "{}", err(&none));
}

/// FEA-17: what a person refuses stays refused over upgrades, also while the package does not have it.
#[test]
fn an_upgrade_keeps_what_a_person_refused() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    let tool = |name: &str| format!("[[tools]]\nname = '{name}'\ntier = 'read-only'\nsummary = ''\n");
    let package = |version: &str, tools: &[&str]| {
        let tools: String = tools.iter().map(|name| tool(name)).collect();
        let descriptor =
            format!("id = 'project:lamp'\nname = 'Lamp'\ncontract = '0.1'\nversion = '{version}'\n{tools}");
        let export = |name: &str| format!("(export \"conductor:feature/{name}@0.1.0\" (instance $nothing))");
        let more = if tools.is_empty() { String::new() } else { export("read-only-tools") };
        let wat = format!(
            "(component (core module (@custom \"conductor:feature\" {descriptor:?})) (instance $nothing) {} {more})",
            export("lifecycle")
        );
        wat::parse_str(wat).unwrap()
    };
    let tools = |names: &[&str]| Contributions {
        tools: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Contributions::default()
    };
    let change = |change: Change| installation::change(&store, "lamp", change, &TrustedSigners::default());
    put(&store, package("1", &["look", "dim"]), false, &[]).unwrap();
    let report = change(Change::Refuse(tools(&["dim"]))).unwrap();
    assert_eq!((report.what, &report.installed["tools"][..]), (What::Refuse, &["look (read-only)".to_owned()][..]));
    assert_eq!(report.skipped["tools"], ["dim (read-only)"]);
    let why = "tool dim: refused by a person; `conductor feature enable lamp --tool dim` takes it back";
    assert_eq!(report.diagnostics, [why]);

    let gone = put(&store, package("2", &["look"]), true, &[]).unwrap();
    assert!(gone.skipped.is_empty(), "{gone:?}");
    let again = put(&store, package("3", &["look", "dim"]), true, &[]).unwrap();
    assert_eq!(
        (again.skipped["tools"].as_slice(), again.diagnostics.last().unwrap().as_str()),
        (&["dim (read-only)".to_owned()][..], why)
    );
    let back = InstallPlan::back(&store, "lamp", TrustedSigners::default()).unwrap();
    back.commit(&store, Vec::new()).unwrap();
    assert_eq!(store.installed().unwrap().features["lamp"].refused, tools(&["dim"]), "a downgrade keeps it, too");

    let unknown = change(Change::Refuse(tools(&["glow"]))).unwrap_err().to_string();
    assert_eq!(unknown, "lamp has no tool \"glow\"; it has dim, look");
    let taken_back = change(Change::Accept(tools(&["dim"]))).unwrap();
    assert_eq!((taken_back.what, taken_back.skipped.len()), (What::Accept, 0));
    assert!(change(Change::Accept(tools(&["glow"]))).is_err());
}

/// FEA-17: of a feature that comes with the host the configuration says what is refused, and one command writes it.
#[test]
fn contributions_of_a_bundled_feature_are_refused_in_the_configuration() {
    let home = Home::new();
    let mapping = "# Mine.\n[[global_mappings]]\ntrigger = { type = 'Note', note = 1 }\n\
                   action = { type = 'OscSend', target = '127.0.0.1:9000', address = '/a' }\n";
    let file = home.write("config.toml", mapping.as_bytes());
    let refused = home.json(&["disable", "osc-output", "--action", "OscSend", "--json"]);
    assert_eq!((&refused["what"], &refused["skipped"]["actions"][0]), (&"refuse".into(), &"OscSend".into()));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# Mine.") && text.contains("OscSend"), "{text}");

    let checked = home.conductor("config", &["validate", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stdout);
    let why = "the feature osc-output leaves out the action OscSend: refused by a person";
    assert!(said.contains(why) && said.contains("conductor feature enable osc-output --action OscSend"), "{said}");
    let listed = home.feature(&["list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("left out: action OscSend: refused by a person"));

    let unknown = home.feature(&["disable", "osc-output", "--action", "OscSent"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(err(&unknown).contains("osc-output has no action \"OscSent\"; it has OscSend"), "{}", err(&unknown));
    let back = home.json(&["enable", "osc-output", "--action", "OscSend", "--json"]);
    assert_eq!((&back["what"], &back["skipped"]), (&"accept".into(), &serde_json::json!({})));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), mapping, "no empty table stays");
    let checked = home.conductor("config", &["validate", "--json"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&checked.stdout).contains("refused by a person"));
}

/// FEA-4: what a feature that comes with the host may use beyond what all such features may is written by the same
/// commands as for installed ones, and taken back by them.
#[test]
fn a_bundled_feature_is_granted_more_and_less_in_the_configuration() {
    let home = Home::new();
    let before = "# Mine.\n[advanced_settings]\nlisten_mode = \"all\"\n";
    let file = home.write("config.toml", before.as_bytes());
    let text = || std::fs::read_to_string(&file).unwrap();
    let more = home.json(&["grant", "osc-output", "network=10.0.0.5:9000", "--json"]);
    assert_eq!((&more["what"], &more["source"]["kind"]), (&"grant".into(), &"bundled".into()), "{more}");
    assert!(more["granted"][0]["udp"].as_array().unwrap().contains(&"10.0.0.5:9000".into()), "{more}");
    assert!(text().starts_with(before) && text().contains("udp = [\"10.0.0.5:9000\"]"), "{}", text());
    home.json(&["grant", "osc-output", "network=10.0.0.6:9000", "--json"]);
    assert!(text().contains("udp = [\"10.0.0.5:9000\", \"10.0.0.6:9000\"]"), "{}", text());

    let refused = home.feature(&["grant", "osc-output", "alert"]);
    assert_eq!(refused.status.code(), Some(2), "it does not ask for that");
    let kept = text();
    let never = home.feature(&["revoke", "osc-output", "network=10.0.0.7:9000"]);
    assert!(never.status.code() == Some(2) && err(&never).contains("nothing to take away"), "{}", err(&never));
    assert_eq!(text(), kept);
    home.json(&["revoke", "osc-output", "network=10.0.0.5:9000", "--json"]);
    assert!(text().contains("udp = [\"10.0.0.6:9000\"]"), "{}", text());
    let off = home.json(&["disable", "osc-output", "--json"]);
    assert_eq!((&off["enabled"], &off["what"]), (&false.into(), &"disable".into()));
    assert!(text().contains("enabled = false"), "{}", text());
    home.json(&["revoke", "osc-output", "--json"]);
    home.json(&["enable", "osc-output", "--json"]);
    assert_eq!(text(), before, "no empty table stays");
}

/// FEA-22: nothing is granted to a package of a path before a person was shown it, nor to another one in its place.
#[test]
fn a_grant_for_a_package_of_a_path_is_bound_to_the_bytes_that_were_shown() {
    let home = Home::new();
    let package = hello().with_file_name("metronome.wasm");
    let file = home.write("config.toml", format!("[features.metronome]\npath = {package:?}\n").as_bytes());
    let text = || std::fs::read_to_string(&file).unwrap();
    let digest = sha256(&std::fs::read(&package).unwrap());
    let refuses = |before: &str| {
        let refused = home.feature(&["grant", "metronome", "timers"]);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
        assert!(err(&refused).contains("conductor feature pin metronome"), "{}", err(&refused));
        assert!(err(&refused).contains(&digest), "{}", err(&refused));
        assert_eq!(text(), before, "nothing is written");
    };
    refuses(&text());
    let shown = home.feature(&["pin", "metronome", "--yes"]);
    assert!(shown.status.success() && err(&shown).contains("timers = true"), "{}", err(&shown));
    let granted = home.json(&["grant", "metronome", "timers", "--json"]);
    assert_eq!(granted["source"]["kind"], "file", "{granted}");
    let written = text();
    for part in ["timers = true", "id = \"project:metronome\"", &format!("digest = \"sha256:{digest}\"")] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let other = written.replace(&digest, &"0".repeat(64));
    home.write("config.toml", other.as_bytes());
    refuses(&other);
}

/// FEA-12: what a removed feature leaves is said, and its data can be deleted.
#[test]
fn a_removed_feature_says_what_it_leaves() {
    let home = Home::new();
    let digest = sha256(&std::fs::read(hello()).unwrap());
    let config = format!(
        "[[global_mappings]]\ntrigger = {{ type = 'Note', note = 1 }}\naction = {{ type = 'Hello' }}\n\
         [features.hello]\nid = 'project:hello'\ndigest = 'sha256:{digest}'\ngrants = {{ alert = true }}\n"
    );
    home.write("config.toml", config.as_bytes());
    home.json(&["install", hello().to_str().unwrap(), "--json"]);
    let kept = PackageStore::open(&home.0).unwrap().installed().unwrap().features["hello"].data();
    let keep = || {
        let stores = FeatureStores::open(&home.0).unwrap();
        stores.feature(kept.as_str(), 1000).unwrap().handle.set("diary", b"secret").unwrap();
    };
    keep();
    let left = home.json(&["remove", "hello", "--json"])["diagnostics"].to_string();
    for what in ["its data is left", "[features.hello.grants]", "1 mapping in", "leads nowhere"] {
        assert!(left.contains(what), "no {what}: {left}");
    }
    let file = home.0.join("store").join(format!("{}.sqlite", kept.as_str()));
    assert!(file.is_file());

    // An unrelated feature of the same name does not get it, and the report says so.
    let stranger = called_hello();
    let note = home.plan_notes(&stranger);
    assert!(note.contains("another package of the id project:hello left") && note.contains("does not get"), "{note}");
    assert!(home.feature(&["remove", "hello", "--data"]).status.success());
    assert!(!file.exists());
    assert!(err(&home.feature(&["remove", "hello", "--data"])).contains("no feature hello is installed"));

    home.json(&["install", hello().to_str().unwrap(), "--json"]);
    keep();
    let left = home.json(&["remove", "hello", "--data", "--json"])["diagnostics"].to_string();
    assert!(left.contains("its data is deleted") && !file.exists(), "{left}");
}

/// FEA-19: a package that can't migrate the data that is there is refused when it is tried out, and nothing has changed.
#[test]
fn a_migration_is_tried_before_anything_is_installed() {
    let home = Home::new();
    let variant = |how: &str| {
        let mut bytes = std::fs::read(features().join("tests/hostile-tools.wasm")).unwrap();
        let (from, to) = (b"MIGRATE:quiet           ", format!("MIGRATE:{how:<16}").into_bytes());
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + from.len()].copy_from_slice(&to);
        bytes
    };
    let seed = |package: &[u8]| {
        let key = DataKey::new(&"project:hostile-tools".to_owned().try_into().unwrap(), Some(&sha256(package)));
        let stores = FeatureStores::open(&home.0).unwrap();
        let handle = stores.feature(key.as_str(), 1000).unwrap().handle.of_version(1).unwrap();
        handle.set("colour", b"blue").unwrap();
        let folder = home.0.clone();
        move || {
            let stores = FeatureStores::open(&folder).unwrap();
            (
                stores.data_version(key.as_str()).unwrap(),
                stores.feature(key.as_str(), 1000).unwrap().handle.get("colour").unwrap(),
            )
        }
    };
    let bad = variant("fail");
    let data = seed(&bad);
    let path = home.write("bad.wasm", &bad);
    let refused = home.feature(&["install", &path, "--grant", "store"]);
    let why = "its data was not migrated from version 1 to 2 and is as it was";
    assert!(!refused.status.success() && err(&refused).contains(why), "{}", err(&refused));
    assert!(PackageStore::open(&home.0).unwrap().installed().unwrap().features.is_empty());
    assert_eq!(data(), (Some(1), Some(b"blue".to_vec())));

    let good = variant("quiet");
    let data = seed(&good);
    home.json(&["install", &home.write("good.wasm", &good), "--grant", "store", "--json"]);
    assert_eq!(data(), (Some(1), Some(b"blue".to_vec())), "it was tried on a copy");
}

/// Another package that calls itself `project:hello`: the same bytes, signed by a stranger.
fn called_hello() -> Vec<u8> {
    signature::sign(&std::fs::read(hello()).unwrap(), &signature::new_key().unwrap()).unwrap()
}

/// What goes wrong with an installed feature is said once, with the command that mends it.
#[test]
fn a_revoked_grant_is_told_once_with_the_command_that_gives_it_again() {
    let home = Home::new();
    let store = PackageStore::open(&home.0).unwrap();
    put(&store, lamp("1", &format!("{NETWORK}udp = ['10.0.0.1:9']\n")), false, &["network"]).unwrap();
    installation::change(&store, "lamp", Change::Revoke(Vec::new()), &TrustedSigners::default()).unwrap();
    let listed = home.feature(&["list"]);
    let all = format!("{}{}", String::from_utf8_lossy(&listed.stdout), err(&listed));
    let advice = "run `conductor feature grant lamp network:lamp=10.0.0.1:9`";
    assert_eq!(all.matches(advice).count(), 1, "{all}");
    assert!(!all.contains("/blobs/"), "{all}");
}

/// FEA-11: `conductor run` notices by itself.
#[cfg(unix)]
#[test]
fn conductor_run_notices_what_is_installed() {
    let home = Home::new();
    home.write("config.toml", b"");
    let mut running = home.conductor("run", &[]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("ready: ") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it did not start");
    }
    let drain = std::thread::spawn(move || said.read_to_string(&mut String::new()));
    let has_hello = |wanted: bool| {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let status = conductor_api::client::Client::new(&home.0).status().unwrap();
            let has = status.features.iter().any(|feature| feature.name == "hello");
            if has == wanted {
                return;
            }
            assert!(Instant::now() < end, "{status:#?}");
            std::thread::yield_now();
        }
    };
    home.json(&["install", hello().to_str().unwrap(), "--json"]);
    has_hello(true);
    home.json(&["disable", "hello", "--json"]);
    has_hello(false);
    home.json(&["enable", "hello", "--json"]);
    has_hello(true);
    home.json(&["remove", "hello", "--json"]);
    has_hello(false);
    running.kill().unwrap();
    running.wait().unwrap();
    drain.join().unwrap().unwrap();
}

/// FEA-8: the last 200 receipts are kept, and a feature that comes with the host gets what is approved for it.
#[test]
fn receipts_are_kept_within_bounds() {
    let home = Home::new();
    let report = home.json(&["install", "osc-output", "--json"]);
    assert_eq!(report["source"]["kind"], "bundled");
    assert_eq!(report["granted"][0]["udp"], serde_json::json!(["127.0.0.1:*", "[::1]:*", "localhost:*"]));
    home.json(&["grant", "osc-output", "network=10.0.0.5:9000", "--json"]);
    assert_eq!(home.feature(&["grant", "osc-output", "alert"]).status.code(), Some(2));
    home.json(&["remove", "osc-output", "--json"]);

    let store = PackageStore::open(&home.0).unwrap();
    put(&store, lamp("1", ""), false, &[]).unwrap();
    let receipts = || {
        let mut names: Vec<String> = std::fs::read_dir(store.receipts())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(receipts().len(), 4);
    let trusted = TrustedSigners::default();
    for index in 0..MAX_RECEIPTS {
        installation::change(&store, "lamp", Change::Enable(index % 2 == 1), &trusted).unwrap();
    }
    assert_eq!(receipts().len(), MAX_RECEIPTS);
    let last = receipts().pop().unwrap();
    assert!(last.ends_with("-lamp-enable.json"), "{last}");
    let report: FeatureInstallReport =
        serde_json::from_slice(&std::fs::read(store.receipts().join(last)).unwrap()).unwrap();
    assert_eq!((report.what, report.enabled), (What::Enable, true));
}
