//! Durations for people.

use std::time::Duration;

/// A number of seconds as text, such as `1m 30s`: from an hour on without seconds, from a day on without minutes.
pub fn duration(seconds: u64) -> humantime::FormattedDuration {
    let unit = match seconds {
        0..3600 => 1,
        3600..86_400 => 60,
        _ => 3600,
    };
    humantime::format_duration(Duration::from_secs(seconds - seconds % unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_units_are_left_out_of_long_durations() {
        for (seconds, text) in [(0, "0s"), (61, "1m 1s"), (3725, "1h 2m"), (86_400, "1day"), (183_600, "2days 3h")] {
            assert_eq!(duration(seconds).to_string(), text);
        }
    }
}
