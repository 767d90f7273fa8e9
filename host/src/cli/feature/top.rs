//! `conductor feature top`: what features use, as it changes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::{Done, Failure, Places};
use crate::terminal::outln;

/// What of a feature is shown as a rate.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    done: u64,
    events: u64,
    busy_ms: u64,
}

pub(super) fn run(places: &Places, every: f64, looks: Option<u32>) -> Done {
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
        for feature in features.as_array().into_iter().flatten().filter(|feature| !feature["package"].is_null()) {
            outln!("{}", line(feature, &mut before, passed));
        }
        look += 1;
        if looks.is_some_and(|looks| look >= looks) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs_f64(every));
    }
}

fn line(feature: &Value, before: &mut HashMap<String, Counts>, passed: f64) -> String {
    let number = |key: &str| feature[key].as_u64().unwrap_or(0);
    let id = feature["package"]["id"].as_str().unwrap_or("-");
    let now = Counts {
        done: number("performed") + number("calls"),
        events: number("events_seen"),
        busy_ms: number("busy_ms"),
    };
    // The first look has nothing to compare with.
    let then = before.insert(id.to_owned(), now).unwrap_or(now);
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed;
    format!(
        "{:<26} {:>6.1} {:>8.1}M {:>10.1} {:>10.1} {:>8} {:>8} {:>7}{}",
        id,
        rate(now.busy_ms, then.busy_ms) / 10.0,
        number("memory") as f64 / 1e6,
        rate(now.done, then.done),
        rate(now.events, then.events),
        number("failed") + number("calls_failed"),
        number("trapped"),
        number("waiting"),
        feature["quarantine"].as_u64().map(|left| format!("  LEFT ALONE for {left} s")).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_between_two_looks() {
        let feature = |done: u64, busy: u64| {
            serde_json::json!({
                "package": { "id": "project:x" }, "performed": done, "busy_ms": busy, "memory": 2_000_000,
                "waiting": 3, "failed": 1, "trapped": 0, "quarantine": null,
            })
        };
        let mut before = HashMap::new();
        assert!(line(&feature(100, 50), &mut before, 1.0).contains("  0.0"));
        let second = line(&feature(300, 550), &mut before, 2.0);
        let words: Vec<&str> = second.split_whitespace().collect();
        assert_eq!(words, ["project:x", "25.0", "2.0M", "100.0", "0.0", "1", "0", "3"]);
    }
}
