//! Conductor's benchmarks: figures beside those of peers, measured in one run.
//!
//! `cargo xtask bench` builds what is measured and runs this. A row is one entry of the list of what must be
//! reached ([`rows::Row`]). A target that is missed is printed and no error: this measures, it does not
//! judge. It fails only where something could not be measured at all.
//!
//! Everything stays on this machine: packets go to 127.0.0.1 only. Figures of busy machines are noisy, so
//! contenders take turns, medians count, and ratios say more than times.

mod agents;
mod allocations;
mod arguments;
mod arrivals;
mod calls;
mod clock_out;
mod components;
mod control;
mod council;
mod datagrams;
mod devices;
mod gestures;
mod helpers;
mod looking;
mod mapper;
mod matching;
mod measure;
mod memory;
mod models;
mod neighbours;
mod newcomer;
mod platform;
mod process;
mod processors;
mod reload;
mod report;
mod round_trip;
mod rows;
mod scratch;
mod sdk;
mod skills;
mod stage;
mod start;
mod timers;
mod turns;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::Arguments;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.helper {
        Some(helper) => helpers::run(helper).map(|()| ExitCode::SUCCESS),
        None => rows::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("conductor-bench: {error:#}");
        ExitCode::FAILURE
    })
}
