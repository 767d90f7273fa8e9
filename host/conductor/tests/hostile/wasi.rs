//! WASI: a component that brings it along finds nothing there, and nothing in it goes beyond the limits.

use std::time::Instant;

use conductor_observer::sink_message::{Severity, SinkKind, SinkMessage};
use conductor_package::descriptor::Tier;
use conductor_sandbox::control::ToolCall;
use conductor_sandbox::limits;
use serde_json::{Value, json};

use crate::lab::{Lab, Tools};

const GUEST: &str = "tests/hostile-wasi";

fn lab() -> (Lab, Tools) {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(GUEST));
    (lab, tools)
}

fn found(tools: &Tools, how: &str) -> Value {
    serde_json::from_str(&tools.how(how).unwrap()).unwrap()
}

#[test]
fn the_world_is_empty() {
    // This process has arguments, variables and a folder of its own.
    assert!(std::env::args().len() > 0 && std::env::vars_os().next().is_some());
    let (_lab, tools) = lab();
    let world = found(&tools, "world");
    let input = world["input"].clone();
    let nothing = json!({ "arguments": [], "variables": [], "folder": null, "folders": 0, "input": input });
    assert_eq!(world, nothing);
    assert!(input.as_str().unwrap().contains("Closed"), "{input}");
}

#[test]
fn no_socket_is_made_and_no_name_looked_up() {
    let (lab, tools) = lab();
    let sockets = found(&tools, "sockets");
    for (what, denied) in [("tcp", "access-denied"), ("udp", "access-denied"), ("name", "permanent-resolver-failure")] {
        assert!(sockets[what].as_str().unwrap().contains(denied), "{what}: {sockets}");
    }
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}

#[test]
fn time_and_randomness_are_there() {
    let (lab, tools) = lab();
    let told = found(&tools, "time");
    let wall = lab.services.clock.wall() / 1000;
    assert!(told["wall"].as_u64().unwrap().abs_diff(wall) < 60, "{told}, and it is {wall}");
    assert_eq!(told["random"], 16);
}

/// Output on either stream becomes diagnostics line by line, sanitized.
#[test]
fn what_is_printed_goes_to_the_log() {
    let (lab, tools) = lab();
    tools.how("print").unwrap();
    drop(tools);
    let said = |severity| SinkKind::Diagnostic(severity);
    let mut lines: Vec<(SinkKind, String)> = Vec::new();
    while lines.len() < 3 {
        let SinkMessage { kind, text, .. } = lab.said.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        lines.push((kind, text));
    }
    assert_eq!(lines[0], (said(Severity::Info), "first line".into()));
    assert_eq!(lines[1].0, said(Severity::Info));
    assert!(lines[1].1.starts_with("second") && !lines[1].1.contains('\x1b'), "{lines:?}");
    assert_eq!(lines[2], (said(Severity::Warning), "no end of line".into()), "told when nothing more can come");
}

#[test]
fn a_flood_of_prints_is_bounded() {
    let (lab, tools) = lab();
    let began = Instant::now();
    tools.how("flood").unwrap();
    let said: Vec<SinkMessage> = lab.said.try_iter().collect();
    let most = began.elapsed().as_secs_f64().mul_add(limits::SINK_RATE, limits::SINK_BURST) as usize + 1;
    assert!(said.len() <= most, "{} of at most {most}", said.len());
    assert_eq!(said.len() as u64 + lab.sinks.dropped(), 10_000, "the rest is counted");
    assert!(said.iter().all(|said| said.text.len() <= limits::MAX_TEXT + '…'.len_utf8()));
    tools.goes_on();
}

#[test]
fn hoarding_handles_and_a_megabyte_of_randomness_trap() {
    let (_lab, tools) = lab();
    for how in ["hoard", "randomness", "exit"] {
        tools.how(how).unwrap_err();
        tools.goes_on();
    }
}

/// Waiting in WASI is waiting: a hook that sleeps for an hour is stopped after two seconds.
#[test]
fn that_a_hook_sleeps_is_limited() {
    let lab = Lab::new();
    let feature = lab.prepare(GUEST);
    let call = ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: Tier::ReadOnly.into(),
        args: r#"{"before": "wait"}"#.into(),
    };
    let error = feature.runtime().block_on(async {
        let mut hooks = feature.instantiate_control().await.unwrap();
        hooks.before_call(&call).await.unwrap_err()
    });
    let stopped = format!("it took longer than {} s", limits::HOOK_TIMEOUT.as_secs());
    assert!(error.to_string().contains(&stopped), "{error}");
}
