//! The contract's `host-state`: what the host knows, as far as the guest's handle shows it.

use std::sync::Arc;

use conductor_event::DeviceId;
use conductor_package::capability;
use conductor_package::capability::CapabilityKind;
use conductor_terminal::excerpt_lines;
use wasmtime::component::Resource;

use crate::bindings::imports::host_state;
use crate::bindings::{self, Error, Lane};
use crate::handles::{Context, Reader};
use crate::host_view::HostView;
use crate::limits::MAX_TEXT;
use crate::state::InstanceState;

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
