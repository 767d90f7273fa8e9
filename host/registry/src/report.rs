//! The report of a feature, for listings.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Entry;
use crate::TaskReport;
use conductor_package::Grants;
use conductor_package::admission::Provenance;
use conductor_package::descriptor::Tier;
use conductor_sandbox::task::Task;

/// What listings show of a feature.
///
/// Read from a host of another version, what it does not say is as in the default.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FeatureReport {
    /// What configuration calls it.
    pub name: String,
    /// The package.
    pub path: PathBuf,
    /// Whether it came with the host.
    pub bundled: bool,
    /// Whether it was installed. The grants and switches of one that was not are in the configuration.
    pub installed: bool,
    /// The id of the feature that comes with the host and is not loaded, because this one has its name.
    pub displaces: Option<String>,
    /// Its source-qualified id, version, digest and size; `null` if it was refused.
    pub package: Option<PackageReport>,
    /// Why it is not installed.
    pub refused: Option<String>,
    /// What it was granted.
    pub grants: Grants,
    /// What it asks for and has not.
    pub denied: Vec<String>,
    /// Its contributions that are left out, each with the reason: a person refused it, or a capability that it needs
    /// was not granted.
    pub skipped: Vec<String>,
    /// How much longer it is quarantined because it kept trapping, in seconds.
    pub quarantine: Option<u64>,
    /// Its background tasks.
    pub tasks: Vec<TaskReport>,
    /// Calls of its tools and hooks that gave a result.
    pub calls: u64,
    /// Those that gave none.
    pub calls_failed: u64,
    /// Actions and calls that wait.
    pub waiting: usize,
    /// Milliseconds at work, in actions and in calls; a call's waiting counts.
    pub busy_ms: u64,
    /// Milliseconds of a processor that its tools, hooks, tasks and exchanges took, host functions included.
    pub cpu_ms: u64,
    /// Milliseconds that those were made to wait because the feature, or all together, took too much of a processor.
    pub throttled_ms: u64,
    /// Bytes of linear memory that its instances have.
    pub memory: usize,
    /// Events that its hook has seen, and those that it missed.
    pub events_seen: u64,
    /// Events that its hook missed.
    pub events_missed: u64,
    /// Actions done, failed, and of those trapped and without room in the queue.
    pub performed: u64,
    /// Actions that failed.
    pub failed: u64,
    /// Of the failed ones: traps and overruns.
    pub trapped: u64,
    /// Of the failed ones: no room in the queue.
    pub queue_full: u64,
    /// Of all of them, those that the thread which had brought the event did itself, because the feature is quick.
    pub carried: u64,
    /// Why the last action that failed did.
    pub last_failure: Option<String>,
}

/// What listings show of an installed package.
///
/// Read from a host of another version, what it does not say is as in the default.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PackageReport {
    /// Source-qualified.
    pub id: String,
    /// The author's.
    pub version: String,
    /// SHA-256, lower-case hex.
    pub digest: String,
    /// In bytes.
    pub size: usize,
    /// The actions that it contributes.
    pub actions: Vec<String>,
    /// The tools that it contributes.
    pub tools: Vec<ToolReport>,
    /// The hooks that it contributes.
    pub hooks: Vec<String>,
    /// The providers that it contributes.
    pub providers: Vec<String>,
    /// The skills that it contributes.
    pub skills: Vec<String>,
}

/// A tool, in listings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReport {
    /// Its name.
    pub name: String,
    /// How much it can do.
    pub tier: Tier,
}

impl fmt::Display for ToolReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.tier.as_str())
    }
}

/// What there is to say about an entry now.
pub(super) fn report(entry: &Entry) -> FeatureReport {
    let (source, refused) = match entry {
        Entry::Installed(installed) => (&installed.source, None),
        Entry::Refused { source, reason, .. } => (&**source, Some(reason.clone())),
    };
    let mut report = FeatureReport {
        name: source.name.clone(),
        path: source.path.clone(),
        bundled: source.bundled,
        installed: matches!(source.provenance, Provenance::Installed),
        displaces: source.displaces_bundled.then(|| format!("builtin:{}", source.name)),
        package: None,
        refused,
        grants: source.grants.clone(),
        denied: Vec::new(),
        skipped: Vec::new(),
        quarantine: None,
        tasks: Vec::new(),
        calls: 0,
        calls_failed: 0,
        waiting: 0,
        busy_ms: 0,
        cpu_ms: 0,
        throttled_ms: 0,
        memory: 0,
        events_seen: 0,
        events_missed: 0,
        performed: 0,
        failed: 0,
        trapped: 0,
        queue_full: 0,
        carried: 0,
        last_failure: None,
    };
    if let Entry::Installed(installed) = entry {
        let descriptor = installed.descriptor();
        report.grants = installed.facts.grants.clone();
        if installed.facts.is_revoked() {
            let why = "it was disabled, removed, lost a grant or a contribution while rules name it; what they do with it fails";
            report.refused = Some(why.to_owned());
        }
        let denied = descriptor.capabilities.iter().filter(|request| !report.grants.answers(&request.capability));
        report.denied = denied.map(|request| request.capability.key()).collect();
        report.skipped = installed.facts.skipped.iter().map(ToString::to_string).collect();
        report.memory = installed.facts.memory.linear();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        report.cpu_ms = ms(installed.facts.control_share.used());
        report.throttled_ms = ms(installed.facts.throttled.total());
        report.quarantine = installed.facts.quarantine.left(Instant::now()).map(|left| left.as_secs());
        if let Some(background) = &*installed.background() {
            report.tasks = background.tasks.iter().map(Task::report).collect();
            if let Some(events) = &background.events {
                (report.events_seen, report.events_missed) = events.counts();
            }
        }
        for actor in installed.actor.iter().chain(&installed.hooks) {
            let counters = actor.counters();
            report.calls += counters.done.load(Ordering::Relaxed);
            report.calls_failed += counters.failed.load(Ordering::Relaxed);
            report.waiting += actor.waiting();
            report.busy_ms += counters.busy.load(Ordering::Relaxed) / 1_000_000;
            report.trapped += counters.trapped.load(Ordering::Relaxed);
        }
        if let Some(actions) = &installed.actions {
            let counters = actions.queue.counters();
            report.performed = counters.done.load(Ordering::Relaxed);
            report.failed = counters.failed.load(Ordering::Relaxed);
            report.trapped += counters.trapped.load(Ordering::Relaxed);
            report.waiting += actions.queue.waiting();
            report.busy_ms += counters.busy.load(Ordering::Relaxed) / 1_000_000;
            report.queue_full = counters.queue_full.load(Ordering::Relaxed);
            report.carried = counters.carried.load(Ordering::Relaxed);
            report.last_failure = counters.last_failure();
        }
        report.package = Some(PackageReport {
            id: descriptor.id.to_string(),
            version: descriptor.version.clone(),
            digest: installed.facts.digest.clone(),
            size: installed.size,
            actions: descriptor.actions.iter().map(|action| action.name.clone()).collect(),
            tools: descriptor
                .tools
                .iter()
                .map(|tool| ToolReport { name: tool.name.clone(), tier: tool.tier })
                .collect(),
            hooks: descriptor.hooks.iter().map(|hook| hook.point.as_str().to_owned()).collect(),
            providers: descriptor.providers.iter().map(|provider| provider.name.clone()).collect(),
            skills: descriptor.skills.iter().map(|skill| skill.name.clone()).collect(),
        });
    }
    report
}
