//! Background tasks: they end when they are cancelled, and take no more than their share.

use std::time::{Duration, Instant};

use conductor_package::Package;
use conductor_package::descriptor::{Descriptor, MAX_TASKS};
use conductor_sandbox::limits;
use conductor_sandbox::task::{Task, TaskState};
use std::path::Path;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, bytes_with, until};

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
