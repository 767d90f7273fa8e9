use super::*;
use conductor_config as config;

fn config(text: &str) -> Config {
    config::parse(text, "c.toml").unwrap_or_else(|wrong| panic!("{wrong}")).config
}

fn assessed(before: &str, after: &str) -> Risk {
    assess(&config(before), &config(after)).unwrap_or_else(|error| panic!("{error}"))
}

/// The level, if a note contains `says`.
fn level(before: &str, after: &str, says: &str) -> Level {
    let risk = assessed(before, after);
    assert!(risk.notes.iter().any(|note| note.contains(says)), "no note says {says:?}: {risk:#?}");
    risk.level
}

fn denied(before: &str, after: &str) -> String {
    match assess(&config(before), &config(after)) {
        Err(Denied(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn on(note: u8, action: &str) -> String {
    format!("[[global_mappings]]\ntrigger = {{ type = 'Note', note = {note} }}\naction = {{ {action} }}\n")
}

const SHELL: &str = "type = 'Shell', command = '/bin/true', args = ['-a']";
const MODES: &str = "[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Mix'\n";

// ACT-3, FEA-22
#[test]
fn whatever_changes_about_a_program_is_privileged() {
    let before = on(36, SHELL);
    for (from, to) in [
        ("/bin/true", "/tmp/evil"),
        ("'-a'", "'-a', '-b'"),
        ("['-a']", "['-a'], shell = true"),
        ("['-a']", "['-a'], env = { LD_PRELOAD = '/tmp/x.so' }"),
        ("['-a']", "['-a'], working_dir = '/tmp'"),
        ("['-a']", "['-a'], timeout_ms = 3600000"),
        ("type = 'Shell', command", "type = 'Launch', app"),
        ("{ type = 'Note', note = 36 }", "{ type = 'MidiAny' }"),
        ("note = 36", "note = '0..127'"),
        ("note = 36 }", "note = 36, device = 'pads' }"),
        ("note = 36 }", "note = 36 }\npriority = 1"),
        ("note = 36 }", "note = 36 }\nconsume = true"),
        ("note = 36 }", "note = 36 }\ncondition = { type = 'Always' }"),
        ("{ type = 'Shell'", "{ type = 'Repeat', count = 9, action = { type = 'Shell'"),
    ] {
        let mut after = before.replace(from, to);
        assert_ne!(before, after, "{from}");
        after = if to.contains("Repeat") { after.replace("] }", "] } }") } else { after };
        assert_eq!(level(&before, &after, "starts a program: "), Level::Privileged, "{to}");
    }
    let twice = format!("{before}{before}");
    assert_eq!(level(&before, &twice, "starts a program"), Level::Privileged, "twice is not once");
    assert_eq!(level(&before, "", "removes global_mappings/0"), Level::Raised, "one that is gone starts nothing");
    let named = before.replace("trigger", "name = 'mine'\ndescription = 'd'\ntrigger");
    assert_eq!(assessed(&before, &named), Risk { level: Level::Usual, notes: vec![] });
}

#[test]
fn a_program_is_found_wherever_it_stands_and_under_every_name() {
    for action in [
        "type = 'sequence', actions = [{ type = 'Delay', ms = 1 }, { type = 'shell', command = '/bin/x' }]",
        "type = 'conditional', condition = { type = 'Never' }, then_action = { type = 'launch', app = '/bin/x' }",
        "type = 'Conditional', condition = { type = 'Never' }, then = { type = 'Suppress' }, else = { type = 'Repeat', \
         count = 2, action = { type = 'Shell', command = '/bin/x' } }",
    ] {
        assert_eq!(level("", &on(1, action), "\"/bin/x\" on Note 1"), Level::Privileged);
    }
    let text = on(1, "type = 'OscSend', target = 'a:1', address = '/x', args = ['Shell']");
    assert_eq!(assessed("", &text).level, Level::Raised, "a word is no program");
}

#[test]
fn what_lets_more_reach_a_program_is_privileged() {
    let program = on(36, SHELL);
    let osc = "[[global_mappings]]\ntrigger = { type = 'OscMessage', address = '/run' }\naction = { type = 'Shell', command = 'x' }\n";
    let pads = |more: &str| {
        format!("[[bindings]]\nalias = 'pads'\nmatchers = [{{ type = 'exact_name', value = 'P{more}' }}]\n")
    };
    let keys = "[[bindings]]\nalias = 'keys'\nname = 'K'\n";
    let listen = |host: &str| {
        format!("[[bindings]]\nalias = 'net'\nprotocol = 'osc'\ninput = {{ host = '{host}', port = 9 }}\n")
    };
    let of_pads = program.replace("note = 36", "note = 36, device = 'pads'");
    for (before, after, says) in [
        (format!("{}{osc}", listen("127.0.0.1")), format!("{}{osc}", listen("0.0.0.0")), "can start programs"),
        (format!("{keys}{osc}"), format!("{keys}{}{osc}", listen("0.0.0.0")), "\"net\" at 0.0.0.0:9"),
        (format!("{}{program}", pads("")), format!("{}{keys}{program}", pads("")), "\"keys\" can start programs"),
        (format!("{}{of_pads}", pads("")), format!("{}{of_pads}", pads("2")), "\"pads\" can start programs"),
        (
            format!("{}{program}", pads("")),
            format!("advanced_settings = {{ listen_mode = 'all' }}\n{}{program}", pads("")),
            "ports without a binding are heard",
        ),
        (format!("{}{program}", pads("")), program.clone(), "ports without a binding are heard"),
        (
            format!("advanced_settings = {{ ignore_ports = ['Evil*'] }}\n{program}"),
            program.clone(),
            "\"Evil*\" are left alone no longer",
        ),
    ] {
        let risk = assessed(&before, &after);
        assert_eq!(risk.level, Level::Privileged, "{before} -> {after}: {risk:?}");
        let said = risk.notes.iter().any(|note| note.contains(says) || note.contains("can start programs"));
        assert!(said, "{says}: {risk:?}");
    }
    // A name for a port that is heard already lets nothing more in.
    let risk = assessed(&program, &format!("{keys}{program}"));
    assert!(!risk.notes.iter().any(|note| note.contains("can start")), "{risk:?}");
}

#[test]
fn a_new_way_to_a_mode_in_which_programs_start_is_privileged() {
    let mode = format!("{MODES}[[modes.mappings]]\ntrigger = {{ type = 'Note', note = 1 }}\naction = {{ {SHELL} }}\n");
    let to_mix = on(2, "type = 'ModeChange', mode = 'Mix'");
    assert_eq!(level(&mode, &format!("{mode}{to_mix}"), "makes the mode \"Mix\" active"), Level::Privileged);
    let profile = "[[profiles]]\nname = 'p'\napps = ['a']\nmode = 'Mix'\n";
    assert_eq!(level(&mode, &format!("{mode}{profile}"), "the profile \"p\" makes the mode"), Level::Privileged);
    let first = format!(
        "[[modes]]\nname = 'Mix'\n[[modes.mappings]]\ntrigger = {{ type = 'Note', note = 1 }}\naction = {{ {SHELL} }}\n[[modes]]\nname = 'Play'\n"
    );
    assert_eq!(level(&mode, &first, "the start of the host makes the mode \"Mix\" active"), Level::Privileged);
    // Through a mode that could not become active.
    let chain = mode.replace("[[modes]]\nname = 'Mix'", "[[modes]]\nname = 'Via'\n[[modes.mappings]]\ntrigger = { type = 'Note', note = 3 }\naction = { type = 'ModeChange', mode = 'Mix' }\n[[modes]]\nname = 'Mix'");
    let to_via = on(2, "type = 'ModeChange', mode = 'Via'");
    assert_eq!(
        level(&chain, &format!("{chain}{to_via}"), "the mode \"Mix\", in which programs start, can become"),
        Level::Privileged
    );
    // In other modes it is the usual.
    assert_eq!(assessed(MODES, &format!("{MODES}{to_mix}")).level, Level::Usual);
    let asked = format!("{MODES}{}condition = {{ type = 'ModeIs', mode = 'Mix' }}\n", on(1, SHELL));
    assert_eq!(level(&asked, &format!("{asked}{to_mix}"), "makes the mode \"Mix\" active"), Level::Privileged);
}

#[test]
fn a_program_that_nothing_holds_back_any_more_is_privileged() {
    let program = on(36, SHELL);
    let guard = format!("{}consume = true\npriority = 5\n", on(36, "type = 'Suppress'"));
    let held = format!("{guard}{program}");
    assert_eq!(level(&held, &program, "is held back no longer by global_mappings/0"), Level::Privileged);
    let weaker = held.replace("consume = true", "consume = false");
    assert_eq!(level(&held, &weaker, "is held back no longer"), Level::Privileged);
    let any = held.replacen("{ type = 'Note', note = 36 }", "{ type = 'MidiAny' }", 1);
    assert_eq!(level(&any, &program, "is held back no longer"), Level::Privileged);
    // Of equals, the first in the file is asked first.
    let first = guard.replace("priority = 5\n", "");
    let (held, after) = (format!("{first}{program}"), format!("{program}{first}"));
    assert_eq!(level(&held, &after, "is held back no longer"), Level::Privileged);
}

#[test]
fn a_program_behind_a_consumed_press_is_held_back_whatever_it_waits_for() {
    let guard = format!("{}consume = true\npriority = 5\n", on(36, "type = 'Suppress'"));
    let waits_for = |trigger: &str| format!("[[global_mappings]]\ntrigger = {{ {trigger} }}\naction = {{ {SHELL} }}\n");
    let held_back = [
        "type = 'Note', note = 36, on = 'release'",
        "type = 'LongPress', note = 36",
        "type = 'DoubleTap', note = 36",
        "type = 'NoteChord', notes = [35, 36]",
        "type = 'NoteSequence', notes = [36, 38]",
    ];
    for trigger in held_back {
        let program = waits_for(trigger);
        let held = format!("{guard}{program}");
        assert_eq!(
            level(&held, &program, "is held back no longer by global_mappings/0"),
            Level::Privileged,
            "{trigger}"
        );
    }
    let other = waits_for("type = 'LongPress', note = 37");
    assert_eq!(assessed(&format!("{guard}{other}"), &other).level, Level::Raised, "what is removed, alone");
    // Only what suppresses keeps the release as well.
    let release = waits_for("type = 'Note', note = 36, on = 'release'");
    let held = format!("{guard}{release}");
    let weaker = held.replacen("type = 'Suppress'", "type = 'Delay', ms = 1", 1);
    assert_eq!(level(&held, &weaker, "is held back no longer"), Level::Privileged);
}

#[test]
fn what_is_gone_or_written_over_or_gets_no_events_is_raised() {
    let show = format!(
        "{MODES}[[modes.mappings]]\nname = 'kick'\ntrigger = {{ type = 'Note', note = 1 }}\naction = {{ type = 'Suppress' }}\n"
    );
    assert_eq!(level(&show, "", "removes modes/1 (Mix) with 1 mapping"), Level::Raised);
    assert_eq!(level(&show, MODES, "removes modes/1/mappings/0 (kick): Note 1 in mode \"Mix\""), Level::Raised);
    let other = show.replace("Suppress'", "Delay', ms = 1");
    assert_eq!(level(&show, &other, "changes modes/1/mappings/0 (kick)"), Level::Raised);
    assert_eq!(level(&show, &show.replace("note = 1", "note = 2"), "changes modes/1/mappings/0"), Level::Raised);
    assert_eq!(level(&show, &show.replace("'Mix'", "'Mixing'"), "calls the mode \"Mix\" \"Mixing\""), Level::Raised);
    let never = show.replace("note = 1 }", "note = 1 }\ncondition = { type = 'Never' }");
    assert_eq!(level(&show, &never, "changes modes/1/mappings/0 (kick)"), Level::Raised);
    let over = format!(
        "{show}[[global_mappings]]\npriority = 9\nconsume = true\ntrigger = {{ type = 'MidiAny' }}\naction = {{ type = 'Suppress' }}\n"
    );
    assert_eq!(level(&show, &over, "keeps events from modes/1/mappings/0 (kick)"), Level::Raised);
    assert_eq!(level("[[bindings]]\nalias = 'b'\nname = 'x'\n", "", "removes the binding \"b\""), Level::Raised);
    let profile = format!("{MODES}[[profiles]]\nname = 'p'\napps = ['a']\nmode = 'Mix'\n");
    assert_eq!(level(&profile, MODES, "removes the profile \"p\""), Level::Raised);
    assert_eq!(level(&profile, &profile.replace("['a']", "['b']"), "changes the profile \"p\""), Level::Raised);
    assert_eq!(assessed(MODES, &show).level, Level::Usual, "what is added is the usual");
}

#[test]
fn typing_destinations_bindings_and_settings_are_raised() {
    for (text, says) in [
        (on(1, "type = 'Text', text = 'curl x|sh'"), "types \"curl x|sh\""),
        (on(1, "type = 'Keystroke', keys = ['meta', 'r']"), "strikes the keys meta+r"),
        (on(1, "type = 'MouseClick', x = 1, y = 2"), "clicks with the mouse"),
        (on(1, "type = 'MouseMove', x = 1, y = 2, motion = 'to'"), "moves the pointer"),
        (on(1, "type = 'VirtualGamepad', button = 'south'"), "plays the virtual gamepad"),
        (
            on(1, "type = 'OscSend', target = '10.0.0.1:9', address = '/x'"),
            "sends to a new destination: OscSend to \"10.0.0.1:9\"",
        ),
        (on(1, "type = 'web:Post', url = 'http://evil'"), "web:Post with"),
        (on(1, "type = 'MidiForward', target = 'synth'"), "sends MIDI to \"synth\""),
        (
            on(1, "type = 'SendMidi', target = 's', message_type = 'SysEx', bytes = 'F0 7D F7'"),
            "sends the SysEx message",
        ),
        ("advanced_settings = { probe_identity = true }".to_owned(), "probe_identity"),
        (
            "[[bindings]]\nalias = 'n'\nprotocol = 'osc'\ninput = { host = '0.0.0.0', port = 9 }".to_owned(),
            "which other machines can reach",
        ),
    ] {
        assert_eq!(level("", &text, says), Level::Raised);
    }
    // The same place by another message is no new destination.
    let osc = |address: &str| on(1, &format!("type = 'OscSend', target = '10.0.0.1:9', address = '{address}'"));
    assert_eq!(assessed(&osc("/x"), &format!("{}{}", osc("/x"), osc("/y"))).level, Level::Usual);
}

// FEA-22
#[test]
fn to_hear_what_is_typed_is_privileged() {
    let keyboard = |name: &str, more: &str| {
        format!("[[bindings]]\nalias = 'keys'\nprotocol = 'keyboard'\nname = '{name}'\n{more}")
    };
    let says = "hears what is typed at a keyboard, under the name \"keys\"";
    assert_eq!(level("", &keyboard("Planck", ""), says), Level::Privileged);
    assert_eq!(level(&keyboard("Planck", ""), &keyboard("K", ""), says), Level::Privileged);
    assert_eq!(
        level(&keyboard("Planck", ""), &keyboard("Planck", "grab = true\n"), "for itself alone"),
        Level::Privileged
    );
    let removed = assessed(&keyboard("Planck", ""), "");
    assert_eq!(removed.level, Level::Raised);
    let mouse = "[[bindings]]\nalias = 'm'\nprotocol = 'mouse'\nname = 'Ball'\n";
    assert_eq!(level("", mouse, "a mouse"), Level::Raised);
}

#[test]
fn another_meaning_of_a_name_is_privileged() {
    let model = |url: &str| {
        format!("[models.fast]\nprovider = 'openai-compatible'\nmodel = 'm'\nurl = '{url}'\nsecret = 'key'\n")
    };
    for (before, after) in [
        (model("http://localhost:1"), model("http://evil:1")),
        (model("http://localhost:1"), model("http://localhost:1").replace("'key'", "'other'")),
        (model("http://localhost:1"), model("http://localhost:1").replace("openai-compatible", "mine")),
        (String::new(), model("http://evil")),
    ] {
        assert_eq!(level(&before, &after, "the model \"fast\""), Level::Privileged);
    }
    let desk = |host: &str| {
        format!("[[bindings]]\nalias = 'desk'\nprotocol = 'osc'\noutput = {{ host = '{host}', port = 8 }}\n")
    };
    let says = "what is sent to \"desk\" goes to \"10.0.0.9:8\" instead of \"127.0.0.1:8\"";
    assert_eq!(level(&desk("127.0.0.1"), &desk("10.0.0.9"), says), Level::Privileged);
    // An alias that looks like the address that it stands in for.
    let to = on(1, "type = 'OscSend', target = '127.0.0.1:8', address = '/x'");
    let alias = desk("10.0.0.9").replace("'desk'", "'127.0.0.1:8'");
    assert_eq!(level(&to, &format!("{alias}{to}"), "which is \"10.0.0.9:8\""), Level::Privileged);
}

#[test]
fn what_is_sent_elsewhere_is_privileged() {
    let osc = |target: &str, path: &str| on(1, &format!("type = 'OscSend', target = {target}, address = '{path}'"));
    let both =
        format!("{}{}", osc("'10.0.0.1:9'", "/x"), on(2, "type = 'OscSend', target = '10.0.0.2:9', address = '/x'"));
    let moved =
        format!("{}{}", osc("'10.0.0.2:9'", "/x"), on(2, "type = 'OscSend', target = '10.0.0.2:9', address = '/x'"));
    let says = "what Note 1 sends goes to \"10.0.0.2:9\" instead of \"10.0.0.1:9\"";
    assert_eq!(level(&both, &moved, says), Level::Privileged, "to where something else is sent already");
    assert_eq!(level(&osc("'10.0.0.1:9'", "/x"), &osc("'10.0.0.2:9'", "/y"), says), Level::Privileged);
    let list = osc("['10.0.0.1:9', '10.0.0.3:9']", "/x");
    assert_eq!(level(&list, &osc("['10.0.0.2:9', '10.0.0.3:9']", "/x"), says), Level::Privileged);
    let deep =
        on(1, "type = 'Sequence', actions = [{ type = 'osc-output:OscSend', target = '10.0.0.2:9', address = '/x' }]");
    assert_eq!(level(&osc("'10.0.0.1:9'", "/x"), &deep, says), Level::Privileged);
    // To one more place, or to one less.
    let more = osc("['10.0.0.1:9', '10.0.0.2:9']", "/x");
    assert_eq!(level(&osc("'10.0.0.1:9'", "/x"), &more, "sends to a new destination"), Level::Raised);
    assert_eq!(level(&more, &osc("'10.0.0.1:9'", "/x"), "changes global_mappings/0"), Level::Raised);
    // By a mapping that waits for something a little different, in another mode, or for something else: what is new is
    // an address that nothing was sent to, or the same events.
    let (here, there) = (osc("'10.0.0.1:9'", "/x"), "type = 'OscSend', target = '10.0.0.2:9', address = '/x'");
    let harder = on(1, there).replace("note = 1", "note = 1, velocity_range = [3, 127]");
    let elsewhere = format!("[[modes]]\nname = 'Live'\n{}", on(1, there).replace("global_mappings", "modes.mappings"));
    let says = "sends to \"10.0.0.2:9\", while Note 1 no longer sends to \"10.0.0.1:9\"";
    for after in [&harder, &elsewhere, &on(40, there)] {
        assert_eq!(level(&here, after, says), Level::Privileged, "{after}");
    }
    let second = on(2, there);
    let says = "Note 1 sends to \"10.0.0.2:9\", while Note 1 no longer sends to \"10.0.0.1:9\"";
    assert_eq!(level(&format!("{here}{second}"), &format!("{second}{harder}"), says), Level::Privileged);
    // What is sent to the same places by other controls, and what is only added or only taken away.
    assert_eq!(
        level(&here, &osc("'10.0.0.1:9'", "/x").replace("note = 1", "note = 5"), "global_mappings/0"),
        Level::Raised
    );
    assert_eq!(level(&format!("{here}{second}"), &second, "global_mappings/0"), Level::Raised);
    let third = on(30, there);
    assert_eq!(level(&format!("{here}{second}"), &format!("{second}{third}"), "global_mappings/0"), Level::Raised);
    // Actions that the host knows nothing about, by what looks like an address or has its name.
    for (one, other) in [
        ("url = 'http://a/x'", "url = 'http://b/x'"),
        ("to = { at = 'a.example:80' }", "to = { at = 'b.example:80' }"),
        ("hook = '10.0.0.1'", "hook = '10.0.0.2'"),
        ("servers = 1, server = ['a', 'b']", "servers = 1, server = ['a', 'c']"),
    ] {
        let of = |params: &str| on(1, &format!("type = 'mine:Post', {params}"));
        assert_eq!(level(&of(one), &of(other), "instead of"), Level::Privileged, "{other}");
    }
    let scene = |name: &str| on(1, &format!("type = 'mine:Post', url = 'http://a/x', scene = '{name}'"));
    assert_eq!(level(&scene("dark"), &scene("bright"), "sends to a new destination"), Level::Raised);
    // The same place under another name, and another message.
    assert_eq!(assessed(&osc("'10.0.0.1:9'", "/x"), &osc("'10.0.0.1:9'", "/y")).level, Level::Raised);
    let desk = "[[bindings]]\nalias = 'desk'\nprotocol = 'osc'\noutput = { host = '10.0.0.1', port = 9 }\n";
    let (old, new) = (format!("{}{desk}", osc("'10.0.0.1:9'", "/x")), format!("{}{desk}", osc("'desk'", "/x")));
    assert_eq!(assessed(&old, &new).level, Level::Raised);
}

#[test]
fn switching_a_feature_is_privileged_and_nothing_else_of_it_is_for_plans() {
    let (on, off) = ("[features.x]\nenabled = true\n", "[features.x]\nenabled = false\n");
    assert_eq!(level(on, off, "switches the feature \"x\" off"), Level::Privileged);
    assert_eq!(level("", off, "switches the feature \"x\" off"), Level::Privileged);
    assert_eq!(level(off, on, "switches the feature \"x\" on"), Level::Privileged);
    assert_eq!(level(off, "", "switches the feature \"x\" on"), Level::Privileged);
    assert_eq!(assessed("", on).level, Level::Usual, "it says what is so anyway");
    for (before, after, says) in [
        ("", "[features.x]\npath = 'x.wasm'", "features/x/path"),
        ("[features.x]\npath = 'x.wasm'", "[features.x]\npath = 'y.wasm'", "features/x/path"),
        ("[features.x]\npath = 'x.wasm'", "", "features/x/path"),
        ("", "[features.x.grants]\nnotify = true", "a person grants that"),
        ("[features.x.grants]\nudp = ['a:1']", "[features.x.grants]\nudp = ['a:2']", "a person grants that"),
        ("[features.x.grants]\nudp = ['a:1']", "", "a person grants that"),
        ("features = { x = { grants = { alert = true } } }", "features.x.grants.alert = false", "a person grants that"),
        ("", "tools = { allowed = ['*'] }", "[tools]"),
        ("[tools]\nallowed = []", "", "[tools]"),
        ("", "tools.per_minute.privileged = 600", "[tools]"),
        ("", "[api]\nhttp_port = 0", "[api]"),
        ("", "mcp.elicitation = 'all'", "[mcp]"),
    ] {
        assert!(denied(before, after).contains(says), "{before} -> {after}");
    }
    // What means the same changes nothing.
    assert!(assess(&config(""), &config("[tools]\n[mcp]\nelicitation = 'off'\n[features.y]\ngrants = {}")).is_ok());
}

#[test]
fn a_table_that_nobody_has_thought_of_is_denied() {
    let table = serde_json::to_value(Config::default()).unwrap();
    let known: Vec<&str> = table.as_object().unwrap().keys().map(String::as_str).collect();
    let policy: Vec<&str> = known.into_iter().filter(|name| !PLANNABLE.contains(name)).collect();
    assert!(policy.len() >= 3, "{policy:?}");
    // A change of each; a new table needs one more.
    let changes = [
        ("tools", "tools.allowed = []"),
        ("api", "api.http_port = 0"),
        ("mcp", "mcp.tools = 'all'"),
        ("chat", "chat.dollars_per_day = 1.5"),
        ("llm", "llm.local_only = true"),
    ];
    for name in policy {
        let change = changes.iter().find(|(known, _)| *known == name).map(|(_, change)| *change);
        let change = change.unwrap_or_else(|| panic!("no change of [{name}] is written here"));
        assert!(denied("", change).contains(&format!("[{name}]")), "{change}");
    }
}

#[test]
fn old_spellings_and_defaults_mean_the_same() {
    let today =
        "[[bindings]]\nalias = 'pads'\nprotocol = 'midi'\nmatchers = [{ type = 'name_contains', value = 'Pads' }]\n";
    for (before, after) in [
        ("[[devices]]\nalias = 'pads'\nmatchers = [{ type = 'NameContains', value = 'Pads' }]\n", today),
        (
            "[[global_mappings]]\ntrigger = { type = 'note', note = 1 }\naction = { type = 'shell', command = 'x', env = { A = '1', B = '2' } }",
            "[[global_mappings]]\npriority = 0\nconsume = false\ntrigger = { note = '1..1', velocity_range = [0, 127], type = 'Note' }\n\
             action = { env = { B = '2', A = '1' }, timeout_ms = 10000, type = 'Shell', command = 'x', args = [], shell = false }",
        ),
    ] {
        assert_eq!(assessed(before, after), Risk { level: Level::Usual, notes: vec![] });
    }
}

#[test]
fn many_notes_of_one_kind_are_a_few_and_a_count() {
    let all: String = (0..100).map(|note| on(note, &format!("type = 'Shell', command = '/bin/{note}'"))).collect();
    let risk = assessed("", &all);
    assert_eq!(risk.notes.len(), MAX_SHOWN + 1, "{risk:?}");
    assert_eq!(risk.notes[MAX_SHOWN], "and 92 more programs that mappings start");
}

/// Each mode leads to the next, the last of them to a program: every one is looked at once.
#[test]
fn a_chain_of_very_many_modes_is_assessed_in_its_length() {
    let chain = |last: &str| {
        let modes = (0..20_000).map(|n| {
            let action =
                if n == 19_999 { last.to_owned() } else { format!("type = 'ModeChange', mode = 'm{}'", n + 1) };
            format!("[[modes]]\nname = 'm{n}'\n{}", on(1, &action).replace("global_mappings", "modes.mappings"))
        });
        config(&modes.collect::<String>())
    };
    let (done, risk) = std::sync::mpsc::channel();
    let circle = "type = 'ModeChange', mode = 'm0'";
    std::thread::spawn(move || {
        let before = chain("type = 'Suppress'");
        [SHELL, circle].iter().try_for_each(|last| done.send(assess(&before, &chain(last)).map(|risk| risk.level)))
    });
    let next = || risk.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends").unwrap();
    assert_eq!(next(), Level::Privileged);
    assert!(next() < Level::Privileged, "a circle in which nothing starts");
}

#[test]
fn so_many_mappings_that_they_cannot_be_compared_are_no_way_around() {
    let consuming = |count: u32| -> String {
        (0..count)
            .map(|n| format!("{}consume = true\npriority = {n}\n", on((n % 100) as u8, "type = 'Suppress'")))
            .collect()
    };
    let (before, after) = (consuming(1200) + &on(5, SHELL), consuming(1199) + &on(5, SHELL));
    assert_eq!(level(&before, &after, "too many of them"), Level::Privileged);
}

#[test]
fn what_changes_a_variable_starts_the_programs_that_wait_for_it() {
    let waits = "[[variables]]\nname = 'x'\ntype = 'boolean'\n[[bindings]]\nalias = 'pads'\nmatchers = [{ type = 'exact_name', value = 'Pads' }]\n\
        [[global_mappings]]\ntrigger = { type = 'Variable', variable = 'x' }\naction = { type = 'Shell', command = '/bin/true' }\n";
    let note = |action: &str| {
        format!(
            "{waits}[[global_mappings]]\ntrigger = {{ type = 'Note', note = 1, device = 'pads' }}\naction = {action}\n"
        )
    };
    let before = note("{ type = 'Suppress' }");
    let after = note("{ type = 'ToggleVariable', variable = 'x' }");
    let says = "starts a program: what waits for the variable \"x\" on Note 1";
    assert_eq!(level(&before, &after, says), Level::Privileged);
}

/// A mapping of note 1.
fn pad(action: &str) -> String {
    on(1, action)
}

const SETS: &str = "type = 'SetVariable', variable = 'armed', value = true";
const ARMED: &str =
    "[[variables]]\nname = 'armed'\ntype = 'boolean'\n[[variables]]\nname = 'other'\ntype = 'boolean'\n";

#[test]
fn what_changes_a_variable_that_a_program_asks_for_starts_it_as_well() {
    let says = "starts a program: what waits for the variable \"armed\" on Note 1";
    let shell = |more: &str| on(36, &format!("{SHELL}{more}"));
    let is = "condition = { type = 'VariableIs', variable = 'armed' }\n";
    let holds = "condition = { type = 'Expression', holds = 'armed > 0 and not other' }\n";
    let nested = "condition = { type = 'Not', condition = { type = 'And', conditions = [{ type = 'VariableIs', variable = 'armed' }] } }\n";
    let inside = on(
        36,
        &format!(
            "type = 'Conditional', condition = {{ type = 'VariableIs', variable = 'armed' }}, then = {{ {SHELL} }}"
        ),
    );
    let chain = "[[global_mappings]]\ntrigger = { type = 'Note', note = 9 }\naction = { type = 'SetVariable', variable = 'other', value = '{armed}' }\n\
        [[global_mappings]]\ntrigger = { type = 'Variable', variable = 'other' }\naction = { type = 'Launch', app = 'x' }\n";
    let arguments = on(36, "type = 'Shell', command = '/bin/echo', args = ['level {armed}']");
    let ways = "[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Hidden'\n[[modes.mappings]]\ntrigger = { type = 'Note', note = 2 }\naction = { type = 'Launch', app = 'x' }\n\
        [[global_mappings]]\ntrigger = { type = 'Variable', variable = 'armed' }\naction = { type = 'ModeChange', mode = 'Hidden' }\n";
    for programs in [
        format!("{}{is}", shell("")),
        format!("{}{holds}", shell("")),
        format!("{}{nested}", shell("")),
        inside,
        chain.to_owned(),
        arguments,
        ways.to_owned(),
    ] {
        let before = format!("{ARMED}{programs}{}", pad("type = 'Suppress'"));
        let after = format!("{ARMED}{programs}{}", pad(SETS));
        assert_eq!(level(&before, &after, says), Level::Privileged, "{programs}");
        let other = format!("{ARMED}{programs}{}", pad("type = 'ModeChange', mode = 'Play'"));
        if programs.contains("modes") {
            assert!(assessed(&before, &other).level < Level::Privileged, "{programs}");
        }
    }
    // Of a variable that no program has to do with, nothing is said.
    let apart = format!("{ARMED}{}", shell(""));
    let risk = assessed(&format!("{apart}{}", pad("type = 'Suppress'")), &format!("{apart}{}", pad(SETS)));
    assert_eq!(risk.level, Level::Raised, "{risk:#?}");
}

#[test]
fn what_a_variable_is_at_first_is_privileged_where_programs_ask_for_it() {
    let waits = format!("{}condition = {{ type = 'VariableIs', variable = 'armed' }}\n", on(36, SHELL));
    let before = format!("{ARMED}{waits}");
    let armed = before.replacen("type = 'boolean'", "type = 'boolean'\ninitial = true", 1);
    let says = "changes the variable \"armed\", on which programs depend: ";
    assert_eq!(level(&before, &armed, says), Level::Privileged);
    let number = before.replacen("type = 'boolean'", "type = 'number'\nmin = 1\nmax = 2", 1);
    assert_eq!(level(&before, &number, says), Level::Privileged);
    let (of_other, removed) = (
        before.replace("name = 'other'\n", "name = 'other'\ninitial = true\n"),
        before.replace("[[variables]]\nname = 'other'\ntype = 'boolean'\n", ""),
    );
    assert_eq!(level(&before, &of_other, "changes the variable \"other\": "), Level::Raised);
    assert_eq!(level(&before, &removed, "removes the variable \"other\""), Level::Raised);
}
