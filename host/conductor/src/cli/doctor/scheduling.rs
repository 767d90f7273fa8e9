//! Whether threads that wait for events are woken soon beside busy programs.

use super::finding::Finding;
use conductor_config::{AdvancedSettings, Loaded};
use conductor_scheduling::{Grant, time_slice, try_realtime};

const ABOUT: &str = "scheduling";

/// What is asked for, and what there is.
#[derive(Debug)]
pub(super) struct SchedulingCheck {
    wanted: AdvancedSettings,
    /// Whether the system has short time slices.
    short: bool,
    /// What the system says about real-time priority, if that is wanted.
    realtime: Result<Grant, String>,
}

impl SchedulingCheck {
    pub(super) fn gather(loaded: Option<&Loaded>) -> Self {
        let wanted = loaded.map(|loaded| loaded.config.advanced_settings.clone()).unwrap_or_default();
        // Asked for only where it is wanted: rtkit's limit stays with this process.
        let realtime = if wanted.realtime_priority { try_realtime() } else { Err(String::new()) };
        Self { wanted, short: time_slice::is_available(), realtime }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let short = match (self.wanted.short_time_slices, self.short) {
            (true, true) => "short time slices: events are handled soon beside busy programs",
            (false, _) => "no short time slices: `short_time_slices` under [advanced_settings] is false",
            // Nothing is to be mended where the system has none.
            (true, false) => "no short time slices: Linux has them from 6.12 on; busy programs can delay events",
        };
        let realtime = match (self.wanted.realtime_priority, &self.realtime) {
            (false, _) => Finding::ok(
                ABOUT,
                "no real-time priority: `realtime_priority` under [advanced_settings] is false, as it is by default",
            ),
            (true, Ok(Grant::Limits)) => {
                Finding::ok(ABOUT, "real-time priority for events, by this user's right to it")
            }
            (true, Ok(Grant::Rtkit)) => Finding::ok(ABOUT, "real-time priority for events, from rtkit"),
            (true, Err(why)) => Finding::warning(
                ABOUT,
                format!("no real-time priority, which `realtime_priority` asks for: {why}"),
                "install rtkit, or write `@audio - rtprio 95` into /etc/security/limits.d/95-conductor.conf, then\n\
                 `sudo usermod -aG audio \"$USER\"`, and log out and in again",
            ),
        };
        vec![Finding::ok(ABOUT, short), realtime]
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn said(short_time_slices: bool, short: bool) -> String {
        let wanted = AdvancedSettings { short_time_slices, ..AdvancedSettings::default() };
        SchedulingCheck { wanted, short, realtime: Err(String::new()) }.judge().remove(0).what
    }

    #[test]
    fn what_is_so_is_said() {
        assert!(said(true, true).starts_with("short time slices"));
        assert!(said(true, false).contains("6.12") && said(false, true).contains("short_time_slices"));
    }

    #[test]
    fn real_time_priority_that_is_wanted_and_refused_is_a_warning_with_the_reason() {
        let found = |realtime_priority, realtime| {
            let wanted = AdvancedSettings { realtime_priority, ..AdvancedSettings::default() };
            SchedulingCheck { wanted, short: true, realtime }.judge().remove(1)
        };
        assert_eq!(found(false, Err(String::new())).level, Level::Ok);
        assert!(found(true, Ok(Grant::Rtkit)).what.contains("rtkit"));
        let refused = found(true, Err("no bus".to_owned()));
        assert!(refused.level == Level::Warning && refused.what.contains("no bus"), "{refused:?}");
    }
}
