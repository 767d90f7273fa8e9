//! Quarantine: a feature that keeps trapping is quarantined, in either lane, and the others go on.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::Package;
use conductor_registry::{FeatureSource, Registry};
use conductor_sandbox::PreparedFeature;
use conductor_sandbox::actor::Actor;
use conductor_sandbox::quarantine::{LONG_STRIKES, STRIKES};
use conductor_sandbox::task::Task;

use crate::lab::{Folder, Lab, Tools, bytes_with, envelope, renamed, until};

/// A guest under another id.
fn other(lab: &Lab, guest: &str, id: &str) -> PreparedFeature {
    lab.sandbox.prepare(&renamed(guest, id, &[]), lab.grants()).unwrap()
}

fn is_quarantined(feature: &PreparedFeature) -> bool {
    feature.facts().quarantine.left(Instant::now()).is_some()
}

#[test]
fn of_tools() {
    let lab = Lab::new();
    let (tools, other) = (lab.tools(), Tools::new(other(&lab, "tests/hostile-tools", "project:hostile-other")));
    for _ in 0..STRIKES {
        assert!(tools.how("trap").unwrap_err().to_string().contains("unreachable"));
    }
    let error = tools.refused("{}");
    assert!(error.contains("it kept trapping and is quarantined"), "{error}");
    other.goes_on();
    tools.feature.facts().quarantine.lift();
    tools.goes_on();
}

#[test]
fn of_actions() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let start = |feature| FeatureQueue::new(feature, observer.clone()).unwrap().0;
    let (queue, other) = (start(lab.prepare("tests/hostile")), start(other(&lab, "tests/hostile", "project:other")));
    let trap = queue.prepare("Misbehave", r#"{"how": "trap"}"#).unwrap();
    let quiet = queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    for _ in 0..STRIKES {
        trap.try_perform(envelope()).unwrap();
    }
    quiet.try_perform(envelope()).unwrap();
    let failed = || queue.counters().failed.load(Ordering::Relaxed);
    until("it was not quarantined", || failed() == STRIKES as u64 + 1);
    assert_eq!(queue.counters().trapped.load(Ordering::Relaxed), STRIKES as u64);
    assert!(queue.counters().last_failure().unwrap().contains("quarantined"));
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
    let (queue, ..) = FeatureQueue::new(lab.prepare("tests/hostile"), observer).unwrap();
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
    assert!(queue.unavailable().unwrap().contains("quarantined"));
}

/// What is first asked for in a quarantine fails until its end, and is prepared then.
#[test]
fn an_action_that_is_new_in_a_quarantine_works_after_it() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let feature = lab.prepare("tests/hostile");
    let quarantine = &feature.facts().quarantine;
    let (queue, ..) = FeatureQueue::new(feature.clone(), observer).unwrap();
    while !quarantine.record_trap(Instant::now()) {}
    let quiet = queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap();
    quiet.try_perform(envelope()).unwrap();
    until("it was not quarantined", || queue.counters().failed.load(Ordering::Relaxed) == 1);
    assert!(queue.counters().last_failure().unwrap().contains("quarantined"));
    quarantine.lift();
    quiet.try_perform(envelope()).unwrap();
    until("it does not work", || queue.counters().done.load(Ordering::Relaxed) == 1);
}

/// A package is known by its id and digest: another installation of it begins where the last one ended.
#[test]
fn is_not_cleared_by_installing_again() {
    let lab = Lab::new();
    let tools = lab.tools();
    for _ in 0..STRIKES {
        assert!(tools.how("trap").unwrap_err().to_string().contains("unreachable"));
    }
    drop(tools);
    let again = lab.tools();
    assert!(again.refused("{}").contains("it kept trapping and is quarantined"));
}

/// Switched off and on again, as a configuration would.
#[test]
fn is_not_cleared_by_disabling_and_enabling() {
    let lab = Lab::new();
    let (on, observer, _) = lab.registry(&["tests/hostile-tools"]);
    let actor = on.tools().next().unwrap().actor.clone();
    let call = |actor: &Actor| {
        let args = r#"{"how": "trap"}"#.to_owned();
        let tier = conductor_package::descriptor::Tier::ReadOnly;
        let call =
            actor.call(Caller::library(), tier, "look", args, Default::default(), std::sync::Arc::new(|_, _| {}));
        lab.prepare("tests/hostile-tools").runtime().block_on(call).unwrap_err().to_string()
    };
    (0..STRIKES).for_each(|_| drop(call(&actor)));
    let off = on.with(Vec::new(), &lab.sandbox, &observer);
    on.give_way(&off);
    drop(on);
    let source = FeatureSource {
        name: "hostile-tools".into(),
        path: crate::lab::path("tests/hostile-tools"),
        bundled: false,
        grants: lab.grants(),
        ..FeatureSource::default()
    };
    let on = off.with(vec![source], &lab.sandbox, &observer);
    assert!(on.refused().is_empty());
    assert!(call(on.tools().next().unwrap().actor).contains("it kept trapping and is quarantined"));
    assert!(on.reports()[0].quarantine.is_some());
    assert_eq!(on.lift_quarantine("hostile-tools"), Some(true), "a person may");
    assert!(call(on.tools().next().unwrap().actor).contains("unreachable"));
}

#[test]
fn traps_in_install_count() {
    let lab = Lab::new();
    let folder = Folder::new();
    let path = folder.path().join("hostile-tools.wasm");
    std::fs::write(&path, bytes_with("tests/hostile-tools", &[("INSTALL:quiet", "INSTALL:trap")])).unwrap();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    for _ in 0..STRIKES {
        let source = FeatureSource {
            name: "hostile-tools".into(),
            path: path.clone(),
            bundled: false,
            grants: lab.grants(),
            ..FeatureSource::default()
        };
        assert_eq!(Registry::default().with(vec![source], &lab.sandbox, &observer).refused().len(), 1);
    }
    assert!(is_quarantined(&lab.sandbox.prepare(&Package::read(&path).unwrap(), lab.grants()).unwrap()));
}

#[test]
fn traps_in_release_count() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let feature = lab.prepare("tests/hostile");
    let (queue, ..) = FeatureQueue::new(feature.clone(), observer).unwrap();
    for use_ in 1..=STRIKES as u64 {
        drop(queue.prepare("Misbehave", r#"{"how": "release-trap"}"#).unwrap());
        until("it was not released", || queue.counters().trapped.load(Ordering::Relaxed) == use_);
    }
    assert!(is_quarantined(&feature));
}

#[test]
fn traps_of_tasks_count() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let declared = feature.facts().descriptor.tasks.iter().find(|task| task.name == "trap").unwrap().clone();
    let tasks: Vec<Task> = (0..STRIKES).map(|_| Task::start(feature.clone(), &declared)).collect();
    until("it was not quarantined", || is_quarantined(&feature));
    drop(tasks);
}

/// A trap now and then, for ever, is never five within a minute.
#[test]
fn of_a_slow_drip() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile");
    let (quarantine, start) = (&feature.facts().quarantine, Instant::now());
    let drip = |strike: usize| start + Duration::from_secs(20) * u32::try_from(strike).unwrap();
    assert!((1..LONG_STRIKES).all(|strike| !quarantine.record_trap(drip(strike))));
    assert!(quarantine.record_trap(drip(LONG_STRIKES)));
}
