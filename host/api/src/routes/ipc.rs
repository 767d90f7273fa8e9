//! The commands of the daemon that came before, at one path, for shells that speak them.
//!
//! Each is what a route of its own does as well; those that knew of one device only warn in the answer and in the
//! log, and will go.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::config::Candidate;
use super::tools::called;
use super::{change, look};
use crate::door::Client;
use crate::error::{Body, Code, ErrorResponse, from_object};
use crate::route::{Route, post};
use crate::scope::{By, Scope};
use conductor_audit::caller::Caller;
use conductor_config::Severity;
use conductor_host::control::gate::ToolRequest;
use conductor_host::host::Host;
use conductor_ports::status::DiscoveredPort;
use conductor_ports::{Direction, Protocol};

/// The device of a configuration that has one only.
const MAIN: &str = "main";
/// The tools that the commands of learn ask for.
const START_LEARN: &str = "conductor_start_midi_learn";
const STOP_LEARN: &str = "conductor_stop_midi_learn";
const CAPTURED: &str = "conductor_get_captured_events";

pub(super) fn routes() -> Vec<Route> {
    vec![
        post::<Answer>("/v1/ipc", "ipc", "A command of the daemon that came before; kept for its shells")
            .scope(Scope::Read)
            .body::<Command>()
            .refuses(&[403, 404, 409, 410, 422, 423, 429, 503])
            .by(ipc),
    ]
}

/// A command: its name, and what it takes.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(tag = "command", content = "args", deny_unknown_fields)]
#[schemars(transform = may_be_left_out)]
enum Command {
    /// Whether the host answers.
    Ping,
    /// How the host is.
    Status,
    /// Reads the configuration file anew.
    Reload,
    /// Ends the host, where the process that it is in wants that.
    Stop,
    /// Says what is wrong with a configuration.
    ValidateConfig(Option<Candidate>),
    /// Every input, with the device that it is.
    ListDevices,
    /// Which devices are heard.
    GetDevice,
    /// Deprecated: hears this input only. Use SetDeviceEnabled.
    SetDevice {
        /// Its `port_index`, as ListDevices says.
        port: usize,
    },
    /// Deprecated: stops hearing the device `main`. Use SetDeviceEnabled.
    DisconnectDevice,
    /// Hears a device, or stops hearing it, until the host ends.
    SetDeviceEnabled {
        /// The device.
        device_id: String,
        /// Whether it is heard.
        enabled: bool,
    },
    /// Begins to capture what is touched; takes what the tool `conductor_start_midi_learn` does.
    StartMidiLearn(Option<Map<String, Value>>),
    /// Ends that; takes what the tool `conductor_stop_midi_learn` does.
    StopMidiLearn(Option<Map<String, Value>>),
    /// What was captured; takes what the tool `conductor_get_captured_events` does.
    GetMidiLearnEvents(Option<Map<String, Value>>),
    /// Applies a plan that a person has agreed to.
    ApplyPlan {
        /// Its id.
        plan_id: String,
    },
    /// Takes a plan off the list.
    RejectPlan {
        /// Its id.
        plan_id: String,
    },
    /// The plans that wait.
    ListPendingPlans,
    /// Calls a tool.
    ExecuteMcpTool {
        /// The tool.
        name: String,
        /// What it takes.
        #[serde(default)]
        arguments: Map<String, Value>,
        /// Whether a person agreed to this one call, having seen what `confirmation` stands for.
        #[serde(default)]
        confirmed: bool,
        /// The id of the confirmation that the same call was answered with before.
        #[serde(default)]
        confirmation: Option<String>,
    },
}

/// A command without arguments, or with null, needs no `args`.
fn may_be_left_out(schema: &mut Schema) {
    for variant in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let takes = variant["properties"].get("args").cloned().unwrap_or(Value::Null);
        let null = json!("null");
        let is_null =
            |one: &Value| one["type"] == null || one["type"].as_array().is_some_and(|all| all.contains(&null));
        let may = is_null(&takes) || takes["anyOf"].as_array().is_some_and(|all| all.iter().any(is_null));
        if let Some(Value::Array(required)) = variant.get_mut("required").filter(|_| may) {
            required.retain(|name| name != "args");
        }
        if takes.is_null() {
            // An empty object is nothing, too.
            variant["properties"]["args"] = json!({ "type": ["object", "null"], "additionalProperties": false });
        }
    }
}

/// What came of a command.
#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    /// What it answers, by command.
    data: Value,
    /// What to use instead, where the command will go.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// Which devices are heard.
#[derive(Debug, Serialize)]
struct DeviceStatus {
    /// Whether any is.
    connected: bool,
    /// How many are.
    device_count: usize,
    devices: Vec<DeviceEntry>,
}

/// An input.
#[derive(Debug, Serialize)]
struct DeviceEntry {
    device_id: String,
    port_name: String,
    /// Its place among the inputs, from 0; it changes as ports come and go.
    port_index: usize,
    alias: Option<String>,
    listening: bool,
    events_count: u64,
}

impl Command {
    /// The scope that the command needs.
    fn needs(&self) -> Scope {
        match self {
            Self::Ping
            | Self::Status
            | Self::ValidateConfig(_)
            | Self::ListDevices
            | Self::GetDevice
            | Self::ListPendingPlans => Scope::Read,
            Self::Stop | Self::ApplyPlan { .. } => Scope::Owner,
            _ => Scope::Control,
        }
    }

    /// What to use instead of it.
    fn deprecated(&self) -> Option<&'static str> {
        match self {
            Self::SetDevice { .. } => Some("SetDevice is deprecated: all devices are heard; use SetDeviceEnabled"),
            Self::DisconnectDevice => Some("DisconnectDevice is deprecated: it mutes `main`; use SetDeviceEnabled"),
            _ => None,
        }
    }
}

async fn ipc(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    By(caller): By,
    Body(mut body): Body<Map<String, Value>>,
) -> Result<Json<Answer>, ErrorResponse> {
    // Named, not by their places.
    if body.get("args").is_some_and(|args| !args.is_object() && !args.is_null()) {
        let error = "the request is not understood: `args` is a JSON object";
        return Err(ErrorResponse::new(StatusCode::UNPROCESSABLE_ENTITY, Code::BadRequest, error));
    }
    // Those that take nothing may be given nothing.
    if body.get("args").and_then(Value::as_object).is_some_and(Map::is_empty) {
        body.remove("args");
    }
    let command: Command = from_object(Value::Object(body))?;
    let needed = command.needs();
    let scope = caller.scope().filter(|scope| *scope >= needed);
    if scope.is_none() {
        let has = caller.scope().map_or("none", Scope::as_str);
        let error = format!("this command asks for the scope `{needed}`, and the token has `{has}`");
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, Code::Forbidden, error));
    }
    let warning = command.deprecated();
    if let Some(warning) = warning {
        tracing::warn!(%caller, "{warning}");
    }
    let data = done(host, &client, caller, command).await?;
    Ok(Json(Answer { data, warning: warning.map(str::to_owned) }))
}

async fn done(host: Arc<Host>, client: &Client, caller: Caller, command: Command) -> Result<Value, ErrorResponse> {
    let tool = async |name: &str, args| {
        let request = ToolRequest { args, confirmed: false, confirmation: None };
        Ok(called(&host, &caller, name, request).await?.result)
    };
    match command {
        Command::StartMidiLearn(args) => return tool(START_LEARN, args.unwrap_or_default()).await,
        Command::StopMidiLearn(args) => return tool(STOP_LEARN, args.unwrap_or_default()).await,
        Command::GetMidiLearnEvents(args) => return tool(CAPTURED, args.unwrap_or_default()).await,
        Command::ExecuteMcpTool { name, arguments: args, confirmed, confirmation } => {
            let request = ToolRequest { args, confirmed, confirmation };
            return Ok(called(&host, &caller, &name, request).await?.result);
        }
        // Here and not elsewhere: this thread learns that the host stops once it has sent its answer.
        Command::Stop => {
            host.ask_to_stop(&caller);
            return Ok(json!({ "stopping": true }));
        }
        _ => {}
    }
    if command.needs() == Scope::Read {
        return look(client, move || quickly(&host, &caller, command)).await;
    }
    change(client, move || quickly(&host, &caller, command)).await
}

/// Does what asks no feature.
fn quickly(host: &Host, caller: &Caller, command: Command) -> Result<Value, ErrorResponse> {
    let written = |value: serde_json::Result<Value>| value.map_err(ErrorResponse::internal);
    Ok(match command {
        Command::Ping => json!({ "pong": true, "version": env!("CARGO_PKG_VERSION") }),
        Command::Status => written(serde_json::to_value(host.status()))?,
        Command::Reload => {
            let reloaded = host.reload_from_file(caller)?;
            json!({ "rules": reloaded.rules, "warnings": reloaded.warnings.render(false) })
        }
        Command::ValidateConfig(candidate) => {
            let found = host.check_config_for(caller, candidate.and_then(|candidate| candidate.text))?;
            let mut report = written(serde_json::to_value(&found))?;
            report["valid"] = (found.count(Severity::Error) == 0).into();
            report
        }
        Command::ListDevices => written(serde_json::to_value(devices(host)))?,
        Command::GetDevice => {
            let devices = devices(host);
            let device_count = devices.iter().filter(|device| device.listening).count();
            let status = DeviceStatus { connected: device_count > 0, device_count, devices };
            written(serde_json::to_value(status))?
        }
        Command::SetDevice { port } => {
            let devices = devices(host);
            let Some(wanted) = devices.get(port) else {
                return Err(ErrorResponse::not_found(format!("there is no input {port}; there are {}", devices.len())));
            };
            for other in devices.iter().filter(|other| other.device_id != wanted.device_id) {
                host.mute_for(caller, &other.device_id, true)?;
            }
            host.mute_for(caller, &wanted.device_id, false)?;
            json!({ "device_id": wanted.device_id })
        }
        Command::DisconnectDevice => enable(host, caller, MAIN, false)?,
        Command::SetDeviceEnabled { device_id, enabled } => enable(host, caller, &device_id, enabled)?,
        Command::ApplyPlan { plan_id } => written(serde_json::to_value(host.apply_plan(caller, &plan_id)?))?,
        Command::RejectPlan { plan_id } => {
            host.reject_plan(caller, &plan_id)?;
            json!({ "rejected": plan_id })
        }
        Command::ListPendingPlans => written(serde_json::to_value(host.plan_summaries()?))?,
        // Done by then.
        Command::Stop
        | Command::StartMidiLearn(_)
        | Command::StopMidiLearn(_)
        | Command::GetMidiLearnEvents(_)
        | Command::ExecuteMcpTool { .. } => Value::Null,
    })
}

fn enable(host: &Host, caller: &Caller, device: &str, enabled: bool) -> Result<Value, ErrorResponse> {
    host.mute_for(caller, device, !enabled)?;
    Ok(json!({ "device_id": device, "enabled": enabled }))
}

/// Every input that has a device, as the daemon that came before listed them.
fn devices(host: &Host) -> Vec<DeviceEntry> {
    let is_device = |port: &DiscoveredPort| {
        port.port.direction == Direction::Input && matches!(port.port.protocol, Protocol::Midi | Protocol::Hid)
    };
    let inputs = host.ports().ports.into_iter().filter(is_device).enumerate();
    let entry = |(port_index, port): (usize, DiscoveredPort)| DeviceEntry {
        listening: port.connected && !port.muted,
        device_id: port.device,
        port_name: port.port.name,
        port_index,
        alias: port.binding,
        events_count: port.events,
    };
    inputs.map(entry).collect()
}
