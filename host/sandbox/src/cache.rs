//! The code cache: compiled components on disk, so that a start needs no compiler.
//!
//! Loading machine code is trusting it, so beside every file stands a MAC under a key that only
//! this user's host has, over the name (the package's digest and the engine's compatibility hash)
//! and the code. Code that does not fit its MAC is compiled anew and replaced. All of it is checked at every start, so the
//! MAC is keyed BLAKE3, which is several times as fast as HMAC-SHA-256.
//!
//! Code is mapped, not read: what a feature never runs takes no memory. A file that is open can be mapped again and again,
//! also if it was replaced.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compiler::{CompileError, Compiler, MAX_CODE};
use conductor_package::file::Package;
use conductor_stdx::atomic_file::replace;
use conductor_stdx::host_key::HostKey;
use conductor_stdx::plain_file;

/// Compiled components of one host, in `<home>/cache/code`.
#[derive(Debug)]
pub struct CodeCache {
    store: Option<CodeCacheDir>,
    compiler: Compiler,
    /// Packages that the compiler failed on, by digest: trying each of them again at every reload would cost as much
    /// every time.
    failed: Mutex<BTreeMap<String, CompileError>>,
}

/// The most packages of which it is remembered that the compiler failed on them.
const MAX_FAILED: usize = 64;

#[derive(Debug)]
struct CodeCacheDir {
    folder: PathBuf,
    key: HostKey,
}

/// Compiled code of one package.
#[derive(Debug)]
pub enum Code {
    /// A file in the cache, or one of a release, which was made or checked just now.
    Cached(PathBuf),
    /// As the compiler returned it.
    Fresh(Vec<u8>),
}

impl Code {
    /// The file, to load it more than once. `None` if there is none, and on systems where what is open has no path.
    pub fn open(&self) -> Option<CodeFile> {
        match self {
            Self::Cached(file) => CodeFile::open(file),
            Self::Fresh(_) => None,
        }
    }

    /// The component, for an engine of this host.
    ///
    /// # Errors
    /// The code is for another engine.
    pub fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        match self {
            Self::Cached(file) => loaded(engine, file),
            // SAFETY: `deserialize` runs these bytes as machine code, so they must be what `serialize` or
            // `precompile_component` of a compatible engine returned. They came from the compiler: from an engine in
            // this process, or through the pipe of a worker that this process started, into which no other process writes.
            // Whether the engines are compatible is checked.
            Self::Fresh(code) => unsafe { Component::deserialize(engine, code) },
        }
    }
}

/// A file of compiled code that was made or checked just now, and is open. It is the same one also if it is replaced or
/// removed.
#[derive(Debug)]
pub struct CodeFile {
    /// What leads to it for as long as it is open.
    path: PathBuf,
    _open: std::fs::File,
}

impl CodeFile {
    /// `None` if it can't be opened, or what is open has no path here.
    fn open(file: &Path) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let open = std::fs::File::open(file).ok()?;
            let path = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open)));
            path.exists().then_some(Self { path, _open: open })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = file;
            None
        }
    }

    /// The component, for an engine of this host.
    ///
    /// # Errors
    /// The code is for another engine, or can't be mapped.
    pub fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        loaded(engine, &self.path)
    }
}

impl CodeCache {
    /// A cache below `home`. When there is no home, or it can't be written, nothing is cached and
    /// a warning says so.
    pub fn new(home: Option<&Path>, compiler: Compiler) -> Self {
        let store = home.and_then(|home| match CodeCacheDir::open(home) {
            Ok(store) => Some(store),
            Err(error) => {
                tracing::warn!("compiled features are not cached: {}: {error}", home.display());
                None
            }
        });
        Self { store, compiler, failed: Mutex::default() }
    }

    /// Whether this version of the program has compiled anything for this home. Without a home it is as if it had,
    /// since the next start would be no faster.
    pub fn is_warm(&self, engine: &Engine) -> bool {
        let Some(store) = self.store.as_ref().filter(|_| !self.compiler.is_released()) else { return true };
        let end = format!("-{:016x}.cwasm", compatibility(engine));
        let Ok(files) = std::fs::read_dir(&store.folder) else { return false };
        files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(&end))
    }

    /// The package's code for `engine`, and all that are configured like it, from the cache or from the compiler.
    /// Blocks while it is compiled.
    ///
    /// # Errors
    /// The compiler's error. A package that it failed on is not tried again.
    pub fn code(&self, engine: &Engine, package: &Package) -> Result<Code, CompileError> {
        if let Some(file) = self.compiler.precompiled(&package.info.digest) {
            match loaded(engine, &file) {
                Ok(_) => return Ok(Code::Cached(file)),
                Err(error) => tracing::info!("{}: not for this machine, compiling: {error:#}", file.display()),
            }
        }
        let file = self.store.as_ref().map(|store| store.file(engine, &package.info.digest));
        if let (Some(store), Some(file)) = (&self.store, &file)
            && store.vouches_for(file)
        {
            match loaded(engine, file) {
                Ok(_) => return Ok(Code::Cached(file.clone())),
                Err(error) => tracing::debug!("{}: not usable: {error:#}", file.display()),
            }
        }
        let digest = &package.info.digest;
        if let Some(error) = self.failed().get(digest) {
            return Err(error.clone());
        }
        tracing::info!("compiling {}, {} KiB", package.path.display(), package.bytes.len() / 1024);
        let valid = package.validate().map_err(|error| CompileError::Rejected(error.to_string()));
        let code = valid.and_then(|()| self.compiler.compile(engine, &package.bytes)).inspect_err(|error| {
            let mut failed = self.failed();
            if error.is_final() {
                while failed.len() >= MAX_FAILED && failed.pop_first().is_some() {}
                failed.insert(digest.clone(), error.clone());
            }
        })?;
        let (Some(store), Some(file)) = (&self.store, file) else { return Ok(Code::Fresh(code)) };
        match store.save(&file, &code) {
            Ok(()) => Ok(Code::Cached(file)),
            Err(error) => {
                tracing::warn!("{}: not cached: {error}", file.display());
                Ok(Code::Fresh(code))
            }
        }
    }

    /// Whether there is a file of code for a package with this digest, spoilt or not.
    pub(super) fn has(&self, engine: &Engine, digest: &str) -> bool {
        let cached = || self.store.as_ref().is_some_and(|store| store.file(engine, digest).is_file());
        self.compiler.precompiled(digest).is_some() || cached()
    }

    /// Whether several packages at once are compiled faster.
    pub(super) fn is_parallel(&self) -> bool {
        // What is compiled ahead has to be kept somewhere.
        self.store.is_some() && self.compiler.is_parallel()
    }

    /// Ends all compilation, now and from now on.
    pub(super) fn cancel(&self) {
        self.compiler.cancel();
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<String, CompileError>> {
        self.failed.lock()
    }
}

/// Loads a file that the store or a release vouches for: maps it, so that its memory is shared and only what is used is read. On
/// Windows it is read: there no file can be replaced or removed that is mapped, by which a release could not be updated
/// nor the cache tidied while a host runs.
fn loaded(engine: &Engine, file: &Path) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize_file` and `deserialize` run what is in the file as machine code, so the file must hold
    // what `serialize` or `precompile_component` of a compatible engine returned, and go on holding it. Whether the
    // engines are compatible is checked. A file of the cache: its MAC was made or checked just now, with a key that only
    // this user's hosts can read; it lies in a folder that only this user can write to, and the host replaces such files
    // by renaming, never in place. A file of a release: its hash was checked just now, against a manifest whose own
    // is in this program; only this user and root can write to it and its folder.
    unsafe {
        if cfg!(windows) {
            Component::deserialize(engine, plain_file::read(file, MAX_CODE)?)
        } else {
            Component::deserialize_file(engine, file)
        }
    }
}

fn compatibility(engine: &Engine) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(engine.precompile_compatibility_hash())
}

impl CodeCacheDir {
    fn open(home: &Path) -> std::io::Result<Self> {
        let folder = home.join("cache").join("code");
        private_folder(&folder)?;
        Ok(Self { folder, key: HostKey::of(home)? })
    }

    /// Where a package's code for an engine stands.
    fn file(&self, engine: &Engine, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}-{:016x}.cwasm", compatibility(engine)))
    }

    /// The MAC of a file, to be fed with its code.
    fn mac(&self, file: &Path) -> Hasher {
        let mut mac = Hasher::new_keyed(&self.key.derived(b"code cache"));
        // The name is part of what is vouched for: a file moved to another name is not taken.
        mac.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        mac.update(&[0]);
        mac
    }

    /// Whether the file exists, is whole, and was made by this host under this name.
    fn vouches_for(&self, file: &Path) -> bool {
        let mut mac = self.mac(file);
        let (Ok(()), Ok(saved)) =
            (plain_file::hash(file, MAX_CODE, &mut mac), plain_file::read(&mac_file(file), MAX_MAC))
        else {
            return false;
        };
        // Equal in constant time.
        let fits = Hash::from_slice(&saved).is_ok_and(|saved| saved == mac.finalize());
        if !fits {
            tracing::warn!("{}: was altered; compiling anew", file.display());
        }
        fits
    }

    fn save(&self, file: &Path, code: &[u8]) -> std::io::Result<()> {
        // In this order: without its MAC the code is not taken. A process that maps the old file keeps it.
        let _ = std::fs::remove_file(mac_file(file));
        replace(file, code)?;
        replace(&mac_file(file), self.mac(file).update(code).finalize().as_bytes())
    }
}

/// The largest MAC that is read, in bytes.
const MAX_MAC: u64 = 64;

fn mac_file(file: &Path) -> PathBuf {
    file.with_extension("blake3")
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn package() -> Package {
        let descriptor = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n";
        let wat = format!("(component (core module (@custom \"conductor:feature\" {descriptor:?})))");
        Package::from_bytes(Path::new("x.wasm"), wat::parse_str(wat).unwrap()).unwrap()
    }

    pub(crate) fn cache(home: Option<&Path>) -> CodeCache {
        CodeCache::new(home, Compiler::in_process())
    }

    pub(crate) fn home(name: &str) -> PathBuf {
        let home = std::env::temp_dir().join(format!("conductor-cache-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        home
    }

    fn cached(home: &Path) -> PathBuf {
        let files = std::fs::read_dir(home.join("cache/code")).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        files.find(|file| file.extension().is_some_and(|extension| extension == "cwasm")).unwrap()
    }

    #[test]
    fn compiled_code_is_found_again_and_altered_code_is_not_run() {
        let (home, engine) = (home("altered"), Engine::default());
        cache(Some(&home)).code(&engine, &package()).unwrap().load(&engine).unwrap();
        let file = cached(&home);
        let good = std::fs::read(&file).unwrap();
        let store = CodeCacheDir::open(&home).unwrap();
        assert!(store.vouches_for(&file));

        for position in [0, good.len() / 2, good.len() - 1] {
            let mut altered = good.clone();
            altered[position] ^= 1;
            replace(&file, &altered).unwrap();
            assert!(!store.vouches_for(&file), "byte {position}");
        }
        replace(&file, &good[..good.len() - 1]).unwrap();
        assert!(!store.vouches_for(&file), "cut short");
        let elsewhere = file.with_file_name("other.cwasm");
        std::fs::write(&elsewhere, &good).unwrap();
        std::fs::copy(mac_file(&file), mac_file(&elsewhere)).unwrap();
        assert!(!store.vouches_for(&elsewhere), "code for another package");

        // Compiling again mends what is there.
        cache(Some(&home)).code(&engine, &package()).unwrap().load(&engine).unwrap();
        assert!(store.vouches_for(&file));
        std::fs::remove_dir_all(home).unwrap();
    }

    /// A file under its name had it taken for compiled, so nothing has looked at its functions yet.
    #[test]
    fn what_was_taken_for_compiled_is_validated_before_it_is_compiled() {
        let home = home("unread");
        let descriptor = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n";
        let locals = " i32".repeat(8193);
        let wat =
            format!("(component (core module (@custom \"conductor:feature\" {descriptor:?}) (func (local{locals}))))");
        let file = home.join("x.wasm");
        std::fs::write(&file, wat::parse_str(wat).unwrap()).unwrap();
        assert!(Package::read(&file).is_err());
        let unread = Package::read_compiled(&file, |_| true).unwrap();
        let error = cache(None).code(&Engine::default(), &unread).unwrap_err();
        assert!(matches!(&error, CompileError::Rejected(why) if why.contains("8193")), "{error}");
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn code_of_another_host_is_not_run() {
        let (home, engine) = (home("foreign"), Engine::default());
        cache(Some(&home)).code(&engine, &package()).unwrap().load(&engine).unwrap();
        std::fs::remove_file(home.join("host.key")).unwrap();
        assert!(!CodeCacheDir::open(&home).unwrap().vouches_for(&cached(&home)));
        std::fs::remove_dir_all(home).unwrap();
    }

    /// A compiler that counts how often it is started.
    #[cfg(unix)]
    #[test]
    fn a_package_that_the_compiler_fails_on_is_not_tried_again() {
        let home = home("fails");
        let (program, count) = (home.join("worker"), home.join("count"));
        std::fs::write(&program, format!("#!/bin/sh\necho x >> '{}'\necho no >&2\nexit 3\n", count.display())).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let cache = CodeCache::new(Some(&home), Compiler::program(&program));
        let engine = Engine::default();
        // Another thread that forks just now may hold the script open for writing.
        while matches!(cache.code(&engine, &package()), Err(CompileError::Start { .. })) {}
        for _ in 0..3 {
            let failed = cache.code(&engine, &package());
            assert!(matches!(&failed, Err(CompileError::Rejected(said)) if said == "no"), "{failed:?}");
        }
        assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn without_a_home_everything_is_compiled() {
        let file = home("file").join("not-a-folder");
        std::fs::write(&file, "").unwrap();
        for cache in [cache(None), cache(Some(&file))] {
            let engine = Engine::default();
            assert!(cache.code(&engine, &package()).unwrap().load(&engine).is_ok());
        }
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}
