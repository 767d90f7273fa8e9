//! Timers that never end, are too many, or are set where none may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_dispatch::{Envelope, WorkerCounters};
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::Grants;
use conductor_sandbox::pending_calls::MAX_PENDING;

use crate::lab::{Lab, envelope, guest, until};

struct Stage {
    queue: FeatureQueue,
    /// After the queue: what it works with.
    _lab: Lab,
}

impl Stage {
    fn new() -> Self {
        let lab = Lab::new();
        let (_, silence) = SinkQueue::new();
        let (observer, _, _) = observer::start(silence, None).unwrap();
        let grants = Grants { timers: true, ..Grants::default() };
        let feature = lab.sandbox.prepare(&guest("tests/hostile-timers"), grants).unwrap();
        let (queue, ..) = FeatureQueue::new(feature, observer).unwrap();
        Self { queue, _lab: lab }
    }

    fn prepare(&self, how: &str) -> Arc<PreparedAction> {
        self.queue.prepare("Misbehave", &serde_json::json!({ "how": how }).to_string()).unwrap()
    }

    /// Performs an action that always fails, and returns its words.
    fn said(&self, action: &PreparedAction) -> String {
        let failed = || self.queue.counters().failed.load(Ordering::Relaxed);
        let before = failed();
        action.try_perform(envelope()).unwrap();
        until("it says nothing", || failed() > before);
        self.queue.counters().last_failure().unwrap()
    }

    fn trapped(&self) -> u64 {
        self.queue.counters().trapped.load(Ordering::Relaxed)
    }
}

#[test]
fn a_feature_has_so_many_timers_and_no_more() {
    let stage = Stage::new();
    let many = stage.prepare("many");
    assert!(stage.said(&many).ends_with(&format!("set {MAX_PENDING}")));
    // Of all its actions together.
    let other = stage.queue.prepare("Misbehave", r#"{"how": "many", "other": true}"#).unwrap();
    assert!(stage.said(&other).ends_with("set 0"));
    drop(many);
    until("they go with their action", || stage.said(&other).ends_with(&format!("set {MAX_PENDING}")));
}

#[test]
fn a_timer_can_not_be_set_while_the_feature_is_installed_or_prepares() {
    let stage = Stage::new();
    let error = stage.queue.prepare("Misbehave", r#"{"how": "prepare"}"#).unwrap_err().to_string();
    assert!(error.contains("a timer is set while an action is performed"), "{error}");
}

#[test]
fn timers_end_with_the_instance_that_set_them() {
    let stage = Stage::new();
    let (trap, count) = (stage.prepare("set-trap"), stage.prepare("count"));
    assert!(stage.said(&trap).contains("unreachable"));
    until("it counts the trap", || stage.trapped() == 1);
    for _ in 0..100 {
        assert!(stage.said(&count).ends_with("due 0"), "the next instance has none of them");
    }
}

#[test]
fn a_timer_that_traps_or_loops_costs_the_instance() {
    for (how, why) in [("due-trap", "unreachable"), ("due-loop", "20 ms")] {
        let stage = Stage::new();
        stage.prepare("nothing").try_perform(envelope()).unwrap();
        let way = stage.prepare(how);
        // The first call of a feature may take longer, while its code is still on its way from the disk.
        way.try_perform(envelope()).unwrap();
        until("it is not stopped", || stage.trapped() == 1);
        let failure = stage.queue.counters().last_failure().unwrap();
        assert!(failure.contains(why), "{failure}");
    }
}

/// One of the counters, of all these together.
fn sum(queues: &[FeatureQueue], counter: fn(&WorkerCounters) -> &AtomicU64) -> u64 {
    queues.iter().map(|queue| counter(queue.counters()).load(Ordering::Relaxed)).sum()
}

/// 256 timers at a time, each due as soon as may be and slow: what they take is the feature's share of the processor,
/// its events and orders come in between, and another feature has its share.
#[test]
fn timers_without_end_have_the_features_share() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let grants = Grants { timers: true, ..Grants::default() };
    let feature = lab.sandbox.prepare(&guest("tests/hostile-timers"), grants).unwrap();
    let clock = feature.facts().services.clock;
    // Several, since this machine may have other things to do than to let one of them work.
    let queues = [(); 3].map(|()| FeatureQueue::new(feature.clone(), observer.clone()).unwrap().0);
    let endless = queues.each_ref().map(|queue| queue.prepare("Misbehave", r#"{"how": "endless"}"#).unwrap());
    // Timers are due in the order of events, so these have their time.
    let begin = || {
        for action in &endless {
            let _ = action.try_perform(Envelope { at: clock.now(), ..envelope() });
        }
    };
    let left_out =
        |queue: &FeatureQueue| queue.counters().last_failure().is_some_and(|it| it.contains("500 ms of CPU"));
    begin();
    until("it takes all it can get", || queues.iter().any(left_out));
    assert_eq!(sum(&queues, |counters| &counters.trapped), 0, "no single call took too long");
    // As soon as it may run again, its timers do not keep its own events and orders from it.
    let done = sum(&queues, |counters| &counters.done);
    until("it does not go on", || {
        begin();
        sum(&queues, |counters| &counters.done) > done
    });
    drop(queues[0].prepare("Misbehave", r#"{"how": "nothing at all"}"#).unwrap());
    let other = FeatureQueue::new(lab.prepare("tests/hostile"), observer.clone()).unwrap().0;
    other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap().try_perform(envelope()).unwrap();
    until("the other one does not go on", || other.counters().done.load(Ordering::Relaxed) == 1);
    queues.iter().for_each(FeatureQueue::abandon);
}
