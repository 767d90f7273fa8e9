//! Notifying features that hook on changes: ports that come and go, another mode.
//!
//! A thread of its own listens to what is observed, so that neither the event path nor the ports wait
//! for anybody's hook.

use super::generation::InForce;
use conductor_observer::{Observation, Observed};
use conductor_sandbox::control::Change;

/// What is reported of this; nothing of most.
fn change(observation: &Observation) -> Option<Change> {
    match observation {
        Observation::Port(_) => Some(Change::Ports),
        Observation::Mode(mode) => Some(Change::Mode(mode.to_string())),
        _ => None,
    }
}

/// Starts to notify the features in force, until the observer ends.
///
/// # Errors
/// When the system has no thread left.
pub(super) fn start(observed: &Observed, in_force: InForce) -> std::io::Result<()> {
    let (observations, _) = observed.subscribe_to(|observation| change(observation).is_some());
    std::thread::Builder::new().name("changes".into()).spawn(move || {
        for change in observations.iter().filter_map(|observation| change(&observation)) {
            in_force.load().registry.changed(&change);
        }
    })?;
    Ok(())
}
