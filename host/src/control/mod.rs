//! Control: what happens between somebody who asks for something and the tool that does it.
//!
//! May import: `feature` (the registry and its actors). Nothing on the event path comes here.

pub mod gate;
