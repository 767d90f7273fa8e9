//! Programs run apart from everything, by bubblewrap: namespaces of their own without a way to write, and without a
//! network unless the grant has one.
//!
//! What a program finds: the system's folders and what its grant names, to read; the files that it is handed, in the
//! folder in which it runs, to read; a `/tmp` and a home in memory, which go with it; no process but its own; an environment
//! of `HOME`, `PATH` and `LANG`, and of what its grant sets. Limits hold for each run: of time, of what it prints and keeps,
//! of memory, of processes. With a program all end that it started: the first process of its namespace goes, and the kernel
//! kills the rest.
//!
//! Where there is no bubblewrap, nothing is run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::error::{ServiceError, shown};
use crate::files;
use conductor_package::program::Program;
use conductor_terminal::excerpt;

/// Programs that one feature has run at once.
pub const MAX_RUNNING: usize = 16;
/// Files that one run is handed.
pub const MAX_FILES: usize = 1000;
/// Bytes of them, together (3 MiB).
pub const MAX_FILES_SIZE: usize = 3 << 20;
/// Bytes of an input (1 MiB).
pub const MAX_INPUT: usize = 1 << 20;
/// Bytes of an output (1 MiB).
pub const MAX_OUTPUT: usize = 1 << 20;
/// Bytes that one process may have in memory that can be written to (4 GiB): an agent in JavaScript takes 1.
const MAX_MEMORY: u64 = 4 << 30;
/// Processes and threads of one run.
const MAX_PROCESSES: u64 = 512;
/// Files that one process has open.
const MAX_OPEN: u64 = 1024;
/// Bytes of the run's own `/tmp`, and of its `/dev/shm` (256 MiB).
const TMP_SIZE: u64 = 256 << 20;
/// Bytes of complaints that are kept.
const MAX_COMPLAINTS: usize = 4096;
/// Characters of the complaint that is shown.
const MAX_LINE: usize = 200;
/// How long the end of a program that is killed may take.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The folder in which a program runs.
const FOLDER: &str = "/work";
/// A program's home, in memory.
const HOME: &str = "/tmp/home";
/// Where a program looks for others.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The exit status of what SIGKILL ended.
const KILLED: u8 = 128 + 9;
/// What a program may read of the system: its programs and libraries, and what names, certificates and hosts are looked up
/// in. Nothing of a person's own.
const SYSTEM: [&str; 20] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
    "/sys/devices/system/cpu",
];

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its exit status; 128 + N if the signal N ended it.
    pub status: u8,
    /// What it wrote to its standard output.
    pub output: Vec<u8>,
    /// The last line of its complaints.
    pub complaint: String,
}

/// Files that a run is handed, in a folder of their own that goes with this.
#[derive(Debug)]
pub struct Files(TempDir);

impl Files {
    /// Writes files, by their relative paths.
    ///
    /// # Errors
    /// `Invalid`: a path that is malformed, leads out, or occurs twice; too many files or bytes. `Failed`: disk error.
    pub fn new<'f>(files: impl ExactSizeIterator<Item = (&'f str, &'f [u8])>) -> Result<Self, ServiceError> {
        if files.len() > MAX_FILES {
            return Err(ServiceError::Invalid(format!("{} files are too many; {MAX_FILES} are allowed", files.len())));
        }
        let failed = |error: std::io::Error| ServiceError::Failed(format!("files for a program: {error}"));
        let made = tempfile::Builder::new().prefix("conductor-program-").tempdir().map_err(failed)?;
        let folder = Dir::open_ambient_dir(made.path(), ambient_authority()).map_err(failed)?;
        let mut size = 0_usize;
        for (path, contents) in files {
            let (parent, _) = files::check(path)?;
            size = size.saturating_add(contents.len());
            if size > MAX_FILES_SIZE {
                return Err(ServiceError::Invalid(format!("the files have more than {MAX_FILES_SIZE} bytes together")));
            }
            let wrong = |error: std::io::Error| ServiceError::Invalid(format!("{}: {error}", shown(path)));
            folder.create_dir_all(parent).map_err(wrong)?;
            let mut options = cap_std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            let mut file = folder.open_with(path, &options).map_err(wrong)?;
            std::io::Write::write_all(&mut file, contents).map_err(failed)?;
        }
        Ok(Self(made))
    }
}

/// Runs a program to its end, but no longer than `timeout`. Dropping the future kills it.
///
/// # Errors
/// `Unavailable`: it can't be kept apart here, can't be started, or took longer. `Exhausted`: it wrote more than
/// [`MAX_OUTPUT`]. `Invalid`: the input is longer than [`MAX_INPUT`].
pub async fn run(program: &Program, input: &[u8], files: &Files, timeout: Duration) -> Result<Outcome, ServiceError> {
    if input.len() > MAX_INPUT {
        return Err(ServiceError::Invalid(format!("an input of {} bytes; {MAX_INPUT} are allowed", input.len())));
    }
    let path = program.path();
    let unstarted =
        |error: std::io::Error| ServiceError::Unavailable(format!("the program {path} can't be started: {error}"));
    let found = std::fs::canonicalize(path).map_err(unstarted)?;
    let mut child = Command::new(tool("bwrap", "bubblewrap")?)
        .args(apart(program, &found, files.0.path()))
        .arg("--")
        .arg(tool("prlimit", "util-linux")?)
        .args(limits())
        .arg("--")
        .arg(path)
        .args(program.args())
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(unstarted)?;
    let ended = tokio::time::timeout(timeout, to_its_end(&mut child, input, path)).await;
    let late = || ServiceError::Unavailable(format!("{path} did not end within {} ms", timeout.as_millis()));
    let outcome = ended.unwrap_or_else(|_| Err(late()));
    if outcome.is_err() {
        // Before its files go. It fails where the program has ended.
        let _ = child.start_kill();
        if tokio::time::timeout(END_TIMEOUT, child.wait()).await.is_err() {
            tracing::warn!("{path} did not end within {} s of being killed", END_TIMEOUT.as_secs());
        }
    }
    outcome
}

/// Feeds a program, reads what it writes, and waits for its end.
async fn to_its_end(child: &mut Child, input: &[u8], path: &str) -> Result<Outcome, ServiceError> {
    let failed = |error: std::io::Error| ServiceError::Failed(format!("{path}: {error}"));
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ServiceError::Failed(format!("{path} has no pipes")));
    };
    let feed = async {
        // It need not read all of it, or any.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        Ok(())
    };
    let output = async {
        let mut output = Vec::new();
        stdout.take(MAX_OUTPUT as u64 + 1).read_to_end(&mut output).await.map_err(failed)?;
        let too_much = || ServiceError::Exhausted(format!("{path} wrote more than {MAX_OUTPUT} bytes"));
        if output.len() > MAX_OUTPUT { Err(too_much()) } else { Ok(output) }
    };
    let complaints = async { last_bytes(stderr).await.map_err(failed) };
    let ((), output, complaints) = tokio::try_join!(feed, output, complaints)?;
    let status = child.wait().await.map_err(failed)?;
    let complaint = String::from_utf8_lossy(&complaints);
    let complaint = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if let Some(wrapper) = complaint.strip_prefix("bwrap: ").filter(|_| !status.success()) {
        let why = excerpt(wrapper, MAX_LINE);
        return Err(ServiceError::Unavailable(format!("{path} can't be run apart from the rest of the system: {why}")));
    }
    let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(KILLED);
    Ok(Outcome { status, output, complaint: excerpt(complaint, MAX_LINE) })
}

/// Reads to the end, and keeps the last [`MAX_COMPLAINTS`] bytes or a few more.
async fn last_bytes(mut pipe: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let (mut kept, mut buffer) = (Vec::new(), [0; MAX_COMPLAINTS]);
    loop {
        match pipe.read(&mut buffer).await? {
            0 => return Ok(kept),
            length => {
                kept.drain(..kept.len().saturating_sub(MAX_COMPLAINTS));
                kept.extend_from_slice(&buffer[..length]);
            }
        }
    }
}

/// A program of the system that keeps others apart, by its whole path.
///
/// # Errors
/// `Unavailable`, with the name of the package that has it.
fn tool(name: &str, package: &str) -> Result<PathBuf, ServiceError> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.filter(|path| path.is_absolute() && cfg!(target_os = "linux")).ok_or_else(|| {
        ServiceError::Unavailable(match cfg!(target_os = "linux") {
            true => format!(
                "programs are run apart from the rest of the system by {name}, which is not on PATH; install {package}"
            ),
            false => "programs can be run apart from the rest of the system on Linux only".to_owned(),
        })
    })
}

/// The arguments of bubblewrap: what the program finds.
fn apart(program: &Program, found: &Path, files: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut put = |words: &[&OsStr]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let plain = |word: &'static str| OsStr::new(word);
    put(&["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"].map(plain));
    if program.has_network() {
        put(&[plain("--share-net")]);
    }
    put(&["--clearenv", "--setenv", "HOME", HOME, "--setenv", "PATH", PATH, "--setenv", "LANG", "C.UTF-8"].map(plain));
    for (name, value) in program.variables() {
        put(&[plain("--setenv"), OsStr::new(name), OsStr::new(value)]);
    }
    let size = TMP_SIZE.to_string();
    put(&[plain("--size"), OsStr::new(&size)]);
    put(&["--tmpfs", "/tmp", "--dir", HOME, "--proc", "/proc", "--dev", "/dev"].map(plain));
    // What is kept in memory elsewhere would have no limit.
    put(&[plain("--size"), OsStr::new(&size)]);
    put(&["--tmpfs", "/dev/shm", "--remount-ro", "/dev"].map(plain));
    for folder in SYSTEM {
        put(&["--ro-bind-try", folder, folder].map(OsStr::new));
    }
    for read in program.reads() {
        put(&["--ro-bind", read, read].map(OsStr::new));
    }
    let mut is_there = SYSTEM.into_iter().chain(program.reads().iter().map(String::as_str));
    if !is_there.any(|folder| Path::new(program.path()).starts_with(folder)) {
        put(&[plain("--ro-bind"), found.as_os_str(), OsStr::new(program.path())]);
    }
    put(&[plain("--ro-bind"), files.as_os_str(), plain(FOLDER)]);
    put(&["--chdir", FOLDER, "--remount-ro", "/"].map(plain));
    args
}

/// The arguments of `prlimit`.
fn limits() -> [String; 4] {
    [
        format!("--data={MAX_MEMORY}"),
        format!("--nproc={MAX_PROCESSES}"),
        format!("--nofile={MAX_OPEN}"),
        "--core=0".to_owned(),
    ]
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
