//! An instance of a feature in the real-time lane, and the actions that it has prepared.

use std::sync::Arc;

use conductor_sandbox::{ActionInstance, CallError};

/// An action that is prepared in every instance.
pub(super) struct Slot {
    pub(super) name: Arc<str>,
    pub(super) params: Arc<str>,
    /// How many [`PreparedAction`](super::prepared_action::PreparedAction)s stand for it; at 0 the slot is free.
    pub(super) uses: usize,
}

/// An instance and the ids under which it knows the slots, as far as it has prepared them.
pub(super) struct PreparedInstance {
    pub(super) instance: ActionInstance,
    pub(super) ids: Vec<Option<u32>>,
}

impl PreparedInstance {
    /// An instance that has prepared nothing yet.
    pub(super) fn new(instance: ActionInstance) -> Self {
        Self { instance, ids: Vec::new() }
    }

    /// This is what it calls the slot; `None` if it has not prepared it.
    pub(super) fn know(&mut self, slot: usize, id: Option<u32>) {
        self.ids.resize(self.ids.len().max(slot + 1), None);
        self.ids[slot] = id;
    }

    /// Prepares the first slot that this instance does not know yet. False when it knows all.
    pub(super) fn catch_up(&mut self, slots: &[Slot]) -> Result<bool, CallError> {
        let Some(slot) = slots.get(self.ids.len()) else { return Ok(false) };
        let id = if slot.uses == 0 {
            None
        } else {
            match self.instance.prepare(&slot.name, &slot.params) {
                Ok(id) => Some(id),
                // It was prepared before, so this is odd, but the other slots are none the worse.
                Err(CallError::Refused(_)) => None,
                Err(trap) => return Err(trap),
            }
        };
        self.ids.push(id);
        Ok(true)
    }
}
