//! The Rust that builds the guests: found, or installed.
//!
//! `rust-toolchain.toml` asks rustup for the guests' target. Where rustup can't get it, apt may offer a Rust that
//! builds the standard library for it.

use std::process::Command;

use anyhow::{Context, Result, bail};
pub use conductor_feature_build::GuestRust;
use conductor_feature_build::guest_rust::{TARGET, cargo_home, rust_flags};

use crate::{
    guest_compiler, process,
    repo::Repo,
    setup::{apt, install},
};

/// Finds one, or installs one.
pub fn ensure(repo: &Repo) -> Result<GuestRust> {
    if let Some(found) = GuestRust::find_or_add(repo.root()) {
        return Ok(found);
    }
    if !apt::available() {
        bail!(
            "features are WebAssembly: the active Rust needs the target {TARGET}. \
             Run `rustup target add {TARGET}`, then try again."
        );
    }
    let lld = newest_lld()?;
    install(&[
        ("rustc-web", "a Rust that can build features for WebAssembly, since the active one cannot get that target"),
        ("cargo-web", "its Cargo"),
        ("rust-web-src", "the source of its standard library"),
        (&lld, "its linker, wasm-ld"),
    ])?;
    GuestRust::find(repo.root()).with_context(|| {
        format!(
            "the installed rustc-web or {lld} is of no use: features need Rust {} or newer with its source",
            env!("CARGO_PKG_RUST_VERSION")
        )
    })
}

/// `cargo <subcommand> --target wasm32-unknown-unknown`, in the repository's root.
pub fn cargo(rust: &GuestRust, repo: &Repo, subcommand: &str) -> Command {
    let mut command = rust.cargo(subcommand, repo.root(), &repo.guest_target(), repo.locked());
    // The SDK lies beside the workspace that uses it, so its files have whole paths.
    let folders: Vec<_> = [Some(repo.root().to_owned()), cargo_home()].into_iter().flatten().collect();
    command.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&folders));
    guest_compiler::wrap(&mut command, repo);
    command
}

/// The newest `lld-NN` that apt offers.
fn newest_lld() -> Result<String> {
    apt::update()?;
    let names = process::read(Command::new("apt-cache").args(["search", "--names-only", "^lld-[0-9]+$"]))?;
    let versions = names.lines().filter_map(|line| line.split(' ').next()?.strip_prefix("lld-")?.parse::<u32>().ok());
    let newest = versions.max().context("apt offers no package lld-NN, whose wasm-ld links the features")?;
    Ok(format!("lld-{newest}"))
}
