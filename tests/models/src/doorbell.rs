//! The doorbell, for the model: one thread waits, and a ring while it is awake ends its next wait.

use loom::sync::Notify;

/// What wakes one thread.
#[derive(Debug)]
pub struct Doorbell(Notify);

impl Default for Doorbell {
    fn default() -> Self {
        Self(Notify::new())
    }
}

impl Doorbell {
    /// Wakes the thread that waits here, or will.
    pub fn ring(&self) {
        self.0.notify();
    }

    /// Waits for a ring; there are no deadlines here.
    pub fn wait(&self, _: Option<std::time::Instant>) {
        self.0.wait();
    }
}
