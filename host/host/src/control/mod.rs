//! Control: the gate to tools with rate limits and confirmations, plans, and the lock.
//!
//! [`gate`] is the way to a tool, for every caller, within the policy, with a [`confirmation`] where a person has to
//! agree; [`lock`] lets only the owner change anything; [`plan`] is the way to another configuration.
//! Nothing on the event path comes here.

pub mod confirmation;
pub mod gate;
pub mod lock;
pub mod plan;
pub mod trouble;
