//! MIDI through JACK: `cargo xtask with-jack` starts the server that this needs.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod midi;

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;

/// A build for JACK is there to be tested with JACK: without a server the tests fail.
fn there_is_midi() -> bool {
    true
}

// PRT-1: without a server the host says so, and starts all the same.
#[test]
fn a_missing_server_is_a_warning() {
    let home = Home::new("");
    let mut run = command(home.path(), &["run"]);
    run.env("JACK_DEFAULT_SERVER", "nowhere").env("JACK_NO_START_SERVER", "1");
    let host = Host::ready(&mut run, home.socket());

    let said = host.log().line("MIDI through jack can't be reached");
    assert!(said.contains("WARN") && said.contains("is a JACK server running?"), "{said}");
    assert_eq!(home.json(&["ports", "--json"])["unreachable"][0][0], "jack");
}
