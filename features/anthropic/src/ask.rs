//! Encoding a chat request for the API.
//!
//! Of a conversation that goes on the API reads the part that it has read before from a cache, if a request had it write
//! one (`cache_control`): at the end of the instructions, which stand after the tools, and at the end of the
//! conversation. Caches cost more to write than to read; what was written and read is in the usage.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_feature::Error;
use conductor_feature::chat::{Effort, Image, Message, Part, Question, Speaker, Tool, ToolChoice};
use conductor_feature::details::Abilities;
use conductor_feature::provider::{Outgoing, Request};
use model_wire::Answer;
use model_wire::fallback::{has_calls, without_tools};
use model_wire::json::{arguments, number};
use model_wire::request::{Home, own_mark, plain_id};
use model_wire::schema;
use serde_json::{Map, Value, json};

use crate::answer::{REDACTED, THINKING};
use crate::generation::{Thinking, is_sampled, thinking};

/// The API.
const HOME: Home =
    Home { url: "https://api.anthropic.com", secret: Some("anthropic-key"), header: "x-api-key", prefix: "" };
/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";
/// Tokens of an answer where the asker sets no limit: the API wants one.
const DEFAULT_OUTPUT: u32 = 32_000;
/// The same for a model whose own limit is unknown: the least of those that are still served.
const UNKNOWN_OUTPUT: u32 = 8_192;
/// The least budget for thoughts that the API takes.
const MIN_BUDGET: u32 = 1_024;

/// What to send.
///
/// # Errors
/// `Invalid` if a schema is not JSON, or the whole is too large.
pub fn outgoing(request: &Request, model: &Abilities, answer: &mut Answer) -> Result<Outgoing, Error> {
    let base = HOME.base(&request.endpoint);
    let base = base.strip_suffix("/v1").unwrap_or(base);
    // The API refuses earlier calls in a question without tools.
    let body = if request.question.tools.is_empty() && has_calls(&request.question) {
        let question = without_tools(request.question.clone());
        body(&request.model, &question, request.stream, model, answer)?
    } else {
        body(&request.model, &request.question, request.stream, model, answer)?
    };
    let url = format!("{base}/v1/messages");
    HOME.post(&request.endpoint, url, &[("anthropic-version", VERSION)], request.stream, &body)
}

fn body(
    model: &str,
    question: &Question,
    stream: bool,
    abilities: &Abilities,
    answer: &mut Answer,
) -> Result<Value, Error> {
    let Question { instructions, messages, tools, choice, how } = question;
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    let known = abilities.output.map_or(UNKNOWN_OUTPUT, |most| most.min(DEFAULT_OUTPUT));
    let most = how.max_tokens.unwrap_or(known);
    body.insert("max_tokens".into(), most.into());
    if stream {
        body.insert("stream".into(), true.into());
    }
    if !instructions.is_empty() {
        body.insert("system".into(), json!([cached(json!({ "type": "text", "text": instructions }))]));
    }
    if !tools.is_empty() {
        let mut tools: Vec<Value> = tools.iter().map(tool).collect::<Result<_, _>>()?;
        if let Some(last) = tools.last_mut().filter(|_| instructions.is_empty()) {
            *last = cached(last.take());
        }
        body.insert("tools".into(), tools.into());
        let choice = match choice {
            ToolChoice::Auto => json!({ "type": "auto" }),
            ToolChoice::None => json!({ "type": "none" }),
            ToolChoice::Required => json!({ "type": "any" }),
            ToolChoice::One(name) => json!({ "type": "tool", "name": name }),
        };
        body.insert("tool_choice".into(), choice);
    }
    let mut output = Map::new();
    let mut thinks = false;
    let is_forced = !tools.is_empty() && matches!(choice, ToolChoice::Required | ToolChoice::One(_));
    if let Some(effort) = how.effort {
        match thinking(model) {
            // The API refuses both together.
            Thinking::Budget if is_forced => answer.note("a tool has to be called, so the model does not think before"),
            Thinking::Never => answer.note("the model does not think, so its effort was left out"),
            Thinking::Adaptive => {
                if is_forced {
                    answer.note("a tool has to be called, so no thoughts were asked for");
                } else {
                    thinks = true;
                    body.insert("thinking".into(), json!({ "type": "adaptive", "display": "summarized" }));
                }
                let word = match effort {
                    Effort::Minimal | Effort::Low => "low",
                    Effort::Medium => "medium",
                    Effort::High => "high",
                };
                output.insert("effort".into(), word.into());
            }
            Thinking::Budget => {
                let budget = match effort {
                    Effort::Minimal => MIN_BUDGET,
                    Effort::Low => 4 * MIN_BUDGET,
                    Effort::Medium => 10 * MIN_BUDGET,
                    Effort::High => 24 * MIN_BUDGET,
                };
                // It has to be less than the tokens of the whole answer.
                let budget = budget.min(most / 2);
                if budget < MIN_BUDGET {
                    answer.note("the answer may have too few tokens for the model to think");
                } else {
                    thinks = true;
                    body.insert("thinking".into(), json!({ "type": "enabled", "budget_tokens": budget }));
                }
            }
        }
    }
    if how.temperature.is_some() || how.top_p.is_some() {
        if thinks || !is_sampled(model) {
            answer.note("the model takes no temperature and no top_p, so they were left out");
        } else if let Some(temperature) = how.temperature {
            // The API's scale ends at 1. One of the two is taken, not both.
            body.insert("temperature".into(), number(temperature.min(1.0)));
        } else if let Some(top_p) = how.top_p {
            body.insert("top_p".into(), number(top_p));
        }
    }
    let stop: Vec<&String> = how.stop.iter().filter(|text| !text.trim().is_empty()).collect();
    if !stop.is_empty() {
        body.insert("stop_sequences".into(), json!(stop));
    }
    if let Some(schema) = &how.schema {
        let schema = schema::schema("the answer's schema", schema)?;
        output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
    }
    if !output.is_empty() {
        body.insert("output_config".into(), output.into());
    }
    let mut list: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = said(message);
        // The API refuses messages without content.
        if !blocks.is_empty() {
            list.push((role, blocks));
        }
    }
    if let Some(last) = list.last_mut().filter(|(role, _)| *role == "user").and_then(|(_, blocks)| blocks.last_mut()) {
        *last = cached(last.take());
    }
    let list: Vec<Value> = list.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect();
    body.insert("messages".into(), list.into());
    Ok(body.into())
}

/// A block after which the API writes a cache.
fn cached(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

fn tool(tool: &Tool) -> Result<Value, Error> {
    let Tool { name, description, input } = tool;
    let schema = schema::schema(&format!("the schema of the tool {name}"), input)?;
    Ok(json!({ "name": name, "description": description, "input_schema": schema }))
}

/// A message: who said it, and its blocks. Results of tools stand first, as the API has it. Thoughts of other providers
/// have no place in it.
fn said(message: &Message) -> (&'static str, Vec<Value>) {
    let (mut results, mut blocks) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            // The API refuses empty texts, and texts of spaces alone.
            Part::Text(text) if text.trim().is_empty() => {}
            Part::Text(text) => blocks.push(json!({ "type": "text", "text": text })),
            Part::Image(Image { media_type, data }) => blocks.push(json!({
                "type": "image",
                "source": { "type": "base64", "media_type": media_type, "data": STANDARD.encode(data) },
            })),
            Part::ToolCall(call) => blocks.push(json!({
                "type": "tool_use",
                "id": plain_id(&call.id),
                "name": call.name,
                "input": arguments(&call.args),
            })),
            Part::ToolResult(result) => {
                let mut block = json!({
                    "type": "tool_result",
                    "tool_use_id": plain_id(&result.id),
                    "content": result.content,
                });
                if result.failed {
                    block["is_error"] = true.into();
                }
                results.push(block);
            }
            Part::Reasoning(thought) => {
                if let Some(signature) = own_mark(&thought.mark, THINKING) {
                    blocks.push(json!({ "type": "thinking", "thinking": thought.text, "signature": signature }));
                } else if let Some(data) = own_mark(&thought.mark, REDACTED) {
                    blocks.push(json!({ "type": "redacted_thinking", "data": data }));
                }
            }
        }
    }
    results.append(&mut blocks);
    let role = match message.speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    };
    (role, results)
}

#[cfg(test)]
mod tests {
    use conductor_feature::chat::{Parameters, Reasoning, ToolCall, ToolResult};
    use model_wire::Exchange;
    use model_wire::transcript::request;

    use super::*;
    use crate::answer::Messages;

    fn question(messages: Vec<Message>) -> Question {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how }
    }

    /// What is sent, its body, and what was noted.
    fn sent(model: &str, url: Option<&str>, question: Question) -> (Outgoing, Value, Vec<String>) {
        let mut exchange = Exchange::<Messages>::default();
        exchange.expect(Abilities { tools: true, streams: true, schema: true, output: Some(64_000) });
        let outgoing = exchange.begin(request("anthropic", model, url, question), outgoing).unwrap();
        let body = serde_json::from_slice(&outgoing.body).unwrap();
        (outgoing, body, exchange.report().notes)
    }

    fn user(parts: Vec<Part>) -> Message {
        Message { speaker: Speaker::User, parts }
    }

    fn assistant(parts: Vec<Part>) -> Message {
        Message { speaker: Speaker::Assistant, parts }
    }

    #[test]
    fn the_request_goes_to_the_messages_of_the_base_url() {
        let (own, body, _) = sent("claude-opus-5-5", None, question(vec![user(vec![Part::Text("Hello".into())])]));
        assert_eq!(own.url, "https://api.anthropic.com/v1/messages");
        assert!(own.headers.contains(&("anthropic-version".into(), "2023-06-01".into())));
        let secret = own.secret.unwrap();
        assert_eq!((&*secret.id, &*secret.header, &*secret.prefix), ("anthropic-key", "x-api-key", ""));
        assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(32_000), &json!(true)));
        for url in ["http://localhost:4000", "http://localhost:4000/v1/"] {
            let (other, ..) = sent("m", Some(url), question(vec![]));
            assert_eq!((&*other.url, other.secret.is_none()), ("http://localhost:4000/v1/messages", true));
        }
    }

    #[test]
    fn a_conversation_is_written_as_the_api_has_it() {
        let thought =
            |text: &str, mark: &str| Part::Reasoning(Reasoning { text: text.into(), mark: Some(mark.into()) });
        let call = ToolCall { id: "toolu_1".into(), name: "look".into(), args: r#"{"at":3}"#.into(), mark: None };
        let broken = ToolCall { id: "call:2".into(), name: "hear".into(), args: r#"{"at":"#.into(), mark: None };
        let result = ToolResult { id: "toolu_1".into(), name: "look".into(), content: "dark".into(), failed: false };
        let failed = ToolResult { id: "call:2".into(), name: "hear".into(), content: "no JSON".into(), failed: true };
        let image = Image { media_type: "image/png".into(), data: vec![1, 2, 3] };
        let mut question = question(vec![
            user(vec![Part::Image(image), Part::Text("See?".into())]),
            assistant(vec![
                thought("Hm.", "anthropic:thinking:sig=="),
                thought("", "anthropic:redacted:sealed"),
                thought("Another's.", "gemini:thought:x"),
                Part::Reasoning(Reasoning { text: "Unsigned.".into(), mark: None }),
                Part::Text(" ".into()),
                Part::ToolCall(call),
                Part::ToolCall(broken),
            ]),
            user(vec![Part::Text("Well?".into()), Part::ToolResult(result), Part::ToolResult(failed)]),
        ]);
        question.instructions = "Be short.".into();
        question.tools =
            vec![Tool { name: "look".into(), description: "Looks.".into(), input: r#"{"type":"object"}"#.into() }];
        question.choice = ToolChoice::One("look".into());
        let (_, body, _) = sent("claude-opus-5-5", None, question);
        assert_eq!(
            body["messages"],
            json!([
                { "role": "user", "content": [
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AQID" } },
                    { "type": "text", "text": "See?" },
                ] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Hm.", "signature": "sig==" },
                    { "type": "redacted_thinking", "data": "sealed" },
                    { "type": "tool_use", "id": "toolu_1", "name": "look", "input": { "at": 3 } },
                    { "type": "tool_use", "id": "call_2", "name": "hear", "input": { "invalid_arguments": "{\"at\":" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "toolu_1", "content": "dark" },
                    { "type": "tool_result", "tool_use_id": "call_2", "content": "no JSON", "is_error": true },
                    { "type": "text", "text": "Well?", "cache_control": { "type": "ephemeral" } },
                ] },
            ])
        );
        assert_eq!(
            body["system"],
            json!([{ "type": "text", "text": "Be short.", "cache_control": { "type": "ephemeral" } }])
        );
        assert_eq!(
            body["tools"],
            json!([{ "name": "look", "description": "Looks.", "input_schema": { "type": "object" } }])
        );
        assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "look" }));
    }

    #[test]
    fn parameters_are_sent_to_models_that_take_them() {
        let with = |model: &str, effort| {
            let mut question = question(vec![]);
            question.how = Parameters {
                max_tokens: Some(20_000),
                temperature: Some(1.4),
                top_p: Some(0.9),
                stop: vec!["END".into(), "\n".into()],
                schema: Some(r#"{"type":"object"}"#.into()),
                effort,
            };
            let (_, body, notes) = sent(model, None, question);
            (body, notes)
        };
        let (old, notes) = with("claude-sonnet-4-5", None);
        assert_eq!((&old["temperature"], old.get("top_p"), notes.len()), (&json!(1.0), None, 0));
        assert_eq!((&old["max_tokens"], &old["stop_sequences"]), (&json!(20_000), &json!(["END"])));
        assert_eq!(
            old["output_config"],
            json!({ "format": { "type": "json_schema", "schema": { "type": "object" } } })
        );
        let (old, notes) = with("claude-sonnet-4-5", Some(Effort::High));
        assert_eq!(old["thinking"], json!({ "type": "enabled", "budget_tokens": 10_000 }));
        assert_eq!((old.get("temperature"), notes.len()), (None, 1), "not with thoughts");
        let (new, notes) = with("claude-opus-5-5", Some(Effort::Minimal));
        assert_eq!(new["thinking"], json!({ "type": "adaptive", "display": "summarized" }));
        assert_eq!((&new["output_config"]["effort"], new.get("temperature")), (&json!("low"), None));
        assert_eq!(notes, ["the model takes no temperature and no top_p, so they were left out"]);
        let (never, notes) = with("claude-3-5-haiku-20241022", Some(Effort::Low));
        assert_eq!((never.get("thinking"), notes.len()), (None, 1));
    }

    #[test]
    fn what_the_api_refuses_together_is_not_sent_together() {
        let call = ToolCall { id: "a".into(), name: "look".into(), args: "{}".into(), mark: None };
        let result = ToolResult { id: "a".into(), name: "look".into(), content: "dark".into(), failed: false };
        let earlier = || {
            question(vec![
                assistant(vec![Part::ToolCall(call.clone())]),
                user(vec![Part::ToolResult(result.clone()), Part::Text("In short?".into())]),
            ])
        };
        let (_, body, _) = sent("claude-opus-5-5", None, earlier());
        assert_eq!(body["messages"][0]["content"][0]["type"], "text", "calls without tools are sent as text");
        assert!(body["messages"][1]["content"][0]["text"].as_str().unwrap().contains("dark"));
        for (model, noted) in [("claude-opus-5-5", 1), ("claude-sonnet-4-5", 1)] {
            let mut forced = earlier();
            forced.tools = vec![Tool { name: "look".into(), description: String::new(), input: "{}".into() }];
            forced.choice = ToolChoice::Required;
            forced.how.effort = Some(Effort::Low);
            let (_, body, notes) = sent(model, None, forced);
            assert_eq!((body.get("thinking"), notes.len()), (None, noted), "{model}");
            assert_eq!(body["messages"][0]["content"][0]["type"], "tool_use");
        }
    }

    #[test]
    fn a_model_without_abilities_gets_instructions() {
        let mut exchange = Exchange::<Messages>::default();
        exchange.expect(Abilities { tools: false, streams: false, schema: false, output: None });
        let mut question = question(vec![]);
        question.tools = vec![Tool { name: "look".into(), description: "Looks.".into(), input: "{}".into() }];
        question.how.schema = Some("{}".into());
        let outgoing = exchange.begin(request("anthropic", "m", None, question), outgoing).unwrap();
        let body: Value = serde_json::from_slice(&outgoing.body).unwrap();
        assert!(body.get("tools").is_none() && body.get("output_config").is_none() && body.get("stream").is_none());
        let system = body["system"][0]["text"].as_str().unwrap();
        assert!(system.contains("<tool_call>") && system.contains("JSON Schema"), "{system}");
        assert_eq!((&body["max_tokens"], exchange.report().notes.len()), (&json!(8_192), 2));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let mut question = question(vec![]);
        question.how.schema = Some("{".into());
        let request = request("anthropic", "m", None, question);
        assert!(matches!(Exchange::<Messages>::default().begin(request, outgoing), Err(Error::Invalid(_))));
    }
}
