//! Requests of the API to a host, beside its status: parts of it, changing modes, validating a configuration.

use std::path::PathBuf;

use crossbeam_channel::Receiver;

use super::look::{CallerClass, Candidate};
use super::{Host, Reloaded, apply};
use crate::control::lock::{Lock, Locked};
use crate::control::plan::PlanError;
use conductor_audit::caller::Caller;
use conductor_audit::{AuditError, Chain, Entry, Kind, Row};
use conductor_config::{Diagnostics, Severity, Source};
use conductor_observer::light::DeviceLights;
use conductor_observer::notification_log::{self, NotificationPage, NotificationQuery};
use conductor_observer::{LockChange, Observation};
use conductor_ports::supervisor::{PortsStatus, UnknownDevice};
use conductor_registry::FeatureReport;
use conductor_rules::Overlaps;
use conductor_sandbox::host_view::HostView as _;
use conductor_stdx::changes::HostChange;

/// Why the show was not locked or unlocked as asked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Only the home's owner does that.
    #[error("only the home's owner locks and unlocks the show, with `conductor lock` and `conductor unlock`")]
    NotOwner,
    /// The file of a lock that outlives the host can't be written or removed. A show that was to be locked is locked
    /// until the host stops; one that was to be unlocked is still locked.
    #[error("the lock can't be kept in, or taken out of, the home: {0}")]
    File(#[from] std::io::Error),
}

/// There is no such mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownMode(String);

/// Why something was not changed for a caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The show is locked.
    #[error(transparent)]
    Locked(#[from] Locked),
    /// There is no such mode.
    #[error(transparent)]
    Mode(#[from] UnknownMode),
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] UnknownDevice),
}

/// Why the configuration file is not in force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The show is locked.
    #[error(transparent)]
    Locked(#[from] Locked),
    /// The host was started without one.
    #[error("this host has no configuration file")]
    NoFile,
    /// It can't be read.
    #[error("{}: {source}; the old rules stay", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no text.
    #[error("{}; the old rules stay", PlanError::NotText { file: file.display().to_string(), at: *at })]
    NotText {
        /// The file.
        file: PathBuf,
        /// The first byte that is not valid UTF-8, from 0.
        at: usize,
    },
    /// Too many configurations are looked at already.
    #[error("{}", PlanError::Busy)]
    Busy,
    /// It is wrong; the old rules stay.
    #[error("{}", .0.render(false))]
    Wrong(Diagnostics),
}

impl Host {
    /// All ports, all bindings, and the backends that can't be reached.
    pub fn ports(&self) -> PortsStatus {
        self.supervisor.status()
    }

    /// What the lights of each output show. The next change of those of an output is reported.
    pub fn lights(&self) -> Vec<DeviceLights> {
        self.workers.outputs.lights()
    }

    /// The active mode, where there are any, and all of them in the configuration's order.
    pub fn modes(&self) -> (Option<String>, Vec<String>) {
        let current = self.in_force.load();
        (current.mode(self.observed.mode().as_deref()), current.modes())
    }

    /// Makes another mode active for `caller`, as soon as the events before are done.
    ///
    /// # Errors
    /// [`ChangeError::Locked`], [`ChangeError::Mode`].
    pub fn switch_mode(&self, caller: &Caller, mode: &str) -> Result<(), ChangeError> {
        let switch = || Ok(self.view.switch_mode(mode).map_err(UnknownMode)?);
        let switched = self.lock.check(caller).map_err(ChangeError::from).and_then(|()| switch());
        self.note_asked("mode", caller, mode, switched.as_ref().err());
        switched
    }

    /// As [`Host::mute`], for `caller`.
    ///
    /// # Errors
    /// [`ChangeError::Locked`], [`ChangeError::Device`].
    pub fn mute_for(&self, caller: &Caller, device: &str, muted: bool) -> Result<(), ChangeError> {
        let mute = || Ok(self.mute(device, muted)?);
        let done = self.lock.check(caller).map_err(ChangeError::from).and_then(|()| mute());
        self.note_asked(if muted { "mute" } else { "unmute" }, caller, device, done.as_ref().err());
        done
    }

    pub(super) fn note_asked(&self, what: &str, caller: &Caller, subject: &str, error: Option<&impl ToString>) {
        let entry = Entry::new(Kind::Host, what, caller, subject);
        self.audit.note(match error {
            None => entry,
            Some(error) => entry.refused(error.to_string()),
        });
    }

    /// The lock for the show, if it is held.
    pub fn held_lock(&self) -> Option<Lock> {
        self.lock.held()
    }

    /// Locks the show for `caller`, or unlocks it: while it is locked, only the home's owner changes anything.
    /// With `persistent` it stays locked when the host starts again.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn set_lock(&self, caller: &Caller, locked: bool, persistent: bool) -> Result<Option<Lock>, LockError> {
        let what = if locked { "lock" } else { "unlock" };
        let set = || -> Result<Option<Lock>, LockError> {
            if !caller.is_owner() {
                return Err(LockError::NotOwner);
            }
            match locked {
                true => Ok(Some(self.lock.lock(caller, persistent, self.clock.wall())?)),
                false => Ok(self.lock.unlock().map(|_| None)?),
            }
        };
        let done = set();
        self.note_asked(what, caller, if persistent { "persistent" } else { "" }, done.as_ref().err());
        if !matches!(done, Err(LockError::NotOwner)) {
            let by = caller.to_string();
            self.observer.put(Observation::Lock(LockChange { locked: self.lock.held().is_some(), by }));
            self.changes.send(HostChange::Lock);
        }
        done
    }

    /// Asks the process that this host is in to stop it, for `caller`. Whether it does is its own matter.
    pub fn ask_to_stop(&self, caller: &Caller) {
        self.note_asked("stop", caller, "", None::<&String>);
        // Once is enough.
        let _ = self.stop_asked.0.try_send(());
    }

    /// Where somebody who asks for a stop is heard.
    pub fn stop_asked(&self) -> Receiver<()> {
        self.stop_asked.1.clone()
    }

    /// Every feature.
    pub fn features(&self) -> Vec<FeatureReport> {
        self.in_force.load().registry.reports()
    }

    /// The configuration in force, and what was said of another that was refused since.
    pub fn config_in_force(&self) -> (Source, Option<String>) {
        let current = self.in_force.load();
        (current.source.clone(), current.refused.clone())
    }

    /// The mappings in force that fire for some of the same events.
    pub fn overlaps(&self) -> Overlaps {
        conductor_rules::overlapping_pairs(&self.in_force.load().config)
    }

    /// What there is to say about a configuration: `text`, or what the file says now. It is held against the features
    /// in force; nothing changes, nothing else is run, and no lock is held.
    ///
    /// # Errors
    /// [`ReloadError::NoFile`], [`ReloadError::File`], [`ReloadError::NotText`], [`ReloadError::Busy`].
    pub fn check_config(&self, text: Option<String>) -> Result<Diagnostics, ReloadError> {
        self.check_config_for(&Caller::library(), text)
    }

    /// [`check_config`](Self::check_config), for `caller`, who waits for others of their kind only.
    ///
    /// # Errors
    /// As [`check_config`](Self::check_config).
    pub fn check_config_for(&self, caller: &Caller, text: Option<String>) -> Result<Diagnostics, ReloadError> {
        let text = match text {
            Some(text) => text,
            None => self.config_on_disk()?.1,
        };
        let _turn = self.view.turns.wait(CallerClass::caller(caller)).ok_or(ReloadError::Busy)?;
        let seen = Candidate::read(&self.in_force.load(), &text);
        Ok(seen.map_or_else(|wrong| wrong, |candidate| candidate.check(&self.workers)))
    }

    /// Puts what is installed now, and what the file says now, in force for `caller`.
    ///
    /// # Errors
    /// See [`ReloadError`]; then the old rules stay, and the status says so.
    pub fn reload_from_file(&self, caller: &Caller) -> Result<Reloaded, ReloadError> {
        if let Err(locked) = self.lock.check(caller) {
            self.note_asked("reload", caller, "", Some(&locked));
            return Err(locked.into());
        }
        // From here on no plan can be applied: the text that is read now would take back what it writes.
        let mut state = self.state();
        let (file, text) = self.config_on_disk()?;
        self.note_asked("reload", caller, &file.display().to_string(), None::<&String>);
        // Features first: rules that are new may need what is new. Where the old rules can't go with it, that is
        // said, and the new ones may.
        if let Err(wrong) = self.put_features_in_force(&mut state) {
            tracing::warn!("{} mistakes with what is installed now", wrong.count(Severity::Error));
        }
        let name = self.in_force.load().source.file().to_owned();
        let told = |found: Diagnostics| if caller.is_owner() { found } else { found.without_lines() };
        match self.put_in_force(&mut state, &text, &name) {
            Ok(Reloaded { warnings, generation, rules }) => {
                Ok(Reloaded { warnings: told(warnings), generation, rules })
            }
            Err(wrong) => Err(ReloadError::Wrong(told(wrong))),
        }
    }

    fn config_on_disk(&self) -> Result<(PathBuf, String), ReloadError> {
        let file = self.plan_file().map_err(|_| ReloadError::NoFile)?;
        match apply::read(&file) {
            Ok(text) => Ok((file, text)),
            Err(PlanError::NotText { at, .. }) => Err(ReloadError::NotText { file, at }),
            Err(PlanError::File { source, .. }) => Err(ReloadError::File { file, source }),
            Err(_) => Err(ReloadError::NoFile),
        }
    }

    /// What is on record, at most `limit` rows, oldest first: those after a number, or else the last. Nothing where
    /// the host keeps nothing.
    ///
    /// # Errors
    /// [`AuditError::Unreadable`].
    pub fn audit_rows(&self, after: Option<i64>, limit: u32) -> Result<Vec<Row>, AuditError> {
        let Some(home) = &self.home else { return Ok(Vec::new()) };
        let chain = Chain::at(home);
        match after {
            Some(after) => chain.after(after, limit),
            None => chain.find(None, None, 0, limit),
        }
    }

    /// The notifications of features that are kept, and how many were left out. Nothing where the host keeps nothing.
    ///
    /// # Errors
    /// The file system's.
    pub fn notifications(&self, query: &NotificationQuery) -> std::io::Result<NotificationPage> {
        let mut page = match &self.home {
            Some(home) => notification_log::read(home, query)?,
            None => NotificationPage::default(),
        };
        let left_out = self.services.sinks.left_out().into_iter().filter(|(feature, _)| query.is_of(feature));
        page.left_out = left_out.map(|(feature, count)| (feature.into(), count)).collect();
        Ok(page)
    }
}
