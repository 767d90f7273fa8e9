//! Agent Skills (<https://agentskills.io>): folders with a `SKILL.md` that agents read when a task needs it.
//!
//! A skill has three levels. Its [metadata](skill::Skill) is always at hand; its body is read when a task asks for it; a
//! [resource](skill::Skill::read) is read when the body names it. Each level has its [limit](limits).
//!
//! [`library`] finds skills in the folders of the search path and among those that come with the program, and keeps
//! what it has read until a file changes. [`install`] copies a skill into a folder, from the bundle, a folder, an
//! [`archive`] or a [git host](github).
//!
//! Skills are texts of strangers: guidance, never instructions to the host. Nothing here runs anything of them, none of
//! them reaches a file outside its folder, and what one may cost is bounded.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod agents;
pub mod archive;
mod bundled;
mod folder;
mod front_matter;
pub mod github;
pub mod install;
pub mod library;
pub mod limits;
pub mod problem;
pub mod skill;
pub mod source;
pub mod view;
