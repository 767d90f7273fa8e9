//! A scripted model behind each API: its answers as the API streams them, and what a question hands back of the conversation
//! before, read strictly: as the API's own documents have it.

use serde_json::{Value, json};

use crate::wire::{INPUT, OUTPUT, Wire};

/// An API, as one provider asks it.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// The provider.
    pub provider: &'static str,
    /// The format.
    pub wire: Wire,
    /// The path of a streamed question to the model `m`.
    pub path: &'static str,
    /// The header of the key, and what stands in it before the key.
    pub header: &'static str,
}

/// Anthropic's Messages.
pub const ANTHROPIC: Api =
    Api { provider: "anthropic", wire: Wire::Anthropic, path: "/v1/messages", header: "x-api-key: " };
/// Gemini.
pub const GEMINI: Api = Api {
    provider: "gemini",
    wire: Wire::Gemini,
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    header: "x-goog-api-key: ",
};
/// OpenAI's Responses.
pub const OPENAI: Api =
    Api { provider: "openai", wire: Wire::OpenAi, path: "/v1/responses", header: "authorization: Bearer " };
/// Chat Completions with what OpenRouter adds.
pub const OPENROUTER: Api = Api {
    provider: "openrouter",
    wire: Wire::Compatible,
    path: "/v1/chat/completions",
    header: "authorization: Bearer ",
};
/// Chat Completions with what LiteLLM adds.
pub const LITELLM: Api = Api { provider: "litellm", ..OPENROUTER };

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The person's, or the host's in their place.
    User(String),
    /// The model's.
    Text(String),
    /// A thought, by the mark that the API wants back with it: a signature, or the thought itself, sealed.
    Thought(String),
    /// A call of a tool, with its arguments.
    Call(String, Value),
    /// What came of the call of this tool.
    Result(String, String),
}

use Part::{Call, Result, Text, Thought, User};

/// What a thought says.
const THOUGHT: &str = "Let me think.";

fn data(value: &Value) -> String {
    match value["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

impl Api {
    /// The configuration of a model `m` that is called `name`, at this port, with a key; and the grants that it needs.
    pub fn config(&self, name: &str, port: u16) -> String {
        self.wire.model_of(self.provider, name, port) + &self.wire.grants(port)
    }

    /// The model's answer to the question of this number, as a stream.
    pub fn answer(&self, number: usize, parts: &[Part]) -> String {
        match self.wire {
            Wire::Anthropic => anthropic(number, parts),
            Wire::Gemini => gemini(parts),
            Wire::OpenAi => openai(number, parts),
            Wire::Compatible => self.chat_completions(number, parts),
        }
    }

    /// The conversation that a question has.
    ///
    /// # Panics
    /// If it is written otherwise than the API has it, or a result is of no call.
    pub fn conversation(&self, question: &Value) -> Vec<Part> {
        let mut read = Read::default();
        match self.wire {
            Wire::Anthropic => read.anthropic(question),
            Wire::Gemini => read.gemini(question),
            Wire::OpenAi => read.openai(question),
            Wire::Compatible => read.chat_completions(question, self.provider),
        }
        read.parts
    }

    fn chat_completions(&self, number: usize, parts: &[Part]) -> String {
        let delta = |delta: Value| data(&json!({ "choices": [{ "index": 0, "delta": delta }] }));
        let mut stream = delta(json!({ "role": "assistant", "content": "" }));
        let mut calls = 0;
        for part in parts {
            stream += &match part {
                Text(text) => delta(json!({ "content": text })),
                // As OpenRouter streams it: the text first, and its signature apart.
                Thought(mark) if self.provider == "openrouter" => {
                    let detail = |key: &str, value: &str| json!({ "type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0, key: value });
                    delta(json!({ "reasoning": THOUGHT, "reasoning_details": [detail("text", THOUGHT)] }))
                        + &delta(json!({ "reasoning_details": [detail("signature", mark)] }))
                }
                Thought(mark) => {
                    let block =
                        |text: &str, mark: &str| json!({ "type": "thinking", "thinking": text, "signature": mark });
                    delta(json!({ "reasoning_content": THOUGHT, "thinking_blocks": [block(THOUGHT, "")] }))
                        + &delta(json!({ "reasoning_content": "", "thinking_blocks": [block("", mark)] }))
                }
                Call(name, args) => {
                    let function = json!({ "name": name, "arguments": args.to_string() });
                    let id = format!("call_{number}_{calls}");
                    let call = json!({ "index": calls, "id": id, "type": "function", "function": function });
                    calls += 1;
                    delta(json!({ "tool_calls": [call] }))
                }
                User(_) | Result(..) => unreachable!("no model says that"),
            };
        }
        let why = if calls > 0 { "tool_calls" } else { "stop" };
        stream += &data(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": why }] }));
        let usage = json!({ "prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT });
        stream + &data(&json!({ "choices": [], "usage": usage })) + "data: [DONE]\n\n"
    }
}

fn anthropic(number: usize, parts: &[Part]) -> String {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": null,
        "stop_sequence": null, "usage": { "input_tokens": INPUT, "output_tokens": 1 },
    });
    let mut stream = data(&json!({ "type": "message_start", "message": message }));
    for (index, part) in parts.iter().enumerate() {
        let (block, deltas) = match part {
            Text(text) => (json!({ "type": "text", "text": "" }), vec![json!({ "type": "text_delta", "text": text })]),
            Thought(mark) => (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                vec![
                    json!({ "type": "thinking_delta", "thinking": THOUGHT }),
                    json!({ "type": "signature_delta", "signature": mark }),
                ],
            ),
            Call(name, args) => (
                json!({ "type": "tool_use", "id": format!("toolu_{number}_{index}"), "name": name, "input": {} }),
                vec![json!({ "type": "input_json_delta", "partial_json": args.to_string() })],
            ),
            User(_) | Result(..) => unreachable!("no model says that"),
        };
        stream += &data(&json!({ "type": "content_block_start", "index": index, "content_block": block }));
        for delta in deltas {
            stream += &data(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        stream += &data(&json!({ "type": "content_block_stop", "index": index }));
    }
    let why = if parts.iter().any(|part| matches!(part, Call(..))) { "tool_use" } else { "end_turn" };
    let delta = json!({ "stop_reason": why, "stop_sequence": null });
    stream += &data(&json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": OUTPUT } }));
    stream + &data(&json!({ "type": "message_stop" }))
}

/// A thought's mark stands on what it led to: the call, or, after a text, an empty text.
fn gemini(parts: &[Part]) -> String {
    let mut pieces = Vec::new();
    let mut mark = None;
    for part in parts {
        match part {
            Thought(signature) => {
                pieces.push(json!({ "text": THOUGHT, "thought": true }));
                mark = Some(signature);
            }
            Text(text) => {
                pieces.push(json!({ "text": text }));
                pieces.extend(mark.take().map(|mark| json!({ "text": "", "thoughtSignature": mark })));
            }
            Call(name, args) => {
                let mut piece = json!({ "functionCall": { "name": name, "args": args } });
                if let Some(mark) = mark.take() {
                    piece["thoughtSignature"] = json!(mark);
                }
                pieces.push(piece);
            }
            User(_) | Result(..) => unreachable!("no model says that"),
        }
    }
    let response = |piece: &Value| json!({ "candidates": [{ "content": { "role": "model", "parts": [piece] }, "index": 0 }], "modelVersion": "m" });
    let mut stream: String = pieces.iter().map(|piece| data(&response(piece))).collect();
    stream += &data(&json!({
        "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT },
    }));
    stream
}

fn openai(number: usize, parts: &[Part]) -> String {
    let response = |status: &str, usage: Value| {
        json!({
            "id": format!("resp_{number}"), "object": "response", "status": status, "model": "m", "output": [],
            "usage": usage, "error": null, "incomplete_details": null,
        })
    };
    let mut stream = data(&json!({ "type": "response.created", "response": response("in_progress", Value::Null) }));
    for (index, part) in parts.iter().enumerate() {
        let id = |kind: &str| format!("{kind}_{number}_{index}");
        let about = |kind: &str, item: &str, key: &str, value: Value| json!({ "type": kind, "item_id": item, "output_index": index, "content_index": 0, "summary_index": 0, key: value });
        let (begun, deltas, item) = match part {
            Text(text) => {
                let item = |content: Value| json!({ "type": "message", "id": id("msg"), "role": "assistant", "content": content });
                let whole = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
                let delta = about("response.output_text.delta", &id("msg"), "delta", json!(text));
                (item(json!([])), vec![delta], item(whole))
            }
            Thought(mark) => {
                let item = |summary: Value, sealed: Value| json!({ "type": "reasoning", "id": id("rs"), "summary": summary, "encrypted_content": sealed });
                let whole = json!([{ "type": "summary_text", "text": THOUGHT }]);
                let delta = about("response.reasoning_summary_text.delta", &id("rs"), "delta", json!(THOUGHT));
                (item(json!([]), Value::Null), vec![delta], item(whole, json!(mark)))
            }
            Call(name, args) => {
                let item = |args: &str| json!({ "type": "function_call", "id": id("fc"), "call_id": id("call"), "name": name, "arguments": args });
                let delta =
                    about("response.function_call_arguments.delta", &id("fc"), "delta", json!(args.to_string()));
                (item(""), vec![delta], item(&args.to_string()))
            }
            User(_) | Result(..) => unreachable!("no model says that"),
        };
        stream += &data(&json!({ "type": "response.output_item.added", "output_index": index, "item": begun }));
        stream += &deltas.iter().map(data).collect::<String>();
        stream += &data(&json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    let usage = json!({ "input_tokens": INPUT, "output_tokens": OUTPUT });
    stream + &data(&json!({ "type": "response.completed", "response": response("completed", usage) }))
}

/// A conversation as far as it was read.
#[derive(Debug, Default)]
struct Read {
    parts: Vec<Part>,
    /// Calls without a result: id and tool.
    open: Vec<(String, String)>,
}

impl Read {
    fn call(&mut self, id: &Value, name: &Value, args: Value) {
        self.open.push((text(id), text(name)));
        self.parts.push(Call(text(name), args));
    }

    fn result(&mut self, id: &Value, content: &Value) {
        let at = self.open.iter().position(|(open, _)| Some(open.as_str()) == id.as_str());
        let (_, name) = self.open.remove(at.unwrap_or_else(|| panic!("no call waits for a result of {id}")));
        self.parts.push(Result(name, text(content)));
    }

    /// Nothing comes between calls and their results.
    fn settled(&self) {
        assert!(self.open.is_empty(), "without a result: {:?}", self.open);
    }

    fn anthropic(&mut self, question: &Value) {
        assert!(question["stream"] == true && question["max_tokens"].is_u64(), "{question}");
        for message in list(&question["messages"]) {
            for block in list(&message["content"]) {
                match (block["type"].as_str().unwrap_or_default(), message["role"].as_str().unwrap_or_default()) {
                    ("tool_result", "user") => self.result(&block["tool_use_id"], &block["content"]),
                    ("text", "user") => {
                        self.settled();
                        self.parts.push(User(text(&block["text"])));
                    }
                    ("text", "assistant") => self.parts.push(Text(text(&block["text"]))),
                    ("thinking", "assistant") => {
                        assert_eq!(block["thinking"], THOUGHT);
                        self.parts.push(Thought(text(&block["signature"])));
                    }
                    ("tool_use", "assistant") => self.call(&block["id"], &block["name"], block["input"].clone()),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn gemini(&mut self, question: &Value) {
        for content in list(&question["contents"]) {
            for part in list(&content["parts"]) {
                let mark = part.get("thoughtSignature").map(text);
                self.parts.extend(mark.map(Thought));
                let (call, response) = (&part["functionCall"], &part["functionResponse"]);
                match content["role"].as_str().unwrap_or_default() {
                    // The names stand for ids, which the API has given none.
                    "model" if call.is_object() => self.call(&call["name"], &call["name"], call["args"].clone()),
                    "model" => self.parts.push(Text(text(&part["text"]))),
                    "user" if response.is_object() => {
                        assert!(response["response"].is_object() && response.get("id").is_none(), "{response}");
                        self.result(&response["name"], &response["response"]["output"]);
                    }
                    "user" => {
                        self.settled();
                        self.parts.push(User(text(&part["text"])));
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }

    fn openai(&mut self, question: &Value) {
        assert_eq!(
            (&question["store"], &question["include"]),
            (&json!(false), &json!(["reasoning.encrypted_content"]))
        );
        for item in list(&question["input"]) {
            match (item["type"].as_str().unwrap_or_default(), item["role"].as_str().unwrap_or_default()) {
                ("message", "user") => {
                    self.settled();
                    self.parts.extend(list(&item["content"]).iter().map(|part| User(text(&part["text"]))));
                }
                ("message", "assistant") => {
                    self.parts.extend(list(&item["content"]).iter().map(|part| Text(text(&part["text"]))));
                }
                ("reasoning", _) => {
                    assert!(item["id"].as_str().is_some_and(|id| id.starts_with("rs_")), "{item}");
                    assert_eq!(item["summary"][0]["text"], THOUGHT);
                    self.parts.push(Thought(text(&item["encrypted_content"])));
                }
                ("function_call", _) => {
                    let args = serde_json::from_str(&text(&item["arguments"])).unwrap();
                    self.call(&item["call_id"], &item["name"], args);
                }
                ("function_call_output", _) => self.result(&item["call_id"], &item["output"]),
                other => panic!("{other:?}"),
            }
        }
    }

    fn chat_completions(&mut self, question: &Value, provider: &str) {
        let key = if provider == "openrouter" { "reasoning_details" } else { "thinking_blocks" };
        for message in list(&question["messages"]) {
            match message["role"].as_str().unwrap_or_default() {
                "system" => {}
                "user" => {
                    self.settled();
                    self.parts.push(User(text(&message["content"])));
                }
                "assistant" => {
                    for thought in message.get(key).map(list).unwrap_or_default() {
                        self.parts.push(Thought(text(&thought["signature"])));
                    }
                    if message["content"].is_string() {
                        self.parts.push(Text(text(&message["content"])));
                    }
                    for call in message.get("tool_calls").map(list).unwrap_or_default() {
                        let function = &call["function"];
                        let args = serde_json::from_str(&text(&function["arguments"])).unwrap();
                        self.call(&call["id"], &function["name"], args);
                    }
                }
                "tool" => self.result(&message["tool_call_id"], &message["content"]),
                other => panic!("{other}"),
            }
        }
    }
}
