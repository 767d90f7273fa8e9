//! Where the time goes: the same way inside of this process, without sockets.
//!
//! The library's host gets packets from a simulated port and sends to a socket that only notes the time. What
//! is left of the round trip is two threads that wake one another, the match and the guest; the first is
//! measured on its own with threads that do nothing else.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use conductor_config as config;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;
use crossbeam_channel::{Receiver, Sender, bounded};

use super::client::REST;
use crate::arguments::Arguments;
use crate::datagrams::Stamp;
use crate::measure::{median, quantile};
use crate::report::{Section, Unit};
use crate::scratch::Folder;

const PORT: &str = "in";
const SAMPLES: usize = 10_000;
const WARM_UP: usize = 500;
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);

const CONFIGURATION: &str = r#"
[advanced_settings]
listen_mode = "all"

[[global_mappings]]
trigger = { type = "OscMessage", address = "/in/fader" }
action = { type = "OscSend", target = "127.0.0.1:9", address = "/out/level", args = ["{value:i}"] }
"#;

/// Measures the stages.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let ports = SimulatedPorts::new();
    let (stamp, stamps) = bounded(1);
    let host = host(arguments, &home, &ports, stamp)?;
    let packet = rosc::encoder::encode(&rosc::OscPacket::Message(rosc::OscMessage {
        addr: "/in/fader".into(),
        args: vec![1.into()],
    }))?;
    let inside =
        samples(&stamps, || ports.play_osc(PORT, &packet).then_some(()).context("the simulated port is closed"))?;
    host.stop();

    let (first, stamps) = relay();
    let hops = samples(&stamps, || first.send(()).map_err(|_| anyhow!("the relay is gone")))?;

    let micros = Unit::Microseconds;
    section.beside("inside: packet to send, p50", median(&inside), micros, "two bare hops", median(&hops));
    let [inside, hops] = [inside, hops].map(|samples| quantile(&samples, 0.99));
    section.beside("inside: packet to send, p99", inside, micros, "two bare hops", hops);
    Ok(())
}

fn host(arguments: &Arguments, home: &Folder, ports: &SimulatedPorts, stamp: Sender<Instant>) -> Result<Host> {
    ports.plug(PORT, Direction::Input);
    let loaded = config::parse(CONFIGURATION, "bench.toml").map_err(|wrong| anyhow!(wrong.render(false)))?;
    let host = Host::builder()
        .home(home.path())
        .features(arguments.features()?)
        .backend(ports.backend())
        .datagrams(Box::new(Stamp(stamp)))
        .start(&loaded)?;
    let opened = host.subscribe();
    let start = Instant::now();
    while !ports.is_open(PORT) {
        if start.elapsed() > REPLY_TIMEOUT {
            bail!("the simulated port was not opened");
        }
        // Something happened, or it happened before this began to listen.
        let _ = opened.recv_timeout(Duration::from_millis(10));
    }
    Ok(host)
}

/// Two threads that hand a token on as the engine and a worker hand an event on.
fn relay() -> (Sender<()>, Receiver<Instant>) {
    let (first, engine) = bounded(1024);
    let (second, worker) = bounded(1024);
    let (stamp, stamps) = bounded(1);
    std::thread::spawn(move || engine.iter().try_for_each(|token| second.send(token)));
    std::thread::spawn(move || worker.iter().try_for_each(|()| stamp.send(Instant::now())));
    (first, stamps)
}

/// Microseconds from the push to the stamp, again and again.
fn samples(stamps: &Receiver<Instant>, mut push: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for sample in 0..WARM_UP + SAMPLES {
        let start = Instant::now();
        push()?;
        let sent = stamps.recv_timeout(REPLY_TIMEOUT).context("nothing was sent")?;
        std::thread::sleep(REST);
        if sample >= WARM_UP {
            samples.push(sent.duration_since(start).as_secs_f64() * 1e6);
        }
    }
    Ok(samples)
}
