//! Compiles the bindings of a configuration into those of the port thread.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::{Regex, RegexBuilder};

use conductor_config::{
    self as config, Config, Connection, Diagnostic, Diagnostics, ListenMode, Loaded, OscTransport, PathStep,
    VirtualPort,
};
use conductor_ports::binding::{Channels, Listen, OwnPorts, Place, Transport};
use conductor_ports::gamepad;
use conductor_ports::midi::virtual_key;
use conductor_ports::paced_port::Pace;
use conductor_ports::supervisor::PortPlan;
use conductor_ports::{BindingSpec, Direction, Matcher, Protocol, SysExIdentity};

/// Bytes that one compiled pattern for port names may have, and the cache that it matches with (256 KiB).
const MAX_REGEX_BYTES: usize = 256 * 1024;
/// How deep groups of a pattern may be nested.
const MAX_REGEX_DEPTH: u32 = 16;
/// Patterns for port names in one configuration.
const MAX_REGEXES: usize = 64;

/// Which ports a configuration has opened; the outputs that its rules send to are not known here.
pub fn plan(config: &Config) -> PortPlan {
    let settings = &config.advanced_settings;
    let (on, off): (Vec<_>, Vec<_>) = config.bindings.iter().partition(|binding| binding.enabled);
    PortPlan {
        // Those with a mistake are left out.
        bindings: on.into_iter().filter_map(|binding| spec(binding).ok()).collect(),
        disabled: off.iter().map(|binding| (binding.alias.clone(), protocol(&binding.connection))).collect(),
        // Without any binding, listening only to bindings would be silence.
        open_unbound: config.bindings.is_empty() || settings.listen_mode == ListenMode::All,
        hear_ambiguous: false,
        max_midi_ports: usize::from(settings.max_midi_ports),
        ignore: settings.ignore_ports.iter().filter_map(|glob| ignored(glob)).collect(),
        probe_identity: settings.probe_identity,
        targets: Vec::new(),
    }
}

/// Where the endpoints are that bindings name as outputs, by alias.
pub fn places(config: &Config) -> BTreeMap<String, String> {
    let enabled = config.bindings.iter().filter(|binding| binding.enabled);
    let places = enabled.filter_map(|binding| match &spec(binding).ok()?.made {
        OwnPorts::Endpoints { send: Some(place), .. } => Some((binding.alias.clone(), place.to_string())),
        _ => None,
    });
    places.collect()
}

/// How fast outputs take messages, by alias.
pub fn paces(config: &Config) -> BTreeMap<String, Pace> {
    let paces = config.bindings.iter().filter_map(|binding| match &binding.connection {
        Connection::Midi { max_bytes_per_sec, after_sysex_ms, .. } => {
            let after_sysex = Duration::from_millis(after_sysex_ms.unwrap_or_default().into());
            Some((binding.alias.clone(), Pace { bytes_per_second: *max_bytes_per_sec, after_sysex }))
        }
        _ => None,
    });
    paces.filter(|(_, pace)| *pace != Pace::default()).collect()
}

/// Finds what the schema can't check: invalid regular expressions, endpoints without an end, and gamepads in a build
/// that has none.
///
/// # Errors
/// Every mistake, with its place.
pub fn check(loaded: &Loaded) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::new(loaded.source.clone());
    let mut patterns = 0;
    for (index, binding) in loaded.config.bindings.iter().enumerate() {
        patterns += regexes(binding);
        if patterns > MAX_REGEXES {
            let place = loaded.source.place(&["bindings".into(), index.into()]);
            let message = format!("all bindings together have more than {MAX_REGEXES} matchers of type name_regex");
            let help = "name_contains and exact_name can be used any number of times".to_owned();
            diagnostics.push(Diagnostic::error(place, message).with_help(help));
            break;
        }
        let mistakes = unavailable(binding, gamepad::UNAVAILABLE).into_iter().chain(spec(binding).err());
        for Mistake { path, message } in mistakes {
            let path = [&["bindings".into(), index.into()], path.as_slice()].concat();
            diagnostics.push(Diagnostic::error(loaded.source.place(&path), message));
        }
    }
    diagnostics.into_result().map(drop)
}

/// The expression that matches names of ignored ports. `None` if the text is too long,
/// which the schema rejects.
fn ignored(glob: &str) -> Option<Regex> {
    let pattern = regex::escape(glob).replace(r"\*", ".*").replace(r"\?", ".");
    RegexBuilder::new(&format!("^(?:{pattern})$")).case_insensitive(true).dot_matches_new_line(true).build().ok()
}

/// What is wrong with a binding, and where in it.
#[derive(Debug)]
pub struct Mistake {
    path: Vec<PathStep<'static>>,
    message: String,
}

/// The mistake of a binding that asks for a gamepad, if there are none for the reason `no_pads`.
fn unavailable(binding: &config::Binding, no_pads: Option<&str>) -> Option<Mistake> {
    let why = no_pads.filter(|_| binding.enabled && matches!(binding.connection, Connection::Hid { .. }))?;
    let message = format!("no gamepad can be bound: {why}; or leave the binding out by `enabled = false`");
    Some(Mistake { path: vec!["protocol".into()], message })
}

fn protocol(connection: &Connection) -> Protocol {
    match connection {
        Connection::Midi { .. } => Protocol::Midi,
        Connection::Hid { .. } => Protocol::Hid,
        Connection::Keyboard { .. } => Protocol::Keyboard,
        Connection::Mouse { .. } => Protocol::Mouse,
        Connection::Osc { .. } => Protocol::Osc,
        Connection::ArtNet { .. } => Protocol::ArtNet,
    }
}

/// What the ports side needs of a binding.
///
/// # Errors
/// What the schema can't say.
pub fn spec(binding: &config::Binding) -> Result<BindingSpec, Mistake> {
    let mut spec = BindingSpec::new(&binding.alias, protocol(&binding.connection));
    spec.max_events_per_sec = binding.max_events_per_sec;
    match &binding.connection {
        Connection::Midi { matchers: both, input, output, channels, virtual_port, .. } => {
            spec.input = side(both, input.as_ref(), "input")?;
            spec.output = side(both, output.as_ref(), "output")?;
            if let Some(channels) = channels {
                spec.channels = Channels::only(channels.iter().copied());
            }
            let made = |direction| Matcher::Made(virtual_key(direction, &binding.alias));
            if let Some(VirtualPort::Input | VirtualPort::Both) = virtual_port {
                spec.input.push(made(Direction::Input));
            }
            if let Some(VirtualPort::Output | VirtualPort::Both) = virtual_port {
                spec.output.push(made(Direction::Output));
            }
            if virtual_port.is_some() {
                spec.made = OwnPorts::Virtual;
            }
            let asked = |direction, own: &Option<config::Side>, also| {
                (own.is_some() || *virtual_port == Some(VirtualPort::Both) || *virtual_port == Some(also))
                    .then_some(direction)
            };
            spec.needs = asked(Direction::Input, input, VirtualPort::Input)
                .into_iter()
                .chain(asked(Direction::Output, output, VirtualPort::Output))
                .collect();
        }
        Connection::Hid { matchers: both, input, dead_zone, .. } => {
            spec.input = side(both, input.as_ref(), "input")?;
            spec.dead_zone = *dead_zone;
        }
        Connection::Keyboard { matchers, grab, .. } | Connection::Mouse { matchers, grab, .. } => {
            spec.input = side(matchers, None, "input")?;
            spec.grab = *grab;
        }
        Connection::Osc { input, output } => {
            let listen = input.as_ref().map(|input| Listen {
                at: Place { host: input.host.clone(), port: input.port },
                transport: match input.transport {
                    OscTransport::Udp => Transport::Udp,
                    OscTransport::Tcp => Transport::Tcp,
                },
                allow: input.allow.iter().map(config::IpNetwork::senders).collect(),
            });
            endpoints(&mut spec, listen, output.as_ref())?;
        }
        Connection::ArtNet { input, output } => {
            let listen = input.as_ref().map(|input| Listen {
                at: Place { host: input.host.clone(), port: input.port },
                transport: Transport::Udp,
                allow: input.allow.iter().map(config::IpNetwork::senders).collect(),
            });
            endpoints(&mut spec, listen, output.as_ref())?;
        }
    }
    Ok(spec)
}

fn endpoints(
    spec: &mut BindingSpec,
    listen: Option<Listen>,
    output: Option<&config::Destination>,
) -> Result<(), Mistake> {
    let send = output.map(|output| Place { host: output.host.clone(), port: output.port });
    if listen.is_none() && send.is_none() {
        let message = format!("the {} binding {:?} has neither `input` nor `output`", spec.protocol, spec.alias);
        return Err(Mistake { path: Vec::new(), message });
    }
    spec.input = listen.iter().map(|listen| Matcher::Made(listen.name())).collect();
    spec.output = send.iter().map(|send| Matcher::Made(send.to_string())).collect();
    spec.needs = listen.iter().map(|_| Direction::Input).chain(send.iter().map(|_| Direction::Output)).collect();
    spec.made = OwnPorts::Endpoints { listen, send };
    Ok(())
}

/// The matchers for one direction: those for both, and its own.
fn side(both: &[config::Matcher], own: Option<&config::Side>, name: &'static str) -> Result<Vec<Matcher>, Mistake> {
    let own_matchers = own.map(|side| side.matchers.as_slice()).unwrap_or_default();
    let placed = |path: Vec<PathStep<'static>>, matchers: &[config::Matcher]| -> Result<Vec<Matcher>, Mistake> {
        let matchers = matchers.iter().enumerate().map(|(index, configured)| {
            matcher(configured).map_err(|message| {
                let path = [path.as_slice(), &["matchers".into(), index.into(), "value".into()]].concat();
                Mistake { path, message }
            })
        });
        matchers.collect()
    };
    let mut matchers = placed(Vec::new(), both)?;
    matchers.extend(placed(vec![name.into()], own_matchers)?);
    Ok(matchers)
}

fn matcher(configured: &config::Matcher) -> Result<Matcher, String> {
    use config::Matcher as Written;
    Ok(match configured.clone() {
        Written::CoreMidiUniqueId { value } => Matcher::CoreMidiUniqueId(value),
        Written::SysExIdentity { manufacturer, family, model } => {
            Matcher::SysExIdentity(SysExIdentity { manufacturer, family, model })
        }
        Written::UsbIdentifier { vendor_id, product_id, serial } => Matcher::Usb { vendor_id, product_id, serial },
        Written::UsbPath { value } => Matcher::UsbPath(value),
        Written::UsbTopology { bus, address } => Matcher::UsbTopology { bus, address },
        Written::ExactName { value } => Matcher::ExactName(value),
        Written::PlatformId { value } => Matcher::PlatformId(value),
        Written::NameContains { value } => Matcher::NameContains(value),
        Written::NameRegex { value } => Matcher::NameRegex(name_regex(&value)?),
    })
}

/// Compiles a pattern for port names, within bounds: `((a{1,60}){1,30}){1,20}` has few characters and would have
/// millions of states.
fn name_regex(pattern: &str) -> Result<Regex, String> {
    let bounded = RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .nest_limit(MAX_REGEX_DEPTH)
        .build();
    bounded.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!(
            "the pattern needs more than {} KiB when it is compiled; use smaller or fewer repetitions such as {{1,60}}",
            MAX_REGEX_BYTES / 1024
        ),
        // It is shown with the pattern on lines of its own, and a caret below; the last line says what is wrong.
        error => {
            let said = error.to_string();
            let why = said.lines().last().map_or("", |line| line.trim_start_matches("error: "));
            format!("the pattern is no regular expression: {why}")
        }
    })
}

/// The patterns that a binding has.
fn regexes(binding: &config::Binding) -> usize {
    let count = |matchers: &[config::Matcher]| {
        matchers.iter().filter(|matcher| matches!(matcher, config::Matcher::NameRegex { .. })).count()
    };
    let side = |side: &Option<config::Side>| side.as_ref().map_or(0, |side| count(&side.matchers));
    match &binding.connection {
        Connection::Midi { matchers, input, output, .. } => count(matchers) + side(input) + side(output),
        Connection::Hid { matchers, input, .. } => count(matchers) + side(input),
        Connection::Keyboard { matchers, .. } | Connection::Mouse { matchers, .. } => count(matchers),
        Connection::Osc { .. } | Connection::ArtNet { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> String {
        let loaded = config::parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        check(&loaded).map_err(|wrong| wrong.to_string()).unwrap_err()
    }

    #[test]
    fn what_the_schema_cannot_say_is_found_at_its_place() {
        let text = "[[bindings]]\nalias = 'a'\ninput = { matchers = [{ type = 'name_regex', value = '(' }] }\n\
                    [[bindings]]\nalias = 'b'\nprotocol = 'osc'\n";
        let said = mistakes(text);
        assert!(said.contains("c.toml:3:54: the pattern is no regular expression: unclosed group"), "{said}");
        assert!(said.contains("the osc binding \"b\" has neither `input` nor `output`"), "{said}");
    }

    #[test]
    fn a_gamepad_is_refused_where_there_can_be_none() {
        let text = "[[bindings]]\nalias = 'pad'\nprotocol = 'hid'\n[[bindings]]\nalias = 'keys'\n\
                    [[bindings]]\nalias = 'off'\nprotocol = 'hid'\nenabled = false\n";
        let bindings = config::parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap().config.bindings;
        let said = |no_pads| -> Vec<String> {
            bindings.iter().filter_map(|binding| Some(unavailable(binding, no_pads)?.message)).collect()
        };
        let refused = said(Some("they are away"));
        assert!(refused.len() == 1 && refused[0].contains("they are away"), "{refused:?}");
        assert!(said(None).is_empty());
    }

    #[test]
    fn patterns_are_bounded_each_and_in_all() {
        let binding = |n: usize, pattern: &str| {
            format!("[[bindings]]\nalias = 'b{n}'\nmatchers = [{{ type = 'name_regex', value = '{pattern}' }}]\n")
        };
        let said = mistakes(&binding(0, "(((a{1,60}){1,30}){1,20})"));
        assert!(said.contains("c.toml:3:") && said.contains("more than 256 KiB when it is compiled"), "{said}");
        let said = mistakes(&binding(0, &format!("{}a{}", "(".repeat(60), ")".repeat(60))));
        assert!(said.contains("nest"), "{said}");
        let many: String = (0..=MAX_REGEXES).map(|n| binding(n, "a")).collect();
        assert!(mistakes(&many).contains("more than 64 matchers of type name_regex"));
        for usual in [r"^Maschine .* MK\d$", r"^\w+ \w+$", "(?i)nano(KONTROL|PAD)[0-9]{1,3} .*"] {
            assert!(name_regex(usual).is_ok(), "{usual}");
        }
    }

    #[test]
    fn endpoints_have_places() {
        let text = "[[bindings]]\nalias = 'desk'\nprotocol = 'osc'\noutput = { host = '::1', port = 8000 }\n\
                    [[bindings]]\nalias = 'off'\nprotocol = 'artnet'\nenabled = false\noutput = { port = 1 }\n";
        let config = config::parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap().config;
        assert_eq!(places(&config), BTreeMap::from([("desk".to_owned(), "[::1]:8000".to_owned())]));
    }

    // PRT-3, D13: without any binding, silence would be the default; with one, strangers stay closed.
    #[test]
    fn the_default_listen_mode_is_adaptive() {
        let open_unbound = |text: &str| {
            plan(&config::parse(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap().config).open_unbound
        };
        assert!(open_unbound("") && open_unbound("[advanced_settings]\nlisten_mode = 'configured'"));
        assert!(!open_unbound("[device]\nname = 'Pads'"));
        assert!(open_unbound("[advanced_settings]\nlisten_mode = 'all'\n[device]\nname = 'Pads'"));
    }

    // PRT-2: names of ignored ports.
    #[test]
    fn a_glob_is_the_whole_name_whatever_the_case() {
        let left_alone = |glob: &str, name: &str| ignored(glob).unwrap().is_match(name);
        assert!(left_alone("IAC Driver*", "iac driver Bus 1") && left_alone("?.1", "a.1"));
        assert!(!left_alone("IAC Driver", "IAC Driver Bus 1") && !left_alone("?.1", "ab1"));
    }
}
