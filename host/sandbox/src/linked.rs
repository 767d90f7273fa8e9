//! A component with its imports, from which instances are made.
//!
//! The types and tables of a component take memory also if nothing of it runs, and most features run seldom. So it is
//! loaded for the first instance, and unloaded with the last one: what is kept is the open file of its code.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::bindings::{self, Lane};
use crate::cache::{Code, CodeFile};
use crate::host_functions;
use crate::state::InstanceState;
use crate::wasi;
use conductor_package::file::Package;
use conductor_package::interface::Import;

/// A component that is loaded.
pub(crate) type Pre = InstancePre<InstanceState>;

/// A component with its imports, in one lane.
pub(crate) struct Linked {
    lane: Lane,
    imports: Vec<Import>,
    has_wasi: bool,
    /// Where it is loaded from again. `None` if it stays loaded.
    file: Option<Arc<CodeFile>>,
    loaded: Mutex<Loaded>,
    engine: Engine,
}

struct Loaded {
    /// Until [`Linked::unload`].
    kept: Option<Arc<Pre>>,
    /// What the instances use.
    used: Weak<Pre>,
}

impl Linked {
    /// Loads the code and links it. `file` is that of the code, if it can be loaded again.
    ///
    /// # Errors
    /// The code is for another engine, or an import has another type than the contract's.
    pub(crate) fn new(
        engine: &Engine,
        package: &Package,
        code: &Code,
        file: Option<Arc<CodeFile>>,
        lane: Lane,
    ) -> wasmtime::Result<Self> {
        let imports = bindings::requested(&package.info.descriptor).collect();
        let has_wasi =
            lane == Lane::Control && package.info.imports.iter().any(|import| conductor_package::wasi::offers(import));
        let component = file.as_ref().map_or_else(|| code.load(engine), |file| file.load(engine))?;
        let loaded = Mutex::new(Loaded { kept: None, used: Weak::new() });
        let this = Self { lane, imports, has_wasi, file, loaded, engine: engine.clone() };
        let pre = Arc::new(this.link(&component)?);
        *this.loaded.lock() = Loaded { used: Arc::downgrade(&pre), kept: Some(pre) };
        Ok(this)
    }

    /// The component, which is loaded if it is not.
    ///
    /// # Errors
    /// The file of its code can't be mapped, because memory is short.
    pub(crate) fn get(&self) -> wasmtime::Result<Arc<Pre>> {
        let mut loaded = self.loaded.lock();
        if let Some(pre) = loaded.used.upgrade() {
            return Ok(pre);
        }
        // One that can't be loaded again is kept.
        let file = self.file.as_ref().ok_or_else(|| wasmtime::Error::msg("its code is not there any more"))?;
        let pre = Arc::new(self.link(&file.load(&self.engine)?)?);
        loaded.used = Arc::downgrade(&pre);
        Ok(pre)
    }

    /// Has it loaded from now on only while an instance uses it, if it can be loaded again.
    pub(crate) fn unload(&self) {
        if self.file.is_some() {
            self.loaded.lock().kept = None;
        }
    }

    fn link(&self, component: &Component) -> wasmtime::Result<Pre> {
        let mut linker = Linker::<InstanceState>::new(&self.engine);
        host_functions::link_all(&mut linker, &self.imports, self.lane)?;
        if self.has_wasi {
            wasi::link(&mut linker)?;
        }
        linker.instantiate_pre(component)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::cache::tests::{cache, home, package};
    use crate::engine;

    #[test]
    fn a_component_is_loaded_while_it_is_used_also_if_its_file_is_removed() {
        let (home, engine) = (home("linked"), Engine::new(&engine::lane()).unwrap());
        let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
        let is_mapped = || maps().contains(home.to_str().unwrap());
        let package = package();
        let code = cache(Some(&home)).code(&engine, &package).unwrap();
        let linked = Linked::new(&engine, &package, &code, code.open().map(Arc::new), Lane::Control).unwrap();
        assert!(is_mapped(), "for the first instance, which is made soon");
        linked.unload();
        assert!(!is_mapped());
        std::fs::remove_dir_all(&home).unwrap();
        let (first, second) = (linked.get().unwrap(), linked.get().unwrap());
        assert!(Arc::ptr_eq(&first, &second), "all instances use one");
        assert!(is_mapped());
        linked.unload();
        drop(first);
        assert!(is_mapped(), "one is in use");
        drop(second);
        assert!(!is_mapped());
    }

    #[test]
    fn a_component_that_is_in_no_file_stays_loaded() {
        let engine = Engine::new(&engine::lane()).unwrap();
        let package = package();
        let code = cache(None).code(&engine, &package).unwrap();
        let linked = Linked::new(&engine, &package, &code, code.open().map(Arc::new), Lane::RealTime).unwrap();
        linked.unload();
        linked.get().unwrap();
    }
}
