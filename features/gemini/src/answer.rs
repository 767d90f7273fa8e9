//! Reading a response: a stream of responses, each with a piece of the answer, or one that has it whole.
//!
//! Tool calls come whole, without pieces, and often without ids. Signatures come with calls, with thoughts and with texts,
//! the last of a stream even with an empty one. What was asked may be refused before there is any answer
//! (`promptFeedback`), and an answer may be held back in its middle (`finishReason`).

use conductor_feature::Error;
use conductor_feature::chat::{StopReason, Usage};
use model_wire::json::{count, some};
use model_wire::refusal::by_status;
use model_wire::{Answer, Format, Str};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What marks of signed thoughts begin with.
pub const THOUGHT: &str = "gemini:thought:";
/// What marks of signed texts begin with. They are passed on as a thought without text.
pub const TEXT: &str = "gemini:text:";
/// What marks of signed calls begin with.
pub const CALL: &str = "gemini:call:";

/// Responses in a list, which comes where `alt=sse` is not understood.
const MAX_LIST: usize = 100_000;

/// An answer of `generateContent`.
#[derive(Debug, Default)]
pub struct Content;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: Option<Used>,
    #[serde(borrow, default)]
    model_version: Option<Str<'a>>,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Parts<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    finish_message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
struct Parts<'a> {
    #[serde(borrow, default)]
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    function_call: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    block_reason_message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Used {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    tool_use_prompt_token_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct ApiError<'a> {
    #[serde(default)]
    code: Option<u16>,
    #[serde(borrow, default)]
    message: Option<Str<'a>>,
    #[serde(borrow, default)]
    status: Option<Str<'a>>,
}

impl Format for Content {
    fn event(&mut self, data: &str, answer: &mut Answer) {
        if data.trim() == "[DONE]" {
            return;
        }
        match serde_json::from_str::<Response<'_>>(data) {
            Ok(response) => told(&response, answer),
            Err(error) => answer.not_understood(&error),
        }
    }

    fn whole(&mut self, body: &str, answer: &mut Answer) {
        if !body.starts_with('[') {
            self.event(body, answer);
        } else {
            match serde_json::from_str::<Vec<Response<'_>>>(body) {
                Ok(list) => list.iter().take(MAX_LIST).for_each(|response| told(response, answer)),
                Err(error) => answer.not_understood(&error),
            }
        }
        if !answer.is_over() {
            answer.not_understood(&"no candidate has a `finishReason`");
        }
    }

    fn advice(status: u16) -> &'static str {
        match status {
            400 => "a wrong key is refused like this, too",
            404 => "is there such a model, and is `url` right?",
            503 => "the model is overloaded; try again later",
            _ => "",
        }
    }
}

/// Takes a response: a piece of the answer, or all of it.
fn told(response: &Response<'_>, answer: &mut Answer) {
    if let Some(error) = &response.error {
        return answer.fail(failure(error));
    }
    if let Some(model) = some(&response.model_version) {
        answer.model(model);
    }
    // One candidate is asked for.
    let candidate = response.candidates.first();
    for part in candidate.and_then(|candidate| candidate.content.as_ref()).map_or(&[][..], |content| &content.parts) {
        said(part, answer);
    }
    if let Some(used) = &response.usage_metadata {
        let count = |tokens: Option<u32>| tokens.unwrap_or(0);
        // The API counts thoughts beside the answer, and what its own tools read beside the question.
        answer.thoughts(used.thoughts_token_count);
        answer.usage(Usage {
            input: count(used.prompt_token_count).saturating_add(count(used.tool_use_prompt_token_count)),
            cached: count(used.cached_content_token_count),
            output: count(used.candidates_token_count).saturating_add(count(used.thoughts_token_count)),
        });
    }
    if let Some(candidate) = candidate
        && let Some(reason) = some(&candidate.finish_reason)
    {
        if let Some(why) = some(&candidate.finish_message).filter(|_| reason != "STOP") {
            answer.note(&format!("the API stopped it ({reason}): {why}"));
        }
        answer.stop(stop(reason));
    } else if let Some(blocked) = response.prompt_feedback.as_ref().and_then(|it| some(&it.block_reason)) {
        let why = response
            .prompt_feedback
            .as_ref()
            .and_then(|it| some(&it.block_reason_message))
            .unwrap_or("no more is said");
        answer.note(&format!("the API does not answer this question ({blocked}): {why}"));
        answer.stop(StopReason::Filtered);
    }
}

fn said(part: &Part<'_>, answer: &mut Answer) {
    let signature = some(&part.thought_signature);
    let mark = |prefix: &str| signature.map(|signature| format!("{prefix}{signature}"));
    if let Some(function) = &part.function_call {
        let name = function.name.as_deref().unwrap_or_default();
        let Some(call) = answer.begin_call(some(&function.id), name) else { return };
        // `null` stands for no arguments.
        if let Some(args) = function.args.map(|args| args.get().trim()).filter(|args| *args != "null") {
            answer.call_arguments(call, args);
        }
        answer.end_call(call, mark(CALL));
        return;
    }
    let text = part.text.as_deref().unwrap_or_default();
    if part.thought == Some(true) {
        answer.reasoning(text);
        if signature.is_some() {
            answer.end_reasoning(mark(THOUGHT));
        }
    } else {
        answer.text(text);
        if signature.is_some() {
            answer.end_reasoning(mark(TEXT));
        }
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        // The second is said by servers that speak like it.
        "STOP" | "FUNCTION_CALL" => StopReason::Done,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Filtered,
        other => StopReason::Other(other.to_ascii_lowercase()),
    }
}

/// An error in the middle of a stream.
fn failure(error: &ApiError<'_>) -> Error {
    let words = some(&error.message).or_else(|| some(&error.status)).unwrap_or("no reason is given");
    by_status(error.code.unwrap_or(500), format!("the server broke off: {words}"))
}

#[cfg(test)]
mod tests {
    use model_wire::Exchange;
    use model_wire::transcript::{read, read_cut_anywhere};

    use super::*;

    /// As the documents show it: a thought, text with an umlaut in two pieces, a signature with an empty text, two calls, of
    /// which the first is signed.
    const STREAM: &str = concat!(
        r#"data: {"candidates":[{"content":{"parts":[{"text":"**Looking**\n","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":31,"totalTokenCount":31},"modelVersion":"gemini-3.5-flash","responseId":"r1"}"#,
        "\r\n\r\n",
        r#"data: {"candidates":[{"content":{"parts":[{"text":"Grün"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":31,"candidatesTokenCount":2,"thoughtsTokenCount":40}}"#,
        "\r\n\r\n",
        r#"data: {"candidates":[{"content":{"parts":[{"text":" it is."},{"text":"","thoughtSignature":"cw=="}],"role":"model"},"index":0}]}"#,
        "\r\n\r\n",
        r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"look","args":{"at": 3}},"thoughtSignature":"Yw=="},{"functionCall":{"id":"fc_9","name":"hear","args":{}}}],"role":"model"},"finishReason":"STOP","index":0,"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"NEGLIGIBLE"}]}],"usageMetadata":{"promptTokenCount":31,"candidatesTokenCount":12,"cachedContentTokenCount":16,"thoughtsTokenCount":40,"totalTokenCount":83}}"#,
        "\r\n\r\n",
    );

    const EXPECTED: [&str; 12] = [
        "reasoning **Looking**\n",
        "usage 31 0 0",
        "reasoned",
        "text Grün",
        "usage 31 0 42",
        "text  it is.",
        "reasoned gemini:text:cw==",
        "call 0 call-0 look",
        "args 0 {\"at\": 3}",
        "end 0 gemini:call:Yw==",
        "call 1 fc_9 hear",
        "args 1 {}",
    ];

    fn lines_of(body: &str) -> Vec<String> {
        read(&mut Exchange::<Content>::default(), 200, &[body.as_bytes()])
    }

    #[test]
    fn a_stream_tells_the_same_wherever_it_is_cut() {
        let lines = read_cut_anywhere::<Content>(STREAM.as_bytes());
        assert_eq!(lines[..12], EXPECTED);
        assert_eq!(lines[12..], ["end 1", "usage 31 16 52", "stop StopReason::Tools"]);
        let mut exchange = Exchange::<Content>::default();
        read(&mut exchange, 200, &[STREAM.as_bytes()]);
        let report = exchange.report();
        assert_eq!((report.thoughts, report.model.as_deref()), (Some(40), Some("gemini-3.5-flash")));
    }

    #[test]
    fn an_answer_that_comes_whole_or_as_a_list_tells_the_same() {
        let whole = r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true,"thoughtSignature":"dA=="},{"text":"Yes."},
            {"functionCall":{"name":"look"}}],"role":"model"},"finishReason":"STOP"}],
            "usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}"#;
        let expected = [
            "reasoning Hm.",
            "reasoned gemini:thought:dA==",
            "text Yes.",
            "call 0 call-0 look",
            "args 0 {}",
            "end 0",
            "usage 5 0 2",
            "stop StopReason::Tools",
        ];
        assert_eq!(read_cut_anywhere::<Content>(whole.as_bytes()), expected);
        assert_eq!(read_cut_anywhere::<Content>(format!("[{whole}\n]").as_bytes()), expected);
        let list: Vec<&str> = STREAM.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(lines_of(&format!("[{}]", list.join(",\n")))[..12], EXPECTED);
    }

    #[test]
    fn what_is_held_back_is_told_apart_from_what_is_done() {
        let stop = |reason: &str| {
            let body = format!(r#"{{"candidates":[{{"finishReason":"{reason}","finishMessage":"Because."}}]}}"#);
            let mut exchange = Exchange::<Content>::default();
            let lines = read(&mut exchange, 200, &[format!("data: {body}\n\n").as_bytes()]);
            (lines[0].clone(), exchange.report().notes)
        };
        assert_eq!(stop("STOP"), ("stop StopReason::Done".into(), vec![]));
        assert_eq!(stop("FUNCTION_CALL").0, "stop StopReason::Done");
        assert_eq!(stop("MAX_TOKENS").0, "stop StopReason::Length");
        for reason in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"] {
            assert_eq!(stop(reason).0, "stop StopReason::Filtered", "{reason}");
        }
        let (other, notes) = stop("MALFORMED_FUNCTION_CALL");
        assert_eq!(other, "stop StopReason::Other(\"malformed_function_call\")");
        assert_eq!(notes, ["the API stopped it (MALFORMED_FUNCTION_CALL): Because."]);
        let blocked =
            r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9}}"#;
        let mut exchange = Exchange::<Content>::default();
        let lines = read(&mut exchange, 200, &[format!("data: {blocked}\n\n").as_bytes()]);
        assert_eq!(lines, ["usage 9 0 0", "stop StopReason::Filtered"]);
        assert!(exchange.report().notes[0].contains("(PROHIBITED_CONTENT)"));
    }

    #[test]
    fn a_stream_that_is_cut_off_tells_no_stop() {
        let upto = STREAM.rfind("data: ").unwrap();
        assert_eq!(lines_of(&STREAM[..upto]), EXPECTED[..7], "the host says that it was cut off");
    }

    #[test]
    fn an_error_ends_it_wherever_it_comes() {
        let error = r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#;
        let lines =
            lines_of(&format!("{}data: {error}\r\n\r\n{STREAM}", &STREAM[..STREAM.find("\r\n\r\n").unwrap() + 4]));
        assert_eq!(lines[2..], ["failed Error::Unavailable(\"the server broke off: The model is overloaded.\")"]);
        let refused = read(
            &mut Exchange::<Content>::default(),
            429,
            &[br#"[{"error":{"code":429,"message":"Quota exceeded.","status":"RESOURCE_EXHAUSTED"}}]"#],
        );
        assert!(refused[0].contains("Exhausted(\"the server says 429: Quota exceeded."), "{refused:?}");
        let refused = read(
            &mut Exchange::<Content>::default(),
            400,
            &[br#"{"error":{"code":400,"message":"API key not valid."}}"#],
        );
        assert!(refused[0].contains("API key not valid. (a wrong key"), "{refused:?}");
    }

    #[test]
    fn bytes_that_are_no_answer_are_none() {
        for body in ["{", "{}", "[]", "[3]", "data: nonsense\n\n", "data: {\"candidates\": 3}\n\n"] {
            let lines = lines_of(body);
            assert!(lines[0].starts_with("failed"), "{body}: {lines:?}");
        }
        assert!(lines_of("data: {\"candidates\": []}\n\n").is_empty());
        let calls = r#"{"functionCall":{"name":"look","args":{}}},"#.repeat(500);
        let flood =
            format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{}]}}}}]}}\n\n", calls.trim_end_matches(','));
        assert!(lines_of(&flood).last().unwrap().contains("more than 128 tool calls"));
    }
}
