//! The host as services for features see it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind};
use conductor_config::{self as config, Diagnostic, Diagnostics, Loaded, Location, Severity, Source};
use conductor_config_text::edit::{self, Change};
use conductor_dispatch::feature_worker::FeatureWorker;
use conductor_dispatch::midi_out::MidiJob;
use conductor_dispatch::workers::Workers;
use conductor_dispatch::{Action, Envelope};
use conductor_dispatch::{describe_rule, describe_rule_id};
use conductor_engine::{Engine, EnvironmentHandle, Firing, RuleSetHandle, Sink};
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage, Nanos};
use conductor_listening::Listening;
use conductor_midi_parser::MidiParser;
use conductor_observer::{Observation, Observed, Observer, PlanChange, PlanStep};
use conductor_ports::SysExIdentity;
use conductor_ports::engine_input::Input;
use conductor_ports::supervisor::{DiscoveredPort, Mutes, PortsReader};
use conductor_rules as rules;
use conductor_rules::bindings;
use conductor_sandbox::bindings::Error;
use conductor_sandbox::bindings::imports::{hardware, host_state, planning};
use conductor_sandbox::host_view::{Captured, HostView, MidiRefusal, ProposedChange, ProposedPlan};
use conductor_stdx::changes::{ChangeBroadcast, HostChange};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell;
use conductor_terminal::{MAX_TEXT, excerpt, shortened};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::generation::{Generation, InForce};
use super::look::{CallerClass, Candidate, PreviewSlots};
use super::planned::{Planned, PlannedCache};
use super::play::parse_event;
use super::{apply, contract_types};
use crate::control::plan::risk::{self, Risk};
use crate::control::plan::store::{PlanStore, one_line};
use crate::control::plan::{Base, Plan, PlanError, Proposal, state_hash};

/// Mistakes of a plan that are listed.
const MAX_ERRORS: usize = 20;

/// How often a plan is made, if the configuration that it is made for changes meanwhile.
const MAX_ATTEMPTS: usize = 5;

/// How long a plan waits for a change that is being written.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a device has to say who it is.
const IDENTITY_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything that features may see of a running host, and the few ways in that they may be given.
#[derive(Debug)]
pub(super) struct View {
    pub(super) observer: Observer,
    pub(super) observed: Observed,
    pub(super) ports: PortsReader,
    pub(super) mutes: Mutes,
    pub(super) workers: Workers,
    pub(super) environment: Arc<EnvironmentHandle>,
    pub(super) clock: Clock,
    pub(super) queue: doorbell::Sender<Input>,
    pub(super) in_force: InForce,
    /// The file that the configuration is read from, and that plans change; `None` if there is none.
    pub(super) config_file: Option<PathBuf>,
    /// The plans that wait.
    pub(super) plans: Arc<PlanStore>,
    pub(super) audit: Audit,
    pub(super) changes: ChangeBroadcast,
    /// Bounds how many other configurations are looked at at once.
    pub(super) turns: PreviewSlots,
    /// What the plans that were looked at last would put in force.
    pub(super) planned: PlannedCache,
    /// Held from when the host writes the configuration file until that is in force: in between they differ, and are not to
    /// be compared.
    pub(super) changing: Mutex<()>,
}

/// What is said of a plan that can't be applied.
pub(super) const STALE: &str = "stale: the configuration has changed since it was proposed; propose it anew";

impl View {
    /// The active mode; `None` if there are no modes.
    fn mode_of(&self, current: &Generation) -> Option<String> {
        current.mode(self.observed.mode().as_deref())
    }

    /// A plan without private values, for others than the owner.
    fn hidden(&self, mut plan: Plan) -> Plan {
        let current = self.in_force.load();
        plan.hide(current.source.text(), current.source.hidden());
        plan
    }

    /// The configuration that plans are made for: the one in force, if the file says the same.
    ///
    /// # Errors
    /// [`PlanError::NotInForce`], [`PlanError::FileInvalid`], [`PlanError::NotText`], [`PlanError::File`].
    fn plan_base(&self) -> Result<Base, PlanError> {
        let current = self.in_force.load();
        let base = Base { file: current.source.file().to_owned(), text: current.source.text().to_owned() };
        let Some(file) = &self.config_file else { return Ok(base) };
        let text = apply::read_or_new(file)?;
        if text == base.text {
            return Ok(base);
        }
        let file = base.file;
        match current.source.parse(&text).and_then(|loaded| bindings::check(&loaded)) {
            Ok(()) => Err(PlanError::NotInForce { file }),
            Err(wrong) => {
                let first = error_lines(wrong.iter().filter(|one| one.severity == Severity::Error).take(1));
                Err(PlanError::FileInvalid { file, first })
            }
        }
    }

    /// How far a plan reaches that makes the text `after` of `base`, which is checked whole: grammar, bindings, and
    /// what the features in force say of their actions. Nothing is installed or started. What was made for this is
    /// returned beside, with the generation that it was made under.
    ///
    /// # Errors
    /// [`PlanError::Invalid`] with everything that is wrong, [`PlanError::Denied`], [`PlanError::Busy`], and
    /// [`PlanError::StaleState`] if another configuration came into force.
    fn judge(&self, base: &Base, after: &str) -> Result<(Risk, u64, Planned), PlanError> {
        let _turn = self.turns.wait(CallerClass::Planner).ok_or(PlanError::Busy)?;
        let current = self.in_force.load();
        if current.source.text() != base.text {
            // Another one came into force meanwhile.
            return Err(PlanError::StaleState {
                plan: state_hash(&base.text),
                current: state_hash(current.source.text()),
            });
        }
        let candidate = Candidate::read(&current, after).map_err(invalid)?;
        let (before, after) = (&current.config, &candidate.loaded.config);
        let mut risk = risk::assess(before, after)?;
        let compiled = candidate.compile(&self.workers).map_err(invalid)?;
        candidate.unknown().into_iter().for_each(|note| risk.remark(note));
        rules::overlaps(before, after).into_iter().for_each(|note| risk.remark(note));
        let doubts = Candidate::new_doubts(&current.warnings, &compiled.warnings);
        doubts.into_iter().for_each(|note| risk.remark(note));
        Ok((risk, current.rules.generation(), Planned::new(candidate, compiled.rules)))
    }

    /// What a waiting plan would put in force, beside `current`: as it was made before, or made now.
    ///
    /// # Errors
    /// [`PlanError::Edit`], [`PlanError::Invalid`], [`PlanError::Busy`].
    pub(super) fn planned(
        &self,
        whose: CallerClass,
        current: &Generation,
        plan: &Plan,
    ) -> Result<Arc<Planned>, PlanError> {
        let generation = current.rules.generation();
        if let Some(planned) = self.planned.get(&plan.id, generation) {
            return Ok(planned);
        }
        let text = edit::edited(current.source.text(), &plan.changes)?;
        let _turn = self.turns.wait(whose).ok_or(PlanError::Busy)?;
        let candidate = Candidate::read(current, &text).map_err(invalid)?;
        let compiled = candidate.compile(&self.workers).map_err(invalid)?;
        let planned = Arc::new(Planned::new(candidate, compiled.rules));
        self.planned.put(&plan.id, generation, &planned);
        Ok(planned)
    }

    /// Makes a plan by `attempt`, and again if that was refused because of the configuration that it is for, and another one
    /// has come into force since.
    fn for_what_is_in_force<T>(&self, mut attempt: impl FnMut() -> Result<T, PlanError>) -> Result<T, PlanError> {
        let mut attempts = 0;
        loop {
            let generation = self.in_force.load().rules.generation();
            let made = attempt();
            attempts += 1;
            let is_by_base = matches!(
                made,
                Err(PlanError::StaleState { .. } | PlanError::NotInForce { .. } | PlanError::FileInvalid { .. })
            );
            if !is_by_base || attempts == MAX_ATTEMPTS {
                return made;
            }
            // What has been written is in force in a moment.
            drop(self.changing.try_lock_for(CHANGE_TIMEOUT));
            if self.in_force.load().rules.generation() == generation {
                return made;
            }
        }
    }

    /// Puts a plan into the store, on record, and before everybody who watches.
    pub(super) fn store_plan(&self, proposer: &Caller, proposed: ProposedPlan) -> Result<Plan, PlanError> {
        // Before it is cut, so that nothing is hidden.
        one_line(&proposed.description)?;
        let change = |change: ProposedChange| Change { path: change.path, value: change.value };
        let proposal = Proposal {
            proposer: proposed.proposer,
            caller: proposed.caller,
            description: shortened(&proposed.description, MAX_TEXT),
            privileged: proposed.privileged,
            changes: proposed.changes.into_iter().map(change).collect(),
        };
        let description = proposal.description.clone();
        let mut judged = None;
        let made = self.for_what_is_in_force(|| {
            let base = self.plan_base()?;
            self.plans.propose(proposal.clone(), &base, |after| {
                let (risk, generation, planned) = self.judge(&base, after)?;
                judged = Some((generation, Arc::new(planned)));
                Ok(risk)
            })
        });
        let entry =
            |subject| Entry::new(Kind::Plan, "propose", proposer, subject).with("description", description.clone());
        self.audit.note(match &made {
            Ok(plan) => entry(&plan.id).with("base", plan.base.as_str()).with("risk", format!("{:?}", plan.risk.level)),
            Err(error) => entry("").refused(error),
        });
        self.changes.send(HostChange::Plans);
        let plan = made?;
        if let Some((generation, planned)) = judged {
            self.planned.put(&plan.id, generation, &planned);
        }
        let changes = PlanChange {
            step: PlanStep::Proposed,
            plan: Some(plan.id.clone()),
            who: proposer.to_string(),
            description,
        };
        self.observer.put(Observation::Plan(changes));
        Ok(plan)
    }

    /// A configuration with this one global mapping, and no other anywhere.
    fn with_only(text: &str, mapping: Value) -> Result<Loaded, String> {
        let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let modes = table.get("modes").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
        let has_mappings = modes.iter().enumerate().filter(|(_, mode)| mode.get("mappings").is_some());
        let path = |steps: &[&str]| steps.iter().map(|step| (*step).to_owned()).collect();
        let mut changes: Vec<Change> = has_mappings
            .map(|(index, _)| Change { path: path(&["modes", &index.to_string(), "mappings"]), value: None })
            .collect();
        if table.contains_key("global_mappings") {
            changes.push(Change { path: path(&["global_mappings"]), value: None });
        }
        changes.push(Change { path: path(&["global_mappings", "0"]), value: Some(mapping) });
        let text = edit::edited(text, &changes).map_err(|error| error.to_string())?;
        config::parse(&text, "preview").map_err(|wrong| error_lines(wrong.iter()))
    }
}

impl HostView for View {
    fn mode(&self) -> String {
        self.mode_of(&self.in_force.load()).unwrap_or_default()
    }

    fn config(&self) -> String {
        self.in_force.load().source.hidden().to_owned()
    }

    fn findings(&self, text: &str) -> Vec<host_state::Finding> {
        let source = self.in_force.load().source.clone();
        // What is hidden is not wrong for that.
        let text = if text == source.hidden() { source.text() } else { text };
        let found = match source.parse(text) {
            Ok(loaded) => match bindings::check(&loaded) {
                Ok(()) => loaded.warnings,
                Err(wrong) => wrong,
            },
            Err(wrong) => wrong,
        };
        found.iter().map(|one| finding(found.source(), one)).collect()
    }

    fn ports(&self) -> Vec<host_state::Port> {
        // What people type at is no controller that features may offer to bind.
        let shown = |port: &DiscoveredPort| !port.port.protocol.is_private() || !port.bindings.is_empty();
        self.ports.status().ports.into_iter().filter(shown).map(contract_types::port).collect()
    }

    fn bindings(&self) -> Vec<host_state::Binding> {
        self.ports.status().bindings.into_iter().map(contract_types::binding).collect()
    }

    fn status(&self) -> host_state::Status {
        let current = self.in_force.load();
        let (failures, last_failure) = self.observed.failures();
        host_state::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: self.clock.now(),
            mode: self.mode_of(&current),
            modes: current.modes(),
            rules: u32::try_from(current.rules.rules().len()).unwrap_or(u32::MAX),
            refused: current.refused.clone(),
            events: self.observed.recorded(),
            failures,
            last_failure: last_failure.map(|failure| format!("{}: {}", failure.worker, failure.reason)),
        }
    }

    fn features(&self) -> Vec<host_state::Feature> {
        self.in_force.load().registry.reports().into_iter().map(contract_types::feature).collect()
    }

    fn actions(&self) -> Vec<host_state::Action> {
        let hosts = config::action_schemas().into_iter().map(|(name, schema)| {
            let summary = schema["description"].as_str().unwrap_or_default().to_owned();
            host_state::Action { name: name.to_owned(), feature: None, summary, schema: schema.to_string() }
        });
        hosts.chain(self.in_force.load().registry.actions()).collect()
    }

    fn plans(&self) -> Result<Vec<host_state::WaitingPlan>, Error> {
        let plans = self.plans.waiting().map_err(|error| Error::Unavailable(excerpt(&error.to_string(), MAX_TEXT)))?;
        let current = state_hash(self.in_force.load().source.text());
        let shown = |mut plan: Plan| {
            if plan.base != current {
                plan.risk.notes.insert(0, STALE.to_owned());
            }
            contract_types::plan(self.hidden(plan))
        };
        Ok(plans.into_iter().map(shown).collect())
    }

    fn propose(&self, proposal: ProposedPlan) -> Result<planning::Proposal, Error> {
        let proposer = Caller::feature(&proposal.proposer);
        let plan = self.store_plan(&proposer, proposal).map_err(Error::from)?;
        let plan = self.hidden(plan);
        let (risk, notes) = (contract_types::risk(plan.risk.level), plan.risk.notes);
        Ok(planning::Proposal { id: plan.id, risk, notes, diff: plan.diff })
    }

    fn explain(&self, device: &str, event: &str, mode: Option<&str>) -> Result<Vec<host_state::Explanation>, String> {
        let event = parse_event(event)?;
        let current = self.in_force.load();
        let rules = &current.rules;
        let mut engine = Engine::new(Arc::new(rules.clone().into()), Arc::clone(&self.environment));
        match mode {
            Some(mode) => engine.set_mode(mode, &mut NullSink).map_err(|error| error.to_string())?,
            // Without modes there is none to set.
            None => {
                engine.set_mode(&self.mode_of(&current).unwrap_or_default(), &mut NullSink).unwrap_or_default();
            }
        }
        let explained = engine.explain(self.clock.now(), &DeviceId::new(device), &event);
        let one = |one: &conductor_engine::Explanation| host_state::Explanation {
            rule: describe_rule_id(one.rule, rules, true),
            awake: one.verdict.is_awake(),
            why: one.to_string(),
        };
        Ok(explained.iter().map(one).collect())
    }

    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)> {
        let records = self.observed.public_records(limit).into_iter();
        records.map(|record| (record.at, record.device, record.event)).collect()
    }

    fn captured(&self, limit: usize) -> Vec<Captured> {
        let captured = self.observed.public_records(limit).into_iter().map(|record| {
            let name = |rule| self.in_force.rule_name(rule, record.generation);
            let fired = record.fired.ids().iter().copied().map(name).collect();
            Captured { at: record.at, device: record.device, event: record.event, fired }
        });
        captured.collect()
    }

    fn switch_mode(&self, mode: &str) -> Result<(), String> {
        let modes = self.in_force.load().modes();
        if !modes.iter().any(|known| known == mode) {
            return Err(format!("there is no mode {mode:?}; there are {}", modes.join(", ")));
        }
        self.queue.send(Input::SetMode(mode.into())).map_err(|_| "the host is stopping".to_owned())
    }

    fn listening(&self) -> Option<&Arc<Listening>> {
        Some(self.mutes.listening())
    }

    fn mute(&self, device: &str, muted: bool) -> Result<(), String> {
        self.mutes.mute(device, muted).map_err(|error| {
            let nearest = config::nearest(device, error.known.iter().map(String::as_str));
            nearest.map_or_else(|| error.to_string(), |near| format!("{error}; did you mean {near:?}?"))
        })
    }

    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal> {
        let message = whole(message)?;
        let queue = self.workers.outputs.queues().into_iter().find(|queue| **queue.name() == *target);
        let unavailable = |reason: String| MidiRefusal::Unavailable(format!("the output {target:?}: {reason}"));
        let queue = queue.ok_or_else(|| unavailable("no rule and no grant names it, so it is not open".into()))?;
        queue.try_put(MidiJob::Message(message)).map_err(|reason| unavailable(reason.to_string()))
    }

    fn probe(&self, target: &str) -> Result<Option<hardware::Identity>, MidiRefusal> {
        // Before the question, so that no answer is missed.
        let heard = self.observed.subscribe();
        self.send_midi(target, &SysExIdentity::REQUEST)?;
        let deadline = Instant::now() + IDENTITY_TIMEOUT;
        while let Ok(observation) = heard.recv_deadline(deadline) {
            if let Observation::Event(record) = &observation
                && record.device.as_str() == target
                && let Event::Midi(MidiMessage::SysEx(bytes)) = &record.event
                && let Some(identity) = SysExIdentity::of_reply(bytes)
            {
                return Ok(Some(contract_types::identity(identity)));
            }
        }
        Ok(None)
    }

    fn perform(&self, action: Value) -> Result<String, String> {
        let mapping = json!({ "trigger": { "type": "Note", "note": 60 }, "action": action });
        let current = self.in_force.load();
        let loaded = Self::with_only(current.source.text(), mapping)?;
        let compiled =
            rules::compile(&loaded, &current.registry, &self.workers).map_err(|wrong| error_lines(wrong.iter()))?;
        let done = compiled.rules.rules().first().map(|rule| describe_rule(rule).to_string()).unwrap_or_default();
        let mut engine = Engine::new(Arc::new(RuleSetHandle::new(compiled.rules)), Arc::clone(&self.environment));
        // The mode is for actions that ask for it; where it is gone, the first one is in force.
        let _ = engine.set_mode(&self.mode_of(&current).unwrap_or_default(), &mut NullSink);
        let mut hands = DirectSink { queue: &self.queue, failed: Vec::new() };
        for event in [
            MidiMessage::NoteOn { channel: 0, note: 60, velocity: 127 },
            MidiMessage::NoteOff { channel: 0, note: 60, velocity: 0 },
        ] {
            let event = DeviceEvent { device: DeviceId::new("preview"), event: event.into() };
            engine.event(self.clock.now(), event, &mut hands);
        }
        if hands.failed.is_empty() { Ok(done) } else { Err(hands.failed.join("; ")) }
    }
}

/// A sink that performs each rule that fires at once.
struct DirectSink<'a> {
    queue: &'a doorbell::Sender<Input>,
    failed: Vec<String>,
}

impl Sink<Action> for DirectSink<'_> {
    fn fire(&mut self, firing: Firing<'_, Action>) -> Option<Arc<str>> {
        // No set of rules in use has this number, so that the rule is not taken for another.
        let envelope = || Envelope { generation: u64::MAX, mode: None, ..Envelope::of(&firing) };
        if let Err((worker, reason)) = firing.rule.action.hand_over(envelope, &mut FeatureWorker::ring) {
            self.failed.push(format!("{worker}: {reason}"));
        }
        let mut brought_about = VecDeque::new();
        let mode = Action::at_once(&firing, &mut brought_about);
        for event in brought_about {
            // Its rules are those in force, and come after it.
            let _ = self.queue.try_send(Input::Event { at: firing.at, event });
        }
        if let Some(mode) = &mode
            && self.queue.send(Input::SetMode(Arc::clone(mode))).is_err()
        {
            self.failed.push("the host is stopping".to_owned());
        }
        mode
    }
}

/// A sink that ignores everything, for engines that are only queried.
struct NullSink;

impl Sink<Action> for NullSink {
    fn fire(&mut self, _: Firing<'_, Action>) -> Option<Arc<str>> {
        None
    }
}

fn finding(source: &Source, one: &Diagnostic) -> host_state::Finding {
    let Location { line, column, .. } = source.location(one.place.start);
    let allowed = one.allowed.as_ref().map(|allowed| format!("allowed: {allowed}"));
    let nearest = one.nearest.as_ref().map(|nearest| format!("did you mean {nearest:?}?"));
    let help: Vec<String> = [allowed, nearest, one.help.clone()].into_iter().flatten().collect();
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    host_state::Finding {
        severity: contract_types::severity(one.severity),
        line: number(line),
        column: number(column),
        message: one.message.clone(),
        help: (!help.is_empty()).then(|| help.join("; ")),
    }
}

/// Why a plan is not valid, without lines of the configuration: its proposer may not see all of that.
pub(super) fn invalid(wrong: Diagnostics) -> PlanError {
    let errors = wrong.iter().filter(|one| one.severity == Severity::Error);
    let mut lines: Vec<String> = errors
        .take(MAX_ERRORS)
        .map(|one| {
            let host_state::Finding { message, help, .. } = finding(wrong.source(), one);
            let help = help.map(|help| format!("; {help}")).unwrap_or_default();
            format!("{}: {message}{help}", wrong.source().location(one.place.start))
        })
        .collect();
    let more = wrong.count(Severity::Error).saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    PlanError::Invalid(lines.join("\n"))
}

/// The errors without their places, since the text is not a file.
fn error_lines<'d>(wrong: impl Iterator<Item = &'d Diagnostic>) -> String {
    let words: Vec<String> = wrong
        .filter(|one| one.severity == Severity::Error)
        .map(|one| {
            let allowed = one.allowed.as_ref().map(|allowed| format!("; allowed: {allowed}")).unwrap_or_default();
            let near = one.nearest.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            format!("{}{allowed}{near}", one.message)
        })
        .collect();
    words.join("\n")
}

/// The bytes as exactly one message.
fn whole(bytes: &[u8]) -> Result<MidiMessage, MidiRefusal> {
    let mut messages = Vec::new();
    let mut parser = MidiParser::new();
    parser.push(bytes, &mut |message| messages.push(message));
    let clean = parser.stray_bytes() == 0 && parser.dropped_messages() == 0;
    let mut encoded = Vec::with_capacity(bytes.len());
    match messages.as_slice() {
        // What is left over after the message would be a second one's beginning.
        [one]
            if clean && {
                one.encode(&mut encoded);
                encoded.len() == bytes.len()
            } =>
        {
            Ok(messages.remove(0))
        }
        _ => Err(MidiRefusal::Invalid(format!("{} bytes that are not one whole MIDI message", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_whole_message_is_taken_and_nothing_else() {
        assert_eq!(whole(&[0x90, 60, 100]), Ok(MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 }));
        assert!(whole(&[0xf0, 1, 2, 0xf7]).is_ok());
        for wrong in
            [&[][..], &[0x90, 60], &[0x90, 60, 100, 61], &[60, 100], &[0xf0, 1], &[0xf8, 0xf8], &[0x90, 60, 100, 0x90]]
        {
            assert!(whole(wrong).is_err(), "{wrong:02x?}");
        }
    }
}
