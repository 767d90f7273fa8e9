//! The host's own actions in a whole host, from simulated ports to what an instrument, a desktop or a light
//! receives: what is switched on goes off, lights show what they should, and no thread blocks on a port that
//! hangs.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use conductor_config as config;
use conductor_dispatch::QUEUE_CAPACITY;
use conductor_dispatch::desktop::recorded::Recording;
use conductor_host::host::Host;
use conductor_observer::Observation;
use conductor_observer::light::{Light, LightMessage};
use conductor_ports::simulated::SimulatedPorts;
use conductor_ports::{Connection, Direction, EventSink, MidiOut, PortBackend, PortError, PortInfo, Protocol};
use crossbeam_channel::{Receiver, Sender};
use proptest::prelude::*;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until it is so.
fn until(mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !so() {
        assert!(Instant::now() < deadline, "it never was so");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Two controllers, an instrument, a desktop, and a host between them.
struct Stage {
    ports: SimulatedPorts,
    synth: Receiver<Vec<u8>>,
    desktop: Recording,
    host: Host,
    config: String,
}

impl Stage {
    fn new(config: &str) -> Self {
        let ports = SimulatedPorts::new();
        for (name, direction) in [
            ("pads", Direction::Input),
            ("keys", Direction::Input),
            ("synth", Direction::Output),
            ("pads", Direction::Output),
        ] {
            ports.plug(name, direction);
        }
        let desktop = Recording::default();
        let loaded = config::parse(config, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        let builder = Host::builder().backend(ports.backend()).desktop(desktop.connect()).listen_to_all();
        let host = builder.start(&loaded).unwrap();
        let synth = ports.sent("synth").unwrap();
        Self { ports, synth, desktop, host, config: config.to_owned() }
    }

    fn reload(&self) {
        self.host.reload(&self.config, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    }

    /// The next message at the instrument.
    fn next(&self) -> Vec<u8> {
        self.synth.recv_timeout(TEST_TIMEOUT).unwrap()
    }

    fn play(&self, device: &str, bytes: [u8; 3]) {
        assert!(self.ports.play(device, &bytes), "{device} is not open");
    }
}

const ON: [u8; 3] = [0x90, 36, 100];
const OFF: [u8; 3] = [0x80, 36, 0];

const HOLDING: &str = r#"
    [[modes]]
    name = "Play"
    [[modes.mappings]]
    trigger = { type = "Note", note = "0..63", device = "pads" }
    action = { type = "MidiForward", target = "synth" }
    [[modes.mappings]]
    trigger = { type = "Note", note = "0..63", device = "pads" }
    action = { type = "Keystroke", keys = ["shift"], stroke = "hold" }
    [[modes]]
    name = "Edit"
    [[modes.mappings]]
    trigger = { type = "Note", note = "0..127" }
    action = { type = "Suppress" }
    [[global_mappings]]
    trigger = { type = "Note", note = "0..63", device = "keys" }
    action = { type = "MidiForward", target = "synth", transform = { channel = 1 } }
    [[global_mappings]]
    trigger = { type = "CC", cc = 64 }
    action = { type = "MidiForward", target = "synth" }
    [[global_mappings]]
    trigger = { type = "Note", note = 100 }
    action = { type = "SendMidi", target = "synth", message_type = "NoteOn", channel = 2, note = 5, velocity = 9 }
    [[global_mappings]]
    trigger = { type = "Note", note = 101 }
    action = { type = "Sequence", actions = [
        { type = "SendMidi", target = "synth", message_type = "NoteOn", channel = 3, note = 7, velocity = 9 },
        { type = "Delay", ms = 3600000 },
        { type = "SendMidi", target = "synth", message_type = "NoteOff", channel = 3, note = 7 },
    ], cancel_on = ["mode_change", "reload"] }
"#;

// ENG-10: leaving a mode switches off what its mappings have switched on, and nothing else.
#[test]
fn leaving_a_mode_ends_what_its_mappings_began() {
    let stage = Stage::new(HOLDING);
    stage.play("pads", ON);
    assert_eq!(stage.next(), ON);
    stage.play("keys", ON);
    assert_eq!(stage.next(), [0x91, 36, 100]);
    until(|| stage.desktop.lines() == ["down shift"]);
    stage.host.set_mode("Edit");
    assert_eq!(stage.next(), OFF);
    until(|| stage.desktop.lines() == ["down shift", "up shift"]);
    // The key that is held by a global mapping ends with its own release.
    stage.play("keys", OFF);
    assert_eq!(stage.next(), [0x81, 36, 0]);
    stage.host.stop();
    assert!(stage.synth.try_recv().is_err());
}

// ENG-10: a reload, a controller that is pulled out, and the end of the host do the same; a script that is
// called off takes with it what it has switched on; pedals count.
#[test]
fn reloads_lost_ports_and_the_end_end_what_was_begun() {
    let stage = Stage::new(HOLDING);
    stage.play("keys", [0x90, 100, 1]);
    assert_eq!(stage.next(), [0x92, 5, 9]);
    stage.reload();
    assert_eq!(stage.next(), [0x82, 5, 0]);

    stage.play("keys", [0xB0, 64, 127]);
    assert_eq!(stage.next(), [0xB0, 64, 127]);
    stage.play("pads", ON);
    assert_eq!(stage.next(), ON);
    stage.ports.unplug("keys", Direction::Input);
    assert_eq!(stage.next(), [0xB0, 64, 0]);

    stage.play("pads", [0x90, 101, 1]);
    assert_eq!(stage.next(), [0x93, 7, 9]);
    stage.host.set_mode("Edit");
    let mut both = [stage.next(), stage.next()];
    both.sort();
    assert_eq!(both, [OFF.to_vec(), vec![0x83, 7, 0]]);

    stage.host.set_mode("Play");
    stage.play("pads", ON);
    assert_eq!(stage.next(), ON);
    stage.host.stop();
    assert_eq!(stage.synth.try_recv().unwrap(), OFF);
    assert_eq!(stage.desktop.lines().last().unwrap(), "up shift");
}

// ENG-10: an output that comes back gets the ends of the notes that sounded when it went.
#[test]
fn an_output_that_comes_back_is_silent() {
    let stage = Stage::new(HOLDING);
    stage.play("pads", ON);
    assert_eq!(stage.next(), ON);
    stage.ports.unplug("synth", Direction::Output);
    // What is sent while the port goes is sent, too; what counts comes after.
    assert_eq!(stage.next(), OFF);
    stage.ports.plug("synth", Direction::Output);
    assert_eq!(stage.next(), OFF);
    stage.host.stop();
}

// ENG-10: after a host that was killed, the next one silences its outputs, once.
#[test]
fn after_a_crash_outputs_are_told_to_end_all_notes() {
    let ports = SimulatedPorts::new();
    ports.plug("synth", Direction::Output);
    let loaded = config::parse(HOLDING, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    let host = Host::builder().backend(ports.backend()).end_all_notes().start(&loaded).unwrap();
    let synth = ports.sent("synth").unwrap();
    for channel in 0..16 {
        assert_eq!(synth.recv_timeout(TEST_TIMEOUT).unwrap(), [0xB0 | channel, 123, 0]);
    }
    host.stop();
    assert!(synth.try_recv().is_err());
}

const LIGHTS: &str = r#"
    [[modes]]
    name = "Play"
    [[modes.mappings]]
    trigger = { type = "Note", note = "36..37", device = "pads" }
    action = { type = "Suppress" }
    feedback = { fired = { message_type = "NoteOn", note = "{note}", velocity = "{value}" }, idle = { message_type = "NoteOn", note = "{note}", velocity = 1 } }
    [[modes]]
    name = "Edit"
    [[modes.mappings]]
    trigger = { type = "Note", note = 36, device = "pads" }
    action = { type = "ModeChange", mode = "Play" }
    feedback = { idle = { message_type = "NoteOn", note = 40, velocity = 5 } }
    [[global_mappings]]
    trigger = { type = "CC", cc = 7 }
    action = { type = "ModeChange", mode = "Edit" }
    feedback = { target = "pads", fired = { message_type = "PitchBend", value = "{value}" } }
"#;

// ACT-5: lights show what mappings do, on each mode's page, and again when the device comes back.
#[test]
fn lights_show_the_mode_and_what_has_fired() {
    let stage = Stage::new(LIGHTS);
    let lights = stage.ports.sent("pads").unwrap();
    let next = || lights.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!([next(), next()], [[0x90, 36, 1], [0x90, 37, 1]]);
    stage.play("pads", [0x90, 37, 99]);
    assert_eq!(next(), [0x90, 37, 99]);
    let sent = || stage.host.status().outputs.iter().map(|output| output.sent).collect::<Vec<_>>();
    until(|| sent() == [3]);
    // Whoever looks hears of the next change, and of none after it until they look again.
    let observations = stage.host.subscribe();
    // That the output is new was reported before any event.
    stage.play("keys", [0x90, 1, 1]);
    until(|| observations.try_iter().any(|seen| matches!(seen, Observation::Event(_))));
    let shown = |stage: &Stage| {
        let outputs = stage.host.lights();
        assert!(outputs.len() == 1 && outputs[0].device == "pads", "{outputs:?}");
        outputs[0].lights.iter().map(|light| (light.number, light.value)).collect::<Vec<_>>()
    };
    let changed = || observations.try_iter().filter(|seen| matches!(seen, Observation::Lights(_))).count();
    assert_eq!(shown(&stage), [(36, 1), (37, 99)]);
    stage.play("pads", [0x90, 37, 98]);
    stage.play("pads", [0x90, 37, 99]);
    assert_eq!([next(), next()], [[0x90, 37, 98], [0x90, 37, 99]]);
    until(|| changed() == 1);
    until(|| shown(&stage) == [(36, 1), (37, 99)]);
    // The fader's own feedback, then the page of the other mode.
    stage.play("keys", [0xB0, 7, 3]);
    assert_eq!(next(), [0xE0, 3, 0]);
    assert_eq!([next(), next(), next()], [[0x80, 36, 0], [0x80, 37, 0], [0x90, 40, 5]]);
    stage.play("pads", [0x90, 36, 1]);
    assert_eq!([next(), next(), next()], [[0x80, 40, 0], [0x90, 36, 1], [0x90, 37, 99]]);

    stage.ports.unplug("pads", Direction::Output);
    until(|| {
        stage
            .host
            .status()
            .ports
            .ports
            .iter()
            .all(|port| port.port.name != "pads" || port.port.direction == Direction::Input)
    });
    until(|| shown(&stage).is_empty());
    stage.ports.plug("pads", Direction::Output);
    assert_eq!([next(), next(), next()], [[0x90, 36, 1], [0x90, 37, 99], [0xE0, 3, 0]]);
    until(|| shown(&stage) == [(36, 1), (37, 99)]);
    stage.host.stop();
    assert_eq!([next(), next()], [[0x80, 36, 0], [0x80, 37, 0]]);
}

// ACT-5: what has fired stays lit; a mapping of the release shows its `idle` with it.
#[test]
fn a_light_goes_out_with_the_release_where_a_mapping_is_about_that() {
    let stage = Stage::new(
        r#"
        [[global_mappings]]
        trigger = { type = "Note", note = "36..37", device = "pads" }
        action = { type = "Suppress" }
        feedback = { fired = { message_type = "NoteOn", note = "{note}", velocity = 21 } }
        [[global_mappings]]
        trigger = { type = "Note", note = 37, on = "release", device = "pads" }
        action = { type = "Suppress" }
        feedback = { idle = { message_type = "NoteOn", note = 37, velocity = 1 } }
        "#,
    );
    let lights = stage.ports.sent("pads").unwrap();
    let next = || lights.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(next(), [0x90, 37, 1], "it waits");
    for message in [[0x90, 36, 99], [0x80, 36, 0], [0x90, 37, 99], [0x80, 37, 0]] {
        stage.play("pads", message);
    }
    assert_eq!([next(), next(), next()], [[0x90, 36, 21], [0x90, 37, 21], [0x90, 37, 1]]);
}

// ACT-5: the light is on while the pad is held, and the action is still done once, by the press.
#[test]
fn a_light_is_on_while_its_control_is_held() {
    let stage = Stage::new(
        r#"
        [[global_mappings]]
        trigger = { type = "Note", note = 36, device = "pads" }
        action = { type = "SendMidi", target = "synth", message_type = "NoteOn", note = 60, velocity = 127 }
        feedback = { fired = { message_type = "NoteOn", note = 36, velocity = 21 }, idle = { message_type = "NoteOn", note = 36, velocity = 1 }, while_held = true }
        [[global_mappings]]
        trigger = { type = "Note", note = 37, on = "press", device = "pads" }
        action = { type = "MidiForward", target = "synth" }
        feedback = { fired = { message_type = "NoteOn", note = 37, velocity = 22 }, idle = { message_type = "NoteOn", note = 37, velocity = 2 }, while_held = true }
        [[global_mappings]]
        trigger = { type = "Note", note = 38, device = "pads" }
        action = { type = "MidiForward", target = "synth" }
        feedback = { fired = { message_type = "NoteOn", note = 38, velocity = 23 }, idle = { message_type = "NoteOn", note = 38, velocity = 3 }, while_held = true }
        "#,
    );
    let (lights, synth) = (stage.ports.sent("pads").unwrap(), &stage.synth);
    let next = |port: &Receiver<Vec<u8>>| port.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(
        [next(&lights), next(&lights), next(&lights)],
        [[0x90, 36, 1], [0x90, 37, 2], [0x90, 38, 3]],
        "they wait"
    );
    for message in [[0x90, 36, 99], [0x80, 36, 0], [0x90, 37, 99], [0x90, 37, 0], [0x90, 38, 99], [0x80, 38, 0]] {
        stage.play("pads", message);
    }
    assert_eq!([next(&lights), next(&lights)], [[0x90, 36, 21], [0x90, 36, 1]]);
    assert_eq!([next(&lights), next(&lights)], [[0x90, 37, 22], [0x90, 37, 2]]);
    assert_eq!([next(&lights), next(&lights)], [[0x90, 38, 23], [0x90, 38, 3]]);
    assert_eq!(
        [next(synth), next(synth), next(synth), next(synth)],
        [[0x90, 60, 127], [0x90, 37, 99], [0x90, 38, 99], [0x80, 38, 0]]
    );
}

// ACT-5: neither the mode that a key makes active while it is held, nor a condition, keeps its light from going out.
#[test]
fn a_light_ends_with_its_control_whatever_else_has_changed() {
    let stage = Stage::new(
        r#"
        [[modes]]
        name = "Play"
        [[modes.mappings]]
        trigger = { type = "Note", note = 36, device = "pads" }
        action = { type = "ModeChange", mode = "Shift", lasts = "while_held" }
        feedback = { fired = { message_type = "NoteOn", note = 36, velocity = 21 }, idle = { message_type = "NoteOn", note = 36, velocity = 1 }, while_held = true }
        [[modes.mappings]]
        trigger = { type = "Note", note = 37, device = "pads" }
        condition = { type = "NoteHeld", note = 38, device = "pads" }
        action = { type = "Suppress" }
        consume = true
        priority = 1
        feedback = { fired = { message_type = "NoteOn", note = 37, velocity = 22 }, idle = { message_type = "NoteOn", note = 37, velocity = 2 }, while_held = true }
        [[modes]]
        name = "Shift"
        [[global_mappings]]
        trigger = { type = "Note", note = 37, device = "pads" }
        action = { type = "MidiForward", target = "synth" }
        "#,
    );
    let lights = stage.ports.sent("pads").unwrap();
    let next = || lights.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!([next(), next()], [[0x90, 36, 1], [0x90, 37, 2]], "they wait");
    stage.play("pads", [0x90, 36, 99]);
    assert_eq!(next(), [0x90, 36, 21]);
    assert_eq!([next(), next()], [[0x80, 36, 0], [0x80, 37, 0]], "the other mode has no lights");
    stage.play("pads", [0x80, 36, 0]);
    // The page comes back as it was left, and then the light goes out.
    assert_eq!([next(), next(), next()], [[0x90, 36, 21], [0x90, 37, 2], [0x90, 36, 1]], "both wait again");
    for message in [[0x90, 38, 99], [0x90, 37, 99], [0x80, 38, 0], [0x80, 37, 0]] {
        stage.play("pads", message);
    }
    assert_eq!([next(), next()], [[0x90, 37, 22], [0x90, 37, 2]]);
    let next_note = || stage.synth.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(next_note(), [0x80, 37, 0], "the press was consumed, and its release was not");
    // What another mapping has switched on ends, too: the end of a light keeps no release from it.
    for message in [[0x90, 37, 99], [0x80, 37, 0]] {
        stage.play("pads", message);
    }
    assert_eq!([next_note(), next_note()], [[0x90, 37, 99], [0x80, 37, 0]]);
}

const STATE: &str = r#"
    [[variables]]
    name = "mute"
    type = "boolean"
    [[variables]]
    name = "gain"
    type = "number"
    min = 0
    max = 1
    [[modes]]
    name = "Play"
    [[modes.mappings]]
    trigger = { type = "CC", cc = 1 }
    action = { type = "ModeChange", mode = "Shift" }
    [[modes]]
    name = "Shift"
    over = "Play"
    [[modes]]
    name = "Edit"
    [[global_mappings]]
    trigger = { type = "CC", cc = 2 }
    action = { type = "ModeChange", mode = "Edit" }
    [[global_mappings]]
    trigger = { type = "OscMessage", address = "/mute" }
    action = { type = "SetVariable", variable = "mute", value = "{arg0}" }
    [[global_mappings]]
    trigger = { type = "CC", cc = 7, device = "keys" }
    action = { type = "SetVariable", variable = "gain", value = "{unit}" }
    [[lights]]
    target = "pads"
    mode = "Play"
    shows = { message_type = "NoteOn", note = 36, velocity = "{if(mute, 5, 21)}" }
    [[lights]]
    target = "pads"
    shows = { message_type = "PitchBend", value = "{gain -> 0..16383}" }
    [[lights]]
    target = "synth"
    shows = { message_type = "CC", cc = 20, value = "{gain -> 0..127}" }
    blink = "mute"
"#;

// ACT-5: what programs and controllers say of themselves is a colour, a fader's place, and a ring that blinks; in its mode and
// those over it, and again when the device comes back.
#[test]
fn lights_show_what_variables_hold() {
    let stage = Stage::new(STATE);
    stage.ports.plug_port(PortInfo::new("mixer", "mixer", "simulated", Protocol::Osc, Direction::Input));
    until(|| stage.ports.is_open("mixer"));
    let lights = stage.ports.sent("pads").unwrap();
    let next = || lights.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!([next(), next()], [[0x90, 36, 21], [0xE0, 0, 0]]);
    assert_eq!(stage.next(), [0xB0, 20, 0]);

    let mute = |on: u8| stage.ports.play_osc("mixer", &[&b"/mute\0\0\0,i\0\0\0\0\0"[..], &[on]].concat());
    assert!(mute(1));
    assert_eq!(next(), [0x90, 36, 5]);
    stage.play("keys", [0xB0, 7, 127]);
    assert_eq!(next(), [0xE0, 0x7F, 0x7F]);
    // It goes off and on as long as it is muted, from the next change on with light.
    assert_eq!([stage.next(), stage.next(), stage.next()], [[0xB0, 20, 127], [0xB0, 20, 0], [0xB0, 20, 127]]);
    // On or off, it is known as one that blinks.
    let ring = |blinks| {
        let outputs = stage.host.lights();
        let lights = outputs.iter().filter(|output| output.device == "synth").flat_map(|output| &output.lights);
        let expected = Light { message: LightMessage::Cc, channel: 0, number: 20, value: 127, blinks };
        lights.copied().collect::<Vec<_>>() == [expected]
    };
    until(|| ring(true));
    assert_eq!(stage.next(), [0xB0, 20, 0]);
    assert!(ring(true));

    stage.play("keys", [0xB0, 1, 0]);
    assert!(mute(0));
    assert_eq!(next(), [0x90, 36, 21], "the mode above has no other light there");
    until(|| ring(false));
    stage.play("keys", [0xB0, 2, 0]);
    assert_eq!(next(), [0x80, 36, 0]);
    assert!(mute(1));
    stage.play("keys", [0xB0, 7, 0]);
    assert_eq!(next(), [0xE0, 0, 0], "the light of another mode says nothing now");

    stage.ports.unplug("pads", Direction::Output);
    until(|| {
        let ports = stage.host.status().ports.ports;
        !ports.iter().any(|port| port.port.name == "pads" && port.port.direction == Direction::Output)
    });
    stage.host.set_mode("Play");
    stage.ports.plug("pads", Direction::Output);
    assert_eq!([next(), next()], [[0x90, 36, 5], [0xE0, 0, 0]]);
    // A reload keeps the values, and so do lights.
    stage.reload();
    assert!(mute(0));
    assert_eq!(next(), [0x90, 36, 21]);
    stage.host.stop();
    assert_eq!(next(), [0x80, 36, 0]);
}

// ACT-4: a failed action is tried again where its mapping asks for it, and each try that fails is shown.
#[test]
fn an_action_is_tried_again_as_often_as_is_asked() {
    let stage = Stage::new(
        r#"
        [[global_mappings]]
        trigger = { type = "Note", note = 1 }
        action = { type = "SendMidi", target = "late", message_type = "ProgramChange", program = 3 }
        retry = { times = 10, after_ms = 300 }
        [[global_mappings]]
        trigger = { type = "Note", note = 2 }
        action = { type = "SendMidi", target = "never", message_type = "ProgramChange", program = 4 }
        retry = { times = 2, after_ms = 1 }
        [[global_mappings]]
        trigger = { type = "Note", note = 3 }
        action = { type = "SendMidi", target = "never", message_type = "ProgramChange", program = 5 }
        "#,
    );
    let failures = |target: &str| {
        let outputs = stage.host.status().outputs;
        outputs.into_iter().find(|output| output.target == target).map_or(0, |output| output.failed)
    };
    stage.play("pads", [0x90, 1, 100]);
    until(|| failures("late") > 0);
    stage.ports.plug("late", Direction::Output);
    let late = stage.ports.sent("late").unwrap();
    assert_eq!(late.recv_timeout(TEST_TIMEOUT).unwrap(), [0xC0, 3]);
    stage.play("pads", [0x90, 2, 100]);
    until(|| failures("never") == 3);
    stage.play("pads", [0x90, 3, 100]);
    until(|| failures("never") == 4);
    stage.play("pads", [0x90, 2, 100]);
    until(|| failures("never") == 7);
    stage.host.stop();
    assert!(late.try_recv().is_err(), "once");
}

const CLOCK: &str = r#"
    [clock]
    tempo = 480
    outputs = ["synth"]
    [[bindings]]
    alias = "synth"
    name = "synth"
    max_bytes_per_sec = 3125
    [[global_mappings]]
    trigger = { type = "Note", note = 1, device = "pads" }
    action = { type = "ToggleVariable", variable = "playing" }
    [[global_mappings]]
    trigger = { type = "Note", note = "36..99", on = "both", device = "pads" }
    action = { type = "MidiForward", target = "synth" }
"#;

// ENG-14: the clock goes out with its transport, past what waits for a slow port; a device that comes back is placed.
#[test]
fn the_clock_goes_out() {
    let stage = Stage::new(CLOCK);
    let synth = stage.synth.clone();
    let next = || synth.recv_timeout(TEST_TIMEOUT).unwrap();
    let next_but = |skip: u8| std::iter::repeat_with(next).find(|message| *message != [skip]).unwrap();
    // It plays when the host starts; the output comes a little later.
    assert!(matches!(next_but(0xF8)[..], [0xFA] | [0xF2, ..]));
    stage.play("pads", [0x90, 1, 100]);
    let stopped = std::iter::repeat_with(next).find(|message| *message != [0xF8] && *message != [0xFB]).unwrap();
    assert_eq!(stopped, [0xFC]);
    stage.play("pads", [0x90, 1, 100]);
    assert_eq!([next(), next()], [[0xFA], [0xF8]]);

    stage.ports.unplug("synth", Direction::Output);
    until(|| stage.host.status().ports.ports.iter().all(|port| port.port.name != "synth"));
    synth.try_iter().for_each(drop);
    stage.ports.plug("synth", Direction::Output);
    let placed = next_but(0xF8);
    assert_eq!((placed[0], placed.len()), (0xF2, 3), "{placed:?}");
    assert_eq!([next(), next()], [[0xFB], [0xF8]]);

    // 200 notes and their ends are 1.2 kB: they take longer than the clock can wait.
    for note in (36..86).cycle().take(200) {
        stage.play("pads", [0x90, note, 100]);
        stage.play("pads", [0x80, note, 0]);
    }
    let (mut pulses_between, mut came) = (0, Vec::new());
    while came.len() < 400 {
        match &next()[..] {
            [0xF8] => pulses_between += 1,
            note => came.push(note.to_vec()),
        }
    }
    let played = (36..86).cycle().take(200).flat_map(|note| [[0x90, note, 100], [0x80, note, 0]]);
    assert!(came.iter().eq(played.collect::<Vec<_>>().iter()), "all of them, in their order");
    assert!(pulses_between > 0);
    stage.host.stop();
    assert_eq!(next_but(0xF8), [0xFC], "a host that ends stops what follows it");
}

/// A backend with one output, which hangs until its gate is opened.
struct Hanging {
    gate: Receiver<()>,
    reached: Sender<()>,
}

struct HangingOut {
    gate: Receiver<()>,
    reached: Sender<()>,
}

impl MidiOut for HangingOut {
    fn send(&mut self, _: &[u8]) -> Result<(), PortError> {
        let _ = self.reached.send(());
        let _ = self.gate.recv();
        Ok(())
    }
}

impl PortBackend for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        let (name, key) = ("tar pit".to_owned(), "1".to_owned());
        Ok(vec![PortInfo {
            name,
            key,
            backend: "hanging".into(),
            protocol: Protocol::Midi,
            direction: Direction::Output,
            metadata: Default::default(),
        }])
    }

    fn open_input(&mut self, _: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
        Err(PortError("it has no inputs".into()))
    }

    fn open_output(&mut self, _: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        Ok(Box::new(HangingOut { gate: self.gate.clone(), reached: self.reached.clone() }))
    }
}

// ACT-2: an output that hangs delays no other, nor hot-plug, nor a reload, nor for long the end.
#[test]
fn an_output_that_hangs_delays_nobody() {
    let config = r#"
        [[global_mappings]]
        trigger = { type = "Note", note = "0..127" }
        action = { type = "MidiForward", target = "tar pit" }
        [[global_mappings]]
        trigger = { type = "Note", note = "0..127" }
        action = { type = "MidiForward", target = "synth" }
    "#;
    let (open, gate) = crossbeam_channel::bounded(0);
    let (reached, hangs) = crossbeam_channel::unbounded();
    let ports = SimulatedPorts::new();
    ports.plug("pads", Direction::Input);
    ports.plug("synth", Direction::Output);
    let loaded = config::parse(config, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    let builder = Host::builder().backend(ports.backend()).backend(Box::new(Hanging { gate, reached }));
    let host = builder.listen_to_all().start(&loaded).unwrap();
    let synth = ports.sent("synth").unwrap();

    // More than the queue of the one that hangs holds.
    const EVENTS: usize = QUEUE_CAPACITY + 500;
    for n in 0..EVENTS {
        let note = u8::try_from(n % 128).unwrap();
        assert!(ports.play("pads", &[0x90, note, 100]));
        assert_eq!(synth.recv_timeout(TEST_TIMEOUT).unwrap(), [0x90, note, 100]);
    }
    hangs.recv_timeout(TEST_TIMEOUT).unwrap();
    until(|| host.status().failures >= (EVENTS - QUEUE_CAPACITY - 100) as u64);
    let status = host.status();
    let stuck = status.outputs.iter().find(|output| output.target == "tar pit").unwrap();
    assert!(stuck.failed > 0);
    let full = format!("tar pit: its queue of {QUEUE_CAPACITY} is full");
    assert!(status.last_failure.unwrap().starts_with(&full));

    host.reload(config, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    ports.plug("late", Direction::Input);
    until(|| ports.is_open("late"));
    host.stop();
    drop(open);
}

/// Something that happens to a running host.
#[derive(Debug, Clone)]
enum Step {
    Play(&'static str, [u8; 3]),
    Mode(&'static str),
    Reload,
    Replug(&'static str, Direction),
}

fn step() -> impl Strategy<Value = Step> {
    let device = prop_oneof![Just("pads"), Just("keys")];
    let note = prop_oneof![4 => 34u8..38, 1 => 100u8..102];
    prop_oneof![
        8 => (device.clone(), note.clone()).prop_map(|(device, note)| Step::Play(device, [0x90, note, 100])),
        4 => (device.clone(), note).prop_map(|(device, note)| Step::Play(device, [0x80, note, 0])),
        1 => (device.clone(), any::<bool>()).prop_map(|(device, down)| Step::Play(device, [0xB0, 64, u8::from(down) * 127])),
        2 => prop_oneof![Just("Play"), Just("Edit")].prop_map(Step::Mode),
        1 => Just(Step::Reload),
        1 => device.prop_map(|device| Step::Replug(device, Direction::Input)),
        1 => Just(Step::Replug("synth", Direction::Output)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]

    // ENG-10: in any case, nothing is on after the end.
    #[test]
    fn nothing_stays_on(steps in prop::collection::vec(step(), 1..60)) {
        let stage = Stage::new(HOLDING);
        for step in steps {
            match step {
                // It may be unplugged just now.
                Step::Play(device, bytes) => drop(stage.ports.play(device, &bytes)),
                Step::Mode(mode) => stage.host.set_mode(mode),
                Step::Reload => stage.reload(),
                Step::Replug(name, direction) => {
                    // A reload looks at the ports at once.
                    stage.ports.unplug(name, direction);
                    stage.reload();
                    stage.ports.plug(name, direction);
                    stage.reload();
                }
            }
        }
        stage.host.stop();
        let mut on = BTreeSet::new();
        for message in stage.synth.try_iter() {
            match message[0] & 0xF0 {
                0x90 => drop(on.insert((message[0] & 0x0F, message[1]))),
                0x80 => drop(on.remove(&(message[0] & 0x0F, message[1]))),
                0xB0 if message[2] >= 64 => drop(on.insert((message[0], message[1]))),
                0xB0 => drop(on.remove(&(message[0], message[1]))),
                _ => {}
            }
        }
        prop_assert!(on.is_empty(), "{on:?} is on");
        let down = stage.desktop.lines().iter().fold(0, |down, line| if line.starts_with("down") { down + 1 } else { down - 1 });
        prop_assert_eq!(down, 0, "{:?}", stage.desktop.lines());
    }
}

const DECIDING: &str = r#"
    [[modes]]
    name = "Play"
    [[modes]]
    name = "Live"
    [[global_mappings]]
    trigger = { type = "Note", note = 36 }
    [global_mappings.action]
    type = "Conditional"
    condition = { type = "ModeIs", mode = "Live" }
    then = { type = "MidiForward", target = "synth" }
    else = { type = "Keystroke", keys = ["shift"], stroke = "hold" }
    [[global_mappings]]
    trigger = { type = "Note", note = 37 }
    [global_mappings.action]
    type = "Conditional"
    condition = { type = "NoteHeld", note = 40 }
    then = { type = "Keystroke", keys = ["alt"], stroke = "hold" }
    else = { type = "Text", text = "once" }
    [[global_mappings]]
    trigger = { type = "CC", cc = 1 }
    [global_mappings.action]
    type = "Conditional"
    condition = { type = "ModeIs", mode = "Play" }
    then = { type = "Keystroke", keys = ["ctrl"], stroke = "hold" }
    [[global_mappings]]
    trigger = { type = "Note", note = 38 }
    [global_mappings.action]
    type = "Conditional"
    condition = { type = "ModeIs", mode = "Live" }
    then = { type = "ModeChange", mode = "Play" }
    else = { type = "ModeChange", mode = "Live" }
    [[global_mappings]]
    trigger = { type = "Note", note = 39 }
    [global_mappings.action]
    type = "Repeat"
    count = 2
    [global_mappings.action.action]
    type = "Sequence"
    actions = [
        { type = "Conditional", condition = { type = "ModeIs", mode = "Live" }, then = { type = "Sequence", actions = [
            { type = "SendMidi", target = "synth", message_type = "CC", cc = 1, value = 1 },
            { type = "SendMidi", target = "synth", message_type = "CC", cc = 2, value = 1 },
        ] }, else = { type = "SendMidi", target = "synth", message_type = "CC", cc = 3, value = 1 } },
        { type = "SendMidi", target = "synth", message_type = "CC", cc = 4, value = 1 },
    ]
    [[global_mappings]]
    trigger = { type = "Note", note = 41 }
    [global_mappings.action]
    type = "Conditional"
    condition = { type = "Always" }
    then = { type = "SendMidi", target = "synth", message_type = "NoteOn", note = 9, velocity = 9 }
"#;

// ACT-1, ENG-10: a rule decides when it fires; what a branch has switched on goes off with its release,
// under the conditions of that moment, and with its rules.
#[test]
fn a_rule_decides_when_it_fires_and_ends_what_it_began() {
    let stage = Stage::new(DECIDING);
    let changed = stage.host.subscribe();
    let mode = |wanted: &str| loop {
        let observation = changed.recv_timeout(TEST_TIMEOUT).unwrap();
        if matches!(&observation, Observation::Mode(mode) if **mode == *wanted) {
            break;
        }
    };
    // A key goes down in one mode and comes up in the other; the forwarded note begins there and ends here.
    stage.play("pads", ON);
    until(|| stage.desktop.lines() == ["down shift"]);
    stage.play("pads", [0x90, 38, 1]);
    mode("Live");
    stage.play("keys", ON);
    assert_eq!(stage.next(), ON);
    stage.play("pads", OFF);
    until(|| stage.desktop.lines() == ["down shift", "up shift"]);
    stage.play("pads", [0x90, 38, 1]);
    mode("Play");
    stage.play("keys", OFF);
    assert_eq!(stage.next(), OFF);

    // A fader that holds a key lets it up where it leaves the upper half, and a text is for presses alone.
    stage.play("pads", [0xB0, 1, 127]);
    until(|| stage.desktop.lines()[2..] == ["down ctrl"]);
    stage.play("pads", [0x90, 38, 1]);
    mode("Live");
    stage.play("pads", [0xB0, 1, 100]);
    stage.play("pads", [0xB0, 1, 0]);
    until(|| stage.desktop.lines()[3..] == ["up ctrl"]);
    stage.play("pads", [0x90, 37, 1]);
    stage.play("pads", [0x80, 37, 0]);
    stage.play("pads", [0x90, 40, 1]);
    stage.play("pads", [0x90, 37, 1]);
    stage.play("pads", [0x80, 40, 0]);
    stage.play("pads", [0x80, 37, 0]);
    until(|| stage.desktop.lines()[4..] == ["text once", "down alt", "up alt"]);

    // In a script, too, and each time as it was when the rule fired.
    stage.play("pads", [0x90, 39, 1]);
    let told: Vec<u8> = (0..6).map(|_| stage.next()[1]).collect();
    assert_eq!(told, [1, 2, 4, 1, 2, 4]);
    stage.play("pads", [0x90, 38, 1]);
    mode("Play");
    stage.play("pads", [0x90, 39, 1]);
    let told: Vec<u8> = (0..4).map(|_| stage.next()[1]).collect();
    assert_eq!(told, [3, 4, 3, 4]);

    // What is on still goes off with its rules.
    stage.play("pads", [0x90, 41, 1]);
    assert_eq!(stage.next(), [0x90, 9, 9]);
    stage.reload();
    assert_eq!(stage.next(), [0x80, 9, 0]);
    stage.host.stop();
    assert!(stage.synth.try_recv().is_err());
    assert_eq!(stage.desktop.lines().len(), 7);
}

// More hosts than one process has room for at once: each has its threads, and address space for instances.
#[test]
fn a_host_ends_when_it_is_dropped() {
    let ports = SimulatedPorts::new();
    ports.plug("pads", Direction::Input);
    let loaded = config::parse("", "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    for _ in 0..100 {
        let host = Host::builder().backend(ports.backend()).listen_to_all().start(&loaded).unwrap();
        until(|| ports.is_open("pads"));
        drop(host);
        assert!(!ports.is_open("pads"));
    }
}
