//! A private JACK server without hardware, for as long as one command runs.

use std::{
    ffi::OsString,
    io::{self, Read},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{cargo, process, setup, split};

/// How long a server may take until it answers; 0.2 s is usual.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take to end: 7 s where a client is gone without a word. One that is killed leaves its name in
/// memory that all servers share, and after eight of those no server starts any more.
const FAREWELL: Duration = Duration::from_secs(15);

/// Run a command beside a private JACK server.
#[derive(clap::Args)]
pub struct Args {
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The chore.
pub fn run(args: Args) -> Result<ExitCode> {
    setup::ensure_jack()?;
    let (program, arguments) = split(args.command).context("no command given")?;
    let mut command = Command::new(&program);
    command.args(arguments);
    cargo::forget_our_build(&mut command);
    let server = Server::start()?;
    let status = server.run(&mut command);
    Ok(process::exit_code(status.with_context(|| format!("cannot start {}", program.display()))?))
}

/// Why there can be no such server on this system, if so.
pub fn unavailable() -> Option<&'static str> {
    (!cfg!(target_os = "linux")).then_some("JACK's dummy driver is used on Linux only")
}

/// Whether a server answers under the name that programs use by default here.
pub fn runs() -> bool {
    process::succeeds(Command::new("jack_lsp").env("JACK_NO_START_SERVER", "1"))
}

/// A running server. Dropping it ends it.
pub struct Server {
    name: String,
    child: Child,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts a server with the dummy driver and waits until it answers.
    pub fn start() -> Result<Self> {
        let name = format!("conductor-{}", std::process::id());
        let mut command = process::dying_with_us("jackd");
        // -r: no realtime rights needed. -S: synchronous; without it the dummy driver loses notes.
        command
            .args(["-n", &name, "-r", "-S", "-d", "dummy", "-r", "48000", "-p", "64"])
            .env("JACK_NO_AUDIO_RESERVATION", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start jackd")?;
        let mut stdout = child.stdout.take().context("a piped output is there")?;
        let log = thread::spawn(move || {
            let mut log = Vec::new();
            // Read to the end in any case: a server whose log is not read would block.
            let _ = stdout.read_to_end(&mut log);
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut server = Self { name, child, log: Some(log) };
        let mut probe = Command::new("jack_lsp");
        server.address(&mut probe);
        let mut ended = false;
        let answers = process::poll(REPLY_TIMEOUT, || {
            ended = !matches!(server.child.try_wait(), Ok(None));
            ended || process::succeeds(&mut probe)
        });
        if ended || !answers {
            let log = server.end();
            bail!("jackd did not come up within {} s:\n{log}", REPLY_TIMEOUT.as_secs());
        }
        Ok(server)
    }

    /// Runs a command that finds this server, and no other.
    pub fn run(&self, command: &mut Command) -> io::Result<ExitStatus> {
        self.address(command);
        command.status()
    }

    fn address(&self, command: &mut Command) {
        command
            .env("JACK_DEFAULT_SERVER", &self.name)
            .env("JACK_NO_START_SERVER", "1")
            .env("JACK_NO_AUDIO_RESERVATION", "1");
    }

    /// Ends the server and returns what it said.
    fn end(&mut self) -> String {
        process::end(&mut self.child, FAREWELL);
        self.log.take().and_then(|log| log.join().ok()).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.end().contains("was not finished") {
            eprintln!("the JACK server missed a deadline: MIDI may have been lost through no fault of the program");
        }
    }
}
