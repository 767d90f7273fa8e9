//! What is in force: one immutable snapshot, replaced as a whole.
//!
//! Reads load it without a lock, so that no client waits for a reload or for another client's request, and whatever
//! one request looks at belongs together. Only [`Host`](super::Host)'s writers, who hold its state, store another.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::registry::Registry;
use conductor_config::{Config, Source};

/// A configuration in force and what was made of it, beside the rules, which the engine has.
#[derive(Debug, Clone)]
pub(super) struct Generation {
    /// The features in use; none any more when the host stops.
    pub(super) registry: Registry,
    /// The configuration's text and the name of its file.
    pub(super) source: Source,
    /// The same, parsed.
    pub(super) config: Arc<Config>,
    /// Why the last configuration was rejected; `None` if it is this one.
    pub(super) refused: Option<String>,
    /// What is doubtful in it, a line each.
    pub(super) warnings: Vec<String>,
}

/// The generation in force, shared with everything that reads it.
#[derive(Debug, Clone)]
pub(super) struct InForce(Arc<ArcSwap<Generation>>);

impl InForce {
    pub(super) fn new(first: Generation) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(first)))
    }

    /// The current generation. It stays as it is while the caller holds it, whatever comes into force meanwhile.
    pub(super) fn load(&self) -> Arc<Generation> {
        self.0.load_full()
    }

    /// Puts another one in force and returns the one before.
    pub(super) fn replace(&self, next: Generation) -> Arc<Generation> {
        self.0.swap(Arc::new(next))
    }

    /// Records whether the last configuration was rejected, and why.
    pub(super) fn set_refused(&self, refused: Option<String>) {
        self.replace(Generation { refused, ..(*self.load()).clone() });
    }
}
