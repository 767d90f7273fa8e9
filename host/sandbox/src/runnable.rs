//! Whether a feature may run now: not in quarantine, and not while it has used up its share of the processor.

use std::time::{Duration, Instant};

use crate::limits;
use crate::outcome::{CallError, ServiceError};
use crate::state::FeatureFacts;

/// Refuses while a feature is in quarantine.
///
/// # Errors
/// [`ServiceError::Unavailable`], with how long it will be.
pub fn check_quarantine(facts: &FeatureFacts) -> Result<(), CallError> {
    match facts.quarantine.left(Instant::now()) {
        None => Ok(()),
        Some(left) => Err(CallError::Refused(ServiceError::Unavailable(format!(
            "it kept trapping and is quarantined for {} s more",
            left.max(Duration::from_secs(1)).as_secs()
        )))),
    }
}

/// Refuses while a feature is in quarantine, or its calls in the real-time lane have used up their share of
/// the processor.
///
/// # Errors
/// Those of [`check_quarantine`], or [`ServiceError::Exhausted`].
pub fn may_run_now(facts: &FeatureFacts) -> Result<(), CallError> {
    check_quarantine(facts)?;
    if facts.cpu_share.is_spent(Instant::now) {
        if facts.cpu_share.strikes(Instant::now()) {
            record_trap(facts);
        }
        let text = format!("it used up its {} ms of CPU time a second and is left out", limits::REALTIME_CPU_RATE);
        return Err(CallError::Refused(ServiceError::Exhausted(text)));
    }
    Ok(())
}

/// Refuses a batch of events in the same cases, and when all features together leave none of the control lane's
/// share for it.
///
/// # Errors
/// Those of [`may_run_now`].
pub fn may_watch_now(facts: &FeatureFacts) -> Result<(), CallError> {
    may_run_now(facts)?;
    if facts.leaves_out_events(Instant::now()) {
        let text = format!("features used up their {} ms of CPU time a second", limits::LANE_CPU.rate);
        return Err(CallError::Refused(ServiceError::Exhausted(text)));
    }
    Ok(())
}

/// Counts a trap of a feature.
pub fn record_trap(facts: &FeatureFacts) {
    if facts.quarantine.record_trap(Instant::now()) {
        tracing::warn!(feature = %facts.descriptor.id, "keeps trapping; it is quarantined");
    }
}
