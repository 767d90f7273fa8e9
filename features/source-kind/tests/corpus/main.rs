//! The labelled corpus: how often the answer is right, on a part that thresholds were chosen by, and on one that was
//! only measured.
//!
//! `cargo test -p source-kind --test corpus -- --nocapture` prints the tables and the time per window.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod players;
mod random;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use players::{Part, Stage};
use source_kind::{Kind, Moment, Window};

/// Plays a source into a window.
type Play = fn(&mut Stage);

/// The windows of each label and part: half of the labels are of one kind, the others of two that share a port.
const WINDOWS: u64 = 24;

/// The labels, and who plays them: one of several ensembles.
fn labels() -> Vec<(Vec<Kind>, Vec<Vec<Play>>)> {
    use Kind::{Breath, DawClock, DrumModule, Encoders, Faders, FootController, Keyboard, Knobs, Pads, Transport};
    let keyboard: Play = |stage| stage.keyboard(0);
    vec![
        (vec![Keyboard], vec![vec![keyboard], vec![keyboard], vec![|stage| stage.keyboard(3)], vec![Stage::mpe]]),
        (vec![Pads], vec![vec![|stage| stage.pads(9)], vec![|stage| stage.pads(0)]]),
        (
            vec![Faders],
            vec![
                vec![|stage| stage.faders(0)],
                vec![|stage| stage.faders(5)],
                vec![|stage| stage.faders(0)],
                vec![Stage::mackie_faders],
            ],
        ),
        (vec![Knobs], vec![vec![|stage| stage.knobs(0)], vec![|stage| stage.knobs(2)]]),
        (vec![Encoders], vec![vec![|stage| stage.encoders(0)], vec![|stage| stage.encoders(15)]]),
        (vec![FootController], vec![vec![|stage| stage.foot(0)], vec![|stage| stage.foot(10)]]),
        (vec![Transport], vec![vec![|stage| stage.transport(0)]]),
        (vec![Breath], vec![vec![|stage| stage.breath(0)], vec![|stage| stage.breath(4)]]),
        (vec![DrumModule], vec![vec![Stage::drums]]),
        (vec![DawClock], vec![vec![Stage::clock]]),
        (vec![Keyboard, Pads], vec![vec![keyboard, |stage| stage.pads(9)]]),
        (vec![Keyboard, Knobs], vec![vec![keyboard, |stage| stage.knobs(0)]]),
        (vec![Faders, Knobs], vec![vec![|stage| stage.faders(1), |stage| stage.knobs(2)]]),
        (vec![Faders, Transport], vec![vec![|stage| stage.faders(0), |stage| stage.transport(0)]]),
        (vec![Pads, Encoders], vec![vec![|stage| stage.pads(9), |stage| stage.encoders(0)]]),
        (vec![Keyboard, FootController], vec![vec![keyboard, |stage| stage.foot(7)]]),
        (vec![Keyboard, DawClock], vec![vec![keyboard, Stage::clock]]),
        (vec![FootController, DrumModule], vec![vec![Stage::drums, |stage| stage.foot(2)]]),
    ]
}

/// A window of the corpus, which the part, the label's place and the number determine.
fn window(part: Part, label: usize, number: u64, ensembles: &[Vec<Play>]) -> Vec<Moment> {
    let of_part = if part == Part::Tuned { 1 } else { 2 };
    let mut stage = Stage::new(of_part << 32 | (label as u64) << 16 | number, part);
    let place = usize::try_from(number).unwrap() % ensembles.len();
    ensembles[place].iter().for_each(|play| play(&mut stage));
    let length = u64::try_from(stage.length).unwrap() * 1_000_000;
    let mut moments = stage.moments;
    moments.retain(|moment| moment.at <= length);
    moments.sort_by_key(|moment| moment.at);
    moments
}

fn classified(moments: &[Moment]) -> source_kind::Fingerprint {
    let mut window = Window::default();
    moments.iter().for_each(|moment| window.add(*moment));
    window.classify()
}

fn name(kinds: &BTreeSet<Kind>) -> String {
    match kinds.len() {
        0 => "unclear".to_owned(),
        _ => kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join("+"),
    }
}

/// Classifies all windows of a part, prints the confusion table, and returns how many there were and how many were right.
fn measure(part: Part) -> (usize, usize) {
    let (mut all, mut right, mut took, mut longest, mut events) = (0, 0, 0, 0, 0);
    let mut confusion: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for (label, (kinds, ensembles)) in labels().iter().enumerate() {
        let kinds: BTreeSet<Kind> = kinds.iter().copied().collect();
        for number in 0..WINDOWS {
            let moments = window(part, label, number, ensembles);
            let begun = Instant::now();
            let found = classified(&moments);
            let micros = begun.elapsed().as_micros();
            took += micros;
            longest = longest.max(micros);
            events += moments.len();
            let answer: BTreeSet<Kind> = found.sources.iter().map(|source| source.kind).collect();
            all += 1;
            right += usize::from(answer == kinds);
            if answer != kinds && part == Part::Tuned && std::env::var_os("CORPUS_MISTAKES").is_some() {
                println!("{} {number}: {found:#?}", name(&kinds));
            }
            *confusion.entry(name(&kinds)).or_default().entry(name(&answer)).or_default() += 1;
        }
    }
    println!("{part:?}: {right} of {all} windows right, {:.1} %", 100.0 * right as f64 / all as f64);
    println!("{} events a window, {} us a window, {longest} us the longest", events / all, took / all as u128);
    for (label, answers) in &confusion {
        let answers: Vec<String> = answers.iter().map(|(answer, count)| format!("{answer} {count}")).collect();
        println!("  {label:<32} {}", answers.join(", "));
    }
    (all, right)
}

// LRN-2: at least 300 windows, and 95 % of those that nothing was tuned on.
#[test]
fn at_least_95_percent_of_the_held_out_windows_are_right() {
    let (all, right) = measure(Part::Tuned);
    assert!(right * 100 >= all * 95, "tuned: {right} of {all}");
    let (all, right) = measure(Part::HeldOut);
    assert!(all >= 300 && right * 100 >= all * 95, "held out: {right} of {all}");
}

// The same answer for the same events, whatever came before.
#[test]
fn the_same_events_have_the_same_answer() {
    for (label, (_, ensembles)) in labels().iter().enumerate() {
        let (one, other) = (window(Part::Tuned, label, 0, ensembles), window(Part::Tuned, label, 0, ensembles));
        assert_eq!(one, other);
        assert_eq!(classified(&one), classified(&other));
    }
}

#[test]
fn a_few_events_are_nothing_and_a_flood_has_an_end() {
    assert_eq!(classified(&[]), source_kind::Fingerprint::default());
    let note = Moment { at: 0, kind: 2, channel: 0, number: 60, value: 100.0, machine_control: false };
    let found = classified(&[note]);
    assert_eq!((found.sources.len(), found.unclear), (0, 1));
    let flood = (0..200_000_u64).map(|at| Moment { at: at * 1000, number: (at % 128) as u16, ..note });
    let flood: Vec<Moment> = flood.collect();
    assert_eq!(classified(&flood).sources.len(), 1);
}
