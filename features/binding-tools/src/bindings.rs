//! The bindings of a configuration as it is written, the mappings that name them, and the changes that
//! add, alter and remove them.

use std::collections::{BTreeSet, HashMap};

use conductor_feature::json::{remove, set, unknown};
use conductor_feature::planning::Change;
use conductor_feature::{Error, host_state};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::matcher::Matcher;

/// What ports speak.
#[expect(missing_docs, reason = "they speak for themselves")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Protocol {
    Midi,
    Hid,
    Osc,
    ArtNet,
}

/// As ports have it.
impl From<Protocol> for host_state::Protocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Midi => Self::Midi,
            Protocol::Hid => Self::Hid,
            Protocol::Osc => Self::Osc,
            Protocol::ArtNet => Self::Artnet,
        }
    }
}

/// Which virtual ports are made.
#[expect(missing_docs, reason = "they speak for themselves")]
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Virtual {
    Input,
    Output,
    Both,
}

/// One direction: matchers for MIDI and HID, an address for OSC and Art-Net.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct End {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matchers: Option<Vec<Matcher>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// 1-65535.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// udp, tcp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Who may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

/// A binding, as it is proposed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct NewBinding {
    pub alias: String,
    /// Default: midi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Both directions; any one is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matchers: Option<Vec<Matcher>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<End>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<End>,
    /// 0-15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<u8>>,
    /// Make a port of this host's own.
    #[serde(default, rename = "virtual", skip_serializing_if = "Option::is_none")]
    pub made: Option<Virtual>,
}

impl NewBinding {
    /// A device whose input and output fit the same matchers.
    pub fn of(alias: String, matchers: Vec<Matcher>, description: Option<String>) -> Self {
        let (protocol, input, output, channels, made) = (None, None, None, None, None);
        Self { alias, protocol, description, matchers: Some(matchers), input, output, channels, made }
    }
}

/// What of a binding is to be otherwise; `None` if it stays as it is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct Update {
    pub alias: String,
    pub new_alias: Option<String>,
    /// With input or output: of both directions.
    pub matchers: Option<Vec<Matcher>>,
    /// 0-15; []: all.
    pub channels: Option<Vec<u8>>,
    /// {}: none.
    pub input: Option<End>,
    /// {}: none.
    pub output: Option<End>,
    pub description: Option<String>,
    /// false: muted for good.
    pub enabled: Option<bool>,
}

/// What of a binding an [`Update`] can change, as it is written; `None` if it is not written, or in an older form.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "the configuration's schema describes them")]
pub struct Written {
    pub matchers: Option<Vec<Matcher>>,
    pub channels: Option<Vec<u8>>,
    pub input: Option<End>,
    pub output: Option<End>,
    pub description: Option<String>,
    pub enabled: bool,
}

/// What a binding takes along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impact {
    /// The mappings that name it: their places, in the order of the file, and what people call them.
    pub mappings: Vec<(String, String)>,
}

/// A configuration's bindings, with what names them.
#[derive(Debug)]
pub struct Bindings {
    table: Table,
    /// Aliases, and the places of what they name.
    places: Vec<(String, String)>,
}

impl Bindings {
    /// Reads a configuration.
    ///
    /// # Errors
    /// `failed`, when it is no TOML; the host has no such configuration in force.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let table: Table = toml::from_str(text).map_err(|error| Error::Failed(error.to_string()))?;
        let mut places = Vec::new();
        let alias = |value: &Value| value.get("alias").and_then(Value::as_str).map(str::to_owned);
        if let Some(device) = table.get("device") {
            // The old form of a single device.
            places.push((alias(device).unwrap_or_else(|| "main".to_owned()), "device".to_owned()));
        }
        for list in ["bindings", "devices"] {
            let entries = table.get(list).and_then(Value::as_array).into_iter().flatten().enumerate();
            places.extend(entries.filter_map(|(index, entry)| Some((alias(entry)?, format!("{list}/{index}")))));
        }
        Ok(Self { table, places })
    }

    /// Where the binding with this alias is.
    ///
    /// # Errors
    /// That there is none, and which there are.
    pub fn find(&self, alias: &str) -> Result<&str, Error> {
        let found = self.places.iter().find(|(known, _)| known == alias);
        let (_, place) =
            found.ok_or_else(|| unknown("binding", alias, self.places.iter().map(|(known, _)| known.as_str())))?;
        Ok(place)
    }

    /// What is at a place.
    fn at(&self, place: &str) -> Option<&Value> {
        let mut steps = place.split('/');
        let start = self.table.get(steps.next()?)?;
        steps.try_fold(start, |value, step| match value {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
    }

    /// What is written in the binding at a place.
    pub fn written(&self, place: &str) -> Written {
        Written {
            matchers: self.read(place, "matchers"),
            channels: self.read(place, "channels"),
            input: self.read(place, "input"),
            output: self.read(place, "output"),
            description: self.read(place, "description"),
            enabled: self.is_enabled(place),
        }
    }

    /// A key of the binding at a place; `None` if it is not there, or in an older form.
    fn read<T: DeserializeOwned>(&self, place: &str, key: &str) -> Option<T> {
        self.at(place)?.get(key)?.clone().try_into().ok()
    }

    fn is_enabled(&self, place: &str) -> bool {
        self.read(place, "enabled").unwrap_or(true)
    }

    /// The change that makes what is at a place this value, or removes it with `None`; `None` if it is so already.
    fn change(&self, place: String, value: Option<Json>) -> Option<Change> {
        let there = self.at(&place).and_then(|there| serde_json::to_value(there).ok());
        if value == there {
            return None;
        }
        Some(match value {
            Some(value) => set(place, value),
            None => remove(place),
        })
    }

    /// Where the matchers of the binding at a place are: its own, or those of each direction that has some for itself.
    fn matcher_places(&self, place: &str) -> Vec<String> {
        let binding = self.at(place);
        let has =
            |side: &&str| binding.and_then(|binding| binding.get(side)).is_some_and(|of| of.get("matchers").is_some());
        let mut places: Vec<String> =
            ["input", "output"].into_iter().filter(has).map(|side| format!("{place}/{side}/matchers")).collect();
        let of_both = |key: &str| binding.is_some_and(|binding| binding.get(key).is_some());
        if places.is_empty() || of_both("matchers") || of_both("name") {
            places.push(format!("{place}/matchers"));
        }
        places
    }

    /// The matchers of the binding at a place, in the words of the file.
    pub fn matchers(&self, place: &str) -> Vec<String> {
        let Some(binding) = self.at(place) else { return Vec::new() };
        let sides = [Some(binding), binding.get("input"), binding.get("output")];
        let written = sides.into_iter().flatten().filter_map(|side| side.get("matchers")?.as_array()).flatten();
        let name = binding.get("name").and_then(Value::as_str).map(|name| format!("name_contains {name:?}"));
        let matcher = |matcher: &Value| {
            let kind = matcher.get("type").and_then(Value::as_str).unwrap_or("?").to_owned();
            let rest = matcher.as_table().into_iter().flatten().filter(|(key, _)| *key != "type");
            rest.fold(kind, |text, (_, value)| format!("{text} {}", serde_json::to_value(value).unwrap_or_default()))
        };
        name.into_iter().chain(written.map(matcher)).collect()
    }

    /// Every mapping, with its place.
    fn mappings(&self) -> impl Iterator<Item = (String, &Value)> {
        let modes = self.table.get("modes").and_then(Value::as_array).into_iter().flatten().enumerate();
        let in_modes = modes.flat_map(|(number, mode)| {
            let mappings = mode.get("mappings").and_then(Value::as_array).into_iter().flatten().enumerate();
            mappings.map(move |(index, mapping)| (format!("modes/{number}/mappings/{index}"), mapping))
        });
        let global = self.table.get("global_mappings").and_then(Value::as_array).into_iter().flatten().enumerate();
        in_modes.chain(global.map(|(index, mapping)| (format!("global_mappings/{index}"), mapping)))
    }

    /// How many mappings name each device.
    pub fn mappings_by_device(&self) -> HashMap<&str, usize> {
        let mut counts = HashMap::new();
        for (_, mapping) in self.mappings() {
            let mut devices = BTreeSet::new();
            named(mapping, &mut devices);
            for device in devices {
                *counts.entry(device).or_default() += 1;
            }
        }
        counts
    }

    /// What goes with a binding when it is removed: the mappings that name it.
    pub fn impact(&self, alias: &str) -> Impact {
        let named = self.mappings().filter(|(place, mapping)| !mentions(place, mapping, alias).is_empty());
        let called = |mapping: &Value| {
            let text = ["name", "description"].iter().find_map(|key| mapping.get(key)?.as_str());
            text.map(str::to_owned)
        };
        Impact { mappings: named.map(|(place, mapping)| (place.clone(), called(mapping).unwrap_or(place))).collect() }
    }

    /// The change that adds a binding, with a sentence about it.
    ///
    /// # Errors
    /// That its alias is taken.
    pub fn add(&self, new: &NewBinding) -> Result<(String, Vec<Change>), Error> {
        self.is_free(&new.alias)?;
        let count = self.table.get("bindings").and_then(Value::as_array).map_or(0, Vec::len);
        Ok((format!("Add the binding {}.", new.alias), vec![set(format!("bindings/{count}"), json(new)?)]))
    }

    /// The changes that alter a binding, and have every mapping name it by its new alias. What is as it is to be already
    /// is left alone, since a form says everything that it shows.
    ///
    /// # Errors
    /// That there is no such binding, or that the new alias is taken, or that nothing changes.
    pub fn update(&self, update: Update) -> Result<(String, Vec<Change>), Error> {
        let Update { alias, new_alias, matchers, channels, input, output, description, enabled } = update;
        let place = self.find(&alias)?;
        let at = |key: &str| format!("{place}/{key}");
        let (mut changes, mut what) = (Vec::new(), Vec::new());
        if let Some(new) = new_alias.filter(|new| *new != alias) {
            self.is_free(&new)?;
            changes.push(set(at("alias"), new.as_str()));
            let named: Vec<String> =
                self.mappings().flat_map(|(place, mapping)| mentions(&place, mapping, &alias)).collect();
            what.push(format!("call it {new} in {} places", named.len() + 1));
            changes.extend(named.into_iter().map(|place| set(place, new.as_str())));
        }
        if let Some(matchers) = matchers {
            let value = unless_empty(&matchers)?;
            let has_sides = input.is_some() || output.is_some();
            let places = if has_sides { vec![at("matchers")] } else { self.matcher_places(place) };
            let made: Vec<Change> = places.into_iter().filter_map(|place| self.change(place, value.clone())).collect();
            if !made.is_empty() {
                what.push(format!("tell it by {} matchers", matchers.len()));
            }
            changes.extend(made);
        }
        // A side that is not written is no other one: the binding's matchers are those of both directions then.
        let end = |key: &str, other: &'static str, first: &'static str| {
            if self.at(&at(key)).is_some() { other } else { first }
        };
        let parts = [
            ("channels", "hear other channels of it", channels.as_ref().map(unless_empty)),
            ("input", end("input", "give it another input", "give it an input"), input.as_ref().map(unless_empty)),
            ("output", end("output", "give it another output", "give it an output"), output.as_ref().map(unless_empty)),
            ("description", "describe it", description.as_ref().map(unless_empty)),
        ];
        for (key, said, value) in parts {
            let Some(value) = value.transpose()? else { continue };
            if let Some(change) = self.change(at(key), value) {
                what.push(if change.value.is_some() { said.to_owned() } else { format!("take its {key} away") });
                changes.push(change);
            }
        }
        if let Some(enabled) = enabled.filter(|enabled| *enabled != self.is_enabled(place)) {
            changes.push(set(at("enabled"), enabled));
            what.push(if enabled { "hear it again" } else { "mute it for good" }.to_owned());
        }
        if changes.is_empty() {
            return Err(Error::Invalid("nothing would change; give what is to be otherwise".into()));
        }
        Ok((format!("Change the binding {alias}: {}.", what.join(", ")), changes))
    }

    /// The changes that remove a binding and all that names it, with a sentence that says what that is.
    ///
    /// # Errors
    /// That there is no such binding.
    pub fn delete(&self, alias: &str, impact: &Impact) -> Result<(String, Vec<Change>), Error> {
        let place = self.find(alias)?;
        // From the last to the first, so that the places of those before stay.
        let mut changes: Vec<Change> = impact.mappings.iter().rev().map(|(place, _)| remove(place)).collect();
        changes.push(remove(place));
        let called: Vec<&str> = impact.mappings.iter().map(|(_, called)| called.as_str()).collect();
        let along = match called.len() {
            0 => "no mapping names it".to_owned(),
            1 => format!("with 1 mapping: {}", called[0]),
            count => format!("with {count} mappings: {}", called.join(", ")),
        };
        Ok((format!("Remove the binding {alias}, {along}."), changes))
    }

    fn is_free(&self, alias: &str) -> Result<(), Error> {
        match self.places.iter().any(|(known, _)| known == alias) {
            true => Err(Error::Invalid(format!("there is a binding {alias:?} already; choose another alias"))),
            false => Ok(()),
        }
    }
}

fn json(value: &impl Serialize) -> Result<Json, Error> {
    serde_json::to_value(value).map_err(|error| Error::Failed(error.to_string()))
}

/// A value as JSON; `None` if there is nothing in it.
fn unless_empty(value: &impl Serialize) -> Result<Option<Json>, Error> {
    let value = json(value)?;
    let is_empty = match &value {
        Json::Array(list) => list.is_empty(),
        Json::Object(keys) => keys.is_empty(),
        Json::String(text) => text.is_empty(),
        _ => false,
    };
    Ok((!is_empty).then_some(value))
}

/// The places in a mapping at which a device is named.
fn mentions(place: &str, value: &Value, alias: &str) -> Vec<String> {
    let within = |step: &str, value: &Value| {
        let place = format!("{place}/{step}");
        match value.as_str() {
            Some(text) if matches!(step, "device" | "target") && text == alias => vec![place],
            _ => mentions(&place, value, alias),
        }
    };
    match value {
        Value::Table(table) => table.iter().flat_map(|(key, value)| within(key, value)).collect(),
        Value::Array(list) => {
            list.iter().enumerate().flat_map(|(index, value)| within(&index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Adds the devices that a mapping names.
fn named<'v>(value: &'v Value, devices: &mut BTreeSet<&'v str>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                match value.as_str() {
                    Some(device) if matches!(key.as_str(), "device" | "target") => {
                        devices.insert(device);
                    }
                    _ => named(value, devices),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| named(value, devices)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[bindings]]
        alias = "pads"
        matchers = [{ type = "exact_name", value = "Pads" }]
        [[bindings]]
        alias = "synth"
        name = "Synth"
        [[modes]]
        name = "Play"
        mappings = [
            { trigger = { type = "Note", note = 36, device = "pads" }, action = { type = "Suppress" } },
            { name = "through", trigger = { type = "MidiAny" }, action = { type = "Sequence", actions = [
                { type = "MidiForward", target = "synth" }, { type = "MidiForward", target = "pads" } ] } },
        ]
        [[global_mappings]]
        trigger = { type = "Note", note = 1, device = "synth" }
        action = { type = "Text", text = "pads" }
    "#;

    fn paths(changes: &[Change]) -> Vec<&str> {
        changes.iter().map(|change| change.path.as_str()).collect()
    }

    #[test]
    fn what_names_a_device_goes_with_it_and_is_named() {
        let bindings = Bindings::parse(TEXT).expect("TOML");
        let (what, changes) = bindings.delete("pads", &bindings.impact("pads")).expect("is there");
        assert_eq!(paths(&changes), ["modes/0/mappings/1", "modes/0/mappings/0", "bindings/0"]);
        assert_eq!(what, "Remove the binding pads, with 2 mappings: modes/0/mappings/0, through.");
        let (what, changes) = bindings.delete("synth", &bindings.impact("synth")).expect("is there");
        assert_eq!(paths(&changes), ["global_mappings/0", "modes/0/mappings/1", "bindings/1"]);
        assert_eq!(what, "Remove the binding synth, with 2 mappings: through, global_mappings/0.");
        assert!(matches!(bindings.find("pabs"), Err(Error::Invalid(text)) if text.contains("did you mean \"pads\"?")));
    }

    #[test]
    fn mappings_are_counted_by_the_devices_that_they_name() {
        let bindings = Bindings::parse(TEXT).expect("TOML");
        let counts = bindings.mappings_by_device();
        for alias in ["pads", "synth"] {
            assert_eq!((counts[alias], bindings.impact(alias).mappings.len()), (2, 2), "{alias}");
        }
        assert_eq!(counts.len(), 2);
    }

    #[test]
    fn mappings_follow_a_new_alias() {
        let bindings = Bindings::parse(TEXT).expect("TOML");
        let called = |new: &str| {
            bindings.update(Update { alias: "pads".into(), new_alias: Some(new.into()), ..Update::default() })
        };
        let (_, changes) = called("drums").expect("is there");
        assert_eq!(
            paths(&changes),
            ["bindings/0/alias", "modes/0/mappings/0/trigger/device", "modes/0/mappings/1/action/actions/1/target"]
        );
        assert!(changes.iter().all(|change| change.value.as_deref() == Some("\"drums\"")));
        assert!(called("synth").is_err(), "taken");
        assert!(called("pads").is_err(), "nothing changes");
    }

    #[test]
    fn what_tells_a_device_is_replaced_where_it_stands() {
        let text = "[[bindings]]\nalias = 'a'\nname = 'A'\n[[bindings]]\nalias = 'b'\ninput = { matchers = [] }\noutput = { matchers = [] }\n\
                    [[bindings]]\nalias = 'c'\noutput = { host = '127.0.0.1' }";
        let bindings = Bindings::parse(text).expect("TOML");
        let places = |alias: &str| {
            let matchers = Some(vec![Matcher::exact_name("A")]);
            let update = Update { alias: alias.to_owned(), matchers, ..Update::default() };
            let (_, changes) = bindings.update(update).expect("is there");
            changes.into_iter().map(|change| change.path).collect::<Vec<_>>()
        };
        assert_eq!(places("a"), ["bindings/0/matchers"]);
        assert_eq!(places("b"), ["bindings/1/input/matchers", "bindings/1/output/matchers"]);
        assert_eq!(places("c"), ["bindings/2/matchers"]);
    }

    #[test]
    fn what_is_written_can_be_said_again_and_only_what_differs_is_changed() {
        let text = "[[bindings]]\nalias = 'a'\nmatchers = [{ type = 'exact_name', value = 'A' }]\nchannels = [0, 1]\n\
                    [[bindings]]\nalias = 'b'\nprotocol = 'osc'\ninput = { port = 9000, host = '127.0.0.1' }\noutput = { port = 9001 }\n\
                    [[bindings]]\nalias = 'c'\nenabled = false\nmatchers = [{ type = 'NameContains', value = 'C' }]";
        let bindings = Bindings::parse(text).expect("TOML");
        let same = |alias: &str| {
            let Written { matchers, channels, input, output, description, enabled } =
                bindings.written(bindings.find(alias).expect("is there"));
            let alias = alias.to_owned();
            Update { alias, new_alias: None, matchers, channels, input, output, description, enabled: Some(enabled) }
        };
        for alias in ["a", "b", "c"] {
            assert!(bindings.update(same(alias)).is_err(), "{alias}: nothing changes");
        }
        let done = |update: Update| {
            let (what, changes) = bindings.update(update).expect("something changes");
            let changes: Vec<String> = changes
                .into_iter()
                .map(|change| format!("{} {}", change.path, change.value.as_deref().unwrap_or("removed")))
                .collect();
            (what, changes)
        };
        let none = End { matchers: None, host: None, port: None, transport: None, allow: None };
        assert_eq!(
            done(Update { channels: Some(vec![]), ..same("a") }),
            (
                "Change the binding a: take its channels away.".to_owned(),
                vec!["bindings/0/channels removed".to_owned()]
            )
        );
        assert_eq!(done(Update { channels: Some(vec![9]), ..same("a") }).1, ["bindings/0/channels [9]"]);
        let port = Some(9002);
        let (what, changes) = done(Update { output: Some(End { port, ..none.clone() }), ..same("b") });
        assert_eq!(what, "Change the binding b: give it another output.");
        assert_eq!(changes, ["bindings/1/output {\"port\":9002}"]);
        assert_eq!(done(Update { output: Some(none), ..same("b") }).1, ["bindings/1/output removed"]);
        assert_eq!(done(Update { enabled: Some(true), ..same("c") }).1, ["bindings/2/enabled true"]);
        let sides = End {
            matchers: Some(vec![Matcher::exact_name("Out")]),
            host: None,
            port: None,
            transport: None,
            allow: None,
        };
        let (what, _) = done(Update { output: Some(sides.clone()), ..same("a") });
        assert_eq!(what, "Change the binding a: give it an output.", "it had none of its own");
        let (_, changes) =
            done(Update { matchers: Some(vec![]), input: Some(sides.clone()), output: Some(sides), ..same("a") });
        let paths: Vec<&str> = changes.iter().filter_map(|change| change.split(' ').next()).collect();
        assert_eq!(paths, ["bindings/0/matchers", "bindings/0/input", "bindings/0/output"]);
    }

    #[test]
    fn old_forms_have_places_too() {
        let bindings = Bindings::parse("[device]\nname = 'Old'\n[[devices]]\nalias = 'b'").expect("TOML");
        assert_eq!((bindings.find("main").ok(), bindings.find("b").ok()), (Some("device"), Some("devices/0")));
        assert_eq!(bindings.matchers("device"), ["name_contains \"Old\""]);
    }
}
