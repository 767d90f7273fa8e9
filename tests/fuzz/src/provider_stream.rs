//! Responses of a model's API: the events are the same for any chunks of bytes.

use openai_compatible::answer::Answer;

/// Heads of answers: a stream, a whole object, an error.
const HEADS: [(u16, &str); 3] = [(200, "text/event-stream"), (200, "application/json"), (500, "application/json")];

pub fn run(data: &[u8]) {
    let Some((&way, body)) = data.split_first() else { return };
    let (status, kind) = HEADS[usize::from(way) % HEADS.len()];
    let told = |portion: usize| {
        let mut answer = Answer::new(status, &[("content-type".to_owned(), kind.to_owned())]);
        let mut events = Vec::new();
        for bytes in body.chunks(portion.max(1)) {
            events.extend(answer.push(bytes));
        }
        events.extend(answer.end());
        events.iter().map(|event| format!("{event:?}")).collect::<Vec<_>>()
    };
    let whole = told(body.len());
    assert_eq!(whole, told(usize::from(way) / HEADS.len() + 1));
    let ends =
        whole.iter().filter(|event| event.starts_with("Event::Failed") || event.starts_with("Event::Stop")).count();
    assert!(ends <= 1, "it ends once: {whole:?}");
    assert!(whole.len() <= body.len() * 4 + 8, "{} events of {} bytes", whole.len(), body.len());
}
