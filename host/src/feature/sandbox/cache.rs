//! The code cache: compiled components on disk, so that a start needs no compiler.
//!
//! Loading machine code is trusting it, so beside every file stands a MAC under a key that only
//! this user's host has, over the name (the package's digest and the engine's compatibility hash)
//! and the code. Code that does not fit its MAC is compiled anew and replaced.
//!
//! Code is mapped, not read: what a feature never runs takes no memory.

use std::hash::{BuildHasher as _, Hash};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::feature::package::Package;
use crate::host_key::HostKey;

/// Compiled components of one host, in `<home>/cache/code`.
#[derive(Debug)]
pub struct CodeCache {
    store: Option<Store>,
}

#[derive(Debug)]
struct Store {
    folder: PathBuf,
    key: HostKey,
}

impl CodeCache {
    /// A cache below `home`. When there is no home, or it can't be written, nothing is cached and
    /// a warning says so.
    pub fn new(home: Option<&Path>) -> Self {
        let store = home.and_then(|home| match Store::open(home) {
            Ok(store) => Some(store),
            Err(error) => {
                tracing::warn!("compiled features are not cached: {}: {error}", home.display());
                None
            }
        });
        Self { store }
    }

    /// Whether this version of the program has compiled anything for this home. Without a home it is as if it had,
    /// since the next start would be no faster.
    pub fn is_warm(&self, engine: &Engine) -> bool {
        let Some(store) = &self.store else { return true };
        let end = format!("-{:016x}.cwasm", compatibility(engine));
        let Ok(files) = std::fs::read_dir(&store.folder) else { return false };
        files.flatten().any(|file| file.file_name().to_string_lossy().ends_with(&end))
    }

    /// The compiled package, from the cache or from the compiler.
    ///
    /// # Errors
    /// The compiler's error.
    pub fn compile(&self, engine: &Engine, package: &Package) -> wasmtime::Result<Component> {
        let Some(store) = &self.store else {
            return Component::new(engine, &package.bytes);
        };
        let file = store.folder.join(format!("{}-{:016x}.cwasm", package.info.digest, compatibility(engine)));
        if store.vouches_for(&file) {
            match mapped(engine, &file) {
                Ok(component) => return Ok(component),
                Err(error) => tracing::debug!("{}: not usable: {error:#}", file.display()),
            }
        }
        let component = Component::new(engine, &package.bytes)?;
        match component.serialize().map_err(std::io::Error::other).and_then(|code| store.save(&file, &code)) {
            Ok(()) => mapped(engine, &file),
            Err(error) => {
                tracing::warn!("{}: not cached: {error}", file.display());
                Ok(component)
            }
        }
    }
}

/// Maps a file that the store vouches for.
fn mapped(engine: &Engine, file: &Path) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize_file` runs what is in the file as machine code, so the file must hold
    // what `serialize` of a compatible engine returned, and go on holding it. Its MAC was made or
    // checked just now, with a key that only this user's hosts can read, over the code and a name
    // that holds the engine's compatibility hash. The file lies in a folder that only this user can
    // write to, and the host replaces such files by renaming, never in place.
    unsafe { Component::deserialize_file(engine, file) }
}

fn compatibility(engine: &Engine) -> u64 {
    struct Fixed;
    impl std::hash::BuildHasher for Fixed {
        type Hasher = std::hash::DefaultHasher;
        fn build_hasher(&self) -> Self::Hasher {
            std::hash::DefaultHasher::new()
        }
    }
    let mut hasher = Fixed.build_hasher();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    std::hash::Hasher::finish(&hasher)
}

impl Store {
    fn open(home: &Path) -> std::io::Result<Self> {
        let folder = home.join("cache").join("code");
        private_folder(&folder)?;
        Ok(Self { folder, key: HostKey::of(home)? })
    }

    fn mac(&self, file: &Path, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.key.mac();
        // The name is part of what is vouched for: a file moved to another name is not taken.
        mac.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        mac.update(&[0]);
        mac.update(code);
        mac
    }

    /// Whether the file is there, whole, and made by this host under this name.
    fn vouches_for(&self, file: &Path) -> bool {
        let (Ok(code), Ok(mac)) = (std::fs::read(file), std::fs::read(mac_file(file))) else { return false };
        let fits = self.mac(file, &code).verify_slice(&mac).is_ok();
        if !fits {
            tracing::warn!("{}: was altered; compiling anew", file.display());
        }
        fits
    }

    fn save(&self, file: &Path, code: &[u8]) -> std::io::Result<()> {
        // In this order: without its MAC the code is not taken.
        let _ = std::fs::remove_file(mac_file(file));
        replace(file, code)?;
        replace(&mac_file(file), &self.mac(file, code).finalize().into_bytes())
    }
}

fn mac_file(file: &Path) -> PathBuf {
    file.with_extension("mac")
}

/// Writes beside the file and renames: whoever maps the old one keeps the old one.
fn replace(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = file.with_file_name(name);
    let mut out = std::fs::File::create(&temporary)?;
    out.write_all(bytes)?;
    out.sync_all()?;
    std::fs::rename(&temporary, file)
}

fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        let descriptor = "id = 'project:x'\nname = 'X'\nversion = '1'\ncontract = '0.1'\n";
        let wat = format!("(component (core module (@custom \"conductor:feature\" {descriptor:?})))");
        Package::from_bytes(Path::new("x.wasm"), wat::parse_str(wat).unwrap()).unwrap()
    }

    fn home(name: &str) -> PathBuf {
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
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        let file = cached(&home);
        let good = std::fs::read(&file).unwrap();
        let store = Store::open(&home).unwrap();
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
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        assert!(store.vouches_for(&file));
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn code_of_another_host_is_not_run() {
        let (home, engine) = (home("foreign"), Engine::default());
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        std::fs::remove_file(home.join("host.key")).unwrap();
        assert!(!Store::open(&home).unwrap().vouches_for(&cached(&home)));
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn without_a_home_everything_is_compiled() {
        let file = home("file").join("not-a-folder");
        std::fs::write(&file, "").unwrap();
        for cache in [CodeCache::new(None), CodeCache::new(Some(&file))] {
            assert!(cache.compile(&Engine::default(), &package()).is_ok());
        }
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }
}
