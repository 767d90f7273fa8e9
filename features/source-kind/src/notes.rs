//! Notes: keys, pads, the triggers of a drum kit, and buttons that send notes.

use std::collections::{BTreeMap, BTreeSet};

use conductor_feature::kind;

use crate::Kind;
use crate::controls::Surface;
use crate::points::Tally;
use crate::window::Moment;

/// Channels with notes of which each has few: one note a channel, as MIDI polyphonic expression has it.
const MPE_CHANNELS: usize = 3;
/// Nanoseconds within which two notes count as played together: a hand's fingers come down within 30 ms.
const MAX_CHORD_NANOS: u64 = 30_000_000;
/// Nanoseconds for which two keys have to be down at once.
const MIN_HELD_NANOS: u64 = 40_000_000;

/// A note that was played.
#[derive(Debug, Clone, Copy)]
struct Press {
    at: u64,
    note: i32,
    velocity: i32,
    /// When it was let go; `None` if it was down at the end.
    until: Option<u64>,
}

/// The notes that were played on a channel, or on those of an instrument with a channel for each note.
#[derive(Debug, Clone, Default)]
pub struct Group {
    channels: BTreeSet<u8>,
    presses: Vec<Press>,
    /// The pressure on single keys.
    pressures: Vec<(u64, i32)>,
    /// Events of it in all.
    events: usize,
    /// Whether each note has a channel for itself.
    mpe: bool,
}

/// The groups of notes among the events.
pub fn groups(moments: &[Moment]) -> Vec<Group> {
    let touched = mackie_touches(moments);
    let mut groups: BTreeMap<u8, Group> = BTreeMap::new();
    for moment in moments.iter().filter(|moment| moment.channel < 16) {
        let note = i32::from(moment.number);
        if !matches!(moment.kind, kind::NOTE_ON | kind::NOTE_OFF | kind::POLY_AFTERTOUCH | kind::AFTERTOUCH)
            || (touched && (104..=112).contains(&note))
        {
            continue;
        }
        let group = groups.entry(moment.channel).or_default();
        group.channels.insert(moment.channel);
        group.events += 1;
        match moment.kind {
            kind::NOTE_ON => {
                group.presses.push(Press { at: moment.at, note, velocity: moment.steps(), until: None });
            }
            kind::NOTE_OFF => {
                let down = group.presses.iter_mut().rev().take(64);
                if let Some(press) = down.into_iter().find(|press| press.note == note && press.until.is_none()) {
                    press.until = Some(moment.at);
                }
            }
            kind::POLY_AFTERTOUCH => group.pressures.push((moment.at, moment.steps())),
            _ => {}
        }
    }
    groups.retain(|_, group| !group.presses.is_empty());
    let bends: BTreeSet<u8> =
        moments.iter().filter(|moment| moment.kind == kind::PITCH_BEND).map(|moment| moment.channel).collect();
    let bent = groups.keys().filter(|channel| bends.contains(channel)).count();
    if bent < MPE_CHANNELS {
        return groups.into_values().collect();
    }
    let mut whole = Group { mpe: true, ..Group::default() };
    for group in groups.into_values() {
        whole.channels.extend(group.channels);
        whole.presses.extend(group.presses);
        whole.pressures.extend(group.pressures);
        whole.events += group.events;
    }
    whole.presses.sort_by_key(|press| press.at);
    vec![whole]
}

/// Whether the faders of a Mackie-style surface were touched: pitch bend goes with notes 104-112, all of them at 127.
fn mackie_touches(moments: &[Moment]) -> bool {
    let bends = moments.iter().any(|moment| moment.kind == kind::PITCH_BEND);
    let mut presses = moments.iter().filter(|moment| moment.kind == kind::NOTE_ON && moment.channel == 0).peekable();
    bends && presses.peek().is_some() && presses.all(|press| press.steps() == 127)
}

/// How many percent `some` is of `all`.
fn percent(some: usize, all: usize) -> usize {
    100 * some / all.max(1)
}

fn median<T: Ord + Copy + Default>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl Group {
    /// Whether it has notes of this channel.
    pub fn is_on(&self, channel: u8) -> bool {
        self.channels.contains(&channel)
    }

    /// Whether each note has a channel for itself.
    pub fn is_mpe(&self) -> bool {
        self.mpe
    }

    fn distinct(&self) -> BTreeSet<i32> {
        self.presses.iter().map(|press| press.note).collect()
    }

    /// Steps from each note to the next.
    fn intervals(&self) -> Vec<i32> {
        self.presses.windows(2).map(|pair| (pair[1].note - pair[0].note).abs()).collect()
    }

    /// Milliseconds that notes were held.
    fn lengths(&self) -> Vec<u64> {
        self.presses
            .iter()
            .filter_map(|press| press.until.map(|until| until.saturating_sub(press.at) / 1_000_000))
            .collect()
    }

    /// How many of the notes began while another was held on.
    fn overlapping(&self) -> usize {
        let overlaps = |place: usize| {
            let press = self.presses[place];
            let before = &self.presses[place.saturating_sub(12)..place];
            before.iter().any(|other| {
                other.note != press.note && other.until.is_none_or(|until| until > press.at + MIN_HELD_NANOS)
            })
        };
        (1..self.presses.len()).filter(|place| overlaps(*place)).count()
    }

    /// The most notes that began together.
    fn chord(&self) -> usize {
        // Presses are in the order of time; a hand or two has no more than so many fingers.
        let begun = |place: usize| {
            let with = self.presses[place..].iter().take(12);
            let with = with.take_while(|other| other.at.saturating_sub(self.presses[place].at) <= MAX_CHORD_NANOS);
            with.map(|other| other.note).collect::<BTreeSet<_>>().len()
        };
        (0..self.presses.len()).map(begun).max().unwrap_or_default()
    }

    /// What it may be.
    pub fn tally(&self, surface: &Surface) -> Tally {
        let channels: Vec<u8> = self.channels.iter().copied().collect();
        let mut tally = Tally::new(self.events, self.presses.len(), channels);
        let notes = self.distinct();
        let (lowest, highest) = (notes.first().copied().unwrap_or_default(), notes.last().copied().unwrap_or_default());
        self.keyboard(&mut tally, surface, &notes, highest - lowest);
        self.pads(&mut tally, &notes, lowest, highest);
        self.drums(&mut tally, surface, &notes);
        let velocities: BTreeSet<i32> = self.presses.iter().map(|press| press.velocity).collect();
        // 91 to 95 are wind, stop, play, record of the Mackie protocol; 84 to 90 stand beside them.
        let in_transport = notes.iter().all(|note| (84..=101).contains(note));
        let wound = notes.iter().filter(|note| (91..=95).contains(*note)).count();
        let on_first = self.channels.iter().eq([0].iter());
        tally.give_if(
            on_first && in_transport && wound * 2 >= notes.len() && velocities.iter().eq([127].iter()),
            Kind::Transport,
            16,
            || "notes 91 to 95 at 127, the transport of the Mackie protocol".to_owned(),
        );
        let breath = self.channels.iter().any(|channel| surface.is_blown(*channel));
        tally.give_if(breath, Kind::Breath, 10, || "breath goes with the notes".to_owned());
        let single = breath && percent(self.overlapping(), self.presses.len()) < 10;
        tally.give_if(single, Kind::Breath, 8, || "one note at a time".to_owned());
        tally
    }

    fn keyboard(&self, tally: &mut Tally, surface: &Surface, notes: &BTreeSet<i32>, span: i32) {
        use Kind::Keyboard;
        let all = self.presses.len();
        tally.give_if(span >= 25, Keyboard, 3, || format!("notes over {span} semitones"));
        tally.give_if((13..25).contains(&span), Keyboard, 1, || format!("notes over {span} semitones"));
        tally.give_if(notes.len() >= 10, Keyboard, 2, || format!("{} different notes", notes.len()));
        let held = percent(self.overlapping(), all);
        tally.give_if(held >= 20, Keyboard, 2, || format!("{held} % of the notes begin while another is held"));
        let length = median(self.lengths());
        tally.give_if(length >= 180, Keyboard, 1, || format!("held for {length} ms (median)"));
        let intervals = self.intervals();
        let melodic = intervals.iter().filter(|interval| (1..=5).contains(*interval)).count();
        tally.give_if(percent(melodic, intervals.len()) >= 50 && notes.len() >= 6, Keyboard, 2, || {
            format!("{} % of the steps are as of a melody, 1 to 5 semitones", percent(melodic, intervals.len()))
        });
        let chord = self.chord();
        tally.give_if(chord >= 3, Keyboard, 2, || format!("{chord} notes begin together"));
        tally.give_if(self.mpe, Keyboard, 8, || {
            format!("a channel for each note ({} channels), each bent for itself", self.channels.len())
        });
        for (holds, text) in [
            (self.channels.iter().any(|channel| surface.has_sustain(*channel)), "a sustain pedal on the same channel"),
            (self.channels.iter().any(|channel| surface.has_wheel(*channel)), "a pitch wheel on the same channel"),
            (self.channels.iter().any(|channel| surface.has_modulation(*channel)), "a modulation wheel"),
        ] {
            tally.give_if(holds, Keyboard, 4, || text.to_owned());
        }
    }

    fn pads(&self, tally: &mut Tally, notes: &BTreeSet<i32>, lowest: i32, highest: i32) {
        use Kind::Pads;
        let (span, all) = (highest - lowest, self.presses.len());
        tally.give_if(span <= 15, Pads, 2, || format!("all notes within a block of 16 ({lowest} to {highest})"));
        let on_ten = self.channels.contains(&9);
        tally.give_if(on_ten && span <= 15, Pads, 1, || "on channel 10".to_owned());
        tally.give_if(notes.len() <= 8 && all >= 2 * notes.len(), Pads, 2, || {
            format!("{} notes, played again and again", notes.len())
        });
        let velocities: Vec<i32> = self.presses.iter().map(|press| press.velocity).collect();
        let fixed = velocities.iter().all(|velocity| *velocity == velocities[0]);
        tally.give_if(fixed, Pads, 2, || format!("every velocity is {}", velocities[0]));
        tally.give_if(fixed && velocities[0] == 127, Pads, 2, || "that is the highest, as of a button".to_owned());
        let middle = median(velocities.clone());
        let spread = median(velocities.iter().map(|velocity| (velocity - middle).abs()).collect());
        tally.give_if(spread >= 16, Pads, 1, || format!("velocities spread widely ({spread} around {middle})"));
        let pressures: BTreeSet<i32> = self.pressures.iter().map(|(_, value)| *value).collect();
        tally.give_if(pressures.len() > 6, Pads, 3, || "the pressure on each is sensed".to_owned());
        let lengths = self.lengths();
        let length = median(lengths.clone());
        let varied = spread_of(&lengths) >= 40;
        tally.give_if(length < 180 && varied, Pads, 2, || {
            format!("short ({length} ms) and of different length, as fingers let go")
        });
        tally.give_if(self.chord() <= 2 && span > 15 && fixed, Pads, 2, || "one button at a time".to_owned());
        let leaps = self.intervals().iter().filter(|interval| **interval == 0 || **interval >= 6).count();
        let leaps = percent(leaps, all) >= 50;
        tally.give_if(leaps, Pads, 1, || "the same again, or far from it".to_owned());
        let single = leaps && percent(self.overlapping(), all) < 5 && length < 200 && self.chord() < 3;
        tally.give_if(single, Pads, 2, || "short, one at a time".to_owned());
    }

    fn drums(&self, tally: &mut Tally, surface: &Surface, notes: &BTreeSet<i32>) {
        use Kind::DrumModule;
        let on_ten = self.channels.contains(&9);
        tally.give_if(on_ten, DrumModule, 2, || "on channel 10, that of percussion".to_owned());
        let any = |of: &[i32]| of.iter().any(|note| notes.contains(note));
        let parts = [
            any(&[35, 36]),
            any(&[37, 38, 39, 40]),
            any(&[42, 44, 46, 22, 26]),
            any(&[41, 43, 45, 47, 48, 50]),
            any(&[49, 51, 52, 53, 55, 57, 59]),
        ];
        let parts = parts.iter().filter(|part| **part).count();
        tally.give_if(parts >= 3, DrumModule, 2, || format!("{parts} of the 5 parts of a General MIDI drum kit"));
        let lengths = self.lengths();
        let gate = median(lengths.clone());
        let fixed = lengths.len() >= 3 && spread_of(&lengths) <= 12;
        tally.give_if(fixed && gate <= 250, DrumModule, 4, || format!("every note lasts {gate} ms: a trigger's gate"));
        let hi_hat = self.channels.iter().any(|channel| surface.has_hi_hat(*channel));
        tally.give_if(hi_hat, DrumModule, 4, || "controller 4 goes with it, the pedal of a hi-hat".to_owned());
        let choked = self.pressures.iter().filter(|(_, value)| matches!(value, 0 | 127)).count();
        tally.give_if(choked >= 2 && choked == self.pressures.len(), DrumModule, 4, || {
            "cymbals are choked: pressure of 127, then 0".to_owned()
        });
    }
}

/// How far the middle eight tenths of the values are apart, in percent of the median.
fn spread_of(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return 0 };
    let (low, high) = (sorted[last / 10], sorted[last - last / 10]);
    100 * (high - low) / sorted[sorted.len() / 2].max(10)
}
