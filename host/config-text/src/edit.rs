//! Format-preserving edits of a configuration's text: what is not changed keeps its comments, its order
//! and its layout.
//!
//! A change names a place by keys and numbers from the top, `modes/0/mappings/3/action`, and says what
//! is to be there. The meaning of a configuration does not matter here: the caller validates the new text
//! as any other.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Where, as keys and numbers from the top. A number one past the end appends; tables and lists
    /// that are missing on the way are made. At least one.
    #[schemars(length(min = 1))]
    pub path: Vec<String>,
    /// What is to be there; none removes what is.
    pub value: Option<Json>,
}

/// Why a text can't be changed so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not TOML.
    #[error("the configuration is not TOML: {0}")]
    NotToml(String),
    /// A path without a step.
    #[error("the change has no path; write keys and numbers from the top, such as modes/0/mappings/3/action")]
    NoPath,
    /// Something on the way holds nothing.
    #[error("{place} is a {kind}, which has nothing called {step:?} in it")]
    NotInside {
        /// How far the path leads.
        place: String,
        /// What is there.
        kind: &'static str,
        /// The next step.
        step: String,
    },
    /// A number that no list has.
    #[error("{place} has {length} entries, numbered from 0; {step:?} is neither one of them nor the next")]
    NoSuchEntry {
        /// The list.
        place: String,
        /// Its entries.
        length: usize,
        /// The next step.
        step: String,
    },
    /// Something to remove that is not there.
    #[error("there is no {place} that could be removed")]
    NothingThere {
        /// The place.
        place: String,
    },
    /// JSON that TOML has no form for.
    #[error("the value for {place} has {what}, for which TOML has no form")]
    NoForm {
        /// The place.
        place: String,
        /// What it is.
        what: &'static str,
    },
    /// Something else than a table, for a list of tables.
    #[error("{place} is a list of tables, and takes tables only")]
    TablesOnly {
        /// The list.
        place: String,
    },
}

/// The text with the changes made, one after the other.
///
/// # Errors
/// The first change that can't be made. Nothing is changed in part: there is no text then.
pub fn edited(text: &str, changes: &[Change]) -> Result<String, EditError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| EditError::NotToml(error.to_string()))?;
    for change in changes {
        if change.path.is_empty() {
            return Err(EditError::NoPath);
        }
        Edit { change, depth: 0 }.table(document.as_table_mut(), true)?;
    }
    Ok(form_of(text, document.to_string()))
}

/// A byte order mark, which some editors begin a text with.
const BOM: char = '\u{feff}';

/// A text that was made from another one, in the form of that one: with its byte order mark if it has one, and with
/// its line ends where they are all carriage return and line feed. `toml_edit` keeps neither.
pub fn form_of(before: &str, mut after: String) -> String {
    if before.starts_with(BOM) && !after.starts_with(BOM) {
        after.insert(0, BOM);
    }
    let lines = before.matches('\n').count();
    if lines == 0 || before.matches("\r\n").count() < lines {
        return after;
    }
    after.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// One change, as far as it has come.
#[derive(Clone, Copy)]
struct Edit<'a> {
    change: &'a Change,
    /// How many steps are taken.
    depth: usize,
}

impl Edit<'_> {
    fn step(&self) -> &str {
        &self.change.path[self.depth]
    }

    fn is_last(&self) -> bool {
        self.depth + 1 == self.change.path.len()
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// Where it is, as text.
    fn place(&self) -> String {
        match self.depth {
            0 => "the configuration".to_owned(),
            depth => self.change.path[..depth].join("/"),
        }
    }

    fn no_form(&self, what: &'static str) -> EditError {
        EditError::NoForm { place: self.change.path.join("/"), what }
    }

    /// In a table; `block` tells one with a header of its own from one between braces.
    fn table(self, table: &mut dyn TableLike, block: bool) -> Result<(), EditError> {
        let key = self.step();
        if self.is_last() {
            return match &self.change.value {
                None => table
                    .remove(key)
                    .filter(|item| !item.is_none())
                    .map(drop)
                    .ok_or(EditError::NothingThere { place: self.change.path.join("/") }),
                Some(json) => {
                    // What is on one line stays there.
                    let on_its_line = table.get(key).is_some_and(Item::is_value);
                    let new = self.item(json, block && !on_its_line)?;
                    match table.get_mut(key) {
                        Some(old) => replace(old, new),
                        None => drop(table.insert(key, new)),
                    }
                    Ok(())
                }
            };
        }
        if self.change.value.is_some() && table.get(key).is_none_or(Item::is_none) {
            table.insert(key, self.missing(block));
        }
        let deeper = self.deeper();
        match table.get_mut(key) {
            None | Some(Item::None) => Err(EditError::NothingThere { place: self.change.path.join("/") }),
            Some(Item::Table(inner)) => {
                deeper.table(inner, true)?;
                // A table that lived only by what was in it must be written now, or it would be gone.
                let writes_nothing = |item: &Item| item.as_array_of_tables().is_some_and(ArrayOfTables::is_empty);
                if inner.iter().all(|(_, item)| writes_nothing(item)) {
                    inner.set_implicit(false);
                }
                Ok(())
            }
            Some(Item::ArrayOfTables(tables)) => deeper.tables(tables),
            Some(Item::Value(value)) => deeper.value(value),
        }
    }

    /// What a step makes that finds nothing: a list if the next step is a number, else a table.
    fn missing(&self, block: bool) -> Item {
        let next = &self.change.path[self.depth + 1];
        let list = next.parse::<usize>().is_ok();
        let of_tables = self.depth + 2 < self.change.path.len() || matches!(self.change.value, Some(Json::Object(_)));
        match (list, block) {
            (true, true) if of_tables => Item::ArrayOfTables(ArrayOfTables::new()),
            (true, _) => Item::Value(Value::Array(Array::new())),
            (false, true) => {
                let mut table = Table::new();
                // Without a header until something is in it that needs one.
                table.set_implicit(self.depth + 2 < self.change.path.len());
                Item::Table(table)
            }
            (false, false) => Item::Value(Value::InlineTable(InlineTable::new())),
        }
    }

    fn value(self, value: &mut Value) -> Result<(), EditError> {
        match value {
            Value::InlineTable(table) => self.table(table, false),
            Value::Array(array) => self.array(array),
            other => {
                Err(EditError::NotInside { place: self.place(), kind: other.type_name(), step: self.step().to_owned() })
            }
        }
    }

    /// The number that the step is, in a list of this length.
    fn entry(&self, length: usize) -> Result<usize, EditError> {
        let most = if self.change.value.is_some() { length } else { length.saturating_sub(1) };
        let number = self.step().parse().ok().filter(|number| *number <= most && (*number < length || length == most));
        number.ok_or_else(|| EditError::NoSuchEntry { place: self.place(), length, step: self.step().to_owned() })
    }

    fn tables(self, tables: &mut ArrayOfTables) -> Result<(), EditError> {
        let index = self.entry(tables.len())?;
        match &self.change.value {
            None if self.is_last() => {
                if index >= tables.len() {
                    return Err(EditError::NothingThere { place: self.change.path.join("/") });
                }
                tables.remove(index);
                return Ok(());
            }
            Some(json) if self.is_last() => {
                let Item::Table(mut new) = self.item(json, true)? else {
                    return Err(EditError::TablesOnly { place: self.place() });
                };
                match tables.get_mut(index) {
                    Some(old) => {
                        *new.decor_mut() = old.decor().clone();
                        if let Some(position) = old.position() {
                            new.set_position(Some(position));
                        }
                        *old = new;
                    }
                    None => tables.push(new),
                }
                return Ok(());
            }
            _ => {}
        }
        if index == tables.len() {
            tables.push(Table::new());
        }
        match tables.get_mut(index) {
            Some(table) => self.deeper().table(table, true),
            None => Err(EditError::NothingThere { place: self.change.path.join("/") }),
        }
    }

    fn array(self, array: &mut Array) -> Result<(), EditError> {
        let index = self.entry(array.len())?;
        if !self.is_last() {
            if index == array.len() {
                match self.missing(false) {
                    Item::Value(value) => append(array, value),
                    _ => return Err(EditError::TablesOnly { place: self.place() }),
                }
            }
            return match array.get_mut(index) {
                Some(value) => self.deeper().value(value),
                None => Err(EditError::NothingThere { place: self.change.path.join("/") }),
            };
        }
        match &self.change.value {
            None if index < array.len() => drop(array.remove(index)),
            None => return Err(EditError::NothingThere { place: self.change.path.join("/") }),
            Some(json) => {
                let new = self.inline(json)?;
                match array.get_mut(index) {
                    Some(old) => replace_value(old, new),
                    None => append(array, new),
                }
            }
        }
        Ok(())
    }

    /// JSON as TOML; `block` where a table may have a header of its own.
    fn item(&self, json: &Json, block: bool) -> Result<Item, EditError> {
        match json {
            Json::Object(object) if block => {
                let mut table = Table::new();
                for (key, value) in in_order(object) {
                    // What is small stays on its line.
                    let plain = !holds_tables(value);
                    table.insert(key, if plain { Item::Value(self.inline(value)?) } else { self.item(value, true)? });
                }
                Ok(Item::Table(table))
            }
            Json::Array(list) if block && !list.is_empty() && list.iter().all(Json::is_object) => {
                let mut tables = ArrayOfTables::new();
                for entry in list {
                    if let Item::Table(table) = self.item(entry, true)? {
                        tables.push(table);
                    }
                }
                Ok(Item::ArrayOfTables(tables))
            }
            other => self.inline(other).map(Item::Value),
        }
    }

    fn inline(&self, json: &Json) -> Result<Value, EditError> {
        Ok(match json {
            Json::Null => return Err(self.no_form("null")),
            Json::Bool(flag) => (*flag).into(),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => integer.into(),
                (None, Some(float)) if !number.is_u64() => float.into(),
                _ => return Err(self.no_form("a number beyond 64 bits")),
            },
            Json::String(text) => text.as_str().into(),
            Json::Array(list) => {
                let mut array = Array::new();
                for entry in list {
                    array.push(self.inline(entry)?);
                }
                Value::Array(array)
            }
            Json::Object(object) => {
                let mut table = InlineTable::new();
                for (key, value) in in_order(object) {
                    table.insert(key, self.inline(value)?);
                }
                Value::InlineTable(table)
            }
        })
    }
}

/// The keys that people write first: what kind of thing it is, what it is called, when it does what.
const FIRST: [&str; 7] = ["type", "alias", "name", "description", "trigger", "condition", "action"];

/// A table's keys as people write them. Of JSON's objects, no order is known.
fn in_order(object: &Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut entries: Vec<_> = object.iter().collect();
    entries.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
    entries
}

/// Whether it is a list of tables: those get headers, so that a person finds them.
fn holds_tables(json: &Json) -> bool {
    matches!(json, Json::Array(list) if !list.is_empty() && list.iter().all(Json::is_object))
}

/// Puts a new item where an old one was; a comment behind the old value stays.
fn replace(old: &mut Item, new: Item) {
    match (old, new) {
        (Item::Value(old), Item::Value(new)) => replace_value(old, new),
        (Item::Table(old), Item::Table(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            new.set_position(old.position());
            *old = new;
        }
        (old, new) => *old = new,
    }
}

/// Adds an entry: on a line of its own where the last one has one, behind the comment that the last one has.
fn append(array: &mut Array, mut new: Value) {
    let text = |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or_default().to_owned();
    let last = array.len().checked_sub(1).and_then(|last| array.get(last));
    let before = last.map(|last| text(last.decor().prefix())).unwrap_or_default();
    let Some((_, indent)) = before.rsplit_once('\n') else { return array.push(new) };
    // What follows the last entry: behind its comma, or before the bracket.
    let has_comma = array.trailing_comma();
    let after = if has_comma {
        text(Some(array.trailing()))
    } else {
        last.map(|last| text(last.decor().suffix())).unwrap_or_default()
    };
    let (comment, rest) = after.split_at(after.find('\n').unwrap_or(0));
    new.decor_mut().set_prefix(format!("{}\n{indent}", comment.trim_end()));
    if has_comma {
        array.set_trailing(rest);
    } else {
        new.decor_mut().set_suffix(rest);
        if let Some(last) = array.iter_mut().last() {
            last.decor_mut().set_suffix("");
        }
    }
    array.push_formatted(new);
}

fn replace_value(old: &mut Value, mut new: Value) {
    *new.decor_mut() = old.decor().clone();
    *old = new;
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join("/");
        match &self.value {
            Some(value) => write!(f, "{path} = {value}"),
            None => write!(f, "remove {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn change(path: &str, value: impl Into<Option<Json>>) -> Change {
        Change { path: path.split('/').map(str::to_owned).collect(), value: value.into() }
    }

    fn with(text: &str, path: &str, value: impl Into<Option<Json>>) -> String {
        edited(text, &[change(path, value)]).expect("a change that can be made")
    }

    const SHOW: &str = r#"# my show
[advanced_settings]
listen_mode = "all" # everything

[[modes]]
name = "Play" # the first

# kicks
[[modes.mappings]]
trigger = { type = "Note", note = 36 } # left pad
action = { type = "ModeChange", mode = "Mix" }

[[modes]]
name = "Mix"
"#;

    #[test]
    fn a_value_changes_and_everything_else_stays() {
        let text = with(SHOW, "advanced_settings/listen_mode", json!("configured"));
        assert_eq!(text, SHOW.replace("\"all\"", "\"configured\""));
        let text = with(SHOW, "modes/0/mappings/0/trigger/note", json!(38));
        assert_eq!(text, SHOW.replace("36", "38"));
    }

    #[test]
    fn a_table_on_one_line_stays_there() {
        let text = with(SHOW, "modes/0/mappings/0/trigger", json!({ "type": "CC", "cc": 7 }));
        assert_eq!(text, SHOW.replace("{ type = \"Note\", note = 36 }", "{ type = \"CC\", cc = 7 }"));
        let steps = json!({ "type": "Sequence", "actions": [{ "type": "Suppress" }] });
        let text = with(SHOW, "modes/0/mappings/0/action", steps);
        assert!(text.contains("action = { type = \"Sequence\", actions = [{ type = \"Suppress\" }] }\n"), "{text}");
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let windows = SHOW.replace('\n', "\r\n");
        let text = with(&windows, "advanced_settings/listen_mode", json!("configured"));
        assert_eq!(text, windows.replace("\"all\"", "\"configured\""));
        let mixed = "a = 1\r\nb = 2\n";
        assert!(!with(mixed, "a", json!(3)).ends_with("b = 2\r\n"), "no line ending is made up");
    }

    #[test]
    fn a_mapping_is_added_where_it_belongs() {
        let mapping = json!({
            "priority": 1,
            "action": { "type": "ModeChange", "mode": "Play" },
            "trigger": { "note": 40, "type": "Note" },
            "name": "back",
        });
        let text = with(SHOW, "modes/1/mappings/0", mapping.clone());
        let expected = "\n[[modes]]\nname = \"Mix\"\n\n[[modes.mappings]]\nname = \"back\"\n\
            trigger = { type = \"Note\", note = 40 }\naction = { type = \"ModeChange\", mode = \"Play\" }\n\
            priority = 1\n";
        assert!(text.ends_with(expected), "{text}");
        let text = with(SHOW, "modes/0/mappings/1", mapping);
        let (play, mix) = text.split_once("[[modes]]\nname = \"Mix\"").expect("both modes");
        assert!(play.contains("note = 40") && play.contains("# kicks") && !mix.contains("note"), "{text}");
    }

    #[test]
    fn an_entry_is_added_on_a_line_of_its_own_where_the_others_have_one() {
        for (list, expected) in [
            ("[1, 2]", "[1, 2, 3]"),
            ("[]", "[3]"),
            ("[\n  1,\n  2,\n]", "[\n  1,\n  2,\n  3,\n]"),
            ("[\n  1,\n  2\n]", "[\n  1,\n  2,\n  3\n]"),
            ("[\n\t1, # one\n\t2, # two\n]", "[\n\t1, # one\n\t2, # two\n\t3,\n]"),
            ("[\n  1,\n  # the second\n  2 # two\n]", "[\n  1,\n  # the second\n  2, # two\n  3\n]"),
            ("[ # all\n  2,\n  # more to come\n]", "[ # all\n  2,\n  3,\n  # more to come\n]"),
            ("[\n  1, 2,\n]", "[\n  1, 2, 3,\n]"),
        ] {
            let index = if list == "[]" { 0 } else { list.matches(['1', '2']).count() };
            let text = with(&format!("a = {list}\n"), &format!("a/{index}"), json!(3));
            assert_eq!(text, format!("a = {expected}\n"), "{list}");
            let windows = with(&format!("a = {list}\n").replace('\n', "\r\n"), &format!("a/{index}"), json!(3));
            assert_eq!(windows, format!("a = {expected}\n").replace('\n', "\r\n"), "{list}");
        }
    }

    #[test]
    fn what_is_removed_takes_only_its_own_lines() {
        assert!(!with(SHOW, "advanced_settings/listen_mode", None).contains("listen_mode"));
        let text = with(SHOW, "modes/0/mappings/0", None);
        assert!(text.contains("# my show") && text.contains("name = \"Mix\"") && !text.contains("note"), "{text}");
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let text = with("", "bindings/0", json!({ "alias": "pads" }));
        assert_eq!(text, "[[bindings]]\nalias = \"pads\"\n");
        let text = with("", "advanced_settings/listen_mode", json!("all"));
        assert_eq!(text, "[advanced_settings]\nlisten_mode = \"all\"\n");
        let text = with("", "features/osc-output/grants/udp/0", json!("127.0.0.1:9"));
        assert_eq!(text, "[features.osc-output.grants]\nudp = [\"127.0.0.1:9\"]\n");
    }

    #[test]
    fn what_can_not_be_done_says_why() {
        let refused = |path: &str, value: Option<Json>| edited(SHOW, &[change(path, value)]).unwrap_err().to_string();
        assert_eq!(
            refused("modes/5", Some(json!({}))),
            "modes has 2 entries, numbered from 0; \"5\" is neither one of them nor the next"
        );
        assert_eq!(
            refused("advanced_settings/listen_mode/x", Some(json!(1))),
            "advanced_settings/listen_mode is a string, which has nothing called \"x\" in it"
        );
        assert_eq!(refused("nothing/here", None), "there is no nothing/here that could be removed");
        assert_eq!(
            refused("modes/2", None),
            "modes has 2 entries, numbered from 0; \"2\" is neither one of them nor the next"
        );
        assert_eq!(refused("modes/0", Some(json!(3))), "modes is a list of tables, and takes tables only");
        assert_eq!(refused("x", Some(json!(null))), "the value for x has null, for which TOML has no form");
        assert!(edited("= x", &[]).unwrap_err().to_string().starts_with("the configuration is not TOML"));
        assert_eq!(edited("", &[Change { path: vec![], value: None }]), Err(EditError::NoPath));
    }

    /// What the edit means, said on plain data.
    fn patched(data: &mut Json, path: &[String], value: &Option<Json>) {
        let (step, rest) = path.split_first().expect("a step");
        if let Json::Array(list) = data {
            let index: usize = step.parse().expect("a number");
            match (rest.is_empty(), value) {
                (true, None) => drop(list.remove(index)),
                (true, Some(new)) if index == list.len() => list.push(new.clone()),
                (true, Some(new)) => list[index] = new.clone(),
                (false, _) => patched(&mut list[index], rest, value),
            }
        } else if let Json::Object(object) = data {
            match (rest.is_empty(), value) {
                (true, None) => drop(object.remove(step)),
                (true, Some(new)) => drop(object.insert(step.clone(), new.clone())),
                (false, _) => patched(object.get_mut(step).expect("a member"), rest, value),
            }
        }
    }

    /// A list of tables without any is not written at all.
    fn without_empty_lists(data: &mut Json) {
        match data {
            Json::Object(object) => {
                object.retain(|_, inner| !inner.as_array().is_some_and(Vec::is_empty));
                object.values_mut().for_each(without_empty_lists);
            }
            Json::Array(list) => list.iter_mut().for_each(without_empty_lists),
            _ => {}
        }
    }

    fn data() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Json::from),
            any::<i32>().prop_map(Json::from),
            "[a-z \"]{0,6}".prop_map(Json::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    fn table() -> impl Strategy<Value = Json> {
        proptest::collection::btree_map("[a-d]", data(), 1..4).prop_map(|map| Json::Object(map.into_iter().collect()))
    }

    /// A path to something in it, by a walk that the numbers choose.
    fn walk(data: &Json, numbers: &[usize]) -> Vec<String> {
        let mut at = data;
        let mut path = Vec::new();
        for &number in numbers {
            match at {
                Json::Object(object) if !object.is_empty() => {
                    let (key, inner) = object.iter().nth(number % object.len()).expect("one of them");
                    path.push(key.clone());
                    at = inner;
                }
                Json::Array(list) if !list.is_empty() => {
                    path.push((number % list.len()).to_string());
                    at = &list[number % list.len()];
                }
                _ => break,
            }
        }
        path
    }

    proptest! {
        #[test]
        fn an_edit_means_the_same_on_text_as_on_data(
            before in table(),
            new in data(),
            numbers in proptest::collection::vec(any::<usize>(), 1..4),
            remove in any::<bool>(),
        ) {
            let text = toml::to_string(&before).expect("TOML");
            let path = walk(&before, &numbers);
            let change = Change { path, value: (!remove).then_some(new) };
            let mut after = before.clone();
            patched(&mut after, &change.path, &change.value);
            match edited(&text, std::slice::from_ref(&change)) {
                Ok(text) => {
                    let mut read: Json = toml::from_str(&text).expect("still TOML");
                    without_empty_lists(&mut read);
                    without_empty_lists(&mut after);
                    prop_assert_eq!(read, after, "{}", text);
                }
                // A list of tables takes nothing else.
                Err(EditError::TablesOnly { .. }) => {}
                Err(other) => prop_assert!(false, "{change}: {other}"),
            }
        }
    }
}
