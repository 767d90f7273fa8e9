//! Event sinks: a port's bytes are parsed into events for the engine's queue.
//!
//! Runs on the port's own thread, which also has the engine do what it has put into the queue, and the workers after it
//! ([`doorbell::Sender::carry`]); see the engine's event loop. A full queue never loses a discrete event: the port waits with
//! it. A continuous value that finds the queue full, or its device over its rate [`Limit`], waits for its
//! turn, and a newer one replaces it (coalescing); each that was replaced is counted.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use conductor_event::{ArtNetChange, DeviceEvent, DeviceId, Event, HidEvent, MidiMessage, Nanos};
use conductor_listening::Listening;
use conductor_midi_parser::MidiParser;
use conductor_scheduling::event_thread_once;
use conductor_stdx::clock::Clock;
use conductor_stdx::device_defaults::{USUAL_DEAD_ZONE, USUAL_RATE};
use conductor_stdx::doorbell;
use crossbeam_channel::TrySendError;

use super::binding::Channels;
use super::coalescing::{CoalescedValues, Pacer};
use super::limit::Limit;
use super::{SysExIdentity, osc_packet};
use crate::engine_input::Input;

/// Continuous values of one port that may wait, where MIDI's own slots do not serve.
const MAX_WAITING: usize = 1024;

/// What a port has delivered so far, and whether it is heard.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Events that went into the engine.
    pub events: AtomicU64,
    /// Continuous values that gave way to newer ones, because the engine was behind or the device too fast.
    pub dropped: AtomicU64,
    /// Messages that made no sense: truncated, of a wrong type, not a number, too long.
    pub malformed: AtomicU64,
    /// Datagrams that the system dropped, since its receive buffer was full.
    pub lost: AtomicU64,
    /// Events that were discarded: of a muted device, of a binding that is ambiguous, of a sender that is
    /// not allowed.
    pub unheard: AtomicU64,
    /// The slots of [`Channels`] that are muted, as bits.
    pub muted: AtomicU32,
    /// What the device answered when it was asked who it is.
    pub identity: OnceLock<SysExIdentity>,
}

/// Which devices are on a port, and under which names their events go to the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRouting {
    /// The devices on the port, which share no channel. Events of other channels are discarded.
    pub devices: Vec<RoutedDevice>,
    /// How far a stick has to leave its middle before it counts, 0 to 1.
    pub dead_zone: f32,
    /// Whether the device is to be heard by this host alone.
    pub grab: bool,
}

/// A device on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedDevice {
    /// The name that its events carry.
    pub device: DeviceId,
    /// Its part of the port.
    pub channels: Channels,
    /// Events that it may send in a second.
    pub max_events_per_sec: u32,
}

impl InputRouting {
    /// All of the port, as one device.
    pub fn whole(device: DeviceId) -> Self {
        let heard = RoutedDevice { device, channels: Channels::ALL, max_events_per_sec: USUAL_RATE };
        Self { devices: vec![heard], dead_zone: USUAL_DEAD_ZONE, grab: false }
    }
}

/// One device on the port, at work.
#[derive(Debug)]
struct Lane {
    device: DeviceId,
    limit: Limit,
}

/// The part that the pacer's thread shares.
#[derive(Debug)]
struct Shared {
    lanes: Vec<Lane>,
    /// The lane of each slot of [`Channels`].
    slots: [Option<usize>; Channels::SLOTS],
    queue: doorbell::Sender<Input>,
    clock: Clock,
    counters: Arc<PortCounters>,
    /// Whether the port's thread must not work for long.
    rings: AtomicBool,
    /// Who else hears it while something is learned, and the name for what no device on the port has.
    listener: OnceLock<(Arc<Listening>, DeviceId)>,
}

/// What became of an event that may wait.
enum Offered {
    Passed,
    Unheard,
    Later,
}

impl Shared {
    /// The lane for an event; `None`, and counted, if it is discarded.
    fn lane(&self, event: &Event) -> Option<&Lane> {
        let slot = Channels::slot(event.channel());
        let muted = self.counters.muted.load(Ordering::Relaxed) >> slot & 1 == 1;
        let lane = self.slots[slot].filter(|_| !muted).and_then(|lane| self.lanes.get(lane));
        if lane.is_none() {
            self.counters.unheard.fetch_add(1, Ordering::Relaxed);
            if !muted {
                self.listen(None, event);
            }
        }
        lane
    }

    /// Hands an event to the learn sessions, which agents may begin; so no key that is typed.
    fn listen(&self, lane: Option<&Lane>, event: &Event) {
        if let Some((listening, label)) = self.listener.get()
            && listening.is_on()
            && !event.is_typed()
        {
            listening.put(self.clock.now(), lane.map_or(label, |lane| &lane.device), event);
        }
    }

    fn input(&self, lane: &Lane, now: Nanos, event: Event) -> Input {
        Input::Event { at: now, event: DeviceEvent { device: lane.device.clone(), event } }
    }

    /// Puts a continuous value into the engine's queue, if it may pass now.
    fn offer(&self, event: &Event) -> Offered {
        let Some(lane) = self.lane(event) else { return Offered::Unheard };
        let now = self.clock.now();
        // Looked at first, so that a full queue uses no allowance up.
        if self.queue.is_full() || !lane.limit.allows(now) {
            return Offered::Later;
        }
        match self.queue.put(self.input(lane, now, event.clone())) {
            Ok(()) => {
                self.counters.events.fetch_add(1, Ordering::Relaxed);
                self.listen(Some(lane), event);
                self.go_on();
                Offered::Passed
            }
            Err(TrySendError::Full(_)) => Offered::Later,
            Err(TrySendError::Disconnected(_)) => Offered::Unheard,
        }
    }

    /// Puts a discrete event into the engine's queue, and waits with it until there is room.
    fn insist(&self, event: Event) {
        let Some(lane) = self.lane(&event) else { return };
        self.listen(Some(lane), &event);
        let now = self.clock.now();
        lane.limit.count(now);
        match self.queue.put(self.input(lane, now, event)) {
            Ok(()) => {
                self.counters.events.fetch_add(1, Ordering::Relaxed);
                self.go_on();
            }
            Err(TrySendError::Full(input)) => {
                let taken = self.queue.send(input).is_ok();
                self.counters.events.fetch_add(u64::from(taken), Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => {}
        }
    }

    /// Has what was put into the engine's queue done.
    fn go_on(&self) {
        if self.rings.load(Ordering::Relaxed) {
            self.queue.ring();
        } else {
            self.queue.carry();
        }
    }

    fn replaced(&self, values: u64) {
        self.counters.dropped.fetch_add(values, Ordering::Relaxed);
    }
}

/// Where one input port puts what it receives.
#[derive(Debug)]
pub struct EventSink {
    way: Arc<Shared>,
    parser: MidiParser,
    /// MIDI values that wait.
    held: Arc<CoalescedValues>,
    /// Other values that wait, oldest first; [`settle`](Self::settle) passes them on.
    waiting: Vec<Event>,
    dead_zone: f32,
    grab: bool,
}

impl EventSink {
    /// A sink for a port of which this is heard.
    pub fn new(
        routing: &InputRouting,
        queue: doorbell::Sender<Input>,
        clock: Clock,
        counters: Arc<PortCounters>,
        pacer: &Pacer,
    ) -> Self {
        let mut slots = [None; Channels::SLOTS];
        for (lane, heard) in routing.devices.iter().enumerate() {
            (0..Channels::SLOTS).filter(|slot| heard.channels.has(*slot)).for_each(|slot| slots[slot] = Some(lane));
        }
        let lane =
            |heard: &RoutedDevice| Lane { device: heard.device.clone(), limit: Limit::new(heard.max_events_per_sec) };
        let lanes = routing.devices.iter().map(lane).collect();
        let (rings, listener) = (AtomicBool::new(false), OnceLock::new());
        let way = Arc::new(Shared { lanes, slots, queue, clock, counters, rings, listener });
        let (passing, counting) = (Arc::clone(&way), Arc::clone(&way));
        let held = pacer.hold(
            Box::new(move |message| !matches!(passing.offer(&Event::Midi(message)), Offered::Later)),
            Box::new(move |values| counting.replaced(values)),
        );
        let waiting = Vec::with_capacity(MAX_WAITING);
        Self { way, parser: MidiParser::new(), held, waiting, dead_zone: routing.dead_zone, grab: routing.grab }
    }

    /// The same for a port that is also heard while something is learned; `label` names what no device on it has.
    #[must_use]
    pub fn heard_by(self, listening: &Arc<Listening>, label: &DeviceId) -> Self {
        let _ = self.way.listener.set((Arc::clone(listening), label.clone()));
        self
    }

    /// Another way in for the same port, with the same limits: for a port that several threads receive for.
    pub fn another(&self) -> Self {
        Self {
            way: Arc::clone(&self.way),
            parser: MidiParser::new(),
            held: Arc::clone(&self.held),
            waiting: Vec::with_capacity(MAX_WAITING),
            dead_zone: self.dead_zone,
            grab: self.grab,
        }
    }

    /// The same for a port whose thread must not work for long, such as a driver's callback: the engine thread does what it
    /// brings.
    #[must_use]
    pub fn on_a_callback(self) -> Self {
        self.way.rings.store(true, Ordering::Relaxed);
        self
    }

    /// Takes bytes of a MIDI stream, in any portions.
    pub fn midi(&mut self, bytes: &[u8]) {
        // The thread is the driver's.
        event_thread_once();
        let Self { way, parser, held, .. } = self;
        let malformed = parser.dropped_messages();
        parser.push(bytes, &mut |message: MidiMessage| {
            if let MidiMessage::SysEx(bytes) = &message
                && let Some(identity) = SysExIdentity::of_reply(bytes)
            {
                let _ = way.counters.identity.set(identity);
            }
            let event = Event::Midi(message);
            if !event.is_continuous() {
                way.insist(event);
            } else if (held.any() || matches!(way.offer(&event), Offered::Later)) && !held.put(&event) {
                way.replaced(1);
            }
        });
        way.counters.malformed.fetch_add(parser.dropped_messages() - malformed, Ordering::Relaxed);
    }

    /// Takes what a gamepad, a keyboard or a mouse did.
    pub fn hid(&mut self, moved: HidEvent) {
        // There is room for all that a pad has, and keys never wait.
        let _ = self.put(Event::Hid(moved));
    }

    /// Takes a change of a DMX channel. False if there is no room for it: more channels wait than there is room
    /// for. It is counted, and should be tried again.
    pub fn artnet(&mut self, change: ArtNetChange) -> bool {
        self.put(Event::ArtNet(change))
    }

    /// How far a stick has to leave its middle before it counts, 0 to 1.
    pub fn dead_zone(&self) -> f32 {
        self.dead_zone
    }

    /// Whether the device is to be heard by this host alone.
    pub fn grab(&self) -> bool {
        self.grab
    }

    /// Passes on values that had to wait, as far as they may pass now. Ports that have a thread of their own
    /// call it whenever nothing has come for a moment. True when nothing waits any more.
    pub fn settle(&mut self) -> bool {
        let way = &self.way;
        let passed = self.waiting.iter().take_while(|event| !matches!(way.offer(event), Offered::Later)).count();
        self.waiting.drain(..passed);
        self.waiting.is_empty()
    }

    /// Counts something from a sender that is not allowed.
    pub fn unheard(&self) {
        self.way.counters.unheard.fetch_add(1, Ordering::Relaxed);
    }

    /// False if the event found no room.
    fn put(&mut self, event: Event) -> bool {
        let nothing_waits = self.settle();
        if !event.is_continuous() {
            self.way.insist(event);
        } else if !nothing_waits || matches!(self.way.offer(&event), Offered::Later) {
            return self.wait(event);
        }
        true
    }

    /// The newest value of each control waits. False if there is no room for one more control.
    fn wait(&mut self, event: Event) -> bool {
        if let Some(older) = self.waiting.iter_mut().find(|older| are_of_one_control(older, &event)) {
            *older = since(older, event);
            self.way.replaced(1);
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.push(event);
        } else {
            self.way.replaced(1);
            return false;
        }
        true
    }

    /// Takes one OSC packet. The messages of a bundle count one by one, at once: a time tag in the
    /// future is not waited for.
    pub fn osc(&mut self, packet: &[u8]) {
        osc_packet::read(packet, &mut |message| match message {
            // The sender does not repeat it: it is counted as dropped.
            Ok(message) => {
                let _ = self.put(Event::Osc(Arc::new(message)));
            }
            Err(_) => self.malformed(),
        });
    }

    /// Counts datagrams that the system dropped before they could be read.
    pub fn lost(&self, datagrams: u64) {
        self.way.counters.lost.fetch_add(datagrams, Ordering::Relaxed);
    }

    /// Counts a message that makes no sense.
    pub fn malformed(&self) {
        self.way.counters.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether the newer of two values makes the older one worthless.
fn are_of_one_control(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::Osc(one), Event::Osc(other)) => {
            one.address() == other.address() && one.args().len() == other.args().len()
        }
        (Event::Hid(one), Event::Hid(other)) => one.number() == other.number(),
        (Event::ArtNet(one), Event::ArtNet(other)) => (one.universe, one.channel) == (other.universe, other.channel),
        _ => false,
    }
}

/// The newer value, as what happened since before the older one.
fn since(older: &Event, newer: Event) -> Event {
    match (older, newer) {
        (Event::ArtNet(older), Event::ArtNet(newer)) => {
            Event::ArtNet(ArtNetChange { previous: older.previous, ..newer })
        }
        (_, newer) => newer,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crossbeam_channel::Receiver;

    use conductor_stdx::doorbell::Doorbell;
    use proptest::prelude::*;

    fn sink(capacity: usize) -> (EventSink, Receiver<Input>, Arc<PortCounters>) {
        routing(&InputRouting::whole(DeviceId::new("touch")), capacity)
    }

    fn routing(routing: &InputRouting, capacity: usize) -> (EventSink, Receiver<Input>, Arc<PortCounters>) {
        let (sender, receiver) = doorbell::bounded(capacity, &Doorbell::default());
        let (counters, pacer) = (Arc::new(PortCounters::default()), Pacer::start().unwrap());
        let sink = EventSink::new(routing, sender, Clock::start(), Arc::clone(&counters), &pacer);
        // The pacer lives as long as the test.
        std::mem::forget(pacer);
        (sink, receiver, counters)
    }

    fn limited(events_per_sec: u32) -> InputRouting {
        let mut routing = InputRouting::whole(DeviceId::new("touch"));
        routing.devices[0].max_events_per_sec = events_per_sec;
        routing
    }

    fn next(receiver: &Receiver<Input>) -> Event {
        match receiver.recv_timeout(Duration::from_secs(10)).unwrap() {
            Input::Event { event, .. } => event.event,
            other => panic!("{other:?}"),
        }
    }

    fn message(address: &str, args: Vec<rosc::OscType>) -> rosc::OscPacket {
        rosc::OscPacket::Message(rosc::OscMessage { addr: address.into(), args })
    }

    fn encode(packet: &rosc::OscPacket) -> Vec<u8> {
        rosc::encoder::encode(packet).unwrap()
    }

    fn nested(depth: usize) -> rosc::OscPacket {
        (0..depth).fold(message("/deep", vec![]), |inner, _| {
            rosc::OscPacket::Bundle(rosc::OscBundle { timetag: (0, 1).into(), content: vec![inner] })
        })
    }

    fn events(receiver: &Receiver<Input>) -> Vec<String> {
        receiver
            .try_iter()
            .map(|input| match input {
                Input::Event { event, .. } => format!("{} {}", event.device, event.event),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_bundle_is_its_messages_in_order() {
        let (mut sink, receiver, _) = sink(16);
        let content = vec![message("/a", vec![1.into()]), nested(2), message("/b", vec![true.into()])];
        sink.osc(&encode(&rosc::OscPacket::Bundle(rosc::OscBundle { timetag: (0, 1).into(), content })));
        assert_eq!(events(&receiver).len(), 3);
    }

    #[test]
    fn what_makes_no_sense_is_counted_and_dropped() {
        let (mut sink, receiver, counters) = sink(16);
        let whole = encode(&message("/fader/1", vec![0.5_f32.into(), "text".into()]));
        let cases: Vec<Vec<u8>> = vec![
            vec![],
            whole[..whole.len() - 3].to_vec(),
            whole[..9].to_vec(),
            b"/a\0\0,q\0\0".to_vec(),
            b"no slash\0\0\0\0,\0\0\0".to_vec(),
            encode(&nested(100)),
            encode(&message("/nan", vec![f32::NAN.into()])),
            encode(&message("/inf", vec![f64::INFINITY.into()])),
        ];
        for case in &cases {
            sink.osc(case);
        }
        assert_eq!(counters.malformed.load(Ordering::Relaxed), cases.len() as u64);
        assert_eq!(events(&receiver), Vec::<String>::new());
        sink.osc(&whole);
        assert_eq!(events(&receiver).len(), 1, "and the next good packet is fine");
    }

    // ENG-11: with the engine behind, the latest value of each control comes when there is room; a note waits.
    #[test]
    fn a_full_queue_merges_continuous_values_only() {
        let (mut sink, receiver, counters) = sink(1);
        sink.midi(&[0xB0, 7, 1, 0xB0, 7, 2, 0xB0, 7, 3]);
        assert_eq!(counters.dropped.load(Ordering::Relaxed), 1, "2 gave way to 3");
        let value = |value| Event::Midi(MidiMessage::ControlChange { channel: 0, controller: 7, value });
        assert_eq!([next(&receiver), next(&receiver)], [value(1), value(3)]);
        // What was passed on may still be held for a moment, and the next value would join it.
        let deadline = Instant::now() + Duration::from_secs(10);
        while sink.held.any() {
            assert!(Instant::now() < deadline, "a value is held although it was passed on");
            std::thread::yield_now();
        }
        sink.midi(&[0xB0, 7, 4]);
        std::thread::scope(|scope| {
            scope.spawn(|| sink.midi(&[0x90, 60, 100]));
            assert_eq!(next(&receiver), value(4));
            assert_eq!(next(&receiver), Event::Midi(MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 }));
        });
        assert_eq!(counters.events.load(Ordering::Relaxed), 4);
    }

    // ENG-11: a device that is too fast.
    #[test]
    fn over_the_limit_no_note_is_lost_and_the_last_value_comes() {
        let (mut sink, receiver, counters) = routing(&limited(20), 8192);
        for value in 0..=127 {
            sink.midi(&[0xB0, 7, value, 0x90, value, 1]);
        }
        let mut notes = 0;
        loop {
            match next(&receiver) {
                Event::Midi(MidiMessage::NoteOn { .. }) => notes += 1,
                Event::Midi(MidiMessage::ControlChange { value: 127, .. }) => break,
                Event::Midi(MidiMessage::ControlChange { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(notes, 128);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        assert!(count(&counters.dropped) > 100);
        // The last value may have come a moment before it is counted.
        let deadline = Instant::now() + Duration::from_secs(10);
        while count(&counters.events) + count(&counters.dropped) != 256 {
            assert!(Instant::now() < deadline, "each passed or was counted: {counters:?}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn over_the_limit_other_values_settle_too() {
        let (mut sink, receiver, counters) = routing(&limited(20), 8192);
        let change = |value, previous| ArtNetChange { universe: 0, channel: 1, value, previous };
        (1..=200).for_each(|value| assert!(sink.artnet(change(value, value - 1))));
        let deadline = Instant::now() + Duration::from_secs(10);
        while !sink.settle() {
            assert!(Instant::now() < deadline);
        }
        let mut last = 0;
        for input in receiver.try_iter() {
            let Input::Event { event, .. } = input else { panic!("{input:?}") };
            let Event::ArtNet(change) = event.event else { panic!("{:?}", event.event) };
            assert_eq!(change.previous, last, "what was skipped is no gap");
            last = change.value;
        }
        assert_eq!(last, 200);
        let passed = counters.events.load(Ordering::Relaxed);
        assert_eq!(passed + counters.dropped.load(Ordering::Relaxed), 200);
    }

    // ENG-3, PRT-3: two devices behind one port, one of them muted; the rest of the port belongs to no binding.
    #[test]
    fn a_port_is_heard_by_channels_and_muted_by_device() {
        let heard = |device, channel| RoutedDevice {
            device: DeviceId::new(device),
            channels: Channels::only([channel]),
            max_events_per_sec: USUAL_RATE,
        };
        let devices = vec![heard("pedal", 0), heard("keys", 1)];
        let (mut sink, receiver, counters) = routing(&InputRouting { devices, dead_zone: 0.0, grab: false }, 16);
        let notes = [0x90, 1, 1, 0x91, 2, 2, 0x92, 3, 3, 0xF8];
        sink.midi(&notes);
        assert_eq!(events(&receiver), ["pedal note-on 1 1", "keys note-on 2 2 ch 1"]);
        assert_eq!(counters.unheard.load(Ordering::Relaxed), 2);
        counters.muted.store(1 << 1, Ordering::Relaxed);
        sink.midi(&notes);
        assert_eq!(events(&receiver), ["pedal note-on 1 1"]);
    }

    // PRT-7
    #[test]
    fn the_answer_to_who_are_you_is_remembered() {
        let (mut sink, _receiver, counters) = sink(16);
        sink.midi(&[0xF0, 0x7E, 0x00, 0x06, 0x02, 0x00, 0x21, 0x09, 0x00, 0x2C, 0x02, 0x00, 1, 0, 0, 0, 0xF7]);
        let identity = SysExIdentity { manufacturer: [0, 0x21, 9], family: 0x1600, model: 2 };
        assert_eq!(counters.identity.get(), Some(&identity));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let (mut sink, _receiver, _) = sink(4096);
            sink.osc(&bytes);
            sink.midi(&bytes);
        }
    }
}
