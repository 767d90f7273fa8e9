//! How things are timed: in turns, for long enough, and the median counts.

use std::time::{Duration, Instant};

/// How often contenders take turns.
const ROUNDS: usize = 25;
/// How long a turn lasts.
const TURN: Duration = Duration::from_millis(8);

/// Something to be timed: does its work the given number of times.
pub type Work<'a> = Box<dyn FnMut(u64) + 'a>;

/// Nanoseconds per call of each contender: the median over rounds in which each has its turn.
pub fn nanos_per_call<const N: usize>(works: [Work<'_>; N]) -> [f64; N] {
    nanos_per_call_of_copies(vec![works])
}

/// The same of several copies of each contender, which have their turns one round after the other. Two copies of one table
/// differ by up to a sixth, by where in memory each lies.
pub fn nanos_per_call_of_copies<const N: usize>(mut copies: Vec<[Work<'_>; N]>) -> [f64; N] {
    let calls: Vec<[u64; N]> =
        copies.iter_mut().map(|works| works.each_mut().map(|work| calls_per_turn(work))).collect();
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        let copy = round % copies.len();
        for ((work, &calls), samples) in copies[copy].iter_mut().zip(&calls[copy]).zip(&mut samples) {
            // What the others have pushed out of the caches comes back.
            work(calls / 4);
            samples.push(timed(work, calls).as_nanos() as f64 / calls as f64);
        }
    }
    samples.map(|samples| median(&samples))
}

fn timed(work: &mut Work<'_>, calls: u64) -> Duration {
    let start = Instant::now();
    work(calls);
    start.elapsed()
}

/// How many calls fill a turn. Finding out is the warm-up.
fn calls_per_turn(work: &mut Work<'_>) -> u64 {
    let mut calls = 1;
    while timed(work, calls) < TURN {
        calls *= 2;
    }
    calls
}

/// Lowers the priority of the calling thread, and of those that it starts from now on, as if they were another machine's: what
/// they need of this one is no part of what is measured. On Linux alone.
pub fn give_way() {
    // A thread that has the lowest one already stays as it is.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(10);
}

/// The middle of the samples; not a number where there are none.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The sample that this share of them does not exceed; not a number where there are none.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&samples), 3.0);
        assert_eq!((quantile(&samples, 0.0), quantile(&samples, 1.0)), (1.0, 5.0));
        assert!(median(&[]).is_nan());
    }
}
