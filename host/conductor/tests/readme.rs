//! The commands of README.md, run as a visitor would run them. One that is run by another test, or builds everything, is
//! listed with the reason, so that a command that is new in README.md has to be tried out, too.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conductor::api::client::Client;
use conductor_api::types::ProposePlan;
use conductor_config_text::edit::Change;

/// How long a host may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Commands that this test does not run: the beginning of each, and the test that does, or why none is needed.
const ELSEWHERE: [(&str, Run); 22] = [
    ("cargo xtask features", Run::Builds),
    ("cargo xtask host", Run::Builds),
    ("cargo xtask demo", Run::Builds),
    ("cargo xtask test", Run::Builds),
    ("cargo xtask dist", Run::In("xtask/src/test.rs", "self.repo.xtask(\"dist\")")),
    ("cargo xtask web", Run::Builds),
    ("export PATH", Run::Builds),
    ("conductor-jack", Run::Builds),
    ("cd hello", Run::Builds),
    ("conductor run", Run::Here),
    ("conductor monitor", Run::In("tests/tests/terminal.rs", "&[\"monitor\"]")),
    ("conductor learn", Run::In("tests/tests/tools.rs", "&[\"learn\"]")),
    ("conductor tui", Run::In("host/conductor/tests/tui.rs", ".arg(\"tui\")")),
    ("conductor ui", Run::In("tests/tests/ui.rs", "\"ui\"")),
    ("conductor chat", Run::In("host/conductor/tests/kept_conversations.rs", "[\"chat\", \"say hello")),
    ("conductor models add", Run::In("host/conductor/tests/models_command.rs", "[\"models\", \"add\"")),
    ("conductor service install", Run::In("tests/tests/machine.rs", "&[\"install\"]")),
    ("conductor audit tail", Run::In("tests/tests/audit.rs", "[\"audit\", \"tail\"")),
    ("conductor tool call", Run::In("tests/tests/api.rs", "\"tool\", \"call\"")),
    ("conductor feature install", Run::In("tests/tests/audit.rs", "[\"feature\", \"install\"")),
    ("conductor feature build", Run::In("xtask/src/examples.rs", "[\"feature\", \"build\"]")),
    ("conductor feature test", Run::In("xtask/src/examples.rs", "[\"feature\", \"test\"")),
];

/// Who runs a command.
enum Run {
    /// Every build of the repository, and its tests, which are started so.
    Builds,
    /// This test, as the host of the others.
    Here,
    /// Another test: its file, and the words by which it does.
    In(&'static str, &'static str),
}

/// README.md.
fn page() -> String {
    fs::read_to_string(repository().join("README.md")).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The blocks of a language, between fences.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in page.lines() {
        let text = line.trim_start();
        match (&mut open, text.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info == language, String::new())),
            (Some(_), Some(_)) => found.extend(open.take().filter(|(wanted, _)| *wanted).map(|(_, text)| text)),
            (Some((_, block)), None) => block.push_str(&format!("{text}\n")),
            (None, None) => {}
        }
    }
    found
}

/// Every command of the page: the lines of its blocks, without comments, and those between backticks.
fn commands(page: &str) -> Vec<String> {
    let blocks = blocks(page, "sh").concat();
    let lines = blocks.lines().map(|line| line.split(" #").next().unwrap().trim().to_owned());
    let between = page.split("```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2));
    let between = between.filter(|text| ["conductor ", "cargo "].iter().any(|program| text.starts_with(program)));
    let mut all: Vec<String> = lines.chain(between.map(str::to_owned)).filter(|line| !line.is_empty()).collect();
    all.sort();
    all.dedup();
    all
}

/// A home with the mapping of the page, and what runs in it.
struct Stage {
    home: PathBuf,
    features: PathBuf,
    host: Option<Child>,
}

impl Stage {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme");
        let _ = fs::remove_dir_all(&folder);
        // A socket's path is short.
        let home = std::env::temp_dir().join(format!("conductor-readme-{}", std::process::id()));
        let features = folder.join("features");
        fs::create_dir_all(&features).unwrap();
        fs::create_dir_all(&home).unwrap();
        let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
        let built = std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from);
        fs::copy(built.join("osc-output.wasm"), features.join("osc-output.wasm")).unwrap();
        Self { home, features, host: None }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let folder = Path::new(env!("CARGO_BIN_EXE_conductor")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(["-c", line]).current_dir(&self.home).stdin(Stdio::null());
        command.env("PATH", format!("{}:{path}", folder.display())).env("CONDUCTOR_FEATURES", &self.features);
        command.env("CONDUCTOR_HOME", &self.home).env("HOME", &self.home);
        command
    }

    /// What a command prints, and how it ends.
    fn run(&self, line: &str) -> (i32, String) {
        let output = self.command(line).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap_or(-1), said)
    }

    /// The same of one that is to succeed and to say this.
    fn says(&self, line: &str, text: &str) {
        let (code, said) = self.run(line);
        assert!(code == 0 && said.contains(text), "`{line}` ends with {code} and without {text:?}:\n{said}");
    }

    fn start(&mut self) {
        let mut run = self.command("exec conductor run");
        self.host = Some(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + START_TIMEOUT;
        while Client::new(&self.home).status().is_err() {
            assert!(Instant::now() < deadline, "the host does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A plan that waits, as an agent leaves one. Returns the first digits of its id.
    fn plan(&self) -> String {
        let value = serde_json::json!({ "name": "Next" });
        let changes = vec![Change { path: vec!["modes".into(), "1".into()], value: Some(value) }];
        let plan = ProposePlan { description: "a mode for the next song".into(), changes };
        Client::new(&self.home).propose_plan(&plan).unwrap().id[..4].to_owned()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(host) = &mut self.host {
            let _ = host.kill();
            let _ = host.wait();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

// CLI-1
#[test]
fn every_command_of_the_readme_is_run() {
    let (page, mut stage) = (page(), Stage::new());
    let mut left = commands(&page);
    assert!(left.len() > 30, "{left:?}");
    left.retain(|command| match ELSEWHERE.iter().find(|(beginning, _)| command.starts_with(beginning)) {
        Some((_, Run::In(file, words))) => {
            let text = fs::read_to_string(repository().join(file)).unwrap();
            assert!(text.contains(words), "`{command}` is not run by {file}, which has no {words}");
            false
        }
        found => found.is_none(),
    });
    let mut run = |line: &str| {
        let at = left.iter().position(|command| command == line);
        left.remove(at.unwrap_or_else(|| panic!("README.md has no `{line}` any more")));
    };

    // The first mapping, in five minutes.
    run("conductor init");
    stage.says("conductor init", "config.toml");
    fs::remove_file(stage.home.join("config.toml")).unwrap();
    let mapping = blocks(&page, "toml").into_iter().find(|block| block.contains("[[bindings]]")).unwrap();
    fs::write(stage.home.join("config.toml"), mapping).unwrap();
    run("conductor config validate");
    stage.says("conductor config validate", "fine; 1 rule, 1 mode");
    let simulate = "echo '0ms pads note-on 38 100 ch 9' | conductor simulate -";
    run(simulate);
    stage.says(simulate, "OSC 127.0.0.1:9000 /cue/2 0.78740156");
    assert!(page.contains("# => OSC 127.0.0.1:9000 /cue/2 0.78740156"), "what the page says of it");
    run("conductor config schema");
    stage.says("conductor config schema", "\"Conductor configuration\"");
    run("conductor ports");
    stage.says("conductor ports", "(no host is running");

    stage.start();
    run("conductor status");
    stage.says("conductor status", "rules      1,");
    run("conductor doctor");
    let (_, said) = stage.run("conductor doctor");
    assert!(said.contains("config.toml is valid"), "{said}");
    run("conductor tool list");
    stage.says("conductor tool list", "");
    run("conductor feature list");
    stage.says("conductor feature list", "osc-output");
    run("conductor notifications");
    stage.says("conductor notifications", "");
    run("conductor feature top");
    let mut top = stage.command("exec conductor feature top").stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(top.stdout.take().unwrap()).read_line(&mut first).unwrap();
    top.kill().unwrap();
    top.wait().unwrap();
    assert!(first.starts_with("FEATURE"), "{first}");

    // What an agent proposes.
    let id = stage.plan();
    run("conductor plan list");
    stage.says("conductor plan list", "a mode for the next song");
    run("conductor plan show 5f0c");
    stage.says(&format!("conductor plan show {id}"), "+name = \"Next\"");
    run("conductor plan apply 5f0c");
    stage.says(&format!("conductor plan apply {id} --yes"), "applied");
    run("conductor undo");
    stage.says("conductor undo --yes", "a mode for the next song");
    run("conductor audit verify");
    stage.says("conductor audit verify", "");
    let skill = "conductor skills install conductor-midi-mapping --for claude";
    run(skill);
    stage.says(skill, "conductor-midi-mapping");

    // The first feature, in ten minutes.
    run("conductor feature new hello --kind tool");
    stage.says("conductor feature new hello --kind tool", "");
    assert!(stage.home.join("hello/feature.toml").is_file());
    assert!(left.is_empty(), "README.md has commands that no test runs: {left:?}");
}
