//! The lights of a device's controls, read from its profile: enough to call a colour by its name.

use serde_json::Value;

use crate::Note;

/// What most lights show when they are dark, where a profile says nothing else.
const OFF: u8 = 0;
/// The highest value that a message of MIDI has.
const MAX_VALUE: u8 = 127;

/// How the lights of some controls are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLight {
    /// What the controls send.
    notes: Vec<Note>,
    /// Whether a controller of the control's number sets it, and not its note.
    pub is_controller: bool,
    /// Where it is not the control's.
    pub channel: Option<u8>,
    /// What it can show, by name.
    values: Vec<(String, u8)>,
}

impl DeviceLight {
    /// What it can show beside being dark.
    pub fn colours(&self) -> impl Iterator<Item = &(String, u8)> {
        self.values.iter().filter(|(name, _)| name != "off")
    }

    /// What this value is called. `None` if it has no name.
    pub fn name_of(&self, value: u8) -> Option<&str> {
        self.values.iter().find(|(_, known)| *known == value).map(|(name, _)| name.as_str())
    }

    /// The value at which it is dark.
    pub fn off(&self) -> u8 {
        self.values.iter().find(|(name, _)| name == "off").map_or(OFF, |(_, value)| *value)
    }

    /// The colour that Tab writes: the first that begins as what is typed, or the one behind that whose whole name is typed.
    pub fn next_colour(&self, typed: &str) -> Option<&str> {
        let typed = typed.to_lowercase();
        let names: Vec<&str> = self.colours().map(|(name, _)| name.as_str()).collect();
        match names.iter().position(|name| name.to_lowercase() == typed) {
            Some(at) => names.get(at + 1).or(names.first()).copied(),
            None => names.into_iter().find(|name| name.to_lowercase().starts_with(&typed)),
        }
    }
}

/// The light of the control that sends this note. `None` if it has none that a message of MIDI sets.
pub fn light_of(lights: &[DeviceLight], note: Note) -> Option<&DeviceLight> {
    lights.iter().find(|light| light.notes.contains(&note))
}

/// The value that is meant: a number, or the name of a colour. `None` if it is neither.
pub fn value(light: Option<&DeviceLight>, typed: &str) -> Option<u8> {
    let named = light.and_then(|light| light.values.iter().find(|(name, _)| name.eq_ignore_ascii_case(typed)));
    match named {
        Some((_, value)) => Some(*value),
        None => typed.parse::<u8>().ok().filter(|value| *value <= MAX_VALUE),
    }
}

/// The lights of a profile, as the tool that returns it has them: of the mode that its device is in as it comes.
pub fn lights(profile: &Value) -> Vec<DeviceLight> {
    let first_mode = profile["modes"][0]["name"].as_str();
    let is_first = |series: &&Value| {
        let modes = list(&series["modes"]);
        modes.is_empty() || first_mode.is_none_or(|first| modes.iter().any(|mode| mode.as_str() == Some(first)))
    };
    list(&profile["series"]).iter().filter(is_first).filter_map(|series| lit(profile, series)).collect()
}

/// How the lights of a series of controls are set. `None` if none of them has one that a message of MIDI sets.
fn lit(profile: &Value, series: &Value) -> Option<DeviceLight> {
    let id = series["light"].as_str()?;
    let light = list(&profile["lights"]).iter().find(|light| light["id"].as_str() == Some(id))?;
    let is_controller = match light["message"].as_str()? {
        "note" => false,
        "cc" => true,
        _ => return None,
    };
    let message = |control: &Value| {
        let (_, message) = control.as_str()?.rsplit_once(": ")?;
        Note::named(message)
    };
    let value = |value: &Value| {
        let (name, value) = value.as_str()?.rsplit_once(" = ")?;
        let value: u8 = value.parse().ok()?;
        (value <= MAX_VALUE).then(|| (name.to_owned(), value))
    };
    let notes: Vec<Note> = list(&series["controls"]).iter().filter_map(message).collect();
    let values: Vec<(String, u8)> = list(&light["values"]).iter().filter_map(value).collect();
    let channel = light["channel"].as_u64().and_then(|channel| u8::try_from(channel).ok());
    (!notes.is_empty() && !values.is_empty()).then_some(DeviceLight { notes, is_controller, channel, values })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lights_are_those_of_the_first_mode_that_midi_sets() {
        let series = |controls: Value, light: &str, modes: Value| json!({ "kind": "pad", "controls": controls, "light": light, "modes": modes });
        let profile = json!({
            "modes": [{ "name": "Notes" }, { "name": "Faders" }],
            "lights": [
                { "id": "pads", "message": "note", "channel": 6, "values": ["off = 1", "green = 5", "Red = 9", "x", "y = 300"] },
                { "id": "screen", "message": "sysex", "channel": null, "values": ["on = 1"] },
            ],
            "series": [
                series(json!(["pad 1: note 36 ch 9", "pad 2: cc 7"]), "pads", json!(["Notes"])),
                series(json!(["pad 1: note 40"]), "pads", json!(["Faders"])),
                series(json!(["pad 3: note 41"]), "screen", json!([])),
                series(json!(["pad 4: note 42"]), "gone", json!([])),
            ],
        });
        let lights = lights(&profile);
        let note = |number, channel| Note { number, channel };
        assert_eq!(lights.len(), 1);
        let light = light_of(&lights, note(36, 9)).unwrap();
        assert_eq!((light.off(), light.channel, light.is_controller), (1, Some(6), false));
        assert_eq!(light_of(&lights, note(36, 0)), None);
        // Tab goes through them, from what is typed.
        assert_eq!(
            [light.next_colour(""), light.next_colour("r"), light.next_colour("GREEN")],
            [Some("green"), Some("Red"), Some("Red")]
        );
        assert_eq!((light.next_colour("red"), light.next_colour("blue")), (Some("green"), None));
        let values = ["green", "RED", "off", "127", "128", "blue"].map(|typed| value(Some(light), typed));
        assert_eq!(values, [Some(5), Some(9), Some(1), Some(127), None, None]);
        assert_eq!((value(None, "3"), value(None, "green")), (Some(3), None));
        assert_eq!(super::lights(&json!(null)), []);
    }
}
