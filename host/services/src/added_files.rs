//! The disk quota of a feature: what it has added to the folders that it was granted, in total.
//!
//! The disk is shared: a grant to write into a folder does not permit filling it.

use parking_lot::{Mutex, MutexGuard};

use crate::error::{ServiceError, shown};

/// Bytes that one feature may add to the folders that it was granted, all together, while it is
/// installed in a running host (64 MiB). What it removes or makes shorter is given back.
pub const MAX_ADDED_BYTES: u64 = 64 * 1024 * 1024;
/// Files that one feature may add to the folders that it was granted, as above.
pub const MAX_ADDED_FILES: u64 = 1000;

/// The account of one feature, as long as it is installed in a running host.
#[derive(Debug, Default)]
pub struct AddedFiles {
    sum: Mutex<Sum>,
}

/// What was added, less what was removed again; never below nothing.
#[derive(Debug, Default)]
pub struct Sum {
    bytes: u64,
    files: u64,
}

impl AddedFiles {
    /// To be held while a file is changed: the changes of one feature take turns, so that each is counted
    /// against what the one before left.
    pub(super) fn lock(&self) -> MutexGuard<'_, Sum> {
        self.sum.lock()
    }
}

impl Sum {
    /// The sum with a file of `length` bytes in the place of one of `before`, `None` if there is none.
    ///
    /// # Errors
    /// `Exhausted`, when that is too much.
    pub(super) fn with(&self, path: &str, before: Option<u64>, length: u64) -> Result<Self, ServiceError> {
        let added = Self {
            bytes: self.bytes.saturating_add(length).saturating_sub(before.unwrap_or(0)),
            files: self.files + u64::from(before.is_none()),
        };
        // What takes no more than there was is never refused.
        let more_bytes = length > before.unwrap_or(0);
        if more_bytes && added.bytes > MAX_ADDED_BYTES {
            return Err(ServiceError::Exhausted(format!(
                "{}: a feature may add {} MiB to its folders, and {} bytes of that are left; remove something first",
                shown(path),
                MAX_ADDED_BYTES / (1024 * 1024),
                MAX_ADDED_BYTES.saturating_sub(self.bytes)
            )));
        }
        if added.files > MAX_ADDED_FILES && before.is_none() {
            return Err(ServiceError::Exhausted(format!(
                "{}: a feature may add {MAX_ADDED_FILES} files to its folders; remove one first",
                shown(path)
            )));
        }
        Ok(added)
    }

    /// The sum without a file of `length` bytes that is gone.
    pub(super) fn without(&self, length: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(length), files: self.files.saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_or_removed_is_given_back() {
        let full = Sum { bytes: MAX_ADDED_BYTES, files: MAX_ADDED_FILES };
        assert!(matches!(full.with("a", None, 0), Err(ServiceError::Exhausted(text)) if text.contains("1000 files")));
        assert!(matches!(full.with("a", Some(1), 2), Err(ServiceError::Exhausted(text)) if text.contains("64 MiB")));
        let shorter = full.with("a", Some(10), 4).unwrap();
        assert_eq!((shorter.bytes, shorter.files), (MAX_ADDED_BYTES - 6, MAX_ADDED_FILES));
        let fewer = full.without(100);
        assert!(fewer.with("a", None, 100).is_ok() && fewer.with("a", None, 101).is_err());
        // What was there before the feature came makes no room for more than its share.
        let sum = Sum::default().without(u64::MAX);
        assert_eq!((sum.bytes, sum.files), (0, 0));
    }
}
