//! Messages in a ring of bytes: the port's number, the length, the message.
//!
//! Whole frames are put in and taken out, so a reader never sees a part of one.

use rtrb::{Consumer, Producer};

/// Bytes before a message: two numbers, little endian.
const HEAD: usize = 8;

/// Puts a message in; false where there is no room for all of it. Neither allocates nor waits.
pub(crate) fn put(ring: &mut Producer<u8>, port: u32, message: &[u8]) -> bool {
    let Ok(length) = u32::try_from(message.len()) else { return false };
    let Ok(chunk) = ring.write_chunk_uninit(HEAD + message.len()) else { return false };
    let head = port.to_le_bytes().into_iter().chain(length.to_le_bytes());
    chunk.fill_from_iter(head.chain(message.iter().copied()));
    true
}

/// Copies what comes next, if anything, and leaves it in the ring: its port, and as much of `room` as it takes.
/// `room` is as long as the longest message that is put in. Neither allocates nor waits.
pub(crate) fn next<'a>(ring: &mut Consumer<u8>, room: &'a mut [u8]) -> Option<(u32, &'a [u8])> {
    let mut head = [0; HEAD];
    copy(ring, 0, &mut head)?;
    let [a, b, c, d, length @ ..] = head;
    let room = room.get_mut(..u32::from_le_bytes(length) as usize)?;
    copy(ring, HEAD, room)?;
    Some((u32::from_le_bytes([a, b, c, d]), room))
}

/// Takes out what [`next`] copied: a message of this length.
pub(crate) fn take(ring: &mut Consumer<u8>, length: usize) {
    if let Ok(chunk) = ring.read_chunk(HEAD + length) {
        chunk.commit_all();
    }
}

fn copy(ring: &mut Consumer<u8>, from: usize, to: &mut [u8]) -> Option<()> {
    let chunk = ring.read_chunk(from + to.len()).ok()?;
    let (first, second) = chunk.as_slices();
    let bytes = first.iter().chain(second).skip(from);
    to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
    Some(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_and_in_order_however_the_ring_turns() {
        let (mut producer, mut consumer) = rtrb::RingBuffer::new(37);
        let mut room = [0; 16];
        for turn in 0..100_u32 {
            let message: Vec<u8> = (0..turn % 17).map(|byte| (turn + byte) as u8).collect();
            assert!(put(&mut producer, turn, &message));
            assert_eq!(next(&mut consumer, &mut room).unwrap(), (turn, message.as_slice()));
            assert_eq!(next(&mut consumer, &mut room).unwrap().0, turn, "it stays until it is taken");
            take(&mut consumer, message.len());
            assert!(next(&mut consumer, &mut room).is_none());
        }
    }

    #[test]
    fn what_has_no_room_is_refused_whole() {
        let (mut producer, mut consumer) = rtrb::RingBuffer::new(20);
        let mut room = [0; 16];
        assert!(put(&mut producer, 1, &[0x90, 60, 1]));
        assert!(!put(&mut producer, 2, &[0x90, 60, 2]));
        assert_eq!(next(&mut consumer, &mut room).unwrap(), (1, &[0x90, 60, 1][..]));
        take(&mut consumer, 3);
        assert!(put(&mut producer, 3, &[0x90, 60, 3]));
        assert_eq!(next(&mut consumer, &mut room).unwrap(), (3, &[0x90, 60, 3][..]));
    }
}
