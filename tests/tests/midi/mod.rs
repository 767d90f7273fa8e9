//! MIDI in and out through the system that this build is for: what a player does, and what comes of it.
//!
//! The same stories for JACK and for ALSA: `jack.rs` and `alsa.rs` say where they can run.

use std::time::Duration;

use conductor_tests::conductor::{Host, command, port};
use conductor_tests::home::Home;
use conductor_tests::instrument::{Controller, Synth, name};
use conductor_tests::liblo::OscDump;
use conductor_tests::osc::Listener;
use conductor_tests::process::Process;
use conductor_tests::wait;
use serde_json::Value;

use crate::there_is_midi;

/// What may pass until a port that was plugged in is open, or one that was unplugged is closed.
pub const HOT_PLUG: Duration = Duration::from_secs(2);

/// A device called `alias`, for the instrument of this name.
pub fn binding(alias: &str, instrument: &str) -> String {
    format!("[[bindings]]\nalias = '{alias}'\nmatchers = [{{ type = 'name_contains', value = '{instrument}' }}]\n")
}

/// A mapping.
pub fn mapping(trigger: &str, action: &str) -> String {
    format!("[[global_mappings]]\ntrigger = {{ {trigger} }}\naction = {{ {action} }}\n")
}

/// A mapping to an OSC message.
pub fn osc(trigger: &str, target: &str, message: &str) -> String {
    mapping(trigger, &format!("type = 'OscSend', target = '{target}', {message}"))
}

/// The state of the MIDI port that is called so in a listing, and has this direction.
fn state(listing: &Value, device: &str, direction: &str) -> Option<String> {
    let ports = listing["ports"].as_array()?;
    let port = ports.iter().find(|port| port["device"] == device && port["direction"] == direction)?;
    Some(port["state"].as_str().unwrap_or("failed").to_owned())
}

/// Waits until a port is open, and returns how long that took.
pub fn open(host: &Host, device: &str, direction: &str) -> Duration {
    host.status_when(|status| state(status, device, direction).as_deref() == Some("open")).1
}

/// The input whose name holds `part`, as the host lists it.
pub fn input_of<'v>(status: &'v Value, part: &str) -> Option<&'v Value> {
    let mut ports = status["ports"].as_array()?.iter();
    ports.find(|port| port["direction"] == "input" && port["name"].as_str().is_some_and(|name| name.contains(part)))
}

/// Waits until the host lists an input whose name holds `part`.
fn input(host: &Host, part: &str) -> Value {
    input_of(&host.status_when(|status| input_of(status, part).is_some()).0, part).unwrap().clone()
}

/// Waits until no port is open for this target any more, and returns how long that took.
pub fn gone(host: &Host, device: &str, direction: &str) -> Duration {
    host.status_when(|status| state(status, device, direction).is_none()).1
}

// PRT-1, ENG-1, ENG-5: every kind of message that a player's hands and feet make, as oscdump prints it.
#[test]
fn what_is_played_is_what_oscdump_prints() {
    if !there_is_midi() {
        return;
    }
    let (pads, dump) = (name("Pads"), OscDump::start());
    let target = dump.target();
    let mut controller = Controller::plug(&pads);
    let home = Home::new(
        &(binding("pads", &pads)
            + &osc(
                "type = 'Note', note = '36..39', on = 'both', device = 'pads'",
                &target,
                "address = '/pad/{n}', args = ['{value}', '{unit}', '{note}', '{channel}', '{name}']",
            )
            + &osc("type = 'CC', cc = '0..7'", &target, "address = '/fader/{cc}'")
            + &osc("type = 'PitchBend'", &target, "address = '/bend', args = ['{value}', '{unit}']")
            + &osc("type = 'ProgramChange', program = '0..127'", &target, "address = '/program/{number}', args = []")
            + &osc("type = 'Aftertouch', channel = 3", &target, "address = '/press', args = ['{value:i}']")
            + &osc("type = 'PolyAftertouch', note = 60", &target, "address = '/key', args = ['{value:i}', '{note}']")
            + &osc("type = 'SysEx', prefix = 'F0 7D ?? 02'", &target, "address = '/sysex', args = ['{name}']")),
    );
    let host = home.run();
    open(&host, "pads", "input");

    for message in [
        &[0x99, 36, 127][..],
        &[0x89, 36, 0],
        &[0x90, 38, 64],
        &[0x90, 38, 0],
        &[0x90, 40, 100],
        &[0xB0, 7, 127],
        &[0xB0, 8, 127],
        &[0xB5, 0, 0],
        &[0xE0, 0x00, 0x40],
        &[0xE0, 0x7F, 0x7F],
        &[0xC0, 5],
        &[0xD3, 99],
        &[0xD4, 99],
        &[0xA0, 60, 1],
        &[0xF0, 0x7D, 0x55, 0x02, 0x03, 0xF7],
        &[0xF0, 0x7D, 0x55, 0x03, 0x03, 0xF7],
        &[0xB0, 1, 64],
    ] {
        controller.play(message);
    }

    assert_eq!(
        dump.lines(13),
        [
            "/pad/0 ifiis 127 1.000000 36 9 \"pads\"",
            "/pad/0 ifiis 0 0.000000 36 9 \"pads\"",
            "/pad/2 ifiis 64 0.503937 38 0 \"pads\"",
            "/pad/2 ifiis 0 0.000000 38 0 \"pads\"",
            "/fader/7 f 1.000000",
            "/fader/0 f 0.000000",
            "/bend if 8192 0.500031",
            "/bend if 16383 1.000000",
            "/program/5 ",
            "/press i 99",
            "/key ii 1 60",
            "/sysex s \"pads\"",
            "/fader/1 f 0.503937",
        ]
    );
}

// ENG-14: a device's clock, from the cable to beats, to a bar and what waits for it, until it falls silent.
#[test]
fn a_clock_on_the_cable_makes_beats() {
    if !there_is_midi() {
        return;
    }
    let (drums, dump) = (name("Drums"), OscDump::start());
    let target = dump.target();
    let mut controller = Controller::plug(&drums);
    let home = Home::new(
        &("[clock]\ndevice = 'drums'\nbeats_per_bar = 3\n".to_owned()
            + &binding("drums", &drums)
            + &osc("type = 'Beat'", &target, "address = '/beat', args = ['{number:i}', '{value:i}']")
            + &osc("type = 'Transport', on = 'stop'", &target, "address = '/stop', args = []")
            + &osc("type = 'Note', note = 36", &target, "address = '/clip', args = ['{value:i}']")
            + "quantize = 'bar'\n"),
    );
    let host = home.run();
    open(&host, "drums", "input");

    controller.play(&[0xFA]);
    (0..30).for_each(|_| controller.play(&[0xF8]));
    controller.play(&[0x90, 36, 100]);
    (30..73).for_each(|_| controller.play(&[0xF8]));
    let expected = ["/beat ii 1 1", "/beat ii 2 1", "/beat ii 3 1", "/beat ii 1 2", "/clip i 100", "/stop "];
    assert_eq!(dump.lines(6), expected);
}

// ENG-2, PRT-1: two devices, the same note, two actions; and a device that no binding names is not heard.
#[test]
fn the_same_note_on_two_devices_does_two_things() {
    if !there_is_midi() {
        return;
    }
    let (left, right, stranger, out) = (name("Left"), name("Right"), name("Stranger"), Listener::new());
    let note = |device: &str| {
        let trigger = format!("type = 'Note', note = 60, device = '{device}'");
        osc(&trigger, &out.target(), &format!("address = '/{device}', args = ['{{value}}', '{{name}}']"))
    };
    let home = Home::new(
        &(binding("left", &left)
            + &binding("right", &right)
            + &note("left")
            + &note("right")
            + &osc("type = 'Note', note = 61", &out.target(), "address = '/any', args = ['{name}']")),
    );
    let [mut left, mut right, mut stranger] = [&left, &right, &stranger].map(|name| Controller::plug(name));
    let host = home.run();
    open(&host, "left", "input");
    open(&host, "right", "input");

    left.play(&[0x90, 60, 1]);
    assert_eq!(out.line(), "/left is 1 \"left\"");
    right.play(&[0x90, 60, 2]);
    assert_eq!(out.line(), "/right is 2 \"right\"");
    stranger.play(&[0x90, 61, 3]);
    left.play(&[0x90, 61, 4]);
    assert_eq!(out.line(), "/any s \"left\"");
}

// ACT-1, ENG-9: forwarding as it is and changed on the way; messages made from events.
#[test]
fn messages_go_on_to_an_instrument() {
    if !there_is_midi() {
        return;
    }
    let (keys, synth_name) = (name("Keys"), name("Synth"));
    let mut controller = Controller::plug(&keys);
    let synth = Synth::plug(&synth_name);
    let forward = "type = 'MidiForward', target = 'synth'";
    let send = "type = 'SendMidi', target = 'synth'";
    let home = Home::new(
        &(binding("keys", &keys)
            + &binding("synth", &synth_name)
            + &mapping(
                "type = 'Note', note = '52..63', device = 'keys'",
                &format!("{forward}, transform = {{ channel = 1, velocity_scale = 0.5, velocity_offset = 10 }}"),
            )
            + &mapping("type = 'CC', cc = 1", &format!("{forward}, transform = {{ cc = 74, invert_value = true }}"))
            + &mapping("type = 'PitchBend'", forward)
            + &mapping("type = 'SysEx', prefix = 'F0 7D'", forward)
            + &mapping(
                "type = 'Note', note = '36..39', on = 'both'",
                &format!("{send}, message_type = 'NoteOn', channel = 9, note = '{{n}}+60', velocity = '{{value}}'"),
            )
            + &mapping(
                "type = 'ProgramChange', program = 3",
                &format!("{send}, message_type = 'CC', cc = 0, value = 5"),
            )),
    );
    let host = home.run();
    open(&host, "keys", "input");
    open(&host, "synth", "output");

    let sysex = [&[0xF0, 0x7D][..], &[0x55; 300], &[0xF7]].concat();
    for (played, sounds) in [
        (&[0x93, 60, 100][..], &[0x91, 60, 60][..]),
        (&[0x83, 60, 64], &[0x81, 60, 64]),
        (&[0xB0, 1, 27], &[0xB0, 74, 100]),
        (&[0xE2, 0x12, 0x34], &[0xE2, 0x12, 0x34]),
        (&sysex, &sysex),
        (&[0x90, 38, 99], &[0x99, 62, 99]),
        (&[0xC0, 3], &[0xB0, 0, 5]),
    ] {
        controller.play(played);
        assert_eq!(synth.next(), sounds, "for {played:02X?}");
    }
    let status = host.status();
    assert_eq!((&status["outputs"][0]["failed"], &status["failures"]), (&0.into(), &0.into()), "{status:#}");
}

// ENG-10: what the host switched on, it switches off before it goes.
#[test]
fn no_note_is_left_sounding() {
    if !there_is_midi() {
        return;
    }
    let (keys, synth_name) = (name("Keys"), name("Synth"));
    let mut controller = Controller::plug(&keys);
    let synth = Synth::plug(&synth_name);
    let home = Home::new(
        &(binding("keys", &keys)
            + &binding("synth", &synth_name)
            + &mapping("type = 'MidiAny', device = 'keys'", "type = 'MidiForward', target = 'synth'")),
    );
    let host = home.run();
    open(&host, "keys", "input");
    open(&host, "synth", "output");

    for message in [[0x90, 60, 100], [0x95, 61, 100], [0x90, 62, 100], [0x80, 62, 64]] {
        controller.play(&message);
        assert_eq!(synth.next(), message);
    }
    assert_eq!(host.stop().0.code, Some(0));
    let ended: Vec<_> = synth.messages(2).into_iter().map(|message| message[..2].to_vec()).collect();
    assert_eq!(ended, [[0x80, 60], [0x85, 61]]);
}

// PRT-1: ports of the host's own, which other programs send to and listen to.
#[test]
fn other_programs_reach_the_hosts_own_ports() {
    if !there_is_midi() {
        return;
    }
    let (daw, out) = (name("daw"), Listener::new());
    let home = Home::new(
        &(format!("[[bindings]]\nalias = '{daw}'\nvirtual = 'both'\n")
            + &osc(
                &format!("type = 'Note', note = 60, device = '{daw}'"),
                &out.target(),
                "address = '/daw', args = ['{value}']",
            )
            + &mapping(
                "type = 'CC', cc = 7",
                &format!("type = 'MidiForward', target = '{daw}', transform = {{ invert_value = true }}"),
            )),
    );
    let host = home.run();
    open(&host, &daw, "input");
    open(&host, &daw, "output");
    let (mut sequencer, meter) = (Controller::connect(&daw), Synth::connect(&daw));
    sequencer.play(&[0x90, 60, 1]);
    assert_eq!(out.line(), "/daw i 1");
    sequencer.play(&[0xB0, 7, 27]);
    assert_eq!(meter.next(), [0xB0, 7, 100]);
    // The host does not hear itself, or this would go round and round.
    sequencer.play(&[0x90, 60, 2]);
    assert_eq!(out.line(), "/daw i 2");
    let (status, _) = host.status_when(|status| status["events"].as_u64() >= Some(3));
    assert_eq!(status["events"], 3);
}

// PRT-2, PRT-7: plugged, unplugged and plugged again, without a click; `conductor ports` shows it.
#[test]
fn a_controller_may_come_and_go() {
    if !there_is_midi() {
        return;
    }
    let (pads, out) = (name("Pads"), Listener::new());
    let home = Home::new(
        &(binding("pads", &pads)
            + &osc("type = 'Note', note = 36", &out.target(), "address = '/pad', args = ['{value}']")),
    );
    let host = home.run();
    assert_eq!(state(&host.status(), "pads", "input"), None);

    for velocity in 1..=3 {
        let mut controller = Controller::plug(&pads);
        let took = open(&host, "pads", "input");
        assert!(took < HOT_PLUG, "open after {took:?}");
        controller.play(&[0x90, 36, velocity]);
        assert_eq!(out.line(), format!("/pad i {velocity}"));

        host.status_when(|status| port(status, "pads").is_some_and(|port| port["events"] == 1));
        let ports = home.json(&["ports", "--json"]);
        let listed = port(&ports, "pads").unwrap();
        assert_eq!((&listed["protocol"], &listed["binding"]), (&"midi".into(), &"pads".into()), "{listed:#}");
        assert_eq!(listed["backend"], if cfg!(feature = "jack") { "jack" } else { "alsa" });
        assert!(listed["name"].as_str().unwrap().contains(&pads), "{listed:#}");

        drop(controller);
        let took = gone(&host, "pads", "input");
        assert!(took < HOT_PLUG, "closed after {took:?}");
    }
    for said in ["opened pads", "closed pads"] {
        host.log().find(&format!("the third {said:?}"), |lines| {
            (lines.iter().filter(|line| line.contains(said)).count() == 3).then_some(())
        });
    }
}

// ACT-4, PRT-2: an instrument that is away: the action fails and says why, until it is there again.
#[test]
fn an_instrument_may_come_and_go() {
    if !there_is_midi() {
        return;
    }
    let (keys, synth_name) = (name("Keys"), name("Synth"));
    let mut controller = Controller::plug(&keys);
    let home = Home::new(
        &(binding("keys", &keys)
            + &binding("synth", &synth_name)
            + &mapping("type = 'Note', note = 60", "type = 'MidiForward', target = 'synth'")),
    );
    let host = home.run();
    open(&host, "keys", "input");

    for round in 1..=2_u8 {
        controller.play(&[0x90, 60, round]);
        let (status, _) = host.status_when(|status| status["outputs"][0]["failed"] == round);
        assert_eq!(status["outputs"][0]["last_failure"], "no port is bound to \"synth\"");
        host.log().line("no port is bound to \"synth\"");

        let synth = Synth::plug(&synth_name);
        let took = open(&host, "synth", "output");
        assert!(took < HOT_PLUG, "open after {took:?}");
        controller.play(&[0x80, 60, round]);
        assert_eq!(synth.next(), [0x80, 60, round]);
        drop(synth);
        let took = gone(&host, "synth", "output");
        assert!(took < HOT_PLUG, "closed after {took:?}");
    }
}

// ENG-11, PRT-1: a quick hand: every note of a long run arrives, in order.
#[test]
fn a_long_run_of_notes_arrives_whole() {
    if !there_is_midi() {
        return;
    }
    const NOTES: u8 = 100;
    const ROUNDS: u8 = 10;
    let (keys, out) = (name("Keys"), Listener::new());
    let mut controller = Controller::plug(&keys);
    let message = "address = '/key', args = ['{note}', '{value}']";
    let home = Home::new(&(binding("keys", &keys) + &osc("type = 'Note', note = '0..127'", &out.target(), message)));
    let host = home.run();
    open(&host, "keys", "input");

    for round in 1..=ROUNDS {
        for note in 0..NOTES {
            controller.play(&[0x90, note, round]);
        }
        let run: Vec<_> = (0..NOTES).map(|note| format!("/key ii {note} {round}")).collect();
        assert_eq!(out.lines(usize::from(NOTES)), run);
    }
    let (status, _) = host.status_when(|status| status["events"].as_u64() == Some(1000));
    assert_eq!(status["failures"], 0, "{status:#}");
}

// PRT-8, CLI-1: the demonstration, played on the system's own MIDI.
#[test]
fn the_demonstration_plays_on_real_ports() {
    if !there_is_midi() {
        return;
    }
    let home = Home::empty();
    let (end, _) = Process::start(&mut command(home.path(), &["demo", "--midi"])).wait();
    assert_eq!(end.code, Some(0), "{}\n{}", end.out, end.err);
    assert!(!end.out.contains("MISSING"), "{}", end.out);
}

// PRT-3, CLI-1: without a host and a configuration every controller is heard, and a monitor shows what it says.
// Its ports are closed when it ends: a JACK server whose client just vanishes stands still for seconds.
#[test]
fn a_monitor_without_a_host_hears_every_controller() {
    if !there_is_midi() {
        return;
    }
    let keys = name("Keys");
    let mut controller = Controller::plug(&keys);
    let home = Home::empty();
    let monitor = Process::start(&mut command(home.path(), &["monitor", "--json"]));
    monitor.err.line("listening to every input");
    wait::until(
        || {
            controller.play(&[0x90, 60, 100]);
            let seen = monitor.out.all();
            seen.iter().any(|line| line.contains(&keys) && line.contains("note-on 60 100")).then_some(())
        },
        || format!("the monitor shows only {}", monitor.out.text()),
    );

    monitor.signal("INT");
    let (end, _) = monitor.wait();
    assert_eq!(end.code, Some(0), "{}", end.err);
}

// PRT-2: a controller that goes and comes faster than ports are listed has its old name and none of its connections.
#[test]
fn a_controller_that_is_back_at_once_is_heard() {
    if !there_is_midi() {
        return;
    }
    let blinking = name("blink");
    let home = Home::new(
        &(binding("pads", &blinking)
            + "[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Mix'\n"
            + &mapping("type = 'Note', note = 36", "type = 'ModeChange', mode = 'Mix'")),
    );
    let controller = Controller::plug(&blinking);
    let host = home.run();
    open(&host, "pads", "input");
    drop(controller);
    let mut controller = Controller::plug(&blinking);
    host.log().find("opened pads, twice", |lines| {
        (lines.iter().filter(|line| line.contains("opened pads")).count() == 2).then_some(())
    });
    controller.play(&[0x90, 36, 100]);
    host.status_when(|status| status["mode"] == "Mix");
}

// LRN-1, LRN-5: a control is learned from a port that is bound, from one that no binding has, and from one of two that a
// binding could mean; the rules hear the first alone, and afterwards the others are as they were.
#[test]
fn controls_are_learned_from_ports_that_no_rule_hears() {
    if !there_is_midi() {
        return;
    }
    let (pads, stranger, twin) = (name("Learned"), name("Unbound"), name("Twin"));
    let ports = [pads.clone(), stranger.clone(), format!("{twin} left"), format!("{twin} right")];
    let mut controllers = ports.each_ref().map(|name| Controller::plug(name));
    let home = Home::new(&(binding("pads", &pads) + &binding("twin", &twin)));
    let host = home.run();
    open(&host, "pads", "input");
    for (controller, port) in controllers.iter_mut().zip(&ports) {
        // Learning hears every port of the system, and on those of other tests something is played, too.
        let device = match *port == pads {
            true => "pads".to_owned(),
            false => input(&host, port)["device"].as_str().unwrap().to_owned(),
        };
        let learning = Process::start(&mut command(home.path(), &["learn", &device, "--json"]));
        learning.err.line("move a control (30 seconds) ...");
        for value in [1, 1, 127] {
            controller.play(&[0xB0, 16, value]);
        }
        let (end, ..) = learning.wait();
        assert_eq!(end.code, Some(0), "{port}: {}", end.err);
        let learned: Value = serde_json::from_str(&end.out).unwrap();
        let control = &learned["controls"][0];
        assert_eq!((&control["kind"], &control["events"]), (&"encoder".into(), &3.into()), "{learned:#}");
        let unbound = learned["unbound"].as_array().unwrap();
        match *port == pads {
            true => assert!(unbound.is_empty(), "{learned:#}"),
            false => assert_eq!((unbound.len(), &unbound[0]["port"]), (1, &device.as_str().into()), "{learned:#}"),
        }
        assert_eq!(control["device"], device.as_str(), "{learned:#}");
        let could_be = unbound.first().map(|port| port["could_be"].clone());
        assert_eq!(could_be == Some("twin".into()), port.contains(twin.as_str()), "{learned:#}");
    }
    // What no binding has is idle again, and the rules heard the pads alone.
    host.status_when(|status| input_of(status, &stranger).is_some_and(|port| port["state"] == "idle"));
    let status = host.status();
    assert_eq!(status["events"], 3, "{status:#}");
}
