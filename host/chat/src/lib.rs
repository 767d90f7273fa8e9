//! Chat with language models, through the providers that features contribute.
//!
//! A [`completion`] is one question and its answer: the provider says what to send and reads what comes
//! back, and everything in between is the host's: the grant, the secret, the connection, trying again, giving
//! up. [`answer`] puts the pieces together; [`models`] knows which models there are and has hooks asked, in the order of
//! the [`queue`]; [`listing`] asks an API which models it has. Nothing on the event path comes here.
//!
//! A conversation is kept as its events ([`record`], [`store`]). [`conversations`] has turns run, `turn` is the agent
//! loop, which knows the host by the trait [`tools::Tools`] alone; [`context`] makes of events what a model is sent, with
//! a [`fence`] around all data, and [`costs`] keeps exchanges within limits, those of a day by the `budget` that all turns share; [`charge`] says what each took.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod answer;
mod approvals;
mod budget;
pub mod charge;
pub mod completion;
pub mod context;
pub mod conversations;
pub mod costs;
pub mod fence;
pub mod listing;
pub mod model_setup;
pub mod models;
mod pieces;
pub mod queue;
pub mod record;
mod running;
pub mod store;
pub mod tools;
mod turn;
mod waits;
mod watch;

pub use completion::{Completion, complete};
pub use conversations::Conversations;
pub use models::Models;

/// What is asked and answered, as the contract has it.
pub use conductor_sandbox::bindings::imports::chat::*;
