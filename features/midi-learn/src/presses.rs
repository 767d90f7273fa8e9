//! Presses: of a key, a pad, or a gamepad's button. How long they were, how soon they came again, how hard, which together.

use conductor_feature::mapping::{Bounds, Number, Trigger, TriggerKind};
use schemars::JsonSchema;
use serde::Serialize;

/// Milliseconds that a press is longer than to be a long one.
const LONG_PRESS_MS: u64 = 500;
/// Milliseconds within which two presses begin that are a double tap.
const DOUBLE_TAP_MS: u64 = 400;
/// Milliseconds within which the notes of a chord begin.
const CHORD_MS: u64 = 50;
/// Steps of velocity between two layers.
const LAYER_GAP: i64 = 12;
/// The most notes of a chord.
const MAX_CHORD: usize = 10;

/// What was done with a control, beyond moving it, and the trigger for that.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "two schemas would say it again")]
pub struct Gesture {
    /// long-press, double-tap, chord, velocity-layer.
    pub kind: String,
    pub evidence: String,
    /// The trigger.
    pub toml: String,
}

/// What can be pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A channel and a note.
    Note(u8, u16),
    /// A gamepad's button, or from [`FIRST_KEY`] on a computer keyboard's key.
    Button(u16),
}

/// The lowest number of a computer keyboard's key.
pub const FIRST_KEY: u16 = 257;

/// A press.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Press {
    /// When it began, in nanoseconds.
    pub down: u64,
    /// When it ended; `None` if it had not yet.
    pub up: Option<u64>,
    /// How hard, 0 to 127.
    pub hard: f64,
}

fn ms(from: u64, to: u64) -> u64 {
    to.saturating_sub(from) / 1_000_000
}

/// A trigger of this kind for this key of a device.
fn trigger(kind: TriggerKind, device: &str, key: Key) -> Trigger {
    let one = |number: u16| Some(Number::Whole(i64::from(number)));
    let mut it = Trigger { device: Some(device.to_owned()), ..Trigger::new(kind) };
    match key {
        Key::Note(channel, note) => (it.note, it.channel) = (one(note), Some(channel)),
        Key::Button(key) if key >= FIRST_KEY => it.key = one(key),
        Key::Button(button) => it.button = one(button),
    }
    it
}

/// What was done with a key, without the chords that it was in.
pub fn gestures(device: &str, key: Key, presses: &[Press]) -> Vec<Gesture> {
    let mut found = Vec::new();
    let mut put = |kind: &str, evidence: String, trigger: &Trigger| {
        found.push(Gesture { kind: kind.to_owned(), evidence, toml: crate::toml(trigger) });
    };
    let held = presses.iter().filter_map(|press| press.up.map(|up| ms(press.down, up))).max();
    if let Some(held) = held.filter(|held| *held > LONG_PRESS_MS) {
        let mut it = trigger(TriggerKind::LongPress, device, key);
        it.duration_ms = Some(500);
        put("long-press", format!("held for {held} ms, more than {LONG_PRESS_MS}"), &it);
    }
    if let Some(apart) = tapped_twice(presses) {
        let mut it = trigger(TriggerKind::DoubleTap, device, key);
        it.timeout_ms = Some(400);
        put("double-tap", format!("twice within {apart} ms, less than {DOUBLE_TAP_MS}"), &it);
    }
    if let Key::Note(..) = key {
        let layers = layers(presses);
        for (place, (low, high, from, to)) in layers.iter().enumerate() {
            let mut it = trigger(TriggerKind::Note, device, key);
            it.velocity_range = Some(Bounds([*from, *to]));
            put("velocity-layer", format!("layer {} of {}: {low} to {high}", place + 1, layers.len()), &it);
        }
    }
    found
}

/// Milliseconds between the last two presses, where they are a double tap: let go in between, and not the end of a roll.
fn tapped_twice(presses: &[Press]) -> Option<u64> {
    let [before @ .., first, second] = presses else { return None };
    let apart = ms(first.down, second.down);
    let is_let_go = first.up.is_some_and(|up| up <= second.down);
    let is_roll = before.last().is_some_and(|third| ms(third.down, first.down) < DOUBLE_TAP_MS);
    (apart < DOUBLE_TAP_MS && is_let_go && !is_roll).then_some(apart)
}

/// The layers of velocity that presses fall into, softest first: the lowest and the highest that came, and the range that
/// a mapping of the layer has. Empty if all of them are one.
fn layers(presses: &[Press]) -> Vec<(i64, i64, u16, u16)> {
    #[expect(clippy::cast_possible_truncation, reason = "velocities are 0 to 127")]
    let mut all: Vec<i64> = presses.iter().map(|press| press.hard as i64).collect();
    all.sort_unstable();
    if all.len() < 3 {
        return Vec::new();
    }
    let mut layers: Vec<(i64, i64)> = Vec::new();
    for one in all {
        match layers.last_mut() {
            Some((_, high)) if one - *high < LAYER_GAP => *high = one,
            _ => layers.push((one, one)),
        }
    }
    if !(2..=4).contains(&layers.len()) {
        return Vec::new();
    }
    let bound = |number: i64| u16::try_from(number).unwrap_or_default().min(127);
    let middle = |place: usize| (layers[place].1 + layers[place + 1].0) / 2;
    (0..layers.len())
        .map(|place| {
            let from = if place == 0 { 1 } else { middle(place - 1) + 1 };
            let to = if place + 1 == layers.len() { 127 } else { middle(place) };
            (layers[place].0, layers[place].1, bound(from), bound(to))
        })
        .collect()
}

/// The last chord among the presses of a device: several keys that begin together, none of which ends before the last begins.
/// Returns the key that was pressed last, too.
pub fn chord(device: &str, pressed: &[(Key, Press)]) -> Option<(Key, Gesture)> {
    let mut all = pressed.to_vec();
    all.sort_by_key(|(_, press)| press.down);
    let same = |one: Key, other: Key| match (one, other) {
        (Key::Note(channel, _), Key::Note(of, _)) => channel == of,
        (Key::Button(_), Key::Button(_)) => true,
        _ => false,
    };
    let begun = |place: usize| {
        let (key, first) = all[place];
        let mut keys = vec![key];
        let mut last = (key, first.down);
        for (other, press) in &all[place + 1..] {
            if ms(first.down, press.down) > CHORD_MS || keys.len() == MAX_CHORD {
                break;
            }
            if same(key, *other) && !keys.contains(other) {
                keys.push(*other);
                last = (*other, press.down);
            }
        }
        let held = |key: &Key| {
            let mut of_key = all[place..].iter().filter(|(other, _)| other == key);
            of_key.next().is_some_and(|(_, press)| press.up.is_none_or(|up| up > last.1))
        };
        (keys.len() > 1 && keys.iter().all(held)).then_some((keys, last.0, ms(first.down, last.1)))
    };
    let largest = (0..all.len()).rev().filter_map(begun);
    // The last one: from the first of its keys on.
    let (mut keys, last, apart) = largest.reduce(|later, earlier| {
        let is_part = later.0.iter().all(|key| earlier.0.contains(key));
        if is_part { earlier } else { later }
    })?;
    keys.sort_unstable();
    let mut it = Trigger { device: Some(device.to_owned()), ..Trigger::new(TriggerKind::NoteChord) };
    let number = |number: u16| u8::try_from(number).unwrap_or_default();
    for key in &keys {
        match *key {
            Key::Note(channel, note) => {
                it.channel = Some(channel);
                it.notes.get_or_insert_default().push(number(note));
            }
            Key::Button(key) if key >= FIRST_KEY => {
                it.kind = TriggerKind::KeyChord;
                it.keys.get_or_insert_default().push(Number::Whole(i64::from(key)));
            }
            Key::Button(button) => {
                it.kind = TriggerKind::GamepadButtonChord;
                it.buttons.get_or_insert_default().push(number(button));
            }
        }
    }
    let evidence = format!("{} keys went down within {apart} ms, and none came up before the last", keys.len());
    Some((last, Gesture { kind: "chord".to_owned(), evidence, toml: crate::toml(&it) }))
}
