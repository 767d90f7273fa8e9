//! Features, and what each of them uses.

use std::collections::HashMap;
use std::time::Duration;

use conductor_registry::FeatureReport;

use super::State;
use super::front::{About, Then};
use crate::api::Act;

/// Features, and the rates of what they use.
#[derive(Debug, Default)]
pub(crate) struct Features {
    pub(crate) at: usize,
    pub(crate) scroll: usize,
    /// What each had used, and when.
    before: HashMap<String, (Used, Duration)>,
    pub(crate) rates: HashMap<String, Rates>,
}

#[derive(Debug, Clone, Copy)]
struct Used {
    done: u64,
    events: u64,
    busy_ms: u64,
    cpu_ms: u64,
}

/// What a feature uses now.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    /// Of one core, in percent: at work, a call's waiting included.
    pub(crate) busy: f64,
    /// Of one core, in percent: of tools, hooks, tasks and exchanges.
    pub(crate) cpu: f64,
    pub(crate) calls: f64,
    pub(crate) events: f64,
}

impl Features {
    pub(super) fn take(&mut self, features: &[FeatureReport], now: Duration) {
        let (mut before, mut rates) = (HashMap::new(), HashMap::new());
        for feature in features {
            let used = Used {
                done: feature.performed + feature.calls,
                events: feature.events_seen,
                busy_ms: feature.busy_ms,
                cpu_ms: feature.cpu_ms,
            };
            let (was, then) = self.before.get(&feature.name).copied().unwrap_or((used, now));
            let passed = now.saturating_sub(then).as_secs_f64();
            if passed > 0.0 && passed < 0.5 {
                // Too soon to say.
                before.insert(feature.name.clone(), (was, then));
                rates.extend(self.rates.remove(&feature.name).map(|rate| (feature.name.clone(), rate)));
                continue;
            }
            let rate = |now: u64, was: u64| if passed > 0.0 { now.saturating_sub(was) as f64 / passed } else { 0.0 };
            let one = Rates {
                busy: rate(used.busy_ms, was.busy_ms) / 10.0,
                cpu: rate(used.cpu_ms, was.cpu_ms) / 10.0,
                calls: rate(used.done, was.done),
                events: rate(used.events, was.events),
            };
            before.insert(feature.name.clone(), (used, now));
            rates.insert(feature.name.clone(), one);
        }
        (self.before, self.rates) = (before, rates);
    }
}

impl State {
    pub(crate) fn chosen_feature(&self) -> Option<&FeatureReport> {
        self.status.as_ref()?.features.get(self.features.at)
    }

    pub(super) fn on_feature(&mut self, what: &str, act: impl Fn(String) -> Act) {
        let Some(feature) = self.chosen_feature() else { return };
        let name = feature.name.clone();
        self.ask(&format!("{what} {name}?"), About::Nothing, Then::Do(act(name)));
    }
}
