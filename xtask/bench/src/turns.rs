//! What events of a controller feel of many turns of conversations under way at once: the same events through the engine and
//! an action, without turns and beside them, alternating in one run.
//!
//! The turns are as those of PERF-7. Each client begins the next one when its last one has ended, so that as many are under
//! way all the time. An echo beside as many turns shows what of the delay is this machine's.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use conductor_api::client::Client as Api;

use crate::arguments::Arguments;
use crate::measure::{median, quantile};
use crate::models::{self, MANY, Scene};
use crate::report::{Section, Unit};
use crate::round_trip::client::Client as Player;
use crate::round_trip::peers::{self, Peer};

/// For how long events are played in each round to each contender, and how many rounds there are.
const TURN: (Duration, usize) = (Duration::from_secs(2), 5);
/// How long all turns have to begin.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(20);
/// What is reported of the delays of a round.
const QUANTILES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// Measures the row.
pub fn measure(arguments: &Arguments, section: &mut Section<'_>) -> Result<()> {
    let mut scene = Scene::start(arguments.conductor()?, arguments.features()?)?;
    let Scene { api, player, peer, .. } = &mut scene;
    let echo = peers::echo()?;
    player.wait_for(&echo)?;
    // Of each contender: of each quantile, and of events a second, one sample a round.
    let mut delays: [[Vec<f64>; QUANTILES.len()]; 3] = Default::default();
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut ended = 0;
    for round in 0..=TURN.1 {
        let alone = models::played(player, peer, TURN.0, || false)?;
        let (beside, turns) = beside_turns(api, player, peer)?;
        let (echoed, _) = beside_turns(api, player, &echo)?;
        // The first round is the warm-up.
        if round == 0 {
            continue;
        }
        ended += turns;
        for ((trips, delays), rates) in [alone, beside, echoed].iter().zip(&mut delays).zip(&mut rates) {
            rates.push(trips.len() as f64 / TURN.0.as_secs_f64());
            for ((_, share), delays) in QUANTILES.iter().zip(delays) {
                delays.push(quantile(trips, *share));
            }
        }
    }
    for (at, (name, _)) in QUANTILES.iter().enumerate() {
        let [alone, beside, echoed] = delays.each_ref().map(|delays| median(&delays[at]));
        let row = format!("delay of an event, {MANY} turns beside, {name}, median of {} rounds", TURN.1);
        section.beside(row.as_str(), beside, Unit::Microseconds, "without turns", alone);
        section.beside(row.as_str(), beside, Unit::Microseconds, "an echo beside as many", echoed);
    }
    // The pace is 1000 a second; one that a host can't keep would show delays of fewer events.
    let [alone, beside, _] = rates.each_ref().map(|rates| median(rates));
    section.beside(format!("events a second, {MANY} turns beside"), beside, Unit::Count, "without turns", alone);
    section.figure(format!("turns that ended beside the events of {} rounds", TURN.1), ended as f64, Unit::Count);
    Ok(())
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
