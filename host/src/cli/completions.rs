//! `conductor completions`: scripts with which shells complete this program's commands.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use super::{Arguments, Done};

pub(super) fn run(shell: Shell) -> Done {
    // Made first: the generator panics where it can't write, as when nobody reads to the end.
    let mut script = Vec::new();
    generate(shell, &mut Arguments::command(), "conductor", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    std::io::stdout().flush()?;
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
            for command in ["doctor", "bindings", "feature"] {
                assert!(script.contains(command), "{shell}: {command}");
            }
        }
    }
}
