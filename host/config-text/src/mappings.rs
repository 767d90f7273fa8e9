//! The mappings in a configuration's text, each with its place: as they are written, whatever they mean.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The mappings of a configuration's own file. Those of included files are left out: plans don't change them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mappings {
    /// In the order of the file, those of modes first.
    pub mappings: Vec<WrittenMapping>,
    /// The places of mappings that one event fires together, a list for each trigger. Some may name a device, others none.
    pub same_trigger: Vec<Vec<String>>,
}

/// A mapping as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenMapping {
    /// Its place: `modes/0/mappings/3`, `global_mappings/3`.
    pub place: String,
    /// Its mode's name; `null` if it is for every mode.
    pub mode: Option<String>,
    /// What it says.
    pub mapping: Map<String, Value>,
}

/// What of a text is read here.
#[derive(Deserialize)]
struct Show {
    #[serde(default)]
    modes: Vec<Mode>,
    #[serde(default)]
    global_mappings: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Mode {
    #[serde(default)]
    name: String,
    #[serde(default)]
    mappings: Vec<Map<String, Value>>,
}

impl Mappings {
    /// Reads a configuration's text.
    ///
    /// # Errors
    /// What is wrong with it, if it is not TOML.
    pub fn read(text: &str) -> Result<Self, toml::de::Error> {
        let Show { modes, global_mappings } = toml::from_str(text)?;
        let in_modes = modes
            .into_iter()
            .enumerate()
            .flat_map(|(number, mode)| placed(&format!("modes/{number}/mappings"), Some(mode.name), mode.mappings));
        let mappings: Vec<WrittenMapping> = in_modes.chain(placed("global_mappings", None, global_mappings)).collect();
        let fires = mappings.iter().filter_map(|one| {
            Some(Fires { place: &one.place, mode: one.mode.as_deref(), trigger: one.mapping.get("trigger")? })
        });
        let lists = same_trigger(fires).into_iter();
        let same_trigger = lists.map(|places| places.into_iter().map(str::to_owned).collect()).collect();
        Ok(Self { mappings, same_trigger })
    }
}

fn placed(list: &str, mode: Option<String>, mappings: Vec<Map<String, Value>>) -> Vec<WrittenMapping> {
    let place = |index: usize| format!("{list}/{index}");
    let numbered = mappings.into_iter().enumerate();
    numbered.map(|(index, mapping)| WrittenMapping { place: place(index), mode: mode.clone(), mapping }).collect()
}

/// A mapping, as far as it says when it fires.
#[derive(Debug, Clone, Copy)]
pub struct Fires<'m> {
    /// Its place.
    pub place: &'m str,
    /// Its mode's name; `None` if it is for every mode.
    pub mode: Option<&'m str>,
    /// Its trigger, as it is written.
    pub trigger: &'m Value,
}

impl<'m> Fires<'m> {
    /// The device that the trigger names; `None` if it is for any.
    fn device(&self) -> Option<&'m str> {
        self.trigger.get("device")?.as_str()
    }

    /// The trigger without its device, as text.
    fn control(&self) -> String {
        let mut control = self.trigger.clone();
        if let Some(keys) = control.as_object_mut() {
            keys.remove("device");
        }
        control.to_string()
    }
}

/// The places of mappings that one event fires together: their triggers are the same, or differ only in that some name a
/// device and others none, and their modes can be in force together. A list for each trigger.
pub fn same_trigger<'m>(mappings: impl IntoIterator<Item = Fires<'m>>) -> Vec<Vec<&'m str>> {
    let mut by_control = BTreeMap::<String, Vec<Fires<'m>>>::new();
    for one in mappings {
        by_control.entry(one.control()).or_default().push(one);
    }
    let lists = by_control.into_values().flat_map(by_device).map(|all| met(&all));
    lists.filter(|places| places.len() > 1).collect()
}

/// Those of one control, a list for each device unless one of them is for any device.
fn by_device(all: Vec<Fires<'_>>) -> Vec<Vec<Fires<'_>>> {
    let mut lists = BTreeMap::<&str, Vec<Fires<'_>>>::new();
    for one in &all {
        let Some(device) = one.device() else { return vec![all] };
        lists.entry(device).or_default().push(*one);
    }
    lists.into_values().collect()
}

/// The places of those that meet another one, in their order.
fn met<'m>(all: &[Fires<'m>]) -> Vec<&'m str> {
    let (mut in_mode, mut of_device, mut of_both) = (HashMap::new(), HashMap::new(), HashMap::new());
    for one in all {
        *in_mode.entry(one.mode).or_insert(0) += 1;
        *of_device.entry(one.device()).or_insert(0) += 1;
        *of_both.entry((one.mode, one.device())).or_insert(0) += 1;
    }
    let in_mode = |mode| in_mode.get(&mode).copied().unwrap_or(0);
    let of_device = |device| of_device.get(&device).copied().unwrap_or(0);
    let of_both = |mode, device| of_both.get(&(mode, device)).copied().unwrap_or(0);
    // One of a mode meets those of that mode and those of every mode, and one of a device those of that device and those of
    // any: looked up, since thousands may have one trigger. Each meets itself.
    let meets = |one: &&Fires<'m>| match (one.mode, one.device()) {
        (None, None) => all.len(),
        (mode, None) => in_mode(mode) + in_mode(None),
        (None, device) => of_device(device) + of_device(None),
        (mode, device) => of_both(mode, device) + of_both(mode, None) + of_both(None, device) + of_both(None, None),
    };
    all.iter().filter(|one| meets(one) > 1).map(|one| one.place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(note: u8) -> String {
        format!("trigger = {{ type = 'Note', note = {note} }}\naction = {{ type = 'Suppress' }}\n")
    }

    #[test]
    fn mappings_have_places_and_say_what_is_written() {
        let text = format!(
            "include = ['more.toml']\n[[modes]]\nname = 'A'\n[[modes]]\nname = 'B'\n[[modes.mappings]]\n{}\n\
             [[global_mappings]]\nname = 'all'\n{}",
            mapping(1),
            mapping(2)
        );
        let read = Mappings::read(&text).unwrap();
        let found: Vec<_> = read.mappings.iter().map(|one| (&*one.place, one.mode.as_deref())).collect();
        assert_eq!(found, [("modes/1/mappings/0", Some("B")), ("global_mappings/0", None)]);
        assert_eq!(read.mappings[1].mapping["name"], "all");
        assert_eq!(read.mappings[0].mapping["trigger"]["note"], 1);
        assert!(read.same_trigger.is_empty());
        assert_eq!(Mappings::read("").unwrap(), Mappings::default());
        assert!(Mappings::read("modes = [").is_err());
    }

    #[test]
    fn mappings_that_wait_for_the_same_are_found_where_both_can_be_in_force() {
        let text = format!(
            "[[modes]]\nname = 'A'\n[[modes.mappings]]\n{one}[[modes.mappings]]\n{other}[[modes.mappings]]\n{third}\
             [[modes]]\nname = 'B'\n[[modes.mappings]]\n{other}[[modes.mappings]]\n{third}[[modes.mappings]]\n{third}\
             [[global_mappings]]\n{one}",
            one = mapping(1),
            other = mapping(2),
            third = mapping(3),
        );
        // 2 is in two modes, of which one is active; of 3 two are in the same.
        assert_eq!(
            Mappings::read(&text).unwrap().same_trigger,
            [["modes/0/mappings/0", "global_mappings/0"], ["modes/1/mappings/1", "modes/1/mappings/2"]]
        );
    }
    #[test]
    fn a_mapping_for_any_device_meets_those_that_name_one() {
        let on = |device: &str| {
            let device = if device.is_empty() { String::new() } else { format!(", device = '{device}'") };
            format!("trigger = {{ type = 'Note', note = 1{device} }}\naction = {{ type = 'Suppress' }}\n")
        };
        let global = |devices: &[&str]| devices.iter().map(|of| format!("[[global_mappings]]\n{}", on(of))).collect();
        let found = |text: String| Mappings::read(&text).unwrap().same_trigger;
        assert_eq!(found(global(&["pads", ""])), [["global_mappings/0", "global_mappings/1"]]);
        assert!(found(global(&["pads", "keys"])).is_empty());
        assert_eq!(
            found(global(&["pads", "keys", "keys", "pads"])),
            [["global_mappings/1", "global_mappings/2"], ["global_mappings/0", "global_mappings/3"]]
        );
        // Of the modes A and B one is active: `keys` in A meets nothing, for any device is only one in B.
        let text = format!(
            "[[modes]]\nname = 'A'\n[[modes.mappings]]\n{}[[modes]]\nname = 'B'\n[[modes.mappings]]\n{}\
             [[global_mappings]]\n{}",
            on("keys"),
            on(""),
            on("pads")
        );
        assert_eq!(found(text), [["modes/1/mappings/0", "global_mappings/0"]]);
    }
}
