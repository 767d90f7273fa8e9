//! The three sinks: diagnostics, alerts, notifications.
//!
//! A guest's message goes into the queue of `observer::sink_message`, and the call returns.

use std::sync::atomic::Ordering;
use std::time::Instant;

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::{alerts, diagnostics, notifications};
use crate::handles::{AlertSink, Context, DiagnosticSink, NotificationSink};
use crate::limits;
use crate::state::{FeatureFacts, InstanceState};
use conductor_observer::notification_log;
use conductor_observer::sink_message::{Severity, SinkKind, SinkMessage};
use conductor_package::capability::CapabilityKind;
use conductor_terminal::excerpt;

/// Bytes kept of an alert.
const MAX_ALERT: usize = 256;

impl FeatureFacts {
    /// Puts what it says into the queue, cut to `max` bytes, under its own id; counts it where it says too much.
    pub(crate) fn say(&self, kind: SinkKind, text: String, max: usize) {
        let queue = &self.services.sinks;
        let is_notification = kind == SinkKind::Notification;
        let leave_out = |count| {
            if is_notification {
                self.notifications_left_out.fetch_add(count, Ordering::Relaxed);
            }
        };
        if !self.sink_rate.take(Instant::now()) {
            queue.leave_out();
            leave_out(1);
            return;
        }
        let left_out = if is_notification { self.notifications_left_out.swap(0, Ordering::Relaxed) } else { 0 };
        let feature = self.descriptor.id.clone();
        if !queue.put(SinkMessage { feature, kind, text: excerpt(&text, max), left_out, sequence: None }) {
            leave_out(left_out + 1);
        }
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
        if let Err(error) = self.granted(CapabilityKind::Alert) {
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
        if let Err(error) = self.granted(CapabilityKind::Notify) {
            return Ok(Err(error));
        }
        Ok(Ok(self.table.push(NotificationSink)?))
    }

    fn emit(&mut self, sink: Resource<NotificationSink>, text: String) -> wasmtime::Result<()> {
        self.table.get(&sink)?;
        self.facts.say(SinkKind::Notification, text, notification_log::MAX_TEXT);
        Ok(())
    }

    fn drop(&mut self, sink: Resource<NotificationSink>) -> wasmtime::Result<()> {
        self.table.delete(sink)?;
        Ok(())
    }
}
