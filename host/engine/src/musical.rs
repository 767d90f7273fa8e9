//! Musical time: the clock that rules go by, beats and transport as events, and quantization: actions that wait for the
//! grid.
//!
//! A pulse of a MIDI clock has the time at which it came in. The engine's [`Clock`] takes it in before rules are asked for
//! the message, and what follows from it comes after them: the beat, as an event of the device [`DEVICE`], and then what
//! waits for this place of the grid. A clock by tempo is a deadline among those of gestures.
//!
//! What waits is held here, with its event, and fires as if this came then. It is dropped when its rules are replaced, when
//! the mode of its rule is left, when its device goes, and when the clock stops, then but for ends. So nothing is switched on
//! later by what is no more. The release of a press that waits waits behind it; every other one goes at once, since it ends something that
//! is on.

use std::num::NonZeroU16;
use std::sync::Arc;

use conductor_event::{Answers, DeviceEvent, DeviceId, Event, MidiMessage, ModeIx, Nanos, Record, RuleId};
use conductor_musical_time::{Change, Clock, Message, Settings};
pub use conductor_musical_time::{Counted, Follower, MusicalEvent, Transport};

use crate::firing::{Firing, Sink};
use crate::key::KeyChange;

/// The device that beats and changes of the transport come from.
pub const DEVICE: &str = "clock";

/// Actions that wait for the grid at most, without releases. Further ones do not wait.
const MAX_HELD: usize = 32;
/// Of the releases of one press, the key's own, and all notes off for its channel and for all.
const RELEASES_PER_PRESS: usize = 3;

/// The clock that rules go by.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockSource {
    /// The device whose MIDI clock and time code count; `None` if it goes by its tempo, and plays from the first moment on.
    pub device: Option<DeviceId>,
    /// Beats per minute; of a device until it is measured.
    pub tempo: f64,
    /// How many beats a bar has.
    pub beats_per_bar: u8,
    /// The numbers of two variables that a clock by tempo follows: its tempo, and whether it plays.
    pub variables: Option<(u16, u16)>,
    /// Gets the time.
    pub follower: Follower,
}

/// An action that waits for the grid.
#[derive(Debug)]
pub(crate) struct QuantizedAction {
    pub(crate) device: DeviceId,
    pub(crate) event: Event,
    pub(crate) rule: RuleId,
    pub(crate) generation: u64,
    pub(crate) position: u16,
    pub(crate) answers: Answers,
    mode: Option<ModeIx>,
    /// It fires with a pulse that is a multiple of this.
    grid: u64,
}

/// The clock in use, and what waits for it.
#[derive(Debug)]
pub(crate) struct Musical {
    pub(crate) source: Arc<ClockSource>,
    pub(crate) clock: Clock,
    /// [`DEVICE`], so that nothing is allocated for an event.
    pub(crate) device: DeviceId,
    /// What waits, in its order.
    pub(crate) held: Vec<QuantizedAction>,
}

impl Musical {
    pub(crate) fn new(source: &Arc<ClockSource>, now: Nanos) -> Self {
        let (tempo, beats_per_bar) = (source.tempo, source.beats_per_bar);
        let mut clock = Clock::new(Settings { internal: source.device.is_none(), tempo, beats_per_bar });
        if source.device.is_none() {
            clock.start_at(now);
        }
        let (device, held) = (DeviceId::new(DEVICE), Vec::with_capacity(MAX_HELD * (1 + RELEASES_PER_PRESS)));
        Self { source: Arc::clone(source), clock, device, held }
    }

    /// What an event changes of the clock.
    #[inline]
    pub(crate) fn hear(&mut self, at: Nanos, DeviceEvent { device, event }: &DeviceEvent<Event>) -> Option<Change> {
        match event {
            Event::Midi(message) if self.source.device.as_ref() == Some(device) => self.hear_midi(at, message),
            Event::Variable(change) => {
                let (tempo, plays) = self.source.variables?;
                if change.variable == tempo {
                    return self.clock.set_tempo(at, change.value);
                }
                match (change.variable == plays, change.value != 0.0, self.clock.time().plays) {
                    (true, true, false) => Some(self.clock.start_at(at)),
                    (true, false, true) => self.clock.stop(),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn hear_midi(&mut self, at: Nanos, message: &MidiMessage) -> Option<Change> {
        let message = match message {
            MidiMessage::Clock => Message::Pulse,
            MidiMessage::Start => Message::Start,
            MidiMessage::Continue => Message::Continue,
            MidiMessage::Stop | MidiMessage::Reset => Message::Stop,
            MidiMessage::SongPosition(sixteenths) => Message::SongPosition(*sixteenths),
            MidiMessage::TimeCode(data) => Message::QuarterFrame(*data),
            MidiMessage::SysEx(bytes) => Message::SysEx(bytes),
            _ => return None,
        };
        self.clock.receive(at, message)
    }

    /// Has an action wait that is to. False if it goes at once.
    fn hold<A>(&mut self, firing: &Firing<'_, A>, grid: NonZeroU16) -> bool {
        let change = KeyChange::of(firing.event);
        let pressed = |held: &QuantizedAction| KeyChange::of(&held.event).pressed();
        let of_the_key = |held: &&QuantizedAction| {
            let is_same = held.rule == firing.rule.id && held.device == *firing.device;
            is_same && (pressed(held).is_some_and(|key| change.lets_go(key)) || KeyChange::of(&held.event) == change)
        };
        let waits = self.clock.time().plays
            && match change {
                // Only behind a press, and each kind of end once, so that there is room for all of them.
                KeyChange::Up(_) | KeyChange::AllUp(_) => {
                    self.held.iter().rev().find(of_the_key).is_some_and(|last| pressed(last).is_some())
                }
                // What comes of the grid stands on it already.
                _ => self.held.len() < MAX_HELD && !matches!(firing.event, Event::Musical(_)),
            };
        if waits {
            self.held.push(QuantizedAction {
                device: firing.device.clone(),
                event: firing.event.clone(),
                rule: firing.rule.id,
                generation: firing.generation,
                position: firing.position,
                answers: firing.answers,
                mode: firing.rule.mode,
                grid: u64::from(grid.get()),
            });
        }
        waits
    }

    /// The next action that waits for this pulse.
    pub(crate) fn take_held(&mut self, pulse: u64) -> Option<QuantizedAction> {
        let place = self.held.iter().position(|held| pulse.is_multiple_of(held.grid))?;
        Some(self.held.remove(place))
    }
}

/// A sink before which actions wait for the grid.
pub(crate) struct Grid<'s, S> {
    pub(crate) sink: &'s mut S,
    pub(crate) musical: Option<Box<Musical>>,
}

impl<S> Grid<'_, S> {
    /// When the clock has something to do; [`Nanos::MAX`] if never.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        self.musical.as_ref().map_or(Nanos::MAX, |musical| musical.clock.deadline())
    }
}

impl<A, S: Sink<A>> Sink<A> for Grid<'_, S> {
    fn fire(&mut self, firing: Firing<'_, A>) -> Option<Arc<str>> {
        if let (Some(grid), Some(musical)) = (firing.rule.quantize, &mut self.musical)
            && musical.hold(&firing, grid)
        {
            return None;
        }
        self.sink.fire(firing)
    }

    fn record(&mut self, record: Record) {
        self.sink.record(record);
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.sink.brought_about()
    }

    fn mode(&mut self, name: &Arc<str>, index: ModeIx) {
        if let Some(musical) = &mut self.musical {
            musical.held.retain(|held| held.mode.is_none_or(|mode| mode == index));
        }
        self.sink.mode(name, index);
    }
}
