//! The `OscSend` action: controller events as OSC packets.
//!
//! `prepare` parses a mapping's parameters and opens its targets; `perform` fills the message in
//! and hands the packet to the targets' handles.

use std::cell::RefCell;
use std::collections::BTreeMap;

use conductor_feature::udp::{Network, Target};
use conductor_feature::{Actions, Context, Error, Event, Lifecycle, action_registrar, devices};

pub mod message;
pub mod params;
pub mod template;

use message::Message;
use params::Params;

struct OscOutput;

/// One use of the action: what to send, and where to.
struct Prepared {
    message: Message,
    targets: Vec<Target>,
}

#[derive(Default)]
struct State {
    network: Option<Network>,
    prepared: Vec<Option<Prepared>>,
    /// Device numbers keep their meaning, so a name is asked for once.
    names: BTreeMap<u32, String>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl Lifecycle for OscOutput {
    fn install(ctx: &Context) -> Result<(), Error> {
        action_registrar::Registrar::open(ctx)?.register("OscSend", params::SCHEMA)?;
        let network = Network::open(ctx, "osc")?;
        STATE.with_borrow_mut(|state| state.network = Some(network));
        Ok(())
    }
}

impl Actions for OscOutput {
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let params: Params = serde_json::from_str(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        let message = Message::new(&params.address, &params.args).map_err(Error::Invalid)?;
        STATE.with_borrow_mut(|state| {
            let network = state.network.as_ref().ok_or_else(|| Error::Failed("not installed".into()))?;
            let targets = params.target.iter().map(|target| network.target(target)).collect::<Result<Vec<_>, _>>()?;
            if targets.is_empty() {
                return Err(Error::Invalid("`target` names no target; write one `host:port` or a list of them".into()));
            }
            let prepared = Some(Prepared { message, targets });
            let slot = state.prepared.iter().position(Option::is_none).unwrap_or(state.prepared.len());
            if slot == state.prepared.len() {
                state.prepared.push(prepared);
            } else {
                state.prepared[slot] = prepared;
            }
            u32::try_from(slot).map_err(|_| Error::Exhausted("too many prepared actions".into()))
        })
    }

    fn perform(action: u32, event: Event) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let State { prepared, names, .. } = state;
            let prepared = prepared
                .get_mut(action as usize)
                .and_then(Option::as_mut)
                .ok_or_else(|| Error::Invalid(format!("action {action} is not prepared")))?;
            let name = if prepared.message.wants_name() {
                names.entry(event.device).or_insert_with(|| devices::name(event.device).unwrap_or_default()).as_str()
            } else {
                ""
            };
            let packet = prepared.message.packet(&event, name).map_err(Error::Failed)?;
            // One target that is away must not keep the packet from the others.
            let mut result = Ok(());
            for target in &prepared.targets {
                let sent = target.send(packet);
                result = result.and(sent);
            }
            result
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| {
            if let Some(slot) = state.prepared.get_mut(action as usize) {
                *slot = None;
            }
        });
    }
}

conductor_feature::feature!(OscOutput, "../feature.toml", [actions]);
