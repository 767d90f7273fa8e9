//! Confirmations (human in the loop): a person's consent to a call before it reaches devices, or as far.
//!
//! ```text
//! call ─▶ a confirmation (what would be done, as the host reads the arguments; an id that serves once)
//!            └─▶ a person agrees, twice where it reaches devices ─▶ the same call with the id ─▶ done
//! ```
//!
//! No single request gets through, at any door. The id is bound to the caller, the tool, the arguments and what was
//! shown of them, and expires.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::plan::risk::effect;
use conductor_audit::caller::{Caller, Scope};
use conductor_call_args::Named;
use conductor_config::{self as config, Action};
use conductor_config_text::edit::{Change, edited};
use conductor_package::descriptor::Tier;
use conductor_stdx::digest::{hex, sha256};
use conductor_terminal::excerpt;

/// How long a person may take to agree, at doors where the caller asks them.
pub const CONFIRM_TIMEOUT: Duration = Duration::from_secs(60);
/// The same where the host asks the user of an agent two questions, which wait for 300 s each.
const ELICIT_TIMEOUT: Duration = Duration::from_secs(660);
/// Confirmations of one caller that are kept; the oldest gives way.
const MAX_OWN: usize = 8;
/// Confirmations of all callers of one scope that are kept; the oldest gives way.
const MAX_OF_SCOPE: usize = 64;
/// Bytes of a word that a person is to type.
const MAX_PHRASE: usize = 32;
/// Bytes of what an action does, in a sentence.
const MAX_EFFECT: usize = 2048;
/// Bytes of what is shown. What is longer can't be agreed to.
const MAX_SHOWN: usize = 64 * 1024;

/// What a person has to agree to before a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// What the next request presents: 32 hex digits. It serves once, for this caller, tool and arguments.
    pub id: String,
    /// How long it serves, in milliseconds.
    pub expires_in_ms: u64,
    /// The tool.
    pub tool: String,
    /// What the call does, in a sentence's words: `sends to "synth"`, `starts a program on this computer: ...`.
    pub effect: String,
    /// What is sent or done, for people, line by line: devices, bytes in hex, the arguments.
    pub shown: String,
    /// What a person types, after a first yes, to agree; `None` if one yes is enough.
    pub phrase: Option<String>,
}

/// Why an id is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfirmError {
    /// It is not pending.
    #[error(
        "no confirmation of this id waits: it was used, has expired, or is another caller's; ask again without one"
    )]
    Unknown,
    /// It was for something else.
    #[error(
        "the confirmation was for another call: the tool, its arguments or what they do are different now; ask again"
    )]
    Other,
}

/// What a call would do, as the host reads its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rendered {
    effect: String,
    shown: String,
    phrase: Option<String>,
}

/// Confirmations that wait.
#[derive(Debug, Default)]
pub struct Confirmations(Mutex<HashMap<String, Waiting>>);

#[derive(Debug)]
struct Waiting {
    caller: Caller,
    /// Of the tool, its arguments, and what was shown.
    digest: String,
    asked: Instant,
    until: Instant,
}

impl Confirmations {
    /// What `caller` has to agree to before this tool of `feature` is called with these arguments. `None` if it is too
    /// long to be shown, or there is no randomness for an id.
    pub fn ask(&self, caller: &Caller, feature: &str, tier: Tier, tool: &str, args: &Value) -> Option<Confirmation> {
        let rendered = Rendered::of(feature, tier, tool, args).filter(|rendered| rendered.shown.len() <= MAX_SHOWN)?;
        let mut number = [0; 16];
        getrandom::fill(&mut number).ok()?;
        let id = hex(&number);
        let timeout = if caller.scope() == Some(Scope::Agent) { ELICIT_TIMEOUT } else { CONFIRM_TIMEOUT };
        let now = Instant::now();
        let waiting =
            Waiting { caller: caller.clone(), digest: rendered.digest(tool, args), asked: now, until: now + timeout };
        let mut all = self.0.lock();
        all.retain(|_, one| one.until > now);
        make_room(&mut all, MAX_OWN, |one| one.caller.is_same_client(caller));
        // Callers may give themselves any number of names; those of other scopes don't lose their places by it.
        make_room(&mut all, MAX_OF_SCOPE, |one| one.caller.scope() == caller.scope());
        all.insert(id.clone(), waiting);
        let Rendered { effect, shown, phrase } = rendered;
        let expires_in_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        Some(Confirmation { id, expires_in_ms, tool: tool.to_owned(), effect, shown, phrase })
    }

    /// Uses up the confirmation of this id, which was for this call of this caller.
    ///
    /// # Errors
    /// See [`ConfirmError`]. An id that another caller presents stays as it is.
    pub fn take(
        &self,
        id: &str,
        caller: &Caller,
        feature: &str,
        tier: Tier,
        tool: &str,
        args: &Value,
    ) -> Result<(), ConfirmError> {
        let mut all = self.0.lock();
        if !all.get(id).is_some_and(|waiting| waiting.caller.is_same_client(caller)) {
            return Err(ConfirmError::Unknown);
        }
        let waiting = all.remove(id).filter(|waiting| waiting.until > Instant::now());
        let Waiting { digest, .. } = waiting.ok_or(ConfirmError::Unknown)?;
        let now = Rendered::of(feature, tier, tool, args).map(|rendered| rendered.digest(tool, args));
        if now.as_ref() == Some(&digest) { Ok(()) } else { Err(ConfirmError::Other) }
    }
}

/// Removes the oldest of those that are counted, until there is room for one more.
fn make_room(all: &mut HashMap<String, Waiting>, most: usize, counts: impl Fn(&Waiting) -> bool) {
    while all.values().filter(|one| counts(one)).count() >= most {
        let oldest = all.iter().filter(|(_, one)| counts(one)).min_by_key(|(_, one)| one.asked);
        let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return };
        all.remove(&oldest);
    }
}

impl Rendered {
    fn of(feature: &str, tier: Tier, tool: &str, args: &Value) -> Option<Self> {
        let args_text = serde_json::to_string_pretty(args).ok()?;
        // The name of the tool is what there is to type where no device is named.
        let fallback = || excerpt(tool, MAX_PHRASE);
        let (effect, mut shown, phrase) = match tier {
            Tier::HardwareIo => {
                let Named { devices, messages } = Named::of(args);
                let effect = match &devices[..] {
                    [] => format!("sends to devices that {feature} chooses: the arguments name none"),
                    named => {
                        let named: Vec<_> = named.iter().map(|name| format!("{name:?}")).collect();
                        format!("sends to {}", named.join(", "))
                    }
                };
                let lines = messages.iter().map(|message| {
                    let count = conductor_stdx::plural::plural(message.len(), "byte");
                    format!("bytes: {} ({count})\n", conductor_call_args::hex(message))
                });
                let lines = match messages.is_empty() {
                    true => format!("bytes: chosen by {feature}; the arguments name none\n"),
                    false => lines.collect(),
                };
                let typed = devices.first().filter(|name| is_typed(name)).cloned();
                (effect, lines, Some(typed.unwrap_or_else(fallback)))
            }
            Tier::Privileged => (effect_of_action(args), String::new(), Some(fallback())),
            Tier::Stateful => ("changes what holds until the host stops".to_owned(), String::new(), None),
            Tier::ConfigChange => ("proposes a change of the configuration".to_owned(), String::new(), None),
            Tier::ReadOnly => ("looks and answers".to_owned(), String::new(), None),
        };
        shown += &format!("arguments: {args_text}");
        Some(Self { effect, shown, phrase })
    }

    fn digest(&self, tool: &str, args: &Value) -> String {
        // Separated by what no JSON text holds.
        sha256(format!("{tool}\0{args}\0{}\0{}", self.effect, self.shown).as_bytes())
    }
}

/// Whether a person can type it as it is shown.
fn is_typed(name: &str) -> bool {
    name.len() <= MAX_PHRASE && name.chars().all(|c| c == ' ' || c.is_alphanumeric() || c.is_ascii_punctuation())
}

/// What performing the action does that the arguments hold: programs and typing are named.
fn effect_of_action(args: &Value) -> String {
    let action = match &args["action"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        action => action.clone(),
    };
    let Some(action) = parsed(&action) else {
        return "does what the host can't tell: it may start programs on this computer".to_owned();
    };
    let effects: Vec<String> = effect::of_action(&action).into_iter().map(|(_, effect)| effect).collect();
    match &effects[..] {
        [] => "does an action at once".to_owned(),
        effects => excerpt(&effects.join("; "), MAX_EFFECT),
    }
}

/// The action, read as it is when it is performed, old spellings included. `None` if it is none, or can't be judged
/// without the configuration that it refers to.
fn parsed(action: &Value) -> Option<Action> {
    let mapping = serde_json::json!({ "trigger": { "type": "Note", "note": 60 }, "action": action });
    let path = vec!["global_mappings".to_owned(), "0".to_owned()];
    let text = edited("", &[Change { path, value: Some(mapping) }]).ok()?;
    config::parse(&text, "action").ok()?.config.global_mappings.pop().map(|mapping| mapping.action.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use conductor_audit::caller::Door;

    const FEATURE: &str = "builtin:hardware-tools";
    const TOOL: &str = "conductor_send_midi";

    fn owner(name: &str) -> Caller {
        Caller::client(Door::Socket, Scope::Owner, Some(name))
    }

    fn ask(all: &Confirmations, caller: &Caller, args: &Value) -> Confirmation {
        all.ask(caller, FEATURE, Tier::HardwareIo, TOOL, args).unwrap()
    }

    fn take(all: &Confirmations, id: &str, caller: &Caller, args: &Value) -> Result<(), ConfirmError> {
        all.take(id, caller, FEATURE, Tier::HardwareIo, TOOL, args)
    }

    fn note(velocity: u8) -> Value {
        json!({ "target": "synth", "bytes": format!("90 3C {velocity:02X}") })
    }

    // PLN-3
    #[test]
    fn an_id_serves_once_for_its_caller_and_its_call() {
        let (all, one, other) = (Confirmations::default(), owner("one"), owner("other"));
        let asked = ask(&all, &one, &note(100));
        assert_eq!((asked.effect.as_str(), asked.phrase.as_deref()), ("sends to \"synth\"", Some("synth")));
        assert!(asked.shown.contains("bytes: 90 3C 64 (3 bytes)"), "{}", asked.shown);
        assert_eq!(take(&all, &asked.id, &other, &note(100)), Err(ConfirmError::Unknown));
        assert_eq!(take(&all, &asked.id, &one, &note(100)), Ok(()));
        assert_eq!(take(&all, &asked.id, &one, &note(100)), Err(ConfirmError::Unknown), "again");

        let asked = ask(&all, &one, &note(100));
        assert_eq!(take(&all, &asked.id, &one, &note(101)), Err(ConfirmError::Other));
        assert_eq!(take(&all, &asked.id, &one, &note(100)), Err(ConfirmError::Unknown), "it is used up by that");

        let asked = ask(&all, &one, &note(100));
        let other_tool = all.take(&asked.id, &one, FEATURE, Tier::HardwareIo, "conductor_send_sysex", &note(100));
        assert_eq!(other_tool, Err(ConfirmError::Other));
        assert_eq!(take(&all, "", &one, &note(100)), Err(ConfirmError::Unknown));
        // The same client at another door, or with less to do there, is another caller.
        let asked = ask(&all, &one, &note(100));
        for elsewhere in [
            Caller::client(Door::Tcp, Scope::Owner, Some("one")),
            Caller::client(Door::Socket, Scope::Control, Some("one")),
        ] {
            assert_eq!(take(&all, &asked.id, &elsewhere, &note(100)), Err(ConfirmError::Unknown));
        }
    }

    #[test]
    fn the_user_of_an_agent_agrees_for_it() {
        let all = Confirmations::default();
        let agent = Caller::client(Door::McpSocket, Scope::Agent, Some("x"));
        let asked = ask(&all, &agent, &note(1));
        assert_eq!(take(&all, &asked.id, &agent.by_elicitation(), &note(1)), Ok(()));
    }

    #[test]
    fn confirmations_are_few_and_agents_take_no_place_of_a_person() {
        let (all, person) = (Confirmations::default(), owner("cli"));
        let asked = ask(&all, &person, &note(1));
        for number in 0..1000 {
            let agent = Caller::client(Door::McpSocket, Scope::Agent, Some(&format!("agent {}", number % 100)));
            ask(&all, &agent, &note(1));
        }
        assert!(all.0.lock().len() <= MAX_OF_SCOPE + 1);
        assert_eq!(take(&all, &asked.id, &person, &note(1)), Ok(()));
        let first = ask(&all, &person, &note(1));
        (0..MAX_OWN).for_each(|_| drop(ask(&all, &person, &note(2))));
        assert_eq!(take(&all, &first.id, &person, &note(1)), Err(ConfirmError::Unknown));
    }

    #[test]
    fn a_confirmation_expires() {
        let (all, caller) = (Confirmations::default(), owner("cli"));
        let asked = ask(&all, &caller, &note(1));
        assert_eq!(asked.expires_in_ms, 60_000);
        all.0.lock().values_mut().for_each(|one| one.until = Instant::now());
        assert_eq!(take(&all, &asked.id, &caller, &note(1)), Err(ConfirmError::Unknown));
    }

    #[test]
    fn an_action_that_starts_programs_says_so() {
        let shell = json!({ "type": "Shell", "command": "/bin/sh", "args": ["-c", "x"] });
        for action in [
            shell.clone(),
            json!({ "type": "Sequence", "actions": [{ "type": "Text", "text": "a" }, shell] }),
            json!({ "type": "repeat", "count": 1, "action": { "type": "shell", "command": "/bin/sh", "args": ["-c", "x"] } }),
            json!({ "type": "launch", "app": "/bin/sh", "args": ["-c", "x"] }),
        ] {
            let effect = effect_of_action(&json!({ "action": action }));
            assert!(effect.contains("starts a program: ") && effect.contains("/bin/sh"), "{effect}");
        }
        let effect = |action: Value| effect_of_action(&json!({ "action": action }));
        assert!(effect(json!({ "type": "Text", "text": "curl" })).contains("into whatever is in front"));
        assert_eq!(effect(json!({ "type": "Suppress" })), "does an action at once");
        for unknown in [json!(null), json!({ "type": "Shell" }), json!("{"), json!([])] {
            assert!(effect(unknown).contains("may start programs"));
        }
    }

    #[test]
    fn what_is_too_long_to_be_shown_is_not_asked() {
        let long = json!({ "target": "synth", "bytes": "00".repeat(MAX_SHOWN) });
        assert_eq!(Confirmations::default().ask(&owner("x"), FEATURE, Tier::HardwareIo, TOOL, &long), None);
    }
}
