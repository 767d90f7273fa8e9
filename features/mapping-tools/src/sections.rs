//! A configuration piece by piece: what is at a place in it, one page of entries at a time.

use conductor_feature::Error;
use conductor_feature::json::unknown;
use conductor_feature::page::{self, Page};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// Bytes of an entry, as JSON, beyond which its long values are left out.
const MAX_ENTRY_BYTES: usize = 64 * 1024;
/// Bytes that each of its values has then, at most.
const MAX_VALUE_BYTES: usize = 4 * 1024;

/// What is at a place: an entry of a list, or a key of a table.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// Such as bindings/3.
    pub place: String,
    /// None: too long.
    pub value: Option<Value>,
    /// Too long here: ask for each as a section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

impl Entry {
    /// What is at `place`, or those of its values that have room.
    fn new(place: String, value: &Value) -> Self {
        if bytes(value) <= MAX_ENTRY_BYTES {
            return Self { place, value: Some(value.clone()), left_out: Vec::new() };
        }
        if let Value::Object(table) = value {
            let (short, long): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| bytes(value) <= MAX_VALUE_BYTES);
            let short: Map<String, Value> =
                short.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let short = Value::Object(short);
            if bytes(&short) <= MAX_ENTRY_BYTES {
                let left_out = long.into_iter().map(|(key, _)| format!("{place}/{key}")).collect();
                return Self { place, value: Some(short), left_out };
            }
        }
        Self { value: None, left_out: vec![place.clone()], place }
    }
}

/// What is one step below a value.
fn below<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Array(list) => list.get(step.parse::<usize>().ok()?),
        Value::Object(table) => table.get(step),
        _ => None,
    }
}

fn bytes(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
}

/// A configuration by its sections, which are the keys at its top.
#[derive(Debug)]
pub struct Sections(Map<String, Value>);

impl Sections {
    /// Reads a configuration.
    ///
    /// # Errors
    /// `failed` with what is wrong, when it is no TOML; the host has no such configuration in force.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map(Self).map_err(|error| Error::Failed(error.to_string()))
    }

    /// Further files that it includes, as it names them.
    pub fn included(&self) -> Vec<String> {
        let names = self.0.get("include").and_then(Value::as_array).into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// Each section with how long it is, the longest first.
    pub fn sizes(&self) -> String {
        let mut sizes: Vec<_> = self.0.iter().map(|(name, value)| (bytes(value), name, value)).collect();
        sizes.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        let size = |(bytes, name, value): (usize, &String, &Value)| match value {
            Value::Array(list) => format!("{name} ({bytes} bytes in a list of {})", list.len()),
            _ => format!("{name} ({bytes} bytes)"),
        };
        sizes.into_iter().map(size).collect::<Vec<_>>().join(", ")
    }

    /// A page of what is at `section`, a place: of a list its entries, of a table its keys, else the value alone.
    ///
    /// # Errors
    /// `invalid` if nothing is there; as of [`Page::of`].
    pub fn page(&self, section: &str, after: Option<i64>) -> Result<Page<Entry>, Error> {
        match self.at(section)? {
            Value::Array(list) => Page::of(list.iter().enumerate(), after, page::MAX_ENTRIES, |(number, value)| {
                Entry::new(format!("{section}/{number}"), value)
            }),
            Value::Object(table) => {
                Page::of(table, after, page::MAX_ENTRIES, |(key, value)| Entry::new(format!("{section}/{key}"), value))
            }
            // It is asked for by itself: as much of it as an answer has room for.
            value => Page::of([value], after, 1, |value| Entry {
                place: section.to_owned(),
                value: Some(value.clone()),
                left_out: Vec::new(),
            }),
        }
    }

    fn at(&self, section: &str) -> Result<&Value, Error> {
        let (name, rest) = section.split_once('/').map_or((section, None), |(name, rest)| (name, Some(rest)));
        let top = self.0.get(name).ok_or_else(|| unknown("section", name, self.0.keys().map(String::as_str)))?;
        let found = rest.into_iter().flat_map(|rest| rest.split('/')).try_fold(top, below);
        found.ok_or_else(|| {
            Error::Invalid(format!("there is nothing at {section:?}; the section {name:?} has its places"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Sections {
        Sections::parse(text).expect("TOML")
    }

    fn refused<T>(result: Result<T, Error>) -> String {
        match result {
            Err(Error::Invalid(text) | Error::Exhausted(text)) => text,
            _ => panic!("it is taken"),
        }
    }

    /// Every entry of a section, read page by page.
    fn all(sections: &Sections, section: &str) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            let Page { entries: found, next, .. } =
                sections.page(section, i64::try_from(entries.len()).ok()).expect("a page");
            assert!(!found.is_empty() || next.is_none(), "{section}: an empty page before the last");
            entries.extend(found);
            if next.is_none() {
                return entries;
            }
        }
    }

    #[test]
    fn lists_tables_and_single_values_are_sections() {
        let config = sections(
            "include = ['a.toml']\n[[bindings]]\nalias = 'pads'\n[[bindings]]\nalias = 'keys'\n\
             [models.fast]\nmodel = 'm'\n[models.slow]\nmodel = 'n'\n",
        );
        let places =
            |section: &str| -> Vec<String> { all(&config, section).into_iter().map(|entry| entry.place).collect() };
        assert_eq!(places("bindings"), ["bindings/0", "bindings/1"]);
        assert_eq!(places("models"), ["models/fast", "models/slow"]);
        assert_eq!(places("bindings/1"), ["bindings/1/alias"]);
        let names = all(&config, "bindings/1/alias");
        let alias = Entry { place: "bindings/1/alias".into(), value: Some("keys".into()), left_out: Vec::new() };
        assert_eq!(names, [alias]);
        assert_eq!(config.included(), ["a.toml"]);
    }

    #[test]
    fn a_list_of_any_length_is_read_page_by_page_each_entry_once() {
        const COUNT: usize = 10_000;
        let text: String = (0..COUNT).map(|number| format!("[[bindings]]\nalias = 'box {number}'\n")).collect();
        let config = sections(&text);
        let aliases: Vec<Value> =
            all(&config, "bindings").into_iter().map(|entry| entry.value.expect("short")["alias"].clone()).collect();
        let expected: Vec<Value> = (0..COUNT).map(|number| format!("box {number}").into()).collect();
        assert_eq!(aliases, expected);
        assert!(config.sizes().starts_with("bindings (") && config.sizes().contains(" in a list of 10000)"));
    }

    #[test]
    fn what_is_too_long_beside_others_is_a_section_of_its_own() {
        let mapping = |number: usize| format!("[[modes.mappings]]\nname = 'a mapping with the number {number}'\n");
        let mappings: String = (0..5000).map(mapping).collect();
        let config = sections(&format!("[[modes]]\nname = 'Play'\n{mappings}[[modes]]\nname = 'Mix'\n"));
        let modes = all(&config, "modes");
        assert_eq!(modes[0].value, Some(serde_json::json!({ "name": "Play" })));
        assert_eq!(modes[0].left_out, ["modes/0/mappings"]);
        assert_eq!((&modes[1].value, modes[1].left_out.len()), (&Some(serde_json::json!({ "name": "Mix" })), 0));
        let found = all(&config, "modes/0/mappings");
        assert_eq!((found.len(), found[4999].place.as_str()), (5000, "modes/0/mappings/4999"));
        // Its own entry has no room for it either, and says so.
        let place = "modes/0/mappings".to_owned();
        let own = Entry { place: place.clone(), value: None, left_out: vec![place] };
        assert_eq!(all(&config, "modes/0")[0], own);
    }

    #[test]
    fn a_place_with_nothing_is_refused_with_what_there_is() {
        let config = sections("[[modes]]\nname = 'Play'\n");
        assert_eq!(refused(config.page("mode", None)), "there is no section \"mode\"; did you mean \"modes\"?");
        for section in ["modes/1", "modes/x", "modes/0/name/more", "modes/"] {
            let said = refused(config.page(section, None));
            assert!(said.starts_with(&format!("there is nothing at {section:?}")), "{said}");
        }
        assert_eq!(refused(config.page("modes", Some(2))), "after = 2 is not from 0 to 1");
    }
}
