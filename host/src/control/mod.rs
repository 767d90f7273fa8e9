//! Control: what happens between somebody who asks for something and the thing done.
//!
//! [`gate`] is the way to a tool; [`plan`] is the way to another configuration.
//!
//! May import: `feature` (the registry and its actors), but for `plan`, which says what it may. Nothing
//! on the event path comes here.

pub mod gate;
pub mod plan;
