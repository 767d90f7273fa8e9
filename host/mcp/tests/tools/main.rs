//! Every tool of the bundled features, through a host with simulated ports: that it does what it is for, that it
//! refuses what it should, and that it reaches no further than its tier.
//!
//! [`table`] has an entry for each. A tool without one fails the test.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod bindings;
mod budget;
mod changed;
mod learning;
mod library;
mod pages;
mod rehearsal;
mod schemas;
mod stage;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use conductor_host::control::plan::risk::PLANNABLE;
use conductor_package::descriptor::Tier;
use serde_json::{Value, json};
use stage::Stage;

/// The tools that agents can list, by tier.
const PROMISED: &[(Tier, &str)] = &[
    (
        Tier::ReadOnly,
        "get_status list_devices get_config get_modes list_mappings get_mapping list_profiles get_settings \
         list_features feature_info get_captured_events scan_ports list_discovered_ports list_device_bindings \
         get_binding_health validate_config explain_event list_plans fingerprint \
         search_devices get_device_profile",
    ),
    (
        Tier::Stateful,
        "start_midi_learn stop_midi_learn start_learn stop_learn set_device_enabled switch_mode suggest_binding \
         connect_device disconnect_device",
    ),
    (
        Tier::ConfigChange,
        "create_mapping update_mapping delete_mapping create_mode delete_mode create_binding create_device_identity \
         update_device_identity delete_device_identity create_profile update_profile update_settings batch_changes \
         suggest_setup",
    ),
    (Tier::HardwareIo, "send_sysex send_midi device_reset probe_device_identity"),
    (Tier::Privileged, "delete_profile reset_config preview_action enable_feature disable_feature"),
];

// MCP-2: every tool is there, with its tier.
#[test]
fn every_promised_tool_is_there_with_its_tier() {
    let stage = Stage::new();
    let tools: BTreeMap<String, Tier> =
        stage.host.tools().into_iter().map(|view| (view.tool.name, view.tool.tier)).collect();
    for (tier, names) in PROMISED {
        for name in names.split_whitespace() {
            assert_eq!(tools.get(&format!("conductor_{name}")), Some(tier), "{name}");
        }
    }
}

#[test]
fn a_name_without_its_prefix_is_found() {
    let refused = Stage::new().call("search_devices", json!({})).unwrap_err();
    assert!(refused.contains("did you mean \"conductor_search_devices\"?"), "{refused}");
}

#[test]
fn every_tool_has_an_entry_and_every_entry_a_tool() {
    let stage = Stage::new();
    let tools: BTreeSet<String> = stage.host.tools().into_iter().map(|view| view.tool.name).collect();
    let entries: BTreeSet<String> = table::cases().into_iter().map(|case| case.tool.to_owned()).collect();
    let missing: Vec<_> = tools.difference(&entries).collect();
    assert!(missing.is_empty(), "no entry in tests/tools/table.rs for {missing:?}");
    let gone: Vec<_> = entries.difference(&tools).collect();
    assert!(gone.is_empty(), "entries without a tool: {gone:?}");
}

// MCP-2, FEA-5, PLN-2, PLN-3: each does what it is for; what its tier may not do, it does not; what a person has to
// agree to waits for that; and what is proposed can be applied as it is, and taken back.
#[test]
fn every_tool_does_what_it_is_for_and_no_more() {
    for case in table::cases() {
        let stage = Stage::new();
        (case.before)(&stage);
        let tier = stage.tier(case.tool);
        let (config, mode) = (stage.host.config(), stage.mode());
        // What was sent to get there is none of the tool's.
        stage.sent();
        // What only proposes, a person agrees to when they see the plan.
        if tier.is_confirmed() && !stage.proposes(case.tool) {
            let error = stage.call_unconfirmed(case.tool, case.args.clone()).unwrap_err();
            assert!(error.contains("a person has to agree to each call"), "{}: {error}", case.tool);
            assert!(stage.plans().is_empty() && stage.sent().is_empty(), "{} did it all the same", case.tool);
        }
        let called = match stage.proposes(case.tool) {
            true => stage.call_unconfirmed(case.tool, case.args.clone()),
            false => stage.call(case.tool, case.args.clone()),
        };
        let result = called.unwrap_or_else(|error| panic!("{}: {error}", case.tool));
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (case.check)(&stage, &result))) {
            eprintln!("{} answered {result:#}", case.tool);
            std::panic::resume_unwind(panic);
        }
        assert_eq!(stage.host.config(), config, "{} changed the configuration", case.tool);
        if matches!(tier, Tier::ReadOnly | Tier::ConfigChange) {
            assert_eq!(stage.mode(), mode, "{}", case.tool);
        }
        if !tier.is_confirmed() {
            assert!(stage.sent().is_empty(), "{} sent something", case.tool);
        }
        let plans = stage.plans();
        let proposes = match tier {
            Tier::ReadOnly | Tier::Stateful | Tier::HardwareIo => false,
            Tier::ConfigChange => true,
            Tier::Privileged => case.tool != "conductor_preview_action",
        };
        assert_eq!(stage.proposes(case.tool), proposes && tier == Tier::Privileged, "{}", case.tool);
        assert_eq!(plans.len(), usize::from(proposes), "{}", case.tool);
        if let Some(plan) = plans.first() {
            assert_eq!(plan["risk"]["level"] == "privileged", tier == Tier::Privileged, "{}: {plan:#}", case.tool);
            assert_eq!(plan["id"], result["plan"]);
            stage.apply(plan["id"].as_str().unwrap()).unwrap_or_else(|error| panic!("{}: {error}", case.tool));
            assert_ne!(stage.host.config(), config, "{} changed nothing", case.tool);
            stage.undo();
            assert_eq!(stage.host.config(), config, "{}", case.tool);
        }
        // A host that is only dropped goes on, and so many at once are more than the memory that can be addressed.
        stage.host.stop();
    }
}

#[test]
fn every_tool_refuses_bad_arguments() {
    let stage = Stage::new();
    for case in table::cases() {
        let mut unknown = case.args.clone();
        unknown["nonsense"] = json!(1);
        let error = stage.call(case.tool, unknown).expect_err(case.tool);
        assert!(error.contains("unknown field `nonsense`"), "{}: {error}", case.tool);
        for (args, expected) in &case.wrong {
            let error =
                stage.call(case.tool, args.clone()).err().unwrap_or_else(|| panic!("{} took {args}", case.tool));
            assert!(error.contains(expected), "{} {args}: {error}", case.tool);
        }
    }
    assert!(stage.plans().is_empty() && stage.sent().is_empty(), "what is refused does nothing");
}

/// An entry of the table.
pub struct Case {
    /// The tool.
    pub tool: &'static str,
    /// Arguments with which it succeeds.
    pub args: Value,
    /// What has to be so first.
    pub before: fn(&Stage),
    /// Whether its result, and what came of it, are right.
    pub check: fn(&Stage, &Value),
    /// Arguments with which it does not succeed, and words of the refusal.
    pub wrong: Vec<(Value, &'static str)>,
}

// MCP-2: a reset takes the show away and nothing that a person alone decides, so that its plan is never denied.
#[test]
fn a_reset_can_be_proposed_whatever_a_person_has_decided() {
    let stage = Stage::new();
    let decided = "[api]\nhttp_port = 0\n[mcp]\nelicitation = 'all'\n\
                   [models.m]\nprovider = 'x'\nmodel = 'm'\nsecret = 'k'\n[tools.agents]\nstateful = 'ask'\n";
    let (before, after) = (stage.host.config(), "[tools.per_minute]");
    let text = before.replace(after, &format!("{decided}{after}"));
    std::fs::write(stage.file(), &text).unwrap();
    stage.host.reload(&text, "config.toml").unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    stage.call_unconfirmed("conductor_reset_config", json!({})).unwrap();
    let plans = stage.plans();
    let changes = plans[0]["changes"].as_array().unwrap().iter();
    let removed: BTreeSet<&str> = changes.map(|change| change["path"][0].as_str().unwrap()).collect();
    // All that plans may change at all goes, but for what a person has to name: features and models.
    let table: toml::Table = toml::from_str(&text).unwrap();
    let show = PLANNABLE.into_iter().filter(|table| !["features", "models"].contains(table));
    let there: BTreeSet<&str> = show.filter(|name| table.contains_key(*name)).collect();
    assert!(there.len() >= 4, "{there:?}");
    assert_eq!(removed, there);
}
