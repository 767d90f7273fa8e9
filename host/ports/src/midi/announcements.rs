//! Hot-plug announcements of ALSA: a client that is unplugged and plugged in again between two polls has its old
//! number and name, and none of its connections.

use std::collections::HashMap;

use alsa::Direction;
use alsa::seq::{Addr, EventType, PortCap, PortSubscribe, PortType, Seq};

/// The errno of "nothing has come", and of "more came than there was room for".
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

/// A client of the sequencer that hears ports come.
pub(super) struct Announcements {
    seq: Seq,
    pluggings: Pluggings,
}

impl Announcements {
    /// Begins to listen, as a client of this name.
    ///
    /// # Errors
    /// The sequencer's.
    pub(super) fn open(client: &std::ffi::CStr) -> alsa::Result<Self> {
        let seq = Seq::open(None, Some(Direction::Capture), true)?;
        seq.set_client_name(client)?;
        seq.set_client_event_filter(EventType::PortStart as i32)?;
        // Not to be connected to by other programs.
        let port =
            seq.create_simple_port(c"announcements", PortCap::WRITE | PortCap::NO_EXPORT, PortType::APPLICATION)?;
        let subscription = PortSubscribe::empty()?;
        subscription.set_sender(Addr::system_announce());
        subscription.set_dest(Addr { client: seq.client_id()?, port });
        seq.subscribe_port(&subscription)?;
        Ok(Self { seq, pluggings: Pluggings::default() })
    }

    /// Takes what has come by now. To be called after listing ports: one that came in between is new at the next look.
    pub(super) fn receive(&mut self) {
        let mut input = self.seq.input();
        loop {
            match input.event_input() {
                Ok(event) => {
                    if let Some(port) = (event.get_type() == EventType::PortStart).then(|| event.get_data()).flatten() {
                        self.pluggings.came(port);
                    }
                }
                Err(error) if error.errno() == ENOSPC => self.pluggings.some_came(),
                Err(error) => {
                    if error.errno() != EAGAIN {
                        tracing::debug!("ALSA's announcements: {error}");
                    }
                    return;
                }
            }
        }
    }

    /// The number of the port that midir calls so, as `client:port`; 0 of one that was there before.
    pub(super) fn plugging(&self, id: &str) -> u64 {
        id.split_once(':')
            .and_then(|(client, port)| Some(Addr { client: client.parse().ok()?, port: port.parse().ok()? }))
            .map_or(0, |port| self.pluggings.of(port))
    }
}

/// The ports that came, each with a number that no other plugging has. Addresses are few: they are used again.
#[derive(Debug, Default)]
struct Pluggings {
    last: u64,
    numbers: HashMap<(i32, i32), u64>,
    /// All that came before this may have come again.
    unheard: u64,
}

impl Pluggings {
    fn came(&mut self, port: Addr) {
        self.last += 1;
        self.numbers.insert((port.client, port.port), self.last);
    }

    /// It is unknown which: a port is rather opened once more than never again.
    fn some_came(&mut self) {
        self.last += 1;
        self.unheard = self.last;
    }

    fn of(&self, port: Addr) -> u64 {
        self.numbers.get(&(port.client, port.port)).copied().unwrap_or(0).max(self.unheard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugging_has_a_number_of_its_own() {
        let (keys, pads) = (Addr { client: 128, port: 0 }, Addr { client: 128, port: 1 });
        let mut pluggings = Pluggings::default();
        assert_eq!(pluggings.of(keys), 0);
        pluggings.came(keys);
        let first = pluggings.of(keys);
        pluggings.came(pads);
        pluggings.came(keys);
        assert!(first > 0 && pluggings.of(keys) > first && pluggings.of(keys) != pluggings.of(pads));
        let before = [keys, pads].map(|port| pluggings.of(port));
        pluggings.some_came();
        assert!([keys, pads].map(|port| pluggings.of(port)).iter().zip(before).all(|(now, before)| *now > before));
    }
}
