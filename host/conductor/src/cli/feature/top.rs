//! `conductor feature top`: the resource usage of features, live.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::super::{CommandResult, Failure, Paths};
use conductor_registry::{FeatureReport, PackageReport};
use conductor_terminal::{self as terminal, Table};

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
        let mut table = table();
        for (feature, package) in features.iter().filter_map(|feature| Some((feature, feature.package.as_ref()?))) {
            let usage = Usage::new(feature, package, &mut before, passed);
            if as_json {
                terminal::json_line(&serde_json::to_value(&usage)?);
            } else {
                usage.put(&mut table);
            }
        }
        if !as_json {
            terminal::print_table(&table);
        }
        look += 1;
        if looks.is_some_and(|looks| look >= looks) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(every));
    }
}

/// An empty table of what features use, narrow enough for 80 columns.
fn table() -> Table<9> {
    let head = ["FEATURE", "CPU%", "MB", "CALL/S", "EV/S", "FAILED", "TRAPS", "WAIT", ""];
    (1..8).fold(Table::new(head), Table::right)
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

impl Usage {
    /// Adds its row to a table.
    fn put(&self, table: &mut Table<9>) {
        let tenths = |number: f64| if number < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") };
        let mut state = Vec::new();
        if self.throttled_percent >= 0.5 {
            state.push(format!("THROTTLED {:.0}%", self.throttled_percent));
        }
        state.extend(self.quarantine.map(|left| format!("LEFT ALONE for {left} s")));
        table.row([
            &self.feature,
            &tenths(self.busy_percent),
            &tenths(self.memory as f64 / 1e6),
            &tenths(self.calls_per_second),
            &tenths(self.events_per_second),
            &self.failed,
            &self.trapped,
            &self.waiting,
            &state.join(", "),
        ]);
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
        let mut row = |feature: &FeatureReport, passed: f64| {
            let mut table = table();
            Usage::new(feature, &package, &mut before, passed).put(&mut table);
            table.lines(Some(80)).to_string()
        };
        assert!(row(&feature(100, 50), 1.0).contains("  0.0"));
        let second = row(&feature(300, 550), 2.0);
        let words: Vec<&str> = second.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(words, ["project:x", "25.0", "2.0", "100", "0.0", "1", "0", "3", "THROTTLED", "12%"]);
    }

    #[test]
    fn a_busy_feature_fits_a_terminal_of_80_columns() {
        let package = PackageReport { id: "builtin:openai-compatible".into(), ..PackageReport::default() };
        let mut feature = FeatureReport { memory: 123_400_000, failed: 1234, ..FeatureReport::default() };
        let mut before = HashMap::new();
        Usage::new(&feature, &package, &mut before, 1.0);
        (feature.performed, feature.events_seen, feature.busy_ms) = (12_000, 12_000, 1_000);
        let (mut table, usage) = (table(), Usage::new(&feature, &package, &mut before, 1.0));
        usage.put(&mut table);
        let text = table.lines(Some(80)).to_string();
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= 80), "{text}");
    }
}
