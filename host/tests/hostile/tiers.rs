//! Tiers: a tool has what its tier hands over, for the length of its call, and nothing else.

use conductor_host::feature::Package;
use conductor_host::feature::descriptor::Tier;
use conductor_host::feature::sandbox::control::ToolCall;
use std::path::Path;

use crate::lab::{Lab, bytes_with};

/// The check's words about hostile tools with another descriptor.
fn refused(changes: &[(&str, &str)]) -> String {
    let lab = Lab::new();
    let package = Package::from_bytes(Path::new("x.wasm"), bytes_with("tests/hostile-tools", changes)).unwrap();
    lab.sandbox.prepare(&package, lab.grants()).unwrap_err().to_string()
}

#[test]
fn a_planner_without_a_tier_for_it_does_not_link() {
    let error = refused(&[("tier = \"config-change\"", "tier = \"read-only\"")]);
    assert!(error.contains("imports conductor:feature/planning@0.1.0"), "{error}");
    assert!(error.contains("exports conductor:feature/config-change-tools@0.1.0, which its descriptor"), "{error}");
}

#[test]
fn hardware_without_a_tier_for_it_does_not_link() {
    let error = refused(&[("tier = \"hardware-io\"", "tier = \"stateful\"")]);
    assert!(error.contains("imports conductor:feature/hardware@0.1.0"), "{error}");
}

#[test]
fn controls_without_a_tier_for_it_do_not_link() {
    let error = refused(&[("tier = \"stateful\"", "tier=\"read-only\"")]);
    assert!(error.contains("imports conductor:feature/runtime-controls@0.1.0"), "{error}");
    assert!(error.contains("exports conductor:feature/stateful-tools@0.1.0, which its descriptor"), "{error}");
}

#[test]
fn what_another_tier_is_handed_can_not_be_made_up() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.how("steal").unwrap_err().to_string().contains("trapped"));
    assert!(tools.how("steal-controls").unwrap_err().to_string().contains("trapped"));
    assert!(lab.services.plans.waiting().unwrap().is_empty());
    assert!(lab.view.modes.lock().unwrap().is_empty());
    tools.goes_on();
}

#[test]
fn handles_that_were_kept_from_a_call_are_none_in_the_next() {
    let lab = Lab::new();
    let tools = lab.tools();
    for (tier, kept) in [(Tier::ConfigChange, "kept-planner"), (Tier::Stateful, "kept-controls")] {
        tools.call(tier, r#"{"how": "keep"}"#).unwrap();
        let error = tools.call(Tier::HardwareIo, &format!(r#"{{"how": "{kept}"}}"#)).unwrap_err().to_string();
        assert!(error.contains("trapped"), "{error}");
    }
    assert!(lab.services.plans.waiting().unwrap().is_empty());
    assert!(lab.view.modes.lock().unwrap().is_empty());
}

/// In an export that is handed nothing, so that no handle of the call under way has the number again.
#[test]
fn an_invocation_and_a_reader_that_were_kept_are_none_after_the_call() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-hooks");
    let ask = |before: &str| ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: "read-only".into(),
        args: format!(r#"{{"before": "{before}"}}"#),
    };
    feature.runtime().block_on(async {
        for kept in ["kept-invocation", "kept-reader"] {
            let mut instance = feature.instantiate_control().await.unwrap();
            let cancelled = tokio_util::sync::CancellationToken::new();
            let keep = instance.call_tool(
                Tier::ReadOnly,
                "hold",
                r#"{"how": "keep"}"#,
                &cancelled,
                std::sync::Arc::new(|_, _| {}),
            );
            keep.await.unwrap();
            let error = instance.before_call(&ask(kept)).await.unwrap_err().to_string();
            assert!(error.contains("trapped"), "{kept}: {error}");
        }
    });
}

#[test]
fn a_lent_handle_that_is_dropped_twice_traps() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.how("drop").unwrap_err().to_string().contains("trapped"));
    tools.goes_on();
}

#[test]
fn grants_that_are_taken_back_stop_what_is_left() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tools");
    feature.runtime().clone().block_on(async {
        let mut instance = feature.instantiate_control().await.unwrap();
        feature.facts().revoke();
        for (tier, name, args) in [
            (Tier::Stateful, "change", r#"{"how": "mode", "mode": "two"}"#),
            (Tier::ConfigChange, "propose", r#"{"how": "flood"}"#),
            (Tier::HardwareIo, "send", r#"{"how": "midi", "target": "synth"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "target", "target": "127.0.0.1:9"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "fetch", "url": "https://granted.example/"}"#),
        ] {
            let cancelled = tokio_util::sync::CancellationToken::new();
            let call = instance.call_tool(tier, name, args, &cancelled, std::sync::Arc::new(|_, _| {}));
            let error = call.await.unwrap_err().to_string();
            assert!(error.contains("the grant was revoked"), "{name} {args}: {error}");
        }
    });
    assert!(lab.view.modes.lock().unwrap().is_empty() && lab.view.midi.lock().unwrap().is_empty());
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}
