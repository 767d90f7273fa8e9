//! What the product's source takes from `std::sync`, as loom has it.

pub use loom::sync::atomic::{AtomicBool, Ordering, fence};
pub use loom::sync::{Mutex, MutexGuard};
pub use std::sync::TryLockError;
