//! The contract's `devices`: the names behind device numbers.

use crate::bindings::imports::devices;
use crate::state::InstanceState;

impl devices::Host for InstanceState {
    fn name(&mut self, device: u32) -> wasmtime::Result<Option<String>> {
        Ok(self.facts.services.devices.device(device).map(|device| device.as_str().to_owned()))
    }
}
