//! Child processes: finding programs, running them, and saying exactly what failed.

use std::{
    env,
    path::PathBuf,
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Where `program` is on the search path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let file = format!("{program}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&path).map(|folder| folder.join(&file)).find(|candidate| candidate.is_file())
}

/// Runs a command with our own input and output; anything but success is an error that names the command.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    ensure_success(command, status)
}

/// What a command printed, trimmed. Its complaints are part of the error, not of our output.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", line(command), output.status, complaint.trim());
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", line(command)))?;
    Ok(text.trim().to_owned())
}

/// Whether a command starts and succeeds; its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The error for a command that ended badly.
pub fn ensure_success(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// Becomes `command`, so that Ctrl-C and the exit status are the command's alone.
///
/// Returns only on systems where a process cannot become another program.
pub fn become_command(command: &mut Command) -> Result<ExitCode> {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let error = command.exec();
        Err(error).with_context(|| format!("cannot start `{}`", line(command)))
    }
    #[cfg(not(unix))]
    {
        let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
        Ok(exit_code(status))
    }
}

/// A child's status as our own; a child that a signal ended gives 1.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The same command, which lets every other program go before it where the system offers that.
pub fn in_background(command: Command) -> Command {
    if find("nice").is_none() {
        return command;
    }
    let mut nice = Command::new("nice");
    nice.args(["-n", "15"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    nice
}

/// A command that is asked to end when we die, however we die, where the system offers that (util-linux).
pub fn dying_with_us(program: &str) -> Command {
    if cfg!(target_os = "linux") && find("setpriv").is_some() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", "--", program]);
        return command;
    }
    Command::new(program)
}

/// Ends one child politely, then by force when its time is over.
pub fn end(child: &mut Child, patience: Duration) {
    let asked = succeeds(Command::new("kill").arg(child.id().to_string()));
    let ended = poll(if asked { patience } else { Duration::ZERO }, || matches!(child.try_wait(), Ok(Some(_))));
    if !ended {
        // Already gone is as good as ended: both calls may fail only for that reason.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Asks every 20 ms until `ready` says yes; false when `patience` is over.
pub fn poll(patience: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if ready() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A command as one would type it, without its environment.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// One word for a POSIX shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo 'it works' $HOME", "", "a/b-c=1"]);
        assert_eq!(line(&command), r"sh -c 'echo '\''it works'\'' $HOME' '' a/b-c=1");
    }

    #[test]
    fn polling_ends_at_its_deadline() {
        let mut asked = 0;
        assert!(poll(Duration::from_secs(5), || {
            asked += 1;
            asked == 3
        }));
        assert!(!poll(Duration::ZERO, || false));
    }
}
