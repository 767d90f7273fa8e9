//! A session bus of the tests' own, without any services yet.

use std::process::Command;

use crate::folder::Folder;
use crate::process::Process;

/// The programs that it takes.
pub const PROGRAMS: [&str; 2] = ["dbus-daemon", "gdbus"];

/// A running bus. Dropping it ends it, and with it the programs that need it.
#[derive(Debug)]
pub struct Bus {
    _daemon: Process,
    folder: Folder,
}

impl Bus {
    /// Starts it.
    pub fn start() -> Self {
        let folder = Folder::new("bus");
        let mut daemon = Command::new("dbus-daemon");
        daemon.args(["--session", "--nofork", "--nopidfile", "--print-address"]);
        daemon.arg(format!("--address=unix:path={}/bus", folder.path().display()));
        let daemon = Process::start(inside(&folder, &mut daemon));
        daemon.out.line("unix:");
        Self { _daemon: daemon, folder }
    }

    /// Has a program live in the session of this bus, at no display.
    pub fn around<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        inside(&self.folder, command)
    }

    /// The folder that the session's programs have for everything.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The result of calling a method of a service on the bus, as `gdbus` prints it, or its error.
    pub fn call(&self, to: &str, object: &str, method: &str, args: &[&str]) -> Result<String, String> {
        let mut call = Command::new("gdbus");
        call.args(["call", "--session", "--dest", to, "--object-path", object, "--method", method]).args(args);
        let done = self.around(&mut call).output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    /// The addresses on the bus that a process has.
    pub fn connections(&self, process: u32) -> Vec<String> {
        let names = self.call("org.freedesktop.DBus", "/", "org.freedesktop.DBus.ListNames", &[]).unwrap();
        let names = names.split('\'').filter(|name| name.starts_with(':'));
        names.filter(|name| self.owner(name) == Some(process)).map(str::to_owned).collect()
    }

    /// The process that has a name on the bus.
    pub fn owner(&self, name: &str) -> Option<u32> {
        let method = "org.freedesktop.DBus.GetConnectionUnixProcessID";
        let told = self.call("org.freedesktop.DBus", "/", method, &[name]).ok()?;
        told.strip_prefix("(uint32 ")?.strip_suffix(",)")?.parse().ok()
    }
}

fn inside<'c>(folder: &Folder, command: &'c mut Command) -> &'c mut Command {
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}/bus", folder.path().display()));
    command.envs(["HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME"].map(|name| (name, folder.path())))
}
