//! What the list of tools costs a model that reads it before every conversation.

use std::collections::BTreeSet;

use conductor_config::ToolList;
use conductor_host::control::gate::ToolView;
use conductor_mcp as mcp;
use serde_json::json;
use tiktoken_rs::o200k_base;

use crate::stage::Stage;

/// Tokens that the whole list may have.
const MAX: usize = 12_000;

/// Two third-party features, with ten tools each that are as long as the bundled ones are.
fn third_party(bundled: &[ToolView]) -> impl Iterator<Item = ToolView> + '_ {
    ["plugin:0123456789abcdef:stage-lights", "project:lyrics-for-singers"].into_iter().flat_map(move |feature| {
        (0..10).map(move |number| {
            let mut view = bundled[number].clone();
            feature.clone_into(&mut view.feature);
            view.tool.name = format!("{}_tool_with_a_name_{number}", feature.rsplit(':').next().unwrap_or_default());
            view
        })
    })
}

// MCP-3: the list of tools, with all schemas, as `tools/list` answers it.
#[test]
fn the_list_of_tools_is_short() {
    let stage = Stage::new();
    let tokenizer = o200k_base().unwrap();
    let bundled = stage.host.tools();
    let all: Vec<ToolView> = bundled.iter().cloned().chain(third_party(&bundled)).collect();
    let count = |list: ToolList, opened: &BTreeSet<String>| {
        let tools = mcp::listed(all.clone(), list, opened);
        let count = |value: &serde_json::Value| tokenizer.encode_ordinary(&value.to_string()).len();
        let mut largest: Vec<(usize, &str)> = tools.iter().map(|tool| (count(&json!(tool)), &*tool.name)).collect();
        largest.sort_unstable();
        let largest: Vec<_> = largest.iter().rev().take(6).collect();
        let tokens = count(&json!({ "tools": tools }));
        println!("{list:?}, {opened:?}: {} tools, {tokens} tokens; the largest: {largest:?}", tools.len());
        tokens
    };
    assert!(count(ToolList::Groups, &BTreeSet::new()) < MAX);
    // One group more at a time, as an agent does that needs it.
    let features: BTreeSet<String> = all.iter().map(|view| view.feature.clone()).collect();
    for feature in features {
        count(ToolList::Groups, &BTreeSet::from([feature]));
    }
    count(ToolList::All, &BTreeSet::new());
}

// MCP-3: what mappings can be made of is said once, also where several tools take it.
#[test]
fn the_list_of_tools_defines_actions_and_conditions_once() {
    let stage = Stage::new();
    for list in [ToolList::Groups, ToolList::All] {
        let tools = mcp::listed(stage.host.tools(), list, &BTreeSet::new());
        let text = json!({ "tools": tools }).to_string();
        println!("{list:?}: {} characters", text.len());
        assert_eq!(text.matches("\"CcValueInRange\"").count(), 1, "{list:?}");
        let schema = |name: &str| json!(tools.iter().find(|tool| tool.name == name).unwrap().input_schema);
        let (create, update) = (schema("conductor_create_mapping"), schema("conductor_update_mapping"));
        assert!(create["$defs"]["Trigger"]["properties"]["velocity_range"].is_object(), "{create:#}");
        for what in ["Trigger", "Action", "Condition"] {
            assert_eq!(update["$defs"][what]["description"], "As in conductor_create_mapping.", "{update:#}");
        }
    }
}

// MCP-2: tools that are not listed from the start are in a group that is named there.
#[test]
fn every_tool_is_listed_or_in_a_group_that_is_named() {
    let stage = Stage::new();
    let bundled = stage.host.tools();
    let all: Vec<ToolView> = bundled.iter().cloned().chain(third_party(&bundled)).collect();
    let listed = mcp::listed(all.clone(), ToolList::Groups, &BTreeSet::new());
    let opener = listed.iter().find(|tool| tool.name == mcp::OPEN_TOOLS).unwrap();
    let description = opener.description.as_deref().unwrap();
    for ToolView { feature, tool } in all {
        let is_listed = listed.iter().any(|listed| *listed.name == tool.name);
        let is_named = || description.contains(tool.name.trim_start_matches("conductor_"));
        assert!(
            is_listed || (description.contains(&feature) && is_named()),
            "{} of {feature}: {description}",
            tool.name
        );
    }
}
