//! Quarantine: a feature that keeps trapping is left alone, in either lane, and the others go on.

use std::sync::atomic::Ordering;

use conductor_host::dispatch::feature_worker::FeatureQueue;
use conductor_host::feature::quarantine::STRIKES;
use conductor_host::observer;
use conductor_host::service::sinks::SinkQueue;

use crate::lab::{Lab, envelope, until};

#[test]
fn of_tools() {
    let lab = Lab::new();
    let (tools, other) = (lab.tools(), lab.tools());
    for _ in 0..STRIKES {
        assert!(tools.how("trap").unwrap_err().to_string().contains("unreachable"));
    }
    let error = tools.refused("{}");
    assert!(error.contains("it kept trapping and is left alone"), "{error}");
    other.goes_on();
    tools.feature.facts().quarantine.lift();
    tools.goes_on();
}

#[test]
fn of_actions() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let start = || FeatureQueue::start(lab.prepare("tests/hostile"), observer.clone()).unwrap().0;
    let (queue, other) = (start(), start());
    let trap = queue.prepare("Misbehave", r#"{"how": "trap"}"#).unwrap();
    let quiet = queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    for _ in 0..STRIKES {
        trap.try_perform(envelope()).unwrap();
    }
    quiet.try_perform(envelope()).unwrap();
    let failed = || queue.counters().failed.load(Ordering::Relaxed);
    until("it was not left alone", || failed() == STRIKES as u64 + 1);
    assert_eq!(queue.counters().trapped.load(Ordering::Relaxed), STRIKES as u64);
    assert!(queue.counters().last_failure().unwrap().contains("left alone"));
    let quiet = other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    quiet.try_perform(envelope()).unwrap();
    until("the other one does not go on", || other.counters().done.load(Ordering::Relaxed) == 1);
}

/// A configuration with many uses of an action does not wait for each of them.
#[test]
fn of_actions_that_trap_while_they_are_prepared() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let (queue, ..) = FeatureQueue::start(lab.prepare("tests/hostile"), observer).unwrap();
    for use_ in 0..STRIKES {
        let params = format!(r#"{{"how": "prepare-loop", "use": {use_}}}"#);
        let budget = if use_ == 0 { "1000 ms" } else { "200 ms" };
        assert!(queue.prepare("Misbehave", &params).unwrap_err().to_string().contains(budget));
    }
    let traps = || queue.counters().trapped.load(Ordering::Relaxed);
    for use_ in STRIKES..1000 {
        let params = format!(r#"{{"how": "prepare-loop", "use": {use_}}}"#);
        queue.prepare("Misbehave", &params).unwrap();
    }
    assert_eq!(traps(), STRIKES as u64, "the others were not tried");
    assert!(queue.unavailable().unwrap().contains("left alone"));
}

/// What is first asked for in a quarantine fails until its end, and is prepared then.
#[test]
fn an_action_that_is_new_in_a_quarantine_works_after_it() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let feature = lab.prepare("tests/hostile");
    let quarantine = &feature.facts().quarantine;
    let (queue, ..) = FeatureQueue::start(feature.clone(), observer).unwrap();
    while !quarantine.strike(std::time::Instant::now()) {}
    let quiet = queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    quiet.try_perform(envelope()).unwrap();
    until("it was not left alone", || queue.counters().failed.load(Ordering::Relaxed) == 1);
    assert!(queue.counters().last_failure().unwrap().contains("left alone"));
    quarantine.lift();
    quiet.try_perform(envelope()).unwrap();
    until("it does not work", || queue.counters().done.load(Ordering::Relaxed) == 1);
}
