//! Ports that are plugged in and out, look alike, flood and fail, under the supervisor.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_event::{DeviceId, Event};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell::{self, Doorbell};
use crossbeam_channel::Receiver;

use super::binding::{Channels, Listen, OwnPorts, Place, Transport};
use super::simulated::SimulatedPorts;
use super::supervisor::{DiscoveredPort, Health, PortEvents, PortPlan, PortState, RECONNECT_GRACE, Supervisor};
use super::*;
use crate::engine_input::Input;

/// Within this a port that is plugged has to be open.
const HOT_PLUG: Duration = Duration::from_secs(2);
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What the supervisor said, in order.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    fn say(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn heard(&self, text: &str) -> bool {
        self.0.lock().unwrap().iter().any(|said| said.contains(text))
    }
}

impl PortEvents for Said {
    fn changed(&mut self, text: String) {
        self.say(text);
    }

    fn trouble(&mut self, text: String) {
        self.say(text);
    }

    fn gone(&mut self, device: &DeviceId) {
        self.say(format!("gone {device}"));
    }

    fn output(&mut self, target: &str, _: Box<dyn MidiOut>) {
        self.say(format!("output {target}"));
    }

    fn output_gone(&mut self, target: &str) {
        self.say(format!("no output {target}"));
    }
}

struct Stage {
    ports: SimulatedPorts,
    supervisor: Supervisor,
    events: Receiver<Input>,
    said: Said,
}

impl Stage {
    fn new(more: Vec<Box<dyn PortBackend>>) -> Self {
        let (ports, said) = (SimulatedPorts::new(), Said::default());
        let (queue, events) = doorbell::bounded(1024, &Doorbell::default());
        let backends = std::iter::once(ports.backend()).chain(more).collect();
        let supervisor = Supervisor::start(backends, queue, Clock::start(), Box::new(said.clone())).unwrap();
        Self { ports, supervisor, events, said }
    }

    fn apply(&self, bindings: Vec<BindingSpec>) {
        self.apply_plan(PortPlan { bindings, ..plan() });
    }

    fn apply_plan(&self, plan: PortPlan) {
        self.supervisor.apply(plan);
    }

    fn port(&self, key: &str) -> Option<DiscoveredPort> {
        self.supervisor.status().ports.into_iter().find(|port| port.port.key == key)
    }

    fn health(&self, alias: &str) -> Health {
        let bindings = self.supervisor.status().bindings;
        bindings.iter().find(|binding| binding.alias == alias).unwrap().health
    }

    /// Waits until it is so, and says how long that took.
    fn when(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Duration {
        let since = Instant::now();
        while !is_so(self) {
            assert!(since.elapsed() < TEST_TIMEOUT, "{what}: {:#?}", self.supervisor.status());
            std::thread::yield_now();
        }
        since.elapsed()
    }

    /// Plays a note and says as whose it came; `None` if the port is not heard.
    fn played(&self, key: &str) -> Option<String> {
        assert!(self.ports.play(key, &[0x90, 60, 1]), "{key} is not open");
        match self.events.try_recv() {
            Ok(Input::Event { event, .. }) => Some(event.device.to_string()),
            _ => None,
        }
    }
}

fn plan() -> PortPlan {
    PortPlan { max_midi_ports: 32, ..PortPlan::default() }
}

fn twin(key: &str, socket: &str, direction: Direction) -> PortInfo {
    let (serial, bus, address) = (None, None, None);
    let usb = UsbDevice { vendor_id: 1, product_id: 2, serial, bus, address, path: Some(socket.into()) };
    let metadata = PortMetadata { usb: Some(usb), ..PortMetadata::default() };
    PortInfo { metadata, ..PortInfo::new("Pad", key, "simulated", Protocol::Midi, direction) }
}

fn binding(alias: &str, matchers: Vec<Matcher>) -> BindingSpec {
    BindingSpec { input: matchers.clone(), output: matchers, ..BindingSpec::new(alias, Protocol::Midi) }
}

fn contains(alias: &str, part: &str) -> BindingSpec {
    binding(alias, vec![Matcher::NameContains(part.into())])
}

/// What the session has heard, as text, with the names of the devices.
fn heard(stage: &Stage, session: u64) -> Vec<String> {
    let heard = stage.supervisor.mutes().listening().heard(session, 0, 1000).unwrap();
    heard.iter().map(|heard| format!("{} {}", heard.device, heard.event)).collect()
}

// LRN-5: bound, unbound and ambiguous ports are heard while something is learned, only the first reaches the rules, and what was
// opened for it is closed again.
#[test]
fn every_port_is_heard_while_something_is_learned() {
    let stage = Stage::new(vec![]);
    for name in ["Keys", "Loose", "Ignored"] {
        stage.ports.plug(name, Direction::Input);
    }
    stage.ports.plug_port(twin("a", "1-1", Direction::Input));
    stage.ports.plug_port(twin("b", "1-2", Direction::Input));
    let bindings = vec![contains("keys", "keys"), contains("pads", "pad")];
    let ignore = vec![regex::Regex::new("Ignored").unwrap()];
    stage.apply_plan(PortPlan { bindings, ignore, ..plan() });
    assert!(stage.ports.is_open("Keys") && !stage.ports.is_open("Loose"));
    let before = stage.said.0.lock().unwrap().len();

    let listening = Arc::clone(stage.supervisor.mutes().listening());
    let agent = listening.begin(false).unwrap();
    assert!(stage.ports.is_open("Loose") && !stage.ports.is_open("Ignored"));
    assert_eq!(stage.played("Keys"), Some("keys".into()));
    assert_eq!(stage.played("Loose"), None, "no rule hears it");
    let person = listening.begin(true).unwrap();
    assert_eq!(stage.played("b"), None);
    let all = ["keys note-on 60 1", "Loose note-on 60 1", "Pad #2 note-on 60 1"];
    assert_eq!(heard(&stage, agent), all);
    assert_eq!(heard(&stage, person), all[2..]);
    stage.supervisor.mute("keys", true).unwrap();
    stage.ports.play("Keys", &[0x90, 61, 1]);
    assert_eq!(heard(&stage, agent).len(), 3, "who is muted is not heard here either");
    stage.supervisor.mute("keys", false).unwrap();

    listening.end(agent).unwrap();
    assert!(stage.ports.is_open("Loose"), "the other still listens");
    listening.end(person).unwrap();
    stage.when("it is closed", |stage| !stage.ports.is_open("Loose"));
    assert!(stage.ports.is_open("Keys"));
    let said = stage.said.0.lock().unwrap()[before..].to_vec();
    assert!(!said.iter().any(|said| said.contains("closed keys")), "what rules hear was not touched: {said:?}");
}

// LRN-5: a port that comes while something is learned is heard, too, and one that is shared by channels in all of them.
#[test]
fn what_is_plugged_in_while_learning_is_heard() {
    let stage = Stage::new(vec![]);
    let keys = BindingSpec { channels: Channels::only([0]), ..contains("keys", "shared") };
    stage.ports.plug("Shared", Direction::Input);
    stage.apply(vec![keys]);
    let session = stage.supervisor.mutes().listening().begin(true).unwrap();
    stage.ports.plug("Late", Direction::Input);
    stage.when("it is open", |stage| stage.ports.is_open("Late"));
    stage.ports.play("Late", &[0x90, 1, 1]);
    stage.ports.play("Shared", &[0x90, 2, 2, 0x91, 3, 3]);
    assert_eq!(heard(&stage, session), ["Late note-on 1 1", "keys note-on 2 2", "Shared note-on 3 3 ch 1"]);
    let moved: Vec<u8> = (0..10_000_u32).flat_map(|at| [0xB1, 7, (at % 128) as u8]).collect();
    stage.ports.play("Shared", &moved);
    stage.ports.play("Shared", &[0x91, 4, 4]);
    let all = heard(&stage, session);
    assert!(all.len() < 200 && all.last().is_some_and(|last| last.contains("note-on 4 4")), "{all:?}");
    assert!(all.contains(&"Late note-on 1 1".to_owned()), "a fader hides nothing: {all:?}");
}

// ENG-3, PRT-7: twins have no alias until they are told apart, and then each keeps its own.
#[test]
fn twins_that_swap_places_never_swap_mappings() {
    let stage = Stage::new(vec![]);
    stage.ports.plug_port(twin("a", "1-1", Direction::Input));
    stage.ports.plug_port(twin("b", "1-2", Direction::Input));
    stage.apply(vec![contains("pads", "pad")]);
    for key in ["a", "b"] {
        assert_eq!(stage.played(key), None);
        assert_eq!(stage.port(key).unwrap().state, PortState::Ambiguous("pads".into()));
    }
    assert_eq!(stage.health("pads"), Health::Amber);
    // What is touched can be seen, though nothing of it is heard.
    stage.played("b");
    stage.when("the touch shows", |stage| stage.port("b").unwrap().unheard == 2);
    assert_eq!(stage.port("a").unwrap().unheard, 1);

    let told = stage.port("b").unwrap().told_apart_by.unwrap();
    assert_eq!(told, serde_json::json!({ "type": "usb_path", "value": "1-2" }));
    stage.apply(vec![binding("pads", vec![Matcher::UsbPath("1-2".into())])]);
    for _ in 0..2 {
        assert_eq!(stage.played("b").as_deref(), Some("pads"));
        assert_eq!(stage.health("pads"), Health::Green);
        stage.ports.reverse();
        stage.supervisor.mute("pads", false).unwrap();
    }
}

// PRT-2: open within two seconds of being plugged, closed within two of being pulled.
#[test]
fn ports_come_and_go_without_a_click() {
    let stage = Stage::new(vec![]);
    stage.apply(vec![contains("pads", "pad")]);
    assert_eq!(stage.health("pads"), Health::Red);
    for _ in 0..2 {
        stage.ports.plug("Pad", Direction::Input);
        let took = stage.when("open", |stage| stage.port("input:Pad").is_some_and(|port| port.connected));
        assert!(took < HOT_PLUG, "{took:?}");
        assert_eq!(stage.played("Pad").as_deref(), Some("pads"));
        stage.ports.unplug("Pad", Direction::Input);
        let took = stage.when("gone", |stage| stage.port("input:Pad").is_none());
        assert!(took < HOT_PLUG, "{took:?}");
    }
}

// PRT-2: unplugged and plugged in again between two polls, a device has its old name and a new address.
#[test]
fn a_device_that_was_away_for_a_blink_is_opened_anew() {
    let stage = Stage::new(vec![]);
    let at = |address| {
        let mut port = twin("a", "1-1", Direction::Input);
        port.metadata.usb.as_mut().unwrap().address = Some(address);
        port
    };
    stage.ports.plug_port(at(5));
    stage.apply(vec![contains("pads", "pad")]);
    stage.ports.unplug("a", Direction::Input);
    stage.ports.plug_port(at(6));
    stage.when("open", |stage| stage.ports.is_open("a"));
    assert_eq!(stage.played("a").as_deref(), Some("pads"));
    assert!(!stage.said.heard("gone pads"));
}

// PRT-2: D10, a glitch is forgiven; a device that stays away is given up.
#[test]
fn a_device_is_given_up_when_it_stays_away() {
    let stage = Stage::new(vec![]);
    stage.ports.plug("Pad", Direction::Input);
    stage.apply(vec![contains("pads", "pad")]);
    stage.ports.unplug("Pad", Direction::Input);
    stage.when("closed", |stage| stage.said.heard("closed pads"));
    stage.ports.plug("Pad", Direction::Input);
    stage.when("open", |stage| stage.ports.is_open("Pad"));
    let back = Instant::now();
    stage.when("the grace is over", |_| back.elapsed() > RECONNECT_GRACE + 2 * supervisor::POLL_INTERVAL);
    assert!(!stage.said.heard("gone pads"));
    stage.ports.unplug("Pad", Direction::Input);
    stage.when("given up", |stage| stage.said.heard("gone pads"));
}

// PRT-3: muted until it is unmuted, across other changes; held notes end at once.
#[test]
fn a_muted_device_is_not_heard() {
    let stage = Stage::new(vec![]);
    stage.ports.plug("Pad", Direction::Input);
    stage.apply(vec![contains("pads", "pad")]);
    stage.supervisor.mute("pads", true).unwrap();
    assert!(stage.said.heard("gone pads"));
    assert_eq!(stage.played("Pad"), None);
    assert!(stage.port("input:Pad").unwrap().muted);
    stage.apply(vec![contains("pads", "pad")]);
    assert_eq!(stage.played("Pad"), None, "a reload does not unmute");
    stage.supervisor.mute("pads", false).unwrap();
    assert_eq!(stage.played("Pad").as_deref(), Some("pads"));
    let unknown = stage.supervisor.mute("pods", true).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no device \"pods\"; there are Pad, pads");
}

// PRT-1, PRT-2: how many, and which are left alone.
#[test]
fn ports_beyond_the_limit_and_ports_that_are_ignored_stay_closed() {
    let stage = Stage::new(vec![]);
    ["One", "Two", "IAC Driver Bus 1"].iter().for_each(|name| stage.ports.plug(name, Direction::Input));
    let ignore = vec![regex::Regex::new("^IAC.*$").unwrap()];
    stage.apply_plan(PortPlan { open_unbound: true, max_midi_ports: 1, ignore, ..plan() });
    let states: Vec<_> = stage.supervisor.status().ports.into_iter().map(|port| port.state).collect();
    assert_eq!(states, [PortState::Open, PortState::OverLimit, PortState::Ignored]);
}

// PRT-7: a device is asked once who it is, and told by its answer.
#[test]
fn a_device_is_told_by_what_it_answers() {
    let stage = Stage::new(vec![]);
    stage.ports.plug("UM-ONE", Direction::Input);
    stage.ports.plug("UM-ONE", Direction::Output);
    let identity = SysExIdentity { manufacturer: [0, 0x21, 9], family: 0x1600, model: 2 };
    let bindings = vec![binding("pads", vec![Matcher::SysExIdentity(identity)])];
    stage.apply(bindings.clone());
    assert!(!stage.ports.is_open("UM-ONE"), "off by default");
    stage.apply_plan(PortPlan { bindings, probe_identity: true, ..plan() });
    let asked = stage.ports.sent("UM-ONE").unwrap().recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(asked, SysExIdentity::REQUEST);
    let answer = [0xF0, 0x7E, 0x00, 0x06, 0x02, 0x00, 0x21, 0x09, 0x00, 0x2C, 0x02, 0x00, 1, 0, 0, 0, 0xF7];
    assert!(stage.ports.play("UM-ONE", &answer));
    stage.when("bound", |stage| stage.health("pads") == Health::Green);
    stage.when("heard", |stage| stage.ports.is_open("UM-ONE") && stage.played("UM-ONE").as_deref() == Some("pads"));
    assert!(stage.ports.sent("UM-ONE").unwrap().is_empty(), "asked once");
}

/// A backend that fails as the test says.
struct Broken(Box<dyn FnMut() -> Vec<PortInfo> + Send>);

impl PortBackend for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
        Ok((self.0)())
    }

    fn open_input(&mut self, _: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
        panic!("a driver's fault")
    }

    fn open_output(&mut self, _: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
        panic!("a driver's fault")
    }
}

// PRT-1: one that hangs or breaks stops no other.
#[test]
fn a_backend_that_hangs_or_panics_leaves_the_others_alone() {
    let (release, held) = crossbeam_channel::bounded::<()>(0);
    let hanging = Broken(Box::new(move || {
        let _ = held.recv();
        Vec::new()
    }));
    let stage = Stage::new(vec![Box::new(hanging)]);
    stage.apply(vec![contains("pads", "pad")]);
    stage.ports.plug("Pad", Direction::Input);
    let took = stage.when("open", |stage| stage.ports.is_open("Pad"));
    assert!(took < HOT_PLUG, "{took:?}");
    let unreachable = stage.supervisor.status().unreachable;
    assert_eq!(unreachable, [("broken".to_owned(), "broken does not answer".to_owned())]);
    drop(release);
    stage.when("it answers", |stage| stage.supervisor.status().unreachable.is_empty());

    let panicking = Broken(Box::new(|| vec![PortInfo::new("Pad", "x", "broken", Protocol::Hid, Direction::Input)]));
    let stage = Stage::new(vec![Box::new(panicking)]);
    stage.ports.plug("Pad", Direction::Input);
    stage.apply_plan(PortPlan { open_unbound: true, ..plan() });
    assert!(stage.ports.is_open("Pad"));
    let broken = stage.port("x").unwrap().state;
    assert_eq!(broken, PortState::Failed("broken failed inside (a panic)".into()));
}

fn endpoint(transport: Transport, allow: &str) -> (BindingSpec, u16) {
    // Free a moment ago; no other program on this machine takes ports in this range at random.
    let port = match transport {
        Transport::Udp => UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
        Transport::Tcp => TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(),
    };
    let at = Place { host: "127.0.0.1".into(), port };
    let listen = Listen { at, transport, allow: vec![allow.parse().unwrap()] };
    let mut spec = BindingSpec::new("tablet", Protocol::Osc);
    spec.input = vec![Matcher::Made(listen.name())];
    spec.made = OwnPorts::Endpoints { listen: Some(listen), send: None };
    (spec, port)
}

fn osc_packet(address: &str) -> Vec<u8> {
    let (addr, args) = (address.to_owned(), vec![]);
    rosc::encoder::encode(&rosc::OscPacket::Message(rosc::OscMessage { addr, args })).unwrap()
}

fn address(events: &Receiver<Input>) -> String {
    match events.recv_timeout(TEST_TIMEOUT) {
        Ok(Input::Event { event: conductor_event::DeviceEvent { event: Event::Osc(message), .. }, .. }) => {
            message.address().to_string()
        }
        other => panic!("{other:?}"),
    }
}

// PRT-5: OSC 1.1, packets framed by SLIP in streams, several at once.
#[test]
fn osc_comes_through_streams() {
    let stage = Stage::new(vec![Box::new(osc::OscBackend::new())]);
    let (spec, port) = endpoint(Transport::Tcp, "127.0.0.0/8");
    stage.apply(vec![spec]);
    assert_eq!(stage.health("tablet"), Health::Green);
    let [mut one, mut other] = [(); 2].map(|()| TcpStream::connect(("127.0.0.1", port)).unwrap());
    for round in 0..3 {
        for (stream, name) in [(&mut one, "one"), (&mut other, "other")] {
            let packet = osc_packet(&format!("/{name}/{round}"));
            let framed = [&[0xC0][..], &packet, &[0xC0]].concat();
            // In two portions: a stream has no packets of its own.
            framed.chunks(5).for_each(|portion| stream.write_all(portion).unwrap());
            assert_eq!(address(&stage.events), format!("/{name}/{round}"));
        }
    }
    drop(one);
    other.write_all(&[&[0xC0][..], &osc_packet("/last"), &[0xC0]].concat()).unwrap();
    assert_eq!(address(&stage.events), "/last");
}

// PRT-5: who is not on the list is not heard, and that is counted.
#[test]
fn strangers_are_not_heard() {
    for (allow, heard) in [("127.0.0.1", true), ("10.0.0.0/8", false)] {
        let stage = Stage::new(vec![Box::new(osc::OscBackend::new())]);
        let (spec, port) = endpoint(Transport::Udp, allow);
        stage.apply(vec![spec]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&osc_packet("/a"), ("127.0.0.1", port)).unwrap();
        if heard {
            assert_eq!(address(&stage.events), "/a");
        } else {
            stage.when("counted", |stage| stage.supervisor.status().ports[0].unheard == 1);
            assert!(stage.events.is_empty());
        }
    }
}
