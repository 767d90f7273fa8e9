//! What the host knows and what holds until it stops: handles to look and, within one call of the
//! right tier, to change.

use std::fmt::Debug;
use std::sync::Arc;

use conductor_engine::{DeviceId, Event, Nanos};
use wasmtime::component::Resource;

use super::install::Context;
use crate::control::plan::Plan;
use crate::feature::capability;
use crate::feature::sandbox::bindings::imports::{hardware, host_state, runtime_controls};
use crate::feature::sandbox::bindings::{self, Error};
use crate::feature::sandbox::state::InstanceState;

/// The host, as services see it.
pub trait HostView: Debug + Send + Sync {
    /// The mode in force; empty where there are no modes.
    fn mode(&self) -> String;
    /// The configuration in force, as it was written.
    fn config(&self) -> String;
    /// Its file, as messages show it.
    fn config_file(&self) -> String;
    /// Whether a host could read another configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn check_config(&self, text: &str) -> Result<(), String>;
    /// Every port.
    fn ports(&self) -> Vec<PortView>;
    /// The last events, oldest first.
    fn events(&self, limit: usize) -> Vec<(Nanos, DeviceId, Event)>;
    /// Makes a mode the one in force.
    ///
    /// # Errors
    /// A sentence, when there is no such mode.
    fn switch_mode(&self, mode: &str) -> Result<(), String>;
    /// Sends one MIDI message, whole, to the output of this name.
    ///
    /// # Errors
    /// A sentence: no such output, no MIDI message, a port that is gone.
    fn send_midi(&self, target: &str, message: &[u8]) -> Result<(), MidiRefusal>;
    /// Tells whoever watches that a plan waits.
    fn plan_waits(&self, _plan: &Plan) {}
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

/// A port, as features see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortView {
    /// The system's name for it.
    pub name: String,
    /// `midi`, `osc`, `simulated`.
    pub protocol: String,
    /// `input` or `output`.
    pub direction: String,
    /// What became of it, in a word or two.
    pub state: String,
    /// The alias of its binding.
    pub binding: Option<String>,
}

/// The guest's handle to look.
#[derive(Debug)]
pub struct Reader {
    /// Within a tool call everything may be read.
    pub(crate) in_call: bool,
}

/// The guest's handle to what holds until the host stops, for one call.
#[derive(Debug)]
pub struct Controls;

/// The guest's handle to devices, for one call that a person confirmed.
#[derive(Debug)]
pub struct HardwareAccess;

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
        self.look(&reader, "config-read", |view| view.config())
    }

    fn ports(&mut self, reader: Resource<Reader>) -> wasmtime::Result<Result<Vec<host_state::Port>, Error>> {
        let ports = self.look(&reader, "discover-ports", |view| view.ports())?;
        Ok(ports.map(|ports| {
            let port = |port: PortView| host_state::Port {
                name: port.name,
                protocol: port.protocol,
                direction: port.direction,
                state: port.state,
                binding: port.binding,
            };
            ports.into_iter().map(port).collect()
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

impl runtime_controls::Host for InstanceState {}

impl runtime_controls::HostControls for InstanceState {
    fn switch_mode(&mut self, controls: Resource<Controls>, mode: String) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&controls)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(self.view().and_then(|view| view.switch_mode(&mode).map_err(Error::Invalid)))
    }

    fn drop(&mut self, controls: Resource<Controls>) -> wasmtime::Result<()> {
        self.table.delete(controls)?;
        Ok(())
    }
}

impl hardware::Host for InstanceState {}

impl hardware::HostAccess for InstanceState {
    fn send_midi(
        &mut self,
        access: Resource<HardwareAccess>,
        target: String,
        message: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&access)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(self.view().and_then(|view| view.send_midi(&target, &message).map_err(Error::from)))
    }

    fn drop(&mut self, access: Resource<HardwareAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}
