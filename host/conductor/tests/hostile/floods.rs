//! Floods: what a guest says, sends, asks and plans is bounded, and what is left out is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use conductor_audit::caller::Caller;
use conductor_observer::sink_message::SinkMessage;
use conductor_package::descriptor::Tier;
use conductor_sandbox::bindings::Event;
use conductor_sandbox::control::Change;
use conductor_sandbox::limits;
use conductor_services::http::account;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, Tools};

#[track_caller]
fn bounded(lab: &Lab, began: Instant, longest: usize) {
    check(&lab.said.try_iter().collect::<Vec<_>>(), lab, began, longest);
}

#[track_caller]
fn check(said: &[SinkMessage], lab: &Lab, began: Instant, longest: usize) {
    let most = began.elapsed().as_secs_f64().mul_add(limits::SINK_RATE, limits::SINK_BURST) as usize + 1;
    assert!(said.len() <= most, "{} of at most {most}", said.len());
    assert_eq!(said.len() as u64 + lab.sinks.dropped(), 10_000, "the rest is counted");
    for message in said {
        assert!(message.text.len() <= longest + '…'.len_utf8(), "{}", message.text.len());
        assert!(!message.text.chars().any(char::is_control));
    }
}

#[test]
fn of_diagnostics() {
    let lab = Lab::new();
    let (tools, began) = (lab.tools(), Instant::now());
    tools.how("diagnostics").unwrap();
    bounded(&lab, began, 1024);
}

#[test]
fn of_alerts() {
    let lab = Lab::new();
    let (tools, began) = (lab.tools(), Instant::now());
    tools.how("alerts").unwrap();
    bounded(&lab, began, 256);
}

#[test]
fn of_notifications() {
    let lab = Lab::new();
    let (tools, began) = (lab.tools(), Instant::now());
    tools.how("notifications").unwrap();
    let left_out = lab.sinks.left_out();
    let (feature, count) = left_out.first_key_value().unwrap();
    assert_eq!((left_out.len(), feature.as_str()), (1, "project:hostile-tools"));
    // What each message counts was left out before it, and this since the last one.
    let said: Vec<SinkMessage> = lab.said.try_iter().collect();
    assert_eq!(said.iter().map(|message| message.left_out).sum::<u64>() + count, lab.sinks.dropped());
    assert!(said.iter().all(|message| message.feature == *feature), "under its own name");
    check(&said, &lab, began, 4096);
}

/// More instances are no way to say more.
#[test]
fn of_diagnostics_from_many_instances() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tools");
    let (many, began): (Vec<Tools>, _) = ((0..4).map(|_| Tools::new(feature.clone())).collect(), Instant::now());
    many.iter().for_each(|tools| drop(tools.how("diagnostics").unwrap()));
    let said = lab.said.try_iter().count();
    let most = began.elapsed().as_secs_f64().mul_add(limits::SINK_RATE, limits::SINK_BURST) as usize + 1;
    assert!(said <= most, "{said} of at most {most}");
    assert_eq!(said as u64 + lab.sinks.dropped(), 40_000, "the rest is counted");
}

#[test]
fn of_diagnostics_from_a_hook_on_changes() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-hooks");
    let began = Instant::now();
    feature.runtime().block_on(async {
        let mut hooks = feature.instantiate_control().await.unwrap();
        hooks.changed(&Change::Mode("flood".into())).await.unwrap();
    });
    bounded(&lab, began, 1024);
}

#[test]
fn of_diagnostics_from_a_hook_on_events() {
    let lab = Lab::new();
    let mut hook = lab.prepare("tests/hostile-hooks").instantiate().unwrap();
    let began = Instant::now();
    let event = Event { at: 0, device: 0, kind: 2, channel: 0, number: 3, position: 0, value: 0.0, unit: 0.0 };
    hook.events(&[event], 0).unwrap();
    bounded(&lab, began, 1024);
}

#[test]
fn of_progress() {
    let lab = Lab::new();
    let tools = lab.tools();
    let told = Arc::<AtomicU64>::default();
    let kept = Arc::clone(&told);
    let began = Instant::now();
    let progress = move |done: f32, text: String| {
        assert!((0.0..=1.0).contains(&done) && text.len() <= 256 + '…'.len_utf8());
        assert!(!text.chars().any(char::is_control));
        kept.fetch_add(1, Ordering::Relaxed);
    };
    let args = r#"{"how": "progress"}"#.to_owned();
    let call =
        tools.actor.call(Caller::library(), Tier::ReadOnly, "look", args, CancellationToken::new(), Arc::new(progress));
    tools.feature.runtime().block_on(call).unwrap();
    let most = began.elapsed().as_secs_f64().mul_add(limits::PROGRESS_RATE, limits::PROGRESS_RATE) as u64 + 1;
    assert!((1..=most).contains(&told.load(Ordering::Relaxed)), "{told:?} of at most {most}");
}

#[test]
fn of_datagrams_in_the_control_lane() {
    let lab = Lab::new();
    let tools = lab.tools();
    let began = Instant::now();
    let sent: u64 = tools.how("datagrams").unwrap().parse().unwrap();
    let most = began.elapsed().as_secs_f64().mul_add(limits::DATAGRAM_RATE, limits::DATAGRAM_BURST) as u64 + 1;
    assert!(sent <= most && sent < 100_000, "{sent} of at most {most}");
    assert_eq!(lab.datagrams.floods.load(Ordering::Relaxed), sent);
}

#[test]
fn of_datagrams_from_many_instances() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tools");
    let (many, began): (Vec<Tools>, _) = ((0..4).map(|_| Tools::new(feature.clone())).collect(), Instant::now());
    let sent: u64 = many.iter().map(|tools| tools.how("datagrams").unwrap().parse::<u64>().unwrap()).sum();
    let most = began.elapsed().as_secs_f64().mul_add(limits::DATAGRAM_RATE, limits::DATAGRAM_BURST) as u64 + 1;
    assert!(sent <= most, "{sent} of at most {most}");
}

#[test]
fn of_datagrams_in_the_real_time_lane() {
    let lab = Lab::new();
    let mut hostile = lab.prepare("tests/hostile").instantiate().unwrap();
    hostile.prepare("Misbehave", r#"{"how": "target-local"}"#).unwrap();
    let id = hostile.prepare("Misbehave", r#"{"how": "datagrams"}"#).unwrap();
    let event = Event { at: 0, device: 0, kind: 2, channel: 0, number: 3, position: 0, value: 0.0, unit: 0.0 };
    let began = Instant::now();
    assert!(hostile.perform(id, event).is_err());
    let most = began.elapsed().as_secs_f64().mul_add(limits::DATAGRAM_RATE, limits::DATAGRAM_BURST) as u64 + 1;
    let sent = lab.datagrams.floods.load(Ordering::Relaxed);
    assert!(sent >= 1 && sent <= most && sent < 20_000, "{sent} of at most {most}");
}

#[test]
fn of_requests() {
    let lab = Lab::new();
    let tools = lab.tools();
    let began = Instant::now();
    let passed: usize = tools.how("requests").unwrap().parse().unwrap();
    let most = began.elapsed().as_secs_f64().mul_add(account::RATE, account::BURST) as usize + 1;
    assert!(passed <= most && passed < 200, "{passed} of at most {most}");
    assert_eq!(lab.stage.dialled.lock().unwrap().len(), passed);
}

#[test]
fn of_plans() {
    let lab = Lab::new();
    let tools = lab.tools();
    let propose = |how: &str| tools.call(Tier::ConfigChange, &format!(r#"{{"how": "{how}"}}"#));
    let error = propose("many-changes").unwrap_err().to_string();
    assert!(error.contains("a plan has 1 to 256 changes, not 10000"), "{error}");
    let error = propose("large-changes").unwrap_err().to_string();
    assert!(error.contains("a plan has at most 262144"), "{error}");
    let error = propose("deep-change").unwrap_err().to_string();
    assert!(error.contains("is not JSON"), "{error}");
    let error = propose("flood").unwrap_err().to_string();
    assert!(error.contains("had made are waiting already"), "{error}");
    assert_eq!(lab.view.plans.waiting().unwrap().len(), 16);
    tools.goes_on();
}
