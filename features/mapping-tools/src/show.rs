//! The part of a configuration that mappings are in, and the places in it.

use std::collections::HashSet;

use conductor_config_text::mappings::{self, Fires};
use conductor_feature::Error;
use conductor_feature::page::{self, MAX_BYTES_BESIDE, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Mappings of one page, where nothing else is said.
const USUAL_LIMIT: usize = 250;
/// Bytes of a mapping in a list, as JSON, beyond which its long keys are left out.
const MAX_MAPPING_BYTES: usize = 64 * 1024;
/// Bytes that each key has then, at most.
const MAX_KEY_BYTES: usize = 4 * 1024;
/// Places of mappings with the same trigger in one list, at most.
const MAX_SAME: usize = 256;

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
    /// In the order of the file.
    pub modes: Vec<ModeView>,
    /// How many there are, if more than these.
    pub total: Option<usize>,
    /// How to get those that follow.
    pub next: Option<String>,
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
    /// Keys that are too long to be shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Found {
    /// The same mapping with other values of these keys.
    pub fn with(mut self, keys: &[(&str, Value)]) -> Self {
        self.mapping.extend(keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        self
    }

    /// What people call it, and what it does.
    pub fn in_words(&self) -> String {
        let part = |key: &str| self.mapping.get(key).unwrap_or(&Value::Null);
        format!("{}: {}", crate::quoted(self.name()), crate::in_few_words(part("trigger"), part("action")))
    }

    /// What people call it, or its place; without the full stop of a description, since it goes into a sentence.
    fn name(&self) -> &str {
        let said = ["description", "name"].into_iter().find_map(|key| self.mapping.get(key)?.as_str());
        let said = said.map(|said| said.trim_end_matches('.')).filter(|said| !said.is_empty());
        said.unwrap_or(&self.place)
    }

    /// The same, without its long keys if it has more than `most` bytes.
    fn shortened(mut self, most: usize) -> Self {
        let bytes = |value: &Value| serde_json::to_vec(value).map_or(0, |text| text.len());
        if self.mapping.values().map(bytes).sum::<usize>() > most {
            let long = self.mapping.iter().filter(|(_, value)| bytes(value) > MAX_KEY_BYTES);
            self.left_out = long.map(|(key, _)| key.clone()).collect();
            self.mapping.retain(|key, _| !self.left_out.contains(key));
        }
        self
    }
}

/// Which mappings are wanted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// A mode's name; "global" for those of no mode. Default: all.
    pub mode: Option<String>,
    /// Only those with each of these words in their JSON.
    pub words: Option<String>,
    /// Mappings to skip.
    pub after: Option<i64>,
    /// 1-1000. Default: 250.
    pub limit: Option<i64>,
}

/// A page of mappings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// In the order of the file, those of modes first.
    pub mappings: Vec<Found>,
    /// Places of mappings that one event fires together, a list each.
    pub same_trigger: Vec<Vec<String>>,
    /// Places left out of these lists.
    pub same_trigger_left_out: Option<usize>,
    /// How many there are, if more than these.
    pub total: Option<usize>,
    /// How to get those that follow.
    pub next: Option<String>,
    /// Files of the configuration whose mappings are not shown: only a person changes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included: Vec<String>,
}

/// A mapping of the configuration, and where it is.
#[derive(Debug)]
pub struct Placed<'s> {
    /// Its place, as in [`Found`].
    pub place: String,
    mode: Option<&'s str>,
    mapping: &'s Map<String, Value>,
}

impl Placed<'_> {
    fn found(&self) -> Found {
        Found {
            place: self.place.clone(),
            mode: self.mode.map(str::to_owned),
            mapping: self.mapping.clone(),
            left_out: Vec::new(),
        }
    }

    /// Whether each of these words, which are in lower case, is in what it says, or is its place.
    fn has(&self, words: &[String]) -> bool {
        if words.is_empty() {
            return true;
        }
        let text = serde_json::to_string(self.mapping).unwrap_or_default().to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()) || self.place == *word)
    }
}

/// The places of mappings that one event fires together, a list for each trigger that one of the `shown` places has; and how
/// many places were left out, because there is no room for them.
fn same_trigger(mappings: &[Placed<'_>], shown: &HashSet<&str>) -> Result<(Vec<Vec<String>>, Option<usize>), Error> {
    let fires = mappings
        .iter()
        .filter_map(|one| Some(Fires { place: &one.place, mode: one.mode, trigger: one.mapping.get("trigger")? }));
    let mut lists = mappings::same_trigger(fires);
    lists.retain(|places| places.iter().any(|place| shown.contains(place)));
    let all: usize = lists.iter().map(Vec::len).sum();
    lists.iter_mut().for_each(|places| places.truncate(MAX_SAME));
    let (lists, _) = page::within(lists, MAX_BYTES_BESIDE)?;
    let left_out = all - lists.iter().map(Vec::len).sum::<usize>();
    let lists = lists.into_iter().map(|places| places.into_iter().map(str::to_owned).collect()).collect();
    Ok((lists, (left_out > 0).then_some(left_out)))
}

impl Show {
    /// Reads a configuration.
    ///
    /// # Errors
    /// What is wrong, when it is no TOML; the host has no such configuration in force.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// A page of the modes, after the first `after`; `active` is the name of the active one.
    ///
    /// # Errors
    /// As of [`Page::of`].
    pub fn modes(&self, active: &str, after: Option<i64>) -> Result<Modes, Error> {
        let view = |mode: &Mode| ModeView { name: mode.name.clone(), mappings: mode.mappings.len() };
        let Page { entries: modes, total, next } = Page::of(&self.modes, after, page::MAX_ENTRIES, view)?;
        Ok(Modes { active: active.to_owned(), modes, total, next, included: self.include.clone() })
    }

    /// A page of the mappings that are wanted, and which mappings have the triggers of these.
    ///
    /// # Errors
    /// That there is no such mode, and which there are; as of [`page::limit`] and [`Page::of`].
    pub fn list(&self, List { mode, words, after, limit }: &List) -> Result<Listed, Error> {
        let most = page::limit(*limit, USUAL_LIMIT, page::MAX_ENTRIES)?;
        let of_mode = self.mappings(mode.as_deref()).map_err(Error::Invalid)?;
        let words: Vec<String> =
            words.iter().flat_map(|words| words.split_whitespace()).map(str::to_lowercase).collect();
        let wanted: Vec<&Placed<'_>> = of_mode.iter().filter(|one| one.has(&words)).collect();
        let Page { entries: mappings, total, next } =
            Page::of(wanted, *after, most, |one: &Placed<'_>| one.found().shortened(MAX_MAPPING_BYTES))?;
        let shown: HashSet<&str> = mappings.iter().map(|found| found.place.as_str()).collect();
        let (same_trigger, same_trigger_left_out) = same_trigger(&of_mode, &shown)?;
        Ok(Listed { mappings, same_trigger, same_trigger_left_out, total, next, included: self.include.clone() })
    }

    /// The mappings of a mode, the "global" ones, or all, in the order of the file, those of modes first.
    ///
    /// # Errors
    /// That there is no such mode, and which there are.
    pub fn mappings(&self, mode: Option<&str>) -> Result<Vec<Placed<'_>>, String> {
        let all = self.modes.iter().enumerate().flat_map(|(number, of)| {
            let place = format!("modes/{number}/mappings");
            placed(place, Some(of.name.as_str()), &of.mappings)
        });
        let all = all.chain(placed("global_mappings".into(), None, &self.global_mappings));
        match mode {
            None => Ok(all.collect()),
            Some("global") => Ok(all.filter(|placed| placed.mode.is_none()).collect()),
            Some(mode) => {
                self.place_of_mode(mode)?;
                Ok(all.filter(|placed| placed.mode == Some(mode)).collect())
            }
        }
    }

    /// The mapping at a place.
    ///
    /// # Errors
    /// That there is none.
    pub fn mapping(&self, place: &str) -> Result<Found, String> {
        let all = self.mappings(None)?;
        let found =
            all.iter().find(|placed| placed.place == place).map(|placed| placed.found().shortened(page::MAX_BYTES));
        found.ok_or_else(|| {
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

fn placed<'s>(
    list: String,
    mode: Option<&'s str>,
    mappings: &'s [Map<String, Value>],
) -> impl Iterator<Item = Placed<'s>> {
    let numbered = mappings.iter().enumerate();
    numbered.map(move |(number, mapping)| Placed { place: format!("{list}/{number}"), mode, mapping })
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
        let described = Show::parse("[[global_mappings]]\ndescription = 'All off.'").expect("TOML");
        assert_eq!(described.mapping("global_mappings/0").expect("is there").name(), "All off");
        let nameless = Show::parse("[[global_mappings]]\nname = '...'").expect("TOML");
        assert_eq!(nameless.mapping("global_mappings/0").expect("is there").name(), "global_mappings/0");
        assert_eq!(
            show.mappings(Some("Nix")).expect_err("no such mode"),
            "there is no mode \"Nix\"; there are Play, Mix"
        );
        assert!(show.mapping("modes/1/mappings/0").expect_err("no mapping").contains("there is no mapping at"));
    }

    #[test]
    fn what_stands_in_other_files_is_a_persons() {
        let show = Show::parse("include = ['shows/*.toml']\n").expect("TOML");
        assert_eq!(show.modes("Live", None).expect("a page").included, ["shows/*.toml"]);
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
        let show = Show::parse(&text).expect("TOML");
        let listed = show.list(&List::default()).expect("a page");
        // 2 is in two modes, of which one is active.
        assert_eq!(listed.same_trigger, [["modes/0/mappings/0", "global_mappings/0"]]);
        assert_eq!(listed.same_trigger_left_out, None);
        // The other one is on another page.
        let first = show.list(&List { limit: Some(1), ..List::default() }).expect("a page");
        assert_eq!(first.same_trigger, listed.same_trigger);
        let second = show.list(&List { limit: Some(1), after: Some(1), ..List::default() }).expect("a page");
        assert!(second.mappings[0].place == "modes/0/mappings/1" && second.same_trigger.is_empty());
    }

    /// A show with this many global mappings, each with a name of its own and with the same trigger.
    fn cues(count: usize) -> Show {
        let cue = |number: usize| {
            format!(
                "[[global_mappings]]\nname = 'Cue {number}.'\ntrigger = {{ type = 'CC', cc = 7 }}\n\
                 action = {{ type = 'Suppress' }}\n"
            )
        };
        Show::parse(&(0..count).map(cue).collect::<String>()).expect("TOML")
    }

    #[test]
    fn ten_thousand_mappings_are_read_page_by_page_each_once() {
        const COUNT: usize = 10_000;
        let show = cues(COUNT);
        let mut places = Vec::new();
        while places.len() < COUNT {
            let after = i64::try_from(places.len()).ok();
            let listed = show.list(&List { after, limit: Some(1000), ..List::default() }).expect("a page");
            let text = serde_json::to_string(&listed).expect("JSON");
            assert!(!listed.mappings.is_empty() && text.len() < 256 * 1024, "{} bytes", text.len());
            assert_eq!(listed.total, Some(COUNT));
            assert_eq!(listed.same_trigger_left_out, Some(COUNT - MAX_SAME));
            places.extend(listed.mappings.into_iter().map(|found| found.place));
            assert_eq!(listed.next.is_some(), places.len() < COUNT);
        }
        let expected: Vec<String> = (0..COUNT).map(|number| format!("global_mappings/{number}")).collect();
        assert_eq!(places, expected);
    }

    #[test]
    fn mappings_are_found_by_words() {
        let show = cues(1000);
        let found = |words: &str| {
            let listed = show.list(&List { words: Some(words.to_owned()), ..List::default() }).expect("a page");
            (listed.mappings.len(), listed.total, listed.mappings.first().map(|found| found.place.clone()))
        };
        assert_eq!(found("777. cue"), (1, None, Some("global_mappings/777".into())));
        assert_eq!(found("\"cc\":7 global_mappings/3"), (1, None, Some("global_mappings/3".into())));
        assert_eq!(found("encore"), (0, None, None));
        assert_eq!(found("cue"), (USUAL_LIMIT, Some(1000), Some("global_mappings/0".into())));
    }

    #[test]
    fn a_page_that_can_not_be_is_refused_with_what_can() {
        let show = cues(3);
        let refused = |after, limit| match show.list(&List { after, limit, ..List::default() }) {
            Err(Error::Invalid(text)) => text,
            other => panic!("it is taken: {other:?}"),
        };
        assert_eq!(refused(Some(4), None), "after = 4 is not from 0 to 3");
        assert_eq!(refused(Some(-1), None), "after = -1 is not from 0 to 3");
        assert_eq!(refused(None, Some(0)), "the limit 0 is not from 1 to 1000");
        assert_eq!(refused(None, Some(1001)), "the limit 1001 is not from 1 to 1000");
    }

    #[test]
    fn a_mapping_that_is_too_long_is_shown_without_its_long_keys() {
        let text = "x".repeat(300_000);
        let show = Show::parse(&format!(
            "[[global_mappings]]\nname = 'speech'\ntrigger = {{ type = 'CC', cc = 7 }}\n\
             action = {{ type = 'Text', text = '{text}' }}\n"
        ))
        .expect("TOML");
        let listed = show.list(&List::default()).expect("a page");
        let found = show.mapping("global_mappings/0").expect("is there");
        assert_eq!(listed.mappings, [found]);
        let [speech] = &listed.mappings[..] else { panic!("one mapping") };
        assert_eq!((speech.name(), &speech.left_out[..]), ("speech", &["action".to_owned()][..]));
        assert!(speech.mapping.contains_key("trigger") && !speech.mapping.contains_key("action"));
    }

    #[test]
    fn modes_are_listed_page_by_page() {
        let modes: String = (0..2500).map(|number| format!("[[modes]]\nname = 'scene {number}'\n")).collect();
        let show = Show::parse(&modes).expect("TOML");
        let page = show.modes("scene 0", Some(2000)).expect("a page");
        assert_eq!((page.modes.len(), page.total, page.next), (500, Some(2500), None));
        assert_eq!(page.modes[0].name, "scene 2000");
        assert!(show.modes("scene 0", None).expect("a page").next.is_some());
    }
}
