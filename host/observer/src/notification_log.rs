//! The notification logs: notifications of features for models, kept on disk with rotation, one log a feature.
//!
//! One JSON object a line in `<home>/notifications/<feature>.jsonl`, named by the whole id with `_` for `:`: `at`
//! (milliseconds since 1970), `feature`, `text`. When the file is full it becomes `<feature>.old.jsonl` and a new one
//! begins, so that a log never takes more than twice [`MAX_BYTES`], and a verbose feature displaces only its own
//! notifications.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sink_message::SinkMessage;

/// Bytes after which a new file is begun (1 MiB).
pub const MAX_BYTES: u64 = 1024 * 1024;

/// The logs of one home. Folder and files are made with the first notification.
#[derive(Debug)]
pub struct NotificationLog {
    folder: PathBuf,
}

impl NotificationLog {
    /// The logs in this home.
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join("notifications") }
    }

    /// Appends a message to its feature's log; it is on disk when this returns.
    ///
    /// # Errors
    /// The file system's.
    pub fn append(&self, message: &SinkMessage) -> io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("{}.jsonl", message.feature.file_stem()));
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis());
        let line = serde_json::json!({ "at": at, "feature": message.feature.as_str(), "text": message.text });
        // One write, so that a line is whole or not there.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()?;
        if file.metadata()?.len() >= MAX_BYTES {
            std::fs::rename(&path, path.with_extension("old.jsonl"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink_message::SinkKind;
    use conductor_package::FeatureId;

    #[test]
    fn notifications_are_kept_and_one_feature_pushes_out_only_its_own() {
        let home = std::env::temp_dir().join(format!("conductor-notifications-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let message = |feature: &str, text: String| SinkMessage {
            feature: FeatureId::try_from(feature.to_owned()).unwrap(),
            kind: SinkKind::Notification,
            text,
        };
        let log = NotificationLog::new(&home);
        log.append(&message("project:desk", "the one word".into())).unwrap();
        let flood = message("project:lamp", "x".repeat(4000));
        for _ in 0..600 {
            log.append(&flood).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(home.join("notifications").join(name)).unwrap();
        let (old, new) = (read("project_lamp.old.jsonl"), read("project_lamp.jsonl"));
        assert!(old.len() as u64 >= MAX_BYTES && (new.len() as u64) < MAX_BYTES);
        let last: serde_json::Value = serde_json::from_str(new.lines().last().unwrap()).unwrap();
        assert_eq!(last["feature"], "project:lamp");
        assert!(read("project_desk.jsonl").contains("the one word"));
        std::fs::remove_dir_all(home).unwrap();
    }
}
