//! Homes of other versions: what an older one left is all there, and what a newer one left stays as it is.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_tests::home::Home;
use serde_json::Value;

/// A home as a program of that day left it; see `tests/homes/README.md`.
fn recorded(day: &str) -> Home {
    let home = Home::untouched();
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("homes").join(format!("{day}.tar.gz"));
    let unpacked = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(home.path()).status().unwrap();
    assert!(unpacked.success());
    home
}

fn done(home: &Home, arguments: &[&str]) -> String {
    let end = home.conductor(arguments);
    assert_eq!(end.code, Some(0), "{arguments:?}: {}", end.err);
    end.out
}

/// Each older layout of a record: the audit of layout 1 and 2, plans of 2 and 3, conversations of 1, packages of 1 and 2,
/// data of features under the names of then.
#[test]
fn a_home_of_an_older_version_is_started_and_nothing_is_lost() {
    for day in ["2026-11-22", "2026-11-27"] {
        let home = recorded(day);
        let changed = fs::read_to_string(home.config()).unwrap();
        assert!(changed.contains("note = 40"), "{day}: the plan that was applied then");
        let host = home.run();
        assert_eq!(host.status()["rules"], 2, "{day}");
        assert_eq!(fs::read_to_string(home.config()).unwrap(), changed, "{day}: a person wrote it");
        assert!(host.feature("hello").is_object(), "{day}: what was installed");
        let items: Value = serde_json::from_str(&done(&home, &["tool", "call", "work_items_list"])).unwrap();
        assert!(items.to_string().contains("Tune the snare"), "{day}: {items}");
        if day == "2026-11-27" {
            let conversations = home.json(&["chat", "list", "--json"]).to_string();
            assert!(conversations.contains("Which pads are free?"), "{conversations}");
            let said = done(&home, &["chat", "show", "1"]);
            assert!(said.contains("Pads 41 to 51 are free."), "{said}");
            let usage = home.json(&["models", "usage", "--json"]).to_string();
            assert!(usage.contains("120") && usage.contains("45"), "{usage}");
        }
        // What was done then can be taken back now, and the chain goes on.
        done(&home, &["undo", "--yes"]);
        assert!(!fs::read_to_string(home.config()).unwrap().contains("note = 40"), "{day}");
        host.stop();
        done(&home, &["audit", "verify"]);
        let rows = done(&home, &["audit", "export"]);
        assert!(rows.contains("conductor_create_mapping"), "{day}: what was called then is on record");
    }
}

/// All files of a home, but for the sockets.
fn files(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut files) = (vec![home.path().to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => drop(files.insert(entry.path(), fs::read(entry.path()).unwrap())),
                _ => {}
            }
        }
    }
    files
}

/// Has a record say that a version after this one wrote it.
fn make_newer(home: &Home, record: &str) {
    // Where SQLite keeps `user_version`, most significant byte first.
    const USER_VERSION: u64 = 60;
    let file = fs::File::options().write(true).open(home.path().join(record)).unwrap();
    file.write_all_at(&99_u32.to_be_bytes(), USER_VERSION).unwrap();
}

#[test]
fn a_home_of_a_newer_version_is_rejected_and_stays_as_it_is() {
    for record in ["audit.sqlite", "conversations.sqlite", "plans.sqlite", "features/installed.toml"] {
        let home = Home::new("");
        home.run().stop();
        match record {
            "features/installed.toml" => drop(home.write(record, "layout = 99\nnew = \"table\"\n")),
            _ => make_newer(&home, record),
        }
        let before = files(&home);
        let end = home.conductor(&["run"]);
        assert_eq!(end.code, Some(1), "{record}: {}", end.err);
        let home_is = format!("{}: a newer version of conductor was used in this home:", home.path().display());
        assert!(end.err.contains(&home_is), "{}", end.err);
        assert!(end.err.contains(&format!("{record} has layout 99 (this version knows up to ")), "{}", end.err);
        assert!(end.err.contains("Start the newer version, or use another home"), "{}", end.err);
        assert_eq!(files(&home), before, "{record}");
    }
}

#[test]
fn data_of_a_newer_version_is_refused_to_its_feature_and_stays_as_it_is() {
    let home = Home::new("");
    let host = home.run();
    done(&home, &["tool", "call", "work_item_create", r#"{"title":"Tune the snare"}"#]);
    host.stop();
    let data = "store/builtin_work-items.sqlite";
    make_newer(&home, data);
    let before = files(&home).remove(&home.path().join(data));
    let host = home.run();
    let why = host.feature("work-items")["refused"].to_string();
    assert!(why.contains("has layout 99, and this version of conductor knows up to 1; use the newer one"), "{why}");
    host.stop();
    assert_eq!(files(&home).remove(&home.path().join(data)), before);
}
