//! Network allow-lists: targets, hosts and senders in text, and which of them a grant covers. Opens no socket.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod address;
pub mod endpoint;
pub mod http_scope;
pub mod senders;
