//! The tool by which an agent sees what one event would send, with nothing going out. It is the host's own: it makes all
//! features anew, beside those in force, which is more than a feature's call may use.

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::described::{schema, titled};
use super::{AnswerError, Server, own_result};
use conductor_host::host::Host;

/// The tool's name.
pub const SHOW_EFFECTS: &str = "conductor_show_effects";

/// What is asked for, as `conductor_explain_event` has it.
struct EffectsArgs {
    device: String,
    event: String,
    mode: Option<String>,
}

impl EffectsArgs {
    /// `None` if something is missing, no text, or not known.
    fn of(mut args: JsonObject) -> Option<Self> {
        let mut text = |key: &str| match args.remove(key) {
            Some(Value::String(text)) => Some(Some(text)),
            Some(Value::Null) | None => Some(None),
            Some(_) => None,
        };
        let (device, event, mode) = (text("device")??, text("event")??, text("mode")?);
        args.is_empty().then_some(Self { device, event, mode })
    }
}

/// The tool as MCP describes it.
pub(super) fn tool() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "device": { "type": "string", "description": "An alias, or a port's name." },
            "event": { "type": "string", "description": "As in conductor_explain_event." },
            "mode": { "type": "string", "description": "Default: the active one." },
        },
        "required": ["device", "event"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": { "effects": { "type": "array", "items": { "type": "string" } } },
        "required": ["effects"],
    });
    let description = "What an event would send (OSC, MIDI, keys, programs), with nothing going out.";
    let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let tool = Tool::new(SHOW_EFFECTS, description, schema(input)).with_annotations(annotations);
    titled(tool.with_raw_output_schema(schema(output)))
}

/// Answers a call of the tool.
pub(super) async fn show(
    server: &Server,
    host: &Arc<Host>,
    context: &RequestContext<RoleServer>,
    args: JsonObject,
) -> CallToolResult {
    let caller = server.caller(context);
    let answer = async {
        let Some(EffectsArgs { device, event, mode }) = EffectsArgs::of(args) else {
            let why = "`device`, `event` and perhaps `mode` are wanted, as text, and nothing else";
            return Err(AnswerError::wrong(why));
        };
        let (host, who) = (Arc::clone(host), caller.clone());
        // It compiles rules and makes instances.
        let effects =
            move || host.effects_of(&who, &device, &event, mode.as_deref()).map_err(|error| error.to_string());
        let found = server.jobs.read(effects).await.map_err(|error| AnswerError::wrong(error.to_string()))?;
        found.map(|effects| json!({ "effects": effects })).map_err(AnswerError::wrong)
    };
    own_result(host.own_tool(&caller, SHOW_EFFECTS, answer).await)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_text_and_nothing_else() {
        let asked = |args: Value| EffectsArgs::of(serde_json::from_value(args).unwrap());
        let whole = asked(json!({ "device": "pads", "event": "clock", "mode": "Mix" })).unwrap();
        assert_eq!(
            (whole.device.as_str(), whole.event.as_str(), whole.mode.as_deref()),
            ("pads", "clock", Some("Mix"))
        );
        assert!(asked(json!({ "device": "pads", "event": "clock" })).is_some_and(|asked| asked.mode.is_none()));
        for wrong in [
            json!({ "device": "pads" }),
            json!({ "device": "pads", "event": 1 }),
            json!({ "device": "pads", "event": "clock", "mode": 1 }),
            json!({ "device": "pads", "event": "clock", "more": "x" }),
        ] {
            assert!(asked(wrong.clone()).is_none(), "{wrong}");
        }
    }
}
