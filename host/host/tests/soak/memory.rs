//! What the process takes, over time.

use std::time::Duration;

/// What memory may grow by from the first minute to the last: what an allocator keeps for itself.
const SLACK: f64 = 1.1;
/// Until then it warms up.
const WARM: Duration = Duration::from_secs(10);

/// Resident memory, looked at now and then.
#[derive(Debug, Default)]
pub struct Memory {
    seen: Vec<(Duration, u64)>,
}

impl Memory {
    pub fn look(&mut self, at: Duration) {
        self.seen.extend(resident().map(|bytes| (at, bytes)));
    }

    /// Holds the last minute against the first.
    pub fn is_flat(&self) {
        let Some((end, _)) = self.seen.last() else { return println!("this system does not tell its memory") };
        let minute = Duration::from_secs(60).min(*end / 3);
        let mean = |from: Duration| {
            let seen: Vec<u64> = self
                .seen
                .iter()
                .filter(|(at, _)| (from..=from + minute).contains(at))
                .map(|(_, bytes)| *bytes)
                .collect();
            seen.iter().sum::<u64>() as f64 / seen.len() as f64 / 1e6
        };
        let (first, last) = (mean(WARM.min(*end / 3)), mean(*end - minute));
        println!("memory: {first:.1} MB in the first minute, {last:.1} MB in the last");
        assert!(last <= first * SLACK, "{:?}", self.seen);
    }
}

#[cfg(target_os = "linux")]
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Option<u64> {
    None
}
