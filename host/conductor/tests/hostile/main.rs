//! The hostile corpus: everything that a feature could try, and what stops it.
//!
//! `tests/hostile/README.md` lists the cases. The guests are built by `cargo xtask features`. No
//! packet leaves: what would have been dialled is recorded instead.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod compiling;
mod cpu;
mod endless;
mod events;
mod files;
mod floods;
mod git;
mod handover;
mod hooks;
mod host;
mod http;
mod identity;
mod inputs;
mod lab;
mod limits;
mod migration;
mod models;
mod packages;
#[cfg(unix)]
mod paths;
mod plans;
#[cfg(target_os = "linux")]
mod programs;
mod quarantine;
mod registration;
mod registries;
mod side_by_side;
#[cfg(unix)]
mod skills;
mod store;
mod structure;
mod tasks;
mod terminal;
mod text;
mod tiers;
mod time;
mod timers;
mod unused;
mod wasi;
