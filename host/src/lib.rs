//! Conductor's host: it owns the ports, the engine thread, the sandbox and every trust decision.
//!
//! Events run one way: a port's thread puts them into the engine's queue ([`ports`]), the engine
//! thread matches them and hands envelopes over ([`event_loop`]), workers do what rules say
//! ([`dispatch`]). Nothing on that way waits, locks, allocates or parses. Everything else
//! ([`config`], [`rules`], [`package`], [`sandbox`], [`control`], [`host`], [`api`], [`cli`]) happens beside it. To
//! embed all of it in a process of your own, begin with [`conductor`]. Which room may import which others is a table
//! in `docs/architecture.md`, and checked.
//!
//! | to add | go to |
//! |---|---|
//! | a kind of port | `ports/`: a new [`ports::PortBackend`] |
//! | a trigger | the engine's `trigger`, [`config`]'s `trigger`, and the line between them in [`rules`] |
//! | an action of the host | [`config`]'s `action`, [`dispatch`], and the line between them in [`rules`] |
//! | a desktop that reports its active window | [`active_window`]: a file beside `wayland`, or for another system a new [`active_window::ActiveWindowWatch`] |
//! | a host function for features | `wit/`, a file in [`sandbox::host_functions`], its line in [`sandbox::bindings`] and [`package::check`] |
//! | a place to fetch packages from | [`install::source`] |
//! | anything else | a feature, in `features/` |

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod api;
pub(crate) mod bindings;
pub mod chat;
pub mod cli;
pub mod conductor;
pub mod control;
pub mod dispatch;
pub mod environment;
pub mod event_loop;
pub mod host;
pub mod profile;
pub mod registry;
pub mod rules;

// The crates below, for programs that embed the host.
pub use conductor_active_window as active_window;
pub use conductor_audit as audit;
pub use conductor_config as config;
pub use conductor_install as install;
pub use conductor_net as net;
pub use conductor_observer as observer;
pub use conductor_package as package;
pub use conductor_ports as ports;
pub use conductor_sandbox as sandbox;
pub use conductor_services as services;
pub use conductor_stdx::{
    atomic_file, changes, clock, device_defaults, digest, doorbell, hidden, host_key, nearest, plain_file, plural,
    rate, template,
};
pub use conductor_terminal as terminal;
