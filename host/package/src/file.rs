//! Packages: one `.wasm` file, read and described without running anything in it.

use std::path::{Path, PathBuf};

use serde::Serialize;
use wasmparser::{Parser, Validator};

use crate::descriptor::{Descriptor, DescriptorError, SECTION};
use crate::structure::{self, Structure, StructureError};
use conductor_stdx::digest::sha256;
use conductor_stdx::plain_file::{self, FileIdentity};

/// The largest package that is read, in bytes (32 MiB).
pub const MAX_PACKAGE: u64 = 32 * 1024 * 1024;

/// A package that was read: well-formed, described, not yet checked, not yet run.
#[derive(Debug, Clone)]
pub struct Package {
    /// Where it was read from.
    pub path: PathBuf,
    /// The component.
    pub bytes: Vec<u8>,
    /// What the bytes say.
    pub info: PackageInfo,
    /// The file that the bytes were read from. `None` if they come from elsewhere, or if the file was written so lately
    /// that it can't be known again.
    pub file: Option<FileIdentity>,
    /// Whether the bodies of its functions are within the bounds, and all of it is valid WebAssembly.
    validated: bool,
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
    #[error("{}: {source}", path.display())]
    Structure {
        /// The file.
        path: PathBuf,
        /// Of what it has too much, or what it may not have.
        source: StructureError,
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
        Self::read_compiled(path, |_| false)
    }

    /// The same for a file whose code may be compiled already. If `is_compiled` says that of its digest, the bodies of its
    /// functions are not read and it is not validated, which takes longer than all else: [`validate`](Self::validate)
    /// has to do it before the package is compiled after all.
    ///
    /// # Errors
    /// See [`PackageError`]; the file is not read beyond [`MAX_PACKAGE`].
    pub fn read_compiled(path: &Path, is_compiled: impl FnOnce(&str) -> bool) -> Result<Self, PackageError> {
        let io = |source| PackageError::Io { path: path.to_owned(), source };
        let file = plain_file::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        if size > MAX_PACKAGE {
            return Err(PackageError::TooLarge { path: path.to_owned(), size });
        }
        let identity = FileIdentity::of(&file).map_err(io)?;
        let bytes = plain_file::read_opened(&file, MAX_PACKAGE).map_err(io)?;
        let mut package = Self::describe(path, bytes, is_compiled)?;
        // What was written while it was read is not known by what it is now.
        package.file =
            identity.filter(|before| FileIdentity::of(&file).is_ok_and(|after| after.as_ref() == Some(before)));
        Ok(package)
    }

    /// Describes bytes that were read from `path`.
    ///
    /// # Errors
    /// See [`PackageError`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, PackageError> {
        Self::describe(path, bytes, |_| false)
    }

    /// Checks what was left out when it was read, if anything was.
    ///
    /// # Errors
    /// [`PackageError::Malformed`], [`PackageError::Truncated`], [`PackageError::Structure`].
    pub fn validate(&self) -> Result<(), PackageError> {
        match self.validated {
            true => Ok(()),
            false => valid(&self.path, &self.bytes).map(drop),
        }
    }

    fn describe(path: &Path, bytes: Vec<u8>, is_compiled: impl FnOnce(&str) -> bool) -> Result<Self, PackageError> {
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
        let digest = sha256(&bytes);
        let validated = !is_compiled(&digest);
        let structure = match validated {
            true => valid(&path, &bytes)?,
            false => structure::outline(&bytes).map_err(|error| unfit(&path, error))?,
        };
        let Structure { descriptors, imports, exports } = structure;
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let (imports, exports) = (owned(imports), owned(exports));
        let descriptor = match descriptors.as_slice() {
            [] => return Err(PackageError::NoDescriptor { path }),
            [one] => {
                Descriptor::parse(one).map_err(|source| PackageError::Descriptor { path: path.clone(), source })?
            }
            several => return Err(PackageError::SeveralDescriptors { path, count: several.len() }),
        };
        let info = PackageInfo { digest, size: bytes.len(), descriptor, imports, exports };
        Ok(Self { path, bytes, info, file: None, validated })
    }
}

/// The structure of a component that is valid and within the bounds.
fn valid<'b>(path: &Path, bytes: &'b [u8]) -> Result<Structure<'b>, PackageError> {
    // First: validating takes memory and time for what is declared, too.
    let structure = structure::read(bytes).map_err(|error| unfit(path, error))?;
    Validator::new().validate_all(bytes).map_err(|error| unfit(path, StructureError::Malformed(error)))?;
    Ok(structure)
}

fn unfit(path: &Path, error: StructureError) -> PackageError {
    let path = path.to_owned();
    match error {
        StructureError::Malformed(error) => {
            let message = error.to_string();
            if message.contains("unexpected end") {
                PackageError::Truncated { path, message }
            } else {
                PackageError::Malformed { path, message }
            }
        }
        source => PackageError::Structure { path, source },
    }
}
