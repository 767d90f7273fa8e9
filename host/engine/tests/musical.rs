//! Musical time in the engine: beats, transport, and actions that wait for the grid.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};

use conductor_engine::*;
use proptest::prelude::*;

const MS: Nanos = 1_000_000;
/// 24 of them are a beat of half a second.
const PULSE: Nanos = 500 * MS / 24;

/// What fires, with the time in milliseconds.
#[derive(Default)]
struct Fires(Vec<(Nanos, &'static str)>, Vec<DeviceEvent<Event>>);

impl Sink<&'static str> for Fires {
    fn fire(&mut self, firing: Firing<'_, &'static str>) -> Option<Arc<str>> {
        self.0.push((firing.at / MS, firing.rule.action));
        firing.rule.action.strip_prefix("to ").map(Arc::from)
    }

    fn musical_time(&mut self, follower: &Follower, time: MusicalTime, change: ClockChange) {
        follower.follow(time, change);
    }

    fn brought_about(&mut self) -> Option<DeviceEvent<Event>> {
        self.1.pop()
    }
}

fn clock(device: Option<&str>) -> ClockSource {
    ClockSource {
        device: device.map(DeviceId::new),
        tempo: 120.0,
        beats_per_bar: 4,
        variables: device.is_none().then_some((0, 1)),
        follower: Follower::new(|_, _| ()),
    }
}

fn note(note: u16, edge: Edge) -> Trigger {
    Trigger::Note { notes: NumberRange::one(note), velocity: ValueRange::SEVEN_BIT, edge, channel: None }
}

fn beat(counted: Counted, every: u16, offset: u16) -> Trigger {
    Trigger::Beat { counted, every, offset }
}

fn waits(trigger: Trigger, pulses: u16, action: &'static str) -> RuleSpec<&'static str> {
    RuleSpec { quantize: NonZeroU16::new(pulses), ..RuleSpec::new(trigger, action) }
}

fn set(rules: Vec<RuleSpec<&'static str>>, clock: ClockSource) -> RuleSet<&'static str> {
    compile(RuleSource { modes: vec!["Play".into(), "Live".into()], rules }).unwrap().with_clock(clock)
}

struct Stage {
    engine: Engine<&'static str>,
    rules: Arc<RuleSetHandle<&'static str>>,
    fires: Fires,
}

impl Stage {
    fn new(rules: Vec<RuleSpec<&'static str>>, device: Option<&str>) -> Self {
        let rules = Arc::new(RuleSetHandle::new(set(rules, clock(device))));
        let mut engine = Engine::new(Arc::clone(&rules), Arc::default());
        engine.keep_time(0);
        Self { engine, rules, fires: Fires::default() }
    }

    fn event(&mut self, at: Nanos, device: &str, event: impl Into<Event>) {
        let event = DeviceEvent { device: DeviceId::new(device), event: event.into() };
        self.engine.event(at, event, &mut self.fires);
    }

    fn press(&mut self, at: Nanos, note: u8) {
        self.event(at, "pads", MidiMessage::NoteOn { channel: 0, note, velocity: 100 });
    }

    fn release(&mut self, at: Nanos, note: u8) {
        self.event(at, "pads", MidiMessage::NoteOff { channel: 0, note, velocity: 0 });
    }

    /// The clock plays from this time on, so many pulses.
    fn pulses(&mut self, from: Nanos, count: u64) {
        for pulse in 0..count {
            self.event(from + pulse * PULSE, "drums", MidiMessage::Clock);
        }
    }

    fn fired(&mut self) -> Vec<(Nanos, &'static str)> {
        std::mem::take(&mut self.fires.0)
    }
}

/// ENG-14: triggers on beats and bars of the clock's device, while it plays.
#[test]
fn beats_and_bars_of_a_midi_clock() {
    let rules = vec![
        RuleSpec::new(beat(Counted::Beats, 1, 0), "beat"),
        RuleSpec::new(beat(Counted::Beats, 4, 3), "last"),
        RuleSpec::new(beat(Counted::Bars, 2, 1), "second bar"),
        RuleSpec::new(Trigger::Transport { does: Transport::Start }, "start"),
        RuleSpec::new(Trigger::Transport { does: Transport::Stop }, "stop"),
    ];
    let mut stage = Stage::new(rules, Some("drums"));
    stage.pulses(0, 24);
    assert_eq!(stage.fired(), [], "it stands");
    stage.event(1000 * MS, "keys", MidiMessage::Start);
    stage.event(1000 * MS, "keys", MidiMessage::Clock);
    assert_eq!(stage.fired(), [], "another device's clock");
    stage.event(1000 * MS, "drums", MidiMessage::Start);
    stage.pulses(1000 * MS, 97);
    let expected = [
        (1000, "start"),
        (1000, "beat"),
        (1499, "beat"),
        (1999, "beat"),
        (2499, "beat"),
        (2499, "last"),
        (2999, "beat"),
        (2999, "second bar"),
    ];
    assert_eq!(stage.fired(), expected);
    stage.event(3100 * MS, "drums", MidiMessage::Stop);
    assert_eq!(stage.fired(), [(3100, "stop")]);
}

/// ENG-14: a clock that falls silent, or whose device goes, stops.
#[test]
fn a_clock_that_is_lost_stops() {
    let stop = || vec![RuleSpec::new(Trigger::Transport { does: Transport::Stop }, "stop")];
    let mut stage = Stage::new(stop(), Some("drums"));
    stage.event(0, "drums", MidiMessage::Start);
    stage.pulses(0, 2);
    assert_eq!(stage.engine.deadline(), Some(PULSE + 500 * MS));
    assert!(!stage.engine.is_unsettled(), "nothing waits for it");
    stage.engine.advance(5000 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(520, "stop")], "as of its very time");
    assert_eq!(stage.engine.deadline(), None);

    stage.event(6000 * MS, "drums", MidiMessage::Continue);
    stage.engine.forget(&DeviceId::new("pads"), &mut stage.fires);
    assert_eq!(stage.fired(), []);
    stage.engine.forget(&DeviceId::new("drums"), &mut stage.fires);
    assert_eq!(stage.fired(), [(6000, "stop")]);
}

/// ENG-14: an action waits for its place of the grid, and the mode that it asks for is active from there on.
#[test]
fn an_action_waits_for_the_grid() {
    let rules = vec![
        waits(note(36, Edge::Press), 96, "bar"),
        waits(note(37, Edge::Press), 24, "to Live"),
        RuleSpec { scope: Scope::Mode("Live".into()), ..RuleSpec::new(beat(Counted::Beats, 1, 0), "live") },
    ];
    let mut stage = Stage::new(rules, Some("drums"));
    stage.press(0, 36);
    assert_eq!(stage.fired(), [(0, "bar")], "a clock that stands holds up nothing");
    stage.event(0, "drums", MidiMessage::Start);
    stage.pulses(0, 30);
    stage.press(610 * MS, 36);
    stage.press(610 * MS, 37);
    assert!(stage.engine.is_unsettled());
    assert_eq!(stage.fired(), []);
    stage.pulses(30 * PULSE + 1, 67);
    // The pulses are a few nanoseconds short of a beat of half a second.
    assert_eq!(stage.fired(), [(999, "to Live"), (1499, "live"), (1999, "live"), (1999, "bar")]);
}

/// ENG-10, ENG-14: what was pressed is let go behind it, and nothing is switched on by what is no more.
#[test]
fn nothing_is_stuck() {
    let rules = || vec![waits(note(36, Edge::Both), 24, "36")];
    let waiting = |device| {
        let mut stage = Stage::new(rules(), device);
        if device.is_some() {
            stage.event(0, "drums", MidiMessage::Start);
        }
        stage.pulses(0, 2);
        stage.engine.advance(2 * PULSE, &mut stage.fires);
        stage.press(60 * MS, 36);
        stage.release(70 * MS, 36);
        assert_eq!(stage.fired(), []);
        stage
    };
    let mut stage = waiting(None);
    stage.press(300 * MS, 36);
    stage.engine.advance(499 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), []);
    stage.engine.advance(600 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(500, "36"), (500, "36"), (500, "36")], "two presses, and the end of the first");
    stage.release(700 * MS, 36);
    assert_eq!(stage.fired(), [(700, "36")], "what is on ends at once");

    // The clock stops: only an end may be missing.
    let mut stage = waiting(Some("drums"));
    stage.event(100 * MS, "drums", MidiMessage::Stop);
    assert_eq!(stage.fired(), [(100, "36")]);
    stage.event(110 * MS, "drums", MidiMessage::Continue);
    stage.pulses(120 * MS, 48);
    assert_eq!(stage.fired(), []);

    // Its device goes.
    let mut stage = waiting(None);
    stage.engine.forget(&DeviceId::new("pads"), &mut stage.fires);
    stage.engine.advance(1000 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), []);

    // The rules are replaced; what waited is not theirs, before and after the engine hears of it.
    for hears in [false, true] {
        let mut stage = waiting(None);
        stage.rules.swap(set(rules(), clock(None)));
        if hears {
            stage.engine.keep_time(100 * MS);
        }
        stage.engine.advance(1000 * MS, &mut stage.fires);
        assert_eq!(stage.fired(), []);
    }
}

/// ENG-14: what waits belongs to the mode of its rule.
#[test]
fn what_waits_goes_with_its_mode() {
    let in_play = |spec| RuleSpec { scope: Scope::Mode("Play".into()), ..spec };
    let rules = vec![
        in_play(waits(note(36, Edge::Press), 24, "of the mode")),
        waits(note(36, Edge::Press), 24, "of every mode"),
    ];
    let mut stage = Stage::new(rules, None);
    stage.press(100 * MS, 36);
    stage.engine.set_mode("Live", &mut stage.fires).unwrap();
    stage.engine.advance(600 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(500, "of every mode")]);
}

/// ENG-14: a clock by tempo follows the variables of its tempo and of whether it plays.
#[test]
fn a_clock_by_tempo_follows_its_variables() {
    let rules = vec![
        RuleSpec::new(beat(Counted::Beats, 1, 0), "beat"),
        RuleSpec::new(Trigger::Transport { does: Transport::Start }, "start"),
        RuleSpec::new(Trigger::Transport { does: Transport::Stop }, "stop"),
    ];
    let mut stage = Stage::new(rules, None);
    let changes = |variable, value| Event::Variable(VariableChange { variable, value, unit: 0.0 });
    stage.engine.advance(600 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(0, "beat"), (500, "beat")]);
    stage.event(750 * MS, "variables", changes(0, 240.0));
    stage.engine.advance(1200 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(875, "beat"), (1125, "beat")]);
    stage.event(1300 * MS, "variables", changes(1, 0.0));
    stage.event(1300 * MS, "variables", changes(2, 1.0));
    stage.engine.advance(9000 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(1300, "stop")]);
    stage.event(9000 * MS, "variables", changes(1, 1.0));
    stage.engine.advance(9100 * MS, &mut stage.fires);
    assert_eq!(stage.fired(), [(9000, "start"), (9000, "beat")]);
}

/// ENG-14: variables follow the clock, and the time code of its device.
#[test]
fn followers_get_the_time() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    let follower = Follower::new(move |time, change| {
        if !change.is_between_beats() {
            into.lock().unwrap().push((time.bar, time.beat, time.plays, time.time_code));
        }
    });
    let rules = Arc::new(RuleSetHandle::new(set(Vec::new(), ClockSource { follower, ..clock(Some("drums")) })));
    let mut engine = Engine::new(rules, Arc::default());
    engine.keep_time(0);
    let mut stage = Stage { rules: Arc::clone(engine.rules()), engine, fires: Fires::default() };
    stage.event(0, "drums", MidiMessage::SongPosition(16));
    stage.event(0, "drums", MidiMessage::Continue);
    stage.pulses(0, 25);
    let full = [0xF0, 0x7F, 0x7F, 1, 1, 0x60, 0, 2, 15, 0xF7];
    stage.event(1000 * MS, "drums", MidiMessage::SysEx(full[..].into()));
    let expected = [(2, 1, false, 0.0), (2, 1, true, 0.0), (2, 1, true, 0.0), (2, 2, true, 0.0)];
    let heard = heard.lock().unwrap();
    assert_eq!(heard[..4], expected);
    assert_eq!(heard.last().map(|heard| heard.3), Some(2.5));
}

/// Before the time is kept there is none: a rehearsal ends.
#[test]
fn without_being_kept_time_stands() {
    let rules = vec![RuleSpec::new(beat(Counted::Beats, 1, 0), "beat"), waits(note(36, Edge::Press), 24, "36")];
    let rules = Arc::new(RuleSetHandle::new(set(rules, clock(None))));
    let mut stage = Stage { engine: Engine::new(Arc::clone(&rules), Arc::default()), rules, fires: Fires::default() };
    assert_eq!(stage.engine.deadline(), None);
    stage.press(MS, 36);
    assert_eq!(stage.fired(), [(1, "36")]);
}

/// Something that happens on the stage.
#[derive(Clone, Copy, Debug)]
enum Act {
    Press(u8),
    Release(u8),
    AllOff,
    Clock(u8),
    Mode(bool),
    Reload,
    Gone,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (36_u8..40).prop_map(Act::Press),
        4 => (36_u8..40).prop_map(Act::Release),
        1 => Just(Act::AllOff),
        8 => (0_u8..8).prop_map(Act::Clock),
        1 => any::<bool>().prop_map(Act::Mode),
        1 => Just(Act::Reload),
        1 => Just(Act::Gone),
    ]
}

/// A sink that knows which notes are on.
#[derive(Default)]
struct Notes(std::collections::BTreeMap<u8, bool>, Vec<Nanos>);

impl Sink<&'static str> for Notes {
    fn fire(&mut self, firing: Firing<'_, &'static str>) -> Option<Arc<str>> {
        self.1.push(firing.at);
        match firing.event {
            Event::Midi(MidiMessage::NoteOn { note, .. }) => drop(self.0.insert(*note, true)),
            Event::Midi(MidiMessage::NoteOff { note, .. }) => drop(self.0.insert(*note, false)),
            Event::Midi(MidiMessage::ControlChange { controller: 123, .. }) => self.0.clear(),
            _ => {}
        }
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    /// ENG-10, ENG-14, bad input: whatever comes in whatever order, nothing fires out of the order of time, and a note
    /// that was let go is on no more when the clock has gone on for a bar.
    #[test]
    fn a_note_that_is_up_ends(
        internal: bool, grid in prop_oneof![Just(3_u16), Just(24), Just(96)],
        acts in proptest::collection::vec((0_u64..300, act()), 0..120),
    ) {
        let device = (!internal).then_some("drums");
        let rules = || vec![waits(Trigger::MidiAny { channel: None }, grid, "any")];
        let handle = Arc::new(RuleSetHandle::new(set(rules(), clock(device))));
        let mut engine = Engine::new(Arc::clone(&handle), Arc::default());
        engine.keep_time(0);
        let (mut sink, mut now) = (Notes::default(), 0);
        let give = |engine: &mut Engine<_>, sink: &mut Notes, at: Nanos, device: &str, message: MidiMessage| {
            engine.event(at, DeviceEvent { device: DeviceId::new(device), event: message.into() }, sink);
        };
        for (after, act) in acts {
            now += after * MS;
            match act {
                Act::Press(note) => give(&mut engine, &mut sink, now, "pads", MidiMessage::NoteOn { channel: 0, note, velocity: 9 }),
                Act::Release(note) => give(&mut engine, &mut sink, now, "pads", MidiMessage::NoteOff { channel: 0, note, velocity: 9 }),
                Act::AllOff => {
                    give(&mut engine, &mut sink, now, "pads", MidiMessage::ControlChange { channel: 0, controller: 123, value: 0 });
                }
                Act::Clock(what) => {
                    let message = match what {
                        0 => MidiMessage::Start,
                        1 => MidiMessage::Stop,
                        2 => MidiMessage::Continue,
                        3 => MidiMessage::SongPosition(7),
                        _ => MidiMessage::Clock,
                    };
                    give(&mut engine, &mut sink, now, "drums", message);
                }
                Act::Mode(live) => engine.set_mode(if live { "Live" } else { "Play" }, &mut sink).unwrap(),
                Act::Reload => {
                    handle.swap(set(rules(), clock(device)));
                    engine.keep_time(now);
                    // As a host does with what the rules have switched on.
                    sink.0.clear();
                }
                Act::Gone => {
                    engine.forget(&DeviceId::new("pads"), &mut sink);
                    sink.0.clear();
                }
            }
        }
        for note in 36..40 {
            give(&mut engine, &mut sink, now, "pads", MidiMessage::NoteOff { channel: 0, note, velocity: 9 });
        }
        for pulse in 0..100 {
            give(&mut engine, &mut sink, now + pulse * PULSE, "drums", MidiMessage::Clock);
        }
        engine.advance(now + 10_000 * MS, &mut sink);
        prop_assert!(!engine.is_unsettled());
        prop_assert!(sink.0.values().all(|on| !on), "{:?}", sink.0);
        prop_assert!(sink.1.is_sorted(), "{:?}", sink.1);
    }
}
