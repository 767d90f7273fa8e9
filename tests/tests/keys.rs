//! Keys, text and the mouse, on a real X server: what the host's rules do, and the events that a window gets.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::osc::{Tablet, free_port, mappings};
use conductor_tests::screen::Screen;
use rosc::OscType;

/// A host that runs at this display.
fn run_at(home: &Home, display: &str) -> Host {
    let mut run = command(home.path(), &["run"]);
    run.env("DISPLAY", display).env_remove("WAYLAND_DISPLAY");
    Host::ready(&mut run, home.socket())
}

// PRT-6, ACT-1: keys with modifiers, text, clicks, the wheel and the volume arrive as they were meant.
#[test]
fn a_window_is_told_of_every_stroke() {
    let Some(screen) = Screen::start() else { return };
    let port = free_port();
    let home = Home::new(&mappings(
        port,
        &[
            ("/copy", "type = 'Keystroke', keys = ['c'], modifiers = ['ctrl', 'shift']"),
            ("/f5", "type = 'Keystroke', keys = ['f5']"),
            ("/text", "type = 'Text', text = 'ab'"),
            ("/click", "type = 'MouseClick', button = 'right', x = 300, y = 200"),
            ("/scroll", "type = 'Scroll', amount = '{value}'"),
            ("/louder", "type = 'VolumeControl', operation = 'up', steps = 2"),
        ],
    ));
    let host = run_at(&home, screen.display());
    let tablet = Tablet::to(port);

    tablet.send("/copy", []);
    let copy = screen.strokes(6);
    assert_eq!(copy[..2], ["+Control_L", "+Shift_L"]);
    assert!(copy[2].eq_ignore_ascii_case("+c") && copy[3].eq_ignore_ascii_case("-c"), "{copy:?}");
    assert_eq!(copy[4..], ["-Shift_L", "-Control_L"]);
    tablet.send("/f5", []);
    assert_eq!(screen.strokes(8)[6..], ["+F5", "-F5"]);
    tablet.send("/text", []);
    assert_eq!(screen.strokes(12)[8..], ["+a", "-a", "+b", "-b"]);
    tablet.send("/click", []);
    assert_eq!(screen.strokes(14)[12..], ["+button 3", "-button 3"]);
    tablet.send("/scroll", [OscType::Int(-2)]);
    assert_eq!(screen.strokes(18)[14..], ["+button 4", "-button 4", "+button 4", "-button 4"]);
    tablet.send("/louder", []);
    let volume = ["+XF86AudioRaiseVolume", "-XF86AudioRaiseVolume"];
    assert_eq!(screen.strokes(22)[18..], [volume, volume].concat());
    host.status_when(|status| status["workers"][0]["done"] == 6 && status["failures"] == 0);
}

// ACT-1: the pointer is moved by pixels, to a pixel, and on at a speed until another one is asked for.
#[test]
fn the_pointer_is_moved_and_stops() {
    let Some(screen) = Screen::start() else { return };
    let port = free_port();
    let home = Home::new(&mappings(
        port,
        &[
            ("/corner", "type = 'MouseMove', x = 10, y = 20, motion = 'to'"),
            ("/nudge", "type = 'MouseMove', x = '{value}', y = -5"),
            ("/steer", "type = 'MouseMove', x = '{value -> -400..400}', motion = 'speed'"),
            ("/creep", "type = 'MouseMove', y = 100, motion = 'speed'"),
        ],
    ));
    let host = run_at(&home, screen.display());
    let tablet = Tablet::to(port);

    tablet.send("/corner", []);
    screen.pointer("the pointer in the corner", |place| place == (10, 20));
    tablet.send("/nudge", [OscType::Int(7)]);
    screen.pointer("seven to the right", |place| place == (17, 15));
    // Half of the way from the middle of a fader to its end.
    tablet.send("/steer", [OscType::Float(0.75)]);
    let (_, y) = screen.pointer("a hundred pixels further", |(x, _)| x > 117);
    assert_eq!(y, 15, "it goes to the right alone");
    tablet.send("/creep", [OscType::Float(1.0)]);
    screen.pointer("on its way down, too", |(x, y)| x > 130 && y > 30);
    tablet.send("/creep", [OscType::Float(0.0)]);
    // A reload: whose rule had it move is gone.
    home.configure(&mappings(port, &[("/corner", "type = 'MouseMove', x = 10, y = 20, motion = 'to'")]));
    host.status_when(|status| status["rules"] == 1);
    tablet.send("/corner", []);
    screen.pointer("the pointer back in the corner", |place| place == (10, 20));
    assert_eq!(host.stop().0.code, Some(0));
    assert_eq!(screen.pointer("where it stands", |_| true), (10, 20), "it stands since the reload");
}

// ENG-10: what is held is let go of with the pad, and when the host ends.
#[test]
fn what_is_held_comes_up_again() {
    let Some(screen) = Screen::start() else { return };
    let port = free_port();
    let home = Home::new(&mappings(
        port,
        &[
            ("/shift", "type = 'Keystroke', keys = ['shift'], stroke = 'hold'"),
            ("/alt", "type = 'Keystroke', keys = ['alt'], stroke = 'press'"),
            ("/mouse", "type = 'MouseClick', stroke = 'hold'"),
        ],
    ));
    let host = run_at(&home, screen.display());
    let tablet = Tablet::to(port);

    tablet.send("/shift", [OscType::Float(1.0)]);
    assert_eq!(screen.strokes(1), ["+Shift_L"]);
    tablet.send("/shift", [OscType::Float(0.0)]);
    assert_eq!(screen.strokes(2)[1..], ["-Shift_L"]);

    tablet.send("/alt", []);
    tablet.send("/mouse", [OscType::Float(1.0)]);
    assert_eq!(screen.strokes(4)[2..], ["+Alt_L", "+button 1"]);
    // A reload: its owner is gone.
    home.configure(&mappings(port, &[("/shift", "type = 'Keystroke', keys = ['shift'], stroke = 'hold'")]));
    assert_eq!(screen.strokes(6)[4..], ["-button 1", "-Alt_L"]);

    tablet.send("/shift", [OscType::Float(1.0)]);
    assert_eq!(screen.strokes(7)[6..], ["+Shift_L"]);
    assert_eq!(host.stop().0.code, Some(0));
    assert_eq!(screen.strokes(8)[7..], ["-Shift_L"]);
}

// PRT-6, ACT-4: without a display the action fails and says so, and works as soon as there is one.
#[test]
fn a_missing_display_is_an_error_of_the_action() {
    let port = free_port();
    let home = Home::new(&mappings(port, &[("/type", "type = 'Text', text = 'x'")]));
    let host = run_at(&home, ":4711");
    let tablet = Tablet::to(port);
    tablet.send("/type", []);
    let (status, _) = host.status_when(|status| status["failures"] == 1);
    let said = status["workers"][0]["last_failure"].as_str().unwrap();
    assert!(said.starts_with("there is no desktop to act on: "), "{said}");
    tablet.send("/type", []);
    host.status_when(|status| status["failures"] == 2);
    assert_eq!(host.stop().0.code, Some(0));
}
