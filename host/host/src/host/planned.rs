//! The cache of compiled plans: each is read and compiled once, from when it is assessed until it is applied.
//!
//! A plan that was proposed is looked at next, and applied after that, all under the same generation; so what the first
//! of these steps made is kept for the others. Under another generation it is made anew, and that of a plan that was
//! not looked at for long as well: this only saves work, and nothing depends on it.

use parking_lot::Mutex;
use std::sync::Arc;

use conductor_engine::{RuleSet, RuleSetHandle};

use super::look::Candidate;
use conductor_config::Loaded;
use conductor_dispatch::Action;

/// Plans whose configuration is kept: it has all of the mappings, which may be ten thousand.
const MAX_PLANNED: usize = 4;

/// The configuration that a plan would put in force.
#[derive(Debug)]
pub(super) struct Planned {
    /// The text, checked, and what it says.
    pub loaded: Loaded,
    /// Its rules, which are for comparing only: nothing carries out what they do.
    pub rules: Arc<RuleSetHandle<Action>>,
    /// Why it is not known what it would do; `None` if it is.
    pub unknown: Option<String>,
}

impl Planned {
    /// Of a candidate and its compiled rules.
    pub fn new(candidate: Candidate, rules: RuleSet<Action>) -> Self {
        let unknown = candidate.unknown();
        Self { loaded: candidate.loaded, rules: Arc::new(RuleSetHandle::new(rules)), unknown }
    }
}

/// Those of the plans that were looked at last.
#[derive(Debug, Default)]
pub(super) struct PlannedCache(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    plan: String,
    /// The rule set that was in use.
    generation: u64,
    planned: Arc<Planned>,
}

impl PlannedCache {
    /// What was made for this plan while the rules of this generation were in use.
    pub fn get(&self, plan: &str, generation: u64) -> Option<Arc<Planned>> {
        let mut entries = self.0.lock();
        let at = entries.iter().position(|entry| entry.plan == plan && entry.generation == generation)?;
        // The one that was asked for last stands last.
        entries[at..].rotate_left(1);
        entries.last().map(|entry| Arc::clone(&entry.planned))
    }

    /// Keeps what was made for a plan.
    pub fn put(&self, plan: &str, generation: u64, planned: &Arc<Planned>) {
        let entry = Entry { plan: plan.to_owned(), generation, planned: Arc::clone(planned) };
        let mut entries = self.0.lock();
        // Of another generation nothing is asked for any more.
        let is_old = |entry: &Entry| entry.generation != generation || entry.plan == plan;
        let mut old: Vec<Entry> = entries.extract_if(.., |entry| is_old(entry)).collect();
        entries.push(entry);
        if entries.len() > MAX_PLANNED {
            old.push(entries.remove(0));
        }
        // Freeing them may take a while.
        drop(entries);
        drop(old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_engine::{RuleSource, compile};

    fn planned() -> Arc<Planned> {
        let rules = compile(RuleSource { modes: Vec::new(), rules: Vec::new() }).unwrap();
        let loaded = conductor_config::parse("", "config.toml").unwrap();
        Arc::new(Planned { loaded, rules: Arc::new(RuleSetHandle::new(rules)), unknown: None })
    }

    #[test]
    fn the_last_ones_of_the_generation_in_use_are_kept() {
        let (cache, one) = (PlannedCache::default(), planned());
        cache.put("a", 1, &one);
        assert!(cache.get("a", 1).is_some_and(|found| Arc::ptr_eq(&found, &one)));
        assert!(cache.get("a", 2).is_none() && cache.get("b", 1).is_none());
        for plan in ["b", "c", "d"] {
            cache.put(plan, 1, &planned());
        }
        assert!(cache.get("a", 1).is_some(), "there is room for four, and it is the last that was asked for");
        cache.put("e", 1, &planned());
        assert!(cache.get("b", 1).is_none() && cache.get("a", 1).is_some());
        cache.put("f", 2, &planned());
        assert!(["a", "c", "d", "e"].iter().all(|plan| cache.get(plan, 1).is_none()), "another generation");
    }
}
