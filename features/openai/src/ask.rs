//! Encoding a chat request for the API.
//!
//! Nothing is stored on the server: each request has the whole conversation, with the model's reasoning as it sealed it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_feature::Error;
use conductor_feature::chat::{Effort, Image, Message, Part, Question, Speaker, Tool, ToolChoice};
use conductor_feature::details::Abilities;
use conductor_feature::provider::{Outgoing, Request};
use model_wire::Answer;
use model_wire::json::number;
use model_wire::request::{Home, own_mark, plain_id};
use model_wire::schema;
use serde_json::{Map, Value, json};

use crate::item::{PHASE, REASONING, sealed};

/// The API.
const HOME: Home =
    Home { url: "https://api.openai.com/v1", secret: Some("openai-key"), header: "authorization", prefix: "Bearer " };
/// The fewest tokens of an answer that the API takes.
const MIN_OUTPUT: u32 = 16;

/// What to send.
///
/// # Errors
/// `Invalid` if a schema is not JSON, or the whole is too large.
pub fn outgoing(request: &Request, _: &Abilities, answer: &mut Answer) -> Result<Outgoing, Error> {
    let url = format!("{}/responses", HOME.base(&request.endpoint));
    HOME.post(&request.endpoint, url, &[], request.stream, &body(request, answer)?)
}

fn body(request: &Request, answer: &mut Answer) -> Result<Value, Error> {
    let Question { instructions, messages, tools, choice, how } = &request.question;
    let model = request.model.as_str();
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("store".into(), false.into());
    if request.stream {
        body.insert("stream".into(), true.into());
    }
    if !instructions.is_empty() {
        body.insert("instructions".into(), instructions.as_str().into());
    }
    let mut input = Vec::new();
    messages.iter().for_each(|message| said(message, reasons(model), &mut input));
    body.insert("input".into(), input.into());
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.iter().map(tool).collect::<Result<_, _>>()?;
        body.insert("tools".into(), tools.into());
        let choice = match choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::One(name) => json!({ "type": "function", "name": name }),
        };
        body.insert("tool_choice".into(), choice);
    }
    if let Some(most) = how.max_tokens {
        body.insert("max_output_tokens".into(), most.max(MIN_OUTPUT).into());
    }
    if reasons(model) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
        if let Some(effort) = how.effort {
            body.insert("reasoning".into(), json!({ "effort": word(model, effort), "summary": "auto" }));
        }
        if how.temperature.is_some() || how.top_p.is_some() {
            answer.note("the model takes no temperature and no top_p, so they were left out");
        }
    } else {
        if how.effort.is_some() {
            answer.note("the model does not reason, so its effort was left out");
        }
        if let Some(temperature) = how.temperature {
            body.insert("temperature".into(), number(temperature));
        }
        if let Some(top_p) = how.top_p {
            body.insert("top_p".into(), number(top_p));
        }
    }
    if !how.stop.is_empty() {
        answer.note("the API takes no texts that end an answer, so they were left out");
    }
    if let Some(schema) = &how.schema {
        let schema = schema::schema("the answer's schema", schema)?;
        // `strict` takes a part of JSON Schema only, which not every schema keeps to.
        let format = json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": false });
        body.insert("text".into(), json!({ "format": format }));
    }
    Ok(body.into())
}

/// Whether a model reasons: all but those before the o-series, which refuse to be asked about it.
fn reasons(model: &str) -> bool {
    !["gpt-3", "gpt-4", "chatgpt-4"].iter().any(|old| model.starts_with(old))
}

/// An effort, in a word that the model knows. `minimal` was the first GPT-5's alone.
fn word(model: &str, effort: Effort) -> &'static str {
    let has_minimal = matches!(model, "gpt-5" | "gpt-5-mini" | "gpt-5-nano") || model.starts_with("gpt-5-2025");
    match effort {
        Effort::Minimal if has_minimal => "minimal",
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    }
}

fn tool(tool: &Tool) -> Result<Value, Error> {
    let Tool { name, description, input } = tool;
    let parameters = schema::schema(&format!("the schema of the tool {name}"), input)?;
    Ok(json!({
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": false,
    }))
}

/// A message, which becomes several items: each result, each call, each text of the model is one. `reasons` says whether
/// the model takes reasoning back.
fn said(message: &Message, reasons: bool, input: &mut Vec<Value>) {
    let mut content = Vec::new();
    for part in &message.parts {
        match (part, message.speaker) {
            (Part::Text(text), _) if text.is_empty() => {}
            (Part::Text(text), Speaker::User) => content.push(json!({ "type": "input_text", "text": text })),
            (Part::Text(text), Speaker::Assistant) => input.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            })),
            (Part::Image(Image { media_type, data }), _) => {
                let url = format!("data:{media_type};base64,{}", STANDARD.encode(data));
                content.push(json!({ "type": "input_image", "image_url": url, "detail": "auto" }));
            }
            (Part::ToolCall(call), _) => input.push(json!({
                "type": "function_call",
                "call_id": plain_id(&call.id),
                "name": call.name,
                "arguments": call.args,
            })),
            (Part::ToolResult(result), _) => input.push(json!({
                "type": "function_call_output",
                "call_id": plain_id(&result.id),
                "output": result.content,
            })),
            (Part::Reasoning(thought), _) => {
                if let Some((id, sealed)) = own_mark(&thought.mark, REASONING).and_then(sealed).filter(|_| reasons) {
                    let summary = match thought.text.as_str() {
                        "" => json!([]),
                        text => json!([{ "type": "summary_text", "text": text }]),
                    };
                    input.push(
                        json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed }),
                    );
                } else if let Some(phase) = own_mark(&thought.mark, PHASE)
                    && let Some(text) = input.last_mut().filter(|item| item["role"] == "assistant")
                {
                    text["phase"] = phase.into();
                }
            }
        }
    }
    if !content.is_empty() {
        input.push(json!({ "type": "message", "role": "user", "content": content }));
    }
}

#[cfg(test)]
mod tests {
    use conductor_feature::chat::{Parameters, Reasoning, ToolCall, ToolResult};
    use model_wire::Exchange;
    use model_wire::transcript::request;

    use super::*;
    use crate::answer::Responses;

    fn question(messages: Vec<Message>) -> Question {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how }
    }

    fn sent(model: &str, url: Option<&str>, question: Question) -> (Outgoing, Value, Vec<String>) {
        let mut exchange = Exchange::<Responses>::default();
        let outgoing = exchange.begin(request("openai", model, url, question), outgoing).unwrap();
        let body = serde_json::from_slice(&outgoing.body).unwrap();
        (outgoing, body, exchange.report().notes)
    }

    #[test]
    fn nothing_is_stored_and_reasoning_comes_back_sealed() {
        let (own, body, _) = sent("gpt-6.2-sol", None, question(vec![]));
        assert_eq!(own.url, "https://api.openai.com/v1/responses");
        let secret = own.secret.unwrap();
        assert_eq!((&*secret.id, &*secret.header, &*secret.prefix), ("openai-key", "authorization", "Bearer "));
        assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        let (_, old, _) = sent("gpt-4o", None, question(vec![]));
        assert!(old.get("include").is_none(), "it refuses to be asked for what it does not have");
        let (other, ..) = sent("m", Some("http://localhost:1/v1/"), question(vec![]));
        assert_eq!((&*other.url, other.secret.is_none()), ("http://localhost:1/v1/responses", true));
    }

    fn conversation() -> Question {
        let thought =
            |text: &str, mark: &str| Part::Reasoning(Reasoning { text: text.into(), mark: Some(mark.into()) });
        let call = ToolCall { id: "call_1".into(), name: "look".into(), args: "{\"at\":".into(), mark: None };
        let result = ToolResult { id: "call_1".into(), name: "look".into(), content: "dark".into(), failed: true };
        let image = Image { media_type: "image/png".into(), data: vec![1, 2, 3] };
        question(vec![
            Message { speaker: Speaker::User, parts: vec![Part::Text("See?".into()), Part::Image(image)] },
            Message {
                speaker: Speaker::Assistant,
                parts: vec![
                    thought("Hm.", "openai:reasoning:rs_1:gAAA=="),
                    thought("", "openai:reasoning:rs_2:gBBB=="),
                    thought("Another's.", "anthropic:thinking:x"),
                    Part::Text("Looking.".into()),
                    thought("", "openai:phase:commentary"),
                    Part::ToolCall(call),
                ],
            },
            Message { speaker: Speaker::User, parts: vec![Part::ToolResult(result), Part::Text("Well?".into())] },
        ])
    }

    #[test]
    fn a_conversation_is_written_as_items() {
        let (_, body, _) = sent("gpt-6.2-sol", None, conversation());
        assert_eq!(
            body["input"],
            json!([
                { "type": "message", "role": "user", "content": [
                    { "type": "input_text", "text": "See?" },
                    { "type": "input_image", "image_url": "data:image/png;base64,AQID", "detail": "auto" },
                ] },
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{ "type": "summary_text", "text": "Hm." }],
                    "encrypted_content": "gAAA==",
                },
                { "type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gBBB==" },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }],
                    "phase": "commentary",
                },
                { "type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{\"at\":" },
                { "type": "function_call_output", "call_id": "call_1", "output": "dark" },
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Well?" }] },
            ])
        );
        let (_, old, _) = sent("gpt-4o", None, conversation());
        assert!(old["input"].as_array().unwrap().iter().all(|item| item["type"] != "reasoning"));
    }

    #[test]
    fn tools_and_parameters_are_sent_to_models_that_take_them() {
        let with = |model: &str, effort| {
            let mut question = question(vec![]);
            question.instructions = "Be short.".into();
            question.tools =
                vec![Tool { name: "look".into(), description: "Looks.".into(), input: r#"{"type":"object"}"#.into() }];
            question.choice = ToolChoice::One("look".into());
            question.how = Parameters {
                max_tokens: Some(10),
                temperature: Some(0.7),
                top_p: None,
                stop: vec!["END".into()],
                schema: Some(r#"{"type":"object"}"#.into()),
                effort: Some(effort),
            };
            let (_, body, notes) = sent(model, None, question);
            (body, notes)
        };
        let (body, notes) = with("gpt-6.2-sol", Effort::Minimal);
        assert_eq!(body["instructions"], "Be short.");
        assert_eq!(
            body["tools"],
            json!([{
                "type": "function",
                "name": "look",
                "description": "Looks.",
                "parameters": { "type": "object" },
                "strict": false,
            }])
        );
        assert_eq!(body["tool_choice"], json!({ "type": "function", "name": "look" }));
        assert_eq!(body["text"]["format"]["schema"], json!({ "type": "object" }));
        assert_eq!(body["reasoning"], json!({ "effort": "low", "summary": "auto" }));
        assert_eq!((&body["max_output_tokens"], body.get("temperature")), (&json!(16), None));
        assert_eq!(notes.len(), 2);
        assert_eq!(with("gpt-5-mini", Effort::Minimal).0["reasoning"]["effort"], "minimal");
        let (old, notes) = with("gpt-4.1", Effort::High);
        assert_eq!((old.get("reasoning"), &old["temperature"], notes.len()), (None, &json!(0.7), 2));
    }
}
