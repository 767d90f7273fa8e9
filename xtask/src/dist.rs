//! A release: an archive of the program, the bundled features, and their code, so that a first start compiles nothing.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result};

use crate::{
    features,
    host::{self, Midi, Profile},
    process,
    repo::Repo,
    setup,
};

/// What an archive holds beside the program and the features.
const PAGES: [&str; 6] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT", "docs"];

/// Build what is released: an archive with the program, the bundled features and their code.
#[derive(clap::Args)]
pub struct Args {
    /// Build quickly, not optimised: to try the archive out.
    #[arg(long)]
    dev: bool,
}

/// The chore. Prints where the folder and its archive are.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    let components = features::build(repo)?;
    let profile = if args.dev { Profile::Dev } else { Profile::Release };
    let built = host::build(repo, Midi::System, profile)?;
    let name = format!("conductor-{}-{}-{}", env!("CARGO_PKG_VERSION"), env::consts::ARCH, env::consts::OS);
    let dist = repo.target().join("dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    copy_packages(&components, &folder.join("features"))?;
    let program = folder.join(built.file_name().context("the program has no name")?);
    process::run(Command::new(&built).arg("precompile").arg(folder.join("features")).arg(&program))?;
    for page in PAGES {
        process::run(Command::new("cp").arg("-R").arg(repo.root().join(page)).arg(&folder))?;
    }
    println!("{}", folder.display());
    println!("{}", archive(&dist, &name)?.display());
    Ok(ExitCode::SUCCESS)
}

/// Copies the bundled features, without the tests' guests.
fn copy_packages(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        if let (Some(name), Some("wasm")) =
            (path.file_name(), path.extension().and_then(|extension| extension.to_str()))
        {
            fs::copy(&path, to.join(name)).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

/// Packs a folder so that the same files give the same bytes, on any machine and at any time.
fn archive(dist: &Path, name: &str) -> Result<PathBuf> {
    let archive = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--mode=u=rwX,go=rX"]);
    tar.args(["--use-compress-program=gzip -9n", "-cf"]).arg(&archive).arg(name).current_dir(dist);
    process::run(&mut tar)?;
    Ok(archive)
}
