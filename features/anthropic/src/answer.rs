//! Reading a response: a stream of typed events, or one message.
//!
//! An answer is a list of blocks, each of which begins, grows and ends: text, thoughts, tool calls. Thoughts are signed; the
//! signature, or the whole of a thought that is sealed, is the mark that the API wants back. Events and blocks of other
//! types are passed over, as the API's versioning asks for.

use conductor_feature::Error;
use conductor_feature::chat::{StopReason, Usage};
use model_wire::json::{count, kind, some};
use model_wire::{Answer, Format, Str};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What marks of signed thoughts begin with.
pub const THINKING: &str = "anthropic:thinking:";
/// What marks of sealed thoughts begin with.
pub const REDACTED: &str = "anthropic:redacted:";

/// The types of events that say something.
const KNOWN: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// Blocks that are open at once. The API has one.
const MAX_OPEN: usize = 16;

/// An answer of the Messages API.
#[derive(Debug, Default)]
pub struct Messages {
    open: Vec<(u32, Block)>,
    used: Used,
    stop: Option<StopReason>,
}

/// A block that is not at its end.
#[derive(Debug)]
enum Block {
    Thinking(String),
    Call(usize),
    Other,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(default)]
    index: u32,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Content<'a>>,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
}

#[derive(Debug, Deserialize)]
struct StopDetails<'a> {
    #[serde(borrow, default)]
    category: Option<Str<'a>>,
    #[serde(borrow, default)]
    explanation: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
struct Content<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    data: Option<Str<'a>>,
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

/// A message: at the beginning of a stream, without content; or a whole answer; or an error in its place.
#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    model: Option<Str<'a>>,
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<StopDetails<'a>>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
}

#[derive(Debug, Deserialize)]
struct ApiError<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow, default)]
    message: Option<Str<'a>>,
}

/// Tokens, counted from the beginning of the answer. Later ones replace earlier ones where they are said.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Used {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u32>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    thinking_tokens: Option<u32>,
}

impl Format for Messages {
    fn event(&mut self, data: &str, answer: &mut Answer) {
        if data.trim() == "[DONE]" {
            return;
        }
        let event: Event<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            // An event of a later version may look otherwise than those that are known.
            Err(_) if kind(data).is_some_and(|kind| !KNOWN.contains(&&*kind)) => return,
            Err(error) => return answer.not_understood(&error),
        };
        match &*event.kind {
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.grow(event.index, &delta, answer);
                }
            }
            "content_block_start" => {
                if let Some(content) = event.content_block {
                    self.begin(event.index, &content, answer);
                }
            }
            "content_block_stop" => self.finish(event.index, answer),
            "message_start" => {
                if let Some(message) = event.message {
                    if let Some(model) = some(&message.model) {
                        answer.model(model);
                    }
                    self.used(message.usage, answer);
                }
            }
            "message_delta" => {
                self.used(event.usage, answer);
                if let Some(delta) = event.delta {
                    self.stop_reason(some(&delta.stop_reason), delta.stop_details.as_ref(), answer);
                }
            }
            "message_stop" => answer.stop(self.stop.take().unwrap_or(StopReason::Done)),
            "error" => answer.fail(failure(event.error)),
            // `ping`, and what later versions add.
            _ => {}
        }
    }

    fn whole(&mut self, body: &str, answer: &mut Answer) {
        let message: Message<'_> = match serde_json::from_str(body) {
            Ok(message) => message,
            Err(error) => return answer.not_understood(&error),
        };
        if message.error.is_some() {
            return answer.fail(failure(message.error));
        }
        if let Some(model) = some(&message.model) {
            answer.model(model);
        }
        for content in &message.content {
            self.begin(0, content, answer);
            self.finish(0, answer);
        }
        self.stop_reason(some(&message.stop_reason), message.stop_details.as_ref(), answer);
        match self.stop.take() {
            Some(reason) => answer.stop(reason),
            None => answer.not_understood(&"the message has no `stop_reason`"),
        }
        self.used(message.usage, answer);
    }

    fn end(&mut self, answer: &mut Answer) {
        // The reason was given, only the end mark is missing.
        if let Some(reason) = self.stop.take() {
            answer.stop(reason);
        }
    }

    fn advice(status: u16) -> &'static str {
        match status {
            404 => "is there such a model, and is `url` right?",
            529 => "the API is overloaded; try again later",
            _ => "",
        }
    }
}

impl Messages {
    fn begin(&mut self, index: u32, content: &Content<'_>, answer: &mut Answer) {
        let block = match &*content.kind {
            "text" => {
                answer.text(content.text.as_deref().unwrap_or_default());
                Block::Other
            }
            "thinking" => {
                answer.reasoning(content.thinking.as_deref().unwrap_or_default());
                Block::Thinking(content.signature.as_deref().unwrap_or_default().to_owned())
            }
            "redacted_thinking" => {
                if let Some(data) = some(&content.data) {
                    answer.end_reasoning(Some(format!("{REDACTED}{data}")));
                }
                Block::Other
            }
            "tool_use" => {
                let name = content.name.as_deref().unwrap_or_default();
                let Some(call) = answer.begin_call(some(&content.id), name) else { return };
                // In a stream it is `{}` here, and comes in pieces.
                if let Some(input) = content.input.map(|input| input.get().trim()).filter(|input| *input != "{}") {
                    answer.call_arguments(call, input);
                }
                Block::Call(call)
            }
            _ => Block::Other,
        };
        self.open.retain(|(other, _)| *other != index);
        if self.open.len() < MAX_OPEN {
            self.open.push((index, block));
        }
    }

    fn grow(&mut self, index: u32, delta: &Delta<'_>, answer: &mut Answer) {
        if let Some(text) = some(&delta.text) {
            answer.text(text);
        }
        if let Some(thought) = some(&delta.thinking) {
            answer.reasoning(thought);
        }
        let block = self.open.iter_mut().find(|(open, _)| *open == index).map(|(_, block)| block);
        match (block, some(&delta.signature), some(&delta.partial_json)) {
            (Some(Block::Thinking(signature)), Some(more), _)
                if signature.len() + more.len() < model_wire::answer::MAX_MARK =>
            {
                signature.push_str(more);
            }
            (Some(Block::Call(call)), _, Some(json)) => answer.call_arguments(*call, json),
            _ => {}
        }
    }

    fn finish(&mut self, index: u32, answer: &mut Answer) {
        let Some(at) = self.open.iter().position(|(open, _)| *open == index) else { return };
        match self.open.swap_remove(at).1 {
            Block::Thinking(signature) if signature.is_empty() => answer.end_reasoning(None),
            Block::Thinking(signature) => answer.end_reasoning(Some(format!("{THINKING}{signature}"))),
            Block::Call(call) => answer.end_call(call, None),
            Block::Other => {}
        }
    }

    fn used(&mut self, used: Option<Used>, answer: &mut Answer) {
        let Some(used) = used else { return };
        let before = self.used;
        self.used = Used {
            input_tokens: used.input_tokens.or(before.input_tokens),
            cache_read_input_tokens: used.cache_read_input_tokens.or(before.cache_read_input_tokens),
            cache_creation_input_tokens: used.cache_creation_input_tokens.or(before.cache_creation_input_tokens),
            output_tokens: used.output_tokens.or(before.output_tokens),
            output_tokens_details: used.output_tokens_details.or(before.output_tokens_details),
        };
        let Used { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens, .. } = self.used;
        let cached = cache_read_input_tokens.unwrap_or(0);
        let written = cache_creation_input_tokens.unwrap_or(0);
        // The API counts what is not cached, what is read and what is written apart.
        let input = input_tokens.unwrap_or(0).saturating_add(cached).saturating_add(written);
        answer.cache_written(cache_creation_input_tokens);
        answer.thoughts(self.used.output_tokens_details.and_then(|details| details.thinking_tokens));
        answer.usage(Usage { input, cached, output: output_tokens.unwrap_or(0) });
    }

    fn stop_reason(&mut self, reason: Option<&str>, details: Option<&StopDetails<'_>>, answer: &mut Answer) {
        self.stop = Some(match reason {
            None => return,
            Some("end_turn" | "stop_sequence") => StopReason::Done,
            Some("tool_use") => StopReason::Tools,
            Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
            Some("refusal") => StopReason::Filtered,
            Some(other) => StopReason::Other(other.to_owned()),
        });
        if let Some(why) = details.and_then(|details| some(&details.explanation).or_else(|| some(&details.category))) {
            answer.note(&format!("the API held the rest back: {why}"));
        }
    }
}

/// An error in the place of an answer, or in its middle.
fn failure(error: Option<ApiError<'_>>) -> Error {
    let (kind, words) = error.map(|error| (error.kind, error.message)).unwrap_or_default();
    let words = some(&words).or_else(|| some(&kind)).unwrap_or("no reason is given");
    let text = format!("the server broke off: {words}");
    match some(&kind) {
        Some("overloaded_error" | "api_error" | "timeout_error" | "gateway_timeout_error") => Error::Unavailable(text),
        Some("rate_limit_error" | "billing_error") => Error::Exhausted(text),
        Some("authentication_error" | "permission_error") => Error::Denied(text),
        Some("invalid_request_error" | "not_found_error" | "request_too_large") => Error::Invalid(text),
        _ => Error::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use model_wire::Exchange;
    use model_wire::transcript::{read, read_cut_anywhere};

    use super::*;

    /// As the documents show it: a signed thought, a sealed one, text with an umlaut, two calls, pings and an event of a
    /// type that does not exist yet.
    const STREAM: &str = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-opus-5-5","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":1}}}"#,
        "\n\n",
        "event: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        "\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"look.\n"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB=="}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":0}"#,
        "\n\n",
        r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"sealed"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":1}"#,
        "\n\n",
        r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Grün"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":" it is."}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"char_location"}}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":2}"#,
        "\n\n",
        r#"data: {"type":"news_of_tomorrow","index":2,"delta":{"type":"x","text":5.5}}"#,
        "\n\n",
    );

    const CALLS: &str = concat!(
        r#"data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_A","name":"look","input":{}}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"at\":"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" 3}"}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":3}"#,
        "\n\n",
        r#"data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_B","name":"hear","input":{}}}"#,
        "\n\n",
        r#"data: {"type":"content_block_stop","index":4}"#,
        "\n\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":40}}}"#,
        "\n\n",
        r#"data: {"type":"message_stop"}"#,
        "\n\n",
    );

    const EXPECTED: [&str; 11] = [
        "usage 2125 2000 1",
        "reasoning Let me look.\n",
        "reasoned anthropic:thinking:EqQB==",
        "reasoned anthropic:redacted:sealed",
        "text Grün it is.",
        "call 0 toolu_A look",
        "args 0 {\"at\": 3}",
        "end 0",
        "call 1 toolu_B hear",
        "args 1 {}",
        "end 1",
    ];

    fn stream() -> String {
        STREAM.to_owned() + CALLS
    }

    fn lines_of(body: &str) -> Vec<String> {
        read(&mut Exchange::<Messages>::default(), 200, &[body.as_bytes()])
    }

    #[test]
    fn a_stream_tells_the_same_wherever_it_is_cut() {
        let lines = read_cut_anywhere::<Messages>(stream().as_bytes());
        assert_eq!(lines[..11], EXPECTED);
        assert_eq!(lines[11..], ["usage 2125 2000 89", "stop StopReason::Tools"]);
        let mut exchange = Exchange::<Messages>::default();
        read(&mut exchange, 200, &[stream().as_bytes()]);
        let report = exchange.report();
        assert_eq!((report.cache_written, report.thoughts, report.cost), (Some(100), Some(40), None));
        assert_eq!((report.model.as_deref(), report.notes.len()), (Some("claude-opus-5-5"), 0));
    }

    #[test]
    fn an_answer_that_comes_whole_tells_the_same() {
        let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[
            {"type":"thinking","thinking":"Let me look.\n","signature":"EqQB=="},
            {"type":"redacted_thinking","data":"sealed"},
            {"type":"text","text":"Grün it is."},
            {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},
            {"type":"tool_use","id":"toolu_A","name":"look","input":{"at": 3}},
            {"type":"tool_use","id":"toolu_B","name":"hear","input":{}}],
            "stop_reason":"tool_use","stop_sequence":null,
            "usage":{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":89}}"#;
        let lines = read_cut_anywhere::<Messages>(body.as_bytes());
        assert_eq!(lines[..10], EXPECTED[1..]);
        assert_eq!(lines[10..], ["stop StopReason::Tools", "usage 2125 2000 89"]);
    }

    #[test]
    fn every_reason_to_stop_is_known() {
        let stop = |reason: &str| {
            let body = format!(r#"{{"content":[{{"type":"text","text":"x"}}],"stop_reason":"{reason}"}}"#);
            lines_of(&body)[1].clone()
        };
        assert_eq!(stop("end_turn"), "stop StopReason::Done");
        assert_eq!(stop("stop_sequence"), "stop StopReason::Done");
        assert_eq!(stop("max_tokens"), "stop StopReason::Length");
        assert_eq!(stop("model_context_window_exceeded"), "stop StopReason::Length");
        assert_eq!(stop("refusal"), "stop StopReason::Filtered");
        assert_eq!(stop("pause_turn"), "stop StopReason::Other(\"pause_turn\")");
        let body = r#"{"content":[],"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"Harm."}}"#;
        let mut exchange = Exchange::<Messages>::default();
        assert_eq!(read(&mut exchange, 200, &[body.as_bytes()]), ["stop StopReason::Filtered"]);
        assert!(exchange.report().notes.contains(&"the API held the rest back: Harm.".to_owned()));
    }

    #[test]
    fn a_stream_that_is_cut_off_tells_no_stop() {
        let text = stream();
        let upto = text.find(r#"data: {"type":"message_delta""#).unwrap();
        assert_eq!(lines_of(&text[..upto]), EXPECTED, "the host says that it was cut off");
        let end = text.find(r#"data: {"type":"message_stop""#).unwrap();
        assert_eq!(lines_of(&text[..end]).last().unwrap(), "stop StopReason::Tools", "only the end mark is missing");
    }

    #[test]
    fn an_error_ends_it_wherever_it_comes() {
        let upto = stream().find("data: {\"type\":\"content_block_start\",\"index\":3").unwrap();
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let lines = lines_of(&format!(
            "{}event: error\ndata: {error}\n\ndata: {{\"type\":\"message_stop\"}}\n\n",
            &stream()[..upto]
        ));
        assert_eq!(lines[5..], ["failed Error::Unavailable(\"the server broke off: Overloaded\")"]);
        assert_eq!(lines_of(error), ["failed Error::Unavailable(\"the server broke off: Overloaded\")"]);
        let refused = read(&mut Exchange::<Messages>::default(), 529, &[error.as_bytes()]);
        assert!(
            refused[0].contains("Unavailable(\"the server says 529: Overloaded (the API is overloaded"),
            "{refused:?}"
        );
        let refused = read(
            &mut Exchange::<Messages>::default(),
            401,
            &[br#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#],
        );
        assert!(refused[0].contains("Denied(\"the server says 401: invalid x-api-key (it wants a key"), "{refused:?}");
    }

    #[test]
    fn bytes_that_are_no_answer_are_none() {
        for body in [
            "{",
            "{}",
            "data: nonsense\n\n",
            "<html>",
            "data: {\"type\": 3}\n\n",
            "data: {\"content\": []}\n\n",
            "data: {\"type\":\"content_block_delta\",\"delta\":3}\n\n",
        ] {
            let lines = lines_of(body);
            assert!(lines[0].starts_with("failed"), "{body}: {lines:?}");
        }
        let many: String = (0..1000)
            .map(|index| format!(r#"data: {{"type":"content_block_start","index":{index},"content_block":{{"type":"thinking","thinking":"x"}}}}{}"#, "\n\n"))
            .collect();
        assert!(lines_of(&many).len() < 3, "blocks that never end are not kept");
    }
}
