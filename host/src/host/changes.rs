//! Telling features that hook on changes: ports that come and go, another mode.
//!
//! A thread of its own listens to what is observed, so that neither the event path nor the ports wait
//! for anybody's hook.

use std::sync::{Arc, Mutex, PoisonError};

use crate::feature::registry::Registry;
use crate::feature::sandbox::control::Change;
use crate::observer::{Observation, Observed};

/// What is told of this; nothing of most.
fn change(observation: &Observation) -> Option<Change> {
    match observation {
        Observation::Port(_) => Some(Change::Ports),
        Observation::Mode(mode) => Some(Change::Mode(mode.to_string())),
        _ => None,
    }
}

/// The features that are told.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    registry: Arc<Mutex<Registry>>,
}

impl Told {
    /// Starts to tell, until nothing is observed any more.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(observed: &Observed) -> std::io::Result<Self> {
        let told = Self::default();
        let (observations, _) = observed.subscribe_to(|observation| change(observation).is_some());
        let registry = Arc::clone(&told.registry);
        std::thread::Builder::new().name("changes".into()).spawn(move || {
            for change in observations.iter().filter_map(|observation| change(&observation)) {
                registry.lock().unwrap_or_else(PoisonError::into_inner).changed(&change);
            }
        })?;
        Ok(told)
    }

    /// These features from now on.
    pub(super) fn set(&self, registry: Registry) {
        *self.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
    }
}
