//! Tempo: its limits, and measuring it by the pulses of a MIDI clock.

use crate::{Nanos, PULSES_PER_BEAT};

/// The slowest tempo, in beats per minute. A slower one counts as this.
pub const MIN_TEMPO: f64 = 20.0;
/// The fastest tempo, in beats per minute. A faster one counts as this.
pub const MAX_TEMPO: f64 = 999.0;

/// Nanoseconds in a minute.
const MINUTE: f64 = 60e9;

/// A tempo brought within [`MIN_TEMPO`] and [`MAX_TEMPO`]. What is no number is the slowest one.
pub fn limited(tempo: f64) -> f64 {
    if tempo.is_nan() { MIN_TEMPO } else { tempo.clamp(MIN_TEMPO, MAX_TEMPO) }
}

/// The tempo at which this many nanoseconds pass from one beat to the next, within the limits.
pub(crate) fn of_beat(nanos: f64) -> f64 {
    limited(MINUTE / nanos)
}

/// Nanoseconds from one pulse to the next at a tempo within the limits.
pub(crate) fn pulse_of(tempo: f64) -> f64 {
    MINUTE / tempo / f64::from(PULSES_PER_BEAT)
}

/// How far the times between pulses are from their mean, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    /// The mean deviation, either way.
    pub mean: f64,
    /// The largest deviation, either way.
    pub largest: f64,
}

/// Intervals that are looked at: those of one beat.
const WINDOW: usize = PULSES_PER_BEAT as usize;
/// Intervals before there is a tempo. Fewer say more about the jitter than about the tempo.
const MIN_INTERVALS: usize = 6;

/// Measures the tempo by the last beat of pulses: the mean of up to 24 intervals. So the jitter of a single pulse moves it
/// by a 24th, and another tempo is measured in full after one beat.
#[derive(Clone, Debug, Default)]
pub struct TempoMeter {
    /// The times of the last pulses, in a ring.
    times: [Nanos; WINDOW + 1],
    /// How many of them there are.
    count: usize,
    /// Where the next one goes.
    next: usize,
}

impl TempoMeter {
    /// Nothing is measured yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A pulse has come.
    pub fn pulse(&mut self, at: Nanos) {
        let at = self.last().map_or(at, |last| at.max(last));
        self.times[self.next] = at;
        self.next = (self.next + 1) % self.times.len();
        self.count = (self.count + 1).min(self.times.len());
    }

    /// Forgets what was measured: what comes has nothing to do with it.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// When the last pulse came.
    pub fn last(&self) -> Option<Nanos> {
        (self.count > 0).then(|| self.back(0))
    }

    /// Beats per minute, within the limits. `None` before the seventh pulse.
    pub fn tempo(&self) -> Option<f64> {
        (self.count > MIN_INTERVALS).then(|| of_beat(self.interval() * f64::from(PULSES_PER_BEAT)))
    }

    /// How regular the pulses of the last beat are.
    pub fn jitter(&self) -> Jitter {
        if self.count < 2 {
            return Jitter::default();
        }
        let mean = self.interval();
        let deviation = |ago| ((self.back(ago) - self.back(ago + 1)) as f64 - mean).abs();
        let (mut sum, mut largest) = (0.0, 0.0_f64);
        for ago in 0..self.count - 1 {
            sum += deviation(ago);
            largest = largest.max(deviation(ago));
        }
        Jitter { mean: sum / (self.count - 1) as f64, largest }
    }

    /// The mean time between pulses, in nanoseconds; there are two at least.
    fn interval(&self) -> f64 {
        (self.back(0) - self.back(self.count - 1)) as f64 / (self.count - 1) as f64
    }

    /// The time of the pulse this many before the last.
    fn back(&self, ago: usize) -> Nanos {
        self.times[(self.next + self.times.len() - 1 - ago) % self.times.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PULSE_120: Nanos = 20_833_333;

    #[test]
    fn the_jitter_of_one_pulse_moves_the_tempo_by_a_24th() {
        let mut meter = TempoMeter::new();
        for pulse in 0..24 {
            meter.pulse(pulse * PULSE_120);
        }
        meter.pulse(24 * PULSE_120 + 2_000_000);
        let tempo = meter.tempo().unwrap();
        assert!((119.5..120.0).contains(&tempo), "{tempo}");
        let Jitter { mean, largest } = meter.jitter();
        assert!((1_900_000.0..2_000_000.0).contains(&largest), "{largest}");
        assert!((100_000.0..200_000.0).contains(&mean), "{mean}");
    }

    #[test]
    fn another_tempo_is_known_after_a_beat() {
        let mut meter = TempoMeter::new();
        let mut at = 0;
        assert_eq!(meter.tempo(), None);
        for pulse in 0..100 {
            meter.pulse(at);
            assert_eq!(meter.tempo().is_some(), pulse >= 6);
            at += PULSE_120;
        }
        assert!((meter.tempo().unwrap() - 120.0).abs() < 1e-3);
        for _ in 0..25 {
            meter.pulse(at);
            at += PULSE_120 * 2;
        }
        assert!((meter.tempo().unwrap() - 60.0).abs() < 1e-3);
    }

    #[test]
    fn pulses_at_one_time_have_the_highest_tempo() {
        let mut meter = TempoMeter::new();
        (0..30).for_each(|_| meter.pulse(7));
        assert_eq!(meter.tempo(), Some(MAX_TEMPO));
        meter.pulse(3);
        assert_eq!(meter.last(), Some(7), "time does not run backwards");
        assert_eq!(meter.jitter(), Jitter::default());
    }

    #[test]
    fn what_is_no_tempo_becomes_the_nearest_one() {
        let found = [f64::NAN, -1.0, 0.0, 120.5, 1000.0, f64::INFINITY].map(limited);
        assert_eq!(found, [20.0, 20.0, 20.0, 120.5, 999.0, 999.0]);
    }
}
