//! Records of the last verifications: their transcripts, kept in the feature's own data.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::transcript::{self, Checked, Seal};

/// What the keys of records begin with.
pub const PREFIX: &str = "record/";
/// Records that are kept; the oldest gives way.
const MAX_RECORDS: usize = 8;
/// Bytes of one record, so that all of them fit into the store.
const MAX_RECORD: usize = 110 * 1024;

/// Where records are kept.
pub trait Shelf {
    /// The keys of all records, in their order.
    ///
    /// # Errors
    /// Why they can't be listed.
    fn keys(&self) -> Result<Vec<String>, String>;
    /// A record.
    ///
    /// # Errors
    /// Why it can't be read.
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String>;
    /// Puts a record.
    ///
    /// # Errors
    /// Why it can't be kept.
    fn set(&self, key: &str, value: &[u8]) -> Result<(), String>;
    /// Removes a record.
    ///
    /// # Errors
    /// Why it can't be removed.
    fn delete(&self, key: &str) -> Result<(), String>;
}

/// What an audit finds.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// The ids of the records that are kept, the newest first.
    pub verifications: Vec<String>,
    /// The files of the transcript that was asked for: `request.json`, `stage1.json`, `result.json`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<BTreeMap<String, Value>>,
    /// Whether each file is what the result was bound to, and the result what the host signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intact: Option<bool>,
    /// The files that are not, or are missing.
    pub altered: Vec<String>,
}

/// A record as it is kept: the files of the transcript as text, because the digests are of the text.
#[derive(Debug, Serialize, Deserialize)]
struct StoredRecord(BTreeMap<String, String>);

/// Keeps the files of a transcript at `now` (milliseconds since 1970), and lets the oldest go.
///
/// # Errors
/// Why they can't be kept.
pub fn keep(shelf: &impl Shelf, now: u64, id: &str, files: BTreeMap<String, String>) -> Result<(), String> {
    let bytes = serde_json::to_vec(&StoredRecord(files)).map_err(|error| error.to_string())?;
    if bytes.len() > MAX_RECORD {
        return Err(format!("the record has {} bytes; at most {MAX_RECORD} are kept", bytes.len()));
    }
    let keys = shelf.keys()?;
    for key in keys.iter().take((keys.len() + 1).saturating_sub(MAX_RECORDS)) {
        shelf.delete(key)?;
    }
    shelf.set(&format!("{PREFIX}{now:014}-{id}"), &bytes)
}

/// The ids of the records that are kept, the newest first.
fn ids(keys: &[String]) -> Vec<String> {
    keys.iter().rev().filter_map(|key| key.rsplit_once('-')).map(|(_, id)| id.to_owned()).collect()
}

/// The files of a record.
///
/// # Errors
/// There is no such record, or it can't be read.
pub fn files(shelf: &impl Shelf, place: &str, id: &str) -> Result<BTreeMap<String, String>, String> {
    let keys = shelf.keys()?;
    let Some(key) = keys.iter().find(|key| key.rsplit_once('-').is_some_and(|(_, of)| of == id)) else {
        let known = if keys.is_empty() { "there are none".to_owned() } else { ids(&keys).join(", ") };
        return Err(format!("{place} = {id:?}: there is no such record; kept: {known}"));
    };
    let bytes = shelf.get(key)?.ok_or_else(|| format!("the record {id} is gone"))?;
    let StoredRecord(files) = serde_json::from_slice(&bytes).map_err(|error| format!("the record {id}: {error}"))?;
    Ok(files)
}

/// The records that are kept, and the one that was asked for.
///
/// # Errors
/// There is no such record, or it can't be read.
pub fn find(shelf: &impl Shelf, id: Option<&str>, seal: &impl Seal) -> Result<Found, String> {
    let verifications = ids(&shelf.keys()?);
    let Some(id) = id else {
        return Ok(Found { verifications, ..Found::default() });
    };
    let files = files(shelf, "verification_id", id)?;
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    let record = files.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    let bytes = files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    let Checked { findings, .. } = transcript::check_files(&bytes, seal, None);
    let altered: Vec<String> = findings.into_iter().map(|one| one.file).collect();
    Ok(Found { verifications, record: Some(record), intact: Some(altered.is_empty()), altered })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;
    use crate::transcript::{Transcript, Validity};

    #[derive(Default)]
    struct Memory(RefCell<BTreeMap<String, Vec<u8>>>);

    impl Shelf for Memory {
        fn keys(&self) -> Result<Vec<String>, String> {
            Ok(self.0.borrow().keys().cloned().collect())
        }

        fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
            Ok(self.0.borrow().get(key).cloned())
        }

        fn set(&self, key: &str, value: &[u8]) -> Result<(), String> {
            self.0.borrow_mut().insert(key.to_owned(), value.to_owned());
            Ok(())
        }

        fn delete(&self, key: &str) -> Result<(), String> {
            self.0.borrow_mut().remove(key);
            Ok(())
        }
    }

    /// Anybody can sign with this one.
    struct Open;

    impl Seal for Open {
        fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
            Ok((vec![1], statement.as_bytes().to_owned()))
        }

        fn validity(&self, statement: &str, _: &[u8], value: &[u8]) -> Validity {
            if statement.as_bytes() == value { Validity::ThisHost } else { Validity::Invalid }
        }
    }

    fn kept(shelf: &Memory, now: u64, id: &str) {
        let mut transcript = Transcript::new(None, "2026-01-01T00:00:00Z", id);
        transcript.put("request.json", "{\"a\":1}".to_owned());
        let result = json!({ "verdict": "pass", "transcript": transcript.digests() });
        keep(shelf, now, id, transcript.finish(&result, &Open).files).expect("it is kept");
    }

    /// CNC-7, ADR-034 "Security Considerations": the audit trail
    #[test]
    fn a_record_is_found_and_what_was_altered_in_it_is_named() {
        let shelf = Memory::default();
        kept(&shelf, 1, "aa");
        let found = find(&shelf, Some("aa"), &Open).expect("it is there");
        assert_eq!((found.intact, found.altered.len()), (Some(true), 0));
        assert_eq!(found.record.expect("a record")["request.json"], json!({ "a": 1 }));
        let key = shelf.keys().expect("keys").remove(0);
        let text = String::from_utf8(shelf.get(&key).expect("a record").expect("a record")).expect("text");
        for (from, to, file) in [("1}", "2}", "request.json"), ("pass", "fail", "result.json")] {
            assert!(text.contains(from), "{text}");
            shelf.set(&key, text.replace(from, to).as_bytes()).expect("it is kept");
            let found = find(&shelf, Some("aa"), &Open).expect("it is there");
            assert_eq!((found.intact, found.altered), (Some(false), vec![file.to_owned()]));
        }
        assert!(find(&shelf, Some("bb"), &Open).expect_err("there is none").contains("kept: aa"));
    }

    #[test]
    fn the_last_ones_are_kept() {
        let shelf = Memory::default();
        (0..12).for_each(|number| kept(&shelf, number, &format!("id{number}")));
        let found = find(&shelf, None, &Open).expect("a list");
        assert_eq!((found.verifications.len(), found.verifications[0].as_str()), (MAX_RECORDS, "id11"));
    }
}
