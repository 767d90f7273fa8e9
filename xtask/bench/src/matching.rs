//! PERF-1: what a match costs, with few rules and with very many, beside the original engine.

mod original;
mod rules;

use std::hint::black_box;

use anyhow::{Result, anyhow};
use conductor_engine::RuleSet;
use conductor_event::{DeviceId, Event, MidiMessage, ModeIx};

use crate::allocations;
use crate::measure::{Work, nanos_per_call_of_copies};
use crate::report::{Limit, Section, Unit};
use original::Original;
use rules::{Spot, Velocity};

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
/// How many different events go round. Enough that neither they nor what they meet stay in the fastest cache.
const EVENTS: usize = 4096;
/// How many copies of each table are measured.
const COPIES: usize = 5;

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    for size in SIZES {
        let rules = rules::usual(size);
        let [spots, quiet] =
            [Velocity::Enough, Velocity::TooLow].map(|velocity| rules::events(&rules, EVENTS, velocity));
        let copies = copies(&rules)?;
        let one = &spots[..1];

        let works = copies.iter().map(|(ours, original)| {
            [ours.work(one), ours.work(&spots), ours.work(&quiet), original.work(&spots), original.work(&quiet)]
        });
        let [same, hit, miss, peer_hit, peer_miss] = nanos_per_call_of_copies(works.collect());
        let rules = format!("{size} rules");
        section.figure(format!("{rules}, hit, the same event again and again"), same, Unit::Nanoseconds);
        section.beside(
            format!("{rules}, hit, {EVENTS} different events"),
            hit,
            Unit::Nanoseconds,
            original::NAME,
            peer_hit,
        );
        section.beside(
            format!("{rules}, miss, {EVENTS} different events"),
            miss,
            Unit::Nanoseconds,
            original::NAME,
            peer_miss,
        );

        let limit = match size {
            10 => Some(60.0),
            100_000 => Some(90.0),
            _ => None,
        };
        if let Some(limit) = limit {
            section.target(format!("hit at {rules}"), hit, Unit::Nanoseconds, Limit::AtMost(limit));
            section.target(format!("miss at {rules}"), miss, Unit::Nanoseconds, Limit::AtMost(limit));
            let allocations = [&spots, &quiet]
                .map(|spots| allocations::per_call(EVENTS as u64, &mut copies[0].0.work(spots)))
                .iter()
                .sum();
            section.target(format!("allocations at {rules}"), allocations, Unit::Count, Limit::AtMost(0.0));
        }
    }
    first_and_last(section)?;
    devices(section)
}

/// The same number of rules, dealt to one device or to many.
fn devices(section: &mut Section<'_>) -> Result<()> {
    for devices in [1, 16, 64] {
        for size in SIZES.into_iter().filter(|size| *size >= devices) {
            let rules = rules::dealt(size, devices);
            let spots = rules::events(&rules, EVENTS, Velocity::Enough);
            let [hit, peer] = hits(&copies(&rules)?, &spots);
            let what = format!("{size} rules for {devices} devices, hit");
            section.beside(what, hit, Unit::Nanoseconds, original::NAME, peer);
        }
    }
    Ok(())
}

/// One table of 2 048 rules, which a linear scan goes through from the first to the last.
fn first_and_last(section: &mut Section<'_>) -> Result<()> {
    let rules = rules::usual(rules::TABLE);
    let copies = copies(&rules)?;
    for (name, index) in [("first", 0), ("last", rules::TABLE - 1)] {
        let spot = [Spot::of(index).event(Velocity::Enough)];
        let [hit, peer] = hits(&copies, &spot);
        let what = format!("{} rules for one device, the {name} is hit", rules::TABLE);
        section.beside(what, hit, Unit::Nanoseconds, original::NAME, peer);
    }
    Ok(())
}

/// Both engines with these rules, each copy elsewhere in memory.
fn copies(rules: &[Spot]) -> Result<Vec<(Ours, Original)>> {
    (0..COPIES).map(|_| Ok((Ours::new(rules)?, Original::new(rules)))).collect()
}

/// What a match of these events costs: here, and in the original engine.
fn hits(copies: &[(Ours, Original)], events: &[rules::Played]) -> [f64; 2] {
    nanos_per_call_of_copies(copies.iter().map(|(ours, original)| [ours.work(events), original.work(events)]).collect())
}

/// The engine with its rules.
struct Ours(RuleSet<usize>);

impl Ours {
    fn new(spots: &[Spot]) -> Result<Self> {
        let compiled = conductor_engine::compile(rules::source(spots));
        compiled.map(Self).map_err(|errors| anyhow!("the rules are wrong: {errors:?}"))
    }

    /// Matches one event after the other.
    fn work(&self, events: &[rules::Played]) -> Work<'_> {
        let events: Vec<(ModeIx, DeviceId, Event)> = events
            .iter()
            .map(|played| {
                let Spot { mode, device, channel, note } = played.spot;
                let message = MidiMessage::NoteOn { channel, note, velocity: played.velocity };
                (ModeIx(mode), DeviceId::new(&rules::device(device)), message.into())
            })
            .collect();
        let mut next = (0..events.len()).cycle();
        Box::new(move |calls| {
            for index in next.by_ref().take(calls as usize) {
                let (mode, device, event) = &events[index];
                for found in self.0.matches(*mode, black_box(device), black_box(event)) {
                    black_box(found.rule.action);
                }
            }
        })
    }
}
