//! PERF-9: how long a reload of 10 000 rules takes, and what events feel of it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::arrivals::Arrivals;
use crate::measure::{median, quantile};
use crate::report::{Limit, Section, Unit};
use crate::stage::Stage;

const RULES: usize = 10_000;
const RELOADS: usize = 20;
/// How often events are looked at without reloads and with them, in turns: a single pair differs by more than what
/// is looked for whenever the machine does something else.
const PAIRS: usize = 7;
/// For how long each time.
const RUN_TIME: Duration = Duration::from_secs(1);

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let config = config();
    let stage = Stage::new(&config)?;
    let mut times = (Vec::new(), Vec::new());
    // The first one finds nothing that is known.
    let start = Instant::now();
    stage.host.reload(&config, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
    let first = start.elapsed().as_secs_f64() * 1e3;
    for round in 0..RELOADS {
        let config = changed(&config, round);
        let start = Instant::now();
        conductor_config::parse(&config, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
        times.0.push(start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        stage.host.reload(&config, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
        times.1.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let arrivals = Arrivals::at(&stage.ports, "synth")?;
    let look = |config| delays(&stage, &arrivals, config);
    let pairs: Vec<(Vec<f64>, Vec<f64>)> =
        (0..PAIRS).map(|_| Ok((look(None)?, look(Some(&config))?))).collect::<Result<_>>()?;
    stage.host.stop();
    section.figure(format!("reading the text of {RULES} rules"), median(&times.0), Unit::Milliseconds);
    section.figure("the first reload", first, Unit::Milliseconds);
    section.figure("reload with one rule changed", median(&times.1), Unit::Milliseconds);
    let of = |share: f64, which: fn(f64, f64) -> f64| {
        let looks: Vec<f64> =
            pairs.iter().map(|(quiet, busy)| which(quantile(quiet, share), quantile(busy, share))).collect();
        median(&looks)
    };
    for (share, name) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
        section.beside(
            format!("an event, in to out, while reloading, {name}, median of {PAIRS} looks"),
            of(share, |_, busy| busy),
            Unit::Microseconds,
            "not reloading",
            of(share, |quiet, _| quiet),
        );
    }
    section.target(
        format!("reload of {RULES} rules, one changed"),
        median(&times.1),
        Unit::Milliseconds,
        Limit::AtMost(10.0),
    );
    let longer = of(0.99, |quiet, busy| busy - quiet);
    section.target(
        format!("delay by a reload, p99, median of {PAIRS} pairs"),
        longer,
        Unit::Microseconds,
        Limit::AtMost(100.0),
    );
    Ok(())
}

/// Microseconds from a note's way in to its way out, one after the other; with a
/// configuration, while it is reloaded again and again.
fn delays(stage: &Stage, arrivals: &Arrivals, config: Option<&str>) -> Result<Vec<f64>> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reloads = config.map(|config| {
            scope.spawn(|| {
                let mut reloads = 0_usize;
                while !done.load(Ordering::Relaxed)
                    && stage.host.reload(&changed(config, reloads), "config.toml").is_ok()
                {
                    reloads += 1;
                }
                reloads
            })
        });
        let (start, mut delays, mut key) = (Instant::now(), Vec::new(), 0);
        let mut lost = Ok(());
        while start.elapsed() < RUN_TIME && lost.is_ok() {
            let began = Instant::now();
            stage.ports.play("port 0", &[0xB0, 119, key]);
            lost = arrivals.next(Duration::from_secs(2)).map(|sent| {
                delays.push(sent.duration_since(began).as_secs_f64() * 1e6);
            });
            key = (key + 1) % 128;
            std::thread::sleep(Duration::from_micros(300));
        }
        done.store(true, Ordering::Relaxed);
        let reloads = reloads.map(|reloads| reloads.join());
        lost?;
        ensure!(!matches!(reloads, Some(Err(_) | Ok(0))), "nothing was reloaded");
        Ok(delays)
    })
}

/// The same with another note in its first rule, as a person changes one.
fn changed(config: &str, round: usize) -> String {
    config.replacen("note = 1,", &format!("note = {},", round % 128), 1)
}

/// As many rules, as a person would write them; one of them answers to the knob that is turned.
fn config() -> String {
    let mut text = String::new();
    for index in 1..RULES {
        let (device, channel, note) = (index / 2048, index / 128 % 16, index % 128);
        let _ = writeln!(
            text,
            "[[global_mappings]]\ntrigger = {{ type = \"Note\", note = {note}, channel = {channel}, device = \"device {device}\" }}\n\
             action = {{ type = \"MidiForward\", target = \"synth\" }}"
        );
    }
    text.push_str("[[global_mappings]]\ntrigger = { type = \"CC\", cc = 119 }\n");
    text.push_str("action = { type = \"MidiForward\", target = \"synth\" }\n");
    text
}
