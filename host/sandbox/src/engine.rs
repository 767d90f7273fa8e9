//! The configuration of `wasmtime` engines: compilation targets, and the engine of each lane.

use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits;

/// What decides about compiled code. The host and the workers of its [compiler](crate::compiler) share it: code of one
/// fits the engines of the other.
pub(super) fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(limits::STACK_BYTES)
        // A guest has no debugger here and its traps are reported as text: without the tables for
        // both, compiled features take half the memory. Windows wants those of its own for every function.
        .generate_address_map(false)
        .native_unwind_info(cfg!(windows))
        .wasm_backtrace_max_frames(None);
    config
}

/// What code is compiled with that a release brings along: runs on every processor of this system and architecture that
/// has what is named here, under [`config`]'s engines.
pub(super) fn baseline() -> wasmtime::Result<Config> {
    let mut config = config();
    config.target(&target_lexicon::Triple::host().to_string())?;
    if cfg!(target_arch = "x86_64") {
        // What every desktop processor since about 2013 has.
        // SAFETY: only which instructions code may use follows from this. A processor without them rejects the code when
        // it is loaded.
        unsafe { config.cranelift_flag_enable("x86-64-v3") };
    }
    Ok(config)
}

/// The engine of a lane. Beside [`config`], it reserves the address space of all its instances.
pub(super) fn lane() -> Config {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(limits::MAX_INSTANCES)
        .total_core_instances(limits::MAX_INSTANCES * limits::MAX_CORE_INSTANCES)
        .total_memories(limits::MAX_INSTANCES * 2)
        .total_tables(limits::MAX_INSTANCES * limits::MAX_TABLES)
        .total_stacks(limits::MAX_INSTANCES)
        .max_memories_per_component(limits::MAX_MEMORIES)
        .max_tables_per_component(limits::MAX_TABLES)
        .max_core_instances_per_component(limits::MAX_CORE_INSTANCES)
        .max_memory_size(limits::MEMORY_BYTES)
        .table_elements(limits::TABLE_ELEMENTS);
    let mut config = config();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

    use wasmtime::Engine;

    use super::*;

    #[test]
    fn code_of_a_release_fits_the_engines_of_the_host() {
        let code = Engine::new(&baseline().unwrap())
            .unwrap()
            .precompile_component(&wat::parse_str("(component)").unwrap())
            .unwrap();
        let lane = Engine::new(&lane()).unwrap();
        // SAFETY: it was compiled just now.
        let loaded = unsafe { wasmtime::component::Component::deserialize(&lane, &code) };
        // A processor that lacks something of the baseline says so; everything else fits.
        assert!(loaded.err().is_none_or(|error| format!("{error:#}").contains("not available on the host")));
    }

    #[test]
    fn code_of_a_worker_fits_the_engines_of_the_host() {
        let hash = |config: &Config| {
            let engine = Engine::new(config).unwrap();
            BuildHasherDefault::<DefaultHasher>::default().hash_one(engine.precompile_compatibility_hash())
        };
        assert_eq!(hash(&config()), hash(&lane()));
    }
}
