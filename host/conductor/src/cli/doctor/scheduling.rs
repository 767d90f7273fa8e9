//! Whether threads that wait for events are woken soon beside busy programs.

use super::finding::Finding;
use conductor_config::Loaded;
use conductor_stdx::time_slice;

/// What is asked for, and what there is.
#[derive(Debug)]
pub(super) struct SchedulingCheck {
    wanted: bool,
    available: bool,
}

impl SchedulingCheck {
    pub(super) fn gather(loaded: Option<&Loaded>) -> Self {
        let wanted = loaded.is_none_or(|loaded| loaded.config.advanced_settings.short_time_slices);
        Self { wanted, available: time_slice::is_available() }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let what = match (self.wanted, self.available) {
            (true, true) => "short time slices: events are handled soon beside busy programs",
            (false, _) => "no short time slices: `short_time_slices` under [advanced_settings] is false",
            // Nothing is to be mended where the system has none.
            (true, false) => "no short time slices: Linux has them from 6.12 on; busy programs can delay events",
        };
        vec![Finding::ok("scheduling", what)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_so_is_said() {
        let said = |wanted, available| SchedulingCheck { wanted, available }.judge().remove(0).what;
        assert!(said(true, true).starts_with("short time slices"));
        assert!(said(true, false).contains("6.12") && said(false, true).contains("short_time_slices"));
    }
}
