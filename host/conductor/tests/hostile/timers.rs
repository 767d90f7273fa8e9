//! Timers that never end, are too many, or are set where none may be.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use conductor_dispatch::feature_worker::{FeatureQueue, PreparedAction};
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::Grants;
use conductor_sandbox::host_functions::timers::MAX_TIMERS;

use crate::lab::{Lab, envelope, guest, until};

struct Stage {
    lab: Lab,
    queue: FeatureQueue,
}

impl Stage {
    fn new() -> Self {
        let lab = Lab::new();
        let (_, silence) = SinkQueue::new();
        let (observer, _, _) = observer::start(silence, None).unwrap();
        let grants = Grants { timers: true, ..Grants::default() };
        let feature = lab.sandbox.prepare(&guest("tests/hostile-timers"), grants).unwrap();
        let (queue, ..) = FeatureQueue::start(feature, observer).unwrap();
        Self { lab, queue }
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
    assert!(stage.said(&many).ends_with(&format!("set {MAX_TIMERS}")));
    // Of all its actions together.
    let other = stage.queue.prepare("Misbehave", r#"{"how": "many", "other": true}"#).unwrap();
    assert!(stage.said(&other).ends_with("set 0"));
    drop(many);
    until("they go with their action", || stage.said(&other).ends_with(&format!("set {MAX_TIMERS}")));
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

/// 256 timers at a time, each due as soon as may be and slow: what they take is the feature's share of the processor,
/// its events and orders come in between, and another feature has its share.
#[test]
fn timers_without_end_have_the_features_share() {
    let stage = Stage::new();
    let endless = stage.prepare("endless");
    endless.try_perform(envelope()).unwrap();
    until("it takes all it can get", || {
        // Those that are left out are gone; it begins anew.
        let _ = endless.try_perform(envelope());
        stage.queue.counters().last_failure().is_some_and(|it| it.contains("500 ms of CPU"))
    });
    assert_eq!(stage.trapped(), 0, "no single call took too long");
    let done = stage.queue.counters().done.load(Ordering::Relaxed);
    // As soon as it may run again, its timers do not keep its own events and orders from it.
    until("it does not go on", || {
        let _ = endless.try_perform(envelope());
        stage.queue.counters().done.load(Ordering::Relaxed) > done
    });
    drop(stage.prepare("nothing at all"));
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let other = FeatureQueue::start(stage.lab.prepare("tests/hostile"), observer).unwrap().0;
    other.prepare("Misbehave", r#"{"how": "nothing"}"#).unwrap().try_perform(envelope()).unwrap();
    until("the other one does not go on", || other.counters().done.load(Ordering::Relaxed) == 1);
    stage.queue.abandon();
}
