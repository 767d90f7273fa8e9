//! Art-Net with a peer of others: OLA gets what the sandboxed feature sends, frame by frame, and what OLA sends is
//! heard.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::time::Instant;

use conductor_tests::home::Home;
use conductor_tests::ola::{OLA, Ola, in_a_network_of_its_own};
use conductor_tests::osc::{Listener, Tablet, free_port};
use conductor_tests::wait::TEST_TIMEOUT;
use rosc::OscType;

// PRT-5, ACT-1, REL-4: every frame of a fade arrives at OLA, in its order.
#[test]
fn ola_gets_a_fade_frame_by_frame() {
    if !in_a_network_of_its_own("ola::ola_gets_a_fade_frame_by_frame") {
        return;
    }
    let tablet = free_port();
    let home = Home::new(&format!(
        "[[bindings]]
alias = 'tablet'
protocol = 'osc'
input = {{ port = {tablet} }}
[features.artnet-output.grants]
udp = ['{OLA}:6454']
[[global_mappings]]
trigger = {{ type = 'OscMessage', address = '/dimmer' }}
action = {{ type = 'ArtNetSend', target = '{OLA}:6454', universe = 1, channel = 12 }}
"
    ));
    let ola = Ola::start();
    ola.hears(1);
    let host = home.run();
    host.port_is("tablet", "open");
    let tablet = Tablet::to(tablet);
    let fade: Vec<u8> = (1..=50).map(|step| step * 5).collect();
    let performed = || host.feature("artnet-output")["performed"].as_u64().unwrap();
    let started = Instant::now();
    loop {
        let before = performed();
        let frames = ola.recorded(1, || {
            tablet.send("/dimmer", [OscType::Float(0.0)]);
            for (sent, level) in (2..).zip(&fade) {
                tablet.send("/dimmer", [OscType::Float(f32::from(*level) / 255.0)]);
                // A frame says how all channels are: one that is not sent yet may be merged with the next.
                host.feature_when("artnet-output", |feature| feature["performed"] == before + sent);
            }
        });
        let levels: Vec<u8> = frames.iter().filter_map(|frame| frame.get(11).copied()).collect();
        let from = levels.iter().position(|level| *level == fade[0]);
        let came = from.map_or(&[][..], |from| &levels[from..]);
        if came == fade {
            assert!(frames.iter().all(|frame| frame[..11].iter().all(|level| *level == 0)), "{frames:?}");
            break;
        }
        // The recorder may have begun too late, or been ended too early.
        assert!(started.elapsed() < TEST_TIMEOUT, "{came:?} of {levels:?}");
    }
    assert_eq!(host.status()["failures"], 0);
}

// PRT-5, ENG-5, REL-4: what OLA broadcasts is heard, channel by channel.
#[test]
fn what_ola_sends_is_heard() {
    if !in_a_network_of_its_own("ola::what_ola_sends_is_heard") {
        return;
    }
    let out = Listener::new();
    let home = Home::new(&format!(
        "[[bindings]]
alias = 'desk'
protocol = 'artnet'
input = {{ host = '0.0.0.0', allow = ['{OLA}'] }}
[[global_mappings]]
trigger = {{ type = 'ArtNetChannel', universe = 2, dmx_channel = '1..4', device = 'desk' }}
action = {{ type = 'OscSend', target = '{}', address = '/lamp/{{n}}', args = ['{{value:i}}'] }}
",
        out.target()
    ));
    let ola = Ola::start();
    ola.sends(2);
    let host = home.run();
    host.port_is("desk", "open");
    ola.set(2, "0,0,200");
    assert_eq!(out.line(), "/lamp/2 i 200");
    ola.set(2, "7,0,0");
    assert_eq!([out.line(), out.line()], ["/lamp/0 i 7", "/lamp/2 i 0"]);
    assert_eq!(host.status()["failures"], 0);
}
