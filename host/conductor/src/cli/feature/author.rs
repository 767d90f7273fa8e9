//! Commands for authors of features: new, build, check, test.

use std::path::{Path, PathBuf};

use super::super::{CommandResult, Failure};
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
        /// The folder of the SDK [default: $CONDUCTOR_SDK, or the one that this program was built beside]
        #[arg(long, value_name = "FOLDER")]
        sdk: Option<PathBuf>,
    },
    /// Build a feature and check it
    Build {
        /// Its folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// The folder of the SDK, for the contract that other languages build against
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

/// The SDK's folder: as given, else of `CONDUCTOR_SDK`, else beside the checkout that built this program.
pub(super) fn sdk(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = given.map(Path::to_owned).or_else(|| std::env::var_os("CONDUCTOR_SDK").map(PathBuf::from));
    let built_beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../feature-api");
    let named = given.is_some();
    let folder = given.unwrap_or_else(built_beside);
    match folder.canonicalize() {
        Ok(folder) if folder.join("Cargo.toml").is_file() => Ok(folder),
        _ if named => Err(Failure::Wrong(format!(
            "conductor: {}: there is no SDK; it is the folder `feature-api` of Conductor's sources",
            folder.display()
        ))),
        _ => Err(Failure::Wrong(
            "conductor: the SDK is not here; name the folder `feature-api` of Conductor's sources with --sdk, or in \
             CONDUCTOR_SDK"
                .into(),
        )),
    }
}

/// The contract's folder, beside the SDK.
pub(super) fn contract(sdk: &Path) -> PathBuf {
    sdk.parent().unwrap_or(sdk).join("wit/v0.1")
}
