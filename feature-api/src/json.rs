//! Typed arguments and results for tools and actions: what crosses the boundary is JSON, what a
//! feature works with are its own types.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::planning::{Change, Proposal};
use crate::tool_registrar::Registrar;
use crate::{Error, Planner};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// What a tool answers that proposed something.
#[derive(Debug, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "seventeen schemas would say it again")]
pub struct Proposed {
    pub plan: String,
    pub risk: String,
    pub notes: Vec<String>,
    pub diff: Option<String>,
    pub next: String,
}

/// The longest diff that an answer holds, in bytes; a longer one is read with the plan.
const MAX_DIFF: usize = 4096;

impl Proposed {
    /// Proposes changes, with a sentence for the person who decides.
    ///
    /// # Errors
    /// The planner's.
    pub fn by(planner: &Planner, description: &str, changes: &[Change]) -> Result<Self, Error> {
        let Proposal { id: plan, risk, notes, diff } = planner.propose(description, changes)?;
        let next = format!(
            "Nothing has changed yet. A person decides: in this conversation if it asks them, in a shell such as \
             conductor tui, or with conductor plan apply {plan}; afterwards, conductor undo takes it back."
        );
        let risk = risk.to_string();
        Ok(Self { plan, risk, notes, diff: (diff.len() <= MAX_DIFF).then_some(diff), next })
    }
}

/// A change that puts `value` at `path`.
pub fn set(path: impl Into<String>, value: impl Into<Value>) -> Change {
    Change { path: path.into(), value: Some(value.into().to_string()) }
}

/// A change that removes what is at `path`.
pub fn remove(path: impl Into<String>) -> Change {
    Change { path: path.into(), value: None }
}

/// The JSON Schema of a type, as registrars take it: without keywords that are of no use to a reader,
/// since the schemas of all tools are read before every conversation.
pub fn schema<T: JsonSchema>() -> String {
    let mut schema = schemars::schema_for!(T).to_value();
    compact(&mut schema);
    schema.to_string()
}

/// The same for arguments and results of tools: what is not there is left out, and need not be null.
fn schema_of_tool<T: JsonSchema>() -> String {
    let mut schema = schemars::schema_for!(T).to_value();
    compact(&mut schema);
    without_null(&mut schema);
    // What a type is for, its authors read; callers of the tool read about its keys.
    let definitions = schema.get_mut("$defs").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    definitions.filter_map(Value::as_object_mut).for_each(|definition| drop(definition.remove("description")));
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
    }
    schema.to_string()
}

fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = &types[..] {
                    let one = one.clone();
                    object.insert("type".into(), one);
                }
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(either)) = object.get_mut("anyOf") {
                either.retain(|one| one.get("type").is_none_or(|name| name != "null"));
                if let [Value::Object(one)] = &either[..] {
                    let one = one.clone();
                    object.remove("anyOf");
                    object.extend(one);
                }
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Takes out names of types and formats of numbers, and the bounds that a format stands for.
fn compact(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // A property may be called like a keyword; then it is a schema, not a text.
            for keyword in ["$schema", "title"] {
                if object.get(keyword).is_some_and(Value::is_string) {
                    object.remove(keyword);
                }
            }
            if let Some(Value::String(format)) = object.get("format")
                && (format.contains("int") || format == "double" || format == "float")
            {
                object.remove("format");
                object.retain(|key, value| key != "minimum" || *value != 0);
                let of_the_type = |value: &Value| [255, 65_535].map(Value::from).contains(value);
                object.retain(|key, value| key != "maximum" || !of_the_type(value));
            }
            object.values_mut().for_each(compact);
        }
        Value::Array(list) => list.iter_mut().for_each(compact),
        _ => {}
    }
}

/// Reads parameters or arguments.
///
/// # Errors
/// `invalid`, with what does not fit. Where it stands is said of a text that is no JSON alone: else it is a key that is
/// wrong; a position in a text that a program wrote would not help.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    let invalid = |error: serde_json::Error| {
        let said = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let what = if error.is_data() { said.strip_suffix(&place).unwrap_or(&said) } else { said.as_str() };
        Error::Invalid(what.to_owned())
    };
    serde_json::from_str(text).map_err(invalid)
}

/// Registers a tool with the schemas of its arguments and its result.
///
/// # Errors
/// The registrar's: a name that the descriptor does not declare, or one that is already registered.
pub fn register<Args: JsonSchema, Result_: JsonSchema>(registrar: &Registrar, name: &str) -> Result<(), Error> {
    registrar.register(name, &schema_of_tool::<Args>(), Some(&schema_of_tool::<Result_>()))
}

/// Reads a tool's arguments, works, and writes its result; keys without a value are left out.
///
/// # Errors
/// `invalid` if the arguments do not fit, and the errors of `work`.
pub fn answer<Args: DeserializeOwned, Result_: Serialize>(
    args: &str,
    work: impl FnOnce(Args) -> Result<Result_, Error>,
) -> Result<String, Error> {
    let mut result = serde_json::to_value(work(read(args)?)?).map_err(|error| Error::Failed(error.to_string()))?;
    leave_out_null(&mut result);
    Ok(result.to_string())
}

/// Takes out what is not there, as the schemas of results have it.
fn leave_out_null(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(leave_out_null);
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_null),
        _ => {}
    }
}

/// What to answer where something is called by a name that nothing has: what there is, and what was
/// probably meant. `what` is its kind, `profile`.
pub fn unknown<'k>(what: &str, name: &str, known: impl IntoIterator<Item = &'k str>) -> Error {
    let known: Vec<&str> = known.into_iter().collect();
    let mut text = format!("there is no {what} {name:?}");
    if let Some(near) = nearest(name, known.iter().copied()) {
        text += &format!("; did you mean {near:?}?");
    } else if known.is_empty() {
        text += &format!("; there is no {what} at all");
    } else {
        let shown: Vec<&str> = known.iter().copied().take(12).collect();
        text += &format!("; there are {}", shown.join(", "));
    }
    Error::Invalid(text)
}

/// The candidate that is so near to `word` that it was probably meant: one that differs only in case,
/// or by one letter in three at most.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let word: Vec<char> = word.to_lowercase().chars().take(64).collect();
    let most = word.len().max(3) / 3;
    let near = candidates.into_iter().take(256).filter_map(|candidate| {
        let distance = distance(&word, &candidate.to_lowercase().chars().take(64).collect::<Vec<_>>());
        (distance <= most).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out or replaced.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(a != b)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("pabs", ["keys", "pads"]), Some("pads"));
        assert_eq!(nearest("PADS", ["keys", "pads"]), Some("pads"));
        assert_eq!(nearest("drums", ["keys", "pads"]), None);
        let Error::Invalid(text) = unknown("mode", "Plai", ["Play", "Mix"]) else { panic!() };
        assert_eq!(text, "there is no mode \"Plai\"; did you mean \"Play\"?");
        let Error::Invalid(text) = unknown("mode", "x", ["Play", "Mix"]) else { panic!() };
        assert_eq!(text, "there is no mode \"x\"; there are Play, Mix");
    }

    #[test]
    fn what_does_not_fit_is_said_without_a_place_and_what_is_no_json_with_one() {
        let why = |text: &str| {
            let Err(Error::Invalid(why)) = read::<Vec<bool>>(text) else { panic!("{text:?} fits") };
            why
        };
        assert_eq!(why("[1]"), "invalid type: integer `1`, expected a boolean");
        assert!(why("[true").ends_with("at line 1 column 5"), "{}", why("[true"));
    }

    #[test]
    fn a_schema_says_no_more_than_it_must() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Example {
            /// What it is called.
            title: String,
            count: u32,
        }
        let schema: Value = serde_json::from_str(&schema::<Example>()).expect("JSON");
        assert_eq!(
            schema,
            serde_json::json!({
                "type": "object",
                "properties": {
                    "title": { "type": "string", "description": "What it is called." },
                    "count": { "type": "integer" },
                },
                "required": ["title", "count"],
            })
        );
    }
}
