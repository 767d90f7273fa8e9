//! The local clock: parts of the day, days of the week, and what the clock shows at a later moment.

#![forbid(unsafe_code)]

use std::fmt;

/// A part of the day, by the local clock: from one second, to before another. Where the second is not later
/// than the first, the range goes on past midnight; a range from a time to itself is the whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The first second that counts, from midnight: 0 to 86 399.
    pub from: u32,
    /// The first second that no longer counts: 0 to 86 400.
    pub to: u32,
}

/// The seconds of a day.
const DAY: u32 = 86_400;

impl TimeRange {
    /// Whether this second of the day is in the range.
    pub const fn contains(self, second: u32) -> bool {
        if self.from < self.to {
            self.from <= second && second < self.to
        } else {
            self.from <= second || second < self.to
        }
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = |f: &mut fmt::Formatter<'_>, second: u32| {
            write!(f, "{:02}:{:02}", second / 3600, second / 60 % 60)?;
            if second.is_multiple_of(60) { Ok(()) } else { write!(f, ":{:02}", second % 60) }
        };
        write(f, self.from)?;
        f.write_str(" to ")?;
        write(f, self.to)
    }
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Day {
    /// The days in the order of the week, Monday first.
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    /// The day so many days later.
    pub fn after(self, days: u64) -> Self {
        Self::ALL[((self as u64 + days % 7) % 7) as usize]
    }
}

/// Some days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Days(u8);

impl Days {
    /// Whether the day is one of them.
    pub const fn contains(self, day: Day) -> bool {
        self.0 & (1 << day as u8) != 0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Day> for Days {
    fn from_iter<I: IntoIterator<Item = Day>>(days: I) -> Self {
        Self(days.into_iter().fold(0, |days, day| days | 1 << day as u8))
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut days = Day::ALL.into_iter().filter(|&day| self.contains(day));
        match days.next() {
            None => f.write_str("none"),
            Some(first) => {
                write!(f, "{first:?}")?;
                days.try_for_each(|day| write!(f, " or {day:?}"))
            }
        }
    }
}

/// What the local clock showed at a moment. It is asked for later times too, so it need not be renewed
/// every second; but it must be when the clock is set, and when summer time begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The moment, in nanoseconds on the clock that events carry.
    pub moment: u64,
    /// The day.
    pub day: Day,
    /// The second of the day, 0 to 86 399.
    pub second: u32,
}

impl LocalTime {
    /// What the clock shows at another moment. Before the snapshot it shows the snapshot.
    pub fn at(self, moment: u64) -> Self {
        let seconds = u64::from(self.second) + moment.saturating_sub(self.moment) / 1_000_000_000;
        Self { moment, day: self.day.after(seconds / u64::from(DAY)), second: (seconds % u64::from(DAY)) as u32 }
    }
}
