//! The time for which calls of a turn wait for a person: it does not count against the turn's.
//!
//! Several calls may wait at once. The time in which any of them does counts once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long calls of a turn have waited.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Waited>);

#[derive(Debug, Default)]
struct Waited {
    /// Calls that wait now.
    waiting: usize,
    /// Since when at least one does.
    since: Option<Instant>,
    /// Time that is over in which at least one did.
    over: Duration,
}

impl Waited {
    fn begin(&mut self, now: Instant) {
        self.waiting += 1;
        self.since = self.since.or(Some(now));
    }

    fn end(&mut self, now: Instant) {
        self.waiting -= 1;
        if self.waiting == 0 {
            self.over += self.since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        }
    }
}

impl Waits {
    /// A call waits from now on, until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Wait {
        self.0.lock().begin(Instant::now());
        Wait(Arc::clone(self))
    }

    /// How long calls have waited. `None` if one still does.
    pub(crate) fn over(&self) -> Option<Duration> {
        let waited = self.0.lock();
        (waited.waiting == 0).then_some(waited.over)
    }

    /// How long calls have waited, from the last call of this on. What is still waited for counts the next time.
    pub(crate) fn take(&self) -> Duration {
        std::mem::take(&mut self.0.lock().over)
    }
}

/// A call that waits for a person.
#[derive(Debug)]
pub(crate) struct Wait(Arc<Waits>);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.0.lock().end(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // LLM-3: the time of a turn is what its limit says, however many calls wait for the person side by side.
    #[test]
    fn time_in_which_several_calls_wait_counts_once() {
        let (mut waited, start) = (Waited::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for begun in [0, 10, 20] {
            waited.begin(at(begun));
        }
        for ended in [30, 35] {
            waited.end(at(ended));
            assert_eq!(waited.over, Duration::ZERO, "one waits on");
        }
        waited.end(at(40));
        assert_eq!(waited.over, Duration::from_secs(40));
        waited.begin(at(50));
        waited.end(at(55));
        assert_eq!(waited.over, Duration::from_secs(45), "what lies between does not count");
    }

    #[test]
    fn how_long_is_known_when_no_call_waits_any_more() {
        let waits = Arc::<Waits>::default();
        assert_eq!(waits.over(), Some(Duration::ZERO));
        let (first, second) = (waits.begin(), waits.begin());
        drop(first);
        assert_eq!(waits.over(), None);
        drop(second);
        let over = waits.over().unwrap();
        assert_eq!((waits.take(), waits.over()), (over, Some(Duration::ZERO)));
    }
}
