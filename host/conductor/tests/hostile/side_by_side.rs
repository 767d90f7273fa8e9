//! The instances that a feature's calls are made in: none until one is called, several side by side where the feature is
//! stateless, and none of them for longer than it is of use. (FEA-20)

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_package::descriptor::Tier;
use conductor_sandbox::{CallError, ToolOutput, limits};
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, Tools, until};

/// A stateless feature, whose tool waits as long as its argument says.
const STATELESS: &str = "tests/hostile-wasi";

type Answer = Result<ToolOutput, CallError>;

/// A call beside others, and what cancels it.
fn begin(tools: &Tools, args: &str) -> (JoinHandle<Answer>, CancellationToken) {
    let (actor, args, cancelled) = (tools.actor.clone(), args.to_owned(), CancellationToken::new());
    let token = cancelled.clone();
    let call =
        async move { actor.call(Caller::library(), Tier::ReadOnly, "look", args, token, Arc::new(|_, _| {})).await };
    (tools.feature.runtime().spawn(call), cancelled)
}

fn end(tools: &Tools, call: JoinHandle<Answer>) -> Answer {
    tools.feature.runtime().block_on(call).unwrap()
}

/// As many calls as are made side by side, all of which wait for an hour, and one that waits for its turn.
fn crowd(tools: &Tools) -> (Vec<(JoinHandle<Answer>, CancellationToken)>, JoinHandle<Answer>) {
    let slow = (0..limits::MAX_PARALLEL_INSTANCES).map(|_| begin(tools, r#"{"how": "wait"}"#)).collect();
    // All of them have a place before the last one looks for one.
    until("they are not under way", || tools.actor.under_way() == limits::MAX_PARALLEL_INSTANCES);
    let (last, _) = begin(tools, r#"{"how": "nothing"}"#);
    until("it does not wait", || tools.actor.waiting() == 1);
    (slow, last)
}

#[test]
fn there_is_no_instance_until_the_first_call() {
    let lab = Lab::new();
    for guest in [STATELESS, "tests/hostile-tools"] {
        let tools = Tools::new(lab.prepare(guest));
        assert_eq!((tools.actor.idle(), tools.feature.facts().memory.linear()), (0, 0), "{guest}");
        tools.goes_on();
        assert_eq!(tools.actor.idle(), 1, "{guest}");
    }
}

#[test]
fn a_tool_that_waits_delays_no_other_call() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    let (slow, _) = begin(&tools, r#"{"how": "wait"}"#);
    until("it is not under way", || tools.feature.facts().memory.linear() > 0);
    for _ in 0..10 {
        tools.goes_on();
    }
    assert!(!slow.is_finished());
    tools.feature.facts().revoke();
    assert!(end(&tools, slow).is_err());
}

#[test]
fn so_many_calls_are_made_at_once_and_the_next_one_waits_for_its_turn() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    let (slow, last) = crowd(&tools);
    assert!(!last.is_finished());
    // One that was cancelled and goes on all the same is stopped, and leaves its place.
    slow[0].1.cancel();
    assert_eq!(end(&tools, last).unwrap().result, "done");
    assert!(slow[1..].iter().all(|(call, _)| !call.is_finished()));
    tools.feature.facts().revoke();
}

#[test]
fn a_trap_in_one_call_leaves_the_others_alone() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    let (slow, _) = begin(&tools, r#"{"how": "wait", "ms": 1000}"#);
    until("it is not under way", || tools.feature.facts().memory.linear() > 0);
    assert!(tools.how("trap").unwrap_err().to_string().contains("unreachable"));
    tools.goes_on();
    assert_eq!(end(&tools, slow).unwrap().result, "waited");
    assert_eq!(tools.feature.facts().quarantine.recent(Instant::now()), 1);
}

#[test]
fn a_grant_that_is_taken_back_ends_all_calls_and_all_instances() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    let (slow, last) = crowd(&tools);
    tools.feature.facts().revoke();
    for call in slow.into_iter().map(|(call, _)| call).chain([last]) {
        let error = end(&tools, call).unwrap_err().to_string();
        assert!(error.contains("taken away"), "{error}");
    }
    until("an instance is still there", || tools.feature.facts().memory.linear() == 0);
}

#[test]
fn an_instance_that_idles_is_dropped_and_the_next_call_makes_one() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    let before = Instant::now();
    tools.goes_on();
    tools.actor.drop_idle(before + limits::IDLE_TIMEOUT);
    assert_eq!(tools.actor.idle(), 1, "it was used since");
    tools.actor.drop_idle(Instant::now() + limits::IDLE_TIMEOUT);
    assert_eq!((tools.actor.idle(), tools.feature.facts().memory.linear()), (0, 0));
    tools.goes_on();
    assert_eq!(tools.actor.idle(), 1);
}

#[test]
fn what_may_hold_something_in_memory_is_kept_and_called_one_at_a_time() {
    let lab = Lab::new();
    let tools = lab.tools();
    tools.look(r#"{"how": "remember", "what": "blue"}"#).unwrap();
    tools.actor.drop_idle(Instant::now() + limits::IDLE_TIMEOUT * 1000);
    assert_eq!(tools.how("recall").unwrap(), "\"blue\"");
    lab.stage.plays.lock().unwrap().push_back(crate::lab::Play::Hang);
    let (slow, _) = begin(&tools, r#"{"how": "fetch", "url": "https://granted.example/"}"#);
    until("it was never dialled", || !lab.stage.dialled.lock().unwrap().is_empty());
    let (next, _) = begin(&tools, r#"{"how": "nothing"}"#);
    until("the next one does not wait", || tools.actor.waiting() == 1);
    tools.feature.facts().revoke();
    assert!(end(&tools, slow).is_err() && end(&tools, next).is_err());
}

/// A tool whose calls have been short is called on the thread that brings the call. When it hangs all the same, that
/// thread goes on at the next tick, and the call in the lane until its budget is used up.
#[test]
fn a_tool_that_hangs_late_holds_up_the_thread_that_brings_the_call_for_a_moment() {
    let lab = Lab::new();
    let tools = Tools::new(lab.prepare(STATELESS));
    // A runtime of its own, as each door has one.
    let door = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |how: &str| {
        let (args, cancelled) = (format!(r#"{{"how": "{how}"}}"#), CancellationToken::new());
        let call = tools.actor.call(Caller::library(), Tier::ReadOnly, "look", args, cancelled, Arc::new(|_, _| {}));
        door.block_on(call)
    };
    let brought = || tools.actor.counters().brought.load(Ordering::Relaxed);
    until("its calls are never made by the thread that brings them", || {
        assert_eq!(call("nothing").unwrap().result, "done");
        brought() > 100
    });
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let before = worked();
    let error = call("loop").unwrap_err().to_string();
    let held_up = worked() - before;
    println!("the thread that brought the call was held up for {held_up:?} of processor time");
    assert!(error.contains("it ran longer than its 2000 ms"), "{error}");
    assert!(held_up < limits::CALL_BUDGET / 4, "{held_up:?}");
    let before = brought();
    assert_eq!(call("nothing").unwrap().result, "done");
    assert_eq!(brought(), before, "its next calls are made in the lane");
}
