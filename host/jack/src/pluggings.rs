//! Hot-plug detection: a port that goes and comes again between two polls has its old name and none of its
//! connections.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, HashSet};

/// Number of names from which on those of ports that are gone are forgotten.
const MAX_NAMES: usize = 1024;

/// The ports that came since the client was opened, each with a number that no other plugging has.
#[derive(Debug, Default)]
pub(crate) struct Pluggings(Mutex<(u64, HashMap<String, u64>)>);

impl Pluggings {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<String, u64>)> {
        self.0.lock()
    }

    /// A port has come.
    pub(crate) fn came(&self, port: String) {
        let (last, numbers) = &mut *self.lock();
        *last += 1;
        numbers.insert(port, *last);
    }

    /// The number of a port; 0 of one that has been there from the beginning.
    pub(crate) fn of(&self, port: &str) -> u64 {
        self.lock().1.get(port).copied().unwrap_or(0)
    }

    /// Forgets ports that are gone, if there are many. One that comes again gets a new number.
    pub(crate) fn tidy(&self, there: impl FnOnce() -> Vec<String>) {
        if self.lock().1.len() < MAX_NAMES {
            return;
        }
        let there: HashSet<String> = there().into_iter().collect();
        self.lock().1.retain(|port, _| there.contains(port));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugging_has_a_number_of_its_own() {
        let pluggings = Pluggings::default();
        assert_eq!(pluggings.of("keys:out"), 0);
        pluggings.came("keys:out".into());
        let first = pluggings.of("keys:out");
        pluggings.came("pads:out".into());
        pluggings.came("keys:out".into());
        assert!(pluggings.of("keys:out") > first && first > 0);
        let last = pluggings.of("keys:out");
        (0..MAX_NAMES).for_each(|number| pluggings.came(format!("port {number}")));
        pluggings.tidy(|| vec!["keys:out".into()]);
        assert_eq!((pluggings.of("keys:out"), pluggings.of("port 7")), (last, 0));
        pluggings.came("port 7".into());
        assert!(pluggings.of("port 7") > last);
    }
}
