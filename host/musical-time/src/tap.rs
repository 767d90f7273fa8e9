//! Tap tempo: the tempo of taps on a key.

use crate::Nanos;
use crate::tempo::of_beat;

/// Taps that are looked at.
const MAX_TAPS: usize = 8;
/// The pause after which taps begin anew: that of the slowest tempo.
const TAP_TIMEOUT: Nanos = 3_000_000_000;
/// Two taps that are nearer than this are one: a key that bounces.
const MIN_TAP_INTERVAL: Nanos = 60_000_000;

/// Finds the tempo of taps, one a beat: the median of the times between the last eight, so that one that comes too early
/// or too late does not count. A pause of more than three seconds ends a series.
#[derive(Clone, Debug, Default)]
pub struct TapTempo {
    /// The taps of the series, the oldest first.
    taps: [Nanos; MAX_TAPS],
    count: usize,
}

impl TapTempo {
    /// No tap has come.
    pub fn new() -> Self {
        Self::default()
    }

    /// A tap comes. Returns the tempo in beats per minute, within the limits; `None` for the first one of a series, and for
    /// one that comes within 60 ms.
    pub fn tap(&mut self, at: Nanos) -> Option<f64> {
        if let Some(&last) = self.taps[..self.count].last() {
            match at.checked_sub(last) {
                Some(pause) if pause < MIN_TAP_INTERVAL => return None,
                Some(pause) if pause <= TAP_TIMEOUT => {}
                _ => self.count = 0,
            }
        }
        if self.count == MAX_TAPS {
            self.taps.copy_within(1.., 0);
            self.count -= 1;
        }
        self.taps[self.count] = at;
        self.count += 1;
        let mut pauses = [0; MAX_TAPS - 1];
        let pauses = &mut pauses[..self.count - 1];
        for (pause, taps) in pauses.iter_mut().zip(self.taps.windows(2)) {
            *pause = taps[1] - taps[0];
        }
        pauses.sort_unstable();
        let (low, high) = (pauses.get(pauses.len().checked_sub(1)? / 2)?, pauses.get(pauses.len() / 2)?);
        Some(of_beat((low + high) as f64 / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn tempos(taps: &[Nanos]) -> Vec<Option<f64>> {
        let mut tempo = TapTempo::new();
        taps.iter().map(|tap| tempo.tap(tap * MS)).collect()
    }

    #[test]
    fn a_tap_that_is_off_does_not_count() {
        assert_eq!(tempos(&[0, 500, 1000, 1300, 2000, 2500]).last(), Some(&Some(120.0)));
        let two = tempos(&[0, 400, 1000]);
        assert_eq!(two, [None, Some(150.0), Some(120.0)], "of two, their mean");
    }

    #[test]
    fn a_pause_begins_anew() {
        assert_eq!(tempos(&[0, 500, 3501, 4501]), [None, Some(120.0), None, Some(60.0)]);
        assert_eq!(tempos(&[0, 3000]), [None, Some(20.0)]);
        assert_eq!(tempos(&[500, 0, 1000]), [None, None, Some(60.0)], "so does a time that jumps back");
    }

    #[test]
    fn a_key_that_bounces_taps_once() {
        assert_eq!(tempos(&[0, 20, 500, 559, 1000]), [None, None, Some(120.0), None, Some(120.0)]);
    }

    #[test]
    fn another_tempo_is_taken_over() {
        let slow = (0..8).map(|tap| tap * 1000);
        let fast = (1..=5).map(|tap| 7000 + tap * 500);
        let taps: Vec<Nanos> = slow.chain(fast).collect();
        assert_eq!(tempos(&taps).last(), Some(&Some(120.0)));
    }
}
