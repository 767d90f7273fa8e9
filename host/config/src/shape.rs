//! The JSON Schema compiled for validation: references resolved, unions sorted by tag, limits as numbers.
//!
//! Only what the schema of the configuration uses is understood. A test holds the list of keywords against
//! the schema, so that no rule can be written there without being enforced.

use std::collections::HashMap;
use std::ops::Index;

use serde_json::{Map, Value};

use conductor_text_formats::{self as text, Format};

/// Where a [`Shape`] is in [`Shapes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShapeId(usize);

/// All shapes of a schema.
pub(super) struct Shapes {
    shapes: Vec<Shape>,
    root: ShapeId,
}

/// What a value may be: of each kind that is set here.
#[derive(Default, Clone)]
pub(super) struct Shape {
    /// Anything at all, as far as JSON has it.
    pub anything: bool,
    /// A boolean.
    pub boolean: bool,
    /// An integer, within these limits.
    pub integer: Option<Limits<i64>>,
    /// Any finite number, within these limits.
    pub number: Option<Limits<f64>>,
    /// A string.
    pub text: Option<Text>,
    /// An array.
    pub array: Option<Array>,
    /// A table.
    pub table: Option<Table>,
}

/// The lowest and the highest number, both allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits<T> {
    pub min: T,
    pub max: T,
}

/// What a string may be.
#[derive(Default, Clone)]
pub(super) struct Text {
    /// The only strings allowed; any string if there are none.
    pub choices: Vec<String>,
    /// The least and the greatest number of characters.
    pub length: Option<Limits<usize>>,
    /// The grammar of the string.
    pub format: Option<&'static Format>,
    /// What the string has to do with the names of things.
    pub role: Option<Role>,
}

/// What a string has to do with the names of a kind of thing (`"mode"`, `"binding"`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// It is the name of such a thing.
    Names(String),
    /// It has to be such a name.
    RefersTo(String),
    /// It is such a name or something else altogether.
    Mentions(String),
}

/// What an array may be.
#[derive(Clone)]
pub(super) struct Array {
    pub item: ShapeId,
    pub length: Limits<usize>,
    /// Whether the items may not descend.
    pub ascending: bool,
}

/// What a table may be.
#[derive(Default, Clone)]
pub(super) struct Table {
    /// The keys that it may have.
    pub fields: Vec<Field>,
    /// The keys that differ from variant to variant.
    pub variants: Option<Variants>,
    /// What the table says about further keys.
    pub rest: Rest,
    /// The grammar of the further keys.
    pub rest_names: Option<&'static Format>,
    /// The pairs of keys that depend on each other.
    pub pairs: Vec<Pair>,
}

/// What a table says about keys that are not among its fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing: it is for the table around a variant, or for the variant, to say.
    #[default]
    Unsaid,
    /// There are none.
    Refused,
    /// They hold values of this shape.
    Allowed(ShapeId),
}

/// One key of a table.
#[derive(Clone)]
pub(super) struct Field {
    pub name: String,
    pub shape: ShapeId,
    pub required: bool,
    /// Whether it is still read but not offered.
    pub deprecated: bool,
}

/// The variants of a table, told apart by the string under the key `tag`.
#[derive(Clone)]
pub(super) struct Variants {
    pub tag: String,
    pub known: Vec<Variant>,
    /// The index of the variant that a table without the tag is.
    pub default: Option<usize>,
    /// What a table is whose tag is not known; its own fields say what that tag may be.
    pub other: Option<Box<Table>>,
}

/// One variant of a table.
#[derive(Clone)]
pub(super) struct Variant {
    /// The spellings of the tag; the first is the one to use.
    pub names: Vec<String>,
    pub table: Table,
}

/// A rule between two keys of a table; it holds where either is absent.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    pub rule: PairRule,
    pub keys: [String; 2],
}

/// What a [`Pair`] demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairRule {
    /// The first number is not above the second.
    Ascending,
    /// Both hex texts have as many bytes.
    SameLength,
}

impl Shapes {
    /// Makes a generated schema ready for checking.
    pub(super) fn compile(schema: &Value) -> Self {
        let mut compiler = Compiler {
            definitions: schema.get("$defs").and_then(Value::as_object),
            shapes: Vec::new(),
            named: HashMap::new(),
        };
        let root = compiler.shape(schema);
        Self { shapes: compiler.shapes, root }
    }

    /// What a whole file may be.
    pub(super) fn root(&self) -> &Shape {
        &self[self.root]
    }
}

impl Index<ShapeId> for Shapes {
    type Output = Shape;

    fn index(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0]
    }
}

struct Compiler<'s> {
    definitions: Option<&'s Map<String, Value>>,
    shapes: Vec<Shape>,
    named: HashMap<&'s str, ShapeId>,
}

impl<'s> Compiler<'s> {
    fn shape(&mut self, schema: &'s Value) -> ShapeId {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.named(reference);
        }
        let shape = self.anonymous(schema);
        self.shapes.push(shape);
        ShapeId(self.shapes.len() - 1)
    }

    /// The shape of a definition. Its place is kept before it is filled: a definition may contain itself.
    fn named(&mut self, reference: &'s str) -> ShapeId {
        let name = reference.trim_start_matches("#/$defs/");
        if let Some(&id) = self.named.get(name) {
            return id;
        }
        let id = ShapeId(self.shapes.len());
        self.shapes.push(Shape::default());
        self.named.insert(name, id);
        let definition = self.definitions.and_then(|all| all.get(name));
        self.shapes[id.0] = definition.map_or_else(Shape::default, |found| self.anonymous(found));
        id
    }

    fn anonymous(&mut self, schema: &'s Value) -> Shape {
        let mut shape = Shape {
            anything: schema == &Value::Bool(true) || schema == &Value::Object(Map::new()),
            ..Shape::default()
        };
        for kind in types(schema) {
            match kind {
                "boolean" => shape.boolean = true,
                "integer" => {
                    shape.integer = Some(Limits {
                        min: schema["minimum"].as_i64().unwrap_or(i64::MIN),
                        max: schema["maximum"].as_i64().unwrap_or(i64::MAX),
                    });
                }
                "number" => {
                    shape.number = Some(Limits {
                        min: schema["minimum"].as_f64().unwrap_or(f64::MIN),
                        max: schema["maximum"].as_f64().unwrap_or(f64::MAX),
                    });
                }
                "string" => shape.text = Some(text(schema)),
                "array" => shape.array = Some(self.array(schema)),
                "object" => shape.table = Some(self.table(schema)),
                _ => {}
            }
        }
        self.alternatives(schema, &mut shape);
        shape
    }

    fn array(&mut self, schema: &'s Value) -> Array {
        Array {
            item: self.shape(schema.get("items").unwrap_or(&Value::Bool(true))),
            length: lengths(schema, "minItems", "maxItems"),
            ascending: schema["x-ascending"] == true,
        }
    }

    fn table(&mut self, schema: &'s Value) -> Table {
        let required: Vec<&str> = strings(&schema["required"]).collect();
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields
            .map(|(name, schema)| Field {
                name: name.clone(),
                shape: self.shape(schema),
                required: required.contains(&name.as_str()),
                deprecated: schema["deprecated"] == true,
            })
            .collect();
        let rest = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => Rest::Refused,
            Some(rest) => Rest::Allowed(self.shape(rest)),
            None if schema["unevaluatedProperties"] == false => Rest::Refused,
            None => Rest::Unsaid,
        };
        let format = schema["propertyNames"]["format"].as_str();
        let pairs = |keyword: &str, rule| {
            let keys: Vec<&str> = strings(&schema[keyword]).collect();
            match keys[..] {
                [first, second] => Some(Pair { rule, keys: [first.to_owned(), second.to_owned()] }),
                _ => None,
            }
        };
        Table {
            fields,
            variants: None,
            rest,
            rest_names: format.and_then(text::format),
            pairs: [pairs("x-ascending", PairRule::Ascending), pairs("x-same-length", PairRule::SameLength)]
                .into_iter()
                .flatten()
                .collect(),
        }
    }

    /// Adds the alternatives of a union: tables as variants, anything else kind by kind.
    fn alternatives(&mut self, schema: &'s Value, shape: &mut Shape) {
        let alternatives = ["oneOf", "anyOf"].into_iter().filter_map(|union| schema.get(union)?.as_array()).flatten();
        let mut tables = Vec::new();
        for alternative in alternatives {
            match alternative.get("properties").and_then(tag) {
                Some((tag, names)) => tables.push((Some((tag, names)), alternative)),
                None if alternative.pointer("/properties/type").is_some() => {
                    tables.push((None, alternative));
                }
                None => {
                    let id = self.shape(alternative);
                    shape.also(self.shapes[id.0].clone());
                }
            }
        }
        let Some(tag) = tables.iter().find_map(|(tag, _)| tag.as_ref()) else {
            return;
        };
        let mut variants = Variants { tag: tag.0.to_owned(), known: Vec::new(), default: None, other: None };
        for (tag, schema) in tables {
            let table = self.anonymous(schema).table.unwrap_or_default();
            match tag {
                Some((tag, names)) => {
                    let optional = |field: &Field| field.name == tag && !field.required;
                    if table.fields.iter().any(optional) {
                        variants.default = Some(variants.known.len());
                    }
                    variants.known.push(Variant { names, table });
                }
                None => variants.other = Some(Box::new(table)),
            }
        }
        shape.table.get_or_insert_default().variants = Some(variants);
    }
}

impl Shape {
    /// Allows what `other` allows, too.
    fn also(&mut self, other: Self) {
        self.anything |= other.anything;
        self.boolean |= other.boolean;
        self.integer = self.integer.or(other.integer);
        self.number = self.number.or(other.number);
        match (&mut self.text, other.text) {
            (Some(mine), Some(more)) => mine.choices.extend(more.choices),
            (mine, more) => *mine = mine.take().or(more),
        }
        self.array = self.array.take().or(other.array);
        self.table = self.table.take().or(other.table);
    }
}

/// The property that has a fixed value, and that tells variants apart, with the spellings of the value.
fn tag(properties: &Value) -> Option<(&str, Vec<String>)> {
    properties.as_object()?.iter().find_map(|(key, schema)| {
        let fixed = schema.get("const").is_some() || key == "type" && schema.get("enum").is_some();
        fixed.then(|| (key.as_str(), choices(schema)))
    })
}

fn text(schema: &Value) -> Text {
    let limited = schema.get("minLength").is_some() || schema.get("maxLength").is_some();
    let role =
        |keyword: &str, role: fn(String) -> Role| schema.get(keyword)?.as_str().map(|kind| role(kind.to_owned()));
    Text {
        choices: choices(schema),
        length: limited.then(|| lengths(schema, "minLength", "maxLength")),
        format: schema["format"].as_str().and_then(text::format),
        role: role("x-names", Role::Names)
            .or_else(|| role("x-refers-to", Role::RefersTo))
            .or_else(|| role("x-mentions", Role::Mentions)),
    }
}

fn choices(schema: &Value) -> Vec<String> {
    let fixed = schema["const"].as_str().into_iter();
    fixed.chain(strings(&schema["enum"])).map(str::to_owned).collect()
}

fn lengths(schema: &Value, min: &str, max: &str) -> Limits<usize> {
    let length = |key: &str| usize::try_from(schema[key].as_u64()?).ok();
    Limits { min: length(min).unwrap_or(0), max: length(max).unwrap_or(usize::MAX) }
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let one = schema["type"].as_str().into_iter();
    one.chain(strings(&schema["type"]))
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::super::schema::json_schema;
    use super::*;

    /// Keywords that say something about a value and that the checker acts on.
    const ENFORCED: &[&str] = &[
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "oneOf",
        "properties",
        "propertyNames",
        "required",
        "type",
        "unevaluatedProperties",
        "x-ascending",
        "x-mentions",
        "x-names",
        "x-refers-to",
        "x-same-length",
    ];

    /// Keywords that only describe, or that repeat for other readers what the checker knows by itself:
    /// `pattern` follows from `format`, and `not` keeps the tags of known variants from the unknown one.
    const DESCRIPTIVE: &[&str] =
        &["$defs", "$schema", "default", "deprecated", "description", "not", "pattern", "title"];

    fn each_schema(schema: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
        let Value::Object(object) = schema else {
            return;
        };
        visit(object);
        for (keyword, value) in object {
            match keyword.as_str() {
                "properties" | "$defs" => {
                    value.as_object().into_iter().flatten().for_each(|(_, schema)| each_schema(schema, visit));
                }
                "oneOf" | "anyOf" => {
                    value.as_array().into_iter().flatten().for_each(|schema| each_schema(schema, visit));
                }
                "items" | "additionalProperties" | "propertyNames" => each_schema(value, visit),
                _ => {}
            }
        }
    }

    #[test]
    fn the_schema_has_no_rule_that_nothing_enforces() {
        each_schema(&json_schema(), &mut |schema| {
            for keyword in schema.keys() {
                let known = ENFORCED.contains(&keyword.as_str()) || DESCRIPTIVE.contains(&keyword.as_str());
                assert!(known, "nothing enforces `{keyword}` in {schema:?}");
            }
        });
    }

    #[test]
    fn every_integer_has_both_limits() {
        each_schema(&json_schema(), &mut |schema| {
            let schema = Value::Object(schema.clone());
            if types(&schema).any(|kind| kind == "integer") {
                assert!(schema["minimum"].is_i64() && schema["maximum"].is_i64(), "{schema}");
            }
        });
    }

    #[test]
    fn every_property_is_documented() {
        each_schema(&json_schema(), &mut |schema| {
            for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let tag = property.get("const").is_some() || property.get("enum").is_some();
                assert!(tag || property["description"].is_string(), "{name} in {schema:?}");
            }
        });
    }
}
