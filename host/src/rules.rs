//! From configuration to rules: triggers and actions as the engine and the workers know them.

use std::collections::BTreeSet;
use std::sync::Arc;

use conductor_engine as engine;
use conductor_engine::{
    NumberRange, OscArgTest, OscPattern, Place, RuleSet, RuleSource, RuleSpec, Scope, SysExPattern, ValueRange,
};

use crate::config::{self, Config, Diagnostic, Diagnostics, HOST_ACTIONS, Loaded, PathStep, Source, TriggerEvent};
use crate::dispatch::Action;
use crate::dispatch::outputs::Outputs;
use crate::feature::registry::{Lookup, Registry};

/// A rule set, and what has to be there for it.
#[derive(Debug)]
pub struct Compiled {
    /// The rules.
    pub rules: RuleSet<Action>,
    /// The MIDI outputs that rules send to, by alias or port name.
    pub targets: BTreeSet<String>,
    /// What is doubtful in the configuration.
    pub warnings: Diagnostics,
}

/// Compiles a configuration: every action is prepared by whoever will do it.
///
/// # Errors
/// Everything that is wrong, with its place in the file.
pub fn compile(loaded: &Loaded, registry: &Registry, outputs: &Outputs) -> Result<Compiled, Diagnostics> {
    let Loaded { config, source, warnings } = loaded;
    let mut compiler = Compiler {
        source,
        registry,
        outputs,
        diagnostics: warnings.clone(),
        targets: BTreeSet::new(),
        rules: Vec::with_capacity(config.global_mappings.len()),
    };
    for (mode_index, mode) in config.modes.iter().enumerate() {
        for (index, mapping) in mode.mappings.iter().enumerate() {
            let path = ["modes".into(), mode_index.into(), "mappings".into(), index.into()];
            compiler.mapping(mapping, Scope::Mode(mode.name.clone()), &path);
        }
    }
    for (index, mapping) in config.global_mappings.iter().enumerate() {
        compiler.mapping(mapping, Scope::Global, &["global_mappings".into(), index.into()]);
    }
    compiler.finish(config)
}

struct Compiler<'a> {
    source: &'a Source,
    registry: &'a Registry,
    outputs: &'a Outputs,
    diagnostics: Diagnostics,
    targets: BTreeSet<String>,
    rules: Vec<RuleSpec<Action>>,
}

impl Compiler<'_> {
    fn mapping(&mut self, mapping: &config::Mapping, scope: Scope, path: &[PathStep<'_>]) {
        let trigger =
            trigger(&mapping.trigger.event, &mapping.action).map_err(|message| self.error(path, "trigger", message));
        let action = self.action(&mapping.action, path);
        let (Ok(trigger), Some(action)) = (trigger, action) else { return };
        self.rules.push(RuleSpec {
            scope,
            device: mapping.trigger.device.clone(),
            trigger,
            priority: mapping.priority,
            consume: mapping.consume,
            name: mapping.name.clone(),
            // Looked up only when something is wrong with the rule; see `finish`.
            place: Place::NONE,
            action,
        });
    }

    fn action(&mut self, action: &config::Action, path: &[PathStep<'_>]) -> Option<Action> {
        match action {
            config::Action::SendMidi(send) => {
                let queue = self.queue(&send.target, path)?;
                Some(Action::SendMidi { queue, message: Arc::new(send.message.clone().into()) })
            }
            config::Action::MidiForward(forward) => {
                let queue = self.queue(&forward.target, path)?;
                Some(Action::MidiForward {
                    queue,
                    transform: forward.transform.as_ref().map(|t| Arc::new(transform(t))),
                })
            }
            config::Action::ModeChange(change) => Some(Action::ModeChange { mode: change.mode.as_str().into() }),
            config::Action::Suppress(_) => Some(Action::Suppress),
            config::Action::Feature { type_name, params } => self.feature_action(type_name, params, path),
        }
    }

    fn feature_action(&mut self, type_name: &str, params: &serde_json::Value, path: &[PathStep<'_>]) -> Option<Action> {
        match self.registry.find(type_name) {
            Lookup::Found { queue, action } => match queue.prepare(&action, &params.to_string()) {
                Ok(prepared) => return Some(Action::Feature(prepared)),
                Err(error) => self.error(path, "action", format!("{type_name}: {error}")),
            },
            Lookup::Refused { feature, reason } => {
                return Some(self.missing(
                    type_name,
                    path,
                    format!("the feature {feature} is not installed: {reason}"),
                ));
            }
            Lookup::Unknown => {
                let offered = self.registry.action_names();
                let names = || HOST_ACTIONS.iter().copied().chain(offered.iter().map(String::as_str));
                let nearest = config::nearest(type_name, names());
                // Nothing is like it: it is another feature's, which may come yet. What is nearly a name
                // that there is, is a mistake.
                if nearest.is_none() {
                    let list = names().collect::<Vec<_>>().join(", ");
                    let message =
                        format!("no feature that is installed has the action {type_name:?}; there are {list}");
                    return Some(self.missing(type_name, path, message));
                }
                let place = self.source.place(&[path, &["action".into(), "type".into()]].concat());
                let diagnostic = Diagnostic::error(place, format!("there is no action {type_name:?}"))
                    .with_allowed(names().collect::<Vec<_>>().join(", "))
                    .with_nearest(nearest);
                self.diagnostics.push(diagnostic);
            }
        }
        None
    }

    /// The mapping stays, and says why it does nothing.
    fn missing(&mut self, type_name: &str, path: &[PathStep<'_>], reason: String) -> Action {
        let place = self.source.place(&[path, &["action".into(), "type".into()]].concat());
        let warning = Diagnostic::warning(place, reason.clone())
            .with_help("the mapping is kept and does nothing until a feature has it".to_owned());
        self.diagnostics.push(warning);
        Action::Missing { name: type_name.into(), reason: reason.into() }
    }

    fn queue(&mut self, target: &str, path: &[PathStep<'_>]) -> Option<crate::dispatch::midi_out::MidiQueue> {
        self.targets.insert(target.to_owned());
        match self.outputs.queue(target) {
            Ok(queue) => Some(queue),
            Err(error) => {
                self.error(path, "action", format!("no worker can be started: {error}"));
                None
            }
        }
    }

    fn error(&mut self, path: &[PathStep<'_>], part: &str, message: impl Into<String>) {
        let place = self.source.place(&[path, &[part.into()]].concat());
        self.diagnostics.push(Diagnostic::error(place, message));
    }

    fn finish(mut self, config: &Config) -> Result<Compiled, Diagnostics> {
        let modes = config.modes.iter().map(|mode| mode.name.clone()).collect();
        let paths = rule_paths(config);
        // Rules are left out where something is wrong already, and the numbers would not fit.
        let complete = paths.len() == self.rules.len();
        match engine::compile(RuleSource { modes, rules: std::mem::take(&mut self.rules) }) {
            Ok(rules) => {
                let warnings = self.diagnostics.into_result()?;
                Ok(Compiled { rules, targets: self.targets, warnings })
            }
            Err(errors) => {
                for error in errors {
                    let path = error.rule.filter(|_| complete).and_then(|rule| paths.get(rule));
                    let place = path.map(|path| self.source.place(path)).unwrap_or_default();
                    self.diagnostics.push(Diagnostic::error(place, error.kind.to_string()));
                }
                Err(self.diagnostics)
            }
        }
    }
}

/// Where each mapping stands, in the order of rules.
fn rule_paths(config: &Config) -> Vec<Vec<PathStep<'static>>> {
    let in_modes = config.modes.iter().enumerate().flat_map(|(mode_index, mode)| {
        (0..mode.mappings.len())
            .map(move |index| vec!["modes".into(), mode_index.into(), "mappings".into(), index.into()])
    });
    let global = (0..config.global_mappings.len()).map(|index| vec!["global_mappings".into(), index.into()]);
    in_modes.chain(global).collect()
}

fn range(range: config::NumberRange) -> NumberRange {
    NumberRange { first: range.first(), last: range.last() }
}

fn values<const MAX: u16>(bounds: config::Bounds<MAX>) -> ValueRange {
    ValueRange { min: bounds.min(), max: bounds.max() }
}

/// Which edge of a note counts where the mapping does not say: what is forwarded needs its end,
/// or it would sound forever.
fn edge(said: Option<config::Edge>, action: &config::Action) -> engine::Edge {
    match said {
        Some(config::Edge::Press) => engine::Edge::Press,
        Some(config::Edge::Release) => engine::Edge::Release,
        Some(config::Edge::Both) => engine::Edge::Both,
        None if matches!(action, config::Action::MidiForward(_)) => engine::Edge::Both,
        None => engine::Edge::Press,
    }
}

fn trigger(event: &TriggerEvent, action: &config::Action) -> Result<engine::Trigger, String> {
    use engine::Trigger;
    Ok(match event {
        TriggerEvent::Note { note, velocity_range, on, channel } => Trigger::Note {
            notes: range(*note),
            velocity: values(*velocity_range),
            edge: edge(*on, action),
            channel: *channel,
        },
        TriggerEvent::NoteRange { note_min, note_max, velocity_range, on, channel } => Trigger::Note {
            notes: NumberRange { first: *note_min, last: *note_max },
            velocity: values(*velocity_range),
            edge: edge(*on, action),
            channel: *channel,
        },
        TriggerEvent::VelocityRange { note, min, max, channel } => Trigger::Note {
            notes: range(*note),
            velocity: ValueRange { min: u16::from(*min), max: u16::from(*max) },
            edge: edge(None, action),
            channel: *channel,
        },
        TriggerEvent::CC { cc, value_range, channel } => {
            Trigger::ControlChange { controllers: range(*cc), value: values(*value_range), channel: *channel }
        }
        TriggerEvent::Aftertouch { value_range, channel } => {
            Trigger::Aftertouch { value: values(*value_range), channel: *channel }
        }
        TriggerEvent::PolyAftertouch { note, value_range, channel } => {
            Trigger::PolyAftertouch { notes: range(*note), value: values(*value_range), channel: *channel }
        }
        TriggerEvent::PitchBend { value_range, channel } => {
            Trigger::PitchBend { value: values(*value_range), channel: *channel }
        }
        TriggerEvent::ProgramChange { program, channel } => {
            Trigger::ProgramChange { programs: range(*program), channel: *channel }
        }
        TriggerEvent::SysEx { prefix, mask } => Trigger::SysEx { pattern: sysex(prefix, mask.as_ref()) },
        TriggerEvent::MidiAny { channel } => Trigger::MidiAny { channel: *channel },
        TriggerEvent::OscMessage { address } => Trigger::Osc { address: address.clone(), arg: None },
        TriggerEvent::OscPattern { pattern } => Trigger::OscPattern { pattern: osc_pattern(pattern)?, arg: None },
        TriggerEvent::OscArgRange { address, arg, min, max } => {
            let arg = Some(OscArgTest { index: usize::from(*arg), min: *min, max: *max });
            if engine::osc::check_address(address).is_ok() {
                Trigger::Osc { address: address.clone(), arg }
            } else {
                Trigger::OscPattern { pattern: osc_pattern(address)?, arg }
            }
        }
    })
}

fn osc_pattern(pattern: &str) -> Result<OscPattern, String> {
    OscPattern::parse(pattern).map_err(|error| error.to_string())
}

fn sysex(prefix: &config::SysExPrefix, mask: Option<&config::HexBytes>) -> SysExPattern {
    let bytes = prefix.as_slice().iter().enumerate().map(|(index, byte)| match byte {
        Some(byte) => (*byte, mask.and_then(|mask| mask.as_slice().get(index).copied()).unwrap_or(0xFF)),
        None => (0, 0),
    });
    SysExPattern::new(bytes.collect::<Vec<_>>())
}

fn transform(transform: &config::MidiTransform) -> engine::MidiTransform {
    engine::MidiTransform {
        channel: transform.channel,
        controller: transform.cc,
        note: transform.note,
        velocity_scale: Some(transform.velocity_scale),
        velocity_offset: Some(i16::from(transform.velocity_offset)),
        invert: transform.invert_value,
        curve: Some(match &transform.curve {
            config::Curve::Linear => engine::Curve::Linear,
            config::Curve::Logarithmic => engine::Curve::Logarithmic,
            config::Curve::Exponential => engine::Curve::Exponential,
            config::Curve::S => engine::Curve::SCurve,
            config::Curve::Lut(lut) => engine::Curve::Lut(Box::new(*lut.numbers())),
        }),
    }
}

#[cfg(test)]
mod tests {
    use conductor_engine::{DeviceId, Event, MidiMessage, ModeIx};

    use super::*;
    use crate::observer;
    use crate::service::sinks::SinkQueue;

    fn compiled(toml: &str) -> Result<Compiled, Diagnostics> {
        let (_, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None).unwrap();
        let outputs = Outputs::new(observer);
        let compiled = compile(&config::parse(toml, "c.toml").unwrap(), &Registry::default(), &outputs);
        outputs.stop();
        compiled
    }

    fn fired(compiled: &Compiled, event: MidiMessage) -> Vec<String> {
        let (device, event) = (DeviceId::new("pads"), Event::from(event));
        compiled.rules.matches(ModeIx(0), &device, &event).map(|found| found.rule.action.describe()).collect()
    }

    const FORWARD: &str = r#"
        [[modes]]
        name = "Play"
        [[modes.mappings]]
        trigger = { type = "Note", note = "36..39" }
        action = { type = "MidiForward", target = "synth" }
        [[global_mappings]]
        trigger = { type = "Note", note = 36 }
        action = { type = "SendMidi", target = "synth", message_type = "CC", cc = 1, value = "{value}" }
    "#;

    /// ENG-7: the same configuration gives the same rules.
    #[test]
    fn compiling_is_deterministic() {
        assert_eq!(compiled(FORWARD).unwrap().rules.fingerprint(), compiled(FORWARD).unwrap().rules.fingerprint());
    }

    /// ENG-10: what is forwarded is forwarded with its end; other actions are done once.
    #[test]
    fn a_forwarded_note_is_forwarded_with_its_end() {
        let rules = compiled(FORWARD).unwrap();
        assert_eq!(rules.targets, BTreeSet::from(["synth".to_owned()]));
        let on = MidiMessage::NoteOn { channel: 0, note: 36, velocity: 90 };
        let off = MidiMessage::NoteOff { channel: 0, note: 36, velocity: 0 };
        assert_eq!(fired(&rules, on), ["MidiForward to synth", "SendMidi to synth"]);
        assert_eq!(fired(&rules, off), ["MidiForward to synth"]);
    }

    /// CFG-2: an action that nobody has is reported with its place, what there is, and what was meant.
    #[test]
    fn an_unknown_action_is_reported_at_its_place() {
        let toml = r#"
[[global_mappings]]
trigger = { type = "Note", note = 36 }
action = { type = "MidiForwards", target = "synth" }
[[global_mappings]]
trigger = { type = "Note", note = 37 }
action = { type = "OscSend", target = "127.0.0.1:1", address = "/a" }
"#;
        let text = compiled(toml).unwrap_err().render(false);
        assert!(text.contains("c.toml:4:19: there is no action \"MidiForwards\""), "{text}");
        assert!(text.contains("did you mean \"MidiForward\"?"), "{text}");
    }

    /// What no feature has yet is kept, said, and fails with its reason when it is asked for.
    #[test]
    fn a_mapping_whose_feature_is_not_there_waits_for_it() {
        let toml = r#"
[[global_mappings]]
trigger = { type = "Note", note = 37 }
action = { type = "OscSend", target = "127.0.0.1:1", address = "/a" }
"#;
        let rules = compiled(toml).unwrap();
        let text = rules.warnings.render(false);
        assert!(text.contains("c.toml:4:19: no feature that is installed has the action \"OscSend\""), "{text}");
        let on = MidiMessage::NoteOn { channel: 0, note: 37, velocity: 90 };
        assert_eq!(fired(&rules, on), ["OscSend (missing)"]);
    }
}
