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
    /// The places of mappings that have the same trigger and can be in force together, a list for each trigger.
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
        let same_trigger = same_trigger(&mappings);
        Ok(Self { mappings, same_trigger })
    }
}

fn placed(list: &str, mode: Option<String>, mappings: Vec<Map<String, Value>>) -> Vec<WrittenMapping> {
    let place = |index: usize| format!("{list}/{index}");
    let numbered = mappings.into_iter().enumerate();
    numbered.map(|(index, mapping)| WrittenMapping { place: place(index), mode: mode.clone(), mapping }).collect()
}

fn same_trigger(mappings: &[WrittenMapping]) -> Vec<Vec<String>> {
    let mut by_trigger = BTreeMap::<String, Vec<&WrittenMapping>>::new();
    for one in mappings {
        if let Some(trigger) = one.mapping.get("trigger") {
            by_trigger.entry(trigger.to_string()).or_default().push(one);
        }
    }
    let met = |all: Vec<&WrittenMapping>| -> Vec<String> {
        let mut in_mode = HashMap::<Option<&str>, usize>::new();
        for one in &all {
            *in_mode.entry(one.mode.as_deref()).or_default() += 1;
        }
        let of = |mode: Option<&str>| in_mode.get(&mode).copied().unwrap_or_default();
        // One of a mode meets those of that mode and those of every mode; one of every mode meets all.
        let meets = |one: &WrittenMapping| match one.mode.as_deref() {
            Some(mode) => of(Some(mode)) + of(None) > 1,
            None => all.len() > 1,
        };
        all.iter().filter(|one| meets(one)).map(|one| one.place.clone()).collect()
    };
    by_trigger.into_values().map(met).filter(|places| places.len() > 1).collect()
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
}
