//! `conductor manual`: writes the manual pages of this program's commands, for packages.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};

use super::{Arguments, CommandResult};

#[derive(Debug, Args)]
pub(super) struct ManualArguments {
    /// The folder that they are written to; it has to be there
    folder: PathBuf,
}

/// Writes `conductor.1` and a page for each command, `conductor-plan-apply.1`.
pub(super) fn run(arguments: &ManualArguments) -> CommandResult {
    let folder = &arguments.folder;
    clap_mangen::generate_to(Arguments::command(), folder)
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    Ok(())
}
