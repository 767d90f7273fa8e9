//! Conductor to embed, and its command line.
//!
//! A program that wants all that `conductor run` is begins with [`Conductor::builder`]. The command is this library too:
//! its `main` calls [`cli::main`].
//!
//! The features `active-window`, `desktop`, `gamepad` and `keychain` bring what hangs on a library of the system's desktop. All
//! are on by default; without one, what needs it is refused with its name, or reported as unknown.
//!
//! The crates below are here by their short names, for programs that name this one alone:
//!
//! | to add | go to |
//! |---|---|
//! | a kind of port | [`ports`]: a new [`ports::PortBackend`] |
//! | a trigger | the engine's `trigger`, [`config`]'s `trigger`, and the line between them in [`rules`] |
//! | an action of the host | [`config`]'s `action`, [`dispatch`], and the line between them in [`rules`] |
//! | a desktop that reports its active window | [`active_window`]: a file beside `wayland`, or for another system a new [`active_window::ActiveWindowWatch`] |
//! | a host function for features | `wit/`, a file in [`sandbox::host_functions`] with its handles in [`sandbox::handles`], its lines in [`sandbox::bindings`] and [`package::check`] |
//! | a place to fetch packages from | [`install::source`] |
//! | anything else | a feature, in `features/` |

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod cli;
mod embedding;

pub use crate::embedding::{
    Conductor, ConductorBuilder, NewerHome, NewerRecord, OnDiagnostics, OpenError, system_ports,
};
pub use conductor_active_window as active_window;
pub use conductor_api as api;
pub use conductor_audit as audit;
pub use conductor_chat as chat;
pub use conductor_config as config;
pub use conductor_conversation as conversation;
pub use conductor_dispatch as dispatch;
pub use conductor_engine as engine;
pub use conductor_host as host;
pub use conductor_install as install;
pub use conductor_mcp as mcp;
pub use conductor_net as net;
pub use conductor_observation as observation;
pub use conductor_observer as observer;
pub use conductor_package as package;
pub use conductor_ports as ports;
pub use conductor_registry as registry;
pub use conductor_rules as rules;
pub use conductor_sandbox as sandbox;
pub use conductor_services as services;
pub use conductor_skills as skills;
pub use conductor_stdx as stdx;
pub use conductor_terminal as terminal;
