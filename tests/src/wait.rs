//! Waiting: for the thing itself, never for a time.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before a test calls it missing. Machines that run tests are busy.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How often it is looked for.
pub const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Looks until there is something to see, and returns it with the time that it took.
///
/// # Panics
/// When [`TEST_TIMEOUT`] ends; `missing` then says what there is instead.
pub fn until<T>(mut look: impl FnMut() -> Option<T>, missing: impl FnOnce() -> String) -> (T, Duration) {
    let started = Instant::now();
    loop {
        if let Some(seen) = look() {
            return (seen, started.elapsed());
        }
        assert!(started.elapsed() < TEST_TIMEOUT, "after {} s: {}", TEST_TIMEOUT.as_secs(), missing());
        thread::sleep(POLL_INTERVAL);
    }
}
