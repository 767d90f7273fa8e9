//! A first setup for one port, as changes to a configuration: its matchers and its name, what is suggested for it, and where
//! each part of that goes.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::message::Message;
use crate::port::{PortFit, fits};
use crate::profile::{Profile, UsbId};
use crate::suggest::{SuggestFor, Suggested, suggest};

/// Words of a port's name that make up the name of its binding.
const ALIAS_WORDS: usize = 2;
/// Characters of each of these words.
const ALIAS_CHARACTERS: usize = 24;

/// A port that is there, as far as a setup depends on it.
#[derive(Debug, Clone)]
pub struct SetupPort<'p> {
    /// Its name.
    pub name: &'p str,
    /// The USB ids of its device, where they are known.
    pub usb: Option<UsbId>,
    /// Whether events come from it; if not, it is sent to.
    pub is_input: bool,
    /// `midi`, `hid`, `osc` or `artnet`.
    pub protocol: &'p str,
    /// The alias of its binding, if it has one.
    pub binding: Option<&'p str>,
    /// The strongest matcher that fits this port alone, as the configuration has it.
    pub told_apart_by: Option<Value>,
}

impl SetupPort<'_> {
    /// The matcher to bind it with, as the configuration has it.
    pub fn matcher(&self) -> Value {
        self.told_apart_by.clone().unwrap_or_else(|| exact_name(self.name))
    }
}

fn exact_name(name: &str) -> Value {
    json!({ "type": "exact_name", "value": name })
}

/// What is suggested for an input whose device has a profile. `ports` are all that there are, `alias` is what the input is
/// to be called if it is not bound.
pub fn setup(
    profile: &Profile,
    fit: PortFit,
    port: &SetupPort<'_>,
    ports: &[SetupPort<'_>],
    alias: &str,
) -> Vec<Suggested> {
    let is_same = |other: &&SetupPort<'_>| {
        // A binding says which output is the device's, however that is called.
        let is_bound_alike = port.binding.is_some() && other.binding == port.binding;
        let fits_as_well = || fits(profile, other.name, other.usb).is_some_and(|other| other >= fit);
        // Some systems know the USB ids of one direction only.
        !other.is_input && (is_bound_alike || fits_as_well() || other.name == port.name)
    };
    let output = ports.iter().find(is_same);
    let mut matchers = vec![port.matcher()];
    // The two directions of a device may have two names.
    matchers.extend(output.filter(|output| output.name != port.name).map(|output| exact_name(output.name)));
    suggest(
        profile,
        &SuggestFor {
            name: port.name,
            fit: Some(fit),
            alias: port.binding.unwrap_or(alias),
            matchers,
            protocol: port.protocol,
            bound: port.binding.is_some(),
            output: output.map(|output| output.name),
        },
    )
}

/// What is suggested for a device that is not there: a binding that waits for a port with one of the names that the profile
/// knows, unless it is `bound` under the alias already, and the same mappings and lights. `None` if the profile names no
/// ports, as those of OSC.
pub fn setup_ahead(profile: &Profile, alias: &str, bound: bool) -> Option<Vec<Suggested>> {
    let matchers = names(profile);
    if matchers.is_empty() {
        return None;
    }
    let is_of_gamepad =
        |message: &Message| matches!(message, Message::Button { .. } | Message::Stick { .. } | Message::Trigger { .. });
    let is_gamepad = profile.controls.iter().any(|control| is_of_gamepad(&control.message));
    let protocol = if is_gamepad { "hid" } else { "midi" };
    let output = (!profile.lights.is_empty()).then_some(profile.name.as_str());
    let port = SuggestFor { name: &profile.name, fit: None, alias, matchers, protocol, bound, output };
    Some(suggest(profile, &port))
}

fn sends_osc(profile: &Profile) -> bool {
    profile.controls.iter().any(|control| matches!(control.message, Message::Osc { .. }))
}

/// The names of ports that a profile knows, as the regular expressions that the matcher `name_regex` takes. What sends
/// OSC has none: it is bound by the port that it sends to.
pub fn name_regexes(profile: &Profile) -> Vec<String> {
    let mut regexes: Vec<String> = Vec::new();
    if sends_osc(profile) {
        return regexes;
    }
    for pattern in profile.identity.ports.all() {
        let regex = regex(pattern);
        if !regexes.contains(&regex) {
            regexes.push(regex);
        }
    }
    regexes
}

/// The matchers for ports with these names.
fn names(profile: &Profile) -> Vec<Value> {
    name_regexes(profile).into_iter().map(|regex| json!({ "type": "name_regex", "value": regex })).collect()
}

/// A name in which `*` stands for any text, as a regular expression.
fn regex(pattern: &str) -> String {
    let mut regex = "(?i)^".to_owned();
    for c in pattern.chars() {
        match c {
            '*' => regex.push_str(".*"),
            c if c.is_ascii_punctuation() => regex.extend(['\\', c]),
            c => regex.push(c),
        }
    }
    regex.push('$');
    regex
}

/// The bindings that a configuration has, in today's spelling and in the older one.
fn bindings(written: &toml::Table) -> impl Iterator<Item = &toml::Value> {
    ["bindings", "devices"].into_iter().filter_map(move |list| written.get(list)?.as_array()).flatten()
}

/// The names of bindings that a configuration has.
pub fn aliases(written: &toml::Table) -> Vec<&str> {
    bindings(written).filter_map(|entry| entry.get("alias")?.as_str()).collect()
}

/// The name of the first binding with a matcher that `is_it`; `None` if there is none.
fn alias_by(written: &toml::Table, is_it: impl Fn(&Value) -> bool) -> Option<&str> {
    let has = |binding: &&toml::Value| {
        let matchers = binding.get("matchers").and_then(toml::Value::as_array).into_iter().flatten();
        matchers.filter_map(|matcher| serde_json::to_value(matcher).ok()).any(|matcher| is_it(&matcher))
    };
    bindings(written).find(has)?.get("alias")?.as_str()
}

/// The name of the binding that a configuration has for a port with this matcher; `None` if there is none.
pub fn alias_with<'w>(written: &'w toml::Table, matcher: &Value) -> Option<&'w str> {
    alias_by(written, |other| other == matcher)
}

/// The name of the binding that a configuration has for the device of a profile: it matches a name of its ports, or its USB
/// ids. `None` if there is none.
pub fn alias_of<'w>(written: &'w toml::Table, profile: &Profile) -> Option<&'w str> {
    let names = names(profile);
    let is_its = |matcher: &Value| {
        let text = || matcher["value"].as_str().unwrap_or_default();
        let number = |key: &str| matcher[key].as_u64().and_then(|number| u16::try_from(number).ok());
        match matcher["type"].as_str() {
            Some("name_regex") => names.contains(matcher),
            Some("exact_name" | "name_contains") => fits(profile, text(), None).is_some(),
            Some("usb_identifier") => {
                let usb = number("vendor_id").zip(number("product_id"));
                usb.is_some_and(|(vendor, product)| profile.identity.usb.contains(&UsbId { vendor, product }))
            }
            _ => false,
        }
    };
    alias_by(written, is_its)
}

/// The parts that a configuration has nothing of yet: no global mapping with the same trigger.
pub fn missing(mut parts: Vec<Suggested>, written: &toml::Table) -> Vec<Suggested> {
    let mappings = written.get("global_mappings").and_then(toml::Value::as_array).into_iter().flatten();
    let triggers = mappings.filter_map(|mapping| serde_json::to_value(mapping.get("trigger")?).ok());
    let triggers: Vec<Value> = triggers.collect();
    parts.retain(|part| part.list != "global_mappings" || !triggers.contains(&part.value["trigger"]));
    parts
}

/// A name for a device, from that of its port: in small letters, and none of those that are taken.
pub fn alias_for(port: &str, taken: &[&str]) -> String {
    let words = port.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(ALIAS_WORDS);
    let short = |word: &str| word.chars().take(ALIAS_CHARACTERS).collect::<String>().to_lowercase();
    let name = words.map(short).collect::<Vec<_>>().join("-");
    let name = if name.is_empty() { "device".to_owned() } else { name };
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(&name.as_str())).unwrap_or_default()
}

/// The places that put every part at the end of its list, such as `global_mappings/3`, in the order of the parts.
pub fn places(parts: &[Suggested], written: &toml::Table) -> Vec<String> {
    let mut ends = HashMap::new();
    let place = |part: &Suggested| {
        let there = || written.get(part.list).and_then(toml::Value::as_array).map_or(0, Vec::len);
        let end = ends.entry(part.list).or_insert_with(there);
        let place = format!("{}/{end}", part.list);
        *end += 1;
        place
    };
    parts.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Confidence, Library};

    #[test]
    fn an_alias_is_short_and_free() {
        assert_eq!(alias_for("APC MINI MIDI 1", &["apc-mini"]), "apc-mini-2");
        assert_eq!(alias_for("::", &[]), "device");
        assert_eq!(alias_for(&"x".repeat(65_536), &[]), "x".repeat(24));
    }

    #[test]
    fn each_part_goes_to_the_end_of_its_list() {
        let written: toml::Table = toml::from_str("[[global_mappings]]\nname = \"a\"\n").unwrap();
        let part = |list| Suggested { list, value: json!({}), reason: String::new(), confidence: Confidence::High };
        let parts = [part("bindings"), part("global_mappings"), part("global_mappings")];
        assert_eq!(places(&parts, &written), ["bindings/0", "global_mappings/1", "global_mappings/2"]);
    }

    #[test]
    fn a_device_that_is_not_there_is_bound_by_the_names_of_its_ports() {
        let library = Library::bundled();
        let profile = library.get("akai-apc-mini-mk2").unwrap();
        let parts = setup_ahead(profile, "grid", false).unwrap();
        let matchers: Vec<&Value> =
            parts[0].value["matchers"].as_array().unwrap().iter().map(|it| &it["value"]).collect();
        assert_eq!(matchers, ["(?i)^.*APC mini mk2 Control.*$", "(?i)^APC mini mk2$", "(?i)^.*\\- APC mini mk2$"]);
        assert!(parts.len() > 1 && parts[0].reason.contains("when it is plugged in"), "{parts:?}");
        assert_eq!(setup_ahead(library.get("touchosc-mk1-mix16").unwrap(), "tablet", false), None, "it has no port");
        let beside = setup_ahead(profile, "grid", true).unwrap();
        assert_eq!(beside, parts[1..], "it has its binding already");
    }

    #[test]
    fn the_binding_of_a_device_is_known_by_its_matchers() {
        let library = Library::bundled();
        let profile = library.get("akai-apc-mini").unwrap();
        let binding = |matcher: &str| -> toml::Table {
            toml::from_str(&format!("[[bindings]]\nalias = 'grid'\nmatchers = [{matcher}]")).unwrap()
        };
        let known = |matcher: &str| alias_of(&binding(matcher), profile).is_some();
        assert!(known("{ type = 'exact_name', value = 'APC MINI MIDI 1' }"));
        assert!(known("{ type = 'usb_identifier', vendor_id = 0x09e8, product_id = 0x0028 }"));
        assert!(!known("{ type = 'usb_identifier', vendor_id = 0x09e8, product_id = 0x0029 }"));
        assert!(!known("{ type = 'exact_name', value = 'nanoKONTROL2' }"));
        let value = &setup_ahead(profile, "grid", false).unwrap()[0].value;
        let written: toml::Table = serde_json::from_value(json!({ "bindings": [value] })).unwrap();
        assert_eq!(alias_of(&written, profile), Some("grid"), "what a setup has written itself");
        assert_eq!(alias_with(&written, &value["matchers"][0]), Some("grid"));
        assert_eq!(alias_with(&written, &exact_name("APC MINI MIDI 1")), None);
    }

    #[test]
    fn what_is_mapped_already_is_not_suggested_again() {
        let library = Library::bundled();
        let parts = setup_ahead(library.get("akai-apc-mini").unwrap(), "grid", true).unwrap();
        let [first, ..] = &parts[..] else { panic!("there are lights") };
        let changed = json!({ "trigger": first.value["trigger"], "action": { "type": "Suppress" } });
        let written: toml::Table = serde_json::from_value(json!({ "global_mappings": [changed] })).unwrap();
        let left = missing(parts.clone(), &written);
        assert_eq!(left, parts[1..]);
        assert_eq!(missing(parts.clone(), &toml::Table::new()), parts);
    }

    #[test]
    fn a_device_whose_directions_have_two_names_is_bound_by_both() {
        let library = Library::bundled();
        let port = |name, is_input| SetupPort {
            name,
            usb: None,
            is_input,
            protocol: "midi",
            binding: None,
            told_apart_by: None,
        };
        let ports = [port("Launchpad X LPX MIDI In", true), port("Launchpad X LPX MIDI Out", false)];
        let (profile, fit) = library.of_port(ports[0].name, None).unwrap();
        let parts = setup(profile, fit, &ports[0], &ports, "pads");
        let matchers = parts[0].value["matchers"].as_array().unwrap();
        assert_eq!(matchers[0]["value"], "Launchpad X LPX MIDI In");
        assert_eq!(matchers[1]["value"], "Launchpad X LPX MIDI Out");
        assert!(parts.len() > 1, "what can be sent to has lights");
        let says = |parts: &[Suggested], said: &str| parts[0].reason.ends_with(said);
        assert!(says(&parts, "; its lights are set by its output \"Launchpad X LPX MIDI Out\""), "{parts:?}");
        let alone = setup(profile, fit, &ports[0], &ports[..1], "pads");
        assert_eq!(alone.len(), 1);
        assert!(says(&alone, "; its lights are left out: no output of it is there"), "{alone:?}");
    }

    #[test]
    fn an_output_with_the_name_of_the_input_is_the_devices_own_where_it_has_no_usb_ids() {
        let library = Library::bundled();
        let profile = library.get("akai-apc-mini").unwrap();
        let usb = profile.identity.usb.first().copied();
        let port = |is_input, usb| SetupPort {
            name: "APC MINI MIDI 1",
            usb,
            is_input,
            protocol: "midi",
            binding: None,
            told_apart_by: None,
        };
        let ports = [port(true, usb), port(false, None)];
        let (profile, fit) = library.of_port(ports[0].name, usb).unwrap();
        let parts = setup(profile, fit, &ports[0], &ports, "pads");
        assert!(parts.iter().any(|part| part.value["action"]["type"] == "SendMidi"), "{parts:?}");
    }

    // A person may say what a port is that no profile fits, and its output is called as little like the device.
    #[test]
    fn the_output_of_the_same_binding_has_the_lights_whatever_it_is_called() {
        let library = Library::bundled();
        let port = |name, is_input, binding| SetupPort {
            name,
            usb: None,
            is_input,
            protocol: "midi",
            binding,
            told_apart_by: None,
        };
        let input = port("Port 1", true, Some("pads"));
        let outputs = [port("Synth", false, None), port("Port 2", false, Some("pads"))];
        let profile = library.get("novation-launchpad-x").unwrap();
        let of = |outputs: &[SetupPort<'_>]| setup(profile, PortFit::Name(0), &input, outputs, "pads");
        assert!(!of(&outputs).is_empty(), "lights alone: it is bound");
        assert!(of(&outputs[..1]).is_empty(), "another device's output is not its own");
    }
}
