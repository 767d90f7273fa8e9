//! Answers of the APIs of Anthropic, Gemini, OpenAI, OpenRouter and LiteLLM, as streams and whole: such as a server of others
//! wrote, and such as are made up here, with everything that the formats have, from a seed.

use std::path::Path;

use serde_json::{Value, json};

use crate::random::Random;
use crate::wire::Wire;

/// Answers of each kind and API, at least.
pub const COUNT: usize = 30;

/// Whose answers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// Anthropic.
    Anthropic,
    /// Google.
    Gemini,
    /// OpenAI, with Responses.
    OpenAi,
    /// OpenRouter, with Chat Completions and what it adds.
    OpenRouter,
    /// LiteLLM's proxy, with Chat Completions and what it adds.
    LiteLlm,
}

impl Vendor {
    /// All.
    pub const ALL: [Self; 5] = [Self::Anthropic, Self::Gemini, Self::OpenAi, Self::OpenRouter, Self::LiteLlm];

    /// The format.
    pub const fn wire(self) -> Wire {
        match self {
            Self::Anthropic => Wire::Anthropic,
            Self::Gemini => Wire::Gemini,
            Self::OpenAi => Wire::OpenAi,
            Self::OpenRouter | Self::LiteLlm => Wire::Compatible,
        }
    }

    /// The provider that asks it.
    pub const fn provider(self) -> &'static str {
        match self {
            Self::LiteLlm => "litellm",
            other => other.wire().provider(),
        }
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Whose.
    pub vendor: Vendor,
    /// `recorded-07`.
    pub id: String,
    /// The body of the response if a stream is asked for.
    pub stream: String,
    /// The same if it is not.
    pub whole: String,
}

/// The answers that were recorded; see `tests/model-sdks/record.py`.
///
/// # Panics
/// If there are fewer than [`COUNT`].
pub fn recorded(repo: &Path, vendor: Vendor) -> Vec<Exchange> {
    let file = repo.join(format!("tests/model-sdks/recorded/{}.jsonl", vendor.provider()));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let exchange = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap().to_owned();
        Exchange { vendor, id: text("id"), stream: text("stream"), whole: text("whole") }
    };
    let all: Vec<Exchange> = text.lines().map(exchange).collect();
    assert!(all.len() >= COUNT, "{} has {} answers of {COUNT}", file.display(), all.len());
    all
}

/// Answers that are made up.
pub fn generated(vendor: Vendor, seed: u64) -> Vec<Exchange> {
    let one = |number: usize| {
        let mut random = Random::new(seed ^ (number as u64) << 32 ^ vendor as u64);
        let answer = Answer::any(&mut random, vendor.wire());
        let (stream, whole) = match vendor {
            Vendor::Anthropic => anthropic(&answer, &mut random),
            Vendor::Gemini => gemini(&answer, &mut random),
            Vendor::OpenAi => openai(&answer, &mut random),
            Vendor::OpenRouter => chat_completions(&answer, &OPENROUTER, &mut random),
            Vendor::LiteLlm => chat_completions(&answer, &LITELLM, &mut random),
        };
        Exchange { vendor, id: format!("generated-{number:02}"), stream, whole }
    };
    (0..COUNT).map(one).collect()
}

/// Part of an answer.
#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Thought(String, String),
    Call(String, Value),
}

/// What an answer consists of.
#[derive(Debug, Clone)]
struct Answer {
    parts: Vec<Part>,
    /// The API's word for why it ended.
    stop: &'static str,
    input: u32,
    cached: u32,
    written: u32,
    output: u32,
    thoughts: u32,
}

const WORDS: [&str; 16] = [
    "pad",
    "36",
    "copies\n",
    "Grün",
    "音を",
    "🎹",
    "\"quoted\"",
    "back\\slash",
    "\t",
    "</data>",
    "data: [DONE]",
    "e\u{301}",
    "\u{2028}",
    "{\"json\": [1]}",
    "```toml\n",
    "   ",
];

fn text(random: &mut Random) -> String {
    let count = 1 + random.below(60);
    (0..count).map(|_| format!("{} ", random.one_of(&WORDS))).collect()
}

fn value(random: &mut Random, depth: u32) -> Value {
    match random.below(if depth == 0 { 5 } else { 7 }) {
        0 => json!(random.below(1_000_000)),
        1 => json!(f64::from(u32::try_from(random.below(1000)).unwrap_or(0)) / 8.0),
        2 => json!(random.percent(50)),
        3 => Value::Null,
        4 => json!(text(random)),
        5 => (0..random.below(4)).map(|_| value(random, depth - 1)).collect(),
        _ => object(random, depth - 1),
    }
}

fn object(random: &mut Random, depth: u32) -> Value {
    let member = |at: usize, random: &mut Random| {
        (format!("{}{at}", random.one_of(&["at", "größe", "a b", "n"])), value(random, depth))
    };
    let count = random.below(5);
    Value::Object((0..count).map(|at| member(at, random)).collect())
}

impl Answer {
    fn any(random: &mut Random, wire: Wire) -> Self {
        let mut parts = Vec::new();
        if random.percent(40) {
            parts.push(Part::Thought(text(random), "c2lnbmF0dXJlLW9mLXRoZS10aG91Z2h0".to_owned()));
        }
        if random.percent(80) {
            parts.push(Part::Text(text(random)));
        }
        let calls = if random.percent(50) { 1 + random.below(4) } else { 0 };
        parts.extend((0..calls).map(|_| Part::Call("look".to_owned(), object(random, 3))));
        if random.percent(15) {
            parts.push(Part::Text(text(random)));
        }
        let stops: &[&str] = match wire {
            Wire::Anthropic if calls > 0 => &["tool_use"],
            Wire::Anthropic => &["end_turn", "end_turn", "stop_sequence", "max_tokens", "refusal", "pause_turn"],
            Wire::Gemini if calls > 0 => &["STOP"],
            Wire::Gemini => &["STOP", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"],
            Wire::OpenAi if calls > 0 => &["completed"],
            Wire::OpenAi => &["completed", "completed", "max_output_tokens", "content_filter"],
            Wire::Compatible if calls > 0 => &["tool_calls", "tool_calls", "stop"],
            Wire::Compatible => &["stop", "stop", "length", "content_filter"],
        };
        let mut count = |most: usize| u32::try_from(random.below(most)).unwrap_or(0);
        let (cached, written, thoughts) = (count(5000), count(500), count(300));
        let (input, output) = (cached + written + count(20_000), thoughts + count(3000));
        let stop = random.one_of(stops);
        Self { parts, stop, input, cached, written, output, thoughts }
    }
}

/// JSON as servers write it: with blanks or without, with letters escaped or not.
fn as_json(value: &Value, random: &mut Random) -> String {
    let text = value.to_string();
    if random.percent(70) {
        return text;
    }
    let escaped = |one: char| match one {
        one if one.is_ascii() => one.to_string(),
        one => one.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
    };
    text.chars().map(escaped).collect()
}

fn event(value: &Value, random: &mut Random) -> String {
    let data = as_json(value, random);
    match value["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

fn anthropic(answer: &Answer, random: &mut Random) -> (String, String) {
    let Answer { parts, stop, input, cached, written, output, thoughts } = answer;
    let usage = json!({
        "input_tokens": input - cached - written, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written, "output_tokens": 1, "service_tier": "standard",
    });
    let message = |content: Value, stop: Value, usage: Value| {
        json!({
            "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-m", "content": content,
            "stop_reason": stop, "stop_sequence": null, "usage": usage,
        })
    };
    let start = message(json!([]), Value::Null, usage.clone());
    let mut stream = event(&json!({ "type": "message_start", "message": start }), random);
    let mut content = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let (empty, deltas, block) = match part {
            Part::Text(text) => {
                let delta = |piece| json!({ "type": "text_delta", "text": piece });
                let deltas: Vec<Value> = random.pieces(text).into_iter().map(delta).collect();
                (json!({ "type": "text", "text": "" }), deltas, json!({ "type": "text", "text": text }))
            }
            Part::Thought(text, mark) => {
                let delta = |piece| json!({ "type": "thinking_delta", "thinking": piece });
                let mut deltas: Vec<Value> = random.pieces(text).into_iter().map(delta).collect();
                deltas.push(json!({ "type": "signature_delta", "signature": mark }));
                let block = json!({ "type": "thinking", "thinking": text, "signature": mark });
                (json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas, block)
            }
            Part::Call(name, args) => {
                let id = format!("toolu_{index}");
                let delta = |piece| json!({ "type": "input_json_delta", "partial_json": piece });
                let mut deltas = vec![delta(String::new())];
                deltas.extend(random.pieces(&args.to_string()).into_iter().map(delta));
                let block = |input: &Value| json!({ "type": "tool_use", "id": id, "name": name, "input": input });
                (block(&json!({})), deltas, block(args))
            }
        };
        content.push(block);
        stream += &event(&json!({ "type": "content_block_start", "index": index, "content_block": empty }), random);
        if random.percent(20) {
            stream += &event(&json!({ "type": "ping" }), random);
        }
        for delta in deltas {
            stream += &event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }), random);
        }
        stream += &event(&json!({ "type": "content_block_stop", "index": index }), random);
    }
    let end = json!({ "stop_reason": stop, "stop_sequence": null });
    let details = json!({ "output_tokens": output, "output_tokens_details": { "thinking_tokens": thoughts } });
    stream += &event(&json!({ "type": "message_delta", "delta": end, "usage": details }), random);
    stream += &event(&json!({ "type": "message_stop" }), random);
    let mut usage = usage;
    usage["output_tokens"] = json!(output);
    (stream, as_json(&message(json!(content), json!(stop), usage), random))
}

fn gemini(answer: &Answer, random: &mut Random) -> (String, String) {
    let Answer { parts, stop, input, cached, output, thoughts, .. } = answer;
    let usage = json!({
        "promptTokenCount": input, "cachedContentTokenCount": cached, "candidatesTokenCount": output - thoughts,
        "thoughtsTokenCount": thoughts, "totalTokenCount": input + output,
    });
    let response = |parts: Value, stop: Value| {
        json!({
            "candidates": [{ "content": { "role": "model", "parts": parts }, "finishReason": stop, "index": 0 }],
            "usageMetadata": usage, "modelVersion": "gemini-m", "responseId": "r",
        })
    };
    let (mut pieces, mut whole) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => {
                pieces.extend(random.pieces(text).into_iter().map(|piece| json!({ "text": piece })));
                whole.push(json!({ "text": text }));
            }
            Part::Thought(text, mark) => {
                let thought = |piece: &str| json!({ "text": piece, "thought": true });
                pieces.extend(random.pieces(text).iter().map(|piece| thought(piece)));
                whole.push(thought(text));
                pieces.push(json!({ "text": "", "thoughtSignature": mark }));
                whole.push(json!({ "text": "", "thoughtSignature": mark }));
            }
            Part::Call(name, args) => {
                let call = json!({ "functionCall": { "name": name, "args": args } });
                pieces.push(call.clone());
                whole.push(call);
            }
        }
    }
    let mut stream = String::new();
    while !pieces.is_empty() {
        let count = 1 + random.below(3).min(pieces.len() - 1);
        let some: Vec<Value> = pieces.drain(..count).collect();
        let mut one = response(json!(some), Value::Null);
        one["candidates"][0].as_object_mut().unwrap().remove("finishReason");
        stream += &event(&one, random);
    }
    stream += &event(&response(json!([{ "text": "" }]), json!(stop)), random);
    (stream, as_json(&response(json!(whole), json!(stop)), random))
}

fn openai(answer: &Answer, random: &mut Random) -> (String, String) {
    let Answer { parts, stop, input, cached, output, thoughts, .. } = answer;
    let (status, details) = match *stop {
        "completed" => ("completed", Value::Null),
        reason => ("incomplete", json!({ "reason": reason })),
    };
    let response = |status: &str, items: &[Value], usage: Value, details: &Value| {
        json!({
            "id": "resp_1", "object": "response", "created_at": 1_790_000_000, "status": status, "model": "gpt-m",
            "output": items, "usage": usage, "incomplete_details": details, "error": null, "instructions": null,
            "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto",
            "tools": [],
        })
    };
    let mut number = 0;
    let mut stream = String::new();
    let mut tell = |mut value: Value, random: &mut Random| {
        value["sequence_number"] = json!(number);
        number += 1;
        stream += &event(&value, random);
    };
    let begun = response("in_progress", &[], Value::Null, &Value::Null);
    tell(json!({ "type": "response.created", "response": begun }), random);
    tell(json!({ "type": "response.in_progress", "response": begun }), random);
    let mut items = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let added = |item: Value| json!({ "type": "response.output_item.added", "output_index": index, "item": item });
        let item = match part {
            Part::Text(text) => {
                let item = |status: &str, content: Value| json!({ "type": "message", "id": format!("msg_{index}"), "status": status, "role": "assistant", "content": content });
                let part =
                    |text: &str| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
                let about = |kind: &str| json!({ "type": kind, "item_id": format!("msg_{index}"), "output_index": index, "content_index": 0 });
                let with = |kind: &str, key: &str, value: Value| {
                    let mut event = about(kind);
                    event[key] = value;
                    event
                };
                tell(added(item("in_progress", json!([]))), random);
                tell(with("response.content_part.added", "part", part("")), random);
                for piece in random.pieces(text) {
                    let mut delta = with("response.output_text.delta", "delta", json!(piece));
                    delta["logprobs"] = json!([]);
                    tell(delta, random);
                }
                let mut done = with("response.output_text.done", "text", json!(text));
                done["logprobs"] = json!([]);
                tell(done, random);
                tell(with("response.content_part.done", "part", part(text)), random);
                item("completed", json!([part(text)]))
            }
            Part::Thought(text, mark) => {
                let summary = json!([{ "type": "summary_text", "text": text }]);
                let item = |summary: Value, sealed: Value| json!({ "type": "reasoning", "id": format!("rs_{index}"), "summary": summary, "encrypted_content": sealed });
                let about = |kind: &str, key: &str, value: Value| {
                    let mut event = json!({
                        "type": kind, "item_id": format!("rs_{index}"), "output_index": index, "summary_index": 0,
                    });
                    event[key] = value;
                    event
                };
                let part = |text: &str| json!({ "type": "summary_text", "text": text });
                tell(added(item(json!([]), json!(""))), random);
                tell(about("response.reasoning_summary_part.added", "part", part("")), random);
                for piece in random.pieces(text) {
                    tell(about("response.reasoning_summary_text.delta", "delta", json!(piece)), random);
                }
                tell(about("response.reasoning_summary_text.done", "text", json!(text)), random);
                tell(about("response.reasoning_summary_part.done", "part", part(text)), random);
                item(summary, json!(mark))
            }
            Part::Call(name, args) => {
                let item = |status: &str, args: &str| {
                    json!({
                        "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                        "name": name, "arguments": args, "status": status,
                    })
                };
                let args = args.to_string();
                let about = json!({ "item_id": format!("fc_{index}"), "output_index": index });
                let with = |kind: &str, key: &str, value: Value| {
                    let mut event = about.clone();
                    event["type"] = json!(kind);
                    event[key] = value;
                    event
                };
                tell(added(item("in_progress", "")), random);
                for piece in random.pieces(&args) {
                    tell(with("response.function_call_arguments.delta", "delta", json!(piece)), random);
                }
                let mut done = with("response.function_call_arguments.done", "arguments", json!(args));
                done["name"] = json!(name);
                tell(done, random);
                item("completed", &args)
            }
        };
        tell(json!({ "type": "response.output_item.done", "output_index": index, "item": item }), random);
        items.push(item);
    }
    let usage = json!({
        "input_tokens": input, "input_tokens_details": { "cached_tokens": cached }, "output_tokens": output,
        "output_tokens_details": { "reasoning_tokens": thoughts }, "total_tokens": input + output,
    });
    let whole = response(status, &items, usage, &details);
    tell(json!({ "type": format!("response.{status}"), "response": whole }), random);
    (stream, as_json(&whole, random))
}

/// What a server adds to Chat Completions.
struct Additions {
    /// A comment that may stand between events.
    comment: &'static str,
    /// What it took: of a cache, and written to one.
    usage: fn(u32, u32) -> Value,
    /// A part of a thought: its text, and the signature at the end.
    thought: fn(&str, &str) -> Value,
    /// What stands beside the choices, and beside why one ended.
    beside: fn() -> (Value, Value),
    /// What later parts of a call say again.
    again: fn() -> Value,
}

const OPENROUTER: Additions = Additions {
    comment: ": OPENROUTER PROCESSING\n\n",
    usage: |cached, written| {
        json!({
            "prompt_tokens_details": { "cached_tokens": cached, "cache_write_tokens": written, "audio_tokens": 0 },
            "cost": 0.00125, "is_byok": false, "cost_details": { "upstream_inference_cost": null },
        })
    },
    thought: |text, signature| {
        let detail = json!({
            "type": "reasoning.text", "text": text, "signature": signature, "format": "anthropic-claude-v1", "index": 0,
        });
        json!({ "reasoning": text, "reasoning_details": [detail] })
    },
    beside: || (json!({ "provider": "Anthropic" }), json!({ "native_finish_reason": "as the provider says" })),
    again: || json!({ "type": "function" }),
};

const LITELLM: Additions = Additions {
    comment: "",
    usage: |cached, written| {
        json!({
            "prompt_tokens_details": { "cached_tokens": cached, "text_tokens": null },
            "cache_read_input_tokens": cached, "cache_creation_input_tokens": written,
        })
    },
    thought: |text, signature| {
        let block = json!({ "type": "thinking", "thinking": text, "signature": signature });
        json!({ "reasoning_content": text, "thinking_blocks": [block] })
    },
    beside: || (json!({ "system_fingerprint": null }), json!({})),
    again: || json!({ "id": null, "type": "function" }),
};

/// An object with the members of both.
fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (one.as_object_mut(), other) {
        members.extend(more);
    }
    one
}

fn chat_completions(answer: &Answer, additions: &Additions, random: &mut Random) -> (String, String) {
    let Answer { parts, stop, input, cached, written, output, thoughts } = answer;
    let (beside, beside_stop) = (additions.beside)();
    let counted = json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "completion_tokens_details": { "reasoning_tokens": thoughts },
    });
    let usage = merged(counted, (additions.usage)(*cached, *written));
    let response = |object: &str, choices: Value| {
        let about =
            json!({ "id": "chatcmpl-1", "object": object, "created": 1_790_000_000, "model": "m", "choices": choices });
        merged(about, beside.clone())
    };
    let (mut deltas, mut content) = (vec![json!({ "role": "assistant", "content": "" })], String::new());
    let (mut thought, mut calls) = (json!({}), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => {
                deltas.extend(random.pieces(text).into_iter().map(|piece| json!({ "content": piece })));
                content += text;
            }
            Part::Thought(text, mark) => {
                let piece = |text: &str, mark: &str| merged(json!({ "content": "" }), (additions.thought)(text, mark));
                deltas.extend(random.pieces(text).iter().map(|text| piece(text, "")));
                deltas.push(piece("", mark));
                thought = (additions.thought)(text, mark);
            }
            Part::Call(name, args) => {
                let (number, args) = (calls.len(), args.to_string());
                let begun = json!({ "id": format!("call_{number}"), "type": "function" });
                let delta = |about: &Value, function: Value| {
                    let call = merged(about.clone(), json!({ "index": number, "function": function }));
                    json!({ "tool_calls": [call] })
                };
                deltas.push(delta(&begun, json!({ "name": name, "arguments": "" })));
                let again = (additions.again)();
                let piece = |piece: String| delta(&again, json!({ "arguments": piece }));
                deltas.extend(random.pieces(&args).into_iter().map(piece));
                calls.push(merged(begun, json!({ "function": { "name": name, "arguments": args } })));
            }
        }
    }
    let mut stream = String::new();
    for delta in deltas {
        if random.percent(20) {
            stream += additions.comment;
        }
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null });
        stream += &event(&response("chat.completion.chunk", json!([choice])), random);
    }
    let ended = |choice: Value| merged(merged(choice, json!({ "finish_reason": stop })), beside_stop.clone());
    let choice = ended(json!({ "index": 0, "delta": {} }));
    stream += &event(&response("chat.completion.chunk", json!([choice])), random);
    // Some send no choice with it, and some an empty one.
    let choices = if random.percent(50) { json!([]) } else { json!([{ "index": 0, "delta": { "content": "" } }]) };
    let counts = merged(response("chat.completion.chunk", choices), json!({ "usage": usage }));
    stream += &event(&counts, random);
    stream += "data: [DONE]\n\n";
    let content = if content.is_empty() { Value::Null } else { json!(content) };
    let mut message = merged(json!({ "role": "assistant", "content": content, "refusal": null }), thought);
    if !calls.is_empty() {
        message = merged(message, json!({ "tool_calls": calls }));
    }
    let choice = ended(json!({ "index": 0, "message": message }));
    let whole = merged(response("chat.completion", json!([choice])), json!({ "usage": usage }));
    (stream, as_json(&whole, random))
}
