//! What the events of one mapping feel of others: of a feature that is slow, hangs or traps, on another port or on the
//! same one, of reloads, of clients that watch.
//!
//! Each has a host of its own, of which the same round trip is measured in turns, beside the one of a host without
//! neighbours.

use std::fmt;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use conductor_api::client::Client as ApiClient;
use conductor_api::types::StreamQuery;

use crate::arguments::Arguments;
use crate::components;
use crate::measure::{median, quantile};
use crate::process;
use crate::report::{Section, Unit};
use crate::round_trip::client::Client;
use crate::round_trip::peers::{self, Peer};
use crate::scratch::Folder;

/// How long a turn lasts, and how many there are.
const TURN: (Duration, usize) = (Duration::from_secs(2), 3);
/// Time between two events of a neighbour.
const INTERVAL: Duration = Duration::from_millis(10);
/// Clients that watch the event stream.
const CLIENTS: usize = 50;
/// Calls for one event, each of which is just short enough to be made by the port's thread.
const NEARLY_SLOW: usize = 8;

/// Who else is there.
#[derive(Clone, Copy, PartialEq)]
enum Neighbour {
    None,
    /// A feature whose calls misbehave so, with events of the port that is measured or of another one.
    Feature {
        how: &'static str,
        same_port: bool,
    },
    /// Several calls, each of which is just short enough, for each event of the same port.
    NearlySlow,
    /// Clients that watch every event.
    Clients,
    /// A reload every second.
    Reloads,
}

const NEIGHBOURS: [Neighbour; 12] = [
    Neighbour::None,
    Neighbour::Feature { how: "slow", same_port: false },
    Neighbour::Feature { how: "slow", same_port: true },
    Neighbour::Feature { how: "loop", same_port: false },
    Neighbour::Feature { how: "loop", same_port: true },
    Neighbour::Feature { how: "late-loop", same_port: false },
    Neighbour::Feature { how: "late-loop", same_port: true },
    Neighbour::Feature { how: "trap", same_port: false },
    Neighbour::Feature { how: "trap", same_port: true },
    Neighbour::NearlySlow,
    Neighbour::Clients,
    Neighbour::Reloads,
];

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no neighbour"),
            Self::Feature { how, same_port } => {
                let what = match *how {
                    "slow" => "a feature that takes 12 ms",
                    "loop" => "a feature that hangs",
                    "late-loop" => "a feature that hangs after 10 000 calls",
                    _ => "a feature that traps",
                };
                write!(f, "{what}, {} port", if *same_port { "same" } else { "other" })
            }
            Self::NearlySlow => write!(f, "{NEARLY_SLOW} calls of 85 µs for an event, same port"),
            Self::Clients => write!(f, "{CLIENTS} clients of the event stream"),
            Self::Reloads => f.write_str("a reload every second"),
        }
    }
}

/// A host, and what was measured of it.
struct Host {
    neighbour: Neighbour,
    peer: Peer,
    home: Folder,
    client: Client,
    /// Where the neighbour's events go.
    beside: u16,
    /// Microseconds; of each turn.
    p99: Vec<f64>,
    longest: f64,
}

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let mut hosts =
        NEIGHBOURS.iter().map(|neighbour| Host::start(arguments, *neighbour)).collect::<Result<Vec<_>>>()?;
    for round in 0..=TURN.1 {
        for host in &mut hosts {
            let samples = host.turn()?;
            // The first turn is the warm-up, but for what happens once.
            host.longest = samples.iter().copied().fold(host.longest, f64::max);
            if round > 0 {
                host.p99.push(quantile(&samples, 0.99));
            }
        }
    }
    let alone = median(&hosts[0].p99);
    let longest = hosts[0].longest;
    section.figure("round trip, p99, no neighbour", alone, Unit::Microseconds);
    for Host { neighbour, p99, longest: its, .. } in hosts.iter().skip(1) {
        section.beside(format!("p99, {neighbour}"), median(p99), Unit::Microseconds, "none", alone);
        section.beside(format!("longest, {neighbour}"), its / 1e3, Unit::Milliseconds, "none", longest / 1e3);
    }
    Ok(())
}

impl Host {
    fn start(arguments: &Arguments, neighbour: Neighbour) -> Result<Self> {
        let (home, mut client) = (Folder::new()?, Client::new()?);
        let [port, other] = [peers::free_port()?, peers::free_port()?];
        let configuration = configuration(arguments.features()?, neighbour, client.port()?, [port, other])?;
        let (process, _) =
            process::conductor(arguments.conductor()?, arguments.features()?, home.path(), &configuration)?;
        let peer = Peer::conductor(process, port);
        client.wait_for(&peer)?;
        let beside = match neighbour {
            Neighbour::Feature { same_port: false, .. } => other,
            _ => port,
        };
        Ok(Self { neighbour, peer, home, client, beside, p99: Vec::new(), longest: 0.0 })
    }

    /// Microseconds from each event to its answer at the socket that asked, with the neighbour at work meanwhile.
    fn turn(&mut self) -> Result<Vec<f64>> {
        let Self { neighbour, peer, home, client, beside, .. } = self;
        let (done, port, home) = (&AtomicBool::new(false), *beside, home.path());
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            match neighbour {
                Neighbour::None => {}
                Neighbour::Feature { how, .. } => {
                    let events = if *how == "late-loop" { 100 } else { 1 };
                    threads.push(scope.spawn(move || play(port, events, done)));
                }
                Neighbour::NearlySlow => threads.push(scope.spawn(move || play(port, 1, done))),
                Neighbour::Clients => threads.extend((0..CLIENTS).map(|_| scope.spawn(move || watch(home, done)))),
                Neighbour::Reloads => threads.push(scope.spawn(move || reload(home, done))),
            }
            let (start, mut samples) = (Instant::now(), Vec::new());
            let measured = loop {
                match client.ask(peer) {
                    Ok(trip) => samples.push(trip.arrived.as_secs_f64() * 1e6),
                    Err(error) => break Err(error),
                }
                if start.elapsed() >= TURN.0 {
                    break Ok(samples);
                }
            };
            done.store(true, Ordering::Relaxed);
            let gone = |_| Err(anyhow!("a thread panicked"));
            let ended: Result<Vec<()>> = threads.into_iter().map(|it| it.join().unwrap_or_else(gone)).collect();
            ended.and(measured)
        })
    }
}

/// Sends so many of the neighbour's events every [`INTERVAL`].
fn play(port: u16, events: usize, done: &AtomicBool) -> Result<()> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    while !done.load(Ordering::Relaxed) {
        for _ in 0..events {
            socket.send_to(b"/beside\0,\0\0\0", ("127.0.0.1", port))?;
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

fn watch(home: &Path, done: &AtomicBool) -> Result<()> {
    ApiClient::new(home).events(&StreamQuery::default(), |_| !done.load(Ordering::Relaxed)).context("a client's stream")
}

fn reload(home: &Path, done: &AtomicBool) -> Result<()> {
    while !done.load(Ordering::Relaxed) {
        ApiClient::new(home).reload().context("a reload")?;
        let until = Instant::now() + Duration::from_secs(1);
        while !done.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(INTERVAL);
        }
    }
    Ok(())
}

/// One rule that is measured, and the neighbours' on the same port or on another one.
fn configuration(features: &Path, neighbour: Neighbour, answers: u16, ports: [u16; 2]) -> Result<String> {
    let mut text = format!(
        "[[global_mappings]]\ntrigger = {{ type = \"OscMessage\", address = \"/in/fader\" }}\n\
         action = {{ type = \"OscSend\", target = \"127.0.0.1:{answers}\", address = \"/out/level\", args = [\"{{value:i}}\"] }}\n"
    );
    for (alias, port) in ["in", "other"].iter().zip(ports) {
        text += &format!(
            "[[bindings]]\nalias = \"{alias}\"\nprotocol = \"osc\"\ninput = {{ host = \"127.0.0.1\", port = {port} }}\n"
        );
    }
    let how = match neighbour {
        Neighbour::Feature { how, .. } => how,
        Neighbour::NearlySlow => "nearly-slow",
        _ => return Ok(text),
    };
    let count = if neighbour == Neighbour::NearlySlow { NEARLY_SLOW } else { 1 };
    let file = features.join("tests/hostile.wasm");
    text += &components::installed("hostile", &file, "")?;
    for number in 0..count {
        text += &format!(
            "[[global_mappings]]\ntrigger = {{ type = \"OscMessage\", address = \"/beside\" }}\n\
             action = {{ type = \"Misbehave\", how = \"{how}\", number = {number} }}\n"
        );
    }
    Ok(text)
}
