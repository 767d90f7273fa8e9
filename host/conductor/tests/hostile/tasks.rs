//! Background tasks: they end when they are cancelled, and take no more than their share.

use std::time::{Duration, Instant};

use conductor_observer::{self as observer, sink_message::SinkQueue};
use conductor_package::descriptor::{Descriptor, MAX_TASKS, TaskDeclaration};
use conductor_package::{Contributions, Package};
use conductor_registry::{FeatureSource, Registry};
use conductor_sandbox::PreparedFeature;
use conductor_sandbox::limits;
use conductor_sandbox::task::{Task, TaskState};
use std::path::Path;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, bytes_with, guest_with, path, renamed, until};

#[test]
fn a_task_that_does_not_end_is_stopped() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    feature.runtime().block_on(async {
        let mut tasks = feature.instantiate_control().await.unwrap();
        let ending = CancellationToken::new();
        ending.cancel();
        let began = Instant::now();
        let error = tasks.run_task("stubborn", &ending).await.unwrap_err().to_string();
        assert!(error.contains("it did not end within 2 s") || error.contains("ran longer"), "{error}");
        assert!(began.elapsed() < limits::CANCEL_TIMEOUT + Duration::from_secs(10));
    });
}

#[test]
fn a_task_that_waits_for_no_time_gets_no_time() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    feature.runtime().block_on(async {
        let mut tasks = feature.instantiate_control().await.unwrap();
        let ending = CancellationToken::new();
        let waits = tokio::time::timeout(Duration::from_secs(60), tasks.run_task("wait-zero", &ending)).await;
        let error = waits.expect("it was not stopped").unwrap_err().to_string();
        assert!(error.contains("it ran longer than its 2000 ms"), "{error}");
    });
}

#[test]
fn a_task_that_traps_waits_longer_each_time() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let declared = feature.facts().descriptor.tasks.iter().find(|task| task.name == "trap").unwrap().clone();
    let task = Task::start(feature.clone(), &declared);
    until("it never waited", || matches!(task.report().state, TaskState::Waiting { pause: 2000, .. }));
    assert_eq!(task.report().starts, 2);
    feature.facts().revoke();
    until("it was not ended", || task.report().state == TaskState::Ended);
}

#[test]
fn a_task_that_fails_with_no_text_fails() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let declared = feature.facts().descriptor.tasks.iter().find(|task| task.name == "no-text").unwrap().clone();
    let task = Task::start(feature.clone(), &declared);
    until("it did not fail", || matches!(task.report().state, TaskState::Failed { .. }));
}

#[test]
fn revocation_ends_a_task_that_waits() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let declared = feature.facts().descriptor.tasks.iter().find(|task| task.name == "patient").unwrap().clone();
    let task = Task::start(feature.clone(), &declared);
    until("it did not start", || task.report().starts == 1);
    let began = Instant::now();
    feature.facts().revoke();
    until("it was not ended", || task.report().state == TaskState::Ended);
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// The declaration of a task of the hostile feature.
fn declared(feature: &PreparedFeature, name: &str) -> TaskDeclaration {
    feature.facts().descriptor.tasks.iter().find(|task| task.name == name).unwrap().clone()
}

// FEA-17
#[test]
fn an_on_demand_task_is_idle_until_it_is_started_and_can_be_started_again() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let task = Task::new(feature.clone(), &declared(&feature, "called"));
    assert_eq!((task.report().state, task.report().starts), (TaskState::Idle, 0));
    task.stop();
    for starts in 1..=2 {
        task.run().unwrap();
        task.run().unwrap();
        until("it did not start", || task.report().starts == starts);
        task.stop();
        until("it did not end", || task.report().state == TaskState::Ended && task.ended().is_cancelled());
    }
    assert_eq!(task.report().starts, 2, "one that runs is not started again");
}

// FEA-17
#[test]
fn a_feature_cant_start_another_features_task() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tasks");
    let other = renamed("tests/hostile-tasks", "project:hostile-other", &[]);
    let other = lab.sandbox.prepare(&other, lab.grants()).unwrap();
    let task = Task::new(feature.clone(), &declared(&feature, "called"));
    let others = Task::new(other.clone(), &declared(&other, "called"));
    task.run().unwrap();
    // It tries to start several tasks, and fails if it may start one that is not its own on-demand task.
    until("it failed, or did not start", || lab.said.try_iter().any(|message| message.text.contains("called waits")));
    assert_eq!((task.report().state, task.report().starts), (TaskState::Running, 1));
    assert_eq!((others.report().state, others.report().starts), (TaskState::Idle, 0));
}

// FEA-17
#[test]
fn tasks_start_with_the_feature_or_on_demand() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, observed, _) = observer::start(silence, None).unwrap();
    // Without those that make the feature one that is quarantined.
    let others = ["spin", "wait-zero", "trap", "stubborn", "no-text", "busy"];
    let refused = Contributions { tasks: others.map(str::to_owned).to_vec(), ..Contributions::default() };
    let (path, grants) = (path("tests/hostile-tasks"), lab.grants());
    let source = FeatureSource { name: "hostile-tasks".into(), path, grants, refused, ..FeatureSource::default() };
    let registry = Registry::default().with(vec![source], &lab.sandbox, &observer);
    let report = |name: &str| {
        let [feature] = &registry.reports()[..] else { panic!("not one") };
        feature.tasks.iter().find(|task| task.name == name).cloned()
    };
    let error = |feature: &str, task: &str| registry.switch_task(feature, task, true).unwrap_err().to_string();
    assert!(error("hostile-tasks", "called").contains("has no task \"called\""), "not before it is in force");
    registry.begin(&observed);
    // The task `patient`, which starts with the feature, starts the task `called`.
    until("nothing started it", || report("called").is_some_and(|task| task.starts == 1));
    let stopped = registry.switch_task("hostile-tasks", "called", false).unwrap();
    assert!(matches!(stopped.state, TaskState::Stopping | TaskState::Ended), "{stopped:?}");
    until("it did not end", || report("called").unwrap().state == TaskState::Ended);
    registry.switch_task("hostile-tasks", "called", true).unwrap();
    until("it was not started", || report("called").unwrap().starts == 2);
    assert!(error("hostile-tasks", "watch").contains("has no task \"watch\"; it has patient, called"));
    assert!(error("nothing", "watch").contains("no feature \"nothing\" runs"));
}

// FEA-17
#[test]
fn a_task_has_as_long_to_end_as_it_declares() {
    let lab = Lab::new();
    let change = ("\"Goes on when it is cancelled.\"", "\"\"\nstop_timeout_seconds = 1");
    let feature = lab.sandbox.prepare(&guest_with("tests/hostile-tasks", &[change]), lab.grants()).unwrap();
    feature.runtime().block_on(async {
        let mut tasks = feature.instantiate_control().await.unwrap();
        let ending = CancellationToken::new();
        ending.cancel();
        let error = tasks.run_task("stubborn", &ending).await.unwrap_err().to_string();
        assert!(error.contains("it did not end within 1 s"), "{error}");
    });
    let wrong = |seconds: &str| {
        let text = format!(
            "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n\
             [[capabilities]]\nkind = 'background-task'\nreason = 'x'\n\
             [[tasks]]\nname = 'watch'\nsummary = ''\nstop_timeout_seconds = {seconds}\n"
        );
        Descriptor::parse(text.as_bytes()).map(drop).unwrap_err().to_string()
    };
    for seconds in ["0", "31"] {
        assert!(wrong(seconds).contains("1 to 30 are allowed"), "{}", wrong(seconds));
    }
}

#[test]
fn one_feature_does_not_take_every_instance() {
    let mut text = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n\
        [[capabilities]]\nkind = 'background-task'\nreason = 'x'\nrequired = false\n"
        .to_owned();
    for n in 0..=MAX_TASKS {
        text += &format!("[[tasks]]\nname = 'task{n}'\nsummary = ''\n");
    }
    let error = Descriptor::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("9 background tasks are declared; at most 8 are run"), "{error}");
}

#[test]
fn tasks_without_the_capability_are_refused() {
    let bytes = bytes_with("tests/hostile-tasks", &[("kind = \"background-task\"", "kind = \"alert\"")]);
    let error = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap_err().to_string();
    assert!(error.contains("the task spin needs \"background-task\", which is not requested"), "{error}");
}
