//! What holds until the host stops: the guest's handle to change it, within one call of the right tier.

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::runtime_controls;
use crate::state::InstanceState;

/// The guest's handle to what holds until the host stops, for one call.
#[derive(Debug)]
pub struct Controls;

impl runtime_controls::Host for InstanceState {}

impl runtime_controls::HostControls for InstanceState {
    fn switch_mode(&mut self, controls: Resource<Controls>, mode: String) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&controls)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(self.view().and_then(|view| view.switch_mode(&mode).map_err(Error::Invalid)))
    }

    fn set_device_enabled(
        &mut self,
        controls: Resource<Controls>,
        device: String,
        enabled: bool,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(&controls)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        // The port thread answers when it is done.
        Ok(self.view().and_then(|view| super::waiting(|| view.mute(&device, !enabled)).map_err(Error::Invalid)))
    }

    fn drop(&mut self, controls: Resource<Controls>) -> wasmtime::Result<()> {
        self.table.delete(controls)?;
        Ok(())
    }
}
