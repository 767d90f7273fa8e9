//! Endless loops, in every export.

use std::time::{Duration, Instant};

use conductor_package::descriptor::Tier;
use conductor_sandbox::actor::Actor;
use conductor_sandbox::bindings::Event;
use conductor_sandbox::control::{Change, ToolCall};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, guest_with};

/// More than any limit here, for a machine that has other things to do.
const SOON: Duration = Duration::from_secs(20);

fn event(number: u16) -> Event {
    Event { at: 0, device: 0, kind: 2, channel: 0, number, position: 0, value: 100.0, unit: 0.5 }
}

#[track_caller]
fn stopped(began: Instant, error: impl std::fmt::Display, budget: &str) {
    let error = error.to_string();
    assert!(error.contains(&format!("it ran longer than its {budget} ms")), "{error}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn in_install() {
    let lab = Lab::new();
    let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet", "INSTALL:loop")]);
    let feature = lab.sandbox.prepare(&package, lab.grants()).unwrap();
    let began = Instant::now();
    stopped(began, Actor::start(feature).unwrap_err(), "1000");
}

#[test]
fn in_prepare_perform_and_release() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile");
    let way = |how: &str| format!(r#"{{"how": "{how}"}}"#);

    for budget in ["1000", "200"] {
        let mut hostile = feature.instantiate().unwrap();
        let began = Instant::now();
        stopped(began, hostile.prepare("Misbehave", &way("prepare-loop")).unwrap_err(), budget);
    }

    let mut hostile = feature.instantiate().unwrap();
    let (quiet, endless) =
        (hostile.prepare("Misbehave", &way("")).unwrap(), hostile.prepare("Misbehave", &way("loop")).unwrap());
    hostile.perform(quiet, event(0)).unwrap();
    let began = Instant::now();
    stopped(began, hostile.perform(endless, event(0)).unwrap_err(), "20");

    let mut hostile = feature.instantiate().unwrap();
    let endless = hostile.prepare("Misbehave", &way("release-loop")).unwrap();
    let began = Instant::now();
    stopped(began, hostile.release(endless).unwrap_err(), "200");
}

/// The clock that stops guests goes slowly by then.
#[test]
fn when_nothing_has_run_for_a_while() {
    let lab = Lab::new();
    let mut hostile = lab.prepare("tests/hostile").instantiate().unwrap();
    let [quiet, endless] =
        ["", "loop"].map(|how| hostile.prepare("Misbehave", &format!(r#"{{"how": "{how}"}}"#)).unwrap());
    hostile.perform(quiet, event(0)).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    stopped(began, hostile.perform(endless, event(0)).unwrap_err(), "20");
}

#[test]
fn in_a_tool_of_every_tier() {
    let lab = Lab::new();
    for tier in Tier::ALL {
        let tools = lab.tools();
        let began = Instant::now();
        stopped(began, tools.call(tier, r#"{"how": "loop"}"#).unwrap_err(), "2000");
        // One that traps in every tier is quarantined, installed anew or not.
        tools.feature.facts().quarantine.lift();
        tools.goes_on();
    }
}

#[test]
fn in_hooks_before_and_after_a_call() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-hooks");
    let call = |args: &str| ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: Tier::ReadOnly.into(),
        args: args.into(),
    };
    feature.runtime().block_on(async {
        let mut hooks = feature.instantiate_control().await.unwrap();
        let began = Instant::now();
        stopped(began, hooks.before_call(&call(r#"{"before": "loop"}"#)).await.unwrap_err(), "200");
        let mut hooks = feature.instantiate_control().await.unwrap();
        let began = Instant::now();
        stopped(began, hooks.after_call(&call(r#"{"after": "loop"}"#), None).await.unwrap_err(), "200");
    });
}

#[test]
fn in_hooks_on_changes() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-hooks");
    feature.runtime().block_on(async {
        for change in [Change::Mode("loop".into()), Change::Ports, Change::Config] {
            let mut hooks = feature.instantiate_control().await.unwrap();
            hooks.changed(&Change::Mode("next-loop".into())).await.unwrap();
            let began = Instant::now();
            stopped(began, hooks.changed(&change).await.unwrap_err(), "200");
        }
    });
}

#[test]
fn in_a_hook_on_events() {
    let lab = Lab::new();
    let mut hook = lab.prepare("tests/hostile-hooks").instantiate().unwrap();
    hook.events(&[event(0)], 0).unwrap();
    let began = Instant::now();
    stopped(began, hook.events(&[event(1)], 0).unwrap_err(), "50");
}

#[test]
fn in_a_task() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    feature.runtime().block_on(async {
        let mut tasks = feature.instantiate_control().await.unwrap();
        let began = Instant::now();
        let ending = CancellationToken::new();
        let spin = tokio::time::timeout(SOON, tasks.run_task("spin", &ending)).await;
        stopped(began, spin.expect("it was not stopped").unwrap_err(), "2000");
    });
}

/// What the host asks a guest for memory with is the guest's, too.
#[test]
fn in_cabi_realloc() {
    let lab = Lab::new();
    let tools = lab.tools();
    let began = Instant::now();
    stopped(began, tools.how("realloc-loop").unwrap_err(), "2000");
    tools.goes_on();
    assert_eq!(tools.how("realloc-loop-later").unwrap(), "0");
    let began = Instant::now();
    stopped(began, tools.how("nothing").unwrap_err(), "2000");
    tools.goes_on();
}

/// A call that asks the host something in a loop yields as well as one that does not.
#[test]
fn in_a_tool_that_keeps_calling_the_host() {
    let lab = Lab::new();
    let tools = lab.tools();
    let began = Instant::now();
    stopped(began, tools.how("ignore-cancel").unwrap_err(), "2000");
}
