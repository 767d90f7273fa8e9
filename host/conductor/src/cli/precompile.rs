//! `conductor precompile`: code for the bundled features of a release, and the program that trusts it. For the chore that
//! makes a release, which runs the program that it has just built.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::Context as _;
use parking_lot::Mutex;

use super::CommandResult;
use conductor_package::file::Package;
use conductor_precompiled::{Anchor, write};
use conductor_sandbox::compiler;
use conductor_terminal as terminal;

/// The arguments of `conductor precompile`.
#[derive(Debug, clap::Args)]
pub(super) struct PrecompileArguments {
    /// The folder of the bundled features; the code goes into its folder `code`
    #[arg(value_name = "FOLDER")]
    features: PathBuf,
    /// Where to write the copy of this program that trusts the code
    #[arg(value_name = "FILE")]
    program: PathBuf,
}

pub(super) fn run(arguments: &PrecompileArguments) -> CommandResult {
    let code = compiled(&packages(&arguments.features)?)?;
    let listed = code.iter().map(|(digest, code)| (digest.as_str(), code.as_slice()));
    let digest = write(&arguments.features, listed).map_err(anyhow::Error::from)?;
    let this = std::env::current_exe().context("this program's file can't be found")?;
    let mut program = std::fs::read(&this).with_context(|| this.display().to_string())?;
    Anchor::put(&mut program, digest).map_err(anyhow::Error::from)?;
    let to = &arguments.program;
    std::fs::write(to, program)
        .and_then(|()| std::fs::set_permissions(to, std::fs::metadata(&this)?.permissions()))
        .with_context(|| to.display().to_string())?;
    let bytes: usize = code.iter().map(|(_, code)| code.len()).sum();
    terminal::print_line(format_args!("{} features, {} KiB of code", code.len(), bytes / 1024));
    Ok(())
}

/// The digest and the code of each of these packages, in their order; compiled on all processors.
fn compiled(packages: &[PathBuf]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let compile = |path: &PathBuf| -> anyhow::Result<(String, Vec<u8>)> {
        let package = Package::read(path).map_err(anyhow::Error::from)?;
        let code = compiler::for_release(&package.bytes).with_context(|| path.display().to_string())?;
        Ok((package.info.digest, code))
    };
    let (next, code) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = packages.get(at) else { return };
                    let compiled = compile(path);
                    code.lock().push((at, compiled));
                }
            });
        }
    });
    let mut code = code.into_inner();
    code.sort_by_key(|(at, _)| *at);
    code.into_iter().map(|(_, compiled)| compiled).collect()
}

/// The packages of a folder, by name: the order decides about nothing, but the same input gives the same output.
fn packages(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = read.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wasm"));
    paths.sort();
    Ok(paths)
}
