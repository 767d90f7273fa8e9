//! `conductor demo`: the real host, a short performance, and what came out of it.
//!
//! Nothing is staged: the events go through ports, engine, rules and the sandboxed feature, and the
//! packets shown are those that a socket on loopback received. The demo fails when one is missing.

mod stage;
#[cfg(unix)]
mod virtual_port;

use std::fmt::Display;
use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use conductor_config as config;
use conductor_dispatch::Action;
use conductor_event::Record;
use conductor_host::host::Host;
use conductor_observer::Observation;
use conductor_ports::supervisor::{PortState, PortsStatus};
use conductor_terminal::{self as terminal, Lines, Style};
use conductor_timeline::{Timeline, TimelineEntry};
use crossbeam_channel::Receiver;

use self::stage::Stage;
use super::{CommandResult, Failure, Paths, make_home, signals};

/// What to play on.
#[derive(Debug, clap::Args)]
pub(super) struct DemoArguments {
    /// Play on virtual ports of the system's MIDI (ALSA; JACK in a build with that feature)
    #[arg(long, alias = "jack")]
    midi: bool,
    /// Send to the host's own OSC port, too, as a tablet would
    #[arg(long)]
    osc: bool,
}

const SHOW: &str = include_str!("show.toml");
const PERFORMANCE: &str = include_str!("show.timeline");
const TABLET: &str = include_str!("tablet.timeline");
/// How long an effect may take before the demo calls it missing.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(2);
/// What is played on, and what plays along, by the names in the show.
const INSTRUMENTS: [&str; 3] = ["pads", "faders", "synth"];
/// The feature that the show is played with.
const FEATURE: &str = "osc-output";
/// How long those may take to open: a system's MIDI can be busy.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long is waited for news of ports before they are looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The configuration's part that switches off what has nothing to do in the show: a first start compiles what it uses, and no
/// more.
fn without_others(folder: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(name) = stem.filter(|name| path.extension() == Some("wasm".as_ref()) && *name != FEATURE) {
            text += &format!("\n[features.{}]\nenabled = false\n", serde_json::json!(name));
        }
    }
    Ok(text)
}

pub(super) fn run(places: &Paths, arguments: &DemoArguments) -> CommandResult {
    let features = places.features.as_ref().ok_or_else(|| {
        Failure::Wrong("conductor: the bundled features are not there; build them with `cargo xtask features`, or name their folder in CONDUCTOR_FEATURES".into())
    })?;
    make_home(&places.home);
    let mut stage: Box<dyn Stage> = if arguments.midi { system()? } else { Box::new(stage::Simulated::new()?) };
    let (target, packets) = stage::listen()?;
    let listen = free_port()?;
    let show = SHOW.replace("TARGET", &target.to_string()).replace("LISTEN", &listen.to_string());
    let show = show + &without_others(features).with_context(|| features.display().to_string())?;
    let loaded = config::parse(&show, "demo.toml").map_err(super::wrong)?;

    let mut builder = Host::builder().home(&places.home).features(features).backend(stage.backend());
    if arguments.osc {
        builder = builder.backend(Box::new(conductor_ports::osc::OscBackend::new()));
    }
    let host = builder.start(&loaded).map_err(super::started)?;
    let (ending, end) = crossbeam_channel::unbounded();
    signals::listen(ending, |_| ())?;
    let screen = Screen;
    screen.head(&host, stage.describe(), &target.to_string());

    let mut show = Show {
        observations: host.subscribe(),
        packets,
        synth: stage.synth(),
        end,
        screen,
        host,
        tally: Tally::default(),
    };
    show.open()?;
    show.perform(PERFORMANCE, &mut |entry| stage.play(entry))?;
    if arguments.osc {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(("127.0.0.1", listen))?;
        show.perform(TABLET, &mut |entry| stage::send_osc(&socket, entry))?;
    }
    show.end()
}

#[cfg(unix)]
fn system() -> Result<Box<dyn Stage>, Failure> {
    Ok(Box::new(stage::System::new()?))
}

#[cfg(not(unix))]
fn system() -> Result<Box<dyn Stage>, Failure> {
    Err(Failure::Wrong(
        "conductor: this system has no virtual MIDI ports; the demo plays on simulated ones without --midi".into(),
    ))
}

/// A UDP port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[derive(Debug, Default)]
struct Tally {
    cut_short: bool,
    events: usize,
    packets: usize,
    midi: usize,
    missing: usize,
    /// From the event at its port to the packet at the listener, in microseconds.
    latencies: Vec<f64>,
}

struct Show {
    observations: Receiver<Observation>,
    packets: Receiver<(Instant, rosc::OscMessage)>,
    synth: Receiver<Vec<u8>>,
    /// Receives a signal to end early.
    end: Receiver<()>,
    screen: Screen,
    host: Host,
    tally: Tally,
}

impl Show {
    /// Waits until the instruments are open: events that are played before would be lost.
    fn open(&self) -> CommandResult {
        let deadline = Instant::now() + OPEN_TIMEOUT;
        loop {
            let PortsStatus { ports, unreachable, .. } = self.host.ports();
            let is_open = |alias: &&str| {
                let its = ports.iter().filter(|port| port.binding.as_deref() == Some(*alias));
                its.into_iter().any(|port| port.state == PortState::Open)
            };
            let closed: Vec<&str> = INSTRUMENTS.into_iter().filter(|alias| !is_open(alias)).collect();
            if closed.is_empty() || !self.end.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let why: String = unreachable.iter().map(|(_, why)| format!("; {why}")).collect();
                let (closed, time) = (closed.join(", "), OPEN_TIMEOUT.as_secs());
                return Err(Failure::Failed(anyhow::anyhow!("not open after {time} s: {closed}{why}")));
            }
            let _ = self.observations.recv_timeout(POLL_INTERVAL);
        }
    }

    fn perform(&mut self, script: &str, play: &mut dyn FnMut(&TimelineEntry) -> anyhow::Result<()>) -> CommandResult {
        let timeline = Timeline::parse(script).map_err(|errors| anyhow::anyhow!("the demo's script: {}", errors[0]))?;
        let start = Instant::now();
        for entry in &timeline.entries {
            let due = start + Duration::from_nanos(entry.at);
            // Waiting for the beat is what a performance is.
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if self.end.try_recv().is_ok() {
                self.tally.cut_short = true;
                return Ok(());
            }
            play(entry)?;
            match self.observed() {
                Some(record) => self.show(&record),
                None => {
                    self.tally.missing += 1;
                    self.screen.missing(&entry.to_string());
                }
            }
        }
        Ok(())
    }

    /// The record of the event that was just played.
    fn observed(&self) -> Option<Record> {
        let deadline = Instant::now() + EFFECT_TIMEOUT;
        loop {
            match self.observations.recv_deadline(deadline).ok()? {
                Observation::Event(record) => return Some(record),
                Observation::Mode(mode) => self.screen.note(&format!("mode: {mode}")),
                Observation::Failure(failure) => self.screen.missing(&failure.reason.to_string()),
                Observation::PortTrouble(text) | Observation::Refused(text) => self.screen.missing(&text),
                Observation::Lights(_)
                | Observation::Port(_)
                | Observation::Reload(_)
                | Observation::Sink(_)
                | Observation::Plan(_)
                | Observation::Lock(_)
                | Observation::Chat(_)
                | Observation::Model(_) => {}
            }
        }
    }

    fn show(&mut self, record: &Record) {
        self.tally.events += 1;
        let now = (Instant::now(), self.host.clock().now());
        let fired = self.host.with_rules(|rules, _| {
            let rules = record.fired.ids().iter().filter_map(|id| rules.rules().get(id.0 as usize));
            rules.map(|rule| (rule.name.as_deref().unwrap_or("-").to_owned(), rule.action.clone())).collect::<Vec<_>>()
        });
        let mut line = Line { record, rule: String::new(), effect: String::new() };
        if fired.is_empty() {
            self.screen.line(&line);
        }
        for (name, action) in fired {
            line.rule = name;
            line.effect = match action {
                Action::Feature(_) => match self.packets.recv_timeout(EFFECT_TIMEOUT) {
                    Ok((at, message)) => {
                        self.tally.packets += 1;
                        let event = now.0 - Duration::from_nanos(now.1.saturating_sub(record.at));
                        let latency = at.saturating_duration_since(event).as_secs_f64() * 1e6;
                        self.tally.latencies.push(latency);
                        format!("OSC  {} {}   {latency:.0} µs", message.addr, words(&message.args))
                    }
                    Err(_) => self.lost("an OSC packet"),
                },
                Action::SendMidi { .. } | Action::MidiForward { .. } => match self.synth.recv_timeout(EFFECT_TIMEOUT) {
                    Ok(bytes) => {
                        self.tally.midi += 1;
                        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                        format!("MIDI {} at the synth", hex.join(" "))
                    }
                    Err(_) => self.lost("a MIDI message"),
                },
                Action::ModeChange { mode } => format!("mode {mode}"),
                Action::Suppress => "nothing".to_owned(),
                Action::Missing { name, .. } => format!("{name}, which no feature has"),
                // The show has none of these; what they do is not heard of here.
                action => action.describe().into_owned(),
            };
            self.screen.line(&line);
        }
    }

    fn lost(&mut self, what: &str) -> String {
        self.tally.missing += 1;
        format!("MISSING: {what} that did not come")
    }

    fn end(self) -> CommandResult {
        let Self { host, screen, mut tally, .. } = self;
        let status = host.status();
        host.stop();
        tally.latencies.sort_by(f64::total_cmp);
        let median = tally.latencies.get(tally.latencies.len() / 2).copied().unwrap_or_default();
        screen.note("");
        screen.note(&format!(
            "{} events in, {} OSC packets and {} MIDI messages received; median {median:.0} µs from event to packet",
            tally.events, tally.packets, tally.midi
        ));
        // What had nothing to do in this show is not worth a line each.
        let (busy, idle): (Vec<_>, Vec<_>) =
            status.features.iter().partition(|feature| feature.performed + feature.failed > 0);
        for feature in busy {
            screen.note(&format!("{}: {} actions, {} failed", feature.name, feature.performed, feature.failed));
        }
        if !idle.is_empty() {
            let names: Vec<&str> = idle.iter().map(|feature| feature.name.as_str()).collect();
            screen.note(&format!("installed too, without an action in this show: {}", names.join(", ")));
        }
        if tally.missing > 0 || (tally.packets == 0 && !tally.cut_short) {
            return Err(Failure::Failed(anyhow::anyhow!("{} effects did not come", tally.missing)));
        }
        screen.note("Next: the README maps your own controller in five minutes.");
        Ok(())
    }
}

/// OSC arguments as people read them.
fn words(args: &[rosc::OscType]) -> String {
    let word = |arg: &rosc::OscType| match arg {
        rosc::OscType::Float(value) => format!("{value:.3}"),
        rosc::OscType::Int(value) => value.to_string(),
        rosc::OscType::Bool(value) => value.to_string(),
        rosc::OscType::String(value) => format!("\"{value}\""),
        other => format!("{other:?}"),
    };
    args.iter().map(word).collect::<Vec<_>>().join(" ")
}

struct Line<'a> {
    record: &'a Record,
    rule: String,
    effect: String,
}

struct Screen;

impl Screen {
    fn print(&self, spans: &[(Style, &dyn Display)]) {
        let mut line = Lines::new();
        line.push_spans(spans);
        // The reader has closed the pipe: the demo goes on all the same.
        let _ = terminal::try_print(&line);
    }

    fn note(&self, text: &str) {
        self.print(&[(Style::Dim, &text)]);
    }

    fn missing(&self, text: &str) {
        self.print(&[(Style::Red, &format_args!("MISSING: {text}"))]);
    }

    fn head(&self, host: &Host, stage: &str, target: &str) {
        let status = host.status();
        self.print(&[(Style::Bold, &"conductor demo: controller -> rule -> sandboxed feature -> the world")]);
        self.note(&format!("ports    {stage}; {} rules in the modes {}", status.rules, status.modes.join(", ")));
        for feature in &status.features {
            if let Some(package) = &feature.package {
                let udp: Vec<String> = feature.grants.udp.iter().map(ToString::to_string).collect();
                let reach =
                    if udp.is_empty() { "sends nowhere".to_owned() } else { format!("may send to {}", udp.join(", ")) };
                self.note(&format!(
                    "feature  {} {} ({} KB of WebAssembly, sha256 {}), {reach}",
                    package.id,
                    package.version,
                    package.size / 1024,
                    &package.digest[..12],
                ));
            }
        }
        self.note(&format!("world    a socket that listens at {target}"));
        self.note("");
        self.note(&format!("{:>9}  {:<7} {:<24} {:<14} {}", "TIME", "FROM", "EVENT", "RULE", "RECEIVED"));
    }

    fn line(&self, line: &Line<'_>) {
        let record = line.record;
        let time = format!("{:>7.3} s", record.at as f64 / 1e9);
        let event = format!("{:<24}", record.event.to_string());
        let colour = if line.effect.starts_with("MISSING") { Style::Red } else { Style::Green };
        self.print(&[
            (Style::Dim, &time),
            (Style::Plain, &format_args!("  {:<7} ", record.device.as_str())),
            (Style::Cyan, &event),
            (Style::Plain, &" "),
            (Style::Yellow, &format_args!("{:<14}", line.rule)),
            (Style::Plain, &" "),
            (colour, &line.effect),
        ]);
    }
}
