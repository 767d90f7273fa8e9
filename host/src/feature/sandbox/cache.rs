//! The code cache: compiled components on disk, so that a start needs no compiler.
//!
//! Loading machine code is trusting it, so every file carries a MAC under a key that only this
//! user's host has, and is named by the package's digest and the engine's compatibility hash. A
//! file that does not fit is compiled anew and replaced.

use std::hash::{BuildHasher as _, Hash};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::feature::package::Package;

/// Length of the MAC at the start of every file.
const MAC_LEN: usize = 32;

/// Compiled components of one host, in `<home>/cache/code`.
#[derive(Debug)]
pub struct CodeCache {
    store: Option<Store>,
}

#[derive(Debug)]
struct Store {
    folder: PathBuf,
    key: [u8; 32],
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

    /// The compiled package, from the cache or from the compiler.
    ///
    /// # Errors
    /// The compiler's error.
    pub fn compile(&self, engine: &Engine, package: &Package) -> wasmtime::Result<Component> {
        let Some(store) = &self.store else {
            return Component::new(engine, &package.bytes);
        };
        let file = store.folder.join(format!("{}-{:016x}.cwasm", package.info.digest, compatibility(engine)));
        if let Some(code) = store.load(&file) {
            // SAFETY: `deserialize` runs what it is given as machine code, so the bytes must come
            // from `serialize` of a compatible engine. They do: the MAC was made with a key that
            // only this user's hosts can read, over the bytes that `serialize` returned below, for
            // this file name, which holds the engine's compatibility hash.
            match unsafe { Component::deserialize(engine, code) } {
                Ok(component) => return Ok(component),
                Err(error) => tracing::debug!("{}: not usable: {error:#}", file.display()),
            }
        }
        let component = Component::new(engine, &package.bytes)?;
        if let Err(error) =
            component.serialize().map_err(std::io::Error::other).and_then(|code| store.save(&file, &code))
        {
            tracing::warn!("{}: not cached: {error}", file.display());
        }
        Ok(component)
    }
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
        std::fs::create_dir_all(&folder)?;
        let key_file = home.join("host.key");
        match read_key(&key_file) {
            Ok(key) => Ok(Self { folder, key }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut key = [0; 32];
                getrandom::fill(&mut key).map_err(std::io::Error::other)?;
                match write_private(&key_file, &key) {
                    // Another host was faster: its key is the one.
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => key = read_key(&key_file)?,
                    other => other?,
                }
                Ok(Self { folder, key })
            }
            Err(error) => Err(error),
        }
    }

    fn mac(&self, file: &Path, code: &[u8]) -> Hmac<Sha256> {
        // HMAC fills a short key up with zeros to the hash's block (RFC 2104).
        let mut block = [0; 64];
        block[..self.key.len()].copy_from_slice(&self.key);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        // The name is part of what is vouched for: a file moved to another name is not taken.
        mac.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        mac.update(&[0]);
        mac.update(code);
        mac
    }

    fn load(&self, file: &Path) -> Option<Vec<u8>> {
        let mut bytes = std::fs::read(file).ok()?;
        if bytes.len() < MAC_LEN {
            return None;
        }
        let code = bytes.split_off(MAC_LEN);
        if self.mac(file, &code).verify_slice(&bytes).is_err() {
            tracing::warn!("{}: was altered; compiling anew", file.display());
            return None;
        }
        Some(code)
    }

    fn save(&self, file: &Path, code: &[u8]) -> std::io::Result<()> {
        let temporary = file.with_extension(format!("{}.tmp", std::process::id()));
        let mut out = std::fs::File::create(&temporary)?;
        out.write_all(&self.mac(file, code).finalize().into_bytes())?;
        out.write_all(code)?;
        out.sync_all()?;
        std::fs::rename(&temporary, file)
    }
}

fn read_key(file: &Path) -> std::io::Result<[u8; 32]> {
    let mut key = [0; 32];
    std::fs::File::open(file)?.read_exact(&mut key)?;
    Ok(key)
}

fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file)?;
    out.write_all(bytes)?;
    out.sync_all()
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
        let mut files = std::fs::read_dir(home.join("cache/code")).unwrap();
        files.next().unwrap().unwrap().path()
    }

    #[test]
    fn compiled_code_is_found_again_and_altered_code_is_not_run() {
        let (home, engine) = (home("altered"), Engine::default());
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        let file = cached(&home);
        let good = std::fs::read(&file).unwrap();
        let store = Store::open(&home).unwrap();
        assert!(store.load(&file).is_some());

        for position in [0, MAC_LEN, good.len() - 1] {
            let mut altered = good.clone();
            altered[position] ^= 1;
            std::fs::write(&file, &altered).unwrap();
            assert!(store.load(&file).is_none(), "byte {position}");
        }
        let elsewhere = file.with_file_name("other.cwasm");
        std::fs::write(&elsewhere, &good).unwrap();
        assert!(store.load(&elsewhere).is_none(), "code for another package");

        // Compiling again mends what is there.
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        assert!(store.load(&file).is_some());
        std::fs::remove_dir_all(home).unwrap();
    }

    #[test]
    fn code_of_another_host_is_not_run() {
        let (home, engine) = (home("foreign"), Engine::default());
        CodeCache::new(Some(&home)).compile(&engine, &package()).unwrap();
        std::fs::remove_file(home.join("host.key")).unwrap();
        assert!(Store::open(&home).unwrap().load(&cached(&home)).is_none());
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
