//! A siege: a host with clients that misbehave at every door, and what its owner and its show notice of it.
//!
//! While [attackers] do what they can, OSC events go through the host to a listener, and the owner asks it
//! things over the Unix socket. What counts is that no event is lost, that the owner is answered, and that the memory
//! stays where it is.

pub mod attackers;

use std::fmt;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rosc::OscType;

use crate::conductor::Host;
use crate::home::Home;
use crate::osc::{self, Listener, Tablet, free_port, mappings};
use crate::wait;

/// KiB that the memory may grow by: what all budgets of all doors allow, and what allocators keep.
pub const MAX_GROWTH: u64 = 256 * 1024;
/// How long an answer to the owner may take, but for one in a hundred.
pub const MAX_P99: Duration = Duration::from_millis(100);
/// How long the owner waits for an answer before it counts as none.
const OWNER_TIMEOUT: Duration = Duration::from_secs(10);
/// What the owner asks.
const COMMANDS: [&str; 4] = ["/v1/status", "/v1/plans", "/v1/modes", "/v1/features"];

/// How long, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long it takes.
    pub duration: Duration,
    /// Events a second.
    pub rate: u32,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    /// KiB resident before it began.
    pub before: u64,
    /// KiB resident, at most, in the first sixth (the first minute of six).
    pub first: u64,
    /// The same in the last sixth.
    pub last: u64,
    /// KiB resident, at most.
    pub most: u64,
    /// How long the owner's commands took, sorted.
    pub took: Vec<Duration>,
    /// Commands of the owner that got no answer, or an error.
    pub unanswered: usize,
    /// Events that went in.
    pub sent: u32,
    /// Events that did not come out.
    pub lost: u32,
    /// Datagrams that the kernel dropped on the way to the host's port.
    pub dropped_before: u64,
    /// Datagrams that the kernel dropped on the way to the listener.
    pub dropped_after: u64,
    /// Connections that attackers made.
    pub connections: u64,
    /// Clients that the status names.
    pub named: usize,
}

impl Report {
    /// The time within which this share of the owner's commands was answered.
    pub fn percentile(&self, percent: usize) -> Duration {
        let at = self.took.len() * percent / 100;
        self.took.get(at.min(self.took.len().saturating_sub(1))).copied().unwrap_or_default()
    }

    /// Violations of what must hold under any load.
    pub fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.lost > 0 {
            broken.push(format!(
                "{} of {} events were lost; the kernel dropped {} before the host and {} behind it",
                self.lost, self.sent, self.dropped_before, self.dropped_after
            ));
        }
        if self.unanswered > 0 || self.took.is_empty() {
            broken.push(format!("{} commands of the owner were not answered", self.unanswered));
        }
        if self.most > self.before + MAX_GROWTH {
            broken.push(format!("the memory grew from {} to {} KiB", self.before, self.most));
        }
        if self.named == 0 {
            broken.push("the status names no client".to_owned());
        }
        broken
    }

    /// The same, and how long the owner waited.
    pub fn broken_or_slow(&self) -> Vec<String> {
        let mut broken = self.broken();
        if self.percentile(99) > MAX_P99 {
            broken.push(format!("the owner waited {:?} (p99)", self.percentile(99)));
        }
        broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(
            f,
            "siege: {} connections; memory {} -> {} MiB (before {}, at most {}); owner asked {} times, p50 {:.1} ms, \
             p99 {:.1} ms, {} unanswered; {} events, {} lost; {} clients named",
            self.connections,
            self.first / 1024,
            self.last / 1024,
            self.before / 1024,
            self.most / 1024,
            self.took.len(),
            ms(self.percentile(50)),
            ms(self.percentile(99)),
            self.unanswered,
            self.sent,
            self.lost,
            self.named
        )
    }
}

/// Besieges a host of its own.
///
/// # Panics
/// Where the host can't be started, or ends.
pub fn run(options: Options) -> Report {
    let (port, listener) = (free_port(), Listener::new());
    let action =
        format!("type = 'OscSend', target = '{}', address = '/out', args = ['{{value:i}}']", listener.target());
    let config = format!("{}[[modes]]\nname = 'Play'\n", mappings(port, &[("/in", &action)]));
    let home = Home::new(&config);
    let host = home.run_with(&["--http", "0"]);
    let find = || attackers::port(home.path());
    let (door, _) = wait::until(find, || "no api.json".to_owned());
    let tablet = Tablet::to(port);
    // Until the first is through, the host may still be opening ports.
    let through = || {
        tablet.send("/in", [OscType::Int(-1)]);
        listener.try_message()
    };
    wait::until(through, || "no event comes through".to_owned());
    while listener.try_message().is_some() {}

    let before = resident(&host);
    let (stop, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let target = attackers::Target { home: home.path().to_owned(), port: door };
    let attackers = attackers::all(&target, &stop, &connections);
    let player = {
        let stop = Arc::clone(&stop);
        thread::spawn(move || play(&tablet, options.rate, &stop))
    };
    let owner = {
        let (stop, socket) = (Arc::clone(&stop), home.socket());
        thread::spawn(move || ask(&socket, &stop))
    };
    let (mut first, mut last, mut most) = (0, 0, 0);
    let began = Instant::now();
    while began.elapsed() < options.duration {
        let now = resident(&host);
        most = most.max(now);
        if began.elapsed() < options.duration / 6 {
            first = first.max(now);
        } else if began.elapsed() > options.duration / 6 * 5 {
            last = last.max(now);
        }
        thread::sleep(Duration::from_millis(100));
    }
    let named = host.status()["troublesome_clients"].as_array().map_or(0, Vec::len);
    stop.store(true, Ordering::Relaxed);
    let sent = player.join().unwrap();
    let (took, unanswered) = owner.join().unwrap();
    let lost = sent - arrived(&listener, sent);
    let (dropped_before, dropped_after) = (osc::dropped(port), listener.dropped());
    attackers.into_iter().for_each(|attacker| attacker.join().unwrap());
    let connections = connections.load(Ordering::Relaxed);
    Report {
        before,
        first,
        last,
        most,
        took,
        unanswered,
        sent,
        lost,
        dropped_before,
        dropped_after,
        connections,
        named,
    }
}

/// Sends numbers at this rate, and returns how many.
fn play(tablet: &Tablet, rate: u32, stop: &AtomicBool) -> u32 {
    let (began, mut sent) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        let due = Duration::from_secs_f64(f64::from(sent) / f64::from(rate));
        match due.checked_sub(began.elapsed()) {
            Some(early) => thread::sleep(early),
            None => {
                tablet.send("/in", [OscType::Int(i32::try_from(sent).unwrap())]);
                sent += 1;
            }
        }
    }
    sent
}

/// How many of the numbers below `sent` came out: waits as long as they keep coming.
fn arrived(listener: &Listener, sent: u32) -> u32 {
    let (mut seen, mut count) = (vec![false; sent as usize], 0);
    let mut deadline = Instant::now() + wait::TEST_TIMEOUT;
    while count < sent && Instant::now() < deadline {
        let Some(message) = listener.try_message() else { continue };
        deadline = Instant::now() + wait::TEST_TIMEOUT;
        let number = match message.args.as_slice() {
            [OscType::Int(number)] => usize::try_from(*number).ok(),
            _ => None,
        };
        if let Some(one) = number.and_then(|number| seen.get_mut(number)) {
            count += u32::from(!std::mem::replace(one, true));
        }
    }
    count
}

/// Asks one thing after the other; the times that it took, sorted, and how often there was no answer.
fn ask(socket: &Path, stop: &AtomicBool) -> (Vec<Duration>, usize) {
    let (mut took, mut unanswered) = (Vec::new(), 0);
    for command in COMMANDS.iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let answered = || -> std::io::Result<bool> {
            let mut stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(OWNER_TIMEOUT))?;
            write!(stream, "GET {command} HTTP/1.1\r\nhost: conductor\r\nconnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer.starts_with("HTTP/1.1 200"))
        };
        match answered() {
            Ok(true) => took.push(began.elapsed()),
            _ => unanswered += 1,
        }
        thread::sleep(Duration::from_millis(20));
    }
    took.sort();
    (took, unanswered)
}

/// KiB that the host has in memory.
fn resident(host: &Host) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
