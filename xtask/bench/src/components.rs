//! Guests in this process: packages, from the file to an instance that can be called.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use conductor_observer::sink_message::SinkQueue;
use conductor_package::{Grants, Package};
use conductor_sandbox::services::Services;
use conductor_sandbox::{Compiler, PreparedFeature, Sandbox};

use crate::datagrams::Discard;

/// The tables of a configuration that install this package from its file, with grants: the fields of an inline table.
/// Grants are for one id and digest, so both are read from the file.
pub fn installed(name: &str, file: &Path, grants: &str) -> Result<String> {
    let info = Package::read(file)?.info;
    let (id, digest) = (&info.descriptor.id, &info.digest);
    Ok(format!(
        "[features.{name}]\npath = {:?}\nid = \"{id}\"\ndigest = \"sha256:{digest}\"\ngrants = {{ {grants} }}\n",
        file.display().to_string()
    ))
}

/// The configuration of a host with this many installed features, each of its own id, digest and action: copies in `folder`
/// of the small test feature, whose names are replaced by others of the same length.
pub fn many_installed(features: &Path, folder: &Path, count: usize) -> Result<String> {
    let original = std::fs::read(features.join("tests/hello.wasm"))?;
    let mut configuration = String::new();
    for number in 0..count {
        let (name, action) = (format!("h{number:04}"), format!("H{number:04}"));
        let mut copy = original.clone();
        for (from, to) in [(b"hello", &name), (b"Hello", &action)] {
            for at in memchr::memmem::find_iter(&original, from) {
                copy[at..at + from.len()].copy_from_slice(to.as_bytes());
            }
        }
        let file = folder.join(format!("{name}.wasm"));
        std::fs::write(&file, copy)?;
        configuration += &installed(&name, &file, "")?;
    }
    Ok(configuration)
}

/// The sandbox with services around it, as a host has it; its datagrams go nowhere.
pub struct Lane {
    sandbox: Sandbox,
}

impl Lane {
    /// Starts a sandbox. Compiled code is kept in `home`.
    pub fn new(home: &Path) -> Result<Self> {
        // The receiver is dropped: these features send no messages.
        let (sinks, _) = SinkQueue::new();
        let mut services = Services::new(sinks, Box::new(Discard)).home(Some(home));
        services.datagram_rate = 1e12;
        // What is measured is how fast calls are, not how many there may be.
        (services.control_cpu.rate, services.lane_cpu.rate) = (1e9, 1e9);
        Ok(Self { sandbox: Sandbox::new(Some(home), Arc::new(services), Compiler::find())? })
    }

    /// The sandbox itself.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Checks and compiles a package; it is granted what bundled features are.
    pub fn prepare(&self, file: &Path) -> Result<PreparedFeature> {
        let package = Package::read(file)?;
        self.sandbox.prepare(&package, Grants::bundled()).with_context(|| format!("{} is not taken", file.display()))
    }
}
