//! A desktop's keyring of our own: a session bus, and GNOME's keyring on it, unlocked with a password of no worth.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::process::{Process, there_is};
use crate::wait;

/// A session bus with a keyring.
#[derive(Debug)]
pub struct Keyring {
    folder: PathBuf,
    _bus: Process,
}

impl Keyring {
    /// Starts a bus and an unlocked keyring; none, with a line that says why, where the programs are not there.
    pub fn start() -> Option<Self> {
        for program in ["dbus-daemon", "gnome-keyring-daemon", "secret-tool", "gdbus"] {
            if !there_is(program) {
                println!("skipped: there is no {program} here; `cargo xtask setup` installs it");
                return None;
            }
        }
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("cond-keyring-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--nopidfile", "--print-address"]);
        bus.arg(format!("--address=unix:path={}/bus", folder.display()));
        let bus = Process::start(Self::inside(&folder, &mut bus));
        bus.out.line("unix:");
        let keyring = Self { folder, _bus: bus };
        keyring.unlock();
        Some(keyring)
    }

    /// Has a program look for its desktop here.
    pub fn around<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        Self::inside(&self.folder, command)
    }

    /// What `secret-tool`, which is not ours, finds under an id.
    pub fn kept(&self, id: &str) -> String {
        let mut tool = Command::new("secret-tool");
        let found = self.around(tool.args(["lookup", "service", "conductor", "username", id])).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    }

    /// Locks it, as a desktop does when its person goes away. Nobody is there to be asked for the password.
    pub fn lock(&self) {
        let mut call = Command::new("gdbus");
        call.args(["call", "--session", "--dest", "org.freedesktop.secrets"]);
        call.args(["--object-path", "/org/freedesktop/secrets"]);
        call.args(["--method", "org.freedesktop.Secret.Service.Lock", "['/org/freedesktop/secrets/collection/login']"]);
        let done = self.around(&mut call).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Starts the keyring with its password, in the place of the one that runs.
    pub fn unlock(&self) {
        let before = self.owner();
        let mut daemon = Command::new("gnome-keyring-daemon");
        daemon.args(["--replace", "--unlock", "--components=secrets"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut daemon = self.around(daemon.stderr(Stdio::null())).spawn().unwrap();
        daemon.stdin.take().unwrap().write_all(b"of no worth").unwrap();
        assert!(daemon.wait().unwrap().success(), "the keyring can't be started");
        let another = || self.owner().filter(|owner| before != Some(*owner));
        wait::until(another, || "nobody serves org.freedesktop.secrets".into());
    }

    /// The process that serves secrets.
    fn owner(&self) -> Option<u32> {
        let mut call = Command::new("gdbus");
        call.args(["call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/", "--method"]);
        call.args(["org.freedesktop.DBus.GetConnectionUnixProcessID", "org.freedesktop.secrets"]);
        let told = String::from_utf8(self.around(&mut call).output().unwrap().stdout).unwrap();
        told.trim().strip_prefix("(uint32 ")?.strip_suffix(",)")?.parse().ok()
    }

    fn inside<'c>(folder: &std::path::Path, command: &'c mut Command) -> &'c mut Command {
        command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}/bus", folder.display()));
        command.envs(["HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"].map(|name| (name, folder)))
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        // It goes by itself when its bus does; sooner is better, before its files are removed.
        if let Some(keyring) = self.owner() {
            let _ = Command::new("kill").arg(keyring.to_string()).status();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
