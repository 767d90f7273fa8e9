//! Tools for MIDI learn: one that begins to listen, one that reports which controls were moved since. They bind and
//! map nothing.
//!
//! The host listens: to every port, and for each session of its own, see `runtime-controls.listen` in the contract. What a
//! session has heard is made into controls anew each time that it is asked for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use conductor_feature::host_state::{Direction, PortState};
use conductor_feature::json::{answer, register, unknown};
use conductor_feature::mapping::Trigger;
use conductor_feature::{
    Context, Controls, Error, Invocation, Lifecycle, Reader, StatefulTools, host_state, tool_registrar,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod learned;
pub mod osc_arguments;
pub mod presses;

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
    /// Where several learn at once: as it was begun.
    session: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Started {
    listening: bool,
    session: u64,
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
    device: Option<String>,
    midi_only: bool,
}

/// Events that are asked for at once.
const PAGE: u32 = 1024;
/// Pages of them that are looked at, at most.
const MAX_PAGES: usize = 64;
/// Controls that are reported, those moved last.
const MAX_CONTROLS: usize = 64;

thread_local! {
    /// What is being learned, by the host's numbers of sessions.
    static SESSIONS: RefCell<BTreeMap<u64, Session>> = const { RefCell::new(BTreeMap::new()) };
}

fn inputs(reader: &Reader) -> Result<Vec<host_state::Port>, Error> {
    Ok(reader.ports()?.into_iter().filter(|port| port.direction == Direction::Input).collect())
}

fn start(reader: &Reader, change: &Controls, device: Option<String>, midi_only: bool) -> Result<Started, Error> {
    if let Some(device) = &device {
        let ports = inputs(reader)?;
        if !ports.iter().any(|port| port.device == *device) {
            return Err(unknown("device", device, ports.iter().map(|port| port.device.as_str())));
        }
    }
    let session = change.listen()?;
    SESSIONS.with_borrow_mut(|sessions| {
        // Those that the host has ended by itself.
        sessions.retain(|session, _| change.heard(*session, u64::MAX, 0).is_ok());
        sessions.insert(session, Session { device, midi_only });
    });
    let stop = if midi_only { "conductor_stop_midi_learn" } else { "conductor_stop_learn" };
    let next = format!("have the person move a control, then {stop} with session {session}");
    Ok(Started { listening: true, session, next })
}

/// The session that is meant: the one that is named, or the only one that was begun by the tool of the same name.
fn meant(session: Option<u64>, midi_only: bool) -> Result<(u64, Session), Error> {
    let begin = if midi_only { "conductor_start_midi_learn" } else { "conductor_start_learn" };
    SESSIONS.with_borrow(|sessions| {
        let mut own = sessions.iter().filter(|(_, one)| one.midi_only == midi_only);
        match (session, own.next(), own.next()) {
            (Some(number), ..) => match sessions.get(&number).filter(|one| one.midi_only == midi_only) {
                Some(one) => Ok((number, one.clone())),
                None => Err(Error::Invalid(format!("no session {number} is learning; {begin} begins one"))),
            },
            (None, Some((number, one)), None) => Ok((*number, one.clone())),
            (None, None, _) => Err(Error::Invalid(format!("nothing is being learned; {begin} begins"))),
            (None, Some(_), Some(_)) => {
                Err(Error::Invalid(format!("several are learning: name the session that {begin} answered with")))
            }
        }
    })
}

/// Everything that a session has heard.
fn received(change: &Controls, number: u64, session: &Session) -> Result<Received, Error> {
    let (mut received, mut after) = (Received::default(), 0);
    for _ in 0..MAX_PAGES {
        let page = change.heard(number, after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        let wanted = page.iter().filter(|heard| session.device.as_ref().is_none_or(|device| *device == heard.device));
        for heard in wanted.filter(|heard| !session.midi_only || heard.event.kind < 32) {
            received.add(&heard.device, &heard.text, &heard.event);
        }
    }
    Ok(received)
}

fn stop(reader: &Reader, change: &Controls, asked: &Stop, midi_only: bool) -> Result<Learned, Error> {
    let (number, session) = meant(asked.session, midi_only)?;
    let heard = received(change, number, &session);
    if !asked.keep || heard.is_err() {
        SESSIONS.with_borrow_mut(|sessions| drop(sessions.remove(&number)));
        // It may have ended by itself.
        let _ = change.stop_listening(number);
    }
    let mut controls = heard?.controls();
    controls.truncate(MAX_CONTROLS);
    let is_moved = |port: &host_state::Port| {
        port.binding.is_none() && controls.iter().any(|control| control.device == port.device)
    };
    let unbound: Vec<Unbound> = inputs(reader)?
        .into_iter()
        .filter(is_moved)
        .map(|port| Unbound {
            could_be: if let PortState::Ambiguous(binding) = port.state { Some(binding) } else { None },
            port: port.device,
            matcher: port.told_apart_by,
        })
        .collect();
    let twin = unbound.iter().find_map(|port| port.could_be.as_ref());
    let ask = "Ask the person: for this device, or any? For any, leave `device` out of the trigger.";
    let next = match (controls.first(), unbound.first()) {
        (None, _) => "nothing was heard; conductor_get_binding_health says whether the device is there".to_owned(),
        (Some(_), Some(_)) if twin.is_some() => format!(
            "conductor_update_device_identity of {} with the matcher binds the port that was moved. {ask}",
            twin.map_or("", String::as_str)
        ),
        (Some(_), Some(_)) => format!(
            "conductor_create_device_identity with the matcher names the device, and the trigger names it then; \
             conductor_create_mapping takes the trigger; or both in one plan with conductor_batch_changes. {ask}"
        ),
        (Some(_), None) => format!("conductor_create_mapping takes the trigger. {ask}"),
    };
    Ok(Learned { controls, unbound, next })
}

impl StatefulTools for MidiLearn {
    fn call(name: String, args: String, _: &Invocation, reader: &Reader, change: &Controls) -> Result<String, Error> {
        match name.as_str() {
            "conductor_start_midi_learn" => answer(&args, |Start { device }| start(reader, change, device, true)),
            "conductor_stop_midi_learn" => answer(&args, |asked: Stop| stop(reader, change, &asked, true)),
            "conductor_start_learn" => answer(&args, |Start { device }| start(reader, change, device, false)),
            "conductor_stop_learn" => answer(&args, |asked: Stop| stop(reader, change, &asked, false)),
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
