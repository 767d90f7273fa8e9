//! Fuzz targets, one per file: invariants that hold for any input.
//!
//! A target is a function of bytes that panics where something is not so. Two things call it: a plain test
//! (`tests/replay.rs`), with the corpus that is kept here and what little changes make of it, in every test
//! run; and libFuzzer (`libfuzzer/`), by `cargo xtask fuzz`, for as long as one likes.

#[cfg(feature = "host")]
mod artnet;
mod bytes;
#[cfg(feature = "host")]
mod config;
#[cfg(feature = "host")]
mod configs_from;
#[cfg(feature = "host")]
mod descriptor;
#[cfg(feature = "host")]
mod endpoints;
mod expressions;
mod gestures;
#[cfg(feature = "host")]
mod mcp_frames;
mod midi;
#[cfg(feature = "host")]
mod osc;
#[cfg(feature = "host")]
mod package;
#[cfg(feature = "host")]
pub mod plans;
#[cfg(feature = "host")]
mod provider_stream;
#[cfg(feature = "host")]
mod resolver;
mod rules;
mod rules_from;
#[cfg(feature = "host")]
mod signature;
#[cfg(feature = "host")]
mod skills;
#[cfg(feature = "host")]
mod terminal;
mod timeline;
#[cfg(feature = "host")]
mod token_realm;

/// A target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// What it is called; the folder of its corpus, too.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&[u8]),
}

/// Those in the engine, and in what is as quickly built.
pub const ENGINE: [Target; 5] = [
    Target { name: "midi", run: midi::run },
    Target { name: "timeline", run: timeline::run },
    Target { name: "gestures", run: gestures::run },
    Target { name: "rules", run: rules::run },
    Target { name: "expressions", run: expressions::run },
];

/// Those in the host.
#[cfg(feature = "host")]
pub const HOST: [Target; 14] = [
    Target { name: "osc", run: osc::run },
    Target { name: "artnet", run: artnet::run },
    Target { name: "config", run: config::run },
    Target { name: "resolver", run: resolver::run },
    Target { name: "terminal", run: terminal::run },
    Target { name: "package", run: package::run },
    Target { name: "descriptor", run: descriptor::run },
    Target { name: "signature", run: signature::run },
    Target { name: "token_realm", run: token_realm::run },
    Target { name: "plans", run: plans::run },
    Target { name: "provider_stream", run: provider_stream::run },
    Target { name: "mcp_frames", run: mcp_frames::run },
    Target { name: "endpoints", run: endpoints::run },
    Target { name: "skills", run: skills::run },
];
/// Those in the host: none were built in.
#[cfg(not(feature = "host"))]
pub const HOST: [Target; 0] = [];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    ENGINE.into_iter().chain(HOST).find(|target| target.name == name)
}
