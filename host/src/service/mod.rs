//! Services: what a grant opens.
//!
//! Most files implement interfaces of the contract for [`InstanceState`]: the resource behind the
//! guest's handle holds its scope, and whether the grant still holds is looked at on every call.
//! Others know nothing of the sandbox: [`notification_log`], where notifications end, and what works
//! on the disk for [`files`], [`git`] and [`store`], or over the network for [`http`].
//!
//! [`InstanceState`]: crate::feature::sandbox::state::InstanceState

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::control::audit::Audit;
use crate::control::plan::desk::{self, Desk};
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::limits;
use crate::news::News;

pub mod added_files;
pub mod clock;
pub mod devices;
pub mod file_folder;
pub mod files;
pub mod git;
pub mod hardware;
pub mod hardware_args;
pub mod host_state;
pub mod http;
pub mod http_client;
pub mod install;
pub mod invocation;
pub mod keychain;
pub mod midi_out;
pub mod models;
pub mod notification_log;
pub mod planning;
pub mod privileges;
pub mod refusal;
pub mod repository;
pub mod runs;
pub mod runtime_controls;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;
pub mod secret_store;
pub mod sinks;
pub mod store;
pub mod store_table;
pub mod token_account;
pub mod udp;

/// The host's side of all services, shared by every instance of every feature.
#[derive(Debug)]
pub struct Services {
    /// Names behind device numbers.
    pub devices: Arc<devices::DeviceTable>,
    /// Where diagnostics, alerts and notifications go.
    pub sinks: sinks::SinkQueue,
    /// How datagrams leave, and how host names are resolved.
    pub datagrams: Box<dyn udp::Datagrams>,
    /// The clock that events are stamped with.
    pub clock: Clock,
    /// What is put on record.
    pub audit: Audit,
    /// The desk for plans that wait for a person.
    pub plans: Arc<Desk>,
    /// Who wants to know what is different.
    pub news: News,
    /// Datagrams that one feature may send per second; [`limits::DATAGRAM_RATE`], except where calls are
    /// measured rather than limited.
    pub datagram_rate: f64,
    /// What one feature's calls in the control lane may take of a processor; [`limits::CONTROL_CPU`], except where calls
    /// are measured rather than limited.
    pub control_cpu: limits::Share,
    /// The same of all features; [`limits::LANE_CPU`].
    pub lane_cpu: limits::Share,
    /// How HTTP requests leave.
    pub http: http::HttpClient,
    /// Features' own data; none without a home to keep it in.
    pub stores: Option<store::FeatureStores>,
    /// The models that can be asked, from when the host is complete.
    pub models: OnceLock<Arc<dyn models::ModelView>>,
    /// The host itself, from when it is complete.
    pub view: OnceLock<Arc<dyn host_state::HostView>>,
}

impl Services {
    /// Services around these sinks and datagrams; the rest is as a fresh host has it.
    pub fn new(sinks: sinks::SinkQueue, datagrams: Box<dyn udp::Datagrams>) -> Self {
        let clock = Clock::start();
        Self {
            devices: Arc::default(),
            sinks,
            datagrams,
            clock,
            audit: Audit::none(),
            plans: Arc::new(forgetful(clock)),
            news: News::default(),
            datagram_rate: limits::DATAGRAM_RATE,
            control_cpu: limits::CONTROL_CPU,
            lane_cpu: limits::LANE_CPU,
            http: http::HttpClient::new(Arc::new(http::SystemNetwork::new()), Arc::new(http::EnvironmentSecrets)),
            stores: None,
            models: OnceLock::new(),
            view: OnceLock::new(),
        }
    }

    /// The same, with features' data, and the list of secrets, kept in this home. Where data can't be, a
    /// warning says so.
    #[must_use]
    pub fn home(self, home: Option<&Path>) -> Self {
        let stores = home.and_then(|home| {
            store::FeatureStores::open(home)
                .inspect_err(|error| tracing::warn!("features can keep no data: {error}"))
                .ok()
        });
        Self { stores, ..self.secrets_of(home) }
    }

    /// The same, for features that are only tried out: with the secrets of this home, and data that is forgotten.
    #[must_use]
    pub fn tried_out_in(self, home: Option<&Path>) -> Self {
        Self { stores: Some(store::FeatureStores::forgetful()), ..self.secrets_of(home) }
    }

    fn secrets_of(mut self, home: Option<&Path>) -> Self {
        if let Some(home) = home {
            let secrets = Arc::new(secret_store::SecretStore::at(home));
            self.http = http::HttpClient::new(Arc::new(http::SystemNetwork::new()), secrets);
        }
        self
    }
}

/// A desk for a host that keeps nothing.
pub(crate) fn forgetful(clock: Clock) -> Desk {
    // Without memory for an empty record there is none for a host either.
    Desk::in_memory(clock, desk::EXPIRES).unwrap_or_else(|error| panic!("no memory: {error}"))
}

/// Work that waits for the disk, on a thread of the control lane: the others go on.
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// What a handle answers after its grant was taken back.
fn revoked() -> Error {
    Error::Denied("the grant was revoked".into())
}

/// What a service answers in the real-time lane that may take its time.
fn waits(what: &str) -> Error {
    Error::Unavailable(format!("{what} takes its time, and nothing may wait in the real-time lane"))
}
