//! Art-Net from end to end, on real sockets: a desk sends DMX, rules and a sandboxed feature make DMX of it, and
//! a node receives.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::net::UdpSocket;

use conductor_tests::conductor::port;
use conductor_tests::home::Home;
use conductor_tests::osc::{Listener, Tablet, free_port};
use conductor_tests::wait::TEST_TIMEOUT;
use rosc::OscType;
use serde_json::json;

/// A frame as "Art-Net 4 Specification" (Artistic Licence) has it under ArtDmx.
fn frame(universe: u16, levels: &[u8]) -> Vec<u8> {
    let [net, sub_uni] = universe.to_be_bytes();
    let length = u16::try_from(levels.len()).unwrap().to_be_bytes();
    [&b"Art-Net\0\x00\x50\x00\x0e\x01\x00"[..], &[sub_uni, net], &length, levels].concat()
}

/// Something with lamps.
struct Node(UdpSocket);

impl Node {
    fn on(port: u16) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self(socket)
    }

    /// The next frame: its universe, and its channels that are not dark.
    fn next(&self) -> (u16, Vec<(usize, u8)>) {
        let mut packet = [0; 1024];
        let length = self.0.recv(&mut packet).expect("no frame came");
        let packet = &packet[..length];
        assert_eq!(packet[..12], *b"Art-Net\0\x00\x50\x00\x0e", "{packet:02X?}");
        assert_eq!(usize::from(u16::from_be_bytes([packet[16], packet[17]])), length - 18, "{packet:02X?}");
        assert_eq!(length % 2, 0, "a frame has as many channels as are even");
        let lit = (1..).zip(&packet[18..]).filter(|(_, level)| **level > 0).map(|(channel, level)| (channel, *level));
        (u16::from_be_bytes([packet[15], packet[14]]), lit.collect())
    }
}

/// A desk that is listened to at one port, and a node that is called the same at another.
fn desk(listens: u16, node: u16) -> String {
    format!(
        "[[bindings]]
alias = 'desk'
protocol = 'artnet'
input = {{ port = {listens}, allow = ['127.0.0.1'] }}
output = {{ port = {node} }}
"
    )
}

// ACT-1: an OSC message's own argument sets a lamp whose number is in its address.
#[test]
fn arguments_and_addresses_of_osc_messages_set_lamps() {
    let (listens, told) = (free_port(), free_port());
    let node = Node::on(told);
    let home = Home::new(&format!(
        "[[bindings]]
alias = 'tablet'
protocol = 'osc'
input = {{ port = {listens} }}

[[global_mappings]]
trigger = {{ type = 'OscPattern', pattern = '/lamp/*/set' }}
action = {{ type = 'ArtNetSend', target = '127.0.0.1:{told}', channel = '{{match1}}', value = '{{arg1 from 0..1 -> 0..255}}' }}
"
    ));
    let host = home.run();
    host.port_is("tablet", "open");
    Tablet::to(listens).send("/lamp/7/set", [OscType::String("warm".into()), OscType::Float(0.5)]);
    assert_eq!(node.next(), (0, vec![(7, 128)]));
}

// PRT-5, ENG-5: what a desk says on one universe is said to a node on another, channel by channel.
#[test]
fn a_desks_channels_become_a_nodes_channels() {
    let (listens, told) = (free_port(), free_port());
    let node = Node::on(told);
    let home = Home::new(
        &(desk(listens, told)
            + "[[global_mappings]]
trigger = { type = 'ArtNetChannel', universe = 258, dmx_channel = '1..4', value_range = [10, 255], device = 'desk' }
action = { type = 'ArtNetSend', target = 'desk', universe = 3, channel = '{n}+11' }
"),
    );
    let host = home.run();
    host.port_is("desk", "open");
    let desk = UdpSocket::bind("127.0.0.1:0").unwrap();
    let say = |packet: &[u8]| desk.send_to(packet, ("127.0.0.1", listens)).map(drop).unwrap();

    say(&frame(258, &[0, 255, 9, 0]));
    assert_eq!(node.next(), (3, vec![(12, 255)]), "9 is too little, and 0 is no change");
    // Another universe, a poll, half a packet, and then a change of the second and the last channel.
    say(&frame(2, &[255; 4]));
    say(b"Art-Net\0\x00\x20\x00\x0e\x06\x00");
    say(&frame(258, &[1; 64])[..40]);
    say(&frame(258, &[0, 100, 9, 20]));
    assert_eq!(node.next(), (3, vec![(12, 100)]));
    assert_eq!(node.next(), (3, vec![(12, 100), (14, 20)]), "what was set stays");

    // A sender that is not allowed, and then the desk again.
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    stranger.send_to(&frame(258, &[200, 200]), ("127.0.0.1", listens)).unwrap();
    say(&frame(258, &[0, 101]));
    assert_eq!(node.next(), (3, vec![(12, 101), (14, 20)]));
    // What a port has counted is shown a little later.
    let (status, _) = host.status_when(|status| {
        let desk = port(status, "desk").unwrap();
        (&desk["events"], &desk["malformed"], &desk["unheard"]) == (&json!(9), &json!(1), &json!(1))
    });
    assert_eq!(status["failures"], 0);
    assert_eq!(host.stop().0.code, Some(0));
}

// PRT-5: the two worlds meet: OSC becomes light, and a desk's fader becomes OSC.
#[test]
fn osc_becomes_light_and_light_becomes_osc() {
    let (listens, told, tablet) = (free_port(), free_port(), free_port());
    let (node, out) = (Node::on(told), Listener::new());
    let home = Home::new(&format!(
        "{}
[[bindings]]
alias = 'tablet'
protocol = 'osc'
input = {{ port = {tablet} }}
[[global_mappings]]
trigger = {{ type = 'OscMessage', address = '/dimmer' }}
action = {{ type = 'ArtNetSend', target = '127.0.0.1:{told}', universe = 0, channel = 512 }}
[[global_mappings]]
trigger = {{ type = 'ArtNetChannel', dmx_channel = 512 }}
action = {{ type = 'OscSend', target = '{}', address = '/lamp', args = ['{{value:i}}', '{{unit}}'] }}
",
        desk(listens, told),
        out.target()
    ));
    let host = home.run();
    host.port_is("desk", "open");
    let tablet = Tablet::to(tablet);
    tablet.send("/dimmer", [OscType::Float(1.0)]);
    assert_eq!(node.next(), (0, vec![(512, 255)]));
    tablet.send("/dimmer", [OscType::Float(0.0)]);
    assert_eq!(node.next(), (0, vec![]));

    let mut levels = [0; 512];
    levels[511] = 255;
    let desk = UdpSocket::bind("127.0.0.1:0").unwrap();
    desk.send_to(&frame(0, &levels), ("127.0.0.1", listens)).unwrap();
    assert_eq!(out.line(), "/lamp if 255 1.000000");
}
