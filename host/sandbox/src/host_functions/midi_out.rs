//! MIDI to the outputs of bindings that a grant names.

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::midi_out;
use crate::handles::{Context, Output};
use crate::state::InstanceState;
use conductor_package::capability::{self, Capability, CapabilityKind};
use conductor_package::consent;

impl midi_out::Host for InstanceState {}

impl midi_out::HostOutput for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        binding: String,
    ) -> wasmtime::Result<Result<Resource<Output>, Error>> {
        self.table.get(&context)?;
        if let Err(error) = self.granted(CapabilityKind::MidiOut) {
            return Ok(Err(error));
        }
        let Some(Capability::MidiOut { bindings, sysex }) =
            self.facts.descriptor.request(CapabilityKind::MidiOut).map(|request| &request.capability)
        else {
            return Ok(Err(Error::Denied("the descriptor does not request the capability \"midi-out\"".into())));
        };
        let grants = &self.facts.grants;
        if !capability::names(bindings, &binding) || !capability::names(&grants.midi_out, &binding) {
            let line = format!("midi_out = [{binding:?}]");
            let advice = self.facts.grantee.advice(&line, &consent::word(CapabilityKind::MidiOut.as_str(), &binding));
            return Ok(Err(Error::Denied(format!("the output of {binding:?} is not granted; {advice}"))));
        }
        let sysex = *sysex && grants.sysex;
        Ok(Ok(self.table.push(Output { binding, sysex })?))
    }

    fn send(&mut self, output: Resource<Output>, message: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        let output = self.table.get(&output)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        if message.first() == Some(&0xf0) && !output.sysex {
            return Ok(Err(Error::Denied(
                "system exclusive messages are not granted; write `sysex = true` beside `midi_out`".into(),
            )));
        }
        if let Some(sink) = &self.facts.services.midi {
            sink.send(&output.binding, &message);
            return Ok(Ok(()));
        }
        Ok(self.view().and_then(|view| view.send_midi(&output.binding, &message).map_err(Error::from)))
    }

    fn drop(&mut self, output: Resource<Output>) -> wasmtime::Result<()> {
        self.table.delete(output)?;
        Ok(())
    }
}
