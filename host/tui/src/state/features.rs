//! Features, and what each of them uses.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use conductor_registry::FeatureReport;

use super::State;
use super::overlay::{About, Then};
use crate::api::Act;

/// Features, and the rates of what they use.
#[derive(Debug, Default)]
pub(crate) struct Features {
    pub(crate) at: usize,
    pub(crate) scroll: usize,
    /// What each had used, and when.
    before: HashMap<String, (Used, Duration)>,
    pub(crate) rates: HashMap<String, Rates>,
    /// Names of features that a person has disabled, so that no host loads them. They are listed after the others.
    pub(crate) disabled: Vec<String>,
    /// Those of them that are installed.
    installed: Vec<String>,
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

    /// The name of the chosen feature, if it is one that is disabled.
    pub(crate) fn chosen_disabled(&self) -> Option<&str> {
        let loaded = self.status.as_ref()?.features.len();
        self.features.disabled.get(self.features.at.checked_sub(loaded)?).map(String::as_str)
    }

    /// How many features are listed.
    pub(crate) fn feature_count(&self) -> usize {
        self.status.as_ref().map_or(0, |status| status.features.len()) + self.features.disabled.len()
    }

    /// Takes in which installed features are disabled.
    pub(super) fn take_disabled(&mut self, installed: Vec<String>) {
        self.features.installed = installed;
        self.list_disabled();
    }

    /// Lists what is disabled, by the receipts and by the configuration.
    pub(super) fn list_disabled(&mut self) {
        let Some(status) = &self.status else { return };
        let is_loaded = |name: &String| status.features.iter().any(|feature| feature.name == *name);
        let all = self.features.installed.iter().chain(&status.disabled_features).filter(|name| !is_loaded(name));
        let all: BTreeSet<String> = all.cloned().collect();
        self.features.disabled = all.into_iter().collect();
        self.features.at = self.features.at.min(self.feature_count().saturating_sub(1));
    }

    pub(super) fn lift(&mut self) {
        let Some(name) = self.chosen_feature().map(|feature| feature.name.clone()) else { return };
        let asks = format!("End the quarantine of {name}?");
        self.ask(&asks, About::Nothing, Then::Do(Act::Lift { feature: name }));
    }

    pub(super) fn disable(&mut self) {
        let Some(feature) = self.chosen_feature() else { return };
        let (name, about) = (feature.name.clone(), about(feature.installed));
        self.ask(&format!("Disable {name}?"), about, Then::Do(Act::Disable { feature: name }));
    }

    pub(super) fn enable(&mut self) {
        let Some(name) = self.chosen_disabled().map(str::to_owned) else { return };
        let about = about(self.features.installed.contains(&name));
        self.ask(&format!("Enable {name}?"), about, Then::Do(Act::Enable { feature: name }));
    }
}

/// Where it is kept whether hosts load a feature.
fn about(is_installed: bool) -> About {
    if is_installed {
        return About::Nothing;
    }
    About::Text("This is written into the configuration; undo takes it back.".to_owned())
}
