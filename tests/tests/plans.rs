//! Plans through a running host and its command line: an agent proposes, a person decides, and with any failure in
//! between leaves a configuration that is whole.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::time::{Duration, Instant};

use conductor_tests::conductor::{self, Host};
use conductor_tests::home::Home;
use conductor_tests::process::Process;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = r#"# my show

[[modes]]
name = "Play" # the first

[[modes.mappings]]
description = "kick" # left foot
trigger = { type = "Note", note = 36 }
action = { type = "ModeChange", mode = "Mix" }

[[modes]]
name = "Mix"
"#;

fn propose(home: &Home, tool: &str, args: Value) -> Result<String, String> {
    let end = home.conductor(&["tool", "call", tool, &args.to_string()]);
    match end.code {
        Some(0) => {
            let answer: Value = serde_json::from_str(&end.out).unwrap();
            Ok(answer["plan"].as_str().unwrap().to_owned())
        }
        _ => Err(end.err),
    }
}

fn new_mapping(note: u8) -> Value {
    json!({
        "mode": "Mix",
        "trigger": { "type": "Note", "note": note },
        "action": { "type": "ModeChange", "mode": "Play" },
    })
}

fn text(home: &Home) -> String {
    fs::read_to_string(home.config()).unwrap()
}

fn done(home: &Home, args: &[&str]) -> String {
    let end = home.conductor(args);
    assert_eq!(end.code, Some(0), "{args:?}: {}", end.err);
    end.out
}

fn refused(home: &Home, args: &[&str]) -> String {
    let end = home.conductor(args);
    assert_ne!(end.code, Some(0), "{args:?}: {}", end.out);
    end.err
}

// PLN-1, PLN-2, CFG-3
#[test]
fn a_plan_is_shown_applied_undone_and_redone() {
    let home = Home::new(SHOW);
    let host = home.run();
    assert_eq!(host.status()["rules"], 1);
    let plan = propose(&home, "conductor_create_mapping", new_mapping(40)).unwrap();
    assert_eq!(text(&home), SHOW, "nothing has changed yet");

    let shown = done(&home, &["plan", "show", &plan[..8]]);
    assert!(shown.contains("on Note 40 of any device."), "{shown}");
    assert!(shown.contains("+trigger = { type = \"Note\", note = 40 }"), "{shown}");
    assert!(done(&home, &["plan", "list"]).contains(&plan[..12]));

    // A person has to confirm.
    assert!(refused(&home, &["plan", "apply", &plan]).contains("a person decides"));
    let applied = done(&home, &["plan", "apply", &plan, "--yes"]);
    assert!(applied.contains("2 rules in force"), "{applied}");
    let after = text(&home);
    assert!(after.starts_with("# my show") && after.contains("# left foot") && after.contains("note = 40"), "{after}");
    assert_eq!(host.status()["rules"], 2);
    assert_eq!(fs::read_to_string(home.path().join("config.toml.bak")).unwrap(), SHOW);
    assert!(refused(&home, &["plan", "apply", &plan, "--yes"]).contains("no plan"), "once only");

    done(&home, &["undo", "--yes"]);
    assert_eq!((text(&home).as_str(), &host.status()["rules"]), (SHOW, &json!(1)));
    assert!(refused(&home, &["undo", "--yes"]).contains("nothing to undo"));
    host.kill();

    // The record outlives the host.
    let host = home.run();
    done(&home, &["redo", "--yes"]);
    assert_eq!((text(&home), &host.status()["rules"]), (after, &json!(2)));
}

// PLN-2: what was edited by hand in between is not overwritten.
#[test]
fn a_plan_for_another_configuration_is_stale() {
    let home = Home::new(SHOW);
    let host = home.run();
    let plan = propose(&home, "conductor_create_mapping", new_mapping(40)).unwrap();
    let mine = SHOW.replace("# my show", "# our show");
    home.configure(&mine);
    let error = refused(&home, &["plan", "apply", &plan, "--yes"]);
    assert!(error.contains("the configuration has changed since"), "{error}");
    assert_eq!(text(&home), mine);
    done(&home, &["plan", "reject", &plan]);
    assert_eq!(done(&home, &["plan", "list"]).trim(), "no plan waits");
    assert_eq!(host.status()["rules"], 1);
}

// PLN-2, FEA-4: what could not be read again, and what a feature may use, is no plan.
#[test]
fn what_would_be_wrong_is_refused_when_it_is_proposed() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let batch = |path: &str, value: Value| {
        let changes = json!([{ "path": path, "value": value }]);
        let error = propose(&home, "conductor_batch_changes", json!({ "description": "x", "changes": changes }));
        error.unwrap_err()
    };
    let error = batch("modes/0/mappings/0/trigger/type", json!("Nota"));
    assert!(error.contains("did you mean") && error.contains("Note"), "{error}");
    let error = batch("modes/7/name", json!("Late"));
    assert!(error.contains("modes has 2 entries"), "{error}");
    let error = batch("features/osc-output/grants/udp", json!(["192.0.2.1:9"]));
    assert!(error.contains("a person grants that"), "{error}");
    let error = propose(&home, "conductor_delete_mode", json!({ "name": "Mixx" })).unwrap_err();
    assert!(error.contains("there are Play, Mix"), "{error}");
    assert_eq!(done(&home, &["plan", "list"]).trim(), "no plan waits");
}

// PLN-1: a plan says what it takes along, and what would have been different.
#[test]
fn a_person_sees_what_goes_with_a_mode() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let plan = propose(&home, "conductor_delete_mode", json!({ "name": "Mix" }));
    let error = plan.unwrap_err();
    assert!(error.contains("Mix"), "its mode is still in use: {error}");
    let args = json!({ "place": "modes/0/mappings/0" });
    let plan = propose(&home, "conductor_delete_mapping", args).unwrap();
    let shown = done(&home, &["plan", "show", &plan]);
    assert!(shown.contains("- removes modes/0/mappings/0 (kick)"), "{shown}");
    assert!(shown.contains("no event has come since the last change"), "{shown}");
}

// PLN-2: a plan waits as long as the person said.
#[test]
fn a_plan_expires() {
    let home = Home::new(SHOW);
    let mut run = conductor::command(home.path(), &["run"]);
    let _host = Host::ready(run.env("CONDUCTOR_PLAN_TTL_SECONDS", "1"), home.socket());
    let plan = propose(&home, "conductor_create_mapping", new_mapping(40)).unwrap();
    let gone = || home.conductor(&["plan", "list"]).out.contains("no plan waits").then_some(());
    wait::until(gone, || "the plan still waits".to_owned());
    let answer = refused(&home, &["plan", "apply", &plan, "--yes"]);
    assert!(answer.contains("no plan"), "{answer}");
    assert_eq!(text(&home), SHOW);
}

/// How often a host is killed: enough to meet every step of an apply. More with `CONDUCTOR_KILLS`.
fn kills() -> u32 {
    std::env::var("CONDUCTOR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(16)
}

/// Whether the audit has it that a plan's apply came to this. The last of it may be on its way there.
fn has(home: &Home, plan: &str, outcome: &str) -> bool {
    let rows = home.json(&["audit", "list", "--kind", "plan", "--limit", "100", "--json"]);
    let is = |row: &&Value| row["subject"] == plan && row["what"] == "apply" && row["outcome"] == outcome;
    rows.as_array().unwrap().iter().any(|row| is(&row))
}

// PLN-2, PLN-4, REL-3: a host that is killed in the middle of an apply leaves the old file or the new one; the
// record of plans agrees with the file, and so does the audit, whose chain is whole.
#[test]
fn a_kill_in_the_middle_of_an_apply_leaves_all_or_nothing() {
    let home = Home::new(SHOW);
    let (mut applied, mut waiting) = (0, 0);
    let mut takes = Duration::ZERO;
    for kill in 0..kills() {
        let host = home.run();
        let before = text(&home);
        let name = json!({ "path": "modes/1/name", "value": format!("Mix {kill}") });
        let follow = json!({ "path": "modes/0/mappings/0/action/mode", "value": format!("Mix {kill}") });
        let args = json!({ "description": format!("Call it Mix {kill}."), "changes": [name, follow] });
        let plan = propose(&home, "conductor_batch_changes", args).unwrap();
        let mut apply = Process::start(&mut conductor::command(home.path(), &["plan", "apply", &plan, "--yes"]));
        let began = Instant::now();
        // The first one shows how long it takes; the others are killed at moments spread over that time.
        let moment = takes.mul_f64(f64::from(kill * 7919 % 997) / 997.0 * 1.2);
        while apply.runs() && (kill == 0 || began.elapsed() < moment) {}
        takes = if kill == 0 { began.elapsed() } else { takes };
        host.kill();
        drop(apply);

        let after = text(&home);
        let verified = home.conductor(&["audit", "verify"]);
        assert_eq!(verified.code, Some(0), "after {kill} kills: {}", verified.err);
        assert!(after == before || has(&home, &plan, "begun"), "it was on record before it was done");
        let host = home.run();
        let listed = done(&home, &["plan", "list"]);
        if after == before {
            waiting += 1;
            assert!(listed.contains(&plan[..12]), "{listed}");
            assert!(!has(&home, &plan, "done"));
            done(&home, &["plan", "reject", &plan]);
        } else {
            applied += 1;
            assert!(after.contains("# left foot") && after.matches(&format!("Mix {kill}")).count() == 2, "{after}");
            assert!(!listed.contains(&plan[..12]), "{listed}");
            wait::until(
                || has(&home, &plan, "done").then_some(()),
                || "it is not on record that it was done".to_owned(),
            );
            done(&home, &["undo", "--yes"]);
            assert_eq!(text(&home), before);
            done(&home, &["redo", "--yes"]);
            assert_eq!(text(&home), after);
        }
        host.kill();
    }
    println!("killed {} times: {applied} plans were applied, {waiting} waited on", kills());
    assert!(applied > 0 && waiting > 0, "killed before and after: {applied} were applied, {waiting} waited on");
}
