//! Responses that are no answer: which error a status is, in the server's words.

use conductor_feature::Error;
use serde_json::Value;

/// Bytes of a refusal that are read.
pub const MAX_REFUSAL: usize = 64 * 1024;

/// Characters of the server's words that are passed on.
const MAX_WORDS: usize = 500;

/// What to do where a question is too long for the model.
pub const TOO_LONG: &str = "the conversation is too long for it: begin another with /new, or set `context` under \
                            [models.NAME], so that it is shortened in time";

/// What APIs say where a question is too long, in lower case: their codes, and their words where they have no code for it.
const SAY_TOO_LONG: [&str; 8] = [
    // OpenAI, and who answers as it does.
    "context_length_exceeded",
    "maximum context length",
    "context window",
    // Anthropic.
    "prompt is too long",
    "request_too_large",
    // Gemini.
    "exceeds the maximum number of tokens",
    // llama.cpp and others.
    "context size",
    "context length",
];

/// Whether a server says, in its words or by its code, that a question is too long for the model.
pub fn is_too_long(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    SAY_TOO_LONG.iter().any(|words| said.contains(words))
}

/// The error for a status other than 2xx. `headers` have names in lower case; `secret` is the one that the server was asked
/// with; `advice` is what the provider adds for this status, and may be empty.
pub fn refusal(status: u16, headers: &[(String, String)], body: &[u8], secret: Option<&str>, advice: &str) -> Error {
    let mut text = format!("the server says {status}");
    let words = words(body);
    if !words.is_empty() {
        text.push_str(": ");
        text.push_str(&words);
    }
    if let Some((_, after)) = headers.iter().find(|(name, _)| name == "retry-after")
        && matches!(status, 429 | 503 | 529)
    {
        let unit = if after.trim().bytes().all(|byte| byte.is_ascii_digit()) { " s" } else { "" };
        text.push_str(&format!(" (try again after {}{unit})", cut(after.trim(), 40)));
    }
    let too_long = status == 413 || (status == 400 && is_too_long(&String::from_utf8_lossy(body)));
    let advice = match (status, advice, secret) {
        _ if too_long => TOO_LONG.to_owned(),
        (401 | 403, _, Some(id)) => format!("is it the key for this API? `conductor secret set {id}`"),
        (401, _, None) => "it wants a key: name one as the model's `secret`".to_owned(),
        (_, advice, _) if !advice.is_empty() => advice.to_owned(),
        (300..=399, ..) => "it is elsewhere; write that address as `url`".to_owned(),
        (402, ..) => "the account has no credit left".to_owned(),
        _ => String::new(),
    };
    if !advice.is_empty() {
        text.push_str(&format!(" ({advice})"));
    }
    by_status(status, text)
}

/// An error with these words, as the status means it.
pub fn by_status(status: u16, text: String) -> Error {
    match status {
        401 | 403 => Error::Denied(text),
        402 | 429 => Error::Exhausted(text),
        408 => Error::Unavailable(text),
        300..=499 => Error::Invalid(text),
        _ => Error::Unavailable(text),
    }
}

/// The words of a JSON error, wherever the server puts them: in `error.message`, `message`, `detail`, or in the first
/// object of a list.
pub fn message(error: &Value) -> String {
    let error = error.get(0).unwrap_or(error);
    let inner = error.get("error").filter(|inner| !inner.is_null()).unwrap_or(error);
    let words = ["message", "detail", "error"].iter().find_map(|key| inner.get(*key)?.as_str());
    let words = words.or_else(|| inner.as_str()).map_or_else(|| inner.to_string(), str::to_owned);
    // OpenRouter says in `metadata.raw` what the provider behind it said.
    match inner.get("metadata").and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) {
        Some(raw) if !words.contains(raw) => format!("{words}: {raw}"),
        _ => words,
    }
}

/// What a body that is no answer says, in at most 500 characters.
fn words(body: &[u8]) -> String {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return cut(message(&value).trim(), MAX_WORDS);
    }
    let text = String::from_utf8_lossy(body);
    match page_title(&text) {
        Some(title) => format!("an HTML page: {}", cut(title, MAX_WORDS)),
        None => cut(text.trim(), 300),
    }
}

/// The title of an HTML page; empty if it has none. `None` if it is no page.
pub fn page_title(text: &str) -> Option<&str> {
    if !text.trim_start().starts_with('<') {
        return None;
    }
    let from = text.find("<title>").or_else(|| text.find("<TITLE>")).map(|at| at + "<title>".len());
    let title = from.and_then(|from| text.get(from..)).and_then(|rest| rest.split('<').next());
    Some(title.unwrap_or_default().trim())
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16, body: &str) -> String {
        format!("{:?}", refusal(status, &[], body.as_bytes(), None, ""))
    }

    #[test]
    fn a_refusal_has_the_servers_words_wherever_they_are() {
        assert!(
            said(401, r#"{"error":{"message":"Bad key."}}"#)
                .contains("Denied(\"the server says 401: Bad key. (it wants a key")
        );
        assert!(said(429, r#"{"error":"slow down"}"#).contains("Exhausted(\"the server says 429: slow down\")"));
        assert!(
            said(400, r#"[{"error":{"code":400,"message":"No."}}]"#).contains("Invalid(\"the server says 400: No.\")")
        );
        assert!(said(422, r#"{"detail":"wrong field"}"#).contains("wrong field"));
        assert!(said(503, "").contains("Unavailable(\"the server says 503\")"));
        assert!(
            said(529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#)
                .contains("Unavailable(\"the server says 529: Overloaded\")")
        );
        assert!(said(402, "{}").contains("no credit left"));
        assert!(said(302, "").contains("write that address"));
        assert!(said(502, "<html><head><title>Bad Gateway</title></head>").contains("an HTML page: Bad Gateway"));
        assert!(said(400, &"x".repeat(MAX_REFUSAL)).len() < 400);
        let behind = r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"too long"}}}"#;
        assert!(said(400, behind).contains("Provider returned error: too long"));
    }

    #[test]
    fn a_question_that_is_too_long_says_what_to_do() {
        for (status, body) in [
            (413, ""),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215000 tokens > 200000 maximum"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            (400, r#"{"error":{"message":"Too much.","code":"context_length_exceeded"}}"#),
            (
                400,
                r#"{"error":{"code":400,"message":"The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ),
        ] {
            let said = format!("{:?}", refusal(status, &[], body.as_bytes(), None, "or not"));
            assert!(said.contains("Invalid("), "{said}");
            assert!(said.contains("begin another with /new, or set `context` under [models.NAME]"), "{said}");
        }
        for (status, body) in [(400, r#"{"error":"no such tool"}"#), (500, "context window"), (404, "")] {
            assert!(!said(status, body).contains("/new"), "{status} {body}");
        }
    }

    #[test]
    fn a_key_that_is_refused_is_named() {
        let said = |status, secret| format!("{:?}", refusal(status, &[], b"", secret, "or not"));
        assert!(said(401, Some("my-key")).contains("`conductor secret set my-key`"));
        assert!(said(403, Some("my-key")).contains("`conductor secret set my-key`"));
        assert!(said(401, None).contains("it wants a key: name one as the model's `secret`"));
        assert!(said(403, None).contains("or not"), "it may be that no key is missing");
    }

    #[test]
    fn when_to_come_back_is_said() {
        let after = |value: &str| {
            let headers = [("retry-after".to_owned(), value.to_owned())];
            format!("{:?}", refusal(429, &headers, b"", None, ""))
        };
        assert!(after("120").contains("(try again after 120 s)"));
        assert!(after("Sun, 06 Nov 1994 08:49:37 GMT").contains("(try again after Sun, 06 Nov 1994 08:49:37 GMT)"));
    }
}
