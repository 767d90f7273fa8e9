//! The three sinks: diagnostics, alerts, notifications.
//!
//! A guest's message goes into one bounded queue and the call returns; somebody off the event path
//! takes it out. What does not fit is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};
use wasmtime::component::Resource;

use super::install::Context;
use crate::feature::FeatureId;
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::bindings::imports::{alerts, diagnostics, notifications};
use crate::feature::sandbox::limits;
use crate::feature::sandbox::state::{FeatureFacts, InstanceState};
use crate::terminal::excerpt;

/// Messages that the queue holds before it refuses more.
const QUEUE: usize = 256;
/// Bytes kept of an alert.
const MAX_ALERT: usize = 256;
/// Bytes kept of a notification.
const MAX_NOTIFICATION: usize = 4096;

/// What kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkKind {
    /// An operational record, with its severity.
    Diagnostic(Severity),
    /// For the person, passing.
    Alert,
    /// For a model, durable.
    Notification,
}

/// How much a diagnostic matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something was skipped or bent.
    Warning,
    /// Something failed.
    Error,
}

/// A message from a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkMessage {
    /// Who said it.
    pub feature: FeatureId,
    /// Which sink.
    pub kind: SinkKind,
    /// What, cut to the sink's length, without control characters.
    pub text: String,
}

/// The sending end, for features.
#[derive(Debug, Clone)]
pub struct SinkQueue {
    sender: Sender<SinkMessage>,
    dropped: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

impl SinkQueue {
    /// A queue and its receiving end.
    pub fn new() -> (Self, Receiver<SinkMessage>) {
        let (sender, receiver) = crossbeam_channel::bounded(QUEUE);
        (Self { sender, dropped: Arc::default(), taken: Arc::default() }, receiver)
    }

    /// Messages that were left out so far: too many at once, or nobody took them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Messages that were not left out so far.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Acquire)
    }

    fn put(&self, message: SinkMessage) {
        self.taken.fetch_add(1, Ordering::AcqRel);
        if self.sender.try_send(message).is_err() {
            self.taken.fetch_sub(1, Ordering::AcqRel);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The guest's handle to the log.
#[derive(Debug)]
pub struct DiagnosticSink;
/// The guest's handle to the person.
#[derive(Debug)]
pub struct AlertSink;
/// The guest's handle to the notification log.
#[derive(Debug)]
pub struct NotificationSink;

impl FeatureFacts {
    /// Puts what it says into the queue, cut to `max` bytes; counts it where it says too much.
    pub(crate) fn say(&self, kind: SinkKind, text: String, max: usize) {
        let queue = &self.services.sinks;
        if !self.sink_rate.take(Instant::now()) {
            queue.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.put(SinkMessage { feature: self.descriptor.id.clone(), kind, text: excerpt(&text, max) });
    }
}

impl diagnostics::Host for InstanceState {}
impl alerts::Host for InstanceState {}
impl notifications::Host for InstanceState {}

impl diagnostics::HostSink for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<DiagnosticSink>, Error>> {
        self.table.get(&context)?;
        Ok(Ok(self.table.push(DiagnosticSink)?))
    }

    fn emit(
        &mut self,
        sink: Resource<DiagnosticSink>,
        severity: diagnostics::Severity,
        text: String,
    ) -> wasmtime::Result<()> {
        self.table.get(&sink)?;
        let severity = match severity {
            diagnostics::Severity::Info => Severity::Info,
            diagnostics::Severity::Warning => Severity::Warning,
            diagnostics::Severity::Error => Severity::Error,
        };
        self.facts.say(SinkKind::Diagnostic(severity), text, limits::MAX_TEXT);
        Ok(())
    }

    fn drop(&mut self, sink: Resource<DiagnosticSink>) -> wasmtime::Result<()> {
        self.table.delete(sink)?;
        Ok(())
    }
}

impl alerts::HostSink for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<AlertSink>, Error>> {
        self.table.get(&context)?;
        if let Err(error) = self.granted("alert") {
            return Ok(Err(error));
        }
        Ok(Ok(self.table.push(AlertSink)?))
    }

    fn emit(&mut self, sink: Resource<AlertSink>, text: String) -> wasmtime::Result<()> {
        self.table.get(&sink)?;
        self.facts.say(SinkKind::Alert, text, MAX_ALERT);
        Ok(())
    }

    fn drop(&mut self, sink: Resource<AlertSink>) -> wasmtime::Result<()> {
        self.table.delete(sink)?;
        Ok(())
    }
}

impl notifications::HostSink for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<NotificationSink>, Error>> {
        self.table.get(&context)?;
        if let Err(error) = self.granted("notify") {
            return Ok(Err(error));
        }
        Ok(Ok(self.table.push(NotificationSink)?))
    }

    fn emit(&mut self, sink: Resource<NotificationSink>, text: String) -> wasmtime::Result<()> {
        self.table.get(&sink)?;
        self.facts.say(SinkKind::Notification, text, MAX_NOTIFICATION);
        Ok(())
    }

    fn drop(&mut self, sink: Resource<NotificationSink>) -> wasmtime::Result<()> {
        self.table.delete(sink)?;
        Ok(())
    }
}
