//! Scripts of events, read and refused.

use self::midi_messages::midi_message;
use super::*;
use proptest::prelude::*;

#[path = "../../../midi-parser/src/midi_messages.rs"]
mod midi_messages;

#[test]
fn a_script_reads_like_what_happens() {
    let script = r#"
        # A pad is hit and released, then a fader moves.
        0ms     pads      note-on 36 100 ch 9
        +120ms  pads      note-off 36 ch 9   # a default velocity
        1.5s    "nano #2" cc 7 64
        +10us   tablet    osc /mixer/1/fader 0.75 "main" [1 true]
        +1ns    synth     sysex F0 7e 7F 06 01 F7
        2s      pad       gamepad-button 128 down
        +1ms    pad       gamepad-stick 131 -0.25
        +1ms    pad       gamepad-trigger 132 1
        3s      desk      artnet 32767 512 255
    "#;
    let timeline = Timeline::parse(script).unwrap();
    let lines: Vec<_> = timeline.entries.iter().map(|entry| entry.to_string()).collect();
    assert_eq!(
        lines,
        [
            "0s pads note-on 36 100 ch 9",
            "120ms pads note-off 36 64 ch 9",
            r#"1500ms "nano #2" cc 7 64"#,
            r#"1500010us tablet osc /mixer/1/fader 0.75 "main" [1 true]"#,
            "1500010001ns synth sysex F0 7E 7F 06 01 F7",
            "2s pad gamepad-button 128 down",
            "2001ms pad gamepad-stick 131 -0.25",
            "2002ms pad gamepad-trigger 132 1",
            "3s desk artnet 32767 512 255 0",
        ]
    );
    assert_eq!(timeline.to_string().parse(), Ok(timeline));
}

/// ENG-14: a clock runs beside the lines after it.
#[test]
fn a_clock_that_runs_is_its_pulses() {
    let timeline = Timeline::parse("10ms drums start\n10ms drums clock 120 2\n+500ms pads note-on 36 100").unwrap();
    assert_eq!(timeline.entries.len(), 50);
    let at = |index: usize| (timeline.entries[index].at, timeline.entries[index].event.to_string());
    assert_eq!(at(0), (10_000_000, "start".to_owned()));
    assert_eq!(at(1), (10_000_000, "clock".to_owned()));
    assert_eq!(at(25), (510_000_000, "clock".to_owned()), "a beat is exact");
    assert_eq!(at(26), (510_000_000, "note-on 36 100".to_owned()));
    assert_eq!(at(49).0, 10_000_000 + 47 * 2_500_000_000 / 120);
    let record = "0s clock beat 4 12 4\n500ms clock transport lost\n";
    assert_eq!(Timeline::parse(record).unwrap().to_string(), record);
}

#[test]
fn every_line_with_a_mistake_is_reported() {
    let script = "\
soon pads clock
10ms
5ms pads note-on 36
20ms pads note-on 36 0
10ms pads clock
+1ms pads note-on 36 100 chan 9
+1ms pads note-on 128 100
+1ms pads strike 36
+1ms pads sysex F0 80 F7
+1ms \"pads clock
+1ms pads osc /a{ 1
+1ms pads osc /a [1 2
+1ms pads osc /a 5000000000
+1ms pads clock 5
+1ms pads cc 7 64 ch 16
+1ms pad gamepad-button 127 down
+1ms pad gamepad-button 128 held
+1ms pad gamepad-stick 128 -1.5
+1ms desk artnet 0 0 1
+1ms desk artnet 0 1 1 2 3";
    let errors = Timeline::parse(script).unwrap_err();
    let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let starts = [
        "line 1, column 1: `soon` is not a time; write a number with ns, us, ms or s",
        "line 2, column 5: missing here: a device",
        "line 3, column 1: `5ms` is before the line above, which is at 10ms",
        "line 4, column 22: `0` is not a velocity of a press (0 is a note-off), a whole number from 1 to 127",
        "line 5, column 1: `10ms` is before the line above, which is at 20ms",
        "line 6, column 26: `chan` is too much; only `ch` and a channel may follow",
        "line 7, column 19: `128` is not a note, a whole number from 0 to 127",
        "line 8, column 11: there is no message `strike`; there are note-on, note-off",
        "line 9, column 16: a sysex is F0, then bytes from 00 to 7F, then F7",
        "line 10, column 6: this \" is not closed on its line",
        "line 11, column 15: '{' may not appear in an OSC address",
        "line 12, column 18: this [ is not closed",
        "line 13, column 18: `5000000000` is not an OSC argument; write 1, 0.5, 1h",
        "line 14, column 17: `5` is not a tempo, a whole number from 20 to 999",
        "line 15, column 22: `16` is not a channel, a whole number from 0 to 15",
        "line 16, column 25: `127` is not a button, a whole number from 128 to 144",
        "line 17, column 29: `held` is not what a button does; write down or up",
        "line 18, column 28: `-1.5` is not a way, a number from -1 to 1",
        "line 19, column 20: `0` is not a DMX channel, a whole number from 1 to 512",
        "line 20, column 26: the line should end here",
    ];
    assert_eq!(told.len(), starts.len(), "{told:#?}");
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told}\n{start}");
    }
}

#[test]
fn times_are_exact() {
    assert_eq!(parse_amount("0.1s"), Some(100_000_000));
    assert_eq!(parse_amount("1.000000001s"), Some(1_000_000_001));
    assert_eq!(parse_amount("1.50ns"), None);
    assert_eq!(parse_amount("1.0ns"), Some(1));
    assert_eq!(parse_amount(".5s"), None);
    assert_eq!(parse_amount("5"), None);
    assert_eq!(parse_amount("99999999999s"), None);
}

#[test]
fn osc_arguments_say_their_type() {
    let cases = [
        ("1", OscArg::Int(1)),
        ("-1", OscArg::Int(-1)),
        ("1.0", OscArg::Float(1.0)),
        ("1f", OscArg::Float(1.0)),
        ("1e3", OscArg::Float(1000.0)),
        ("inf", OscArg::Float(f32::INFINITY)),
        ("-infd", OscArg::Double(f64::NEG_INFINITY)),
        ("5000000000h", OscArg::Long(5_000_000_000)),
        ("0.1d", OscArg::Double(0.1)),
        ("blob:", OscArg::Blob(vec![])),
        ("blob:00FF", OscArg::Blob(vec![0, 255])),
        ("color:01020304", OscArg::Color([1, 2, 3, 4])),
        ("midi:00903c64", OscArg::Midi([0, 0x90, 60, 100])),
        ("time:3.7", OscArg::Time { seconds: 3, fractional: 7 }),
        ("infinitum", OscArg::Inf),
    ];
    for (word, arg) in cases {
        assert_eq!(parse_arg_word(word), Some(arg), "{word}");
    }
    for word in ["", "x", "5000000000", "color:010203", "blob:0", "time:3", "é:1"] {
        assert_eq!(parse_arg_word(word), None, "{word}");
    }
}

#[test]
fn arrays_have_a_floor() {
    let nest = |depth| format!("0s x osc /a {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Timeline::parse(&nest(MAX_DEPTH)).is_ok());
    assert!(Timeline::parse(&nest(100_000)).is_err());
}

fn osc_arg() -> impl Strategy<Value = OscArg> {
    let finite = any::<f32>().prop_filter("finite", |value| value.is_finite());
    let double = any::<f64>().prop_filter("finite", |value| value.is_finite());
    let leaf = prop_oneof![
        any::<i32>().prop_map(OscArg::Int),
        finite.prop_map(OscArg::Float),
        any::<i64>().prop_map(OscArg::Long),
        double.prop_map(OscArg::Double),
        any::<String>().prop_map(OscArg::String),
        proptest::collection::vec(any::<u8>(), 0..8).prop_map(OscArg::Blob),
        any::<(u32, u32)>().prop_map(|(seconds, fractional)| OscArg::Time { seconds, fractional }),
        any::<char>().prop_map(OscArg::Char),
        any::<[u8; 4]>().prop_map(OscArg::Color),
        any::<[u8; 4]>().prop_map(OscArg::Midi),
        any::<bool>().prop_map(OscArg::Bool),
        Just(OscArg::Nil),
        Just(OscArg::Inf),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(OscArg::Array))
}

fn event() -> impl Strategy<Value = Event> {
    let is_sent = |address: &str| check_address(address).is_ok() || OscPattern::parse(address).is_ok();
    let osc = (
        "(/([!-\"$-)+.0-Z^-z|~\\\\-]{1,6}|[a?*]{1,3}|\\[a-c\\]|\\{a,b\\})){1,3}",
        proptest::collection::vec(osc_arg(), 0..5),
    )
        .prop_filter("an address", move |(address, _)| is_sent(address))
        .prop_map(|(address, args)| OscMessage::new(address, args).into());
    let gamepad = prop_oneof![
        (HidEvent::BUTTONS, any::<bool>()).prop_map(|(button, pressed)| HidEvent::Button { button, pressed }),
        (HidEvent::STICKS, -1.0f32..=1.0).prop_map(|(stick, value)| HidEvent::Stick { stick, value }),
        (HidEvent::TRIGGERS, 0.0f32..=1.0).prop_map(|(trigger, value)| HidEvent::Trigger { trigger, value }),
    ];
    let artnet = (0..=ArtNetChange::LAST_UNIVERSE, 1..=ArtNetChange::LAST_CHANNEL, any::<u8>(), any::<u8>())
        .prop_map(|(universe, channel, value, previous)| ArtNetChange { universe, channel, value, previous });
    prop_oneof![
        4 => midi_message().prop_map(Event::Midi),
        4 => osc,
        1 => gamepad.prop_map(Event::Hid),
        1 => artnet.prop_map(Event::ArtNet)
    ]
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back(
        lines in proptest::collection::vec((any::<u32>(), any::<String>(), event()), 0..6),
    ) {
        let mut at = 0;
        let entries = lines
            .into_iter()
            .map(|(wait, device, event)| {
                at += Nanos::from(wait);
                TimelineEntry { at, device, event }
            })
            .collect();
        let timeline = Timeline { entries };
        prop_assert_eq!(Timeline::parse(&timeline.to_string()), Ok(timeline));
    }

    #[test]
    fn no_text_makes_it_panic(script in "\\PC{0,60}", tail in "\\PC{0,30}") {
        let _ = Timeline::parse(&script);
        let _ = Timeline::parse(&format!("1ms pads {script}"));
        let _ = Timeline::parse(&format!("1ms pads osc /a {script}\n{tail}"));
    }
}
