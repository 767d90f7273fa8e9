//! Tools that report the host's state: its status, its features, what happened and why, which plans wait;
//! and two that propose to load a feature, or to load it no more.

use std::collections::BTreeMap;

use conductor_feature::json::{Nothing, Proposed, answer, register, set, unknown};
use conductor_feature::page::{self, After, Page};
use conductor_feature::{
    Authority, Context, Error, Invocation, Lifecycle, Planner, PrivilegedTools, ReadOnlyTools, Reader, host_state,
    kind, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Bytes of the modes' names in the status, as JSON.
const MAX_MODES_BYTES: usize = 16 * 1024;
/// Bytes of a diff in the list of plans; a longer one is read with its plan.
const MAX_DIFF: usize = 32 * 1024;
/// Bytes of the findings in a configuration, as JSON.
const MAX_FINDINGS_BYTES: usize = 128 * 1024;
/// Places of mappings that are the same, of one group.
const MAX_SAME: usize = 256;
/// Bytes of a configuration that the host checks for a feature, at most.
const MAX_CHECKED: usize = 1 << 20;

struct StatusTools;

impl Lifecycle for StatusTools {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Nothing, Status>(&tools, "conductor_get_status")?;
        register::<After, Features>(&tools, "conductor_list_features")?;
        register::<Named, Feature>(&tools, "conductor_feature_info")?;
        register::<Capture, Captured>(&tools, "conductor_get_captured_events")?;
        register::<Explain, Explained>(&tools, "conductor_explain_event")?;
        register::<After, Plans>(&tools, "conductor_list_plans")?;
        register::<Validate, Validated>(&tools, "conductor_validate_config")?;
        register::<Named, Proposed>(&tools, "conductor_enable_feature")?;
        register::<Named, Proposed>(&tools, "conductor_disable_feature")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Capture {
    /// 1-256. Default: 32.
    limit: Option<u16>,
    /// Only this device's.
    device: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Explain {
    /// An alias, or a port's name.
    device: String,
    /// Such as "note-on 36 100", "cc 7 64 ch 9", "osc /fader 0.5".
    event: String,
    /// Default: the active one.
    mode: Option<String>,
    after: Option<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Validate {
    /// TOML. Default: the one in force, and whether the file has been refused since.
    text: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Status {
    version: String,
    uptime_s: u64,
    mode: Option<String>,
    modes: Vec<String>,
    /// Further modes: conductor_get_modes.
    more_modes: Option<usize>,
    rules: u32,
    events: u64,
    failures: u64,
    last_failure: Option<String>,
    /// Why the last configuration was refused.
    refused: Option<String>,
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Features {
    features: Vec<Listed>,
    total: Option<usize>,
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    name: String,
    version: Option<String>,
    tools: usize,
    refused: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Feature {
    name: String,
    id: Option<String>,
    version: Option<String>,
    bundled: bool,
    refused: Option<String>,
    tools: Vec<Tool>,
    actions: Vec<String>,
    /// Asked for, and not granted.
    denied: Vec<String>,
    done: u64,
    failed: u64,
    memory: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tool {
    name: String,
    tier: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Captured {
    events: Vec<CapturedEvent>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CapturedEvent {
    at_ms: u64,
    device: String,
    event: String,
    fired: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Explained {
    rules: Vec<Explanation>,
    total: Option<usize>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Explanation {
    rule: String,
    fires: bool,
    why: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Plans {
    plans: Vec<Plan>,
    total: Option<usize>,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Plan {
    id: String,
    proposer: String,
    description: String,
    risk: String,
    notes: Vec<String>,
    /// None: too long for a list.
    diff: Option<String>,
    /// Milliseconds since 1970.
    expires: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Validated {
    valid: bool,
    findings: Vec<Finding>,
    /// Places of mappings that are the same but for name and description, group by group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    duplicates: Vec<Vec<String>>,
    /// Findings that were left out.
    more: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Finding {
    severity: String,
    line: u32,
    column: u32,
    message: String,
    help: Option<String>,
}

/// The places of mappings that are the same but for what they are called, of a configuration (TOML).
fn duplicates(config: &str) -> Vec<Vec<String>> {
    let table: toml::Table = toml::from_str(config).unwrap_or_default();
    let list = |value: Option<&toml::Value>| value.and_then(toml::Value::as_array).cloned().unwrap_or_default();
    let modes = list(table.get("modes")).into_iter().enumerate();
    let modes = modes.map(|(number, mode)| (format!("modes/{number}/mappings"), list(mode.get("mappings"))));
    let lists = modes.chain([("global_mappings".to_owned(), list(table.get("global_mappings")))]);
    let mut groups: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (place, mappings) in lists {
        for (number, mut mapping) in mappings.into_iter().enumerate() {
            if let Some(mapping) = mapping.as_table_mut() {
                mapping.retain(|key, _| key != "name" && key != "description");
            }
            groups.entry((place.clone(), json!(mapping).to_string())).or_default().push(format!("{place}/{number}"));
        }
    }
    let mut groups: Vec<_> = groups.into_values().filter(|places| places.len() > 1).collect();
    groups.iter_mut().for_each(|places| places.truncate(MAX_SAME));
    groups
}

/// What is wrong with a configuration, or with the one in force.
fn validated(reader: &Reader, Validate { text }: Validate) -> Result<Validated, Error> {
    // The file itself is the person's to read: what is in force may be fine while the file is not.
    let refused = match &text {
        None => reader.status()?.refused,
        Some(_) => None,
    };
    let is_in_force = text.is_none();
    let text = text.map_or_else(|| reader.config(), Ok)?;
    if is_in_force && text.len() > MAX_CHECKED {
        return Ok(unchecked(refused));
    }
    let finding = |one: host_state::Finding| Finding {
        severity: one.severity.to_string(),
        line: one.line,
        column: one.column,
        message: one.message,
        help: one.help,
    };
    let found = reader.check(&text)?;
    let valid = found.iter().all(|one| one.severity != host_state::Severity::Error);
    let (mut findings, more) = page::within(found.into_iter().map(finding).collect(), MAX_FINDINGS_BYTES)?;
    findings.extend(refused.as_deref().map(of_refused));
    let (duplicates, _) = page::within(duplicates(&text), page::MAX_BYTES_BESIDE)?;
    Ok(Validated { valid: valid && refused.is_none(), findings, duplicates, more })
}

/// What there is to say of a configuration in force that is too long to be checked again. It was checked when it came into
/// force.
fn unchecked(refused: Option<String>) -> Validated {
    let mut findings = vec![Finding {
        severity: host_state::Severity::Warning.to_string(),
        line: 1,
        column: 1,
        message: "in force; longer than 1 MiB, so it was not checked again".to_owned(),
        help: Some(
            "`conductor config validate` checks the file; conductor_list_mappings has `same_trigger`".to_owned(),
        ),
    }];
    findings.extend(refused.as_deref().map(of_refused));
    Validated { valid: refused.is_none(), findings, duplicates: Vec::new(), more: None }
}

/// That the file has been refused since.
fn of_refused(refused: &str) -> Finding {
    Finding {
        severity: host_state::Severity::Error.to_string(),
        line: 1,
        column: 1,
        message: refused.to_owned(),
        help: Some("`conductor config validate` names each mistake of the file with its line".to_owned()),
    }
}

/// The feature of this name.
fn find(reader: &Reader, name: &str) -> Result<host_state::Feature, Error> {
    let features = reader.features()?;
    match features.iter().position(|feature| feature.name == name) {
        Some(at) => Ok(features.into_iter().nth(at).unwrap_or_else(|| unreachable!("it was just found"))),
        None => Err(unknown("feature", name, features.iter().map(|feature| feature.name.as_str()))),
    }
}

/// Whether a configuration says something about a feature.
fn configures(config: &str, feature: &str) -> bool {
    let table: toml::Table = toml::from_str(config).unwrap_or_default();
    table.get("features").and_then(|features| features.get(feature)).is_some()
}

fn status(reader: &Reader) -> Result<Status, Error> {
    let status = reader.status()?;
    let next = match &status {
        status if status.refused.is_some() => Some(
            "the file has a mistake, and what was in force before is: the person sees each by `conductor config validate`",
        ),
        status if status.last_failure.is_some() => Some("conductor_get_captured_events shows what came before it"),
        status if status.rules == 0 => {
            Some("there is no mapping: conductor_start_learn, then conductor_create_mapping")
        }
        _ => None,
    };
    let (modes, more_modes) = page::within(status.modes, MAX_MODES_BYTES)?;
    Ok(Status {
        next: next.map(str::to_owned),
        version: status.version,
        uptime_s: status.uptime / 1_000_000_000,
        mode: status.mode,
        modes,
        more_modes,
        rules: status.rules,
        events: status.events,
        failures: status.failures,
        last_failure: status.last_failure,
        refused: status.refused,
    })
}

/// Refuses a device that is neither there nor bound.
fn known_device(reader: &Reader, device: &str) -> Result<(), Error> {
    let (ports, bindings) = (reader.ports()?, reader.bindings()?);
    let mut known: Vec<&str> = ports.iter().map(|port| port.device.as_str()).collect();
    known.extend(bindings.iter().map(|binding| binding.alias.as_str()));
    known.sort_unstable();
    known.dedup();
    if known.contains(&device) { Ok(()) } else { Err(unknown("device", device, known)) }
}

fn captured(reader: &Reader, limit: u16, device: Option<&str>) -> Result<Captured, Error> {
    if !(1..=256).contains(&limit) {
        return Err(Error::Invalid(format!("the limit {limit} is not from 1 to 256")));
    }
    let mut events = reader.captured(256)?;
    if let Some(device) = device {
        if !events.iter().any(|event| event.device == device) {
            known_device(reader, device)?;
        }
        events.retain(|event| event.device == device);
    }
    let last = events.len().saturating_sub(usize::from(limit));
    // Nothing fires when most controls are let go: what was pressed is what is asked about.
    let pressed = events.iter().rev().find(|event| event.event.kind != kind::NOTE_OFF && event.event.value > 0.0);
    let next = match pressed.or(events.last()) {
        None => "nothing has come: conductor_get_binding_health says whether the device is there".to_owned(),
        Some(event) if event.fired.is_empty() => {
            format!("conductor_explain_event says why nothing fired for {:?}", event.text)
        }
        Some(_) => "conductor_explain_event says why a rule fires or does not".to_owned(),
    };
    let event = |event: host_state::Captured| CapturedEvent {
        at_ms: event.event.at / 1_000_000,
        device: event.device,
        event: event.text,
        fired: event.fired,
    };
    let events: Vec<_> = events.into_iter().skip(last).map(event).collect();
    Ok(Captured { events, next })
}

fn explained(reader: &Reader, Explain { device, event, mode, after }: &Explain) -> Result<Explained, Error> {
    if let Some(mode) = mode {
        let modes = reader.status()?.modes;
        if !modes.contains(mode) {
            return Err(unknown("mode", mode, modes.iter().map(String::as_str)));
        }
    }
    let rules = reader.explain(device, event, mode.as_deref())?;
    let rule = |one: host_state::Explanation| Explanation { rule: one.rule, fires: one.awake, why: one.why };
    let advice = match rules.iter().any(|rule| rule.awake) {
        true => "those that fire act, in this order".to_owned(),
        false if rules.is_empty() => {
            known_device(reader, device)?;
            unmapped(event, reader.plans()?.len())
        }
        false => match mode.clone().or(reader.status()?.mode) {
            Some(mode) => format!("no rule fires; each says why (the mode is {mode:?})"),
            None => "no rule fires; each says why".to_owned(),
        },
    };
    let Page { entries: rules, total, next } = Page::of(rules, *after, page::MAX_ENTRIES, rule)?;
    Ok(Explained { rules, total, next: next.unwrap_or(advice) })
}

/// What to do about an event that no rule looks at, while this many plans wait.
fn unmapped(event: &str, waiting: usize) -> String {
    let is_release = event.trim_start().starts_with("note-off") || event.trim_end().ends_with(" up");
    let made = match is_release {
        true => {
            "no rule looks at it: mappings act on the press, unless they have `on = \"release\"` or `on = \"both\"`"
        }
        false => "no rule looks at it: conductor_create_mapping makes one",
    };
    match waiting {
        0 => made.to_owned(),
        _ => format!("{made}; of what waits for a person (conductor_list_plans) nothing is in force yet"),
    }
}

impl ReadOnlyTools for StatusTools {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "conductor_get_status" => answer(&args, |Nothing {}| status(reader)),
            "conductor_list_features" => answer(&args, |After { after }| {
                let feature = |feature: host_state::Feature| Listed {
                    name: feature.name,
                    version: feature.version,
                    tools: feature.tools.len(),
                    refused: feature.refused,
                };
                let Page { entries: features, total, next } =
                    Page::of(reader.features()?, after, page::MAX_ENTRIES, feature)?;
                Ok(Features { features, total, next })
            }),
            "conductor_feature_info" => answer(&args, |Named { name }| {
                let it = find(reader, &name)?;
                Ok(Feature {
                    name: it.name,
                    id: it.id,
                    version: it.version,
                    bundled: it.bundled,
                    refused: it.refused,
                    tools: it.tools.into_iter().map(|it| Tool { name: it.name, tier: it.tier.to_string() }).collect(),
                    actions: it.actions,
                    denied: it.denied,
                    done: it.done,
                    failed: it.failed,
                    memory: it.memory,
                })
            }),
            "conductor_get_captured_events" => {
                answer(&args, |Capture { limit, device }| captured(reader, limit.unwrap_or(32), device.as_deref()))
            }
            "conductor_explain_event" => answer(&args, |asked: Explain| explained(reader, &asked)),
            "conductor_list_plans" => answer(&args, |After { after }| {
                let plan = |plan: host_state::WaitingPlan| Plan {
                    id: plan.id,
                    proposer: plan.proposer,
                    description: plan.description,
                    risk: plan.risk.to_string(),
                    notes: plan.notes,
                    diff: (plan.diff.len() <= MAX_DIFF).then_some(plan.diff),
                    expires: plan.expires,
                };
                let waiting = reader.plans()?;
                let advice = if waiting.is_empty() { "no plan waits" } else { "a person decides: conductor plan list" };
                let Page { entries: plans, total, next } = Page::of(waiting, after, page::MAX_ENTRIES, plan)?;
                Ok(Plans { plans, total, next: next.unwrap_or_else(|| advice.to_owned()) })
            }),
            "conductor_validate_config" => answer(&args, |asked: Validate| validated(reader, asked)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

impl PrivilegedTools for StatusTools {
    fn call(
        name: String,
        args: String,
        _: &Invocation,
        reader: &Reader,
        planner: &Planner,
        _: &Authority,
    ) -> Result<String, Error> {
        let enabled = match name.as_str() {
            "conductor_enable_feature" => true,
            "conductor_disable_feature" => false,
            _ => return Err(Error::Invalid(format!("there is no tool {name}"))),
        };
        answer(&args, |Named { name }| {
            // One that is switched off is not among the features, but in the configuration.
            if let Err(error) = find(reader, &name)
                && !(enabled && configures(&reader.config()?, &name))
            {
                return Err(error);
            }
            let what = if enabled { "Load" } else { "Don't load" };
            let path = format!("features/{name}/enabled");
            Proposed::by(planner, &format!("{what} the feature {name}."), &[set(path, enabled)])
        })
    }
}

conductor_feature::feature!(StatusTools, "../feature.toml", [read_only_tools, privileged_tools]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_is_switched_off_is_in_the_configuration() {
        assert!(configures("[features.lamp]\nenabled = false", "lamp"));
        assert!(!configures("[features.lamp]\nenabled = false", "lamb"));
        assert!(!configures("", "lamp"));
    }

    #[test]
    fn mappings_that_are_the_same_but_for_what_they_are_called_are_named() {
        let mapping = |list: &str, note: u8, name: &str| {
            format!(
                "[[{list}]]\nname = '{name}'\ntrigger = {{ type = 'Note', note = {note} }}\naction = {{ type = 'Suppress' }}\n"
            )
        };
        let all = [
            "[[modes]]\nname = 'a'\n".to_owned(),
            mapping("modes.mappings", 1, "one"),
            mapping("modes.mappings", 2, "two"),
            mapping("modes.mappings", 1, "another"),
            mapping("global_mappings", 1, "elsewhere"),
        ];
        assert_eq!(duplicates(&all.concat()), [["modes/0/mappings/0", "modes/0/mappings/2"]]);
        assert!(duplicates("not = [toml").is_empty());
    }

    #[test]
    fn what_is_in_force_and_too_long_to_be_checked_again_is_no_mistake() {
        let in_force = unchecked(None);
        let said: Vec<_> = in_force.findings.iter().map(|one| (one.severity.as_str(), one.message.as_str())).collect();
        assert_eq!(said, [("warning", "in force; longer than 1 MiB, so it was not checked again")]);
        assert!(in_force.valid);
        // What was refused since is one.
        let refused = unchecked(Some("line 3: no mode".to_owned()));
        assert_eq!((refused.valid, refused.findings.len()), (false, 2));
        assert_eq!((&*refused.findings[1].severity, &*refused.findings[1].message), ("error", "line 3: no mode"));
    }

    #[test]
    fn a_release_that_no_rule_looks_at_asks_for_no_new_mapping() {
        assert!(unmapped("note-off 36 0", 0).contains("on = \"release\""));
        assert!(unmapped("key a up", 0).contains("on = \"release\""));
        assert!(unmapped("note-on 36 100", 1).contains("conductor_create_mapping makes one; of what waits"));
    }
}
