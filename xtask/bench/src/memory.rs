//! PERF-5: what an idle host takes, and what each further feature adds.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_sandbox::PreparedFeature;
use conductor_sandbox::actor::Actor;
use conductor_stdx::heap;
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::components::{Lane, many_installed};
use crate::process::{self, Resident};
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;
use crate::start::{EMPTY, INSTALLED};

/// How many idle features are there to divide by.
const IDLE: usize = 40;

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let (program, features) = (arguments.conductor()?, arguments.features()?);
    let home = Folder::new()?;
    let host = || -> Result<Resident> {
        let (process, _) = process::conductor(program, features, home.path(), EMPTY)?;
        process::resident(&process.id().to_string())
    };
    let first = host()?;
    let warm = host()?;
    let megabytes = |bytes: f64| bytes / 1e6;
    section.figure("all bundled features, started warm", megabytes(warm.total), Unit::Megabytes);
    section.figure("  of which its own, not a file's", megabytes(warm.anonymous), Unit::Megabytes);
    section.figure("all bundled features, first start (compiled)", megabytes(first.total), Unit::Megabytes);
    section.target("all bundled features", megabytes(warm.total), Unit::Megabytes, Limit::AtMost(50.0));

    let configuration = many_installed(features, home.path(), INSTALLED)?;
    let (process, _) = process::conductor(program, features, home.path(), &configuration)?;
    drop(process);
    let (process, _) = process::conductor(program, features, home.path(), &configuration)?;
    let crowded = process::resident(&process.id().to_string())?;
    drop(process);
    section.figure(format!("with {INSTALLED} installed besides"), megabytes(crowded.total), Unit::Megabytes);
    section.figure("  of which its own, not a file's", megabytes(crowded.anonymous), Unit::Megabytes);

    let kilobytes = |bytes: f64| bytes / 1e3;
    for (name, package) in [
        ("small", "tests/hello.wasm"),
        ("with OSC and JSON", "osc-output.wasm"),
        ("the device library", "device-library.wasm"),
    ] {
        let growth = growth(home.path(), &features.join(package))?;
        let what = format!("one more idle feature, {name}");
        section.figure(format!("{what} (of {IDLE})"), kilobytes(growth.total), Unit::Kilobytes);
        section.figure("  of which its own, not a file's", kilobytes(growth.anonymous), Unit::Kilobytes);
        section.target(what, kilobytes(growth.total), Unit::Kilobytes, Limit::AtMost(100.0));
    }
    Ok(())
}

/// What an idle feature adds to resident memory.
#[derive(Debug, Serialize, Deserialize)]
struct Growth {
    total: f64,
    anonymous: f64,
}

/// Has another process hold idle features, so that nothing else moves its memory.
fn growth(home: &Path, package: &Path) -> Result<Growth> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg("idle").arg(home).arg(package).arg(IDLE.to_string()).output()?;
    if !output.status.success() {
        bail!("idle features: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("idle features gave no figures")
}

/// That other process: `count` features as a host has them. One package serves for all, but each is prepared
/// on its own, with its own code, as a registry does. No action of theirs is in use, so they have no worker.
pub fn idle(home: &Path, package: &Path, count: usize) -> Result<()> {
    let lane = Lane::new(home)?;
    // It outlives the features: what they would say goes nowhere.
    let (_sinks, said) = SinkQueue::new();
    let (observer, _, _) = observer::start(said, None)?;
    let feature = || -> Result<(PreparedFeature, Option<FeatureQueue>, Option<Actor>)> {
        let prepared = lane.prepare(package)?;
        let has_actions = !prepared.facts().descriptor.actions.is_empty();
        let queue = has_actions.then(|| FeatureQueue::new(prepared.clone(), observer.clone())).transpose()?;
        let actor = prepared.has_control().then(|| Actor::start(prepared.clone())).transpose()?;
        prepared.unload();
        Ok((prepared, queue.map(|(queue, _)| queue), actor))
    };
    // The first one brings what all share.
    let mut features = vec![feature()?];
    // A host does the same when it is ready.
    heap::give_back_free_memory();
    let before = process::resident("self")?;
    for _ in 0..count {
        features.push(feature()?);
    }
    heap::give_back_free_memory();
    let after = process::resident("self")?;
    let each = |after: f64, before: f64| (after - before) / count as f64;
    let growth = Growth { total: each(after.total, before.total), anonymous: each(after.anonymous, before.anonymous) };
    println!("{}", serde_json::to_string(&growth)?);
    drop(features);
    Ok(())
}
