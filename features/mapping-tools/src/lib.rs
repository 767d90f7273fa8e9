//! Tools for modes and mappings: four that look, six that propose.
//!
//! What they read is the configuration as its author wrote it, so that places in it are places in the
//! file; what they propose is checked by the host, which knows what is valid.

use conductor_feature::json::{answer, register};
use conductor_feature::planning::Change;
use conductor_feature::{
    ConfigChangeTools, Context, Error, Invocation, Lifecycle, Planner, ReadOnlyTools, Reader, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub mod show;

use show::{Found, Modes, Show};

struct MappingTools;

impl Lifecycle for MappingTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Nothing, Config>(&tools, "conductor_get_config")?;
        register::<Nothing, Modes>(&tools, "conductor_get_modes")?;
        register::<List, Listed>(&tools, "conductor_list_mappings")?;
        register::<One, Found>(&tools, "conductor_get_mapping")?;
        register::<Create, Proposed>(&tools, "conductor_create_mapping")?;
        register::<Update, Proposed>(&tools, "conductor_update_mapping")?;
        register::<One, Proposed>(&tools, "conductor_delete_mapping")?;
        register::<NewMode, Proposed>(&tools, "conductor_create_mode")?;
        register::<OldMode, Proposed>(&tools, "conductor_delete_mode")?;
        register::<Batch, Proposed>(&tools, "conductor_batch_changes")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Serialize, JsonSchema)]
struct Config {
    /// TOML, as its author wrote it.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// A mode's name; "global" for those of no mode. Default: all.
    mode: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    mappings: Vec<Found>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The mapping's place, as `conductor_list_mappings` gives it: modes/0/mappings/3.
    place: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The mode's name. Default: a global mapping, for every mode.
    mode: Option<String>,
    /// What to wait for, such as {"type": "Note", "note": 36}.
    trigger: Map<String, Value>,
    /// What to do, such as {"type": "ModeChange", "mode": "Mix"}.
    action: Map<String, Value>,
    /// What people call it.
    description: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    /// The mapping's place, as `conductor_list_mappings` gives it: modes/0/mappings/3.
    place: String,
    /// What to wait for instead.
    trigger: Option<Map<String, Value>>,
    /// What to do instead.
    action: Option<Map<String, Value>>,
    /// What to call it instead.
    description: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMode {
    /// Its name, which no other mode has.
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OldMode {
    /// Its name.
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    /// A sentence for the person who decides.
    description: String,
    /// Made one after the other: a place that an earlier change moves is meant as it is then.
    changes: Vec<BatchChange>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BatchChange {
    /// Where, as keys and numbers from the top: modes/0/mappings/3/action. One past the end appends.
    path: String,
    /// What is to be there; none removes what is.
    value: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Proposed {
    /// The plan that waits.
    plan: String,
    /// What happens next.
    next: String,
}

fn unknown(name: &str) -> Error {
    Error::Invalid(format!("there is no tool {name}"))
}

fn read(reader: &Reader) -> Result<Show, Error> {
    Show::parse(&reader.config()?).map_err(Error::Failed)
}

impl ReadOnlyTools for MappingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_get_config" => answer(&args, |Nothing {}| Ok(Config { text: reader.config()? })),
            "conductor_get_modes" => answer(&args, |Nothing {}| Ok(read(reader)?.modes(&reader.mode()))),
            "conductor_list_mappings" => answer(&args, |List { mode }| {
                let mappings = read(reader)?.mappings(mode.as_deref()).map_err(Error::Invalid)?;
                Ok(Listed { mappings })
            }),
            "conductor_get_mapping" => {
                answer(&args, |One { place }| read(reader)?.mapping(&place).map_err(Error::Invalid))
            }
            _ => Err(unknown(&name)),
        }
    }
}

impl ConfigChangeTools for MappingTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, planner: &Planner) -> Result<String, Error> {
        let propose = |description: String, changes: Vec<Change>| -> Result<Proposed, Error> {
            let plan = planner.propose(&description, &changes)?;
            Ok(Proposed { next: format!("a person decides: conductor plan apply {plan}"), plan })
        };
        match name.as_str() {
            "conductor_create_mapping" => answer(&args, |Create { mode, trigger, action, description }| {
                let place = read(reader)?.next_place(mode.as_deref()).map_err(Error::Invalid)?;
                let what = description.clone().unwrap_or_else(|| kinds(&trigger, &action));
                let mut mapping = Map::new();
                mapping.extend(description.map(|text| ("description".to_owned(), text.into())));
                mapping.insert("trigger".into(), trigger.into());
                mapping.insert("action".into(), action.into());
                let scope = mode.map_or("every mode".to_owned(), |mode| format!("mode {mode}"));
                propose(format!("Add a mapping to {scope}: {what}."), vec![set(place, &mapping.into())])
            }),
            "conductor_update_mapping" => answer(&args, |Update { place, trigger, action, description }| {
                let found = read(reader)?.mapping(&place).map_err(Error::Invalid)?;
                let fields = [
                    ("trigger", trigger.map(Value::from)),
                    ("action", action.map(Value::from)),
                    ("description", description.map(Value::from)),
                ];
                let given = fields.into_iter().filter_map(|(field, value)| Some((field, value?)));
                let changes: Vec<_> = given.map(|(field, value)| set(format!("{place}/{field}"), &value)).collect();
                propose(format!("Change the mapping {}.", found.name()), changes)
            }),
            "conductor_delete_mapping" => answer(&args, |One { place }| {
                let found = read(reader)?.mapping(&place).map_err(Error::Invalid)?;
                propose(format!("Remove the mapping {}.", found.name()), vec![Change { path: place, value: None }])
            }),
            "conductor_create_mode" => answer(&args, |NewMode { name }| {
                let place = format!("modes/{}", read(reader)?.modes.len());
                let mode = serde_json::json!({ "name": name });
                propose(format!("Add the mode {name}."), vec![set(place, &mode)])
            }),
            "conductor_delete_mode" => answer(&args, |OldMode { name }| {
                let place = read(reader)?.place_of_mode(&name).map_err(Error::Invalid)?;
                propose(format!("Remove the mode {name}."), vec![Change { path: place, value: None }])
            }),
            "conductor_batch_changes" => answer(&args, |Batch { description, changes }| {
                let change = |BatchChange { path, value }| Change { path, value: value.map(|value| value.to_string()) };
                propose(description, changes.into_iter().map(change).collect())
            }),
            _ => Err(unknown(&name)),
        }
    }
}

fn set(path: String, value: &Value) -> Change {
    Change { path, value: Some(value.to_string()) }
}

/// A mapping without a name, in a few words.
fn kinds(trigger: &Map<String, Value>, action: &Map<String, Value>) -> String {
    let kind = |of: &Map<String, Value>| of.get("type").and_then(Value::as_str).unwrap_or("?").to_owned();
    format!("{} on {}", kind(action), kind(trigger))
}

conductor_feature::feature!(MappingTools, "../feature.toml", [read_only_tools, config_change_tools]);
