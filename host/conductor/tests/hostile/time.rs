//! Time: what a feature waits for counts, and what it takes of a processor with calls that are each short enough.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::descriptor::Tier;
use conductor_sandbox::actor::Actor;
use conductor_sandbox::control::ToolCall;
use conductor_sandbox::limits;
use conductor_stdx::pace::CARRY_BUDGET;
use rustix::time::{ClockId, clock_gettime};

use crate::lab::{Lab, Play, Tools, envelope, guest_with, renamed, until};

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
fn that_a_tool_waits_is_limited_to_what_it_declares() {
    let lab = silent();
    let package = guest_with("tests/hostile-tools", &[("timeout_seconds = 60", "timeout_seconds = 1 ")]);
    let tools = Tools::new(lab.sandbox.prepare(&package, lab.grants()).unwrap());
    stopped(Instant::now(), tools.how("fetch-forever").unwrap_err(), Duration::from_secs(1));
}

#[test]
fn that_a_hook_waits_is_limited() {
    let lab = silent();
    let feature = lab.prepare("tests/hostile-hooks");
    let call = ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: Tier::ReadOnly.into(),
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
    let start = || FeatureQueue::new(feature.clone(), observer.clone()).unwrap().0;
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
    let other = FeatureQueue::new(other, observer.clone()).unwrap().0;
    other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap().try_perform(envelope()).unwrap();
    until("the other one does not go on", || other.counters().done.load(Ordering::Relaxed) == 1);
    queues.iter().for_each(FeatureQueue::abandon);
}

/// A feature that behaves for 10 000 calls, so that ports make its calls themselves, and then hangs: it holds up the port
/// that made the call, once, until its budget is used up; other ports and other features go on.
#[test]
fn a_feature_that_hangs_late_holds_up_one_port_once() {
    const CALLS: u64 = 10_000;
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let start = |feature| FeatureQueue::new(feature, observer.clone()).unwrap().0;
    let sly = start(lab.prepare("tests/hostile"));
    let other = start(lab.sandbox.prepare(&renamed("tests/hostile", "project:other", &[]), lab.grants()).unwrap());
    let late = sly.prepare("Misbehave", r#"{"how": "late-loop"}"#).unwrap();
    let quiet = other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    let counters = |queue: &FeatureQueue| {
        let it = queue.counters();
        (it.done.load(Ordering::Relaxed), it.trapped.load(Ordering::Relaxed))
    };
    let ended = AtomicBool::new(false);
    // What it takes of the port's thread: that this machine has other things to do is not the feature's doing.
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let bring = |action: &PreparedAction| {
        while action.put(envelope()).is_err() {
            std::thread::yield_now();
        }
        let began = worked();
        action.worker().carry(Instant::now() + CARRY_BUDGET);
        worked() - began
    };
    let (late_by, others) = std::thread::scope(|scope| {
        // Another port, whose events are for another feature.
        let others = scope.spawn(|| {
            let (mut count, mut most) = (0_u64, Duration::ZERO);
            while !ended.load(Ordering::Relaxed) {
                most = most.max(bring(&quiet));
                count += 1;
            }
            (count, most)
        });
        let mut late_by = Vec::new();
        // The ones that come after the first hang find it on its own thread.
        for _ in 0..CALLS + 1000 {
            late_by.push(bring(&late));
        }
        ended.store(true, Ordering::Relaxed);
        (late_by, others.join().unwrap())
    });
    until("what came after it is not seen to", || {
        let it = sly.counters();
        let found_no_room = it.queue_full.load(Ordering::Relaxed);
        let failed = it.failed.load(Ordering::Relaxed) - found_no_room;
        it.done.load(Ordering::Relaxed) + failed == CALLS + 1000
    });
    let (count, most) = others;
    until("the other one is behind", || counters(&other).0 == count);
    let held_up: Vec<_> = late_by.iter().filter(|by| **by >= limits::PERFORM_BUDGET / 2).collect();
    println!("its port was held up {held_up:?}; of {count} events of the other port the longest took {most:?}");
    assert!(counters(&sly).1 >= 1, "it never hung");
    assert!(held_up.len() <= 1, "the port was held up again: {held_up:?}");
    assert_eq!(counters(&other).1, 0);
}
