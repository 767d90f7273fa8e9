//! The status of a running host, for the API and the commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use conductor_active_window::ActiveWindow;
use conductor_audit::AuditStatus;
use conductor_event::Nanos;
use conductor_ports::supervisor::PortsStatus;
use conductor_registry::FeatureReport;
use conductor_rules::profile::{Profile, ProfileView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Host;
use crate::control::lock::Lock;
use crate::control::trouble::TroublesomeClient;

/// Everything there is to know about a running host.
///
/// Read from a host of another version, what it does not say is as in the default.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Status {
    /// The version of the host.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// When it started, in milliseconds since 1970.
    pub started: u64,
    /// Nanoseconds since it started.
    pub uptime: Nanos,
    /// The folder of what it keeps between starts, and of its sockets; `null` if it keeps nothing.
    pub home: Option<PathBuf>,
    /// The file of the configuration in force, as messages show it.
    pub config: String,
    /// The active mode; `null` if the configuration has no modes.
    pub mode: Option<String>,
    /// The modes there are.
    pub modes: Vec<String>,
    /// The application in front (the active window); `null` if there is none or it is unknown.
    pub front: Option<String>,
    /// Why it is not known which one is in front.
    pub front_unknown: Option<String>,
    /// Which mode applies for which application, and which of them applies now.
    pub profiles: Vec<ProfileView>,
    /// Rules in use.
    pub rules: usize,
    /// How often the rules were replaced.
    pub generation: u64,
    /// What was said of the last configuration, where it was refused; the rules are older then.
    pub refused: Option<String>,
    /// Warnings about the configuration in force, a line each: mappings that lead nowhere, grants without a
    /// feature.
    pub warnings: Vec<String>,
    /// Events that reached the rules.
    pub events: u64,
    /// Actions that failed.
    pub failures: u64,
    /// The last of them.
    pub last_failure: Option<String>,
    /// Observations that were dropped because the observer was behind.
    pub unobserved: u64,
    /// Messages of features that were left out: too many, or too fast.
    pub dropped_messages: u64,
    /// Whether what happens is put on record.
    pub audit: AuditStatus,
    /// The lock for the show: who holds it, since when; `null` if it is not locked.
    pub lock: Option<Lock>,
    /// Clients that were slowed, turned away or cut off, the most recent first; at most 32.
    pub troublesome_clients: Vec<TroublesomeClient>,
    /// Ports.
    #[serde(flatten)]
    pub ports: PortsStatus,
    /// MIDI outputs.
    pub outputs: Vec<OutputStatus>,
    /// What else does actions of the host: the desktop, programs, scripts; those that rules ask for.
    pub workers: Vec<WorkerStatus>,
    /// Features.
    pub features: Vec<FeatureReport>,
    /// Names of features that `enabled = false` in the configuration keeps from being loaded.
    pub disabled_features: Vec<String>,
}

/// What there is to know about a MIDI output that rules send to.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OutputStatus {
    /// What rules call it.
    pub target: String,
    /// Messages sent.
    pub sent: u64,
    /// Values of controllers that a later one replaced while they waited for a slow output.
    pub merged: u64,
    /// Messages that could not be sent.
    pub failed: u64,
    /// Why the last of those could not.
    pub last_failure: Option<String>,
}

/// What there is to know about a worker that is no MIDI output.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkerStatus {
    /// What it is called: `desktop`, `processes`, `scripts`.
    pub name: String,
    /// Actions done.
    pub done: u64,
    /// Actions that failed.
    pub failed: u64,
    /// Why the last of those did.
    pub last_failure: Option<String>,
}

impl Host {
    /// How things are.
    pub fn status(&self) -> Status {
        let current = self.in_force.load();
        let uptime = self.clock.now();
        let (failures, last_failure) = self.observed.failures();
        let outputs = self.workers.outputs.queues().into_iter().map(|queue| OutputStatus {
            target: queue.name().to_string(),
            sent: queue.counters().done.load(Ordering::Relaxed),
            merged: queue.counters().merged.load(Ordering::Relaxed),
            failed: queue.counters().failed.load(Ordering::Relaxed),
            last_failure: queue.counters().last_failure(),
        });
        let workers = self.workers.counters().into_iter().map(|(name, counters)| WorkerStatus {
            name: name.to_string(),
            done: counters.done.load(Ordering::Relaxed),
            failed: counters.failed.load(Ordering::Relaxed),
            last_failure: counters.last_failure(),
        });
        let seen = self.watch.seen();
        let (front, front_unknown) = match seen.active_window {
            ActiveWindow::Application(application) => (Some(application.name().to_owned()), None),
            ActiveWindow::Nothing => (None, None),
            ActiveWindow::Unknown(reason) => (None, Some(reason)),
        };
        let applies = |profile: &Arc<Profile>| seen.profile.as_ref() == Some(profile);
        let disabled = current.config.features.iter().filter(|(_, feature)| !feature.enabled);
        let profiles = seen.profiles.iter().map(|profile| ProfileView::new(profile, applies(profile)));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            started: self.clock.wall().saturating_sub(uptime / 1_000_000),
            uptime,
            home: self.home.clone(),
            config: current.source.file().to_owned(),
            mode: current.mode(self.observed.mode().as_deref()),
            modes: current.modes(),
            front,
            front_unknown,
            profiles: profiles.collect(),
            rules: current.rules.rules().len(),
            generation: current.rules.generation(),
            refused: current.refused.clone(),
            warnings: current.warnings.clone(),
            events: self.observed.recorded(),
            failures,
            last_failure: last_failure.map(|failure| format!("{}: {}", failure.worker, failure.reason)),
            unobserved: self.observer.missed(),
            dropped_messages: self.services.sinks.dropped(),
            audit: self.audit.status(),
            lock: self.lock.held(),
            troublesome_clients: self.troubles.list(),
            ports: self.supervisor.status(),
            outputs: outputs.collect(),
            workers: workers.collect(),
            features: current.registry.reports(),
            disabled_features: disabled.map(|(name, _)| name.clone()).collect(),
        }
    }
}
