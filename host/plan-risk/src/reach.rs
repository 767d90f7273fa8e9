//! How far a configuration reaches: all of its effects, the ways into its modes, and which mappings keep events from
//! which others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use conductor_engine::Trigger;
use conductor_trigger_overlap::Overlap;
use serde_json::Value;

use crate::destination::{Sender, destinations, endpoint, endpoints};
use crate::effect::{self, Effect, Kind, canonical, canonical_without, cut, leaves, quoted};
use crate::rule::{MAX_PAIRS, Rule, modes_asked, rules};
use crate::variables::lead_to_programs;
use conductor_config::{Action, Binding, Config, Connection, ListenMode, Mapping, Profile};
use conductor_rules::{engine_trigger, suppresses};
use conductor_stdx::digest::sha256;

/// In the key of an input: every port.
const ANY_PORT: &str = "any port";
/// In the key of an input: a port of Conductor's own, which other programs send to.
const VIRTUAL: &str = "virtual port of";

/// What of a binding does not decide which input it is.
const NOT_INPUT: [&str; 3] = ["description", "output", "max_events_per_sec"];

/// A way into a mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transition {
    pub mode: String,
    pub key: String,
    pub text: String,
    /// The mode that one has to be in; `None` if any will do.
    from: Option<String>,
}

/// How far a configuration reaches.
#[derive(Debug)]
pub(crate) struct Reach<'c> {
    pub config: &'c Config,
    pub rules: Vec<Rule<'c>>,
    /// By kind and key, with how often it is there.
    pub effects: BTreeMap<(Kind, String), (Effect, usize)>,
    /// What sends over the network, by trigger and mode.
    pub sent: BTreeMap<String, Sender<'c>>,
    pub ways: BTreeSet<Transition>,
    /// Modes in which programs start, or that conditions of those ask for.
    pub program_modes: BTreeSet<&'c str>,
    /// Variables on which the start of programs depends.
    pub program_variables: BTreeSet<&'c str>,
}

impl<'c> Reach<'c> {
    pub fn of(config: &'c Config) -> Self {
        let mut rules = rules(config);
        let mut reach = Self {
            config,
            rules: Vec::new(),
            effects: BTreeMap::new(),
            sent: BTreeMap::new(),
            ways: ways(config),
            program_modes: BTreeSet::new(),
            program_variables: lead_to_programs(config, &mut rules),
        };
        let endpoints = endpoints(config);
        rules.iter().for_each(|rule| reach.rule(rule, &endpoints));
        reach.program_inputs(&rules);
        reach.rules = rules;
        reach.tables();
        reach
    }

    fn put(&mut self, kind: Kind, subject: String, key: String, text: impl FnOnce() -> String) {
        let entry = self.effects.entry((kind, key));
        let (_, count) =
            entry.or_insert_with_key(|(_, key)| (Effect { kind, subject, key: key.clone(), text: text() }, 0));
        *count += 1;
    }

    /// Whether an input that can start programs is one of the ports that all could do so already.
    pub fn was_heard(&self, effect: &Effect) -> bool {
        let Effect { kind, subject, key, .. } = effect;
        let any = || self.effects.contains_key(&(Kind::ProgramInput, format!("{subject} {ANY_PORT}")));
        *kind == Kind::ProgramInput && !key.starts_with(&format!("{subject} {VIRTUAL}")) && any()
    }

    /// Whether some effect of this kind has this subject.
    pub fn subjects(&self, kind: Kind) -> HashSet<&str> {
        let effects = self.effects.values().map(|(effect, _)| effect);
        effects.filter(|effect| effect.kind == kind).map(|effect| effect.subject.as_str()).collect()
    }

    fn rule(&mut self, rule: &Rule<'c>, endpoints: &BTreeMap<&'c str, String>) {
        let Rule { mapping, mode, key, .. } = rule;
        let (mapping, mode) = (*mapping, *mode);
        let trigger = canonical(&mapping.trigger);
        let place = format!("{trigger} {mode:?}");
        self.put(Kind::Mapping, place.clone(), key.clone(), || rule.called());
        leaves(&mapping.action, &mut |action| {
            let leaf = canonical(action);
            if let Some(program) = effect::program(action) {
                let text = || format!("{} on {}", program, rule.occasion());
                self.put(Kind::Program, place.clone(), format!("{leaf} {key}"), text);
            }
            if let Some(variable) = effect::changed(action).filter(|_| rule.by_variable) {
                let text = || format!("what waits for the variable {} on {}", quoted(variable), rule.occasion());
                self.put(Kind::Program, place.clone(), format!("{leaf} {key}"), text);
            }
            if let Some(typed) = effect::typing(action) {
                let text = || format!("{} on {}", typed, rule.occasion());
                self.put(Kind::Typing, place.clone(), format!("{leaf} {key}"), text);
            }
            match action {
                Action::SendMidi(send) => {
                    self.midi(&send.target);
                    self.sysex(&send.target, &send.message);
                }
                Action::MidiForward(forward) => self.midi(&forward.target),
                Action::Feature { type_name, params } => {
                    for to in destinations(type_name, params, endpoints) {
                        if !to.targets.is_empty() {
                            let new = || Sender { occasion: rule.occasion(), mode, mapping, targets: BTreeMap::new() };
                            self.sent.entry(place.clone()).or_insert_with(new).targets.extend(to.targets);
                        }
                        self.put(Kind::Destination, to.subject, to.key, || to.text);
                    }
                }
                _ => {}
            }
        });
        if let Some(feedback) = &mapping.feedback
            && let Some(target) = feedback.target.as_ref().or(mapping.trigger.device.as_ref())
        {
            self.midi(target);
            feedback.fired.iter().chain(&feedback.idle).for_each(|message| self.sysex(target, message));
        }
        if rule.starts {
            self.program_modes.extend(mode);
            modes_asked(mapping, &mut self.program_modes);
        }
    }

    fn midi(&mut self, target: &str) {
        self.put(Kind::MidiOutput, target.to_owned(), canonical(&target), || quoted(target));
    }

    fn sysex(&mut self, target: &str, message: &conductor_config::MidiMessage) {
        if matches!(message, conductor_config::MidiMessage::SysEx { .. }) {
            let key = format!("{target:?} {}", canonical(message));
            self.put(Kind::SysEx, key.clone(), key, || {
                let bytes = serde_json::to_value(message).unwrap_or_default();
                format!("{} to {}", cut(&bytes["bytes"].to_string()), quoted(target))
            });
        }
    }

    /// The inputs that can start programs: for each group of mappings that wait for the same protocol and device,
    /// every input that they hear.
    fn program_inputs(&mut self, rules: &[Rule<'c>]) {
        let config = self.config;
        let mut groups: BTreeMap<(&str, Option<&str>), (&Rule<'c>, usize)> = BTreeMap::new();
        // What a variable brings about, those bring about that change it.
        for rule in rules.iter().filter(|rule| rule.starts && protocol(rule.mapping) != "variables") {
            let group = (protocol(rule.mapping), rule.mapping.trigger.device.as_deref());
            groups.entry(group).or_insert((rule, 0)).1 += 1;
        }
        for ((protocol, device), (first, count)) in groups {
            let group = format!("{protocol} {device:?}");
            let mut put = |key: &str, input: String| {
                self.put(Kind::ProgramInput, group.clone(), format!("{group} {key}"), || {
                    let more = if count > 1 { format!(", and {} more mappings", count - 1) } else { String::new() };
                    format!("{input} can start programs: {}{more}", first.called())
                });
            };
            let named = |binding: &&Binding| match device {
                None => true,
                // Identical devices are distinguished by a number after the alias.
                Some(device) => {
                    device.strip_prefix(&binding.alias).is_some_and(|rest| rest.is_empty() || rest.starts_with(" #"))
                }
            };
            let bindings = &config.bindings;
            let enabled = || bindings.iter().filter(|binding| binding.enabled);
            let heard = enabled().filter(named).filter(|binding| of_protocol(binding) == protocol);
            let any = matches!(protocol, "midi" | "hid")
                && opens_unbound(config)
                && !enabled().any(|b| device.is_some() && named(&b));
            let inputs: Vec<(String, String)> = heard
                // A port that has no binding is heard already; a name for it makes it no other input.
                .filter(|binding| !any || is_virtual(binding))
                .map(|binding| {
                    let made = if is_virtual(binding) { VIRTUAL } else { "port of" };
                    (format!("{made} {}", canonical_without(binding, &NOT_INPUT)), input_of(binding))
                })
                .collect();
            inputs.into_iter().for_each(|(key, input)| put(&key, input));
            // Of mappings that nothing reaches, too, the first input is one more.
            put("none", "nothing".to_owned());
            if any {
                put(
                    ANY_PORT,
                    format!(
                        "every {protocol} port{}",
                        device.map_or(String::new(), |name| format!(" called {}", quoted(name)))
                    ),
                );
            }
        }
    }

    /// What is no mapping.
    fn tables(&mut self) {
        let config = self.config;
        for binding in &config.bindings {
            let key = canonical_without(binding, &["description"]);
            if let Connection::Keyboard { .. } = binding.connection {
                self.put(Kind::Keyboard, binding.alias.clone(), key.clone(), || quoted(&binding.alias));
            }
            self.put(Kind::Binding, binding.alias.clone(), key, || described(binding));
        }
        for (name, model) in &config.models {
            let key = format!("{name:?} {}", canonical(model));
            self.put(Kind::Model, name.clone(), key, || {
                let url = model.url.as_deref().map_or("the provider's own address".to_owned(), quoted);
                let secret = match (&model.secret, &model.url) {
                    (Some(id), _) => quoted(id),
                    (None, None) => "the provider's own, if it has one".to_owned(),
                    (None, Some(_)) => "none, unless this is the provider's own address".to_owned(),
                };
                format!("{} by {} at {url}, secret: {secret}", quoted(&model.model), quoted(&model.provider))
            });
        }
        for (name, _) in config.features.iter().filter(|(_, feature)| !feature.enabled) {
            self.put(Kind::Feature, name.clone(), name.clone(), || quoted(name));
        }
        for (name, feature) in &config.features {
            for (kind, contribution) in feature.refused.iter() {
                let key = format!("{name:?} {kind} {contribution:?}");
                let text = || format!("the {kind} {} of the feature {}", quoted(contribution), quoted(name));
                self.put(Kind::Refusal, key.clone(), key, text);
            }
        }
        if let Ok(Value::Object(settings)) = serde_json::to_value(&config.advanced_settings) {
            for (name, value) in settings {
                let text = format!("{name} = {}", cut(&value.to_string()));
                self.put(Kind::Setting, name.clone(), format!("{name} {}", canonical(&value)), || text);
            }
        }
        for variable in &config.variables {
            let text = || cut(&canonical_without(variable, &["name"]));
            self.put(Kind::Variable, variable.name.clone(), canonical(variable), text);
        }
        if let Some(first) = config.modes.first() {
            self.put(Kind::FirstMode, String::new(), first.name.clone(), || quoted(&first.name));
        }
        for profile in &config.profiles {
            let text = || format!("{} for mode {}", quoted(&profile.name), quoted(&profile.mode));
            self.put(Kind::Profile, profile.name.clone(), canonical(profile), text);
        }
    }

    /// The modes that can become active.
    pub fn reachable(&self) -> BTreeSet<&str> {
        let mut onward: HashMap<Option<&str>, Vec<&str>> = HashMap::new();
        for way in &self.ways {
            onward.entry(way.from.as_deref()).or_default().push(&way.mode);
        }
        // Each way is taken once, however long a chain of modes is.
        let mut reached = BTreeSet::new();
        let mut todo = onward.remove(&None).unwrap_or_default();
        while let Some(mode) = todo.pop() {
            reached.insert(mode);
            todo.extend(onward.remove(&Some(mode)).unwrap_or_default());
        }
        reached
    }

    /// Which mappings keep events from which others, by the numbers that `ids` gives to their keys. `None` if there are
    /// too many to compare.
    pub fn consumed(&self, ids: &mut HashMap<String, u32>) -> Option<HashSet<(u32, u32)>> {
        let mut id = |key: &str| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            *ids.entry(key.to_owned()).or_insert(next)
        };
        let consumers: Vec<usize> = (0..self.rules.len()).filter(|at| self.rules[*at].mapping.consume).collect();
        if consumers.len().saturating_mul(self.rules.len()) > MAX_PAIRS {
            return None;
        }
        if consumers.is_empty() {
            return Some(HashSet::new());
        }
        let triggers: Vec<Option<Trigger>> = self.rules.iter().map(|rule| engine_trigger(rule.mapping)).collect();
        // The order in which mappings are asked.
        let order = |at: usize| {
            let mapping = self.rules[at].mapping;
            (Reverse(mapping.priority), mapping.trigger.device.is_none(), at)
        };
        let ids: Vec<u32> = self.rules.iter().map(|rule| id(&rule.key)).collect();
        let mut pairs = HashSet::new();
        for first in consumers {
            for second in (0..self.rules.len()).filter(|second| order(first) < order(*second)) {
                let (one, other) = (&self.rules[first], &self.rules[second]);
                let same_mode = one.mode.is_none() || other.mode.is_none() || one.mode == other.mode;
                let devices = (&one.mapping.trigger.device, &other.mapping.trigger.device);
                let same_device = devices.0.is_none() || devices.1.is_none() || devices.0 == devices.1;
                if same_mode
                    && same_device
                    && let (Some(trigger), Some(of)) = (&triggers[first], &triggers[second])
                    && trigger.may_keep_from(suppresses(one.mapping), of)
                {
                    pairs.insert((ids[first], ids[second]));
                }
            }
        }
        Some(pairs)
    }
}

/// Every way into a mode: the start, profiles, and mappings.
fn ways(config: &Config) -> BTreeSet<Transition> {
    let mut ways = BTreeSet::new();
    if let Some(first) = config.modes.first() {
        let text = "the start of the host".to_owned();
        ways.insert(Transition { mode: first.name.clone(), key: "start".to_owned(), text, from: None });
    }
    for mode in &config.modes {
        if let Some(below) = mode.over.clone() {
            let (key, text) =
                (format!("over {}", mode.name), format!("the mode {}, which lies over it", quoted(&mode.name)));
            ways.insert(Transition { mode: below, key, text, from: Some(mode.name.clone()) });
        }
    }
    // Of the profiles that fit, one with a title goes before those without, then the first: so it matters which ones
    // stand before.
    let mut profiles: Vec<&Profile> = config.profiles.iter().collect();
    profiles.sort_by_key(|profile| profile.title.is_none());
    let mut before = String::new();
    for profile in profiles {
        let key = canonical_without(profile, &["name"]);
        let text = format!("the profile {}", quoted(&profile.name));
        ways.insert(Transition { mode: profile.mode.clone(), key: format!("{before} {key}"), text, from: None });
        before = sha256(format!("{before} {key}").as_bytes());
    }
    for rule in rules(config) {
        leaves(&rule.mapping.action, &mut |action| {
            let to: Vec<&str> = match action {
                Action::ModeChange(change) => vec![&change.mode],
                Action::NextMode(_) | Action::PreviousMode(_) => {
                    config.modes.iter().map(|mode| mode.name.as_str()).collect()
                }
                _ => Vec::new(),
            };
            for mode in to {
                let from = rule.mode.map(str::to_owned);
                ways.insert(Transition { mode: mode.to_owned(), key: rule.key.clone(), text: rule.occasion(), from });
            }
        });
    }
    ways
}

/// Whether ports without a binding are heard.
pub(crate) fn opens_unbound(config: &Config) -> bool {
    config.bindings.is_empty() || config.advanced_settings.listen_mode == ListenMode::All
}

fn of_protocol(binding: &Binding) -> &'static str {
    match binding.connection {
        Connection::Midi { .. } => "midi",
        Connection::Hid { .. } => "hid",
        Connection::Keyboard { .. } | Connection::Mouse { .. } => "keyboard",
        Connection::Osc { .. } => "osc",
        Connection::ArtNet { .. } => "artnet",
    }
}

/// What a mapping waits for comes by this protocol.
fn protocol(mapping: &Mapping) -> &'static str {
    use conductor_config::TriggerEvent as Event;
    match &mapping.trigger.event {
        Event::OscMessage { .. } | Event::OscPattern { .. } | Event::OscArgRange { .. } => "osc",
        Event::ArtNetChannel { .. } => "artnet",
        Event::Variable { .. } => "variables",
        Event::GamepadButton { .. }
        | Event::GamepadAnalogStick { .. }
        | Event::GamepadTrigger { .. }
        | Event::GamepadButtonChord { .. }
        | Event::GamepadButtonSequence { .. }
        | Event::LongPress { button: Some(_), .. }
        | Event::DoubleTap { button: Some(_), .. } => "hid",
        Event::Key { .. } | Event::KeyChord { .. } | Event::KeySequence { .. } => "keyboard",
        Event::LongPress { key: Some(_), .. } | Event::DoubleTap { key: Some(_), .. } => "keyboard",
        _ => "midi",
    }
}

fn is_virtual(binding: &Binding) -> bool {
    matches!(&binding.connection, Connection::Midi { virtual_port: Some(_), .. })
}

fn input_of(binding: &Binding) -> String {
    let address = match &binding.connection {
        Connection::Osc { input: Some(input), .. } => format!(" at {}", address(&input.host, input.port)),
        Connection::ArtNet { input: Some(input), .. } => format!(" at {}", address(&input.host, input.port)),
        _ => String::new(),
    };
    format!("the binding {}{address}", quoted(&binding.alias))
}

/// An address that is listened to, and who reaches it.
fn address(host: &str, port: u16) -> String {
    let loopback = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let text = format!("{}:{port}", cut(host));
    if loopback { text } else { format!("{text}, which other machines can reach") }
}

/// A binding in a line: where it listens and where it sends.
fn described(binding: &Binding) -> String {
    let mut text = match &binding.connection {
        Connection::Midi { .. } => "MIDI".to_owned(),
        Connection::Hid { .. } => "a gamepad".to_owned(),
        Connection::Keyboard { grab, .. } => format!("a keyboard{}", if *grab { ", for itself alone" } else { "" }),
        Connection::Mouse { grab, .. } => format!("a mouse{}", if *grab { ", for itself alone" } else { "" }),
        Connection::Osc { .. } => "OSC".to_owned(),
        Connection::ArtNet { .. } => "Art-Net".to_owned(),
    };
    match &binding.connection {
        Connection::Osc { input: Some(input), .. } => {
            text += &format!(", listens at {}", address(&input.host, input.port))
        }
        Connection::ArtNet { input: Some(input), .. } => {
            text += &format!(", listens at {}", address(&input.host, input.port))
        }
        _ => {}
    }
    if let Some(endpoint) = endpoint(binding) {
        text += &format!(", sends to {}", quoted(&endpoint));
    }
    if !binding.enabled {
        text += ", switched off";
    }
    text
}
