//! Tools as MCP describes them: schemas, titles for people, annotations by tier (read-only, destructive, idempotent).

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use conductor_host::control::gate::ToolView;
use conductor_package::descriptor::Tier;

/// A tool as MCP describes it.
pub(super) fn tool(view: ToolView) -> Tool {
    let tool = view.tool;
    // A plan destroys nothing until a person agrees.
    let reaches_out = tool.tier.is_confirmed() && !tool.proposes;
    let annotations =
        ToolAnnotations::new().read_only(tool.tier == Tier::ReadOnly).destructive(reaches_out).open_world(reaches_out);
    let described =
        Tool::new(Cow::Owned(tool.name), tool.summary, schema(tool.input.value())).with_annotations(annotations);
    titled(match tool.output {
        Some(output) => described.with_raw_output_schema(schema(output.value())),
        None => described,
    })
}

/// With the title that follows from its name.
pub(super) fn titled(mut tool: Tool) -> Tool {
    tool.title = Some(title(&tool.name));
    tool
}

/// A name for people: `Create mapping` for `conductor_create_mapping`.
pub(super) fn title(name: &str) -> String {
    let words = name.trim_start_matches("conductor_").replace(['_', '-'], " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Registrars take schemas that are objects only.
pub(super) fn schema(schema: Value) -> Arc<JsonObject> {
    Arc::new(match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    })
}
