//! Sending to devices: the guest's handle to them, within one call that a person confirmed.

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::hardware;
use crate::handles::HardwareAccess;
use crate::state::{FeatureFacts, InstanceState};
use conductor_package::capability::{self, Capability, CapabilityKind};
use conductor_package::consent;
use conductor_terminal::excerpt;

impl FeatureFacts {
    /// Whether both the descriptor and the grants let it send system exclusive messages to `target`: such a
    /// message can rewrite a device, so that a yes to one call is not enough.
    ///
    /// # Errors
    /// `Denied`, with the line that grants it.
    fn may_send_sysex(&self, target: &str) -> Result<(), Error> {
        let asked = self.descriptor.request(CapabilityKind::MidiOut).map(|request| &request.capability);
        let asked = match asked {
            Some(Capability::MidiOut { bindings, sysex: true }) => capability::names(bindings, target),
            _ => false,
        };
        if !asked {
            return Err(Error::Denied(format!(
                "the descriptor does not request \"midi-out\" with `sysex` for {:?}",
                excerpt(target, 64)
            )));
        }
        if !(self.grants.sysex && capability::names(&self.grants.midi_out, target)) {
            let target = excerpt(target, 64);
            let line = format!("midi_out = [{target:?}], sysex = true");
            let advice = self
                .grantee
                .advice(&line, &format!("{} midi-out=sysex", consent::word(CapabilityKind::MidiOut.as_str(), &target)));
            return Err(Error::Denied(format!("system exclusive messages to {target:?} are not granted; {advice}")));
        }
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
        if let Err(denied) = self.table.get(&access)?.0.allows(&target, Some(&message)) {
            return Ok(Err(Error::Denied(denied.to_string())));
        }
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        if message.first() == Some(&0xf0)
            && let Err(denied) = self.facts.may_send_sysex(&target)
        {
            return Ok(Err(denied));
        }
        Ok(self.view().and_then(|view| view.send_midi(&target, &message).map_err(Error::from)))
    }

    fn probe_identity(
        &mut self,
        access: Resource<HardwareAccess>,
        target: String,
    ) -> wasmtime::Result<Result<Option<hardware::Identity>, Error>> {
        if let Err(denied) = self.table.get(&access)?.0.allows(&target, None) {
            return Ok(Err(Error::Denied(denied.to_string())));
        }
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        if let Err(denied) = self.facts.may_send_sysex(&target) {
            return Ok(Err(denied));
        }
        Ok(self.view().and_then(|view| super::waiting(|| view.probe(&target)).map_err(Error::from)))
    }

    fn drop(&mut self, access: Resource<HardwareAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}
