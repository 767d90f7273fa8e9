//! Previews of a configuration that is not in force: its mistakes, and its rules.
//!
//! Looking never runs what is not running. A configuration is held against the features in force; a package that is
//! not in force is not read, compiled or installed, no worker is started, and nothing is written. Features in force
//! are asked about the parameters of their actions, as at a reload. No lock of the host is held meanwhile, and few
//! configurations are looked at at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use super::assembler::warn_of_tools;
use super::generation::Generation;
use super::grant_warnings;
use conductor_audit::caller::{Caller, Scope};
use conductor_config::{Config, Diagnostic, Diagnostics, Feature, Loaded};
use conductor_dispatch::workers::Workers;
use conductor_registry::Registry;
use conductor_rules::{self as rules, Compiled};
use conductor_rules::{bindings, ineffective};
use conductor_stdx::plural::plural;
use conductor_terminal::excerpt;

/// Doubts that a plan shows; the others are counted.
const MAX_DOUBTS: usize = 8;
/// Characters of each.
const MAX_DOUBT: usize = 300;
/// Pairs of doubts, old and new, that are compared at most.
const MAX_COMPARED: usize = 100_000;

/// Previews at once for callers of one class.
const MAX_PREVIEWS: usize = 2;
/// How long a preview waits for a slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);

/// Classes of callers of previews. One class does not make the others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerClass {
    /// The home's owner.
    Owner,
    /// Proposers of plans: features, for agents mostly, and agents that look at plans.
    Planner,
    /// Clients with a lent token.
    Lent,
}

impl CallerClass {
    pub fn caller(caller: &Caller) -> Self {
        match caller.scope() {
            _ if caller.is_owner() => Self::Owner,
            Some(Scope::Read | Scope::Control) => Self::Lent,
            _ => Self::Planner,
        }
    }
}

/// Bounds the number of previews at once (a semaphore for each class).
#[derive(Debug)]
pub(super) struct PreviewSlots([(Sender<()>, Receiver<()>); 3]);

impl PreviewSlots {
    pub fn new() -> Self {
        Self(std::array::from_fn(|_| {
            let (give, take) = crossbeam_channel::bounded(MAX_PREVIEWS);
            for _ in 0..MAX_PREVIEWS {
                // There is room for each.
                let _ = give.try_send(());
            }
            (give, take)
        }))
    }

    /// Waits for a slot, which is freed when it is dropped; `None` on a timeout.
    pub fn wait(&self, whose: CallerClass) -> Option<PreviewSlot<'_>> {
        let (give, take) = &self.0[whose as usize];
        take.recv_timeout(SLOT_TIMEOUT).ok().map(|()| PreviewSlot(give))
    }
}

/// A permit for one preview.
#[derive(Debug)]
pub(super) struct PreviewSlot<'t>(&'t Sender<()>);

impl Drop for PreviewSlot<'_> {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

/// A configuration that is looked at, beside the one in force.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The configuration.
    pub loaded: Loaded,
    /// The features that it has and that are not in force. What their actions do is not known.
    pub absent: BTreeSet<String>,
    /// Those in force that it has.
    registry: Registry,
}

impl Candidate {
    /// Reads the configuration `text`, beside what is in force.
    ///
    /// # Errors
    /// Everything that is wrong with it by itself.
    pub fn read(current: &Generation, text: &str) -> Result<Self, Diagnostics> {
        let loaded = current.source.parse(text)?;
        bindings::check(&loaded)?;
        let (left_out, absent) = differing(&current.config, &loaded.config);
        let registry = current.registry.seen_by(&left_out, &absent);
        Ok(Self { loaded, absent, registry })
    }

    /// Its rules, which are for comparing only, as these workers would do what they say.
    ///
    /// # Errors
    /// Everything that is wrong with its mappings, also by what features in force say.
    pub fn compile(&self, workers: &Workers) -> Result<Compiled, Diagnostics> {
        let mut compiled = rules::compile(&self.loaded, &self.registry, &workers.idle_beside())?;
        compiled.warnings.extend(ineffective::warnings(&self.loaded, None));
        if self.absent.is_empty() {
            compiled.warnings.extend(ineffective::models(&self.loaded, &self.registry));
            warn_of_tools(&self.loaded, &self.registry, &mut compiled.warnings);
            grant_warnings::push(&self.loaded, &self.registry, &mut compiled.warnings);
        }
        Ok(compiled)
    }

    /// Everything there is to say about it: mistakes, or what is doubtful.
    pub fn check(&self, workers: &Workers) -> Diagnostics {
        let mut found = self.compile(workers).map_or_else(|wrong| wrong, |compiled| compiled.warnings);
        for name in &self.absent {
            let place = self.loaded.source.place(&["features".into(), name.as_str().into()]);
            let warning = Diagnostic::warning(place, format!("the package of the feature {name} is not in force"));
            found.push(
                warning.with_help("it is not run to look at a configuration, so what is written for it is not checked"),
            );
        }
        found
    }

    /// What is doubtful in `found` that was not in the configuration in force, whose warnings are `before`: a line each, and
    /// how many more there are.
    pub fn new_doubts(before: &[String], found: &Diagnostics) -> Vec<String> {
        let (old, now) = (before.len(), found.iter().count());
        if old.saturating_mul(now) > MAX_COMPARED {
            let lines = "lines of what is doubtful are too many to tell which are new";
            return if old == now { Vec::new() } else { vec![format!("doubtful: {now} {lines}, there were {old}")] };
        }
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut doubts = Vec::new();
        for Diagnostic { message, nearest, help, .. } in found.iter() {
            let count = seen.entry(message).or_default();
            *count += 1;
            if *count <= before.iter().filter(|known| known.contains(message.as_str())).count() {
                continue;
            }
            let nearest = nearest.as_ref().map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            let help = help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            doubts.push(format!("doubtful: {}", excerpt(&format!("{message}{nearest}{help}"), MAX_DOUBT)));
        }
        if let Some(more) = doubts.len().checked_sub(MAX_DOUBTS).filter(|more| *more > 0) {
            doubts.truncate(MAX_DOUBTS);
            doubts
                .push(format!("and {} of what `conductor config validate` calls doubtful", plural(more, "more line")));
        }
        doubts
    }

    /// Why it is not known what it would do; `None` if it is.
    pub fn unknown(&self) -> Option<String> {
        let names: Vec<&str> = self.absent.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!("not in force, so that its actions are not known before the plan is applied: {}", names.join(", "))
        })
    }
}

/// The features that a configuration switches off, and those of which it has a package that is not in force.
fn differing(before: &Config, after: &Config) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut left_out, mut absent) = (BTreeSet::new(), BTreeSet::new());
    // Everything that decides which package it is; what it may use is no part of that.
    let package = |feature: Option<&Feature>| {
        let written = feature.and_then(|feature| serde_json::to_value(feature).ok());
        let mut written = written.and_then(|value| value.as_object().cloned()).unwrap_or_default();
        written.retain(|key, _| key != "enabled" && key != "grants");
        written
    };
    let enabled = |feature: Option<&Feature>| feature.is_none_or(|feature| feature.enabled);
    for name in before.features.keys().chain(after.features.keys()) {
        let (old, new) = (before.features.get(name), after.features.get(name));
        if !enabled(new) {
            left_out.insert(name.clone());
        } else if !enabled(old) || package(old) != package(new) {
            absent.insert(name.clone());
        }
    }
    (left_out, absent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_audit::caller::Door;
    use conductor_config as config;

    fn config(text: &str) -> Config {
        config::parse(text, "c.toml").unwrap().config
    }

    #[test]
    fn a_package_that_is_not_in_force_is_absent_and_one_that_is_switched_off_is_left_out() {
        let off = "[features.a]\nenabled = false\n";
        let sets = |before: &str, after: &str| {
            let (left_out, absent) = differing(&config(before), &config(after));
            (Vec::from_iter(left_out), Vec::from_iter(absent))
        };
        let a = || vec!["a".to_owned()];
        assert_eq!(sets("", off), (a(), vec![]));
        assert_eq!(sets(off, ""), (vec![], a()));
        assert_eq!(sets(off, off), (a(), vec![]));
        assert_eq!(sets("", "[features.a]\npath = 'a.wasm'"), (vec![], a()));
        assert_eq!(sets("[features.a]\npath = 'a.wasm'", "[features.a]\npath = 'b.wasm'"), (vec![], a()));
        let granted = "[features.a.grants]\nalert = true";
        assert_eq!(sets("", granted), (vec![], vec![]), "what it may use makes it no other package");
    }

    #[test]
    fn only_doubts_that_are_new_are_named() {
        let source = config::parse("", "c.toml").unwrap().source;
        let doubts = |messages: &[&str]| {
            let mut found = Diagnostics::new(source.clone());
            messages.iter().for_each(|message| found.push(Diagnostic::warning(0..0, *message)));
            found
        };
        let unknown = "no binding is called \"padz\"";
        let before = doubts(&[unknown]).summaries();
        assert_eq!(Candidate::new_doubts(&before, &doubts(&[unknown])), [""; 0]);
        assert_eq!(Candidate::new_doubts(&before, &doubts(&[unknown, unknown])), [format!("doubtful: {unknown}")]);
        let near = Diagnostic::warning(0..0, unknown).with_nearest(Some("pads".into())).with_help("write that");
        let mut found = doubts(&[]);
        found.push(near);
        assert_eq!(
            Candidate::new_doubts(&[], &found),
            [format!("doubtful: {unknown}; did you mean \"pads\"? (write that)")]
        );
        let many: Vec<String> = (0..20).map(|number| format!("doubt {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let told = Candidate::new_doubts(&[], &doubts(&many));
        assert_eq!(told.len(), MAX_DOUBTS + 1);
        assert!(told[MAX_DOUBTS].starts_with("and 12 more lines"), "{told:?}");
        let (some, one_more) = (vec!["doubt"; 400], vec!["doubt"; 401]);
        let told = Candidate::new_doubts(&doubts(&some).summaries(), &doubts(&one_more));
        assert_eq!(told.len(), 1, "too many are not compared, and only counted");
        assert!(told[0].starts_with("doubtful: 401 lines"), "{told:?}");
    }

    #[test]
    fn a_turn_is_given_back() {
        let turns = PreviewSlots::new();
        for _ in 0..3 * MAX_PREVIEWS {
            assert!(turns.wait(CallerClass::Owner).is_some());
        }
    }

    #[test]
    fn lent_tokens_and_agents_take_no_turn_of_the_owners() {
        let turns = PreviewSlots::new();
        let lent = [Scope::Read, Scope::Control].map(|scope| Caller::client(Door::Tcp, scope, None));
        let agents = [Caller::client(Door::McpSocket, Scope::Agent, Some("a")), Caller::feature("builtin:x")];
        let taken: Vec<_> =
            lent.iter().chain(&agents).map(|caller| turns.wait(CallerClass::caller(caller)).unwrap()).collect();
        assert_eq!(taken.len(), 2 * MAX_PREVIEWS, "as many as there are");
        for owner in [Caller::client(Door::Socket, Scope::Owner, None), Caller::cli(), Caller::library()] {
            assert!(turns.wait(CallerClass::caller(&owner)).is_some(), "{owner}");
        }
    }
}
