//! Whether threads that wait for events are woken soon beside busy programs.

use super::finding::Finding;
use conductor_config::{AdvancedSettings, Loaded};
use conductor_scheduling::{Grant, RealtimePriority, time_slice, try_realtime};

const ABOUT: &str = "scheduling";

/// What is asked for, and what there is.
#[derive(Debug)]
pub(super) struct SchedulingCheck {
    wanted: AdvancedSettings,
    /// Whether the system has short time slices.
    short: bool,
    /// What the system says about real-time priority, as far as that is wanted.
    realtime: Result<Grant, String>,
}

impl SchedulingCheck {
    pub(super) fn gather(loaded: Option<&Loaded>) -> Self {
        let wanted = loaded.map(|loaded| loaded.config.advanced_settings.clone()).unwrap_or_default();
        // rtkit is asked only if a person wants it: its limit stays with this process.
        let realtime = try_realtime(RealtimePriority::wanted(wanted.realtime_priority, RealtimePriority::ByRight));
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
            (Some(false), _) => {
                Finding::ok(ABOUT, "no real-time priority: `realtime_priority` under [advanced_settings] is false")
            }
            (_, Ok(Grant::Limits)) => Finding::ok(ABOUT, "real-time priority for events, by this user's right to it"),
            (_, Ok(Grant::Rtkit)) => Finding::ok(ABOUT, "real-time priority for events, from rtkit"),
            (None, Err(why)) if cfg!(target_os = "linux") => Finding::ok(
                ABOUT,
                format!(
                    "no real-time priority for events: {why}; `realtime_priority = true` under [advanced_settings] asks \
                     rtkit too"
                ),
            ),
            (None, Err(why)) => Finding::ok(ABOUT, format!("no real-time priority for events: {why}")),
            (Some(true), Err(why)) => Finding::warning(
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
        assert_eq!(found(Some(false), Err(String::new())).level, Level::Ok);
        assert!(found(Some(true), Ok(Grant::Rtkit)).what.contains("rtkit"));
        assert!(found(None, Ok(Grant::Limits)).what.starts_with("real-time priority"));
        let by_default = found(None, Err("no right".to_owned()));
        assert!(by_default.level == Level::Ok && by_default.what.contains("no right"), "{by_default:?}");
        let refused = found(Some(true), Err("no bus".to_owned()));
        assert!(refused.level == Level::Warning && refused.what.contains("no bus"), "{refused:?}");
    }
}
