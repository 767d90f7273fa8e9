//! PERF-4: how long a start takes, with the code cache and without.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::arguments::Arguments;
use crate::measure::{median, quantile};
use crate::process;
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

const WARM: usize = 15;
const COLD: usize = 5;

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
    let milliseconds = |seconds: f64| seconds * 1e3;
    section.beside(
        format!("warm, median of {WARM}"),
        milliseconds(median(&warm)),
        Unit::Milliseconds,
        "starting `true`",
        milliseconds(median(&nothing)),
    );
    section.figure("warm, slowest", milliseconds(quantile(&warm, 1.0)), Unit::Milliseconds);
    section.figure(format!("first time, median of {COLD}"), median(&first), Unit::Seconds);
    section.target("warm start", milliseconds(median(&warm)), Unit::Milliseconds, Limit::AtMost(80.0));
    section.target("first start, where it compiles", median(&first), Unit::Seconds, Limit::AtMost(3.0));
    Ok(())
}

/// Seconds for a process that does nothing.
fn spawning() -> Result<f64> {
    let start = Instant::now();
    Command::new("true").status().context("`true` can't be started")?;
    Ok(start.elapsed().as_secs_f64())
}
