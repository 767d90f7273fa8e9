//! What events of a controller feel of many turns of conversations under way at once: the same events through the engine
//! and an action, without turns and beside them, alternating in one run.
//!
//! The turns are as those of PERF-7. Each client begins the next one when its last one has ended, so that as many are
//! under way all the time. An event is later than without if it took longer than all those of the same round that had no turns
//! beside them. What of it is this machine's an echo shows, which is scheduled as the host's threads are, without turns and
//! beside as many. What of it is chance a second look at the same events without turns shows, in each round.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use conductor_api::client::Client as Api;

use crate::arguments::Arguments;
use crate::measure::{give_way, median, quantile};
use crate::models::{self, MANY, Scene};
use crate::report::{Limit, Section, Unit};
use crate::round_trip::client::Client as Player;
use crate::round_trip::peers::{self, Peer};

/// For how long events are played in each round to each contender, and how many rounds there are.
const TURN: (Duration, usize) = (Duration::from_secs(2), 5);
/// How long all turns have to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(20);
/// How many events of a hundred are later by chance: of two looks at 2000 events that differ in nothing, one has the latest
/// event, and in a quarter of all cases the two latest.
const BY_CHANCE: f64 = 0.1;
/// What is reported of the delays of a round.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("longest", 1.0)];

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let mut scene = Scene::start(arguments.conductor()?, arguments.features()?)?;
    let Scene { api, player, peer, .. } = &mut scene;
    let echo = peers::echo()?;
    player.wait_for(&echo)?;
    // Of each contender: of each quantile, and of events a second, one sample a round.
    let mut delays: [[Vec<f64>; QUANTILES.len()]; 5] = Default::default();
    let mut rates: [Vec<f64>; 5] = Default::default();
    // The same of how many events are later than without turns: the host's, the echo's, and the host's without turns again.
    let mut late: [Vec<f64>; 3] = Default::default();
    let mut ended = 0;
    for round in 0..=TURN.1 {
        let alone = models::played(player, peer, TURN.0, || false)?;
        let echo_alone = models::played(player, &echo, TURN.0, || false)?;
        let (beside, turns) = beside_turns(api, player, peer)?;
        let (echo_beside, _) = beside_turns(api, player, &echo)?;
        let again = models::played(player, peer, TURN.0, || false)?;
        // The first round is the warm-up.
        if round == 0 {
            continue;
        }
        ended += turns;
        late[0].push(later(&beside, &alone));
        late[1].push(later(&echo_beside, &echo_alone));
        late[2].push(later(&again, &alone));
        let all = [alone, beside, again, echo_alone, echo_beside];
        for ((trips, delays), rates) in all.iter().zip(&mut delays).zip(&mut rates) {
            rates.push(trips.len() as f64 / TURN.0.as_secs_f64());
            for ((_, share), delays) in QUANTILES.iter().zip(delays) {
                delays.push(quantile(trips, *share));
            }
        }
    }
    for (at, (name, _)) in QUANTILES.iter().enumerate() {
        let [alone, beside, again, echo_alone, echo_beside] = delays.each_ref().map(|delays| median(&delays[at]));
        let row = format!("delay of an event, {MANY} turns beside, {name}, median of {} rounds", TURN.1);
        section.beside(row.as_str(), beside, Unit::Microseconds, "without turns", alone);
        section.beside(row.as_str(), beside, Unit::Microseconds, "an echo beside as many", echo_beside);
        let (times, echos) = (beside / alone, echo_beside / echo_alone);
        section.beside(format!("by that much later than without, {name}"), times, Unit::Times, "an echo", echos);
        section.figure(format!("the same without turns, looked at again, {name}"), again / alone, Unit::Times);
        let what = format!("delay of an event beside turns, {name}, of without");
        section.target(what, times, Unit::Times, Limit::AtMost(1.0));
    }
    let [ours, echos, by_chance] = late.each_ref().map(|shares| median(shares));
    section.figure("events later than all of without", ours, Unit::Percent);
    section.figure("the same of an echo", echos, Unit::Percent);
    section.figure("the same without turns, looked at again", by_chance, Unit::Percent);
    section.target("events later than all of without", ours, Unit::Percent, Limit::AtMost(BY_CHANCE));
    // The pace is 1000 a second; one that a host can't keep would show delays of fewer events.
    let [alone, beside, ..] = rates.each_ref().map(|rates| median(rates));
    section.beside(format!("events a second, {MANY} turns beside"), beside, Unit::Count, "without turns", alone);
    section.figure(format!("turns that ended beside the events of {} rounds", TURN.1), ended as f64, Unit::Count);
    Ok(())
}

/// How many of the events beside turns, of a hundred, took longer than every one without.
fn later(beside: &[f64], alone: &[f64]) -> f64 {
    let longest = quantile(alone, 1.0);
    beside.iter().filter(|took| **took > longest).count() as f64 / beside.len() as f64 * 100.0
}

/// Microseconds of each event's round trip to `peer` while [`MANY`] turns are under way, and how many of those ended.
fn beside_turns(api: &Api, player: &mut Player, peer: &Peer) -> Result<(Vec<f64>, usize)> {
    let (begun, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let talkers: Vec<_> = (0..MANY).map(|_| scope.spawn(|| talk(api, &begun, &done))).collect();
        let trips = all_begun(&begun).and_then(|()| models::played(player, peer, TURN.0, || false));
        done.store(true, Ordering::Relaxed);
        let mut ended = 0;
        for talker in talkers {
            ended += talker.join().map_err(|_| anyhow!("a client that talks panicked"))??;
        }
        Ok((trips?, ended))
    })
}

/// Has one turn after the other in a conversation until `done`. Returns how many.
fn talk(api: &Api, begun: &AtomicUsize, done: &AtomicBool) -> Result<usize> {
    // As many clients are other machines: what they need of this one is no part of what is measured.
    give_way();
    let conversation = api.begin_conversation(None)?.id;
    let mut ended = 0;
    while !done.load(Ordering::Relaxed) {
        let after = models::said(api, conversation)?;
        if ended == 0 {
            begun.fetch_add(1, Ordering::Relaxed);
        }
        models::heard(api, conversation, after)?;
        ended += 1;
    }
    Ok(ended)
}

/// Waits until each client's first turn has begun.
fn all_begun(begun: &AtomicUsize) -> Result<()> {
    let deadline = Instant::now() + BEGIN_TIMEOUT;
    while begun.load(Ordering::Relaxed) < MANY {
        ensure!(Instant::now() < deadline, "{} of {MANY} turns began", begun.load(Ordering::Relaxed));
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_later_if_none_without_turns_took_as_long() {
        let alone = [10.0, 40.0, 20.0];
        assert_eq!(later(&[15.0, 40.0, 39.0, 41.0], &alone), 25.0);
        assert_eq!(later(&[40.0, 1.0], &alone), 0.0);
        assert!(later(&[], &alone).is_nan(), "nothing was played");
    }
}
