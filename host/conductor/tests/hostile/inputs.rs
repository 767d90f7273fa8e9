//! What devices and network peers send: floods, nonsense, and ports that come and go. No message that counts is lost,
//! nothing grows without end, and what is left out is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conductor_engine::{Engine, Firing, RuleSetHandle, RuleSource, RuleSpec, Sink, Trigger, compile};
use conductor_event::{DeviceEvent, DeviceId, Event, HidEvent, MidiMessage, OscArg, OscMessage};
use conductor_ports::artnet::Universes;
use conductor_ports::coalescing::Pacer;
use conductor_ports::engine_input::Input;
use conductor_ports::sink::{EventSink, InputRouting, PortCounters};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell::{self, Doorbell};

/// Events of a flood.
const MANY: u64 = 10_000;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A port, and what the engine would take from it.
struct Port {
    sink: EventSink,
    counters: Arc<PortCounters>,
    taken: thread::JoinHandle<Vec<Event>>,
    _pacer: Pacer,
}

impl Port {
    /// A port whose device may send so many events in a second, before an engine whose queue is short.
    fn new(events_per_sec: u32) -> Self {
        let mut routing = InputRouting::whole(DeviceId::new("device"));
        routing.devices[0].max_events_per_sec = events_per_sec;
        let (queue, inputs) = doorbell::bounded(64, &Doorbell::default());
        let (counters, pacer) = (Arc::<PortCounters>::default(), Pacer::start().unwrap());
        let sink = EventSink::new(&routing, queue, Clock::start(), Arc::clone(&counters), &pacer);
        let taken = thread::spawn(move || {
            let events = inputs.iter().map(|input| match input {
                Input::Event { event, .. } => event.event,
                other => panic!("{other:?}"),
            });
            events.collect()
        });
        Self { sink, counters, taken, _pacer: pacer }
    }

    /// Everything that came through, once all that waited has.
    fn end(mut self) -> (Vec<Event>, Arc<PortCounters>) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while !self.sink.settle() {
            assert!(Instant::now() < deadline, "{:?}", self.counters);
            thread::yield_now();
        }
        drop(self.sink);
        drop(self._pacer);
        (self.taken.join().unwrap(), self.counters)
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn osc(address: &str, arg: rosc::OscType) -> rosc::OscPacket {
    rosc::OscPacket::Message(rosc::OscMessage { addr: address.into(), args: vec![arg] })
}

fn bytes(packet: &rosc::OscPacket) -> Vec<u8> {
    rosc::encoder::encode(packet).unwrap()
}

fn bundle(time: (u32, u32), content: Vec<rosc::OscPacket>) -> rosc::OscPacket {
    rosc::OscPacket::Bundle(rosc::OscBundle { timetag: time.into(), content })
}

#[test]
fn a_flood_of_osc_loses_no_message_that_counts() {
    let mut port = Port::new(1000);
    for n in 0..MANY as i32 {
        port.sink.osc(&bytes(&osc("/button", n.into())));
        port.sink.osc(&bytes(&osc("/fader", (n as f32).into())));
    }
    let (events, counters) = port.end();
    let values = |address: &str| {
        let of = events.iter().filter(|event| matches!(event, Event::Osc(message) if **message.address() == *address));
        of.map(Event::value).collect::<Vec<_>>()
    };
    assert!(values("/button").iter().copied().eq((0..MANY).map(|n| n as f64)), "each, in order");
    assert_eq!(values("/fader").last(), Some(&((MANY - 1) as f64)), "where it stands in the end");
    assert_eq!(count(&counters.events) + count(&counters.dropped), 2 * MANY, "the rest is counted");
}

#[test]
fn a_flood_of_midi_loses_no_note() {
    let mut port = Port::new(1000);
    for n in 0..MANY {
        let value = (n % 128) as u8;
        port.sink.midi(&[0x90, value, 1, 0xB0, 7, value]);
    }
    let deadline = Instant::now() + TEST_TIMEOUT;
    while count(&port.counters.events) + count(&port.counters.dropped) < 2 * MANY {
        assert!(Instant::now() < deadline, "{:?}", port.counters);
        thread::yield_now();
    }
    let (events, _) = port.end();
    let notes = events.iter().filter(|event| matches!(event, Event::Midi(MidiMessage::NoteOn { .. })));
    assert_eq!(notes.count() as u64, MANY);
    let last = events.iter().rfind(|event| matches!(event, Event::Midi(MidiMessage::ControlChange { .. })));
    assert_eq!(last.map(Event::value), Some(((MANY - 1) % 128) as f64));
}

#[test]
fn a_stick_that_is_shaken_comes_to_rest_all_the_same() {
    let mut port = Port::new(100);
    for n in 0..MANY {
        let value = (n % 200) as f32 / 100.0 - 1.0;
        port.sink.hid(HidEvent::Stick { stick: 128, value });
        port.sink.hid(HidEvent::Button { button: 128, pressed: n % 2 == 0 });
    }
    port.sink.hid(HidEvent::Stick { stick: 128, value: 0.0 });
    let (events, counters) = port.end();
    let is_stick = |event: &&Event| matches!(event, Event::Hid(HidEvent::Stick { .. }));
    assert_eq!(events.iter().rfind(is_stick).map(Event::value), Some(0.0));
    assert_eq!(events.iter().filter(|event| !is_stick(event)).count() as u64, MANY, "each press and release");
    assert_eq!(count(&counters.events) + count(&counters.dropped), 2 * MANY + 1);
}

#[test]
fn universes_that_flap_are_bounded_and_their_changes_join_up() {
    const KNOWN: usize = 1024;
    let frame = |universe: u16, value: u8| {
        let [net, low] = universe.to_be_bytes();
        [&b"Art-Net\0\x00\x50\0\x0e\0\0"[..], &[low, net, 0, 2, value, 255 - value]].concat()
    };
    let (mut port, mut universes) = (Port::new(1000), Universes::default());
    let (mut changes, mut refused) = (0, 0);
    for n in 0..MANY {
        // More universes than are followed, each there, gone and back.
        let packet = frame((n * 7 % 2000) as u16, if n / 2000 % 2 == 0 { 255 } else { 0 });
        let taken = universes.take(&packet, |change| {
            changes += 1;
            port.sink.artnet(change)
        });
        refused += usize::from(taken.is_err());
    }
    assert!(refused >= (2000 - KNOWN) * (MANY as usize / 2000), "{refused}");
    let (events, counters) = port.end();
    assert_eq!(count(&counters.events) + count(&counters.dropped), changes);
    let mut stands = std::collections::HashMap::new();
    for event in &events {
        let Event::ArtNet(change) = event else { panic!("{event}") };
        let before = stands.insert((change.universe, change.channel), change.value).unwrap_or(0);
        assert_eq!(before, change.previous, "{change:?}");
    }
}

#[test]
fn bundles_that_are_nested_too_deep_cost_nothing() {
    let nested = |depth: usize, inner| (0..depth).fold(inner, |inner, _| bundle((0, 1), vec![inner]));
    let mut port = Port::new(1_000_000);
    for depth in [17, 100, 1000] {
        port.sink.osc(&bytes(&nested(depth, osc("/deep", 1.into()))));
    }
    assert_eq!((count(&port.counters.malformed), count(&port.counters.events)), (3, 0));
    // As deep and as wide as may be: a packet of 64 KB, none of which is lost.
    let wide = bundle((0, 1), (0..2000).map(|n| osc("/n", n.into())).collect());
    port.sink.osc(&bytes(&nested(15, wide)));
    let (events, _) = port.end();
    assert!(events.iter().map(Event::value).eq((0..2000).map(f64::from)));
}

#[test]
fn a_time_tag_holds_nothing_back() {
    let mut port = Port::new(1_000_000);
    let times = [(0, 0), (0, 1), (0, u32::MAX), (1, 0), (u32::MAX, 0), (u32::MAX, u32::MAX), (0x8000_0000, 7)];
    for (n, time) in (0..).zip(times) {
        port.sink
            .osc(&bytes(&bundle(time, vec![osc("/n", n.into()), bundle((u32::MAX, 0), vec![osc("/n", n.into())])])));
    }
    let (events, _) = port.end();
    let expected = (0..times.len()).flat_map(|n| [n as f64, n as f64]);
    assert!(events.iter().map(Event::value).eq(expected), "at once, in order");
}

/// Counts.
struct Fired(usize);

impl Sink<()> for Fired {
    fn fire(&mut self, _: Firing<'_, ()>) -> Option<Arc<str>> {
        self.0 += 1;
        None
    }
}

#[test]
fn address_patterns_that_are_made_to_be_slow_are_not() {
    // Where a matcher that goes back would try more ways than there are atoms.
    let address = format!("/{}b", "a".repeat(1000));
    let rules = (0..2000).map(|_| RuleSpec::new(Trigger::Osc { address: address.clone(), arg: None }, ()));
    let rules = compile(RuleSource { modes: Vec::new(), rules: rules.collect() }).unwrap();
    let mut engine = Engine::new(Arc::new(RuleSetHandle::new(rules)), Arc::default());
    let mut fired = Fired(0);
    let mut sent = |pattern: String| {
        fired.0 = 0;
        let event = OscMessage::new(pattern, vec![OscArg::Int(1)]).into();
        engine.event(0, DeviceEvent { device: DeviceId::new("peer"), event }, &mut fired);
        fired.0
    };
    assert_eq!(sent(format!("/{}c", "*a".repeat(OscMessage::MAX_WILDCARDS))), 0);
    assert_eq!(sent(format!("/{}b", "*a".repeat(OscMessage::MAX_WILDCARDS - 1))), 2000);
    assert_eq!(sent(format!("/{}*", "{a,aa,}".repeat(OscMessage::MAX_WILDCARDS - 1))), 2000);
    // More than that is no pattern, and so matches no address.
    assert_eq!(sent(format!("/{}b", "*a".repeat(OscMessage::MAX_WILDCARDS + 1))), 0);
    assert_eq!(sent(format!("/{}*", "a".repeat(OscMessage::MAX_PATTERN))), 0);
}

#[test]
fn running_status_ends_with_its_port() {
    let mut dice = 7_u64;
    let mut roll = || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 56) as u8
    };
    for _ in 0..50 {
        // A port that goes away in the middle of a message, after nonsense ...
        let mut port = Port::new(1_000_000);
        port.sink.midi(&(0..200).map(|_| roll()).collect::<Vec<_>>());
        port.sink.midi(&[0x90, 60]);
        drop(port.end());
        // ... and comes back with what would have been the end of it.
        let mut port = Port::new(1_000_000);
        port.sink.midi(&[100, 61, 100, 62]);
        port.sink.midi(&[0x80, 60, 0]);
        let (events, _) = port.end();
        assert_eq!(events, [Event::Midi(MidiMessage::NoteOff { channel: 0, note: 60, velocity: 0 })]);
    }
}

#[test]
fn a_sysex_without_an_end_is_given_up() {
    let mut port = Port::new(1_000_000);
    port.sink.midi(&[0xF0]);
    for _ in 0..1000 {
        port.sink.midi(&[0x11; 16 * 1024]);
    }
    port.sink.midi(&[0xF7, 0x90, 60, 1]);
    let (events, counters) = port.end();
    assert_eq!(events, [Event::Midi(MidiMessage::NoteOn { channel: 0, note: 60, velocity: 1 })], "and it goes on");
    assert!(count(&counters.malformed) > 0);
}
