//! Mappings of the configuration in force, which of them are shown, and plans that change, light or remove the chosen one.

use conductor_config_view::Mapping;
use conductor_learn_mapping::{HeldLight, Note, action_form, device_light, device_light::DeviceLight};
use conductor_terminal::typed::Line;
use serde_json::{Map, Value, json};

use super::State;
use super::overlay::{Overlay, Prompt, Purpose};
use crate::api::{Act, Query};

/// Mappings, and which are shown.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// In lower case.
    pub(crate) search: String,
    /// The places in the list of those that have the text.
    pub(crate) shown: Vec<usize>,
    pub(crate) at: usize,
    pub(crate) scroll: usize,
}

/// What of a mapping's feedback is its light.
const LIGHT: [&str; 3] = ["fired", "idle", "while_held"];

/// A mapping whose light is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MappingLight {
    place: String,
    called: String,
    /// The binding of the device that has the light.
    pub(super) device: String,
    /// What the control sends.
    pub(super) note: Note,
    /// What the light shows now; `None` if the mapping sets none.
    shows: Option<String>,
    /// What of its feedback is no light, and stays.
    rest: Map<String, Value>,
}

impl State {
    /// Finds the mappings that are shown.
    pub(super) fn search(&mut self) {
        let all = self.config.as_ref().map(|config| config.mappings.as_slice()).unwrap_or_default();
        let search = &self.mappings.search;
        let found = all.iter().enumerate().filter(|(_, mapping)| mapping.has(search));
        self.mappings.shown = found.map(|(at, _)| at).collect();
        self.mappings.at = self.mappings.at.min(self.mappings.shown.len().saturating_sub(1));
        self.mappings.scroll = 0;
    }

    /// The chosen mapping.
    pub(super) fn chosen_mapping(&self) -> Option<&Mapping> {
        let at = self.mappings.shown.get(self.mappings.at)?;
        self.config.as_ref()?.mappings.get(*at)
    }

    /// What the configuration has of the chosen mapping. `None` if it is too long to be kept here.
    pub(super) fn written_mapping(&self) -> Option<Value> {
        toml::from_str(&self.chosen_mapping()?.text).ok()
    }

    /// Asks what the chosen mapping should do, by a form of what it does.
    pub(super) fn change_mapping(&mut self) {
        let (Some(mapping), Some(written)) = (self.chosen_mapping(), self.written_mapping()) else { return };
        self.learn.changed = Some(mapping.place.clone());
        (self.learn.refused, self.learn.form) = (None, None);
        if self.learn.actions.is_empty() {
            self.requests.ask(Query::Actions);
        }
        self.ask_action_line(&action_form::line(&written["action"]));
        self.want_form(written["action"].clone());
    }

    /// Proposes to remove the chosen mapping.
    pub(super) fn remove_mapping(&mut self) {
        if let Some(place) = self.chosen_mapping().map(|mapping| mapping.place.clone()) {
            self.requests.act(Act::ProposeBy { tool: "conductor_delete_mapping", args: json!({ "place": place }) });
        }
    }

    /// The light that the chosen mapping can have. `None` if it waits for something else than the press of one note of one device.
    pub(super) fn light_of_mapping(&self) -> Option<MappingLight> {
        let (mapping, written) = (self.chosen_mapping()?, self.written_mapping()?);
        let (trigger, feedback) = (&written["trigger"], written["feedback"].as_object().cloned().unwrap_or_default());
        let is_press = matches!(trigger["type"].as_str(), Some("Note" | "VelocityRange")) && trigger["on"] != "release";
        let channel = match &trigger["channel"] {
            Value::Null => 0,
            Value::String(name) => name.strip_prefix("ch")?.parse::<u8>().ok()?.checked_sub(1)?,
            number => u8::try_from(number.as_u64()?).ok()?,
        };
        let number = u8::try_from(trigger["note"].as_u64()?).ok().filter(|_| is_press)?;
        let shows = ["velocity", "value"].into_iter().find_map(|key| feedback.get("fired")?[key].as_u64());
        let is_lit = feedback.contains_key("fired") || feedback.contains_key("idle");
        Some(MappingLight {
            place: mapping.place.clone(),
            called: mapping.called().to_owned(),
            device: feedback.get("target").unwrap_or(&trigger["device"]).as_str()?.to_owned(),
            note: Note { number, channel },
            shows: is_lit.then(|| shows.map(|value| value.to_string()).unwrap_or_default()),
            rest: feedback.into_iter().filter(|(key, _)| !LIGHT.contains(&key.as_str())).collect(),
        })
    }

    /// Asks what the light of the chosen mapping shows.
    pub(super) fn ask_mapping_light(&mut self) {
        let Some(light) = self.light_of_mapping() else { return };
        if self.learn.lights.as_ref().is_none_or(|(known, _)| *known != light.device) {
            self.requests.ask(Query::Lights(light.device.clone()));
        }
        let line = Line::new(light.shows.as_deref().unwrap_or_default());
        self.overlay = Some(Overlay::Line(Prompt::new("", line, Purpose::MappingLight(Box::new(light)))));
        self.name_light_line();
    }

    /// Proposes the light that was typed for a mapping, or asks again.
    pub(super) fn submit_mapping_light(&mut self, light: Box<MappingLight>, text: &str) {
        let MappingLight { place, called, device, note, shows, rest } = &*light;
        let path = format!("{place}/feedback");
        let known = self.known_light_of(device, *note).flatten();
        let (description, change) = match device_light::value(known, text) {
            None if text.is_empty() && shows.is_none() => return,
            None if text.is_empty() => {
                let mut change = json!({ "path": path });
                // The device alone would be no feedback.
                if rest.contains_key("text") {
                    change["value"] = rest.clone().into();
                }
                (format!("Take the light off {called}."), change)
            }
            None => {
                let why = no_light(known);
                let again = Prompt::new("", Line::new(text), Purpose::MappingLight(light));
                self.overlay = Some(Overlay::Line(Prompt { refused: Some(why.to_owned()), ..again }));
                self.name_light_line();
                return;
            }
            Some(on) => {
                let mut feedback = HeldLight::shown(known, on).feedback(*note);
                rest.iter().for_each(|(key, value)| feedback[key] = value.clone());
                (format!("Give {called} a light while it is held."), json!({ "path": path, "value": feedback }))
            }
        };
        let args = json!({ "description": description, "changes": [change] });
        self.requests.act(Act::ProposeBy { tool: "conductor_batch_changes", args });
    }
}

/// Why what was typed is no light.
pub(super) fn no_light(known: Option<&DeviceLight>) -> &'static str {
    if known.is_some() { "no colour is called so" } else { "a number, 0 to 127" }
}
