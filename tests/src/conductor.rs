//! The program under test: commands that end, and a host that runs.

use std::env;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::home::Home;
use crate::process::{End, Lines, Process};
use crate::wait;

fn told(variable: &str) -> PathBuf {
    match env::var_os(variable) {
        Some(path) => path.into(),
        None => panic!("{variable} says nothing: `cargo xtask test` builds what is tested, and sets it"),
    }
}

/// The folder of the components that are tested with: the bundled features, and in `tests` the tests' own.
pub fn components() -> PathBuf {
    told("CONDUCTOR_FEATURES")
}

/// A guest of the tests' own: `hello` or `hostile`.
pub fn guest(name: &str) -> PathBuf {
    components().join("tests").join(format!("{name}.wasm"))
}

/// `conductor --home <home> <arguments>`, not started yet.
pub fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(told("CONDUCTOR_BIN"));
    command.arg("--home").arg(home).args(arguments).env("CONDUCTOR_FEATURES", components());
    command.env_remove("CONDUCTOR_HOME").env_remove("CONDUCTOR_LOG").env("NO_COLOR", "1");
    command
}

impl Home {
    /// Runs a command of conductor to its end.
    pub fn conductor(&self, arguments: &[&str]) -> End {
        Process::start(&mut command(self.path(), arguments)).wait().0
    }

    /// What a command of conductor prints as JSON. It has to succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let end = self.conductor(arguments);
        assert_eq!(end.code, Some(0), "conductor {arguments:?}: {}", end.err);
        serde_json::from_str(&end.out).unwrap_or_else(|error| panic!("{error} in\n{}", end.out))
    }

    /// `conductor run`, as soon as it is ready.
    pub fn run(&self) -> Host {
        self.run_with(&[])
    }

    /// The same with more arguments.
    pub fn run_with(&self, arguments: &[&str]) -> Host {
        let arguments: Vec<_> = std::iter::once("run").chain(arguments.iter().copied()).collect();
        Host::ready(&mut command(self.path(), &arguments), self.socket())
    }
}

/// A host that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Host {
    process: Process,
    socket: PathBuf,
}

impl Host {
    /// Starts a host by this command, and waits until it says that it is ready.
    pub fn ready(command: &mut Command, socket: PathBuf) -> Self {
        let process = Process::start(command);
        process.err.line("ready: ");
        Self { process, socket }
    }

    /// What it says.
    pub fn log(&self) -> &Lines {
        &self.process.err
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Ends it by SIGTERM, and returns its end with the time that it took.
    pub fn stop(self) -> (End, Duration) {
        self.process.signal("TERM");
        self.process.wait()
    }

    /// Waits until it ends by itself, and returns its end with the time that it took.
    pub fn end(self) -> (End, Duration) {
        self.process.wait()
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// How it is, as its API says.
    pub fn status(&self) -> Value {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nhost: conductor\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_str(body).unwrap()
    }

    /// Waits until its status is as `is` wants it, and returns the status and the time that it took.
    pub fn status_when(&self, mut is: impl FnMut(&Value) -> bool) -> (Value, Duration) {
        wait::until(|| Some(self.status()).filter(&mut is), || format!("{:#}", self.status()))
    }

    /// What its status says of a feature.
    pub fn feature(&self, name: &str) -> Value {
        feature(&self.status(), name)
    }

    /// Waits until a feature is as `is` wants it.
    pub fn feature_when(&self, name: &str, mut is: impl FnMut(&Value) -> bool) -> Value {
        feature(&self.status_when(|status| is(&feature(status, name))).0, name)
    }

    /// Waits until the port of this device has this state.
    pub fn port_is(&self, device: &str, state: &str) -> Duration {
        self.status_when(|status| port(status, device).is_some_and(|port| port["state"] == state)).1
    }

    /// Waits until no port of this device is there.
    pub fn port_is_gone(&self, device: &str) -> Duration {
        self.status_when(|status| port(status, device).is_none()).1
    }
}

fn of<'v>(list: &'v Value, key: &str, value: &str) -> Option<&'v Value> {
    list.as_array().into_iter().flatten().find(|item| item[key] == value)
}

/// The port of this device in a listing.
pub fn port<'v>(listing: &'v Value, device: &str) -> Option<&'v Value> {
    of(&listing["ports"], "device", device)
}

fn feature(status: &Value, name: &str) -> Value {
    of(&status["features"], "name", name).unwrap_or_else(|| panic!("no feature {name} in {status:#}")).clone()
}
