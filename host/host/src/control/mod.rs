//! Control: what happens between somebody who asks for something and the thing done.
//!
//! [`gate`] is the way to a tool, for every caller, within its [`limit`], with a [`confirmation`] where a person has to
//! agree; [`lock`] keeps everybody but a person from changing anything; [`plan`] is the way to another configuration.
//! Nothing on the event path comes here.

pub mod confirmation;
pub mod gate;
pub mod limit;
pub mod lock;
pub mod plan;
pub mod trouble;
