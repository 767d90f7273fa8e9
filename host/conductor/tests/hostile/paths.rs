//! Paths that lead to what is not a regular file: no thread blocks on it, and the host goes on.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use conductor::{Conductor, OpenError};
use conductor_config as config;
use conductor_host::host::Host;
use conductor_install::signature::TrustedSigners;
use conductor_install::store::PackageStore;
use conductor_package::{Package, PackageError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::lab::{Folder, path};

fn pipe(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

/// Does it on another thread, for it may hang.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    finished.recv_timeout(Duration::from_secs(60)).expect("it hangs")
}

fn unreadable(path: &Path) -> String {
    let path = path.to_owned();
    match in_time(move || Package::read(&path)) {
        Err(PackageError::Io { source, .. }) => source.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pipe_as_a_package() {
    let folder = Folder::new();
    let pipe = pipe(&folder, "f.wasm");
    assert!(unreadable(&pipe).contains("is a pipe"));
    let link = folder.path().join("link.wasm");
    symlink(&pipe, &link).unwrap();
    assert!(unreadable(&link).contains("is a pipe"));
}

#[test]
fn a_device_a_folder_a_socket_as_a_package() {
    let folder = Folder::new();
    assert!(unreadable(Path::new("/dev/zero")).contains("is a device"));
    assert!(unreadable(Path::new("/dev/tty")).contains("is a device"));
    assert!(unreadable(folder.path()).contains("is a folder"));
    let socket = folder.path().join("f.wasm");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert!(unreadable(&socket).contains("is a socket"));
}

#[test]
fn a_link_that_leads_to_itself() {
    let folder = Folder::new();
    let link = folder.path().join("f.wasm");
    symlink(&link, &link).unwrap();
    unreadable(&link);
}

/// As long as it is: a sparse file takes no room.
#[test]
fn a_package_of_a_hundred_gigabytes() {
    let folder = Folder::new();
    let file = folder.path().join("f.wasm");
    fs::File::create(&file).unwrap().set_len(100 << 30).unwrap();
    let error = in_time(move || Package::read(&file)).unwrap_err();
    assert!(matches!(error, PackageError::TooLarge { .. }), "{error}");
}

/// It grows while it is read, and another thing takes its place: there is always an answer, and a plain file's at that.
#[test]
fn a_package_that_is_swapped_and_grows_meanwhile() {
    let folder = Folder::new();
    let file = folder.path().join("f.wasm");
    let whole = fs::read(path("tests/hostile-tools")).unwrap();
    fs::write(&file, &whole).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let aside = folder.path().join("aside");
            while !done.load(Ordering::Relaxed) {
                let _ = fs::remove_file(&aside);
                mknodat(CWD, &aside, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
                fs::rename(&aside, &file).unwrap();
                fs::write(&aside, &whole).unwrap();
                fs::rename(&aside, &file).unwrap();
                let mut grows = fs::OpenOptions::new().append(true).open(&file).unwrap();
                grows.write_all(&[0; 4096]).unwrap();
            }
        });
        for _ in 0..200 {
            let file = file.clone();
            match in_time(move || Package::read(&file)) {
                Ok(package) => assert_eq!(package.bytes, whole),
                Err(PackageError::Io { source, .. }) => assert!(source.to_string().contains("a pipe"), "{source}"),
                Err(PackageError::Truncated { .. } | PackageError::Malformed { .. } | PackageError::NotWasm { .. }) => {
                }
                Err(other) => panic!("{other}"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// A running host that is given a pipe by `path`, and has pipes among its bundled features, answers and stops.
#[test]
fn a_host_with_pipes_for_packages_goes_on() {
    let (folder, bundled) = (Folder::new(), Folder::new());
    pipe(&folder, "f.wasm");
    pipe(&bundled, "g.wasm");
    fs::create_dir(bundled.path().join("h.wasm")).unwrap();
    let file = folder.path().join("config.toml").display().to_string();
    let features = bundled.path().to_owned();
    let (refused, rest) = in_time(move || {
        let loaded = config::parse("", &file).unwrap();
        let host = Host::builder().features(features).start(&loaded).unwrap();
        host.reload("[features.f]\npath = 'f.wasm'", &file).unwrap();
        let status = host.status();
        host.reload("", &file).unwrap();
        let rest = host.features().len();
        host.stop();
        (status.features, rest)
    });
    let said: Vec<_> = refused.iter().map(|feature| feature.refused.clone().unwrap_or_default()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].contains("is a pipe") && said[1].contains("is a pipe") && said[2].contains("is a folder"),
        "{said:?}"
    );
    assert_eq!(rest, 2);
}

#[test]
fn a_pipe_as_a_configuration() {
    let folder = Folder::new();
    let config = pipe(&folder, "config.toml");
    let home = folder.path().to_owned();
    let error = in_time(move || Conductor::builder().home(home).alone().start().map(drop).unwrap_err());
    assert!(matches!(&error, OpenError::File { source, .. } if source.to_string().contains("is a pipe")), "{error}");
    assert!(config.exists());
}

/// What the home itself holds is read in the same way.
#[test]
fn pipes_in_the_home() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path().join("features/blobs")).unwrap();
    pipe(&folder, "features/installed.toml");
    pipe(&folder, "trusted-signers.toml");
    let digest = "ab".repeat(32);
    pipe(&folder, &format!("features/blobs/{digest}.wasm"));
    let home = folder.path().to_owned();
    let (installed, blob, signers) = in_time(move || {
        let store = PackageStore::at(&home);
        let installed = store.installed().map(drop).unwrap_err().to_string();
        let blob = store.read(&digest).map(drop).unwrap_err().to_string();
        (installed, blob, TrustedSigners::read(&home).map(drop).unwrap_err().to_string())
    });
    for said in [installed, blob, signers] {
        assert!(said.contains("is a pipe"), "{said}");
    }
}
