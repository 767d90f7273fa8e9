//! The host's clock: nanoseconds since the host started, and the machine's own time.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::doorbell::Doorbell;

/// Where a [`ManualClock`] starts, in milliseconds since 1970: 2026-01-01 UTC.
const MANUAL_START: u64 = 1_767_225_600_000;

/// The clock of event timestamps, and of the time that features get. Copies agree with each other.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Source);

#[derive(Debug, Clone, Copy)]
enum Source {
    System(Instant),
    Manual(&'static Hands),
}

/// What a clock by hand shows.
#[derive(Debug, Default)]
struct Hands {
    now: AtomicU64,
    moved: Notify,
    bells: Mutex<Vec<Doorbell>>,
}

/// The hand that moves a clock; time stands still without it. What limits a feature's own time (CPU time,
/// deadlines) goes by the system's clock all the same.
#[derive(Debug)]
pub struct ManualClock(&'static Hands);

/// Milliseconds since 1970 by the machine's own clock; 0 before that.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Clock {
    /// A clock that starts now, at 0.
    pub fn start() -> Self {
        Self(Source::System(Instant::now()))
    }

    /// A clock that stands at 0, and the hand that moves it.
    pub fn manual() -> (Self, ManualClock) {
        // Never given back: clocks are copied onto the event path, where counting their uses would cost,
        // and a process makes a handful of these.
        let hands = Box::leak(Box::default());
        (Self(Source::Manual(hands)), ManualClock(hands))
    }

    /// Nanoseconds since the start; lasts for 584 years.
    pub fn now(&self) -> u64 {
        match self.0 {
            Source::System(start) => u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Source::Manual(hands) => hands.now.load(Ordering::Acquire),
        }
    }

    /// Milliseconds since 1970-01-01 UTC, by the machine's clock; a clock by hand starts in 2026.
    pub fn wall(&self) -> u64 {
        match self.0 {
            Source::System(_) => {
                let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
            }
            Source::Manual(_) => MANUAL_START + self.now() / 1_000_000,
        }
    }

    /// What [`wall`](Self::wall) was at a moment of [`now`](Self::now)'s, which has passed.
    pub fn wall_at(&self, moment: u64) -> u64 {
        match self.0 {
            Source::System(_) => self.wall().saturating_sub(self.now().saturating_sub(moment) / 1_000_000),
            Source::Manual(_) => MANUAL_START + moment / 1_000_000,
        }
    }

    /// Rings whenever this clock is moved by hand: a thread that waits for a time on it waits at `bell`, until
    /// [`moment`](Self::moment) at most.
    pub fn ring_when_moved(&self, bell: &Doorbell) {
        if let Source::Manual(hands) = self.0 {
            let mut bells = hands.bells.lock();
            bells.retain(|bell| !bell.is_alone());
            bells.push(bell.clone());
        }
    }

    /// When it will be `then`, for waiting; none by hand, where only the hand knows.
    pub fn moment(&self, then: u64) -> Option<Instant> {
        match self.0 {
            Source::System(start) => start.checked_add(Duration::from_nanos(then)),
            Source::Manual(_) => None,
        }
    }

    /// Waits until this much time has passed on this clock.
    pub async fn sleep(&self, pause: Duration) {
        let hands = match self.0 {
            Source::System(_) => return tokio::time::sleep(pause).await,
            Source::Manual(hands) => hands,
        };
        let until = self.now().saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let mut moved = std::pin::pin!(hands.moved.notified());
            // Before looking: a move in between must not be missed.
            moved.as_mut().enable();
            if self.now() >= until {
                return;
            }
            moved.await;
        }
    }
}

impl ManualClock {
    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.0.now.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::AcqRel);
        self.0.moved.notify_waiters();
        let bells = self.0.bells.lock();
        bells.iter().for_each(Doorbell::ring);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_by_hand_rings_for_threads_that_wait_for_a_time_on_it() {
        let (clock, hand) = Clock::manual();
        let bell = Doorbell::default();
        clock.ring_when_moved(&bell);
        let waiting = std::thread::spawn(move || {
            while clock.now() < 1_000_000_000 {
                bell.wait(clock.moment(1_000_000_000));
            }
        });
        hand.advance(Duration::from_secs(1));
        waiting.join().unwrap();
        clock.ring_when_moved(&Doorbell::default());
        clock.ring_when_moved(&Doorbell::default());
        assert_eq!(hand.0.bells.lock().len(), 1, "a doorbell without a waiter is forgotten");
    }

    #[test]
    fn a_clock_by_hand_moves_when_it_is_moved_and_wakes_who_waits() {
        let (clock, hand) = Clock::manual();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let waiting = clock.sleep(Duration::from_secs(60));
            tokio::join!(waiting, async {
                assert_eq!(clock.now(), 0);
                hand.advance(Duration::from_secs(59));
                hand.advance(Duration::from_secs(1));
            });
        });
        assert_eq!(clock.now(), 60_000_000_000);
        assert_eq!(clock.wall() - MANUAL_START, 60_000);
        assert_eq!(clock.wall_at(1_000_000_000) - MANUAL_START, 1_000);
    }
}
