//! The sandbox: two lanes, in which features run.
//!
//! The real-time lane is a synchronous `wasmtime` engine without concurrency support (a call costs
//! a fraction of what it costs with), for actions and event hooks. The control lane is an
//! asynchronous one, for everything that may wait: tools, hooks, background tasks. A feature that
//! contributes to both has instances in both, which share nothing but its store.
//!
//! One store for every instance, a linker that holds only what the feature requested. Memory,
//! tables, stack, handles, CPU time and the time that passes are limited per instance; see
//! [`limits`].
//!
//! Packages are compiled in other processes, with limits of their own; see [`compiler`]. Compiled code is cached on
//! disk; see [`cache`].

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::path::Path;
use std::sync::Arc;

use wasmtime::Engine;

pub mod actor;
pub mod bindings;
pub mod cache;
pub mod compiler;
pub mod control;
mod cpu;
pub mod datagrams;
pub mod device_table;
mod engine;
mod epoch;
pub mod event_details;
pub mod exchange;
pub mod handles;
pub mod host_functions;
pub mod host_view;
pub mod instance;
pub mod limits;
mod linked;
pub mod meter;
pub mod migration;
pub mod model_view;
pub mod outcome;
pub mod pending_calls;
pub mod quarantine;
pub mod registrations;
pub mod runnable;
pub mod services;
mod share;
pub mod state;
pub mod task;
mod task_set;
pub(crate) mod wasi;

pub use bindings::Lane;
pub use compiler::{CompileError, CompileLimits, Compiler};
pub use control::ControlInstance;
pub use instance::ActionInstance;
pub use migration::MigrateError;
pub use outcome::{CallError, InstallError, ServiceError, ToolOutput};
pub use registrations::{RegisteredAction, RegisteredTool, Registrations};

use self::cache::{Code, CodeCache};
use self::linked::Linked;
use self::state::{FeatureFacts, Shared};
use crate::services::Services;
use conductor_package::admission::{Admission, Grantee};
use conductor_package::check::{self, CheckError};
use conductor_package::consent;
use conductor_package::file::Package;

/// A package that was checked and compiled, for one admission.
#[derive(Debug)]
pub struct Compiled {
    digest: String,
    admission: Admission,
    code: Code,
}

/// The engines that features run in, with their epoch clock and code cache, and the threads of the
/// control lane.
#[derive(Debug)]
pub struct Sandbox {
    realtime: Engine,
    control: Engine,
    shared: Shared,
    runtime: Option<tokio::runtime::Runtime>,
    cache: CodeCache,
    services: Arc<Services>,
}

/// Threads of the control lane.
const CONTROL_THREADS: usize = 2;

/// Packages that are compiled at once at the most, however many processors there are: each of them is in memory, and
/// its compiler may take [`CompileLimits::memory`].
const MAX_PARALLEL_COMPILES: usize = 4;

/// Why a package can't be prepared to run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The component does not fit its descriptor.
    #[error("{}", join(.0))]
    Check(Vec<CheckError>),
    /// A capability that the feature can't do without was not granted.
    #[error("needs the capability \"{capability}\" ({reason}); {advice}")]
    NotGranted {
        /// The capability.
        capability: String,
        /// The feature's own reason.
        reason: String,
        /// What a person does to grant it.
        advice: String,
    },
    /// It was not compiled.
    #[error("can't be compiled: {0}")]
    Compile(#[from] CompileError),
    /// The linker refused it: an import has another type than the contract's.
    #[error("can't be linked: {0}")]
    Link(String),
}

/// Mismatches that are listed; a component may have a hundred thousand imports.
const MAX_MISMATCHES: usize = 16;

fn join(errors: &[CheckError]) -> String {
    let mut messages = errors.iter().take(MAX_MISMATCHES).map(ToString::to_string).collect::<Vec<_>>();
    if errors.len() > MAX_MISMATCHES {
        messages.push(format!("and {} more", errors.len() - MAX_MISMATCHES));
    }
    messages.join("; ")
}

/// A package that is compiled and linked, ready to be instantiated any number of times.
#[derive(Clone)]
pub struct PreparedFeature {
    /// Where it contributes actions or event hooks.
    realtime: Option<Arc<Linked>>,
    /// Where it contributes anything else, or nothing.
    control: Option<Arc<Linked>>,
    runtime: tokio::runtime::Handle,
    facts: Arc<FeatureFacts>,
}

impl std::fmt::Debug for PreparedFeature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedFeature").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Starts the engines. `home` is where compiled code is cached; without it, or when it can't be
    /// written, everything is compiled afresh. `compiler` compiles.
    ///
    /// # Errors
    /// When this machine can't run an engine at all: no virtual memory to reserve, a processor
    /// without a compiler back-end, no thread left.
    pub fn new(home: Option<&Path>, services: Arc<Services>, compiler: Compiler) -> anyhow::Result<Self> {
        let failed = |error: wasmtime::Error| anyhow::anyhow!("the sandbox can't start: {error:#}");
        let realtime = Engine::new(&engine::lane()).map_err(failed)?;
        let control = Engine::new(&engine::lane()).map_err(failed)?;
        let shared = Shared::new(&services);
        epoch::start([&realtime, &control], &shared.at_work);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(CONTROL_THREADS)
            .thread_name("control")
            .enable_io()
            .enable_time()
            .build()?;
        Ok(Self { cache: CodeCache::new(home, compiler), realtime, control, shared, runtime: Some(runtime), services })
    }

    /// Checks, compiles (or takes from the cache) and links a package. Runs nothing of it.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare(&self, package: &Package, on: impl Into<Admission>) -> Result<PreparedFeature, PrepareError> {
        let admission = on.into();
        let code = self.code(package, &admission)?;
        self.linked(package, admission, &code)
    }

    /// The same for a package that was [compiled ahead](Self::compile_ahead): its code is not looked up again.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare_compiled(&self, package: &Package, compiled: Compiled) -> Result<PreparedFeature, PrepareError> {
        let Compiled { digest, admission, code } = compiled;
        match digest == package.info.digest {
            true => self.linked(package, admission, &code),
            false => self.prepare(package, admission),
        }
    }

    fn linked(&self, package: &Package, admission: Admission, code: &Code) -> Result<PreparedFeature, PrepareError> {
        let descriptor = &package.info.descriptor;
        let file = code.open().map(Arc::new);
        let link = |engine, lane| match Linked::new(engine, package, code, file.clone(), lane) {
            Ok(linked) => Ok(Arc::new(linked)),
            Err(error) => Err(PrepareError::Link(format!("{error:#}"))),
        };
        let realtime = descriptor.has_realtime().then(|| link(&self.realtime, Lane::RealTime)).transpose()?;
        let control = descriptor.has_control().then(|| link(&self.control, Lane::Control)).transpose()?;
        let grants = admission.grants.asked_for(&descriptor.capabilities);
        let admission = Admission { grants, ..admission };
        let digest = package.info.digest.clone();
        let facts = FeatureFacts::new(descriptor.clone(), digest, admission, &self.services, &self.shared);
        Ok(PreparedFeature { realtime, control, runtime: self.handle(), facts: Arc::new(facts) })
    }

    /// How many packages are compiled at once.
    pub fn parallel_compiles(&self) -> usize {
        if !self.cache.is_parallel() {
            return 1;
        }
        std::thread::available_parallelism().map_or(1, usize::from).min(MAX_PARALLEL_COMPILES)
    }

    /// Checks and compiles a package (or takes its code from the cache) for [`prepare_compiled`](Self::prepare_compiled).
    /// `None` if that can't be done: [`prepare`](Self::prepare) says why.
    pub fn compile_ahead(&self, package: &Package, on: impl Into<Admission>) -> Option<Compiled> {
        let admission = on.into();
        match self.code(package, &admission) {
            Ok(code) => Some(Compiled { digest: package.info.digest.clone(), admission, code }),
            Err(error) => {
                tracing::debug!("{}: not compiled ahead: {error}", package.path.display());
                None
            }
        }
    }

    /// Whether there is compiled code for the package with this digest. It may be spoilt.
    pub fn is_compiled(&self, digest: &str) -> bool {
        self.cache.has(&self.realtime, digest)
    }

    /// Ends all compilation, now and from now on: the host stops.
    pub fn cancel_compilation(&self) {
        self.cache.cancel();
    }

    /// Checks a package, and compiles it or takes its code from the cache.
    fn code(&self, package: &Package, on: &Admission) -> Result<Code, PrepareError> {
        check::check(&package.info).map_err(PrepareError::Check)?;
        let descriptor = &package.info.descriptor;
        if let Some(request) =
            descriptor.capabilities.iter().find(|request| request.required && !on.grants.answers(&request.capability))
        {
            return Err(PrepareError::NotGranted {
                capability: request.capability.key(),
                reason: request.reason.clone(),
                advice: consent::advice(
                    &Grantee { name: descriptor.id.name().to_owned(), provenance: on.provenance },
                    &request.capability,
                ),
            });
        }
        // The engines of both lanes take the same code.
        Ok(self.cache.code(&self.realtime, package)?)
    }

    /// Whether compiled features are at hand, at least some: see [`CodeCache::is_warm`].
    pub fn is_warm(&self) -> bool {
        [&self.realtime, &self.control].into_iter().any(|engine| self.cache.is_warm(engine))
    }

    /// Where the control lane's work runs.
    fn handle(&self) -> tokio::runtime::Handle {
        match &self.runtime {
            Some(runtime) => runtime.handle().clone(),
            // Only `drop` takes it.
            None => tokio::runtime::Handle::current(),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // Not waiting: a sandbox may be dropped where nothing may wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl PreparedFeature {
    /// What is fixed about the feature: descriptor, digest, grants.
    pub fn facts(&self) -> &Arc<FeatureFacts> {
        &self.facts
    }

    /// Whether it has anything for the control lane.
    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }

    /// Has its code loaded from now on only while an instance uses it.
    pub fn unload(&self) {
        self.realtime.iter().chain(&self.control).for_each(|linked| linked.unload());
    }

    /// Where the control lane's work runs.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.runtime
    }

    /// Makes an instance in the real-time lane and has it install itself.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn instantiate(&self) -> Result<ActionInstance, InstallError> {
        let linked = self.realtime.as_ref().ok_or_else(|| nothing_there("real-time"))?;
        let pre = linked.get().map_err(|error| InstallError::instantiate(&error))?;
        ActionInstance::new(pre, Arc::clone(&self.facts))
    }

    /// Makes an instance in the control lane and has it install itself. Within
    /// [`runtime`](Self::runtime) only.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub async fn instantiate_control(&self) -> Result<ControlInstance, InstallError> {
        let linked = self.control.as_ref().ok_or_else(|| nothing_there("control"))?;
        let pre = linked.get().map_err(|error| InstallError::instantiate(&error))?;
        ControlInstance::new(pre, Arc::clone(&self.facts)).await
    }
}

fn nothing_there(lane: &str) -> InstallError {
    InstallError::Instantiate(format!("it has nothing for the {lane} lane"))
}
