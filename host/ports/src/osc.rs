//! OSC over UDP and TCP: one port for every place where a binding listens.

use super::binding::Transport;
use super::endpoint::{Endpoints, datagrams, streams};
use super::{BindingSpec, Connection, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// The backend. Its ports exist because they are configured.
#[derive(Debug, Default)]
pub struct OscBackend {
    endpoints: Endpoints,
}

impl OscBackend {
    /// No endpoint yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl PortBackend for OscBackend {
    fn name(&self) -> &'static str {
        "osc"
    }

    fn configure(&mut self, bindings: &[BindingSpec]) {
        self.endpoints = Endpoints::of(bindings, Protocol::Osc, self.name());
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        Ok(self.endpoints.ports())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let listen = self.endpoints.listen(port)?;
        let receiver = match listen.transport {
            Transport::Udp => datagrams("osc-in", listen, sink, EventSink::osc),
            Transport::Tcp => streams("osc-in", listen, sink, EventSink::osc),
        };
        receiver.map(|receiver| Box::new(receiver) as _)
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(PortError(format!("{} takes OSC, which goes out through the action OscSend", port.name)))
    }
}
