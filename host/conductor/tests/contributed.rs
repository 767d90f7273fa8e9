//! Commands and routes that features declare for their tools, on a running host.
//!
//! The guests are built by `cargo xtask features`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::sync::OnceLock;

use conductor_package::Package;
use conductor_ports::simulated::SimulatedPorts;
use serde_json::{Value, json};

mod stage;

use stage::*;

/// A stage with the work items, in a package of this name.
fn stage(name: &str) -> Stage {
    static COMPILED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    let (folder, compiled) = COMPILED.get_or_init(|| compile("contributed", &["work-items"], |_, component| component));
    let called = if name == "work-items" {
        String::new()
    } else {
        let package = compiled.join(format!("{name}.wasm"));
        fs::write(&package, renamed(&fs::read(folder.join("work-items.wasm")).unwrap(), name)).unwrap();
        let info = Package::read(&package).unwrap().info;
        format!(
            "\n[features.work-items]\nenabled = false\n\n[features.{name}]\npath = '{}'\nid = '{}'\n\
             digest = 'sha256:{}'\ngrants = {{ store = 262144, background_task = true }}\n",
            package.display(),
            info.descriptor.id,
            info.digest
        )
    };
    let home = Home::beside(compiled, &format!("[[modes]]\nname = 'Play'\n{called}"));
    Stage::with_features(folder, home, SimulatedPorts::new())
}

/// The component with another name in its descriptor, which stays as long as it was.
fn renamed(component: &[u8], name: &str) -> Vec<u8> {
    let from = b"id = \"builtin:work-items\"";
    let id = format!("id = \"project:{name}\"");
    let mut changed = component.to_vec();
    for at in (0..=component.len() - from.len()).filter(|at| component[*at..].starts_with(from)) {
        changed[at..at + from.len()].copy_from_slice(format!("{id:<width$}", width = from.len()).as_bytes());
    }
    changed
}

fn out(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn err(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// CNC-5: a command is made of its declaration and of the tool's schema, with help, options, and mistakes as everywhere.
#[test]
fn a_feature_has_commands_under_its_own_name() {
    let mut stage = stage("work-items");
    let created = stage.run(&["work-items", "create", "More reverb", "--description", "On vocals."]);
    assert_eq!((created.status.code(), out(&created).as_str()), (Some(0), "number: 1\n"), "{}", err(&created));
    let all = stage.run(&["work-items", "list", "--json"]);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(
        (&all["items"][0]["title"], &all["items"][0]["description"]),
        (&json!("More reverb"), &json!("On vocals."))
    );
    let done = stage.run(&["work-items", "complete", "1"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert_eq!(out(&stage.run(&["work-items", "list"])), "");
    for all in [&["--all"][..], &["--all=true"], &["--args", r#"{"all": true}"#]] {
        let listed = stage.run(&[&["work-items", "list"], all].concat());
        assert!(out(&listed).starts_with("items:\n  - "), "{}{}", out(&listed), err(&listed));
    }

    let help = stage.run(&["work-items", "create", "--help"]);
    assert!(out(&help).contains("Open a work item") && out(&help).contains("--description <TEXT>"), "{}", out(&help));
    for (words, why) in [
        (&["work-items", "crate", "x"][..], "a similar subcommand exists: 'create'"),
        (&["work-items", "create", "x", "--descripton", "y"], "a similar argument exists: '--description'"),
        (&["work-items", "complete", "first"], "\"first\" for number is not JSON"),
        (&["work-items", "list", "--args", "[]"], "the arguments are a JSON object"),
        (&["work-item", "list"], "unrecognized subcommand 'work-item'"),
        (&["work-items", "cr\u{1b}[2Jeate"], "\\u{1b}[2J"),
    ] {
        let wrong = stage.run(words);
        assert_eq!(wrong.status.code(), Some(2), "{words:?}: {}", err(&wrong));
        assert!(err(&wrong).contains(why) && !err(&wrong).contains('\u{1b}'), "{words:?}: {}", err(&wrong));
    }
    let refused = stage.run(&["work-items", "complete", "99"]);
    assert_eq!(refused.status.code(), Some(1), "the tool itself refuses: {}", err(&refused));

    drop(stage.conductor.take());
    let alone = stage.run(&["work-items", "list"]);
    assert_eq!(alone.status.code(), Some(2), "{}", out(&alone));
    for part in ["\"work-items\" is no command of the program", "no host is running in", "`conductor run`"] {
        assert!(err(&alone).contains(part), "{}", err(&alone));
    }
}

/// What is nearly a command of the program is a slip of the hand: a feature with such a name would be given keys.
#[test]
fn no_feature_takes_what_was_meant_for_a_command() {
    let secrets = stage("secrets");
    let meant = secrets.run(&["secrets", "create", "openai sk-1"]);
    assert_eq!(meant.status.code(), Some(2), "{}", out(&meant));
    assert!(err(&meant).contains("unrecognized subcommand 'secrets'"), "{}", err(&meant));
    assert!(err(&meant).contains("'secret'"), "it says what was meant: {}", err(&meant));
    let items = secrets.run(&["tool", "call", "work_items_list"]);
    let items: Value = serde_json::from_slice(&items.stdout).unwrap();
    assert_eq!(items["items"], json!([]), "the feature is there, and got nothing");
}

/// A feature's name may be that of a command or of routes: those stay the host's.
#[test]
fn no_feature_takes_the_name_of_a_command_or_of_a_route() {
    let plan = stage("plan");
    for words in [&["plan", "create", "x"][..], &["plan", "list", "--all"]] {
        let done = plan.run(words);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {}{}", out(&done), err(&done));
    }
    assert_eq!(out(&plan.run(&["plan", "list", "--json"])).trim(), "[]", "the host's plans");
    let (status, created) = plan.ask("POST", "/v1/plan/create", r#"{"title": "x"}"#);
    assert_eq!(status, 200, "no route of the host begins so: {created}");
    assert_eq!(plan.ask("POST", "/v1/plan/list", "{}").1["items"][0]["title"], "x");
    drop(plan);

    let plans = stage("plans");
    let theirs = plans.run(&["tool", "call", "work_item_create", r#"{"title": "x"}"#]);
    assert_eq!(theirs.status.code(), Some(0), "the feature is there: {}", err(&theirs));
    assert_eq!(plans.ask("POST", "/v1/plans/list", "{}").0, 405, "GET /v1/plans/{{id}} is the host's");
    assert_eq!(plans.ask("GET", "/v1/plans/list", "").0, 404);
    assert_eq!(plans.ask("POST", "/v1/work-items/list", "{}").0, 404, "nothing is left of the other name");
}

/// CNC-5: a route takes a tool's arguments and answers its result, with the API's own errors.
#[test]
fn a_feature_has_routes_under_its_own_name() {
    let stage = stage("work-items");
    let (status, created) = stage.ask("POST", "/v1/work-items/create", r#"{"title": "Less reverb"}"#);
    assert_eq!((status, &created["title"]), (200, &json!("Less reverb")));
    assert_eq!(stage.ask("POST", "/v1/work-items/list", "{}").1["items"][0]["title"], "Less reverb");
    for (path, body, status, code) in [
        ("/v1/work-items/complete", r#"{"number": 1}"#, 404, "not_found"),
        ("/v1/nothing/list", "{}", 404, "not_found"),
        ("/v1/work-items/create", "{", 400, "bad_request"),
        ("/v1/work-items/create", "[]", 422, "bad_request"),
        ("/v1/work-items/create", r#"{"titel": "x"}"#, 422, "failed"),
    ] {
        let (answered, error) = stage.ask("POST", path, body);
        assert_eq!((answered, error["code"].as_str()), (status, Some(code)), "{path} {body}: {error}");
    }
}
