//! OSC packets, alone and in a SLIP stream; address patterns on what comes in.

use conductor_engine::{OscPattern, check_address};
use conductor_event::{Event, OscArg, OscMessage};
use conductor_ports::osc_packet;
use conductor_ports::slip::SlipReader;

pub fn run(data: &[u8]) {
    let Some((&way, data)) = data.split_first() else { return };
    match way % 3 {
        0 => drop(messages(data)),
        1 => stream(data, usize::from(way / 3 % 16) + 1),
        _ => pattern(data),
    }
}

/// What a packet says; each of it is of some use.
fn messages(packet: &[u8]) -> Vec<OscMessage> {
    let mut messages = Vec::new();
    osc_packet::read(packet, &mut |message| messages.extend(message));
    for message in &messages {
        message.args().iter().for_each(is_finite);
        let event = Event::from(message.clone());
        assert!((0.0..=1.0).contains(&event.unit()) && event.value().is_finite(), "{event}");
        assert!(message.reaches(message.address()), "{event}");
        let _ = (event.to_string(), event.is_continuous(), check_address(message.address()));
    }
    messages
}

fn is_finite(arg: &OscArg) {
    match arg {
        OscArg::Float(value) => assert!(value.is_finite()),
        OscArg::Double(value) => assert!(value.is_finite()),
        OscArg::Array(args) => args.iter().for_each(is_finite),
        _ => {}
    }
}

/// Wherever a stream is cut, the same packets come out.
fn stream(bytes: &[u8], portion: usize) {
    let read = |portion: usize| {
        let (mut reader, mut packets) = (SlipReader::default(), Vec::new());
        for bytes in bytes.chunks(portion.max(1)) {
            reader.push(bytes, |packet| packets.push(packet.map(<[u8]>::to_vec)));
        }
        packets
    };
    let packets = read(bytes.len());
    assert_eq!(packets, read(portion));
    for packet in packets.into_iter().flatten() {
        assert!(!packet.is_empty());
        messages(&packet);
    }
}

/// A pattern and an address, with a zero between them.
fn pattern(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let (pattern, address) = text.split_once('\0').unwrap_or((&text, &text));
    match OscPattern::parse(pattern) {
        Ok(parsed) => {
            assert_eq!(parsed.as_str(), pattern);
            let matched = parsed.matches(address);
            if check_address(pattern).is_ok() {
                assert_eq!(matched, pattern == address, "a pattern without wildcards is an address");
            }
            // The same as the address of a message, within the limits of what a network peer may ask for.
            let message = OscMessage::new(pattern, Vec::new());
            assert!(message.reaches(pattern), "its own text");
            let is_small = pattern.len() <= OscMessage::MAX_PATTERN && parsed.wildcards() <= OscMessage::MAX_WILDCARDS;
            assert_eq!(message.is_pattern(), is_small && pattern.contains(['?', '*', '[', '{']));
            assert_eq!(message.reaches(address), pattern == address || message.is_pattern() && matched);
            if let (true, Some(first)) = (matched, parsed.literal_first_segment()) {
                assert_eq!(address.split('/').nth(1), Some(first));
            }
        }
        Err(error) => assert!(error.at <= pattern.len() && !error.to_string().is_empty()),
    }
}
