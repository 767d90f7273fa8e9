//! What the host keeps for one instance, and what all instances of a feature share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::component::ResourceTable;

use super::cpu::CpuBudget;
use super::limits::{self, Limiter, TokenBucket};
use crate::feature::capability::{CapabilityRequest, Endpoint, Grants};
use crate::feature::descriptor::Descriptor;
use crate::service::Services;

/// What is fixed about an installed feature, shared by its instances.
#[derive(Debug)]
pub struct FeatureFacts {
    /// What it says about itself.
    pub descriptor: Descriptor,
    /// SHA-256 of its bytes, lower-case hex.
    pub digest: String,
    /// What it was granted.
    pub grants: Grants,
    /// Addresses of the host names that the grants name, resolved when they were given.
    pub resolved: HashMap<String, IpAddr>,
    /// The host's services.
    pub services: Arc<Services>,
    revoked: Arc<AtomicBool>,
    performed: AtomicBool,
}

impl FeatureFacts {
    /// Resolves the host names in `grants`; a name that can't be resolved is said so when a
    /// mapping uses it.
    pub fn new(descriptor: Descriptor, digest: String, grants: Grants, services: &Arc<Services>) -> Self {
        let resolved = grants
            .udp
            .iter()
            .filter_map(|pattern| pattern.host())
            .filter(|host| host.parse::<IpAddr>().is_err())
            .filter_map(|host| Some((host.to_owned(), services.datagrams.resolve(host).ok()?)))
            .collect();
        Self {
            descriptor,
            digest,
            grants,
            resolved,
            services: Arc::clone(services),
            revoked: Arc::default(),
            performed: AtomicBool::new(false),
        }
    }

    /// Whether both the descriptor's request for `purpose` and the grants cover `endpoint`.
    pub fn may_reach(&self, purpose: &str, endpoint: &Endpoint) -> bool {
        let declared = match self.descriptor.network(purpose) {
            Some(CapabilityRequest::Network { udp, .. }) => udp.iter().any(|pattern| pattern.covers(endpoint)),
            _ => false,
        };
        declared && self.grants.udp.iter().any(|pattern| pattern.covers(endpoint))
    }

    /// Whether an instance has performed before; from now on one has.
    pub(super) fn is_warm(&self) -> bool {
        self.performed.load(Ordering::Relaxed) || self.performed.swap(true, Ordering::Relaxed)
    }

    /// Takes every grant back, at once, also for handles that are in use.
    pub fn revoke(&self) {
        self.revoked.store(true, Ordering::Release);
    }

    /// The flag that handles look at on every call.
    pub fn revocation(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.revoked)
    }
}

/// An action that an instance has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredAction {
    /// Its name.
    pub name: String,
    /// JSON Schema of its parameters.
    pub schema: String,
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
    /// Limits the call under way.
    pub(super) cpu: CpuBudget,
    /// What `install` registered.
    pub registered: Vec<RegisteredAction>,
    /// Limits the sinks.
    pub sink_bucket: TokenBucket,
}

impl InstanceState {
    /// The state of a fresh instance.
    pub fn new(facts: Arc<FeatureFacts>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::MAX_HANDLES);
        Self {
            table,
            limiter: Limiter::default(),
            facts,
            cpu: CpuBudget::default(),
            registered: Vec::new(),
            sink_bucket: TokenBucket::new(limits::SINK_RATE, limits::SINK_BURST),
        }
    }
}
