//! A soak: 16 controllers at full speed, another one that comes and goes, a reload every second, an output that hangs
//! and one that fails; and in the end every discrete event was decided, every continuous value that gave way was counted, nothing
//! sounds and no key is down (ACT-2, CFG-4, ENG-8, ENG-10, ENG-11).
//!
//! The short form runs with the other tests and looks at no clock. `cargo xtask soak` runs the long one, which
//! looks at the memory, too.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod instruments;
mod memory;
mod player;
mod stage;

use std::time::{Duration, Instant};

use memory::Memory;
use player::Player;
use stage::Stage;

/// Events in a second, over all ports.
const RATE: u64 = 10_000;

/// Plays so many events, with a reload every so often, and looks at what came of it.
fn soak(events: u64, reload_every: Duration, memory: &mut Memory) {
    let stage = Stage::new();
    let mut player = Player::default();
    let (start, mut reloads, mut longest) = (Instant::now(), 0_u32, Duration::ZERO);
    while player.played() < events {
        let due = u64::try_from(start.elapsed().as_micros()).unwrap() * RATE / 1_000_000;
        while player.played() < due.min(events) {
            player.play(&stage.ports);
        }
        if start.elapsed() >= reload_every * (reloads + 1) {
            reloads += 1;
            stage.instruments.change(reloads);
            let began = Instant::now();
            stage.reload(reloads);
            longest = longest.max(began.elapsed());
            player.visit(&stage.ports);
            stage.host.set_mode(["Play", "Edit"][usize::from(reloads % 3 == 0)]);
            memory.look(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    player.let_go(&stage.ports);
    stage.instruments.mend();
    println!(
        "{} events in {:.1?}, {reloads} reloads, the longest took {longest:.1?}; {} visits",
        player.played(),
        start.elapsed(),
        player.visits(),
    );
    stage.check(&player);
    stage.end();
}

#[test]
fn a_moment_at_full_speed() {
    soak(30_000, Duration::from_millis(250), &mut Memory::default());
}

#[test]
#[ignore = "it takes minutes: `cargo xtask soak`"]
fn minutes_at_full_speed() {
    let minutes: u64 = std::env::var("CONDUCTOR_SOAK_MINUTES").map_or(10, |minutes| minutes.parse().unwrap());
    let mut memory = Memory::default();
    soak(minutes * 60 * RATE, Duration::from_secs(1), &mut memory);
    memory.is_flat();
}
