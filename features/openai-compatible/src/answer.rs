//! Reading a response: a stream of chunks, one whole JSON object (from servers that don't stream), or an error.
//!
//! What servers do differently is taken as it is meant: tool calls without numbers or ids, the reason to stop missing
//! or wrong, a stream without its end mark. OpenRouter and LiteLLM add what an answer cost, and lists of reasoning that
//! they want back with the next question; those become marks at the end of the answer.

use conductor_feature::Error;
use conductor_feature::chat::{StopReason, Usage};
use model_wire::json::{count, some};
use model_wire::json_list::JsonList;
use model_wire::refusal::{TOO_LONG, by_status, is_too_long, message};
use model_wire::{Answer, Format, Str};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What marks with OpenRouter's `reasoning_details` begin with.
pub const DETAILS: &str = "openrouter:";
/// What marks with LiteLLM's `thinking_blocks` begin with.
pub const THINKING_BLOCKS: &str = "litellm:";

/// An answer of Chat Completions.
#[derive(Debug, Default)]
pub struct ChatCompletions {
    calls: Vec<Call>,
    details: JsonList,
    blocks: JsonList,
}

/// A tool call: the server's number and id for it.
#[derive(Debug)]
struct Call {
    at: usize,
    number: Option<u64>,
    id: Option<String>,
}

/// A chunk of a stream, or a whole answer: they differ in one word.
#[derive(Debug, Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default, alias = "message")]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Str<'a>>,
    /// OpenRouter's, for an error of the provider behind it.
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Str<'a>>,
    /// What OpenAI says instead of an answer.
    #[serde(borrow, default)]
    refusal: Option<Str<'a>>,
    /// Not OpenAI's: DeepSeek's, LiteLLM's and many local servers' word.
    #[serde(borrow, default)]
    reasoning_content: Option<Str<'a>>,
    /// OpenRouter's.
    #[serde(borrow, default)]
    reasoning: Option<Str<'a>>,
    /// OpenRouter's.
    #[serde(default)]
    reasoning_details: Option<Vec<Map<String, Value>>>,
    /// LiteLLM's.
    #[serde(default)]
    thinking_blocks: Option<Vec<Map<String, Value>>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
struct Used {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u32>,
    #[serde(default)]
    prompt_tokens_details: Option<Read>,
    #[serde(default)]
    completion_tokens_details: Option<Written>,
    /// LiteLLM's word for `cache_write_tokens`.
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u32>,
    /// OpenRouter's and LiteLLM's: in US dollars.
    #[serde(default)]
    cost: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Read {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Written {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u32>,
}

impl Format for ChatCompletions {
    fn headers(&mut self, headers: &[(String, String)], answer: &mut Answer) {
        // LiteLLM's, of an answer that comes whole; 0 stands for a model whose price it does not know.
        let cost = headers.iter().find(|(name, _)| name == "x-litellm-response-cost");
        answer.cost(cost.and_then(|(_, value)| value.trim().parse::<f64>().ok()).filter(|cost| *cost > 0.0));
    }

    fn event(&mut self, data: &str, answer: &mut Answer) {
        if data.trim() == "[DONE]" {
            return self.stop(None, answer);
        }
        match serde_json::from_str::<Chunk<'_>>(data) {
            Ok(chunk) => self.chunk(chunk, answer),
            Err(error) => answer.not_understood(&error),
        }
    }

    fn whole(&mut self, body: &str, answer: &mut Answer) {
        match serde_json::from_str::<Chunk<'_>>(body) {
            Ok(Chunk { choices: None, error: None, .. }) => answer.not_understood(&"it has no `choices`"),
            Ok(chunk) => {
                self.chunk(chunk, answer);
                self.stop(None, answer);
            }
            Err(error) => answer.not_understood(&error),
        }
    }

    fn advice(status: u16) -> &'static str {
        match status {
            404 => "is `url` right? most end in /v1; and is there such a model?",
            _ => "",
        }
    }
}

impl ChatCompletions {
    fn chunk(&mut self, chunk: Chunk<'_>, answer: &mut Answer) {
        if let Some(model) = some(&chunk.model) {
            answer.model(model);
        }
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return answer.fail(failure(&error));
        }
        // Only one answer is asked for.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                self.delta(delta, answer);
            }
            if let Some(error) = choice.error.filter(|error| !error.is_null()) {
                return answer.fail(failure(&error));
            }
            if let Some(reason) = some(&choice.finish_reason) {
                self.stop(Some(reason), answer);
            }
        }
        if let Some(used) = chunk.usage {
            let read = used.prompt_tokens_details.unwrap_or_default();
            answer.cost(used.cost);
            answer.cache_written(read.cache_write_tokens.or(used.cache_creation_input_tokens));
            answer.thoughts(used.completion_tokens_details.and_then(|written| written.reasoning_tokens));
            answer.usage(Usage {
                input: used.prompt_tokens.unwrap_or(0),
                cached: read.cached_tokens.unwrap_or(0),
                output: used.completion_tokens.unwrap_or(0),
            });
        }
    }

    fn delta(&mut self, delta: Delta<'_>, answer: &mut Answer) {
        let lists = [(delta.reasoning_details, &mut self.details), (delta.thinking_blocks, &mut self.blocks)];
        let mut listed = String::new();
        for (more, list) in lists {
            if let Some(more) = more.filter(|_| !answer.is_over()) {
                listed.push_str(&JsonList::texts(&more));
                list.push(more);
            }
        }
        // The same thoughts may stand there several times.
        let thought = some(&delta.reasoning_content).or_else(|| some(&delta.reasoning)).unwrap_or(&listed);
        answer.reasoning(thought);
        for text in [some(&delta.content), some(&delta.refusal)].into_iter().flatten() {
            answer.text(text);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(&call, answer);
        }
    }

    fn call(&mut self, delta: &CallDelta<'_>, answer: &mut Answer) {
        let id = some(&delta.id);
        let name = delta.function.as_ref().and_then(|function| some(&function.name));
        // Another id is another call, even under the same number; without an id the number counts, and without
        // both a name begins a call.
        let open = self.calls.iter().rfind(|call| match (id, delta.index) {
            (Some(id), _) if call.id.is_some() => call.id.as_deref() == Some(id),
            (_, Some(number)) => call.number == Some(number),
            (_, None) => name.is_none(),
        });
        let at = match open {
            Some(call) => call.at,
            None => {
                let Some(at) = answer.begin_call(id, name.unwrap_or_default()) else { return };
                self.calls.push(Call { at, number: delta.index, id: id.map(str::to_owned) });
                at
            }
        };
        if let Some(text) = delta.function.as_ref().and_then(|function| some(&function.arguments)) {
            answer.call_arguments(at, text);
        }
    }

    /// The answer is whole, for this reason.
    fn stop(&mut self, reason: Option<&str>, answer: &mut Answer) {
        if answer.is_over() {
            return;
        }
        for (prefix, list) in [(DETAILS, &self.details), (THINKING_BLOCKS, &self.blocks)] {
            if let Some(json) = list.json() {
                answer.end_reasoning(Some(format!("{prefix}{json}")));
            }
        }
        match reason {
            None | Some("stop" | "tool_calls" | "function_call") => answer.stop(StopReason::Done),
            Some("length") => answer.stop(StopReason::Length),
            Some("content_filter") => answer.stop(StopReason::Filtered),
            // OpenRouter's, where the provider behind it failed.
            Some("error") => {
                answer.fail(Error::Unavailable("the server broke off: the model's provider failed".into()))
            }
            Some(other) => answer.stop(StopReason::Other(other.to_owned())),
        }
    }
}

/// An error in the place of an answer, or in its middle. OpenRouter says in `code` which status it would have been.
fn failure(error: &Value) -> Error {
    let mut text = format!("the server broke off: {}", message(error));
    if is_too_long(&error.to_string()) {
        text.push_str(&format!(" ({TOO_LONG})"));
        return Error::Invalid(text);
    }
    let code = error.get("code").and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    match code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code)) {
        Some(status) => by_status(status, text),
        None => Error::Failed(text),
    }
}

#[cfg(test)]
mod tests {
    use model_wire::Exchange;
    use model_wire::transcript::{read, read_cut_anywhere};

    use super::*;

    fn lines_of(status: u16, pieces: &[&[u8]]) -> Vec<String> {
        read(&mut Exchange::<ChatCompletions>::default(), status, pieces)
    }

    /// As it came from the API, shortened: text with an umlaut, then two tool calls at once.
    const STREAM: &str = concat!(
        r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":"Grün"},"finish_reason":null}],"usage":null}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":" it is."},"finish_reason":null}],"usage":null}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_A","type":"function","function":{"name":"look","arguments":""}}]},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"at\":"}}]},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_B","type":"function","function":{"name":"hear","arguments":"{}"}}]},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"3}"}}]},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        "\n\n",
        r#"data: {"choices":[],"usage":{"prompt_tokens":31,"completion_tokens":12,"total_tokens":43,"prompt_tokens_details":{"cached_tokens":16}}}"#,
        "\n\n",
        "data: [DONE]\n\n",
    );

    const EXPECTED: [&str; 10] = [
        "text Grün it is.",
        "call 0 call_A look",
        "args 0 {\"at\":",
        "call 1 call_B hear",
        "args 1 {}",
        "args 0 3}",
        "end 0",
        "end 1",
        "stop StopReason::Tools",
        "usage 31 16 12",
    ];

    #[test]
    fn a_stream_tells_the_same_wherever_it_is_cut() {
        assert_eq!(read_cut_anywhere::<ChatCompletions>(STREAM.as_bytes()), EXPECTED);
    }

    #[test]
    fn a_stream_that_is_cut_off_tells_no_stop() {
        let upto = STREAM.find(r#"data: {"choices":[{"index":0,"delta":{},"#).unwrap();
        let lines = lines_of(200, &[&STREAM.as_bytes()[..upto]]);
        assert_eq!(lines, EXPECTED[..6], "the host says that it was cut off");
        let within = lines_of(200, &[&STREAM.as_bytes()[..upto - 20]]);
        assert!(within.last().unwrap().starts_with("failed"), "{within:?}");
    }

    #[test]
    fn an_answer_that_comes_whole_is_one() {
        let body = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes.","reasoning":"Hm."},
            "finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
        let lines = lines_of(200, &[body]);
        assert_eq!(lines, ["reasoning Hm.", "reasoned", "text Yes.", "stop StopReason::Length", "usage 5 0 2"]);
    }

    #[test]
    fn what_servers_do_differently_is_taken_as_it_is_meant() {
        // Every call with number 0; `stop` after calls; no end mark, no last empty line.
        let lines = lines_of(
            200,
            &[br#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"hear","arguments":"{}"}}]}}]}

data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}"#],
        );
        assert_eq!(
            lines,
            ["call 0 a look", "args 0 {}", "call 1 b hear", "args 1 {}", "end 0", "end 1", "stop StopReason::Tools"]
        );
        // Neither numbers nor ids nor a reason to stop.
        let lines = lines_of(
            200,
            &[b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"look\"}}]}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n\
                data: [DONE]\n\n"],
        );
        assert_eq!(lines, ["call 0 call-0 look", "args 0 {}", "end 0", "stop StopReason::Tools"]);
    }

    #[test]
    fn a_refusal_says_what_the_server_says() {
        let said = |status, body: &str| lines_of(status, &[body.as_bytes()]).join("");
        let wrong_key = said(401, r#"{"error":{"message":"Incorrect API key provided.","type":"x"}}"#);
        assert!(
            wrong_key.contains("Denied(\"the server says 401: Incorrect API key provided. (it wants a key"),
            "{wrong_key}"
        );
        assert!(said(404, "page not found").contains("is `url` right?"));
        assert!(said(429, r#"{"error":"slow down"}"#).contains("Exhausted(\"the server says 429: slow down\")"));
        assert!(said(503, "").contains("Unavailable"));
        assert!(said(400, &"x".repeat(100_000)).len() < 500);
    }

    #[test]
    fn an_error_within_a_stream_ends_it() {
        let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"Well\"}}]}\n\n\
            data: {\"error\":{\"message\":\"overloaded\"}}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"more\"}}]}\n\ndata: [DONE]\n\n";
        let lines = lines_of(200, &[stream]);
        assert_eq!(lines, ["text Well", "failed Error::Failed(\"the server broke off: overloaded\")"]);
    }

    #[test]
    fn bytes_that_are_no_answer_are_none() {
        for body in ["{", "data: nonsense\n\n", "<html>", "data: {\"choices\": 3}\n\n"] {
            let lines = lines_of(200, &[body.as_bytes()]);
            assert!(!lines.iter().any(|line| line.starts_with("stop")), "{body}: {lines:?}");
        }
        let endless = vec![b'x'; 5 * 1024 * 1024];
        assert!(lines_of(200, &[b"data: ", &endless])[0].starts_with("failed"));
    }

    /// OpenRouter: comments, reasoning with details in parts, what it cost.
    const OPENROUTER: &str = concat!(
        ": OPENROUTER PROCESSING\n\n",
        r#"data: {"id":"gen-1","provider":"Anthropic","model":"anthropic/claude-opus-5.5","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Let ","reasoning_details":[{"type":"reasoning.text","text":"Let ","format":"anthropic-claude-v1","index":0}]},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":"","reasoning":"me.","reasoning_details":[{"type":"reasoning.text","text":"me.","index":0}]}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"sig","index":0}]}}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":null}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"end_turn"}]}"#,
        "\n\n",
        r#"data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"prompt_tokens":194,"completion_tokens":2,"cost":0.0001415,"is_byok":false,"prompt_tokens_details":{"cached_tokens":10,"cache_write_tokens":100},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        "\n\n",
        "data: [DONE]\n\n",
    );

    #[test]
    fn openrouter_says_what_it_cost_and_wants_its_details_back() {
        let details = r#"[{"format":"anthropic-claude-v1","index":0,"signature":"sig","text":"Let me.","type":"reasoning.text"}]"#;
        let expected = [
            "reasoning Let me.".to_owned(),
            "reasoned".into(),
            "text Yes.".into(),
            format!("reasoned openrouter:{details}"),
            "stop StopReason::Done".into(),
            "usage 194 10 2".into(),
        ];
        assert_eq!(read_cut_anywhere::<ChatCompletions>(OPENROUTER.as_bytes()), expected);
        let mut exchange = Exchange::<ChatCompletions>::default();
        read(&mut exchange, 200, &[OPENROUTER.as_bytes()]);
        let report = exchange.report();
        assert_eq!((report.cost, report.cache_written, report.thoughts), (Some(141_500), Some(100), Some(1)));
        assert_eq!(report.model.as_deref(), Some("anthropic/claude-opus-5.5"));
    }

    #[test]
    fn an_error_of_the_provider_behind_openrouter_is_what_its_code_says() {
        let broken = |error: &str| lines_of(200, &[format!("data: {error}\n\ndata: [DONE]\n\n").as_bytes()]).join("");
        let both = r#"{"id":"gen-1","provider":"X","error":{"code":429,"message":"Rate limited","metadata":{"provider_name":"X","raw":"slow down"}},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#;
        assert_eq!(broken(both), "failed Error::Exhausted(\"the server broke off: Rate limited: slow down\")");
        let within = r#"{"choices":[{"delta":{"content":""},"error":{"code":502,"message":"Provider disconnected"},"finish_reason":"error"}]}"#;
        assert_eq!(broken(within), "failed Error::Unavailable(\"the server broke off: Provider disconnected\")");
        assert!(broken(r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#).contains("Unavailable"));
        assert!(broken(r#"{"error":{"code":"400","message":"No."}}"#).contains("Invalid"));
        let too_long = broken(r#"{"error":{"code":"context_length_exceeded","message":"Too much."}}"#);
        assert!(too_long.contains("Invalid") && too_long.contains("begin another with /new"), "{too_long}");
        assert!(broken(r#"{"error":{"code":"server_error","message":"No."}}"#).contains("Failed"));
    }

    #[test]
    fn litellm_says_what_it_cost_and_wants_its_thinking_blocks_back() {
        let body = r#"{"id":"c","model":"claude-opus-5-5","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",
            "content":"Yes.","reasoning_content":"Hm.","thinking_blocks":[{"type":"thinking","thinking":"Hm.","signature":"s"}]}}],
            "usage":{"prompt_tokens":5,"completion_tokens":2,"cache_creation_input_tokens":3}}"#;
        let mut exchange = Exchange::<ChatCompletions>::default();
        exchange.head(200, vec![("x-litellm-response-cost".into(), "2.5e-05".into())]);
        assert!(exchange.body(body.as_bytes()).is_empty());
        let lines = model_wire::transcript::transcript(exchange.end());
        assert_eq!(
            lines,
            [
                "reasoning Hm.",
                "reasoned",
                "text Yes.",
                r#"reasoned litellm:[{"signature":"s","thinking":"Hm.","type":"thinking"}]"#,
                "stop StopReason::Done",
                "usage 5 0 2",
            ]
        );
        let report = exchange.report();
        assert_eq!((report.cost, report.cache_written), (Some(25_000), Some(3)));
        let mut unknown = Exchange::<ChatCompletions>::default();
        unknown.head(200, vec![("x-litellm-response-cost".into(), "0.0".into())]);
        assert_eq!(unknown.report().cost, None, "a price that is not known is not zero");
    }
}
