//! Packages: one `.wasm` file, read and described without running anything in it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use wasmparser::{CanonicalFunction, ComponentType, Encoding, Parser, Payload, Validator};

use super::descriptor::{Descriptor, DescriptorError, SECTION};

/// The largest package that is read, in bytes (32 MiB).
pub const MAX_PACKAGE: u64 = 32 * 1024 * 1024;

/// How deep components may stand in each other: the feature, and the adapters that its tools make.
const MAX_DEPTH: usize = 2;
/// Instances that a package may define, over all its components.
const MAX_INSTANCES: usize = 512;

/// Bytes of one function. The compiler takes time that grows with the square of it.
const MAX_FUNCTION: usize = 256 * 1024;

/// A package that was read: well-formed, described, not yet checked, not yet run.
#[derive(Debug, Clone)]
pub struct Package {
    /// Where it was read from.
    pub path: PathBuf,
    /// The component.
    pub bytes: Vec<u8>,
    /// What the bytes say.
    pub info: PackageInfo,
}

/// What a package says about itself.
#[derive(Debug, Clone, Serialize)]
pub struct PackageInfo {
    /// SHA-256 of the bytes, lower-case hex.
    pub digest: String,
    /// Length in bytes.
    pub size: usize,
    /// The descriptor that it carries.
    pub descriptor: Descriptor,
    /// The interfaces that it imports, such as `conductor:feature/udp@0.1.0`.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
}

/// Why a package was refused. Nothing in it was run.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The file can't be read.
    #[error("{}: can't be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Longer than [`MAX_PACKAGE`]. The rest was not read.
    #[error("{}: has {size} bytes; a package may have at most {MAX_PACKAGE}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length in bytes, at the least.
        size: u64,
    },
    /// Not WebAssembly at all.
    #[error("{}: is not WebAssembly", path.display())]
    NotWasm {
        /// The file.
        path: PathBuf,
    },
    /// A core module.
    #[error("{}: is a core WebAssembly module, not a component; wrap it with wit-component or `cargo xtask features`", path.display())]
    CoreModule {
        /// The file.
        path: PathBuf,
    },
    /// The file ends too early.
    #[error("{}: is truncated: {message}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where it ends, in the parser's words.
        message: String,
    },
    /// Not valid WebAssembly.
    #[error("{}: is not a valid component: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, in the validator's words.
        message: String,
    },
    /// It holds what would let it take memory or time that no limit of the sandbox counts.
    #[error("{}: {what}", path.display())]
    Unbounded {
        /// The file.
        path: PathBuf,
        /// What it holds, and why features may not.
        what: &'static str,
    },
    /// It carries no descriptor.
    #[error("{}: carries no descriptor; a feature has its feature.toml in a custom section named \"{SECTION}\"", path.display())]
    NoDescriptor {
        /// The file.
        path: PathBuf,
    },
    /// It carries several descriptors.
    #[error("{}: carries {count} descriptors; exactly one is allowed", path.display())]
    SeveralDescriptors {
        /// The file.
        path: PathBuf,
        /// How many.
        count: usize,
    },
    /// Its descriptor was not taken.
    #[error("{}: {source}", path.display())]
    Descriptor {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DescriptorError,
    },
}

impl Package {
    /// Reads a package from a file.
    ///
    /// # Errors
    /// See [`PackageError`]; the file is not read beyond [`MAX_PACKAGE`].
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        let io = |source| PackageError::Io { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if size > MAX_PACKAGE {
            return Err(PackageError::TooLarge { path: path.to_owned(), size });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
        // A file may grow while it is read, or be a device without a length.
        file.take(MAX_PACKAGE + 1).read_to_end(&mut bytes).map_err(io)?;
        Self::from_bytes(path, bytes)
    }

    /// Describes bytes that were read from `path`.
    ///
    /// # Errors
    /// See [`PackageError`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, PackageError> {
        let path = path.to_owned();
        if bytes.len() as u64 > MAX_PACKAGE {
            return Err(PackageError::TooLarge { path, size: bytes.len() as u64 });
        }
        if !Parser::is_component(&bytes) {
            return Err(if Parser::is_core_wasm(&bytes) {
                PackageError::CoreModule { path }
            } else {
                PackageError::NotWasm { path }
            });
        }
        let wrong = |error: wasmparser::BinaryReaderError| {
            let message = error.to_string();
            if message.contains("unexpected end") {
                PackageError::Truncated { path: path.clone(), message }
            } else {
                PackageError::Malformed { path: path.clone(), message }
            }
        };
        Validator::new().validate_all(&bytes).map_err(wrong)?;

        let unbounded = |what| PackageError::Unbounded { path: path.clone(), what };
        // How many components stand around each other; and all scopes, modules included.
        let mut scopes: Vec<bool> = Vec::new();
        let mut instances = 0_usize;
        let mut descriptors = Vec::new();
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(&bytes) {
            match payload.map_err(wrong)? {
                Payload::Version { encoding, .. } => {
                    scopes.push(encoding == Encoding::Component);
                    if scopes.iter().filter(|component| **component).count() > MAX_DEPTH {
                        return Err(unbounded(
                            "nests components too deep; each level could double the code to compile",
                        ));
                    }
                }
                Payload::End(_) => drop(scopes.pop()),
                Payload::CodeSectionEntry(body) if body.as_bytes().len() > MAX_FUNCTION => {
                    return Err(unbounded("has a function of more than 256 KiB; compiling it could take hours"));
                }
                Payload::ComponentInstanceSection(section) => instances += section.count() as usize,
                Payload::InstanceSection(section) => instances += section.count() as usize,
                Payload::ComponentTypeSection(section) => {
                    for defined in section {
                        if matches!(defined.map_err(wrong)?, ComponentType::Resource { .. }) {
                            return Err(unbounded("defines a resource type; the host could not count its handles"));
                        }
                    }
                }
                Payload::ComponentCanonicalSection(section) => {
                    for function in section {
                        match function.map_err(wrong)? {
                            CanonicalFunction::Lift { .. }
                            | CanonicalFunction::Lower { .. }
                            | CanonicalFunction::ResourceDrop { .. } => {}
                            _ => return Err(unbounded("uses a built-in function that features have no use for")),
                        }
                    }
                }
                Payload::CustomSection(section) if section.name() == SECTION => descriptors.push(section.data()),
                Payload::ComponentImportSection(section) if scopes.len() == 1 => {
                    for import in section {
                        imports.push(import.map_err(wrong)?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if scopes.len() == 1 => {
                    for export in section {
                        exports.push(export.map_err(wrong)?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        if instances > MAX_INSTANCES {
            return Err(unbounded("defines more instances than any feature needs"));
        }
        let descriptor = match descriptors.as_slice() {
            [] => return Err(PackageError::NoDescriptor { path }),
            [one] => {
                Descriptor::parse(one).map_err(|source| PackageError::Descriptor { path: path.clone(), source })?
            }
            several => return Err(PackageError::SeveralDescriptors { path, count: several.len() }),
        };
        let digest = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let info = PackageInfo { digest, size: bytes.len(), descriptor, imports, exports };
        Ok(Self { path, bytes, info })
    }
}
