//! A Wayland desktop of our own: a compositor without a screen (sway), and windows (foot) that say what they are
//! called.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::{Process, there_is};
use crate::wait;

/// The user who sway runs as where the tests run as root, which it refuses to: nobody.
const NOBODY: u32 = 65_534;

/// A running compositor.
#[derive(Debug)]
pub struct Compositor {
    folder: PathBuf,
    display: PathBuf,
    control: PathBuf,
    _sway: Process,
}

impl Compositor {
    /// Starts it; none, with a line that says why, where there is no sway or no foot.
    pub fn start() -> Option<Self> {
        for program in ["sway", "swaymsg", "foot", "setpriv"] {
            if !there_is(program) {
                println!("skipped: there is no {program} here; `cargo xtask setup` installs it");
                return None;
            }
        }
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cond-sway-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config"), "output HEADLESS-1 resolution 800x600\nxwayland disable\n").unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let mut sway = Command::new("sway");
        if fs::metadata(&folder).unwrap().uid() == 0 {
            std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
            let nobody = NOBODY.to_string();
            sway = Command::new("setpriv");
            sway.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups", "sway"]);
        }
        sway.arg("-c").arg(folder.join("config")).env("XDG_RUNTIME_DIR", &folder).env("HOME", &folder);
        // No screen, no keyboard, no graphics card.
        sway.envs([("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")]);
        let sway = Process::start(sway.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY"));
        let socket = |is_it: fn(&str) -> bool| {
            let found = || {
                let mut files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
                files.find(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(is_it))
            };
            wait::until(found, || format!("sway made no socket:\n{}", sway.err.all().join("\n"))).0
        };
        let display = socket(|name| name.starts_with("wayland-") && !name.ends_with(".lock"));
        let control = socket(|name| name.starts_with("sway-ipc."));
        Some(Self { display, control, folder, _sway: sway })
    }

    /// What `WAYLAND_DISPLAY` is for it.
    pub fn display(&self) -> &Path {
        &self.display
    }

    /// Opens a window with this application id and title, which comes to the front. It closes when it is dropped.
    pub fn window(&self, application: &str, title: &str) -> Process {
        let mut foot = Command::new("foot");
        foot.args(["--app-id", application, "--title", title, "sleep", "infinity"]);
        Process::start(foot.env("WAYLAND_DISPLAY", &self.display).env("XDG_RUNTIME_DIR", &self.folder))
    }

    /// Brings a window to the front.
    pub fn focus(&self, application: &str) {
        let asked = format!("[app_id=\"^{application}$\"] focus");
        let done = Command::new("swaymsg").arg("-s").arg(&self.control).arg(asked).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        // Best effort: what is left behind is small.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
