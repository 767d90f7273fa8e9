//! Building features: which Rust toolchain compiles them, and how the module becomes a component.
//!
//! Shared by the `conductor` command, for which it builds any author's features, and by `cargo xtask`, which
//! builds the bundled ones and needs the same care with child processes.

pub mod cargo;
pub mod component;
pub mod guest_rust;
pub mod process;
pub mod rust_target;

pub use guest_rust::GuestRust;
