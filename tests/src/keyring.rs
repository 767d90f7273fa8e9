//! A desktop's keyring of our own: GNOME's on a session bus, unlocked with a password of no worth.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::bus::{self, Bus};
use crate::process::are_there;
use crate::wait;

/// The bus name of the Secret Service.
const SECRETS: &str = "org.freedesktop.secrets";

/// A session bus with a keyring.
#[derive(Debug)]
pub struct Keyring {
    bus: Bus,
}

impl Keyring {
    /// Starts a bus and an unlocked keyring; none, with a line that says why, where the programs are not there.
    pub fn start() -> Option<Self> {
        if !are_there(&bus::PROGRAMS) || !are_there(&["gnome-keyring-daemon", "secret-tool"]) {
            return None;
        }
        let keyring = Self { bus: Bus::start() };
        keyring.unlock();
        Some(keyring)
    }

    /// Has a program look for its desktop here.
    pub fn around<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        self.bus.around(command)
    }

    /// What `secret-tool`, which is not ours, finds under an id.
    pub fn kept(&self, id: &str) -> String {
        let mut tool = Command::new("secret-tool");
        let found = self.around(tool.args(["lookup", "service", "conductor", "username", id])).output().unwrap();
        String::from_utf8(found.stdout).unwrap()
    }

    /// Locks it, as a desktop does when its person goes away. No one answers the prompt for the password.
    pub fn lock(&self) {
        let collections = "['/org/freedesktop/secrets/collection/login']";
        let method = "org.freedesktop.Secret.Service.Lock";
        self.bus.call(SECRETS, "/org/freedesktop/secrets", method, &[collections]).unwrap();
    }

    /// Starts the keyring with its password, in the place of the one that runs.
    pub fn unlock(&self) {
        let before = self.bus.owner(SECRETS);
        let mut daemon = Command::new("gnome-keyring-daemon");
        daemon.args(["--replace", "--unlock", "--components=secrets"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut daemon = self.around(daemon.stderr(Stdio::null())).spawn().unwrap();
        daemon.stdin.take().unwrap().write_all(b"of no worth").unwrap();
        assert!(daemon.wait().unwrap().success(), "the keyring can't be started");
        let another = || self.bus.owner(SECRETS).filter(|owner| before != Some(*owner));
        wait::until(another, || format!("no service has the name {SECRETS}"));
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        // It goes by itself when its bus does; sooner is better, before its files are removed.
        if let Some(keyring) = self.bus.owner(SECRETS) {
            let _ = Command::new("kill").arg(keyring.to_string()).status();
        }
    }
}
