//! PERF-8: how late gestures are found that nothing but time decides, while other events come in.

use std::time::Duration;

use anyhow::{Result, ensure};
use conductor_event::Cause;
use conductor_observer::Observation;

use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::stage::{PORTS, Stage};

/// A long press sends a message; when it is there, the host's clock is read.
const CONFIG: &str = r#"
[[global_mappings]]
trigger = { type = "LongPress", note = 60, duration_ms = 50 }
action = { type = "SendMidi", target = "synth", message_type = "CC", cc = 1, value = 1 }
[[global_mappings]]
trigger = { type = "CC", cc = 7 }
action = { type = "Suppress" }
"#;
const TIME: Duration = Duration::from_secs(6);

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let stage = Stage::new(CONFIG)?;
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
    // On the first port, a key goes down every 100 ms and up 80 ms later; elsewhere, knobs are turned.
    let mut down = false;
    let round = crate::stage::RATE / 10 / PORTS as u64 * PORTS as u64;
    stage.play(TIME, |index| match index % round {
        0 => {
            down = true;
            [0x90, 60, 100]
        }
        late if down && late.is_multiple_of(PORTS as u64) && late > round * 4 / 5 => {
            down = false;
            [0x80, 60, 0]
        }
        other => [0xB0, 7, (other % 128) as u8],
    });
    let arrivals = arrivals.join().map_err(|_| anyhow::anyhow!("the listener ended"))?;
    let due = found.join().map_err(|_| anyhow::anyhow!("the observer ended"))?;
    stage.host.stop();
    ensure!(arrivals.len() >= 20 && arrivals.len() == due.len(), "{} of {} came", arrivals.len(), due.len());
    let late: Vec<f64> =
        arrivals.iter().zip(&due).map(|(arrived, due)| arrived.saturating_sub(*due) as f64 / 1e6).collect();
    for (name, value) in [("p50", median(&late)), ("p99", quantile(&late, 0.99)), ("max", quantile(&late, 1.0))] {
        section.figure(format!("from deadline to the output, {name} of {}", late.len()), value, Unit::Milliseconds);
    }
    section.target("p99 lateness", quantile(&late, 0.99), Unit::Milliseconds, Limit::AtMost(1.0));
    Ok(())
}
