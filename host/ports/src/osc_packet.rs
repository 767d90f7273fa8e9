//! OSC packets: parsing the messages in one.
//!
//! The crate `rosc` decodes single messages; nesting and sizes are checked before, in `osc_shape`, and values that no
//! rule could match after.

use conductor_event::{OscArg, OscMessage};

use super::osc_shape;

/// A packet, or a message in one, that makes no sense: cut off, of an unknown type, nested too deep, a
/// number that is NaN or infinite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Hands over the messages of a packet, in order, those of bundles one by one. A message that makes no sense
/// costs itself; a packet as a whole that does, all of it.
pub fn read(packet: &[u8], each: &mut impl FnMut(Result<OscMessage, Malformed>)) {
    // The whole shape first: nothing of a bundle counts that is cut off somewhere.
    if osc_shape::messages(packet, &mut |_| ()) {
        osc_shape::messages(packet, &mut |bytes| each(message(bytes)));
    } else {
        each(Err(Malformed));
    }
}

/// One message. Old senders leave the type tag string out, and a receiver should take that (OSC 1.0): what
/// types there are is then unknown, so the message has no arguments.
fn message(bytes: &[u8]) -> Result<OscMessage, Malformed> {
    let (address, rest) = osc_shape::address(bytes).ok_or(Malformed)?;
    if rest.first() != Some(&b',') {
        let address = std::str::from_utf8(address).map_err(|_| Malformed)?;
        return if bytes.len().is_multiple_of(4) { Ok(OscMessage::new(address, Vec::new())) } else { Err(Malformed) };
    }
    if !osc_shape::are_balanced(rest) {
        return Err(Malformed);
    }
    match rosc::decoder::decode_udp(bytes) {
        Ok(([], rosc::OscPacket::Message(message))) => {
            let args = message.args.into_iter().map(argument).collect::<Option<Vec<_>>>().ok_or(Malformed)?;
            Ok(OscMessage::new(message.addr, args))
        }
        _ => Err(Malformed),
    }
}

/// `None` if a number is not finite: NaN and the infinities have no place on any scale.
fn argument(arg: rosc::OscType) -> Option<OscArg> {
    use rosc::OscType;
    Some(match arg {
        OscType::Int(value) => OscArg::Int(value),
        OscType::Float(value) => OscArg::Float(value.is_finite().then_some(value)?),
        OscType::Long(value) => OscArg::Long(value),
        OscType::Double(value) => OscArg::Double(value.is_finite().then_some(value)?),
        OscType::String(value) => OscArg::String(value),
        OscType::Blob(value) => OscArg::Blob(value),
        OscType::Time(time) => OscArg::Time { seconds: time.seconds, fractional: time.fractional },
        OscType::Char(value) => OscArg::Char(value),
        OscType::Color(color) => OscArg::Color([color.red, color.green, color.blue, color.alpha]),
        OscType::Midi(midi) => OscArg::Midi([midi.port, midi.status, midi.data1, midi.data2]),
        OscType::Bool(value) => OscArg::Bool(value),
        OscType::Nil => OscArg::Nil,
        OscType::Inf => OscArg::Inf,
        OscType::Array(array) => OscArg::Array(array.content.into_iter().map(argument).collect::<Option<_>>()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(packet: &[u8]) -> Vec<Result<OscMessage, Malformed>> {
        let mut messages = Vec::new();
        read(packet, &mut |message| messages.push(message));
        messages
    }

    fn bundle(elements: &[&[u8]]) -> Vec<u8> {
        let mut bytes = b"#bundle\0\0\0\0\0\0\0\0\x01".to_vec();
        for element in elements {
            bytes.extend(u32::try_from(element.len()).unwrap().to_be_bytes());
            bytes.extend(*element);
        }
        bytes
    }

    #[test]
    fn a_message_without_type_tags_has_no_arguments() {
        let go = Ok(OscMessage::new("/go", Vec::new()));
        assert_eq!(messages(b"/go\0"), std::slice::from_ref(&go));
        assert_eq!(messages(b"/go\0\0\0\0\x07"), std::slice::from_ref(&go), "of what type is unknown");
        assert_eq!(messages(b"/go\0[[[["), std::slice::from_ref(&go));
        assert_eq!(messages(&bundle(&[b"/go\0", b"/go\0,\0\0\0"])), [go.clone(), go]);
        for broken in [&b"/go"[..], b"/go\0\0", b"/go\0,", b"go\0\0", b"/\xff\xfe\0", b""] {
            assert_eq!(messages(broken), [Err(Malformed)], "{broken:?}");
        }
    }

    #[test]
    fn a_broken_message_in_a_bundle_costs_itself() {
        let (one, odd) = (&b"/a\0\0,i\0\0\0\0\0\x01"[..], &b"/b\0\0,q\0\0"[..]);
        let a = Ok(OscMessage::new("/a", vec![OscArg::Int(1)]));
        assert_eq!(messages(&bundle(&[one, odd, b"", one])), [a.clone(), Err(Malformed), Err(Malformed), a]);
        let mut cut = bundle(&[one, one]);
        cut.pop();
        assert_eq!(messages(&cut), [Err(Malformed)], "nothing of a bundle that is cut off counts");
    }
}
