//! Features of authors: what the commands make, and examples in other languages.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use conductor_tests::conductor::{command, components, guest};
use conductor_tests::home::Home;
use serde_json::{Value, json};

/// Asks the harness, one request after the other.
fn harness(home: &Home, package: &Path, requests: &[Value]) -> Vec<Value> {
    let mut command = command(home.path(), &["feature", "harness", package.to_str().unwrap()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    // Beside, since it answers while it is asked.
    std::thread::spawn(move || lines.iter().for_each(|line| writeln!(stdin, "{line}").unwrap()));
    let output = child.wait_with_output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An example's package, unless its language is not on this machine.
fn example(name: &str) -> Option<std::path::PathBuf> {
    let package = components().join("examples").join(format!("{name}.wasm"));
    let there = package.is_file();
    if !there {
        eprintln!("SKIPPED: {} is not there; `cargo xtask examples` says why", package.display());
    }
    there.then_some(package)
}

/// FEA-13: a tool in JavaScript.
#[test]
fn a_tool_in_javascript_names_chords() {
    let Some(package) = example("chords-js") else { return };
    let call = |notes: Value| json!({ "do": "call", "tool": "chord_name", "args": { "notes": notes } });
    let requests = [json!({ "do": "install" }), call(json!([60, 63, 67])), call(json!("C"))];
    let answers = harness(&Home::new(""), &package, &requests);
    assert_eq!(answers[0]["ok"]["refused"], Value::Null, "{}", answers[0]);
    assert_eq!(answers[1]["ok"]["result"], "Cm", "{}", answers[1]);
    assert!(answers[2]["error"].as_str().unwrap().contains("0 to 127"), "{}", answers[2]);
}

/// FEA-13: a tool in Python.
#[test]
fn a_tool_in_python_spells_scales() {
    let Some(package) = example("scales-py") else { return };
    let call = |scale: &str| json!({ "do": "call", "tool": "scale_notes", "args": { "root": 60, "scale": scale } });
    let requests = [json!({ "do": "install" }), call("pentatonic"), call("blues")];
    let answers = harness(&Home::new(""), &package, &requests);
    assert_eq!(answers[1]["ok"]["result"], json!([60, 62, 64, 67, 69]), "{}", answers[1]);
    assert!(answers[2]["error"].as_str().unwrap().contains("one of major"), "{}", answers[2]);
}

/// What a feature told the person, in the answer to `seen`.
fn said(answer: &Value) -> Vec<&str> {
    let said = answer["ok"]["said"].as_array().unwrap_or_else(|| panic!("{answer}"));
    said.iter().filter_map(|said| said["text"].as_str()).collect()
}

/// FEA-13: an action in JavaScript, on the event path. It goes on for longer than its engine's memory would last
/// without a collection.
#[test]
fn an_action_in_javascript_tells_how_hard_a_pad_was_hit() {
    let Some(package) = example("accents-js") else { return };
    let config = "[[global_mappings]]\ntrigger = { type = 'Note', note = 36 }\n\
                  action = { type = 'Accent', word = 'Kick' }\n";
    let perform = json!({ "do": "perform", "prepared": 0, "event": "pads note-on 36 64" });
    let mut requests = vec![
        json!({ "do": "install", "grants": "alert = true", "config": config }),
        json!({ "do": "play", "script": "0ms pads note-on 36 127" }),
        json!({ "do": "seen" }),
        json!({ "do": "prepare", "action": "Accent", "params": { "words": 1 } }),
        json!({ "do": "prepare", "action": "Accent", "params": {} }),
    ];
    requests.extend(std::iter::repeat_n(perform, 20_000));
    let answers = harness(&Home::new(""), &package, &requests);
    assert_eq!(answers[0]["ok"]["refused"], Value::Null, "{}", answers[0]);
    assert_eq!(said(&answers[2]), ["Kick ########## 127"]);
    assert!(answers[3]["error"].as_str().unwrap().contains("at most 40 characters"), "{}", answers[3]);
    let failed = answers[4..].iter().find(|answer| answer["error"].is_string());
    assert_eq!((failed, answers.len()), (None, requests.len()));
}

/// FEA-13: an action in C.
#[test]
fn an_action_in_c_tells_the_tempo() {
    let Some(package) = example("tempo-c") else { return };
    let config = "[[global_mappings]]\ntrigger = { type = 'Note', note = 36 }\naction = { type = 'TellTempo' }\n";
    let requests = [
        json!({ "do": "install", "grants": "alert = true", "config": config }),
        json!({ "do": "play", "script": "0ms pads note-on 36 100\n+500ms pads note-on 36 1\n+4s pads note-on 36 7\n\
                                         +1s pads note-on 36 9" }),
        json!({ "do": "seen" }),
        json!({ "do": "prepare", "action": "TellTempo", "params": { "beats": 4 } }),
    ];
    let answers = harness(&Home::new(""), &package, &requests);
    assert_eq!(answers[0]["ok"]["refused"], Value::Null, "{}", answers[0]);
    assert_eq!(said(&answers[2]), ["120 beats a minute", "60 beats a minute"], "{}", answers[1]);
    assert!(answers[3]["error"].as_str().unwrap().contains("takes no parameters"), "{}", answers[3]);
}

/// FEA-13: events in a script meet the rules of a configuration, and what the feature says is recorded.
#[test]
fn the_harness_plays_a_script() {
    let config = "[[global_mappings]]\ntrigger = { type = 'Note', note = 36 }\naction = { type = 'Hello' }\n";
    let requests = [
        json!({ "do": "seen" }),
        json!({ "do": "install", "config": config }),
        json!({ "do": "play", "script": "0ms pads note-on 36 100\n+1s pads note-on 37 1\n+3600s pads note-on 36 7" }),
        json!({ "do": "seen" }),
        json!({ "do": "play", "script": "0ms pads note-on 36 1000" }),
        json!({ "do": "prepare", "action": "Bye", "params": {} }),
        json!({ "do": "dance" }),
    ];
    let answers = harness(&Home::new(""), &guest("hello"), &requests);
    assert_eq!(answers[0]["error"], "nothing is installed yet");
    assert_eq!(answers[2]["ok"], 3, "{}", answers[2]);
    let said: Vec<&Value> = answers[3]["ok"]["said"].as_array().unwrap().iter().map(|said| &said["text"]).collect();
    assert_eq!(said, ["hello, pads: 100", "hello, pads: 7"]);
    assert!(answers[4]["error"].as_str().unwrap().starts_with("line 1, column"), "{}", answers[4]);
    assert!(answers[5]["error"].as_str().unwrap().contains("no feature has the action"), "{}", answers[5]);
    assert!(answers[6]["error"].as_str().unwrap().starts_with("not understood"), "{}", answers[6]);
}

/// FEA-12: a new feature is whole, and never lies over something that is there.
#[test]
fn a_new_feature_is_a_folder_of_its_own() {
    let home = Home::new("");
    let folder = home.path().join("desk-lamp");
    let path = folder.to_str().unwrap();
    assert_eq!(home.conductor(&["feature", "new", path, "--kind", "tool"]).code, Some(0));
    let files = ["Cargo.toml", "feature.toml", "README.md", ".gitignore", "src/lib.rs", "src/tool.rs"];
    for file in files.into_iter().chain(["tests/desk_lamp/main.rs", "tests/desk_lamp/tool.rs"]) {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(!text.is_empty() && !text.contains("{{"), "{file}: {text}");
    }
    // Nothing of the machine that built this program is in it: it has the SDK and the contract.
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("path = \"sdk/feature-api\""), "{manifest}");
    for file in ["sdk/feature-api/Cargo.toml", "sdk/feature-api/src/lib.rs", "sdk/wit/v0.1/types.wit"] {
        assert!(folder.join(file).is_file(), "{file}");
    }
    let again = home.conductor(&["feature", "new", path]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("already exists"), "{}", again.err);
    let unknown = home.conductor(&["feature", "new", path, "--kind", "driver"]);
    assert!(unknown.err.contains("action, tool, hook, task, provider"), "{}", unknown.err);
}

/// FEA-12: a project in another language brings the contract and a harness of its own.
#[test]
fn a_new_feature_can_be_several_things_in_another_language() {
    let home = Home::new("");
    for (language, files) in [
        ("javascript", ["package.json", "action.js", "test/tool.js", "sdk/harness.js", "sdk/wit/v0.1/types.wit"]),
        ("python", ["pyproject.toml", "action.py", "tests/test_tool.py", "tests/harness.py", "sdk/wit/v0.1/types.wit"]),
    ] {
        let folder = home.path().join(format!("lamp-{language}"));
        let path = folder.to_str().unwrap();
        let made = home.conductor(&["feature", "new", path, "--kind", "action,tool,hook", "--language", language]);
        assert_eq!(made.code, Some(0), "{}", made.err);
        for file in files {
            assert!(folder.join(file).is_file(), "{file}");
        }
        assert!(!folder.join("sdk/feature-api").exists(), "the SDK for Rust is of no use here");
    }
    let provider = home.conductor(&["feature", "new", "x", "--kind", "tool,provider", "--language", "python"]);
    assert_eq!(provider.code, Some(2));
    assert!(provider.err.contains("no template for a provider in Python"), "{}", provider.err);
}

/// FEA-12: a check tells what is wrong with a package, and installs one that is right.
#[test]
fn a_check_tells_every_problem() {
    let home = Home::new("");
    let right = home.conductor(&["feature", "check", guest("hello").to_str().unwrap()]);
    assert_eq!(right.code, Some(0), "{}", right.err);
    let nothing = home.conductor(&["feature", "check", home.path().to_str().unwrap()]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.err.contains("feature.toml"), "{}", nothing.err);
}

/// FEA-13: timers go by the harness's clock, exactly, however far it is moved at once.
#[test]
fn a_metronome_ticks_by_the_harness_clock() {
    let config = "[[global_mappings]]\ntrigger = { type = 'Note', note = 36 }\n\
                  action = { type = 'Metronome', target = '127.0.0.1:9000', ms = 750 }\n";
    let requests = [
        json!({ "do": "install", "grant_all": true, "config": config }),
        json!({ "do": "play", "script": "0ms pads note-on 36 100\n+2s pads note-on 36 100" }),
        json!({ "do": "advance", "milliseconds": 5000 }),
        json!({ "do": "play", "script": "0ms pads note-on 36 100" }),
        json!({ "do": "seen" }),
    ];
    let answers = harness(&Home::new(""), &guest("metronome"), &requests);
    let seen = answers.last().unwrap();
    let sent = seen["ok"]["sent"].as_array().unwrap_or_else(|| panic!("{answers:?}"));
    let text = |datagram: &Value| -> String {
        let bytes = datagram["bytes"].as_array().unwrap().iter();
        String::from_utf8(bytes.map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap()).collect()).unwrap()
    };
    let sent: Vec<String> = sent.iter().map(text).collect();
    // From one press to the next, and none in the five seconds after it.
    assert_eq!(sent, ["tick 0", "tick 750000000", "tick 1500000000", "tick 7000000000"], "{seen}");
}
