//! Features that no mapping uses: what they have of the machine, and what becomes of it when mappings come and go.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_dispatch::Reason;
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_dispatch::feature_worker::IDLE_TIMEOUT;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_sandbox::PreparedFeature;
use conductor_stdx::clock::{Clock, ManualClock};
use conductor_stdx::pace::CARRY_BUDGET;

use crate::lab::{Lab, envelope, renamed, until};

/// A lab whose clock stands, and the hand that moves it.
fn lab_by_hand() -> (Lab, ManualClock) {
    let (clock, hand) = Clock::manual();
    (Lab::with(|services| services.clock = clock), hand)
}

fn feature(lab: &Lab, id: &str) -> PreparedFeature {
    lab.sandbox.prepare(&renamed("tests/hostile", id, &[]), lab.grants()).unwrap()
}

fn install(feature: &PreparedFeature) -> FeatureQueue {
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    FeatureQueue::new(feature.clone(), observer).unwrap().0
}

fn nothing(queue: &FeatureQueue) -> Arc<PreparedAction> {
    queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap()
}

/// The threads of this process that have this name. Elsewhere than on Linux, as many as there should be.
fn threads(name: &str, expected: usize) -> usize {
    if !cfg!(target_os = "linux") {
        return expected;
    }
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One that has ended meanwhile has no name.
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|other| other.trim_end() == name).count()
}

/// Lets so much time pass that a worker without a use ends.
fn until_given_back(hand: &ManualClock, queue: &FeatureQueue) {
    until("its worker is not given back", || {
        hand.advance(IDLE_TIMEOUT);
        !queue.has_worker()
    });
}

/// FEA-20: what is installed and not used has no thread, no queue and no instance. The first use makes one of each, of
/// that feature alone.
#[test]
fn a_hundred_features_without_mappings_have_no_thread_and_no_instance() {
    let lab = Lab::new();
    let feature = feature(&lab, "project:unused");
    let queues: Vec<_> = (0..100).map(|_| install(&feature)).collect();
    assert!(!queues.iter().any(FeatureQueue::has_worker));
    assert_eq!(threads("feature unused", 0), 0);
    assert_eq!(feature.facts().memory.linear(), 0, "an instance is left");

    let action = nothing(&queues[7]);
    assert_eq!(queues.iter().filter(|queue| queue.has_worker()).count(), 1);
    assert_eq!(threads("feature unused", 1), 1);
    let one = feature.facts().memory.linear();
    assert!(one > 0);
    let other = nothing(&queues[8]);
    assert_eq!(feature.facts().memory.linear(), 2 * one);
    drop((action, other));
}

/// FEA-20: the last mapping gives everything back after a while, and the next one finds the feature as the first one did.
#[test]
fn the_last_mapping_gives_everything_back_after_a_while() {
    let (lab, hand) = lab_by_hand();
    let feature = feature(&lab, "project:comes");
    let queue = install(&feature);
    let first = nothing(&queue);
    // However long it is in use.
    hand.advance(10 * IDLE_TIMEOUT);
    first.try_perform(envelope()).unwrap();
    until("it is not done", || queue.counters().done.load(Ordering::Relaxed) == 1);

    // A reload leaves it and another one takes it up again: the worker goes on.
    let worker = first.worker().clone();
    drop(first);
    hand.advance(IDLE_TIMEOUT - Duration::from_nanos(1));
    let again = nothing(&queue);
    assert!(again.worker().is(&worker));
    hand.advance(10 * IDLE_TIMEOUT);
    assert!(nothing(&queue).worker().is(&worker));

    drop(again);
    until_given_back(&hand, &queue);
    assert_eq!(feature.facts().memory.linear(), 0, "an instance is left");
    until("its thread is left", || threads("feature comes", 0) == 0);

    let next = nothing(&queue);
    assert!(!next.worker().is(&worker));
    next.try_perform(envelope()).unwrap();
    until("it is not done", || queue.counters().done.load(Ordering::Relaxed) == 2);
}

/// A mapping that is wrong starts the feature, too, and does not keep it.
#[test]
fn what_can_not_be_prepared_keeps_nothing() {
    let (lab, hand) = lab_by_hand();
    let feature = feature(&lab, "project:wrong");
    let queue = install(&feature);
    let error = queue.prepare("Misbehave", r#"{"how": "target-elsewhere"}"#).unwrap_err().to_string();
    assert!(error.contains("is not granted"), "{error}");
    assert!(feature.facts().memory.linear() > 0);
    until_given_back(&hand, &queue);
    assert_eq!(feature.facts().memory.linear(), 0, "an instance is left");
}

#[test]
fn a_feature_that_is_ended_gets_no_worker_any_more() {
    let lab = Lab::new();
    let feature = feature(&lab, "project:ended");
    let (used, unused) = (install(&feature), install(&feature));
    let action = nothing(&used);
    for queue in [&used, &unused] {
        assert!(!queue.has_ended());
        queue.abandon();
        let error = queue.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap_err().to_string();
        assert!(error.contains("shut down"), "{error}");
        until("it does not end", || queue.has_ended());
    }
    assert_eq!(action.try_perform(envelope()), Err(Reason::Gone));
}

/// CFG-4: mappings that use a feature come and go, and its worker with them; every event that was handed over is done.
#[test]
fn a_storm_of_reloads_loses_no_event() {
    const WORKERS: u64 = 20;
    let (lab, hand) = lab_by_hand();
    let feature = feature(&lab, "project:storm");
    let queue = install(&feature);
    let in_force = Mutex::new(None::<Arc<PreparedAction>>);
    let (handed_over, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let deadline = Instant::now() + Duration::from_secs(120);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) && Instant::now() < deadline {
                let Some(action) = in_force.lock().unwrap().clone() else { continue };
                match action.put(envelope()) {
                    Ok(()) => {
                        handed_over.fetch_add(1, Ordering::Relaxed);
                        action.worker().carry(Instant::now() + CARRY_BUDGET);
                    }
                    Err(reason) => assert_eq!(reason, Reason::QueueFull),
                }
            }
        });
        for worker in 0..WORKERS {
            for reload in 0..5 {
                let params = format!(r#"{{"how": "nothing", "use": {}}}"#, worker + reload);
                let next = queue.prepare("Misbehave", &params).unwrap();
                *in_force.lock().unwrap() = Some(next);
                let before = handed_over.load(Ordering::Relaxed);
                until("no event comes", || handed_over.load(Ordering::Relaxed) > before);
            }
            *in_force.lock().unwrap() = None;
            until_given_back(&hand, &queue);
        }
        ended.store(true, Ordering::Relaxed);
    });
    let counters = queue.counters();
    // What found no room failed, and was not handed over. Beside that, one feature has its share of the processor.
    let failed = counters.failed.load(Ordering::Relaxed) - counters.queue_full.load(Ordering::Relaxed);
    let done = counters.done.load(Ordering::Relaxed);
    println!("{done} done, {failed} failed, {} handed over", handed_over.load(Ordering::Relaxed));
    assert_eq!(done + failed, handed_over.load(Ordering::Relaxed), "{counters:?}");
    assert!(done >= 5 * WORKERS, "{counters:?}");
}
