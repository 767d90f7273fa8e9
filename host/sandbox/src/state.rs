//! What the host keeps for one instance, and what all instances of a feature share.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::WasiCtx;

use crate::bindings::{Error, Lane};
use crate::cpu::{CpuBudget, CpuShare};
use crate::epoch::BusyGuests;
use crate::event_details::EventDetails;
use crate::handles::Context;
use crate::limits::{self, FeatureMemory, Limiter};
use crate::pending_calls::PendingCalls;
use crate::quarantine::{Quarantine, Quarantines};
use crate::registrations::Registrations;
use crate::services::Services;
use crate::share::{ControlShare, Meter, Throttled};
use crate::task_set::TaskSet;
use conductor_net::endpoint::Endpoint;
use conductor_net::http_scope::{HostPattern, SecretGrant};
use conductor_package::Grants;
use conductor_package::admission::{Admission, Grantee};
use conductor_package::capability::{Capability, CapabilityKind, CapabilityRequest};
use conductor_package::consent;
use conductor_package::descriptor::{Descriptor, Skipped};
use conductor_package::id::DataKey;
use conductor_services::added_files::AddedFiles;
use conductor_services::http::{HttpAccount, HttpScope};
use conductor_services::programs::MAX_RUNNING;
use conductor_services::store::StoreHandle;
use conductor_services::token_account::TokenAccount;
use conductor_stdx::pool::Budget;
use conductor_stdx::rate::RateLimiter;

/// What all features of a sandbox share.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    /// Ticks, and whether one found a guest at work.
    pub(super) at_work: Arc<BusyGuests>,
    /// What all calls in the control lane take of a processor.
    pub(super) lane_share: Arc<ControlShare>,
    /// The traps of features, which outlive an installation.
    pub(super) quarantines: Arc<Quarantines>,
    /// The instances that actors have.
    pub(super) instances: Arc<Budget>,
}

impl Shared {
    pub(super) fn new(services: &Services) -> Self {
        let lane_share = Arc::new(ControlShare::new(services.lane_cpu));
        let instances = Arc::new(Budget::new(limits::ACTOR_INSTANCES));
        Self { at_work: Arc::default(), lane_share, quarantines: Arc::default(), instances }
    }
}

/// What is fixed about an installed feature, shared by its instances.
#[derive(Debug)]
pub struct FeatureFacts {
    /// What it says about itself, without the contributions that are left out.
    pub descriptor: Descriptor,
    /// The contributions that are left out: a person refused them, or a capability was not granted.
    pub skipped: Vec<Skipped>,
    /// SHA-256 of its bytes, lower-case hex.
    pub digest: String,
    /// How advice about its grants names it.
    pub grantee: Grantee,
    /// Under what its data is kept.
    pub data: DataKey,
    /// Its store, from when it is first opened: it stays open for as long as the feature is installed.
    pub store: Mutex<Option<Arc<StoreHandle>>>,
    /// What it was granted.
    pub grants: Grants,
    /// Addresses of the host names that the grants name, resolved when they were given.
    pub resolved: HashMap<String, IpAddr>,
    /// The host's services.
    pub services: Arc<Services>,
    /// What it has sent over HTTP lately.
    pub http_account: HttpAccount,
    /// Limits what it says.
    pub sink_rate: RateLimiter,
    /// Its notifications that were left out since its last one.
    pub notifications_left_out: Arc<AtomicU64>,
    /// Limits datagrams.
    pub datagram_rate: RateLimiter,
    /// What it shares with all features of the sandbox.
    pub(super) shared: Shared,
    /// What its calls in the real-time lane take of a processor.
    pub cpu_share: CpuShare,
    /// What its calls in the control lane take of a processor.
    pub control_share: ControlShare,
    /// How long those were made to wait.
    pub throttled: Throttled,
    /// Its background tasks, from when it is in force.
    pub tasks: TaskSet,
    /// What it has added to folders.
    pub added: Arc<AddedFiles>,
    /// What it has asked of models lately.
    pub tokens: TokenAccount,
    /// Places for programs that it has started.
    pub programs: Arc<Semaphore>,
    /// What its instances have of this machine's memory.
    pub memory: Arc<FeatureMemory>,
    /// Its traps, whichever instance and installation they happened in.
    pub quarantine: Arc<Quarantine>,
    revoked: Arc<AtomicBool>,
    /// The same for what waits.
    ended: CancellationToken,
    prepared: AtomicBool,
    performed: AtomicBool,
}

impl FeatureFacts {
    /// Resolves the host names in `grants`; a name that can't be resolved is said so when a
    /// mapping uses it.
    pub(super) fn new(
        descriptor: Descriptor,
        digest: String,
        admission: Admission,
        services: &Arc<Services>,
        shared: &Shared,
    ) -> Self {
        let data = DataKey::new(&descriptor.id, admission.owner.as_deref());
        let grantee = Grantee { name: descriptor.id.name().to_owned(), provenance: admission.provenance };
        let grants = admission.grants;
        let (descriptor, skipped) = descriptor.granted(&grants, &admission.refused);
        let resolved = grants
            .udp
            .iter()
            .filter_map(|pattern| pattern.host())
            .filter(|host| host.parse::<IpAddr>().is_err())
            .filter_map(|host| Some((host.to_owned(), services.datagrams.resolve(host).ok()?)))
            .collect();
        let notifications_left_out = services.sinks.left_out_of(&descriptor.id);
        let http_account = HttpAccount::new(descriptor.id.as_str(), grantee.clone());
        let asked = descriptor.request(CapabilityKind::UseModel).map(|request| &request.capability);
        let asked = if let Some(Capability::UseModel { tokens, .. }) = asked { *tokens } else { 0 };
        let tokens = TokenAccount::new(asked.min(grants.model_tokens));
        Self {
            quarantine: shared.quarantines.of(&descriptor.id, &digest, Instant::now()),
            descriptor,
            skipped,
            digest,
            grantee,
            data,
            store: Mutex::default(),
            grants,
            resolved,
            services: Arc::clone(services),
            http_account,
            sink_rate: RateLimiter::new(limits::SINK_RATE, limits::SINK_BURST),
            notifications_left_out,
            datagram_rate: RateLimiter::new(services.datagram_rate, limits::DATAGRAM_BURST),
            shared: shared.clone(),
            cpu_share: CpuShare::default(),
            control_share: ControlShare::new(services.control_cpu),
            throttled: Throttled::default(),
            tasks: TaskSet::default(),
            added: Arc::default(),
            tokens,
            programs: Arc::new(Semaphore::new(MAX_RUNNING)),
            memory: Arc::default(),
            revoked: Arc::default(),
            ended: CancellationToken::new(),
            prepared: AtomicBool::new(false),
            performed: AtomicBool::new(false),
        }
    }

    /// Whether both the descriptor's request for `purpose` and the grants cover `endpoint`.
    pub fn may_reach(&self, purpose: &str, endpoint: &Endpoint) -> bool {
        let declared = match self.descriptor.network(purpose) {
            Some(CapabilityRequest { capability: Capability::Network { udp, .. }, .. }) => {
                udp.iter().any(|pattern| pattern.covers(endpoint))
            }
            _ => false,
        };
        declared && self.grants.udp.iter().any(|pattern| pattern.covers(endpoint))
    }

    /// The hosts and secrets that were both asked for under this purpose and granted.
    ///
    /// # Errors
    /// `Denied` where there is no host among them.
    pub fn http_scope(&self, purpose: &str) -> Result<HttpScope, Error> {
        let Some(request) = self.descriptor.network(purpose) else {
            return Err(Error::Denied(format!("the descriptor requests no network for the purpose {purpose:?}")));
        };
        let Capability::Network { http: declared, .. } = &request.capability else {
            return Err(self.not_granted(&request.capability));
        };
        let both = |declared: &[HostPattern], granted: &[HostPattern]| -> Vec<HostPattern> {
            granted.iter().filter(|host| declared.iter().any(|pattern| pattern.includes(host))).cloned().collect()
        };
        let hosts = both(declared, &self.grants.http);
        if hosts.is_empty() {
            return Err(self.not_granted(&request.capability));
        }
        let requested = self.descriptor.capabilities.iter().filter_map(|request| match &request.capability {
            Capability::Secret { id, hosts } => Some((id, hosts)),
            _ => None,
        });
        let secrets = requested.filter_map(|(id, declared)| {
            let granted = self.grants.secrets.iter().find(|secret| secret.id == *id)?;
            Some(SecretGrant { id: id.clone(), hosts: both(declared, &granted.hosts) })
        });
        Ok(HttpScope { secrets: secrets.collect(), hosts })
    }

    /// What opening a service without a grant answers.
    pub(crate) fn not_granted(&self, capability: &Capability) -> Error {
        Error::Denied(format!(
            "\"{}\" is not granted; {}",
            capability.kind(),
            consent::advice(&self.grantee, capability)
        ))
    }

    /// Bytes that an instance may hand over to the host at once: as many as the interfaces take that it has there.
    pub(super) fn handed_over(&self, lane: Lane) -> usize {
        let kinds =
            [CapabilityKind::Files, CapabilityKind::Network, CapabilityKind::RunProgram, CapabilityKind::UseModel];
        let large =
            kinds.into_iter().any(|kind| self.descriptor.requests(kind)) || !self.descriptor.providers.is_empty();
        // In the real-time lane those are unavailable.
        if lane == Lane::Control && large { limits::MAX_HANDED_OVER_LARGE } else { limits::MAX_HANDED_OVER }
    }

    /// Whether a contribution of this kind is declared, left out or not.
    pub(crate) fn declares(&self, kind: &str) -> bool {
        let descriptor = &self.descriptor;
        let stays = match kind {
            "action" => !descriptor.actions.is_empty(),
            "tool" => !descriptor.tools.is_empty(),
            "hook" => !descriptor.hooks.is_empty(),
            "task" => !descriptor.tasks.is_empty(),
            "provider" => !descriptor.providers.is_empty(),
            _ => !descriptor.skills.is_empty(),
        };
        stays || self.skipped.iter().any(|skipped| skipped.kind == kind)
    }

    /// CPU time of the `prepare` that comes; asked once for each.
    pub(super) fn prepare_budget(&self) -> Duration {
        if is_first(&self.prepared) { limits::INSTALL_BUDGET } else { limits::PREPARE_BUDGET }
    }

    /// CPU time of the `perform` that comes; asked once for each.
    pub(super) fn perform_budget(&self) -> Duration {
        if is_first(&self.performed) { limits::PREPARE_BUDGET } else { limits::PERFORM_BUDGET }
    }

    /// Takes every grant back, at once, also for handles that are in use.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
        self.ended.cancel();
    }

    /// Ends what waits when the grants are taken back.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether the grants were taken back.
    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Acquire)
    }

    /// The flag that handles look at on every call.
    pub fn revocation(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.revoked)
    }
}

/// Whether a feature does this for the first time, in whichever instance; when asked again it has. Its code is still
/// on its way from the disk the first time, and that is not its fault.
fn is_first(done: &AtomicBool) -> bool {
    !done.load(Ordering::Relaxed) && !done.swap(true, Ordering::Relaxed)
}

/// What an instance has of WASI; made when it first asks for something.
#[derive(Default)]
pub(crate) struct World(pub(crate) Option<Box<WasiCtx>>);

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("World").field(&self.0.is_some()).finish()
    }
}

/// The data of one store.
#[derive(Debug)]
pub struct InstanceState {
    /// The handles that the guest holds.
    pub table: ResourceTable,
    /// Enforces memory and table limits.
    pub limiter: Limiter,
    /// The feature.
    pub facts: Arc<FeatureFacts>,
    /// Where it runs.
    pub lane: Lane,
    /// Limits the call under way in the real-time lane.
    pub(super) cpu: CpuBudget,
    /// Limits the call under way in the control lane.
    pub(crate) meter: Arc<Meter>,
    /// When it is to be called again, in the real-time lane.
    pub(super) pending: PendingCalls,
    /// What can be asked of the event that an action is performed for.
    pub(crate) event: EventDetails,
    /// What `install` registered.
    pub registered: Registrations,
    /// What it has of WASI.
    pub(super) wasi: World,
}

impl InstanceState {
    /// A store for a fresh instance, with its limits of memory, tables and what it hands over.
    pub(super) fn store(engine: &wasmtime::Engine, facts: Arc<FeatureFacts>, lane: Lane) -> wasmtime::Store<Self> {
        let handed_over = facts.handed_over(lane);
        let mut store = wasmtime::Store::new(engine, Self::new(facts, lane));
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(handed_over);
        store
    }

    /// The state of a fresh instance.
    fn new(facts: Arc<FeatureFacts>, lane: Lane) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::MAX_HANDLES);
        Self {
            table,
            limiter: Limiter::new(limits::MEMORY_BYTES, facts.handed_over(lane), Arc::clone(&facts.memory)),
            registered: Registrations::without(&facts.skipped),
            facts,
            lane,
            cpu: CpuBudget::default(),
            meter: Arc::default(),
            pending: PendingCalls::default(),
            event: EventDetails::default(),
            wasi: World::default(),
        }
    }

    /// Puts the context of an installation into the table, and lends it.
    pub(super) fn lend_context(&mut self) -> wasmtime::Result<Resource<Context>> {
        let context = self.table.push(Context)?;
        Ok(Resource::new_borrow(context.rep()))
    }

    /// The context dies with the installation, whatever the guest still holds.
    pub(super) fn end_context(&mut self, context: u32) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Context>::new_own(context))?;
        Ok(())
    }

    /// Whether the descriptor requests a capability of this kind and it was granted.
    pub(crate) fn granted(&self, kind: CapabilityKind) -> Result<(), Error> {
        match self.facts.descriptor.request(kind) {
            None => Err(Error::Denied(format!("the descriptor does not request the capability \"{kind}\""))),
            Some(request) if self.facts.grants.answers(&request.capability) => Ok(()),
            Some(request) => Err(self.facts.not_granted(&request.capability)),
        }
    }
}
