//! Events as lines of text, for tests: texts that follow each other are one line, however they were cut.

use conductor_feature::chat::Event;
use conductor_feature::provider::{Endpoint, Request};

use crate::{Exchange, Format};

/// One line for each event.
pub fn transcript(events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let mark = |mark: Option<String>| mark.map(|mark| format!(" {mark}")).unwrap_or_default();
    let mut lines: Vec<String> = Vec::new();
    let joined = |lines: &mut Vec<String>, head: String, text: &str| match lines.last_mut() {
        Some(last) if last.starts_with(&head) => last.push_str(text),
        _ => lines.push(head + text),
    };
    for event in events {
        match event {
            Event::Text(text) => joined(&mut lines, "text ".into(), &text),
            Event::Reasoning(text) => joined(&mut lines, "reasoning ".into(), &text),
            Event::CallArgs(call) => joined(&mut lines, format!("args {} ", call.index), &call.text),
            Event::ReasoningEnd(it) => lines.push(format!("reasoned{}", mark(it))),
            Event::CallBegin(call) => lines.push(format!("call {} {} {}", call.index, call.id, call.name)),
            Event::CallEnd(call) => lines.push(format!("end {}{}", call.index, mark(call.mark))),
            Event::Usage(usage) => {
                // Later ones replace earlier ones.
                if lines.last().is_some_and(|last| last.starts_with("usage ")) {
                    lines.pop();
                }
                lines.push(format!("usage {} {} {}", usage.input, usage.cached, usage.output));
            }
            Event::Stop(reason) => lines.push(format!("stop {reason:?}")),
            Event::Failed(error) => lines.push(format!("failed {error:?}")),
        }
    }
    lines
}

/// What a response is read as: with this status, in these pieces.
pub fn read<F: Format>(exchange: &mut Exchange<F>, status: u16, pieces: &[&[u8]]) -> Vec<String> {
    exchange.head(status, vec![("content-type".into(), "text/event-stream".into())]);
    let mut events: Vec<Event> = pieces.iter().flat_map(|piece| exchange.body(piece)).collect();
    events.extend(exchange.end());
    transcript(events)
}

/// The same for a response that was cut at every byte, once in two and once in single bytes. Panics if it makes a
/// difference.
pub fn read_cut_anywhere<F: Format>(body: &[u8]) -> Vec<String> {
    let whole = read(&mut Exchange::<F>::default(), 200, &[body]);
    for cut in 0..=body.len() {
        let cut_there = read(&mut Exchange::<F>::default(), 200, &[&body[..cut], &body[cut..]]);
        assert_eq!(cut_there, whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(read(&mut Exchange::<F>::default(), 200, &single), whole, "in single bytes");
    whole
}

/// A request for a question to `model` of `provider`, streamed.
pub fn request(provider: &str, model: &str, url: Option<&str>, question: conductor_feature::chat::Question) -> Request {
    let endpoint = Endpoint { url: url.map(str::to_owned), secret: None };
    Request { provider: provider.into(), model: model.into(), endpoint, question, stream: true }
}
