//! Gestures and conditions end to end, and the commands that a person tries mappings out with.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use conductor_tests::home::Home;

const CONFIG: &str = r#"
[[modes]]
name = "Play"
[[modes]]
name = "Live"

[[global_mappings]]
name = "next"
trigger = { type = "Note", note = 36 }
action = { type = "Suppress" }
defer = true

[[global_mappings]]
name = "first"
trigger = { type = "DoubleTap", note = 36 }
action = { type = "Suppress" }

[[global_mappings]]
name = "blackout"
trigger = { type = "LongPress", note = 36, duration_ms = 500 }
action = { type = "ModeChange", mode = "Live" }

[[global_mappings]]
name = "shifted"
trigger = { type = "Note", note = 40 }
condition = { type = "And", conditions = [
    { type = "NoteHeld", note = 41 },
    { type = "TimeRange", start = "22:00", end = "06:00" },
] }
action = { type = "Suppress" }

[[global_mappings]]
name = "up"
trigger = { type = "EncoderTurn", cc = 16, direction = "clockwise" }
action = { type = "Suppress" }

[[global_mappings]]
name = "dash"
trigger = { type = "GamepadButtonChord", buttons = [137, 136] }
action = { type = "Suppress" }

[[modes.mappings]]
name = "live kick"
trigger = { type = "Note", note = 38 }
action = { type = "Suppress" }
"#;

// ENG-4, ENG-5, ENG-6: what a person says of gestures in TOML is what the engine decides.
#[test]
fn tests_beside_the_configuration_pass_or_say_what_is_different() {
    let home = Home::new(CONFIG);
    home.write(
        "gestures.txt",
        r#"
test "a double tap is no press"
0ms   pads note-on 36 100
+80ms pads note-off 36
+80ms pads note-on 36 90
+40ms pads note-off 36
-> 160ms first

test "a single tap is one, when a second can't come any more"
0ms   pads note-on 36 100
+80ms pads note-off 36
-> 300ms next

test "held it changes the mode"
0ms pads note-on 36 100
1s  pads note-on 38 100
-> 500ms blackout
-> 1s "live kick"

test "at night, with shift"
clock monday 23:00
0ms pads note-on 40 1
1ms pads note-on 41 1
2ms pads note-on 40 1
-> shifted

test "an encoder and a gamepad"
0ms pads cc 16 1
-> up
1ms pads cc 16 127
5ms pad gamepad-button 136 down
9ms pad gamepad-button 137 down
-> dash
"#,
    );
    let file = home.path().join("gestures.txt");
    let end = home.conductor(&["test", file.to_str().unwrap()]);
    assert_eq!(end.code, Some(0), "{}{}", end.out, end.err);
    assert!(end.out.ends_with("5 passed, 0 failed"), "{}", end.out);

    home.write("wrong.txt", "test \"a press\"\n0ms pads note-on 36 100\n-> next\n");
    let file = home.path().join("wrong.txt");
    let end = home.conductor(&["test", file.to_str().unwrap()]);
    assert_eq!(end.code, Some(1));
    assert!(end.out.contains(r#"line 3: "next" should have fired at 0s; "blackout" fired at 500ms"#), "{}", end.out);

    home.write("malformed.txt", "0ms pads strike 36\n");
    let file = home.path().join("malformed.txt");
    let end = home.conductor(&["test", file.to_str().unwrap()]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("malformed.txt: line 1, column 10: there is no message `strike`"), "{}", end.err);
}

// ENG-13: for an event, which rules look at it, and why those that don't fire don't.
#[test]
fn explain_says_why_a_rule_does_not_fire() {
    let home = Home::new(CONFIG);
    let end = home.conductor(&["explain", "pads", "note-on", "40", "1"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(end.out.contains("asks that (note 41 is down and the time is 22:00 to 06:00)"), "{}", end.out);
    let end = home.conductor(&["explain", "pads", "note-on", "36", "100"]);
    for part in ["waits until no other gesture can come of it", "a gesture begins, or goes on"] {
        assert!(end.out.contains(part), "no {part:?} in\n{}", end.out);
    }
    let end = home.conductor(&["explain", "pads note-on 38 1"]);
    assert!(end.out.contains("is for the mode \"Live\""), "{}", end.out);
    let end = home.conductor(&["explain", "--mode", "Live", "pads note-on 38 1"]);
    assert!(end.out.contains("fires"), "{}", end.out);
    let end = home.conductor(&["explain", "pads clock"]);
    assert_eq!(end.out, "no rule looks at clock");
    // A stick goes to both sides, and what it is asked in may stand at the end.
    let end = home.conductor(&["explain", "pads", "gamepad-stick", "128", "-0.5", "--json"]);
    assert_eq!((end.code, end.out.as_str()), (Some(0), ""), "{}", end.err);

    // The mode is that of the host that runs here, if one does; it is said which.
    let asked = ["explain", "pads", "note-on", "38", "1"];
    let end = home.conductor(&asked);
    assert!(end.out.contains("is for the mode \"Live\"") && end.err.contains("(the first"), "{}\n{}", end.out, end.err);
    let _host = home.run();
    assert_eq!(home.conductor(&["mode", "switch", "Live"]).code, Some(0));
    let end = home.conductor(&asked);
    assert!(
        end.out.contains("fires") && end.err.contains("in the mode Live (that of the running host)"),
        "{}",
        end.err
    );
    let end = home.conductor(&[&asked[..], &["--json"]].concat());
    assert!(end.out.lines().all(|line| line.contains("\"mode\":\"Live\"")), "{}", end.out);
}
