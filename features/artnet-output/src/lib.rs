//! The `ArtNetSend` action: controller events as DMX512 over Art-Net.
//!
//! Art-Net sends universes as a whole, so the feature remembers what every channel was set to; mappings that
//! name the same target and universe share them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use conductor_expression::OscNumber;
use conductor_feature::udp::{Network, Target};
use conductor_feature::{Actions, Context, Error, Event, Lifecycle, Prepared, action_registrar, event_details};

pub mod frame;
pub mod params;

use frame::Frame;
use params::{Checked, Light, Params};

struct ArtNetOutput;

/// One use of the action: a channel, and what it is set to.
struct Setting {
    target: Target,
    /// Where its universe is.
    frame: usize,
    channel: Light,
    value: Light,
}

#[derive(Default)]
struct State {
    network: Option<Network>,
    prepared: Prepared<Setting>,
    /// By target and universe; never given back, so that a reload does not black a stage out.
    known: BTreeMap<(String, u16), usize>,
    frames: Vec<Frame>,
}

/// Universes that are remembered.
const MAX_UNIVERSES: usize = 1024;

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl State {
    fn frame(&mut self, target: &str, universe: u16) -> Result<usize, Error> {
        let key = (target.to_owned(), universe);
        if let Some(frame) = self.known.get(&key) {
            return Ok(*frame);
        }
        if self.frames.len() >= MAX_UNIVERSES {
            return Err(Error::Exhausted(format!("there are {MAX_UNIVERSES} universes already")));
        }
        self.frames.push(Frame::new(universe));
        self.known.insert(key, self.frames.len() - 1);
        Ok(self.frames.len() - 1)
    }
}

impl Lifecycle for ArtNetOutput {
    fn install(ctx: &Context) -> Result<(), Error> {
        action_registrar::Registrar::open(ctx)?.register("ArtNetSend", params::SCHEMA)?;
        let network = Network::open(ctx, "artnet")?;
        STATE.with_borrow_mut(|state| state.network = Some(network));
        Ok(())
    }
}

impl Actions for ArtNetOutput {
    fn prepare(_name: String, params: String) -> Result<u32, Error> {
        let params: Params = serde_json::from_str(&params).map_err(|error| Error::Invalid(error.to_string()))?;
        let Checked { target: name, universe, channel, value } = params.check().map_err(Error::Invalid)?;
        STATE.with_borrow_mut(|state| {
            let network = state.network.as_ref().ok_or_else(|| Error::Failed("not installed".into()))?;
            let target = network.target(&name)?;
            let frame = state.frame(&name, universe)?;
            state.prepared.keep(Setting { target, frame, channel, value })
        })
    }

    fn perform(action: u32, event: Event) -> Result<(), Error> {
        STATE.with_borrow_mut(|state| {
            let light = state.prepared.get(action)?;
            let channel = light.channel.number(&event, osc);
            let channel = usize::try_from(channel)
                .ok()
                .filter(|channel| (1..=frame::CHANNELS).contains(channel))
                .ok_or_else(|| Error::Invalid(format!("there is no DMX channel {channel}")))?;
            let value = u8::try_from(light.value.number(&event, osc).clamp(0, 255)).unwrap_or_default();
            light.target.send(state.frames[light.frame].set(channel, value))
        })
    }

    fn release(action: u32) {
        STATE.with_borrow_mut(|state| state.prepared.release(action));
    }
}

/// A number that only an OSC message has.
fn osc(number: OscNumber) -> Option<f64> {
    match number {
        OscNumber::Arg(at) => event_details::osc_number(u32::try_from(at).ok()?),
        OscNumber::Match(at) => event_details::osc_match(u32::try_from(at + 1).ok()?)?.parse().ok(),
    }
}

conductor_feature::feature!(ArtNetOutput, "../feature.toml", [actions]);
