//! Parsing the bytes of a response, as they arrive, into events.
//!
//! An answer is a stream of chunks, one whole JSON object (from servers that don't stream), or an error. What
//! servers do differently is taken as it is meant: tool calls without numbers or ids, the reason to stop missing
//! or wrong, a stream without its end mark.

use conductor_feature::Error;
use conductor_feature::chat::{CallArgs, CallBegin, CallEnd, Event, StopReason, Usage};
use serde::Deserialize;

use crate::lines::Lines;

/// Bytes of an error that are read.
const MAX_ERROR: usize = 64 * 1024;

/// An answer that is being read.
#[derive(Debug)]
pub struct Answer {
    form: Form,
    progress: Progress,
}

#[derive(Debug)]
enum Form {
    Stream(Lines),
    Whole(Vec<u8>),
    /// With the status that says so.
    Refused(u16, Vec<u8>),
}

/// The events that were returned so far.
#[derive(Debug, Default)]
struct Progress {
    calls: Vec<Call>,
    thinking: bool,
    over: Option<Over>,
}

#[derive(Debug, PartialEq, Eq)]
enum Over {
    Stopped,
    Failed,
}

/// A tool call: the server's number and id for it.
#[derive(Debug)]
struct Call {
    number: Option<u64>,
    id: Option<String>,
}

/// A chunk of a stream, or a whole answer: they differ in one word.
#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Used>,
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    /// What OpenAI says instead of an answer.
    #[serde(default)]
    refusal: Option<String>,
    /// Not OpenAI's: DeepSeek's and many local servers' word, and OpenRouter's.
    #[serde(default, alias = "reasoning")]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Used {
    #[serde(default)]
    prompt_tokens: u32,
    #[serde(default)]
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: Option<Cached>,
}

#[derive(Debug, Deserialize)]
struct Cached {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

impl Answer {
    /// An answer with this head.
    pub fn new(status: u16, headers: &[(String, String)]) -> Self {
        let kind = headers.iter().find(|(name, _)| name == "content-type").map_or("", |(_, value)| value.as_str());
        let form = match status {
            200..=299 if kind.starts_with("application/json") => Form::Whole(Vec::new()),
            200..=299 => Form::Stream(Lines::default()),
            _ => Form::Refused(status, Vec::new()),
        };
        Self { form, progress: Progress::default() }
    }

    /// Takes more of the body, and returns what it tells.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        match &mut self.form {
            Form::Stream(lines) => {
                let progress = &mut self.progress;
                if lines.push(bytes, |data| progress.data(data, &mut events)).is_err() {
                    progress.fail("the server sends an event without an end".into(), &mut events);
                }
            }
            Form::Whole(body) => body.extend_from_slice(bytes),
            Form::Refused(_, body) => body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR - body.len())]),
        }
        events
    }

    /// The body is at its end.
    pub fn end(&mut self) -> Vec<Event> {
        let (mut events, progress) = (Vec::new(), &mut self.progress);
        match &mut self.form {
            Form::Stream(lines) => lines.end(|data| progress.data(data, &mut events)),
            Form::Whole(body) => {
                progress.data(&String::from_utf8_lossy(body), &mut events);
                progress.stop(None, &mut events);
            }
            Form::Refused(status, body) => events.push(Event::Failed(refused(*status, body))),
        }
        events
    }
}

impl Progress {
    /// Takes the data of one event.
    fn data(&mut self, data: &str, events: &mut Vec<Event>) {
        if self.over == Some(Over::Failed) {
            return;
        }
        if data.trim() == "[DONE]" {
            return self.stop(None, events);
        }
        let chunk: Chunk = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(error) => return self.fail(format!("the server's answer is not understood: {error}"), events),
        };
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return self.fail(format!("the server broke off: {}", message(&error)), events);
        }
        // Only one answer is asked for.
        if let Some(choice) = chunk.choices.into_iter().next() {
            if let Some(delta) = choice.delta.filter(|_| self.over.is_none()) {
                self.delta(delta, events);
            }
            if let Some(reason) = choice.finish_reason {
                self.stop(Some(reason), events);
            }
        }
        if let Some(used) = chunk.usage {
            events.push(Event::Usage(Usage {
                input: used.prompt_tokens,
                cached: used.prompt_tokens_details.and_then(|cached| cached.cached_tokens).unwrap_or(0),
                output: used.completion_tokens,
            }));
        }
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<Event>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        if let Some(thought) = some(delta.reasoning_content) {
            self.thinking = true;
            events.push(Event::Reasoning(thought));
        }
        for text in [some(delta.content), some(delta.refusal)].into_iter().flatten() {
            self.end_thought(events);
            events.push(Event::Text(text));
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.end_thought(events);
            self.call(call, events);
        }
    }

    fn end_thought(&mut self, events: &mut Vec<Event>) {
        if std::mem::take(&mut self.thinking) {
            events.push(Event::ReasoningEnd(None));
        }
    }

    fn call(&mut self, delta: CallDelta, events: &mut Vec<Event>) {
        let id = delta.id.filter(|id| !id.is_empty());
        let (name, arguments) = delta.function.map(|it| (it.name, it.arguments)).unwrap_or_default();
        let name = name.filter(|name| !name.is_empty());
        // Another id is another call, even under the same number; without an id the number counts, and without
        // both a name begins a call.
        let open = self.calls.iter().rposition(|call| match (&id, delta.index) {
            (Some(id), _) if call.id.is_some() => call.id.as_ref() == Some(id),
            (_, Some(number)) => call.number == Some(number),
            (_, None) => name.is_none(),
        });
        let at = open.unwrap_or_else(|| {
            let at = self.calls.len();
            let call_id = id.clone().unwrap_or_else(|| format!("call-{at}"));
            self.calls.push(Call { number: delta.index, id });
            events.push(Event::CallBegin(CallBegin { index: number(at), id: call_id, name: name.unwrap_or_default() }));
            at
        });
        if let Some(text) = arguments.filter(|text| !text.is_empty()) {
            events.push(Event::CallArgs(CallArgs { index: number(at), text }));
        }
    }

    /// The answer is whole, for this reason.
    fn stop(&mut self, reason: Option<String>, events: &mut Vec<Event>) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(Over::Stopped);
        self.end_thought(events);
        events.extend((0..self.calls.len()).map(|at| Event::CallEnd(CallEnd { index: number(at), mark: None })));
        events.push(Event::Stop(match reason.as_deref() {
            // Some servers say `stop` all the same.
            None | Some("stop" | "tool_calls" | "function_call") if !self.calls.is_empty() => StopReason::Tools,
            None | Some("stop" | "tool_calls" | "function_call") => StopReason::Done,
            Some("length") => StopReason::Length,
            Some("content_filter") => StopReason::Filtered,
            Some(other) => StopReason::Other(other.to_owned()),
        }));
    }

    fn fail(&mut self, why: String, events: &mut Vec<Event>) {
        if self.over.is_none() {
            self.over = Some(Over::Failed);
            events.push(Event::Failed(Error::Failed(why)));
        }
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The words in an error, wherever the server puts them.
fn message(error: &serde_json::Value) -> String {
    let text = error["message"].as_str().or_else(|| error.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

/// What a status that is no answer means.
fn refused(status: u16, body: &[u8]) -> Error {
    let text = match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(value) => message(value.get("error").unwrap_or(&value)),
        Err(_) => String::from_utf8_lossy(body).chars().take(300).collect(),
    };
    let text = format!("the server says {status}: {}", text.trim());
    match status {
        401 | 403 => Error::Denied(text),
        404 => Error::Invalid(format!("{text} (is `url` right? most end in /v1; and is there such a model?)")),
        429 => Error::Exhausted(text),
        300..=399 => Error::Invalid(format!("{text} (it is elsewhere; write that address as `url`)")),
        400..=499 => Error::Invalid(text),
        _ => Error::Unavailable(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: &str) -> Vec<(String, String)> {
        vec![("content-type".into(), kind.into())]
    }

    /// What an answer tells, as one line an event; texts that follow each other are one.
    fn lines_of(status: u16, kind: &str, pieces: &[&[u8]]) -> Vec<String> {
        let mut answer = Answer::new(status, &head(kind));
        let mut events: Vec<Event> = pieces.iter().flat_map(|piece| answer.push(piece)).collect();
        events.extend(answer.end());
        let mut lines: Vec<String> = Vec::new();
        for event in events {
            let line = match event {
                Event::Text(text) => match lines.last_mut() {
                    Some(last) if last.starts_with("text ") => {
                        last.push_str(&text);
                        continue;
                    }
                    _ => format!("text {text}"),
                },
                Event::Reasoning(text) => format!("reasoning {text}"),
                Event::ReasoningEnd(_) => "reasoned".into(),
                Event::CallBegin(call) => format!("call {} {} {}", call.index, call.id, call.name),
                Event::CallArgs(call) => format!("args {} {}", call.index, call.text),
                Event::CallEnd(call) => format!("end {}", call.index),
                Event::Usage(usage) => format!("usage {} {} {}", usage.input, usage.cached, usage.output),
                Event::Stop(reason) => format!("stop {reason:?}"),
                Event::Failed(error) => format!("failed {error:?}"),
            };
            lines.push(line);
        }
        lines
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
        let bytes = STREAM.as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(lines_of(200, "text/event-stream", &[&bytes[..cut], &bytes[cut..]]), EXPECTED, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(lines_of(200, "text/event-stream; charset=utf-8", &single), EXPECTED);
    }

    #[test]
    fn a_stream_that_is_cut_off_tells_no_stop() {
        let upto = STREAM.find(r#"data: {"choices":[{"index":0,"delta":{},"#).unwrap();
        let lines = lines_of(200, "text/event-stream", &[&STREAM.as_bytes()[..upto]]);
        assert_eq!(lines, EXPECTED[..6], "the host says that it was cut off");
        let within = lines_of(200, "text/event-stream", &[&STREAM.as_bytes()[..upto - 20]]);
        assert!(within.last().unwrap().starts_with("failed"), "{within:?}");
    }

    #[test]
    fn an_answer_that_comes_whole_is_one() {
        let body = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Yes.","reasoning":"Hm."},
            "finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
        let lines = lines_of(200, "application/json", &[body]);
        assert_eq!(lines, ["reasoning Hm.", "reasoned", "text Yes.", "stop StopReason::Length", "usage 5 0 2"]);
    }

    #[test]
    fn what_servers_do_differently_is_taken_as_it_is_meant() {
        // Every call with number 0; `stop` after calls; no end mark, no last empty line.
        let lines = lines_of(
            200,
            "text/event-stream",
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
            "text/event-stream",
            &[b"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"look\"}}]}}]}\n\n\
                data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n\
                data: [DONE]\n\n"],
        );
        assert_eq!(lines, ["call 0 call-0 look", "args 0 {}", "end 0", "stop StopReason::Tools"]);
    }

    #[test]
    fn a_refusal_says_what_the_server_says() {
        let said = |status, body: &str| lines_of(status, "application/json", &[body.as_bytes()]).join("");
        let wrong_key = said(401, r#"{"error":{"message":"Incorrect API key provided.","type":"x"}}"#);
        assert!(wrong_key.contains("Denied(\"the server says 401: Incorrect API key provided.\")"), "{wrong_key}");
        assert!(said(404, "page not found").contains("is `url` right?"));
        assert!(said(429, r#"{"error":"slow down"}"#).contains("Exhausted(\"the server says 429: slow down\")"));
        assert!(said(503, "").contains("Unavailable"));
        assert!(said(400, &"x".repeat(MAX_ERROR * 2)).len() < 500);
    }

    #[test]
    fn an_error_within_a_stream_ends_it() {
        let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"Well\"}}]}\n\n\
            data: {\"error\":{\"message\":\"overloaded\"}}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"more\"}}]}\n\ndata: [DONE]\n\n";
        let lines = lines_of(200, "text/event-stream", &[stream]);
        assert_eq!(lines, ["text Well", "failed Error::Failed(\"the server broke off: overloaded\")"]);
    }

    #[test]
    fn bytes_that_are_no_answer_are_none() {
        for body in ["{", "data: nonsense\n\n", "<html>", "data: {\"choices\": 3}\n\n"] {
            let lines = lines_of(200, "text/event-stream", &[body.as_bytes()]);
            assert!(!lines.iter().any(|line| line.starts_with("stop")), "{body}: {lines:?}");
        }
        let endless = vec![b'x'; 1024 * 1024];
        assert!(lines_of(200, "text/event-stream", &[b"data: ", &endless])[0].starts_with("failed"));
    }
}
