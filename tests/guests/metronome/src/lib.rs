//! A metronome and an echo: what timers are for.
//!
//! Both send datagrams, each with its time in nanoseconds on the host's clock: `tick 500000000`, `echo 1 250000000`.

use std::cell::RefCell;

use conductor_feature::udp::{Network, Target};
use conductor_feature::{
    Actions, Context, Error, Event, Lifecycle, Prepared, Scheduler, TimerEvents, action_registrar, kind,
};
use serde_json::Value;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "target": { "type": "string", "description": "Where to, as host:port." },
        "ms": { "type": "integer", "minimum": 1, "description": "Milliseconds from one to the next." },
        "times": { "type": "integer", "minimum": 1, "maximum": 16, "description": "How often an echo repeats. Default: 3." }
    },
    "required": ["target", "ms"],
    "additionalProperties": false
}"#;

struct Metronome;

/// One use of an action.
struct Use {
    /// How often it repeats; `None` if it is a metronome, which goes on.
    times: Option<u32>,
    nanoseconds: u64,
    target: Target,
}

#[derive(Default)]
struct State {
    scheduler: Option<Scheduler>,
    network: Option<Network>,
    prepared: Prepared<Use>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl Lifecycle for Metronome {
    fn install(ctx: &Context) -> Result<(), Error> {
        let registrar = action_registrar::Registrar::open(ctx)?;
        registrar.register("Metronome", SCHEMA)?;
        registrar.register("Echo", SCHEMA)?;
        let (scheduler, network) = (Scheduler::open(ctx)?, Network::open(ctx, "ticks")?);
        STATE.with_borrow_mut(|state| (state.scheduler, state.network) = (Some(scheduler), Some(network)));
        Ok(())
    }
}

impl Actions for Metronome {
    fn prepare(name: String, params: String) -> Result<u32, Error> {
        let params: Value = serde_json::from_str(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        let times = params["times"].as_u64().and_then(|times| u32::try_from(times).ok()).unwrap_or(3);
        let nanoseconds = params["ms"].as_u64().unwrap_or_default().saturating_mul(1_000_000);
        STATE.with_borrow_mut(|state| {
            let network = state.network.as_ref().ok_or_else(not_installed)?;
            let target = network.target(params["target"].as_str().unwrap_or_default())?;
            state.prepared.keep(Use { times: (name == "Echo").then_some(times), nanoseconds, target })
        })
    }

    fn perform(action: u32, event: Event) -> Result<(), Error> {
        if event.kind != kind::NOTE_ON {
            return Ok(());
        }
        STATE.with_borrow_mut(|state| {
            let State { scheduler, prepared, .. } = state;
            let (scheduler, one) = (scheduler.as_ref().ok_or_else(not_installed)?, prepared.get(action)?);
            match one.times {
                Some(times) => (1..=times)
                    .try_for_each(|echo| scheduler.after(echo, one.nanoseconds.saturating_mul(echo.into())).map(drop)),
                // What was cancelled was ticking: this press ends it.
                None if scheduler.cancel(0) => Ok(()),
                None => tick(scheduler, one, event.at),
            }
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| state.prepared.release(action));
    }
}

impl TimerEvents for Metronome {
    fn due(action: u32, id: u32, at: u64) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let State { scheduler, prepared, .. } = state;
            let (scheduler, one) = (scheduler.as_ref().ok_or_else(not_installed)?, prepared.get(action)?);
            match one.times {
                Some(_) => one.target.send(format!("echo {id} {at}").as_bytes()),
                None => tick(scheduler, one, at),
            }
        })
    }
}

/// One tick, and the next one an interval after it.
fn tick(scheduler: &Scheduler, one: &Use, at: u64) -> Result<(), Error> {
    scheduler.after(0, one.nanoseconds)?;
    one.target.send(format!("tick {at}").as_bytes())
}

fn not_installed() -> Error {
    Error::Failed("not installed".into())
}

conductor_feature::feature!(Metronome, "../feature.toml", [actions, timer_events]);
