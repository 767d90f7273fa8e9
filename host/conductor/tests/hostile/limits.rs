//! Memory, stack, tables, handles, results: each limit stops the guest and is named.

use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_package::descriptor::Tier;
use conductor_sandbox::bindings::Event;
use conductor_sandbox::limits;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, guest_with};
use conductor_sandbox::actor::{Actor, MAILBOX_CAPACITY};

fn event() -> Event {
    Event { at: 0, device: 0, kind: 2, channel: 0, number: 36, position: 0, value: 100.0, unit: 0.5 }
}

#[test]
fn stack_and_memory_in_the_real_time_lane() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile");
    for (how, why) in [
        ("recurse", "its stack of 512 KiB"),
        ("recurse-beyond", "its stack of 512 KiB"),
        ("memory", "its memory limit of 64 MiB"),
    ] {
        let mut hostile = feature.instantiate().unwrap();
        let id = hostile.prepare("Misbehave", &format!(r#"{{"how": "{how}"}}"#)).unwrap();
        let error = hostile.perform(id, event()).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
    }
}

#[test]
fn stack_and_memory_in_the_control_lane() {
    let lab = Lab::new();
    let tools = lab.tools();
    for (how, why) in [
        ("recurse", "its stack of 512 KiB"),
        ("recurse-beyond", "its stack of 512 KiB"),
        ("memory", "its memory limit of 64 MiB"),
        ("trap", "`unreachable` instruction executed"),
        ("targets", "its limit of 1024 handles"),
    ] {
        let error = tools.how(how).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
        tools.goes_on();
        tools.feature.facts().quarantine.lift();
    }
}

#[test]
fn stack_and_handles_in_install() {
    let lab = Lab::new();
    for (how, why) in [
        ("recurse", "its stack of 512 KiB"),
        ("handles", "its limit of 1024 handles"),
        ("trap", "`unreachable` instruction executed"),
    ] {
        let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet  ", &format!("INSTALL:{how}"))]);
        let feature = lab.sandbox.prepare(&package, lab.grants()).unwrap();
        let error = Actor::start(feature).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
    }
}

#[test]
fn a_result_is_at_most_256_kib() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.how("large").unwrap_err().to_string().contains("at most 262144 are taken"));
    // Far beyond it, nothing is copied at all.
    assert!(tools.how("huge").unwrap_err().to_string().contains("it handed over too much at once"));
    tools.goes_on();
}

/// Lists and texts are measured before they are copied, in every call of the host.
#[test]
fn what_is_handed_over_at_once_is_bounded() {
    let lab = Lab::new();
    let tools = lab.tools();
    for (tier, how) in [
        (Tier::ReadOnly, "many-headers"),
        (Tier::ReadOnly, "say-huge"),
        (Tier::ReadOnly, "write-huge"),
        (Tier::ReadOnly, "check-huge"),
        (Tier::ConfigChange, "million-changes"),
    ] {
        let error = tools.call(tier, &format!(r#"{{"how": "{how}"}}"#)).unwrap_err().to_string();
        assert!(error.contains("it handed over too much at once"), "{how}: {error}");
        tools.feature.facts().quarantine.lift();
        tools.goes_on();
    }
    assert!(lab.stage.dialled.lock().unwrap().is_empty() && lab.said.try_iter().count() == 0);
    assert!(std::fs::read_dir(lab.work.path()).unwrap().next().is_none());

    let mut hostile = lab.prepare("tests/hostile").instantiate().unwrap();
    let id = hostile.prepare("Misbehave", r#"{"how": "flood-huge"}"#).unwrap();
    let error = hostile.perform(id, event()).unwrap_err().to_string();
    assert!(error.contains("it handed over too much at once") || error.contains("ran longer"), "{error}");
    assert_eq!(lab.said.try_iter().count(), 0);
}

#[test]
fn randomness_is_at_most_1024_bytes_a_call() {
    let lab = Lab::new();
    let tools = lab.tools();
    match tools.how("random") {
        Ok(count) => assert!(count.parse::<usize>().unwrap() <= 1024, "{count}"),
        Err(error) => assert!(error.to_string().contains("trapped"), "{error}"),
    }
    tools.goes_on();
}

#[test]
fn a_tool_that_ignores_that_it_is_cancelled_is_stopped() {
    let lab = Lab::new();
    let tools = lab.tools();
    lab.stage.plays.lock().unwrap().push_back(crate::lab::Play::Hang);
    let cancelled = CancellationToken::new();
    let args = r#"{"how": "fetch", "url": "https://granted.example/"}"#.to_owned();
    let actor = tools.actor.clone();
    let call =
        actor.call(Caller::library(), Tier::ReadOnly, "look", args, cancelled.clone(), std::sync::Arc::new(|_, _| {}));
    let dialled = lab.stage.dialled.clone();
    let began = Instant::now();
    let answer = tools.feature.runtime().block_on(async {
        let cancel = async {
            while dialled.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            cancelled.cancel();
        };
        tokio::join!(call, cancel).0
    });
    assert!(answer.unwrap_err().to_string().contains("it was cancelled and did not end"));
    assert!(began.elapsed() < limits::CANCEL_TIMEOUT + Duration::from_secs(10), "{:?}", began.elapsed());
    tools.goes_on();
}

#[test]
fn a_mailbox_that_overflows_refuses() {
    let lab = Lab::new();
    let tools = lab.tools();
    lab.stage.plays.lock().unwrap().push_back(crate::lab::Play::Hang);
    let cancelled = CancellationToken::new();
    tools.feature.runtime().block_on(async {
        let call = |how: &str| {
            let args = format!(r#"{{"how": "{how}", "url": "https://granted.example/"}}"#);
            let (actor, cancelled) = (tools.actor.clone(), cancelled.clone());
            tokio::spawn(async move {
                actor
                    .call(Caller::library(), Tier::ReadOnly, "look", args, cancelled, std::sync::Arc::new(|_, _| {}))
                    .await
            })
        };
        let busy = call("fetch");
        while lab.stage.dialled.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let waiting: Vec<_> = (0..MAILBOX_CAPACITY + 10).map(|_| call("nothing")).collect();
        let mut refused = 0;
        cancelled.cancel();
        for one in waiting {
            if let Err(error) = one.await.unwrap() {
                assert!(error.to_string().contains("calls are waiting already"), "{error}");
                refused += 1;
            }
        }
        assert_eq!(refused, 10);
        assert!(busy.await.unwrap().is_err());
    });
    tools.goes_on();
}

#[test]
fn revocation_ends_a_call_that_waits() {
    let lab = Lab::new();
    let tools = lab.tools();
    lab.stage.plays.lock().unwrap().push_back(crate::lab::Play::Hang);
    let (dialled, facts) = (lab.stage.dialled.clone(), tools.feature.facts().clone());
    let revoker = std::thread::spawn(move || {
        crate::lab::until("it was never dialled", || !dialled.lock().unwrap().is_empty());
        facts.revoke();
        Instant::now()
    });
    let error = tools.refused(r#"{"how": "fetch", "url": "https://granted.example/"}"#);
    let took = Instant::now() - revoker.join().unwrap();
    assert!(error.contains("taken away") || error.contains("revoked"), "{error}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Nothing of it runs any more.
    assert!(tools.refused("{}").contains("taken away"));
}

#[test]
fn memory_of_all_instances_of_a_feature_together() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tools");
    let tools: Vec<crate::lab::Tools> = (0..8).map(|_| crate::lab::Tools::new(feature.clone())).collect();
    let came: Vec<_> = tools.iter().map(|tools| tools.how("hoard")).collect();
    let full = came.iter().filter(|came| came.is_ok()).count();
    assert!((2..=5).contains(&full), "{came:?}");
    let error = came.into_iter().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("the limit of 256 MiB for all its instances"), "{error}");
}

/// Handles that are lent for a call go with it, however many calls there are.
#[test]
fn calls_leave_no_handles_behind() {
    let lab = Lab::new();
    let tools = lab.tools();
    for _ in 0..600 {
        tools.goes_on();
    }
}
