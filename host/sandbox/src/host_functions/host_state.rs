//! What the host knows: the guest's handle to look, and what of the host it looks at.

use std::fmt::Debug;
use std::sync::Arc;

use conductor_event::{DeviceId, Event, Nanos};
use conductor_listening::Listening;
use conductor_package::capability;
use conductor_package::capability::CapabilityKind;
use conductor_terminal::excerpt_lines;
use wasmtime::component::Resource;

use super::planning::ProposedPlan;
use crate::bindings::imports::{hardware, host_state, planning};
use crate::bindings::{self, Error, Lane};
use crate::handles::{Context, Reader};
use crate::limits::MAX_TEXT;
use crate::state::InstanceState;

/// The host, as features see it within their grants. Nothing that it returns holds private values of the configuration.
pub trait HostView: Debug + Send + Sync {
    /// The mode in force; empty if there are no modes.
    fn mode(&self) -> String;
    /// The configuration in force.
    fn config(&self) -> String;
    /// What is wrong with another configuration, or doubtful.
    fn findings(&self, text: &str) -> Vec<host_state::Finding>;
    /// Every port.
    fn ports(&self) -> Vec<host_state::Port>;
    /// Every binding.
    fn bindings(&self) -> Vec<host_state::Binding>;
    /// How it is.
    fn status(&self) -> host_state::Status;
    /// Every feature.
    fn features(&self) -> Vec<host_state::Feature>;
    /// Every action that a mapping may have: the host's, then those of the features in force.
    fn actions(&self) -> Vec<host_state::Action>;
    /// The plans that wait for a person. Reads the disk.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if they can't be read.
    fn plans(&self) -> Result<Vec<host_state::WaitingPlan>, Error>;
    /// Has a plan wait for a person. Nothing is changed, installed or started. Writes to the disk.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong, [`Error::Denied`] if only a person may change that,
    /// [`Error::Exhausted`] if too many plans wait, [`Error::Unavailable`] if it can't be kept.
    fn propose(&self, proposal: ProposedPlan) -> Result<planning::Proposal, Error>;
    /// What each rule would make of an event, in the words of the timeline language.
    ///
    /// # Errors
    /// A sentence, if it is no event, or there is no such mode.
    fn explain(&self, device: &str, event: &str, mode: Option<&str>) -> Result<Vec<host_state::Explanation>, String>;
    /// The last events, oldest first.
    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)>;
    /// The last events with the rules that fired, oldest first.
    fn captured(&self, limit: usize) -> Vec<Captured>;
    /// Makes a mode the one in force.
    ///
    /// # Errors
    /// A sentence, if there is no such mode.
    fn switch_mode(&self, mode: &str) -> Result<(), String>;
    /// Stops hearing a device, or hears it again. Waits for the ports thread.
    ///
    /// # Errors
    /// A sentence, if there is no such device.
    fn mute(&self, device: &str, muted: bool) -> Result<(), String>;
    /// The sessions in which every port is heard; `None` if there are no ports.
    fn listening(&self) -> Option<&Arc<Listening>> {
        None
    }
    /// Sends one MIDI message, whole, to the output of this name.
    ///
    /// # Errors
    /// A sentence: no such output, no MIDI message, a port that is gone.
    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal>;
    /// Asks the device behind an output who it is, and waits for the answer; `None` if it does not answer.
    ///
    /// # Errors
    /// As of [`send_midi`](Self::send_midi).
    fn probe(&self, target: &str) -> Result<Option<hardware::Identity>, MidiRefusal>;
    /// Does an action once, and says what was done.
    ///
    /// # Errors
    /// What is wrong with it, or who could not do it.
    fn perform(&self, action: serde_json::Value) -> Result<String, String>;
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
/// Events that are listed as text at once, at most.
const MAX_CAPTURED: u32 = 256;

impl InstanceState {
    pub(super) fn view(&self) -> Result<Arc<dyn HostView>, Error> {
        self.facts.services.view.get().cloned().ok_or_else(|| Error::Unavailable("no host is running".into()))
    }

    /// Looks through a reader, if `kind` is granted or a tool call is under way.
    fn look<T>(
        &self,
        reader: &Resource<Reader>,
        kind: CapabilityKind,
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
        let granted = self.granted(CapabilityKind::ConfigRead).or_else(|_| self.granted(CapabilityKind::DiscoverPorts));
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
        self.look(&reader, CapabilityKind::ConfigRead, |view| view.config())
    }

    fn ports(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Port>, Error>> {
        self.look(&reader, CapabilityKind::DiscoverPorts, |view| view.ports())
    }

    fn bindings(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Binding>, Error>> {
        self.look(&reader, CapabilityKind::DiscoverPorts, |view| view.bindings())
    }

    fn status(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<host_state::Status, Error>> {
        self.look(&reader, CapabilityKind::ConfigRead, |view| view.status())
    }

    fn features(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Feature>, Error>> {
        self.look(&reader, CapabilityKind::ConfigRead, |view| view.features())
    }

    fn actions(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Action>, Error>> {
        self.look(&reader, CapabilityKind::ConfigRead, |view| view.actions())
    }

    fn plans(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::WaitingPlan>, Error>> {
        let plans = self.look(&reader, CapabilityKind::ConfigRead, |view| super::waiting(|| view.plans()))?;
        Ok(plans.and_then(|plans| plans))
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
        self.look(&reader, CapabilityKind::ConfigRead, |view| super::waiting(|| view.findings(&config)))
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
        let asked =
            self.look(&reader, CapabilityKind::ConfigRead, |view| view.explain(&device, &event, mode.as_deref()))?;
        Ok(match asked {
            Ok(Ok(explained)) => Ok(explained),
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
        let seen =
            self.look(&reader, CapabilityKind::ObserveEvents, |view| view.captured(limit.min(MAX_CAPTURED) as usize))?;
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
        let seen = self.look(&reader, CapabilityKind::ObserveEvents, |view| view.events(limit.min(1000) as usize))?;
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
