//! Effects: what goes out when rules fire, without anything going out.
//!
//! The actions are performed as a host performs them, by the same workers and the same features, up to the last step:
//! datagrams, MIDI messages, keys and programs go into a [`Recorder`] instead of the system. So what is seen has the
//! numbers of the event, transforms and all that features do with it in it. [`RecordedActions`] does it in the time of a
//! script.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod datagram;
mod performer;
mod recorder;
pub mod shown;

pub use performer::RecordedActions;
pub use recorder::Recorder;
