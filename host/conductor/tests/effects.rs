//! What goes out, seen by `conductor simulate`, `explain` and `test` without anything going out; and docs/timeline.md,
//! each example of which is run here.
//!
//! The guests are built by `cargo xtask features`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use conductor_package::Package;
use serde_json::Value;

/// The page of the line language.
const PAGE: &str = include_str!("../../../docs/timeline.md");

/// A configuration, and files beside it. What a home keeps of the features is the same for all.
struct Stage {
    folder: PathBuf,
}

/// The folder of the guests that were built.
fn built() -> PathBuf {
    std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from)
}

/// A folder with the features that are used here, and a home in which they were compiled once.
fn shared() -> &'static (PathBuf, PathBuf) {
    static SHARED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let folder = root().join("shared");
        let (features, home) = (folder.join("features"), folder.join("home"));
        fs::create_dir_all(&features).unwrap();
        fs::create_dir_all(&home).unwrap();
        for feature in ["osc-output.wasm", "artnet-output.wasm"] {
            fs::copy(built().join(feature), features.join(feature)).unwrap();
        }
        fs::write(home.join("config.toml"), "").unwrap();
        let validate = conductor(&features, &home, &home.join("config.toml"), &["config", "validate"]);
        assert!(validate.status.success(), "{validate:?}");
        (features, home)
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("effects-{}", std::process::id()))
}

fn conductor(features: &Path, home: &Path, config: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.arg("--home").arg(home).arg("--config").arg(config).args(arguments);
    command.env("CONDUCTOR_FEATURES", features).stdin(Stdio::null()).output().unwrap()
}

impl Stage {
    fn new(config: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = root().join(NUMBER.fetch_add(1, Ordering::Relaxed).to_string());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), config).unwrap();
        Self { folder }
    }

    /// Runs a command with a file of this text behind it.
    fn run(&self, command: &[&str], text: &str) -> (Option<i32>, String, String) {
        let file = self.folder.join("show.txt");
        fs::write(&file, text).unwrap();
        self.command(&[command, &[file.to_str().unwrap()]].concat())
    }

    fn command(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let (features, home) = shared();
        let output = conductor(features, home, &self.folder.join("config.toml"), arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// What goes out, by `simulate`: when, in ms, and what, without comments.
    fn effects(&self, script: &str) -> Vec<String> {
        let (code, out, err) = self.run(&["simulate"], script);
        assert_eq!(code, Some(0), "{out}{err}");
        let effects = out.lines().filter_map(|line| line.split_once("=> "));
        let effects = effects.map(|(time, effect)| {
            let effect = effect.split("  # ").next().unwrap();
            format!("{} {effect}", time.trim().trim_end_matches(".000 ms"))
        });
        effects.collect()
    }

    fn passes(&self, test: &str) {
        let (code, out, err) = self.run(&["test"], test);
        assert_eq!(code, Some(0), "{test}\n{out}{err}");
    }

    /// What a test that fails says.
    fn fails(&self, test: &str) -> String {
        let (code, out, err) = self.run(&["test"], test);
        assert_eq!(code, Some(1), "{test}\n{out}{err}");
        out
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Everything that goes out in some way.
fn show(target: &str) -> String {
    format!(
        r#"
[[bindings]]
alias = "pads"
matchers = [{{ type = "name_contains", value = "Pads" }}]

[[bindings]]
alias = "synth"
output = {{ matchers = [{{ type = "name_contains", value = "Synth" }}] }}

[[modes]]
name = "Play"

[[modes.mappings]]
name = "cue"
trigger = {{ type = "Note", note = "36..39", device = "pads" }}
action = {{ type = "OscSend", target = "{target}", address = "/cue/{{n}}", args = ["{{unit}}"] }}

[[modes.mappings]]
name = "line"
trigger = {{ type = "Note", note = "48..59", device = "pads" }}
action = {{ type = "MidiForward", target = "synth", transform = {{ channel = 1, velocity_scale = 0.5 }} }}

[[modes.mappings]]
name = "copy"
trigger = {{ type = "Note", note = 60 }}
action = {{ type = "Keystroke", keys = ["c"], modifiers = ["ctrl"] }}

[[modes.mappings]]
name = "talk"
trigger = {{ type = "Note", note = 61 }}
action = {{ type = "Keystroke", keys = ["space"], stroke = "hold" }}

[[modes.mappings]]
name = "say"
trigger = {{ type = "Note", note = 62 }}
action = {{ type = "Shell", command = "/nowhere/say", args = ["{{n}}", "hello world", "--token", "hunter2"] }}

[[modes.mappings]]
name = "drum roll"
trigger = {{ type = "Note", note = 63 }}
action = {{ type = "Repeat", count = 3, delay_ms = 100, action = {{ type = "SendMidi", target = "synth", message_type = "NoteOn", note = 38, velocity = 64 }} }}

[[modes.mappings]]
name = "dim"
trigger = {{ type = "CC", cc = 1 }}
action = {{ type = "ArtNetSend", target = "10.0.0.9:6454", universe = 1, channel = 5, value = "{{unit -> 0..255}}" }}

[[modes.mappings]]
name = "next"
trigger = {{ type = "Note", note = 64 }}
action = {{ type = "ModeChange", mode = "Mix" }}

[[modes]]
name = "Mix"

[features.osc-output.grants]
udp = ["{target}"]
[features.artnet-output.grants]
udp = ["10.0.0.9:6454"]
"#
    )
}

// ENG-9, ACT-1: the feature's own doing, with the numbers of the event, and nothing of it leaves the process.
#[test]
fn simulate_shows_what_goes_out_and_nothing_does() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let target = listener.local_addr().unwrap().to_string();
    let stage = Stage::new(&show(&target));
    let script = "0ms pads note-on 38 127\n1ms pads note-on 50 100\n2ms pads note-off 50\n3ms pads note-on 60 1\n\
                  4ms pads note-on 62 1\n5ms pads cc 1 127\n6ms pads note-on 63 1\n7ms pads note-on 99 1\n";
    assert_eq!(
        stage.effects(script),
        [
            &format!("0 OSC {target} /cue/2 1.0"),
            "1 MIDI synth 91 32 32",
            "2 MIDI synth 81 32 40",
            "3 key ctrl+c",
            "4 program /nowhere/say 0 \"hello world\" --token <hidden>",
            "5 Art-Net 10.0.0.9:6454 1 5=255",
            "6 MIDI synth 90 26 40",
            "106 MIDI synth 90 26 40",
            "206 MIDI synth 90 26 40",
        ]
    );
    let nothing = listener.recv(&mut [0; 64]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);

    let (_, out, _) = stage.run(&["simulate", "--json"], "0ms pads note-on 38 127\n");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{out}");
    assert_eq!(lines[1]["effect"], format!("OSC {target} /cue/2 1.0"));
    assert_eq!((&lines[1]["rule"], &lines[1]["at"]), (&"cue (OscSend)".into(), &0.into()));
}

// FEA-9: what a feature does later, by its timers, goes out at its own time, and not for ever.
#[test]
fn what_a_feature_does_later_goes_out_at_its_time() {
    let metronome = built().join("tests/metronome.wasm");
    let info = Package::read(&metronome).unwrap().info;
    let stage = Stage::new(&format!(
        "[[global_mappings]]\nname = 'echo'\ntrigger = {{ type = 'Note', note = 36 }}\n\
         action = {{ type = 'Echo', target = '127.0.0.1:9', ms = 250, times = 2 }}\n\
         [[global_mappings]]\nname = 'tick'\ntrigger = {{ type = 'Note', note = 37 }}\n\
         action = {{ type = 'Metronome', target = '127.0.0.1:9', ms = 500 }}\n\
         [features.metronome]\npath = '{}'\nid = '{}'\ndigest = 'sha256:{}'\n\
         [features.metronome.grants]\ntimers = true\nudp = ['127.0.0.1:*']\n",
        metronome.display(),
        info.descriptor.id,
        info.digest
    ));
    let datagram = |ms: u64, text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02X}")).collect();
        format!("{ms} UDP 127.0.0.1:9 {}", bytes.join(" "))
    };
    assert_eq!(
        stage.effects("10ms pads note-on 36 1\n300ms pads note-on 99 1\n"),
        [datagram(260, "echo 1 260000000"), datagram(510, "echo 2 510000000")]
    );
    // The second press ends the ticking.
    let ticks = [0, 500, 1000].map(|ms| datagram(ms, &format!("tick {}", ms * 1_000_000)));
    assert_eq!(stage.effects("0ms pads note-on 37 1\n1400ms pads note-on 37 1\n"), ticks);
    let out = stage.fails("0ms pads note-on 37 1\n-> tick\n");
    assert!(out.contains("does not end"), "{out}");
}

// What is held goes off with its mode, which no rule asks for.
#[test]
fn what_a_mode_lets_go_of_goes_out_too() {
    let stage = Stage::new(&show("127.0.0.1:9000"));
    assert_eq!(stage.effects("0ms pads note-on 61 1\n5ms pads note-on 64 1\n"), ["0 key down space", "5 key up space"]);
}

// ENG-13
#[test]
fn explain_shows_what_goes_out_of_one_event() {
    let stage = Stage::new(&show("127.0.0.1:9000"));
    let (code, out, err) = stage.command(&["explain", "pads", "note-on", "36", "127"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("=> OSC 127.0.0.1:9000 /cue/0 1.0  # cue"), "{out}");
    let (_, out, _) = stage.command(&["explain", "pads", "note-on", "63", "1"]);
    assert!(out.contains("\n200 ms later  => MIDI synth 90 26 40  # note-on 38 64: D2; drum roll"), "{out}");
    let (_, out, _) = stage.command(&["explain", "pads", "note-on", "36", "127", "--json"]);
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(last["effect"], "OSC 127.0.0.1:9000 /cue/0 1.0");
}

// ENG-13: a difference is a failed test, with what should have gone out and what did.
#[test]
fn a_test_demands_what_goes_out() {
    let stage = Stage::new(&show("127.0.0.1:9000"));
    stage.passes(
        "test \"both\"\n0ms pads note-on 38 100\n-> cue\n=> OSC 127.0.0.1:9000 /cue/2 0.787\n\
         test \"only what goes out\"\n0ms pads note-on 63 1\n=> MIDI synth note-on D2 64\n\
         => 100ms MIDI synth 90 26 40\n=> +200ms MIDI synth 90 26 40\n\
         test \"nothing\"\n0ms pads note-on 99 1\n=> nothing\n\
         test \"not looked at\"\n0ms pads note-on 38 100\n-> cue\n",
    );
    let out = stage.fails("0ms pads note-on 38 100\n=> OSC 127.0.0.1:9000 /cue/3 0.787\n");
    for part in
        ["line 2: at 0s should go out", "OSC 127.0.0.1:9000 /cue/3 0.787", "OSC 127.0.0.1:9000 /cue/2 0.78740156"]
    {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    let out = stage.fails("0ms pads note-on 38 100\n=> nothing\n");
    assert!(out.contains("nothing should go out\n") && out.contains("/cue/2 0.78740156"), "{out}");
    let out = stage.fails("0ms pads note-on 99 1\n=> key ctrl+c\n");
    assert!(out.contains("but nothing did"), "{out}");
    let (code, _, err) = stage.run(&["test"], "0ms pads note-on 38 100\n=> osc 127.0.0.1:9000 /cue/3\n");
    assert_eq!(code, Some(2));
    assert!(err.contains("line 2, column 4: there is no effect `osc`"), "{err}");
}

// Each test begins anew: what the one before has set, held or sent is forgotten.
#[test]
fn a_test_finds_nothing_of_the_one_before() {
    let stage = Stage::new(&show("127.0.0.1:9000"));
    let dim = "0ms pads cc 1 127\n=> Art-Net 10.0.0.9:6454 1 5=255\n";
    let talk = "0ms pads note-on 61 1\n=> key down space\n";
    stage.passes(&format!("test a\n{dim}test b\n{dim}test c\n{talk}test d\n{talk}"));
}

#[test]
fn a_misspelt_name_gets_a_hint_and_an_empty_test_is_no_success() {
    let stage = Stage::new(&show("127.0.0.1:9000"));
    let out = stage.fails("0ms pads note-on 38 100\n-> cux\n");
    assert!(out.contains("line 2: there is no rule \"cux\"; did you mean \"cue\"?"), "{out}");
    let hint = "no binding and no mapping calls a device \"pds\"; did you mean \"pads\"?";
    let (_, _, err) = stage.run(&["test"], "0ms pds note-on 99 100\n=> nothing\n");
    assert!(err.contains("line 1: ") && err.contains(hint), "{err}");
    let (_, _, err) = stage.run(&["simulate"], "0ms pds note-on 38 100\n");
    assert!(err.contains(hint), "{err}");
    let (_, _, err) = stage.command(&["explain", "pds note-on 38 100"]);
    assert!(err.contains(hint), "{err}");
    for empty in ["", "# nothing yet\n"] {
        let (code, _, err) = stage.run(&["test"], empty);
        assert_eq!(code, Some(1), "{err}");
    }
    assert!(stage.fails("test \"nothing happens\"\n").contains("it has no event"));
}

/// The blocks of a page that are fenced with this word, in order, each with what stands in the block after it.
fn blocks(word: &str) -> Vec<(String, String)> {
    let parts: Vec<&str> = PAGE.split("```").skip(1).step_by(2).collect();
    let split = |part: &str| {
        let (word, text) = part.split_once('\n').unwrap();
        (word.to_owned(), text.to_owned())
    };
    let all: Vec<(String, String)> = parts.into_iter().map(split).collect();
    let here = all.iter().enumerate().filter(|(_, (is, _))| is == word);
    here.map(|(at, (_, text))| (text.clone(), all.get(at + 1).map(|(_, text)| text.clone()).unwrap_or_default()))
        .collect()
}

// Every example of the page: tests pass, scripts print what stands below them, tests that fail say what stands below.
#[test]
fn the_page_of_the_language_is_true() {
    let configs = blocks("toml");
    let [(config, _)] = configs.as_slice() else { panic!("{} configurations", configs.len()) };
    let stage = Stage::new(config);
    let tests = blocks("test");
    assert_eq!(tests.len(), 2);
    for (test, _) in tests {
        stage.passes(&test);
    }
    let scripts = blocks("script");
    assert!(!scripts.is_empty());
    for (script, shown) in scripts {
        let (code, out, err) = stage.run(&["simulate"], &script);
        assert_eq!((code, out.as_str()), (Some(0), shown.as_str()), "{err}");
    }
    for (test, shown) in blocks("failing-test") {
        let out = stage.fails(&test);
        let file = format!("{}/", stage.folder.display());
        assert_eq!(out.replace(&file, ""), shown);
    }
}

/// docs/time.md: what stands there is taken, and its test passes.
#[test]
fn the_page_about_time_is_true() {
    const TIME: &str = include_str!("../../../docs/time.md");
    let block = |kind: &str, word: &str| {
        let blocks = TIME.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let found = blocks.filter(|(of_kind, text)| *of_kind == kind && text.contains(word)).map(|(_, text)| text);
        found.collect::<Vec<_>>().first().map(|text| (*text).to_owned()).unwrap()
    };
    let mode = "[[modes]]\nname = \"Chorus\"\n[[modes]]\nname = \"Play\"\n";
    let of_a_device =
        [&block("toml", "beats_per_bar"), mode, &block("toml", "quantize"), &block("toml", "flash")].concat();
    Stage::new(&of_a_device).passes(&block("text", "drums clock"));
    let by_tempo = [block("toml", "tempo = 120"), block("toml", "TapTempo")].concat();
    Stage::new(&by_tempo).passes("test \"it is taken\"\n0ms pads note-on 42 100\n=> nothing\n");
}
