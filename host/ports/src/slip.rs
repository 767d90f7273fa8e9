//! SLIP framing (RFC 1055), in which OSC 1.1 puts packets into a stream: `END packet END`.

const END: u8 = 0xC0;
const ESC: u8 = 0xDB;
const ESC_END: u8 = 0xDC;
const ESC_ESC: u8 = 0xDD;

/// The longest packet that is taken, as of a datagram.
pub const MAX_PACKET: usize = 65_536;

/// Splits a stream into packets; it may come in chunks of any size.
#[derive(Debug, Default)]
pub struct SlipReader {
    packet: Vec<u8>,
    escaped: bool,
    /// The packet is broken or too long: the rest of it is skipped.
    spoilt: bool,
}

impl SlipReader {
    /// Takes the next bytes; calls `each` with every packet that is complete, or with `None` if it is malformed.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Option<&[u8]>)) {
        for &byte in bytes {
            match byte {
                END => {
                    let whole = !self.spoilt && !self.escaped;
                    // Senders begin with an END, too, so that noise before a packet is one of its own.
                    if !whole {
                        each(None);
                    } else if !self.packet.is_empty() {
                        each(Some(&self.packet));
                    }
                    self.packet.clear();
                    (self.escaped, self.spoilt) = (false, false);
                }
                _ if self.spoilt => {}
                ESC if !self.escaped => self.escaped = true,
                _ => {
                    let plain = match (std::mem::take(&mut self.escaped), byte) {
                        (false, byte) => Some(byte),
                        (true, ESC_END) => Some(END),
                        (true, ESC_ESC) => Some(ESC),
                        (true, _) => None,
                    };
                    match plain {
                        Some(plain) if self.packet.len() < MAX_PACKET => self.packet.push(plain),
                        _ => self.spoilt = true,
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn framed(packet: &[u8]) -> Vec<u8> {
        let escaped = packet.iter().flat_map(|byte| match *byte {
            END => vec![ESC, ESC_END],
            ESC => vec![ESC, ESC_ESC],
            byte => vec![byte],
        });
        std::iter::once(END).chain(escaped).chain([END]).collect()
    }

    fn read(reader: &mut SlipReader, bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
        let mut packets = Vec::new();
        reader.push(bytes, |packet| packets.push(packet.map(<[u8]>::to_vec)));
        packets
    }

    #[test]
    fn what_is_broken_costs_itself_alone() {
        let mut reader = SlipReader::default();
        let stream = [&[1, ESC, 2, 3][..], &framed(&[4]), &[5, ESC, END], &framed(&[6])].concat();
        assert_eq!(read(&mut reader, &stream), [None, Some(vec![4]), None, Some(vec![6])]);
        let long = vec![7; MAX_PACKET + 1];
        assert_eq!(read(&mut reader, &[framed(&long), framed(&long[1..])].concat()), [None, Some(long[1..].to_vec())]);
        assert!(reader.packet.capacity() <= 2 * MAX_PACKET);
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
            portion in 1..20_usize,
        ) {
            let stream: Vec<u8> = packets.iter().flat_map(|packet| framed(packet)).collect();
            let mut reader = SlipReader::default();
            let read: Vec<_> = stream.chunks(portion).flat_map(|bytes| read(&mut reader, bytes)).collect();
            prop_assert_eq!(read, packets.into_iter().map(Some).collect::<Vec<_>>());
        }

        #[test]
        fn any_stream_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            SlipReader::default().push(&bytes, |packet| assert!(packet.is_none_or(|packet| !packet.is_empty())));
        }
    }
}
