//! Packages: a feature's file and the capabilities that it requests, read, bounded and validated without running it.
//!
//! [`mod@file`] reads the bytes (size, digest, descriptor, imports, exports), and [`structure`] bounds what is in them;
//! [`check`] compares what the component's type says with what its [`descriptor`] declares, by the tables of
//! [`mod@interface`]; [`capability`] cuts what was
//! requested down to what was granted, and [`grants`] is what that comes to ([`program`]: a program
//! that may be run); [`admission`] says for which package
//! ([`id`]) grants are meant, and [`consent`] how a person is shown what is granted; [`contributions`] are those that a
//! person refused.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod admission;
pub mod capability;
pub mod check;
pub mod consent;
pub mod contributions;
pub mod descriptor;
mod doors;
pub mod file;
pub mod grants;
pub mod id;
pub mod interface;
pub mod program;
pub mod provider;
pub mod structure;
mod task;
mod tool;
pub mod wasi;

pub use contributions::Contributions;
pub use descriptor::Descriptor;
pub use file::{Package, PackageError};
pub use grants::Grants;
pub use id::FeatureId;
