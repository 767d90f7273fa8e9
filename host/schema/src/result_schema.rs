//! Schema validation of a tool's result against its output schema, which agents rely on.
//!
//! What is understood is what schemas of results are made of: types, keys, entries, choices, references
//! within the schema. Other keywords are ignored.
//!
//! Both the schema and the result are a guest's. The schema is compiled once, when the tool is registered: references
//! are resolved and sets are hashed, so that a check takes steps by the size of the result alone. The steps are
//! bounded, and are the feature's own processor time.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use conductor_terminal::excerpt;

/// How deep a check may lead.
const MAX_DEPTH: usize = 64;
/// Schemas within a schema, those that references lead to included.
const MAX_SCHEMAS: usize = 4096;
/// Steps of one check: pairs of a value and a schema, keys that have to be there, and what is compared as a whole by
/// its size.
const MAX_STEPS: usize = 1_000_000;
/// Bytes of text that count as a step where texts are compared.
const STEP_BYTES: usize = 64;
/// Bytes of a schema's own text in messages.
const MAX_SHOWN: usize = 256;

/// A schema that results are checked against.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultSchema {
    /// The first one is the whole.
    schemas: Vec<Schema>,
}

#[derive(Debug, Clone, PartialEq)]
enum Schema {
    Anything,
    Nothing,
    Rules(Box<Rules>),
}

/// What a schema asks. Other schemas are named by their index.
#[derive(Debug, Clone, Default, PartialEq)]
struct Rules {
    reference: Option<usize>,
    types: Option<Types>,
    allowed: Option<HashSet<Value>>,
    only: Option<Value>,
    /// `anyOf`, `oneOf`: one of each must fit.
    choices: Vec<Vec<usize>>,
    all_of: Vec<usize>,
    required: Vec<String>,
    properties: HashMap<String, usize>,
    additional: Option<usize>,
    items: Option<usize>,
}

/// The types that a value may be of.
#[derive(Debug, Clone, Default, PartialEq)]
struct Types {
    /// Known names, each once.
    names: Vec<String>,
    /// A name that is not known allows anything.
    anything: bool,
}

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

impl ResultSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// A sentence: a reference leads nowhere, or there are too many schemas in it.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        let mut compiler = Compiler { root: schema, schemas: Vec::new(), known: HashMap::new(), pending: Vec::new() };
        compiler.index(schema)?;
        while let Some((index, schema)) = compiler.pending.pop() {
            compiler.schemas[index] = compiler.compile(schema)?;
        }
        Ok(Self { schemas: compiler.schemas })
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The first thing that does not fit, with its place as a JSON pointer; or that the check takes too much.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let mut check = Check { schema: self, steps: MAX_STEPS, path: Vec::new() };
        check.at(value, 0, MAX_DEPTH).map_err(|wrong| {
            let place = check.path.iter().map(|step| format!("/{step}")).collect::<String>();
            let place = if place.is_empty() { "the result".to_owned() } else { excerpt(&place, MAX_SHOWN) };
            format!("{place}: {}", wrong.sentence())
        })
    }
}

struct Compiler<'s> {
    root: &'s Value,
    schemas: Vec<Schema>,
    known: HashMap<*const Value, usize>,
    /// Not recursive: references may lead from one to the next four thousand times.
    pending: Vec<(usize, &'s Value)>,
}

impl<'s> Compiler<'s> {
    fn index(&mut self, schema: &'s Value) -> Result<usize, String> {
        let known = std::ptr::from_ref(schema);
        if let Some(index) = self.known.get(&known) {
            return Ok(*index);
        }
        let index = self.schemas.len();
        if index >= MAX_SCHEMAS {
            return Err(format!("there are more than {MAX_SCHEMAS} schemas in it"));
        }
        self.known.insert(known, index);
        self.schemas.push(Schema::Anything);
        self.pending.push((index, schema));
        Ok(index)
    }

    fn indices(&mut self, schemas: Option<&'s Value>) -> Result<Vec<usize>, String> {
        schemas.and_then(Value::as_array).into_iter().flatten().map(|schema| self.index(schema)).collect()
    }

    fn compile(&mut self, schema: &'s Value) -> Result<Schema, String> {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(false) => return Ok(Schema::Nothing),
            _ => return Ok(Schema::Anything),
        };
        let mut rules = Rules { types: types(schema), ..Rules::default() };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointed = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let pointed = pointed.ok_or_else(|| format!("the schema has no {}", excerpt(reference, MAX_SHOWN)))?;
            rules.reference = Some(self.index(pointed)?);
        }
        rules.allowed = schema.get("enum").and_then(Value::as_array).map(|it| it.iter().cloned().collect());
        rules.only = schema.get("const").cloned();
        for either in ["anyOf", "oneOf"] {
            if schema.get(either).is_some_and(Value::is_array) {
                rules.choices.push(self.indices(schema.get(either))?);
            }
        }
        rules.all_of = self.indices(schema.get("allOf"))?;
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
        rules.required = required.into_iter().map(str::to_owned).collect();
        rules.required.sort_unstable();
        for (key, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let index = self.index(schema)?;
            rules.properties.insert(key.clone(), index);
        }
        rules.additional = schema.get("additionalProperties").map(|schema| self.index(schema)).transpose()?;
        rules.items = schema.get("items").map(|schema| self.index(schema)).transpose()?;
        Ok(Schema::Rules(Box::new(rules)))
    }
}

/// The types that a schema names.
fn types(schema: &Map<String, Value>) -> Option<Types> {
    let names = match schema.get("type")? {
        name @ Value::String(_) => std::slice::from_ref(name),
        Value::Array(names) => names,
        _ => return None,
    };
    let mut types = Types::default();
    for name in names.iter().filter_map(Value::as_str) {
        if !TYPES.contains(&name) {
            types.anything = true;
        } else if !types.names.iter().any(|known| known == name) {
            types.names.push(name.to_owned());
        }
    }
    Some(types)
}

/// What does not fit.
enum Wrong<'s> {
    TooDeep,
    TooMuch,
    Nothing,
    Type(&'static str, &'s [String]),
    NotAllowed(&'s HashSet<Value>),
    NotOnly(&'s Value),
    NoChoice(usize),
    Missing(&'s str),
}

impl Wrong<'_> {
    fn sentence(&self) -> String {
        match self {
            Self::TooDeep => "the schema leads too far to be looked at".to_owned(),
            Self::TooMuch => format!("looking takes more than {MAX_STEPS} steps; say less, or ask less of it"),
            Self::Nothing => "nothing is allowed here".to_owned(),
            Self::Type(kind, names) => format!("{kind} is not {}", names.join(" or ")),
            Self::NotAllowed(allowed) => {
                let mut shown: Vec<String> = allowed.iter().map(|it| excerpt(&it.to_string(), MAX_SHOWN)).collect();
                shown.sort_unstable();
                excerpt(&format!("not one of [{}]", shown.join(",")), MAX_SHOWN)
            }
            Self::NotOnly(only) => excerpt(&format!("not {only}"), MAX_SHOWN),
            Self::NoChoice(count) => format!("none of the {count} that are allowed"),
            Self::Missing(key) => format!("{:?} is missing", excerpt(key, MAX_SHOWN)),
        }
    }
}

/// A step further into a result.
enum Step<'v> {
    Key(&'v str),
    Entry(usize),
}

impl std::fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Entry(index) => index.fmt(f),
        }
    }
}

struct Check<'s, 'v> {
    schema: &'s ResultSchema,
    steps: usize,
    /// Where it looks; after an error, where that was.
    path: Vec<Step<'v>>,
}

impl<'s, 'v> Check<'s, 'v> {
    fn spend(&mut self, steps: usize) -> Result<(), Wrong<'s>> {
        self.steps = self.steps.checked_sub(steps).ok_or(Wrong::TooMuch)?;
        Ok(())
    }

    /// Spends what it takes to compare a value as a whole.
    fn spend_size(&mut self, value: &Value) -> Result<(), Wrong<'s>> {
        match value {
            Value::String(text) => self.spend(1 + text.len() / STEP_BYTES),
            Value::Array(entries) => {
                self.spend(1)?;
                entries.iter().try_for_each(|entry| self.spend_size(entry))
            }
            Value::Object(object) => {
                self.spend(1)?;
                object.iter().try_for_each(|(key, value)| {
                    self.spend(1 + key.len() / STEP_BYTES)?;
                    self.spend_size(value)
                })
            }
            _ => self.spend(1),
        }
    }

    fn at(&mut self, value: &'v Value, index: usize, depth: usize) -> Result<(), Wrong<'s>> {
        self.spend(1)?;
        let depth = depth.checked_sub(1).ok_or(Wrong::TooDeep)?;
        let rules = match &self.schema.schemas[index] {
            Schema::Anything => return Ok(()),
            Schema::Nothing => return Err(Wrong::Nothing),
            Schema::Rules(rules) => rules,
        };
        if let Some(reference) = rules.reference {
            self.at(value, reference, depth)?;
        }
        if let Some(types) = &rules.types
            && !types.anything
            && !types.names.iter().any(|name| is_of_type(value, name))
        {
            return Err(Wrong::Type(kind(value), &types.names));
        }
        if let Some(allowed) = &rules.allowed {
            self.spend_size(value)?;
            if !allowed.contains(value) {
                return Err(Wrong::NotAllowed(allowed));
            }
        }
        if let Some(only) = &rules.only {
            self.spend_size(value)?;
            if only != value {
                return Err(Wrong::NotOnly(only));
            }
        }
        for choices in &rules.choices {
            self.one_of(value, choices, depth)?;
        }
        for all in &rules.all_of {
            self.at(value, *all, depth)?;
        }
        match value {
            Value::Object(object) => self.keys(object, rules, depth),
            Value::Array(entries) => {
                let Some(items) = rules.items else { return Ok(()) };
                entries.iter().enumerate().try_for_each(|(number, entry)| {
                    self.path.push(Step::Entry(number));
                    self.at(entry, items, depth)?;
                    self.path.pop();
                    Ok(())
                })
            }
            _ => Ok(()),
        }
    }

    fn one_of(&mut self, value: &'v Value, choices: &[usize], depth: usize) -> Result<(), Wrong<'s>> {
        let here = self.path.len();
        for choice in choices {
            match self.at(value, *choice, depth) {
                Ok(()) => return Ok(()),
                Err(Wrong::TooMuch) => return Err(Wrong::TooMuch),
                Err(_) => self.path.truncate(here),
            }
        }
        Err(Wrong::NoChoice(choices.len()))
    }

    fn keys(&mut self, object: &'v Map<String, Value>, rules: &'s Rules, depth: usize) -> Result<(), Wrong<'s>> {
        for key in &rules.required {
            self.spend(1 + key.len() / STEP_BYTES)?;
            if !object.contains_key(key) {
                return Err(Wrong::Missing(key));
            }
        }
        for (key, value) in object {
            self.spend(1 + key.len() / STEP_BYTES)?;
            if let Some(schema) = rules.properties.get(key).copied().or(rules.additional) {
                self.path.push(Step::Key(key));
                self.at(value, schema, depth)?;
                self.path.pop();
            }
        }
        Ok(())
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn check(value: &Value, schema: &Value) -> Result<(), String> {
        ResultSchema::compile(schema).unwrap().check(value)
    }

    fn wrong(value: Value, schema: Value) -> String {
        check(&value, &schema).unwrap_err()
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "plan": { "type": "string" },
                "count": { "type": ["integer", "null"] },
                "inner": { "$ref": "#/$defs/Inner" },
                "list": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/Inner" }, { "type": "null" }] } },
                "health": { "enum": ["green", "red"] },
                "only": { "const": { "a": [1, 2] } },
            },
            "required": ["plan"],
            "additionalProperties": false,
            "$defs": { "Inner": { "type": "object", "properties": { "inner": { "$ref": "#/$defs/Inner" } } } },
        })
    }

    #[test]
    fn what_fits_is_taken() {
        for value in [
            json!({ "plan": "a" }),
            json!({ "plan": "a", "count": null, "inner": { "inner": {} }, "list": [null, {}], "health": "red" }),
            json!({ "plan": "a", "count": 3.0, "only": { "a": [1, 2] } }),
        ] {
            assert_eq!(check(&value, &schema()), Ok(()), "{value}");
        }
        assert_eq!(check(&json!([1]), &json!({})), Ok(()));
        assert_eq!(check(&json!([1]), &json!({ "type": "of another draft" })), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        let wrong = |value| wrong(value, schema());
        assert_eq!(wrong(json!([])), "the result: an array is not object");
        assert_eq!(wrong(json!({})), "the result: \"plan\" is missing");
        assert_eq!(wrong(json!({ "plan": 1 })), "/plan: a number is not string");
        assert_eq!(wrong(json!({ "plan": "a", "count": 1.5 })), "/count: a number is not integer or null");
        assert_eq!(wrong(json!({ "plan": "a", "inner": { "inner": 1 } })), "/inner/inner: a number is not object");
        assert_eq!(wrong(json!({ "plan": "a", "list": [{}, 1] })), "/list/1: none of the 2 that are allowed");
        assert_eq!(wrong(json!({ "plan": "a", "health": "blue" })), "/health: not one of [\"green\",\"red\"]");
        assert_eq!(wrong(json!({ "plan": "a", "only": {} })), "/only: not {\"a\":[1,2]}");
        assert_eq!(wrong(json!({ "plan": "a", "other": 1 })), "/other: nothing is allowed here");
    }

    // A schema is a guest's: one that leads nowhere, or everywhere, costs no more than another.
    #[test]
    fn a_schema_that_leads_in_circles_ends() {
        let circle = json!({ "$ref": "#" });
        assert!(wrong(json!(1), circle).contains("leads too far"));
        let choices: Vec<Value> = vec![json!({ "$ref": "#" }); 8];
        assert!(wrong(json!(1), json!({ "anyOf": choices })).contains("more than 1000000 steps"));
        let nowhere = ResultSchema::compile(&json!({ "items": { "$ref": "#/nowhere" } }));
        assert_eq!(nowhere.unwrap_err(), "the schema has no #/nowhere");
        let chain: Map<String, Value> =
            (0..3000).map(|n| (n.to_string(), json!({ "$ref": format!("#/{}", n + 1) }))).collect();
        let mut chain = Value::Object(chain);
        chain["3000"] = json!({});
        chain["$ref"] = json!("#/0");
        assert!(wrong(json!(1), chain).contains("leads too far"));
        let many: Vec<Value> = (0..5000).map(|_| json!({})).collect();
        assert!(ResultSchema::compile(&json!({ "anyOf": many })).unwrap_err().contains("more than 4096 schemas"));
    }

    /// Each of these is within what may be registered and answered, and would take hundreds of millions of
    /// comparisons one after the other.
    #[test]
    fn what_is_compared_is_counted_by_its_size() {
        let zeros = |count: usize| vec![0; count];
        let mut last = zeros(30_000);
        last.push(1);
        let ones = Value::from(vec![1; 120_000]);
        assert_eq!(check(&ones, &json!({ "items": { "enum": last } })), Ok(()), "a set, not a list");

        let objects = json!(vec![json!({}); 60_000]);
        let keys: Vec<String> = (0..5_000).map(|n| format!("k{n}")).collect();
        assert!(wrong(objects.clone(), json!({ "items": { "required": keys } })).contains("is missing"));
        let full: Map<String, Value> = keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let full = json!(vec![Value::Object(full); 300]);
        assert!(wrong(full, json!({ "items": { "required": keys } })).contains("more than 1000000 steps"));

        let text = Value::from("x".repeat(200_000));
        let all: Vec<Value> = vec![json!({ "$ref": "#/$defs/text" }); 1000];
        for same in [json!({ "const": text }), json!({ "enum": [text] })] {
            let schema = json!({ "allOf": all, "$defs": { "text": same } });
            assert!(wrong(text.clone(), schema).contains("more than 1000000 steps"));
        }
        let nulls = json!(vec![json!("null"); 10_000]);
        assert!(wrong(ones, json!({ "items": { "type": nulls } })).contains("a number is not null"));
    }

    proptest! {
        /// A value fits the schema that lists it, and the one that lists its shape; no schema makes the check panic.
        #[test]
        fn a_value_fits_what_was_made_from_it(value in values(), other in values()) {
            prop_assert_eq!(check(&value, &json!({ "enum": [other, value] })), Ok(()));
            prop_assert_eq!(check(&value, &json!({ "const": value })), Ok(()));
            if value != other {
                let only = json!({ "const": other });
                prop_assert!(check(&value, &only).is_err());
            }
            if let Ok(schema) = ResultSchema::compile(&other) {
                let _ = schema.check(&value);
            }
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z#/$]{0,6}".prop_map(Value::from),
        ];
        let keys = prop_oneof![
            Just("enum"),
            Just("const"),
            Just("$ref"),
            Just("anyOf"),
            Just("items"),
            Just("required"),
            Just("properties"),
            Just("additionalProperties"),
            Just("type"),
            Just("a"),
            Just("b")
        ];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|pairs| Value::Object(
                    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                )),
            ]
        })
    }
}
