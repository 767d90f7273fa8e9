//! The events of one device within a window, sorted by what they are of.

use std::collections::BTreeMap;

use conductor_feature::{Event, kind};

use crate::points::Tally;
use crate::{Fingerprint, Kind, Source, controls, notes, system};

/// An event, as far as it tells something of its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Nanoseconds on the clock of events.
    pub at: u64,
    /// As of the contract's event record.
    pub kind: u8,
    /// The MIDI channel, 0-15; 255 where there is none.
    pub channel: u8,
    /// The note, controller or program.
    pub number: u16,
    /// The value as it came.
    pub value: f64,
    /// Whether it is a SysEx message of MIDI machine control (`F0 7F device 06 ...`).
    pub machine_control: bool,
}

impl From<&Event> for Moment {
    fn from(event: &Event) -> Self {
        let Event { at, kind, channel, number, value, .. } = *event;
        Self { at, kind, channel, number, value, machine_control: false }
    }
}

impl Moment {
    /// The value in whole steps.
    pub(crate) fn steps(&self) -> i32 {
        // Values of MIDI are 0 to 16383, and never NaN.
        #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
        let steps = self.value as i32;
        steps
    }
}

/// The events of one device, in their order.
#[derive(Debug, Clone, Default)]
pub struct Window {
    moments: Vec<Moment>,
}

/// The most events that a window keeps: 30 seconds of a device at its usual limit. More are left out.
const MAX_EVENTS: usize = 32_768;
/// A group of fewer events than this is too small to say anything.
const MIN_EVENTS: usize = 3;
/// A confidence under which a group counts as unclear.
const MIN_CONFIDENCE: u8 = 25;

impl Window {
    /// Adds an event; gestures, which the host found in other events, are left out.
    pub fn add(&mut self, moment: Moment) {
        if moment.kind <= kind::ARTNET && self.moments.len() < MAX_EVENTS {
            self.moments.push(moment);
        }
    }

    /// The events, in their order.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// What they come from.
    pub fn classify(&self) -> Fingerprint {
        let mut tallies = Vec::new();
        let of = |wanted: u8| self.moments.iter().filter(|moment| moment.kind == wanted).count();
        for (kind_of_event, kind, text) in
            [(kind::OSC, Kind::OscSurface, "OSC messages"), (kind::ARTNET, Kind::LightingDesk, "Art-Net")]
        {
            tallies.extend(Tally::certain(kind, of(kind_of_event), text));
        }
        let pad = of(kind::GAMEPAD_BUTTON) + of(kind::GAMEPAD_STICK) + of(kind::GAMEPAD_TRIGGER);
        tallies.extend(Tally::certain(Kind::Gamepad, pad, "buttons and sticks of a gamepad"));
        tallies.extend(system::tallies(&self.moments));
        let played = notes::groups(&self.moments);
        let surface = controls::Surface::new(&self.moments, &played);
        tallies.extend(played.iter().map(|group| group.tally(&surface)));
        tallies.extend(surface.tallies(&played));
        merge(tallies)
    }
}

/// One source of each kind, from what was found in groups.
fn merge(tallies: Vec<Tally>) -> Fingerprint {
    let mut sources: BTreeMap<Kind, Source> = BTreeMap::new();
    let mut unclear = 0;
    for tally in tallies {
        let events = tally.events;
        let found = tally.source().filter(|source| events >= MIN_EVENTS && source.confidence >= MIN_CONFIDENCE);
        let Some(found) = found else {
            unclear += events;
            continue;
        };
        match sources.get_mut(&found.kind) {
            None => drop(sources.insert(found.kind, found)),
            Some(known) => {
                known.events += found.events;
                known.channels.extend(found.channels);
                known.channels.sort_unstable();
                known.channels.dedup();
                if found.confidence > known.confidence {
                    (known.confidence, known.evidence) = (found.confidence, found.evidence);
                    (known.or_else, known.surer) = (found.or_else, found.surer);
                }
            }
        }
    }
    let mut sources: Vec<Source> = sources.into_values().collect();
    sources.sort_by_key(|source| std::cmp::Reverse(source.confidence));
    Fingerprint { sources, unclear }
}
