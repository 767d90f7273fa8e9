//! A whole host and the world around it, in which nothing is real but the host.
//!
//! | world | receives |
//! |---|---|
//! | `synth`, or what a section calls an output | MIDI messages, in hexadecimal |
//! | `desktop` | `down cmd`, `up cmd`, `text hello`, `point 3 4`, `scroll 1 Vertical` |
//! | `mode` | the mode that became active |
//! | `osc HOST:PORT` | an OSC message: the address and the arguments |
//! | `artnet HOST:PORT` | a universe and its channels that are not 0 |
//! | `file NAME` | the text of a file in the folder `{out}` |
//! | `failure` | an action that was not done, and why |
//!
//! Within a world the order counts. The clock moves by hand: no time passes but where a script waits.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chrono::{Datelike as _, Timelike as _};
use conductor_config as config;
use conductor_dispatch::desktop::recorded::Recording;
use conductor_engine::Day;
use conductor_event::{Event, EventKind, OscArg, OscMessage};
use conductor_host::host::Host;
use conductor_observer::Observation;
use conductor_ports::engine_input::Input;
use conductor_ports::simulated::SimulatedPorts;
use conductor_ports::{Direction, PortInfo, Protocol};
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use conductor_stdx::clock::{Clock, ManualClock};
use conductor_timeline::{Timeline, TimelineEntry};
use crossbeam_channel::Receiver;

use crate::case::{Plugged, Section, Test};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Longer than any gesture, and than any rule waits.
const AFTERWARDS: Duration = Duration::from_secs(3600);
/// The instrument that is always there.
const SYNTH: &str = "synth";

/// Plays a test on a whole host, and says what is not as it is written.
pub fn play(section: &Section, test: &Test) -> Vec<String> {
    let mut stage = match Stage::new(section, test) {
        Ok(stage) => stage,
        Err(wrong) => return vec![wrong],
    };
    if let Err(wrong) = stage.perform(test) {
        return vec![wrong];
    }
    stage.end(&test.effects, test.at_end)
}

/// Datagrams that go nowhere.
#[derive(Debug, Clone, Default)]
struct Recorded(Arc<Mutex<Vec<String>>>);

#[derive(Debug)]
struct RecordedSender(SocketAddr, Recorded);

impl Datagrams for Recorded {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        Ok(Box::new(RecordedSender(address, self.clone())))
    }

    fn resolve(&self, _: &str) -> io::Result<IpAddr> {
        Ok(Ipv4Addr::LOCALHOST.into())
    }
}

impl DatagramSender for RecordedSender {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        let line = match rosc::decoder::decode_udp(data) {
            Ok((_, rosc::OscPacket::Message(message))) => {
                let args: Vec<String> = message.args.iter().map(ToString::to_string).collect();
                format!("osc {} {} {}", self.0, message.addr, args.join(" "))
            }
            _ => format!("artnet {} {}", self.0, universe(data)),
        };
        self.1.0.lock().unwrap().push(line.trim_end().to_owned());
        Ok(())
    }
}

/// What an ArtDmx packet says: `3: 1=255 7=10`.
fn universe(packet: &[u8]) -> String {
    let (Some(b"Art-Net\0\0\x50"), Some(head), Some(levels)) = (packet.get(..10), packet.get(..18), packet.get(18..))
    else {
        return format!("receives an unknown packet: {packet:02X?}");
    };
    let set = levels.iter().enumerate().filter(|(_, level)| **level != 0);
    let set: Vec<String> = set.map(|(index, level)| format!("{}={level}", index + 1)).collect();
    format!("{}: {}", u16::from_le_bytes([head[14], head[15]]), set.join(" "))
}

/// A program that runs under a name of its own. Dropping it ends it.
struct Program {
    child: Child,
    path: PathBuf,
}

impl Program {
    /// This very program under another name, waiting.
    fn start(name: &str, folder: &Path) -> Self {
        let path = folder.join(name);
        let me = std::env::current_exe().unwrap();
        if std::fs::hard_link(&me, &path).is_err() {
            std::fs::copy(&me, &path).unwrap();
        }
        let mut command = Command::new(&path);
        command.args(["--ignored", "--exact", "a_program_that_runs"]).stdin(Stdio::piped()).stdout(Stdio::null());
        Self { child: command.spawn().unwrap(), path }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A host, and the world around it.
struct Stage {
    ports: SimulatedPorts,
    /// Devices, and the ports that they are played on.
    devices: Vec<(String, String)>,
    outputs: Vec<(String, Receiver<Vec<u8>>)>,
    desktop: Recording,
    network: Recorded,
    observations: Receiver<Observation>,
    hand: ManualClock,
    host: Option<Host>,
    effects: Vec<String>,
    seen: (usize, usize),
    _programs: Vec<Program>,
    out: Folder,
}

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("parts-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Stage {
    fn new(section: &Section, test: &Test) -> Result<Self, String> {
        let out = Folder::new();
        let ports = SimulatedPorts::new();
        let mut devices = Vec::new();
        ports.plug(SYNTH, Direction::Output);
        let mut outputs = vec![(SYNTH.to_owned(), ports.sent(SYNTH).unwrap())];
        for Plugged { device, port, .. } in &section.plugged {
            ports.plug_port(port.clone());
            match port.direction {
                Direction::Input => devices.push((device.clone(), port.key.clone())),
                Direction::Output => outputs.push((device.clone(), ports.sent(&port.name).unwrap())),
            }
        }
        for entry in entries(&test.timeline, 0) {
            if devices.iter().all(|(device, _)| *device != entry.device) {
                let protocol = match entry.event {
                    Event::Osc(_) => Protocol::Osc,
                    Event::Hid(_) if entry.event.kind() == EventKind::Key => Protocol::Keyboard,
                    Event::Hid(_) => Protocol::Hid,
                    Event::ArtNet(_) => Protocol::ArtNet,
                    _ => Protocol::Midi,
                };
                ports.plug_port(PortInfo::new(&entry.device, &entry.device, "simulated", protocol, Direction::Input));
                devices.push((entry.device.clone(), entry.device));
            }
        }
        let runs = test.timeline.lines().filter_map(|line| line.strip_prefix("runs ")).flat_map(str::split_whitespace);
        let programs = runs.map(|name| Program::start(name, &out.0)).collect();

        let (clock, hand) = Clock::manual();
        let (desktop, network) = (Recording::default(), Recorded::default());
        let (sender, observations) = crossbeam_channel::unbounded();
        let text = section.config(&out.0.display().to_string());
        let loaded = config::parse(&text, "config.toml").map_err(|wrong| wrong.render(false))?;
        let mut builder = Host::builder()
            .backend(ports.backend())
            .desktop(desktop.connect())
            .datagrams(Box::new(network.clone()))
            .clock(clock)
            .subscriber(sender);
        if let Some(features) = section.features() {
            builder = builder.features(features);
        }
        let host = builder.start(&loaded).map_err(|error| error.to_string())?;
        let (effects, seen) = (Vec::new(), (0, 0));
        let stage = Self {
            ports,
            devices,
            outputs,
            desktop,
            network,
            observations,
            hand,
            host: Some(host),
            effects,
            seen,
            _programs: programs,
            out,
        };
        for Plugged { device, port, is_heard } in &section.plugged {
            if port.direction == Direction::Input && stage.ports.is_open(&port.key) != *is_heard {
                return Err(format!("the port of {device} is {}open", if *is_heard { "not " } else { "" }));
            }
        }
        Ok(stage)
    }

    fn host(&self) -> &Host {
        self.host.as_ref().unwrap()
    }

    /// Does what the lines say, one after the other.
    fn perform(&mut self, test: &Test) -> Result<(), String> {
        // A clock runs beside the lines after it.
        let (mut waiting, mut now) = (VecDeque::new(), 0);
        for line in test.timeline.lines() {
            let of_line = entries(line, now);
            let until = of_line.first().map_or(now, |entry| entry.at);
            self.play_until(&mut waiting, &mut now, until)?;
            if let Some(mode) = line.strip_prefix("mode ") {
                self.host().set_mode(mode.trim_matches('"'));
            } else if let Some(time) = line.strip_prefix("clock ") {
                self.set_clock(time)?;
            } else if !of_line.is_empty() {
                waiting.extend(of_line);
                waiting.make_contiguous().sort_by_key(|entry| entry.at);
                self.play_until(&mut waiting, &mut now, until)?;
            } else if line.starts_with("gone ") {
                return Err(format!("{line}: only the engine takes it"));
            }
        }
        self.play_until(&mut waiting, &mut now, u64::MAX)?;
        self.advance(AFTERWARDS)
    }

    /// Plays what waits up to a time.
    fn play_until(&self, waiting: &mut VecDeque<TimelineEntry>, now: &mut u64, until: u64) -> Result<(), String> {
        while let Some(entry) = waiting.pop_front_if(|entry| entry.at <= until) {
            self.advance(Duration::from_nanos(entry.at - *now))?;
            *now = entry.at;
            self.play(&entry.device, &entry.event)?;
        }
        Ok(())
    }

    fn advance(&self, by: Duration) -> Result<(), String> {
        self.hand.advance(by);
        self.host().queue().send(Input::Moved).map_err(|_| "the engine has ended".to_owned())
    }

    /// Moves the clock on to a day and a time, as a person here would read them: `monday 22:30`.
    fn set_clock(&self, text: &str) -> Result<(), String> {
        let wall = i64::try_from(self.host().clock().wall()).unwrap_or_default();
        let local = chrono::DateTime::from_timestamp_millis(wall).unwrap_or_default().with_timezone(&chrono::Local);
        let (day, time) = text.split_once(' ').ok_or("a day and a time")?;
        let day = Day::ALL.iter().position(|known| format!("{known:?}").eq_ignore_ascii_case(day)).ok_or("a day")?;
        let (hour, minute) = time.trim().split_once(':').ok_or("HH:MM")?;
        let wanted: u32 = hour.parse::<u32>().map_err(|_| "HH")? * 60 + minute.parse::<u32>().map_err(|_| "MM")?;
        const WEEK: u32 = 7 * 86_400;
        let is = local.weekday().num_days_from_monday() * 86_400 + local.num_seconds_from_midnight();
        let wanted = u32::try_from(day).map_err(|_| "a day")? * 86_400 + wanted * 60;
        self.advance(Duration::from_secs(((wanted + WEEK - is) % WEEK).into()))
    }

    fn play(&self, device: &str, event: &Event) -> Result<(), String> {
        let port = self.devices.iter().find(|(known, _)| known == device).map_or(device, |(_, port)| port);
        let open = match event {
            Event::Midi(message) => {
                let mut bytes = Vec::new();
                message.encode(&mut bytes);
                self.ports.play(port, &bytes)
            }
            Event::Osc(message) => self.ports.play_osc(port, &packet(message)),
            Event::Hid(moved) => self.ports.play_gamepad(port, *moved),
            Event::ArtNet(change) => self.ports.play_artnet(port, *change),
            Event::Gesture(_) | Event::Variable(_) | Event::Musical(_) => return Err("it comes from no port".into()),
        };
        if open { Ok(()) } else { Err(format!("the port of {device} is not open")) }
    }

    /// Takes in what has come of it so far.
    fn gather(&mut self) {
        for (name, sent) in &self.outputs {
            let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(" ");
            self.effects.extend(sent.try_iter().map(|bytes| format!("{name} {}", hex(bytes))));
        }
        let desktop = self.desktop.lines();
        self.effects.extend(desktop[self.seen.0..].iter().map(|line| format!("desktop {line}")));
        let network = self.network.0.lock().unwrap();
        self.effects.extend(network[self.seen.1..].iter().cloned());
        self.seen = (desktop.len(), network.len());
        for observation in self.observations.try_iter() {
            match observation {
                Observation::Mode(name) => self.effects.push(format!("mode {name}")),
                Observation::Failure(failure) => {
                    self.effects.push(format!("failure {}: {}", failure.worker, failure.reason));
                }
                _ => {}
            }
        }
    }

    /// The files that were written, whole lines only.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.out.0).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let name = entry.file_name();
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            found
                .extend(whole.map(|line| format!("file {} {}", name.display(), line.trim_end()).trim_end().to_owned()));
        }
        found
    }

    /// Programs that have ended, or were left to themselves.
    fn programs_ended(&self) -> usize {
        let workers = self.host().status().workers;
        let processes = workers.iter().find(|worker| worker.name == "processes");
        processes.map_or(0, |worker| usize::try_from(worker.done + worker.failed).unwrap_or(usize::MAX))
    }

    /// Waits for what should come, but for the last `at_end`, ends the host, and says what came otherwise.
    fn end(mut self, expected: &[String], at_end: usize) -> Vec<String> {
        let deadline = Instant::now() + TEST_TIMEOUT;
        // Each of these files is written by a program, which still runs while its last line is read here.
        let written = expected.iter().filter_map(|line| line.strip_prefix("file ")?.split(' ').next());
        let programs = written.collect::<BTreeSet<_>>().len();
        loop {
            self.gather();
            let came = self.effects.len() + self.files().len() >= expected.len() - at_end;
            if came && self.programs_ended() >= programs || Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // What is under way is still done, and what is on is switched off: all of it has to be expected.
        self.host.take().unwrap().stop();
        self.gather();
        let files = self.files();
        self.effects.extend(files);
        let in_order = |lines: &[String]| {
            let mut lines = lines.to_vec();
            lines.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
            lines
        };
        let (expected, came) = (in_order(expected), in_order(&self.effects));
        if expected == came {
            Vec::new()
        } else {
            vec![format!("=> {}", expected.join("\n    => ")), format!("came {}", came.join("\n    came "))]
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(host) = self.host.take() {
            host.stop();
        }
    }
}

/// The events of some lines of a test, which come after this time.
fn entries(timeline: &str, now: u64) -> Vec<TimelineEntry> {
    let is_event = |line: &&str| line.starts_with(|c: char| c == '+' || c.is_ascii_digit());
    let lines = timeline.lines().filter(is_event);
    // Times may be given from the line before.
    let script: String =
        [format!("{now}ns before reset\n")].into_iter().chain(lines.map(|line| format!("{line}\n"))).collect();
    let parsed = Timeline::parse(&script).unwrap_or_else(|errors| panic!("{script}: {errors:?}"));
    parsed.entries.into_iter().skip(1).collect()
}

fn packet(message: &OscMessage) -> Vec<u8> {
    let args = message.args().iter().map(|arg| match arg {
        OscArg::Int(value) => rosc::OscType::Int(*value),
        OscArg::Float(value) => rosc::OscType::Float(*value),
        OscArg::Long(value) => rosc::OscType::Long(*value),
        OscArg::Double(value) => rosc::OscType::Double(*value),
        OscArg::String(text) => rosc::OscType::String(text.clone()),
        OscArg::Bool(value) => rosc::OscType::Bool(*value),
        other => panic!("{other:?} is not played here"),
    });
    let message = rosc::OscMessage { addr: message.address().to_string(), args: args.collect() };
    rosc::encoder::encode(&rosc::OscPacket::Message(message)).unwrap()
}
