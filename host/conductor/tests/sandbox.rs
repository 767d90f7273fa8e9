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

use conductor_dispatch::feature_queue::FeatureQueue;
use conductor_dispatch::ledger::Release;
use conductor_dispatch::prepared_action::PreparedAction;
use conductor_dispatch::queue::ReleaseListener as _;
use conductor_dispatch::{Envelope, Reason, WorkerCounters};
use conductor_event::{DeviceId, MidiMessage, ModeIx, RuleId};
use conductor_observer::sink_message::{SinkKind, SinkMessage, SinkQueue};
use conductor_observer::{self as observer, Observer};
use conductor_package::{Grants, Package};
use conductor_sandbox::bindings::Event;
use conductor_sandbox::datagrams::{DatagramSender, Datagrams};
use conductor_sandbox::quarantine::STRIKES;
use conductor_sandbox::services::Services;
use conductor_sandbox::{ActionInstance, Compiler, PreparedFeature, Sandbox};
use conductor_stdx::clock::{Clock, ManualClock};
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
        Self::with_clock(Clock::start())
    }

    fn with_clock(clock: Clock) -> Self {
        let network = Recorded::default();
        let (sinks, said) = SinkQueue::new();
        let services = Services { clock, ..Services::new(sinks.clone(), Box::new(network.clone())) };
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

/// ACT-1: a show may have more mappings to one target than a feature may have handles.
#[test]
fn thousands_of_mappings_share_their_target() {
    let lab = Lab::new();
    let mut osc = lab.instance("osc-output", udp(&["127.0.0.1:*"]));
    let mut prepared: Vec<u32> =
        (0..3000).map(|_| osc.prepare("OscSend", &osc_send("127.0.0.1:9000")).unwrap()).collect();
    let last = prepared.pop().unwrap();
    prepared.into_iter().for_each(|id| osc.release(id).unwrap());
    osc.perform(last, event()).unwrap();
    osc.release(last).unwrap();
    let again = osc.prepare("OscSend", &osc_send("127.0.0.1:9000")).unwrap();
    osc.perform(again, event()).unwrap();
    assert_eq!(lab.network.sent.lock().unwrap().len(), 2);
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
    let (queue, registered) = FeatureQueue::new(lab.prepare(name, grants), observer.clone()).unwrap();
    assert!(!registered.is_empty());
    (queue, observer)
}

fn envelope() -> Envelope {
    Envelope {
        at: 0,
        device: DeviceId::new("pads"),
        event: MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 }.into(),
        position: 0,
        pattern: None,
        answers: Default::default(),
        rule: RuleId(0),
        generation: 0,
        mode: None,
        tries: None,
    }
}

fn play(action: &PreparedAction) {
    action.try_perform(envelope()).unwrap();
}

/// Waits until the worker has dealt with so many actions.
fn wait_for(counters: &WorkerCounters, dealt_with: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while counters.done.load(Ordering::Relaxed) + counters.failed.load(Ordering::Relaxed) < dealt_with {
        assert!(Instant::now() < deadline, "{counters:?}");
        std::thread::yield_now();
    }
}

/// PERF-2: once its calls are known to be short, the thread that brings an event makes them, and no other is woken. But it
/// does so for a bounded time: after that, the rest is for the feature's own thread.
#[test]
fn quick_calls_are_made_by_the_thread_that_brings_the_event() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/hostile", Grants::default());
    let good = queue.prepare("Misbehave", r#"{"how": "not at all"}"#).unwrap();
    let carried = || queue.counters().carried.load(Ordering::Relaxed);
    let mut played = 0;
    let mut play_until = |until| {
        good.put(envelope()).unwrap();
        good.worker().carry(until);
        played += 1;
        wait_for(queue.counters(), played);
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while carried() < 100 {
        assert!(Instant::now() < deadline, "nothing is carried: {:?}", queue.counters());
        play_until(deadline);
    }
    let before = carried();
    (0..1000).for_each(|_| play_until(Instant::now()));
    assert_eq!(carried(), before, "a job was begun when the time was over");
}

/// PERF-2: at 12 000 events a second, a feature that gets no processor for 200 ms loses none and keeps their order. What
/// finds no room after that is counted, and is not done.
#[test]
fn a_feature_that_gets_no_processor_for_a_while_loses_nothing() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "osc-output", udp(&["127.0.0.1:*"]));
    let params = r#"{"target": "127.0.0.1:7", "address": "/x", "args": ["{value}"]}"#;
    let action = queue.prepare("OscSend", params).unwrap();
    let play = |n: u8| {
        let event = MidiMessage::NoteOn { channel: 0, note: 36, velocity: n }.into();
        // Its thread is not woken for it.
        action.put(Envelope { event, ..envelope() })
    };
    let mut velocities = (1..=127).cycle();
    let mut expected = Vec::new();
    let lost = loop {
        let velocity = velocities.next().unwrap();
        match play(velocity) {
            Ok(()) => expected.push(velocity),
            Err(reason) => break reason,
        }
    };
    assert_eq!(lost, Reason::QueueFull);
    assert!(expected.len() >= 12_000 / 5, "{}", expected.len());
    action.worker().ring();
    wait_for(queue.counters(), expected.len() as u64 + 1);
    assert_eq!(queue.counters().queue_full.load(Ordering::Relaxed), 1);
    let values: Vec<u8> = sent_values(&lab);
    assert_eq!(values, expected);
}

/// The first argument of each OSC message that was sent.
fn sent_values(lab: &Lab) -> Vec<u8> {
    let value = |packet: &Vec<u8>| match rosc::decoder::decode_udp(packet).unwrap().1 {
        rosc::OscPacket::Message(message) => u8::try_from(message.args[0].clone().int().unwrap()).unwrap(),
        rosc::OscPacket::Bundle(_) => panic!("it sends messages"),
    };
    lab.network.sent.lock().unwrap().iter().map(value).collect()
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

/// FEA-9: one trap more, and the feature is quarantined for a while: nothing in it runs, not even what
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
    assert!(queue.counters().last_failure().unwrap().contains("it kept trapping and is quarantined"));
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

/// A lab whose clock stands at 0, and the hand that moves it.
fn lab_by_hand() -> (Lab, ManualClock) {
    let (clock, hand) = Clock::manual();
    (Lab::with_clock(clock), hand)
}

/// What `tests/metronome` may have.
fn timers() -> Grants {
    Grants { timers: true, ..udp(&["127.0.0.1:*"]) }
}

fn metronome(ms: u64) -> String {
    serde_json::json!({ "target": "127.0.0.1:9", "ms": ms }).to_string()
}

/// A press at so many milliseconds, by a rule of the first mode of the first rule set.
fn press(ms: u64) -> Envelope {
    Envelope {
        at: ms * 1_000_000,
        device: DeviceId::new("pads"),
        event: MidiMessage::NoteOn { channel: 0, note: 36, velocity: 100 }.into(),
        position: 0,
        pattern: None,
        answers: Default::default(),
        rule: RuleId(0),
        generation: 1,
        mode: Some(ModeIx(0)),
        tries: None,
    }
}

/// Waits until so many datagrams were sent, and takes them out as text.
fn sent(lab: &Lab, count: usize) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while lab.network.sent.lock().unwrap().len() < count {
        assert!(Instant::now() < deadline, "{:?}", lab.network.sent.lock().unwrap());
        std::thread::yield_now();
    }
    let sent = std::mem::take(&mut *lab.network.sent.lock().unwrap());
    sent.into_iter().map(|datagram| String::from_utf8(datagram).unwrap()).collect()
}

fn ticks(milliseconds: impl IntoIterator<Item = u64>) -> Vec<String> {
    milliseconds.into_iter().map(|ms| format!("tick {}", ms * 1_000_000)).collect()
}

/// FEA-9: a feature is called at exact times after an event, in order with the events between, for as long as it asks.
#[test]
fn a_metronome_ticks_at_exact_times_until_it_is_stopped() {
    let (lab, hand) = lab_by_hand();
    let (queue, _observer) = worker(&lab, "tests/metronome", timers());
    let (tick, echo) = (queue.prepare("Metronome", &metronome(500)), queue.prepare("Echo", &metronome(300)));
    let (tick, echo) = (tick.unwrap(), echo.unwrap());
    hand.advance(Duration::from_millis(40));
    tick.try_perform(press(40)).unwrap();
    assert_eq!(sent(&lab, 1), ticks([40]));
    // The echoes of a press meanwhile come in between, where they belong, also if the machine is away for a while.
    hand.advance(Duration::from_millis(560));
    echo.try_perform(press(600)).unwrap();
    hand.advance(Duration::from_millis(1440));
    let expected = ["tick 540", "echo 1 900", "tick 1040", "echo 2 1200", "echo 3 1500", "tick 1540", "tick 2040"];
    assert_eq!(sent(&lab, expected.len()), expected.map(|line| format!("{line}000000")));
    // The second press ends it: what is sent next is of the third one.
    tick.try_perform(press(2040)).unwrap();
    hand.advance(Duration::from_secs(8));
    tick.try_perform(press(10_040)).unwrap();
    assert_eq!(sent(&lab, 1), ticks([10_040]));
    assert_eq!(queue.counters().failed.load(Ordering::Relaxed), 0, "{:?}", queue.counters());
}

/// FEA-9: the same by the system's clock, which the test does not move.
#[test]
fn a_metronome_ticks_by_the_systems_clock() {
    let lab = Lab::new();
    let (queue, _observer) = worker(&lab, "tests/metronome", timers());
    let tick = queue.prepare("Metronome", &metronome(2)).unwrap();
    tick.try_perform(press(0)).unwrap();
    assert_eq!(sent(&lab, 5)[..5], ticks([0, 2, 4, 6, 8]));
}

/// What an action began goes with the mode, the rules, the device and the action itself.
#[test]
fn a_timer_goes_with_its_owner() {
    let (lab, hand) = lab_by_hand();
    let (queue, _observer) = worker(&lab, "tests/metronome", timers());
    let (tick, other) = (queue.prepare("Metronome", &metronome(500)), queue.prepare("Metronome", &metronome(700)));
    let (tick, other) = (tick.unwrap(), other.unwrap());
    let releases = tick.worker().pending_releases();
    let mut now = 0;
    for release in [Release::Mode(ModeIx(1)), Release::Rules(2), Release::Device(DeviceId::new("pads"))] {
        tick.try_perform(press(now)).unwrap();
        assert_eq!(sent(&lab, 1), ticks([now]));
        // Those of others stay.
        releases.release(&Release::Mode(ModeIx(0)));
        releases.release(&Release::Rules(1));
        releases.release(&Release::Device(DeviceId::new("keys")));
        other.try_perform(Envelope { device: DeviceId::new("keys"), generation: 9, mode: None, ..press(now) }).unwrap();
        releases.release(&release);
        assert_eq!(sent(&lab, 1), ticks([now]));
        hand.advance(Duration::from_secs(1));
        assert_eq!(sent(&lab, 1), ticks([now + 700]), "the other's, and no other");
        other.try_perform(press(now + 1000)).unwrap();
        now += 1000;
    }
    tick.try_perform(press(now)).unwrap();
    assert_eq!(sent(&lab, 1), ticks([now]));
    drop(tick);
    // The next order is obeyed after the release.
    let tick = queue.prepare("Metronome", &metronome(900)).unwrap();
    hand.advance(Duration::from_secs(1));
    tick.try_perform(press(now + 1000)).unwrap();
    assert_eq!(sent(&lab, 1), ticks([now + 1000]), "nothing between");
}

/// FEA-2: without the grant there are no timers, and the feature, which can't do without, says so.
#[test]
fn timers_need_a_grant() {
    let lab = Lab::new();
    let error = lab.sandbox.prepare(&guest("tests/metronome"), udp(&["127.0.0.1:*"])).unwrap_err().to_string();
    assert!(error.contains("needs the capability \"timers\"") && error.contains("timers = true"), "{error}");
}
