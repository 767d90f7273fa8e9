//! A full disk: a process whose files can't grow.

use std::process::Command;

/// The same command as a process whose files can be kept from growing: a write that finds no room is an error there, as it
/// is on a full disk, and not a signal.
pub fn stoppable(command: &Command) -> Command {
    wrapped(command, &[])
}

/// The same with no room for files of more than so many bytes.
pub fn full(command: &Command, bytes: u64) -> Command {
    wrapped(command, &["prlimit".to_owned(), format!("--fsize={bytes}:")])
}

fn wrapped(command: &Command, by: &[String]) -> Command {
    let mut whole = Command::new("sh");
    whole.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).args(by);
    whole.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => whole.env(name, value),
            None => whole.env_remove(name),
        };
    }
    whole
}

/// Has the files of a [stoppable] process grow no more, or again.
///
/// # Panics
/// If there is no such process, or no `prlimit`.
pub fn fill(process: u32, on: bool) {
    let limit = if on { "--fsize=0:" } else { "--fsize=unlimited:" };
    let set = Command::new("prlimit").args(["--pid", &process.to_string(), limit]).status().unwrap();
    assert!(set.success());
}
