//! Encoding a chat request for the API.
//!
//! Models from Gemini 3 on refuse tool calls of their own that come back without the signature that they were sent with.
//! Calls of another provider's model have none; the documentation ("Thought signatures", FAQ) has a value to put in its
//! place, on the first call of each message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_feature::Error;
use conductor_feature::chat::{Effort, Image, Message, Part, Question, Speaker, Tool, ToolChoice, ToolResult};
use conductor_feature::details::Abilities;
use conductor_feature::provider::{Outgoing, Request};
use model_wire::Answer;
use model_wire::json::{arguments, number};
use model_wire::request::{Home, is_made_up, own_mark};
use model_wire::schema;
use serde_json::{Map, Value, json};

use crate::answer::{CALL, TEXT, THOUGHT};

/// The API.
const HOME: Home = Home {
    url: "https://generativelanguage.googleapis.com/v1beta",
    secret: Some("gemini-key"),
    header: "x-goog-api-key",
    prefix: "",
};
/// Texts that may end an answer.
const MAX_STOP: usize = 5;
/// What stands for the signature of a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// What to send.
///
/// # Errors
/// `Invalid` if a schema is not JSON, the model's name is not one, or the whole is too large.
pub fn outgoing(request: &Request, _: &Abilities, answer: &mut Answer) -> Result<Outgoing, Error> {
    let model = request.model.trim_start_matches('/');
    // The name becomes a part of the address.
    if model.is_empty()
        || !model.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        || model.contains("..")
    {
        return Err(Error::Invalid(format!(
            "{:?} is no name of a model; letters, digits, -, _, . and / are allowed, such as \"gemini-3.5-flash\"",
            request.model
        )));
    }
    let path = if model.contains('/') { model.to_owned() } else { format!("models/{model}") };
    let method = if request.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    let url = format!("{}/{path}:{method}", HOME.base(&request.endpoint));
    HOME.post(&request.endpoint, url, &[], request.stream, &body(&request.question, model, answer)?)
}

fn body(question: &Question, model: &str, answer: &mut Answer) -> Result<Value, Error> {
    let Question { instructions, messages, tools, choice, how } = question;
    let mut body = Map::new();
    if !instructions.is_empty() {
        body.insert("systemInstruction".into(), json!({ "parts": [{ "text": instructions }] }));
    }
    let contents: Vec<Value> = messages.iter().filter_map(|message| said(message, is_signed(model))).collect();
    body.insert("contents".into(), contents.into());
    if !tools.is_empty() {
        let declarations: Vec<Value> = tools.iter().map(tool).collect::<Result<_, _>>()?;
        body.insert("tools".into(), json!([{ "functionDeclarations": declarations }]));
        let choice = match choice {
            ToolChoice::Auto => json!({ "mode": "AUTO" }),
            ToolChoice::None => json!({ "mode": "NONE" }),
            ToolChoice::Required => json!({ "mode": "ANY" }),
            ToolChoice::One(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
        };
        body.insert("toolConfig".into(), json!({ "functionCallingConfig": choice }));
    }
    let mut config = Map::new();
    if let Some(most) = how.max_tokens {
        config.insert("maxOutputTokens".into(), most.into());
    }
    if let Some(temperature) = how.temperature {
        config.insert("temperature".into(), number(temperature));
    }
    if let Some(top_p) = how.top_p {
        config.insert("topP".into(), number(top_p));
    }
    if !how.stop.is_empty() {
        if how.stop.len() > MAX_STOP {
            answer.note("the API takes 5 texts that end an answer; the others were left out");
        }
        config.insert("stopSequences".into(), json!(how.stop[..how.stop.len().min(MAX_STOP)]));
    }
    if let Some(schema) = &how.schema {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), schema::schema("the answer's schema", schema)?);
    }
    if let Some(effort) = how.effort {
        match thinking(model, effort) {
            Some(thinking) => {
                config.insert("thinkingConfig".into(), thinking);
            }
            None => answer.note("the model does not think, so its effort was left out"),
        }
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    Ok(body.into())
}

/// How a model is made to think: with a level from Gemini 3 on, with a budget before. `None` if it does not think.
fn thinking(model: &str, effort: Effort) -> Option<Value> {
    if model.contains("gemini-1") || model.contains("gemini-2.0") {
        return None;
    }
    if model.contains("gemini-2.5") {
        let budget = match effort {
            // The least that each of the models takes.
            Effort::Minimal => 512,
            Effort::Low => 2_048,
            Effort::Medium => 8_192,
            Effort::High => 24_576,
        };
        return Some(json!({ "includeThoughts": true, "thinkingBudget": budget }));
    }
    let level = match effort {
        // `minimal` is known to some of them only.
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    };
    Some(json!({ "includeThoughts": true, "thinkingLevel": level }))
}

/// Whether the model refuses its tool calls without their signatures.
fn is_signed(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|old| model.contains(old))
}

fn tool(tool: &Tool) -> Result<Value, Error> {
    let Tool { name, description, input } = tool;
    let parameters = schema::schema(&format!("the schema of the tool {name}"), input)?;
    Ok(json!({ "name": name, "description": description, "parametersJsonSchema": parameters }))
}

/// A message. `None` if nothing in it has a place in the API. `signed` asks for a signature on the first call.
fn said(message: &Message, signed: bool) -> Option<Value> {
    let mut parts = Vec::new();
    let mut is_first = true;
    for part in &message.parts {
        match part {
            Part::Text(text) if text.is_empty() => {}
            Part::Text(text) => parts.push(json!({ "text": text })),
            Part::Image(Image { media_type, data }) => {
                parts.push(json!({ "inlineData": { "mimeType": media_type, "data": STANDARD.encode(data) } }));
            }
            Part::ToolCall(call) => {
                let mut function = json!({ "name": call.name, "args": arguments(&call.args) });
                if !is_made_up(&call.id) {
                    function["id"] = call.id.as_str().into();
                }
                let mut part = json!({ "functionCall": function });
                let signature = own_mark(&call.mark, CALL).or((signed && is_first).then_some(NO_SIGNATURE));
                if let Some(signature) = signature {
                    part["thoughtSignature"] = signature.into();
                }
                is_first = false;
                parts.push(part);
            }
            Part::ToolResult(result) => {
                let mut function = json!({ "name": result.name, "response": response(result) });
                if !is_made_up(&result.id) {
                    function["id"] = result.id.as_str().into();
                }
                parts.push(json!({ "functionResponse": function }));
            }
            Part::Reasoning(thought) => {
                if let Some(signature) = own_mark(&thought.mark, THOUGHT) {
                    parts.push(json!({ "text": thought.text, "thought": true, "thoughtSignature": signature }));
                } else if let Some(signature) = own_mark(&thought.mark, TEXT) {
                    // The signature of the text before.
                    match parts.last_mut().filter(|part| part.get("text").is_some() && part.get("thought").is_none()) {
                        Some(part) => part["thoughtSignature"] = signature.into(),
                        None => parts.push(json!({ "text": "", "thoughtSignature": signature })),
                    }
                }
            }
        }
    }
    let role = match message.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "model",
    };
    (!parts.is_empty()).then(|| json!({ "role": role, "parts": parts }))
}

/// A result, which the API takes as an object.
fn response(result: &ToolResult) -> Value {
    let content = match serde_json::from_str::<Value>(&result.content) {
        Ok(Value::Object(object)) if !result.failed => return Value::Object(object),
        Ok(value) => value,
        Err(_) => result.content.as_str().into(),
    };
    let key = if result.failed { "error" } else { "output" };
    json!({ key: content })
}

#[cfg(test)]
mod tests {
    use conductor_feature::chat::{Parameters, Reasoning, ToolCall};
    use model_wire::Exchange;
    use model_wire::transcript::request;

    use super::*;
    use crate::answer::Content;

    fn question(messages: Vec<Message>) -> Question {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how }
    }

    fn sent(model: &str, url: Option<&str>, question: Question) -> (Outgoing, Value, Vec<String>) {
        let mut exchange = Exchange::<Content>::default();
        let outgoing = exchange.begin(request("gemini", model, url, question), outgoing).unwrap();
        let body = serde_json::from_slice(&outgoing.body).unwrap();
        (outgoing, body, exchange.report().notes)
    }

    fn message(speaker: Speaker, parts: Vec<Part>) -> Message {
        Message { speaker, parts }
    }

    #[test]
    fn the_model_is_a_part_of_the_address() {
        let (own, ..) = sent("gemini-3.5-flash", None, question(vec![]));
        assert_eq!(
            own.url,
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
        );
        let secret = own.secret.unwrap();
        assert_eq!((&*secret.id, &*secret.header, &*secret.prefix), ("gemini-key", "x-goog-api-key", ""));
        let (other, ..) = sent("tunedModels/mine", Some("http://localhost:1/v1beta/"), question(vec![]));
        assert_eq!(other.url, "http://localhost:1/v1beta/tunedModels/mine:streamGenerateContent?alt=sse");
        assert!(other.secret.is_none());
        for name in ["", "a?b", "a:b", "../../x", "a b"] {
            let asked = request("gemini", name, None, question(vec![]));
            assert!(matches!(Exchange::<Content>::default().begin(asked, outgoing), Err(Error::Invalid(_))), "{name}");
        }
        let mut exchange = Exchange::<Content>::default();
        exchange.expect(Abilities { tools: true, streams: false, schema: true, output: None });
        let whole = exchange.begin(request("gemini", "m", None, question(vec![])), outgoing).unwrap();
        assert!(whole.url.ends_with("/models/m:generateContent"), "{}", whole.url);
    }

    fn conversation() -> Question {
        let call = |id: &str, args: &str, mark: Option<&str>| {
            let (id, name, args) = (id.into(), "look".into(), args.into());
            Part::ToolCall(ToolCall { id, name, args, mark: mark.map(Into::into) })
        };
        let result = |id: &str, content: &str, failed| {
            let (id, name, content) = (id.into(), "look".into(), content.into());
            Part::ToolResult(ToolResult { id, name, content, failed })
        };
        let thought =
            |text: &str, mark: &str| Part::Reasoning(Reasoning { text: text.into(), mark: Some(mark.into()) });
        let image = Image { media_type: "image/png".into(), data: vec![1, 2, 3] };
        question(vec![
            message(Speaker::User, vec![Part::Text("See?".into()), Part::Image(image)]),
            message(
                Speaker::Assistant,
                vec![
                    thought("Hm.", "gemini:thought:dA=="),
                    thought("Another's.", "anthropic:thinking:x"),
                    Part::Text("Well, ".into()),
                    thought("", "gemini:text:cw=="),
                    call("call-0", r#"{"at":3}"#, Some("gemini:call:Yw==")),
                    call("fc_1", "", None),
                ],
            ),
            message(
                Speaker::User,
                vec![
                    result("call-0", r#"{"light":0}"#, false),
                    result("fc_1", "[1]", false),
                    result("fc_1", "no", true),
                ],
            ),
            message(Speaker::Assistant, vec![call("toolu_1", "{", None), call("toolu_2", "{}", None)]),
            message(Speaker::Assistant, vec![thought("Another's.", "anthropic:thinking:x")]),
        ])
    }

    #[test]
    fn a_conversation_is_written_as_the_api_has_it() {
        let (_, body, _) = sent("gemini-3.5-flash", None, conversation());
        assert_eq!(
            body["contents"],
            json!([
                { "role": "user", "parts": [
                    { "text": "See?" },
                    { "inlineData": { "mimeType": "image/png", "data": "AQID" } },
                ] },
                { "role": "model", "parts": [
                    { "text": "Hm.", "thought": true, "thoughtSignature": "dA==" },
                    { "text": "Well, ", "thoughtSignature": "cw==" },
                    { "functionCall": { "name": "look", "args": { "at": 3 } }, "thoughtSignature": "Yw==" },
                    { "functionCall": { "name": "look", "args": {}, "id": "fc_1" } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "look", "response": { "light": 0 } } },
                    { "functionResponse": { "name": "look", "response": { "output": [1] }, "id": "fc_1" } },
                    { "functionResponse": { "name": "look", "response": { "error": "no" }, "id": "fc_1" } },
                ] },
                { "role": "model", "parts": [
                    {
                        "functionCall": { "name": "look", "args": { "invalid_arguments": "{" }, "id": "toolu_1" },
                        "thoughtSignature": "skip_thought_signature_validator",
                    },
                    { "functionCall": { "name": "look", "args": {}, "id": "toolu_2" } },
                ] },
            ])
        );
        let (_, old, _) = sent("gemini-2.5-flash", None, conversation());
        assert!(old["contents"][3]["parts"][0].get("thoughtSignature").is_none(), "older models don't ask for it");
    }

    #[test]
    fn tools_and_parameters_are_named_as_the_api_names_them() {
        let with = |model: &str, effort| {
            let mut question = question(vec![]);
            question.instructions = "Be short.".into();
            question.tools =
                vec![Tool { name: "look".into(), description: "Looks.".into(), input: r#"{"type":"object"}"#.into() }];
            question.choice = ToolChoice::One("look".into());
            question.how = Parameters {
                max_tokens: Some(100),
                temperature: Some(0.7),
                top_p: Some(0.5),
                stop: ["a", "b", "c", "d", "e", "f"].map(Into::into).to_vec(),
                schema: Some(r#"{"type":"object"}"#.into()),
                effort: Some(effort),
            };
            sent(model, None, question)
        };
        let (_, body, notes) = with("gemini-3.5-flash", Effort::High);
        assert_eq!(body["systemInstruction"], json!({ "parts": [{ "text": "Be short." }] }));
        assert_eq!(
            body["tools"],
            json!([{ "functionDeclarations": [
                { "name": "look", "description": "Looks.", "parametersJsonSchema": { "type": "object" } },
            ] }])
        );
        assert_eq!(
            body["toolConfig"],
            json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["look"] } })
        );
        assert_eq!(
            body["generationConfig"],
            json!({
                "maxOutputTokens": 100,
                "temperature": 0.7,
                "topP": 0.5,
                "stopSequences": ["a", "b", "c", "d", "e"],
                "responseMimeType": "application/json",
                "responseJsonSchema": { "type": "object" },
                "thinkingConfig": { "includeThoughts": true, "thinkingLevel": "high" },
            })
        );
        assert_eq!(notes.len(), 1);
        let (_, body, _) = with("gemini-2.5-pro", Effort::Low);
        assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingBudget"], 2048);
        let (_, body, notes) = with("gemini-2.0-flash", Effort::Low);
        assert!(body["generationConfig"].get("thinkingConfig").is_none() && notes.len() == 2);
    }
}
