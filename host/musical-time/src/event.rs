//! What a clock says as events: beats, and what its transport does.

use std::fmt;

/// Musical time went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MusicalEvent {
    /// A beat begins.
    Beat {
        /// Which one of its bar, from 1.
        beat: u8,
        /// Which bar, from 1.
        bar: u32,
        /// How many beats a bar has.
        of: u8,
    },
    /// The clock begins or ends to play.
    Transport(Transport),
}

/// What the transport does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// It plays from the beginning.
    Start,
    /// It plays on.
    Continue,
    /// It stops.
    Stop,
    /// It stops, since its device sends nothing.
    Lost,
}

impl Transport {
    /// All of them, with the words for them.
    pub const ALL: [(&'static str, Self); 4] =
        [("start", Self::Start), ("continue", Self::Continue), ("stop", Self::Stop), ("lost", Self::Lost)];
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Beats.
    Beats,
    /// Bars, by their first beats.
    Bars,
}

/// The words for it after its kind: `1 12 4`, or `stop`.
impl fmt::Display for MusicalEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beat { beat, bar, of } => write!(f, "{beat} {bar} {of}"),
            Self::Transport(does) => {
                Transport::ALL.iter().filter(|(_, known)| known == does).try_for_each(|(word, _)| f.write_str(word))
            }
        }
    }
}

impl MusicalEvent {
    /// The beat in its bar, from 1; 0 if none begins.
    pub fn beat(self) -> u8 {
        if let Self::Beat { beat, .. } = self { beat } else { 0 }
    }

    /// The bar, from 1; 0 if no beat begins.
    pub fn bar(self) -> u32 {
        if let Self::Beat { bar, .. } = self { bar } else { 0 }
    }

    /// How far in its bar a beat begins, 0 up to below 1; 0 if none begins.
    pub fn way(self) -> f32 {
        match self {
            Self::Beat { beat, of, .. } => f32::from(beat.saturating_sub(1)) / f32::from(of.max(1)),
            Self::Transport(_) => 0.0,
        }
    }

    /// Whether a beat or bar begins that is the one at `offset`, from 0, of each `every`; 0 counts as 1.
    pub fn is_one_of(self, counted: Counted, every: u16, offset: u16) -> bool {
        self.count(counted).is_some_and(|count| count % u64::from(every.max(1)) == u64::from(offset))
    }

    /// Whether the transport does this; a clock that is lost stops, too.
    pub fn does(self, wanted: Transport) -> bool {
        let Self::Transport(done) = self else { return false };
        done == wanted || (wanted, done) == (Transport::Stop, Transport::Lost)
    }

    /// Which beat or bar begins, from 0. `None` if none does.
    fn count(self, what: Counted) -> Option<u64> {
        match self {
            Self::Beat { beat, bar, .. } if what == Counted::Bars => {
                (beat == 1).then(|| u64::from(bar).saturating_sub(1))
            }
            Self::Beat { beat, bar, of } => {
                Some(u64::from(bar).saturating_sub(1) * u64::from(of) + u64::from(beat).saturating_sub(1))
            }
            Self::Transport(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_and_bars_are_counted_from_the_beginning() {
        let beat = |beat, bar| MusicalEvent::Beat { beat, bar, of: 3 };
        assert!(beat(1, 1).is_one_of(Counted::Beats, 4, 0));
        assert!(beat(2, 2).is_one_of(Counted::Beats, 4, 0), "the fifth beat");
        assert!(!beat(3, 2).is_one_of(Counted::Beats, 4, 0));
        assert!(beat(1, 4).is_one_of(Counted::Bars, 2, 1));
        assert!(!beat(2, 4).is_one_of(Counted::Bars, 1, 0), "no bar begins");
        assert!(beat(2, 4).is_one_of(Counted::Beats, 0, 0), "each");
        assert!(!MusicalEvent::Transport(Transport::Start).is_one_of(Counted::Beats, 1, 0));
    }

    #[test]
    fn what_is_lost_stops() {
        let lost = MusicalEvent::Transport(Transport::Lost);
        assert!(lost.does(Transport::Stop) && lost.does(Transport::Lost) && !lost.does(Transport::Start));
        assert!(!MusicalEvent::Transport(Transport::Stop).does(Transport::Lost));
    }
}
