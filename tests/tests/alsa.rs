//! MIDI through ALSA's sequencer, in the virtual machine that `cargo xtask vm` boots.

#![cfg(all(target_os = "linux", not(feature = "jack")))]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod deck;
mod keyboard;
mod midi;
mod pad;
#[path = "../../host/conductor/tests/terminal/pty.rs"]
mod pty;
mod usb;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::instrument::{self, Controller, Synth};
use conductor_tests::osc::Listener;
use conductor_tests::process::Process;
use evdev::{AbsoluteAxisCode, KeyCode};
use pty::Terminal;
use serde_json::{Value, json};

/// Whether this is the virtual machine. On another machine the sequencer may be missing, or in use.
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
    // Told by its USB ids, which ALSA's client leads to.
    let ids = "{ type = 'usb_identifier', vendor_id = 0x1d6b, product_id = 0x0104, serial = '1' }";
    let binding = format!("[[bindings]]\nalias = 'pads'\nmatchers = [{ids}]\n");
    let home = Home::new(&(binding + &midi::osc(note, &out.target(), message)));
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

/// The inputs that lie idle because another could as well be the pads.
fn twins(listing: &Value) -> Vec<&Value> {
    let ports = listing["ports"].as_array().unwrap().iter();
    ports.filter(|port| port["state"]["ambiguous"] == "pads" && port["direction"] == "input").collect()
}

// ENG-3, PRT-3: two devices that look alike; neither is the pads until one of them is touched.
#[test]
fn a_twin_is_told_by_touching_it() {
    if !there_is_midi() {
        return;
    }
    let (name, out) = (instrument::name("Twin"), Listener::new());
    let [mut one, mut other] = [(); 2].map(|()| Controller::plug(&name));
    let note = "type = 'Note', note = '0..127', device = 'pads'";
    let message = "address = '/pads', args = ['{note}']";
    let home = Home::new(&(midi::binding("pads", &name) + &midi::osc(note, &out.target(), message)));
    let host = home.run();
    host.status_when(|status| twins(status).len() == 2);
    one.play(&[0x90, 1, 1]);
    other.play(&[0x90, 2, 1]);
    host.status_when(|status| twins(status).iter().all(|twin| twin["unheard"] == 1));
    let bindings = home.json(&["bindings", "--json"]);
    assert_eq!((&bindings[0]["health"], &bindings[0]["input"]["state"]), (&json!("amber"), &json!("ambiguous")));

    let pin = Process::start(&mut command(home.path(), &["bindings", "pin", "pads"]));
    pin.err.line("touch the device");
    other.play(&[0x90, 3, 1]);
    let (end, _) = pin.wait();
    assert_eq!(end.code, Some(0), "{}", end.err);
    midi::open(&host, "pads", "input");
    one.play(&[0x90, 4, 1]);
    other.play(&[0x90, 5, 1]);
    assert_eq!(out.line(), "/pads i 5", "what came before is forgotten, and the twin is not heard");
    assert_eq!(home.json(&["bindings", "--json"])[0]["health"], "green");
}

// PRT-4, ENG-2: a gamepad beside a controller; plugged, pulled out, plugged again.
#[test]
fn a_gamepad_may_come_and_go() {
    if !there_is_midi() {
        return;
    }
    let (name, pads) = (instrument::name("Gamepad"), instrument::name("Pads"));
    let mut controller = Controller::plug(&pads);
    let binding = format!("[[bindings]]\nalias = 'pad'\nprotocol = 'hid'\nname = '{name}'\ndead_zone = 0.2\n");
    let home = Home::new(&(midi::binding("pads", &pads) + &binding));
    let host = home.run();
    midi::open(&host, "pads", "input");
    let monitor = Process::start(&mut command(home.path(), &["monitor", "--json"]));
    let seen = |device: &str, event: &str, times: usize| {
        let part = format!("\"device\":\"{device}\",\"event\":\"{event}\"");
        let count = |lines: &[String]| lines.iter().filter(|line| line.contains(&part)).count();
        monitor.out.find(&format!("{part} {times} times"), |lines| (count(lines) == times).then_some(()));
    };

    for round in 1..=2 {
        let mut pad = pad::Pad::plug(&name);
        let took = midi::open(&host, "pad", "input");
        assert!(took < midi::HOT_PLUG, "open after {took:?}");
        let ports = home.json(&["ports", "--json"]);
        let listed = conductor_tests::conductor::port(&ports, "pad").unwrap();
        assert_eq!(listed["metadata"]["usb"], json!({ "vendor_id": pad::VENDOR, "product_id": pad::PRODUCT }));

        pad.button(KeyCode::BTN_SOUTH, true);
        seen("pad", "gamepad-button 128 down", round);
        pad.button(KeyCode::BTN_SOUTH, false);
        seen("pad", "gamepad-button 128 up", round);
        pad.axis(AbsoluteAxisCode::ABS_X, 3000);
        pad.axis(AbsoluteAxisCode::ABS_X, 32_767);
        seen("pad", "gamepad-stick 128 1", round);
        pad.axis(AbsoluteAxisCode::ABS_RZ, 255);
        seen("pad", "gamepad-trigger 133 1", round);
        controller.play(&[0x90, 36, 1]);
        seen("pads", "note-on 36 1", round);

        drop(pad);
        let took = midi::gone(&host, "pad", "input");
        assert!(took < midi::HOT_PLUG, "closed after {took:?}");
    }
}

// ACT-1: a gamepad that the host makes is one for other programs, and never its own controller.
#[test]
fn a_virtual_gamepad_is_played_and_lets_go() {
    if !there_is_midi() {
        return;
    }
    let pads = instrument::name("Pads");
    let mut controller = Controller::plug(&pads);
    let play = |note: u8, what: &str| {
        midi::mapping(&format!("type = 'Note', note = {note}"), &format!("type = 'VirtualGamepad', {what}"))
    };
    let config = [
        midi::binding("pads", &pads),
        "[advanced_settings]\nlisten_mode = 'all'\n".to_owned(),
        play(36, "button = 'south'"),
        play(37, "axis = 'left y', value = '{value -> 0..32767}'"),
        play(38, "trigger = 'right trigger', value = 20000"),
    ];
    let home = Home::new(&config.concat());
    let host = home.run();
    midi::open(&host, "pads", "input");

    // It is there before it is played: games look for gamepads when they start.
    let mut gamepad = pad::listen("Conductor Virtual Gamepad");
    controller.play(&[0x90, 36, 1]);
    gamepad.is(KeyCode::BTN_SOUTH, true);
    controller.play(&[0x90, 37, 127]);
    gamepad.stands(AbsoluteAxisCode::ABS_Y, -32_767);
    controller.play(&[0x90, 38, 1]);
    gamepad.stands(AbsoluteAxisCode::ABS_RZ, 20_000);
    controller.play(&[0x80, 36, 0]);
    gamepad.is(KeyCode::BTN_SOUTH, false);
    controller.play(&[0x80, 37, 0]);
    gamepad.stands(AbsoluteAxisCode::ABS_Y, 0);
    let ports = home.json(&["ports", "--json"]);
    assert!(!ports.to_string().contains("Conductor Virtual Gamepad"), "{ports}");
    assert_eq!(host.status()["failures"], 0);
    // What is out goes back with the controller.
    drop(controller);
    gamepad.stands(AbsoluteAxisCode::ABS_RZ, 0);
}

// PRT-1, PRT-3: a Stream Deck is a MIDI port whose keys are pads with lights and texts; pulled out and plugged in again.
#[test]
fn a_stream_deck_is_pads_with_lights() {
    if !there_is_midi() {
        return;
    }
    let out = Listener::new();
    let port = "{ type = 'usb_identifier', vendor_id = 0x0fd9, product_id = 0x0080, serial = 'A00SD1' }";
    let binding = format!("[[bindings]]\nalias = 'deck'\nmatchers = [{port}]\noutput = {{ matchers = [{port}] }}\n");
    let note = "type = 'Note', note = '36..50', device = 'deck'";
    let lit = |velocity: u8| format!("{{ message_type = 'NoteOn', note = '{{note}}', velocity = {velocity} }}");
    let feedback = format!("[global_mappings.feedback]\nwhile_held = true\nidle = {}\nfired = {}\n", lit(28), lit(96));
    let mapping = midi::osc(note, &out.target(), "address = '/key/{n}', args = ['{value}']");
    let texts = "[[modes]]\nname = 'Play'\n[[modes.mappings]]\ntrigger = { type = 'Note', note = 49, device = 'deck' }\n\
                 action = { type = 'Suppress' }\nfeedback = { text = 'Next song' }\n[[modes]]\nname = 'Edit'\n";
    let home = Home::new(&(binding + texts + &mapping + &feedback));
    let host = home.run();
    // It calls keys as the device's profile does.
    let monitor = Process::start(&mut command(home.path(), &["monitor"]));
    for round in 0..2 {
        let mut deck = deck::Deck::plug("A00SD1");
        let took = midi::open(&host, "deck", "input");
        assert!(took < midi::HOT_PLUG, "open after {took:?}");
        midi::open(&host, "deck", "output");
        deck.shows(2 + round, [0, 255, 0]);
        deck.key(2 + usize::from(round), true);
        assert_eq!(out.line(), format!("/key/{} i 127", 2 + round));
        deck.shows(2 + round, [255, 0, 0]);
        deck.shows(14, [0, 255, 0]);
        deck.is_written(14, false);
        deck.shows(13, [0, 255, 0]);
        deck.is_written(13, true);
        home.json(&["mode", "switch", "Edit", "--json"]);
        deck.is_written(13, false);
        deck.shows(13, [0, 255, 0]);
        home.json(&["mode", "switch", "Play", "--json"]);
        deck.is_written(13, true);
        deck.key(2 + usize::from(round), false);
        deck.shows(2 + round, [0, 255, 0]);
        let name = format!("key {}", 3 + round);
        monitor.out.find(&name, |lines| lines.iter().any(|line| line.contains(&name)).then_some(()));
        drop(deck);
        let took = midi::gone(&host, "deck", "input");
        assert!(took < midi::HOT_PLUG, "closed after {took:?}");
    }
}

/// Mappings of a macro pad whose keys come to this host alone.
fn macros(name: &str, out: &Listener) -> String {
    let says = |key: &str, message: &str| {
        midi::osc(&format!("type = 'Key', key = '{key}', device = 'macros'"), &out.target(), message)
    };
    [
        format!("[[bindings]]\nalias = 'macros'\nprotocol = 'keyboard'\nname = '{name}'\ngrab = true\n"),
        says("f13..f24", "address = '/macro/{n}', args = []"),
        says("enter", "address = '/enter', args = []"),
        midi::osc(
            "type = 'LongPress', key = 'space', duration_ms = 30",
            &out.target(),
            "address = '/space', args = []",
        ),
    ]
    .concat()
}

// PRT-4: the keys of a macro pad have their effect and type nothing elsewhere, and it is always let go.
#[test]
fn a_macro_pad_that_is_grabbed_is_let_go() {
    if !there_is_midi() {
        return;
    }
    let (name, out) = (instrument::name("Macros"), Listener::new());
    let mut macros_keys = keyboard::Keyboard::plug(&name);
    let mut typist = macros_keys.typist();
    let config = macros(&name, &out);
    let home = Home::new(&config);
    let host = home.run();
    midi::open(&host, "macros", "input");
    let ports = home.json(&["ports", "--json"]);
    let listed = conductor_tests::conductor::port(&ports, "macros").unwrap();
    assert_eq!(listed["protocol"], "keyboard");
    assert_eq!(listed["metadata"]["usb"], json!({ "vendor_id": keyboard::VENDOR, "product_id": keyboard::PRODUCT }));

    let effect_of = |keys: &mut keyboard::Keyboard, typist: &mut keyboard::Typist, elsewhere: &[KeyCode], why: &str| {
        keys.tap(KeyCode::KEY_F14);
        assert_eq!(out.line(), "/macro/1 ", "{why}");
        assert_eq!(typist.heard(), elsewhere, "{why}");
    };
    effect_of(&mut macros_keys, &mut typist, &[], "it is grabbed");
    macros_keys.key(KeyCode::KEY_SPACE, true);
    assert_eq!(out.line(), "/space ", "gestures know keys");
    macros_keys.key(KeyCode::KEY_SPACE, false);
    effect_of(&mut macros_keys, &mut typist, &[], "it is grabbed all the time");

    // The keys that always let go; the mapping of the last one says that they have been read.
    for key in [KeyCode::KEY_ESC, KeyCode::KEY_BACKSPACE, KeyCode::KEY_ENTER] {
        macros_keys.key(key, true);
    }
    assert_eq!(out.line(), "/enter ");
    for key in [KeyCode::KEY_ESC, KeyCode::KEY_BACKSPACE, KeyCode::KEY_ENTER] {
        macros_keys.key(key, false);
    }
    effect_of(&mut macros_keys, &mut typist, &[KeyCode::KEY_F14], "three keys let go of it");
    effect_of(&mut macros_keys, &mut typist, &[KeyCode::KEY_F14], "for good");

    // A file with a mistake: the old rules stay, and the keyboard types again until it is mended.
    let said = |part: &str, times: usize| {
        let count = |lines: &[String]| lines.iter().filter(|line| line.contains(part)).count();
        host.log().find(&format!("{part} {times} times"), |lines| (count(lines) == times).then_some(()));
    };
    home.configure(&format!("{config}# changed\n"));
    said("reloaded", 1);
    effect_of(&mut macros_keys, &mut typist, &[], "a new configuration grabs it again");
    home.configure(&format!("{config}[[global_mappings]]\ntrigger = {{ type = 'Key', key = 'f25' }}\n"));
    said("was refused", 1);
    effect_of(&mut macros_keys, &mut typist, &[KeyCode::KEY_F14], "a configuration with a mistake lets go of it");
    home.configure(&config);
    said("reloaded", 2);
    effect_of(&mut macros_keys, &mut typist, &[], "mended, it is grabbed");

    let mute = home.conductor(&["bindings", "mute", "macros"]);
    assert_eq!(mute.code, Some(0), "{}", mute.err);
    macros_keys.tap(KeyCode::KEY_F14);
    // What is muted is counted, so that it is known to have come.
    host.status_when(|status| conductor_tests::conductor::port(status, "macros").unwrap()["unheard"] == 2);
    assert_eq!(typist.heard(), [KeyCode::KEY_F14], "muted, it is let go");
    let unmute = home.conductor(&["bindings", "unmute", "macros"]);
    assert_eq!(unmute.code, Some(0), "{}", unmute.err);
    effect_of(&mut macros_keys, &mut typist, &[], "and grabbed when it is heard again");

    host.kill();
    macros_keys.tap(KeyCode::KEY_F14);
    assert_eq!(typist.heard(), [KeyCode::KEY_F14], "a host that is killed lets go");
}

// PRT-3, PRT-4: what is typed is heard only if a binding says so.
#[test]
fn a_keyboard_without_a_binding_is_not_opened() {
    if !there_is_midi() {
        return;
    }
    let (name, pads) = (instrument::name("Keys"), instrument::name("Pads"));
    let _controller = Controller::plug(&pads);
    let keys = keyboard::Keyboard::plug(&name);
    let home = Home::new("[advanced_settings]\nlisten_mode = 'all'\n");
    let host = home.run();
    let is_open = |host: &Host| {
        let files = fs::read_dir(format!("/proc/{}/fd", host.id())).unwrap().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == keys.node())
    };
    host.status_when(|status| midi::input_of(status, &pads).is_some_and(|port| port["connected"] == true));
    let status = host.status();
    let listed = midi::input_of(&status, &name).unwrap();
    assert_eq!((&listed["connected"], &listed["state"]), (&json!(false), &json!("idle")), "{listed}");
    assert!(!is_open(&host), "what has no binding");

    // While something is learned, every other port is open.
    let learning = Process::start(&mut command(home.path(), &["learn"]));
    learning.err.line("move a control (30 seconds) ...");
    assert!(!is_open(&host), "learning");

    home.configure(&format!("[[bindings]]\nalias = 'keys'\nprotocol = 'keyboard'\nname = '{name}'\n"));
    midi::open(&host, "keys", "input");
    assert!(is_open(&host), "a binding");
}

// PRT-4: the buttons and the wheel of a mouse; it may come and go.
#[test]
fn a_mouse_clicks_and_turns_its_wheel() {
    if !there_is_midi() {
        return;
    }
    let (name, out) = (instrument::name("Mouse"), Listener::new());
    let says = |key: &str, message: &str| {
        midi::osc(&format!("type = 'Key', key = '{key}', on = 'both', device = 'mouse'"), &out.target(), message)
    };
    let binding = format!("[[bindings]]\nalias = 'mouse'\nprotocol = 'mouse'\nname = '{name}'\n");
    let mappings = says("mouse left", "address = '/click', args = ['{value}']")
        + &says("wheel up..wheel down", "address = '/wheel/{n}', args = ['{value}']");
    let home = Home::new(&(binding + &mappings));
    let host = home.run();
    for _ in 1..=2 {
        let mut mouse = keyboard::Keyboard::plug_mouse(&name);
        let took = midi::open(&host, "mouse", "input");
        assert!(took < midi::HOT_PLUG, "open after {took:?}");
        mouse.slide(5);
        mouse.key(KeyCode::BTN_LEFT, true);
        assert_eq!(out.line(), "/click i 1");
        mouse.wheel(-1);
        assert_eq!(out.lines(2), ["/wheel/1 i 1", "/wheel/1 i 0"]);
        // Its press has an end, though it never came.
        drop(mouse);
        assert_eq!(out.line(), "/click i 0");
        let took = midi::gone(&host, "mouse", "input");
        assert!(took < midi::HOT_PLUG, "closed after {took:?}");
    }
}

// ENG-2, ENG-4, ENG-10, PRT-2: two controllers and a gamepad; one is pulled out in the middle of a chord, with a
// note still sounding, and plugged in again.
#[test]
fn two_controllers_and_a_gamepad_and_a_cable_that_is_pulled() {
    if !there_is_midi() {
        return;
    }
    let names = ["Pads", "Keys", "Synth", "Gamepad"].map(instrument::name);
    let [pads_name, keys_name, synth_name, pad_name] = &names;
    let out = Listener::new();
    let says = |trigger: &str, address: &str| {
        midi::osc(&format!("type = {trigger}"), &out.target(), &format!("address = '{address}', args = []"))
    };
    let config = [
        midi::binding("pads", pads_name),
        midi::binding("keys", keys_name),
        midi::binding("synth", synth_name),
        format!("[[bindings]]\nalias = 'pad'\nprotocol = 'hid'\nname = '{pad_name}'\n"),
        says("'Note', note = 36, device = 'pads'", "/pads"),
        says("'Note', note = 36, device = 'keys'", "/keys"),
        says("'GamepadButton', button = 128, device = 'pad'", "/pad"),
        // A whole minute, so that it is the cable that breaks it.
        says("'NoteChord', notes = [40, 43], timeout_ms = 60000, device = 'pads'", "/chord"),
        midi::mapping("type = 'Note', note = 50, device = 'pads'", "type = 'MidiForward', target = 'synth'"),
    ];
    let home = Home::new(&config.concat());
    let synth = Synth::plug(synth_name);
    let (mut pads, mut keys) = (Controller::plug(pads_name), Controller::plug(keys_name));
    let mut pad = pad::Pad::plug(pad_name);
    let host = home.run();
    for device in ["pads", "keys", "pad"] {
        midi::open(&host, device, "input");
    }
    midi::open(&host, "synth", "output");

    pads.play(&[0x90, 36, 1]);
    assert_eq!(out.line(), "/pads ");
    keys.play(&[0x90, 36, 1]);
    assert_eq!(out.line(), "/keys ");
    pad.button(KeyCode::BTN_SOUTH, true);
    assert_eq!(out.line(), "/pad ");

    // Half a chord; the other half is another controller's, and does not make it whole.
    pads.play(&[0x90, 50, 100]);
    assert_eq!(synth.next(), [0x90, 50, 100]);
    pads.play(&[0x90, 40, 100]);
    keys.play(&[0x90, 43, 100]);
    drop(pads);
    midi::gone(&host, "pads", "input");
    // The others go on meanwhile.
    keys.play(&[0x90, 36, 1]);
    assert_eq!(out.line(), "/keys ");
    assert_eq!(synth.next()[..2], [0x80, 50], "it is away for too long to be a bad contact: its note ends");

    let mut pads = Controller::plug(pads_name);
    midi::open(&host, "pads", "input");
    // What was half a chord is none now. Whole, it is one.
    pads.play(&[0x90, 43, 100]);
    pads.play(&[0x80, 43, 0]);
    pads.play(&[0x90, 36, 1]);
    assert_eq!(out.line(), "/pads ");
    pads.play(&[0x90, 43, 100]);
    pads.play(&[0x90, 40, 100]);
    assert_eq!(out.line(), "/chord ");
    assert_eq!(host.status()["failures"], 0);
}

/// Says where the features are that controllers are set up with. To compile them takes an emulated machine a minute, which
/// tests of how soon a port is open would feel: they are there if this is all that is run.
const SETTING_UP: &str = "CONDUCTOR_VM_SETTING_UP";

/// A program with what it sets controllers up with.
fn with_tools(mut command: Command) -> Command {
    command.env("CONDUCTOR_FEATURES", std::env::var_os(SETTING_UP).unwrap());
    command
}

/// What a person who plugs a controller in has to do until it works, and how long that takes.
struct Steps {
    began: Instant,
    done: Vec<String>,
}

impl Steps {
    fn begin() -> Self {
        Self { began: Instant::now(), done: Vec::new() }
    }

    fn done(&mut self, step: &str) {
        self.done.push(format!("{:6.2} s  {step}", self.began.elapsed().as_secs_f64()));
    }

    fn print(&self, what: &str) {
        println!("{what}:\n  {}", self.done.join("\n  "));
    }
}

// LRN-1, LRN-5: from the cable to pads that light up, by one command and one "y"; and a controller that no profile fits, by
// touch.
#[test]
fn controllers_are_set_up_from_the_cable_to_the_light() {
    if !there_is_midi() || std::env::var_os(SETTING_UP).is_none() {
        println!("skipped: `cargo xtask vm --setting-up` runs this");
        return;
    }
    let home = Home::new("[[modes]]\nname = 'Play'\n");
    // What is compiled for it stays in the home. Here that takes as long as it takes.
    let ready = with_tools(command(home.path(), &["config", "validate"])).output().unwrap();
    assert!(ready.status.success(), "{}", String::from_utf8_lossy(&ready.stderr));
    let host = Host::ready(&mut with_tools(command(home.path(), &["run"])), home.socket());
    a_known_controller(&home, &host);
    an_unknown_controller(&home, &host);
}

fn a_known_controller(home: &Home, host: &Host) {
    // Akai's APC mini.
    let mut controller = usb::Controller::with_ids("APC MINI", 0x09e8, 0x0028);
    let mut steps = Steps::begin();
    controller.plug();
    let (status, _) = host.status_when(|status| midi::input_of(status, "APC MINI").is_some());
    steps.done("plugged in, and listed");
    let name = midi::input_of(&status, "APC MINI").unwrap()["name"].as_str().unwrap().to_owned();
    let mut terminal = Terminal::start(with_tools(command(home.path(), &["devices", "suggest", &name])));
    terminal.expect("pad 1 to pad 8 light up green");
    terminal.expect("Apply it? [y = yes");
    steps.done("conductor devices suggest: the plan is shown");
    terminal.type_line("y");
    terminal.expect("applied: ");
    assert_eq!(terminal.end().0, Some(0));
    steps.done("y: applied");
    let config = fs::read_to_string(home.config()).unwrap();
    assert!(config.contains("alias = \"apc-mini\""), "{config}");
    midi::open(host, "apc-mini", "input");
    midi::open(host, "apc-mini", "output");
    let lights = controller.lights();
    controller.play(&[0x90, 58, 127]);
    assert_eq!(lights.recv_timeout(Duration::from_secs(10)), Ok([0x90, 58, 1]), "the pad is green");
    steps.done("a pad is hit, and is lit");
    controller.play(&[0x80, 58, 0]);
    // On the way, a note that is played with no velocity may become one that ends.
    assert_eq!(lights.recv_timeout(Duration::from_secs(10)).unwrap()[1..], [58, 0], "and dark again");
    steps.print("a controller that has a profile");
}

fn an_unknown_controller(home: &Home, host: &Host) {
    let (mut controller, out) = (usb::Controller::new("Grand Pads"), Listener::new());
    let mut steps = Steps::begin();
    controller.plug();
    host.status_when(|status| midi::input_of(status, "Grand Pads").is_some());
    steps.done("plugged in, and listed");
    let action = format!("OscSend {{ target = '{}', address = '/pad', args = ['{{value}}'] }}", out.target());
    let mut terminal = Terminal::start(with_tools(command(home.path(), &["learn", "--map", &action])));
    terminal.expect("move a control");
    controller.play(&[0x90, 40, 90]);
    controller.play(&[0x80, 40, 0]);
    steps.done("conductor learn --map: the pad is touched");
    terminal.expect("or for any device? [this/any]");
    terminal.type_line("this");
    terminal.expect("Apply it? [y = yes");
    terminal.type_line("y");
    terminal.expect("applied: ");
    assert_eq!(terminal.end().0, Some(0));
    steps.done("this, y: applied");
    let config = fs::read_to_string(home.config()).unwrap();
    assert!(config.contains("note = 40"), "{config}");
    host.status_when(|status| midi::input_of(status, "Grand Pads").is_some_and(|port| port["state"] == "open"));
    controller.play(&[0x90, 40, 77]);
    assert_eq!(out.line(), "/pad i 77");
    steps.done("the pad is hit, and the message comes");
    steps.print("a controller without a profile");
}
