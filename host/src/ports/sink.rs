//! The way in: a port's bytes become events in the engine's queue.
//!
//! Runs on the port's own thread. A full queue never loses a discrete event: the port waits with
//! it. A continuous value that finds the queue full is dropped and counted, because a newer one is
//! on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use conductor_engine::{DeviceEvent, DeviceId, Event, MidiMessage, MidiParser, OscArg, OscMessage};
use crossbeam_channel::{Sender, TrySendError};

use super::osc_shape;
use crate::clock::Clock;
use crate::event_loop::Input;

/// What a port has delivered so far.
#[derive(Debug, Default)]
pub struct PortCounters {
    /// Events that went into the engine.
    pub events: AtomicU64,
    /// Continuous values left out because the engine's queue was full.
    pub dropped: AtomicU64,
    /// Messages that made no sense: truncated, of a wrong type, not a number, too long.
    pub malformed: AtomicU64,
}

/// Where one input port puts what it receives.
#[derive(Debug)]
pub struct EventSink {
    device: DeviceId,
    queue: Sender<Input>,
    clock: Clock,
    counters: Arc<PortCounters>,
    parser: MidiParser,
}

impl EventSink {
    /// A sink for the port that is called `device`.
    pub fn new(device: DeviceId, queue: Sender<Input>, clock: Clock, counters: Arc<PortCounters>) -> Self {
        Self { device, queue, clock, counters, parser: MidiParser::new() }
    }

    /// Takes bytes of a MIDI stream, in any portions.
    pub fn midi(&mut self, bytes: &[u8]) {
        let Self { device, queue, clock, counters, parser } = self;
        let malformed = parser.dropped_messages();
        parser.push(bytes, &mut |message: MidiMessage| {
            put(queue, counters, clock, device, Event::Midi(message));
        });
        counters.malformed.fetch_add(parser.dropped_messages() - malformed, Ordering::Relaxed);
    }

    /// Takes one OSC packet. The messages of a bundle count one by one, at once: a time tag in the
    /// future is not waited for.
    pub fn osc(&mut self, packet: &[u8]) {
        let decoded = osc_shape::is_sound(packet).then(|| rosc::decoder::decode_udp(packet).ok()).flatten();
        match decoded {
            Some(([], packet)) => self.osc_packet(packet),
            _ => self.malformed(),
        }
    }

    fn osc_packet(&mut self, packet: rosc::OscPacket) {
        match packet {
            rosc::OscPacket::Bundle(bundle) => bundle.content.into_iter().for_each(|packet| self.osc_packet(packet)),
            rosc::OscPacket::Message(message) => {
                match message.args.into_iter().map(osc_arg).collect::<Option<Vec<_>>>() {
                    Some(args) => {
                        let message = OscMessage { address: message.addr.into(), args };
                        put(&self.queue, &self.counters, &self.clock, &self.device, Event::Osc(Arc::new(message)));
                    }
                    None => self.malformed(),
                }
            }
        }
    }

    fn malformed(&self) {
        self.counters.malformed.fetch_add(1, Ordering::Relaxed);
    }
}

fn put(queue: &Sender<Input>, counters: &PortCounters, clock: &Clock, device: &DeviceId, event: Event) {
    let continuous = event.is_continuous();
    let input = Input::Event { at: clock.now(), event: DeviceEvent { device: device.clone(), event } };
    let taken = match queue.try_send(input) {
        Ok(()) => true,
        Err(TrySendError::Full(_)) if continuous => {
            counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        Err(TrySendError::Full(input)) => queue.send(input).is_ok(),
        Err(TrySendError::Disconnected(_)) => false,
    };
    if taken {
        counters.events.fetch_add(1, Ordering::Relaxed);
    }
}

/// None for a number that is none: NaN and the infinities have no place on any scale.
fn osc_arg(arg: rosc::OscType) -> Option<OscArg> {
    use rosc::OscType;
    Some(match arg {
        OscType::Int(value) => OscArg::Int(value),
        OscType::Float(value) => OscArg::Float(value.is_finite().then_some(value)?),
        OscType::Long(value) => OscArg::Long(value),
        OscType::Double(value) => OscArg::Double(value.is_finite().then_some(value)?),
        OscType::String(value) => OscArg::String(value),
        OscType::Blob(value) => OscArg::Blob(value),
        OscType::Time(time) => OscArg::Time { seconds: time.seconds, fractional: time.fractional },
        OscType::Char(value) => OscArg::Char(value),
        OscType::Color(color) => OscArg::Color([color.red, color.green, color.blue, color.alpha]),
        OscType::Midi(midi) => OscArg::Midi([midi.port, midi.status, midi.data1, midi.data2]),
        OscType::Bool(value) => OscArg::Bool(value),
        OscType::Nil => OscArg::Nil,
        OscType::Inf => OscArg::Inf,
        OscType::Array(array) => OscArg::Array(array.content.into_iter().map(osc_arg).collect::<Option<_>>()?),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crossbeam_channel::Receiver;
    use proptest::prelude::*;

    fn sink(capacity: usize) -> (EventSink, Receiver<Input>, Arc<PortCounters>) {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        let counters = Arc::new(PortCounters::default());
        (EventSink::new(DeviceId::new("touch"), sender, Clock::start(), Arc::clone(&counters)), receiver, counters)
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

    #[test]
    fn a_full_queue_drops_continuous_values_only() {
        let (mut sink, receiver, counters) = sink(1);
        sink.midi(&[0xB0, 7, 1, 0xB0, 7, 2, 0xB0, 7, 3]);
        assert_eq!(counters.dropped.load(Ordering::Relaxed), 2);
        // A note waits until there is room.
        std::thread::scope(|scope| {
            scope.spawn(|| sink.midi(&[0x90, 60, 100]));
            assert!(receiver.recv_timeout(std::time::Duration::from_secs(10)).is_ok());
            assert!(receiver.recv_timeout(std::time::Duration::from_secs(10)).is_ok());
        });
        assert_eq!(counters.events.load(Ordering::Relaxed), 2);
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
