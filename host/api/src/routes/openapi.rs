//! The OpenAPI document of the API, made of the same descriptions as the router.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::route::{Answer, Described, Method, SchemaOf};

/// What is to be known before the first request.
const ABOUT: &str = "What a running Conductor can be asked. On the Unix socket `<home>/conductor.sock` no token is \
    asked for; over TCP, where a person has opened that door, a bearer token of the home is. Each operation says in \
    `x-conductor-scope` what the token has to allow: `read` to look, `control` to call tools and to change what \
    holds until the host stops, `owner` for what a person decides. What is not done is answered with `ApiError`, by every \
    operation.";

/// The document (OpenAPI 3.1), as JSON.
pub fn document() -> Value {
    // Answers as they are written, bodies as they are read.
    let mut answers = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    answers.contract = schemars::generate::Contract::Serialize;
    let mut answers = answers.into_generator();
    let bodies = || {
        let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        settings.into_generator()
    };
    let refused = answers.subschema_for::<ApiError>();
    let refused = json!({
        "description": "It was not done, and why",
        "content": { "application/json": { "schema": refused } },
    });
    let mut paths = Map::new();
    for route in super::all() {
        let operation = operation(&route.described, &mut answers, &bodies);
        let method = match route.described.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        let path = paths.entry(route.described.path).or_insert_with(|| json!({}));
        path[method] = operation;
    }
    let schemas = answers.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Conductor", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" } },
        "servers": [{ "url": "http://127.0.0.1:{port}", "description": "the TCP door, where it is open",
            "variables": { "port": { "default": "7707", "description": "as `<home>/api.json` says" } } }],
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": { "ApiError": refused },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer",
                "description": "A token of the home; not asked for on the Unix socket." } },
        },
    })
}

/// The schema of what is read.
fn read(schema: SchemaOf, bodies: &impl Fn() -> SchemaGenerator) -> Schema {
    let mut schema = schema(&mut bodies());
    RecursiveTransform(bounded).transform(&mut schema);
    schema
}

/// Says how large a whole number may be that is read into this many bits: what is larger is rejected as no number.
fn bounded(schema: &mut Schema) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => (json!(0), json!(u8::MAX)),
        Some("uint16") => (json!(0), json!(u16::MAX)),
        Some("uint32") => (json!(0), json!(u32::MAX)),
        Some("uint" | "uint64") => (json!(0), json!(u64::MAX)),
        Some("int32") => (json!(i32::MIN), json!(i32::MAX)),
        Some("int" | "int64") => (json!(i64::MIN), json!(i64::MAX)),
        _ => return,
    };
    let Some(schema) = schema.as_object_mut() else { return };
    schema.entry("minimum").or_insert(least);
    schema.entry("maximum").or_insert(most);
}

fn operation(described: &Described, answers: &mut SchemaGenerator, bodies: &impl Fn() -> SchemaGenerator) -> Value {
    let Described { path, id, summary, scope, query, body, answer, refuses, .. } = described;
    let mut parameters: Vec<Value> = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } }))
        .collect();
    parameters.extend(query.iter().flat_map(|query| behind_the_question_mark(*query, bodies)));
    let refusal = json!({ "$ref": "#/components/responses/ApiError" });
    let (status, told) = match answer {
        Answer::Json(schema) => {
            let schema = schema(answers);
            ("200", json!({ "description": "Done", "content": { "application/json": { "schema": schema } } }))
        }
        // The items of the stream, as OpenAPI 3.2 will have it; for 3.1 they are text.
        Answer::Lines(schema) => {
            let item = schema(answers);
            let content = json!({ "schema": { "type": "string" }, "x-itemSchema": item });
            let description = "One JSON object a line, until the client leaves";
            ("200", json!({ "description": description, "content": { "application/x-ndjson": content } }))
        }
        Answer::Socket(schema) => {
            let item = schema(answers);
            ("101", json!({ "description": "One JSON object a message", "x-itemSchema": item }))
        }
    };
    let mut responses = Map::new();
    responses.insert(status.to_owned(), told);
    for refused in *refuses {
        responses.insert(refused.to_string(), refusal.clone());
    }
    responses.insert("default".to_owned(), refusal);
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "x-conductor-scope": scope,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = body {
        let schema = read(*body, bodies);
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

/// The fields of an object, as parameters.
fn behind_the_question_mark(query: SchemaOf, bodies: &impl Fn() -> SchemaGenerator) -> Vec<Value> {
    let schema = read(query, bodies).to_value();
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
    let fields = schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, field): (&String, &Value)| {
        let mut field = field.clone();
        let description = field.as_object_mut().and_then(|field| {
            // That it may be missing is said by `required`: null is no text behind a `?`.
            if let Some(Value::Array(types)) = field.get_mut("type") {
                types.retain(|one| one != "null");
                let only = types.first().cloned();
                field.insert("type".to_owned(), only.unwrap_or_default());
            }
            field.remove("default");
            field.remove("description")
        });
        json!({
            "name": name, "in": "query", "required": required(name), "description": description.unwrap_or_default(),
            "schema": field,
        })
    };
    fields.map(parameter).collect()
}

/// For routes that answer the document: any JSON object.
#[derive(Debug, JsonSchema)]
#[schemars(with = "Map<String, Value>")]
pub(super) struct Document;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_in_the_document_with_a_name_of_its_own() {
        let document = document();
        let mut ids = BTreeSet::new();
        for route in super::super::all() {
            let described = route.described;
            let method = format!("{:?}", described.method).to_lowercase();
            let operation = &document["paths"][described.path][&method];
            assert_eq!(operation["operationId"], described.id, "{} is missing", described.path);
            assert!(ids.insert(described.id), "two are called {}", described.id);
        }
        assert!(ids.len() > 20, "{ids:?}");
    }

    #[test]
    fn a_number_that_is_asked_for_has_both_its_ends() {
        let document = document();
        let parameters = document["paths"]["/v1/conversations/{id}/events"]["get"]["parameters"].as_array().unwrap();
        let after = &parameters.iter().find(|parameter| parameter["name"] == "after").unwrap()["schema"];
        assert_eq!((&after["minimum"], &after["maximum"]), (&json!(0), &json!(u64::MAX)), "{after}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|field| references(field, found));
                }
                Value::Array(items) => items.iter().for_each(|item| references(item, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 15, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads away"));
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }
}
