//! How regular the MIDI clock is that goes out, while other events come in, beside a bare timer in the same time.
//!
//! Both make a pulse 48 times a second and hand it to a thread of its own, which reads the time. How late a pulse is counts
//! from the one that was least late: that is the grid.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::stage::Stage;

/// A clock that goes out, and rules that something is played on meanwhile.
const CONFIG: &str = r#"
[clock]
tempo = 120
outputs = ["synth"]
[[global_mappings]]
trigger = { type = "CC", cc = 7 }
action = { type = "Suppress" }
"#;
const TIME: Duration = Duration::from_secs(6);
/// From one pulse to the next, in seconds: 24 a beat, two beats a second.
const PULSE: f64 = 1.0 / 48.0;
const TIMER: &str = "a bare timer";

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let stage = Stage::new(CONFIG)?;
    let sent = stage.ports.sent("synth").ok_or_else(|| anyhow!("there is no output"))?;
    let start = Instant::now();
    let pulses = std::thread::spawn(move || {
        let mut arrivals = Vec::new();
        while let Ok(message) = sent.recv_timeout(Duration::from_secs(2)) {
            if message == [0xF8] {
                arrivals.push(start.elapsed().as_secs_f64());
            }
        }
        arrivals
    });
    let (tick, ticks) = crossbeam_channel::unbounded();
    let timer = std::thread::spawn(move || {
        for number in 1_u32.. {
            let due = start + Duration::from_secs_f64(PULSE * f64::from(number));
            if due > start + TIME {
                return;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let _ = tick.send(());
        }
    });
    let bare = std::thread::spawn(move || ticks.iter().map(|()| start.elapsed().as_secs_f64()).collect::<Vec<_>>());
    stage.play(TIME, |index| [0xB0, 7, (index % 128) as u8]);
    let ended = || anyhow!("a listener ended");
    timer.join().map_err(|_| ended())?;
    stage.host.stop();
    let (pulses, bare) = (pulses.join().map_err(|_| ended())?, bare.join().map_err(|_| ended())?);
    // At least most of them: 6 seconds have 288.
    ensure!(pulses.len() >= 250 && bare.len() >= 250, "{} pulses, {} ticks of the timer", pulses.len(), bare.len());
    let (ours, theirs) = (late(&pulses), late(&bare));
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
        let what = format!("jitter of {} pulses, {name}", ours.len());
        section.beside(what, quantile(&ours, share), Unit::Milliseconds, TIMER, quantile(&theirs, share));
    }
    section.figure("from one pulse to the next, the median", median(&pauses(&pulses)), Unit::Milliseconds);
    section.target("p99 jitter", quantile(&ours, 0.99), Unit::Milliseconds, Limit::AtMost(1.0));
    Ok(())
}

/// How late each is on the grid, in ms.
fn late(arrivals: &[f64]) -> Vec<f64> {
    let offsets: Vec<f64> = arrivals.iter().zip(0_u32..).map(|(at, number)| at - PULSE * f64::from(number)).collect();
    let least = offsets.iter().copied().fold(f64::INFINITY, f64::min);
    offsets.iter().map(|offset| (offset - least) * 1e3).collect()
}

/// The pauses between them, in ms.
fn pauses(arrivals: &[f64]) -> Vec<f64> {
    arrivals.windows(2).map(|pair| (pair[1] - pair[0]) * 1e3).collect()
}
