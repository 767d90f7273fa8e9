//! A release tried out on this machine: what a person does first with what was downloaded.
//!
//! The program checks a configuration, plays events to it, lists its features, and runs: OSC comes in, a feature sends it on,
//! a configuration that is changed meanwhile is in force at once, and Ctrl-C ends it.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    debian,
    foreign::{Foreign, System},
};
use crate::process;

/// A configuration with a rule.
pub const CONFIG: &str = "[[global_mappings]]\nname = \"pad\"\ntrigger = { type = \"Note\", note = 36 }\naction = { type = \"OscSend\", target = \"127.0.0.1:9000\", address = \"/pad\" }\n\n[features.osc-output.grants]\nudp = [\"127.0.0.1:9000\"]\n";
/// What is played to it.
pub const EVENTS: &str = "0ms pads note-on 36 100\n";
/// What `conductor simulate` says then.
pub const SENT: &str = "=> OSC 127.0.0.1:9000 /pad";

/// What is sent to the program while it runs: `/in/fader` with 0.5.
const FADER: &[u8] = b"/in/fader\0\0\0,f\0\0\x3f\0\0\0";
/// How long the program has until it answers, which an emulator makes long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long it may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it is asked again until then: OSC is lost while nobody listens.
const ASK_INTERVAL: Duration = Duration::from_millis(100);

/// Tries a release out, in new folders below `work`: one for this system as it comes out of `archive`, one for another
/// system as it is in `release`.
///
/// # Errors
/// What does not work, with what the program said.
pub fn try_out(foreign: Option<&Foreign>, release: &Path, archive: &Path, work: &Path) -> Result<()> {
    debian::remove(work)?;
    fs::create_dir_all(work).with_context(|| work.display().to_string())?;
    let began = Instant::now();
    let program = match foreign {
        Some(foreign) => release.join(format!("conductor{}", foreign.system().program_suffix())),
        None => {
            process::run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(work))?;
            work.join(release.file_name().context("the release has no name")?).join("conductor")
        }
    };
    let tried = Trial { foreign, program, home: work.join("home"), config: work.join("config.toml") };
    fs::write(&tried.config, CONFIG)?;
    fs::write(work.join("events"), EVENTS)?;
    tried.says(&["--version"], env!("CARGO_PKG_VERSION"))?;
    if foreign.is_some_and(|foreign| foreign.system() == System::LinuxArm) {
        // QEMU's user mode keeps a record of each page that a program reserves, and the sandbox reserves terabytes.
        println!("{}: says its version here, and has compiled its features; it was not run further", release.display());
        return debian::remove(work);
    }
    tried.says(&["config", "validate"], "")?;
    let events = work.join("events");
    tried.says(&["simulate", &events.to_string_lossy()], SENT)?;
    tried.says(&["feature", "list"], "osc-output")?;
    let mapped = tried.runs()?;
    debian::remove(work)?;
    println!(
        "{}: tried out here, with a mapping at work {} ms after the start",
        release.display(),
        (mapped - began).as_millis()
    );
    Ok(())
}

struct Trial<'a> {
    foreign: Option<&'a Foreign>,
    program: PathBuf,
    home: PathBuf,
    config: PathBuf,
}

impl Trial<'_> {
    fn command(&self) -> Command {
        let mut command = match self.foreign {
            Some(foreign) => foreign.command(&self.program),
            None => Command::new(&self.program),
        };
        // The features are those beside it.
        command.env_remove("CONDUCTOR_FEATURES");
        command.arg("--home").arg(&self.home).arg("--config").arg(&self.config);
        command
    }

    /// Runs a command of the program, and looks for a text in what it prints.
    fn says(&self, arguments: &[&str], text: &str) -> Result<()> {
        let began = Instant::now();
        let said = process::read(self.command().args(arguments))?;
        ensure!(said.contains(text), "`conductor {}` does not say {text:?}, but:\n{said}", arguments.join(" "));
        eprintln!("conductor {}: {} ms", arguments.join(" "), began.elapsed().as_millis());
        Ok(())
    }

    /// Runs the host, plays to it, and changes its configuration meanwhile. Returns when the first answer came.
    fn runs(&self) -> Result<Instant> {
        let player = UdpSocket::bind("127.0.0.1:0")?;
        player.set_read_timeout(Some(ASK_INTERVAL))?;
        let answers = player.local_addr()?.port();
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        fs::write(&self.config, listening(port, answers, "/out/level"))?;
        let log = self.config.with_file_name("log");
        let output = fs::File::create(&log)?;
        let mut command = self.command();
        command.arg("run").stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        let mut host = Running(command.spawn().context("the host can't be started")?);
        let played: Result<_> = (|| {
            let began = Instant::now();
            self.answers(&player, port, &mut host, b"/out/level\0\0,f\0\0\x3f\0\0\0")?;
            let mapped = Instant::now();
            eprintln!("conductor run: OSC in and out after {} ms", (mapped - began).as_millis());
            let began = Instant::now();
            fs::write(&self.config, listening(port, answers, "/out/other"))?;
            self.answers(&player, port, &mut host, b"/out/other\0\0,f\0\0\x3f\0\0\0")?;
            eprintln!("conductor run: a changed configuration in force after {} ms", began.elapsed().as_millis());
            self.ends(&mut host)?;
            Ok(mapped)
        })();
        played.with_context(|| format!("the host said:\n{}", fs::read_to_string(&log).unwrap_or_default()))
    }

    /// Ends the host as Ctrl-C does.
    fn ends(&self, host: &mut Running) -> Result<()> {
        process::run(Command::new("kill").args(["-INT", &host.0.id().to_string()]))?;
        let mut status = None;
        process::poll(END_TIMEOUT, || {
            status = host.0.try_wait().ok().flatten();
            status.is_some()
        });
        let status =
            status.with_context(|| format!("Ctrl-C did not end the host within {} s", END_TIMEOUT.as_secs()))?;
        ensure!(status.success(), "Ctrl-C ended the host, but with {status}");
        Ok(())
    }

    /// Plays until this answer comes.
    fn answers(&self, player: &UdpSocket, port: u16, host: &mut Running, wanted: &[u8]) -> Result<()> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let mut buffer = [0; 64];
        while Instant::now() < deadline {
            if let Some(status) = host.0.try_wait()? {
                bail!("the host ended by itself ({status})");
            }
            // Nobody listens yet, or a datagram was lost: the next one tells.
            let _ = player.send_to(FADER, ("127.0.0.1", port));
            if let Ok(length) = player.recv(&mut buffer)
                && buffer[..length] == *wanted
            {
                return Ok(());
            }
        }
        bail!("no answer to OSC within {} s", ANSWER_TIMEOUT.as_secs())
    }
}

/// A host that ends with its trial.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        process::end(&mut self.0, Duration::from_secs(10));
    }
}

/// A configuration that sends on to `address` at one port what comes in at another.
fn listening(port: u16, answers: u16, address: &str) -> String {
    format!(
        "[[bindings]]\nalias = \"in\"\nprotocol = \"osc\"\ninput = {{ host = \"127.0.0.1\", port = {port} }}\n\n\
         [[global_mappings]]\ntrigger = {{ type = \"OscMessage\", address = \"/in/fader\" }}\n\
         action = {{ type = \"OscSend\", target = \"127.0.0.1:{answers}\", address = \"{address}\", args = [\"{{value:f}}\"] }}\n\n\
         [features.osc-output.grants]\nudp = [\"127.0.0.1:{answers}\"]\n"
    )
}
