//! Risk assessment of a plan: how far the configuration reaches with it that did not without.
//!
//! The two configurations are compared as a whole, by their [effects](effect): neither the path of a change nor
//! its spelling counts, and every list of changes that leads from one to the other has the same risk. What only a
//! person may change is denied by the same comparison: every table that is not one of [`PLANNABLE`], and of features
//! all but whether they are enabled.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

mod destination;
pub mod effect;
mod elsewhere;
mod reach;
mod rule;
mod variables;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::effect::{Effect, Kind, canonical_without, quoted};
use self::elsewhere::sent_elsewhere;
use self::reach::{Reach, opens_unbound};
use self::rule::{APART, Rule};
use conductor_config::Config;
use conductor_stdx::digest::sha256;
use conductor_stdx::plural::plural;

/// How far a plan reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It adds to what controls do, within the show.
    Usual,
    /// It changes or removes what is there, changes which ports are used, sends to somewhere new, or types into other
    /// applications.
    Raised,
    /// It has something to do with programs that are started, switches features, sends elsewhere what is sent to an
    /// address of the network, or changes what is behind a name that data or secrets are sent to; or a privileged tool
    /// proposes it.
    Privileged,
}

impl Level {
    /// As JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Raised => "raised",
            Self::Privileged => "privileged",
        }
    }

    /// What goes before each note on a plan's risk: only a plan that starts programs and the like calls out.
    pub const fn bullet(self) -> char {
        match self {
            Self::Usual | Self::Raised => '-',
            Self::Privileged => '!',
        }
    }

    /// With why it is so, or what a person is to do about it.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Raised => "raised, for what is new or changed",
            Self::Privileged => "privileged, look closely",
        }
    }
}

/// How far a plan reaches, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Risk {
    /// The farthest that it reaches.
    pub level: Level,
    /// What to look at, a line each, the farthest first. Of many of one kind the first few and a count.
    pub notes: Vec<String>,
}

impl Risk {
    /// A plan that reaches as far as `level`, for the reason in `note`, which goes first.
    pub fn raise(&mut self, level: Level, note: String) {
        self.level = self.level.max(level);
        if !self.notes.contains(&note) {
            self.notes.insert(0, note);
        }
    }

    /// Adds what is worth knowing and reaches no farther.
    pub fn remark(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The reason why a change is for a person alone to make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Denied(pub String);

/// The tables of a configuration that a plan may change. All others, those of later versions too, are for a person to
/// write into the file; of `features` a plan may change `enabled` and `refused` alone.
pub const PLANNABLE: [&str; 8] =
    ["advanced_settings", "bindings", "modes", "variables", "profiles", "global_mappings", "features", "models"];

/// Notes of one kind and level that are shown.
const MAX_SHOWN: usize = 8;

/// What there is to know about a plan that makes `after` of `before`.
///
/// # Errors
/// [`Denied`] if it changes what only a person may change: which package a feature is and what it may use,
/// which tools may be called, who may ask the host.
pub fn assess(before: &Config, after: &Config) -> Result<Risk, Denied> {
    denied(before, after)?;
    let (from, to) = (Reach::of(before), Reach::of(after));
    let mut notes = Notes::default();
    effects(&from, &to, &mut notes);
    program_modes(&from, &to, &mut notes);
    consumed(&from, &to, &mut notes);
    removed(&from, &to, &mut notes);
    inputs(&from, &to, &mut notes);
    Ok(notes.into_risk())
}

/// Notes, in the order in which they are shown.
#[derive(Debug, Default)]
struct Notes(BTreeMap<(Reverse<Level>, Kind), BTreeSet<String>>);

impl Notes {
    fn put(&mut self, level: Level, kind: Kind, text: String) {
        self.0.entry((Reverse(level), kind)).or_default().insert(text);
    }

    fn into_risk(self) -> Risk {
        let level = self.0.keys().next().map_or(Level::Usual, |(Reverse(level), _)| *level);
        let mut notes = Vec::new();
        for ((_, kind), texts) in self.0 {
            // One more line is shorter than a line that counts it.
            let shown = if texts.len() <= MAX_SHOWN + 1 { texts.len() } else { MAX_SHOWN };
            let more = texts.len() - shown;
            notes.extend(texts.into_iter().take(shown));
            if more > 0 {
                notes.push(kind.more(more));
            }
        }
        Risk { level, notes }
    }
}

/// Finds a change that only a person may make.
fn denied(before: &Config, after: &Config) -> Result<(), Denied> {
    let table = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(table)) => table,
        // A configuration always has a JSON form.
        _ => Map::new(),
    };
    let (from, to) = (table(before), table(after));
    for name in from.keys().chain(to.keys()).filter(|name| !PLANNABLE.contains(&name.as_str())) {
        if from.get(name) != to.get(name) {
            let what = match name.as_str() {
                "tools" => "says which tools may be called, and how often",
                "api" | "mcp" => "says who may ask this host, and for what",
                _ => "is not for plans to change",
            };
            return Err(Denied(format!("[{name}] {what}: a person writes that into the file")));
        }
    }
    let features = |config: &BTreeMap<String, conductor_config::Feature>, name: &str| {
        let feature = config.get(name).and_then(|feature| serde_json::to_value(feature).ok());
        match feature.or_else(default_feature) {
            Some(Value::Object(feature)) => feature,
            _ => Map::new(),
        }
    };
    for name in before.features.keys().chain(after.features.keys()) {
        let (from, to) = (features(&before.features, name), features(&after.features, name));
        // What a plan may propose is an effect; see `Reach::tables`.
        let is_effect = |key: &str| matches!(key, "enabled" | "refused");
        let differs = |key: &&String| !is_effect(key) && from.get(*key) != to.get(*key);
        let Some(key) = from.keys().chain(to.keys()).find(differs) else { continue };
        let place = format!("features/{}/{key}", quoted(name).trim_matches('"'));
        return Err(Denied(if key == "grants" {
            format!(
                "{place} is what a feature may use: a person grants that, in the file under [features.*.grants], or with \
                 `conductor feature grant` if it is installed"
            )
        } else {
            format!("{place} says which package a feature is: a person writes that into the file")
        }));
    }
    Ok(())
}

/// A feature that the configuration does not mention.
fn default_feature() -> Option<Value> {
    let feature: conductor_config::Feature = serde_json::from_value(Value::Object(Map::new())).ok()?;
    serde_json::to_value(feature).ok()
}

/// The effects that are new or other than they were, and those that are gone.
fn effects(from: &Reach<'_>, to: &Reach<'_>, notes: &mut Notes) {
    let mut known: HashMap<Kind, HashSet<&str>> = HashMap::new();
    for (at, (effect, count)) in &to.effects {
        // The same program by a second mapping starts twice; a second message to the same place goes to no other.
        let often = matches!(effect.kind, Kind::Program | Kind::Typing);
        if from.effects.get(at).is_some_and(|(_, before)| !often || before >= count) {
            continue;
        }
        if from.was_heard(effect) {
            continue;
        }
        let known = known.entry(effect.kind).or_insert_with(|| from.subjects(effect.kind));
        if let Some((level, text)) = added(effect, known.contains(effect.subject.as_str()), to) {
            // A name that data went to before may be anybody's now.
            let kind = if (effect.kind, level) == (Kind::Destination, Level::Privileged) {
                Kind::Redirect
            } else {
                effect.kind
            };
            notes.put(level, kind, text);
        }
    }
    let mut left: HashMap<Kind, HashSet<&str>> = HashMap::new();
    for (at, (effect, _)) in &from.effects {
        if to.effects.contains_key(at) {
            continue;
        }
        let left = left.entry(effect.kind).or_insert_with(|| to.subjects(effect.kind));
        if let Some((level, text)) = gone(effect, left.contains(effect.subject.as_str())) {
            notes.put(level, effect.kind, text);
        }
    }
    for text in sent_elsewhere(from, to) {
        notes.put(Level::Privileged, Kind::Redirect, text);
    }
}

/// What to say of an effect that the configuration `to` has now; `changed` if it had another one of the same subject.
fn added(effect: &Effect, changed: bool, to: &Reach<'_>) -> Option<(Level, String)> {
    let Effect { kind, text, subject, .. } = effect;
    Some(match kind {
        Kind::Program => (Level::Privileged, format!("starts a program: {text}")),
        // Of mappings that are new themselves it is said that they start programs.
        Kind::ProgramInput if changed => (Level::Privileged, text.clone()),
        Kind::Feature => (Level::Privileged, format!("switches the feature {text} off")),
        Kind::Refusal => (Level::Privileged, format!("switches off {text}")),
        Kind::Model if changed => {
            (Level::Privileged, format!("what is asked of the model {} goes to {text}", quoted(subject)))
        }
        Kind::Model => (Level::Privileged, format!("adds the model {}: {text}", quoted(subject))),
        Kind::Keyboard => (Level::Privileged, format!("hears what is typed at a keyboard, under the name {text}")),
        Kind::Typing => (Level::Raised, format!("{text}: into whatever application is in front")),
        Kind::Destination if changed => (Level::Privileged, format!("sends to another address: {text}")),
        Kind::Destination => (Level::Raised, format!("sends to a new destination: {text}")),
        Kind::MidiOutput => (Level::Raised, format!("sends MIDI to {text}")),
        Kind::SysEx => (Level::Raised, format!("sends the SysEx message {text}")),
        Kind::Binding if changed => (Level::Raised, format!("changes the binding {}: {text}", quoted(subject))),
        Kind::Binding => (Level::Raised, format!("adds the binding {}: {text}", quoted(subject))),
        Kind::Variable if changed && to.program_variables.contains(subject.as_str()) => {
            (Level::Privileged, format!("changes the variable {}, on which programs depend: {text}", quoted(subject)))
        }
        Kind::Variable if changed => (Level::Raised, format!("changes the variable {}: {text}", quoted(subject))),
        Kind::Setting if text == "probe_identity = true" => (
            Level::Raised,
            "probe_identity = true: opens every MIDI port and asks each device who it is by SysEx".into(),
        ),
        Kind::Setting => (Level::Raised, format!("sets {text}")),
        Kind::FirstMode if changed => (Level::Raised, format!("the mode {text} is active at the start")),
        Kind::Profile if changed => (Level::Raised, format!("changes the profile {text}")),
        _ => return None,
    })
}

/// What to say of an effect that the configuration has no more; `changed` if it has another one of the same subject.
fn gone(effect: &Effect, changed: bool) -> Option<(Level, String)> {
    let Effect { kind, text, subject, .. } = effect;
    Some(match kind {
        Kind::Feature => (Level::Privileged, format!("switches the feature {text} on")),
        Kind::Refusal => (Level::Privileged, format!("switches on {text}, which a person refused")),
        Kind::Binding | Kind::Model | Kind::Profile | Kind::Variable if changed => return None,
        Kind::Binding => (Level::Raised, format!("removes the binding {}", quoted(subject))),
        Kind::Model => (Level::Raised, format!("removes the model {}", quoted(subject))),
        Kind::Profile => (Level::Raised, format!("removes the profile {text}")),
        Kind::Variable => (Level::Raised, format!("removes the variable {}", quoted(subject))),
        _ => return None,
    })
}

/// New ways into modes in which programs start.
fn program_modes(from: &Reach<'_>, to: &Reach<'_>, notes: &mut Notes) {
    // Where programs start that did not before, that is said of them.
    let modes: BTreeSet<&str> = from.program_modes.intersection(&to.program_modes).copied().collect();
    let known: HashSet<(&str, &str)> = from.ways.iter().map(|way| (way.mode.as_str(), way.key.as_str())).collect();
    let mut said = BTreeSet::new();
    for way in to.ways.iter().filter(|way| modes.contains(way.mode.as_str())) {
        if !known.contains(&(way.mode.as_str(), way.key.as_str())) {
            said.insert(way.mode.as_str());
            let text = format!("{} makes the mode {} active, in which programs start", way.text, quoted(&way.mode));
            notes.put(Level::Privileged, Kind::ProgramMode, text);
        }
    }
    let (before, after) = (from.reachable(), to.reachable());
    for mode in after.difference(&before).filter(|mode| modes.contains(**mode) && !said.contains(**mode)) {
        let text = format!("the mode {}, in which programs start, can become active", quoted(mode));
        notes.put(Level::Privileged, Kind::ProgramMode, text);
    }
}

/// Mappings that other ones keep events from: programs that are held back no longer, and what is there but is not asked
/// any more.
fn consumed(from: &Reach<'_>, to: &Reach<'_>, notes: &mut Notes) {
    let mut ids = HashMap::new();
    let (Some(before), Some(after)) = (from.consumed(&mut ids), to.consumed(&mut ids)) else {
        let guards = |reach: &Reach<'_>| -> Vec<String> {
            let told = reach.rules.iter().filter(|rule| rule.mapping.consume || rule.starts);
            told.map(|rule| rule.key.clone()).collect()
        };
        if guards(from) != guards(to) {
            let what =
                "mappings that consume events are changed, and there are too many of them to tell what that does";
            let starts = to.rules.iter().any(|rule| rule.starts);
            let level = if starts { Level::Privileged } else { Level::Raised };
            notes.put(level, Kind::ProgramGuard, format!("{what} to programs that are started, and to others"));
        }
        return;
    };
    fn by_id<'r, 'c>(reach: &'r Reach<'c>, ids: &HashMap<String, u32>) -> HashMap<u32, &'r Rule<'c>> {
        reach.rules.iter().filter_map(|rule| Some((*ids.get(&rule.key)?, rule))).collect()
    }
    let (old, new) = (by_id(from, &ids), by_id(to, &ids));
    let mut freed: BTreeMap<&str, (&Rule<'_>, BTreeSet<String>)> = BTreeMap::new();
    for (guard, held) in before.difference(&after) {
        if let (Some(guard), Some(held)) = (old.get(guard), new.get(held).filter(|held| held.starts)) {
            freed.entry(&held.key).or_insert((held, BTreeSet::new())).1.insert(guard.called());
        }
    }
    for (held, guards) in freed.into_values() {
        let text = format!("{} starts a program and is held back no longer by {}", held.called(), first_of(&guards));
        notes.put(Level::Privileged, Kind::ProgramGuard, text);
    }
    let mut shadows: BTreeMap<&str, (&Rule<'_>, BTreeSet<String>)> = BTreeMap::new();
    for (first, second) in after.difference(&before) {
        // Of what is new itself there was nothing to lose.
        if let (Some(first), Some(second)) = (new.get(first), old.get(second).and(new.get(second))) {
            shadows.entry(&first.key).or_insert((first, BTreeSet::new())).1.insert(second.called());
        }
    }
    for (first, kept) in shadows.into_values() {
        let text = format!("{} ({}) keeps events from {}", first.called(), first.occasion(), first_of(&kept));
        notes.put(Level::Raised, Kind::Shadow, text);
    }
}

/// The first of them and how many more there are.
fn first_of(names: &BTreeSet<String>) -> String {
    let first = names.first().map_or("", String::as_str);
    if names.len() > 1 { format!("{first} and {}", plural(names.len() - 1, "more mapping")) } else { first.to_owned() }
}

/// What is in a mode, but for its name.
fn contents(mode: &conductor_config::Mode) -> String {
    let mappings: Vec<String> = mode.mappings.iter().map(|mapping| canonical_without(mapping, &APART)).collect();
    sha256(mappings.join("\n").as_bytes())
}

/// Modes and mappings that are gone, or are written over.
fn removed(from: &Reach<'_>, to: &Reach<'_>, notes: &mut Notes) {
    let names =
        |reach: &Reach<'_>| -> HashSet<String> { reach.config.modes.iter().map(|mode| mode.name.clone()).collect() };
    let (had, has) = (names(from), names(to));
    // A mode that has another name and the same mappings is called otherwise, and not removed.
    let mut unclaimed: HashMap<String, VecDeque<&str>> = HashMap::new();
    for mode in to.config.modes.iter().filter(|mode| !had.contains(&mode.name)) {
        unclaimed.entry(contents(mode)).or_default().push_back(&mode.name);
    }
    let mut renamed: BTreeMap<&str, &str> = BTreeMap::new();
    let mut lost: BTreeSet<&str> = BTreeSet::new();
    for (number, mode) in from.config.modes.iter().enumerate().filter(|(_, mode)| !has.contains(&mode.name)) {
        let name = quoted(&mode.name);
        if let Some(new) = unclaimed.get_mut(&contents(mode)).and_then(VecDeque::pop_front) {
            renamed.insert(&mode.name, new);
            notes.put(Level::Raised, Kind::Mode, format!("calls the mode {name} {}", quoted(new)));
            continue;
        }
        lost.insert(&mode.name);
        let with = match mode.mappings.len() {
            0 => String::new(),
            count => format!(" with {}", plural(count, "mapping")),
        };
        notes.put(Level::Raised, Kind::Mode, format!("removes modes/{number} ({}){with}", name.trim_matches('"')));
    }
    let key = |mode: Option<&str>, rule: &Rule<'_>| format!("{mode:?} {}", rule.body);
    let mut left: HashMap<String, usize> = HashMap::new();
    for rule in &to.rules {
        *left.entry(rule.key.clone()).or_default() += 1;
    }
    // What is new in the other configuration stands for what is changed: by its mode, and its trigger or its action.
    let own = |mode: Option<&str>, rule: &Rule<'_>| {
        let trigger = canonical_without(&rule.mapping.trigger, &[]);
        let action = canonical_without(&rule.mapping.action, &[]);
        [format!("{mode:?} on {trigger}"), format!("{mode:?} does {action}")]
    };
    let mut known: HashSet<&str> = HashSet::new();
    known.extend(from.rules.iter().map(|rule| rule.key.as_str()));
    let fresh: HashSet<String> = to
        .rules
        .iter()
        .filter(|rule| !known.contains(rule.key.as_str()))
        .flat_map(|rule| own(rule.mode, rule))
        .collect();
    for rule in &from.rules {
        let mode = rule.mode.map(|mode| *renamed.get(mode).unwrap_or(&mode));
        if let Some(count) = left.get_mut(&key(mode, rule)).filter(|count| **count > 0) {
            *count -= 1;
            continue;
        }
        if mode.is_some_and(|mode| lost.contains(mode)) {
            continue;
        }
        let changed = own(mode, rule).iter().any(|own| fresh.contains(own));
        let (what, occasion) = (if changed { "changes" } else { "removes" }, rule.occasion());
        notes.put(Level::Raised, Kind::Mapping, format!("{what} {}: {occasion}", rule.called()));
    }
}

/// Ports that were left alone and are not any more, where mappings start programs.
fn inputs(from: &Reach<'_>, to: &Reach<'_>, notes: &mut Notes) {
    if !to.rules.iter().any(|rule| rule.starts) {
        return;
    }
    let kept = &to.config.advanced_settings.ignore_ports;
    for glob in from.config.advanced_settings.ignore_ports.iter().filter(|glob| !kept.contains(glob)) {
        let text = format!("ports called {} are left alone no longer, and mappings start programs", quoted(glob));
        notes.put(Level::Privileged, Kind::ProgramInput, text);
    }
    if opens_unbound(to.config) && !opens_unbound(from.config) {
        let text = "ports without a binding are heard, and mappings start programs".to_owned();
        notes.put(Level::Privileged, Kind::ProgramInput, text);
    }
}

#[cfg(test)]
mod tests;
