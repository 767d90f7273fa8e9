//! What belongs to the event that an action is performed for, beside its record: an OSC message as a packet, and what the
//! mapping's address pattern matched.

use std::sync::Arc;

use conductor_event::{Event, OscArg, OscMessage};
use conductor_message_pattern::OscPattern;
use conductor_osc_encoding::packet;

use crate::bindings::imports::event_details;
use crate::state::InstanceState;

/// What a guest may ask of an event. Empty for what is no OSC message, and between calls.
#[derive(Debug, Clone, Default)]
pub struct EventDetails {
    message: Option<Arc<OscMessage>>,
    pattern: Option<Arc<OscPattern>>,
}

impl EventDetails {
    /// Those of `event`. `pattern` is the address pattern of the mapping.
    pub fn of(event: &Event, pattern: Option<&Arc<OscPattern>>) -> Self {
        match event {
            Event::Osc(message) => Self { message: Some(Arc::clone(message)), pattern: pattern.cloned() },
            _ => Self::default(),
        }
    }
}

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
