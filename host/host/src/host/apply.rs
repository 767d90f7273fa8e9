//! Applying plans: the one place where the configuration file is written.
//!
//! Everything is made and checked beside what is in use; then the file is replaced; then the rules are
//! swapped. On any failure the file and the rules are as before. That it is about to be done is on record
//! before it is, and what came of it afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::look::CallerClass;
use super::view::STALE;
use super::{Host, State};
use crate::control::plan::rehearsal::{Heard, NewMapping, Rehearsal, rehearse};
use crate::control::plan::store::Step;
use crate::control::plan::{Plan, PlanError, PlanSummary, Revision, state_hash};
use conductor_audit::caller::Caller;
use conductor_audit::{Entry, Kind, Outcome};
use conductor_config::{Config, Diagnostics, Loaded};
use conductor_config_text::{diff, edit};
use conductor_dispatch::{Action, describe_rule};
use conductor_engine::Rule;
use conductor_event::{DeviceId, Record};
use conductor_observer::{Observation, PlanChange, PlanStep, is_private};
use conductor_ports::rebinding::Rebinding;
use conductor_rules::{FreshMapping, bindings, fresh_mappings};
use conductor_sandbox::host_view::{ProposedChange, ProposedPlan};
use conductor_stdx::atomic_file::{backup, keep_backup, remove_stale, replace};
use conductor_stdx::changes::HostChange;
use conductor_stdx::plain_file;
use conductor_stdx::plural::plural;

/// A plan, with what it would have done.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
    /// The diff with long values folded; `None` if none is that long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded_diff: Option<String>,
    /// What would have fired differently.
    pub rehearsal: Rehearsal,
}

/// What was applied, undone or redone.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Applied {
    /// What it does, in its proposer's words.
    pub description: String,
    /// The rules that are in force now.
    pub rules: usize,
}

impl Host {
    /// Keeps a plan that a person makes in a shell; it is applied as every other.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn propose_plan(&self, caller: &Caller, said: &str, changes: Vec<edit::Change>) -> Result<Plan, PlanError> {
        let changes = changes.into_iter().map(|edit::Change { path, value }| ProposedChange { path, value }).collect();
        let (proposer, description, privileged) = (caller.to_string(), said.to_owned(), false);
        self.view.store_plan(caller, ProposedPlan { proposer, caller: None, description, privileged, changes })
    }

    /// Plans that wait for a person, oldest first.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn plans(&self) -> Result<Vec<Plan>, PlanError> {
        self.expire_plans();
        self.plans.waiting()
    }

    /// The same as lists show it, without what the plans change.
    ///
    /// # Errors
    /// [`PlanError::Record`].
    pub fn plan_summaries(&self) -> Result<Vec<PlanSummary>, PlanError> {
        self.expire_plans();
        let current = state_hash(self.in_force.load().source.text());
        let mut plans = self.plans.summaries()?;
        plans.iter_mut().for_each(|plan| plan.stale = plan.base != current);
        Ok(plans)
    }

    /// The description of a plan. `None` if no plan of this id waits.
    pub fn plan_description(&self, id: &str) -> Option<String> {
        self.plans.description(id).ok().flatten()
    }

    /// [`plan`](Self::plan), as `caller` may see it: private values are shown to the home's owner only.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plan_for(&self, caller: &Caller, id: &str) -> Result<PlanView, PlanError> {
        let mut view = self.seen(CallerClass::caller(caller), id)?;
        if !caller.is_owner() {
            let source = self.in_force.load().source.clone();
            view.plan.hide(source.text(), source.hidden());
            // It is a part of the diff, which is hidden by then.
            view.folded_diff = None;
        }
        Ok(view)
    }

    /// How long a plan waits before it expires.
    pub fn plans_wait(&self) -> Duration {
        self.plans.expires()
    }

    /// One plan, with its rehearsal over what the flight recorder still has. Nothing is run for that which is not in
    /// force, and no lock is held. A plan for another configuration than the one in force is not rehearsed.
    ///
    /// # Errors
    /// [`PlanError::NotFound`] and [`PlanError::Expired`]; [`PlanError::Invalid`] if it can't be rehearsed
    /// because it does not fit what is in force now; [`PlanError::Busy`].
    pub fn plan(&self, id: &str) -> Result<PlanView, PlanError> {
        self.seen(CallerClass::Owner, id)
    }

    fn seen(&self, whose: CallerClass, id: &str) -> Result<PlanView, PlanError> {
        let plan = self.plans.plan(id)?;
        let current = self.in_force.load();
        let (before, file) = (current.source.text(), current.source.file());
        if state_hash(before) != plan.base {
            // What its changes would make of this configuration is nothing that can be applied.
            return Ok(PlanView { plan, folded_diff: None, rehearsal: Rehearsal::impossible(STALE.to_owned()) });
        }
        let planned = self.view.planned(whose, &current, &plan)?;
        let rehearsal = match &planned.unknown {
            Some(reason) => Rehearsal::impossible(reason.clone()),
            None => {
                let _turn = self.view.turns.wait(whose).ok_or(PlanError::Busy)?;
                // Modes and rules are numbers that mean something in their own set only.
                let mut records = self.observed.records();
                records.retain(|record| record.generation == current.rules.generation());
                // A plan about every key would read out what was typed.
                records.retain(|record| matches!(whose, CallerClass::Owner) || !is_private(record));
                let heard = self.heard(records, &planned.loaded.config);
                let mappings = new_mappings(&current.config, &planned.loaded.config);
                let (before, after) = (Arc::new(current.rules.clone().into()), Arc::clone(&planned.rules));
                let name = |rule: &Rule<Action>| describe_rule(rule).to_string();
                rehearse(&heard, before, after, &self.environment, name, &mappings)
            }
        };
        let folded_diff = diff::folded(file, before, planned.loaded.source.text());
        Ok(PlanView { plan, folded_diff, rehearsal })
    }

    /// Recorded events, with the devices that they would have come from under a configuration.
    fn heard(&self, records: Vec<Record>, config: &Config) -> Vec<Heard> {
        let rebinding = Rebinding::new(&self.supervisor.status(), &bindings::plan(config));
        let heard = records.into_iter().map(|record| {
            let device = rebinding.device(&record.device, &record.event).clone();
            Heard { record, device }
        });
        heard.collect()
    }

    /// Applies a plan that a person has agreed to, for `caller`.
    ///
    /// # Errors
    /// See [`PlanError`]; then nothing has changed, and the plan waits on unless it has expired.
    pub fn apply_plan(&self, caller: &Caller, id: &str) -> Result<Applied, PlanError> {
        self.expire_plans();
        self.on_record(caller, "apply", id, || {
            self.lock.check(caller)?;
            self.apply(caller, id)
        })
    }

    fn apply(&self, caller: &Caller, id: &str) -> Result<Applied, PlanError> {
        let mut state = self.state();
        let plan = self.plans.plan(id)?;
        let file = self.plan_file()?;
        let before = read_or_new(&file)?;
        stale(&plan.base, &before)?;
        let current = self.in_force.load();
        // It was read when it was judged, if that was for this same text.
        let planned = self.view.planned.get(&plan.id, current.rules.generation());
        let loaded = match planned.filter(|_| before == current.source.text()) {
            Some(planned) => planned.loaded.clone(),
            None => {
                let after = edit::edited(&before, &plan.changes)?;
                let source = &current.source;
                state.reader.parse(&after, source.file(), source.included()).map_err(|wrong| unfit(&wrong))?
            }
        };
        let (description, after) = (plan.description, loaded.source.text().to_owned());
        let step = Step::Apply { plan: plan.id, description: description.clone(), before, after };
        let rules = self.write(&mut state, caller, &file, loaded, &step)?;
        self.observer.put(Observation::Reload(format!("applied the plan: {description}")));
        self.notify_plan(PlanStep::Applied, Some(id), caller, &description);
        Ok(Applied { description, rules })
    }

    /// Writes changes that `caller` made without a plan to the configuration whose [`state_hash`] is `base`, and puts them
    /// in force: a revision that can be undone, on record as `subject`.
    ///
    /// # Errors
    /// See [`PlanError`]; then nothing has changed.
    pub(super) fn write_changes(
        &self,
        caller: &Caller,
        subject: &str,
        description: &str,
        base: &str,
        changes: &[edit::Change],
    ) -> Result<(), PlanError> {
        self.on_record(caller, "apply", subject, || {
            self.lock.check(caller)?;
            let mut state = self.state();
            let file = self.plan_file()?;
            let before = read_or_new(&file)?;
            stale(base, &before)?;
            let after = edit::edited(&before, changes)?;
            let source = self.in_force.load().source.clone();
            let loaded = state.reader.parse(&after, source.file(), source.included()).map_err(|wrong| unfit(&wrong))?;
            let (plan, description) = (subject.to_owned(), description.to_owned());
            let step = Step::Apply { plan, description: description.clone(), before, after };
            self.write(&mut state, caller, &file, loaded, &step)?;
            self.observer.put(Observation::Reload(description.clone()));
            self.notify_plan(PlanStep::Applied, None, caller, &description);
            Ok(())
        })
    }

    /// Takes a plan out of the store, undone, for `caller`.
    ///
    /// # Errors
    /// [`PlanError::NotFound`].
    pub fn reject_plan(&self, caller: &Caller, id: &str) -> Result<(), PlanError> {
        let description = self.plans.plan(id).map(|plan| plan.description).unwrap_or_default();
        self.on_record(caller, "reject", id, || {
            self.lock.check(caller)?;
            self.plans.reject(id)
        })?;
        self.notify_plan(PlanStep::Rejected, Some(id), caller, &description);
        Ok(())
    }

    /// Takes a plan out of the store, undone, for the client that had it proposed, which is known by its door, scope and
    /// name alone.
    ///
    /// # Errors
    /// [`PlanError::NotFound`], [`PlanError::Expired`], [`PlanError::NotOwn`], [`PlanError::Locked`].
    pub fn withdraw_plan(&self, caller: &Caller, id: &str) -> Result<(), PlanError> {
        // What its user agreed to was asked for by the client as well.
        let own = [caller.to_string(), caller.clone().by_elicitation().to_string()];
        let description = self.on_record(caller, "withdraw", id, || {
            self.lock.check(caller)?;
            let plan = self.plans.plan(id)?;
            if !own.contains(&plan.caller) {
                return Err(PlanError::NotOwn(plan.id));
            }
            self.plans.reject(id)?;
            Ok(plan.description)
        })?;
        self.notify_plan(PlanStep::Rejected, Some(id), caller, &description);
        Ok(())
    }

    /// Reports the outcome of a plan to observers.
    fn notify_plan(&self, step: PlanStep, plan: Option<&str>, who: &Caller, description: &str) {
        let (plan, who, description) = (plan.map(str::to_owned), who.to_string(), description.to_owned());
        self.observer.put(Observation::Plan(PlanChange { step, plan, who, description }));
    }

    /// Takes the last applied plan back.
    ///
    /// # Errors
    /// [`PlanError::Nothing`]; [`PlanError::StaleState`] when the file was changed since, which an undo would lose.
    pub fn undo(&self, caller: &Caller) -> Result<Applied, PlanError> {
        self.step(caller, true)
    }

    /// What [`undo`](Self::undo) would take back: the description of the plan.
    ///
    /// # Errors
    /// [`PlanError::Nothing`].
    pub fn next_undo(&self) -> Result<String, PlanError> {
        Ok(self.plans.to_undo()?.description)
    }

    /// What [`redo`](Self::redo) would apply again: the description of the plan.
    ///
    /// # Errors
    /// [`PlanError::Nothing`].
    pub fn next_redo(&self) -> Result<String, PlanError> {
        Ok(self.plans.to_redo()?.description)
    }

    /// Applies again what was undone last.
    ///
    /// # Errors
    /// As [`Host::undo`].
    pub fn redo(&self, caller: &Caller) -> Result<Applied, PlanError> {
        self.step(caller, false)
    }

    fn step(&self, caller: &Caller, is_back: bool) -> Result<Applied, PlanError> {
        self.on_record(caller, if is_back { "undo" } else { "redo" }, "", || {
            self.lock.check(caller)?;
            let mut state = self.state();
            let revision = if is_back { self.plans.to_undo()? } else { self.plans.to_redo()? };
            let Revision { number, description, before, after, .. } = revision;
            let (step, from, to, did, became) = match is_back {
                true => (Step::Undo { number }, after, before, "undid", PlanStep::Undone),
                false => (Step::Redo { number }, before, after, "redid", PlanStep::Redone),
            };
            let file = self.plan_file()?;
            stale(&state_hash(&from), &read_or_new(&file)?)?;
            let source = self.in_force.load().source.clone();
            let loaded = state.reader.parse(&to, source.file(), source.included()).map_err(|wrong| unfit(&wrong))?;
            let rules = self.write(&mut state, caller, &file, loaded, &step)?;
            self.observer.put(Observation::Reload(format!("{did}: {description}")));
            self.notify_plan(became, None, caller, &description);
            Ok(Applied { description, rules })
        })
    }

    /// Puts a configuration into the file and in force, and writes down that it was done.
    fn write(
        &self,
        state: &mut State,
        caller: &Caller,
        file: &Path,
        loaded: Loaded,
        step: &Step,
    ) -> Result<usize, PlanError> {
        let made = self.make(loaded).map_err(|wrong| unfit(&wrong))?;
        let text = made.loaded.source.text();
        let (desk, hash) = (&self.plans, state_hash(text));
        let begun = entry(step, caller).outcome(Outcome::Begun).with("state", hash.as_str());
        self.audit.require(begun)?;
        desk.intend(step, &hash)?;
        let kept = if file.exists() { keep_backup(file).map(drop) } else { Ok(()) };
        let _changing = self.view.changing.lock();
        if let Err(source) = kept.and_then(|()| replace(file, text.as_bytes())) {
            // The file is as it was; should the record fail too, the next start finds that out by itself.
            let _ = desk.not_done();
            return Err(PlanError::File { file: file.display().to_string(), source });
        }
        // Before the store forgets the intention: a host that is killed in between has it on record twice, not never.
        let done = entry(step, caller).with("state", hash.as_str());
        if let Err(error) = self.audit.require(done) {
            tracing::error!("the change is made, but not on record: {error}");
        }
        if let Err(error) = desk.done(step) {
            tracing::error!("the change is made, but not on record: {error}");
        }
        Ok(self.swap_in(state, made).rules)
    }

    /// The file that plans are written to.
    ///
    /// # Errors
    /// [`PlanError::NoFile`] if the host was started without one.
    pub(super) fn plan_file(&self) -> Result<PathBuf, PlanError> {
        let file = self.config_file.clone().ok_or(PlanError::NoFile)?;
        // What a link names is replaced, not the link.
        Ok(fs::canonicalize(&file).unwrap_or(file))
    }

    /// Decides about a change that a killed host may have left half done.
    pub(super) fn settle_plans(&self) {
        let file = self.plan_file();
        if let Ok(file) = &file {
            let left = remove_stale(file) + remove_stale(&backup(file));
            if left > 0 {
                tracing::info!("removed {} of a process that was killed", plural(left, "temporary file"));
            }
        }
        let settled = file.and_then(|file| read_or_new(&file)).and_then(|text| self.plans.settle(&text));
        match settled {
            Ok(Some((step, was_done))) => {
                let found = entry(&step, &Caller::host());
                self.audit.note(match was_done {
                    true => found.with("reason", "the host was cut off after it"),
                    false => found.failed("the host was cut off before it"),
                });
            }
            Ok(None) | Err(PlanError::NoFile) => {}
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Puts on record which plans have expired since it was last called, and notifies watchers.
    pub fn expire_plans(&self) {
        match self.plans.expired() {
            Ok(plans) if plans.is_empty() => {}
            Ok(plans) => {
                self.changes.send(HostChange::Plans);
                plans.iter().for_each(|(id, proposer)| {
                    self.notify_plan(PlanStep::Expired, Some(id), &Caller::feature(proposer), "");
                    self.audit.note(
                        Entry::new(Kind::Plan, "expire", &Caller::host(), id).with("proposer", proposer.as_str()),
                    );
                });
            }
            Err(error) => tracing::debug!("{error}"),
        }
    }

    /// Does what a caller wants done with a plan. A failure is recorded in the audit log, too; a success already is
    /// when the file was written.
    fn on_record<T>(
        &self,
        caller: &Caller,
        what: &str,
        subject: &str,
        work: impl FnOnce() -> Result<T, PlanError>,
    ) -> Result<T, PlanError> {
        let began = Instant::now();
        let result = work();
        let entry = || Entry::new(Kind::Plan, what, caller, subject).took(began.elapsed());
        if result.is_ok() {
            self.changes.send(HostChange::Plans);
        }
        match &result {
            Ok(_) if matches!(what, "reject" | "withdraw") => self.audit.note(entry()),
            Ok(_) => {}
            Err(error @ (PlanError::File { .. } | PlanError::Record(_))) => {
                self.audit.note(entry().failed(error));
            }
            Err(error) => self.audit.note(entry().refused(error)),
        }
        result
    }
}

/// The mappings that `after` adds or changes.
fn new_mappings(before: &Config, after: &Config) -> Vec<NewMapping> {
    let new = |FreshMapping { placed, mode, device, trigger }| NewMapping {
        name: placed.name.unwrap_or(placed.place),
        mode,
        device: device.as_deref().map(DeviceId::new),
        trigger,
    };
    fresh_mappings(before, after).into_iter().map(new).collect()
}

/// A step, for the record.
fn entry(step: &Step, who: &Caller) -> Entry {
    match step {
        Step::Apply { plan, description, .. } => {
            Entry::new(Kind::Plan, "apply", who, plan).with("description", description.as_str())
        }
        Step::Undo { number } => Entry::new(Kind::Plan, "undo", who, &format!("revision {number}")),
        Step::Redo { number } => Entry::new(Kind::Plan, "redo", who, &format!("revision {number}")),
    }
}

/// The text of a configuration file.
///
/// # Errors
/// [`PlanError::File`], [`PlanError::NotText`].
pub(super) fn read(file: &Path) -> Result<String, PlanError> {
    let name = || file.display().to_string();
    let bytes = plain_file::read(file, plain_file::MAX_TEXT);
    let bytes = bytes.map_err(|source| PlanError::File { file: name(), source })?;
    let not_text = |error: FromUtf8Error| PlanError::NotText { file: name(), at: error.utf8_error().valid_up_to() };
    String::from_utf8(bytes).map_err(not_text)
}

/// The same of a file that a plan may be the first to write: until then it is empty.
pub(super) fn read_or_new(file: &Path) -> Result<String, PlanError> {
    match read(file) {
        Err(PlanError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

/// Why a configuration can't be put in force, for the person who wanted it.
fn unfit(wrong: &Diagnostics) -> PlanError {
    PlanError::Invalid(wrong.render(false))
}

fn stale(expected: &str, text: &str) -> Result<(), PlanError> {
    let current = state_hash(text);
    if current == expected { Ok(()) } else { Err(PlanError::StaleState { plan: expected.to_owned(), current }) }
}
