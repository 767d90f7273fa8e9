//! Stores through calls, stops, kills and a broken disk.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::thread;

use crate::store::*;

const MIB: u64 = 1024 * 1024;

/// A home that goes away with the test.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("conductor-store-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn stores(&self) -> FeatureStores {
        FeatureStores::open(&self.0).unwrap()
    }

    /// The file of the feature `lamp`.
    fn file(&self) -> PathBuf {
        self.0.join("store/lamp.sqlite")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lamp(stores: &FeatureStores, quota: u64) -> StoreHandle {
    let opened = stores.feature("lamp", quota).unwrap();
    assert_eq!(opened.set_aside, None);
    opened.handle
}

fn invalid<T: std::fmt::Debug>(result: Result<T, ServiceError>) -> String {
    match result {
        Err(ServiceError::Invalid(text)) => text,
        other => panic!("not invalid: {other:?}"),
    }
}

fn exhausted<T: std::fmt::Debug>(result: Result<T, ServiceError>) -> String {
    match result {
        Err(ServiceError::Exhausted(text)) => text,
        other => panic!("not exhausted: {other:?}"),
    }
}

#[test]
fn what_is_tried_out_forgets_and_is_in_nobodys_way() {
    let home = Home::new("forgetful");
    let serves = lamp(&home.stores(), MIB);
    serves.set("key", b"kept").unwrap();
    let tried = FeatureStores::in_memory();
    let (one, other) = (lamp(&tried, MIB), lamp(&tried, MIB));
    assert_eq!(one.get("key").unwrap(), None);
    one.set("key", b"tried").unwrap();
    assert_eq!(other.get("key").unwrap().as_deref(), Some(&b"tried"[..]));
    assert!(tried.feature("desk", 1).unwrap().handle.set("key", b"value").is_err(), "the quota holds");
    assert_eq!(serves.get("key").unwrap().as_deref(), Some(&b"kept"[..]));
    drop((one, other, tried));
    assert_eq!(lamp(&FeatureStores::in_memory(), MIB).get("key").unwrap(), None);
}

#[test]
fn what_is_set_is_there_for_all_handles_and_after_a_restart() {
    let home = Home::new("kept");
    let stores = home.stores();
    let (one, other) = (lamp(&stores, MIB), lamp(&stores, MIB));
    assert_eq!(one.get("scene").unwrap(), None);
    one.set("scene", b"blue").unwrap();
    one.set("empty", b"").unwrap();
    assert_eq!(other.get("scene").unwrap().as_deref(), Some(b"blue".as_slice()));
    assert_eq!(other.get("empty").unwrap().as_deref(), Some(b"".as_slice()));
    // Another feature has its own.
    let desk = stores.feature("desk-2", MIB).unwrap().handle;
    assert_eq!(desk.get("scene").unwrap(), None);

    drop((one, other, desk, stores));
    let again = lamp(&home.stores(), MIB);
    assert_eq!(again.get("scene").unwrap().as_deref(), Some(b"blue".as_slice()));
    assert!(again.delete("scene").unwrap());
    assert!(!again.delete("scene").unwrap());
    assert_eq!(again.get("scene").unwrap(), None);
}

#[test]
fn keys_and_values_have_bounds() {
    let home = Home::new("bounds");
    let store = lamp(&home.stores(), 8 * MIB);
    let (long, too_long) = ("ö".repeat(256), "x".repeat(513));
    store.set(&long, &vec![7; MAX_VALUE]).unwrap();
    assert_eq!(store.get(&long).unwrap().unwrap().len(), MAX_VALUE);
    store.set("with\0zero", b"1").unwrap();
    assert_eq!(store.keys("with\0", None).unwrap(), ["with\0zero"]);
    for key in ["", too_long.as_str()] {
        assert!(invalid(store.get(key)).contains("1 to 512"));
        assert!(invalid(store.set(key, b"")).contains("1 to 512"));
        assert!(invalid(store.swap(key, None, b"")).contains("1 to 512"));
        assert!(invalid(store.delete(key)).contains("1 to 512"));
    }
    assert!(invalid(store.set("k", &vec![0; MAX_VALUE + 1])).contains("1048576"));
    assert!(invalid(store.swap("k", None, &vec![0; MAX_VALUE + 1])).contains("1048576"));
    assert_eq!(store.get("k").unwrap(), None);
}

#[test]
fn the_quota_counts_keys_and_values_through_replacing_and_deleting() {
    let home = Home::new("quota");
    let stores = home.stores();
    let store = lamp(&stores, 20);
    store.set("ab", &[0; 8]).unwrap();
    assert_eq!(store.used().unwrap(), 10);
    store.set("cd", &[0; 8]).unwrap();
    assert_eq!(store.used().unwrap(), 20);
    let text = exhausted(store.set("e", b""));
    assert!(text.contains("20") && text.contains("21"), "{text}");
    // A larger value in a full store is refused and changes nothing; a smaller one makes room.
    exhausted(store.set("ab", &[1; 9]));
    exhausted(store.swap("ab", Some(&[0; 8]), &[1; 9]));
    assert_eq!(store.get("ab").unwrap().as_deref(), Some([0; 8].as_slice()));
    store.set("ab", &[1; 8]).unwrap();
    store.set("ab", &[1; 3]).unwrap();
    assert_eq!(store.used().unwrap(), 15);
    store.set("e", &[0; 4]).unwrap();
    assert_eq!(store.used().unwrap(), 20);
    assert!(store.delete("cd").unwrap());
    assert!(!store.delete("cd").unwrap());
    assert_eq!(store.used().unwrap(), 10);
    assert!(store.swap("cd", None, &[0; 8]).unwrap());
    assert_eq!(store.used().unwrap(), 20);

    // A lower quota keeps what is there: it can be read, shrunk and deleted, not grown.
    let lower = lamp(&stores, 12);
    exhausted(lower.set("f", b""));
    exhausted(lower.set("ab", &[1; 4]));
    lower.set("ab", &[1; 2]).unwrap();
    lower.set("ab", &[2; 2]).unwrap();
    assert!(lower.delete("cd").unwrap());
    lower.set("f", b"").unwrap();
    assert_eq!(lower.used().unwrap(), 10);
}

#[test]
fn a_quota_that_was_miscounted_on_disk_is_counted_anew() {
    let home = Home::new("miscounted");
    lamp(&home.stores(), MIB).set("key", b"value").unwrap();
    for wrong in ["UPDATE used SET bytes = -7000", "DELETE FROM used", "INSERT INTO used VALUES (5)"] {
        Connection::open(home.file()).unwrap().execute_batch(wrong).unwrap();
        assert_eq!(lamp(&home.stores(), MIB).used().unwrap(), 8);
    }
}

#[test]
fn swap_changes_only_what_is_as_expected() {
    let home = Home::new("swap");
    let store = lamp(&home.stores(), MIB);
    assert!(!store.swap("k", Some(b""), b"1").unwrap());
    assert!(store.swap("k", None, b"1").unwrap());
    assert!(!store.swap("k", None, b"2").unwrap());
    assert!(!store.swap("k", Some(b"2"), b"3").unwrap());
    assert!(!store.swap("k", Some(b"1\0"), b"3").unwrap());
    assert_eq!(store.get("k").unwrap().as_deref(), Some(b"1".as_slice()));
    assert!(store.swap("k", Some(b"1"), b"").unwrap());
    assert!(!store.swap("k", None, b"4").unwrap());
    assert!(store.swap("k", Some(b""), b"4").unwrap());
}

#[test]
fn four_threads_that_swap_lose_no_update() {
    let home = Home::new("race");
    let stores = home.stores();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let store = lamp(&stores, MIB);
                for _ in 0..50 {
                    loop {
                        let old = store.get("count").unwrap();
                        let count: u32 = old.as_deref().map_or(0, |old| str::from_utf8(old).unwrap().parse().unwrap());
                        if store.swap("count", old.as_deref(), (count + 1).to_string().as_bytes()).unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(lamp(&stores, MIB).get("count").unwrap().as_deref(), Some(b"200".as_slice()));
    assert_eq!(lamp(&stores, MIB).used().unwrap(), 8);
}

#[test]
fn keys_come_in_the_order_of_their_bytes_a_thousand_at_a_time() {
    let home = Home::new("keys");
    let store = lamp(&home.stores(), MIB);
    let mut all: Vec<String> =
        ["a", "B", "a/", "a/1", "a/10", "a/2", "a0", "ä", "\u{10ffff}", "\u{ffff}", "%", "_"].map(str::to_owned).into();
    for key in &all {
        store.set(key, b"").unwrap();
    }
    all.sort_unstable();
    assert_eq!(store.keys("", None).unwrap(), all);
    assert_eq!(store.keys("a/", None).unwrap(), ["a/", "a/1", "a/10", "a/2"]);
    assert_eq!(store.keys("a/", Some("a/1")).unwrap(), ["a/10", "a/2"]);
    // `after` need not be there, nor lie among what begins with the prefix.
    assert_eq!(store.keys("a/", Some("a/11")).unwrap(), ["a/2"]);
    assert_eq!(store.keys("a/", Some("")).unwrap().len(), 4);
    assert_eq!(store.keys("a/", Some("B")).unwrap().len(), 4);
    assert!(store.keys("a/", Some("b")).unwrap().is_empty());
    assert!(store.keys("a/2", Some("a/2")).unwrap().is_empty());
    // No pattern: only itself begins with it.
    assert_eq!(store.keys("%", None).unwrap(), ["%"]);
    assert_eq!(store.keys("\u{10ffff}", None).unwrap(), ["\u{10ffff}"]);
    assert!(store.keys(&"a".repeat(600), None).unwrap().is_empty());

    // Written at once, as a thousand syncs would take their time.
    let many: Vec<String> = (0..2345).map(|n| format!("many/{n:04}")).collect();
    store
        .with(|connection| {
            let change = connection.transaction()?;
            for key in &many {
                change.execute("INSERT INTO entries VALUES (?1, x'')", [key.as_bytes()])?;
            }
            change.commit()
        })
        .unwrap();
    let (mut read, mut sizes) = (Vec::<String>::new(), Vec::new());
    loop {
        let page = store.keys("many/", read.last().map(String::as_str)).unwrap();
        sizes.push(page.len());
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(sizes, [1000, 1000, 345, 0]);
    assert_eq!(read, many);
}

#[test]
fn only_names_of_features_become_files() {
    let home = Home::new("names");
    let stores = home.stores();
    let long = "x".repeat(193);
    for name in ["", ".", "..", "../lamp", "a/b", "a\\b", "a.b", "Lamp", "lämp", "a\0", "a b", "project:a", &long] {
        assert!(invalid(stores.feature(name, MIB)).contains("a-z, 0-9, - and _"), "{name:?}");
    }
    assert_eq!(fs::read_dir(home.0.join("store")).unwrap().count(), 0);
    stores.feature(&"x".repeat(192), MIB).unwrap();
}

#[test]
fn a_home_that_cannot_be_written_is_unavailable() {
    let home = Home::new("unwritable");
    let file = home.0.join("file");
    fs::write(&file, b"").unwrap();
    for home in [file.clone(), home.0.join("missing")] {
        assert!(matches!(FeatureStores::open(&home), Err(ServiceError::Unavailable(_))));
    }
    // A file in the folder's place, and a folder in the database's.
    fs::write(home.0.join("store"), b"").unwrap();
    assert!(matches!(FeatureStores::open(&home.0), Err(ServiceError::Unavailable(_))));
    fs::remove_file(home.0.join("store")).unwrap();
    fs::create_dir_all(home.file()).unwrap();
    let stores = home.stores();
    assert!(matches!(stores.feature("lamp", MIB), Err(ServiceError::Unavailable(_))));
    // That harms no other feature, and is over when the cause is.
    stores.feature("desk", MIB).unwrap();
    fs::remove_dir(home.file()).unwrap();
    lamp(&stores, MIB);
}

#[test]
fn a_store_that_another_host_has_open_is_unavailable() {
    let home = Home::new("two-hosts");
    let first = home.stores();
    let open = lamp(&first, MIB);
    open.set("k", b"v").unwrap();
    let second = home.stores();
    assert!(
        matches!(second.feature("lamp", MIB), Err(ServiceError::Unavailable(text)) if text.contains("another process"))
    );
    // It is closed with the last handle of the feature, not with the host.
    drop(open);
    assert_eq!(lamp(&second, MIB).get("k").unwrap().as_deref(), Some(b"v".as_slice()));
}

/// A store with some pages: small entries and large ones.
fn filled(home: &Home) -> Vec<u8> {
    let store = lamp(&home.stores(), 8 * MIB);
    for n in 0..20_u8 {
        store.set(&format!("key-{n}"), &vec![n; 1000 * usize::from(n)]).unwrap();
    }
    drop(store);
    fs::read(home.file()).unwrap()
}

/// What is beside the store's own file, by name.
fn set_aside_files(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.0.join("store")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".corrupt-")).collect()
}

#[test]
fn a_damaged_file_is_set_aside_and_a_fresh_one_begins() {
    let home = Home::new("damaged");
    let whole = filled(&home);
    type Damage = fn(&mut Vec<u8>);
    let damage: [(&str, Damage); 8] = [
        ("its first bytes", |bytes| bytes[..16].fill(0x55)),
        ("the schema's page", |bytes| bytes[100..600].fill(0xFF)),
        ("the second page", |bytes| bytes[4096..8192].fill(0xA5)),
        ("all but the first page", |bytes| bytes[4096..].fill(0)),
        ("cut within the header", |bytes| bytes.truncate(50)),
        ("cut within a page", |bytes| bytes.truncate(10_000)),
        ("cut after the first page", |bytes| bytes.truncate(4096)),
        ("no database at all", |bytes| *bytes = b"This is a shopping list.\n".repeat(100)),
    ];
    for (n, (what, damage)) in damage.into_iter().enumerate() {
        let mut bytes = whole.clone();
        damage(&mut bytes);
        fs::write(home.file(), &bytes).unwrap();
        let stores = home.stores();
        let opened = stores.feature("lamp", MIB).unwrap();
        let aside = opened.set_aside.unwrap_or_else(|| panic!("{what}: was not seen"));
        let name = aside.file_name().unwrap().to_str().unwrap();
        let seconds = name.strip_prefix("lamp.corrupt-").and_then(|rest| rest.strip_suffix(".sqlite")).unwrap();
        assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000, "{name}");
        assert_eq!(fs::read(&aside).unwrap(), bytes, "{what}: what is set aside is kept as it was");
        assert_eq!(set_aside_files(&home).len(), n + 1, "each has its own name");
        assert_eq!((opened.handle.used().unwrap(), opened.handle.keys("", None).unwrap()), (0, vec![]), "{what}");
        opened.handle.set("new", b"life").unwrap();
        // It is said once: who opens it next finds a whole store.
        lamp(&stores, MIB);
        drop((opened.handle, stores));
        assert_eq!(lamp(&home.stores(), MIB).get("new").unwrap().as_deref(), Some(b"life".as_slice()), "{what}");
    }
}

#[test]
fn whichever_byte_is_wrong_the_store_opens() {
    let home = Home::new("bytes");
    let whole = filled(&home);
    let offsets = (0..120).chain((120..whole.len()).step_by(whole.len() / 60));
    let mut seen = 0;
    for offset in offsets {
        let mut bytes = whole.clone();
        bytes[offset] ^= 0xFF;
        fs::write(home.file(), &bytes).unwrap();
        let opened = home.stores().feature("lamp", 8 * MIB).unwrap_or_else(|error| panic!("byte {offset}: {error}"));
        // Damage that looks like a value to SQLite stays; the store can be used in any case.
        seen += usize::from(opened.set_aside.is_some());
        let store = opened.handle;
        for key in store.keys("", None).unwrap() {
            store.get(&key).unwrap();
        }
        store.set("key-3", b"new").unwrap();
        assert_eq!(store.get("key-3").unwrap().as_deref(), Some(b"new".as_slice()), "byte {offset}");
    }
    assert!(seen >= 30, "only {seen} were seen");
}

#[test]
fn another_programs_database_is_set_aside() {
    let home = Home::new("foreign");
    fs::create_dir(home.0.join("store")).unwrap();
    for schema in [
        "CREATE TABLE songs (title TEXT)",
        "CREATE TABLE songs (title TEXT); PRAGMA user_version = 1",
        "CREATE TABLE entries (key BLOB); CREATE TABLE used (bytes INTEGER); PRAGMA user_version = 1",
        "PRAGMA user_version = 2",
    ] {
        Connection::open(home.file()).unwrap().execute_batch(schema).unwrap();
        let opened = home.stores().feature("lamp", MIB).unwrap();
        assert!(opened.set_aside.is_some(), "{schema}");
        opened.handle.set("k", b"v").unwrap();
        drop(opened);
        fs::remove_file(home.file()).unwrap();
    }
}

#[test]
fn a_store_of_a_newer_version_is_left_as_it_is() {
    let home = Home::new("newer");
    lamp(&home.stores(), MIB).set("k", b"v").unwrap();
    let set = |version: i64| {
        let file = Connection::open(home.file()).unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
    };
    set(2);
    let error = home.stores().feature("lamp", MIB).unwrap_err();
    assert!(matches!(&error, ServiceError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("has layout 2, and this version of conductor knows up to 1"), "{error}");
    assert_eq!(fs::read_dir(home.0.join("store")).unwrap().count(), 1, "nothing is set aside");
    set(1);
    assert_eq!(lamp(&home.stores(), MIB).get("k").unwrap().as_deref(), Some(b"v".as_slice()));
}

#[test]
fn damage_found_while_running_costs_the_store_its_content_and_nothing_else() {
    let home = Home::new("running");
    let bytes = filled(&home);
    let stores = home.stores();
    let (store, desk) = (lamp(&stores, MIB), stores.feature("desk", MIB).unwrap().handle);
    let mut file = fs::OpenOptions::new().write(true).open(home.file()).unwrap();
    file.write_all(&bytes[..4096]).unwrap();
    file.write_all(&vec![0xA5; bytes.len() - 4096]).unwrap();
    drop(file);
    // What was checked at the opening may still be in memory; drop it.
    store.with(|connection| connection.execute_batch("PRAGMA shrink_memory")).unwrap();
    for _ in 0..2 {
        assert!(matches!(store.get("key-19"), Err(ServiceError::Failed(text)) if text.contains("damaged")));
    }
    desk.set("still", b"here").unwrap();
    // Opened again, all handles have the new one.
    let opened = stores.feature("lamp", MIB).unwrap();
    assert!(opened.set_aside.is_some());
    opened.handle.set("k", b"v").unwrap();
    assert_eq!(store.get("k").unwrap().as_deref(), Some(b"v".as_slice()));
}

/// This test runs itself in a second process, as the writer that is killed.
#[test]
fn what_was_acknowledged_survives_a_kill() {
    const ROLE: &str = "CONDUCTOR_TEST_STORE_WRITER";
    if let Some(home) = std::env::var_os(ROLE) {
        let store = lamp(&FeatureStores::open(Path::new(&home)).unwrap(), 64 * MIB);
        println!();
        for n in 0.. {
            store.set(&format!("key-{n}"), &vec![0xAB; n % 5000]).unwrap();
            println!("set {n}");
        }
    }
    let home = Home::new("kill");
    let mut set = 0;
    for round in 1..=5 {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::tests::what_was_acknowledged_survives_a_kill", "--nocapture"])
            .env(ROLE, &home.0)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut number =
            || lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("set ")?.parse::<usize>().ok());
        // Killed at work, each time a bit later.
        while number().expect("the writer ended by itself") < round * 70 {}
        writer.kill().unwrap();
        writer.wait().unwrap();
        set = set.max(round * 70);
        while let Some(n) = number() {
            set = set.max(n);
        }
        let store = lamp(&home.stores(), 64 * MIB);
        let mut bytes = 0;
        for n in 0..=set {
            let key = format!("key-{n}");
            assert_eq!(store.get(&key).unwrap(), Some(vec![0xAB; n % 5000]), "{key} in round {round}");
            bytes += key.len() + n % 5000;
        }
        // At most the one that was set, but not yet acknowledged, is there beyond.
        let keys = store.keys("", None).unwrap().len();
        assert!(keys == set + 1 || keys == set + 2, "{keys} keys, {} acknowledged", set + 1);
        if keys == set + 2 {
            bytes += format!("key-{}", set + 1).len() + (set + 1) % 5000;
            // The next round may not come as far; it is there all the same.
            set += 1;
        }
        assert_eq!(store.used().unwrap(), bytes as u64);
    }
}
