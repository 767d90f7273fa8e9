//! Subscribers that are notified when owners of outputs end: a mode is left, rules are replaced, a device is unplugged.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::ledger::Release;
use super::queue::ReleaseListener;

/// The subscribers, workers with a ledger. Clones share the list.
#[derive(Clone, Default)]
pub struct Releases(Arc<ArcSwap<Vec<Arc<dyn ReleaseListener>>>>);

impl std::fmt::Debug for Releases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Releases({})", self.0.load().len())
    }
}

impl Releases {
    /// Subscribes a worker to all releases from now on. Those that are gone are removed from the list.
    pub fn add(&self, worker: Arc<dyn ReleaseListener>) {
        self.0.rcu(|workers| {
            let there = workers.iter().filter(|worker| !worker.is_gone()).cloned();
            there.chain([Arc::clone(&worker)]).collect::<Vec<_>>()
        });
    }

    /// Notifies all subscribers, without waiting.
    pub fn notify(&self, release: &Release) {
        for worker in self.0.load().iter() {
            worker.release(release);
        }
    }
}

impl ReleaseListener for Releases {
    fn release(&self, release: &Release) {
        self.notify(release);
    }
}
