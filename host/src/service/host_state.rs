//! What the host knows: the guest's handle to look, and what of the host it looks at.

use std::fmt::Debug;
use std::sync::Arc;

use conductor_engine::{DeviceId, Event, Nanos};
use wasmtime::component::Resource;

use super::install::Context;
use crate::control::plan::risk::Risk;
use crate::control::plan::{Base, Plan, PlanError};
use crate::feature::capability;
use crate::feature::registry::FeatureReport;
use crate::feature::sandbox::bindings::imports::host_state;
use crate::feature::sandbox::bindings::{self, Error, Lane};
use crate::feature::sandbox::limits::MAX_TEXT;
use crate::feature::sandbox::state::InstanceState;
use crate::ports::SysExIdentity;
use crate::ports::supervisor::{BindingStatus, DiscoveredPort, Health, PortState, PortsStatus, SideStatus};
use crate::terminal::{excerpt, excerpt_lines};

/// The host, as services see it.
pub trait HostView: Debug + Send + Sync {
    /// The mode in force; empty where there are no modes.
    fn mode(&self) -> String;
    /// The configuration in force, as it was written.
    fn config(&self) -> String;
    /// The same as others than its owner see it, without private values.
    fn hidden_config(&self) -> String {
        crate::config::hidden::hide(&self.config())
    }
    /// The configuration that plans are made for: the one in force, if the file says the same.
    ///
    /// # Errors
    /// [`PlanError::NotInForce`], [`PlanError::FileInvalid`], [`PlanError::NotText`], [`PlanError::File`].
    fn plan_base(&self) -> Result<Base, PlanError>;
    /// How far a plan reaches that makes the text `after` of `base`, which is checked whole: grammar, bindings, and
    /// what the features in force say of their actions. Nothing is installed or started.
    ///
    /// # Errors
    /// [`PlanError::Invalid`] with everything that is wrong, [`PlanError::Denied`], [`PlanError::Busy`], and
    /// [`PlanError::StaleState`] if another configuration came into force.
    fn judge(&self, base: &Base, after: &str) -> Result<Risk, PlanError>;
    /// What is wrong with another configuration, or doubtful.
    fn findings(&self, text: &str) -> Vec<Finding>;
    /// Every port, and every binding.
    fn ports(&self) -> PortsStatus;
    /// How it is.
    fn status(&self) -> StatusView;
    /// Every feature.
    fn features(&self) -> Vec<FeatureReport>;
    /// Every action that a mapping may have: the host's, then those of the features in force.
    fn actions(&self) -> Vec<ActionView>;
    /// What each rule would make of an event, in the words of the timeline language.
    ///
    /// # Errors
    /// A sentence, when it is no event, or there is no such mode.
    fn explain(&self, device: &str, event: &str, mode: Option<&str>) -> Result<Vec<ExplanationView>, String>;
    /// The last events, oldest first.
    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)>;
    /// The last events with the rules that fired, oldest first.
    fn captured(&self, limit: usize) -> Vec<Captured>;
    /// Makes a mode the one in force.
    ///
    /// # Errors
    /// A sentence, when there is no such mode.
    fn switch_mode(&self, mode: &str) -> Result<(), String>;
    /// Stops hearing a device, or hears it again. Waits for whoever keeps the ports.
    ///
    /// # Errors
    /// A sentence, when there is no such device.
    fn mute(&self, device: &str, muted: bool) -> Result<(), String>;
    /// Sends one MIDI message, whole, to the output of this name.
    ///
    /// # Errors
    /// A sentence: no such output, no MIDI message, a port that is gone.
    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal>;
    /// Asks the device behind an output who it is, and waits for the answer.
    ///
    /// # Errors
    /// As of [`send_midi`](Self::send_midi).
    fn probe(&self, target: &str) -> Result<Option<SysExIdentity>, MidiRefusal>;
    /// Does an action once, and says what was done.
    ///
    /// # Errors
    /// What is wrong with it, or who could not do it.
    fn perform(&self, action: serde_json::Value) -> Result<String, String>;
    /// Tells whoever watches that a plan waits.
    fn plan_waits(&self, _plan: &Plan) {}
}

/// How a host is, as features see it.
#[derive(Debug, Clone, Default)]
pub struct StatusView {
    /// Since it started.
    pub uptime: Nanos,
    /// The mode in force.
    pub mode: Option<String>,
    /// All of them.
    pub modes: Vec<String>,
    /// Rules in use.
    pub rules: usize,
    /// Why the last configuration was refused.
    pub refused: Option<String>,
    /// Events that reached the rules.
    pub events: u64,
    /// Actions that failed.
    pub failures: u64,
    /// The last of them.
    pub last_failure: Option<String>,
}

/// An action that a mapping may have.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionView {
    /// Its name, as `type` says it.
    pub name: String,
    /// The feature that contributes it. `None` for the host's own.
    pub feature: Option<String>,
    /// What it does, in a sentence.
    pub summary: String,
    /// The JSON Schema of its keys.
    pub schema: serde_json::Value,
}

/// Something that is wrong with a configuration, or doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it would be refused for that.
    pub is_error: bool,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What, in a line.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

/// What a rule makes of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationView {
    /// Its name, and what it does.
    pub rule: String,
    /// Whether it does something with it.
    pub awake: bool,
    /// What, or why not.
    pub why: String,
}

/// An event that came, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// When.
    pub at: Nanos,
    /// Where it came from.
    pub device: DeviceId,
    /// What it is.
    pub event: Event,
    /// The rules that fired.
    pub fired: Vec<String>,
}

/// Why a message was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MidiRefusal {
    /// The bytes are no MIDI message.
    Invalid(String),
    /// The output is not there, or is behind.
    Unavailable(String),
}

impl From<MidiRefusal> for Error {
    fn from(refusal: MidiRefusal) -> Self {
        match refusal {
            MidiRefusal::Invalid(text) => Self::Invalid(text),
            MidiRefusal::Unavailable(text) => Self::Unavailable(text),
        }
    }
}

/// The longest configuration that is checked for a guest, in bytes (1 MiB).
const MAX_CHECKED: usize = 1 << 20;
/// The longest name or event that a guest may ask about, in bytes.
const MAX_ASKED: usize = 1024;
/// Events that are told in words at once, at most.
const MAX_CAPTURED: u32 = 256;

/// The guest's handle to look.
#[derive(Debug)]
pub struct Reader {
    /// Within a tool call everything may be read.
    pub(crate) in_call: bool,
}

impl InstanceState {
    pub(super) fn view(&self) -> Result<Arc<dyn HostView>, Error> {
        self.facts.services.view.get().cloned().ok_or_else(|| Error::Unavailable("no host is running".into()))
    }

    /// Looks through a reader, if `kind` is granted or a tool call is under way.
    fn look<T>(
        &self,
        reader: &Resource<Reader>,
        kind: &str,
        look: impl FnOnce(&dyn HostView) -> T,
    ) -> wasmtime::Result<Result<T, Error>> {
        let reader = self.table.get(reader)?;
        if self.lane == Lane::RealTime {
            return Ok(Err(super::waits("the host's state")));
        }
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        if !reader.in_call
            && let Err(error) = self.granted(kind)
        {
            return Ok(Err(error));
        }
        Ok(self.view().map(|view| look(&*view)))
    }
}

impl host_state::Host for InstanceState {}

impl host_state::HostReader for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Reader>, Error>> {
        self.table.get(&context)?;
        let granted = self.granted("config-read").or_else(|_| self.granted("discover-ports"));
        Ok(match granted {
            Ok(()) => Ok(self.table.push(Reader { in_call: false })?),
            Err(error) => Err(error),
        })
    }

    fn mode(&mut self, reader: Resource<Reader>) -> wasmtime::Result<String> {
        self.table.get(&reader)?;
        Ok(self.view().map(|view| view.mode()).unwrap_or_default())
    }

    fn config(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<String, Error>> {
        self.look(&reader, "config-read", |view| view.hidden_config())
    }

    fn ports(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Port>, Error>> {
        let status = self.look(&reader, "discover-ports", |view| view.ports())?;
        Ok(status.map(|status| status.ports.into_iter().map(port).collect()))
    }

    fn bindings(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Binding>, Error>> {
        let status = self.look(&reader, "discover-ports", |view| view.ports())?;
        Ok(status.map(|status| status.bindings.into_iter().map(binding).collect()))
    }

    fn status(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<host_state::Status, Error>> {
        let status = self.look(&reader, "config-read", |view| view.status())?;
        Ok(status.map(|status| host_state::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime: status.uptime,
            mode: status.mode,
            modes: status.modes,
            rules: u32::try_from(status.rules).unwrap_or(u32::MAX),
            refused: status.refused,
            events: status.events,
            failures: status.failures,
            last_failure: status.last_failure,
        }))
    }

    fn features(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Feature>, Error>> {
        let features = self.look(&reader, "config-read", |view| view.features())?;
        Ok(features.map(|features| features.into_iter().map(feature).collect()))
    }

    fn actions(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Action>, Error>> {
        let actions = self.look(&reader, "config-read", |view| view.actions())?;
        let action = |action: ActionView| host_state::Action {
            name: action.name,
            feature: action.feature,
            summary: action.summary,
            schema: action.schema.to_string(),
        };
        Ok(actions.map(|actions| actions.into_iter().map(action).collect()))
    }

    fn plans(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::WaitingPlan>, Error>> {
        // Whether it may look; the plans themselves lie on the desk.
        if let Err(error) = self.look(&reader, "config-read", |_| ())? {
            return Ok(Err(error));
        }
        let waiting = super::waiting(|| self.facts.services.plans.waiting());
        Ok(match waiting {
            Ok(plans) => match self.view() {
                Ok(view) => {
                    let (text, hidden) = (view.config(), view.hidden_config());
                    let hide = |mut plan: Plan| {
                        plan.hide(&text, &hidden);
                        plan
                    };
                    Ok(plans.into_iter().map(hide).map(plan).collect())
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(Error::Unavailable(excerpt(&error.to_string(), MAX_TEXT))),
        })
    }

    fn check(
        &mut self,
        reader: Resource<Reader>,
        config: String,
    ) -> wasmtime::Result<Result<Vec<host_state::Finding>, Error>> {
        if config.len() > MAX_CHECKED {
            let size = config.len();
            return Ok(Err(Error::Invalid(format!("the text has {size} bytes; at most {MAX_CHECKED} are checked"))));
        }
        let found = self.look(&reader, "config-read", |view| super::waiting(|| view.findings(&config)))?;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let finding = |finding: Finding| host_state::Finding {
            severity: if finding.is_error { "error" } else { "warning" }.to_owned(),
            line: number(finding.line),
            column: number(finding.column),
            message: finding.message,
            help: finding.help,
        };
        Ok(found.map(|found| found.into_iter().map(finding).collect()))
    }

    fn explain(
        &mut self,
        reader: Resource<Reader>,
        device: String,
        event: String,
        mode: Option<String>,
    ) -> wasmtime::Result<Result<Vec<host_state::Explanation>, Error>> {
        if device.len().max(event.len()).max(mode.as_ref().map_or(0, String::len)) > MAX_ASKED {
            return Ok(Err(Error::Invalid(format!(
                "a device, an event and a mode have at most {MAX_ASKED} bytes each"
            ))));
        }
        let asked = self.look(&reader, "config-read", |view| view.explain(&device, &event, mode.as_deref()))?;
        let one = |one: ExplanationView| host_state::Explanation { rule: one.rule, awake: one.awake, why: one.why };
        Ok(match asked {
            Ok(Ok(explained)) => Ok(explained.into_iter().map(one).collect()),
            Ok(Err(wrong)) => Err(Error::Invalid(excerpt_lines(&wrong, MAX_TEXT))),
            Err(error) => Err(error),
        })
    }

    fn captured(
        &mut self,
        reader: Resource<Reader>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<host_state::Captured>, Error>> {
        let in_call = self.table.get(&reader)?.in_call;
        let seen = self.look(&reader, "observe-events", |view| view.captured(limit.min(MAX_CAPTURED) as usize))?;
        let devices = &self.facts.services.devices;
        let allowed =
            |device: &DeviceId| in_call || capability::names(&self.facts.grants.observe_events, device.as_str());
        Ok(seen.map(|seen| {
            let shown = seen.into_iter().filter(|captured| allowed(&captured.device));
            shown
                .map(|captured| host_state::Captured {
                    text: captured.event.to_string(),
                    event: bindings::record(captured.at, devices.number(&captured.device), &captured.event, 0),
                    device: captured.device.as_str().to_owned(),
                    fired: captured.fired,
                })
                .collect()
        }))
    }

    fn events(
        &mut self,
        reader: Resource<Reader>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<bindings::Event>, Error>> {
        let in_call = self.table.get(&reader)?.in_call;
        let seen = self.look(&reader, "observe-events", |view| view.events(limit.min(1000) as usize))?;
        let devices = &self.facts.services.devices;
        let allowed =
            |device: &DeviceId| in_call || capability::names(&self.facts.grants.observe_events, device.as_str());
        Ok(seen.map(|seen| {
            let shown = seen.into_iter().filter(|(_, device, _)| allowed(device));
            shown.map(|(at, device, event)| bindings::record(at, devices.number(&device), &event, 0)).collect()
        }))
    }

    fn drop(&mut self, reader: Resource<Reader>) -> wasmtime::Result<()> {
        self.table.delete(reader)?;
        Ok(())
    }
}

fn port(port: DiscoveredPort) -> host_state::Port {
    host_state::Port {
        name: port.port.name,
        protocol: port.port.protocol.to_string(),
        direction: port.port.direction.to_string(),
        state: match port.state {
            PortState::Open => "open".to_owned(),
            PortState::Idle => "closed".to_owned(),
            PortState::Ambiguous(binding) => format!("closed: another port could as well be {binding}"),
            PortState::Ignored => "closed: left alone by ignore_ports".to_owned(),
            PortState::OverLimit => "closed: there are too many".to_owned(),
            PortState::Failed(reason) => reason,
        },
        binding: port.binding,
        device: port.device,
        told_apart_by: port.told_apart_by.map(|matcher| matcher.to_string()),
        muted: port.muted,
        unheard: port.unheard,
    }
}

fn binding(binding: BindingStatus) -> host_state::Binding {
    let side = |side: SideStatus| host_state::Side {
        state: side.state.to_owned(),
        ports: side.ports,
        matched_by: side.matched_by,
        problem: side.problem,
    };
    host_state::Binding {
        alias: binding.alias,
        protocol: binding.protocol.to_string(),
        health: match binding.health {
            Health::Green => "green",
            Health::Amber => "amber",
            Health::Red => "red",
            Health::Off => "off",
        }
        .to_owned(),
        input: binding.input.map(side),
        output: binding.output.map(side),
        muted: binding.muted,
        help: binding.help,
    }
}

fn feature(report: FeatureReport) -> host_state::Feature {
    let (id, version, tools, actions) = match report.package {
        Some(package) => (Some(package.id), Some(package.version), package.tools, package.actions),
        None => (None, None, Vec::new(), Vec::new()),
    };
    host_state::Feature {
        name: report.name,
        id,
        version,
        bundled: report.bundled,
        refused: report.refused,
        tools,
        actions,
        denied: report.denied,
        done: report.calls + report.performed,
        failed: report.calls_failed + report.failed,
        memory: report.memory as u64,
    }
}

fn plan(plan: Plan) -> host_state::WaitingPlan {
    host_state::WaitingPlan {
        id: plan.id,
        proposer: plan.proposer,
        description: plan.description,
        risk: plan.risk.level.as_str().to_owned(),
        notes: plan.risk.notes,
        diff: plan.diff,
        expires: plan.expires,
    }
}
