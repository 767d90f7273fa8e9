//! Services: what a grant opens.
//!
//! Most files implement interfaces of the contract for [`InstanceState`]: the resource behind the
//! guest's handle holds its scope, and whether the grant still holds is looked at on every call.
//! Others know nothing of the sandbox: [`notification_log`], where notifications end, and what works
//! on the disk for [`files`] and [`store`], or over the network for [`http`].
//!
//! [`InstanceState`]: crate::feature::sandbox::state::InstanceState

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::clock::Clock;
use crate::feature::sandbox::bindings::Error;
use crate::feature::sandbox::limits;

pub mod clock;
pub mod devices;
pub mod file_folder;
pub mod files;
pub mod host_state;
pub mod http;
pub mod http_client;
pub mod install;
pub mod invocation;
pub mod midi_out;
pub mod notification_log;
pub mod planning;
pub mod refusal;
pub mod runs;
pub mod sinks;
pub mod store;
pub mod store_table;
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
    /// Plans that wait for a person.
    pub plans: planning::Plans,
    /// Datagrams that one instance may send per second; [`limits::DATAGRAM_RATE`], except where calls are
    /// measured rather than limited.
    pub datagram_rate: f64,
    /// How HTTP requests leave.
    pub http: http::HttpClient,
    /// Features' own data; none without a home to keep it in.
    pub stores: Option<store::FeatureStores>,
    /// The host itself, from when it is complete.
    pub view: OnceLock<Arc<dyn host_state::HostView>>,
}

impl Services {
    /// Services around these sinks and datagrams; the rest is as a fresh host has it.
    pub fn new(sinks: sinks::SinkQueue, datagrams: Box<dyn udp::Datagrams>) -> Self {
        Self {
            devices: Arc::default(),
            sinks,
            datagrams,
            clock: Clock::start(),
            plans: planning::Plans::default(),
            datagram_rate: limits::DATAGRAM_RATE,
            http: http::HttpClient::new(Arc::new(http::SystemNetwork::new()), Arc::new(http::EnvironmentSecrets)),
            stores: None,
            view: OnceLock::new(),
        }
    }

    /// The same, with features' data kept in this home. Where it can't be, a warning says so.
    #[must_use]
    pub fn home(mut self, home: Option<&Path>) -> Self {
        self.stores = home.and_then(|home| {
            store::FeatureStores::open(home)
                .inspect_err(|error| tracing::warn!("features can keep no data: {error}"))
                .ok()
        });
        self
    }
}

/// Work that waits for the disk, on a thread of the control lane: the others go on.
fn waiting<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// What a handle answers after its grant was taken back.
fn revoked() -> Error {
    Error::Denied("the grant was revoked".into())
}
