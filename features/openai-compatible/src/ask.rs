//! Encoding a chat request for the API.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use conductor_feature::Error;
use conductor_feature::chat::{Effort, Image, Message, Parameters, Part, Question, Speaker, Tool, ToolChoice};
use conductor_feature::provider::{Endpoint, Outgoing, Request, Secret};
use serde_json::{Map, Value, json};

/// Where OpenAI's own models are.
const OPENAI: &str = "https://api.openai.com/v1";
/// The secret that they are asked with.
const OPENAI_KEY: &str = "openai-key";

/// What to send. Invalid when a schema is no JSON.
pub fn outgoing(request: Request) -> Result<Outgoing, Error> {
    let Request { model, endpoint, question, stream, .. } = request;
    let Endpoint { url, secret } = endpoint;
    let is_openai = url.as_deref().is_none_or(|url| url.starts_with("https://api.openai.com/"));
    let secret = secret.or_else(|| is_openai.then(|| OPENAI_KEY.to_owned()));
    let base = url.as_deref().unwrap_or(OPENAI).trim_end_matches('/');
    Ok(Outgoing {
        method: "POST".into(),
        url: format!("{base}/chat/completions"),
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("accept".into(), if stream { "text/event-stream" } else { "application/json" }.into()),
        ],
        body: body(&model, &question, stream, is_openai)?.to_string().into_bytes(),
        secret: secret.map(|id| Secret { id, header: "authorization".into(), prefix: "Bearer ".into() }),
    })
}

fn body(model: &str, question: &Question, stream: bool, is_openai: bool) -> Result<Value, Error> {
    let Question { instructions, messages, tools, choice, how } = question;
    let mut list = Vec::new();
    if !instructions.is_empty() {
        list.push(json!({ "role": "system", "content": instructions }));
    }
    messages.iter().for_each(|message| said(message, &mut list));
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
        let word = if is_openai { "max_completion_tokens" } else { "max_tokens" };
        body.insert(word.into(), (*most).into());
    }
    // Through text, for 0.7 as f64 would be 0.699999988079071.
    let number = |value: f32| value.to_string().parse::<f64>().unwrap_or_default();
    if let Some(temperature) = temperature {
        body.insert("temperature".into(), number(*temperature).into());
    }
    if let Some(top_p) = top_p {
        body.insert("top_p".into(), number(*top_p).into());
    }
    if !stop.is_empty() {
        body.insert("stop".into(), stop.clone().into());
    }
    if let Some(schema) = schema {
        let schema = parsed("the answer's schema", schema)?;
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
        body.insert("reasoning_effort".into(), effort.into());
    }
    Ok(body.into())
}

fn parsed(what: &str, json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|error| Error::Invalid(format!("{what} is not JSON: {error}")))
}

fn tool(tool: &Tool) -> Result<Value, Error> {
    let Tool { name, description, input } = tool;
    let parameters = parsed(&format!("the schema of the tool {name}"), input)?;
    Ok(json!({
        "type": "function",
        "function": { "name": name, "description": description, "parameters": parameters },
    }))
}

/// A message, which may become several: the API has tools' results as messages of their own, before what the user
/// says about them. Reasoning has no place in it.
fn said(message: &Message, list: &mut Vec<Value>) {
    let (mut texts, mut content, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut pictures = false;
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
            Part::Reasoning(_) => {}
        }
    }
    let text = texts.join("\n");
    match message.speaker {
        Speaker::User if pictures => list.push(json!({ "role": "user", "content": content })),
        Speaker::User if !texts.is_empty() => list.push(json!({ "role": "user", "content": text })),
        Speaker::User => {}
        Speaker::Assistant if calls.is_empty() => list.push(json!({ "role": "assistant", "content": text })),
        Speaker::Assistant => {
            let content = if text.is_empty() { Value::Null } else { text.into() };
            list.push(json!({ "role": "assistant", "content": content, "tool_calls": calls }));
        }
    }
}

#[cfg(test)]
mod tests {
    use conductor_feature::chat::{Reasoning, ToolCall, ToolResult};

    use super::*;

    fn question(messages: Vec<Message>) -> Question {
        let how =
            Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
        Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how }
    }

    fn request(url: Option<&str>, question: Question) -> Request {
        let endpoint = Endpoint { url: url.map(str::to_owned), secret: None };
        Request { provider: "openai-compatible".into(), model: "m".into(), endpoint, question, stream: true }
    }

    fn sent(url: Option<&str>, question: Question) -> (Outgoing, Value) {
        let outgoing = outgoing(request(url, question)).unwrap();
        let body = serde_json::from_slice(&outgoing.body).unwrap();
        (outgoing, body)
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
        let mut told = request(Some("http://localhost:1/v1"), question(vec![]));
        told.endpoint.secret = Some("model-key".into());
        assert_eq!(outgoing(told).unwrap().secret.unwrap().id, "model-key");
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
        assert!(matches!(outgoing(request(None, question)), Err(Error::Invalid(_))));
    }
}
