//! What a datagram says: OSC messages, a frame of Art-Net, or bytes.

use conductor_event::OscMessage;
use conductor_ports::artnet::{self, Universes};
use conductor_ports::osc_packet;
use conductor_timeline::Effect;

/// The effects of a datagram to this place. `universes` is what Art-Net frames have set there before.
pub(crate) fn effects(to: &str, data: &[u8], universes: &mut Universes) -> Vec<Effect> {
    let to = to.to_owned();
    if let Ok(Some(frame)) = artnet::frame(data) {
        let mut levels = Vec::new();
        let taken = universes.take(data, |change| {
            levels.push((change.channel, change.value));
            true
        });
        if taken.is_ok() {
            return vec![Effect::ArtNet { to, universe: frame.universe, levels }];
        }
    } else if let Some(messages) = osc(data) {
        return messages.into_iter().map(|message| Effect::Osc { to: to.clone(), message }).collect();
    }
    vec![Effect::Datagram { to, data: data.to_vec() }]
}

/// The messages of an OSC packet; `None` if it is none, or not whole.
fn osc(data: &[u8]) -> Option<Vec<OscMessage>> {
    let mut messages = Some(Vec::new());
    osc_packet::read(data, &mut |message| match (message, &mut messages) {
        (Ok(message), Some(messages)) => messages.push(message),
        _ => messages = None,
    });
    messages.filter(|messages| !messages.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(data: &[u8], universes: &mut Universes) -> Vec<String> {
        effects("a:1", data, universes).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_datagram_is_what_its_bytes_say() {
        let mut universes = Universes::default();
        assert_eq!(told(b"/go\0,i\0\0\0\0\0\x07", &mut universes), ["OSC a:1 /go 7"]);
        let mut bundle = b"#bundle\0\0\0\0\0\0\0\0\x01".to_vec();
        for _ in 0..2 {
            bundle.extend(b"\0\0\0\x08/go\0,\0\0\0");
        }
        assert_eq!(told(&bundle, &mut universes), ["OSC a:1 /go", "OSC a:1 /go"]);
        assert_eq!(told(&[0, 0xFF], &mut universes), ["UDP a:1 00 FF"]);
        assert_eq!(told(b"/go\0,q\0\0", &mut universes), ["UDP a:1 2F 67 6F 00 2C 71 00 00"]);
    }

    #[test]
    fn a_frame_is_the_channels_that_it_changes() {
        let frame = |channels: &[u8]| {
            let length = u8::try_from(channels.len()).unwrap();
            [&b"Art-Net\0\0\x50\0\x0e\0\0\x03\0\0"[..], &[length], channels].concat()
        };
        let mut universes = Universes::default();
        assert_eq!(told(&frame(&[0, 255]), &mut universes), ["Art-Net a:1 3 2=255"]);
        assert_eq!(told(&frame(&[9, 255]), &mut universes), ["Art-Net a:1 3 1=9"]);
        assert_eq!(told(&frame(&[9, 255]), &mut universes), ["Art-Net a:1 3"]);
    }
}
