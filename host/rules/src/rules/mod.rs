//! From configuration to rules: triggers and actions as the engine and the workers know them.
//!
//! What each part of a mapping comes to is in files of their own; what stands here goes through the mappings
//! and has everything prepared that their actions need.

mod action;
mod clock;
mod condition;
mod edges;
mod feature_action;
mod fresh;
mod lasts;
mod layers;
mod light;
mod overlaps;
mod params;
mod retry;
mod shadowed;
mod transform;
mod trigger;
mod variable;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::sync::Arc;

use conductor_config::{self as config, Config, Diagnostic, Diagnostics, Loaded, PathStep, Source};
use conductor_dispatch::clock_out::ClockOut;
use conductor_dispatch::variables::View;
use conductor_dispatch::workers::Workers;
use conductor_dispatch::{
    Action,
    midi_message::MidiTemplate,
    midi_out::{Feedback, MidiQueue},
    outputs::OutputPlan,
};
use conductor_engine as engine;
use conductor_engine::{Choices, Place, RuleSet, RuleSource, RuleSpec, Scope};
use conductor_event::ModeIx;
use conductor_registry::Registry;
use conductor_variables::{Key, Variable};

use self::condition::condition;
use self::edges::{Releases, hears_releases_of_itself, holds, holds_on, is_both, release_of};
pub use self::fresh::{FreshMapping, fresh_mappings};
pub use self::overlaps::{OverlappingPair, Overlaps, PlacedMapping, overlapping_pairs, overlaps};
pub use self::shadowed::shadowed;
use self::trigger::{notes, some_number, trigger, waiting};
use self::variable::{Asking, steps_mode};
use crate::profile::{self, Profile};

/// A rule set, and what has to be there for it.
#[derive(Debug)]
pub struct Compiled {
    /// The rules.
    pub rules: RuleSet<Action>,
    /// The MIDI outputs that rules send to, by alias or port name.
    pub targets: BTreeSet<String>,
    /// What the outputs have to know of them.
    pub outputs: OutputPlan,
    /// Which mode applies for which application.
    pub profiles: Vec<Arc<Profile>>,
    /// What is doubtful in the configuration.
    pub warnings: Diagnostics,
}

/// What a mapping waits for, as the engine has it; `None` if its trigger can't be compiled.
pub fn engine_trigger(mapping: &config::Mapping) -> Option<engine::Trigger> {
    trigger(&mapping.trigger.event, &mapping.action, some_number).ok()
}

/// Whether a mapping that consumes a press keeps its release from others as well.
pub fn suppresses(mapping: &config::Mapping) -> bool {
    mapping.consume && matches!(mapping.action, config::Action::Suppress(_))
}

/// Compiles a configuration: every action is prepared by the worker that will do it.
///
/// # Errors
/// Everything that is wrong, with its place in the file.
pub fn compile(loaded: &Loaded, registry: &Registry, workers: &Workers) -> Result<Compiled, Diagnostics> {
    let Loaded { config, source, warnings } = loaded;
    let declarations = variable::declarations(config).map_err(|(at, why)| {
        let mut diagnostics = warnings.clone();
        diagnostics.push(Diagnostic::error(source.place(&["variables".into(), at.into()]), why));
        diagnostics
    })?;
    let declarations = [declarations, clock::declarations(config)].concat();
    let view = View { variables: workers.declare(declarations), mode: Key::EVERYONE };
    let mut compiler = Compiler {
        source,
        registry,
        workers,
        diagnostics: warnings.clone(),
        targets: BTreeMap::new(),
        places: crate::bindings::places(config),
        outputs: OutputPlan::default(),
        modes: config.modes.iter().map(|mode| mode.name.clone()).collect(),
        choices: Choices::default(),
        view,
        clock: config.clock.as_ref(),
        mode: None,
        device: None,
        rules: Vec::with_capacity(config.global_mappings.len()),
        mappings: Vec::new(),
        seen: 0,
    };
    for (mode_index, mode) in config.modes.iter().enumerate() {
        for (index, mapping) in mode.mappings.iter().enumerate() {
            let path = ["modes".into(), mode_index.into(), "mappings".into(), index.into()];
            let number = u16::try_from(mode_index).ok().map(ModeIx);
            compiler.mapping(mapping, Scope::Mode(mode.name.clone()), number, &path);
        }
    }
    for (index, mapping) in config.global_mappings.iter().enumerate() {
        compiler.mapping(mapping, Scope::Global, None, &["global_mappings".into(), index.into()]);
    }
    compiler.outputs.pace = crate::bindings::paces(config);
    for (index, light) in config.lights.iter().enumerate() {
        compiler.light(light, &["lights".into(), index.into()]);
    }
    compiler.finish(config)
}

struct Compiler<'a> {
    source: &'a Source,
    registry: &'a Registry,
    workers: &'a Workers,
    diagnostics: Diagnostics,
    /// The MIDI outputs that rules send to, each with its way there: asked for once, however many rules name it.
    targets: BTreeMap<String, MidiQueue>,
    /// Where the endpoints are that bindings name, by alias.
    places: BTreeMap<String, String>,
    outputs: OutputPlan,
    modes: Vec<String>,
    /// What the action decides by that is being compiled.
    choices: Choices,
    /// The variables, as the mapping sees them that is being compiled.
    view: View,
    /// The clock that the configuration goes by.
    clock: Option<&'a config::Clock>,
    /// The mode that it is compiled for; none is every mode.
    mode: Option<ModeIx>,
    /// The device that it is for; none is every device.
    device: Option<&'a str>,
    rules: Vec<RuleSpec<Action>>,
    /// Which mapping each rule is of, and how many mappings there were so far.
    mappings: Vec<usize>,
    seen: usize,
}

impl<'a> Compiler<'a> {
    fn mapping(&mut self, mapping: &'a config::Mapping, scope: Scope, mode: Option<ModeIx>, path: &[PathStep<'_>]) {
        self.seen += 1;
        if mode.is_none() && steps_mode(&mapping.action) {
            // Which mode is next depends on the one that is active: there is a rule for each.
            if self.modes.is_empty() {
                self.error(&[path, &["action".into()]].concat(), "there is no mode to go to");
            }
            for (name, number) in self.modes.clone().into_iter().zip(0..) {
                self.rule(mapping, Scope::Mode(name), Some(ModeIx(number)), path);
            }
        } else {
            self.rule(mapping, scope, mode, path);
        }
    }

    fn rule(&mut self, mapping: &'a config::Mapping, scope: Scope, mode: Option<ModeIx>, path: &[PathStep<'_>]) {
        let number = self.seen - 1;
        (self.mode, self.device) = (mode, mapping.trigger.device.as_deref());
        self.view.mode = match &scope {
            Scope::Mode(name) => Key::of(name),
            Scope::Global => Key::EVERYONE,
        };
        if let Some((key, message)) = clock::mistake(mapping, self.clock) {
            self.error(&[path, &[key.into()]].concat(), message);
        }
        let variables = Arc::clone(&self.view.variables);
        let variable = |name: &str| variables.find(name).map(Variable::number);
        let trigger = trigger(&mapping.trigger.event, &mapping.action, variable).map_err(|message| {
            self.error(&[path, &["trigger".into()]].concat(), message);
        });
        let condition = mapping.condition.as_deref().map(|written| condition(written, &self.asking())).transpose();
        let condition = condition.map_err(|message| self.error(&[path, &["condition".into()]].concat(), message));
        self.choices = Choices { conditions: Vec::new(), holds: holds(&mapping.action) };
        let releases = if hears_releases_of_itself(&mapping.trigger.event, &mapping.action) {
            Releases::ForSome
        } else {
            Releases::AsSaid
        };
        if holds_on(&mapping.trigger.event, &mapping.action) {
            let place = self.source.place(&[path, &["action".into()]].concat());
            let message =
                "what this holds down, or keeps moving, stays so until the mode is left: a gesture has no release";
            let help = "`stroke = \"tap\"` strikes it, `motion = \"by\"` moves it once; for as long as a key is down use a `Note`, or a \
                        mode with `lasts = \"while_held\"`";
            self.diagnostics.push(Diagnostic::warning(place, message).with_help(help));
        }
        let lasts = lasts::of(mapping).map_err(|message| self.error(&[path, &["action".into()]].concat(), message));
        let action = self.action(&mapping.action, releases, &[path, &["action".into()]].concat());
        let action = action.and_then(|action| self.retried(mapping, action, path));
        let shown = action.and_then(|action| match &mapping.feedback {
            Some(feedback) => self.shown(action, feedback, &mapping.trigger, mode, path),
            None => Some(action),
        });
        let (Ok(trigger), Ok(condition), Ok(lasts), Some(action)) = (trigger, condition, lasts, shown) else { return };
        let quantize = mapping
            .quantize
            .zip(self.clock)
            .and_then(|(grid, clock)| NonZeroU16::new(grid.pulses(clock.beats_per_bar)));
        let end = self.light_end(mapping, &action, &trigger, mode, path);
        let ends = end.is_some();
        if let Some((trigger, action)) = end {
            self.mappings.push(number);
            self.rules.push(RuleSpec {
                device: mapping.trigger.device.clone(),
                // Whatever else the release brings about, in whichever mode that is by now, and where the condition holds no
                // longer, the light goes out.
                scope: Scope::Global,
                priority: i32::MAX,
                quantize,
                name: mapping.name.clone(),
                place: Place::NONE,
                ..RuleSpec::new(trigger, action)
            });
        }
        self.mappings.push(number);
        self.rules.push(RuleSpec {
            scope,
            device: mapping.trigger.device.clone().filter(|_| !comes_from_no_port(&trigger)),
            trigger,
            condition,
            choices: std::mem::take(&mut self.choices),
            lasts,
            priority: mapping.priority,
            consume: mapping.consume,
            swallows_release: suppresses(mapping) && !ends,
            quantize,
            defer: mapping.defer,
            name: mapping.name.clone(),
            // Looked up only when something is wrong with the rule; see `finish`.
            place: Place::NONE,
            action,
        });
    }

    /// What ends a light that is on while the control of a mapping is held, as a rule of its own. `None` if the mapping's own
    /// rule does that, if there is no such light, or if it can't be.
    fn light_end(
        &mut self,
        mapping: &config::Mapping,
        action: &Action,
        trigger: &engine::Trigger,
        mode: Option<ModeIx>,
        path: &[PathStep<'_>],
    ) -> Option<(engine::Trigger, Action)> {
        let feedback = mapping.feedback.as_ref().filter(|feedback| feedback.while_held)?;
        let place = || self.source.place(&[path, &["feedback".into(), "while_held".into()]].concat());
        let end = release_of(trigger);
        let diagnostic = if feedback.idle.is_none() {
            Diagnostic::error(place(), "`while_held` sends `idle` when the control is let go, and there is no `idle`")
                .with_help("give `idle`, what turns the light off, or leave `while_held` out")
        } else if end.is_none() && !is_both(trigger) {
            Diagnostic::error(place(), "`while_held` is for a control that is let go after the mapping has fired")
                .with_help(
                    "use a `Note`, `NoteRange`, `VelocityRange`, `GamepadButton` or `Key` that fires when it is pressed",
                )
        } else {
            let Action::Shown { queue, feedback, .. } = action else { return None };
            let (queue, feedback) = (queue.clone(), Arc::clone(feedback));
            return end.map(|end| (end, Action::LightEnd { queue, feedback, mode }));
        };
        self.diagnostics.push(diagnostic);
        None
    }

    /// The action with what lights show of it.
    fn shown(
        &mut self,
        action: Action,
        written: &config::Feedback,
        trigger: &config::Trigger,
        mode: Option<ModeIx>,
        path: &[PathStep<'_>],
    ) -> Option<Action> {
        let path = [path, &["feedback".into()]].concat();
        let Some(target) = written.target.as_ref().or(trigger.device.as_ref()) else {
            let place = self.source.place(&path);
            let diagnostic =
                Diagnostic::error(place, "the mapping is for every device, so it is open whose lights these are")
                    .with_help("give `target` here, or `device` in the trigger");
            self.diagnostics.push(diagnostic);
            return None;
        };
        let queue = self.output(target, &path)?;
        let mut template = |message: &Option<config::MidiMessage>, key: &'static str| match message {
            None => Some(None),
            Some(message) => self.message(message, &[&path[..], &[key.into()][..]].concat()).map(Some),
        };
        let (fired, idle) = (template(&written.fired, "fired"), template(&written.idle, "idle"));
        let feedback = Feedback { fired: fired?, idle: idle? };
        if let Some(idle) = &feedback.idle {
            let device = engine::DeviceId::new(trigger.device.as_ref().unwrap_or(target));
            let messages = waiting(&trigger.event).map(|inputs| (mode, idle.filled(&inputs, &device)));
            self.outputs.lights.entry(target.clone()).or_default().idle.extend(messages);
        }
        if let Some(text) = &written.text {
            let Some(keys) = notes(&trigger.event) else {
                let place = self.source.place(&[&path[..], &["text".into()]].concat());
                let diagnostic = Diagnostic::error(place, "`text` is shown in a key, and this trigger names no note")
                    .with_help(
                        "use a `Note`, `NoteRange`, `VelocityRange`, or a `LongPress` or `DoubleTap` with `note`",
                    );
                self.diagnostics.push(diagnostic);
                return None;
            };
            // A range of notes ends at 127.
            let text: Arc<str> = text.as_str().into();
            let texts = keys.filter_map(|key| Some((mode, u8::try_from(key).ok()?, Arc::clone(&text))));
            self.outputs.lights.entry(target.clone()).or_default().texts.extend(texts);
        }
        Some(Action::Shown { queue, feedback: Arc::new(feedback), action: Box::new(action) })
    }

    /// Who asks for variables: the mapping that is being compiled.
    fn asking(&self) -> Asking<'_> {
        let mode = self.mode.and_then(|mode| self.modes.get(usize::from(mode.0)));
        Asking { view: &self.view, clock: self.clock, mode: mode.map(String::as_str), device: self.device }
    }

    /// A message with the variables that its numbers name.
    fn message(&mut self, message: &config::MidiMessage, path: &[PathStep<'_>]) -> Option<MidiTemplate> {
        let mut message = message.clone();
        let asking = self.asking();
        let find = |name: &str| asking.variable(name).ok().and_then(|_| asking.view.variables.bound(name));
        if let Err((key, mistake)) = message.bind(find) {
            self.error(&[path, &[key.into()]].concat(), mistake.to_string());
            return None;
        }
        Some(MidiTemplate::new(message, self.view.clone()))
    }

    /// The outputs that get the clock.
    fn clock_out(&mut self) -> ClockOut {
        let Some(clock) = self.clock else { return ClockOut::default() };
        let mut queues = Vec::with_capacity(clock.outputs.len());
        for (index, target) in clock.outputs.iter().enumerate() {
            let path = ["clock".into(), "outputs".into(), index.into()];
            if clock.device.as_ref() == Some(target) {
                self.error(&path, "the clock comes from this device: it does not get its own back");
            } else if self.outputs.clock.insert(target.clone()) {
                queues.extend(self.output(target, &path));
            }
        }
        ClockOut::new(queues)
    }

    fn output(&mut self, target: &str, path: &[PathStep<'_>]) -> Option<MidiQueue> {
        if let Some(queue) = self.targets.get(target) {
            return Some(queue.clone());
        }
        let queue = self.workers.outputs.queue(target);
        let queue = self.started(queue, path)?;
        self.targets.insert(target.to_owned(), queue.clone());
        Some(queue)
    }

    fn started<Q>(&mut self, queue: std::io::Result<Q>, path: &[PathStep<'_>]) -> Option<Q> {
        queue.map_err(|error| self.error(path, format!("no worker can be started: {error}"))).ok()
    }

    fn error(&mut self, path: &[PathStep<'_>], message: impl Into<String>) {
        let place = self.source.place(path);
        self.diagnostics.push(Diagnostic::error(place, message));
    }

    fn finish(mut self, config: &Config) -> Result<Compiled, Diagnostics> {
        let modes = config.modes.iter().map(|mode| mode.name.clone()).collect();
        let profiles = profile::compile(config, &mut self.diagnostics);
        let clock_out = self.clock_out();
        let (below, wrong) = layers::below(config);
        for (number, message) in wrong {
            self.error(&["modes".into(), number.into(), "over".into()], message);
        }
        match engine::compile(RuleSource { modes, rules: std::mem::take(&mut self.rules) }) {
            Ok(rules) => {
                let warnings = self.diagnostics.into_result()?;
                self.outputs.below = below.as_slice().into();
                let mut rules = rules.layered(below);
                if let Some(clock) = self.clock {
                    rules = rules.with_clock(clock::source(clock, &self.view.variables, clock_out));
                }
                let targets = self.targets.into_keys().collect();
                Ok(Compiled { rules, targets, outputs: self.outputs, profiles, warnings })
            }
            Err(errors) => {
                let paths = rule_paths(config);
                for error in errors {
                    let path = error.rule.and_then(|rule| paths.get(*self.mappings.get(rule)?));
                    let place = path.map(|path| self.source.place(path)).unwrap_or_default();
                    self.diagnostics.push(Diagnostic::error(place, error.kind.to_string()));
                }
                Err(self.diagnostics)
            }
        }
    }
}

/// Whether what a trigger waits for comes from the host itself.
fn comes_from_no_port(trigger: &engine::Trigger) -> bool {
    use engine::Trigger::{Beat, Transport, Variable};
    matches!(trigger, Variable { .. } | Beat { .. } | Transport { .. })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use conductor_event::{DeviceId, Event, MidiMessage};

    use super::*;
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;

    fn compiled(toml: &str) -> Result<Compiled, Diagnostics> {
        let (_, said) = SinkQueue::new();
        let (observer, _, _) = observer::start(said, None).unwrap();
        let workers = Workers::idle(observer);
        let compiled = compile(&config::parse(toml, "c.toml").unwrap(), &Registry::default(), &workers);
        assert!(workers.stop(std::time::Instant::now() + Duration::from_secs(20)));
        compiled
    }

    fn fired(compiled: &Compiled, event: MidiMessage) -> Vec<String> {
        let (device, event) = (DeviceId::new("pads"), Event::from(event));
        compiled
            .rules
            .matches(ModeIx(0), &device, &event)
            .map(|found| found.rule.action.describe().into_owned())
            .collect()
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

    // ACT-5
    #[test]
    fn a_text_is_for_each_key_of_its_trigger() {
        let texts = |trigger: &str| {
            let toml = format!(
                "[[modes]]\nname = 'Play'\n[[modes.mappings]]\ntrigger = {{ {trigger}, device = 'deck' }}\n\
                 action = {{ type = 'Suppress' }}\nfeedback = {{ text = 'Go' }}"
            );
            let made = compiled(&toml).map_err(|error| error.to_string())?;
            let texts = made.outputs.lights["deck"].texts.iter();
            Ok::<_, String>(texts.map(|(mode, note, text)| format!("{mode:?} {note} {text}")).collect::<Vec<_>>())
        };
        assert_eq!(
            texts("type = 'Note', note = '36..37'").unwrap(),
            ["Some(ModeIx(0)) 36 Go", "Some(ModeIx(0)) 37 Go"]
        );
        assert_eq!(texts("type = 'DoubleTap', note = 127").unwrap(), ["Some(ModeIx(0)) 127 Go"]);
        for other in ["type = 'CC', cc = 1", "type = 'LongPress', button = 'south'"] {
            let refused = texts(other).unwrap_err();
            assert!(refused.contains("names no note"), "{refused}");
        }
    }

    // ACT-5, ENG-14
    #[test]
    fn lights_and_a_clock_that_goes_out_have_their_outputs() {
        const VARIABLES: &str = "variables = [{ name = 'mute', type = 'boolean' }]\n";
        let toml = format!(
            "{VARIABLES}[clock]\noutputs = ['synth']\n[[bindings]]\nalias = 'synth'\nmax_bytes_per_sec = 3125\n\
             [[lights]]\ntarget = 'pads'\nshows = {{ message_type = 'CC', cc = 1, value = '{{beat}}' }}\nblink = 'mute'"
        );
        let made = compiled(&toml).unwrap();
        assert_eq!(made.targets, ["pads", "synth"].map(str::to_owned).into());
        let light = &made.outputs.lights["pads"].state[0];
        let names: Vec<_> = light.variables.iter().map(|variable| &*variable.declaration().name).collect();
        assert_eq!(names, ["beat", "mute"]);
        assert!(made.outputs.clock.contains("synth"));
        assert_eq!(made.outputs.pace["synth"].bytes_per_second, Some(3125));
        assert!(made.rules.rules().is_empty(), "a light is no rule");

        let refused = |rest: &str| compiled(&format!("{VARIABLES}{rest}")).unwrap_err().to_string();
        let light = |shows: &str, more: &str| {
            refused(&format!(
                "[[lights]]\ntarget = 'pads'\nshows = {{ message_type = 'CC', cc = 1, value = {shows} }}\n{more}"
            ))
        };
        assert!(light("1", "").contains("it names none"));
        let of_event = light("'{value}'", "blink = 'mute'");
        assert!(of_event.contains("c.toml:4:48: a light has no event"), "{of_event}");
        assert!(light("'{mute}'", "blink = 'note > 3'").contains("a light has no event"));
        let own = refused("[clock]\ndevice = 'drums'\noutputs = ['drums']");
        assert!(own.contains("c.toml:4:12: the clock comes from this device"), "{own}");
    }

    #[test]
    fn what_a_gesture_holds_is_doubtful() {
        let warned = |trigger: &str, action: &str| {
            let toml = format!("[[global_mappings]]\ntrigger = {{ {trigger} }}\naction = {{ {action} }}");
            compiled(&toml).unwrap().warnings.to_string()
        };
        for action in
            ["type = 'Keystroke', keys = ['a'], stroke = 'hold'", "type = 'MouseMove', x = 9, motion = 'speed'"]
        {
            let of_gesture = warned("type = 'LongPress', note = 1", action);
            assert!(
                of_gesture.contains("c.toml:3:10: what this holds down, or keeps moving, stays so"),
                "{of_gesture}"
            );
            assert_eq!(warned("type = 'Note', note = 1", action), "");
        }
    }

    // ACT-4
    #[test]
    fn only_what_may_come_late_is_tried_again() {
        let mapping = |action: &str| {
            let toml = format!(
                "[[global_mappings]]\ntrigger = {{ type = 'Note', note = 1 }}\nretry = {{ times = 2 }}\naction = {action}"
            );
            compiled(&toml).map(drop).map_err(|wrong| wrong.to_string())
        };
        mapping("{ type = 'Shell', command = 'true' }").unwrap();
        mapping("{ type = 'SendMidi', target = 'synth', message_type = 'CC', cc = 1, value = 1 }").unwrap();
        for pressed in [
            "{ type = 'SendMidi', target = 'synth', message_type = 'NoteOn', note = 1, velocity = 1 }",
            "{ type = 'MidiForward', target = 'synth' }",
            "{ type = 'Keystroke', keys = ['a'] }",
        ] {
            let wrong = mapping(pressed).unwrap_err();
            assert!(wrong.contains("c.toml:3:9: only actions of features"), "{wrong}");
        }
        let several = mapping("{ type = 'Sequence', actions = [{ type = 'Shell', command = 'true' }] }").unwrap_err();
        assert!(several.contains("give each a mapping of its own"), "{several}");
    }

    /// ACT-1: what an action decides by is asked when its rule fires, and everything it may do is prepared.
    #[test]
    fn an_action_decides_by_the_conditions_in_it() {
        let toml = r#"
            [[modes]]
            name = "Play"
            [[modes]]
            name = "Live"
            [[global_mappings]]
            trigger = { type = "Note", note = 36 }
            [global_mappings.action]
            type = "Conditional"
            condition = { type = "ModeIs", mode = "Live" }
            then = { type = "MidiForward", target = "synth" }
            [global_mappings.action.else]
            type = "Sequence"
            actions = [
                { type = "Delay", ms = 1 },
                { type = "Conditional", condition = { type = "NoteHeld", note = 1 }, then = { type = "ModeChange", mode = "Live" } },
            ]
        "#;
        let compiled = compiled(toml).unwrap();
        assert_eq!(compiled.targets, BTreeSet::from(["synth".to_owned()]));
        assert!(compiled.rules.remembers() && compiled.rules.has_conditions());
        let choices = compiled.rules.rules()[0].choices.as_ref().unwrap();
        let asked: Vec<_> = choices.conditions.iter().map(ToString::to_string).collect();
        assert_eq!(asked, [r#"the mode is "Live""#, "note 1 is down"]);
        let described = "Conditional (MidiForward to synth, else Sequence (ModeChange to Live))";
        let (on, off) = (
            MidiMessage::NoteOn { channel: 0, note: 36, velocity: 90 },
            MidiMessage::NoteOff { channel: 0, note: 36, velocity: 0 },
        );
        assert_eq!(fired(&compiled, on), [described]);
        assert_eq!(fired(&compiled, off), [described], "one of its branches wants the end");
    }

    /// CFG-2: more conditions than can be handed over are refused where they stand.
    #[test]
    fn an_action_that_asks_too_much_is_refused_at_its_place() {
        let one = "{ type = 'Conditional', condition = { type = 'Always' }, then = { type = 'Suppress' } }";
        let action = |count| {
            let ones = vec![one; count].join(",\n");
            format!(
                "[[global_mappings]]\ntrigger = {{ type = 'MidiAny' }}\naction = {{ type = 'Sequence', actions = [\n{ones}\n] }}\n"
            )
        };
        assert!(compiled(&action(Choices::MAX_CHOICES)).is_ok());
        let text = compiled(&action(Choices::MAX_CHOICES + 1)).unwrap_err().render(false);
        assert!(text.contains("c.toml:36:1: the action asks more than 32 conditions in all"), "{text}");
        // A mistake in a condition is reported at the condition.
        let deep = (0..20)
            .fold("{ type = 'Always' }".to_owned(), |inner, _| format!("{{ type = 'Not', condition = {inner} }}"));
        let text = format!(
            "[[global_mappings]]\ntrigger = {{ type = 'MidiAny' }}\n[global_mappings.action]\ntype = 'Conditional'\nthen = {{ type = 'Suppress' }}\nif = {deep}\n"
        );
        let text = compiled(&text).unwrap_err().render(false);
        assert!(text.contains("c.toml:6:6: conditions go no deeper than 16"), "{text}");
    }

    /// CFG-2: an unknown action is reported with its place, the known ones, and what was meant.
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

    /// ENG-14: what goes by the clock needs one, and changes only what is not the clock's to say.
    #[test]
    fn what_goes_by_the_clock_is_checked() {
        const NOTE: &str = "trigger = { type = 'Note', note = 36 }\n";
        let wrong = |clock: &str, mapping: &str| {
            let text = format!("{clock}\n[[modes]]\nname = 'Play'\n[[global_mappings]]\n{mapping}\n");
            compiled(&text).err().map(|wrong| wrong.render(false)).unwrap_or_default()
        };
        let with_note = |clock: &str, rest: &str| wrong(clock, &format!("{NOTE}{rest}"));
        let (none, device) = ("", "[clock]\ndevice = 'drums'");
        let suppress = "action = { type = 'Suppress' }";
        for (found, expected) in [
            (wrong(none, &format!("trigger = {{ type = 'Beat' }}\n{suppress}")), "there is none: add `[clock]`"),
            (wrong(none, &format!("trigger = {{ type = 'Transport', on = 'stop' }}\n{suppress}")), "add `[clock]`"),
            (with_note(none, &format!("{suppress}\nquantize = 'bar'")), "c.toml:7:12: this goes by the clock"),
            (with_note(none, "action = { type = 'TapTempo' }"), "add `[clock]`"),
            (with_note(none, "action = { type = 'Delay', beats = 1 }"), "add `[clock]`"),
            (
                wrong("[clock]", &format!("trigger = {{ type = 'Bar', every = 4, offset = 4 }}\n{suppress}")),
                "`offset` is one of 0 to 3, since `every` is 4",
            ),
            (with_note(device, "action = { type = 'TapTempo' }"), "the clock of \"drums\" says what \"tempo\" is"),
            (
                with_note("[clock]", "action = { type = 'SetVariable', variable = 'beat', value = 1 }"),
                "mappings change \"tempo\" and \"playing\" only",
            ),
            (
                with_note(
                    "[clock]",
                    "action = { type = 'ModeChange', mode = 'Play', lasts = 'one_press' }\nquantize = '1/4'",
                ),
                "goes without `quantize`",
            ),
            (with_note("[clock]", "action = { type = 'Delay', beats = 1, ms = 1 }"), "either `ms` or `beats`"),
            (with_note("[clock]", "action = { type = 'Delay' }"), "either `ms` or `beats`"),
        ] {
            assert!(found.contains(expected), "{expected}: {found}");
        }
        assert_eq!(with_note("[clock]", "action = { type = 'TapTempo' }\nquantize = '1/16t'"), "");
        let toggle = "action = { type = 'ToggleVariable', variable = 'playing' }";
        assert_eq!(with_note("[clock]", toggle), "");
        let clock = compiled("[clock]\ndevice = 'drums'\nbeats_per_bar = 3").unwrap().rules.clock().cloned().unwrap();
        assert_eq!((clock.device.as_ref().unwrap().as_str(), clock.beats_per_bar, clock.variables), ("drums", 3, None));
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
