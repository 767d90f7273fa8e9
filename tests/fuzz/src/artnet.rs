//! Art-Net packets: for any input, the changes of a channel are consistent.

use std::collections::HashMap;

use conductor_ports::artnet::Universes;

use crate::bytes::Bytes;

pub fn run(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let (mut universes, mut followed) = (Universes::default(), HashMap::new());
    while !bytes.is_empty() {
        // Two bytes of length, and the packet.
        let length = usize::from(bytes.word() % 600);
        let packet = bytes.take(length);
        let mut changes = 0;
        let taken = universes.take(packet, |change| {
            changes += 1;
            assert!((1..=512).contains(&change.channel) && change.universe <= 32_767, "{change:?}");
            assert_ne!(change.value, change.previous);
            let before = followed.insert((change.universe, change.channel), change.value);
            assert_eq!(before.unwrap_or(0), change.previous, "{change:?}");
            true
        });
        assert!(changes <= packet.len() && (taken.is_ok() || changes == 0));
    }
}
