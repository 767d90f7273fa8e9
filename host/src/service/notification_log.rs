//! The notification log: what features told models, kept on disk.
//!
//! One JSON object a line in `<home>/notifications.jsonl`: `at` (milliseconds since 1970),
//! `feature`, `text`. When the file is full it becomes `notifications.old.jsonl` and a new one
//! begins, so that the log never takes more than twice [`MAX_BYTES`].

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::sinks::SinkMessage;

/// Bytes after which a new file is begun (1 MiB).
pub const MAX_BYTES: u64 = 1024 * 1024;

/// The log of one home. The file is made with the first notification.
#[derive(Debug)]
pub struct NotificationLog {
    path: PathBuf,
    open: Option<File>,
}

impl NotificationLog {
    /// The log in this home.
    pub fn new(home: &Path) -> Self {
        Self { path: home.join("notifications.jsonl"), open: None }
    }

    /// Appends a message; it is on disk when this returns.
    ///
    /// # Errors
    /// The file system's.
    pub fn append(&mut self, message: &SinkMessage) -> io::Result<()> {
        let file = match &mut self.open {
            Some(file) => file,
            None => self.open.insert(OpenOptions::new().create(true).append(true).open(&self.path)?),
        };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis());
        let line = serde_json::json!({ "at": at, "feature": message.feature.as_str(), "text": message.text });
        // One write, so that a line is whole or not there.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()?;
        if file.metadata()?.len() >= MAX_BYTES {
            self.open = None;
            std::fs::rename(&self.path, self.path.with_extension("old.jsonl"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sinks::SinkKind;
    use super::*;
    use crate::feature::FeatureId;

    #[test]
    fn notifications_are_kept_and_the_log_stays_bounded() {
        let home = std::env::temp_dir().join(format!("conductor-notifications-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let feature = FeatureId::try_from("project:lamp".to_owned()).unwrap();
        let message = SinkMessage { feature, kind: SinkKind::Notification, text: "x".repeat(4000) };
        let mut log = NotificationLog::new(&home);
        for _ in 0..600 {
            log.append(&message).unwrap();
        }
        let old = std::fs::read_to_string(home.join("notifications.old.jsonl")).unwrap();
        let new = std::fs::read_to_string(home.join("notifications.jsonl")).unwrap();
        assert!(old.len() as u64 >= MAX_BYTES && (new.len() as u64) < MAX_BYTES);
        let last: serde_json::Value = serde_json::from_str(new.lines().last().unwrap()).unwrap();
        assert_eq!(last["feature"], "project:lamp");
        std::fs::remove_dir_all(home).unwrap();
    }
}
