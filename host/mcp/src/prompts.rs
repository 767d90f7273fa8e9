//! MCP prompts: instructions for frequent tasks of agents, and completion of their arguments.

use rmcp::ErrorData;
use rmcp::model::{CompletionInfo, GetPromptResult, Prompt, PromptArgument, PromptMessage, Reference, Role};
use serde_json::Map;
use serde_json::Value;

use super::described::title;
use super::{resources, skills};
use conductor_host::host::Host;
use conductor_skills::library::Library;
use conductor_stdx::template::fill;
use conductor_terminal::excerpt;

/// Bytes of an argument. No prompt has more than a few, each in one place, so that a filled prompt is bounded as well.
const MAX_ARGUMENT: usize = 1024;

/// A prompt: its name, what it is for, what is filled in (with whether it must be), and the text, in which `{x}`
/// stands for what was filled in.
struct Template {
    name: &'static str,
    what: &'static str,
    fields: &'static [(&'static str, &'static str, bool)],
    text: &'static str,
}

const PROMPTS: &[Template] = &[
    Template {
        name: "map_control",
        what: "Have a control do something.",
        fields: &[
            ("control", "Which control: \"pad 36\", \"the left fader\", or \"the one I touch\"", true),
            ("action", "What it should do: \"copy\", \"next scene\"", true),
            ("mode", "The mode that it holds in. Default: the active one", false),
        ],
        text: "Map {control} to: {action}. Mode: {mode}.\n\nLook first: read conductor://status for devices and modes, \
               and list the mappings of the mode, so that nothing is mapped twice. If it is not clear which control is \
               meant, ask me to touch it and look at the last events. Where another mapping answers to the same \
               control, a higher `priority` has the new one asked first, and `consume` keeps the event from the others. \
               Then propose one mapping, and tell me in a \
               sentence what it does and what it takes away. You can't apply it: I do, so tell me how.",
    },
    Template {
        name: "explain_what_happened",
        what: "Say why something happened, or did not.",
        fields: &[("what", "What was expected, and what happened: \"pad 40 did nothing\"", true)],
        text: "{what}\n\nFind out why. Read conductor://status first: is the device there, its binding bound, the \
               configuration in force, the mode the one I think? Then look at the last events and have the one that I \
               mean explained. Name the rule that fired or the condition that kept it, and propose at most one change.",
    },
    Template {
        name: "clean_up",
        what: "Find mappings that conflict, or that are not needed.",
        fields: &[("mode", "Only this mode. Default: all", false)],
        text: "Look at my mappings ({mode}) for those that can never fire, that do the same twice, that belong to \
               devices which are not there, or that have no description. List what you found by how sure you are. \
               Propose one plan with the sure ones; take nothing away that I might miss.",
    },
    Template {
        name: "set_up_device",
        what: "Give a controller a name, and its controls a first use.",
        fields: &[
            ("device", "Which device, as it is listed", true),
            ("use", "What it is for: \"Ableton Live\"", false),
        ],
        text: "Set up {device} for: {use}. Read conductor://ports to see it, and conductor://docs/configuration for \
               how bindings match. Propose a binding that still matches after it was plugged in elsewhere, and then a \
               handful of mappings that I would use on the first day. One plan, with a description for each mapping.",
    },
];

/// All prompts: those for frequent tasks, and one for each skill.
pub(super) fn all(host: &Host, library: &Library) -> Vec<Prompt> {
    let argument = |(name, what, required): &(&str, &str, bool)| {
        PromptArgument::new(*name).with_description(*what).with_required(*required)
    };
    let prompt = |template: &Template| {
        let arguments = template.fields.iter().map(argument).collect();
        Prompt::new(template.name, Some(template.what), Some(arguments)).with_title(title(template.name))
    };
    PROMPTS.iter().map(prompt).chain(skills::prompts(host, library)).collect()
}

/// A prompt, filled in, or the skill of this name.
///
/// # Errors
/// Those of [`template`]; of a skill's only argument, `task`, if it is none or too long.
pub(super) fn filled_in(
    host: &Host,
    library: &Library,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<GetPromptResult, ErrorData> {
    if PROMPTS.iter().any(|template| template.name == name) {
        return template(name, arguments);
    }
    let wrong = |why: String| ErrorData::invalid_params(why, None);
    let task = match arguments.get("task") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) if text.len() <= MAX_ARGUMENT => text.trim(),
        Some(_) => return Err(wrong(format!("task is text of at most {MAX_ARGUMENT} bytes"))),
    };
    match skills::prompt(host, library, name, task) {
        Some((what, messages)) => Ok(GetPromptResult::new(messages).with_description(what)),
        None => template(name, arguments),
    }
}

/// A prompt, filled in. Arguments are the client's: text that is not looked at again, and of bounded length.
///
/// # Errors
/// If there is no such prompt, an argument is missing, unknown, not text, or longer than [`MAX_ARGUMENT`].
fn template(name: &str, arguments: &Map<String, Value>) -> Result<GetPromptResult, ErrorData> {
    let wrong = |why: String| ErrorData::invalid_params(why, None);
    let Some(template) = PROMPTS.iter().find(|template| template.name == name) else {
        let names: Vec<_> = PROMPTS.iter().map(|template| template.name).collect();
        return Err(wrong(format!("there is no prompt {:?}; there are {}", excerpt(name, 64), names.join(", "))));
    };
    let fields = || template.fields.iter().map(|(field, ..)| *field);
    if let Some(unknown) = arguments.keys().find(|argument| !fields().any(|field| field == *argument)) {
        let (unknown, known) = (excerpt(unknown, 64), fields().collect::<Vec<_>>().join(", "));
        return Err(wrong(format!("the prompt {name} has no argument {unknown:?}; it takes {known}")));
    }
    let mut values = Vec::with_capacity(template.fields.len());
    for (field, what, required) in template.fields {
        let text = match arguments.get(*field) {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(wrong(format!("{field} is text: {what}"))),
        };
        if text.len() > MAX_ARGUMENT {
            let long = text.len();
            return Err(wrong(format!("{field} has {long} bytes; an argument of a prompt has at most {MAX_ARGUMENT}")));
        }
        if text.is_empty() && *required {
            return Err(wrong(format!("{field} is missing: {what}")));
        }
        values.push((*field, if text.is_empty() { "not said" } else { text }));
    }
    let text = fill(template.text, ["{", "}"], |place| {
        values.iter().find(|(field, _)| *field == place).map(|(_, value)| (*value).into())
    });
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).with_description(template.what))
}

/// What may be meant by the beginning of an argument, most likely first.
pub(super) fn completed(host: &Host, library: &Library, of: &Reference, argument: &str, begun: &str) -> CompletionInfo {
    let known = match of {
        Reference::Prompt(_) => match argument {
            "mode" => host.status().modes,
            "device" => devices(host),
            _ => Vec::new(),
        },
        Reference::Resource(template) => resources::names(host, library, &template.uri, argument),
        _ => Vec::new(),
    };
    let begun = begun.to_lowercase();
    let mut fits: Vec<String> = known.into_iter().filter(|name| name.to_lowercase().contains(&begun)).collect();
    fits.sort_by_key(|name| !name.to_lowercase().starts_with(&begun));
    let (total, more) = (fits.len(), fits.len() > CompletionInfo::MAX_VALUES);
    fits.truncate(CompletionInfo::MAX_VALUES);
    CompletionInfo::with_pagination(fits, u32::try_from(total).ok(), more).unwrap_or_default()
}

/// Names of devices: those of bindings, and of ports that are there.
fn devices(host: &Host) -> Vec<String> {
    let status = serde_json::to_value(host.status()).unwrap_or_default();
    let of = |list: &str, key: &str| -> Vec<String> {
        let items = status[list].as_array().into_iter().flatten();
        items.filter_map(|item| item[key].as_str().map(str::to_owned)).collect()
    };
    let mut names = of("bindings", "alias");
    names.extend(of("ports", "device"));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(name: &str, arguments: Value) -> Result<String, String> {
        let arguments = arguments.as_object().unwrap().clone();
        let prompt = template(name, &arguments).map_err(|error| error.message.to_string())?;
        Ok(serde_json::to_value(&prompt.messages[0].content).unwrap()["text"].as_str().unwrap().to_owned())
    }

    #[test]
    fn an_argument_is_text_and_no_template() {
        let text = filled("map_control", json!({ "control": "{action}{mode}", "action": "{control}" })).unwrap();
        assert!(text.starts_with("Map {action}{mode} to: {control}. Mode: not said."), "{text}");
    }

    #[test]
    fn a_filled_prompt_is_bounded() {
        let most = "x".repeat(MAX_ARGUMENT);
        for template in PROMPTS {
            let all: Map<String, Value> =
                template.fields.iter().map(|(field, ..)| ((*field).to_owned(), json!(most))).collect();
            let text = filled(template.name, Value::Object(all)).unwrap();
            assert!(text.len() <= template.text.len() + template.fields.len() * MAX_ARGUMENT, "{}", template.name);
            assert!(template.fields.iter().all(|(field, ..)| !text.contains(&format!("{{{field}}}"))));
        }
    }

    #[test]
    fn arguments_that_are_missing_unknown_too_long_or_no_text_are_refused() {
        for (arguments, why) in [
            (json!({ "control": "pad 1" }), "action is missing"),
            (json!({ "control": " ", "action": "copy" }), "control is missing"),
            (
                json!({ "control": "pad 1", "action": "copy", "colour": "red" }),
                "no argument \"colour\"; it takes control,",
            ),
            (json!({ "control": ["pad"], "action": "copy" }), "control is text"),
            (json!({ "control": "x".repeat(MAX_ARGUMENT + 1), "action": "copy" }), "at most 1024"),
        ] {
            let refused = filled("map_control", arguments).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(filled("nothing", json!({})).unwrap_err().contains("there are map_control"));
    }
}
