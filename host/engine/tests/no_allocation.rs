//! Matching and recording allocate nothing (ENG-8): a counting allocator watches.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;

use conductor_engine::*;
use conductor_midi_parser::MidiParser;
use conductor_midi_transform::{Curve, MidiTransform};
use conductor_timeline::Timeline;

thread_local! {
    /// How often this thread has asked for memory. Constant and without destructor, so that reading it
    /// needs no memory itself.
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    ASKED.with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches no heap memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is also that of the callee.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `System`, since all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}

/// One event of every kind, as a script.
const SCRIPT: &str = r#"
    0s pads note-on 36 100 ch 9
    0s pads note-off 36
    0s pads poly-aftertouch 36 5
    0s pads cc 7 64
    0s pads program 3
    0s pads aftertouch 40
    0s pads pitch-bend 9000 ch 2
    0s pads sysex F0 7E 7F 06 01 F7
    0s pads time-code 5
    0s pads song-position 300
    0s pads song-select 3
    0s pads tune-request
    0s pads clock
    0s pads start
    0s pads continue
    0s pads stop
    0s pads active-sensing
    0s pads reset
    0s pads osc /mixer/1/fader 0.5 "main"
    0s pads osc /mixer/*/{pan,fader} 0.5
    0s pads gamepad-button 130 down
    0s pads key 439 down
    0s pads gamepad-stick 128 -0.5
    0s pads gamepad-trigger 133 0.5
    0s pads artnet 3 7 255 0
    0s clock beat 1 1 4
    0s clock transport stop
"#;

/// Rules of every kind, each for one and for all modes, devices and channels, so that as many lanes as
/// possible are merged.
fn crowded() -> RuleSet<u32> {
    let (all, any) = (NumberRange::ALL, ValueRange::SEVEN_BIT);
    let any8 = ValueRange { min: 0, max: 255 };
    let arg = Some(OscArgTest { index: 0, min: 0.0, max: 1.0 });
    let pattern = |text| Arc::new(OscPattern::parse(text).expect("a pattern"));
    let mut rules = Vec::new();
    for channel in [None, Some(0), Some(9), Some(2)] {
        for numbers in [all, NumberRange::one(36), NumberRange { first: 0, last: 64 }] {
            rules.extend([
                Trigger::Note { notes: numbers, velocity: any, edge: Edge::Both, channel },
                Trigger::ControlChange { controllers: numbers, value: any, channel },
                Trigger::PolyAftertouch { notes: numbers, value: any, channel },
                Trigger::ProgramChange { programs: numbers, channel },
            ]);
        }
        rules.extend([
            Trigger::Aftertouch { value: any, channel },
            Trigger::PitchBend { value: ValueRange::FOURTEEN_BIT, channel },
            Trigger::MidiAny { channel },
        ]);
    }
    rules.extend([
        Trigger::SysEx { pattern: "F0 7E ?? 06".parse().expect("a pattern") },
        Trigger::SysEx { pattern: "F0".parse().expect("a pattern") },
        Trigger::Osc { address: "/mixer/1/fader".into(), arg },
        Trigger::OscPattern { pattern: pattern("/mixer/[1-4]/{fader,pan}"), arg },
        Trigger::OscPattern { pattern: pattern("/*/1/f*r"), arg: None },
        Trigger::Button { buttons: NumberRange { first: 128, last: 144 }, edge: Edge::Both },
        Trigger::Button { buttons: NumberRange { first: 257, last: 1023 }, edge: Edge::Both },
        Trigger::GamepadStick {
            sticks: NumberRange::one(128),
            push: Push::Negative,
            dead_zone: 0.2,
            readings: Readings::Each,
        },
        Trigger::GamepadTrigger { triggers: NumberRange::one(133), threshold: 0.5, readings: Readings::Each },
        Trigger::ArtNet { universe: 3, channels: DmxRange { first: 1, last: 512 }, value: any8 },
        Trigger::Beat { counted: Counted::Bars, every: 1, offset: 0 },
        Trigger::Transport { does: Transport::Stop },
    ]);
    let mut source = RuleSource { modes: vec!["Play".into()], rules: Vec::new() };
    for scope in [Scope::Global, Scope::Mode("Play".into())] {
        for device in [None, Some("pads".to_owned())] {
            source.rules.extend(rules.iter().enumerate().map(|(index, trigger)| RuleSpec {
                scope: scope.clone(),
                device: device.clone(),
                ..RuleSpec::new(trigger.clone(), index as u32)
            }));
        }
    }
    compile(source).expect("valid rules")
}

#[test]
fn matching_and_recording_every_kind_of_event_allocate_nothing() {
    let timeline = Timeline::parse(SCRIPT).expect("a script");
    let kinds: std::collections::HashSet<_> = timeline.entries.iter().map(|entry| entry.event.kind() as u8).collect();
    // No port brings a change of a variable.
    let sent = EventKind::ALL.iter().filter(|kind| !kind.is_gesture() && **kind != EventKind::Variable).count();
    assert_eq!(kinds.len(), sent, "the script has every kind");
    let device = DeviceId::new("pads");
    let handle = RuleSetHandle::new(crowded());
    let mut mode = ActiveMode::new();
    let mut recorder = FlightRecorder::new(7);
    // A thread's first load sets up its place among the readers.
    drop(handle.load());

    for entry in &timeline.entries {
        let mut matched = 0;
        let allocations = allocations(|| {
            let set = handle.load();
            let generation = set.generation();
            let mode = mode.index(&set, generation);
            let mut fired = Fired::new();
            for found in set.matches(mode, &device, &entry.event) {
                fired.push(found.rule.id);
                matched += 1;
            }
            let (device, event) = (device.clone(), entry.event.clone());
            recorder.push(Record { at: entry.at, device, event, cause: Cause::Input, mode, generation, fired });
            recorder.iter().for_each(|record| {
                black_box(record);
            });
        });
        assert_eq!(allocations, 0, "{}", entry.event);
        assert!(matched >= 4, "{}: only {matched} rules", entry.event);
    }
    assert_eq!(recorder.recorded(), timeline.entries.len() as u64);
}

#[test]
fn a_mode_looked_up_again_after_a_reload_allocates_nothing() {
    let (before, after) = (crowded(), crowded());
    let mut mode = ActiveMode::new();
    mode.index(&before, 0);
    assert_eq!(allocations(|| assert_eq!(mode.index(&after, 1), ModeIx(0))), 0);
}

/// Gestures and conditions of every kind, on keys that overlap.
fn gestures() -> RuleSet<u32> {
    let (velocity, wide, channel) = (ValueRange::SEVEN_BIT, ValueRange::FOURTEEN_BIT, None);
    let keys = NumberRange { first: 36, last: 51 };
    let (long, short) = (500_000_000, 300_000_000);
    let triggers = [
        Trigger::Note { notes: keys, velocity, edge: Edge::Press, channel },
        Trigger::LongPress { keys, velocity, channel, after: long },
        Trigger::DoubleTap { keys, velocity, channel, taps: 2, within: short },
        Trigger::DoubleTap { keys, velocity, channel, taps: 3, within: short },
        Trigger::Sequence { keys: vec![36, 37, 36], channel, within: short },
        Trigger::Chord { keys: vec![36, 38, 40], channel, within: short },
        Trigger::Turn { controllers: NumberRange::ALL, encoding: Encoding::Difference, way: Rotation::Any, channel },
        Trigger::FineControl { controllers: NumberRange::one(1), value: wide, channel, fine_first: false },
        Trigger::Parameter { registered: true, parameter: 0, value: wide, channel },
        Trigger::GamepadStick {
            sticks: NumberRange::one(128),
            push: Push::Any,
            dead_zone: 0.5,
            readings: Readings::First,
        },
        Trigger::GamepadStick {
            sticks: NumberRange::one(129),
            push: Push::Any,
            dead_zone: 0.5,
            readings: Readings::Each,
        },
        Trigger::GamepadTrigger { triggers: NumberRange::one(133), threshold: 0.1, readings: Readings::Each },
    ];
    let held = Condition::NoteHeld { notes: keys, channel: None, device: None };
    let rules = triggers.into_iter().enumerate().flat_map(|(index, trigger)| {
        let spec = RuleSpec::new(trigger.clone(), index as u32);
        let deferring = RuleSpec { defer: trigger.can_defer(), ..spec.clone() };
        let choices = Choices { conditions: vec![held.clone(), Condition::ModeIs("Play".into())], holds: true };
        let deciding = RuleSpec { choices, ..spec.clone() };
        [spec, deferring.clone(), deciding, RuleSpec { condition: Some(held.clone()), ..deferring }]
    });
    let both = Trigger::Note { notes: keys, velocity, edge: Edge::Both, channel };
    let choices = Choices { conditions: vec![held.clone()], holds: false };
    let rules = rules.chain([RuleSpec { choices, ..RuleSpec::new(both, 99) }]);
    compile(RuleSource { modes: vec!["Play".into()], rules: rules.collect() }).expect("valid rules")
}

/// Counts, and keeps nothing.
#[derive(Default)]
struct Count(u64);

impl Sink<u32> for Count {
    fn fire(&mut self, firing: Firing<'_, u32>) -> Option<Arc<str>> {
        self.0 += 1;
        black_box(firing);
        None
    }
}

#[test]
fn a_clock_and_what_waits_for_it_allocate_nothing() {
    let note =
        Trigger::Note { notes: NumberRange::one(36), velocity: ValueRange::SEVEN_BIT, edge: Edge::Both, channel: None };
    let rules = vec![
        RuleSpec::new(Trigger::Beat { counted: Counted::Beats, every: 1, offset: 0 }, 0),
        RuleSpec { quantize: std::num::NonZeroU16::new(12), ..RuleSpec::new(note, 1) },
    ];
    let clock = ClockSource {
        device: Some(DeviceId::new("drums")),
        tempo: 120.0,
        beats_per_bar: 4,
        variables: None,
        follower: Follower::new(|time, _| {
            black_box(time);
        }),
    };
    let set = compile(RuleSource { modes: Vec::new(), rules }).expect("rules").with_clock(clock);
    let mut engine = Engine::new(Arc::new(RuleSetHandle::new(set)), Default::default());
    engine.keep_time(0);
    let script = "
        0ms drums start
        0ms drums clock 120 8
        30ms pads note-on 36 100
        +40ms pads note-off 36
        +600ms pads note-on 36 100
        +500ms pads note-off 36
    ";
    let timeline = Timeline::parse(script).expect("a script");
    let devices = [DeviceId::new("drums"), DeviceId::new("pads")];
    let mut count = Count::default();
    let mut play = |from: Nanos| {
        for entry in &timeline.entries {
            let device = devices[usize::from(entry.device == "pads")].clone();
            engine.event(from + entry.at, DeviceEvent { device, event: entry.event.clone() }, &mut count);
        }
        engine.advance(from + 9_000_000_000, &mut count);
    };
    play(0);
    let allocations = allocations(|| (1..20).for_each(|round| play(round * 10_000_000_000)));
    assert_eq!(allocations, 0);
    assert_eq!(count.0, 20 * (8 + 4));
}

#[test]
fn finding_gestures_allocates_nothing_once_a_device_is_known() {
    let mut engine = Engine::new(Arc::new(RuleSetHandle::new(gestures())), Default::default());
    let script = "
        0ms pads note-on 36 100
        +10ms pads note-on 38 100
        +10ms pads note-on 40 100
        +10ms pads note-off 36
        +10ms pads note-on 36 100
        +700ms pads note-off 36
        +0ms pads note-off 38
        +0ms pads note-off 40
        +1ms pads cc 16 1
        +1ms pads cc 16 2
        +1ms pads cc 1 2
        +1ms pads cc 33 2
        +1ms pads cc 101 0
        +1ms pads cc 100 0
        +1ms pads cc 6 7
        +5ms pads cc 38 7
        +1ms pads gamepad-stick 128 1
        +1ms pads gamepad-stick 128 0
        +1ms pads gamepad-stick 129 -0.8
        +1ms pads gamepad-stick 129 0.1
        +1ms pads gamepad-trigger 133 0.7
        +1ms pads gamepad-trigger 133 0
    ";
    let timeline = Timeline::parse(script).expect("a script");
    let device = DeviceId::new("pads");
    let mut count = Count::default();
    let mut play = |from: Nanos| {
        for entry in &timeline.entries {
            let event = DeviceEvent { device: device.clone(), event: entry.event.clone() };
            engine.event(from + entry.at, event, &mut count);
            if let Some(deadline) = engine.deadline() {
                engine.advance(deadline.min(from + entry.at + 1_000_000), &mut count);
            }
        }
        engine.advance(from + 10_000_000_000, &mut count);
    };
    play(0);
    let allocations = allocations(|| (1..20).for_each(|round| play(round * 10_000_000_000)));
    assert_eq!(allocations, 0);
    assert!(count.0 > 20 * 20, "{} firings", count.0);
}

#[test]
fn reading_and_transforming_short_messages_allocate_nothing() {
    let mut parser = MidiParser::new();
    let transform =
        MidiTransform { channel: Some(3), velocity_scale: Some(1.2), curve: Some(Curve::SCurve), ..Default::default() };
    let bytes = [0x90, 60, 100, 62, 0, 0xE0, 1, 2, 0xF8, 0xC0, 5, 0xB0, 7, 64];
    let mut sent = 0;
    let allocations = allocations(|| {
        parser.push(&bytes, &mut |message| sent += transform.apply(&message).to_bytes().len());
    });
    assert_eq!((allocations, sent), (0, 15));
}

#[test]
fn asking_what_a_wildcard_matched_allocates_nothing() {
    let pattern = OscPattern::parse("/ch*/{gain,mute}/[a-z]?*").expect("a pattern");
    let mut found = [None; 5];
    let allocations = allocations(|| {
        found.iter_mut().enumerate().for_each(|(at, found)| *found = pattern.matched("/ch12/mute/left", at));
    });
    assert_eq!((allocations, found), (0, [Some("12"), Some("mute"), Some("l"), Some("e"), Some("ft")]));
}
