//! `conductor feature check`: validates a package and tries it out before it is published.

use std::path::Path;

use super::super::{CommandResult, Failure};
use super::build;
use super::world::{Setup, World};
use conductor_package::Package;
use conductor_package::check;
use conductor_terminal::outln;

pub(super) fn run(path: &Path) -> CommandResult {
    let file = if path.is_dir() { build::package_path(path)? } else { path.to_owned() };
    if path.is_dir() && !file.is_file() {
        return Err(Failure::Wrong(format!(
            "conductor: {} is not there; build it first, with `conductor feature build {}`",
            file.display(),
            path.display()
        )));
    }
    let package = Package::read(&file)?;
    let mut problems: Vec<String> =
        check::check(&package.info).err().into_iter().flatten().map(|error| error.to_string()).collect();
    if problems.is_empty() {
        // What its type says is right; now whether it does what it says.
        let setup = Setup { grant_all: true, ..Setup::default() };
        let working = build::compiling(&package);
        let world = World::new(&package, &setup);
        drop(working);
        match world {
            Ok(world) => {
                let denied = world.report().denied.into_iter();
                problems.extend(denied.map(|denied| format!("asks for {denied}, which can't be granted")));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        let (id, version) = (&package.info.descriptor.id, &package.info.descriptor.version);
        outln!("{id} {version} is right: it is what it declares, and it installs");
        return Ok(());
    }
    let list: Vec<String> = problems.iter().map(|problem| format!("{}: {problem}", file.display())).collect();
    Err(Failure::Failed(anyhow::anyhow!("{} problem(s)\n{}", list.len(), list.join("\n"))))
}
