//! The feature platform: what instances, installs, upgrades, tool calls and services cost, and what hooks on
//! events cost the actions beside them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use conductor_audit::caller::Caller;
use conductor_config as config;
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage};
use conductor_host::host::Host;
use conductor_install::signature;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_package::Grants;
use conductor_package::descriptor::Tier;
use conductor_ports::engine_input::Input;
use conductor_registry::{FeatureSource, Registry};
use conductor_sandbox::actor::Actor;
use crossbeam_channel::unbounded;

use crate::arguments::Arguments;
use crate::components::{self, Lane};
use crate::datagrams::Stamp;
use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;

const SAMPLES: usize = 200;
/// Events a second that hooks have to stand.
const RATE: u64 = 100_000;
/// How long they come.
const LASTS: Duration = Duration::from_secs(3);
/// Of so many events one is for an action.
const EVENTS_PER_ACTION: u64 = 100;

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let features = arguments.features()?;
    let home = Folder::new()?;
    let lane = Lane::new(home.path())?;
    let package = features.join("tests/bench-tools.wasm");
    instances(&lane, &package, features, section)?;
    installs(&lane, &package, section)?;
    calls(&lane, &package, section)?;
    hooks(arguments, &package, section)
}

/// The median microseconds of doing something.
fn micros(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let start = Instant::now();
        work()?;
        samples.push(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&samples))
}

fn instances(lane: &Lane, package: &Path, features: &Path, section: &mut Section<'_>) -> Result<()> {
    let small = lane.prepare(&features.join("tests/bench.wasm"))?;
    let realtime = micros(|| small.instantiate().map(drop).map_err(Into::into))?;
    section.figure("an instance in the real-time lane, installed", realtime, Unit::Microseconds);
    let tools = lane.prepare(package)?;
    let control = micros(|| tools.runtime().block_on(tools.instantiate_control()).map(drop).map_err(Into::into))?;
    section.figure("an instance in the control lane, installed", control, Unit::Microseconds);
    Ok(())
}

fn installs(lane: &Lane, package: &Path, section: &mut Section<'_>) -> Result<()> {
    // The same component, with other bytes behind it, as an upgrade has.
    let folder = Folder::new()?;
    let bytes = std::fs::read(package)?;
    let other = folder.path().join("other.wasm");
    std::fs::write(&other, signature::sign(&bytes, &signature::new_key()?)?)?;
    let source = |path: &Path| FeatureSource {
        name: "bench-tools".into(),
        path: path.to_owned(),
        bundled: false,
        grants: Grants::bundled(),
        ..FeatureSource::default()
    };
    let (_sinks, said) = SinkQueue::new();
    let (observer, _, _) = observer::start(said, None)?;
    let install_in = |lane: &Lane, before: &Registry, path: &Path| -> Result<Registry> {
        let next = before.with(vec![source(path)], lane.sandbox(), &observer);
        match next.refused().first() {
            Some((_, reason)) => bail!("it is not installed: {reason}"),
            None => Ok(next),
        }
    };
    // In a home of its own, where no compiled code is kept yet.
    let fresh = Folder::new()?;
    let cold = Lane::new(fresh.path())?;
    let start = Instant::now();
    install_in(&cold, &Registry::default(), package)?;
    section.figure("first install, compiled", start.elapsed().as_secs_f64() * 1e3, Unit::Milliseconds);
    let install = |before: &Registry, path: &Path| install_in(lane, before, path);
    let mut registry = install(&Registry::default(), package)?;
    install(&registry, &other)?;
    let again = micros(|| install(&Registry::default(), package).map(drop))?;
    section.figure("install, from the code cache", again / 1e3, Unit::Milliseconds);
    let mut turn = false;
    let upgrade = micros(|| {
        turn = !turn;
        registry = install(&registry, if turn { &other } else { package })?;
        Ok(())
    })?;
    section.figure("hot upgrade, from the code cache", upgrade / 1e3, Unit::Milliseconds);
    Ok(())
}

fn calls(lane: &Lane, package: &Path, section: &mut Section<'_>) -> Result<()> {
    let prepared = lane.prepare(package)?;
    let actor = Actor::start(prepared.clone())?;
    let call = |name: &'static str, times: u32| -> Result<()> {
        let progress = Arc::new(|_, _| {});
        let call = actor.call(Caller::library(), Tier::ReadOnly, name, times.to_string(), Default::default(), progress);
        prepared.runtime().block_on(call).map(drop).map_err(Into::into)
    };
    let nothing = micros(|| call("nothing", 0))?;
    section.figure("a tool call through its actor", nothing, Unit::Microseconds);
    for (name, what, times) in [
        ("clock", "the clock", 1000),
        ("random", "16 random bytes", 1000),
        ("mode", "the mode", 1000),
        ("store_get", "reading from the store", 100),
        ("store_set", "writing to the store, on disk", 10),
    ] {
        let each = (micros(|| call(name, times))? - nothing) / f64::from(times);
        section.figure(format!("a service in the control lane: {what}"), each * 1e3, Unit::Nanoseconds);
    }
    Ok(())
}

fn hooks(arguments: &Arguments, package: &Path, section: &mut Section<'_>) -> Result<()> {
    let (mut with, mut without, mut seen) = (Vec::new(), Vec::new(), 0.0);
    // In turns: the machine may be busy in one of them.
    for _ in 0..3 {
        without.extend(latencies(arguments, None)?.0);
        let (latencies, share) = latencies(arguments, Some(package))?;
        with.extend(latencies);
        seen = share;
    }
    let quantiles = |samples: &[f64]| [quantile(samples, 0.5), quantile(samples, 0.99)];
    let ([with_p50, with_p99], [p50, p99]) = (quantiles(&with), quantiles(&without));
    let micros = Unit::Microseconds;
    section.beside(format!("an action among {RATE} events/s, hooked, p50"), with_p50, micros, "without a hook", p50);
    section.beside(format!("an action among {RATE} events/s, hooked, p99"), with_p99, micros, "without a hook", p99);
    section.figure("events that the hook has seen", seen * 100.0, Unit::Percent);
    section.target("delay of an action by a hook, p99", with_p99 - p99, micros, Limit::AtMost(100.0));
    Ok(())
}

/// Microseconds from an event to its datagram while many others come, and the share of events that the hook saw.
fn latencies(arguments: &Arguments, hook: Option<&Path>) -> Result<(Vec<f64>, f64)> {
    let home = Folder::new()?;
    let mut text = "[[global_mappings]]\ntrigger = { type = 'Note', note = 1 }\n\
                    action = { type = 'OscSend', target = '127.0.0.1:9', address = '/a' }\n"
        .to_owned();
    if let Some(package) = hook {
        text += &components::installed("bench-tools", package, "observe_events = ['*'], store = 65536")?;
    }
    let loaded = config::parse(&text, "bench.toml").map_err(|wrong| anyhow!(wrong.render(false)))?;
    let (stamp, stamps) = unbounded();
    let host = Host::builder().home(home.path()).features(arguments.features()?).datagrams(Box::new(Stamp(stamp)));
    let host = host.start(&loaded)?;
    let device = DeviceId::new("pad");
    let fader = Event::Midi(MidiMessage::ControlChange { channel: 0, controller: 7, value: 64 });
    let pad = Event::Midi(MidiMessage::NoteOn { channel: 0, note: 1, velocity: 100 });
    let queue = host.queue();
    let play = |event: &Event| {
        let event = DeviceEvent { device: device.clone(), event: event.clone() };
        queue.send(Input::Event { at: host.clock().now(), event }).context("the engine has ended")
    };
    let (mut sent, mut samples) = (Vec::new(), Vec::new());
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < LASTS {
        let due = (start.elapsed().as_secs_f64() * RATE as f64) as u64;
        while count < due {
            if count % EVENTS_PER_ACTION == 0 {
                sent.push(Instant::now());
                play(&pad)?;
            } else {
                play(&fader)?;
            }
            count += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    for sent in sent {
        let stamp = stamps.recv_timeout(Duration::from_secs(5)).context("an action was lost")?;
        samples.push(stamp.saturating_duration_since(sent).as_secs_f64() * 1e6);
    }
    let seen = host.status().features.iter().map(|feature| feature.events_seen).sum::<u64>() as f64 / count as f64;
    host.stop();
    Ok((samples, seen))
}
