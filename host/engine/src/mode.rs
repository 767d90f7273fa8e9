//! The active mode: one for all devices, kept by name while rule sets come and go.

use std::sync::Arc;

use conductor_event::{DeviceId, Event, ModeIx};

use crate::key::{Key, KeyChange};
use crate::rule::{Lasts, Rule};
use crate::rule_set::RuleSet;

/// Modes that are active for a while at the same time, each above the one before. Further ones are not begun.
const MAX_LAYERS: usize = 16;

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
    /// The mode that is active again when no layer is left.
    chosen: Option<Arc<str>>,
    /// What is active for a while; the last one is the active mode.
    layers: Vec<Layer>,
    /// How many presses there were while there were layers.
    presses: u32,
}

/// A mode that is active for a while.
#[derive(Clone, Debug)]
struct Layer {
    mode: Arc<str>,
    device: DeviceId,
    /// The key that holds it; `None` if it is up, or there is none.
    key: Option<Key>,
    is_once: bool,
    /// The press during which it began.
    press: u32,
}

/// A mode that a rule asks for.
pub(crate) struct NextMode {
    mode: Arc<str>,
    lasts: Lasts,
    device: DeviceId,
    key: Option<Key>,
}

impl NextMode {
    pub(crate) fn new<A>(mode: Arc<str>, rule: &Rule<A>, device: &DeviceId, event: &Event) -> Self {
        Self { mode, lasts: rule.lasts, device: device.clone(), key: Key::pressed(event) }
    }
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
        let layers = Vec::with_capacity(MAX_LAYERS);
        Self { name: None, index: ModeIx::NONE, generation: None, chosen: None, layers, presses: 0 }
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

    /// Makes another mode active, by name. What was active for a while is so no longer.
    ///
    /// # Errors
    /// If the set has no such mode; then nothing changes.
    pub fn set<A>(&mut self, set: &RuleSet<A>, generation: u64, name: &str) -> Result<ModeIx, UnknownMode> {
        let index = set.mode_index(name).ok_or_else(|| UnknownMode(name.to_owned()))?;
        self.layers.clear();
        self.name = set.modes().get(usize::from(index.0)).cloned();
        (self.index, self.generation) = (index, Some(generation));
        Ok(index)
    }

    /// The name of the active mode; none before the first [`index`](Self::index) and for sets without
    /// modes.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The mode that was chosen last: the active one, or the one that comes after those that are active for a while.
    pub fn chosen(&self) -> Option<&Arc<str>> {
        if self.layers.is_empty() { self.name.as_ref() } else { self.chosen.as_ref() }
    }

    /// Makes the mode active that a rule asks for, for as long as it says. False if that does not change anything.
    pub(crate) fn change<A>(&mut self, set: &RuleSet<A>, generation: u64, next: NextMode) -> bool {
        let NextMode { mode, lasts, device, key } = next;
        if lasts == Lasts::UntilChanged {
            return self.set(set, generation, &mode).is_ok();
        }
        let is_once = lasts == Lasts::OnePress;
        if self.layers.len() == MAX_LAYERS || set.mode_index(&mode).is_none() || !is_once && key.is_none() {
            return false;
        }
        if self.layers.is_empty() {
            self.chosen.clone_from(&self.name);
        }
        self.layers.push(Layer { mode, device, key, is_once, press: self.presses });
        self.uppermost()
    }

    /// Whether a mode is active only for a while.
    #[inline]
    pub(crate) fn has_layers(&self) -> bool {
        !self.layers.is_empty()
    }

    /// An event comes, before rules are asked: what a key held that has come up ends. True if another mode is active.
    pub(crate) fn before(&mut self, device: &DeviceId, change: KeyChange) -> bool {
        if matches!(change, KeyChange::Down(..)) {
            self.presses = self.presses.wrapping_add(1);
        }
        self.layers.retain_mut(|layer| {
            let is_up = layer.device == *device && layer.key.is_some_and(|key| change.lets_go(key));
            layer.key = layer.key.filter(|_| !is_up);
            // One that is for a press waits for that without its key, too.
            !is_up || layer.is_once
        });
        self.uppermost()
    }

    /// A press has been done: what was active for it ends, or lasts as long as its key is down. True if another mode
    /// is active.
    pub(crate) fn after_press(&mut self) -> bool {
        let presses = self.presses;
        self.layers.retain_mut(|layer| {
            let is_used = layer.is_once && layer.press != presses;
            layer.is_once &= !is_used;
            !is_used || layer.key.is_some()
        });
        self.uppermost()
    }

    /// A device has gone: so has what it held. True if another mode is active.
    pub(crate) fn forget(&mut self, device: &DeviceId) -> bool {
        let had_layers = self.has_layers();
        self.layers.retain(|layer| layer.device != *device);
        had_layers && self.uppermost()
    }

    /// Makes the last layer the active mode, or the chosen one where the last has ended. True if that is another one.
    fn uppermost(&mut self) -> bool {
        let mode = self.layers.last().map(|layer| &layer.mode).or(self.chosen.as_ref());
        let is_other = mode != self.name.as_ref();
        if is_other {
            self.name = mode.cloned();
            self.generation = None;
        }
        is_other
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
