//! Which Rust builds the guests.
//!
//! Features are compiled for `wasm32-unknown-unknown`. Where the active Rust has that target nothing special
//! happens. Some machines reach package registries only, and cannot get it: there the distribution's own Rust
//! builds the standard library from the source that it ships.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{cargo, process, rust_target};

/// The target of all guests.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A Rust that can build for [`TARGET`].
#[derive(Debug, PartialEq)]
pub enum GuestRust {
    /// The active toolchain has the target.
    Active,
    /// The system's Rust, which has no such target, but the source of the standard library.
    System {
        /// The linker, by path: `wasm-ld` of some version.
        linker: PathBuf,
    },
}

impl GuestRust {
    /// Finds one that is there, for a workspace in `folder` (which may ask for a toolchain of its own).
    pub fn find(folder: &Path) -> Option<Self> {
        if rust_target::is_there(folder, TARGET) {
            return Some(Self::Active);
        }
        let llvm = system_llvm()?;
        Some(Self::System { linker: linker(Path::new("/usr/bin"), llvm)? })
    }

    /// Finds one, or has rustup add the target to the active toolchain.
    pub fn find_or_add(folder: &Path) -> Option<Self> {
        Self::find(folder)
            .or_else(|| rust_target::add(folder, TARGET, "features are WebAssembly").then_some(Self::Active))
    }

    /// `cargo <subcommand> --target wasm32-unknown-unknown`, in `folder`, building into `target`; `locked`
    /// where lock files must stay as they are.
    pub fn cargo(&self, subcommand: &str, folder: &Path, target: &Path, locked: bool) -> Command {
        let mut command = match self {
            Self::Active => cargo::command(subcommand, locked),
            Self::System { linker } => {
                let mut command = Command::new("/usr/bin/cargo");
                cargo::forget_our_build(&mut command);
                command
                    .arg(subcommand)
                    .args(locked.then_some("--locked"))
                    .env("RUSTC", "/usr/bin/rustc")
                    // A released compiler builds its own standard library when told so.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
                    // Ours, and meant for the libraries of the active toolchain.
                    .env_remove("LD_LIBRARY_PATH");
                command
            }
        };
        command
            .current_dir(folder)
            .args(["--target", TARGET])
            .env("CARGO_TARGET_DIR", target)
            // Others are meant for this machine's processor and linker.
            .env_remove("RUSTFLAGS")
            .env("CARGO_ENCODED_RUSTFLAGS", rust_flags(&cargo_home().into_iter().collect::<Vec<_>>()));
        command
    }

    /// One line about the choice and its reason.
    pub fn describe(&self) -> String {
        match self {
            Self::Active => format!("the active Rust, which has the target {TARGET}"),
            Self::System { linker } => format!(
                "/usr/bin/rustc with its own std source and {}, since the active Rust lacks the target {TARGET}",
                linker.display()
            ),
        }
    }
}

/// Cargo's own folder, with the sources of crates: `CARGO_HOME`, else `.cargo` in the user's. `None` if there is neither.
pub fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")))
}

/// Flags of rustc, as `CARGO_ENCODED_RUSTFLAGS` has them, with which a module names no path below these folders: panics
/// say where they are, a package is read by others, and the same sources give the same bytes on another machine.
pub fn rust_flags(folders: &[PathBuf]) -> String {
    let flags = folders.iter().map(|folder| format!("--remap-path-prefix={}=", folder.display()));
    flags.collect::<Vec<_>>().join("\u{1f}")
}

/// The LLVM version of the system's Rust, if that Rust is new enough and has the source of std.
fn system_llvm() -> Option<u32> {
    let (rustc, cargo) = (Path::new("/usr/bin/rustc"), Path::new("/usr/bin/cargo"));
    if !rustc.is_file() || !cargo.is_file() {
        return None;
    }
    let sysroot = process::read(Command::new(rustc).args(["--print", "sysroot"])).ok()?;
    if !Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.lock").is_file() {
        return None;
    }
    let about = process::read(Command::new(rustc).arg("-vV")).ok()?;
    let field = |name: &str| about.lines().find_map(|line| line.strip_prefix(name));
    if version(field("release: ")?) < version(env!("CARGO_PKG_RUST_VERSION")) {
        return None;
    }
    version(field("LLVM version: ")?).first().copied()
}

/// `1.96.0-beta` as numbers that compare.
fn version(text: &str) -> Vec<u32> {
    text.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

/// The `wasm-ld` that suits an LLVM version, or else the newest in that folder.
fn linker(folder: &Path, llvm: u32) -> Option<PathBuf> {
    let exact = folder.join(format!("wasm-ld-{llvm}"));
    if exact.is_file() {
        return Some(exact);
    }
    let entries = fs::read_dir(folder).ok()?.flatten();
    let versioned = entries.filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.strip_prefix("wasm-ld-")?.parse().ok()?;
        Some((number, entry.path()))
    });
    versioned.max().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(version("1.96.0") > version("1.95"));
        assert!(version("1.100.0-nightly") > version("1.95"));
        assert!(version("1.63.0") < version("1.95"));
    }

    #[test]
    fn a_module_names_no_folder_of_this_machine() {
        let folders = ["/home/me/.cargo", "/home/me/conductor"].map(PathBuf::from);
        let wanted = "--remap-path-prefix=/home/me/.cargo=\u{1f}--remap-path-prefix=/home/me/conductor=";
        assert_eq!(rust_flags(&folders), wanted);
    }

    #[test]
    fn the_matching_linker_is_better_than_a_newer_one() {
        let folder = env::temp_dir().join(format!("guest-linker-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for name in ["wasm-ld-9", "wasm-ld-22", "wasm-ld-23", "wasm-ld"] {
            fs::write(folder.join(name), "").expect("a file");
        }
        assert_eq!(linker(&folder, 22), Some(folder.join("wasm-ld-22")));
        assert_eq!(linker(&folder, 21), Some(folder.join("wasm-ld-23")));
        fs::remove_dir_all(&folder).expect("its end");
        assert_eq!(linker(&folder, 22), None);
    }
}
