//! Commands for authors of features: new, build, check, test.

use std::path::PathBuf;

use super::super::CommandResult;
use super::{build, check, harness, new};

/// An author's commands.
#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum AuthorCommand {
    /// Begin a feature: a folder that builds and tests as it is
    New {
        /// Its name: a-z, 0-9 and -; also the name of the folder
        name: String,
        /// What it contributes
        #[arg(long, default_value = "action")]
        kind: new::Kind,
        /// Use the SDK in this folder [default: $CONDUCTOR_SDK, else the project gets its own copy]
        #[arg(long, value_name = "FOLDER")]
        sdk: Option<PathBuf>,
    },
    /// Build a feature and check it
    Build {
        /// Its folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// The folder of the SDK whose contract other languages build against [default: $CONDUCTOR_SDK, else the project's
        /// own, else this program's]
        #[arg(long, value_name = "FOLDER")]
        sdk: Option<PathBuf>,
    },
    /// Build a feature and run its tests against this program
    Test {
        /// Its folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Arguments for `cargo test`
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Check a package, and install it in an isolated host. Reports every problem
    Check {
        /// The `.wasm` file, or the folder of a feature that was built
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Put a descriptor into a component that carries none
    Embed {
        /// The component
        component: PathBuf,
        /// The `feature.toml`
        descriptor: PathBuf,
        /// Where the package goes
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Serve the SDK's test harness: a request a line, an answer a line
    #[command(hide = true)]
    Harness {
        /// The `.wasm` file
        package: PathBuf,
    },
}

pub(in super::super) fn run(command: &AuthorCommand) -> CommandResult {
    match command {
        AuthorCommand::New { name, kind, sdk } => new::run(name, *kind, sdk.as_deref()),
        AuthorCommand::Build { folder, sdk } => build::run(folder, sdk.as_deref()).map(drop),
        AuthorCommand::Test { folder, rest } => build::test(folder, rest),
        AuthorCommand::Check { path } => check::run(path),
        AuthorCommand::Embed { component, descriptor, output } => build::embed(component, descriptor, output),
        AuthorCommand::Harness { package } => harness::run(package),
    }
}
