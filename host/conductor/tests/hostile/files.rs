//! Files: nothing outside the granted folder is read, written or waited for.

use conductor_sandbox::limits;

use crate::lab::{Folder, Lab, Tools};

/// Tries a path, written as JSON, in a way.
fn tried(tools: &Tools, how: &str, path: &str) -> Result<String, String> {
    let path = serde_json::Value::String(path.into());
    tools.look(&format!(r#"{{"how": "{how}", "path": {path}}}"#)).map_err(|error| error.to_string())
}

#[test]
fn paths_that_lead_out_are_refused() {
    let lab = Lab::new();
    let outside = Folder::new();
    std::fs::write(outside.path().join("secret"), "outside").unwrap();
    std::fs::create_dir(lab.look.path().join("inner")).unwrap();
    let tools = lab.tools();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let absolute = outside.path().join("secret").to_str().unwrap().to_owned();
    for path in [
        "..".to_owned(),
        format!("../{name}/secret"),
        format!("inner/../../{name}/secret"),
        absolute.clone(),
        format!("/{absolute}"),
        format!("./{absolute}"),
        "/etc/passwd".into(),
        "/proc/self/environ".into(),
        "C:\\secret".into(),
        String::new(),
        "a\0b".into(),
        "x".repeat(10_000),
        "a/".repeat(2000),
    ] {
        for how in ["read", "names", "write", "remove"] {
            assert!(tried(&tools, how, &path).is_err(), "{how} {path:?}");
        }
    }
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"outside");
    // What only looks like a way out is a name, and stays inside: folders on its way are made there.
    for path in ["..\u{ff0f}secret", "~/.ssh/id_rsa", "\u{2024}\u{2024}/secret"] {
        for how in ["read", "names", "remove"] {
            assert!(tried(&tools, how, path).is_err(), "{how} {path:?}");
        }
        tried(&tools, "write", path).unwrap();
    }
    assert_eq!(std::fs::read_dir(lab.work.path()).unwrap().count(), 3);
    assert_eq!(std::fs::read(lab.work.path().join("~/.ssh/id_rsa")).unwrap(), b"hostile");
    tools.goes_on();
}

#[cfg(unix)]
#[test]
fn links_that_lead_out_are_refused() {
    let lab = Lab::new();
    let outside = Folder::new();
    std::fs::write(outside.path().join("secret"), "outside").unwrap();
    for folder in [&lab.look, &lab.work] {
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("../../../../../../etc", folder.path().join("etc")).unwrap();
        std::os::unix::fs::symlink("loop", folder.path().join("loop")).unwrap();
    }
    let tools = lab.tools();
    for path in ["file", "folder/secret", "etc/passwd", "loop", "loop/x"] {
        assert!(tried(&tools, "read", path).is_err(), "{path}");
        assert!(tried(&tools, "names", path).is_err(), "{path}");
    }
    for path in ["folder/secret", "folder/new", "etc/new"] {
        assert!(tried(&tools, "write", path).is_err(), "{path}");
        assert!(tried(&tools, "remove", path).is_err(), "{path}");
    }
    let _ = tried(&tools, "write", "file");
    let _ = tried(&tools, "remove", "file");
    assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"outside");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    tools.goes_on();
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_and_devices_are_not_waited_for() {
    let lab = Lab::new();
    let pipe = |folder: &Folder| {
        let path = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero")).unwrap();
    };
    pipe(&lab.look);
    pipe(&lab.work);
    let tools = lab.tools();
    for path in ["pipe", "zero"] {
        assert!(tried(&tools, "read", path).is_err(), "{path}");
    }
    assert!(tried(&tools, "write", "pipe").is_err());
    tools.goes_on();
}

#[test]
fn what_was_granted_to_read_is_not_written() {
    let lab = Lab::new();
    std::fs::write(lab.look.path().join("there"), "there").unwrap();
    let tools = lab.tools();
    assert_eq!(tried(&tools, "read", "there").unwrap(), "\"there\"");
    for path in ["there", "new"] {
        let error = tried(&tools, "write-ungranted", path).unwrap_err();
        assert!(error.contains("write"), "{error}");
    }
    assert_eq!(std::fs::read(lab.look.path().join("there")).unwrap(), b"there");
    assert_eq!(std::fs::read_dir(lab.look.path()).unwrap().count(), 1);
}

#[test]
fn another_purpose_opens_nothing() {
    let lab = Lab::new();
    let error = lab.tools().how("other-purpose").unwrap_err().to_string();
    assert!(error.contains("requests no files for the purpose \"another purpose\""), "{error}");
}

#[test]
fn a_folder_is_not_filled() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile-tools");
    let (one, other) = (Tools::new(feature.clone()), Tools::new(feature));
    let came = one.how("write-much").unwrap_err().to_string();
    assert!(came.contains("may add 64 MiB"), "{came}");
    let came = other.how("write-many").unwrap_err().to_string();
    assert!(came.contains("may add 1000 files"), "{came}");
    let files: Vec<u64> =
        std::fs::read_dir(lab.work.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).collect();
    assert_eq!((files.len() as u64, files.iter().sum::<u64>()), (limits::MAX_ADDED_FILES, limits::MAX_ADDED_BYTES));
    // What it removes makes room.
    assert!(tried(&one, "write", "new").is_err());
    tried(&one, "remove", "large0").unwrap();
    tried(&one, "write", "new").unwrap();
}

#[test]
fn a_file_is_at_most_4_mib() {
    let lab = Lab::new();
    let large = std::fs::File::create(lab.look.path().join("large")).unwrap();
    large.set_len(100 << 30).unwrap();
    let tools = lab.tools();
    assert!(tried(&tools, "read", "large").is_err());
    assert!(tools.how("write-large").is_err());
    assert_eq!(std::fs::read_dir(lab.work.path()).unwrap().count(), 0);
}
