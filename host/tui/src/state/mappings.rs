//! Mappings of the configuration in force, and which of them are shown.

use super::State;

/// Mappings, and which are shown.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// In lower case.
    pub(crate) search: String,
    /// The places in the list of those that have the text.
    pub(crate) shown: Vec<usize>,
    pub(crate) at: usize,
    pub(crate) scroll: usize,
}

impl State {
    /// Finds the mappings that are shown.
    pub(super) fn search(&mut self) {
        let all = self.config.as_ref().map(|config| config.mappings.as_slice()).unwrap_or_default();
        let search = &self.mappings.search;
        let found = all.iter().enumerate().filter(|(_, mapping)| mapping.has(search));
        self.mappings.shown = found.map(|(at, _)| at).collect();
        self.mappings.at = self.mappings.at.min(self.mappings.shown.len().saturating_sub(1));
        self.mappings.scroll = 0;
    }
}
