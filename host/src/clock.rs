//! The host's monotonic clock: nanoseconds since the host started.

use std::time::Instant;

use conductor_engine::Nanos;

/// Time as events carry it. Copies agree with each other.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now, at 0.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Nanoseconds since the start; lasts for 584 years.
    pub fn now(&self) -> Nanos {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(Nanos::MAX)
    }
}
