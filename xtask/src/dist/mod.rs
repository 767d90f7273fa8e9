//! A release, for this system or [another one](foreign): an archive of the program, the bundled features, and their code,
//! so that a first start compiles nothing; with manual pages, completions, what a Linux desktop wants to know, licences, and
//! a bill of materials. On Debian and Ubuntu a package, too.
//!
//! The same sources give the same bytes, wherever they are built: no path of this machine gets into what is released
//! ([`apart`]), and times and modes are set. `--twice` holds it to that ([`twice`]); `--install` tries the package out
//! ([`clean_root`]). What is made is tried out, for another system as far as that can be done here ([`tried`]).

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
    setup, web,
};

mod apart;
mod clean_root;
mod deb;
mod debian;
mod foreign;
mod parts;
mod stripped;
mod tried;
mod twice;

use foreign::{Foreign, System};

/// Pages that go along.
const PAGES: [&str; 6] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-APACHE", "LICENSE-MIT", "docs"];
/// Shells, and what each calls the file with its completions.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "conductor.bash"),
    ("zsh", "_conductor"),
    ("fish", "conductor.fish"),
    ("powershell", "_conductor.ps1"),
    ("elvish", "conductor.elv"),
];

/// Build what is released: an archive with the program, the bundled features and their code.
#[derive(clap::Args)]
pub struct Args {
    /// Build quickly, not optimised: to try the archive out.
    #[arg(long)]
    dev: bool,
    /// Build in a folder of its own, as releases are, also with --dev.
    #[arg(long)]
    apart: bool,
    /// Build for another system, on Linux on x86-64, and try it out by Wine or QEMU.
    #[arg(long)]
    target: Option<System>,
    /// Build once more, out of a clone of the last commit in another folder, and compare.
    #[arg(long)]
    twice: bool,
    /// Install the package in a clean Debian system in a folder, run it there, and remove it. Needs root and a mirror.
    #[arg(long, conflicts_with = "target")]
    install: bool,
}

/// A release in the making.
pub struct Release {
    /// The folder that all releases are in.
    dist: PathBuf,
    /// What is released, as a folder.
    folder: PathBuf,
    /// When what is released was written, in seconds since 1970: that of its last commit.
    time: u64,
}

/// The chore. Prints where the folder, its archive and the package are, and writes their checksums beside them.
pub fn run(repo: &Repo, args: Args) -> Result<ExitCode> {
    setup::ensure(setup::Purpose::Build)?;
    let components = features::build(repo)?;
    match web::ensure(repo) {
        Ok(()) => drop(web::build(repo, false)?),
        Err(reason) => eprintln!("this release has no pages for the web shell: {reason:#}"),
    }
    let profile = if args.dev { Profile::Dev } else { Profile::Release };
    let foreign = args.target.map(|system| Foreign::ready(repo, system)).transpose()?;
    let foreign = foreign.as_ref();
    let is_apart = args.apart || args.twice || !args.dev || foreign.is_some();
    let built =
        if is_apart { apart::build(repo, profile, foreign)? } else { host::build(repo, Midi::System, profile)? };
    let built = stripped::copy(&built, &repo.target().join("dist-program"), foreign)?;
    let here = format!("{}-{}", env::consts::ARCH, env::consts::OS);
    let name = foreign.map_or(here.as_str(), |foreign| foreign.system().name());
    let name = format!("conductor-{}-{name}", env!("CARGO_PKG_VERSION"));
    let dist = repo.target().join("dist");
    let release = Release { folder: dist.join(&name), time: time(repo), dist };
    if release.dist.exists() {
        fs::remove_dir_all(&release.dist).with_context(|| release.dist.display().to_string())?;
    }
    fill(repo, &release.folder, &components, &built, foreign)?;
    let mut made = match args.target {
        Some(System::Windows) => vec![zip(&release, &name)?],
        _ => vec![archive(&release, &name)?],
    };
    if process::find("dpkg-deb").is_some() && args.target != Some(System::Windows) {
        made.push(deb::build(&release, args.target, args.dev)?);
    }
    println!("{}", release.folder.display());
    made.iter().for_each(|file| println!("{}", file.display()));
    let names = made.iter().filter_map(|file| file.file_name());
    let sums = process::read(Command::new("sha256sum").args(names).current_dir(&release.dist))?;
    fs::write(release.dist.join("SHA256SUMS"), sums)?;
    if args.twice {
        twice::compare(repo, &release, args.target, args.dev)?;
    }
    tried::try_out(foreign, &release.folder, &made[0], &repo.target().join("dist-tried"))?;
    if args.install {
        clean_root::try_out(&release)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts into `folder` what is released.
fn fill(repo: &Repo, folder: &Path, components: &Path, built: &Path, foreign: Option<&Foreign>) -> Result<()> {
    let run = || foreign.map_or_else(|| Command::new(built), |foreign| foreign.command(built));
    copy_packages(components, &folder.join("features"))?;
    let program = folder.join(built.file_name().context("the program has no name")?);
    process::run(run().arg("precompile").arg(folder.join("features")).arg(&program))?;
    let share = folder.join("share");
    for page in PAGES {
        copy_tree(&repo.root().join(page), &share.join(page))?;
    }
    let mut parts = parts::all(repo, foreign.map(Foreign::system))?;
    let ui = web::folder(repo);
    if ui.join(web::PAGES).is_dir() {
        parts.extend(parts::of_pages(&ui)?);
    }
    fs::write(share.join("THIRD-PARTY-LICENSES.txt"), parts::licences(&parts)?)?;
    let bill = serde_json::to_string_pretty(&parts::bill(&parts, env!("CARGO_PKG_VERSION")))?;
    fs::write(share.join("sbom.cdx.json"), bill + "\n")?;
    if foreign.is_none_or(|foreign| foreign.system() != System::Windows) {
        copy_tree(&repo.root().join("xtask/packaging"), &folder.join("linux"))?;
    }
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    process::run(run().arg("manual").arg(&man))?;
    for (shell, file) in COMPLETIONS {
        let script = process::read(run().args(["completions", shell]))?;
        fs::write(completions.join(file), script)?;
    }
    Ok(())
}

/// When the last commit was made; 0 where there is no history.
fn time(repo: &Repo) -> u64 {
    let time = process::read(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(repo.root()));
    time.ok().and_then(|time| time.trim().parse().ok()).unwrap_or(0)
}

/// Copies a file or a folder with all that is in it; the folders above it are made.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to).with_context(|| to.display().to_string())?;
        for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    if let Some(above) = to.parent() {
        fs::create_dir_all(above).with_context(|| above.display().to_string())?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
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

/// Packs the folder so that the same files give the same bytes, on any machine and at any time.
fn archive(release: &Release, name: &str) -> Result<PathBuf> {
    let archive = release.dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", release.time));
    tar.args(["--use-compress-program=gzip -9n", "-cf"]).arg(&archive).arg(name).current_dir(&release.dist);
    process::run(&mut tar)?;
    Ok(archive)
}

/// The same, as Windows opens it by itself.
fn zip(release: &Release, name: &str) -> Result<PathBuf> {
    if process::find("zip").is_none() {
        setup::install(&[("zip", "packs what Windows opens by itself")])?;
    }
    let archive = release.dist.join(format!("{name}.zip"));
    // It has times of files in local time, and takes files in the order that it is told.
    let touched = format!("--date=@{}", release.time);
    process::run(
        Command::new("find").arg(name).args(["-exec", "touch", &touched, "{}", "+"]).current_dir(&release.dist),
    )?;
    let files = process::read(Command::new("find").args([name, "-type", "f"]).current_dir(&release.dist))?;
    let mut files: Vec<&str> = files.lines().collect();
    files.sort_unstable();
    let mut zip = Command::new("zip");
    zip.args(["-X", "-9", "-q"]).arg(&archive).args(files).env("TZ", "UTC").current_dir(&release.dist);
    process::run(&mut zip)?;
    Ok(archive)
}
