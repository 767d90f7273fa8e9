//! Points: what speaks for each kind that a group of events may be, and what they come to.

use crate::{Kind, Source};

/// Events after which their number takes half of the doubt away.
const HALF_SURE: usize = 4;
/// The lead, in percent of both, under which the second kind is named as well.
const CLEAR_LEAD: u32 = 70;

/// A kind that a group may be.
#[derive(Debug, Clone)]
struct Candidate {
    kind: Kind,
    points: u32,
    /// What each of them was given for.
    reasons: Vec<(u32, String)>,
}

/// What speaks for each kind that a group of events may be.
#[derive(Debug, Clone)]
pub struct Tally {
    kinds: Vec<Candidate>,
    /// The events of the group.
    pub events: usize,
    /// What its amount is counted in: presses, or ways from one place to another, rather than events.
    pub amount: usize,
    /// Its MIDI channels.
    pub channels: Vec<u8>,
}

impl Tally {
    /// A tally for a group of `events` events, of which `amount` count as evidence.
    pub fn new(events: usize, amount: usize, channels: Vec<u8>) -> Self {
        Self { kinds: Vec::new(), events, amount, channels }
    }

    /// A group whose protocol says what it is. `None` without events.
    pub fn certain(kind: Kind, events: usize, text: &str) -> Option<Self> {
        let mut tally = Self::new(events, events * 4, Vec::new());
        tally.give(kind, 10, || format!("{events} events are {text}"));
        (events > 0).then_some(tally)
    }

    /// Gives `points` to a kind, and says why.
    pub fn give(&mut self, kind: Kind, points: u32, why: impl FnOnce() -> String) {
        let reason = (points, why());
        match self.kinds.iter_mut().find(|candidate| candidate.kind == kind) {
            Some(known) => {
                known.points += points;
                known.reasons.push(reason);
            }
            None => self.kinds.push(Candidate { kind, points, reasons: vec![reason] }),
        }
    }

    /// Gives them where something holds.
    pub fn give_if(&mut self, holds: bool, kind: Kind, points: u32, why: impl FnOnce() -> String) {
        if holds {
            self.give(kind, points, why);
        }
    }

    /// The kind with most points; of equals the one that comes first in [`Kind`]. `None` if nothing has a point.
    pub fn source(mut self) -> Option<Source> {
        self.kinds.sort_by_key(|candidate| (std::cmp::Reverse(candidate.points), candidate.kind));
        let second = self.kinds.get(1).map(|candidate| (candidate.kind, candidate.points));
        let Candidate { kind, points, reasons: mut why } = self.kinds.into_iter().next()?;
        let of_both = points + second.map_or(0, |(_, points)| points);
        let lead = 100 * points / of_both.max(1);
        let amount = u32::try_from(self.amount).unwrap_or(u32::MAX / 200).min(10_000);
        let confidence = lead * amount / (amount + u32::try_from(HALF_SURE).unwrap_or(4)).max(1);
        why.sort_by_key(|(points, _)| std::cmp::Reverse(*points));
        let or_else = second.filter(|_| lead < CLEAR_LEAD).map(|(kind, _)| kind);
        Some(Source {
            kind,
            confidence: u8::try_from(confidence.min(99)).unwrap_or(99),
            evidence: why.into_iter().map(|(_, text)| text).collect(),
            or_else,
            channels: self.channels,
            events: self.events,
            surer: surer(kind, or_else, amount),
        })
    }
}

/// What would make it surer.
fn surer(kind: Kind, or_else: Option<Kind>, amount: u32) -> Option<&'static str> {
    use Kind::{DrumModule, Encoders, Faders, FootController, Keyboard, Knobs, Pads};
    Some(match (kind, or_else) {
        (Keyboard, Some(_)) => "play a few chords over two octaves, and use the wheels or the pedal",
        (Pads | DrumModule, Some(Pads | DrumModule)) => {
            "hit softly and hard, hold one down; of a kit, play the hi-hat with its pedal"
        }
        (Pads | DrumModule, Some(_)) => "hit each pad a few times, softly and hard",
        (Faders | Knobs, Some(Faders | Knobs)) => "move two at once where that can be done, from one end to the other",
        (FootController, Some(_)) | (Faders | Knobs, Some(FootController)) => "press each switch once more",
        (Encoders, _) if amount < 8 => "turn it both ways, slowly and fast",
        (_, _) if amount < 8 => "do more of it: there were few events",
        (_, Some(_)) => "use everything on it once",
        (_, None) => return None,
    })
}
