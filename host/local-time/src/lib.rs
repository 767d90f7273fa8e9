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

    /// The day this many days later.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u32 = 3600;
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_part_of_the_day_ends_before_its_last_second() {
        let evening = TimeRange { from: 18 * HOUR, to: DAY };
        let asked = [0, 18 * HOUR - 1, 18 * HOUR, DAY - 1];
        assert_eq!(asked.map(|second| evening.contains(second)), [false, false, true, true]);
        let morning = TimeRange { from: 6 * HOUR, to: 10 * HOUR };
        let asked = [6 * HOUR - 1, 6 * HOUR, 10 * HOUR - 1, 10 * HOUR];
        assert_eq!(asked.map(|second| morning.contains(second)), [false, true, true, false]);
    }

    #[test]
    fn a_part_of_the_day_may_go_on_past_midnight() {
        let night = TimeRange { from: 22 * HOUR, to: 6 * HOUR };
        let asked = [22 * HOUR - 1, 22 * HOUR, DAY - 1, 0, 6 * HOUR - 1, 6 * HOUR];
        assert_eq!(asked.map(|second| night.contains(second)), [false, true, true, true, true, false]);
        let whole_day = TimeRange { from: 9 * HOUR, to: 9 * HOUR };
        assert_eq!([9 * HOUR - 1, 9 * HOUR, 0, DAY - 1].map(|second| whole_day.contains(second)), [true; 4]);
    }

    #[test]
    fn a_part_of_the_day_shows_seconds_only_if_it_has_some() {
        assert_eq!(TimeRange { from: 22 * HOUR, to: DAY }.to_string(), "22:00 to 24:00");
        assert_eq!(TimeRange { from: 8 * HOUR + 30 * 60 + 5, to: 59 }.to_string(), "08:30:05 to 00:00:59");
    }

    #[test]
    fn days_of_the_week_follow_each_other_round() {
        assert_eq!(Day::Sunday.after(1), Day::Monday);
        assert_eq!(Day::Friday.after(0), Day::Friday);
        assert_eq!(Day::Tuesday.after(7 * 1000 + 5), Day::Sunday);
        // 2^64 - 1 is one more than a multiple of seven, and no sum overflows.
        assert_eq!(Day::Sunday.after(u64::MAX), Day::Monday);
    }

    #[test]
    fn some_days_are_listed_in_the_order_of_the_week() {
        let weekend: Days = [Day::Sunday, Day::Saturday, Day::Sunday].into_iter().collect();
        assert_eq!(weekend.to_string(), "Saturday or Sunday");
        assert_eq!(Day::ALL.map(|day| weekend.contains(day)), [false, false, false, false, false, true, true]);
        assert_eq!((Days::default().to_string(), Days::default().is_empty()), ("none".to_owned(), true));
    }

    #[test]
    fn the_clock_goes_on_from_a_snapshot_over_midnight_and_weeks() {
        let snapshot = LocalTime { moment: 5 * SECOND, day: Day::Sunday, second: DAY - 2 };
        let shown = |moment| {
            let LocalTime { day, second, .. } = snapshot.at(moment);
            (day, second)
        };
        assert_eq!(shown(5 * SECOND + SECOND - 1), (Day::Sunday, DAY - 2));
        assert_eq!(shown(6 * SECOND), (Day::Sunday, DAY - 1));
        assert_eq!(shown(7 * SECOND), (Day::Monday, 0));
        assert_eq!(shown((7 + 8 * u64::from(DAY)) * SECOND), (Day::Tuesday, 0));
        assert_eq!(snapshot.at(7 * SECOND).at(8 * SECOND), snapshot.at(8 * SECOND));
        // A moment before the snapshot shows the snapshot.
        assert_eq!(shown(0), (Day::Sunday, DAY - 2));
    }
}
