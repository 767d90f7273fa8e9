//! Tools for MIDI learn: one that begins to listen, one that reports which controls were moved since. They bind and
//! map nothing.

use std::cell::RefCell;

use conductor_feature::host_state::{Direction, PortState};
use conductor_feature::json::{answer, register, unknown};
use conductor_feature::mapping::Trigger;
use conductor_feature::{
    Context, Controls, Error, Invocation, Lifecycle, Reader, StatefulTools, host_state, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod learned;

use learned::{Control, Received};

struct MidiLearn;

impl Lifecycle for MidiLearn {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Start, Started>(&tools, "conductor_start_midi_learn")?;
        register::<Stop, Learned>(&tools, "conductor_stop_midi_learn")?;
        register::<Start, Started>(&tools, "conductor_start_learn")?;
        register::<Stop, Learned>(&tools, "conductor_stop_learn")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// Only this one.
    device: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stop {
    /// Go on listening.
    #[serde(default)]
    keep: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Started {
    listening: bool,
    next: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Learned {
    /// The last one moved first.
    controls: Vec<Control>,
    /// Ports to bind.
    unbound: Vec<Unbound>,
    next: String,
}

/// A port that has no binding for itself, on which something was moved.
#[derive(Debug, Serialize, JsonSchema)]
struct Unbound {
    port: String,
    could_be: Option<String>,
    /// JSON, for this port alone.
    matcher: Option<String>,
}

/// What is being learned.
#[derive(Debug, Clone)]
struct Session {
    /// When it began, on the clock of events.
    since: u64,
    device: Option<String>,
    midi_only: bool,
    /// The events that each port had discarded by then.
    unheard: Vec<(String, u64)>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

fn inputs(reader: &Reader) -> Result<Vec<host_state::Port>, Error> {
    Ok(reader.ports()?.into_iter().filter(|port| port.direction == Direction::Input).collect())
}

fn start(reader: &Reader, device: Option<String>, midi_only: bool) -> Result<Started, Error> {
    let ports = inputs(reader)?;
    if let Some(device) = &device
        && !ports.iter().any(|port| port.device == *device)
    {
        return Err(unknown("device", device, ports.iter().map(|port| port.device.as_str())));
    }
    let unheard = ports.into_iter().map(|port| (port.device, port.unheard)).collect();
    let since = reader.status()?.uptime;
    SESSION.set(Some(Session { since, device, midi_only, unheard }));
    let stop = if midi_only { "conductor_stop_midi_learn" } else { "conductor_stop_learn" };
    Ok(Started { listening: true, next: format!("have the person move a control, then {stop}") })
}

fn stop(reader: &Reader, keep: bool, midi_only: bool) -> Result<Learned, Error> {
    let session = SESSION.with_borrow(Clone::clone);
    let Some(session) = session.filter(|session| session.midi_only == midi_only) else {
        let begin = if midi_only { "conductor_start_midi_learn" } else { "conductor_start_learn" };
        return Err(Error::Invalid(format!("nothing is being learned; {begin} begins")));
    };
    let ports = inputs(reader)?;
    let captured = reader.captured(256)?;
    let since = captured.into_iter().filter(|event| event.event.at >= session.since);
    let wanted = since.filter(|event| session.device.as_ref().is_none_or(|device| *device == event.device));
    let mut heard = Received::default();
    for event in wanted.filter(|event| !midi_only || event.event.kind < 32) {
        heard.add(&event.device, &event.text, &event.event);
    }
    let controls = heard.controls();
    let before = |port: &host_state::Port| {
        session.unheard.iter().find(|(device, _)| *device == port.device).map_or(0, |(_, unheard)| *unheard)
    };
    let moved = ports.into_iter().filter(|port| {
        let nameless = port.binding.is_none() && controls.iter().any(|control| control.device == port.device);
        let unheard = !port.muted && port.unheard > before(port);
        session.device.as_ref().is_none_or(|device| *device == port.device) && (nameless || unheard)
    });
    let unbound: Vec<Unbound> = moved
        .map(|port| Unbound {
            could_be: if let PortState::Ambiguous(binding) = port.state { Some(binding) } else { None },
            port: port.device,
            matcher: port.told_apart_by,
        })
        .collect();
    let twin = unbound.iter().find_map(|port| port.could_be.as_ref());
    let next = match (controls.first(), unbound.first()) {
        _ if twin.is_some() => format!(
            "conductor_update_device_identity of {} with the matcher binds the port that was moved",
            twin.map_or("", String::as_str)
        ),
        (Some(_), Some(_)) => "conductor_create_device_identity with the matcher names the device; \
            conductor_create_mapping takes the trigger"
            .to_owned(),
        (Some(_), None) => "conductor_create_mapping takes the trigger".to_owned(),
        (None, None) | (None, Some(_)) => {
            "nothing was heard; conductor_get_binding_health says whether the device is there".to_owned()
        }
    };
    if !keep {
        SESSION.set(None);
    }
    Ok(Learned { controls, unbound, next })
}

impl StatefulTools for MidiLearn {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, _: &Controls) -> Result<String, Error> {
        match name.as_str() {
            "conductor_start_midi_learn" => answer(&args, |Start { device }| start(reader, device, true)),
            "conductor_stop_midi_learn" => answer(&args, |Stop { keep }| stop(reader, keep, true)),
            "conductor_start_learn" => answer(&args, |Start { device }| start(reader, device, false)),
            "conductor_stop_learn" => answer(&args, |Stop { keep }| stop(reader, keep, false)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

/// The keys of a trigger as the configuration has them, in a line.
fn toml(trigger: &Trigger) -> String {
    let value = serde_json::to_value(trigger).unwrap_or_default();
    let entries = value.as_object().into_iter().flatten().map(|(key, value)| format!("{key} = {value}"));
    format!("trigger = {{ {} }}", entries.collect::<Vec<_>>().join(", "))
}

conductor_feature::feature!(MidiLearn, "../feature.toml", [stateful_tools]);
