//! The actions that there are, the host's own and those of features, as a person chooses among them.

use serde_json::{Value, json};

/// The tool that lists them.
pub const TOOL: &str = "conductor_list_actions";
/// What most mappings do, the most usual first.
const USUAL_ACTIONS: [&str; 7] = ["Keystroke", "Text", "OscSend", "SendMidi", "MidiForward", "ModeChange", "Launch"];

/// The types of all actions, and what each does, those first that most mappings have. `list` returns a page of them, as
/// [`TOOL`] does.
///
/// # Errors
/// Those of `list`.
pub fn list<E>(mut list: impl FnMut(&Value) -> Result<Value, E>) -> Result<Vec<(String, String)>, E> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    loop {
        let page = list(&json!({ "after": all.len() }))?;
        let found = page["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
        all.extend(found.iter().map(|action| (text(&action["type"]), text(&action["summary"]))));
        let total = page["total"].as_u64().and_then(|total| usize::try_from(total).ok()).unwrap_or_default();
        if found.is_empty() || all.len() >= total {
            break;
        }
    }
    let rank = |kind: &str| USUAL_ACTIONS.iter().position(|usual| *usual == kind).unwrap_or(USUAL_ACTIONS.len());
    all.sort_by_key(|(kind, _): &(String, String)| rank(kind));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn actions_are_read_page_by_page_each_once() {
        let mut asked = Vec::new();
        let all = list(|args| {
            asked.push(args["after"].as_u64().unwrap());
            let after = args["after"].as_u64().unwrap();
            let page: Vec<Value> = (after..5).take(2).map(|number| json!({ "type": number.to_string() })).collect();
            Ok::<_, Infallible>(json!({ "actions": page, "total": 5 }))
        });
        let types: Vec<String> = all.unwrap().into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(types, ["0", "1", "2", "3", "4"]);
        assert_eq!(asked, [0, 2, 4]);
        // All of them on one page, or none.
        let once = list(|_| Ok::<_, Infallible>(json!({ "actions": [{ "type": "A", "summary": "Does it." }] })));
        assert_eq!(once.unwrap(), [("A".to_owned(), "Does it.".to_owned())]);
        assert!(list(|_| Ok::<_, Infallible>(json!({ "actions": [], "total": 5 }))).unwrap().is_empty());
    }

    #[test]
    fn what_most_mappings_do_is_listed_first() {
        let all = ["AddToVariable", "Delay", "Keystroke", "ModeChange", "OscSend"].map(|kind| json!({ "type": kind }));
        let listed = list(|_| Ok::<_, Infallible>(json!({ "actions": all }))).unwrap();
        let types: Vec<&str> = listed.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(types, ["Keystroke", "OscSend", "ModeChange", "AddToVariable", "Delay"]);
    }
}
