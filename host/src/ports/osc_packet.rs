//! OSC packets: the messages that the bytes of one say.
//!
//! The crate `rosc` decodes; what could harm is looked for before, in `osc_shape`, and what no rule could make
//! sense of after.

use conductor_engine::{OscArg, OscMessage};

use super::osc_shape;

/// A packet, or a message in one, that makes no sense: cut off, of an unknown type, nested too deep, a
/// number that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Hands over the messages of a packet, in order, those of bundles one by one. A message that makes no sense
/// costs itself; a packet as a whole that does, all of it.
pub fn read(packet: &[u8], each: &mut impl FnMut(Result<OscMessage, Malformed>)) {
    let decoded = osc_shape::is_sound(packet).then(|| rosc::decoder::decode_udp(packet).ok()).flatten();
    match decoded {
        Some(([], packet)) => messages(packet, each),
        _ => each(Err(Malformed)),
    }
}

fn messages(packet: rosc::OscPacket, each: &mut impl FnMut(Result<OscMessage, Malformed>)) {
    match packet {
        rosc::OscPacket::Bundle(bundle) => bundle.content.into_iter().for_each(|packet| messages(packet, each)),
        rosc::OscPacket::Message(message) => {
            let args = message.args.into_iter().map(argument).collect::<Option<Vec<_>>>();
            each(args.map(|args| OscMessage { address: message.addr.into(), args }).ok_or(Malformed));
        }
    }
}

/// None for a number that is none: NaN and the infinities have no place on any scale.
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
