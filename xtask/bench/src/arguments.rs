//! The command line, and what the environment says.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::helpers::Helper;
use crate::rows::Row;

/// Measure Conductor beside its peers.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench --")]
pub struct Arguments {
    /// Measure only these rows
    #[arg(long, value_enum, value_delimiter = ',', ignore_case = true, value_name = "ROW")]
    pub only: Vec<Row>,
    /// Also write everything as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// MIDIMonster's program, measured as a peer in PERF-2; built in its source (`cbdevnet/midimonster`) by
    /// `CFLAGS=-O2 make midimonster && CFLAGS=-O2 make -C backends libmmbackend.o osc.so`
    #[arg(long, value_name = "PROGRAM")]
    pub midimonster: Option<PathBuf>,
    /// A Python that has OpenAI's SDK: measured as a peer in PERF-7
    #[arg(long, env = "CONDUCTOR_SDK_PYTHON", value_name = "PYTHON")]
    sdk_python: Option<PathBuf>,
    /// The optimised `conductor`
    #[arg(long, env = "CONDUCTOR_BIN", value_name = "PROGRAM")]
    conductor: Option<PathBuf>,
    /// The folder of the features' components; the tests' are in `tests` below it
    #[arg(long, env = "CONDUCTOR_FEATURES", value_name = "FOLDER")]
    features: Option<PathBuf>,
    #[command(subcommand)]
    pub helper: Option<Helper>,
}

impl Arguments {
    /// The program that is measured.
    pub fn conductor(&self) -> Result<&Path> {
        self.conductor.as_deref().context("which `conductor`? `cargo xtask bench` builds and names it")
    }

    /// The Python that has OpenAI's SDK.
    pub fn sdk_python(&self) -> Result<&Path> {
        self.sdk_python.as_deref().context("which Python has OpenAI's SDK? `cargo xtask bench` installs and names it")
    }

    /// The folder of the bundled features.
    pub fn features(&self) -> Result<&Path> {
        self.features.as_deref().context("where are the features? `cargo xtask bench` builds and names them")
    }
}
