//! The pages that are written from what is true already. In docs/: `contract.md` from the comments in wit/, `mappings.md`
//! from the configuration's own schema and the tests of its parts, `openapi.json` from the API's routes. And the list of
//! files in `wit/README.md`, from their comments.

mod contract;
mod mappings;

use std::{fs, process::ExitCode};

use anyhow::{Context, Result, bail};

use crate::repo::Repo;

/// Write docs/contract.md and the list in wit/README.md from the comments in wit/, docs/mappings.md from the schema of the
/// configuration, and docs/openapi.json from the routes of the API.
#[derive(clap::Args)]
pub struct Args {
    /// Only check that they are up to date.
    #[arg(long)]
    check: bool,
}

/// The chore.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    for (name, source, text) in [
        ("wit/README.md", "wit/v0.1/ says", contract::readme(repo)?),
        ("docs/contract.md", "wit/ says", contract::page(repo)?),
        ("docs/mappings.md", "`conductor config schema` and host/host/tests/parts say", mappings::page(repo)?),
        ("docs/openapi.json", "`conductor openapi` prints", mappings::printed(repo, &["openapi"])?),
    ] {
        let path = repo.root().join(name);
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            println!("{} is up to date", path.display());
        } else if args.check {
            bail!("{} is not what {source}: run `cargo xtask docs`", path.display());
        } else {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{} written", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
