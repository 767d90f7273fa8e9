//! MIDI through ALSA's sequencer, in the virtual machine that `cargo xtask vm` boots.

#![cfg(all(target_os = "linux", not(feature = "jack")))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod midi;
mod usb;

use conductor_tests::home::Home;
use conductor_tests::osc::Listener;

/// Whether this is the virtual machine. On another the sequencer may be missing, or somebody's own.
fn there_is_midi() -> bool {
    let there = std::env::var_os("CONDUCTOR_VM").is_some();
    if !there {
        println!("skipped: `cargo xtask vm` runs this where ALSA is");
    }
    there
}

// PRT-2: a real USB device, plugged in, pulled out and plugged in again: ALSA itself says nothing of it.
#[test]
fn a_usb_controller_may_be_pulled_out() {
    if !there_is_midi() {
        return;
    }
    let (mut controller, out) = (usb::Controller::new("Grand Pads"), Listener::new());
    let note = "type = 'Note', note = '36..39', device = 'pads'";
    let message = "address = '/pad/{n}', args = ['{value}']";
    let home = Home::new(&(midi::binding("pads", "Grand Pads") + &midi::osc(note, &out.target(), message)));
    let host = home.run();

    for velocity in 1..=2 {
        controller.plug();
        let took = midi::open(&host, "pads", "input");
        assert!(took < midi::HOT_PLUG, "open after {took:?}");
        controller.play(&[0x90, 38, velocity]);
        assert_eq!(out.line(), format!("/pad/2 i {velocity}"));

        controller.unplug();
        let took = midi::gone(&host, "pads", "input");
        assert!(took < midi::HOT_PLUG, "closed after {took:?}");
    }
}
