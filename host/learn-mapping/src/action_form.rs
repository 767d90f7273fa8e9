//! A form for an action, made from its JSON Schema: its fields one after the other, each checked when it is typed, and the
//! line that they come to. What a form can't show is typed as TOML. The host checks all of it again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::action_keys::{FORMS, fixed, is_required, resolved};

/// Schemas within schemas that are followed.
const MAX_DEPTH: usize = 8;

/// An action that is filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionForm {
    /// The action's type.
    pub kind: String,
    schema: Value,
    /// What was typed, by the fields' names.
    typed: BTreeMap<String, String>,
    /// Keys of an action that was there before, which its schema does not name.
    unnamed: Map<String, Value>,
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct FormField {
    /// As a configuration has it.
    pub name: String,
    /// Whether it has to be there.
    pub is_required: bool,
    /// What it is, in a sentence. Empty if the schema says nothing.
    pub help: String,
    /// What could be typed. `None` if the schema has no example.
    pub example: Option<String>,
    kind: FieldKind,
    /// The lowest and the highest number, or how many entries of a list.
    bounds: (Option<f64>, Option<f64>),
    /// Whether a text begins with a slash, or with what stands for an address, in braces.
    is_address: bool,
}

/// What a field takes.
#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    /// A text; also a list of several, if `or_list`.
    Text {
        or_list: bool,
    },
    Number {
        is_whole: bool,
    },
    /// A number, or a text in its place, such as a name or an expression.
    NumberOrText,
    Flag,
    Choice(Vec<String>),
    /// Several texts, numbers or truth values; all are texts, if `is_text`.
    List {
        is_text: bool,
    },
    Toml,
    Any,
}

impl ActionForm {
    /// An empty form for an action with this schema.
    pub fn new(kind: &str, schema: Value) -> Self {
        Self { kind: kind.to_owned(), schema, typed: BTreeMap::new(), unnamed: Map::new() }
    }

    /// A form with what an action has, as a configuration writes it.
    pub fn of(action: &Value, schema: Value) -> Self {
        let mut form = Self::new(action["type"].as_str().unwrap_or_default(), schema);
        let keys = || action.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
        // Which fields there are depends on what is chosen in others.
        for (name, value) in keys() {
            form.typed.insert(name.clone(), value.as_str().map_or_else(|| inline(value), str::to_owned));
        }
        let fields = form.fields();
        for (name, value) in keys() {
            match fields.iter().find(|field| field.name == *name) {
                Some(field) => drop(form.typed.insert(name.clone(), field.written(value))),
                None => {
                    form.typed.remove(name);
                    form.unnamed.insert(name.clone(), value.clone());
                }
            }
        }
        form
    }

    /// The fields, those that have to be there first. Of an action with several forms, those of the form that is chosen.
    pub fn fields(&self) -> Vec<FormField> {
        let document = &self.schema;
        let common = resolved(document, document);
        let forms = FORMS.into_iter().find_map(|word| common[word].as_array()).map(Vec::as_slice).unwrap_or_default();
        let forms: Vec<&Value> = forms.iter().map(|form| resolved(form, document)).collect();
        let forms: Vec<&Value> = forms.into_iter().filter(|form| form["properties"].is_object()).collect();
        let choices = |name: &str| -> Vec<String> {
            forms.iter().filter_map(|form| fixed(&form["properties"][name])).map(str::to_owned).collect()
        };
        let is_choice = |name: &str| forms.len() > 1 && choices(name).len() == forms.len();
        let properties = |form: &Value| form["properties"].as_object().cloned().unwrap_or_default();
        let chooser = forms
            .first()
            .and_then(|first| properties(first).keys().find(|name| *name != "type" && is_choice(name)).cloned());
        let mut shown = forms.clone();
        if let Some(chooser) = &chooser {
            let typed = self.typed(chooser);
            let chosen = chosen(&choices(chooser), typed).map(str::to_owned);
            shown.retain(|form| fixed(&form["properties"][chooser.as_str()]) == chosen.as_deref());
        }
        let mut fields: Vec<FormField> = Vec::new();
        let mut take = |name: &str, property: &Value, is_required: bool| {
            if name != "type" && fields.iter().all(|field| field.name != name) {
                fields.push(FormField::new(name, property, document, is_required));
            }
        };
        for (name, property) in properties(common) {
            let in_each = !shown.is_empty() && shown.iter().all(|form| is_required(form, &name));
            take(&name, &property, in_each || is_required(common, &name));
        }
        if let Some(chooser) = &chooser {
            take(chooser, &serde_json::json!({ "enum": choices(chooser) }), true);
        }
        for form in &shown {
            for (name, property) in properties(form) {
                take(&name, &property, shown.iter().all(|form| is_required(form, &name)));
            }
        }
        // What is needed in the order in which the schema lists it: its author put first what is asked for first.
        let listed = |name: &str| common["required"].as_array()?.iter().position(|key| key == name);
        fields.sort_by_key(|field| (!field.is_required, listed(&field.name).unwrap_or(usize::MAX)));
        fields
    }

    /// What is typed in a field; empty if nothing is.
    pub fn typed(&self, name: &str) -> &str {
        self.typed.get(name).map(String::as_str).unwrap_or_default()
    }

    /// Takes what is typed in a field.
    pub fn set(&mut self, name: &str, text: &str) {
        self.typed.insert(name.to_owned(), text.to_owned());
    }

    /// Why a field can't be taken as it is. `None` if it can, or is not among the fields.
    pub fn mistake_in(&self, name: &str) -> Option<String> {
        let field = self.fields().into_iter().find(|field| field.name == name)?;
        field.read(self.typed(name)).err()
    }

    /// The first field that can't be taken as it is, and why.
    pub fn mistake(&self) -> Option<(String, String)> {
        let wrong = |field: FormField| field.read(self.typed(&field.name)).err().map(|why| (field.name, why));
        self.fields().into_iter().find_map(wrong)
    }

    /// The action in one line, as [`crate::action`] reads it. Fields that can't be taken are left out.
    pub fn line(&self) -> String {
        let fields = self.fields();
        let read = |field: &FormField| Some((field.name.clone(), field.read(self.typed(&field.name)).ok()??));
        let mut keys: Map<String, Value> = fields.iter().filter_map(read).collect();
        keys.extend(self.unnamed.clone());
        keys.insert("type".to_owned(), Value::from(self.kind.as_str()));
        line(&Value::Object(keys))
    }
}

impl FormField {
    fn new(name: &str, given: &Value, document: &Value, is_required: bool) -> Self {
        let meant = meant(given, document, 0);
        let said = [given, meant].into_iter().find_map(|schema| schema["description"].as_str()).unwrap_or_default();
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let bound = |words: [&str; 2]| {
            let all = [given, meant].into_iter().chain(forms_of(meant).map(|form| resolved(form, document)));
            all.flat_map(|schema| words.map(|word| schema[word].as_f64())).flatten().next()
        };
        let pattern = [given, meant].into_iter().find_map(|schema| schema["pattern"].as_str()).unwrap_or_default();
        let example = [given, meant].into_iter().find_map(|schema| {
            let example = [&schema["examples"][0], &schema["default"]].into_iter().find(|value| !value.is_null())?;
            Some(example.as_str().map_or_else(|| inline(example), str::to_owned))
        });
        Self {
            name: name.to_owned(),
            is_required,
            help: said.split_once(". ").map_or(said.clone(), |(first, _)| format!("{first}.")),
            example: example.or_else(|| quoted_example(&said)),
            kind: FieldKind::of(meant, document),
            bounds: (bound(["minimum", "minItems"]), bound(["maximum", "maxItems"])),
            is_address: ["^/", r"^\/", "^(/|"].iter().any(|begin| pattern.starts_with(begin)),
        }
    }

    /// What it takes, in a few words.
    pub fn takes(&self) -> String {
        let range = match self.bounds {
            (Some(low), Some(high)) => format!(", {low} to {high}"),
            (Some(low), None) => format!(", {low} or more"),
            (None, Some(high)) => format!(", {high} or less"),
            (None, None) => String::new(),
        };
        match &self.kind {
            FieldKind::Text { or_list: false } => "a text".to_owned(),
            FieldKind::Text { or_list: true } => r#"a text, or several: ["one", "other"]"#.to_owned(),
            FieldKind::Number { is_whole: true } => format!("a whole number{range}"),
            FieldKind::Number { is_whole: false } => format!("a number{range}"),
            FieldKind::NumberOrText => format!("a number{range}; or a text in its place"),
            FieldKind::Flag => "true or false".to_owned(),
            FieldKind::Choice(choices) => format!("one of {}", choices.join(", ")),
            FieldKind::List { .. } => "several, with commas or blanks between them".to_owned(),
            FieldKind::Toml => "TOML, as in the configuration".to_owned(),
            FieldKind::Any => "a number, a text, or TOML".to_owned(),
        }
    }

    /// The value that is meant; `None` if nothing is typed and nothing is needed.
    ///
    /// # Errors
    /// What is wrong with it, and what it takes.
    pub fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let said = typed.trim();
        if said.is_empty() {
            return if self.is_required { Err(format!("{} is needed: {}", self.name, self.takes())) } else { Ok(None) };
        }
        let wrong = || format!("{} takes {}", self.name, self.takes());
        let value = match &self.kind {
            FieldKind::Text { or_list: true } if said.starts_with('[') => toml_value(said)?,
            FieldKind::Text { .. } => Value::from(quoted(said).unwrap_or_else(|| typed.to_owned())),
            FieldKind::Number { is_whole } => number(said, *is_whole).ok_or_else(wrong)?,
            FieldKind::NumberOrText => {
                number(said, false).unwrap_or_else(|| Value::from(quoted(said).unwrap_or_else(|| said.to_owned())))
            }
            FieldKind::Flag => match said.to_lowercase().as_str() {
                "true" | "yes" => Value::from(true),
                "false" | "no" => Value::from(false),
                _ => return Err(wrong()),
            },
            FieldKind::Choice(choices) => Value::from(chosen(choices, said).ok_or_else(wrong)?),
            FieldKind::List { .. } if said.starts_with('[') => toml_value(said)?,
            FieldKind::List { is_text } => list(said, *is_text),
            FieldKind::Toml => toml_value(said)?,
            FieldKind::Any => toml_value(said).unwrap_or_else(|_| Value::from(typed)),
        };
        let counted = match &value {
            Value::Array(list) => Some(list.len() as f64),
            value => value.as_f64(),
        };
        let (low, high) = self.bounds;
        let is_outside = |counted: f64| low.is_some_and(|low| counted < low) || high.is_some_and(|high| counted > high);
        if counted.is_some_and(is_outside) {
            return Err(match (&value, low, high) {
                (Value::Array(_), low, high) => {
                    let most = high.map_or_else(String::new, |high| format!(", {high} at most"));
                    format!("{} takes {} at least{most}", self.name, low.unwrap_or_default())
                }
                _ => wrong(),
            });
        }
        if self.is_address && value.as_str().is_some_and(|text| !text.starts_with(['/', '{'])) {
            return Err(format!("{} begins with /", self.name));
        }
        Ok(Some(value))
    }

    /// A value as a person would type it, so that [`FormField::read`] returns it.
    fn written(&self, value: &Value) -> String {
        let plain = value.as_str().map_or_else(|| inline(value), str::to_owned);
        match self.read(&plain) {
            Ok(Some(read)) if read == *value => plain,
            _ => inline(value),
        }
    }
}

impl FieldKind {
    fn of(meant: &Value, document: &Value) -> Self {
        if let Some(choices) = offered(meant, document) {
            return Self::Choice(choices);
        }
        let types = types_of(meant, document);
        let has = |kind: &str| types.contains(kind);
        match (has("string"), has("integer") || has("number"), has("array"), has("object"), has("boolean")) {
            (.., true, _) => Self::Toml,
            (true, false, or_list, _, false) => Self::Text { or_list },
            (true, true, false, _, false) => Self::NumberOrText,
            (false, true, false, _, false) => Self::Number { is_whole: !has("number") },
            (false, false, false, _, true) => Self::Flag,
            (false, false, true, _, false) => Self::of_list(&meant["items"], document),
            _ => Self::Any,
        }
    }

    /// A list of such entries.
    fn of_list(entries: &Value, document: &Value) -> Self {
        let types = types_of(entries, document);
        let is_plain = |kind: &&str| matches!(*kind, "string" | "integer" | "number" | "boolean");
        if types.is_empty() || !types.iter().all(is_plain) {
            return Self::Toml;
        }
        Self::List { is_text: types.iter().all(|kind| *kind == "string") }
    }
}

/// An action of a configuration in one line: `TYPE { key = value, ... }`.
pub fn line(action: &Value) -> String {
    let kind = action["type"].as_str().unwrap_or_default();
    let keys = action.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let keys: Map<String, Value> = keys.map(|(name, value)| (name.clone(), value.clone())).collect();
    if keys.is_empty() { kind.to_owned() } else { format!("{kind} {}", inline(&Value::Object(keys))) }
}

/// A value as TOML in one line.
fn inline(value: &Value) -> String {
    let is_bare =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(keys) => {
            let pair = |(key, value): (&String, &Value)| {
                let key = if is_bare(key) { key.clone() } else { Value::from(key.as_str()).to_string() };
                format!("{key} = {}", inline(value))
            };
            let pairs: Vec<String> = keys.iter().filter(|(_, value)| !value.is_null()).map(pair).collect();
            if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        // Of texts and numbers, JSON is TOML.
        other => other.to_string(),
    }
}

fn toml_value(text: &str) -> Result<Value, String> {
    let read: Result<Map<String, Value>, _> = toml::from_str(&format!("value = {text}"));
    let mut read = read.map_err(|error| error.message().to_owned())?;
    // What closes the value may be followed by keys of its own.
    match (read.remove("value"), read.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => Err("write one value".to_owned()),
    }
}

/// The text within quotes. `None` if there are none around it.
fn quoted(text: &str) -> Option<String> {
    let is_quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    is_quoted.then(|| toml_value(text).ok()?.as_str().map(str::to_owned)).flatten()
}

fn number(text: &str, is_whole: bool) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let real = text.parse::<f64>().ok().filter(|real| real.is_finite() && !is_whole)?;
    Some(Value::from(real))
}

/// Entries with commas between them, or with blanks if there is no comma.
fn list(text: &str, is_text: bool) -> Value {
    let entries: Vec<&str> = match text.contains(',') {
        true => text.split(',').map(str::trim).collect(),
        false => text.split_whitespace().collect(),
    };
    let entry = |entry: &str| match entry {
        "true" | "false" if !is_text => Value::from(entry == "true"),
        _ => match number(entry, false).filter(|_| !is_text) {
            Some(number) => number,
            None => Value::from(quoted(entry).unwrap_or_else(|| entry.to_owned())),
        },
    };
    entries.into_iter().filter(|entry| !entry.is_empty()).map(entry).collect()
}

/// Which of the choices is meant: by its name, or by the beginning of one alone, in any case.
fn chosen<'c>(choices: &'c [String], typed: &str) -> Option<&'c str> {
    let typed = typed.trim().to_lowercase();
    if let Some(whole) = choices.iter().find(|choice| choice.to_lowercase() == typed) {
        return Some(whole);
    }
    let mut begun = choices.iter().filter(|choice| !typed.is_empty() && choice.to_lowercase().starts_with(&typed));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn forms_of(schema: &Value) -> impl Iterator<Item = &Value> {
    FORMS.into_iter().filter_map(move |word| schema[word].as_array()).flatten()
}

/// The schema that counts: what it refers to, and of one that may be left out, the other form.
fn meant<'s>(schema: &'s Value, document: &'s Value, depth: usize) -> &'s Value {
    let schema = resolved(schema, document);
    let mut forms = forms_of(schema).filter(|form| form["type"] != "null");
    match (forms.next(), forms.next()) {
        (Some(only), None) if depth < MAX_DEPTH => meant(only, document, depth + 1),
        _ => schema,
    }
}

/// The texts that a schema allows, if it allows no others.
fn offered(schema: &Value, document: &Value) -> Option<Vec<String>> {
    let texts = |list: &Vec<Value>| -> Option<Vec<String>> {
        list.iter().filter(|one| !one.is_null()).map(|one| one.as_str().map(str::to_owned)).collect()
    };
    if let Some(listed) = schema["enum"].as_array() {
        return texts(listed);
    }
    let forms: Vec<&Value> = forms_of(schema).map(|form| resolved(form, document)).collect();
    let of_form = |form: &&Value| {
        let only = form["const"].as_str().map(|only| vec![only.to_owned()]);
        only.or_else(|| form["enum"].as_array().and_then(texts))
    };
    let fixed: Option<Vec<Vec<String>>> = forms.iter().map(of_form).collect();
    fixed.filter(|fixed| !fixed.is_empty()).map(|fixed| fixed.concat())
}

/// The types that a schema allows, with those of its forms. Each place of the document is looked at once: forms may refer to
/// forms, and to each other.
fn types_of<'s>(schema: &'s Value, document: &'s Value) -> BTreeSet<&'s str> {
    let (mut types, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), vec![schema]);
    while let Some(schema) = left.pop().map(|schema| resolved(schema, document)) {
        if !seen.insert(std::ptr::from_ref(schema)) {
            continue;
        }
        match &schema["type"] {
            Value::String(kind) => drop(types.insert(kind.as_str())),
            Value::Array(kinds) => types.extend(kinds.iter().filter_map(Value::as_str)),
            _ => {}
        }
        left.extend(forms_of(schema));
    }
    types
}

/// What a description shows behind a colon, between backticks.
fn quoted_example(said: &str) -> Option<String> {
    let (_, behind) = said.split_once(": `")?;
    let (example, _) = behind.split_once('`')?;
    Some(quoted(example).unwrap_or_else(|| example.to_owned())).filter(|example| !example.is_empty())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    fn field(property: Value) -> FormField {
        let schema = json!({ "properties": { "key": property } });
        ActionForm::new("Do", schema).fields().remove(0)
    }

    fn read(property: Value, typed: &str) -> Result<Option<Value>, String> {
        field(property).read(typed)
    }

    fn names(form: &ActionForm) -> Vec<String> {
        form.fields().into_iter().map(|field| field.name).collect()
    }

    #[test]
    fn each_field_takes_what_its_schema_says() {
        let number = json!({ "type": "integer", "minimum": 0, "maximum": 127 });
        assert_eq!(read(number.clone(), " 5 "), Ok(Some(json!(5))));
        for wrong in ["128", "-1", "x", "1.5"] {
            assert_eq!(read(number.clone(), wrong), Err("key takes a whole number, 0 to 127".to_owned()), "{wrong}");
        }
        let note = json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }], "maximum": 127 });
        let notes = ["60", "C4", "{n}+12", "\"7\""].map(|typed| read(note.clone(), typed).unwrap().unwrap());
        assert_eq!(notes, [json!(60), json!("C4"), json!("{n}+12"), json!("7")]);
        assert!(read(note, "128").is_err());
        let stroke = json!({ "oneOf": [{ "const": "tap" }, { "const": "press" }, { "const": "hold" }] });
        assert_eq!(read(stroke.clone(), "Pr"), Ok(Some(json!("press"))));
        assert_eq!(read(stroke, "x"), Err("key takes one of tap, press, hold".to_owned()));
        assert_eq!(read(json!({ "type": ["boolean", "null"] }), "yes"), Ok(Some(json!(true))));
        let keys = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 2 });
        for typed in ["ctrl c", "ctrl, c", r#"["ctrl", "c"]"#] {
            assert_eq!(read(keys.clone(), typed), Ok(Some(json!(["ctrl", "c"]))), "{typed}");
        }
        assert_eq!(read(keys, "a b c"), Err("key takes 1 at least, 2 at most".to_owned()));
        let args = json!({ "type": "array", "items": { "anyOf": [{ "type": "number" }, { "type": "string" }] } });
        assert_eq!(read(args, "{unit}, 1, \"2\""), Ok(Some(json!(["{unit}", 1, "2"]))));
        let address = json!({ "type": "string", "pattern": "^/" });
        assert_eq!(read(address.clone(), "/cue 1 "), Ok(Some(json!("/cue 1 "))));
        assert_eq!(read(address, "cue"), Err("key begins with /".to_owned()));
        let sent_on = json!({ "type": "string", "pattern": r"^(/|\{address\})" });
        assert_eq!(read(sent_on.clone(), "{address}"), Ok(Some(json!("{address}"))));
        assert_eq!(read(sent_on, "127.0.0.1:9000"), Err("key begins with /".to_owned()));
        let nested = json!({ "type": "array", "items": { "type": "object" } });
        assert_eq!(read(nested.clone(), "[{ a = 1 }]"), Ok(Some(json!([{ "a": 1 }]))));
        assert!(read(nested, "[{ a = 1 }").is_err());
        assert!(read(json!({ "type": "object" }), "{}\nother = 1").is_err());
    }

    #[test]
    fn a_field_says_what_it_is_in_a_sentence_and_has_an_example() {
        let note = field(
            json!({ "description": "The note,\n0 to 127, or by name: `\"C4\"`. More of it.", "type": "integer" }),
        );
        assert_eq!(
            (note.help.as_str(), note.example.as_deref()),
            ("The note, 0 to 127, or by name: `\"C4\"`.", Some("C4"))
        );
        let level = field(json!({ "type": "number", "default": 0.5 }));
        assert_eq!((level.takes().as_str(), level.example.as_deref()), ("a number", Some("0.5")));
    }

    /// A package wrote it: forms that refer to forms, twenty of them on each of eight levels, and back to the first.
    #[test]
    fn forms_within_forms_are_read_once() {
        let level = |level: usize| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/{level}") }); 20] });
        let mut defs: Map<String, Value> = (0..8).map(|at| (at.to_string(), level((at + 1) % 9))).collect();
        defs.insert("8".into(), json!({ "type": "integer", "anyOf": [{ "$ref": "#/$defs/0" }] }));
        let schema = json!({ "properties": { "x": { "$ref": "#/$defs/0" } }, "required": ["x"], "$defs": defs });
        let form = ActionForm::new("Lamp", schema);
        assert_eq!(form.fields()[0].takes(), "a whole number");
    }

    #[test]
    fn what_is_needed_is_asked_for_in_the_order_of_the_schema() {
        let text = json!({ "type": "string" });
        let schema = json!({
            "properties": { "address": text, "args": text, "target": text },
            "required": ["target", "address"],
        });
        assert_eq!(names(&ActionForm::new("OscSend", schema)), ["target", "address", "args"]);
    }

    #[test]
    fn which_fields_there_are_follows_from_what_is_chosen() {
        let shape = |name: &str, key: &str| {
            let properties = json!({ "message_type": { "const": name }, key: { "type": "integer" } });
            json!({ "properties": properties, "required": ["message_type", key] })
        };
        let schema = json!({
            "properties": { "type": {}, "delay": { "type": "integer" }, "target": { "type": "string" } },
            "required": ["type", "target"],
            "oneOf": [shape("NoteOn", "note"), shape("CC", "cc")],
        });
        let mut form = ActionForm::new("SendMidi", schema.clone());
        assert_eq!(names(&form), ["target", "message_type", "delay"]);
        form.set("target", "synth");
        form.set("message_type", "cc");
        assert_eq!(names(&form), ["target", "message_type", "cc", "delay"]);
        assert_eq!(form.mistake(), Some(("cc".to_owned(), "cc is needed: a whole number".to_owned())));
        form.set("cc", "7");
        assert_eq!(form.mistake(), None);
        assert_eq!(form.line(), r#"SendMidi { target = "synth", message_type = "CC", cc = 7 }"#);
        form.set("message_type", "NoteOn");
        assert_eq!(names(&form), ["target", "message_type", "note", "delay"]);

        // What an action has is in the form, and what the schema does not name stays.
        let action =
            json!({ "type": "SendMidi", "target": "[1]", "message_type": "CC", "cc": 1, "other": { "a b": "x\ny" } });
        let form = ActionForm::of(&action, schema);
        assert_eq!((form.typed("target"), form.typed("cc")), ("[1]", "1"));
        let mut never = |_: &str, _: &Value| -> Result<Value, Infallible> { panic!("nothing is asked") };
        assert_eq!(crate::action(&mut never, &form.line()).unwrap(), action);
        assert_eq!(line(&json!({ "type": "Suppress" })), "Suppress");
    }
}
