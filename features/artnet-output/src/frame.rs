//! One universe at one target: the values of its channels, and the packet for them.
//!
//! The packet is `ArtDmx` ("Art-Net 4 Specification", Artistic Licence, OpDmx, protocol version 14).

/// The most channels of a universe.
pub const CHANNELS: usize = 512;
/// The highest port address: net, sub-net and universe in 15 bits.
pub const LAST_UNIVERSE: u16 = 32_767;

const HEAD: usize = 18;
const SEQUENCE: usize = 12;
const LENGTH: usize = 16;

/// The channels of a universe, as the packet that sends them. All of them are 0 at first.
#[derive(Debug, Clone)]
pub struct Frame {
    packet: Box<[u8; HEAD + CHANNELS]>,
    /// How many channels are sent: as many as were set, evenly.
    length: usize,
}

impl Frame {
    /// The universe with this port address, 0 to [`LAST_UNIVERSE`].
    pub fn new(universe: u16) -> Self {
        let mut packet = Box::new([0; HEAD + CHANNELS]);
        let [net, sub_uni] = (universe & LAST_UNIVERSE).to_be_bytes();
        packet[..HEAD].copy_from_slice(&[
            b'A', b'r', b't', b'-', b'N', b'e', b't', 0, 0x00, 0x50, 0, 14, 0, 0, sub_uni, net, 0, 0,
        ]);
        Self { packet, length: 0 }
    }

    /// Sets a channel, 1 to 512, and gives the packet to send. Others are left alone.
    pub fn set(&mut self, channel: usize, value: u8) -> &[u8] {
        if (1..=CHANNELS).contains(&channel) {
            self.packet[HEAD + channel - 1] = value;
            self.length = self.length.max(channel.next_multiple_of(2));
        }
        // 0 would say that packets are not numbered.
        self.packet[SEQUENCE] = self.packet[SEQUENCE].checked_add(1).unwrap_or(1);
        let [high, low] = u16::try_from(self.length).unwrap_or_default().to_be_bytes();
        self.packet[LENGTH..HEAD].copy_from_slice(&[high, low]);
        &self.packet[..HEAD + self.length]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_the_one_in_the_specification() {
        let mut frame = Frame::new(0x7F12);
        let packet = frame.set(3, 200);
        assert_eq!(packet, b"Art-Net\0\x00\x50\x00\x0e\x01\x00\x12\x7f\x00\x04\x00\x00\xc8\x00");
    }

    #[test]
    fn what_was_set_stays_and_packets_are_numbered_without_zero() {
        let mut frame = Frame::new(0);
        frame.set(512, 9);
        let packet = frame.set(1, 7);
        assert_eq!((packet.len(), packet[18], packet[18 + 511], packet[12]), (18 + 512, 7, 9, 2));
        let numbers: Vec<u8> = (0..600).map(|_| frame.set(1, 7)[12]).collect();
        assert!(!numbers.contains(&0) && numbers.contains(&255));
    }

    #[test]
    fn there_is_no_channel_beyond_the_last() {
        let mut frame = Frame::new(0);
        assert_eq!(frame.set(0, 1).len(), 18);
        assert_eq!(frame.set(513, 1).len(), 18);
    }
}
