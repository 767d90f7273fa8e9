//! The history: a ring buffer of the last observations by sequence number, so that a reader that reconnects gets what
//! it missed, or the number of observations that are gone.
//!
//! All readers share one ring and have no queues of their own: a slow reader falls out of the ring and finds a gap in
//! the numbers, and slows no other down. An observation is serialized lazily, once, on its first read.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use conductor_event::{Event, MidiMessage, OscArg};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::Observation;

/// Observations that are kept.
pub const HISTORY_CAPACITY: usize = 4096;
/// Bytes that they may take up, serialized (8 MiB).
pub const MAX_HISTORY_BYTES: usize = 8 * 1024 * 1024;

/// What an observation takes up serialized, beside its own text.
const OVERHEAD_BYTES: usize = 256;

/// An observation with its number.
#[derive(Debug)]
pub struct HistoryEntry {
    /// From 1, one more than the one before; those between two that are kept were lost.
    pub number: u64,
    /// What happened.
    pub observation: Observation,
    line: OnceLock<Arc<str>>,
}

impl HistoryEntry {
    /// Its text, made by the first reader.
    pub fn line(&self, words: impl FnOnce() -> String) -> Arc<str> {
        Arc::clone(self.line.get_or_init(|| words().into()))
    }
}

/// The last observations. Clones share them.
#[derive(Debug, Clone)]
pub struct History {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ring: Mutex<Ring>,
    /// The number of the last observation that was lost or kept.
    last: watch::Sender<u64>,
}

/// The ring, behind the lock of its writer.
#[derive(Debug, Default)]
pub struct Ring {
    moments: VecDeque<Arc<HistoryEntry>>,
    bytes: usize,
    last: u64,
}

impl Default for History {
    fn default() -> Self {
        Self { inner: Arc::new(Inner { ring: Mutex::default(), last: watch::Sender::new(0) }) }
    }
}

impl History {
    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.inner.ring.lock()
    }

    /// Puts observations in, and then tells everybody who waits.
    pub(super) fn put(&self, work: impl FnOnce(&mut Ring)) {
        let last = {
            let mut ring = self.ring();
            work(&mut ring);
            ring.last
        };
        self.inner.last.send_replace(last);
    }

    /// The kept observations after this number, oldest first, at most `most`.
    pub fn after(&self, number: u64, most: usize) -> Vec<Arc<HistoryEntry>> {
        let ring = self.ring();
        let from = ring.moments.partition_point(|moment| moment.number <= number);
        ring.moments.iter().skip(from).take(most).map(Arc::clone).collect()
    }

    /// The number before the oldest observation that is kept.
    pub fn start(&self) -> u64 {
        let ring = self.ring();
        ring.moments.front().map_or(ring.last, |moment| moment.number - 1)
    }

    /// The number of the last observation, and a way to wait for more.
    pub fn last(&self) -> watch::Receiver<u64> {
        self.inner.last.subscribe()
    }

    /// How many wait for more.
    pub fn watched(&self) -> usize {
        self.inner.last.receiver_count()
    }
}

impl Ring {
    /// Skips the numbers of observations that were dropped before they got here.
    pub(super) fn lose(&mut self, count: u64) {
        self.last += count;
    }

    /// Keeps an observation; the oldest give way.
    pub(super) fn keep(&mut self, observation: Observation) {
        self.last += 1;
        self.bytes += weight(&observation);
        self.moments.push_back(Arc::new(HistoryEntry { number: self.last, observation, line: OnceLock::new() }));
        while self.moments.len() > HISTORY_CAPACITY || self.bytes > MAX_HISTORY_BYTES {
            let Some(oldest) = self.moments.pop_front() else { return };
            self.bytes -= weight(&oldest.observation);
        }
    }
}

/// How many bytes an observation takes up at most, serialized and as it is: a byte of SysEx is three characters, and
/// a character of text may have to be escaped.
fn weight(observation: &Observation) -> usize {
    let own = match observation {
        Observation::Event(record) => match &record.event {
            Event::Midi(MidiMessage::SysEx(bytes)) => bytes.len(),
            Event::Osc(message) => {
                // A pattern is there compiled, too.
                let address = message.address().len() + if message.is_pattern() { PATTERN_BYTES } else { 0 };
                address + message.args().iter().map(argument).sum::<usize>()
            }
            _ => 0,
        },
        Observation::Failure(failure) => failure.worker.len() + failure.reason.to_string().len(),
        Observation::Mode(text) | Observation::Lights(text) => text.len(),
        Observation::Plan(news) => news.description.len(),
        Observation::Lock(news) => news.by.len(),
        Observation::Chat(news) => news.event.len(),
        Observation::Model(news) => news.model.len() + news.error.as_ref().map_or(0, String::len),
        Observation::Sink(message) => message.text.len(),
        Observation::Port(text)
        | Observation::PortTrouble(text)
        | Observation::Reload(text)
        | Observation::Refused(text) => text.len(),
    };
    OVERHEAD_BYTES + size_of::<HistoryEntry>() + own * 6
}

/// More than a compiled OSC address pattern takes, divided by what bytes are counted with.
const PATTERN_BYTES: usize = 512;

/// The bytes of an OSC argument, about.
fn argument(arg: &OscArg) -> usize {
    match arg {
        OscArg::String(text) => 4 + text.len(),
        OscArg::Blob(bytes) => 4 + bytes.len(),
        OscArg::Array(args) => 4 + args.iter().map(argument).sum::<usize>(),
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Observation {
        Observation::Port(text.into())
    }

    fn numbers(moments: &[Arc<HistoryEntry>]) -> Vec<u64> {
        moments.iter().map(|moment| moment.number).collect()
    }

    #[test]
    fn whoever_comes_back_gets_what_they_missed_or_finds_a_gap() {
        let history = History::default();
        assert_eq!((history.start(), *history.last().borrow()), (0, 0));
        history.put(|ring| (0..10).for_each(|_| ring.keep(note("x"))));
        assert_eq!(numbers(&history.after(7, 100)), [8, 9, 10]);
        assert_eq!(numbers(&history.after(0, 2)), [1, 2]);
        history.put(|ring| {
            ring.lose(5);
            ring.keep(note("y"));
        });
        assert_eq!(numbers(&history.after(9, 100)), [10, 16]);
        assert_eq!(*history.last().borrow(), 16);
    }

    #[test]
    fn the_ring_is_bounded_in_number_and_in_bytes() {
        let history = History::default();
        history.put(|ring| (0..HISTORY_CAPACITY + 10).for_each(|_| ring.keep(note("x"))));
        assert_eq!(history.after(0, usize::MAX).len(), HISTORY_CAPACITY);
        assert_eq!(history.start(), 10);
        let big = "x".repeat(MAX_HISTORY_BYTES / 64);
        history.put(|ring| (0..100).for_each(|_| ring.keep(note(&big))));
        let kept = history.after(0, usize::MAX);
        assert!((5..=11).contains(&kept.len()), "{}", kept.len());
        let ring = history.ring();
        assert_eq!(ring.bytes, kept.iter().map(|moment| weight(&moment.observation)).sum::<usize>());
        assert!(ring.bytes <= MAX_HISTORY_BYTES);
    }

    #[test]
    fn words_are_found_once() {
        let history = History::default();
        history.put(|ring| ring.keep(note("x")));
        let moment = history.after(0, 1).remove(0);
        assert_eq!(&*moment.line(|| "first".into()), "first");
        assert_eq!(&*moment.line(|| "second".into()), "first");
    }
}
