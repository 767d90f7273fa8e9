//! MIDI through JACK: `cargo xtask with-jack` starts the server that this needs.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod midi;

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use conductor_jack::Client;
use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::process::Process;
use conductor_tests::wait::{self, TEST_TIMEOUT};

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

// PRT-1: a server that gets two requests mixed waits forever, and so does every program that uses it.
#[test]
fn threads_of_one_client_send_their_requests_one_after_another() {
    let client = Client::open("crowd").unwrap();
    let synth = client.input("synth", |_| ()).unwrap();
    let (ended, end) = mpsc::channel();
    for number in 0..4 {
        let (client, ended, synth) = (client.clone(), ended.clone(), synth.name().to_owned());
        thread::spawn(move || {
            for turn in 0..40 {
                let output = client.output(&format!("pad {number} {turn}")).unwrap();
                client.connect(output.name(), &synth).unwrap();
            }
            ended.send(()).unwrap();
        });
    }
    (0..4).for_each(|_| end.recv_timeout(TEST_TIMEOUT).expect("no thread waits for the server forever"));
}

/// A server of this test's own.
fn server(name: &str) -> Process {
    let arguments = ["-n", name, "-r", "-S", "-d", "dummy", "-r", "48000", "-p", "64"];
    let server = Process::start(Command::new("jackd").args(arguments).env("JACK_NO_AUDIO_RESERVATION", "1"));
    wait::until(|| ports(name), || format!("jackd does not come up: {}", server.out.text()));
    server
}

/// The ports that other programs see on a server; `None` if it does not answer.
fn ports(server: &str) -> Option<String> {
    let mut lsp = Command::new("jack_lsp");
    let listed = lsp.env("JACK_DEFAULT_SERVER", server).env("JACK_NO_START_SERVER", "1").output().unwrap();
    listed.status.success().then(|| String::from_utf8_lossy(&listed.stdout).into_owned())
}

// PRT-1, PRT-2: a server that is started anew is found again, with everything that was open.
#[test]
fn a_server_may_come_and_go() {
    let forward = midi::mapping("type = 'CC', cc = 7", "type = 'MidiForward', target = 'daw'");
    let home = Home::new(&("[[bindings]]\nalias = 'daw'\nvirtual = 'both'\n".to_owned() + &forward));
    let name = format!("conductor-test-{}", std::process::id());
    let mut first = server(&name);
    let mut run = command(home.path(), &["run"]);
    run.env("JACK_DEFAULT_SERVER", &name).env("JACK_NO_START_SERVER", "1");
    let host = Host::ready(&mut run, home.socket());
    let opened = |times: usize| {
        midi::open(&host, "daw", "input");
        midi::open(&host, "daw", "output");
        host.log().find(&format!("opened daw, {times} times"), |lines| {
            (lines.iter().filter(|line| line.contains("opened daw")).count() >= times).then_some(())
        });
        let seen = ports(&name).unwrap();
        assert!(seen.contains("conductor:daw in") && seen.contains("conductor:daw out"), "{seen}");
    };
    opened(1);

    first.kill();
    host.log().line("the JACK server has ended");
    midi::gone(&host, "daw", "input");
    let _second = server(&name);
    opened(2);
}
