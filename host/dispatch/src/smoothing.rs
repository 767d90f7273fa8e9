//! Signal conditioning of single values: smoothing of jitter, and soft takeover (pickup), so that what a fader moves does
//! not jump to where the fader is.
//!
//! Values are numbers from 0 to 1. Settings are compiled once; what has to be remembered between two
//! values is kept by the caller, one of each kind for each source of values.

use conductor_event::Nanos;

/// How strongly to smooth: the one-euro filter of Casiez, Roussel and Vogel (CHI 2012). The slower a value
/// moves, the more it is smoothed; the faster, the less it lags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smoothing {
    /// The cut-off frequency for a value that stands still, in Hz, above 0: lower is smoother.
    pub min_cutoff: f32,
    /// How much the cut-off rises with speed, at least 0: higher lags less.
    pub beta: f32,
}

/// The cut-off frequency for the speed itself, in Hz, as the filter's authors have it.
const SPEED_CUTOFF: f32 = 1.0;

/// What the filter remembers of one value.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct OneEuro(Option<Smoothed>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Smoothed {
    at: Nanos,
    raw: f32,
    value: f32,
    /// In whole ways per second.
    speed: f32,
}

impl OneEuro {
    /// The smoothed value. It lies between the last one and the new one.
    ///
    /// The ends of the way pass as they are: values come only while something moves, and a fader that is
    /// pulled down has to arrive.
    pub fn smooth(&mut self, settings: &Smoothing, at: Nanos, raw: f32) -> f32 {
        let fresh = |value| Smoothed { at, raw, value, speed: 0.0 };
        let next = match self.0 {
            Some(last) if raw > 0.0 && raw < 1.0 => {
                let seconds = at.saturating_sub(last.at) as f32 / 1e9;
                if seconds > 0.0 {
                    let speed = last.speed + (((raw - last.raw) / seconds) - last.speed) * share(SPEED_CUTOFF, seconds);
                    let cutoff = settings.min_cutoff + settings.beta * speed.abs();
                    let value = last.value + (raw - last.value) * share(cutoff, seconds);
                    Smoothed { at, raw, value, speed }
                } else {
                    // No time has passed: there is no speed to tell, and nothing to smooth over.
                    Smoothed { raw, value: last.value, ..last }
                }
            }
            _ => fresh(raw),
        };
        self.0 = Some(next);
        next.value
    }
}

/// How much of the way to the new value a low-pass filter goes in this many seconds, from 0 to 1.
fn share(cutoff: f32, seconds: f32) -> f32 {
    let time_constant = 1.0 / (std::f32::consts::TAU * cutoff.max(f32::MIN_POSITIVE));
    1.0 / (1.0 + time_constant / seconds)
}

/// Soft takeover of one source of values: whether it has picked up what it moves.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Pickup {
    /// Whether it moves the target now.
    has_it: bool,
    /// Where it was last.
    last: Option<f32>,
}

impl Pickup {
    /// Whether a value may pass. `stands_at` is where the target is, as far as that is known; a source picks
    /// it up when it comes within `within` of it, or passes it.
    pub fn passes(&mut self, value: f32, stands_at: Option<f32>, within: f32) -> bool {
        if !self.has_it {
            self.has_it = stands_at.is_none_or(|target| {
                let passed = self.last.is_some_and(|last| (last < target) != (value < target));
                passed || (value - target).abs() <= within
            });
        }
        self.last = Some(value);
        self.has_it
    }

    /// Somebody else moves the target now.
    pub fn dispossess(&mut self) {
        self.has_it = false;
    }

    /// The source has been used for something else: where it was does not count any more either.
    pub fn lose(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: Smoothing = Smoothing { min_cutoff: 1.0, beta: 0.5 };
    const MILLI: Nanos = 1_000_000;

    #[test]
    fn smoothing_calms_what_trembles_and_follows_what_moves() {
        let mut filter = OneEuro::default();
        filter.smooth(&SETTINGS, 0, 0.5);
        let trembling: Vec<f32> =
            (1..100).map(|n| filter.smooth(&SETTINGS, n * 5 * MILLI, if n % 2 == 0 { 0.49 } else { 0.51 })).collect();
        let most = trembling[20..].iter().fold(0.0_f32, |most, value| most.max((value - 0.5).abs()));
        assert!(most < 0.005, "of 0.01 {most} is left");

        let mut filter = OneEuro::default();
        let fast = Smoothing { min_cutoff: 1.0, beta: 50.0 };
        let last = (0..=90).map(|n| filter.smooth(&fast, n * 5 * MILLI, n as f32 / 100.0)).last().unwrap();
        assert!((last - 0.9).abs() < 0.02, "{last} lags behind 0.9");
        assert_eq!(filter.smooth(&fast, 500 * MILLI, 1.0), 1.0, "the end is reached");
    }

    #[test]
    fn a_fader_picks_up_what_it_reaches_or_passes() {
        let mut fader = Pickup::default();
        assert!(!fader.passes(0.1, Some(0.5), 0.01));
        assert!(!fader.passes(0.4, Some(0.5), 0.01));
        assert!(fader.passes(0.6, Some(0.5), 0.01), "it has passed it");
        assert!(fader.passes(0.1, Some(0.6), 0.01), "and keeps it");
        fader.lose();
        assert!(!fader.passes(0.9, Some(0.2), 0.01), "where it was before does not count");
        assert!(fader.passes(0.205, Some(0.2), 0.01));
        assert!(Pickup::default().passes(0.9, None, 0.0), "the target's value is not known");
    }

    fn unit() -> impl Strategy<Value = f32> {
        0.0f32..=1.0
    }

    proptest! {
        /// What comes out lies between what came out last and what comes in; what stands still, stands still.
        #[test]
        fn smoothing_never_overshoots(
            values in prop::collection::vec((unit(), 0u64..100 * MILLI), 1..60),
            min_cutoff in 0.01f32..100.0,
            beta in 0.0f32..100.0,
        ) {
            let settings = Smoothing { min_cutoff, beta };
            let (mut filter, mut at, mut last) = (OneEuro::default(), 0, None::<f32>);
            for (raw, pause) in values {
                at += pause;
                let smoothed = filter.smooth(&settings, at, raw);
                let before = last.unwrap_or(raw);
                let (low, high) = (before.min(raw) - 1e-5, before.max(raw) + 1e-5);
                prop_assert!((low..=high).contains(&smoothed), "{before} then {raw} gives {smoothed}");
                last = Some(smoothed);
            }
            let stands = last.unwrap_or(0.0);
            let mut still = OneEuro::default();
            prop_assert!((0..10).all(|n| still.smooth(&settings, n * MILLI, stands) == stands));
        }

        /// Soft takeover never lets a value pass that jumps, and once it passes it goes on passing.
        #[test]
        fn a_takeover_never_jumps(values in prop::collection::vec(unit(), 1..40), mut target in unit()) {
            let (mut pickup, mut had_it, mut before) = (Pickup::default(), false, None::<f32>);
            for value in values {
                let passes = pickup.passes(value, Some(target), 0.02);
                let reached = (value - target).abs() <= 0.02
                    || before.is_some_and(|before| (before.min(value)..=before.max(value)).contains(&target));
                prop_assert!(!passes || had_it || reached);
                prop_assert!(passes || !had_it);
                (had_it, before) = (passes, Some(value));
                if passes {
                    target = value;
                }
            }
        }
    }
}
