//! Configurations that are read: today's form, old forms, and what absent keys mean.

use super::super::*;
use super::EVERYTHING;
use conductor_package::Grants;

fn read(text: &str) -> Config {
    parse(text, "config.toml").map_err(|wrong| wrong.to_string()).unwrap().config
}

/// A MIDI device that these tell in both directions.
fn midi(matchers: Vec<Matcher>, name: Option<&str>) -> Connection {
    let name = name.map(str::to_owned);
    Connection::Midi {
        matchers,
        name,
        input: None,
        output: None,
        channels: None,
        virtual_port: None,
        max_bytes_per_sec: None,
        after_sysex_ms: None,
    }
}

/// The configuration that a mapping's trigger and action make up.
fn mapping(trigger: &str, action: &str) -> Mapping {
    let text = format!("[[global_mappings]]\ntrigger = {{ {trigger} }}\naction = {{ {action} }}\n");
    (*read(&text).global_mappings[0]).clone()
}

#[test]
fn everything_is_read_without_a_warning() {
    let loaded = parse(EVERYTHING, "config.toml").map_err(|wrong| wrong.to_string()).unwrap();
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let config = loaded.config;
    assert_eq!(config.advanced_settings.listen_mode, ListenMode::All);
    assert_eq!(config.bindings.len(), 11);
    assert_eq!(config.modes[0].mappings[0].priority, -5);
    let profile = &config.profiles[0];
    assert_eq!((profile.apps.len(), profile.title.as_deref(), &*profile.mode), (2, Some("mix"), "Live"));

    let light = &config.lights[0];
    assert_eq!((light.mode.as_deref(), light.blink.as_deref()), (Some("Live"), Some("level > 0.9 and playing")));
    assert_eq!(light.shows.calculated().map(|(key, _)| key).collect::<Vec<_>>(), ["velocity"]);

    let trigger = &config.modes[0].mappings[0].trigger;
    assert_eq!(trigger.device.as_deref(), Some("pads"));
    let expected = TriggerEvent::Note {
        note: NoteRange::new(36, 51).unwrap(),
        velocity_range: Bounds::new(1, 100).unwrap(),
        on: Some(Edge::Both),
        channel: Channel::new(9),
    };
    assert_eq!(trigger.event, expected);

    let Action::Feature { type_name, params } = &config.global_mappings[3].action else {
        panic!("not the action of a feature");
    };
    assert_eq!(type_name, "osc-output:OscSend");
    let expected = serde_json::json!({
        "target": "127.0.0.1:9000", "address": "/x", "args": [1, 2.5, "three", { "four": true }],
    });
    assert_eq!(*params, expected);

    let grants = &config.features["osc-output"].grants;
    assert_eq!(grants.udp[1].to_string(), "[::1]:*");
    assert_eq!(grants.programs[0].to_string(), "network read=/home/me/.llm HOME=/home/me /usr/bin/llm -m 'a b'");
}

#[test]
fn what_is_absent_has_its_default() {
    assert_eq!(read(""), Config::default());
    let settings = AdvancedSettings {
        listen_mode: ListenMode::Configured,
        max_midi_ports: 32,
        ignore_ports: vec![],
        probe_identity: false,
        short_time_slices: true,
        realtime_priority: None,
    };
    assert_eq!(read("[advanced_settings]").advanced_settings, settings);

    let binding = &read("[[bindings]]\nalias = 'a'").bindings[0];
    assert!(binding.enabled);
    assert_eq!((&binding.connection, binding.max_events_per_sec), (&midi(vec![], None), 10_000));
    let Connection::Hid { dead_zone, .. } = read("[[bindings]]\nalias = 'a'\nprotocol = 'hid'").bindings[0].connection
    else {
        panic!("no gamepad")
    };
    assert_eq!(dead_zone, 0.1);
    let keyboard = &read("[[bindings]]\nalias = 'a'\nprotocol = 'keyboard'").bindings[0].connection;
    assert_eq!(*keyboard, Connection::Keyboard { matchers: vec![], name: None, grab: false });
    let artnet = &read("[[bindings]]\nalias = 'a'\nprotocol = 'artnet'\ninput = {}").bindings[0].connection;
    let input = ArtNetInput { host: "127.0.0.1".to_owned(), port: 6454, allow: vec![] };
    assert_eq!(*artnet, Connection::ArtNet { input: Some(input), output: None });

    let found = mapping("type = 'CC', cc = 1", "type = 'Suppress'");
    assert_eq!((found.priority, found.consume), (0, false));
    let expected =
        TriggerEvent::CC { cc: ControllerRange::new(1, 1).unwrap(), value_range: DataBounds::FULL, channel: None };
    assert_eq!(found.trigger.event, expected);

    let feature = &read("[features.x]").features["x"];
    assert!(feature.enabled && feature.path.is_none());
    assert_eq!(feature.grants, Grants::default());
}

// ACT-1, CFG-1: the names that the original had, however deep they stand.
#[test]
fn a_conditional_is_read_by_its_old_names() {
    let today = "type = 'Conditional', condition = { type = 'Never' }, then = { type = 'Delay', ms = 1 }, \
                 else = { type = 'Suppress' }";
    let old = "type = 'conditional', condition = { type = 'Never' }, then_action = { type = 'Delay', ms = 1 }, \
               else_action = { type = 'Suppress' }";
    let short = "type = 'Conditional', if = { type = 'Never' }, then = { type = 'Delay', ms = 1 }, \
                 else = { type = 'Suppress' }";
    let action = |text: &str| mapping("type = 'MidiAny'", text).action;
    let around = |inner: &str| {
        format!(
            "type = 'Sequence', actions = [{{ type = 'repeat', count = 2, action = {{ type = 'Conditional', \
             condition = {{ type = 'Always' }}, then = {{ {inner} }} }} }}]"
        )
    };
    for other in [old, short] {
        assert_eq!(action(other), action(today));
        assert_eq!(action(&around(other)), action(&around(today)));
    }
    let Action::Conditional(Conditional { condition, otherwise, .. }) = action(today) else { panic!() };
    assert_eq!((condition, *otherwise.unwrap()), (Condition::Never {}, Action::Suppress(Suppress {})));
    let in_mode =
        format!("[[modes]]\nname = 'A'\n[[modes.mappings]]\ntrigger = {{ type = 'MidiAny' }}\naction = {{ {old} }}");
    assert_eq!(read(&in_mode).modes[0].mappings[0].action, action(today));
    // What a feature calls its parameters is its own.
    let Action::Feature { params, .. } = action("type = 'x:Do', if = 1, then_action = 2") else { panic!() };
    assert_eq!(params, serde_json::json!({ "if": 1, "then_action": 2 }));
}

#[test]
fn the_oldest_form_is_a_binding_called_main() {
    let config = read("[device]\nname = \"Mikro\"\n");
    let expected = Binding {
        alias: "main".to_owned(),
        description: None,
        enabled: true,
        max_events_per_sec: 10_000,
        connection: midi(vec![Matcher::NameContains { value: "Mikro".to_owned() }], Some("Mikro")),
    };
    assert_eq!(config.bindings, [expected]);
}

#[test]
fn old_and_new_bindings_stand_in_the_order_of_the_file() {
    let text = "
        [[bindings]]
        alias = 'a'
        [device]
        name = 'b'
        [[devices]]
        alias = 'c'
        [[bindings]]
        alias = 'd'
    ";
    let aliases: Vec<_> = read(text).bindings.into_iter().map(|binding| binding.alias).collect();
    assert_eq!(aliases, ["a", "main", "c", "d"]);
}

// ADR-009: in the original, an instrument's matchers told its output alone.
#[test]
fn an_old_direction_says_what_the_matchers_tell() {
    let told = |direction: &str, by: &str| {
        let text = format!("[[devices]]\nalias = 'fm8'\n{by}\ndirection = '{direction}'");
        let Connection::Midi { matchers, output, .. } = read(&text).bindings.remove(0).connection else { panic!() };
        (matchers.len(), output.map(|side| side.matchers))
    };
    let by_name = "matchers = [{ type = 'name_contains', value = 'FM8' }]";
    let expected = vec![Matcher::NameContains { value: "FM8".to_owned() }];
    for by in [by_name, "name = 'FM8'"] {
        assert_eq!(told("output", by), (0, Some(expected.clone())));
        assert_eq!((told("input", by), told("bidirectional", by)), ((1, None), (1, None)));
    }
}

// The documented examples of the original system: both spellings, every matcher.
#[test]
fn matchers_are_read_in_both_spellings() {
    for (old, new) in [
        ("type = 'CoreMidiUniqueId', value = -5", "type = 'core_midi_unique_id', value = -5"),
        (
            "type = 'UsbIdentifier', vendor_id = 0x0763, product_id = 0x0192",
            "type = 'usb_identifier', vendor_id = 1891, product_id = 402",
        ),
        ("type = 'UsbTopology', bus = 1, address = 4", "type = 'usb_topology', bus = 1, address = 4"),
        ("type = 'PlatformId', value = 'x'", "type = 'platform_id', value = 'x'"),
        (
            "type = 'SysExIdentity', manufacturer = [0, 33, 9], family = 1, model = 2",
            "type = 'sys_ex_identity', manufacturer = [0, 33, 9], family = 1, model = 2",
        ),
    ] {
        let matcher = |written: &str| {
            let text = format!("[[bindings]]\nalias = 'a'\nmatchers = [{{ {written} }}]");
            read(&text).bindings.remove(0).connection
        };
        assert_eq!(matcher(old), matcher(new));
    }
}

#[test]
fn a_name_counts_only_where_there_is_no_matcher() {
    let text = "[[bindings]]\nalias = 'a'\nname = 'x'\nmatchers = [{ type = 'ExactName', value = 'y' }]";
    let Connection::Midi { matchers, .. } = &read(text).bindings[0].connection else {
        panic!("not MIDI");
    };
    let expected = Matcher::ExactName { value: "y".to_owned() };
    assert_eq!(*matchers, [expected]);
}

#[test]
fn every_spelling_of_a_type_is_read() {
    for (spelling, today) in [("note", "Note"), ("Note", "Note")] {
        let rest = "note = 1";
        assert_eq!(
            mapping(&format!("type = '{spelling}', {rest}"), "type = 'suppress'"),
            mapping(&format!("type = '{today}', {rest}"), "type = 'Suppress'"),
        );
    }
    let sent = "target = 'x', message_type = 'ProgramChange', program = 1";
    for spelling in ["SendMIDI", "send_midi"] {
        assert_eq!(
            mapping("type = 'MidiAny'", &format!("type = '{spelling}', {sent}")),
            mapping("type = 'midi_any'", &format!("type = 'SendMidi', {sent}")),
        );
    }
}

#[test]
fn curves_have_names_or_a_table() {
    let forward = |curve: &str| {
        let action = format!("type = 'MidiForward', target = 'x', transform = {{ curve = {curve} }}");
        let Action::MidiForward(forward) = mapping("type = 'MidiAny'", &action).action else {
            panic!("not forwarded");
        };
        forward.transform.unwrap()
    };
    let expected = MidiTransform { curve: Curve::Logarithmic, ..MidiTransform::default() };
    assert_eq!(forward("'logarithmic'"), expected);

    let numbers: Vec<String> = (0..128).rev().map(|number| number.to_string()).collect();
    let Curve::Lut(lut) = forward(&format!("{{ lut = [{}] }}", numbers.join(", "))).curve else {
        panic!("not a table");
    };
    assert_eq!((lut.numbers()[0], lut.numbers()[127]), (127, 0));
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let config = read(EVERYTHING);
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    assert_eq!(read(&toml::to_string(&config).unwrap()), config);
}

#[test]
fn a_faulty_action_of_the_host_never_passes_for_one_of_a_feature() {
    for name in HOST_ACTIONS {
        let json = serde_json::json!({ "type": name, "no such key": 1 });
        assert!(serde_json::from_value::<Action>(json).is_err(), "{name}");
    }
}

#[test]
fn the_host_actions_are_those_of_the_schema() {
    let schema = json_schema();
    let actions = schema["$defs"]["Action"]["anyOf"].as_array().unwrap();
    let names: Vec<&str> =
        actions.iter().filter_map(|action| action["properties"]["type"]["enum"][0].as_str()).collect();
    assert_eq!(names, HOST_ACTIONS);
}

#[test]
fn the_schema_says_what_a_field_is_for_and_what_it_may_be() {
    let schema = json_schema();
    let ports = &schema["$defs"]["AdvancedSettings"]["properties"]["max_midi_ports"];
    let expected = serde_json::json!({
        "type": "integer",
        "minimum": 1,
        "maximum": 256,
        "default": 32,
        "description": "The most MIDI input ports that are open at once, 1 to 256 ports. Default: 32.",
    });
    assert_eq!(*ports, expected);
    let note = &schema["$defs"]["Trigger"]["oneOf"][0]["properties"]["note"];
    assert_eq!(note["type"], serde_json::json!(["integer", "string"]));
    assert_eq!(note["maximum"], 127);
    assert!(note["pattern"].is_string());
    assert!(!schema.to_string().contains("null"), "TOML has no null");
}

#[test]
fn the_schema_says_what_keys_are_called() {
    let schema = serde_json::to_string(&json_schema()).unwrap().replace("\\n", " ");
    assert!(schema.contains(", f1 to f20"));
    let counted = |name: &str| name.strip_prefix('f').is_some_and(|number| number.parse::<u8>().is_ok());
    for name in NamedKey::NAMES.iter().map(|(_, key)| Key::Named(*key).to_string()) {
        assert!(counted(&name) || schema.contains(&format!(" {name}")), "{name}");
    }
}

#[test]
fn a_model_thinks_as_much_as_is_written() {
    let effort =
        |line: &str| read(&format!("[models.big]\nprovider = 'p'\nmodel = 'm'\n{line}\n")).models["big"].effort;
    assert_eq!(effort(""), None);
    assert_eq!(effort("effort = 'minimal'"), Some(Effort::Minimal));
    assert_eq!(effort("effort = 'low'"), Some(Effort::Low));
    assert_eq!(effort("effort = 'medium'"), Some(Effort::Medium));
    assert_eq!(effort("effort = 'high'"), Some(Effort::High));
}
