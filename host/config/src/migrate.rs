//! Migration of a configuration's text from old forms to the current one; comments, order and layout stay.
//!
//! `upgrade` does the same in memory, each time that a file is read. The new text means the same as the old: that is
//! verified before it is returned.

use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use super::diagnostic::Diagnostics;
use super::{Loaded, parse};
use conductor_config_text::edit::form_of;
use conductor_config_text::keys::{put_first, rename};

/// Why a text can't be brought to today's form.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// It has mistakes, so its meaning is undefined.
    #[error("{0}")]
    Wrong(Box<Diagnostics>),
    /// What came out means something else. A fault here and not in the file.
    #[error("today's form of {file} would not mean the same ({why}); nothing is changed. Please report this")]
    Differs {
        /// The file, as messages show it.
        file: String,
        /// What is different.
        why: String,
    },
}

/// The text in today's form. The same text where it has none but today's forms; `file` is its name as messages
/// show it.
///
/// # Errors
/// See [`MigrateError`].
pub fn migrated(text: &str, file: &str) -> Result<String, MigrateError> {
    let before = parse(text, file).map_err(|wrong| MigrateError::Wrong(Box::new(wrong)))?;
    migrated_file(&before, file, text)
}

/// The same for the text of one of the files that make up a configuration.
///
/// # Errors
/// See [`MigrateError`].
pub fn migrated_file(before: &Loaded, file: &str, text: &str) -> Result<String, MigrateError> {
    let differs = |why: String| MigrateError::Differs { file: file.to_owned(), why };
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| differs(error.message().to_owned()))?;
    let as_written = document.to_string();
    let root = document.as_table_mut();
    bindings(root);
    super::llm::migrate(root);
    for mappings in ["global_mappings", "modes"] {
        each(root.get_mut(mappings), &mut |table| match mappings {
            "modes" => each(table.get_mut("mappings"), &mut |mapping| each(mapping.get_mut("action"), &mut action)),
            _ => each(table.get_mut("action"), &mut action),
        });
    }
    let after = document.to_string();
    if after == as_written {
        return Ok(text.to_owned());
    }
    let after = form_of(text, after);
    match before.source.with_text(file, &after) {
        Ok(loaded) if loaded.config == before.config => Ok(after),
        Ok(_) => Err(differs("its parts have other values".to_owned())),
        Err(wrong) => Err(differs(wrong.render(false))),
    }
}

/// Has every binding stand under `[[bindings]]`, and tell its ports by today's words.
fn bindings(root: &mut Table) {
    if root.get("bindings").is_none_or(|bindings| bindings.is_array_of_tables() || bindings.is_array()) {
        if let Some((key, item)) = root.remove_entry("device") {
            add(root, &key, one_of_many(item));
        }
        if let Some((key, mut item)) = root.remove_entry("devices") {
            each(Some(&mut item), &mut direction);
            add(root, &key, item);
        }
    }
    each(root.get_mut("bindings"), &mut |binding| {
        for side in ["input", "output"] {
            each(binding.get_mut(side), &mut |side| each(side.get_mut("matchers"), &mut matcher));
        }
        each(binding.get_mut("matchers"), &mut matcher);
    });
}

/// `[device]` as the only entry of a list, called `main` unless it has a name.
fn one_of_many(item: Item) -> Item {
    match item {
        Item::Table(mut table) => {
            call_main(&mut table);
            Item::ArrayOfTables(ArrayOfTables::from_iter([table]))
        }
        Item::Value(Value::InlineTable(mut table)) => {
            call_main(&mut table);
            // A comment behind the table stays behind the list.
            let decor = std::mem::take(table.decor_mut());
            let mut list = Array::from_iter([table]);
            *list.decor_mut() = decor;
            Item::Value(Value::Array(list))
        }
        other => other,
    }
}

fn call_main(table: &mut dyn TableLike) {
    if !table.contains_key("alias") {
        table.insert("alias", toml_edit::value("main"));
        // Its name comes first, as in every other binding.
        put_first(table, "alias");
    }
}

/// Puts more among the bindings, each where it stands in the file.
fn add(root: &mut Table, old: &Key, more: Item) {
    match (root.remove("bindings"), more) {
        (None, more) => {
            // What stands before the key is the key's.
            let mut key = Key::new("bindings");
            *key.leaf_decor_mut() = old.leaf_decor().clone();
            root.insert_formatted(&key, more);
        }
        (Some(Item::ArrayOfTables(bindings)), Item::ArrayOfTables(more)) => {
            let mut all: Vec<Table> = bindings.into_iter().chain(more).collect();
            all.sort_by_key(Table::position);
            root.insert("bindings", Item::ArrayOfTables(all.into_iter().collect()));
        }
        (Some(bindings), more) => {
            let (bindings, more) = (as_array(bindings), as_array(more));
            root.insert("bindings", Item::Value(Value::Array(bindings.into_iter().chain(more).collect())));
        }
    }
}

fn as_array(item: Item) -> Array {
    match item.into_value() {
        Ok(Value::Array(array)) => array,
        _ => Array::new(),
    }
}

/// An instrument that is only sent to told its port as those do that are listened to.
fn direction(device: &mut dyn TableLike) {
    let Some(direction) = device.remove("direction") else { return };
    if direction.as_str() != Some("output") {
        return;
    }
    let matchers = match (device.remove("matchers"), device.remove("name")) {
        (Some(matchers), _) => as_array(matchers),
        (None, Some(name)) => {
            let name = name.into_value().unwrap_or_else(|_| Value::from(""));
            let mut contains = InlineTable::new();
            contains.insert("type", "name_contains".into());
            contains.insert("value", name.decorated(" ", " "));
            Array::from_iter([contains])
        }
        (None, None) => return,
    };
    let mut output = InlineTable::new();
    output.insert("matchers", Value::Array(matchers).decorated(" ", " "));
    device.insert("output", Item::Value(Value::InlineTable(output)));
}

/// `NameContains` is `name_contains` today.
fn matcher(matcher: &mut dyn TableLike) {
    let Some(Item::Value(kind)) = matcher.get_mut("type") else { return };
    let Some(old) = kind.as_str().filter(|old| old.starts_with(|letter: char| letter.is_ascii_uppercase())) else {
        return;
    };
    let mut new = String::new();
    for letter in old.chars() {
        if letter.is_ascii_uppercase() && !new.is_empty() {
            new.push('_');
        }
        new.push(letter.to_ascii_lowercase());
    }
    let decor = kind.decor().clone();
    *kind = new.into();
    *kind.decor_mut() = decor;
}

/// A `Conditional` says its parts by today's names, however deep it is.
fn action(table: &mut dyn TableLike) {
    let inside: &[&str] = match table.get("type").and_then(Item::as_str) {
        Some("Conditional" | "conditional") => {
            for (old, new) in [("if", "condition"), ("then_action", "then"), ("else_action", "else")] {
                rename(table, old, new);
            }
            &["then", "else"]
        }
        Some("Sequence" | "sequence") => &["actions"],
        Some("Repeat" | "repeat") => &["action"],
        _ => &[],
    };
    for key in inside {
        each(table.get_mut(key), &mut action);
    }
}

/// Shows the table that something is, or each table of the list that it is.
fn each(item: Option<&mut Item>, look: &mut dyn FnMut(&mut dyn TableLike)) {
    match item {
        Some(Item::Table(table)) => look(table),
        Some(Item::ArrayOfTables(tables)) => tables.iter_mut().for_each(|table| look(table)),
        Some(Item::Value(Value::InlineTable(table))) => look(table),
        Some(Item::Value(Value::Array(items))) => {
            for item in items.iter_mut() {
                if let Value::InlineTable(table) = item {
                    look(table);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(text: &str) -> String {
        let once = migrated(text, "c.toml").map_err(|error| error.to_string()).unwrap();
        assert_eq!(migrated(&once, "c.toml").unwrap(), once, "today's form stays as it is");
        once
    }

    // CFG-3: comments and layout stay.
    #[test]
    fn a_device_is_a_binding_where_it_stands() {
        let text = "# my show\n\n# the pads\n[device] # old\nname = \"Pads\" # on the left\nauto_reconnect = true\n";
        assert!(migrated(text, "c.toml").is_err(), "an unknown key is a mistake");
        let text =
            "# my show\n\n# the pads\n[device] # old\nname = \"Pads\" # on the left\n\n[[modes]]\nname   = 'Play'\n";
        assert_eq!(
            new(text),
            "# my show\n\n# the pads\n[[bindings]] # old\nalias = \"main\"\nname = \"Pads\" # on the left\n\n[[modes]]\nname   = 'Play'\n"
        );
        assert_eq!(
            new("device = { name = \"Pads\" } # so\n"),
            "bindings = [{ alias = \"main\", name = \"Pads\" }] # so\n"
        );
        assert_eq!(new("[device]\nalias = \"a\"\n"), "[[bindings]]\nalias = \"a\"\n");
    }

    #[test]
    fn devices_are_bindings_and_those_of_both_names_keep_their_order() {
        let text = "\
[[devices]] # first
alias = \"keys\"
direction = \"input\"
matchers = [
  { type = \"NameContains\", value = \"Key\" }, # any
  { type = \"usb_identifier\", vendor_id = 0x0763, product_id = 0x0192 },
]

[[modes]]
name = \"Play\"

[[bindings]]
alias = \"pads\"
name = \"Pad\"

# last
[[devices]]
alias = \"fm8\"
direction = \"output\"
matchers = [{ type = \"ExactName\", value = \"FM8\" }]

[[devices]]
alias = \"live\"
name = \"Live\"
direction = \"output\"
";
        let expected = "\
[[bindings]] # first
alias = \"keys\"
matchers = [
  { type = \"name_contains\", value = \"Key\" }, # any
  { type = \"usb_identifier\", vendor_id = 0x0763, product_id = 0x0192 },
]

[[modes]]
name = \"Play\"

[[bindings]]
alias = \"pads\"
name = \"Pad\"

# last
[[bindings]]
alias = \"fm8\"
output = { matchers = [{ type = \"exact_name\", value = \"FM8\" }] }

[[bindings]]
alias = \"live\"
output = { matchers = [{ type = \"name_contains\", value = \"Live\" }] }
";
        assert_eq!(new(text), expected);
    }

    #[test]
    fn a_conditional_says_its_parts_by_todays_names_however_deep() {
        let text = "\
[[modes]]
name = \"Play\"
[[modes.mappings]]
trigger = { type = \"Note\", note = 1 }
[modes.mappings.action] # or
type = \"Sequence\"
actions = [{ type = \"Conditional\", if = { type = \"Always\" }, then_action = { type = \"ModeChange\", mode = \"Play\" } }]
[[global_mappings]]
trigger = { type = \"Note\", note = 2 }
[global_mappings.action]
type = \"Conditional\"
# when
if = { type = \"Never\" } # never
then_action = { type = \"ModeChange\", mode = \"Play\" }
else_action = { type = \"Suppress\" }
";
        let expected =
            text.replace("if = ", "condition = ").replace("then_action", "then").replace("else_action", "else");
        assert_eq!(new(text), expected);
    }

    #[test]
    fn what_has_mistakes_or_is_of_today_is_left_alone() {
        assert!(matches!(migrated("[device\n", "c.toml"), Err(MigrateError::Wrong(_))));
        let today = "[[bindings]]\r\nalias   = 'a' # é\r\n";
        assert_eq!(new(today), today);
        assert_eq!(new("[device]\r\nname = 'a'\r\n"), "[[bindings]]\r\nalias = \"main\"\r\nname = 'a'\r\n");
        assert_eq!(new(""), "");
    }
}
