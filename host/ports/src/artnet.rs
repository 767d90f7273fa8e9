//! Art-Net: DMX512 over UDP. One port for every place where a binding listens.
//!
//! What is read is `ArtDmx` ("Art-Net 4 Specification", Artistic Licence, OpDmx); a channel that changes is
//! an event. The parser is ours because the event path does not allocate.

use std::collections::HashMap;

use conductor_event::ArtNetChange;

use super::endpoint::{Endpoints, datagrams};
use super::{BindingSpec, Connection, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};

/// Universes that are followed at one endpoint. Frames of further ones count as malformed, which bounds the
/// memory that a sender can use up.
const MAX_UNIVERSES: usize = 1024;

/// The backend. Its ports exist because they are configured.
#[derive(Debug, Default)]
pub struct ArtNetBackend {
    endpoints: Endpoints,
}

impl ArtNetBackend {
    /// No endpoint yet.
    pub fn new() -> Self {
        Self::default()
    }
}

impl PortBackend for ArtNetBackend {
    fn name(&self) -> &'static str {
        "artnet"
    }

    fn configure(&mut self, bindings: &[BindingSpec]) {
        self.endpoints = Endpoints::of(bindings, Protocol::ArtNet, self.name());
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        Ok(self.endpoints.ports())
    }

    fn open_input(&mut self, port: &PortInfo, sink: EventSink) -> Result<Box<dyn Connection>, PortError> {
        let mut universes = Universes::default();
        let take = move |sink: &mut EventSink, packet: &[u8]| {
            if universes.take(packet, |change| sink.artnet(change)).is_err() {
                sink.malformed();
            }
        };
        let receiver = datagrams("artnet-in", self.endpoints.listen(port)?, sink, take)?;
        Ok(Box::new(receiver))
    }

    fn open_output(&mut self, port: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Err(PortError(format!("{} takes Art-Net, which goes out through the action ArtNetSend", port.name)))
    }
}

/// A packet that is not Art-Net, or one universe too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// One frame of a universe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'p> {
    /// The universe, 0 to 32767.
    pub universe: u16,
    /// The levels of its channels from the first on, 1 to 512 of them.
    pub channels: &'p [u8],
}

/// Parses a packet. `None` if it is Art-Net and not a frame: a poll, a reply, a time code.
///
/// # Errors
/// [`Malformed`].
pub fn frame(packet: &[u8]) -> Result<Option<Frame<'_>>, Malformed> {
    let rest = packet.strip_prefix(b"Art-Net\0").ok_or(Malformed)?;
    let [code_low, code_high, rest @ ..] = rest else { return Err(Malformed) };
    if u16::from_le_bytes([*code_low, *code_high]) != 0x5000 {
        return Ok(None);
    }
    // Version, sequence, physical input, sub-net and universe, net, length.
    let [_, version, _, _, sub_uni, net, length_high, length_low, data @ ..] = rest else { return Err(Malformed) };
    let length = usize::from(u16::from_be_bytes([*length_high, *length_low]));
    if *version < 14 || *net > 127 || !(1..=512).contains(&length) {
        return Err(Malformed);
    }
    let channels = data.get(..length).ok_or(Malformed)?;
    Ok(Some(Frame { universe: u16::from_be_bytes([*net, *sub_uni]), channels }))
}

/// What every channel of every universe was last; at first, all of them are 0.
#[derive(Debug, Default)]
pub struct Universes(HashMap<u16, Box<[u8; 512]>>);

impl Universes {
    /// Takes a packet, and says which channels it changes. What is Art-Net and no frame changes none. A change that
    /// `changed` has no room for, and so returns false, has not happened: it is one again with the next frame, which
    /// a sender repeats.
    ///
    /// # Errors
    /// [`Malformed`]; then nothing has changed.
    pub fn take(&mut self, packet: &[u8], mut changed: impl FnMut(ArtNetChange) -> bool) -> Result<(), Malformed> {
        let Some(Frame { universe, channels }) = frame(packet)? else { return Ok(()) };
        if self.0.len() >= MAX_UNIVERSES && !self.0.contains_key(&universe) {
            return Err(Malformed);
        }
        let known = self.0.entry(universe).or_insert_with(|| Box::new([0; 512]));
        for ((channel, known), value) in (1..).zip(known.iter_mut()).zip(channels) {
            if known != value && changed(ArtNetChange { universe, channel, value: *value, previous: *known }) {
                *known = *value;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(universe: u16, channels: &[u8]) -> Vec<u8> {
        let [net, sub_uni] = universe.to_be_bytes();
        let [length_high, length_low] = u16::try_from(channels.len()).unwrap().to_be_bytes();
        let head = [0x00, 0x50, 0, 14, 1, 0, sub_uni, net, length_high, length_low];
        [&b"Art-Net\0"[..], &head, channels].concat()
    }

    fn changes(universes: &mut Universes, packet: &[u8]) -> Vec<(u16, u16, u8, u8)> {
        let mut changes = Vec::new();
        let taken = universes.take(packet, |change| {
            changes.push((change.universe, change.channel, change.value, change.previous));
            true
        });
        assert_eq!(taken, Ok(()));
        changes
    }

    // PRT-5, ENG-1
    #[test]
    fn a_channel_that_changes_is_an_event() {
        let mut universes = Universes::default();
        assert_eq!(changes(&mut universes, &packet(0, &[0, 255, 7, 0])), [(0, 2, 255, 0), (0, 3, 7, 0)]);
        assert_eq!(changes(&mut universes, &packet(0, &[0, 255, 7, 0])), []);
        assert_eq!(changes(&mut universes, &packet(0, &[0, 0])), [(0, 2, 0, 255)], "the others stay");
        assert_eq!(changes(&mut universes, &packet(32_767, &[1; 512])).len(), 512);
    }

    #[test]
    fn what_is_no_frame_is_left_alone_and_what_is_broken_is_refused() {
        let good = packet(1, &[1, 2]);
        let poll = [&b"Art-Net\0"[..], &[0x00, 0x20, 0, 14, 2, 0]].concat();
        assert_eq!(frame(&poll), Ok(None));
        let changed = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            packet
        };
        for wrong in [
            changed(0, b'a'),
            changed(11, 13),
            changed(15, 128),
            changed(16, 3),
            changed(17, 0),
            good[..19].to_vec(),
            good[..12].to_vec(),
            good[..9].to_vec(),
            vec![],
        ] {
            assert_eq!(frame(&wrong), Err(Malformed), "{wrong:?}");
        }
        assert_eq!(frame(&good), Ok(Some(Frame { universe: 1, channels: &[1, 2] })));
    }

    #[test]
    fn a_change_without_room_comes_again() {
        let mut universes = Universes::default();
        assert_eq!(universes.take(&packet(0, &[7]), |_| false), Ok(()));
        assert_eq!(changes(&mut universes, &packet(0, &[7])), [(0, 1, 7, 0)]);
        assert_eq!(universes.take(&packet(0, &[9]), |_| false), Ok(()));
        assert_eq!(changes(&mut universes, &packet(0, &[8])), [(0, 1, 8, 7)], "from where it stands");
    }

    #[test]
    fn universes_are_bounded() {
        let mut universes = Universes::default();
        let taken = (0..2000).filter(|universe| universes.take(&packet(*universe, &[1, 1]), |_| true).is_ok());
        assert_eq!(taken.count(), MAX_UNIVERSES);
        assert_eq!(changes(&mut universes, &packet(5, &[2, 1])), [(5, 1, 2, 1)], "known ones go on");
    }

    proptest! {
        #[test]
        fn any_packet_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Universes::default().take(&bytes, |_| true);
            let dressed = [&b"Art-Net\0\0\x50\0\x0e"[..], &bytes].concat();
            let _ = Universes::default().take(&dressed, |change| (1..=512).contains(&change.channel) || panic!("{change:?}"));
        }

        #[test]
        fn after_any_frames_the_changes_add_up(frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 1..10)) {
            let (mut universes, mut followed) = (Universes::default(), [0_u8; 512]);
            let mut state = [0_u8; 512];
            for frame in &frames {
                state[..frame.len()].copy_from_slice(frame);
                for (_, channel, value, previous) in changes(&mut universes, &packet(3, frame)) {
                    let slot = &mut followed[usize::from(channel) - 1];
                    prop_assert_eq!(*slot, previous);
                    *slot = value;
                }
                prop_assert_eq!(followed, state);
            }
        }
    }
}
