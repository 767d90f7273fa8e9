//! Processor time: what the host does for a guest is charged to the guest, and no feature can use up all of it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conductor_package::descriptor::Tier;
use conductor_sandbox::limits::Share;
use conductor_sandbox::task::{Task, TaskState};
use conductor_sandbox::{PreparedFeature, limits};

use crate::lab::{Lab, Tools, guest_with, renamed, until};

/// Of a hundred thousand calls, each of which takes the host a tenth of a second, only those are made that fit into
/// the two seconds of a tool call. (The lab's host spins by the clock on the wall, so that on a busy machine it takes
/// less of a processor, and there may be more of them.)
#[track_caller]
fn ends_at_its_budget(lab: &Lab, error: impl std::fmt::Display) {
    let error = error.to_string();
    assert!(error.contains("it ran longer than its 2000 ms"), "{error}");
    let toiled = lab.view.toiled.load(Ordering::Relaxed);
    assert!((20..600).contains(&toiled), "{toiled}");
}

#[test]
fn of_host_functions_is_the_guests_who_checks_again_and_again() {
    let lab = Lab::new();
    let tools = lab.tools();
    ends_at_its_budget(&lab, tools.how("check-again").unwrap_err());
    tools.goes_on();
}

#[test]
fn of_host_functions_is_the_guests_who_asks_for_explanations_again_and_again() {
    let lab = Lab::new();
    let tools = lab.tools();
    ends_at_its_budget(&lab, tools.how("explain-again").unwrap_err());
    tools.goes_on();
}

#[test]
fn of_plans_that_are_refused_is_the_guests() {
    let lab = Lab::new();
    let tools = lab.tools();
    let error = tools.call(Tier::ConfigChange, r#"{"how": "propose-again"}"#).unwrap_err().to_string();
    assert!(error.contains("it ran longer than its 2000 ms"), "{error}");
    assert!(tools.feature.facts().control_share.used() >= limits::CALL_BUDGET);
}

/// A result that it takes long to check fails its call; the time is the feature's.
#[test]
fn of_a_check_that_leads_everywhere_is_bounded() {
    let lab = Lab::new();
    let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet        ", "INSTALL:circle-schema")]);
    let tools = Tools::new(lab.sandbox.prepare(&package, lab.grants()).unwrap());
    let before = tools.feature.facts().control_share.used();
    let error = tools.call(Tier::ConfigChange, r#"{"how": "nested"}"#).unwrap_err().to_string();
    assert!(error.contains("is not what its output schema says") && error.contains("1000000 steps"), "{error}");
    assert!(tools.feature.facts().control_share.used() > before);
}

/// Three features, each with eight tasks that work half of the time.
fn busy(lab: &Lab) -> (Vec<PreparedFeature>, Vec<Task>) {
    let feature = |name: &str| lab.sandbox.prepare(&renamed("tests/hostile-tasks", name, &[]), lab.grants()).unwrap();
    let features: Vec<_> = ["project:busy-a", "project:busy-b", "project:busy-c"].map(feature).into();
    let declared = features[0].facts().descriptor.tasks.iter().find(|task| task.name == "busy").unwrap().clone();
    let tasks = features.iter().flat_map(|feature| (0..8).map(|_| Task::start(feature.clone(), &declared)));
    let tasks = tasks.collect();
    (features, tasks)
}

/// A share that is small enough to be used up on any machine, however busy.
const SMALL: Share = Share { rate: 20.0, burst: 200.0 };

/// Waits until tasks of all features have waited for 20 s together, and compares what they took with their share.
#[track_caller]
fn share_holds(features: &[PreparedFeature], tasks: &[Task], began: Instant, used: impl Fn() -> Duration) {
    until("they were never made to wait", || {
        let reports: Vec<_> = tasks.iter().map(Task::report).collect();
        assert!(reports.iter().all(|task| task.state == TaskState::Running), "{reports:?}");
        features.iter().all(|feature| feature.facts().throttled.total() > Duration::from_secs(20))
    });
    // What each task may go beyond it: the tick that it is at, and here a good deal more.
    let beyond = 20.0 * tasks.len() as f64;
    let (used, passed) = (used().as_secs_f64() * 1000.0, began.elapsed().as_secs_f64());
    let most = SMALL.burst / 2.0 + SMALL.rate * passed + beyond;
    assert!(used <= most, "{used} ms of at most {most} within {passed} s");
    let recent = |feature: &PreparedFeature| feature.facts().quarantine.recent(Instant::now());
    assert!(features.iter().all(|feature| recent(feature) == 0), "being slowed is no fault");
}

fn used(features: &[PreparedFeature]) -> Duration {
    features.iter().map(|feature| feature.facts().control_share.used()).sum()
}

#[test]
fn of_tasks_is_a_share_for_each_feature() {
    let lab = Lab::with(|services| services.control_cpu = SMALL);
    let began = Instant::now();
    let (features, tasks) = busy(&lab);
    // Of each alone, with as many tasks as all have.
    share_holds(&features, &tasks, began, || used(&features[..1]));
    features.iter().for_each(|feature| feature.facts().revoke());
}

#[test]
fn of_tasks_is_a_share_for_all_and_calls_go_before_them() {
    let lab = Lab::with(|services| services.lane_cpu = SMALL);
    let other = lab.tools();
    let began = Instant::now();
    let (features, tasks) = busy(&lab);
    share_holds(&features, &tasks, began, || used(&features));
    // A feature that has used little is not throttled for what others have used up.
    for _ in 0..50 {
        other.goes_on();
    }
    assert_eq!(other.feature.facts().throttled.total(), Duration::ZERO);
    features.iter().for_each(|feature| feature.facts().revoke());
}
