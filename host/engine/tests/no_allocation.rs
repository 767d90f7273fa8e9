//! Matching and recording allocate nothing (ENG-8): a counting allocator watches.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use conductor_engine::*;

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
"#;

/// Rules of every kind, each for one and for all modes, devices and channels, so that as many lanes as
/// possible are merged.
fn crowded() -> RuleSet<u32> {
    let (all, any) = (NumberRange::ALL, ValueRange::SEVEN_BIT);
    let arg = Some(OscArgTest { index: 0, min: 0.0, max: 1.0 });
    let pattern = |text| OscPattern::parse(text).expect("a pattern");
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
    let kinds: Vec<_> = timeline.entries.iter().map(|entry| entry.event.kind() as u8).collect();
    assert_eq!(kinds.len(), EventKind::ALL.len(), "the script has every kind");
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
            recorder.push(Record { at: entry.at, device, event, mode, generation, fired });
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
