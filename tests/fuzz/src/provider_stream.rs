//! Responses of models' APIs, in each of their formats: the events are the same for any chunks of bytes.

use anthropic::answer::Messages;
use gemini::answer::Content;
use model_wire::transcript::transcript;
use model_wire::{Exchange, Format};
use openai::answer::Responses;
use openai_compatible::answer::ChatCompletions;

/// Statuses of answers: one that counts, an error.
const STATUSES: [u16; 2] = [200, 500];

pub fn run(data: &[u8]) {
    let Some((&way, body)) = data.split_first() else { return };
    let way = usize::from(way);
    let status = STATUSES[way % 2];
    match way / 2 % 4 {
        0 => read::<ChatCompletions>(status, body, way / 8),
        1 => read::<Messages>(status, body, way / 8),
        2 => read::<Content>(status, body, way / 8),
        _ => read::<Responses>(status, body, way / 8),
    }
}

fn read<F: Format>(status: u16, body: &[u8], portion: usize) {
    let told = |portion: usize| {
        let mut exchange = Exchange::<F>::default();
        exchange.head(status, Vec::new());
        let mut events = Vec::new();
        for bytes in body.chunks(portion.max(1)) {
            events.extend(exchange.body(bytes));
        }
        events.extend(exchange.end());
        transcript(events)
    };
    let whole = told(body.len());
    assert_eq!(whole, told(portion + 1));
    let ends = whole.iter().filter(|line| line.starts_with("failed ") || line.starts_with("stop ")).count();
    assert!(ends <= 1, "it ends once: {whole:?}");
    assert!(whole.len() <= body.len() * 4 + 8, "{} events of {} bytes", whole.len(), body.len());
}
