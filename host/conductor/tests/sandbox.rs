//! The sandbox with real guests: grants, limits, and what a trap costs.
//!
//! The guests are built by `cargo xtask features`. No packet leaves: what would have been dialled is
//! recorded instead.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use conductor_engine::{DeviceId, MidiMessage, RuleId};
use conductor_host::dispatch::feature_worker::{FeatureQueue, PreparedAction};
use conductor_host::dispatch::{Envelope, WorkerCounters};
use conductor_observer::sink_message::{SinkKind, SinkMessage, SinkQueue};
use conductor_observer::{self as observer, Observer};
use conductor_package::{Grants, Package};
use conductor_sandbox::bindings::Event;
use conductor_sandbox::host_functions::Services;
use conductor_sandbox::host_functions::udp::{DatagramSender, Datagrams};
use conductor_sandbox::quarantine::STRIKES;
use conductor_sandbox::{ActionInstance, Compiler, PreparedFeature, Sandbox};
use crossbeam_channel::Receiver;

/// Where the guests are: `cargo xtask test` says so, else beside the build of this test.
fn guest(name: &str) -> Package {
    let folder = std::env::var_os("CONDUCTOR_FEATURES").map_or_else(
        || {
            let test = std::env::current_exe().unwrap();
            test.ancestors().nth(3).unwrap().join("features")
        },
        PathBuf::from,
    );
    let path = folder.join(format!("{name}.wasm"));
    Package::read(&path).unwrap_or_else(|error| panic!("{error}; build the guests with `cargo xtask features`"))
}

/// Records what would have been dialled and sent.
#[derive(Debug, Clone, Default)]
struct Recorded {
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Datagrams for Recorded {
    fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramSender>> {
        self.dialled.lock().unwrap().push(address);
        Ok(Box::new(self.clone()))
    }

    fn resolve(&self, host: &str) -> io::Result<IpAddr> {
        match host {
            "desk.local" => Ok(Ipv4Addr::new(192, 0, 2, 7).into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl DatagramSender for Recorded {
    fn send(&self, data: &[u8]) -> io::Result<()> {
        self.sent.lock().unwrap().push(data.to_vec());
        Ok(())
    }
}

struct Lab {
    sandbox: Sandbox,
    network: Recorded,
    said: Receiver<SinkMessage>,
    sinks: SinkQueue,
}

impl Lab {
    fn new() -> Self {
        let network = Recorded::default();
        let (sinks, said) = SinkQueue::new();
        let services = Services::new(sinks.clone(), Box::new(network.clone()));
        Self {
            sandbox: Sandbox::new(None, Arc::new(services), Compiler::program(env!("CARGO_BIN_EXE_conductor")))
                .unwrap(),
            network,
            said,
            sinks,
        }
    }

    fn prepare(&self, name: &str, grants: Grants) -> PreparedFeature {
        self.sandbox.prepare(&guest(name), grants).unwrap()
    }

    fn instance(&self, name: &str, grants: Grants) -> ActionInstance {
        self.prepare(name, grants).instantiate().unwrap()
    }
}

fn udp(targets: &[&str]) -> Grants {
    Grants { udp: targets.iter().map(|target| target.parse().unwrap()).collect(), ..Grants::default() }
}

fn osc_send(target: &str) -> String {
    serde_json::json!({ "target": target, "address": "/a" }).to_string()
}

fn event() -> Event {
    Event { at: 0, device: 0, kind: 2, channel: 0, number: 36, position: 0, value: 100.0, unit: 0.5 }
}

/// FEA-4: a feature reaches what its grant names, and nothing else is even dialled.
#[test]
fn only_granted_targets_are_dialled() {
    let lab = Lab::new();
    let mut osc = lab.instance("osc-output", udp(&["127.0.0.1:9000", "desk.local:*"]));

    assert!(osc.prepare("OscSend", &osc_send("127.0.0.1:9000")).is_ok());
    assert!(osc.prepare("OscSend", &osc_send("desk.local:8000")).is_ok());
    for denied in
        ["127.0.0.1:9001", "127.0.0.2:9000", "192.0.2.7:8000", "[::1]:9000", "169.254.169.254:80", "localhost:9000"]
    {
        let error = osc.prepare("OscSend", &osc_send(denied)).unwrap_err().to_string();
        assert!(error.contains("is not granted; write `udp = ["), "{denied}: {error}");
    }
    for nonsense in ["127.1:9000", "user@127.0.0.1:9000", "127.0.0.1", "127.0.0.1:99999", ""] {
        let error = osc.prepare("OscSend", &osc_send(nonsense)).unwrap_err().to_string();
        assert!(error.contains("is not a target"), "{nonsense}: {error}");
    }
    let dialled: Vec<String> = lab.network.dialled.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(dialled, ["127.0.0.1:9000", "192.0.2.7:8000"]);
}

/// FEA-4: a host name that could not be resolved when it was granted is said so.
#[test]
fn a_name_that_does_not_resolve_is_unavailable() {
    let lab = Lab::new();
    let mut osc = lab.instance("osc-output", udp(&["nowhere.local:1"]));
    let error = osc.prepare("OscSend", &osc_send("nowhere.local:1")).unwrap_err().to_string();
    assert!(error.contains("could not be resolved when the grant was given"), "{error}");
}

/// FEA-3: a handle that was taken in `prepare` answers `denied` from the moment of revocation on.
#[test]
fn a_revoked_grant_stops_the_next_call() {
    let lab = Lab::new();
    let feature = lab.prepare("osc-output", udp(&["127.0.0.1:9000"]));
    let mut osc = feature.instantiate().unwrap();
    let id = osc.prepare("OscSend", &osc_send("127.0.0.1:9000")).unwrap();

    osc.perform(id, event()).unwrap();
    feature.facts().revoke();
    let error = osc.perform(id, event()).unwrap_err().to_string();
    assert!(error.contains("the grant was revoked"), "{error}");
    assert_eq!(lab.network.sent.lock().unwrap().len(), 1);
}

/// ACT-1: what OscSend sends is what an OSC decoder reads.
#[test]
fn osc_send_sends_osc() {
    let lab = Lab::new();
    let mut osc = lab.instance("osc-output", udp(&["127.0.0.1:*"]));
    let params = r#"{"target": ["127.0.0.1:1", "127.0.0.1:2"], "address": "/x/{note}", "args": ["{value}", "{unit}"]}"#;
    let id = osc.prepare("OscSend", params).unwrap();
    osc.perform(id, event()).unwrap();
    let sent = lab.network.sent.lock().unwrap();
    assert_eq!(sent.len(), 2, "both targets");
    let expected = rosc::OscMessage { addr: "/x/36".into(), args: vec![100.into(), 0.5_f32.into()] };
    for packet in sent.iter() {
        assert_eq!(rosc::decoder::decode_udp(packet).unwrap().1, rosc::OscPacket::Message(expected.clone()));
    }
}

/// FEA-9: each limit stops the guest, and says which it was.
#[test]
fn each_limit_is_enforced_and_named() {
    let lab = Lab::new();
    let feature = lab.prepare("tests/hostile", udp(&["127.0.0.1:*"]));
    for (how, why) in [
        ("loop", "it ran longer than its 20 ms"),
        ("trap", "wasm `unreachable` instruction executed"),
        ("recurse", "it used up its stack of 512 KiB"),
        ("memory", "it reached its memory limit of 64 MiB"),
    ] {
        let mut hostile = feature.instantiate().unwrap();
        let harmless = hostile.prepare("Misbehave", r#"{"how": "not at all"}"#).unwrap();
        let id = hostile.prepare("Misbehave", &format!(r#"{{"how": "{how}"}}"#)).unwrap();
        // The first one has more time; these are the ones on the event path.
        hostile.perform(harmless, event()).unwrap();
        let error = hostile.perform(id, event()).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
    }
    // As of performing, the first one had more time, above.
    for (how, why) in [
        ("prepare-loop", "it ran longer than its 200 ms"),
        ("prepare-trap", "wasm `unreachable` instruction executed"),
        ("target-handles", "it reached its limit of 1024 handles"),
    ] {
        let mut hostile = feature.instantiate().unwrap();
        let error = hostile.prepare("Misbehave", &format!(r#"{{"how": "{how}"}}"#)).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
    }
}

/// FEA-9: long texts are cut, datagrams have a largest size.
#[test]
fn nonsense_and_oversize_are_refused_without_a_trap() {
    let lab = Lab::new();
    let mut hostile = lab.instance("tests/hostile", udp(&["127.0.0.1:*"]));
    let nonsense = hostile.prepare("Misbehave", r#"{"how": "nonsense"}"#).unwrap();
    let error = hostile.perform(nonsense, event()).unwrap_err().to_string();
    assert!(error.len() <= 1024 + '…'.len_utf8(), "{} bytes", error.len());
    assert!(!error.contains('\u{1b}'), "control characters are not passed on");

    hostile.prepare("Misbehave", r#"{"how": "target-local"}"#).unwrap();
    let large = hostile.prepare("Misbehave", r#"{"how": "large-datagram"}"#).unwrap();
    let error = hostile.perform(large, event()).unwrap_err().to_string();
    assert!(error.contains("a datagram has at most 65507 bytes"), "{error}");
    assert!(lab.network.sent.lock().unwrap().is_empty());
}

/// FEA-15: a flood of alerts is bounded and counted, and its text can't rewrite a terminal.
#[test]
fn a_flood_of_alerts_is_bounded() {
    let lab = Lab::new();
    let mut hostile = lab.instance("tests/hostile", Grants { alert: true, ..Grants::default() });
    let flood = hostile.prepare("Misbehave", r#"{"how": "flood"}"#).unwrap();
    hostile.perform(flood, event()).unwrap();
    let said: Vec<SinkMessage> = lab.said.try_iter().collect();
    assert!((50..200).contains(&said.len()), "{} of 10000 got through", said.len());
    assert_eq!(said.len() as u64 + lab.sinks.dropped(), 10_000);
    assert!(said.iter().all(|message| message.kind == SinkKind::Alert && !message.text.chars().any(char::is_control)));
}

/// FEA-15: without the grant there is no sink.
#[test]
fn a_sink_without_a_grant_stays_shut() {
    let lab = Lab::new();
    let mut hostile = lab.instance("tests/hostile", Grants::default());
    let flood = hostile.prepare("Misbehave", r#"{"how": "flood"}"#).unwrap();
    hostile.perform(flood, event()).unwrap();
    assert_eq!(lab.said.try_iter().count(), 0);
    let error = hostile.prepare("Misbehave", r#"{"how": "target-local"}"#).unwrap_err().to_string();
    assert!(error.contains("no network"), "{error}");
}

fn worker(lab: &Lab, name: &str, grants: Grants) -> (FeatureQueue, Observer) {
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let (queue, _, registered) = FeatureQueue::start(lab.prepare(name, grants), observer.clone()).unwrap();
    assert!(!registered.is_empty());
    (queue, observer)
}

fn play(action: &PreparedAction) {
    let envelope = Envelope {
        at: 0,
        device: DeviceId::new("pads"),
        event: MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 }.into(),
        position: 0,
        answers: Default::default(),
        rule: RuleId(0),
        generation: 0,
        mode: None,
    };
    action.try_perform(envelope).unwrap();
}

/// Waits until the worker has dealt with so many actions.
fn wait_for(counters: &WorkerCounters, dealt_with: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while counters.done.load(Ordering::Relaxed) + counters.failed.load(Ordering::Relaxed) < dealt_with {
        assert!(Instant::now() < deadline, "{counters:?}");
        std::thread::yield_now();
    }
}

/// FEA-9: a trap costs that one action; the spare goes on, with everything prepared in it.
#[test]
fn a_spare_takes_over_after_a_trap() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/hostile", Grants::default());
    let good = queue.prepare("Misbehave", r#"{"how": "not at all"}"#).unwrap();
    let trap = queue.prepare("Misbehave", r#"{"how": "trap"}"#).unwrap();
    // One trap fewer than those that end in a quarantine.
    let rounds = STRIKES as u64 - 1;
    for _ in 0..rounds {
        play(&good);
        play(&trap);
        play(&good);
    }
    wait_for(queue.counters(), 3 * rounds);
    assert_eq!(queue.counters().done.load(Ordering::Relaxed), 2 * rounds);
    assert_eq!(queue.counters().trapped.load(Ordering::Relaxed), rounds);
    assert!(queue.counters().last_failure().unwrap().contains("unreachable"));
}

/// FEA-9: one trap more, and the feature is left alone for a while: nothing in it runs, not even what
/// is in order.
#[test]
fn a_feature_that_keeps_trapping_is_left_alone() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/hostile", Grants::default());
    let good = queue.prepare("Misbehave", r#"{"how": "not at all"}"#).unwrap();
    let trap = queue.prepare("Misbehave", r#"{"how": "trap"}"#).unwrap();
    let strikes = STRIKES as u64;
    for _ in 0..strikes {
        play(&good);
        play(&trap);
    }
    play(&good);
    play(&trap);
    wait_for(queue.counters(), 2 * strikes + 2);
    assert_eq!(queue.counters().done.load(Ordering::Relaxed), strikes);
    assert_eq!(queue.counters().trapped.load(Ordering::Relaxed), strikes, "the last one did not even run");
    assert!(queue.counters().last_failure().unwrap().contains("it kept trapping and is left alone"));
}

/// FEA-3: the same action with the same parameters is prepared once, and given back with the last use.
#[test]
fn prepared_actions_are_shared_and_given_back() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "osc-output", udp(&["127.0.0.1:*"]));
    let prepared: Vec<_> = (0..100).map(|_| queue.prepare("OscSend", &osc_send("127.0.0.1:7")).unwrap()).collect();
    let dialled = || lab.network.dialled.lock().unwrap().len();
    assert!(dialled() <= 2, "once in the serving instance and once in the spare, for a hundred uses");
    drop(prepared);
    // The slot was given back, so the same again is prepared anew.
    let before = dialled();
    let again = queue.prepare("OscSend", &osc_send("127.0.0.1:7")).unwrap();
    assert!(dialled() > before);
    play(&again);
    wait_for(queue.counters(), 1);
    assert_eq!(lab.network.sent.lock().unwrap().len(), 1);
}

/// CFG-4: an action that no rule has any more still does what was asked of it before.
#[test]
fn an_action_is_given_back_after_its_last_job() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/hostile", Grants::default());
    let slow = queue.prepare("Misbehave", r#"{"how": "loop"}"#).unwrap();
    let good = queue.prepare("Misbehave", r#"{"how": "not at all"}"#).unwrap();
    // While the worker is at the slow one, the others wait; then the rules that name them go.
    play(&slow);
    (0..100).for_each(|_| play(&good));
    drop((slow, good));
    wait_for(queue.counters(), 101);
    assert_eq!(queue.counters().done.load(Ordering::Relaxed), 100, "{:?}", queue.counters());
}

/// FEA-1: a feature written from the contract alone runs.
#[test]
fn a_third_partys_feature_runs() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/hello", Grants::default());
    let hello = queue.prepare("Hello", "{}").unwrap();
    play(&hello);
    let said = lab.said.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!((said.feature.as_str(), said.text.as_str()), ("project:hello", "hello, pads: 100"));
}
