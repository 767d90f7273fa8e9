//! `conductor completions`: shell completion scripts for this program's commands.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::{Arguments, CommandResult};
use conductor_terminal as terminal;

pub(super) fn run(shell: Shell) -> CommandResult {
    // Made first: the generator panics if it can't write, as when the reader closes the pipe.
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "conductor", &mut script);
    terminal::document(&String::from_utf8_lossy(&script));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            generate(*shell, &mut Arguments::command(), "conductor", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in ["doctor", "bindings", "feature", "notifications"] {
                assert!(script.contains(command), "{shell}: {command}");
            }
        }
    }
}
