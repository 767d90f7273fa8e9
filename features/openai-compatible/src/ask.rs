//! Encoding a chat request for the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_feature::Error;
use conductor_feature::chat::{Effort, Image, Message, Parameters, Part, Question, Speaker, Tool, ToolChoice};
use conductor_feature::details::Abilities;
use conductor_feature::provider::{Outgoing, Request};
use model_wire::Answer;
use model_wire::json::number;
use model_wire::request::{Home, own_mark};
use model_wire::schema;
use serde_json::{Map, Value, json};

use crate::answer::{DETAILS, THINKING_BLOCKS};

/// OpenAI itself.
const OPENAI: Home =
    Home { url: "https://api.openai.com/v1", secret: Some("openai-key"), header: "authorization", prefix: "Bearer " };

/// The providers, and where each is asked.
pub const PROVIDERS: [(&str, Home); 3] = [
    ("openai-compatible", OPENAI),
    ("openrouter", Home { url: "https://openrouter.ai/api/v1", secret: Some("openrouter-key"), ..OPENAI }),
    // A proxy on this machine, which wants a key only if it was set up with one.
    ("litellm", Home { url: "http://localhost:4000", secret: None, ..OPENAI }),
];

/// What to send.
///
/// # Errors
/// `Invalid` if a schema is not JSON, or the whole is too large.
pub fn outgoing(request: &Request, _: &Abilities, _: &mut Answer) -> Result<Outgoing, Error> {
    let home = PROVIDERS.iter().find(|(name, _)| *name == request.provider).map_or(OPENAI, |(_, home)| *home);
    let url = format!("{}/chat/completions", home.base(&request.endpoint));
    let dialect = match request.provider.as_str() {
        "openrouter" => Dialect::OpenRouter,
        "litellm" => Dialect::LiteLlm,
        _ if OPENAI.is_asked(&request.endpoint) => Dialect::OpenAi,
        _ => Dialect::Other,
    };
    let body = body(&request.model, &request.question, request.stream, dialect)?;
    home.post(&request.endpoint, url, &[], request.stream, &body)
}

/// Whose words a server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    OpenAi,
    OpenRouter,
    LiteLlm,
    Other,
}

fn body(model: &str, question: &Question, stream: bool, dialect: Dialect) -> Result<Value, Error> {
    let Question { instructions, messages, tools, choice, how } = question;
    let mut list = Vec::new();
    if !instructions.is_empty() {
        list.push(json!({ "role": "system", "content": instructions }));
    }
    messages.iter().for_each(|message| said(message, dialect, &mut list));
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("messages".into(), list.into());
    if stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.iter().map(tool).collect::<Result<_, _>>()?;
        body.insert("tools".into(), tools.into());
        let choice = match choice {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::One(name) => json!({ "type": "function", "function": { "name": name } }),
        };
        body.insert("tool_choice".into(), choice);
    }
    let Parameters { max_tokens, temperature, top_p, stop, schema, effort } = how;
    if let Some(most) = max_tokens {
        // OpenAI has a new word, which most others don't know yet.
        let word = if dialect == Dialect::OpenAi { "max_completion_tokens" } else { "max_tokens" };
        body.insert(word.into(), (*most).into());
    }
    if let Some(temperature) = temperature {
        body.insert("temperature".into(), number(*temperature));
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".into(), number(*top_p));
    }
    if !stop.is_empty() {
        body.insert("stop".into(), stop.clone().into());
    }
    if let Some(schema) = schema {
        let schema = schema::schema("the answer's schema", schema)?;
        let format = json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } });
        body.insert("response_format".into(), format);
    }
    if let Some(effort) = effort {
        let effort = match effort {
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        match dialect {
            Dialect::OpenRouter => body.insert("reasoning".into(), json!({ "effort": effort })),
            _ => body.insert("reasoning_effort".into(), effort.into()),
        };
    }
    Ok(body.into())
}

fn tool(tool: &Tool) -> Result<Value, Error> {
    let Tool { name, description, input } = tool;
    let parameters = schema::schema(&format!("the schema of the tool {name}"), input)?;
    Ok(json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    }))
}

/// A message, which may become several: the API has tools' results as messages of their own, before what the user
/// says about them. Reasoning has no place in it, but for the lists that OpenRouter and LiteLLM want back.
fn said(message: &Message, dialect: Dialect, list: &mut Vec<Value>) {
    let (mut texts, mut content, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut pictures = false;
    let mut wanted_back = Map::new();
    for part in &message.parts {
        match part {
            Part::Text(text) => {
                texts.push(text.as_str());
                content.push(json!({ "type": "text", "text": text }));
            }
            Part::Image(Image { media_type, data }) => {
                pictures = true;
                let url = format!("data:{media_type};base64,{}", STANDARD.encode(data));
                content.push(json!({ "type": "image_url", "image_url": { "url": url } }));
            }
            Part::ToolCall(call) => calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.args },
            })),
            Part::ToolResult(result) => {
                list.push(json!({ "role": "tool", "tool_call_id": result.id, "content": result.content }));
            }
            Part::Reasoning(thought) => {
                let (key, mark) = match dialect {
                    Dialect::OpenRouter => ("reasoning_details", own_mark(&thought.mark, DETAILS)),
                    Dialect::LiteLlm => ("thinking_blocks", own_mark(&thought.mark, THINKING_BLOCKS)),
                    Dialect::OpenAi | Dialect::Other => continue,
                };
                if let Some(list) = mark.and_then(|mark| serde_json::from_str(mark).ok()) {
                    wanted_back.insert(key.into(), list);
                }
            }
        }
    }
    let text = texts.join("\n");
    match message.speaker {
        Speaker::User if pictures => list.push(json!({ "role": "user", "content": content })),
        Speaker::User if !texts.is_empty() => list.push(json!({ "role": "user", "content": text })),
        Speaker::User => {}
        Speaker::Assistant => {
            let mut message = wanted_back;
            message.insert("role".into(), "assistant".into());
            let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() };
            message.insert("content".into(), content);
            if !calls.is_empty() {
                message.insert("tool_calls".into(), calls.into());
            }
            list.push(message.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_feature::chat::{Reasoning, ToolCall, ToolResult};
    use model_wire::Exchange;
    use model_wire::transcript::{request, transcript};

    use super::*;
    use crate::answer::ChatCompletions;

    fn question(messages: Vec<Message>) -> Question {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how }
    }

    fn asked(request: Request) -> Result<Outgoing, Error> {
        Exchange::<ChatCompletions>::default().begin(request, outgoing)
    }

    fn sent_by(provider: &str, url: Option<&str>, question: Question) -> (Outgoing, Value) {
        let outgoing = asked(request(provider, "m", url, question)).unwrap();
        let body = serde_json::from_slice(&outgoing.body).unwrap();
        (outgoing, body)
    }

    fn sent(url: Option<&str>, question: Question) -> (Outgoing, Value) {
        sent_by("openai-compatible", url, question)
    }

    fn user(parts: Vec<Part>) -> Message {
        Message { speaker: Speaker::User, parts }
    }

    #[test]
    fn a_key_goes_to_openai_unless_told_otherwise() {
        let (openai, _) = sent(None, question(vec![]));
        assert_eq!(openai.url, "https://api.openai.com/v1/chat/completions");
        let secret = openai.secret.unwrap();
        assert_eq!(
            (secret.id.as_str(), secret.header.as_str(), secret.prefix.as_str()),
            ("openai-key", "authorization", "Bearer ")
        );
        let (local, _) = sent(Some("http://localhost:11434/v1/"), question(vec![]));
        assert_eq!(local.url, "http://localhost:11434/v1/chat/completions");
        assert!(local.secret.is_none());
        let mut told = request("openai-compatible", "m", Some("http://localhost:1/v1"), question(vec![]));
        told.endpoint.secret = Some("model-key".into());
        assert_eq!(asked(told).unwrap().secret.unwrap().id, "model-key");
    }

    #[test]
    fn presets_know_where_they_are_asked() {
        let (openrouter, _) = sent_by("openrouter", None, question(vec![]));
        assert_eq!(openrouter.url, "https://openrouter.ai/api/v1/chat/completions");
        assert_eq!(openrouter.secret.unwrap().id, "openrouter-key");
        let (litellm, _) = sent_by("litellm", None, question(vec![]));
        assert_eq!((&*litellm.url, litellm.secret.is_none()), ("http://localhost:4000/chat/completions", true));
    }

    #[test]
    fn each_server_gets_back_what_it_wants_and_nothing_of_the_others() {
        let thought = |mark: &str| Part::Reasoning(Reasoning { text: "Hm.".into(), mark: Some(mark.into()) });
        let conversation = || {
            question(vec![Message {
                speaker: Speaker::Assistant,
                parts: vec![
                    thought(r#"openrouter:[{"type":"reasoning.encrypted","data":"x"}]"#),
                    thought(r#"litellm:[{"type":"thinking","thinking":"Hm.","signature":"s"}]"#),
                    thought("anthropic:thinking:x"),
                    Part::Text("Yes.".into()),
                ],
            }])
        };
        let message =
            |provider: &str| sent_by(provider, Some("http://localhost:1"), conversation()).1["messages"][0].take();
        assert_eq!(message("openai-compatible"), json!({ "role": "assistant", "content": "Yes." }));
        assert_eq!(
            message("openrouter"),
            json!({
                "role": "assistant",
                "content": "Yes.",
                "reasoning_details": [{ "type": "reasoning.encrypted", "data": "x" }],
            })
        );
        assert_eq!(message("litellm")["thinking_blocks"][0]["signature"], "s");
        let effort = |provider: &str| {
            let mut question = question(vec![]);
            question.how.effort = Some(Effort::High);
            sent_by(provider, None, question).1
        };
        assert_eq!(effort("openrouter")["reasoning"], json!({ "effort": "high" }));
        assert_eq!(effort("litellm")["reasoning_effort"], "high");
    }

    #[test]
    fn a_model_without_tools_gets_instructions() {
        let mut exchange = Exchange::<ChatCompletions>::default();
        exchange.expect(Abilities { tools: false, streams: true, schema: true, output: None });
        let mut question = question(vec![user(vec![Part::Text("See?".into())])]);
        question.tools = vec![Tool { name: "look".into(), description: "Looks.".into(), input: "{}".into() }];
        let sent = exchange.begin(request("openai-compatible", "m", None, question), outgoing).unwrap();
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        assert!(body.get("tools").is_none());
        assert!(body["messages"][0]["content"].as_str().unwrap().contains("<tool_call>"));
        exchange.head(200, vec![]);
        let answer = "data: {\"choices\":[{\"delta\":{\"content\":\"<tool_call>{\\\"name\\\":\\\"look\\\"}</tool_call>\"}}]}\n\n\
                      data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
        let events: Vec<_> = exchange.body(answer.as_bytes());
        assert_eq!(transcript(events), ["call 0 call-0 look", "args 0 {}", "end 0", "stop StopReason::Tools"]);
    }

    #[test]
    fn a_conversation_with_tools_and_pictures_is_written_as_the_api_has_it() {
        let call = ToolCall { id: "c1".into(), name: "look".into(), args: "{}".into(), mark: None };
        let result = ToolResult { id: "c1".into(), name: "look".into(), content: "\"dark\"".into(), failed: false };
        let thought = Reasoning { text: "Hm.".into(), mark: None };
        let image = Image { media_type: "image/png".into(), data: vec![1, 2, 3] };
        let mut question = question(vec![
            user(vec![Part::Text("See?".into()), Part::Image(image)]),
            Message { speaker: Speaker::Assistant, parts: vec![Part::Reasoning(thought), Part::ToolCall(call)] },
            user(vec![Part::ToolResult(result), Part::Text("Well?".into())]),
            Message { speaker: Speaker::Assistant, parts: vec![Part::Text("It is dark.".into())] },
        ]);
        question.instructions = "Be short.".into();
        let input = r#"{"type":"object"}"#.to_owned();
        question.tools = vec![Tool { name: "look".into(), description: "Looks.".into(), input }];
        question.choice = ToolChoice::One("look".into());
        let (_, body) = sent(None, question);
        assert_eq!(
            body["messages"],
            json!([
                { "role": "system", "content": "Be short." },
                { "role": "user", "content": [
                    { "type": "text", "text": "See?" },
                    { "type": "image_url", "image_url": { "url": "data:image/png;base64,AQID" } },
                ] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "c1", "content": "\"dark\"" },
                { "role": "user", "content": "Well?" },
                { "role": "assistant", "content": "It is dark." },
            ])
        );
        assert_eq!(body["tools"][0]["function"]["parameters"], json!({ "type": "object" }));
        assert_eq!(body["tool_choice"]["function"]["name"], "look");
    }

    #[test]
    fn parameters_are_named_as_each_server_knows_them() {
        let with = |url| {
            let mut question = question(vec![]);
            question.how = Parameters {
                max_tokens: Some(100),
                temperature: Some(0.7),
                top_p: None,
                stop: vec!["END".into()],
                schema: Some(r#"{"type":"object"}"#.into()),
                effort: Some(Effort::Low),
            };
            sent(url, question).1
        };
        let (openai, local) = (with(None), with(Some("http://localhost:8080/v1")));
        assert_eq!((&openai["max_completion_tokens"], &local["max_tokens"]), (&json!(100), &json!(100)));
        assert_eq!(openai["temperature"], json!(0.7));
        assert_eq!(openai["response_format"]["json_schema"]["schema"], json!({ "type": "object" }));
        assert_eq!((&openai["reasoning_effort"], &openai["stop"]), (&json!("low"), &json!(["END"])));
        assert!(openai.get("top_p").is_none() && openai.get("tools").is_none());
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        let mut question = question(vec![]);
        question.how.schema = Some("{".into());
        assert!(matches!(asked(request("openai-compatible", "m", None, question)), Err(Error::Invalid(_))));
    }
}
