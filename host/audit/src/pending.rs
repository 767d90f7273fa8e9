//! The entry of an operation under way: it is recorded however the operation ends, also if its caller has given up.

use std::time::Instant;

use serde_json::Value;

use crate::entry::{Entry, Outcome};
use crate::writer::Audit;

/// An entry that is on its way.
#[derive(Debug)]
pub struct Pending<'a> {
    audit: &'a Audit,
    entry: Option<Entry>,
    began: Instant,
}

impl<'a> Pending<'a> {
    /// Begins what the entry is about.
    pub fn new(audit: &'a Audit, entry: Entry, began: Instant) -> Self {
        Self { audit, entry: Some(entry), began }
    }

    /// Adds a detail.
    pub fn with(&mut self, key: &str, value: impl Into<Value>) {
        self.entry = self.entry.take().map(|entry| entry.with(key, value));
    }

    /// The entry of the intent, for before it is done.
    pub fn begun(&self) -> Option<Entry> {
        Some(self.entry.clone()?.outcome(Outcome::Begun))
    }

    /// Puts it on record, with the outcome and the reason that `ended` gives it.
    pub async fn end(mut self, ended: impl FnOnce(Entry) -> Entry) {
        let Some(entry) = self.entry.take() else { return };
        self.audit.record(ended(entry).took(self.began.elapsed())).await;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.audit.note(entry.failed("the caller left before it ended").took(self.began.elapsed()));
        }
    }
}
