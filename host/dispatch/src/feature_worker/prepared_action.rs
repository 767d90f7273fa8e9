//! An action that a feature has prepared: what a rule holds, and hands events to.

use std::sync::Arc;

use super::FeatureWorker;
use crate::{Envelope, Reason};

/// An action that a feature has prepared. Dropping the last one gives it back.
#[derive(Debug)]
pub struct PreparedAction {
    worker: FeatureWorker,
    name: Arc<str>,
    slot: u32,
}

impl PreparedAction {
    /// The action that `worker` has prepared in this slot.
    pub(super) fn new(worker: FeatureWorker, name: Arc<str>, slot: u32) -> Self {
        Self { worker, name, slot }
    }

    /// The action's name, as mappings write it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The feature that does it.
    pub fn feature(&self) -> &Arc<str> {
        self.worker.name()
    }

    /// The way to the feature's worker.
    pub fn worker(&self) -> &FeatureWorker {
        &self.worker
    }

    /// Hands an event over without waiting, and has it done by the worker's own thread.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn try_perform(&self, envelope: Envelope) -> Result<(), Reason> {
        self.put(envelope)?;
        self.worker.ring();
        Ok(())
    }

    /// Hands an event over without waiting; [`FeatureWorker::carry`] or [`FeatureWorker::ring`] has it done.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn put(&self, envelope: Envelope) -> Result<(), Reason> {
        self.worker.put(envelope, self.slot)
    }
}

impl Drop for PreparedAction {
    fn drop(&mut self) {
        self.worker.release(self.slot);
    }
}
