//! Tools, hooks, tasks and skills of a feature, through a running host and its command line: the work items.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::osc::{Tablet, free_port};
use conductor_tests::process::Process;
use rosc::OscType;
use serde_json::{Value, json};

fn call(home: &Home, tool: &str, args: Value) -> Result<Value, String> {
    let end = home.conductor(&["tool", "call", tool, &args.to_string()]);
    match end.code {
        Some(0) => Ok(serde_json::from_str(&end.out).unwrap()),
        _ => Err(end.err),
    }
}

fn notifications(home: &Home) -> Vec<String> {
    let log = std::fs::read_to_string(home.path().join("notifications/builtin_work-items.jsonl")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].as_str().unwrap().to_owned()).collect()
}

fn told(home: &Home, host: &Host, what: &str) {
    // Whenever the host is asked, some time has passed.
    host.status_when(|_| notifications(home).iter().any(|text| text == what));
}

// FEA-5, FEA-6, FEA-7, FEA-15, FEA-16: an item is opened, talked about and done; a hook denies what comes too
// late; the watch notifies; and all of it is there after the host was killed.
#[test]
fn work_items_live_through_tools_hooks_tasks_and_kills() {
    let home = Home::new("");
    let host = home.run();
    let listed = home.conductor(&["tool", "list"]).out;
    assert!(listed.contains("work_item_create") && listed.contains("stateful"), "{listed}");

    // The watch may look for the first time only now; what it finds then is not news.
    host.feature_when("work-items", |feature| feature["tasks"][0]["state"] == "running");
    let opened = call(&home, "work_item_create", json!({ "title": "More reverb" })).unwrap();
    assert_eq!((&opened["number"], &opened["done"]), (&json!(1), &Value::Null));
    call(&home, "work_item_comment", json!({ "number": 1, "comment": "On vocals." })).unwrap();
    told(&home, &host, "work item 1 was opened: More reverb");
    call(&home, "work_item_complete", json!({ "number": 1 })).unwrap();
    told(&home, &host, "work item 1 is done: More reverb");

    let late = call(&home, "work_item_comment", json!({ "number": 1, "comment": "Too late." })).unwrap_err();
    assert!(late.contains("builtin:work-items denied it: item 1 is done"), "{late}");
    let wrong = call(&home, "work_item_complete", json!({ "nummer": 1 })).unwrap_err();
    assert!(wrong.contains("unknown field `nummer`"), "{wrong}");
    let misspelt = call(&home, "work_item_crate", json!({})).unwrap_err();
    assert!(misspelt.contains("did you mean \"work_item_create\"?"), "{misspelt}");

    host.kill();
    let host = home.run();
    let all = call(&home, "work_items_list", json!({ "all": true })).unwrap();
    assert_eq!(all["items"][0]["comments"], json!(["On vocals."]));
    assert_eq!(call(&home, "work_items_list", json!({})).unwrap()["items"], json!([]));
    assert_eq!(host.feature("work-items")["trapped"], 0);
}

// CLI-1, LRN-1: what is moved while `learn` waits is printed as a trigger, ready for the configuration; where nothing is
// moved, that is said.
#[test]
fn a_control_that_is_moved_is_told_as_a_trigger() {
    let port = free_port();
    let home = Home::new(&format!("[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n"));
    let host = home.run();
    host.port_is("tablet", "open");
    let tablet = Tablet::to(port);
    let moved = |arguments: &[&str]| {
        let learning = Process::start(&mut command(home.path(), arguments));
        learning.err.line("move a control (30 seconds) ...");
        tablet.send("/fader", [OscType::Float(0.25)]);
        tablet.send("/fader", [OscType::Float(0.5)]);
        learning.wait().0
    };
    let learned = moved(&["learn"]);
    assert_eq!(learned.code, Some(0), "{}", learned.err);
    assert!(learned.out.starts_with("tablet: osc /fader 0.5\n    trigger = { "), "{}", learned.out);
    let trigger = learned.out.lines().nth(1).unwrap().trim();
    home.configure(&format!(
        "[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n[[modes]]\nname = 'Play'\n\
         [[modes]]\nname = 'Mix'\n[[global_mappings]]\n{trigger}\naction = {{ type = 'ModeChange', mode = 'Mix' }}\n"
    ));
    host.status_when(|status| status["mode"] == "Play");
    tablet.send("/fader", [OscType::Float(1.0)]);
    host.status_when(|status| status["mode"] == "Mix");

    let learned: Value = serde_json::from_str(&moved(&["learn", "tablet", "--json"]).out).unwrap();
    assert_eq!((&learned["controls"][0]["device"], &learned["controls"][0]["events"]), (&json!("tablet"), &json!(2)));
    let nothing = home.conductor(&["learn", "--seconds", "1"]);
    assert_eq!((nothing.code, nothing.err.contains("nothing was moved")), (Some(1), true), "{}", nothing.err);
    let unknown = home.conductor(&["learn", "tablot"]);
    assert_eq!((unknown.code, unknown.err.contains("tablet")), (Some(1), true), "{}", unknown.err);
}

// LRN-1, LRN-5: in one go from a control that is moved to a plan, which a person applies; and what kind of source it is.
#[test]
fn a_control_that_is_moved_is_mapped_once_a_person_agrees() {
    let port = free_port();
    let home = Home::new(&format!(
        "[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n[[modes]]\nname = 'Play'\n\
         [[modes]]\nname = 'Mix'\n"
    ));
    let host = home.run();
    host.port_is("tablet", "open");
    let tablet = Tablet::to(port);
    let wrong = home.conductor(&["learn", "--map", "ModeChange {"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("--map \"ModeChange {\""), "{}", wrong.err);

    let arguments = ["learn", "--map", "ModeChange Mix", "--mode", "Play", "--this"];
    let learning = Process::start(&mut command(home.path(), &arguments));
    learning.err.line("move a control (30 seconds) ...");
    tablet.send("/go", [OscType::Bool(true)]);
    let (end, ..) = learning.wait();
    assert_eq!(end.code, Some(0), "{}", end.err);
    let id = end.out.lines().last().unwrap().to_owned();
    let shown = home.conductor(&["plan", "show", &id]);
    assert!(shown.out.contains("/go") && shown.out.contains("ModeChange"), "{}", shown.out);
    tablet.send("/go", [OscType::Bool(true)]);
    let (status, _) = host.status_when(|status| status["events"].as_u64() >= Some(2));
    assert_eq!(status["mode"], "Play", "a plan changes nothing");
    let applied = home.conductor(&["plan", "apply", &id, "--yes"]);
    assert_eq!(applied.code, Some(0), "{}", applied.err);
    tablet.send("/go", [OscType::Bool(true)]);
    host.status_when(|status| status["mode"] == "Mix");

    let found = home.conductor(&["fingerprint", "tablet"]);
    assert!(found.out.contains("osc-surface"), "{}{}", found.out, found.err);
}

// CFG-2, FEA-8: who only looks at a configuration needs nothing that a running host has open.
#[test]
fn a_configuration_is_looked_at_beside_a_host_that_has_the_features_data_open() {
    let home = Home::new(
        "[[global_mappings]]\nname = \"mark\"\ntrigger = { type = \"Note\", note = 36 }\n\
         action = { type = \"WorkItemMark\", text = \"more reverb\" }\n",
    );
    let host = home.run();
    call(&home, "work_item_create", json!({ "title": "More reverb" })).unwrap();
    for arguments in [&["config", "validate"][..], &["explain", "pads", "note-on", "36", "100"], &["feature", "list"]] {
        let end = home.conductor(arguments);
        assert_eq!((end.code, end.err.as_str()), (Some(0), ""), "{arguments:?}: {}", end.out);
    }
    // And leaves nothing of its own there.
    assert_eq!(call(&home, "work_items_list", json!({})).unwrap()["items"][0]["title"], "More reverb");
    host.stop();
}

// LRN-1: what is interrupted keeps no port open.
#[test]
fn an_interrupted_learn_listens_no_more() {
    let home = Home::new("");
    let _host = home.run();
    let learning = Process::start(&mut command(home.path(), &["learn"]));
    learning.err.line("move a control (30 seconds) ...");
    learning.signal("INT");
    let (end, ..) = learning.wait();
    assert_eq!(end.code, Some(1), "{}", end.err);
    assert!(end.err.contains("interrupted"), "{}", end.err);
    let again = home.conductor(&["tool", "call", "conductor_stop_learn", "{\"session\":1}"]);
    assert!(again.err.contains("no session 1 is learning"), "{} {}", again.out, again.err);
}
