//! Reading a response: a stream of typed events, or one response object.
//!
//! An answer is a list of items, each of which is added, grows and is done: messages, reasoning, tool calls. The last event
//! repeats all of it; what came in pieces before is not told again. Events of other types are passed over.

use conductor_feature::Error;
use conductor_feature::chat::{StopReason, Usage};
use model_wire::json::{count, kind, some};
use model_wire::refusal::{TOO_LONG, is_too_long};
use model_wire::{Answer, Format, Str};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::item::{Item, PHASE, Piece, reasoning_mark};

/// The types of events that say something.
const KNOWN: [&str; 15] = [
    "response.created",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_part.added",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
    "error",
];

/// What a response that is over says of itself.
const FINAL_STATUSES: [&str; 4] = ["completed", "incomplete", "failed", "cancelled"];

/// Items of one answer.
const MAX_ITEMS: usize = 512;

/// An answer of the Responses API.
#[derive(Debug, Default)]
pub struct Responses {
    items: Vec<State>,
    refused: bool,
}

/// What the events so far have said of an item.
#[derive(Debug)]
struct State {
    index: u32,
    /// The tool call that it is.
    call: Option<usize>,
    /// Text or thoughts came in pieces.
    in_pieces: bool,
    is_done: bool,
}

#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(default)]
    output_index: u32,
    #[serde(default)]
    summary_index: u32,
    #[serde(borrow, default)]
    delta: Option<Str<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Str<'a>>,
    /// Read only where it is needed: the API repeats much in it.
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<Str<'a>>,
    #[serde(borrow, default)]
    message: Option<Str<'a>>,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
}

#[derive(Debug, Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    status: Option<Str<'a>>,
    #[serde(borrow, default)]
    model: Option<Str<'a>>,
    #[serde(borrow, default)]
    output: Vec<Item<'a>>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
}

#[derive(Debug, Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
struct ApiError<'a> {
    #[serde(borrow, default)]
    code: Option<Str<'a>>,
    #[serde(borrow, default)]
    message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
struct Used {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u32>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u32>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u32>,
}

impl Format for Responses {
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
        let delta = event.delta.as_deref().unwrap_or_default();
        match &*event.kind {
            "response.output_text.delta" => {
                self.in_pieces(event.output_index);
                answer.text(delta);
            }
            "response.refusal.delta" => {
                self.in_pieces(event.output_index);
                self.refused = true;
                answer.text(delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.in_pieces(event.output_index);
                answer.reasoning(delta);
            }
            "response.reasoning_summary_part.added" if event.summary_index > 0 => answer.reasoning("\n\n"),
            "response.function_call_arguments.delta" => {
                if let Some(call) = self.state(event.output_index).and_then(|state| state.call) {
                    answer.call_arguments(call, delta);
                }
            }
            "response.function_call_arguments.done" => {
                let call = self.state(event.output_index).and_then(|state| state.call);
                if let Some(call) = call.filter(|call| !answer.has_arguments(*call)) {
                    answer.call_arguments(call, event.arguments.as_deref().unwrap_or_default());
                }
            }
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = event.item else { return };
                match serde_json::from_str::<Item<'_>>(item.get()) {
                    Ok(item) if event.kind.ends_with("added") => self.added(event.output_index, &item, answer),
                    Ok(item) => self.done(event.output_index, &item, answer),
                    Err(error) => answer.not_understood(&error),
                }
            }
            "response.created"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let Some(response) = event.response else { return };
                match serde_json::from_str::<Response<'_>>(response.get()) {
                    Ok(response) if &*event.kind == "response.created" => model(&response, answer),
                    Ok(response) => {
                        // The response knows better than the event that brings it.
                        let own = some(&response.status).filter(|status| FINAL_STATUSES.contains(status));
                        self.over(own.unwrap_or(&event.kind["response.".len()..]), &response, answer);
                    }
                    Err(error) => answer.not_understood(&error),
                }
            }
            "error" => {
                let nested = event.error.as_ref().map(|error| (some(&error.code), some(&error.message)));
                let (code, words) = nested.unwrap_or((some(&event.code), some(&event.message)));
                answer.fail(failure(code, words));
            }
            _ => {}
        }
    }

    fn whole(&mut self, body: &str, answer: &mut Answer) {
        match serde_json::from_str::<Response<'_>>(body) {
            Ok(response) => {
                let status = some(&response.status).unwrap_or(if response.error.is_some() { "failed" } else { "" });
                self.over(status, &response, answer);
            }
            Err(error) => answer.not_understood(&error),
        }
    }

    fn advice(status: u16) -> &'static str {
        match status {
            404 => {
                "is there such a model, and is `url` right? A server that speaks Chat Completions only is for the provider \
                    openai-compatible"
            }
            _ => "",
        }
    }
}

impl Responses {
    /// What the events so far have said of the item with this number. `None` after more than 512 items.
    fn state(&mut self, index: u32) -> Option<&mut State> {
        let at = match self.items.iter().rposition(|state| state.index == index) {
            Some(at) => at,
            None if self.items.len() == MAX_ITEMS => return None,
            None => {
                self.items.push(State { index, call: None, in_pieces: false, is_done: false });
                self.items.len() - 1
            }
        };
        self.items.get_mut(at)
    }

    fn in_pieces(&mut self, index: u32) {
        if let Some(state) = self.state(index) {
            state.in_pieces = true;
        }
    }

    fn added(&mut self, index: u32, item: &Item<'_>, answer: &mut Answer) {
        let Some(state) = self.state(index) else { return };
        if &*item.kind == "function_call" && state.call.is_none() {
            let id = some(&item.call_id).or_else(|| some(&item.id));
            state.call = answer.begin_call(id, item.name.as_deref().unwrap_or_default());
        }
    }

    fn done(&mut self, index: u32, item: &Item<'_>, answer: &mut Answer) {
        self.added(index, item, answer);
        let Some(state) = self.state(index).filter(|state| !state.is_done) else { return };
        state.is_done = true;
        let (call, in_pieces) = (state.call, state.in_pieces);
        match &*item.kind {
            "message" => {
                for piece in item.content.iter().flatten() {
                    self.refused |= &*piece.kind == "refusal";
                    if !in_pieces {
                        answer.text(words(piece));
                    }
                }
                if let Some(phase) = some(&item.phase) {
                    answer.end_reasoning(Some(format!("{PHASE}{phase}")));
                }
            }
            "reasoning" => {
                if !in_pieces {
                    let shown = item.summary.iter().flatten().chain(item.content.iter().flatten());
                    for (at, piece) in shown.enumerate() {
                        if at > 0 {
                            answer.reasoning("\n\n");
                        }
                        answer.reasoning(words(piece));
                    }
                }
                let mark = some(&item.encrypted_content)
                    .map(|sealed| reasoning_mark(item.id.as_deref().unwrap_or_default(), sealed));
                answer.end_reasoning(mark);
            }
            "function_call" => {
                let Some(call) = call else { return };
                if !answer.has_arguments(call) {
                    answer.call_arguments(call, item.arguments.as_deref().unwrap_or_default());
                }
                answer.end_call(call, None);
            }
            _ => {}
        }
    }

    /// The response is at its end, with this status.
    fn over(&mut self, status: &str, response: &Response<'_>, answer: &mut Answer) {
        model(response, answer);
        for (index, item) in response.output.iter().enumerate() {
            self.done(u32::try_from(index).unwrap_or(u32::MAX), item, answer);
        }
        if let Some(used) = &response.usage {
            let details = used.input_tokens_details.as_ref();
            answer.cache_written(details.and_then(|details| details.cache_write_tokens));
            answer.thoughts(used.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens));
            answer.usage(Usage {
                input: used.input_tokens.unwrap_or(0),
                cached: details.and_then(|details| details.cached_tokens).unwrap_or(0),
                output: used.output_tokens.unwrap_or(0),
            });
        }
        match status {
            "completed" if self.refused => answer.stop(StopReason::Filtered),
            "completed" => answer.stop(StopReason::Done),
            "incomplete" => {
                let reason = response.incomplete_details.as_ref().and_then(|details| some(&details.reason));
                answer.stop(match reason {
                    Some("max_output_tokens") => StopReason::Length,
                    Some("content_filter") => StopReason::Filtered,
                    other => StopReason::Other(other.unwrap_or("incomplete").to_owned()),
                });
            }
            "failed" | "cancelled" => {
                let error = response.error.as_ref();
                let words = error
                    .and_then(|error| some(&error.message))
                    .or((status == "cancelled").then_some("it was cancelled"));
                answer.fail(failure(error.and_then(|error| some(&error.code)), words));
            }
            other => answer.not_understood(&format!("the response has the status {other:?}")),
        }
    }
}

fn model(response: &Response<'_>, answer: &mut Answer) {
    if let Some(model) = some(&response.model) {
        answer.model(model);
    }
}

fn words<'p>(piece: &'p Piece<'_>) -> &'p str {
    some(&piece.text).or_else(|| some(&piece.refusal)).unwrap_or_default()
}

/// An error in the place of an answer, or in its middle.
fn failure(code: Option<&str>, words: Option<&str>) -> Error {
    let mut text = format!("the server broke off: {}", words.or(code).unwrap_or("no reason is given"));
    let too_long = [code, words].into_iter().flatten().any(is_too_long);
    if too_long {
        text.push_str(&format!(" ({TOO_LONG})"));
    }
    match code {
        _ if too_long => Error::Invalid(text),
        Some("server_error" | "server_overloaded" | "vector_store_timeout") => Error::Unavailable(text),
        Some("rate_limit_exceeded" | "insufficient_quota") => Error::Exhausted(text),
        Some("invalid_api_key") => Error::Denied(text),
        Some(code) if code.starts_with("invalid_") => Error::Invalid(text),
        _ => Error::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use model_wire::Exchange;
    use model_wire::transcript::{read, read_cut_anywhere};

    use super::*;

    /// As the documents show it: sealed reasoning with a summary of two parts, a comment, two calls, and the whole
    /// response again at the end.
    const STREAM: &str = concat!(
        "event: response.created\n",
        r#"data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-6.2-sol","output":[],"usage":null,"error":null}}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        "\n\n",
        r#"data: {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
        "\n\n",
        r#"data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"One."}"#,
        "\n\n",
        r#"data: {"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":1,"part":{"type":"summary_text","text":""}}"#,
        "\n\n",
        r#"data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"Two."}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA==","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]}}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
        "\n\n",
        r#"data: {"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
        "\n\n",
        r#"data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Grün","logprobs":[]}"#,
        "\n\n",
        r#"data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":" it is."}"#,
        "\n\n",
        r#"data: {"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Grün it is."}"#,
        "\n\n",
        r#"data: {"type":"response.news_of_tomorrow","delta":{"x":1},"output_index":-1}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Grün it is."}]}}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_A","name":"look","arguments":""}}"#,
        "\n\n",
        r#"data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"at\":"}"#,
        "\n\n",
        r#"data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"3}"}"#,
        "\n\n",
        r#"data: {"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"at\":3}"}"#,
        "\n\n",
        r#"data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_A","name":"look","arguments":"{\"at\":3}"}}"#,
        "\n\n",
        "data: ",
    );

    const LAST: &str = r#"{"type":"response.completed","response":RESPONSE}"#;

    const RESPONSE: &str = r#"{"id":"resp_1","object":"response","status":"completed","model":"gpt-6.2-sol","error":null,"incomplete_details":null,"output":[{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA==","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}]},{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Grün it is.","annotations":[]}]},{"id":"fc_1","type":"function_call","call_id":"call_A","name":"look","arguments":"{\"at\":3}"},{"id":"fc_2","type":"function_call","call_id":"call_B","name":"hear","arguments":"{}"}],"usage":{"input_tokens":31,"input_tokens_details":{"cached_tokens":16,"cache_write_tokens":8},"output_tokens":52,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":83}}"#;

    const EXPECTED: [&str; 12] = [
        "reasoning One.\n\nTwo.",
        "reasoned openai:reasoning:rs_1:gAAA==",
        "text Grün it is.",
        "reasoned openai:phase:commentary",
        "call 0 call_A look",
        "args 0 {\"at\":3}",
        "end 0",
        "call 1 call_B hear",
        "args 1 {}",
        "end 1",
        "usage 31 16 52",
        "stop StopReason::Tools",
    ];

    fn stream() -> String {
        format!("{STREAM}{}\n\n", LAST.replace("RESPONSE", RESPONSE))
    }

    fn lines_of(body: &str) -> Vec<String> {
        read(&mut Exchange::<Responses>::default(), 200, &[body.as_bytes()])
    }

    #[test]
    fn a_stream_tells_the_same_wherever_it_is_cut() {
        assert_eq!(read_cut_anywhere::<Responses>(stream().as_bytes()), EXPECTED);
        let mut exchange = Exchange::<Responses>::default();
        read(&mut exchange, 200, &[stream().as_bytes()]);
        let report = exchange.report();
        assert_eq!((report.cache_written, report.thoughts), (Some(8), Some(40)));
        assert_eq!(report.model.as_deref(), Some("gpt-6.2-sol"));
    }

    #[test]
    fn an_answer_that_comes_whole_tells_the_same() {
        assert_eq!(read_cut_anywhere::<Responses>(RESPONSE.as_bytes()), EXPECTED);
        let only_the_end = format!("data: {}\n\n", LAST.replace("RESPONSE", RESPONSE));
        assert_eq!(lines_of(&only_the_end), EXPECTED, "a stream that says everything in its last event");
    }

    #[test]
    fn every_way_to_end_is_known() {
        let end = |status: &str, more: &str| {
            let response =
                format!(r#"{{"status":"{status}","output":[],{more}"usage":{{"input_tokens":3,"output_tokens":2}}}}"#);
            let whole = lines_of(&response);
            let streamed = lines_of(&format!("data: {{\"type\":\"response.{status}\",\"response\":{response}}}\n\n"));
            assert_eq!(whole, streamed);
            let misnamed = lines_of(&format!("data: {{\"type\":\"response.completed\",\"response\":{response}}}\n\n"));
            assert_eq!(whole, misnamed);
            whole.last().unwrap().clone()
        };
        assert_eq!(end("completed", ""), "stop StopReason::Done");
        assert_eq!(
            end("incomplete", r#""incomplete_details":{"reason":"max_output_tokens"},"#),
            "stop StopReason::Length"
        );
        assert_eq!(
            end("incomplete", r#""incomplete_details":{"reason":"content_filter"},"#),
            "stop StopReason::Filtered"
        );
        assert_eq!(end("incomplete", ""), "stop StopReason::Other(\"incomplete\")");
        assert_eq!(
            end("failed", r#""error":{"code":"server_error","message":"The model crashed."},"#),
            "failed Error::Unavailable(\"the server broke off: The model crashed.\")"
        );
        assert_eq!(
            end("failed", r#""error":{"code":"rate_limit_exceeded","message":"Slow down."},"#),
            "failed Error::Exhausted(\"the server broke off: Slow down.\")"
        );
        let too_long = end("failed", r#""error":{"code":"context_length_exceeded","message":"Too much."},"#);
        assert!(
            too_long.starts_with("failed Error::Invalid(\"the server broke off: Too much. (the conv"),
            "{too_long}"
        );
        assert!(too_long.contains("begin another with /new, or set `context` under [models.NAME]"), "{too_long}");
        assert_eq!(end("cancelled", ""), "failed Error::Failed(\"the server broke off: it was cancelled\")");
        let refused = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I can't."}]}]}"#;
        assert_eq!(lines_of(refused), ["text I can't.", "stop StopReason::Filtered"]);
    }

    #[test]
    fn a_stream_that_is_cut_off_tells_no_stop() {
        assert_eq!(lines_of(STREAM.trim_end_matches("data: ")), EXPECTED[..7], "the host says that it was cut off");
    }

    #[test]
    fn an_error_ends_it_wherever_it_comes() {
        for error in [
            r#"{"type":"error","code":"server_error","message":"Broken.","param":null,"sequence_number":9}"#,
            r#"{"type":"error","error":{"type":"server_error","code":"server_error","message":"Broken."}}"#,
        ] {
            let lines = lines_of(&format!("{STREAM}{error}\n\n{STREAM}"));
            assert_eq!(lines[7..], ["failed Error::Unavailable(\"the server broke off: Broken.\")"], "{error}");
        }
        let refused = read(
            &mut Exchange::<Responses>::default(),
            401,
            &[br#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}"#],
        );
        assert!(
            refused[0].contains("Denied(\"the server says 401: Incorrect API key provided. (it wants a key"),
            "{refused:?}"
        );
    }

    #[test]
    fn bytes_that_are_no_answer_are_none() {
        for body in ["{", "{}", "data: nonsense\n\n", "data: {\"type\":\"response.output_text.delta\",\"delta\":3}\n\n"]
        {
            let lines = lines_of(body);
            assert!(lines[0].starts_with("failed"), "{body}: {lines:?}");
        }
        let many: String = (0..2000)
            .map(|index| format!("data: {{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{{\"type\":\"reasoning\"}}}}\n\n"))
            .collect();
        assert!(lines_of(&many).is_empty());
    }
}
