//! How the APIs of models write answers: the events of a stream, and an answer that comes whole.

use serde_json::{Value, json};

/// The format of one API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's `streamGenerateContent`.
    Gemini,
    /// OpenAI's Responses.
    OpenAi,
    /// Chat Completions.
    Compatible,
}

/// Tokens that every whole answer says it took.
pub const INPUT: u64 = 100;
/// Tokens that every whole answer says it has.
pub const OUTPUT: u64 = 20;

fn data(value: &Value) -> String {
    match value["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

impl Wire {
    /// All.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Gemini, Self::OpenAi, Self::Compatible];

    /// The provider that speaks it.
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
            Self::Compatible => "openrouter",
        }
    }

    /// The feature that has the provider.
    pub const fn feature(self) -> &'static str {
        match self {
            Self::Compatible => "openai-compatible",
            other => other.provider(),
        }
    }

    /// What stands before `/v1` or in its place in a base URL.
    pub const fn base(self) -> &'static str {
        match self {
            Self::Anthropic => "",
            Self::Gemini => "/v1beta",
            Self::OpenAi | Self::Compatible => "/v1",
        }
    }

    /// The configuration of a model `m` that is called `name`, at this port, with a key.
    pub fn model(self, name: &str, port: u16) -> String {
        self.model_of(self.provider(), name, port)
    }

    /// The same of another provider that speaks it.
    pub fn model_of(self, provider: &str, name: &str, port: u16) -> String {
        let base = self.base();
        format!(
            "[models.{name}]\nprovider = '{provider}'\nmodel = 'm'\nurl = 'http://127.0.0.1:{port}{base}'\n\
             secret = 'model-key'\n\n"
        )
    }

    /// The grants that this needs.
    pub fn grants(self, port: u16) -> String {
        format!(
            "[features.{}.grants]\nhttp = ['127.0.0.1:{port}']\n\
             secrets = [{{ id = 'model-key', hosts = ['127.0.0.1:{port}'] }}]\n\n",
            self.feature()
        )
    }

    /// An answer begins.
    pub fn begin(self) -> String {
        match self {
            Self::Anthropic => {
                let message = json!({
                    "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m",
                    "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": INPUT, "output_tokens": 1 },
                });
                let block = json!({ "type": "text", "text": "" });
                data(&json!({ "type": "message_start", "message": message }))
                    + &data(&json!({ "type": "content_block_start", "index": 0, "content_block": block }))
            }
            Self::OpenAi => data(&json!({
                "type": "response.created", "sequence_number": 0,
                "response": { "id": "resp_1", "object": "response", "status": "in_progress", "model": "m", "output": [] },
            })),
            Self::Gemini | Self::Compatible => String::new(),
        }
    }

    /// More text.
    pub fn text(self, text: &str) -> String {
        data(&match self {
            Self::Anthropic => {
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
            }
            Self::Gemini => json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] } }] }),
            Self::OpenAi => json!({
                "type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                "delta": text,
            }),
            Self::Compatible => json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }),
        })
    }

    /// A tool call, the one with this number.
    pub fn call(self, number: usize, name: &str, args: &str) -> String {
        let id = format!("call-{number}");
        match self {
            Self::Anthropic => {
                let index = number + 1;
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                let delta = json!({ "type": "input_json_delta", "partial_json": args });
                data(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
                    + &data(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
                    + &data(&json!({ "type": "content_block_stop", "index": index }))
            }
            Self::Gemini => {
                // Arguments are an object here, so that what is no JSON breaks the event.
                format!(
                    "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"functionCall\":\
                     {{\"id\":{},\"name\":{},\"args\":{args}}}}}]}}}}]}}\n\n",
                    json!(id),
                    json!(name)
                )
            }
            Self::OpenAi => {
                let index = number + 1;
                let item = |args: &str| {
                    json!({
                        "type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": name,
                        "arguments": args,
                    })
                };
                let added = json!({ "type": "response.output_item.added", "output_index": index, "item": item("") });
                let done = json!({ "type": "response.output_item.done", "output_index": index, "item": item(args) });
                data(&added) + &data(&done)
            }
            Self::Compatible => {
                let function = json!({ "name": name, "arguments": args });
                let call = json!({ "index": number, "id": id, "type": "function", "function": function });
                data(&json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] }))
            }
        }
    }

    /// The answer ends, with what it took.
    pub fn end(self) -> String {
        self.end_with(&json!(INPUT), &json!(OUTPUT))
    }

    /// The same with other numbers.
    pub fn end_with(self, input: &Value, output: &Value) -> String {
        match self {
            Self::Anthropic => {
                let delta = json!({ "stop_reason": "end_turn", "stop_sequence": null });
                let usage = json!({ "input_tokens": input, "output_tokens": output });
                data(&json!({ "type": "content_block_stop", "index": 0 }))
                    + &data(&json!({ "type": "message_delta", "delta": delta, "usage": usage }))
                    + &data(&json!({ "type": "message_stop" }))
            }
            Self::Gemini => data(&json!({
                "candidates": [{ "content": { "role": "model", "parts": [{ "text": "" }] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": input, "candidatesTokenCount": output },
            })),
            Self::OpenAi => data(&json!({
                "type": "response.completed",
                "response": {
                    "id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [],
                    "usage": { "input_tokens": input, "output_tokens": output },
                },
            })),
            Self::Compatible => {
                let usage = json!({ "prompt_tokens": input, "completion_tokens": output });
                data(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }))
                    + &data(&json!({ "choices": [], "usage": usage }))
                    + "data: [DONE]\n\n"
            }
        }
    }

    /// A whole stream that says this.
    pub fn says(self, text: &str) -> String {
        self.begin() + &self.text(text) + &self.end()
    }

    /// The API breaks off, with these words.
    pub fn broken_off(self, words: &str) -> String {
        data(&match self {
            Self::Anthropic => json!({ "type": "error", "error": { "type": "overloaded_error", "message": words } }),
            Self::Gemini => json!({ "error": { "code": 503, "message": words, "status": "UNAVAILABLE" } }),
            Self::OpenAi => json!({ "type": "error", "code": "server_error", "message": words }),
            Self::Compatible => json!({ "error": { "code": 502, "message": words } }),
        })
    }

    /// An event of a version to come.
    pub fn unknown(self) -> String {
        data(&match self {
            Self::Anthropic => json!({ "type": "vibe_check", "vibe": { "index": "none" } }),
            Self::Gemini => json!({ "vibes": [1, 2, 3], "candidates": [] }),
            Self::OpenAi => json!({ "type": "response.vibe.delta", "delta": { "of": "another kind" } }),
            Self::Compatible => json!({ "object": "vibe", "choices": [], "vibes": [1, 2, 3] }),
        })
    }

    /// An answer that comes whole.
    pub fn whole(self, text: &str) -> String {
        match self {
            Self::Anthropic => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": text }],
                "usage": { "input_tokens": INPUT, "output_tokens": OUTPUT },
            }),
            Self::Gemini => json!({
                "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT },
            }),
            Self::OpenAi => json!({
                "id": "resp_1", "object": "response", "status": "completed", "model": "m",
                "output": [{
                    "type": "message", "id": "msg_1", "role": "assistant",
                    "content": [{ "type": "output_text", "text": text, "annotations": [] }],
                }],
                "usage": { "input_tokens": INPUT, "output_tokens": OUTPUT },
            }),
            Self::Compatible => json!({
                "choices": [{ "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": INPUT, "completion_tokens": OUTPUT },
            }),
        }
        .to_string()
    }

    /// What a refusal says, in the API's shape.
    pub fn refusal(self, words: &str) -> String {
        match self {
            Self::Anthropic => json!({ "type": "error", "error": { "type": "api_error", "message": words } }),
            Self::Gemini => json!({ "error": { "code": 400, "message": words, "status": "INVALID_ARGUMENT" } }),
            Self::OpenAi | Self::Compatible => json!({ "error": { "message": words, "type": "error", "code": null } }),
        }
        .to_string()
    }
}
