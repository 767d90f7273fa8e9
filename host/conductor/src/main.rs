//! The `conductor` command.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

fn main() -> std::process::ExitCode {
    conductor::cli::main()
}
