//! The rate limiter: a token bucket without a lock, shared by all instances of a feature.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A rate limiter: a rate of tokens per second, and a burst. Shared by threads that may not wait for each other.
///
/// Its state is the time at which the bucket is full again (the generic cell rate algorithm): each
/// token that is taken delays it by its share of a second, and it may lie ahead by no more than the burst.
#[derive(Debug)]
pub struct RateLimiter {
    start: Instant,
    /// Nanoseconds that one token costs.
    cost: u64,
    /// How far `free_at` may lie ahead of now before a token is refused, in nanoseconds.
    ahead: u64,
    /// When the bucket is full again, in nanoseconds since `start`.
    free_at: AtomicU64,
}

impl RateLimiter {
    /// `rate` tokens a second after a burst of `burst`; both above 0.
    pub fn new(rate: f64, burst: f64) -> Self {
        let cost = 1e9 / rate;
        // Numbers beyond what fits are as large as fits; a cost below a nanosecond is none.
        let (cost, ahead) = (cost as u64, (cost * (burst - 1.0)) as u64);
        Self { start: Instant::now(), cost, ahead, free_at: AtomicU64::new(0) }
    }

    /// Takes a token if there is one at `now`; returns whether it did.
    pub fn take(&self, now: Instant) -> bool {
        if self.cost == 0 {
            return true;
        }
        let now = self.since_start(now);
        let next = |free_at: u64| {
            let free_at = free_at.max(now);
            (free_at - now <= self.ahead).then_some(free_at.saturating_add(self.cost))
        };
        self.free_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// How long it takes from `now` until there is a token.
    pub fn wait(&self, now: Instant) -> Duration {
        let owed = self.free_at.load(Ordering::Relaxed).saturating_sub(self.since_start(now));
        Duration::from_nanos(owed.saturating_sub(self.ahead))
    }

    /// Takes as many as were used up already, whether or not there are this many.
    pub fn charge(&self, now: Instant, count: f64) {
        let (now, cost) = (self.since_start(now), (self.cost as f64 * count) as u64);
        let next = |free_at: u64| Some(free_at.max(now).saturating_add(cost));
        let _ = self.free_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Whether more was charged than there is.
    pub fn is_spent(&self, now: Instant) -> bool {
        !self.wait_for_part(now, 1.0).is_zero()
    }

    /// How long it takes from `now` until no more than this part of the burst (0.0-1.0) is used up.
    pub fn wait_for_part(&self, now: Instant, part: f64) -> Duration {
        let owed = self.free_at.load(Ordering::Relaxed).saturating_sub(self.since_start(now));
        Duration::from_nanos(owed.saturating_sub((self.ahead as f64 * part) as u64))
    }

    fn since_start(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let rate = RateLimiter::new(10.0, 2.0);
        let start = rate.start;
        assert!(rate.take(start) && rate.take(start) && !rate.take(start));
        assert_eq!(rate.wait(start), Duration::from_millis(100));
        let later = start + Duration::from_millis(100);
        assert!(rate.take(later) && !rate.take(later));
        let rested = start + Duration::from_secs(60);
        assert!(rate.take(rested) && rate.take(rested) && !rate.take(rested), "no more than the burst is saved up");
    }

    #[test]
    fn threads_together_get_no_more_than_one_would() {
        let rate = RateLimiter::new(0.001, 100.0);
        let taken = || (0..1000).filter(|_| rate.take(rate.start)).count();
        let all: usize = std::thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(taken));
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(all, 100);
    }

    #[test]
    fn what_is_charged_is_owed() {
        let rate = RateLimiter::new(500.0, 1000.0);
        let start = rate.start;
        rate.charge(start, 1000.0);
        assert!(rate.is_spent(start) && !rate.take(start));
        let later = start + Duration::from_millis(4);
        assert!(!rate.is_spent(later), "it drains: {rate:?}");
        assert!(rate.take(later));
        rate.charge(later, 0.5);
        assert!(!rate.wait_for_part(later, 0.5).is_zero() && rate.wait_for_part(later, 1.1).is_zero());
    }

    #[test]
    fn a_rate_beyond_counting_refuses_nothing() {
        let rate = RateLimiter::new(1e12, 1.0);
        assert!((0..10_000).all(|_| rate.take(rate.start)));
    }
}
