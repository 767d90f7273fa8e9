//! Every mistake in a file is named, with its line.

#![allow(clippy::unwrap_used)]

use conductor_device_profile::{Confidence, Message, Profile, schema};
use proptest::prelude::*;

const GOOD: &str = r#"schema = 1
id = "acme-pads"
vendor = "Acme"
name = "Pads"
kinds = ["pads"]

[[sources]]
id = "manual"
title = "Pads Manual"
publisher = "Acme"

[identity]
usb = ["1234:00ff"]
sysex = { manufacturer = "00 20 29", family = 0x10, model = 2 }
ports = { linux = ["*Acme Pads*"] }
source = "manual"
confidence = "high"

[layout]
rows = 2
columns = 4

[[modes]]
name = "A"
source = "manual"
confidence = "high"

[[modes]]
name = "B"
enter = "F0 01 F7"
source = "manual"
confidence = "low"

[[lights]]
id = "led"
message = "note"
values = { off = 0, red = 5, blue = 2 }
source = "manual"
confidence = "medium"

[[controls]]
name = "pad"
kind = "pad"
channel = 9
note = "36-39"
at = [1, 1]
modes = ["A"]
lights = "led"
source = "manual"
confidence = "high"

[[controls]]
name = "fader"
kind = "fader"
channel = "0-1"
pitch_bend = true
source = "manual"
confidence = "medium"
"#;

fn mistakes(text: &str) -> Vec<String> {
    Profile::parse(text).unwrap_err().iter().map(|mistake| format!("{}: {}", mistake.line, mistake.message)).collect()
}

/// The mistakes of the good file with one text in place of another.
fn with(text: &str, other: &str) -> Vec<String> {
    assert!(GOOD.contains(text), "{text}");
    mistakes(&GOOD.replacen(text, other, 1))
}

#[test]
fn a_good_file_has_every_control_by_itself() {
    let profile = Profile::parse(GOOD).unwrap();
    let names: Vec<&str> = profile.controls.iter().map(|control| control.name.as_str()).collect();
    assert_eq!(names, ["pad 1", "pad 2", "pad 3", "pad 4", "fader 1", "fader 2"]);
    let third = &profile.controls[2];
    assert_eq!(third.message, Message::Note { channel: 9, note: 38 });
    assert_eq!((third.place, third.range, third.line), (Some([1, 3]), [0, 127], 41));
    assert_eq!(profile.controls[5].message, Message::PitchBend { channel: 1 });
    assert_eq!(profile.controls[5].range, [0, 16_383]);
    let sysex = profile.identity.sysex.unwrap();
    assert_eq!((sysex.manufacturer, sysex.family, sysex.model), ([0, 0x20, 0x29], 16, Some(2)));
    let light = profile.light_of(third).unwrap();
    let values: Vec<&str> = light.values.iter().map(|value| value.name.as_str()).collect();
    assert_eq!(values, ["off", "red", "blue"]);
    assert_eq!(profile.modes[1].confidence, Confidence::Low);
}

#[test]
fn two_controls_on_one_message_are_named_with_both_lines() {
    let text = GOOD.to_owned()
        + "\n[[controls]]\nname = \"key\"\nkind = \"key\"\nchannel = 9\nnote = 38\nsource = \"manual\"\nconfidence = \"low\"\n";
    assert_eq!(mistakes(&text), ["60: key sends `note 38 ch 9`, as pad 3 of line 41 does"]);
    // In another mode it may.
    assert!(Profile::parse(&text.replace("note = 38", "note = 38\nmodes = [\"B\"]")).is_ok());
}

#[test]
fn a_place_and_a_name_are_for_one_control() {
    let more = "\n[[controls]]\nname = \"pad 1\"\nkind = \"pad\"\ncc = 1\nat = [1, 4]\nsource = \"manual\"\nconfidence = \"low\"\n";
    assert_eq!(
        mistakes(&(GOOD.to_owned() + more)),
        [
            "60: pad 1 is at row 1, column 4, where pad 4 of line 41 is",
            "60: the name pad 1 is that of a control of line 41, too",
        ]
    );
}

#[test]
fn ranges_that_are_backwards_are_named() {
    assert_eq!(with("\"36-39\"", "\"39-36\""), ["45: `note` is wrong: the range 39-36 is backwards"]);
    assert_eq!(with("at = [1, 1]", "at = [1, 1]\nrange = [9, 3]"), ["47: `range` is backwards: 9 is above 3"]);
    assert_eq!(
        with("at = [1, 1]", "at = [1, 1]\nrange = [0, 128]"),
        ["47: `range` goes to 128, and `note` carries no more than 127"]
    );
}

#[test]
fn unknown_fields_and_words_are_named_with_what_was_probably_meant() {
    assert_eq!(with("lights = \"led\"", "light = \"led\""), ["48: there is no field `light`; did you mean `lights`?"]);
    let unknown = with("kind = \"pad\"", "kind = \"pads\"");
    assert_eq!(unknown.len(), 1, "{unknown:?}");
    assert!(unknown[0].starts_with("43: `kind` is one of pad, key, button"), "{unknown:?}");
    assert_eq!(with("modes = [\"A\"]", "modes = [\"C\"]"), ["47: there is no mode `C` in `modes`"]);
    assert_eq!(with("lights = \"led\"", "lights = \"lamp\""), ["48: there is no entry `lamp` in `lights`"]);
    assert_eq!(
        with("lights = \"led\"\nsource = \"manual\"", "source = \"book\""),
        ["48: there is no source `book` in `sources`"]
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = GOOD
        .replace("id = \"acme-pads\"\n", "")
        .replace("usb = [\"1234:00ff\"]", "usb = [\"1234\"]")
        .replace("rows = 2", "rows = \"two\"")
        .replace("channel = 9", "channel = 16")
        .replace("pitch_bend = true\n", "");
    let found = mistakes(&text);
    let lines: Vec<&str> = found.iter().filter_map(|mistake| mistake.split(':').next()).collect();
    assert_eq!(lines, ["1", "12", "19", "43", "51"], "{found:#?}");
}

#[test]
fn a_name_of_64_kib_and_a_file_of_a_megabyte_are_refused_in_a_few_words() {
    let long = with("name = \"Pads\"", &format!("name = \"{}\"", "x".repeat(65_536)));
    assert_eq!(long, ["4: `name` has 1 to 64 characters, and not 65536"]);
    let unknown = with("name = \"Pads\"", &format!("name = \"Pads\"\n{} = 1", "x".repeat(65_536)));
    assert!(unknown[0].len() < 400, "{unknown:?}");
    assert_eq!(mistakes(&"#".repeat(1 << 20)), ["1: the file is longer than 256 KiB"]);
    let many: String =
        (0..600).map(|n| format!("\n[[modes]]\nname = \"{n}\"\nsource = \"manual\"\nconfidence = \"low\"")).collect();
    assert!(mistakes(&(GOOD.to_owned() + &many))[0].contains("has 1 to 512 entries"));
}

#[test]
fn hidden_characters_are_refused() {
    assert!(with("vendor = \"Acme\"", "vendor = \"Ac\\u001bme\"")[0].contains("control character"));
}

#[test]
fn a_control_sends_one_message() {
    assert_eq!(
        with("pitch_bend = true", "pitch_bend = true\naftertouch = true"),
        ["52: a control sends one message, and these are `aftertouch` and `pitch_bend`"]
    );
    let mut found = with("note = \"36-39\"", "");
    found.retain(|mistake| mistake.contains("what it sends is missing"));
    assert_eq!(found.len(), 1);
    assert_eq!(with("channel = 9", "channel = \"1-3\""), ["44: there are 3 channels for 4 of `note`"]);
}

#[test]
fn a_mistake_of_syntax_has_its_line() {
    assert!(with("kind = \"pad\"", "kind = ")[0].starts_with("43: "));
    assert!(mistakes("a = [").len() == 1);
}

#[test]
fn the_json_schema_knows_the_fields_that_the_checker_knows() {
    let schema = schema();
    let file: toml::Value = toml::from_str(GOOD).unwrap();
    let known = &schema["properties"];
    for (key, value) in file.as_table().unwrap() {
        assert!(known.get(key).is_some(), "{key}");
        let entries = value.as_array().and_then(|list| list.first()?.as_table()).into_iter();
        for inner in entries.flat_map(|table| table.keys()) {
            assert!(known[key]["items"]["properties"].get(inner).is_some(), "{key}.{inner}");
        }
    }
    assert_eq!(schema["additionalProperties"], false);
}

proptest! {
    /// Whatever a file says, it is read or refused, and mistakes have a place in it.
    #[test]
    fn any_text_is_read_or_refused(at in 0..GOOD.len(), cut in 0..40_usize, put in "[\\PC\n]{0,12}") {
        prop_assume!(GOOD.is_char_boundary(at));
        let end = GOOD.floor_char_boundary((at + cut).min(GOOD.len()));
        let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
        if let Err(mistakes) = Profile::parse(&text) {
            prop_assert!(!mistakes.is_empty());
            for mistake in mistakes {
                prop_assert!(mistake.line >= 1 && mistake.line <= text.lines().count() + 1);
                prop_assert!(mistake.message.len() < 2000);
            }
        }
    }
}
