//! The host that runs in this home, and the sockets that it answers on.

use std::path::{Path, PathBuf};

use super::finding::Finding;
use conductor_host::host::status::Status;
use conductor_terminal::duration;

const ABOUT: &str = "host";
/// Bytes that the path of a Unix socket may have.
const MAX_SOCKET_PATH: usize = 107;

/// Why a host said nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// None runs.
    NotRunning,
    /// A host runs, and does not answer.
    Failed(String),
}

/// The status that a host reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) pid: u32,
    pub(super) version: String,
    /// Seconds since it started.
    pub(super) uptime: u64,
    /// What it can't record in the audit log, and why.
    pub(super) audit_trouble: Option<String>,
    /// Actions that failed, and the last of them.
    pub(super) failures: (u64, Option<String>),
}

/// A socket that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket {
    pub(super) path: PathBuf,
    /// Whether it is a socket at all.
    pub(super) is_socket: bool,
    pub(super) mode: u32,
    /// Whether it is this user's.
    pub(super) ours: bool,
}

/// How the host and its sockets are.
#[derive(Debug)]
pub(super) struct SocketCheck {
    /// The longest path of a socket in this home.
    pub(super) longest: PathBuf,
    pub(super) sockets: Vec<Socket>,
    pub(super) host: Result<Running, Silence>,
}

impl SocketCheck {
    pub(super) fn gather(home: &Path, status: &Result<Status, Silence>) -> Self {
        let paths = [conductor_api::socket(home), conductor_api::mcp_socket(home)];
        let host = status.as_ref().map_err(Clone::clone).map(|status| Running {
            pid: status.pid,
            version: status.version.clone(),
            uptime: status.uptime / 1_000_000_000,
            audit_trouble: status.audit.trouble.clone(),
            failures: (status.failures, status.last_failure.clone()),
        });
        Self { longest: paths[0].clone(), sockets: paths.iter().filter_map(|path| socket(path)).collect(), host }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let length = self.longest.as_os_str().len();
        if cfg!(unix) && length > MAX_SOCKET_PATH {
            findings.push(Finding::trouble(
                ABOUT,
                format!(
                    "the path {} has {length} bytes; a socket's may have {MAX_SOCKET_PATH}",
                    self.longest.display()
                ),
                "name a home with a shorter path, with --home or CONDUCTOR_HOME",
            ));
        }
        match &self.host {
            Ok(running) => findings.extend(self.running(running)),
            Err(Silence::Failed(why)) => findings.push(Finding::trouble(
                ABOUT,
                format!("a host is there, and does not answer as it should: {why}"),
                "look into its log, end it, and start it again: `conductor run`",
            )),
            Err(Silence::NotRunning) => match &self.sockets[..] {
                [] => findings.push(Finding::ok(ABOUT, "no host is running here; `conductor run` starts one")),
                [socket, ..] => findings.push(Finding::warning(
                    ABOUT,
                    format!("{} is there, but no host answers: the last one was killed", socket.path.display()),
                    "the next `conductor run` takes its place, and ends the notes that may be left sounding",
                )),
            },
        }
        for Socket { path, is_socket, mode, ours } in &self.sockets {
            let path = path.display();
            if !is_socket {
                let what = format!("{path} is no socket, so no host can answer there");
                findings.push(Finding::trouble("sockets", what, format!("mv '{path}' '{path}.away'")));
            } else if !ours {
                let what = format!("{path} belongs to another user");
                let mend = "run conductor as that user, or name a home of your own with --home";
                findings.push(Finding::trouble("sockets", what, mend));
            } else if mode & 0o077 != 0 {
                let what = format!("others than its owner may use {path} (mode {mode:o})");
                findings.push(Finding::trouble("sockets", what, format!("chmod 600 '{path}'")));
            }
        }
        if self.host.is_ok() && !findings.iter().any(|finding| finding.about == "sockets") {
            findings.push(Finding::ok("sockets", "only their owner may use them"));
        }
        findings
    }

    fn running(&self, running: &Running) -> Vec<Finding> {
        let Running { pid, version, uptime, audit_trouble, failures } = running;
        let what = format!("version {version} has run for {} as process {pid}", duration(*uptime));
        let ours = env!("CARGO_PKG_VERSION");
        let mut findings = vec![if version == ours {
            Finding::ok(ABOUT, what)
        } else {
            Finding::warning(
                ABOUT,
                format!("{what}; this is version {ours}"),
                "end it and start this one: `conductor run`",
            )
        }];
        if let Some(why) = audit_trouble {
            let mend = "until it can be, what has to be on record is refused: make room, or make the home writable";
            findings.push(Finding::trouble(ABOUT, format!("it can't write the audit log: {why}"), mend));
        }
        if let (count @ 1.., Some(last)) = failures {
            let what = format!("{count} actions have failed, the last one: {last}");
            findings.push(Finding::warning(ABOUT, what, "`conductor monitor` shows each as it happens"));
        }
        findings
    }
}

#[cfg(unix)]
fn socket(path: &Path) -> Option<Socket> {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
    let about = std::fs::symlink_metadata(path).ok()?;
    Some(Socket {
        path: path.to_owned(),
        is_socket: about.file_type().is_socket(),
        mode: about.permissions().mode() & 0o777,
        ours: about.uid() == rustix::process::geteuid().as_raw(),
    })
}

#[cfg(not(unix))]
fn socket(_: &Path) -> Option<Socket> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn socket() -> Socket {
        Socket { path: "/h/conductor.sock".into(), is_socket: true, mode: 0o600, ours: true }
    }

    fn running() -> Running {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Running { pid: 7, version, uptime: 61, audit_trouble: None, failures: (0, None) }
    }

    fn levels(sockets: Vec<Socket>, host: Result<Running, Silence>) -> Vec<(&'static str, Level)> {
        let facts = SocketCheck { longest: "/h/conductor.sock".into(), sockets, host };
        facts.judge().into_iter().map(|finding| (finding.about, finding.level)).collect()
    }

    #[test]
    fn a_host_that_answers_is_fine_and_a_socket_that_does_not_is_stale() {
        assert_eq!(levels(vec![socket()], Ok(running())), [("host", Level::Ok), ("sockets", Level::Ok)]);
        assert_eq!(levels(vec![], Err(Silence::NotRunning)), [("host", Level::Ok)]);
        assert_eq!(levels(vec![socket()], Err(Silence::NotRunning)), [("host", Level::Warning)]);
        assert_eq!(levels(vec![socket()], Err(Silence::Failed("?".into()))), [("host", Level::Trouble)]);
    }

    #[test]
    fn a_socket_is_its_owners_alone() {
        for wrong in [
            Socket { mode: 0o666, ..socket() },
            Socket { ours: false, ..socket() },
            Socket { is_socket: false, ..socket() },
        ] {
            assert_eq!(levels(vec![wrong], Ok(running())), [("host", Level::Ok), ("sockets", Level::Trouble)]);
        }
    }

    #[test]
    fn what_a_host_says_is_passed_on() {
        let old = Running { version: "0.0.1".into(), ..running() };
        assert_eq!(levels(vec![], Ok(old))[0], ("host", Level::Warning));
        let mute = Running { audit_trouble: Some("full".into()), ..running() };
        assert_eq!(levels(vec![], Ok(mute))[1], ("host", Level::Trouble));
        let failing = Running { failures: (3, Some("synth: gone".into())), ..running() };
        assert_eq!(levels(vec![], Ok(failing))[1], ("host", Level::Warning));
    }

    #[test]
    fn a_path_that_is_too_long_for_a_socket_is_told() {
        let facts = SocketCheck { longest: "x".repeat(108).into(), sockets: vec![], host: Err(Silence::NotRunning) };
        assert_eq!(facts.judge()[0].level, if cfg!(unix) { Level::Trouble } else { Level::Ok });
    }
}
