//! Lists that are longer than one answer may be: page by page each entry once, found by words, and never beyond the end.

use conductor_ports::Direction;
use conductor_sandbox::limits::MAX_RESULT;
use serde_json::{Value, json};

use crate::stage::{CONFIG, Stage};

/// Mappings beside those of [`CONFIG`].
const MAPPINGS: usize = 10_000;

/// A stage with more in its configuration.
fn stage_with(more: &str) -> Stage {
    let stage = Stage::new();
    let text = format!("{CONFIG}{more}");
    std::fs::write(stage.file(), &text).unwrap();
    stage.host.reload(&text, "config.toml").unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    stage
}

/// As many global mappings as [`MAPPINGS`] says, each with a name and a description of its own.
fn many_mappings() -> String {
    let mapping = |number: usize| {
        format!(
            "\n[[global_mappings]]\nname = 'cue-{number}.'\ndescription = 'What the lights do in scene {number}.'\n\
             trigger = {{ type = 'Note', note = {}, channel = {} }}\naction = {{ type = 'Suppress' }}\n",
            number % 128,
            number / 128 % 16
        )
    };
    (0..MAPPINGS).map(mapping).collect()
}

/// Every entry of `list` in the answers of a tool, read page by page, and how many pages that took.
fn read_all(stage: &Stage, tool: &str, list: &str, args: &Value) -> (Vec<Value>, usize) {
    let (mut entries, mut pages) = (Vec::new(), 0);
    loop {
        let mut args = args.clone();
        args["after"] = json!(entries.len());
        let page = stage.call(tool, args).unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(page.to_string().len() <= MAX_RESULT, "{tool}: {} bytes", page.to_string().len());
        let found = page[list].as_array().unwrap();
        assert!(!found.is_empty(), "{tool}: {page:#}");
        entries.extend(found.iter().cloned());
        pages += 1;
        let total = page["total"].as_u64().map_or(entries.len(), |total| usize::try_from(total).unwrap());
        let next = page["next"].as_str().unwrap_or_default();
        assert_eq!(next.contains(&format!("after = {}", entries.len())), entries.len() < total, "{tool}: {next}");
        if entries.len() >= total {
            return (entries, pages);
        }
    }
}

fn texts(entries: &[Value], key: &str) -> Vec<String> {
    entries.iter().map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
}

// MCP-2: an agent sees each mapping, however many there are.
#[test]
fn ten_thousand_mappings_are_listed_page_by_page_each_once() {
    let stage = stage_with(&many_mappings());
    let expected: Vec<String> = ["modes/0/mappings/0".to_owned()]
        .into_iter()
        .chain((0..=MAPPINGS).map(|number| format!("global_mappings/{number}")))
        .collect();

    let (mappings, pages) = read_all(&stage, "conductor_list_mappings", "mappings", &json!({ "limit": 1000 }));
    assert!(pages > MAPPINGS / 1000, "{pages}");
    assert_eq!(texts(&mappings, "place"), expected, "each once, in the order of the file");

    let first = stage.call("conductor_list_mappings", json!({})).unwrap();
    assert_eq!(first["total"], expected.len());
    assert_eq!(first["mappings"].as_array().unwrap()[..], mappings[..250]);
    assert_eq!(first["next"], format!("after = 250 has the next ones, of {} in all", expected.len()));

    let refused = stage.call("conductor_get_config", json!({})).unwrap_err();
    for part in ["`section`", "`after`", "global_mappings (", " in a list of 10001), ", "modes ("] {
        assert!(refused.contains(part), "no {part} in {refused}");
    }
    let (entries, pages) =
        read_all(&stage, "conductor_get_config", "entries", &json!({ "section": "global_mappings" }));
    assert!(pages > MAPPINGS / 1000, "{pages}");
    assert_eq!(texts(&entries, "place")[..], expected[1..], "each once, in the order of the file");
    assert_eq!(entries[7778]["value"]["name"], "cue-7777.");
    let short = stage.call("conductor_get_config", json!({ "section": "bindings/0" })).unwrap();
    assert_eq!(short["entries"][0], json!({ "place": "bindings/0/alias", "value": "pads" }));
}

// MCP-2: what is too long to be checked again is in force all the same.
#[test]
fn a_long_configuration_in_force_is_valid_with_a_warning() {
    let stage = stage_with(&many_mappings());
    assert!(stage.host.config().len() > 1 << 20);
    let validated = stage.call("conductor_validate_config", json!({})).unwrap();
    assert_eq!(validated["valid"], true, "{validated:#}");
    let [finding] = &validated["findings"].as_array().unwrap()[..] else { panic!("one finding: {validated:#}") };
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["message"], "in force; longer than 1 MiB, so it was not checked again");
}

#[test]
fn a_device_is_set_up_beside_ten_thousand_mappings() {
    let stage = stage_with(&many_mappings());
    let proposed =
        stage.call("conductor_suggest_setup", json!({ "profile": "akai-apc-mini", "lights": false })).unwrap();
    let parts = proposed["parts"].as_array().unwrap();
    assert_eq!(parts[0]["path"], "bindings/3", "{proposed:#}");
    let (description, _) = stage.plan();
    assert!(description.contains("APC mini"), "{description}");
}

#[test]
fn one_of_ten_thousand_mappings_is_found_by_words() {
    let stage = stage_with(&many_mappings());
    let found = stage.call("conductor_list_mappings", json!({ "words": "CUE-7777. scene" })).unwrap();
    let [mapping] = &found["mappings"].as_array().unwrap()[..] else { panic!("one mapping: {found:#}") };
    assert_eq!((&mapping["place"], &mapping["mapping"]["name"]), (&json!("global_mappings/7778"), &json!("cue-7777.")));
    assert!(found.get("total").is_none() && found.get("next").is_none(), "{found:#}");
    // Which others wait for the same event is said also where they are not found.
    let same = &found["same_trigger"][0];
    assert!(same.as_array().unwrap().contains(&json!(format!("global_mappings/{}", 7777 - 2048 + 1))), "{same}");
    let none = stage.call("conductor_list_mappings", json!({ "words": "cue-7777. encore" })).unwrap();
    assert_eq!((&none["mappings"], &none["same_trigger"]), (&json!([]), &json!([])));
}

#[test]
fn a_page_that_is_not_there_is_refused_with_those_that_are() {
    let stage = Stage::new();
    for (args, expected) in [
        (json!({ "after": 3 }), "after = 3 is not from 0 to 2"),
        (json!({ "after": -1 }), "after = -1 is not from 0 to 2"),
        (json!({ "after": 1, "mode": "Play", "words": "nothing" }), "after = 1 is not from 0 to 0"),
        (json!({ "limit": 0 }), "the limit 0 is not from 1 to 1000"),
        (json!({ "limit": 1001 }), "the limit 1001 is not from 1 to 1000"),
    ] {
        let refused = stage.call("conductor_list_mappings", args.clone()).unwrap_err();
        assert!(refused.contains(expected), "{args}: {refused}");
    }
    let refused = stage.call("conductor_get_config", json!({ "section": "modes", "after": 3 })).unwrap_err();
    assert!(refused.contains("after = 3 is not from 0 to 2"), "{refused}");
    for tool in [
        "conductor_get_modes",
        "conductor_list_actions",
        "conductor_scan_ports",
        "conductor_list_discovered_ports",
        "conductor_list_devices",
        "conductor_list_device_bindings",
        "conductor_get_binding_health",
        "conductor_list_profiles",
        "conductor_list_features",
        "conductor_list_plans",
    ] {
        let refused = stage.call(tool, json!({ "after": 1000 })).unwrap_err();
        assert!(refused.contains("after = 1000 is not from 0 to "), "{tool}: {refused}");
    }
}

#[test]
fn bindings_modes_profiles_and_rules_are_listed_page_by_page() {
    const COUNT: usize = 1200;
    let described = "A box of pads beside the desk. ".repeat(8);
    let one = |number: usize| {
        format!(
            "\n[[bindings]]\nalias = 'box-{number}'\ndescription = '{described}'\n\
             matchers = [{{ type = 'exact_name', value = 'Box {number}' }}]\n\
             [[modes]]\nname = 'A scene of the long show, number {number}'\n\
             [[profiles]]\nname = 'program-{number}'\napps = ['Program {number}']\nmode = 'Mix'\n\
             [[global_mappings]]\nname = 'any-{number}'\ntrigger = {{ type = 'Note', note = 40, device = 'pads' }}\n\
             action = {{ type = 'Suppress' }}\n"
        )
    };
    let stage = stage_with(&(0..COUNT).map(one).collect::<String>());
    stage.until("the bindings are known", || stage.host.status().ports.bindings.len() > COUNT);
    let named = |before: &str| (0..COUNT).map(|number| format!("{before}{number}")).collect::<Vec<_>>();

    for (tool, list, key, before) in [
        ("conductor_list_device_bindings", "bindings", "alias", "box-"),
        ("conductor_get_binding_health", "bindings", "alias", "box-"),
        ("conductor_list_devices", "devices", "name", "box-"),
        ("conductor_get_modes", "modes", "name", "A scene of the long show, number "),
        ("conductor_list_profiles", "profiles", "name", "program-"),
    ] {
        let (entries, pages) = read_all(&stage, tool, list, &json!({}));
        assert!(pages > 1, "{tool}: {} on one page", entries.len());
        let names = texts(&entries, key);
        let many: Vec<String> = names.into_iter().filter(|name| name.starts_with(before)).collect();
        assert_eq!(many, named(before), "{tool}: each once, in the order of the file");
    }
    let asked = json!({ "device": "pads", "event": "note-on 40 100" });
    let (rules, pages) = read_all(&stage, "conductor_explain_event", "rules", &asked);
    assert!(pages > 1 && rules.len() >= COUNT, "{} rules on {pages} pages", rules.len());

    // The status names as many modes as it has room for, and says how many there are beside them.
    let status = stage.call("conductor_get_status", json!({})).unwrap();
    let shown = status["modes"].as_array().unwrap().len();
    assert_eq!(status["more_modes"].as_u64().map(|more| usize::try_from(more).unwrap() + shown), Some(COUNT + 2));
}

#[test]
fn five_hundred_ports_with_long_names_are_listed_page_by_page() {
    const COUNT: usize = 500;
    let stage = Stage::new();
    let name = |number: usize| format!("{number} {}", "a port with a long name ".repeat(8));
    for number in 0..COUNT {
        stage.ports.plug(&name(number), Direction::Input);
    }
    stage.until("the ports are there", || stage.host.status().ports.ports.len() >= COUNT);
    for tool in ["conductor_scan_ports", "conductor_list_discovered_ports"] {
        let (ports, pages) = read_all(&stage, tool, "ports", &json!({}));
        assert!(pages > 1, "{tool}: {} on one page", ports.len());
        let names = texts(&ports, "name");
        for number in 0..COUNT {
            let begin = format!("{number} a port");
            assert_eq!(names.iter().filter(|name| name.starts_with(&begin)).count(), 1, "{tool}: {begin}");
        }
    }
}
