//! The `OscSend` action: controller events as OSC packets.
//!
//! `prepare` parses a mapping's parameters and opens its targets; `perform` fills the message in
//! and hands the packet to the targets' handles.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use conductor_feature::udp::{Network, Target};
use conductor_feature::{Actions, Context, Error, Event, Lifecycle, Prepared, action_registrar, devices};

pub mod incoming;
pub mod message;
pub mod params;

use incoming::{Incoming, NOTHING};
use message::Message;
use params::Params;

struct OscOutput;

/// One use of the action: what to send, and where to.
struct Sending {
    message: Message,
    targets: Vec<Rc<Target>>,
}

#[derive(Default)]
struct State {
    network: Option<Network>,
    /// The targets that are open, by `host:port`. Mappings share them: handles are few, and mappings many.
    open: BTreeMap<String, Weak<Target>>,
    prepared: Prepared<Sending>,
    /// Device numbers keep their meaning, so a name is asked for once.
    names: BTreeMap<u32, String>,
}

impl State {
    /// The target of this name, which is opened if no mapping has it open.
    fn target(&mut self, name: &str) -> Result<Rc<Target>, Error> {
        if let Some(target) = self.open.get(name).and_then(Weak::upgrade) {
            return Ok(target);
        }
        let network = self.network.as_ref().ok_or_else(|| Error::Failed("not installed".into()))?;
        let target = Rc::new(network.target(name)?);
        self.open.retain(|_, target| target.strong_count() > 0);
        self.open.insert(name.to_owned(), Rc::downgrade(&target));
        Ok(target)
    }
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
        let message = Message::new(&params.address, &params.args);
        STATE.with_borrow_mut(|state| {
            let targets = params.target.iter().map(|target| state.target(target)).collect::<Result<Vec<_>, _>>();
            let (message, targets) = match (message, targets) {
                (Ok(message), targets) => (message, targets?),
                (Err(wrong), Ok(_)) => return Err(Error::Invalid(wrong)),
                // Not the first mistake only.
                (Err(wrong), Err(refused)) => return Err(Error::Invalid(format!("{wrong}\n{}", text(&refused)))),
            };
            if targets.is_empty() {
                return Err(Error::Invalid("`target` names no target; write one `host:port` or a list of them".into()));
            }
            state.prepared.keep(Sending { message, targets })
        })
    }

    fn perform(action: u32, event: Event) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let State { prepared, names, .. } = state;
            let sending = prepared.get(action)?;
            let needs = sending.message.needs();
            let name = if needs.name {
                names.entry(event.device).or_insert_with(|| devices::name(event.device).unwrap_or_default()).as_str()
            } else {
                ""
            };
            let asked = needs.is_of_osc().then(|| Incoming::of_event(needs));
            let incoming = asked.as_ref().unwrap_or(&NOTHING);
            let packet = sending.message.packet(&event, name, incoming).map_err(Error::Failed)?;
            // One target that is away must not keep the packet from the others.
            let mut failed = None;
            for target in &sending.targets {
                if let Err(error) = target.send(packet) {
                    failed.get_or_insert(error);
                }
            }
            failed.map_or(Ok(()), Err)
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| state.prepared.release(action));
    }
}

/// What an error says.
fn text(error: &Error) -> &str {
    match error {
        Error::Denied(text)
        | Error::Unavailable(text)
        | Error::Invalid(text)
        | Error::Exhausted(text)
        | Error::Failed(text) => text,
    }
}

conductor_feature::feature!(OscOutput, "../feature.toml", [actions]);
