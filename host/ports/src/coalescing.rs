//! Coalescing: values of a continuous MIDI control that have to wait are merged into the newest.
//!
//! Values wait if a device is over its rate limit or the engine's queue is full. The port's thread puts them in; the
//! [`Pacer`]'s thread takes them out when they may pass, because a driver calls a port only when something comes.
//! Neither locks or allocates: each control has a slot.

use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use conductor_event::{Event, MidiMessage};
use crossbeam_channel::Sender;

/// How often what waits is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

const CONTROLS: usize = 16 * 128;
const SLOTS: usize = 2 * CONTROLS + 2 * 16;
/// A slot in which nothing waits; values have 14 bits at most.
const EMPTY: u16 = u16::MAX;

/// The slot of a value's control, and the value; `None` if the event is discrete.
fn slot(event: &Event) -> Option<(usize, u16)> {
    let Event::Midi(message) = event else { return None };
    let control = |channel: u8, number: u8| usize::from(channel & 15) * 128 + usize::from(number & 127);
    Some(match *message {
        MidiMessage::ControlChange { channel, controller, value } => (control(channel, controller), value.into()),
        MidiMessage::PolyAftertouch { channel, note, pressure } => (CONTROLS + control(channel, note), pressure.into()),
        MidiMessage::Aftertouch { channel, pressure } => (2 * CONTROLS + usize::from(channel & 15), pressure.into()),
        MidiMessage::PitchBend { channel, value } => (2 * CONTROLS + 16 + usize::from(channel & 15), value),
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "each part is below 128 by its slot")]
fn message(slot: usize, value: u16) -> MidiMessage {
    let (channel, number) = ((slot % CONTROLS / 128) as u8, (slot % 128) as u8);
    let seven = (value & 0x7F) as u8;
    match slot / CONTROLS {
        0 => MidiMessage::ControlChange { channel, controller: number, value: seven },
        1 => MidiMessage::PolyAftertouch { channel, note: number, pressure: seven },
        _ if number < 16 => MidiMessage::Aftertouch { channel: number, pressure: seven },
        _ => MidiMessage::PitchBend { channel: number - 16, value },
    }
}

/// The values of one port that wait.
pub struct CoalescedValues {
    values: Box<[AtomicU16]>,
    /// A bit for each slot in which something may wait.
    marks: Box<[AtomicU64]>,
    /// Values that were put in and not yet passed on.
    waiting: AtomicUsize,
    pacer: std::thread::Thread,
}

impl CoalescedValues {
    /// Whether anything waits. As long as it does, new values have to go in here, too: a newer value that
    /// overtakes an older one would then be overwritten by it.
    pub fn any(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Puts a value in. Returns false if it replaced an older one, or if the event is discrete.
    pub fn put(&self, event: &Event) -> bool {
        let Some((slot, value)) = slot(event) else { return false };
        if self.values[slot].swap(value, Ordering::AcqRel) != EMPTY {
            return false;
        }
        self.marks[slot / 64].fetch_or(1 << (slot % 64), Ordering::Release);
        if self.waiting.fetch_add(1, Ordering::AcqRel) == 0 {
            self.pacer.unpark();
        }
        true
    }

    /// Offers every value that waits to `pass`, until it returns false. Returns how many were replaced by
    /// a newer one meanwhile. For one thread at a time.
    fn take(&self, mut pass: impl FnMut(MidiMessage) -> bool) -> u64 {
        let mut replaced = 0;
        for (word, marks) in self.marks.iter().enumerate() {
            let mut marked = marks.swap(0, Ordering::AcqRel);
            while marked != 0 {
                let slot = word * 64 + marked.trailing_zeros() as usize;
                let bit = marked & marked.wrapping_neg();
                let value = self.values[slot].swap(EMPTY, Ordering::AcqRel);
                if value != EMPTY && !pass(message(slot, value)) {
                    let back = self.values[slot].compare_exchange(EMPTY, value, Ordering::AcqRel, Ordering::Acquire);
                    if back.is_err() {
                        replaced += 1;
                        self.waiting.fetch_sub(1, Ordering::AcqRel);
                    }
                    marks.fetch_or(marked, Ordering::Release);
                    return replaced;
                }
                if value != EMPTY {
                    // Only now: until here the value was neither in its slot nor in the engine's queue.
                    self.waiting.fetch_sub(1, Ordering::AcqRel);
                }
                marked &= !bit;
            }
        }
        replaced
    }

    fn new(pacer: std::thread::Thread) -> Self {
        Self {
            values: (0..SLOTS).map(|_| AtomicU16::new(EMPTY)).collect(),
            marks: (0..SLOTS.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            waiting: AtomicUsize::new(0),
            pacer,
        }
    }
}

impl Drop for CoalescedValues {
    /// The port is closed; the pacer lets go of it.
    fn drop(&mut self) {
        self.pacer.unpark();
    }
}

impl std::fmt::Debug for CoalescedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoalescedValues").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

/// Passes on a value of a port; returns false if it may not pass yet.
pub type Pass = Box<dyn FnMut(MidiMessage) -> bool + Send>;
/// Gets the number of values that were replaced by newer ones.
pub type OnReplaced = Box<dyn Fn(u64) + Send>;

struct Port {
    held: Weak<CoalescedValues>,
    pass: Pass,
    replaced: OnReplaced,
}

/// The thread that passes on values that wait. Sleeps while there are none.
#[derive(Debug)]
pub struct Pacer {
    ports: Option<Sender<Port>>,
    thread: JoinHandle<()>,
}

impl Pacer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start() -> std::io::Result<Self> {
        let (sender, new) = crossbeam_channel::unbounded::<Port>();
        let thread = std::thread::Builder::new().name("pacer".into()).spawn(move || {
            let mut ports: Vec<Port> = Vec::new();
            loop {
                let ended = loop {
                    match new.try_recv() {
                        Ok(port) => ports.push(port),
                        Err(error) => break error.is_disconnected(),
                    }
                };
                if ended {
                    return;
                }
                let mut waiting = false;
                ports.retain_mut(|Port { held, pass, replaced }| {
                    let Some(held) = held.upgrade() else { return false };
                    let given = if held.any() { held.take(pass) } else { 0 };
                    if given > 0 {
                        replaced(given);
                    }
                    waiting |= held.any();
                    true
                });
                if waiting { std::thread::park_timeout(POLL_INTERVAL) } else { std::thread::park() }
            }
        })?;
        Ok(Self { ports: Some(sender), thread })
    }

    /// A place for the values of a port that have to wait.
    pub fn hold(&self, pass: Pass, replaced: OnReplaced) -> Arc<CoalescedValues> {
        let held = Arc::new(CoalescedValues::new(self.thread.thread().clone()));
        if let Some(ports) = &self.ports {
            let _ = ports.send(Port { held: Arc::downgrade(&held), pass, replaced });
            self.thread.thread().unpark();
        }
        held
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        // Not joined: it may be waiting for nothing but the unparking, and owns nothing that must be closed.
        self.ports = None;
        self.thread.thread().unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use proptest::prelude::*;

    use super::*;

    fn cc(controller: u8, value: u8) -> Event {
        MidiMessage::ControlChange { channel: 3, controller, value }.into()
    }

    /// Taken out by the test itself.
    fn held() -> CoalescedValues {
        CoalescedValues::new(std::thread::current())
    }

    // ENG-11: the latest wins, each control on its own.
    #[test]
    fn the_latest_value_of_each_control_is_kept() {
        let held = held();
        let kept = [cc(7, 1), cc(8, 2), cc(7, 3), cc(7, 4)].map(|event| held.put(&event));
        assert_eq!(kept, [true, true, false, false]);
        let mut passed = Vec::new();
        held.take(|message| {
            passed.push(Event::from(message));
            true
        });
        assert_eq!(passed, [cc(7, 4), cc(8, 2)]);
        assert!(!held.any());
    }

    #[test]
    fn what_may_not_pass_stays() {
        let held = held();
        (0..100).for_each(|controller| assert!(held.put(&cc(controller, 1))));
        let mut allowed = 30;
        let take = |allowed: &mut i32| {
            held.take(|_| {
                *allowed -= 1;
                *allowed >= 0
            })
        };
        take(&mut allowed);
        assert_eq!(held.waiting.load(Ordering::Relaxed), 70);
        take(&mut 1000);
        assert!(!held.any());
    }

    proptest! {
        #[test]
        fn a_slot_gives_back_what_was_put_in(kind in 0..4, channel in 0..16_u8, number in 0..128_u8, value in 0..16_384_u16) {
            let seven = (value & 0x7F) as u8;
            let event = Event::from(match kind {
                0 => MidiMessage::ControlChange { channel, controller: number, value: seven },
                1 => MidiMessage::PolyAftertouch { channel, note: number, pressure: seven },
                2 => MidiMessage::Aftertouch { channel, pressure: seven },
                _ => MidiMessage::PitchBend { channel, value },
            });
            let (slot, value) = slot(&event).unwrap();
            prop_assert!(slot < SLOTS);
            prop_assert_eq!(Event::from(message(slot, value)), event);
        }
    }

    /// Both sides at once: the last value of every control comes out last, and nothing waits for ever.
    #[test]
    fn the_last_word_is_the_newest_whoever_is_faster() {
        const LAST: u8 = 127;
        let pacer = Pacer::start().unwrap();
        let seen: Arc<[AtomicI64]> = (0..8).map(|_| AtomicI64::new(-1)).collect();
        let (heard, mut refuse) = (Arc::clone(&seen), false);
        let pass: Pass = Box::new(move |message| {
            let MidiMessage::ControlChange { controller, value, .. } = message else { return true };
            refuse = !refuse;
            if !refuse {
                heard[usize::from(controller)].store(value.into(), Ordering::Release);
            }
            !refuse
        });
        let held = pacer.hold(pass, Box::new(|_| ()));
        for value in (0..50).flat_map(|_| 0..=LAST) {
            (0..8).for_each(|controller| {
                held.put(&cc(controller, value));
            });
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while held.any() {
            assert!(std::time::Instant::now() < deadline, "{held:?}");
            std::thread::yield_now();
        }
        assert!(seen.iter().all(|value| value.load(Ordering::Acquire) == i64::from(LAST)), "{seen:?}");
    }
}
