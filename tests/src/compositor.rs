//! Wayland desktops of our own, without a screen: sway's, which tells any client which window is in front, and KDE's,
//! which tells it to scripts of its own.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bus::{self, Bus};
use crate::folder::Folder;
use crate::process::{Process, are_there, path_of};
use crate::wait;

/// The user who sway runs as if the tests run as root, which it refuses to: `nobody`.
const NOBODY: u32 = 65_534;

/// A running sway.
#[derive(Debug)]
pub struct Sway {
    display: PathBuf,
    control: PathBuf,
    _sway: Process,
    _folder: Folder,
}

impl Sway {
    /// Starts it; none, with a line that says why, where there is no sway.
    pub fn start() -> Option<Self> {
        if !are_there(&["sway", "swaymsg", "setpriv"]) {
            return None;
        }
        let folder = Folder::new("sway");
        let config = folder.path().join("config");
        fs::write(&config, "output HEADLESS-1 resolution 800x600\nxwayland disable\n").unwrap();
        let mut sway = Command::new("sway");
        if fs::metadata(folder.path()).unwrap().uid() == 0 {
            std::os::unix::fs::chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
            let nobody = NOBODY.to_string();
            sway = Command::new("setpriv");
            sway.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups", "sway"]);
        }
        sway.arg("-c").arg(config).env("XDG_RUNTIME_DIR", folder.path()).env("HOME", folder.path());
        // No screen, no keyboard, no graphics card.
        sway.envs([("WLR_BACKENDS", "headless"), ("WLR_LIBINPUT_NO_DEVICES", "1"), ("WLR_RENDERER", "pixman")]);
        let sway = Process::start(sway.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY"));
        let display = socket(&folder, &sway, |name| name.starts_with("wayland-"));
        let control = socket(&folder, &sway, |name| name.starts_with("sway-ipc."));
        Some(Self { display, control, _sway: sway, _folder: folder })
    }

    /// What `WAYLAND_DISPLAY` is for it.
    pub fn display(&self) -> &Path {
        &self.display
    }

    /// Brings the window of an application to the front.
    pub fn focus(&self, application: &str) {
        let asked = format!("[app_id=\"^{application}$\"] focus");
        let done = Command::new("swaymsg").arg("-s").arg(&self.control).arg(asked).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    }
}

/// A running KWin on a session bus.
#[derive(Debug)]
pub struct KWin {
    display: PathBuf,
    kwin: Process,
    bus: Bus,
}

impl KWin {
    /// Starts it; none, with a line that says why, where there is no KWin.
    pub fn start() -> Option<Self> {
        if !are_there(&bus::PROGRAMS) || !are_there(&["kwin_wayland"]) {
            return None;
        }
        let bus = Bus::start();
        // Where it is installed it may raise its own priority, and does not start if that is not permitted. A copy may not.
        fs::copy(path_of("kwin_wayland").unwrap(), program(&bus)).unwrap();
        let kwin = run_on(&bus);
        let display = socket(bus.folder(), &kwin, |name| name.starts_with("wayland-"));
        Some(Self { display, kwin, bus })
    }

    /// What `WAYLAND_DISPLAY` is for it.
    pub fn display(&self) -> &Path {
        &self.display
    }

    /// Its session's bus.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Whether a script with this name is there.
    pub fn has_script(&self, name: &str) -> bool {
        let asked = self.bus.call("org.kde.KWin", "/Scripting", "org.kde.kwin.Scripting.isScriptLoaded", &[name]);
        asked.unwrap() == "(true,)"
    }

    /// Ends it, as a crash would. The bus goes on.
    pub fn kill(&mut self) {
        self.kwin.kill();
    }

    /// Starts it again after that, at the same display.
    pub fn start_again(&mut self) {
        self.kwin = run_on(&self.bus);
    }
}

fn program(bus: &Bus) -> PathBuf {
    bus.folder().path().join("kwin_wayland")
}

/// A KWin without a screen, once it is on the bus.
fn run_on(bus: &Bus) -> Process {
    let mut kwin = Command::new(program(bus));
    kwin.args(["--virtual", "--no-lockscreen", "--no-global-shortcuts", "--socket", "wayland-kwin"]);
    // Without a graphics card.
    let kwin = Process::start(bus.around(&mut kwin).env("KWIN_COMPOSE", "Q"));
    wait::until(|| bus.owner("org.kde.KWin"), || format!("KWin is not on the bus:\n{}", kwin.err.text()));
    kwin
}

/// The socket in a folder that a compositor has made, or makes in a moment.
fn socket(folder: &Folder, compositor: &Process, is_it: fn(&str) -> bool) -> PathBuf {
    let found = || {
        let mut files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let named = |name: &str| is_it(name) && !name.ends_with(".lock");
        files.find(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(named))
    };
    wait::until(found, || format!("the compositor made no socket:\n{}", compositor.err.all().join("\n"))).0
}
