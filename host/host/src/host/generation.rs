//! The generation: one immutable snapshot of everything in force, which a hot reload swaps atomically.
//!
//! Reads load it without a lock, so that no client waits for a reload or for another client's request, and each
//! request sees one consistent state. Only [`Host`](super::Host)'s writers, who hold its state, store another.
//!
//! Beside it, the engine has the same rules in a handle of its own, since the event path loads nothing else; a
//! writer replaces both. Ports, lights and profiles go to their own threads, which carry them out.

use std::sync::Arc;

use arc_swap::ArcSwap;
use conductor_engine::RuleSetSnapshot;
use conductor_event::RuleId;

use super::rule_names::RuleNames;
use crate::control::gate::ToolSet;
use conductor_chat::{Models, Question};
use conductor_config::{Config, Source};
use conductor_dispatch::{Action, describe_rule, describe_rule_id};
use conductor_policy::Policy;
use conductor_registry::Registry;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::model_view::{Answer, Later, ModelView};

/// A configuration in force and all that was made of it.
#[derive(Debug, Clone)]
pub(super) struct Generation {
    /// The features in use; none any more when the host stops.
    pub(super) registry: Registry,
    /// The configuration's text and the name of its file.
    pub(super) source: Source,
    /// The same, parsed.
    pub(super) config: Arc<Config>,
    /// The rules, with the number that the engine gives this generation.
    pub(super) rules: RuleSetSnapshot<Action>,
    /// Who may call which tool how often.
    pub(super) policy: Arc<Policy>,
    /// The models, with the way to their providers.
    pub(super) models: Arc<Models>,
    /// Why the last configuration was rejected; `None` if it is this one.
    pub(super) refused: Option<String>,
    /// What is doubtful in it, a line each.
    pub(super) warnings: Vec<String>,
}

impl Generation {
    /// The tools that may be called.
    pub(super) fn tools(&self) -> ToolSet<'_> {
        ToolSet { registry: &self.registry, policy: &self.policy }
    }

    /// The modes, in the configuration's order.
    pub(super) fn modes(&self) -> Vec<String> {
        self.rules.modes().iter().map(ToString::to_string).collect()
    }

    /// The active mode, if the last one that was `observed` is one of these; else the first. `None` if there are no
    /// modes.
    pub(super) fn mode(&self, observed: Option<&str>) -> Option<String> {
        let modes = self.rules.modes();
        let active = modes.iter().find(|mode| Some(&***mode) == observed);
        active.or_else(|| modes.first()).map(ToString::to_string)
    }
}

/// The generation in force, shared with everything that reads it.
#[derive(Debug, Clone)]
pub(super) struct InForce {
    current: Arc<ArcSwap<Generation>>,
    /// What the rules of those before are called.
    former: Arc<RuleNames>,
}

impl InForce {
    pub(super) fn new(first: Generation) -> Self {
        Self { current: Arc::new(ArcSwap::from_pointee(first)), former: Arc::default() }
    }

    /// The current generation. It stays as it is while the caller holds it, whatever comes into force meanwhile.
    pub(super) fn load(&self) -> Arc<Generation> {
        self.current.load_full()
    }

    /// Puts another one in force and returns the one before.
    pub(super) fn replace(&self, next: Generation) -> Arc<Generation> {
        let last = self.load();
        if last.rules.generation() != next.rules.generation() {
            // Before it is replaced, so that there is no time at which an event has no names.
            self.former.keep(last.rules.generation(), last.rules.rules().iter().map(describe_rule));
        }
        self.current.swap(Arc::new(next))
    }

    /// What a rule of this generation is called, or was; its number if that is not known any more.
    pub(super) fn rule_name(&self, rule: RuleId, generation: u64) -> String {
        let rules = &self.load().rules;
        let is_current = rules.generation() == generation;
        let former = if is_current { None } else { self.former.of(rule, generation) };
        former.unwrap_or_else(|| describe_rule_id(rule, rules, is_current))
    }

    /// Records whether the last configuration was rejected, and why.
    pub(super) fn set_refused(&self, refused: Option<String>) {
        self.replace(Generation { refused, ..(*self.load()).clone() });
    }
}

/// A turn with a model ends with the generation that it began with.
impl ModelView for InForce {
    fn names(&self) -> Vec<String> {
        self.load().models.names()
    }

    fn ask<'a>(&'a self, asker: &'a str, model: &'a str, question: Question) -> Later<'a, Result<Answer, Error>> {
        let models = Arc::clone(&self.load().models);
        Box::pin(async move { models.ask(asker, model, question).await })
    }
}
