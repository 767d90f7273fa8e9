//! PERF-4: how long a start takes, with the code cache, without, and as a release with code for its features.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::arguments::Arguments;
use crate::components::many_installed;
use crate::measure::{median, quantile};
use crate::process;
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

const WARM: usize = 15;
const COLD: usize = 5;
/// How many features are installed besides the bundled ones, where there are many.
pub const INSTALLED: usize = 100;

/// The smallest configuration: what is measured is the host and its features.
pub const EMPTY: &str = "";

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let start = |home: &Folder| -> Result<f64> {
        let (_process, took) = process::conductor(arguments.conductor()?, arguments.features()?, home.path(), EMPTY)?;
        Ok(took.as_secs_f64())
    };
    let mut first = Vec::new();
    for _ in 0..COLD {
        first.push(start(&Folder::new()?)?);
    }
    let home = Folder::new()?;
    start(&home)?;
    let (mut warm, mut nothing) = (Vec::new(), Vec::new());
    for _ in 0..WARM {
        nothing.push(spawning()?);
        warm.push(start(&home)?);
    }
    let release = Folder::new()?;
    let program = released(arguments, release.path())?;
    let features = release.path().join("features");
    let mut released = Vec::new();
    for _ in 0..COLD {
        let (_process, took) = process::conductor(&program, &features, Folder::new()?.path(), EMPTY)?;
        released.push(took.as_secs_f64());
    }
    let crowd = Folder::new()?;
    let configuration = many_installed(arguments.features()?, crowd.path(), INSTALLED)?;
    let mut crowded = Vec::new();
    // The first one compiles.
    for _ in 0..=COLD {
        let program = (arguments.conductor()?, arguments.features()?);
        let (_process, took) = process::conductor(program.0, program.1, crowd.path(), &configuration)?;
        crowded.push(took.as_secs_f64());
    }
    let milliseconds = |seconds: f64| seconds * 1e3;
    section.beside(
        format!("warm, median of {WARM}"),
        milliseconds(median(&warm)),
        Unit::Milliseconds,
        "starting `true`",
        milliseconds(median(&nothing)),
    );
    section.figure("warm, slowest", milliseconds(quantile(&warm, 1.0)), Unit::Milliseconds);
    let with_crowd = format!("warm, with {INSTALLED} installed besides, median of {COLD}");
    section.figure(with_crowd, milliseconds(median(&crowded[1..])), Unit::Milliseconds);
    section.figure(format!("first time, median of {COLD}"), median(&first), Unit::Seconds);
    let first_released = milliseconds(median(&released));
    section.figure(format!("first time of a release, median of {COLD}"), first_released, Unit::Milliseconds);
    section.target("first start of a release", first_released, Unit::Milliseconds, Limit::AtMost(300.0));
    section.target("warm start", milliseconds(median(&warm)), Unit::Milliseconds, Limit::AtMost(80.0));
    section.target("first start, where it compiles", median(&first), Unit::Seconds, Limit::AtMost(3.0));
    Ok(())
}

/// A release of the program and its features in `folder`.
fn released(arguments: &Arguments, folder: &Path) -> Result<std::path::PathBuf> {
    let (features, program) = (folder.join("features"), folder.join("conductor"));
    fs::create_dir(&features)?;
    for package in fs::read_dir(arguments.features()?)? {
        let package = package?.path();
        if let (Some(name), Some("wasm")) = (package.file_name(), package.extension().and_then(|kind| kind.to_str())) {
            fs::copy(&package, features.join(name))?;
        }
    }
    let made = Command::new(arguments.conductor()?).arg("precompile").args([&features, &program]).output()?;
    ensure!(made.status.success(), "no release: {}", String::from_utf8_lossy(&made.stderr));
    Ok(program)
}

/// Seconds for a process that does nothing.
fn spawning() -> Result<f64> {
    let start = Instant::now();
    Command::new("true").status().context("`true` can't be started")?;
    Ok(start.elapsed().as_secs_f64())
}
