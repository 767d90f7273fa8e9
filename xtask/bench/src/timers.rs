//! PERF-8: how late gestures are found that nothing but time decides, while other events come in.

use std::time::Duration;

use anyhow::{Result, ensure};
use conductor_event::Cause;
use conductor_observer::Observation;

use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::stage::{PORTS, RATE, Stage};

/// What a knob does: nothing. A long press of any of the keys sends a message; when it is there, the host's clock is read.
const KNOB: &str = r#"
[[global_mappings]]
trigger = { type = "CC", cc = 7 }
action = { type = "Suppress" }
"#;
/// Keys that are played one after the other, so that a run has enough presses to tell their p99 from the longest.
const KEYS: u64 = 10;
/// The note of the first.
const FIRST: u64 = 60;
/// Events from one key to the next, 9.6 ms on all ports: each is pressed again after 96 ms.
const STEP: u64 = RATE / 100 / PORTS as u64 * PORTS as u64;
/// A key is let go after so many steps, 76.8 ms: later than the 50 ms of a long press.
const HELD: u64 = 8;
const TIME: Duration = Duration::from_secs(6);

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let stage = Stage::new(&configuration())?;
    let sent = stage.ports.sent("synth").ok_or_else(|| anyhow::anyhow!("there is no output"))?;
    let clock = stage.host.clock();
    let observations = stage.host.subscribe();
    // Taken all the time: a reader that falls behind misses some.
    let found = std::thread::spawn(move || {
        let mut due = Vec::new();
        while let Ok(observation) = observations.recv_timeout(Duration::from_secs(2)) {
            match observation {
                Observation::Event(record) if record.cause == Cause::Gesture => due.push(record.at),
                _ => {}
            }
        }
        due
    });
    // When each message arrived, on a thread that does nothing else.
    let arrivals = std::thread::spawn(move || {
        let mut arrivals = Vec::new();
        while sent.recv_timeout(Duration::from_secs(2)).is_ok() {
            arrivals.push(clock.now());
        }
        arrivals
    });
    // On the first port, keys go down and up; elsewhere, knobs are turned.
    stage.play(TIME, |index| {
        let (step, event) = (index / STEP, index % STEP);
        match event {
            0 => [0x90, key(step), 100],
            _ if event == PORTS as u64 && step >= HELD => [0x80, key(step - HELD), 0],
            other => [0xB0, 7, (other % 128) as u8],
        }
    });
    let arrivals = arrivals.join().map_err(|_| anyhow::anyhow!("the listener ended"))?;
    let due = found.join().map_err(|_| anyhow::anyhow!("the observer ended"))?;
    stage.host.stop();
    ensure!(arrivals.len() >= 500 && arrivals.len() == due.len(), "{} of {} came", arrivals.len(), due.len());
    let late: Vec<f64> =
        arrivals.iter().zip(&due).map(|(arrived, due)| arrived.saturating_sub(*due) as f64 / 1e6).collect();
    for (name, value) in [("p50", median(&late)), ("p99", quantile(&late, 0.99)), ("max", quantile(&late, 1.0))] {
        section.figure(format!("from deadline to the output, {name} of {}", late.len()), value, Unit::Milliseconds);
    }
    section.target("p99 lateness", quantile(&late, 0.99), Unit::Milliseconds, Limit::AtMost(1.0));
    Ok(())
}

fn configuration() -> String {
    let long_press = |step| {
        let note = key(step);
        format!(
            r#"
[[global_mappings]]
trigger = {{ type = "LongPress", note = {note}, duration_ms = 50 }}
action = {{ type = "SendMidi", target = "synth", message_type = "CC", cc = 1, value = 1 }}
"#
        )
    };
    (0..KEYS).map(long_press).chain([KNOB.into()]).collect()
}

/// The note of the key that is pressed at this step.
fn key(step: u64) -> u8 {
    (FIRST + step % KEYS) as u8
}
