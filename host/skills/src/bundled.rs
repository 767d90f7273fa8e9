//! The skills that come with the program, and the old names that they still answer to.

use std::sync::{Arc, LazyLock};

use crate::skill::{Loaded, Skill};

/// The files of a skill: path and content.
type Files = &'static [(&'static str, &'static [u8])];

/// The files of each, by folder.
#[rustfmt::skip]
const FILES: &[(&str, Files)] = include!(concat!(env!("OUT_DIR"), "/bundled.rs"));

/// The field of `metadata` with old names, separated by spaces.
const ALIASES: &str = "aliases";

/// One of them.
#[derive(Debug)]
pub(crate) struct Bundled {
    /// The folder's name.
    pub(crate) name: &'static str,
    pub(crate) skill: Loaded,
}

/// All of them, by name.
pub(crate) fn all() -> &'static [Bundled] {
    static READ: LazyLock<Vec<Bundled>> = LazyLock::new(|| {
        let read = |(name, files): &(&'static str, Files)| {
            let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), (*bytes).into())).collect();
            Bundled { name, skill: Skill::from_files(name, files).map(Arc::new).map_err(Arc::new) }
        };
        FILES.iter().map(read).collect()
    });
    &READ
}

/// Names that a skill of the program had before.
pub(crate) fn aliases(skill: &Skill) -> Vec<String> {
    skill.metadata.get(ALIASES).map(|names| names.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}
