//! What the list of tools costs whoever reads it: a model, before every conversation.

use serde_json::{Value, json};
use tiktoken_rs::o200k_base;

use crate::stage::Stage;

/// Tokens that the whole list may have.
const MOST: usize = 12_000;

// MCP-3: the whole list of tools, with all schemas, as `tools/list` answers it.
#[test]
fn the_list_of_tools_is_short() {
    let stage = Stage::new();
    let tokenizer = o200k_base().unwrap();
    let count = |value: &Value| tokenizer.encode_ordinary(&value.to_string()).len();
    let tools: Vec<Value> = stage
        .host
        .tools()
        .into_iter()
        .map(|view| {
            let tool = view.tool;
            json!({
                "name": tool.name,
                "description": tool.summary,
                "inputSchema": tool.input,
                "outputSchema": tool.output,
                "annotations": { "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false },
            })
        })
        .collect();
    let mut of_features = std::collections::BTreeMap::<String, usize>::new();
    for view in stage.host.tools() {
        let tool = tools.iter().find(|tool| tool["name"] == *view.tool.name).unwrap();
        *of_features.entry(format!("{:?}", view.feature)).or_default() += count(tool);
    }
    println!("{of_features:?}");
    let whole = count(&json!({ "tools": tools }));
    let mut largest: Vec<(usize, &str)> =
        tools.iter().map(|tool| (count(tool), tool["name"].as_str().unwrap())).collect();
    largest.sort_unstable();
    let largest: Vec<_> = largest.into_iter().rev().take(8).collect();
    println!("{} tools have {whole} tokens; the largest: {largest:?}", tools.len());
    assert!(whole < MOST, "{whole} tokens, of which {largest:?}");
}
