//! Features: sandboxed WebAssembly components, from the file on disk to a running instance.
//!
//! The way of a package: [`package`] reads the bytes without running them (size, digest,
//! descriptor, imports, exports), and [`structure`] bounds what is in them; [`check`] compares what the component's type says with what the
//! descriptor declares; [`capability`] cuts what was requested down to what was granted, and
//! [`grants`] is what that comes to; [`admission`] says for which package ([`id`]) grants are meant, and
//! [`consent`] how a person is shown what is granted; [`sandbox`] compiles and runs it.
//!
//! [`actor`] owns an instance in the control lane, [`task`] one that works in the background (the
//! workers of the real-time lane are in `dispatch`); [`quarantine`] counts their traps. [`registry`]
//! keeps what is installed.
//!
//! May import: `service` (what a grant opens), and in `registry` the worker that `dispatch` runs an
//! instance in. Nothing here knows ports, rules or configuration.

pub mod actor;
pub mod admission;
pub mod capability;
pub mod check;
pub mod consent;
pub mod descriptor;
pub mod endpoint;
pub mod grants;
pub mod id;
pub mod package;
pub mod quarantine;
pub mod registry;
pub mod sandbox;
pub mod structure;
pub mod task;

pub use descriptor::Descriptor;
pub use endpoint::EndpointPattern;
pub use grants::Grants;
pub use id::FeatureId;
pub use package::{Package, PackageError};
