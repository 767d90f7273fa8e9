//! Warnings about parts of a configuration that can have no effect, each at its place.
//!
//! Nothing runs for them: they come of what is written, and of which files are there.

use std::collections::HashMap;
use std::sync::Arc;

use conductor_config::{self as config, Action, Config, Diagnostic, Loaded, PathStep, TriggerEvent};
use conductor_ports::binding::OwnPorts;
use conductor_ports::{BindingSpec, Protocol};
use conductor_registry::{FeatureSource, Registry};

use crate::bindings;
use crate::rules::shadowed;

/// Every warning of this kind. `sources` are the features that the configuration asks for, where their files may be looked
/// at.
pub fn warnings(loaded: &Loaded, sources: Option<&[FeatureSource]>) -> Vec<Diagnostic> {
    let mut found = Found { loaded, bindings: HashMap::new(), warnings: Vec::new() };
    found.bindings();
    sources.into_iter().for_each(|sources| found.features(sources));
    let config = &loaded.config;
    for (index, mode) in config.modes.iter().enumerate() {
        found.mappings(&["modes".into(), index.into(), "mappings".into()], &mode.mappings);
    }
    found.mappings(&["global_mappings".into()], &config.global_mappings);
    for (path, consumer) in shadowed(config) {
        found.warn(
            &[path.as_slice(), &["trigger".into()]].concat(),
            format!("no event gets here: {consumer} is asked first, and consumes them"),
            "give this mapping a higher `priority`, or take `consume` from the other",
        );
    }
    found.warnings
}

/// Warnings about models whose provider no feature in `registry` is, or whose secret that feature has no use for.
pub fn models(loaded: &Loaded, registry: &Registry) -> Vec<Diagnostic> {
    let providers = registry.provider_names();
    let unknown = loaded.config.models.iter().filter(|(_, model)| !providers.contains(&model.provider));
    let warning = |(name, model): (&String, &config::Model)| {
        let place = loaded.source.place(&["models".into(), name.as_str().into(), "provider".into()]);
        let message = format!("the model {name} can't be asked: no feature has the provider {:?}", model.provider);
        Diagnostic::warning(place, message)
            .with_nearest(config::nearest(&model.provider, providers.iter().map(String::as_str)))
            .with_help(format!("there are {}; a feature may bring another", providers.join(", ")))
    };
    let secret = |(name, model): (&String, &config::Model)| {
        let (feature, asked) = registry.provider_secrets(&model.provider)?;
        let id = model.secret.as_ref()?;
        let place = loaded.source.place(&["models".into(), name.as_str().into(), "secret".into()]);
        let message = format!("the model {name} can't be asked: {feature} does not ask for the secret {id:?}");
        let warning = Diagnostic::warning(place, message)
            .with_nearest(config::nearest(id, asked.iter().copied()))
            .with_help(match asked.as_slice() {
                [] => "it asks for no secret".to_owned(),
                asked => format!("it asks for {}", asked.join(", ")),
            });
        (!asked.contains(&id.as_str())).then_some(warning)
    };
    unknown.map(warning).chain(loaded.config.models.iter().filter_map(secret)).collect()
}

struct Found<'c> {
    loaded: &'c Loaded,
    /// The bindings that are switched on and have no mistake, by alias.
    bindings: HashMap<&'c str, BindingSpec>,
    warnings: Vec<Diagnostic>,
}

impl<'c> Found<'c> {
    fn warn(&mut self, path: &[PathStep<'_>], message: impl Into<String>, help: impl Into<String>) {
        let place = self.loaded.source.place(path);
        self.warnings.push(Diagnostic::warning(place, message).with_help(help));
    }

    fn bindings(&mut self) {
        let Config { bindings, .. } = &self.loaded.config;
        let mut listening: HashMap<String, &'c str> = HashMap::new();
        for (index, binding) in bindings.iter().enumerate().filter(|(_, binding)| binding.enabled) {
            let Ok(spec) = bindings::spec(binding) else { continue };
            let alias = binding.alias.as_str();
            if spec.input.is_empty() && spec.output.is_empty() {
                self.warn(
                    &["bindings".into(), index.into(), "alias".into()],
                    format!("no port is ever {alias:?}: nothing tells which one it is"),
                    "give it `matchers`, or a `name`; `conductor ports` lists what there is",
                );
            }
            if let OwnPorts::Endpoints { listen: Some(listen), .. } = &spec.made {
                let at = (spec.protocol, listen.name());
                let first = *listening.entry(format!("{} {}", at.0, at.1)).or_insert(alias);
                if first != alias {
                    self.warn(
                        &["bindings".into(), index.into(), "input".into()],
                        format!("{alias:?} hears nothing: {first:?} has {} already", at.1),
                        "give it another `port`, or make one binding of the two",
                    );
                }
            }
            let is_same = |other: &&config::Binding| other.connection == binding.connection;
            let shares_ports = !spec.input.is_empty() && matches!(spec.made, OwnPorts::Nothing);
            if let Some(first) = bindings[..index].iter().filter(|other| other.enabled).find(is_same)
                && shares_ports
            {
                self.warn(
                    &["bindings".into(), index.into(), "alias".into()],
                    format!("{alias:?} hears nothing: a port that fits it fits {:?}, which comes first", first.alias),
                    "give it other `matchers`, or make one binding of the two",
                );
            }
            self.bindings.insert(alias, spec);
        }
    }

    fn features(&mut self, sources: &[FeatureSource]) {
        let there: Vec<&str> =
            sources.iter().filter(|source| source.path.is_file()).map(|source| source.name.as_str()).collect();
        for (name, feature) in self.loaded.config.features.iter().filter(|(_, feature)| feature.enabled) {
            let missing = sources.iter().find(|source| source.name == *name && !source.path.is_file());
            let Some(source) = missing else { continue };
            let path: [PathStep<'_>; 3] = ["features".into(), name.as_str().into(), "path".into()];
            let file = source.path.display();
            if feature.path.is_some() {
                self.warn(
                    &path,
                    format!("the feature {name} can't be used: there is no file {file}"),
                    "a path is relative to the configuration file",
                );
            } else {
                let message = format!("there is no feature {name:?}, so what is said of it has no effect");
                let warning = Diagnostic::warning(self.loaded.source.place(&path[..2]), message)
                    .with_nearest(config::nearest(name, there.iter().copied()))
                    .with_help("`conductor feature list` shows those that there are; another needs a `path`");
                self.warnings.push(warning);
            }
        }
    }

    fn mappings(&mut self, list: &[PathStep<'static>], mappings: &'c [Arc<config::Mapping>]) {
        for (index, mapping) in mappings.iter().enumerate() {
            let at = |steps: &[PathStep<'static>]| [list, &[index.into()], steps].concat();
            self.device(&mapping.trigger, &at);
            if let Some(target) = mapping.feedback.as_ref().and_then(|feedback| feedback.target.as_ref()) {
                self.midi_target(target, || at(&["feedback".into(), "target".into()]));
            }
            self.action(&mapping.action, &|steps| at(&[&["action".into()], steps].concat()));
        }
    }

    /// A device that never sends what the trigger waits for.
    fn device(&mut self, trigger: &config::Trigger, at: At<'_>) {
        let Some(device) = &trigger.device else { return };
        let Some(binding) = self.bindings.get(device.as_str()) else { return };
        let (waits_for, is) = (protocol(&trigger.event), binding.protocol);
        let path = || at(&["trigger".into(), "device".into()]);
        // A mouse has keys, too: its buttons.
        if waits_for != is && (waits_for, is) != (Protocol::Keyboard, Protocol::Mouse) {
            self.warn(
                &path(),
                format!("nothing comes of this: {device:?} is bound to {is}, and the trigger waits for {waits_for}"),
                "name another device, or a trigger of its protocol",
            );
        } else if binding.input.is_empty() {
            self.warn(
                &path(),
                format!("nothing comes of this: {device:?} has no input"),
                "give the binding an `input`",
            );
        }
    }

    fn action(&mut self, action: &'c Action, at: At<'_>) {
        match action {
            Action::SendMidi(send) => self.midi_target(&send.target, || at(&["target".into()])),
            Action::MidiForward(forward) => self.midi_target(&forward.target, || at(&["target".into()])),
            Action::Shell(shell) => {
                let has_blank = shell.command.trim().contains(char::is_whitespace);
                if has_blank && !shell.shell && !std::path::Path::new(&shell.command).exists() {
                    self.warn(
                        &at(&["command".into()]),
                        "the whole of this is taken for the name of a program, which does not exist",
                        "write what follows the program under `args`, or add `shell = true`",
                    );
                }
            }
            Action::Sequence(sequence) => {
                for (index, action) in sequence.actions.iter().enumerate() {
                    self.action(action, &|steps| at(&[&["actions".into(), index.into()], steps].concat()));
                }
            }
            Action::Repeat(repeat) => self.action(&repeat.action, &below("action", at)),
            Action::Conditional(conditional) => {
                self.action(&conditional.then, &below("then", at));
                if let Some(otherwise) = &conditional.otherwise {
                    self.action(otherwise, &below("else", at));
                }
            }
            _ => {}
        }
    }

    /// A target that takes no MIDI.
    fn midi_target(&mut self, target: &str, path: impl FnOnce() -> Vec<PathStep<'static>>) {
        let Some(binding) = self.bindings.get(target) else { return };
        let help = match binding.protocol {
            Protocol::Osc => "OSC goes out by the action `OscSend`",
            Protocol::ArtNet => "Art-Net goes out by the action `ArtNetSend`",
            Protocol::Hid | Protocol::Keyboard | Protocol::Mouse => "name a MIDI device",
            Protocol::Midi if binding.output.is_empty() => "give the binding an `output`, or `matchers` for both",
            Protocol::Midi => return,
        };
        let what = if binding.protocol == Protocol::Midi { "has no output" } else { "takes no MIDI" };
        self.warn(&path(), format!("nothing is sent: {target:?} {what}"), help);
    }
}

/// The path of something that further steps lead to. It is only put together for a warning: of ten thousand mappings
/// hardly any has one.
type At<'p> = &'p dyn Fn(&[PathStep<'static>]) -> Vec<PathStep<'static>>;

fn below<'p>(key: &'static str, at: At<'p>) -> impl Fn(&[PathStep<'static>]) -> Vec<PathStep<'static>> + 'p {
    move |steps| at(&[&[key.into()], steps].concat())
}

/// What a trigger's events come by.
fn protocol(event: &TriggerEvent) -> Protocol {
    match event {
        TriggerEvent::OscMessage { .. } | TriggerEvent::OscPattern { .. } | TriggerEvent::OscArgRange { .. } => {
            Protocol::Osc
        }
        TriggerEvent::GamepadButton { .. }
        | TriggerEvent::GamepadAnalogStick { .. }
        | TriggerEvent::GamepadTrigger { .. }
        | TriggerEvent::GamepadButtonChord { .. }
        | TriggerEvent::GamepadButtonSequence { .. } => Protocol::Hid,
        TriggerEvent::LongPress { button, .. } | TriggerEvent::DoubleTap { button, .. } if button.is_some() => {
            Protocol::Hid
        }
        TriggerEvent::Key { .. } | TriggerEvent::KeyChord { .. } | TriggerEvent::KeySequence { .. } => {
            Protocol::Keyboard
        }
        TriggerEvent::LongPress { key, .. } | TriggerEvent::DoubleTap { key, .. } if key.is_some() => {
            Protocol::Keyboard
        }
        TriggerEvent::ArtNetChannel { .. } => Protocol::ArtNet,
        _ => Protocol::Midi,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn said(text: &str) -> String {
        let loaded = config::parse(text, "/nowhere/c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        let enabled = loaded.config.features.iter().filter(|(_, feature)| feature.enabled);
        let source = |(name, feature): (&String, &config::Feature)| FeatureSource {
            name: name.clone(),
            path: Path::new("/nowhere").join(feature.path.as_deref().unwrap_or("bundled.wasm")),
            ..FeatureSource::default()
        };
        let sources: Vec<_> = enabled.map(source).collect();
        let mut diagnostics = config::Diagnostics::new(loaded.source.clone());
        warnings(&loaded, Some(&sources)).into_iter().for_each(|warning| diagnostics.push(warning));
        diagnostics.render(false)
    }

    fn mapping(trigger: &str, action: &str) -> String {
        format!("[[global_mappings]]\ntrigger = {{ {trigger} }}\naction = {{ {action} }}\n")
    }

    #[test]
    fn bindings_that_can_have_no_port_are_told() {
        assert!(said("[[bindings]]\nalias = 'pads'\n").contains("c.toml:2:9: no port is ever \"pads\""));
        assert_eq!(said("[[bindings]]\nalias = 'pads'\nname = 'MPD'\n"), "");
        assert_eq!(said("[[bindings]]\nalias = 'off'\nenabled = false\n"), "");
        let two = "[[bindings]]\nalias = 'one'\nname = 'MPD'\n[[bindings]]\nalias = 'two'\nname = 'MPD'\n";
        let told = said(two);
        assert!(told.contains("c.toml:5:9: \"two\" hears nothing: a port that fits it fits \"one\""), "{told}");
        assert_eq!(said(&two.replacen("name = 'MPD'", "name = 'MPK'", 1)), "");
        let parts = two.replacen("'MPD'", "'MPD'\nchannels = [0]", 1);
        assert_eq!(said(&parts), "", "parts of one port");
        let osc = |alias: &str, port: u16| {
            format!("[[bindings]]\nalias = '{alias}'\nprotocol = 'osc'\ninput = {{ port = {port} }}\n")
        };
        let twice = said(&(osc("one", 9000) + &osc("two", 9000)));
        assert!(twice.contains("c.toml:8:9: \"two\" hears nothing: \"one\" has 127.0.0.1:9000 already"), "{twice}");
        assert_eq!(said(&(osc("one", 9000) + &osc("two", 9001))), "");
    }

    #[test]
    fn what_can_never_come_or_go_is_told() {
        let tablet = "[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = { port = 9000 }\n";
        let wait = |trigger: &str| said(&(tablet.to_owned() + &mapping(trigger, "type = 'Suppress'")));
        let note = wait("type = 'Note', note = 36, device = 'tablet'");
        assert!(note.contains("\"tablet\" is bound to osc, and the trigger waits for midi"), "{note}");
        assert_eq!(wait("type = 'OscMessage', address = '/a', device = 'tablet'"), "");
        let send = |action: &str| said(&(tablet.to_owned() + &mapping("type = 'Note', note = 1", action)));
        let forward = send("type = 'MidiForward', target = 'tablet'");
        assert!(forward.contains("nothing is sent: \"tablet\" takes no MIDI"), "{forward}");
        let nested = "type = 'Sequence', actions = [{ type = 'Delay', ms = 1 }, \
                      { type = 'SendMidi', target = 'tablet', message_type = 'CC', cc = 1, value = 1 }]";
        assert!(send(nested).contains("nothing is sent"), "{}", send(nested));
    }

    #[test]
    fn a_command_line_as_a_program_is_told() {
        let shell = |more: &str| said(&mapping("type = 'Note', note = 1", &format!("type = 'Shell', {more}")));
        assert!(shell("command = 'notify-send hello'").contains("taken for the name of a program"));
        assert_eq!(shell("command = 'notify-send', args = ['hello']"), "");
        assert_eq!(shell("command = 'notify-send hello', shell = true"), "");
    }

    #[test]
    fn features_that_are_not_there_are_told() {
        let name = said("[features.osc-ouput.grants]\nudp = ['127.0.0.1:1']\n");
        assert!(name.contains("there is no feature \"osc-ouput\""), "{name}");
        let path = said("[features.lamp]\npath = 'lamp.wasm'\n");
        assert!(
            path.contains("c.toml:2:8: the feature lamp can't be used: there is no file /nowhere/lamp.wasm"),
            "{path}"
        );
        assert_eq!(said("[features.lamp]\nenabled = false\npath = 'lamp.wasm'\n"), "");
    }

    #[test]
    fn mappings_below_one_that_takes_everything_are_told() {
        let rule = |trigger: &str, more: &str| mapping(trigger, "type = 'Suppress'") + more;
        let consumed = rule("type = 'MidiAny'", "consume = true\n") + &rule("type = 'Note', note = 36", "");
        assert!(said(&consumed).contains("c.toml:6:11: no event gets here: global_mappings/0"), "{}", said(&consumed));
        for fine in [
            rule("type = 'MidiAny'", "") + &rule("type = 'Note', note = 36", ""),
            rule("type = 'MidiAny'", "consume = true\ncondition = { type = 'Never' }\n")
                + &rule("type = 'Note', note = 36", ""),
            rule("type = 'MidiAny', channel = 1", "consume = true\n") + &rule("type = 'Note', note = 36", ""),
            rule("type = 'MidiAny'", "consume = true\n") + &rule("type = 'Note', note = 36", "priority = 1\n"),
            rule("type = 'MidiAny'", "consume = true\n") + &rule("type = 'OscMessage', address = '/a'", ""),
            rule("type = 'Note', note = '0..35'", "consume = true\n") + &rule("type = 'Note', note = '30..40'", ""),
            rule("type = 'Note', note = 36", "consume = true\n") + &rule("type = 'Note', note = 36, on = 'both'", ""),
        ] {
            assert_eq!(said(&fine), "", "{fine}");
        }
    }
}
