//! SKL-2: what the bundled skills say is true. Every configuration in them loads, every test in them passes, every tool call
//! in them fits the tool's schema, and every tool and command that they name exists.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use conductor::{Conductor, mcp};
use conductor_config as config;
use conductor_dispatch::Action;
use conductor_engine::RuleSetHandle;
use conductor_host::host;
use conductor_package::Descriptor;
use conductor_sandbox::Compiler;
use conductor_schema::ResultSchema;
use conductor_skills::library::{Library, Place};
use conductor_skills::limits::{BODY_TOKENS, METADATA_TOKENS};
use conductor_skills::skill::Skill;
use conductor_timeline::parse_mapping_tests;
use serde_json::Value;

const BUNDLED: [&str; 9] = [
    "conductor-binding-setup",
    "conductor-feature-author",
    "conductor-learn",
    "conductor-midi-mapping",
    "conductor-profile-manager",
    "conductor-troubleshooting",
    "council-gate",
    "council-review",
    "council-verify",
];

/// The bundled features: where `cargo xtask test` says, else beside the build of this test.
fn features() -> PathBuf {
    let beside = || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features");
    std::env::var_os("CONDUCTOR_FEATURES").map_or_else(beside, PathBuf::from)
}

fn bundled() -> Vec<Arc<Skill>> {
    let all = Library::of(Vec::new()).all(&[]);
    assert!(all.iter().all(|found| found.place == Place::Bundled && found.shadowed_by.is_none()));
    all.into_iter().map(|found| found.skill.unwrap_or_else(|why| panic!("{why}"))).collect()
}

/// Every text of the skills, with the place that it is at.
fn texts() -> Vec<(String, String)> {
    let of = |skill: &Arc<Skill>| {
        let paths = std::iter::once("SKILL.md").chain(skill.resources().iter().map(|file| file.path.as_str()));
        paths.map(|path| (format!("{}/{path}", skill.name), skill.read(path).unwrap())).collect::<Vec<_>>()
    };
    bundled().iter().flat_map(of).collect()
}

/// The blocks of a Markdown text: language and content.
fn blocks(text: &str) -> Vec<(String, String)> {
    let (mut found, mut open): (Vec<(String, String)>, bool) = (Vec::new(), false);
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                open = true;
                found.push((language.trim().to_owned(), String::new()));
            }
            None if open => *found.last_mut().map(|(_, content)| content).unwrap() += &format!("{line}\n"),
            None => {}
        }
    }
    assert!(!open, "a block does not end");
    found
}

/// What stands between backticks outside of blocks, and the lines of blocks without a language that they are in.
fn quoted(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if line.starts_with("```") {
            open = !open;
        } else if !open {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_nine_are_there_with_their_old_names_and_within_their_limits() {
    let skills = bundled();
    assert_eq!(skills.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), BUNDLED);
    let tokens = |text: &str| tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len();
    for skill in &skills {
        assert!(skill.findings.is_empty(), "{}: {:?}", skill.name, skill.findings);
        let metadata = tokens(&format!("{}: {}", skill.name, skill.description));
        assert!(metadata <= METADATA_TOKENS, "{}: {metadata} tokens of metadata", skill.name);
        let body = tokens(skill.body());
        assert!(body <= BODY_TOKENS, "{}: {body} tokens of a body", skill.name);
        for heading in [
            "## Scope",
            "## Safety policy",
            "## Mental model",
            "## Decisions",
            "## Pitfalls",
            "## Rules",
            "## Quick reference",
        ] {
            assert!(skill.body().contains(heading), "{}: no {heading}", skill.name);
        }
        assert!(skill.resources().iter().any(|file| file.path.starts_with("references/")), "{}", skill.name);
    }
    let library = Library::of(Vec::new());
    for (old, new) in
        [("conductor-midi-learn", "conductor-learn"), ("conductor-device-setup", "conductor-binding-setup")]
    {
        let named = library.find(old, &[]).unwrap();
        assert!(named.by_alias && named.skill.name == new, "{old}");
    }
}

#[test]
fn every_configuration_in_them_loads_and_every_test_passes() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("skills-{}", std::process::id()));
    let (mut configurations, mut tests) = (0, 0);
    for (place, text) in texts() {
        let mut rules = None;
        for (language, content) in blocks(&text) {
            if language == "toml" && content.starts_with("# feature.toml") {
                Descriptor::parse(content.as_bytes()).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
            } else if language == "toml" {
                let loaded = config::parse(&content, &place).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
                let compiled = host::check(&loaded, Some(&home), Some(&features()))
                    .unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
                assert!(compiled.warnings.is_empty(), "{place}: {}", compiled.warnings.render(false));
                rules = Some(Arc::new(RuleSetHandle::new(compiled.rules)));
                configurations += 1;
            } else if language == "text" && content.starts_with("test ") {
                let rules = rules.as_ref().unwrap_or_else(|| panic!("{place}: a test before any configuration"));
                for test in parse_mapping_tests(&content).unwrap_or_else(|wrong| panic!("{place}: {wrong:?}")) {
                    let differences = test.run(rules, Action::at_once);
                    assert!(differences.is_empty(), "{place}: {}: {differences:#?}", test.name);
                    tests += 1;
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(home);
    assert!(configurations >= 15 && tests >= 15, "{configurations} configurations, {tests} tests");
}

#[test]
fn every_tool_call_in_them_fits_and_every_tool_that_they_name_exists() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("skills-tools-{}", std::process::id()));
    let compiler = Compiler::program(env!("CARGO_BIN_EXE_conductor"));
    let builder = Conductor::builder().home(&home).alone().config_text("").features(features());
    let conductor = builder.host(|host| host.compiler(compiler)).start().unwrap();
    let listed = mcp::listed(conductor.host().tools(), config::ToolList::All, &BTreeSet::new());
    let input = |tool: &Arc<serde_json::Map<String, Value>>| Value::Object((**tool).clone());
    let mut tools: BTreeMap<String, Value> =
        listed.into_iter().map(|tool| (tool.name.to_string(), input(&tool.input_schema))).collect();
    // Of the tools of features the whole schemas, of which the list says each part once.
    tools.extend(conductor.host().tools().into_iter().map(|view| (view.tool.name, view.tool.input.value())));
    assert!(tools.len() > 40, "{} tools", tools.len());
    let mut calls = 0;
    for (place, text) in texts() {
        for (language, content) in blocks(&text) {
            if language != "json" {
                continue;
            }
            let value: Value = serde_json::from_str(&content).unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
            let Some(name) = value["tool"].as_str() else { continue };
            let schema = tools.get(name).unwrap_or_else(|| panic!("{place}: there is no tool {name}"));
            let schema = ResultSchema::compile(schema).unwrap();
            schema.check(&value["arguments"]).unwrap_or_else(|wrong| panic!("{place}: {name}: {wrong}"));
            calls += 1;
        }
        let is_part = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        for name in text.split(is_part).filter(|word| word.starts_with("conductor_")) {
            assert!(tools.contains_key(name), "{place}: there is no tool {name}");
        }
    }
    conductor.stop();
    let _ = std::fs::remove_dir_all(home);
    assert!(calls >= 20, "{calls} calls");
}

// A device and what its controls do are one wish, which is one plan; whether it works is seen before it is plugged in.
#[test]
fn a_new_binding_with_its_mappings_is_one_plan_in_the_skills_about_it() {
    let is_recipe = |(language, content): &(String, String)| {
        let call: Value = serde_json::from_str(content).unwrap_or_default();
        let changes = call["arguments"]["changes"].as_array().cloned().unwrap_or_default();
        let adds =
            |list: &str| changes.iter().any(|one| one["path"].as_str().is_some_and(|path| path.starts_with(list)));
        language == "json" && call["tool"] == "conductor_batch_changes" && adds("bindings/") && adds("global_mappings/")
    };
    for skill in ["conductor-binding-setup", "conductor-midi-mapping"] {
        let own: Vec<String> =
            texts().into_iter().filter(|(place, _)| place.starts_with(skill)).map(|(_, text)| text).collect();
        assert!(own.iter().any(|text| blocks(text).iter().any(is_recipe)), "{skill}: no such plan");
        for tool in ["conductor_explain_event", "conductor_show_effects"] {
            assert!(own.iter().any(|text| text.contains(tool)), "{skill}: no {tool}");
        }
    }
}

/// Each command is asked for its help: its subcommands have to be there, and its options in the answer.
#[test]
fn every_command_in_them_exists() {
    let mut commands: BTreeMap<String, String> = BTreeMap::new();
    for (place, text) in texts() {
        for quoted in quoted(&text).into_iter().filter(|one| one.starts_with("conductor ")) {
            commands.insert(quoted, place.clone());
        }
    }
    assert!(commands.len() >= 40, "{} commands", commands.len());
    for (command, place) in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        // Values of options and what stands for something are no subcommands.
        let plain =
            |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.starts_with('-');
        let path: Vec<&str> = words.iter().copied().take_while(plain).collect();
        let mut help = Command::new(env!("CARGO_BIN_EXE_conductor"));
        let output = help.args(&path).arg("--help").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{place}: `{command}`: {}", String::from_utf8_lossy(&output.stderr));
        let options = words.iter().filter_map(|word| word.split('=').next()).filter(|word| word.starts_with('-'));
        for option in options {
            assert!(said.contains(option), "{place}: `{command}` has no {option}:\n{said}");
        }
    }
}

/// A git host on this machine, in the shape of GitHub's API, with one repository; and what it was asked for.
struct GitHost {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl GitHost {
    /// `moved` is where its archives are said to be; `None`: below its own address.
    fn start(archive: Vec<u8>, moved: Option<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (own, seen) = (address.clone(), Arc::clone(&asked));
        std::thread::spawn(move || {
            for peer in listener.incoming() {
                let mut peer = peer.unwrap();
                let mut head = String::new();
                let mut lines = BufReader::new(peer.try_clone().unwrap());
                while lines.read_line(&mut head).is_ok_and(|size| size > 2) {}
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let named = head.to_ascii_lowercase().contains("user-agent: conductor/");
                seen.lock().unwrap().push(path.clone());
                let (status, more, body) = match path.as_str() {
                    _ if !named => ("403 Forbidden", String::new(), b"who are you?".to_vec()),
                    "/repos/acme/kit/commits/main" => ("200 OK", String::new(), COMMIT.as_bytes().to_vec()),
                    path if path == format!("/repos/acme/kit/tarball/{COMMIT}") => {
                        let to = format!("{}/archives/{COMMIT}", moved.as_ref().unwrap_or(&own));
                        ("302 Found", format!("location: {to}\r\n"), Vec::new())
                    }
                    path if path == format!("/archives/{COMMIT}") => ("200 OK", String::new(), archive.clone()),
                    _ => ("404 Not Found", String::new(), b"{}".to_vec()),
                };
                let head =
                    format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
                let _ = peer.write_all(head.as_bytes()).and_then(|()| peer.write_all(&body));
            }
        });
        Self { address, asked }
    }
}

const COMMIT: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";

/// The archive of the repository, as a git host packs it.
fn repository() -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    let text = "---\nname: lamp\ndescription: Lights.\n---\nSee [more](references/more.md).\n";
    for (path, content) in [
        ("README.md", "Not a skill."),
        ("skills/lamp/SKILL.md", text),
        ("skills/lamp/references/more.md", "More."),
        ("skills/other/SKILL.md", "---\nname: wrong\n---\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        tar.append_data(&mut header, format!("acme-kit-0a1b2c3/{path}"), content.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn conductor(home: &Path, api: &str, arguments: &[&str]) -> (bool, String, String) {
    conductor_in(home, home, api, arguments)
}

fn conductor_in(folder: &Path, home: &Path, api: &str, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.arg("--home").arg(home).args(arguments).env("CONDUCTOR_GITHUB_API", api).env("HOME", home);
    let output = command.current_dir(folder).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

// SKL-3: a branch becomes the commit that it stands for; that is fetched, checked, and on record.
#[test]
fn a_skill_is_installed_from_a_git_host_by_its_commit() {
    let home = tempfile::tempdir().unwrap();
    let host = GitHost::start(repository(), None);
    let install = |what: &str, more: &[&str]| {
        conductor(home.path(), &host.address, &[&["skills", "install", what, "--json"], more].concat())
    };
    let (good, out, err) = install("github:acme/kit/skills/lamp@main", &["--for", "claude"]);
    assert!(good, "{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["origin"], format!("github:acme/kit/skills/lamp@{COMMIT}"));
    assert_eq!((&said["outcome"], &said["files"]), (&"installed".into(), &2.into()));
    let folder = home.path().join(".claude/skills/lamp");
    assert!(folder.join("references/more.md").is_file() && !folder.join("README.md").exists());
    let commits = |asked: &[String]| asked.iter().filter(|path| path.contains("/commits/")).count();
    assert_eq!(commits(&host.asked.lock().unwrap()), 1);
    // A commit is not asked about.
    let (good, out, err) = install(&format!("github:acme/kit/skills/lamp@{COMMIT}"), &["--for", "claude"]);
    assert!(good && out.contains("unchanged"), "{out}{err}");
    assert_eq!(commits(&host.asked.lock().unwrap()), 1);
    for (what, why) in [
        ("github:acme/kit/skills/other@main", "the field `description` is missing"),
        ("github:acme/kit/skills@main", "has no SKILL.md in skills"),
        ("github:acme/none@main", "404"),
    ] {
        let (good, _, err) = install(what, &[]);
        assert!(!good && err.contains(why), "{what}: {err}");
    }
    assert!(!home.path().join("skills/other").exists());
    let (good, _, err) = conductor(home.path(), "", &["skills", "remove", "lamp", "--for", "claude"]);
    assert!(good && !folder.exists(), "{err}");

    // A git host that leads to another door of this machine.
    let inner = GitHost::start(repository(), None);
    let leads = GitHost::start(Vec::new(), Some(inner.address.clone()));
    let (good, _, err) =
        conductor(home.path(), &leads.address, &["skills", "install", "github:acme/kit/skills/lamp@main"]);
    assert!(!good && err.contains("only http://127.0.0.1"), "{err}");
    assert!(inner.asked.lock().unwrap().is_empty() && !home.path().join("skills/lamp").exists());
}

#[test]
fn skills_are_listed_shown_checked_installed_and_removed_without_a_host() {
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| conductor(home.path(), "", arguments);
    let (good, out, err) = run(&["skills", "list", "--json"]);
    assert!(good, "{err}");
    let listed: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(listed.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(), BUNDLED);
    let (good, out, err) = run(&["skills", "show", "conductor-midi-learn"]);
    assert!(good && out.starts_with("---\nname: conductor-learn\n"), "{out}");
    assert!(err.contains("is an old name of conductor-learn") && err.contains("references/evidence.md"), "{err}");
    let (good, out, _) = run(&["skills", "show", "conductor-learn", "--file", "references/evidence.md"]);
    assert!(good && out.starts_with("# Evidence"), "{out}");
    let (good, _, err) = run(&["skills", "show", "conductor-lern"]);
    assert!(!good && err.contains("perhaps conductor-learn"), "{err}");

    let (good, out, err) = run(&["skills", "install", "conductor-learn"]);
    assert!(good && out.contains("2 files") && out.contains("from bundled conductor-learn"), "{out}{err}");
    let (_, out, _) = run(&["skills", "list", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["place"]), (&"conductor-learn".into(), &"home".into()));
    assert!(listed.iter().any(|one| one["place"] == "bundled" && one["shadowed_by"] == "home"), "{out}");
    let folder = home.path().join("skills/conductor-learn");
    let (good, out, _) = run(&["skills", "validate", folder.to_str().unwrap()]);
    assert!(good && out.contains(": valid"), "{out}");
    std::fs::write(folder.join("SKILL.md"), "---\nname: conductor-learn\n---\n").unwrap();
    let (good, out, _) = run(&["skills", "validate", folder.to_str().unwrap()]);
    assert!(!good && out.contains("error: SKILL.md:1: the field `description` is missing"), "{out}");
    let (good, _, err) = run(&["skills", "remove", "conductor-learn"]);
    assert!(!good && err.contains("was changed since it was installed"), "{err}");
    let (good, _, err) = run(&["skills", "remove", "conductor-learn", "--force"]);
    assert!(good && !folder.exists(), "{err}");

    // An archive with its digest.
    let archive = home.path().join("kit.tar.gz");
    std::fs::write(&archive, repository()).unwrap();
    let (good, _, err) = run(&["skills", "install", archive.to_str().unwrap(), "--digest", &"0".repeat(64)]);
    assert!(!good && err.contains("it was altered"), "{err}");
    let (good, _, err) = run(&["skills", "install", archive.to_str().unwrap()]);
    assert!(!good && err.contains("has several skills"), "{err}");
    // In a project its folders are looked into, too.
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join(".git")).unwrap();
    let (good, out, _) = conductor_in(project.path(), home.path(), "", &["skills", "path"]);
    assert!(good && out.starts_with("home: ") && out.contains("/.agents/skills (not there)"), "{out}");
}
