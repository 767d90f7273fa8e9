//! The sandbox's real-time lane: where actions run.
//!
//! One synchronous `wasmtime` engine without concurrency support (a call costs a fraction of what
//! it costs with), one store for every instance, a linker that holds only what the feature
//! requested. Memory, tables, stack, handles and CPU time are limited per instance; see
//! [`limits`].
//!
//! Compiled code is cached on disk; see [`cache`].

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

pub mod bindings;
pub mod cache;
mod cpu;
pub mod instance;
pub mod limits;
pub mod state;

pub use instance::{ActionInstance, CallError, InstallError};

use self::cache::CodeCache;
use self::state::{FeatureFacts, InstanceState};
use super::Grants;
use super::check::{self, CheckError};
use super::package::Package;
use crate::service::Services;

/// The engine that actions run in, with its epoch clock and its code cache.
#[derive(Debug)]
pub struct Sandbox {
    engine: Engine,
    cache: CodeCache,
    services: Arc<Services>,
}

/// Why a package can't be prepared to run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The component does not fit its descriptor.
    #[error("{}", join(.0))]
    Check(Vec<CheckError>),
    /// A capability that the feature can't do without was not granted.
    #[error("needs the capability \"{capability}\" ({reason}); grant it under [features.{feature}.grants]")]
    NotGranted {
        /// The feature's short name.
        feature: String,
        /// The kind of capability.
        capability: &'static str,
        /// The feature's own reason.
        reason: String,
    },
    /// The compiler or the linker refused it: an import has another type than the contract's.
    #[error("can't be linked: {0}")]
    Link(String),
}

fn join(errors: &[CheckError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A package that is compiled and linked, ready to be instantiated any number of times.
#[derive(Clone)]
pub struct PreparedFeature {
    pre: wasmtime::component::InstancePre<InstanceState>,
    facts: Arc<FeatureFacts>,
}

impl std::fmt::Debug for PreparedFeature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedFeature").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Starts the engine. `home` is where compiled code is cached; without it, or when it can't be
    /// written, everything is compiled afresh.
    ///
    /// # Errors
    /// When this machine can't run the engine at all: no virtual memory to reserve, a processor
    /// without a compiler back-end.
    pub fn new(home: Option<&Path>, services: Arc<Services>) -> anyhow::Result<Self> {
        let mut pool = PoolingAllocationConfig::default();
        pool.total_component_instances(limits::MAX_INSTANCES)
            .total_core_instances(limits::MAX_INSTANCES * limits::MAX_CORE_INSTANCES)
            .total_memories(limits::MAX_INSTANCES * 2)
            .total_tables(limits::MAX_INSTANCES * limits::MAX_TABLES)
            .max_memories_per_component(limits::MAX_MEMORIES)
            .max_tables_per_component(limits::MAX_TABLES)
            .max_core_instances_per_component(limits::MAX_CORE_INSTANCES)
            .max_memory_size(limits::MEMORY_BYTES)
            .table_elements(limits::TABLE_ELEMENTS);
        let mut config = Config::new();
        config
            .wasm_component_model(true)
            .concurrency_support(false)
            .epoch_interruption(true)
            .max_wasm_stack(limits::STACK_BYTES)
            // A guest has no debugger here and its traps are told in words: without the tables for
            // both, compiled features take half the memory.
            .generate_address_map(false)
            .native_unwind_info(false)
            .wasm_backtrace_max_frames(None)
            .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).map_err(|error| anyhow::anyhow!("the sandbox can't start: {error:#}"))?;
        tick(&engine);
        Ok(Self { cache: CodeCache::new(home), engine, services })
    }

    /// Checks, compiles (or takes from the cache) and links a package. Runs nothing of it.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare(&self, package: &Package, grants: Grants) -> Result<PreparedFeature, PrepareError> {
        check::check(&package.info).map_err(PrepareError::Check)?;
        let descriptor = &package.info.descriptor;
        if let Some(request) =
            descriptor.capabilities.iter().find(|request| request.required() && !grants.answers(request))
        {
            return Err(PrepareError::NotGranted {
                feature: descriptor.id.name().to_owned(),
                capability: request.kind(),
                reason: request.reason().to_owned(),
            });
        }
        let link = |error: wasmtime::Error| PrepareError::Link(format!("{error:#}"));
        let component: Component = self.cache.compile(&self.engine, package).map_err(link)?;
        let mut linker = Linker::<InstanceState>::new(&self.engine);
        bindings::link_requested(&mut linker, descriptor).map_err(link)?;
        let pre = linker.instantiate_pre(&component).map_err(link)?;
        let facts = FeatureFacts::new(descriptor.clone(), package.info.digest.clone(), grants, &self.services);
        Ok(PreparedFeature { pre, facts: Arc::new(facts) })
    }
}

impl PreparedFeature {
    /// What is fixed about the feature: descriptor, digest, grants.
    pub fn facts(&self) -> &Arc<FeatureFacts> {
        &self.facts
    }

    /// Makes an instance and has it install itself.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn instantiate(&self) -> Result<ActionInstance, InstallError> {
        ActionInstance::new(&self.pre, Arc::clone(&self.facts))
    }
}

/// Advances the engine's epoch once a [`limits::TICK`], for as long as the engine lives.
fn tick(engine: &Engine) {
    let weak = engine.weak();
    let ticker = std::thread::Builder::new().name("epoch".into()).spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(limits::TICK);
        }
    });
    if let Err(error) = ticker {
        tracing::error!(%error, "the sandbox's clock can't start; features that loop won't be stopped");
    }
}
