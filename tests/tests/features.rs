//! Features of strangers: one that greets, one that misbehaves in every way, and files that are none.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use conductor_tests::conductor::{Host, command, components, guest};
#[cfg(target_os = "linux")]
use conductor_tests::full_disk;
use conductor_tests::home::Home;
use conductor_tests::osc::{Listener, Tablet, free_port};
use conductor_tests::process::Process;
use conductor_tests::wait;
use rosc::OscType;
use serde_json::{Value, json};

/// A tablet whose messages `/n` do what a feature of strangers offers, and go on to a listener.
struct Stage {
    tablet: Tablet,
    out: Listener,
    home: Home,
    /// The configuration without the feature.
    alone: String,
}

impl Stage {
    fn new() -> Self {
        let (input, out) = (free_port(), Listener::new());
        let alone = format!(
            "[[bindings]]
alias = 'tablet'
protocol = 'osc'
input = {{ port = {input} }}

[[global_mappings]]
trigger = {{ type = 'OscMessage', address = '/n' }}
action = {{ type = 'OscSend', target = '{}', address = '/n', args = ['{{value:i}}'] }}

",
            out.target()
        );
        Self { tablet: Tablet::to(input), out, home: Home::new(&alone), alone }
    }

    /// The configuration with a feature installed from this file, and the same events doing `action`.
    fn with(&self, feature: &str, file: &Path, action: &str) -> String {
        format!(
            "{}[[global_mappings]]
name = 'theirs'
trigger = {{ type = 'OscMessage', address = '/n' }}
action = {{ {action} }}

[features.{feature}]
path = '{}'
{}",
            self.alone,
            file.display(),
            self.home.pins(file)
        )
    }

    /// Runs with the hostile feature, which does what `how` says.
    fn run_hostile(&self, how: &str) -> Host {
        let action = format!("type = 'Misbehave', how = '{how}'");
        self.home.configure(&(self.with("hostile", &guest("hostile"), &action) + "grants = { alert = true }\n"));
        self.home.run()
    }

    /// Sends numbers, one when the one before has arrived.
    fn works(&self, numbers: std::ops::Range<i32>) {
        for n in numbers {
            self.tablet.send("/n", [OscType::Int(n)]);
            assert_eq!(self.out.number(), n);
        }
    }
}

// FEA-1, FEA-3, FEA-15: a feature written from the contract alone is installed from a file, and heard.
#[test]
fn a_third_partys_feature_greets_the_player() {
    let stage = Stage::new();
    stage.home.configure(&stage.with("hello", &guest("hello"), "type = 'Hello'"));
    let host = stage.home.run();
    let monitor = Process::start(&mut command(stage.home.path(), &["monitor", "--json"]));
    wait::until(
        || {
            stage.tablet.send("/attached", []);
            monitor.out.text().contains("/attached").then_some(())
        },
        || "the monitor shows nothing".into(),
    );

    stage.works(7..8);
    let said = host.log().line("hello, tablet: 7");
    assert!(said.contains("INFO") && said.contains("project:hello"), "{said}");
    monitor.out.line(r#"{"kind":"message","feature":"project:hello","sink":"diagnostic","text":"hello, tablet: 7"}"#);
    let feature = host.feature("hello");
    assert_eq!((&feature["performed"], &feature["bundled"]), (&json!(1), &json!(false)), "{feature:#}");

    // By its full name, and from a path that starts at the configuration.
    fs::copy(guest("hello"), stage.home.path().join("mine.wasm")).unwrap();
    stage.home.configure(&stage.with("hello", Path::new("mine.wasm"), "type = 'hello:Hello'"));
    host.log().line("reloaded");
    stage.works(8..9);
    host.log().line("hello, tablet: 8");

    // And gone again.
    stage.home.configure(&stage.alone);
    host.status_when(|status| status["features"].as_array().unwrap().iter().all(|feature| feature["name"] != "hello"));
    stage.works(9..10);
    assert!(!host.log().text().contains("hello, tablet: 9"));
}

// FEA-9, REL-1: for any misbehaviour of a feature, its action fails with the reason, and nothing else suffers.
#[test]
fn a_feature_that_misbehaves_costs_only_its_own_actions() {
    // One more, and it would be quarantined for a while.
    const EVENTS: i32 = 4;
    for (how, reason, trapped) in [
        ("loop", "stopped: it ran longer than its 20 ms", true),
        ("trap", "wasm `unreachable` instruction executed", true),
        ("recurse", "trapped: it used up its stack of 512 KiB", true),
        ("memory", "trapped: it reached its memory limit of 64 MiB", true),
        ("large-datagram", "no target", false),
    ] {
        let stage = Stage::new();
        let host = stage.run_hostile(how);
        stage.works(0..EVENTS);

        let feature = host.feature_when("hostile", |feature| feature["failed"] == EVENTS);
        assert!(feature["last_failure"].as_str().unwrap().ends_with(reason), "{how}: {feature:#}");
        assert_eq!(feature["trapped"], if trapped { EVENTS } else { 0 }, "{how}");
        assert_eq!(feature["performed"], 0, "{how}");
        let listed = stage.home.json(&["feature", "list", "--json"]);
        let listed = listed.as_array().unwrap().iter().find(|listed| listed["name"] == "hostile").unwrap();
        assert_eq!(
            (&listed["failed"], &listed["last_failure"]),
            (&feature["failed"], &feature["last_failure"]),
            "{how}"
        );
        let ours = host.feature("osc-output");
        assert_eq!((&ours["performed"], &ours["failed"]), (&json!(EVENTS), &json!(0)), "{how}");
        let said = host.log().line(reason);
        assert!(said.contains("WARN") && said.contains("hostile"), "{said}");

        let (end, took) = host.stop();
        assert_eq!(end.code, Some(0), "{how}: {}", end.err);
        assert!(took < Duration::from_secs(3), "{how}: it took {took:?}");
    }
}

// FEA-9: what a feature says is cut, and cannot paint on a person's terminal.
#[test]
fn nonsense_is_cut_and_made_harmless() {
    let stage = Stage::new();
    let host = stage.run_hostile("nonsense");
    stage.works(0..20);
    let feature = host.feature_when("hostile", |feature| feature["failed"] == 20);
    assert_eq!(feature["trapped"], 0);
    let reason = feature["last_failure"].as_str().unwrap();
    assert!(reason.len() <= 1024 + 16, "{} bytes", reason.len());
    assert!(!reason.chars().any(char::is_control), "{reason:?}");

    let listed = stage.home.conductor(&["feature", "list"]).out;
    assert!(!listed.contains('\u{1b}'), "{listed:?}");
    let (end, _) = host.stop();
    assert!(!end.err.contains('\u{1b}'), "{:?}", end.err);
}

// FEA-9, FEA-15: a feature that shouts is heard a little, and the rest is counted.
#[test]
fn a_flood_of_alerts_is_thinned_out_and_counted() {
    let stage = Stage::new();
    let host = stage.run_hostile("flood");
    stage.works(0..20);
    host.feature_when("hostile", |feature| {
        feature["performed"].as_u64().unwrap() + feature["failed"].as_u64().unwrap() == 20
    });
    let (status, _) = host.status_when(|status| status["dropped_messages"].as_u64() > Some(1000));
    assert!(status["features"].as_array().unwrap().iter().all(|feature| feature["refused"].is_null()));

    let (end, _) = host.stop();
    let alerts = end.err.lines().filter(|line| line.contains("ALERT: flood")).count();
    assert!((1..500).contains(&alerts), "{alerts} alerts in the log");
    assert!(!end.err.contains('\u{1b}'), "{:?}", end.err);
}

// ACT-2, FEA-9: a feature that is far behind has its own queue full, and holds up neither a reload nor the end.
#[test]
fn a_feature_that_is_far_behind_holds_up_nobody() {
    const EVENTS: i32 = 2000;
    let stage = Stage::new();
    let host = stage.run_hostile("loop");
    stage.works(0..EVENTS);
    // Its queue is full, or it is quarantined already: both fail at once and cost no other feature anything.
    let behind = |feature: &Value| feature["queue_full"].as_u64() > Some(0) || feature["quarantine"].is_u64();
    host.feature_when("hostile", behind);
    assert_eq!(host.feature("osc-output")["failed"], 0);

    let config = fs::read_to_string(stage.home.config()).unwrap();
    stage.home.configure(&(config + "# again\n"));
    let (_, took) = host.status_when(|status| status["generation"] == 1);
    assert!(took < Duration::from_secs(3), "the reload took {took:?}");

    let (end, took) = host.stop();
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(took < Duration::from_secs(3), "the end took {took:?}");
}

// FEA-3, FEA-9, CFG-2: what goes wrong while a mapping is prepared is a mistake in the file, with its place.
#[test]
fn a_mapping_that_can_not_be_prepared_is_a_mistake_in_the_file() {
    for (how, reason) in [
        ("prepare-loop", "stopped: it ran longer than its 1000 ms"),
        ("prepare-trap", "wasm `unreachable` instruction executed"),
        ("target-elsewhere", "denied: 192.0.2.1:9 is not granted; write `udp = [\"192.0.2.1:9\"]`"),
        ("target-nonsense", "user@127.1:0x50"),
        ("target-handles", "1024 handles"),
    ] {
        let stage = Stage::new();
        let action = format!("type = 'Misbehave', how = '{how}'");
        let config = stage.with("hostile", &guest("hostile"), &action) + "grants = { udp = ['127.0.0.1:*'] }\n";
        stage.home.configure(&config);
        let end = stage.home.conductor(&["config", "validate"]);
        assert_eq!(end.code, Some(2), "{how}: {}\n{}", end.out, end.err);
        let line = config.lines().position(|line| line.contains("Misbehave")).unwrap() + 1;
        let place = format!("config.toml:{line}:10: Misbehave: ");
        let said = end.err.lines().find(|line| line.contains(&place));
        assert!(said.is_some_and(|said| said.contains(reason)), "{how}: no {place}…{reason} in\n{}", end.err);
        assert!(end.err.contains("1 error in"), "{how}: {}", end.err);
    }
}

// FEA-3: a target within the grant is reached, and only that.
#[test]
fn a_grant_reaches_as_far_as_it_says() {
    let stage = Stage::new();
    let ask = |grants: &str| {
        let action = "type = 'Misbehave', how = 'target-local'";
        stage.home.configure(&(stage.with("hostile", &guest("hostile"), action) + grants));
        stage.home.conductor(&["config", "validate"])
    };
    assert_eq!(ask("grants = { udp = ['127.0.0.1:9'] }\n").code, Some(0));
    let nothing = ask("");
    assert!(nothing.err.contains("denied"), "{}", nothing.err);
    let another = ask("grants = { udp = ['127.0.0.1:10'] }\n");
    assert!(another.err.contains("denied: 127.0.0.1:9 is not granted"), "{}", another.err);
}

/// Makes files that are no feature: a name, and what is said of each.
fn spoilt(home: &Home) -> Vec<(&'static str, String)> {
    let whole = fs::read(guest("hello")).unwrap();
    home.write("truncated.wasm", &whole[..whole.len() / 2]);
    home.write("text.wasm", "[features.hello]\n");
    home.write("empty.wasm", "");
    home.write("core.wasm", b"\0asm\x01\0\0\0");
    let mut changed = whole.clone();
    changed[whole.len() / 2..][..64].fill(0xff);
    home.write("changed.wasm", changed);
    File::create(home.path().join("sparse.wasm")).unwrap().set_len(200 << 20).unwrap();
    fs::create_dir(home.path().join("folder.wasm")).unwrap();
    fs::copy(guest("hostile"), home.path().join("other.wasm")).unwrap();
    fs::copy(components().join("osc-output.wasm"), home.path().join("bundled.wasm")).unwrap();
    [
        ("truncated", "is truncated"),
        ("text", "is not WebAssembly"),
        ("empty", "is not WebAssembly"),
        ("core", "is a core WebAssembly module, not a component"),
        ("changed", "is not a valid component"),
        ("sparse", "has 209715200 bytes; a package may have at most 33554432"),
        ("folder", "can't be read"),
        ("missing", "can't be read: No such file"),
        ("other", "is called \"hostile\" in its descriptor; write it as [features.hostile]"),
        ("bundled", "calls itself builtin:osc-output; only features that come with the host are `builtin:`"),
    ]
    .map(|(name, reason)| (name, format!("{name}.wasm: {reason}")))
    .into()
}

// FEA-8, FEA-11, REL-1: a file that is no feature is refused with its own message; everything else runs.
#[test]
fn a_file_that_is_no_feature_is_refused_and_everything_else_runs() {
    let stage = Stage::new();
    for (name, reason) in spoilt(&stage.home) {
        let file = stage.home.path().join(format!("{name}.wasm"));
        stage.home.configure(&format!("{}[features.hello]\npath = '{name}.wasm'\n", stage.alone));
        let host = stage.home.run();
        let said = host.log().line(&reason);
        assert!(said.contains("WARN") && said.contains("hello is not installed"), "{said}");
        let refused = host.feature("hello");
        assert!(refused["refused"].as_str().unwrap().contains(&reason), "{refused:#}");
        assert_eq!(refused["package"], json!(null));
        assert!(stage.home.conductor(&["feature", "list"]).out.contains(&reason));
        stage.works(0..3);
        drop(host);

        // A mapping that needs it is kept, and says why it does nothing.
        stage.home.configure(&stage.with("hello", &file, "type = 'hello:Hello'"));
        let end = stage.home.conductor(&["config", "validate"]);
        assert_eq!(end.code, Some(0), "{}", end.err);
        assert!(end.err.contains("config.toml:13:19: the feature hello is not installed: "), "{}", end.err);
        assert!(end.err.contains(&reason), "{}", end.err);

        let inspected = stage.home.conductor(&["feature", "inspect", file.to_str().unwrap()]);
        let readable = ["other", "bundled"].contains(&name);
        assert_eq!(inspected.code, Some(if readable { 0 } else { 1 }), "{name}: {}", inspected.err);
        assert!(readable || inspected.err.contains(&reason), "{}", inspected.err);
    }
}

// FEA-8, CFG-2: a feature whose file is spoilt while it runs goes on as it is.
#[test]
fn a_running_feature_survives_its_file() {
    let stage = Stage::new();
    let file = stage.home.path().join("mine.wasm");
    fs::copy(guest("hello"), &file).unwrap();
    let config = stage.with("hello", &file, "type = 'Hello'");
    stage.home.configure(&config);
    let host = stage.home.run();
    stage.works(1..2);
    host.log().line("hello, tablet: 1");

    stage.home.write("mine.wasm", "spoilt");
    stage.home.configure(&(config.clone() + "# spoilt\n"));
    host.log().line("the one that runs stays, for the new one is not installed");
    host.log().line("reloaded");
    stage.works(2..3);
    host.log().line("hello, tablet: 2");

    fs::copy(guest("hello"), &file).unwrap();
    stage.home.configure(&(config + "# whole\n"));
    host.log().line("reloaded");
    stage.works(3..4);
    host.log().line("hello, tablet: 3");
}

#[test]
#[cfg(target_os = "linux")]
fn a_disk_that_fills_while_a_package_is_installed_leaves_what_was_there() {
    let home = Home::new("");
    let package = guest("hello").display().to_string();
    let install = ["feature", "install", &package, "--grant", "all"];
    let size = fs::metadata(guest("hello")).unwrap().len();
    let host = home.run();
    let before = home.json(&["feature", "list", "--json"]);
    // The last one has room for the package itself, and none for the list of what is installed.
    for room in [0, 4096, size / 2] {
        let end = Process::start(&mut full_disk::full(&command(home.path(), &install), room)).wait().0;
        assert_eq!(end.code, Some(1), "{room} bytes: {}", end.err);
        assert!(end.err.contains("make room") || end.err.contains("File too large"), "{room} bytes: {}", end.err);
        assert_eq!(home.json(&["feature", "list", "--json"]), before, "{room} bytes");
        assert!(host.status()["audit"]["trouble"].is_null(), "{room} bytes");
    }
    let end = home.conductor(&install);
    assert_eq!(end.code, Some(0), "{}", end.err);
    wait::until(|| host.status()["features"].to_string().contains("\"hello\"").then_some(()), || "hello".to_owned());
    assert_eq!(fs::read_dir(home.path().join("features/blobs")).unwrap().count(), 1, "no half package");
}
