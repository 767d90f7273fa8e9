//! An action: a line of text to a UDP target, for every event that a mapping catches.
//!
//! ```toml
//! action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
//! ```

use std::cell::RefCell;

use conductor_feature::action_registrar::Registrar;
use conductor_feature::udp::{Network, Target};
use conductor_feature::{Actions, Context, Error, Event, Prepared, json};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{{Type}};

/// What a mapping may say. The host shows mistakes in it with their place in the configuration.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Where to, as host:port.
    target: String,
    /// What to send before the event's value.
    #[serde(default)]
    text: String,
}

/// An instance's own memory. Calls come one at a time, so a thread-local does.
#[derive(Default)]
struct State {
    network: Option<Network>,
    prepared: Prepared<(Target, String)>,
}

thread_local!(static STATE: RefCell<State> = RefCell::default());

/// What is opened here is all that the action can ever use.
pub fn install(ctx: &Context) -> Result<(), Error> {
    Registrar::open(ctx)?.register("{{Type}}", &json::schema::<Params>())?;
    let network = Network::open(ctx, "text")?;
    STATE.with_borrow_mut(|state| state.network = Some(network));
    Ok(())
}

impl Actions for {{Type}} {
    // Runs when the configuration is read: everything that takes time or can be wrong belongs here.
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let params: Params = json::read(&params)?;
        STATE.with_borrow_mut(|state| {
            let network = state.network.as_ref().ok_or_else(|| Error::Failed("it is not installed".into()))?;
            state.prepared.keep((network.target(&params.target)?, params.text))
        })
    }

    // Runs on the event path: quick, and nothing that waits.
    fn perform(action: u32, event: Event) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let (target, text) = state.prepared.get(action)?;
            target.send(format!("{text} {}\n", event.value).as_bytes())
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| state.prepared.release(action));
    }
}
