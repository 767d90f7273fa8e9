//! `conductor feature top`: the resource usage of features, live.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::{CommandResult, Failure, Paths};
use conductor_registry::{FeatureReport, PackageReport};
use conductor_terminal::{self as terminal, outln};

/// What of a feature is shown as a rate.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    done: u64,
    events: u64,
    busy_ms: u64,
    throttled_ms: u64,
}

pub(super) fn run(places: &Paths, every: f64, looks: Option<u32>, as_json: bool) -> CommandResult {
    let mut before: HashMap<String, Counts> = HashMap::new();
    let mut last = Instant::now();
    let mut look = 0;
    loop {
        let features = super::running(places).ok_or_else(|| {
            Failure::Failed(anyhow::anyhow!(
                "no host is running in {}; start one with `conductor run`",
                places.home.display()
            ))
        })?;
        let passed = last.elapsed().as_secs_f64().max(0.001);
        last = Instant::now();
        if !as_json {
            head();
        }
        for (feature, package) in features.iter().filter_map(|feature| Some((feature, feature.package.as_ref()?))) {
            let usage = Usage::new(feature, package, &mut before, passed);
            if as_json {
                terminal::json_line(&serde_json::to_value(&usage)?);
            } else {
                outln!("{usage}");
            }
        }
        look += 1;
        if looks.is_some_and(|looks| look >= looks) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(every));
    }
}

fn head() {
    outln!(
        "{:<26} {:>6} {:>9} {:>10} {:>10} {:>8} {:>8} {:>7}",
        "FEATURE",
        "BUSY%",
        "MEMORY",
        "CALLS/S",
        "EVENTS/S",
        "FAILED",
        "TRAPPED",
        "QUEUE"
    );
}

/// What one feature uses.
#[derive(Debug, Serialize)]
struct Usage {
    /// Its id.
    feature: String,
    /// Of one core, in percent.
    busy_percent: f64,
    /// Bytes.
    memory: usize,
    calls_per_second: f64,
    events_per_second: f64,
    /// Calls that failed, since the host started.
    failed: u64,
    /// Traps, since the host started.
    trapped: u64,
    /// Calls that wait.
    waiting: usize,
    /// How much of the time its calls were made to wait for a share of the processor, in percent; of several at once
    /// together it may be more than 100.
    throttled_percent: f64,
    /// Seconds of quarantine that are left, since it kept trapping. `None` if it is not in quarantine.
    quarantine: Option<u64>,
}

impl Usage {
    /// What a feature of the status has used in the `passed` seconds since the look before.
    fn new(
        feature: &FeatureReport,
        package: &PackageReport,
        before: &mut HashMap<String, Counts>,
        passed: f64,
    ) -> Self {
        let id = package.id.clone();
        let now = Counts {
            done: feature.performed + feature.calls,
            events: feature.events_seen,
            busy_ms: feature.busy_ms,
            throttled_ms: feature.throttled_ms,
        };
        // The first look has nothing to compare with.
        let then = before.insert(id.clone(), now).unwrap_or(now);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed;
        Self {
            feature: id,
            busy_percent: rate(now.busy_ms, then.busy_ms) / 10.0,
            memory: feature.memory,
            calls_per_second: rate(now.done, then.done),
            events_per_second: rate(now.events, then.events),
            failed: feature.failed + feature.calls_failed,
            trapped: feature.trapped,
            waiting: feature.waiting,
            throttled_percent: rate(now.throttled_ms, then.throttled_ms) / 10.0,
            quarantine: feature.quarantine,
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<26} {:>6.1} {:>8.1}M {:>10.1} {:>10.1} {:>8} {:>8} {:>7}",
            self.feature,
            self.busy_percent,
            self.memory as f64 / 1e6,
            self.calls_per_second,
            self.events_per_second,
            self.failed,
            self.trapped,
            self.waiting,
        )?;
        if self.throttled_percent >= 0.5 {
            write!(f, "  THROTTLED {:.0}%", self.throttled_percent)?;
        }
        self.quarantine.map_or(Ok(()), |left| write!(f, "  LEFT ALONE for {left} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_between_two_looks() {
        let package = PackageReport { id: "project:x".into(), ..PackageReport::default() };
        let feature = |performed: u64, busy_ms: u64| FeatureReport {
            performed,
            busy_ms,
            throttled_ms: busy_ms / 2,
            memory: 2_000_000,
            waiting: 3,
            failed: 1,
            ..FeatureReport::default()
        };
        let mut before = HashMap::new();
        assert!(Usage::new(&feature(100, 50), &package, &mut before, 1.0).to_string().contains("  0.0"));
        let second = Usage::new(&feature(300, 550), &package, &mut before, 2.0).to_string();
        let words: Vec<&str> = second.split_whitespace().collect();
        assert_eq!(words, ["project:x", "25.0", "2.0M", "100.0", "0.0", "1", "0", "3", "THROTTLED", "12%"]);
    }
}
