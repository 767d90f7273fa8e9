//! Chat with language models, through the providers that features contribute.
//!
//! A [`completion`] is one question and its answer: the provider says what to send and reads what comes
//! back, and everything in between is the host's: the grant, the secret, the connection, trying again, giving
//! up. [`answer`] puts the pieces together; [`models`] knows which models there are and has hooks asked. Nothing on the
//! event path comes here.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod answer;
pub mod completion;
pub mod models;

pub use completion::{Completion, complete};
pub use models::Models;

/// What is asked and answered, as the contract has it.
pub use conductor_sandbox::bindings::imports::chat::*;
