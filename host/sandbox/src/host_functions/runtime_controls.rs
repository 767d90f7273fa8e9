//! What holds until the host stops: the guest's handle to change it, within one call of the right tier.

use std::sync::Arc;

use conductor_listening::{Heard, ListenError, Listening};
use wasmtime::component::Resource;

use crate::bindings::imports::runtime_controls;
use crate::bindings::{self, Error};
use crate::handles::Controls;
use crate::state::InstanceState;

/// Events of a session that one call returns at most.
const MAX_HEARD: u32 = 1024;

impl runtime_controls::Host for InstanceState {}

impl InstanceState {
    /// Asks the sessions that listen.
    fn listening<T>(
        &mut self,
        controls: &Resource<Controls>,
        ask: impl FnOnce(&Arc<Listening>) -> Result<T, ListenError>,
    ) -> wasmtime::Result<Result<T, Error>> {
        self.table.get(controls)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        let none = || Error::Unavailable("there are no ports to listen to".into());
        // The port thread opens and closes what is listened to.
        let ask = |listening: &Arc<Listening>| super::waiting(|| ask(listening)).map_err(refused);
        Ok(self.view().and_then(|view| view.listening().ok_or_else(none).and_then(ask)))
    }
}

fn refused(refusal: ListenError) -> Error {
    match refusal {
        ListenError::Unknown(_) => Error::Invalid(refusal.to_string()),
        ListenError::TooMany(_) | ListenError::NoThread => Error::Exhausted(refusal.to_string()),
    }
}

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

    fn listen(&mut self, controls: Resource<Controls>) -> wasmtime::Result<Result<u64, Error>> {
        let by_owner = self.table.get(&controls)?.by_owner;
        self.listening(&controls, |listening| listening.begin(by_owner))
    }

    fn heard(
        &mut self,
        controls: Resource<Controls>,
        session: u64,
        after: u64,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<runtime_controls::Heard>, Error>> {
        let limit = limit.min(MAX_HEARD) as usize;
        let heard = self.listening(&controls, |listening| listening.heard(session, after, limit))?;
        let devices = &self.facts.services.devices;
        let shown = |Heard { number, at, device, event }: Heard| runtime_controls::Heard {
            number,
            text: event.to_string(),
            event: bindings::record(at, devices.number(&device), &event, 0),
            device: device.as_str().to_owned(),
        };
        Ok(heard.map(|heard| heard.into_iter().map(shown).collect()))
    }

    fn stop_listening(&mut self, controls: Resource<Controls>, session: u64) -> wasmtime::Result<Result<(), Error>> {
        self.listening(&controls, |listening| listening.end(session))
    }

    fn drop(&mut self, controls: Resource<Controls>) -> wasmtime::Result<()> {
        self.table.delete(controls)?;
        Ok(())
    }
}
