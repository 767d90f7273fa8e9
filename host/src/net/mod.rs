//! Places on a network in text: targets, hosts, senders, and which of them a grant covers. Nothing here opens a socket.

pub(crate) mod address;
pub mod endpoint;
pub mod http_scope;
pub mod senders;
