//! Who follows a clock.

use std::fmt;
use std::sync::Arc;

use crate::{Change, MusicalTime};

/// Gets the time of a clock whenever it has changed, pulse by pulse, and what has changed. Clones are the same follower, and any two count as equal: who follows a
/// clock makes no other clock of it.
#[derive(Clone)]
pub struct Follower(Arc<dyn Fn(MusicalTime, Change) + Send + Sync>);

impl Follower {
    /// A follower; `follow` takes no lock and allocates nothing.
    pub fn new(follow: impl Fn(MusicalTime, Change) + Send + Sync + 'static) -> Self {
        Self(Arc::new(follow))
    }

    /// Tells it the time.
    pub fn follow(&self, time: MusicalTime, change: Change) {
        (self.0)(time, change);
    }
}

impl PartialEq for Follower {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Follower")
    }
}
