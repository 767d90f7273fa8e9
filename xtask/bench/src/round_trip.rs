//! PERF-2: from a datagram that comes in to the one that goes out, through a rule and a guest.
//!
//! The process is measured as it runs for people, from outside, beside the least that a process can do (an
//! echo) and, where it is given, MIDIMonster. Where the time goes is measured inside of this process.

pub mod client;
pub mod peers;
mod stages;
mod stamped;

use std::time::Duration;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::scratch::Folder;
use client::{Client, Delivered};
use peers::Peer;

/// Turns that contenders take at being asked one message at a time.
const ROUNDS: usize = 40;
/// Messages in a turn.
const MESSAGES: usize = 250;
/// Turns at being sent bursts.
const BURST_ROUNDS: usize = 2;

/// Ports of the hosts that have several.
const PORTS: [usize; 2] = [4, 16];

/// What came out for one contender.
#[derive(Default)]
struct Results {
    /// Microseconds from sending to having the answer.
    round_trips: Vec<f64>,
    asked: u64,
    asked_time: Duration,
    delivered: Delivered,
    delivered_time: Duration,
}

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let mut client = Client::new()?;
    let homes = [Folder::new()?, Folder::new()?];
    let answers = client.port()?;
    let host = |home: &Folder, ports| {
        peers::conductor(arguments.conductor()?, arguments.features()?, home.path(), answers, ports)
    };
    let mut peers = vec![peers::echo()?, host(&home, 1)?];
    for (home, ports) in homes.iter().zip(PORTS) {
        peers.push(host(home, ports)?);
    }
    match &arguments.midimonster {
        Some(program) => peers.push(peers::midimonster(program, home.path(), answers)?),
        None => {
            section.missing("MIDIMonster", "build it as `--help` says, and name its program: `--midimonster PROGRAM`")
        }
    }
    let mut results: Vec<Results> = peers.iter().map(|_| Results::default()).collect();
    for peer in &peers {
        client.wait_for(peer)?;
    }
    for peer in &peers {
        one_at_a_time(&mut client, peer, &mut Results::default())?;
    }
    for _ in 0..ROUNDS {
        for (peer, results) in peers.iter().zip(&mut results) {
            one_at_a_time(&mut client, peer, results)?;
        }
    }
    for _ in 0..BURST_ROUNDS {
        for (peer, results) in peers.iter().zip(&mut results) {
            bursts(&mut client, peer, results)?;
        }
    }
    report(&peers, &results, section);
    // Its own threads would compete with what is measured inside of this process.
    drop(peers);
    stages::measure(arguments, section)
}

fn one_at_a_time(client: &mut Client, peer: &Peer, results: &mut Results) -> Result<()> {
    let before = peer.process.processor_time()?;
    for _ in 0..MESSAGES {
        results.round_trips.push(client.ask(peer)?.taken.as_secs_f64() * 1e6);
    }
    results.asked += MESSAGES as u64;
    results.asked_time += peer.process.processor_time()?.saturating_sub(before);
    Ok(())
}

fn bursts(client: &mut Client, peer: &Peer, results: &mut Results) -> Result<()> {
    let before = peer.process.processor_time()?;
    results.delivered += client.bursts(peer)?;
    results.delivered_time += peer.process.processor_time()?.saturating_sub(before);
    Ok(())
}

impl Results {
    fn asked_each(&self) -> f64 {
        self.asked_time.as_secs_f64() * 1e6 / self.asked as f64
    }

    /// Per answer: a peer that answers several messages with one has less to do.
    fn delivered_each(&self) -> f64 {
        self.delivered_time.as_secs_f64() * 1e6 / self.delivered.came as f64
    }
}

fn report(peers: &[Peer], results: &[Results], section: &mut Section<'_>) {
    let [echo, ours, others @ ..] = results else { return };
    let micros = Unit::Microseconds;
    let mut beside = |what: &str, figure: &dyn Fn(&Results) -> f64, unit: Unit| {
        for (peer, theirs) in peers.iter().zip(results) {
            match peer.addresses.len() {
                1 if peer.name == peers::CONDUCTOR => {}
                1 => section.beside(what, figure(ours), unit, peer.name, figure(theirs)),
                ports => {
                    section.beside(format!("{what}, {ports} ports"), figure(theirs), unit, "one port", figure(ours))
                }
            }
        }
    };
    beside("round trip, p50", &|results| median(&results.round_trips), micros);
    beside("round trip, p99", &|results| quantile(&results.round_trips, 0.99), micros);
    beside("processor time per message, one at a time", &Results::asked_each, micros);
    beside("processor time per answer, 12 000/s in bursts of 64", &Results::delivered_each, micros);
    beside("answers to 12 000/s in bursts of 64", &|results| results.delivered.percent(), Unit::Percent);

    let added = median(&ours.round_trips) - median(&echo.round_trips);
    section.target("round trip, p50, more than an echo's", added, micros, Limit::AtMost(3.0));
    for (peer, other) in peers.iter().skip(2).zip(others).filter(|(peer, _)| peer.name != peers::CONDUCTOR) {
        let limit = |other: f64| Limit::AtMost(other);
        let what = |per: &str| format!("processor time per {per}, {}'s", peer.name);
        section.target(what("message, singly"), ours.asked_each(), micros, limit(other.asked_each()));
        section.target(what("answer, bursts"), ours.delivered_each(), micros, limit(other.delivered_each()));
    }
    let delivered = ours.delivered.percent();
    section.target("discrete events delivered", delivered, Unit::Percent, Limit::AtLeast(100.0));
}
