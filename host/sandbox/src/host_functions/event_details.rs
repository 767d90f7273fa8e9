//! What belongs to the event that an action is performed for, beside its record: an OSC message as a packet, and what the
//! mapping's address pattern matched.

use conductor_event::OscArg;
use conductor_osc_encoding::packet;

use crate::bindings::imports::event_details;
use crate::event_details::EventDetails;
use crate::state::InstanceState;

impl event_details::Host for InstanceState {
    fn osc_message(&mut self) -> wasmtime::Result<Option<Vec<u8>>> {
        Ok(self.event.message.as_deref().and_then(packet))
    }

    fn osc_number(&mut self, argument: u32) -> wasmtime::Result<Option<f64>> {
        let message = self.event.message.as_deref();
        let argument = usize::try_from(argument).ok().and_then(|at| message?.args().get(at));
        Ok(argument.and_then(OscArg::as_f64))
    }

    fn osc_match(&mut self, wildcard: u32) -> wasmtime::Result<Option<String>> {
        let EventDetails { message: Some(message), pattern: Some(pattern) } = &self.event else { return Ok(None) };
        let at = wildcard.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        Ok(at.and_then(|at| pattern.matched(message.address(), at)).map(str::to_owned))
    }
}
