//! A reload storm (ENG-8): while rule sets are replaced as fast as possible, every match is of one set.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use conductor_engine::*;

const SWAPS: u64 = 10_000;
const READERS: usize = 4;

/// Everything in the set tells which one it is: each rule's action, how many rules match, the mode's name.
fn numbered(number: u64) -> RuleSet<u64> {
    let rule = |index: u64| {
        let trigger = Trigger::Note {
            notes: NumberRange::one(60),
            velocity: ValueRange::SEVEN_BIT,
            edge: Edge::Press,
            channel: None,
        };
        RuleSpec {
            scope: if index.is_multiple_of(2) { Scope::Global } else { Scope::Mode("Play".into()) },
            device: index.is_multiple_of(3).then(|| "pads".to_owned()),
            ..RuleSpec::new(trigger, number)
        }
    };
    // The mode changes its index from set to set, so that a stale one would be noticed.
    let mut modes = vec!["Play".to_owned(), "Mix".to_owned()];
    modes.rotate_left((number % 2) as usize);
    compile(RuleSource { modes, rules: (0..rules_in(number)).map(rule).collect() }).expect("valid rules")
}

fn rules_in(number: u64) -> u64 {
    1 + number % 7
}

#[test]
fn ten_thousand_reloads_leave_every_match_whole() {
    let handle = RuleSetHandle::new(numbered(0));
    let done = AtomicBool::new(false);
    let matched = AtomicU64::new(0);
    let device = DeviceId::new("pads");
    let event = Event::from(MidiMessage::NoteOn { channel: 0, note: 60, velocity: 100 });

    thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                let mut mode = ActiveMode::new();
                mode.set(&numbered(0), u64::MAX, "Play").expect("a mode of this set");
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let set = handle.load();
                    let generation = set.generation();
                    assert!(generation >= last, "time went back from {last} to {generation}");
                    last = generation;
                    let mode = mode.index(&set, generation);
                    let mut count = 0;
                    for found in set.matches(mode, &device, &event) {
                        assert_eq!(found.rule.action, generation);
                        count += 1;
                    }
                    assert_eq!(count, rules_in(generation));
                    matched.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 1..=SWAPS {
            assert_eq!(handle.swap(numbered(number)), number);
        }
        done.store(true, Ordering::Relaxed);
    });

    assert_eq!(handle.generation(), SWAPS);
    assert!(matched.into_inner() > 0, "the readers were there");
}
