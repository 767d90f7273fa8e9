//! Time: what a feature waits for counts, and what it takes of a processor with calls that are each short enough.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conductor_dispatch::feature_worker::FeatureQueue;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_sandbox::actor::Actor;
use conductor_sandbox::control::ToolCall;
use conductor_sandbox::limits;

use crate::lab::{Lab, Play, envelope, guest_with, renamed, until};

/// A lab whose network never answers.
fn silent() -> Lab {
    let lab = Lab::new();
    lab.stage.plays.lock().unwrap().extend((0..1000).map(|_| Play::Hang));
    lab
}

#[track_caller]
fn stopped(began: Instant, error: impl std::fmt::Display, within: Duration) {
    let error = error.to_string();
    assert!(error.contains(&format!("it took longer than {} s", within.as_secs())), "{error}");
    assert!(began.elapsed() < within + Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn that_a_tool_waits_is_limited() {
    let lab = silent();
    let tools = lab.tools();
    let began = Instant::now();
    stopped(began, tools.how("fetch-forever").unwrap_err(), limits::CALL_TIMEOUT);
    assert!(lab.stage.dialled.lock().unwrap().len() > 1, "it waited for more than one answer");
    tools.goes_on();
}

#[test]
fn that_a_hook_waits_is_limited() {
    let lab = silent();
    let feature = lab.prepare("tests/hostile-hooks");
    let call = ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: "read-only".into(),
        args: r#"{"before": "wait"}"#.into(),
    };
    let began = Instant::now();
    let error = feature.runtime().block_on(async {
        let mut hooks = feature.instantiate_control().await.unwrap();
        hooks.before_call(&call).await.unwrap_err()
    });
    stopped(began, error, limits::HOOK_TIMEOUT);
    assert!(!lab.stage.dialled.lock().unwrap().is_empty());
}

#[test]
fn that_an_install_waits_is_limited() {
    let lab = silent();
    let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet", "INSTALL:wait")]);
    let feature = lab.sandbox.prepare(&package, lab.grants()).unwrap();
    let began = Instant::now();
    stopped(began, Actor::start(feature).unwrap_err(), limits::INSTALL_TIMEOUT);
}

/// An action that always takes a little less than it may never traps. All calls of a feature together may
/// take half a processor.
#[test]
fn of_a_processor_a_feature_has_its_share() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let feature = lab.prepare("tests/hostile");
    let start = || FeatureQueue::start(feature.clone(), observer.clone()).unwrap().0;
    // Several, since this machine may have other things to do than to let one of them work.
    let queues = [start(), start(), start()];
    let slow: Vec<_> = queues.iter().map(|queue| queue.prepare("Misbehave", r#"{"how": "slow"}"#).unwrap()).collect();
    let left_out =
        |queue: &FeatureQueue| queue.counters().last_failure().is_some_and(|it| it.contains("500 ms of CPU"));
    until("it takes all it can get", || {
        slow.iter().for_each(|slow| drop(slow.try_perform(envelope())));
        queues.iter().any(left_out)
    });
    let trapped: u64 = queues.iter().map(|queue| queue.counters().trapped.load(Ordering::Relaxed)).sum();
    assert_eq!(trapped, 0, "no single call took too long");
    assert_eq!(feature.facts().quarantine.recent(Instant::now()), 1, "going on like that is as bad as a trap");
    // Others have theirs.
    let package = renamed("tests/hostile", "project:other", &[]);
    let other = lab.sandbox.prepare(&package, lab.grants()).unwrap();
    let other = FeatureQueue::start(other, observer.clone()).unwrap().0;
    other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap().try_perform(envelope()).unwrap();
    until("the other one does not go on", || other.counters().done.load(Ordering::Relaxed) == 1);
    queues.iter().for_each(FeatureQueue::abandon);
}
