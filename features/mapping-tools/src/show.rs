//! The part of a configuration that mappings are in, and the places in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Modes and mappings, as the file has them. Everything else in it is skipped.
#[derive(Debug, Default, Deserialize)]
pub struct Show {
    /// The modes, in the order of the file.
    #[serde(default)]
    pub modes: Vec<Mode>,
    #[serde(default)]
    global_mappings: Vec<Map<String, Value>>,
    /// Further files of the configuration, as the file names them. They are a person's: plans do not change them.
    #[serde(default)]
    pub include: Vec<String>,
}

/// One mode.
#[derive(Debug, Deserialize)]
pub struct Mode {
    #[serde(default)]
    name: String,
    #[serde(default)]
    mappings: Vec<Map<String, Value>>,
}

/// The modes, as an agent sees them.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Modes {
    /// The one that is active.
    pub active: String,
    /// All of them, in the order of the file.
    pub modes: Vec<ModeView>,
    /// Files of the configuration whose modes and mappings are not shown: only a person changes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<String>,
}

/// One mode, as an agent sees it.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct ModeView {
    /// Its name.
    pub name: String,
    /// How many mappings it has.
    pub mappings: usize,
}

/// One mapping, and where it is.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Found {
    /// Its place in the configuration: modes/0/mappings/3, or `global_mappings/3`.
    pub place: String,
    /// Its mode's name; `null` if it is global.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What it says.
    pub mapping: Map<String, Value>,
}

impl Found {
    /// What people call it, or its place.
    pub fn name(&self) -> &str {
        let said = ["description", "name"].into_iter().find_map(|key| self.mapping.get(key)?.as_str());
        said.unwrap_or(&self.place)
    }
}

/// The places of mappings that have the same trigger and can be in force together, a list for each trigger.
pub fn same_trigger(mappings: &[Found]) -> Vec<Vec<String>> {
    let mut by_trigger = BTreeMap::<String, Vec<&Found>>::new();
    for found in mappings {
        if let Some(trigger) = found.mapping.get("trigger") {
            by_trigger.entry(Value::to_string(trigger)).or_default().push(found);
        }
    }
    let meets = |one: &Found, other: &Found| {
        one.place != other.place && (one.mode == other.mode || one.mode.is_none() || other.mode.is_none())
    };
    let met = |all: Vec<&Found>| {
        let is_met = |one: &&&Found| all.iter().any(|other| meets(one, other));
        all.iter().filter(is_met).map(|found| found.place.clone()).collect::<Vec<_>>()
    };
    by_trigger.into_values().map(met).filter(|places| places.len() > 1).collect()
}

impl Show {
    /// Reads a configuration.
    ///
    /// # Errors
    /// What is wrong, when it is no TOML; the host has no such configuration in force.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// All modes; `active` is the name of the active one.
    pub fn modes(&self, active: &str) -> Modes {
        let view = |mode: &Mode| ModeView { name: mode.name.clone(), mappings: mode.mappings.len() };
        let modes = self.modes.iter().map(view).collect();
        Modes { active: active.to_owned(), modes, included: self.include.clone() }
    }

    /// The mappings of a mode, the "global" ones, or all.
    ///
    /// # Errors
    /// That there is no such mode, and which there are.
    pub fn mappings(&self, mode: Option<&str>) -> Result<Vec<Found>, String> {
        let all = self.modes.iter().enumerate().flat_map(|(number, of)| {
            let place = format!("modes/{number}/mappings");
            found(place, Some(of.name.clone()), &of.mappings)
        });
        let all = all.chain(found("global_mappings".into(), None, &self.global_mappings));
        match mode {
            None => Ok(all.collect()),
            Some("global") => Ok(all.filter(|found| found.mode.is_none()).collect()),
            Some(mode) => {
                self.place_of_mode(mode)?;
                Ok(all.filter(|found| found.mode.as_deref() == Some(mode)).collect())
            }
        }
    }

    /// The mapping at a place.
    ///
    /// # Errors
    /// That there is none.
    pub fn mapping(&self, place: &str) -> Result<Found, String> {
        let all = self.mappings(None)?;
        all.into_iter().find(|found| found.place == place).ok_or_else(|| {
            format!(
                "there is no mapping at {place:?}; conductor_list_mappings gives the places, such as modes/0/mappings/3"
            )
        })
    }

    /// Where a mode's next mapping goes; the next global one without a mode.
    ///
    /// # Errors
    /// That there is no such mode, and which there are.
    pub fn next_place(&self, mode: Option<&str>) -> Result<String, String> {
        let Some(mode) = mode else { return Ok(format!("global_mappings/{}", self.global_mappings.len())) };
        let place = self.place_of_mode(mode)?;
        let mappings = self.modes.iter().find(|known| known.name == mode).map_or(0, |known| known.mappings.len());
        Ok(format!("{place}/mappings/{mappings}"))
    }

    /// Where a mode is.
    ///
    /// # Errors
    /// That there is no such mode, and which there are.
    pub fn place_of_mode(&self, mode: &str) -> Result<String, String> {
        let number = self.modes.iter().position(|known| known.name == mode).ok_or_else(|| {
            let known: Vec<_> = self.modes.iter().map(|mode| mode.name.as_str()).collect();
            let known = if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
            match &self.include[..] {
                [] => format!("there is no mode {mode:?}; {known}"),
                files => format!(
                    "there is no mode {mode:?} in the file itself; {known}. What the files {} have, only a person changes",
                    files.join(", ")
                ),
            }
        })?;
        Ok(format!("modes/{number}"))
    }
}

fn found(list: String, mode: Option<String>, mappings: &[Map<String, Value>]) -> impl Iterator<Item = Found> {
    mappings.iter().enumerate().map(move |(number, mapping)| Found {
        place: format!("{list}/{number}"),
        mode: mode.clone(),
        mapping: mapping.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[modes]]
        name = "Play"
        mappings = [{ trigger = { type = "Note", note = 36 }, action = { type = "Suppress" } }]
        [[modes]]
        name = "Mix"
        [[global_mappings]]
        description = "panic"
        trigger = { type = "Note", note = 99 }
        action = { type = "Suppress" }
    "#;

    #[test]
    fn every_mapping_has_a_place() {
        let show = Show::parse(TEXT).expect("TOML");
        let places = |mode| -> Vec<String> {
            show.mappings(mode).expect("a mode").into_iter().map(|found| found.place).collect()
        };
        assert_eq!(places(None), ["modes/0/mappings/0", "global_mappings/0"]);
        assert_eq!(places(Some("global")), ["global_mappings/0"]);
        assert_eq!(places(Some("Mix")), [""; 0]);
        assert_eq!(show.mapping("global_mappings/0").expect("is there").name(), "panic");
        assert_eq!(
            show.mappings(Some("Nix")).expect_err("no such mode"),
            "there is no mode \"Nix\"; there are Play, Mix"
        );
        assert!(show.mapping("modes/1/mappings/0").expect_err("no mapping").contains("there is no mapping at"));
    }

    #[test]
    fn what_stands_in_other_files_is_a_persons() {
        let show = Show::parse("include = ['shows/*.toml']\n").expect("TOML");
        assert_eq!(show.modes("Live").included, ["shows/*.toml"]);
        assert_eq!(
            show.next_place(Some("Live")).expect_err("it is in another file"),
            "there is no mode \"Live\" in the file itself; there are none. What the files shows/*.toml have, only a person \
             changes"
        );
    }

    #[test]
    fn the_next_mapping_goes_behind_the_last() {
        let show = Show::parse(TEXT).expect("TOML");
        assert_eq!(show.next_place(Some("Play")).as_deref(), Ok("modes/0/mappings/1"));
        assert_eq!(show.next_place(Some("Mix")).as_deref(), Ok("modes/1/mappings/0"));
        assert_eq!(show.next_place(None).as_deref(), Ok("global_mappings/1"));
    }

    #[test]
    fn mappings_that_wait_for_the_same_are_found_where_both_can_be_in_force() {
        let mapping =
            |note: u8| format!("trigger = {{ type = 'Note', note = {note} }}\naction = {{ type = 'Suppress' }}\n");
        let text = format!(
            "[[modes]]\nname = 'A'\n[[modes.mappings]]\n{one}[[modes.mappings]]\n{other}\
             [[modes]]\nname = 'B'\n[[modes.mappings]]\n{other}[[modes.mappings]]\n{third}\
             [[global_mappings]]\n{one}",
            one = mapping(1),
            other = mapping(2),
            third = mapping(3),
        );
        let all = Show::parse(&text).expect("TOML").mappings(None).expect("all of them");
        // 2 is in two modes, of which one is active.
        assert_eq!(same_trigger(&all), [["modes/0/mappings/0", "global_mappings/0"]]);
    }
}
