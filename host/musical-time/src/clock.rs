//! The clock: what a MIDI clock says, or a tempo, as pulses, tempo, position and transport.

use crate::event::{MusicalEvent, Transport};
use crate::tempo::{Jitter, TempoMeter, limited, pulse_of};
use crate::time_code::{TimeCode, TimeCodeReader};
use crate::{MAX_TEMPO, Nanos};

/// Pulses of a MIDI clock in a beat, which is a quarter note.
pub const PULSES_PER_BEAT: u32 = 24;
/// How long a MIDI clock that plays may be silent, in nanoseconds; then it is lost. At the slowest tempo a pulse comes every
/// 125 ms.
pub const CLOCK_TIMEOUT: Nanos = 500_000_000;
/// Pulses in the unit of a song position, a sixteenth.
const PULSES_PER_SONG_STEP: u64 = 6;
/// How far behind a clock by tempo may be before the pulses in between are left out, in nanoseconds.
const MAX_BEHIND: Nanos = 1_000_000_000;

/// What a clock goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Whether it goes by its tempo. Otherwise by the messages of a MIDI clock.
    pub internal: bool,
    /// Beats per minute, brought within the limits; of a MIDI clock before it is measured.
    pub tempo: f64,
    /// Beats in a bar; 0 counts as 1.
    pub beats_per_bar: u8,
}

/// What a MIDI clock says, and MIDI time code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'m> {
    /// A 24th of a beat is over.
    Pulse,
    /// Play from the beginning; it begins with the next pulse.
    Start,
    /// Play from where it stands.
    Continue,
    /// Stand.
    Stop,
    /// Stand at this many sixteenths from the beginning, 0 to 16383. While it plays it goes on from there.
    SongPosition(u16),
    /// A quarter frame of time code: the data byte.
    QuarterFrame(u8),
    /// A system exclusive message, whole; a full frame of time code counts.
    SysEx(&'m [u8]),
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// This pulse is reached, from 0, and it plays. Every 24th is a beat, from pulse 0 on.
    Pulse(u64),
    /// It plays from the beginning.
    Started,
    /// It plays on.
    Continued,
    /// It stands.
    Stopped,
    /// It stands, since nothing came of the MIDI clock for [`CLOCK_TIMEOUT`], or its device has gone. It plays again when the
    /// device says start or continue.
    Lost,
    /// The tempo, the place where it stands or the time code may be another one.
    Moved,
}

impl Change {
    /// Whether it is a pulse on which no beat begins.
    pub fn is_between_beats(self) -> bool {
        matches!(self, Self::Pulse(pulse) if !pulse.is_multiple_of(PULSES_PER_BEAT.into()))
    }
}

/// Where a clock is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MusicalTime {
    /// Beats per minute, within the limits, in steps of a hundredth.
    pub tempo: f64,
    /// The beat in the bar, from 1.
    pub beat: u8,
    /// The bar, from 1.
    pub bar: u32,
    /// Whether it plays.
    pub plays: bool,
    /// The time code of the device, in seconds.
    pub time_code: f64,
    /// The pulse that comes next, from 0: where it plays on.
    pub next: u64,
}

/// A clock. See the [crate](crate).
#[derive(Clone, Debug)]
pub struct Clock {
    settings: Settings,
    /// Beats per minute.
    tempo: f64,
    meter: TempoMeter,
    time_code: f64,
    reader: TimeCodeReader,
    plays: bool,
    /// The pulse that was reached last.
    here: u64,
    /// The pulse that comes next.
    next: u64,
    /// When there is something to do: the next pulse, or the loss. [`Nanos::MAX`] if nothing.
    deadline: Nanos,
    /// By tempo: a pulse, and when it is due. Later ones are counted from it, so that nothing is rounded twice.
    origin: (u64, Nanos),
    /// Pulses of a MIDI clock that stands, since the tempo was said last.
    unsaid: u32,
    /// The latest time that was handed in.
    now: Nanos,
}

impl Clock {
    /// A clock that stands at the beginning.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            tempo: limited(settings.tempo),
            meter: TempoMeter::new(),
            time_code: 0.0,
            reader: TimeCodeReader::new(),
            plays: false,
            here: 0,
            next: 0,
            deadline: Nanos::MAX,
            origin: (0, 0),
            unsaid: 0,
            now: 0,
        }
    }

    /// What it goes by.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Where it is.
    pub fn time(&self) -> MusicalTime {
        let beats = self.here / u64::from(PULSES_PER_BEAT);
        let beats_per_bar = u64::from(self.settings.beats_per_bar.max(1));
        MusicalTime {
            tempo: (self.tempo * 100.0).round() / 100.0,
            beat: u8::try_from(beats % beats_per_bar + 1).unwrap_or(u8::MAX),
            bar: u32::try_from(beats / beats_per_bar + 1).unwrap_or(u32::MAX),
            plays: self.plays,
            time_code: self.time_code,
            next: self.next,
        }
    }

    /// What has changed, as an event; `None` if it is between two beats, or only the place or the tempo.
    pub fn event(&self, change: Change) -> Option<MusicalEvent> {
        let does = match change {
            Change::Pulse(pulse) if pulse.is_multiple_of(PULSES_PER_BEAT.into()) => {
                let MusicalTime { beat, bar, .. } = self.time();
                return Some(MusicalEvent::Beat { beat, bar, of: self.settings.beats_per_bar.max(1) });
            }
            Change::Pulse(_) | Change::Moved => return None,
            Change::Started => Transport::Start,
            Change::Continued => Transport::Continue,
            Change::Stopped => Transport::Stop,
            Change::Lost => Transport::Lost,
        };
        Some(MusicalEvent::Transport(does))
    }

    /// How regular the MIDI clock is.
    pub fn jitter(&self) -> Jitter {
        self.meter.jitter()
    }

    /// When [`advance`](Self::advance) has something to do; [`Nanos::MAX`] if never.
    pub fn deadline(&self) -> Nanos {
        self.deadline
    }

    /// It is `now`: does the first thing that is due by then. To be called until there is nothing more.
    pub fn advance(&mut self, now: Nanos) -> Option<Change> {
        if self.deadline > now {
            return None;
        }
        if !self.settings.internal {
            return self.lose();
        }
        self.now = self.now.max(self.deadline);
        Some(self.pulse())
    }

    /// Time did not pass for a while, as when a computer was asleep: pulses of more than a second ago are left out,
    /// and the next one is due now.
    pub fn catch_up(&mut self, now: Nanos) {
        if self.settings.internal && self.plays && now.saturating_sub(self.deadline) > MAX_BEHIND {
            self.due_from(now);
        }
    }

    /// A message of the MIDI clock comes. Nothing changes by one that says what is so already.
    pub fn receive(&mut self, at: Nanos, message: Message<'_>) -> Option<Change> {
        if self.settings.internal {
            return None;
        }
        self.now = self.now.max(at);
        match message {
            Message::Pulse => self.measured(),
            Message::Start => Some(self.start()),
            Message::Continue if !self.plays => {
                self.plays = true;
                self.deadline = self.now.saturating_add(CLOCK_TIMEOUT);
                Some(Change::Continued)
            }
            Message::Stop => self.stop(),
            Message::SongPosition(sixteenths) => {
                self.next = u64::from(sixteenths) * PULSES_PER_SONG_STEP;
                self.here = self.next;
                Some(Change::Moved)
            }
            Message::Continue => None,
            Message::QuarterFrame(data) => {
                let found = self.reader.quarter_frame(data);
                self.take_time_code(found)
            }
            Message::SysEx(bytes) => self.take_time_code(TimeCode::of_full_frame(bytes)),
        }
    }

    /// Plays from the beginning; by tempo, its first pulse is due at once.
    pub fn start_at(&mut self, at: Nanos) -> Change {
        self.now = self.now.max(at);
        self.start()
    }

    /// Stands. `None` if it did.
    pub fn stop(&mut self) -> Option<Change> {
        self.deadline = Nanos::MAX;
        std::mem::take(&mut self.plays).then_some(Change::Stopped)
    }

    /// The device of the MIDI clock has gone. `None` if it stood.
    pub fn lose(&mut self) -> Option<Change> {
        self.meter.clear();
        self.stop().map(|_| Change::Lost)
    }

    /// Another tempo, which holds from now on: the part of the way to the next pulse that is left stays the same part. `None`
    /// if it is the same, or a MIDI clock says the tempo.
    pub fn set_tempo(&mut self, at: Nanos, tempo: f64) -> Option<Change> {
        let tempo = limited(tempo);
        if !self.settings.internal || tempo == self.tempo {
            return None;
        }
        self.now = self.now.max(at);
        let left = self.deadline.saturating_sub(self.now) as f64 / pulse_of(self.tempo);
        self.tempo = tempo;
        if self.plays {
            self.due_from(self.now.saturating_add(nanos(left.min(1.0) * pulse_of(tempo))));
        }
        Some(Change::Moved)
    }

    fn take_time_code(&mut self, found: Option<TimeCode>) -> Option<Change> {
        self.time_code = found?.seconds();
        Some(Change::Moved)
    }

    fn start(&mut self) -> Change {
        self.plays = true;
        (self.here, self.next) = (0, 0);
        if self.settings.internal {
            self.due_from(self.now);
        } else {
            self.deadline = self.now.saturating_add(CLOCK_TIMEOUT);
        }
        Change::Started
    }

    /// The next pulse is reached.
    fn pulse(&mut self) -> Change {
        self.here = self.next;
        self.next += 1;
        self.deadline = if self.settings.internal {
            let (pulse, due) = self.origin;
            due.saturating_add(nanos((self.next - pulse) as f64 * pulse_of(self.tempo)))
        } else {
            self.now.saturating_add(CLOCK_TIMEOUT)
        };
        Change::Pulse(self.here)
    }

    /// A pulse of the MIDI clock has come.
    fn measured(&mut self) -> Option<Change> {
        if self.meter.last().is_some_and(|last| self.now - last > CLOCK_TIMEOUT) {
            self.meter.clear();
        }
        self.meter.pulse(self.now);
        self.tempo = self.meter.tempo().unwrap_or(self.tempo).min(MAX_TEMPO);
        if self.plays {
            return Some(self.pulse());
        }
        self.unsaid = (self.unsaid + 1) % PULSES_PER_BEAT;
        (self.unsaid == 0).then_some(Change::Moved)
    }

    /// By tempo: the next pulse is due at this time, and the others after it.
    fn due_from(&mut self, due: Nanos) {
        self.origin = (self.next, due);
        self.deadline = due;
    }
}

/// Whole nanoseconds.
fn nanos(nanos: f64) -> Nanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and saturates")]
    let whole = nanos.round() as Nanos;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn external() -> Clock {
        Clock::new(Settings { internal: false, tempo: 120.0, beats_per_bar: 4 })
    }

    fn internal(tempo: f64) -> Clock {
        Clock::new(Settings { internal: true, tempo, beats_per_bar: 3 })
    }

    /// The times of beats by a tempo, up to a time.
    fn beats(clock: &mut Clock, until: Nanos) -> Vec<Nanos> {
        let mut beats = Vec::new();
        loop {
            let at = clock.deadline();
            match clock.advance(until) {
                Some(Change::Pulse(pulse)) if pulse % 24 == 0 => beats.push(at),
                Some(_) => {}
                None => return beats,
            }
        }
    }

    #[test]
    fn a_clock_that_stands_only_says_its_tempo() {
        let mut clock = external();
        let changes: Vec<_> = (0..48).map(|pulse| clock.receive(pulse * 10 * MS, Message::Pulse)).collect();
        assert_eq!(changes.iter().flatten().collect::<Vec<_>>(), [&Change::Moved; 2]);
        assert_eq!(clock.time(), MusicalTime { tempo: 250.0, beat: 1, bar: 1, plays: false, time_code: 0.0, next: 0 });
        assert_eq!(clock.deadline(), Nanos::MAX);
    }

    #[test]
    fn transport_is_start_stop_continue_and_a_place() {
        let mut clock = external();
        assert_eq!(clock.receive(0, Message::Continue), Some(Change::Continued));
        assert_eq!(clock.receive(0, Message::Continue), None);
        assert_eq!(clock.receive(1, Message::Pulse), Some(Change::Pulse(0)));
        assert_eq!(clock.receive(2, Message::Stop), Some(Change::Stopped));
        assert_eq!(clock.receive(2, Message::Stop), None);
        // 20 sixteenths are 5 beats.
        assert_eq!(clock.receive(3, Message::SongPosition(20)), Some(Change::Moved));
        let time = clock.time();
        assert_eq!((time.bar, time.beat), (2, 2));
        assert_eq!(clock.receive(4, Message::Continue), Some(Change::Continued));
        assert_eq!(clock.receive(5, Message::Pulse), Some(Change::Pulse(120)));
        assert_eq!(clock.receive(6, Message::Start), Some(Change::Started));
        assert_eq!(clock.receive(7, Message::Pulse), Some(Change::Pulse(0)));
    }

    #[test]
    fn a_clock_that_is_silent_is_lost_and_stands() {
        let mut clock = external();
        clock.receive(0, Message::Start);
        assert_eq!(clock.advance(499 * MS), None);
        clock.receive(499 * MS, Message::Pulse);
        assert_eq!(clock.advance(998 * MS), None);
        assert_eq!(clock.advance(999 * MS), Some(Change::Lost));
        assert_eq!(clock.advance(Nanos::MAX), None);
        assert!(!clock.time().plays);
        clock.receive(2000 * MS, Message::Pulse);
        assert!(!clock.time().plays, "until it says start or continue");
        assert_eq!(clock.lose(), None, "it stands");
    }

    #[test]
    fn a_tempo_does_not_drift() {
        // 24 pulses of 20 833 333.3 ns.
        let mut clock = internal(120.0);
        assert_eq!(clock.start_at(MS), Change::Started);
        let beats = beats(&mut clock, 3_600_000 * MS);
        assert_eq!(beats.len(), 7200);
        assert!(beats.iter().zip(0..).all(|(at, beat)| *at == MS + beat * 500 * MS));
    }

    #[test]
    fn another_tempo_holds_from_now_on() {
        let mut clock = internal(60.0);
        clock.start_at(0);
        assert_eq!(beats(&mut clock, 1500 * MS), [0, 1000 * MS]);
        assert_eq!(clock.set_tempo(1500 * MS, 120.0), Some(Change::Moved));
        assert_eq!(clock.set_tempo(1500 * MS, 120.0), None);
        // Half of the beat was left.
        assert_eq!(beats(&mut clock, 2300 * MS), [1750 * MS, 2250 * MS]);
        assert_eq!((clock.time().bar, clock.time().beat), (2, 1), "bars of three");
    }

    #[test]
    fn after_a_sleep_what_was_missed_is_left_out() {
        let mut clock = internal(60.0);
        clock.start_at(0);
        assert_eq!(beats(&mut clock, 10 * MS), [0]);
        clock.catch_up(900 * MS);
        assert_eq!(beats(&mut clock, 1000 * MS), [1000 * MS], "a short one changes nothing");
        clock.catch_up(3_600_000 * MS);
        assert_eq!(clock.deadline(), 3_600_000 * MS);
        assert_eq!(clock.advance(3_600_000 * MS), Some(Change::Pulse(25)));
    }

    #[test]
    fn at_999_beats_nothing_is_left_out() {
        let mut clock = external();
        clock.receive(0, Message::Start);
        for pulse in 0..1000 {
            // Four times as fast as the fastest tempo.
            assert_eq!(clock.receive(pulse * 625_000, Message::Pulse), Some(Change::Pulse(pulse)));
        }
        assert_eq!(clock.time().tempo, 999.0);
    }
}
