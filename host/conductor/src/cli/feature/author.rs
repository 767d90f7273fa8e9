//! Commands for authors of features: new, build, check, test, publish.

use std::path::PathBuf;

use super::super::{CommandResult, Failure};
use super::{build, check, harness, new, publish};

/// An author's commands.
#[derive(Debug, clap::Subcommand)]
pub(in super::super) enum AuthorCommand {
    /// Begin a feature: a folder that builds and tests as it is
    New {
        /// Its name: a-z, 0-9 and -; also the name of the folder
        name: String,
        /// What it contributes; several with commas between, such as action,tool,hook
        #[arg(long, default_value = "action", value_delimiter = ',', value_name = "KIND,…")]
        kind: Vec<new::Kind>,
        /// What it is written in
        #[arg(long, default_value = "rust")]
        language: new::Language,
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
        #[command(flatten)]
        target: TargetFolder,
    },
    /// Build a feature and run its tests against this program
    Test {
        /// Its folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        #[command(flatten)]
        target: TargetFolder,
        /// Arguments for `cargo test`, or for the test command of another language
        #[arg(last = true)]
        rest: Vec<String>,
    },
    /// Check a package, and install it in an isolated host. Reports every problem
    Check {
        /// The `.wasm` file, or the folder of a feature that was built
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Put a package into an OCI registry, from where `conductor feature install` gets it
    Publish(publish::Publish),
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

/// Where Cargo puts what it makes of features in Rust.
#[derive(Debug, clap::Args)]
pub(in super::super) struct TargetFolder {
    /// Where Cargo keeps what it compiled [default: $CARGO_TARGET_DIR, else cache/feature-builds in the home, which all
    /// projects share]
    #[arg(long, value_name = "FOLDER")]
    target_dir: Option<PathBuf>,
}

impl TargetFolder {
    fn path(&self, home: impl FnOnce() -> Result<PathBuf, Failure>) -> Result<PathBuf, Failure> {
        let named = self.target_dir.clone().or_else(|| std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from));
        let folder = match named {
            Some(folder) => folder,
            None => home()?.join("cache/feature-builds"),
        };
        // Cargo runs in the feature's folder, and a relative path is meant from here.
        Ok(std::path::absolute(&folder).unwrap_or(folder))
    }
}

/// Runs an author's command. `home` is for those that keep something there.
pub(in super::super) fn run(home: impl FnOnce() -> Result<PathBuf, Failure>, command: &AuthorCommand) -> CommandResult {
    match command {
        AuthorCommand::New { name, kind, language, sdk } => new::run(name, kind, *language, sdk.as_deref()),
        AuthorCommand::Build { folder, sdk, target } => {
            build::run(folder, sdk.as_deref(), &target.path(home)?).map(drop)
        }
        AuthorCommand::Test { folder, target, rest } => build::test(folder, rest, &target.path(home)?),
        AuthorCommand::Publish(arguments) => publish::run(arguments),
        AuthorCommand::Check { path } => check::run(path),
        AuthorCommand::Embed { component, descriptor, output } => build::embed(component, descriptor, output),
        AuthorCommand::Harness { package } => harness::run(package),
    }
}
