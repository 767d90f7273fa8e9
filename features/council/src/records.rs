//! Records of the last verifications: what was asked and said, each part bound to the result by its digest.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deliberation::{Record, digests};

/// What the keys of records begin with.
pub const PREFIX: &str = "record/";
/// Records that are kept; the oldest gives way.
const MAX_RECORDS: usize = 8;
/// Bytes of one record, so that all of them fit into the store.
const MAX_RECORD: usize = 110 * 1024;
/// The part that holds the result.
const RESULT: &str = "result";

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
    /// The parts of the record that was asked for: `request`, `reviews`, `rankings`, `verdict`, `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<BTreeMap<String, Value>>,
    /// Whether each part is what the result was bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intact: Option<bool>,
    /// The parts that are not, or are missing.
    pub altered: Vec<String>,
}

/// A record as it is kept: its parts as text, because the digests are of the text.
#[derive(Debug, Serialize, Deserialize)]
struct Kept(BTreeMap<String, String>);

/// Keeps a record at `now` (milliseconds since 1970), and lets the oldest go.
///
/// # Errors
/// Why it can't be kept.
pub fn keep(shelf: &impl Shelf, now: u64, id: &str, mut record: Record, result: &str) -> Result<(), String> {
    record.insert(RESULT.to_owned(), result.to_owned());
    let bytes = serde_json::to_vec(&Kept(record)).map_err(|error| error.to_string())?;
    if bytes.len() > MAX_RECORD {
        return Err(format!("the record has {} bytes; at most {MAX_RECORD} are kept", bytes.len()));
    }
    let keys = shelf.keys()?;
    for key in keys.iter().take((keys.len() + 1).saturating_sub(MAX_RECORDS)) {
        shelf.delete(key)?;
    }
    shelf.set(&format!("{PREFIX}{now:014}-{id}"), &bytes)
}

/// The records that are kept, and the one that was asked for.
///
/// # Errors
/// There is no such record, or it can't be read.
pub fn find(shelf: &impl Shelf, id: Option<&str>) -> Result<Found, String> {
    let keys = shelf.keys()?;
    let id_of = |key: &String| key.rsplit_once('-').map_or(String::new(), |(_, id)| id.to_owned());
    let verifications: Vec<String> = keys.iter().rev().map(id_of).collect();
    let Some(id) = id else {
        return Ok(Found { verifications, ..Found::default() });
    };
    let Some(key) = keys.iter().find(|key| id_of(key) == id) else {
        let known = if verifications.is_empty() { "there are none".to_owned() } else { verifications.join(", ") };
        return Err(format!("verification_id = {id:?}: there is no such record; kept: {known}"));
    };
    let bytes = shelf.get(key)?.ok_or_else(|| format!("the record {id} is gone"))?;
    let Kept(mut parts) = serde_json::from_slice(&bytes).map_err(|error| format!("the record {id}: {error}"))?;
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    let shown: BTreeMap<String, Value> = parts.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    parts.remove(RESULT);
    let there = digests(&parts);
    let said: BTreeMap<String, String> = shown
        .get(RESULT)
        .and_then(|result| serde_json::from_value(result["transcript"].clone()).ok())
        .unwrap_or_default();
    let names: std::collections::BTreeSet<&String> = there.keys().chain(said.keys()).collect();
    let altered: Vec<String> = names.into_iter().filter(|name| there.get(*name) != said.get(*name)).cloned().collect();
    Ok(Found { verifications, record: Some(shown), intact: Some(altered.is_empty() && !said.is_empty()), altered })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

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

    fn record() -> Record {
        [("request", "{\"a\":1}"), ("reviews", "[]")].map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    }

    fn kept(shelf: &Memory, now: u64, id: &str) {
        let result = json!({ "verdict": "pass", "transcript": digests(&record()) });
        keep(shelf, now, id, record(), &result.to_string()).expect("it is kept");
    }

    /// CNC-7
    #[test]
    fn a_record_is_found_and_what_was_altered_in_it_is_named() {
        let shelf = Memory::default();
        kept(&shelf, 1, "aa");
        let found = find(&shelf, Some("aa")).expect("it is there");
        assert_eq!((found.intact, found.altered.len()), (Some(true), 0));
        assert_eq!(found.record.expect("a record")["request"], json!({ "a": 1 }));
        let key = shelf.keys().expect("keys").remove(0);
        let text = String::from_utf8(shelf.get(&key).expect("a record").expect("a record")).expect("text");
        shelf.set(&key, text.replace("1}", "2}").as_bytes()).expect("it is kept");
        let found = find(&shelf, Some("aa")).expect("it is there");
        assert_eq!((found.intact, found.altered), (Some(false), vec!["request".to_owned()]));
        assert!(find(&shelf, Some("bb")).expect_err("there is none").contains("kept: aa"));
    }

    #[test]
    fn the_last_ones_are_kept() {
        let shelf = Memory::default();
        (0..12).for_each(|number| kept(&shelf, number, &format!("id{number}")));
        let found = find(&shelf, None).expect("a list");
        assert_eq!((found.verifications.len(), found.verifications[0].as_str()), (MAX_RECORDS, "id11"));
    }
}
