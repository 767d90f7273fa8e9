//! PERF-3: what a call into a guest costs, and how much of it the sandbox adds.

use std::hint::black_box;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, anyhow};
use conductor_sandbox::ActionInstance;
use conductor_sandbox::bindings::Event;
use conductor_sandbox::datagrams::Datagrams as _;
use osc_output::incoming::Incoming;
use osc_output::message::Message;
use osc_output::params::ArgValue;
use serde_json::json;

use crate::allocations;
use crate::arguments::Arguments;
use crate::components::Lane;
use crate::datagrams::Discard;
use crate::measure::{Work, nanos_per_call};
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

/// The parameters of an `OscSend`, and what is special about them.
struct Sending {
    name: &'static str,
    address: &'static str,
    argument: &'static str,
}

/// The plain case, which the targets are about.
const PLAIN: Sending = Sending { name: "OscSend", address: "/mixer/level", argument: "{unit}" };
/// An address that has to be written anew for every event.
const WRITTEN: Sending = Sending { name: "OscSend with {n} in its address", address: "/mixer/{n}/level", ..PLAIN };

/// A fader that moves.
const EVENT: Event = Event { at: 1, device: 0, kind: 4, channel: 0, number: 7, position: 3, value: 64.0, unit: 0.5 };
/// The same event, as a feature sees it.
const SEEN: conductor_feature::Event =
    conductor_feature::Event { at: 1, device: 0, kind: 4, channel: 0, number: 7, position: 3, value: 64.0, unit: 0.5 };

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let features = arguments.features()?;
    let home = Folder::new()?;
    let lane = Lane::new(home.path())?;

    let bench = lane.prepare(&features.join("tests/bench.wasm"))?;
    let mut nothing = Prepared::new(bench.instantiate()?, "Nothing", "{}")?;
    let mut small = Prepared::new(bench.instantiate()?, "AskDevice", "{}")?;
    let mut released = Prepared::new(bench.instantiate()?, "Nothing", "{}")?;
    let [floor, bare, with_host_call] = nanos_per_call([released.releases(), nothing.work(), small.work()]);
    section.figure("the least a call can be: one number in, nothing out", floor, Unit::Nanoseconds);
    section.figure("a call that does nothing", bare, Unit::Nanoseconds);
    section.figure("a call with one small host call inside", with_host_call, Unit::Nanoseconds);
    // On machines where one of them is odd, the other one is what a call costs at least.
    let least = floor.min(bare);
    section.target(
        "a call with one small host call, of the least",
        with_host_call / least,
        Unit::Times,
        Limit::AtMost(2.0),
    );

    let osc_output = lane.prepare(&features.join("osc-output.wasm"))?;
    for sending in [PLAIN, WRITTEN] {
        let Sending { name, address, argument } = sending;
        let params = json!({ "target": "127.0.0.1:9", "address": address, "args": [argument] });
        let mut guest = Prepared::new(osc_output.instantiate()?, "OscSend", &params.to_string())?;
        let mut native = Native::new(address, argument)?;
        let [sandboxed, natively] = nanos_per_call([guest.work(), native.work()]);
        section.beside(format!("{name}, socket excluded"), sandboxed, Unit::Nanoseconds, "natively", natively);
        let allocations = allocations::per_call(10_000, &mut guest.work());
        section.figure(format!("{name}, allocations of the host"), allocations, Unit::Count);
        if address == PLAIN.address {
            section.target(
                "OscSend, socket excluded, of the least",
                sandboxed / least,
                Unit::Times,
                Limit::AtMost(4.0),
            );
        }
    }
    Ok(())
}

/// An instance with one prepared action.
struct Prepared {
    instance: ActionInstance,
    action: u32,
}

impl Prepared {
    fn new(mut instance: ActionInstance, name: &str, params: &str) -> Result<Self> {
        let action = instance.prepare(name, params)?;
        instance.perform(action, EVENT).with_context(|| format!("{name} can't be measured"))?;
        Ok(Self { instance, action })
    }

    fn work(&mut self) -> Work<'_> {
        Box::new(|calls| {
            for _ in 0..calls {
                let done = self.instance.perform(self.action, black_box(EVENT));
                debug_assert!(done.is_ok(), "{done:?}");
                let _ = black_box(done);
            }
        })
    }

    /// Calls `release`, which takes one number and gives nothing; no such action is prepared.
    fn releases(&mut self) -> Work<'_> {
        Box::new(|calls| {
            for _ in 0..calls {
                let _ = black_box(self.instance.release(black_box(u32::MAX)));
            }
        })
    }
}

/// The feature's own code, compiled for this machine.
struct Native(Message);

impl Native {
    fn new(address: &str, argument: &str) -> Result<Self> {
        Message::new(address, &[ArgValue::Text(argument.into())]).map(Self).map_err(|error| anyhow!(error))
    }

    fn work(&mut self) -> Work<'_> {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let target = Discard.connect(nowhere);
        let incoming = Incoming::default();
        Box::new(move |calls| {
            for _ in 0..calls {
                if let (Ok(packet), Ok(target)) = (self.0.packet(black_box(&SEEN), "", &incoming), &target) {
                    let _ = target.send(packet);
                }
            }
        })
    }
}
