//! The host's side of all services: how what features may ask for leaves the sandbox.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::datagrams::Datagrams;
use crate::device_table::DeviceTable;
use crate::host_view::HostView;
use crate::limits;
use crate::model_view::ModelView;
use conductor_observer::sink_message::SinkQueue;
use conductor_services as services;
use conductor_stdx::clock::Clock;

/// The host's side of all services, shared by every instance of every feature.
#[derive(Debug)]
pub struct Services {
    /// Names behind device numbers.
    pub devices: Arc<DeviceTable>,
    /// Where diagnostics, alerts and notifications go.
    pub sinks: SinkQueue,
    /// How datagrams leave, and how host names are resolved.
    pub datagrams: Box<dyn Datagrams>,
    /// Where MIDI messages go; `None` for the host's outputs.
    pub midi: Option<Box<dyn MidiSink>>,
    /// The clock that events are stamped with.
    pub clock: Clock,
    /// Datagrams that one feature may send per second; [`limits::DATAGRAM_RATE`], except where calls are
    /// measured rather than limited.
    pub datagram_rate: f64,
    /// What one feature's calls in the control lane may take of a processor; [`limits::CONTROL_CPU`], except where calls
    /// are measured rather than limited.
    pub control_cpu: limits::Share,
    /// The same of all features; [`limits::LANE_CPU`].
    pub lane_cpu: limits::Share,
    /// How HTTP requests leave.
    pub http: services::http::HttpClient,
    /// Signs what features state; without a home it can't.
    pub signer: services::signing::Signer,
    /// Features' own data; none without a home to keep it in.
    pub stores: Option<Arc<services::store::FeatureStores>>,
    /// The models that can be asked, from when the host is complete.
    pub models: OnceLock<Arc<dyn ModelView>>,
    /// The host itself, from when it is complete.
    pub view: OnceLock<Arc<dyn HostView>>,
}

impl Services {
    /// Services around these sinks and datagrams; the rest is as a fresh host has it.
    pub fn new(sinks: SinkQueue, datagrams: Box<dyn Datagrams>) -> Self {
        let clock = Clock::start();
        Self {
            devices: Arc::default(),
            sinks,
            datagrams,
            midi: None,
            clock,
            datagram_rate: limits::DATAGRAM_RATE,
            control_cpu: limits::CONTROL_CPU,
            lane_cpu: limits::LANE_CPU,
            http: services::http::HttpClient::new(
                Arc::new(services::http::SystemNetwork::new()),
                Arc::new(services::http::EnvironmentSecrets),
            ),
            signer: services::signing::Signer::default(),
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
            services::store::FeatureStores::open(home)
                .inspect_err(|error| tracing::warn!("features can keep no data: {error}"))
                .ok()
        });
        let stores = stores.map(Arc::new);
        Self { stores, ..self.secrets_of(home) }
    }

    /// The same, for features that are only tried out: with the secrets of this home, and data that is forgotten.
    /// Migrations are tried on copies of what `live` or this home holds.
    #[must_use]
    pub fn tried_out_in(self, home: Option<&Path>, live: Option<Arc<services::store::FeatureStores>>) -> Self {
        use services::store::{FeatureStores, Originals};
        let originals = live.map(Originals::Live).or_else(|| Some(Originals::Home(home?.to_owned())));
        Self { stores: Some(Arc::new(FeatureStores::trial(originals))), ..self.secrets_of(home) }
    }

    /// The secrets and the key of a home.
    fn secrets_of(mut self, home: Option<&Path>) -> Self {
        if let Some(home) = home {
            let secrets = Arc::new(services::secret_store::SecretStore::at(home));
            self.http = services::http::HttpClient::new(Arc::new(services::http::SystemNetwork::new()), secrets);
            self.signer = services::signing::Signer::of(home);
        }
        self
    }
}

/// Where MIDI messages of features go in place of the host's outputs.
pub trait MidiSink: std::fmt::Debug + Send + Sync {
    /// Takes one whole message to the output of this name.
    fn send(&self, output: &str, message: &[u8]);
}
