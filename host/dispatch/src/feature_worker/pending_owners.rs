//! The owners of a feature's pending calls, so that these go when their owner does.

use conductor_sandbox::pending_calls::MAX_PENDING;

use crate::Envelope;
use crate::ledger::Owner;

/// For each owner the event that led to the first of its pending calls, under a number that the instance knows it by.
#[derive(Debug)]
pub(super) struct PendingOwners(Vec<Option<Envelope>>);

impl Default for PendingOwners {
    /// Room for as many as there can be, and for the one that performs.
    fn default() -> Self {
        Self(Vec::with_capacity(MAX_PENDING + 1))
    }
}

impl PendingOwners {
    /// The number of this event's owner, which is a new one where it has none.
    pub(super) fn number(&mut self, envelope: &Envelope) -> u32 {
        let is_its =
            |other: &Option<Envelope>| other.as_ref().is_some_and(|other| Owner::from(other) == envelope.into());
        let place = self.0.iter().position(is_its).or_else(|| self.0.iter().position(Option::is_none));
        let place = place.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[place].get_or_insert_with(|| envelope.clone());
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Envelope> {
        self.0.get(number as usize)?.as_ref()
    }

    /// Drops those of which this is true.
    pub(super) fn forget(&mut self, goes: impl Fn(u32, &Envelope) -> bool) {
        for (number, entry) in (0..).zip(&mut self.0) {
            if entry.as_ref().is_some_and(|cause| goes(number, cause)) {
                *entry = None;
            }
        }
    }
}
