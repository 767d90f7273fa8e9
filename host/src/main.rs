//! The `conductor` command.

fn main() -> std::process::ExitCode {
    conductor_host::cli::main()
}
