//! The active mode: one for all devices, kept by name while rule sets come and go.

use std::sync::Arc;

use crate::rule_set::{ModeIx, RuleSet};

/// The mode that is active. Owned by the thread that matches.
///
/// A rule set knows its modes by index, and another set may count them differently; so the mode is
/// remembered by name and looked up again when the set's generation has changed. If the new set has no
/// such mode, its first one becomes active, as it is at the start. A set without modes has
/// [`ModeIx::NONE`].
///
/// ```
/// # use conductor_engine::*;
/// # let two_modes = |a: &str, b: &str| {
/// #     let modes = vec![a.into(), b.into()];
/// #     compile(RuleSource::<()> { modes, rules: vec![] })
/// # };
/// let mut mode = ActiveMode::new();
/// let set = two_modes("Play", "Edit")?;
/// assert_eq!(mode.index(&set, 0), ModeIx(0));
/// mode.set(&set, 0, "Edit").expect("a mode of this set");
///
/// let reordered = two_modes("Edit", "Play")?;
/// assert_eq!(mode.index(&reordered, 1), ModeIx(0));
/// assert_eq!(mode.name(), Some("Edit"));
/// # Ok::<(), Vec<CompileError>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ActiveMode {
    name: Option<Arc<str>>,
    index: ModeIx,
    /// The generation that `index` is for.
    generation: Option<u64>,
}

/// There is no mode of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mode called {0:?}")]
pub struct UnknownMode(
    /// The name.
    pub String,
);

impl ActiveMode {
    /// Before any rule set: no name yet, the first mode of the first set will be active.
    pub fn new() -> Self {
        Self { name: None, index: ModeIx::NONE, generation: None }
    }

    /// The index of the active mode in `set`, which is of this `generation`. Allocates nothing; for the
    /// same generation as last time it is one comparison.
    #[inline]
    pub fn index<A>(&mut self, set: &RuleSet<A>, generation: u64) -> ModeIx {
        if self.generation != Some(generation) {
            self.find(set, generation);
        }
        self.index
    }

    /// Makes another mode active, by name.
    ///
    /// # Errors
    /// If the set has no such mode; then nothing changes.
    pub fn set<A>(&mut self, set: &RuleSet<A>, generation: u64, name: &str) -> Result<ModeIx, UnknownMode> {
        let index = set.mode_index(name).ok_or_else(|| UnknownMode(name.to_owned()))?;
        self.name = set.modes().get(usize::from(index.0)).cloned();
        (self.index, self.generation) = (index, Some(generation));
        Ok(index)
    }

    /// The name of the active mode; none before the first [`index`](Self::index) and for sets without
    /// modes.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn find<A>(&mut self, set: &RuleSet<A>, generation: u64) {
        let kept = self.name.as_deref().and_then(|name| set.mode_index(name));
        self.index = match kept {
            Some(index) => index,
            None if set.modes().is_empty() => ModeIx::NONE,
            None => ModeIx(0),
        };
        self.name = set.modes().get(usize::from(self.index.0)).cloned();
        self.generation = Some(generation);
    }
}

impl Default for ActiveMode {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::rule::RuleSource;

    fn set(modes: &[&str]) -> RuleSet<()> {
        let modes = modes.iter().map(|&name| name.to_owned()).collect();
        compile(RuleSource { modes, rules: vec![] }).unwrap()
    }

    #[test]
    fn a_mode_that_vanished_gives_way_to_the_first() {
        let mut mode = ActiveMode::new();
        let both = set(&["Play", "Edit"]);
        mode.set(&both, 0, "Edit").unwrap();
        assert_eq!(mode.index(&set(&["Play", "Mix"]), 1), ModeIx(0));
        assert_eq!(mode.name(), Some("Play"));
    }

    #[test]
    fn a_set_without_modes_has_none() {
        let mut mode = ActiveMode::new();
        assert_eq!(mode.index(&set(&[]), 0), ModeIx::NONE);
        assert_eq!(mode.name(), None);
        assert_eq!(mode.index(&set(&["Play"]), 1), ModeIx(0));
    }

    #[test]
    fn an_unknown_mode_changes_nothing() {
        let mut mode = ActiveMode::new();
        let set = set(&["Play", "Edit"]);
        mode.set(&set, 0, "Edit").unwrap();
        assert_eq!(mode.set(&set, 0, "Fly"), Err(UnknownMode("Fly".into())));
        assert_eq!(mode.index(&set, 0), ModeIx(1));
    }
}
