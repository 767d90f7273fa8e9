//! How a feature is built: by which Rust, and what makes a component of what that Rust compiled.
//!
//! Shared by the `conductor` command, for which it builds anybody's features, and by `cargo xtask`, which
//! builds the bundled ones and needs the same care with child processes.

pub mod cargo;
pub mod component;
pub mod guest_rust;
pub mod process;

pub use guest_rust::GuestRust;
