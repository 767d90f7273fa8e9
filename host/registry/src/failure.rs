//! Why a feature is not installed, and why a task of one is not started.

use conductor_package::file::PackageError;
use conductor_sandbox::{InstallError, MigrateError, PrepareError};

/// Why a feature is not installed. Everything else goes on.
#[derive(Debug, thiserror::Error)]
pub enum InstallFailure {
    /// Its package was not taken.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It is not the package that was installed.
    #[error("{package}: was altered: its digest is sha256:{found}, and sha256:{wanted} was installed; install it anew")]
    Altered {
        /// The package.
        package: String,
        /// The digest that was installed.
        wanted: String,
        /// The digest of the bytes that are there.
        found: String,
    },
    /// It can't be prepared to run.
    #[error("{package}: {source}")]
    Prepare {
        /// The package.
        package: String,
        /// Why.
        source: PrepareError,
    },
    /// It can't work with the existing data.
    #[error("{package}: {source}")]
    Migrate {
        /// The package.
        package: String,
        /// Why.
        source: MigrateError,
    },
    /// It did not install itself.
    #[error("{package}: {source}")]
    Install {
        /// The package.
        package: String,
        /// Why.
        source: InstallError,
    },
    /// Its id says that it is bundled, but it is not; or the other way round.
    #[error("{package}: calls itself {id}; only features that come with the host are `builtin:`")]
    FalseSource {
        /// The package.
        package: String,
        /// What it says.
        id: String,
    },
    /// Configuration calls it otherwise than it does itself.
    #[error("{package}: is called {id:?} in its descriptor; write it as [features.{id}]")]
    OtherName {
        /// The package.
        package: String,
        /// What it says.
        id: String,
    },
    /// Another feature has a contribution of this name.
    #[error("{package}: its {what} belongs to {owner} already")]
    Taken {
        /// The package.
        package: String,
        /// What, and its name: `action OscSend`.
        what: String,
        /// The feature that has it.
        owner: String,
    },
}

/// Why a background task is not started or stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// No feature of this name runs.
    #[error("no feature {0:?} runs; `conductor feature list` shows those that do")]
    NoFeature(String),
    /// The feature has no such task.
    #[error("{feature} has no task {task:?}; {}", has(.tasks))]
    NoTask {
        /// The feature.
        feature: String,
        /// What was asked for.
        task: String,
        /// Its tasks.
        tasks: Vec<String>,
    },
    /// Its last run has not ended yet.
    #[error("the task {task} is still ending; try again when it has ended")]
    StillEnding {
        /// The task.
        task: String,
    },
}

fn has(tasks: &[String]) -> String {
    if tasks.is_empty() { "it has none".to_owned() } else { format!("it has {}", tasks.join(", ")) }
}
