//! The store: its quota holds, and damage costs what was in it, not the host.

use crate::lab::Lab;

#[test]
fn a_store_stays_within_its_quota() {
    let lab = Lab::new();
    let tools = lab.tools();
    let error = tools.how("store-fill").unwrap_err().to_string();
    assert!(error.contains("but its quota is 65536"), "{error}");
    let error = tools.how("store-large").unwrap_err().to_string();
    assert!(error.contains("a value may have at most"), "{error}");
    let size: u64 = walk(lab.home.path());
    assert!(size < 2 << 20, "{size} bytes on disk for 64 KiB");
    tools.goes_on();
}

/// Bytes of all files below.
fn walk(folder: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { entry.metadata().unwrap().len() }).sum()
}

#[test]
fn keys_that_are_none_are_refused() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.refused(r#"{"how": "store-key", "long": true}"#).contains("512"));
    assert!(tools.look(r#"{"how": "store-key", "key": ""}"#).is_err());
    // What is SQL elsewhere is a key here, and so is a NUL.
    for key in ["'; DROP TABLE entries; --", "a\\u0000b", "../../other"] {
        tools.look(&format!(r#"{{"how": "store-key", "key": "{key}"}}"#)).unwrap();
        let found = tools.look(&format!(r#"{{"how": "store-get", "key": "{key}"}}"#)).unwrap();
        assert_eq!(found, "[49]", "{key}");
    }
}

#[test]
fn a_store_that_was_damaged_begins_anew() {
    let lab = Lab::new();
    let file = lab.home.path().join("store/project_hostile-tools.sqlite");
    std::fs::write(&file, [0xa5; 9000]).unwrap();
    let tools = lab.tools();
    tools.look(r#"{"how": "store-key", "key": "a"}"#).unwrap();
    assert_eq!(tools.look(r#"{"how": "store-get", "key": "a"}"#).unwrap(), "[49]");
    assert!(std::fs::read_dir(file.parent().unwrap()).unwrap().count() > 1, "what was there is kept aside");
}
