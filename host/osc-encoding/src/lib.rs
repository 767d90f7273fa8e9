//! OSC messages of events as the bytes of packets, as OSC 1.0 writes them.

use conductor_event::{OscArg, OscMessage};
use rosc::{OscArray, OscColor, OscMidiMessage, OscPacket, OscTime, OscType};

/// A message as OSC 1.0 writes it; `None` if it can't be written, which no message that came in is.
pub fn packet(message: &OscMessage) -> Option<Vec<u8>> {
    let args = message.args().iter().map(argument).collect();
    rosc::encoder::encode(&OscPacket::Message(rosc::OscMessage { addr: message.address().to_string(), args })).ok()
}

fn argument(arg: &OscArg) -> OscType {
    match arg {
        OscArg::Int(value) => OscType::Int(*value),
        OscArg::Float(value) => OscType::Float(*value),
        OscArg::Long(value) => OscType::Long(*value),
        OscArg::Double(value) => OscType::Double(*value),
        OscArg::String(value) => OscType::String(value.clone()),
        OscArg::Blob(value) => OscType::Blob(value.clone()),
        OscArg::Time { seconds, fractional } => OscType::Time(OscTime { seconds: *seconds, fractional: *fractional }),
        OscArg::Char(value) => OscType::Char(*value),
        OscArg::Color([red, green, blue, alpha]) => {
            OscType::Color(OscColor { red: *red, green: *green, blue: *blue, alpha: *alpha })
        }
        OscArg::Midi([port, status, data1, data2]) => {
            OscType::Midi(OscMidiMessage { port: *port, status: *status, data1: *data1, data2: *data2 })
        }
        OscArg::Bool(value) => OscType::Bool(*value),
        OscArg::Nil => OscType::Nil,
        OscArg::Inf => OscType::Inf,
        OscArg::Array(content) => OscType::Array(OscArray { content: content.iter().map(argument).collect() }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_keeps_the_type_of_every_argument() {
        let args = vec![
            OscArg::Int(-1),
            OscArg::Float(0.5),
            OscArg::Long(i64::MIN),
            OscArg::Double(1e300),
            OscArg::String("Straße".into()),
            OscArg::Blob(vec![0, 255]),
            OscArg::Time { seconds: 1, fractional: 2 },
            OscArg::Char('x'),
            OscArg::Color([1, 2, 3, 4]),
            OscArg::Midi([0, 0x90, 60, 100]),
            OscArg::Bool(true),
            OscArg::Bool(false),
            OscArg::Nil,
            OscArg::Inf,
            OscArg::Array(vec![OscArg::Int(1), OscArg::Array(vec![OscArg::String(String::new())])]),
        ];
        let bytes = packet(&OscMessage::new("/a/*/b", args)).unwrap();
        assert_eq!(&bytes[..8], b"/a/*/b\0\0");
        assert_eq!(&bytes[8..28], b",ifhdsbtcrmTFNI[i[s]");
        let (rest, OscPacket::Message(read)) = rosc::decoder::decode_udp(&bytes).unwrap() else { panic!("no message") };
        assert!(rest.is_empty());
        assert_eq!(read.args[4], OscType::String("Straße".into()));
        assert_eq!(read.args[9], OscType::Midi(OscMidiMessage { port: 0, status: 0x90, data1: 60, data2: 100 }));
    }
}
