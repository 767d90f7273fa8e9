//! The server of the SDK's test harness: a request per line on standard input, a response per line on standard
//! output, `{"ok": ...}` or `{"error": "..."}`.

use std::io::BufRead as _;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::CommandResult;
use super::shared_code;
use super::world::{Setup, World};
use conductor_package::Package;
use conductor_terminal as terminal;

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Request {
    /// Starts the world, anew where there is one. The answer is the feature's report.
    Install(Setup),
    /// Calls a tool.
    Call {
        tool: String,
        #[serde(flatten)]
        request: ToolRequestFields,
    },
    /// Asks a model of the configuration; the answer has `text`, `calls` and `usage`.
    Ask { model: String, text: String },
    /// Prepares an action; the answer is its number.
    Prepare { action: String, params: serde_json::Map<String, Value> },
    /// Performs a prepared action for an event such as `pads note-on 36 100`.
    Perform { prepared: usize, event: String },
    /// Plays a script of events.
    Play { script: String },
    /// Moves the clock.
    Advance { milliseconds: u64 },
    /// Makes another mode active.
    Mode { mode: String },
    /// Puts another configuration in force.
    Configure { config: String },
    /// Plugs a MIDI input in, or pulls it out.
    Plug { port: String, plugged: bool },
    /// Everything that came of it so far.
    Seen,
}

#[derive(Debug, Deserialize)]
struct ToolRequestFields {
    #[serde(default)]
    args: serde_json::Map<String, Value>,
    #[serde(default)]
    confirmed: bool,
}

pub(super) fn run(package: &Path) -> CommandResult {
    let package = Package::read(package)?;
    let mut world = None;
    for line in std::io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(request) => answer(&package, &mut world, request),
            Err(error) => json!({ "error": format!("not understood: {error}") }),
        };
        terminal::json_line(&answer);
    }
    Ok(())
}

fn answer(package: &Package, world: &mut Option<World>, request: Request) -> Value {
    let answered = match (request, world.as_mut()) {
        (Request::Install(setup), _) => {
            let setup = Setup { code: shared_code::of_environment(), ..setup };
            // The old one first: it may hold what the new one needs.
            *world = None;
            World::new(package, &setup).map(|made| json!(world.insert(made).report()))
        }
        (_, None) => Err("nothing is installed yet".to_owned()),
        (Request::Call { tool, request }, Some(world)) => {
            let ToolRequestFields { args, confirmed } = request;
            let (result, progress) = world.call(&tool, args, confirmed);
            return match result {
                Ok(result) => json!({
                    "ok": { "result": result.result, "plans": result.plans, "remarks": result.remarks }, "progress": progress,
                }),
                Err(error) => json!({ "error": error.to_string(), "progress": progress }),
            };
        }
        (Request::Ask { model, text }, Some(world)) => world.ask(&model, text),
        (Request::Prepare { action, params }, Some(world)) => {
            world.prepare(&action, &Value::Object(params).to_string()).map(Value::from)
        }
        (Request::Perform { prepared, event }, Some(world)) => world.perform(prepared, &event).map(Value::from),
        (Request::Play { script }, Some(world)) => world.play(&script).map(Value::from),
        (Request::Advance { milliseconds }, Some(world)) => {
            world.advance(Duration::from_millis(milliseconds));
            Ok(Value::Null)
        }
        (Request::Mode { mode }, Some(world)) => world.mode(&mode).map(Value::from),
        (Request::Configure { config }, Some(world)) => world.configure(&config).map(Value::from),
        (Request::Plug { port, plugged }, Some(world)) => {
            world.plug(&port, plugged);
            Ok(Value::Null)
        }
        (Request::Seen, Some(world)) => world.seen(),
    };
    match answered {
        Ok(value) => json!({ "ok": value }),
        Err(error) => json!({ "error": error }),
    }
}
