//! The control side: how fast the API answers, what events feel of those who watch them, what the record costs.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use conductor_api::server::Server;
use conductor_audit::caller::{Caller, Door, Scope};
use conductor_audit::{Chain, Entry, Kind};
use conductor_config as config;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;
use conductor_skills::library::Library;

use crate::arrivals::Arrivals;
use crate::measure::quantile;
use crate::report::{Section, Unit};
use crate::scratch::Folder;

/// Requests, each on a connection of its own.
const REQUESTS: usize = 2000;
/// Programs that watch.
const WATCHERS: usize = 50;
/// Time between events: a thousand a second.
const PACE: Duration = Duration::from_millis(1);
/// How long is played, with watchers and without, in turns.
const PLAYED: Duration = Duration::from_secs(2);
/// So many turns.
const TURNS: usize = 3;
/// Rows that are written and looked through, and how many are written at a time, as the keeper does under load.
const ROWS: (usize, usize) = (10_000, 100);
/// How long an answer may take before it counts as missing.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

/// Forwards a knob, so that an event's way out can be seen.
const SHOW: &str = "[[global_mappings]]\ntrigger = { type = \"CC\", cc = 7 }\naction = { type = \"MidiForward\", target = \"synth\" }\n";

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let ports = SimulatedPorts::new();
    ports.plug("knobs", Direction::Input);
    ports.plug("synth", Direction::Output);
    let loaded = config::parse(SHOW, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
    let host = Host::builder().home(home.path()).backend(ports.backend()).listen_to_all().start(&loaded)?;
    let host = Arc::new(host);
    let server = Server::start(home.path(), Arc::clone(&host), Library::new(None, None), None)?;
    let deadline = Instant::now() + REPLY_TIMEOUT;
    while !ports.is_open("knobs") {
        ensure!(Instant::now() < deadline, "the port was not opened");
        std::thread::sleep(Duration::from_millis(1));
    }
    answers(home.path(), section)?;
    watchers(home.path(), &ports, section)?;
    drop(server);
    // A connection that is not quite gone would still have it; then it ends with this process.
    if let Some(host) = Arc::into_inner(host) {
        host.stop();
    }
    record(section)
}

fn answers(home: &Path, section: &mut Section<'_>) -> Result<()> {
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let start = Instant::now();
        let mut answer = Vec::new();
        ask(home, "/v1/status", "connection: close\r\n")?.read_to_end(&mut answer)?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
        ensure!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
        let name = format!("GET /v1/status on a new connection, {name}");
        section.figure(name, quantile(&times, share), Unit::Microseconds);
    }
    Ok(())
}

fn ask(home: &Path, path: &str, head: &str) -> Result<UnixStream> {
    let mut stream = UnixStream::connect(home.join("conductor.sock"))?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: bench\r\n{head}\r\n").as_bytes())?;
    Ok(stream)
}

fn watchers(home: &Path, ports: &SimulatedPorts, section: &mut Section<'_>) -> Result<()> {
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    let arrivals = Arrivals::at(ports, "synth")?;
    for _ in 0..TURNS {
        alone.extend(play(ports, &arrivals)?);
        let (done, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        let (done, bytes) = (&done, &bytes);
        let played = std::thread::scope(|scope| {
            let mut watching = Vec::new();
            for _ in 0..WATCHERS {
                let mut stream = ask(home, "/v1/events", "")?;
                stream.set_read_timeout(Some(Duration::from_millis(100)))?;
                watching.push(scope.spawn(move || {
                    let mut some = [0; 16 * 1024];
                    while !done.load(Ordering::Relaxed) {
                        // Nothing comes while nothing happens.
                        let read = stream.read(&mut some).unwrap_or(0);
                        bytes.fetch_add(read as u64, Ordering::Relaxed);
                    }
                }));
            }
            let played = play(ports, &arrivals);
            done.store(true, Ordering::Relaxed);
            played
        })?;
        seen.push(bytes.load(Ordering::Relaxed) as f64 / WATCHERS as f64 / played.len() as f64);
        watched.extend(played);
    }
    // A line about an event has more than this many bytes: else there was no watcher.
    ensure!(seen.iter().all(|bytes| *bytes > 40.0), "the watchers saw too little: {seen:?} bytes an event");
    for (share, name) in [(0.5, "p50"), (0.99, "p99"), (1.0, "max")] {
        let [watched, alone] = [&watched, &alone].map(|times| quantile(times, share));
        let name = format!("an event, in to out, with {WATCHERS} who watch 1000 a second, {name}");
        section.beside(name, watched, Unit::Microseconds, "no watcher", alone);
    }
    Ok(())
}

/// Microseconds from each event's way in to its way out.
fn play(ports: &SimulatedPorts, arrivals: &Arrivals) -> Result<Vec<f64>> {
    let (start, mut times, mut due) = (Instant::now(), Vec::new(), Duration::ZERO);
    while start.elapsed() < PLAYED {
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        due += PACE;
        let played = Instant::now();
        ports.play("knobs", &[0xB0, 7, (times.len() % 128) as u8]);
        let sent = arrivals.next(REPLY_TIMEOUT)?;
        times.push(sent.duration_since(played).as_secs_f64() * 1e6);
    }
    Ok(times)
}

fn record(section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    let chain = Chain::at(home.path());
    let (rows, at_once) = ROWS;
    let agent = Caller::client(Door::McpSocket, Scope::Agent, Some("bench"));
    let entries: Vec<Entry> =
        (0..at_once).map(|n| Entry::new(Kind::Tool, "call", &agent, "tool").with("args", n)).collect();
    let start = Instant::now();
    for _ in 0..rows / at_once {
        chain.append(&entries)?;
    }
    section.figure(
        format!("writing {rows} rows on record, {at_once} at a time"),
        milliseconds(start),
        Unit::Milliseconds,
    );
    let start = Instant::now();
    let verdict = chain.verify()?;
    ensure!(verdict.wrong.is_none() && verdict.rows == rows as i64, "{verdict:?}");
    section.figure(format!("verifying {rows} rows"), milliseconds(start), Unit::Milliseconds);
    let start = Instant::now();
    chain.append(&entries[..1])?;
    section.figure("one row more, on the disk", milliseconds(start), Unit::Milliseconds);
    Ok(())
}

/// Milliseconds since then.
fn milliseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
