//! Tiers: a tool has what its tier hands over, for the length of its call, and nothing else.

use conductor_audit::caller::Caller;
use conductor_host::control::plan::risk::Level;
use conductor_package::descriptor::Tier;
use conductor_package::{Grants, Package};
use conductor_sandbox::control::ToolCall;
use serde_json::{Value, json};
use std::path::Path;

use crate::lab::{Lab, Tools, bytes_with, guest};

/// The check's words about hostile tools with another descriptor.
fn refused(changes: &[(&str, &str)]) -> String {
    let lab = Lab::new();
    let package = Package::from_bytes(Path::new("x.wasm"), bytes_with("tests/hostile-tools", changes)).unwrap();
    lab.sandbox.prepare(&package, lab.grants()).unwrap_err().to_string()
}

#[test]
fn a_planner_without_a_tier_for_it_does_not_link() {
    let error = refused(&[
        ("tier = \"config-change\"", "tier = \"read-only\""),
        // That one is handed a planner, too.
        ("tier = \"privileged\"", "tier = \"read-only\""),
    ]);
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
fn privileges_without_a_tier_for_them_do_not_link() {
    for tier in ["read-only", "stateful"] {
        let error = refused(&[("tier = \"privileged\"", &format!("tier=\"{tier}\""))]);
        assert!(error.contains("imports conductor:feature/privileges@0.1.0"), "{error}");
        assert!(error.contains("exports conductor:feature/privileged-tools@0.1.0, which its descriptor"), "{error}");
    }
}

#[test]
fn what_another_tier_is_handed_can_not_be_made_up() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.how("steal").unwrap_err().to_string().contains("trapped"));
    assert!(tools.how("steal-controls").unwrap_err().to_string().contains("trapped"));
    assert!(tools.how("steal-authority").unwrap_err().to_string().contains("trapped"));
    assert!(lab.view.plans.waiting().unwrap().is_empty());
    assert!(lab.view.modes.lock().unwrap().is_empty() && lab.view.performed.lock().unwrap().is_empty());
    tools.goes_on();
}

#[test]
fn handles_that_were_kept_from_a_call_are_none_in_the_next() {
    let lab = Lab::new();
    let tools = lab.tools();
    for (tier, kept) in
        [(Tier::ConfigChange, "kept-planner"), (Tier::Stateful, "kept-controls"), (Tier::Privileged, "kept-authority")]
    {
        tools.call(tier, r#"{"how": "keep"}"#).unwrap();
        let error = tools.call(Tier::HardwareIo, &format!(r#"{{"how": "{kept}"}}"#)).unwrap_err().to_string();
        assert!(error.contains("trapped"), "{error}");
    }
    assert!(lab.view.plans.waiting().unwrap().is_empty());
    assert!(lab.view.modes.lock().unwrap().is_empty() && lab.view.performed.lock().unwrap().is_empty());
}

/// In an export that is handed nothing, so that no handle of the call under way has the number again.
#[test]
fn an_invocation_and_a_reader_that_were_kept_are_none_after_the_call() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-hooks");
    let ask = |before: &str| ToolCall {
        tool: "look".into(),
        feature: "project:other".into(),
        tier: Tier::ReadOnly.into(),
        args: format!(r#"{{"before": "{before}"}}"#),
    };
    feature.runtime().block_on(async {
        for kept in ["kept-invocation", "kept-reader"] {
            let mut instance = feature.instantiate_control().await.unwrap();
            let cancelled = tokio_util::sync::CancellationToken::new();
            let keep = instance.call_tool(
                Caller::library(),
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
            (Tier::Stateful, "change", r#"{"how": "mute", "device": "pads"}"#),
            (Tier::HardwareIo, "send", r#"{"how": "probe", "target": "synth"}"#),
            (Tier::Privileged, "rule", r#"{"how": "perform", "action": "{}"}"#),
            (Tier::Privileged, "rule", r#"{"how": "plan"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "check"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "many-events"}"#),
            (Tier::ConfigChange, "propose", r#"{"how": "flood"}"#),
            (Tier::HardwareIo, "send", r#"{"how": "midi", "target": "synth"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "target", "target": "127.0.0.1:9"}"#),
            (Tier::ReadOnly, "look", r#"{"how": "fetch", "url": "https://granted.example/"}"#),
        ] {
            let cancelled = tokio_util::sync::CancellationToken::new();
            let call =
                instance.call_tool(Caller::library(), tier, name, args, &cancelled, std::sync::Arc::new(|_, _| {}));
            let error = call.await.unwrap_err().to_string();
            assert!(error.contains("the grant was revoked"), "{name} {args}: {error}");
        }
    });
    assert!(lab.view.modes.lock().unwrap().is_empty() && lab.view.midi.lock().unwrap().is_empty());
    assert!(lab.view.muted.lock().unwrap().is_empty() && lab.view.performed.lock().unwrap().is_empty());
    assert!(lab.view.plans.waiting().unwrap().is_empty());
    assert!(lab.stage.dialled.lock().unwrap().is_empty());
}

// A yes to a call is none to rewriting a device: that takes a grant that names it.
#[test]
fn sysex_goes_only_to_a_device_that_was_named_in_a_grant() {
    let lab = Lab::new();
    let send = |grants: Grants, how: &str, target: &str| {
        let tools = Tools::new(lab.sandbox.prepare(&guest("tests/hostile-tools"), grants).unwrap());
        tools.call(Tier::HardwareIo, &format!(r#"{{"how": "{how}", "target": "{target}"}}"#))
    };
    let granted = |outputs: &[&str], sysex| Grants {
        midi_out: outputs.iter().map(|output| (*output).to_owned()).collect(),
        sysex,
        ..lab.grants()
    };
    for how in ["sysex", "probe"] {
        for (grants, target) in [
            (granted(&[], false), "synth"),
            (granted(&["synth"], false), "synth"),
            (granted(&[], true), "synth"),
            (granted(&["synth"], true), "other"),
            // The descriptor does not ask for it.
            (granted(&["*"], true), "third"),
        ] {
            let error = send(grants, how, target).unwrap_err().to_string();
            assert!(error.contains("denied"), "{how} {target}: {error}");
        }
        assert!(lab.view.midi.lock().unwrap().is_empty());
        send(granted(&["synth"], true), how, "synth").unwrap();
        assert_eq!(lab.view.midi.lock().unwrap().drain(..).count(), 1);
    }
}

#[test]
fn a_privileged_plan_says_so() {
    let lab = Lab::new();
    lab.tools().call(Tier::Privileged, r#"{"how": "plan"}"#).unwrap();
    let [plan] = &lab.view.plans.waiting().unwrap()[..] else { panic!("one plan") };
    assert_eq!(plan.risk.level, Level::Privileged);
    assert!(plan.risk.notes.iter().any(|note| note.contains("a privileged tool proposes it")), "{:?}", plan.risk);
}

// What a tool says of plans decides nothing: the host knows which of them a call proposed.
#[test]
fn the_plans_of_a_call_are_those_that_it_proposed() {
    let lab = Lab::new();
    let tools = lab.tools();
    let call = |plans: usize, claim: &Value, fail: bool| {
        let args = json!({ "how": "claim", "plans": plans, "claim": claim, "fail": fail });
        tools.output(Caller::library(), Tier::ConfigChange, "claim", &args.to_string())
    };
    let waiting = || lab.view.plans.waiting().unwrap().into_iter().map(|plan| plan.id).collect::<Vec<_>>();
    let other = call(1, &json!("done"), false).unwrap().plans;
    assert_eq!((other.len(), &other), (1, &waiting()));
    for claim in [
        json!(null),
        json!("done"),
        json!({ "plan": other[0] }),
        json!({ "plan": "0".repeat(32) }),
        json!({ "plan": [other[0]], "plans": [other[0], "0"] }),
    ] {
        for plans in 0..3 {
            let output = call(plans, &claim, false).unwrap();
            let own = waiting().split_off(1);
            assert_eq!(own.len(), plans);
            assert_eq!((&output.result, &output.plans), (&claim, &own), "{plans} plans");
            own.iter().for_each(|plan| lab.view.plans.reject(plan).unwrap());
        }
    }
    let failed = call(1, &json!("done"), true).unwrap_err().to_string();
    assert!(failed.contains("no answer"), "{failed}");
    assert_eq!(waiting().len(), 2, "what it proposed before waits all the same");
    assert!(call(0, &json!("done"), false).unwrap().plans.is_empty(), "and is not the next call's");
}

#[test]
fn what_is_asked_of_a_reader_and_an_authority_is_bounded() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.refused(r#"{"how": "check", "size": 2000000}"#).contains("at most 1048576 are checked"));
    assert_eq!(tools.look(r#"{"how": "check", "size": 1000}"#).unwrap(), "0");
    assert!(tools.refused(r#"{"how": "explain", "device": "pads"}"#).contains("at most 1024 bytes"));
    assert_eq!(tools.how("many-events").unwrap(), "256");
    let large = tools.call(Tier::Privileged, r#"{"how": "large-action"}"#).unwrap_err().to_string();
    assert!(large.contains("at most 65536 are taken"), "{large}");
    let wrong = tools.call(Tier::Privileged, r#"{"how": "perform", "action": "{"}"#).unwrap_err().to_string();
    assert!(wrong.contains("the action is not JSON"), "{wrong}");
    assert!(lab.view.performed.lock().unwrap().is_empty());
    tools.goes_on();
}

// PLN-3: a person was shown what the arguments name, so that is what a call reaches.
#[test]
fn a_confirmed_call_reaches_what_its_arguments_name() {
    let lab = Lab::new();
    let tools = lab.tools();
    let denied = |args: &str| {
        let error = tools.call(Tier::HardwareIo, args).unwrap_err().to_string();
        assert!(error.contains("a person agreed to"), "{args}: {error}");
    };
    denied(r#"{"how": "midi-elsewhere", "target": "synth"}"#);
    denied(r#"{"how": "midi-elsewhere", "device": "synth"}"#);
    denied(r#"{"how": "midi-elsewhere", "target": "other", "bytes": "90 3C 01"}"#);
    denied(r#"{"how": "midi", "target": "synth", "message": [144, 61]}"#);
    assert!(lab.view.midi.lock().unwrap().is_empty());
    for args in [
        r#"{"how": "midi-elsewhere", "target": "other", "bytes": "90 3C 64"}"#,
        r#"{"how": "midi-elsewhere", "target": "other"}"#,
    ] {
        tools.call(Tier::HardwareIo, args).unwrap();
    }
    assert_eq!(lab.view.midi.lock().unwrap().len(), 2);
}

// A call of a tool that declares that it only proposes was not confirmed.
#[test]
fn a_tool_that_proposes_performs_nothing() {
    let lab = Lab::new();
    let said = |tier: &str| format!("tier = \"{tier}\"\nsummary = \"Does what `how` says.\"");
    let says = |tier: &str| format!("tier = \"{tier}\"\nproposes = true\nsummary = \"Tool.\"");
    let proposes = [(&said("privileged")[..], &says("privileged")[..])];
    let bytes = bytes_with("tests/hostile-tools", &proposes);
    let package = Package::from_bytes(Path::new("x.wasm"), bytes).unwrap();
    let tools = Tools::new(lab.sandbox.prepare(&package, lab.grants()).unwrap());
    let perform = r#"{"how": "perform", "action": "{}"}"#;
    let error = tools.call(Tier::Privileged, perform).unwrap_err().to_string();
    assert!(error.contains("denied") && error.contains("only proposes"), "{error}");
    assert!(lab.view.performed.lock().unwrap().is_empty());
    tools.call(Tier::Privileged, r#"{"how": "plan"}"#).unwrap();
    let confirmed = lab.tools();
    confirmed.call(Tier::Privileged, perform).unwrap();
    assert_eq!(lab.view.performed.lock().unwrap().len(), 1);

    let stateful = bytes_with("tests/hostile-tools", &[(&said("stateful"), &says("stateful"))]);
    let error = Package::from_bytes(Path::new("x.wasm"), stateful).unwrap_err().to_string();
    assert!(error.contains("`proposes`"), "{error}");
}
