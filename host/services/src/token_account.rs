//! The rate limiter of a feature for model tokens: how many it may have models read and write in a minute.

use parking_lot::Mutex;
use std::time::Instant;

/// Tokens of an answer that are set aside where the asker names no limit.
const DEFAULT_ANSWER: u32 = 4096;

/// What one feature has used of its tokens per minute lately, in all its instances together. A minute's
/// worth may be used at once; it comes back evenly. What was used beyond that is owed.
#[derive(Debug)]
pub struct TokenAccount {
    per_minute: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Below 0 where more was used than was set aside.
    left: f64,
    last: Instant,
}

/// Tokens that are set aside for one question. What is not settled stays charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserved {
    /// For the question.
    pub input: u32,
    /// For the answer: it must not be longer.
    pub output: u32,
}

impl TokenAccount {
    /// A full account.
    pub fn new(per_minute: u32) -> Self {
        let state = State { left: f64::from(per_minute), last: Instant::now() };
        Self { per_minute, state: Mutex::new(state) }
    }

    /// Sets tokens aside, for a question of about `input` and an answer of `wanted`, or of as much as is left.
    /// `None` if the question alone is too much at `now`.
    pub fn reserve(&self, input: u32, wanted: Option<u32>, now: Instant) -> Option<Reserved> {
        let mut state = self.state.lock();
        let most = f64::from(self.per_minute);
        let minutes = now.saturating_duration_since(state.last).as_secs_f64() / 60.0;
        state.last = state.last.max(now);
        state.left = minutes.mul_add(most, state.left).min(most);
        let left = state.left.max(0.0) as u32;
        let output = wanted.unwrap_or(DEFAULT_ANSWER).min(left.saturating_sub(input));
        if output == 0 {
            return None;
        }
        state.left -= f64::from(input) + f64::from(output);
        Some(Reserved { input, output })
    }

    /// Charges what was used in the end instead of what was set aside.
    pub fn settle(&self, reserved: Reserved, used: u32) {
        let mut state = self.state.lock();
        state.left += f64::from(reserved.input) + f64::from(reserved.output) - f64::from(used);
    }

    /// The tokens per minute.
    pub fn per_minute(&self) -> u32 {
        self.per_minute
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_minutes_worth_is_there_and_comes_back() {
        let account = TokenAccount::new(600);
        let start = Instant::now();
        assert_eq!(account.reserve(100, Some(200), start), Some(Reserved { input: 100, output: 200 }));
        assert_eq!(account.reserve(100, Some(500), start), Some(Reserved { input: 100, output: 200 }), "what is left");
        assert_eq!(account.reserve(1, Some(1), start), None);
        assert_eq!(account.reserve(0, Some(500), start + Duration::from_secs(6)).unwrap().output, 60);
    }

    #[test]
    fn what_was_not_used_comes_back_and_what_was_used_beyond_is_owed() {
        let account = TokenAccount::new(600);
        let start = Instant::now();
        let reserved = account.reserve(100, Some(500), start).unwrap();
        account.settle(reserved, 150);
        let reserved = account.reserve(100, None, start).unwrap();
        assert_eq!(reserved.output, 350);
        account.settle(reserved, 450 + 600);
        assert_eq!(account.reserve(1, Some(1), start + Duration::from_secs(59)), None, "a minute is owed");
        assert!(account.reserve(1, Some(1), start + Duration::from_secs(62)).is_some());
    }

    #[test]
    fn nothing_granted_is_nothing() {
        assert_eq!(TokenAccount::new(0).reserve(0, None, Instant::now() + Duration::from_secs(3600)), None);
    }
}
