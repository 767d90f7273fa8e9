//! Subscribers that are notified when owners of outputs end: a mode is left, rules are replaced, a device is unplugged.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::ledger::Release;
use super::queue::LetsGo;

/// The workers that hold things. Clones share the list.
#[derive(Clone, Default)]
pub struct Releases(Arc<ArcSwap<Vec<Arc<dyn LetsGo>>>>);

impl std::fmt::Debug for Releases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Releases({})", self.0.load().len())
    }
}

impl Releases {
    /// One more that hears of every release from now on. Those that are gone are taken off the list.
    pub fn add(&self, worker: Arc<dyn LetsGo>) {
        self.0.rcu(|workers| {
            let there = workers.iter().filter(|worker| !worker.is_gone()).cloned();
            there.chain([Arc::clone(&worker)]).collect::<Vec<_>>()
        });
    }

    /// Tells everybody, without waiting for anybody.
    pub fn tell(&self, release: &Release) {
        for worker in self.0.load().iter() {
            worker.release(release);
        }
    }
}

impl LetsGo for Releases {
    fn release(&self, release: &Release) {
        self.tell(release);
    }
}
