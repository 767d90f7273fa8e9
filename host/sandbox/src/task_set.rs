//! The tasks of a feature, as its instances find them: to start and stop those that start on demand.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A task can't be started: its last run is still ending, or its feature is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is still ending")]
pub struct StillEnding;

/// A task that can be started and stopped.
pub(crate) trait OnDemand: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Starts it, and returns before it runs. Without effect if it runs, or waits to be started again.
    ///
    /// # Errors
    /// [`StillEnding`].
    fn start(self: Arc<Self>) -> Result<(), StillEnding>;

    /// Stops it, if it runs, and returns before it has ended. It can be started again.
    fn end(&self);
}

/// The tasks of one feature that are there, by which its instances find them.
#[derive(Debug, Default)]
pub struct TaskSet(Mutex<Vec<Weak<dyn OnDemand>>>);

impl TaskSet {
    pub(crate) fn add(&self, task: Weak<dyn OnDemand>) {
        let mut tasks = self.0.lock();
        tasks.retain(|task| task.strong_count() > 0);
        tasks.push(task);
    }

    /// The task of this name. `None` if there is none, or its feature is not in force.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<dyn OnDemand>> {
        let tasks = self.0.lock();
        tasks.iter().filter_map(Weak::upgrade).find(|task| task.name() == name)
    }
}
