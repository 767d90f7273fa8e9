//! What [`strand`](crate::strand) takes from `std::sync`, so that a model checker can put its own in place of it.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, TryLockError};
