//! Pinning: the changes of a configuration that make a binding match one port and no other.

use serde_json::Value as Json;

use conductor_config_text::edit::Change;

/// Makes the binding of this alias match its device by this matcher alone, in every direction that it has matchers
/// for. `None` if no binding is called so.
///
/// What it had before goes: as long as a weaker matcher stays, the twin of a device that is unplugged would
/// take its place.
pub fn pin(text: &str, alias: &str, matcher: &Json) -> Option<Vec<Change>> {
    let root: toml::Table = text.parse().ok()?;
    let (place, binding) = binding(&root, alias)?;
    let sides = ["input", "output"].into_iter().filter_map(|side| Some((side, binding.get(side)?.as_table()?)));
    let mut changes: Vec<Change> = sides
        .filter(|(_, table)| table.contains_key("matchers"))
        .flat_map(|(side, table)| replaced(&[place.clone(), vec![side.to_owned()]].concat(), table, matcher))
        .collect();
    if changes.is_empty() || binding.contains_key("matchers") || binding.contains_key("name") {
        changes.extend(replaced(&place, binding, matcher));
    }
    Some(changes)
}

/// The list of matchers in the table at this place, with this one alone. One by one, so that the list keeps its form.
fn replaced(place: &[String], table: &toml::Table, matcher: &Json) -> Vec<Change> {
    let entry = |index: usize, value: Option<Json>| Change {
        path: [place, &["matchers".to_owned(), index.to_string()]].concat(),
        value,
    };
    let before = table.get("matchers").and_then(toml::Value::as_array).map_or(0, Vec::len);
    let rest = (1..before).rev().map(|index| entry(index, None));
    rest.chain([entry(0, Some(matcher.clone()))]).collect()
}

/// A binding and the way to it, in any form that is read.
fn binding<'r>(root: &'r toml::Table, alias: &str) -> Option<(Vec<String>, &'r toml::Table)> {
    let alias_of = |table: &'r toml::Table| table.get("alias").and_then(toml::Value::as_str);
    if let Some(device) = root.get("device").and_then(toml::Value::as_table)
        && alias_of(device).unwrap_or("main") == alias
    {
        return Some((vec!["device".to_owned()], device));
    }
    ["bindings", "devices"].into_iter().find_map(|list| {
        let entries = root.get(list)?.as_array()?.iter().enumerate();
        let mut tables = entries.filter_map(|(index, entry)| Some((index, entry.as_table()?)));
        let (index, table) = tables.find(|(_, table)| alias_of(table) == Some(alias))?;
        Some((vec![list.to_owned(), index.to_string()], table))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use conductor_config_text::edit::edited;

    fn pinned(text: &str, alias: &str) -> String {
        let matcher = json!({ "type": "usb_path", "value": "1-2" });
        let text = edited(text, &pin(text, alias, &matcher).unwrap()).unwrap();
        super::super::parse(&text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        text
    }

    // CFG-3: comments, order and layout stay.
    #[test]
    fn only_the_matchers_change() {
        let text = "\
# My pads.
[[bindings]]
alias = \"keys\" # left
[[bindings]]
alias = \"pads\"
matchers = [
  { type = \"name_contains\", value = \"Pad\" },
  { type = \"name_regex\", value = \"P\" }, # or so
] # both look the same
enabled = true

[[modes]]
name   =   \"Play\"
";
        let expected = text.replace(
            "  { type = \"name_contains\", value = \"Pad\" },\n  { type = \"name_regex\", value = \"P\" }, # or so\n",
            "  { type = \"usb_path\", value = \"1-2\" }, # or so\n",
        );
        assert_eq!(pinned(text, "pads"), expected);
        assert_eq!(pin(text, "none", &json!({})), None);
    }

    #[test]
    fn every_form_of_a_binding_can_be_pinned() {
        for (form, alias) in [
            ("[device]\nname = \"Pad\"\n", "main"),
            ("[device]\nalias = \"pads\"\n", "pads"),
            ("[[devices]]\nalias = \"pads\"\nname = \"Pad\"\n", "pads"),
            ("bindings = [{ alias = \"pads\", name = \"Pad\" }]\n", "pads"),
        ] {
            let text = pinned(form, alias);
            assert_eq!(text.matches("usb_path").count(), 1, "{text}");
        }
        let sides = "[[bindings]]\nalias = \"pads\"\ninput = { matchers = [] }\noutput = { matchers = [] }\n";
        let text = pinned(sides, "pads");
        assert_eq!(text.matches("matchers = [{ type = \"usb_path\", value = \"1-2\" }]").count(), 2, "{text}");
        assert!(!text.contains("\nmatchers") && !text.contains("[[bindings.matchers"), "{text}");
    }
}
