//! The listener to what happens in conversations and to the health of models: how each was when it was asked last.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::record::Recorded;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum ChatUpdate<'n> {
    /// In a conversation.
    Event {
        /// Which.
        conversation: u64,
        /// What.
        event: &'n Recorded,
    },
    /// A model answers that did not, or was never asked; or it does so no longer.
    Health {
        /// Its name under `[models]`.
        model: &'n str,
        /// Why it gives no answer. `None` if it answers.
        error: Option<&'n str>,
    },
}

type Listener = Box<dyn Fn(ChatUpdate<'_>) + Send + Sync>;

/// The listener, and the health of each model.
#[derive(Default)]
pub(crate) struct Watch {
    listener: OnceLock<Listener>,
    health: Mutex<BTreeMap<String, Option<String>>>,
}

impl Watch {
    pub(crate) fn set(&self, listener: impl Fn(ChatUpdate<'_>) + Send + Sync + 'static) {
        // The first one stays.
        let _ = self.listener.set(Box::new(listener));
    }

    pub(crate) fn happened(&self, conversation: u64, events: &[Recorded]) {
        if let Some(listener) = self.listener.get() {
            events.iter().for_each(|event| listener(ChatUpdate::Event { conversation, event }));
        }
    }

    /// A model has answered, or given no answer. Listener only where that is a change.
    pub(crate) fn health(&self, model: &str, error: Option<&str>) {
        let before = self.health.lock().insert(model.to_owned(), error.map(str::to_owned));
        let is_change = before.is_none_or(|before| before.is_some() != error.is_some());
        if let Some(listener) = self.listener.get().filter(|_| is_change) {
            listener(ChatUpdate::Health { model, error });
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Option<String>> {
        self.health.lock().clone()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("health", &self.health).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    // LLM-8
    #[test]
    fn only_a_change_of_health_is_told() {
        let (watch, heard) = (Watch::default(), Arc::new(Mutex::new(Vec::new())));
        let hears = Arc::clone(&heard);
        watch.set(move |update| {
            if let ChatUpdate::Health { model, error } = update {
                hears.lock().push(format!("{model} {error:?}"));
            }
        });
        for error in [None, None, Some("gone"), Some("gone still"), None] {
            watch.health("m", error);
        }
        assert_eq!(*heard.lock(), ["m None", "m Some(\"gone\")", "m None"]);
        assert_eq!(watch.all()["m"], None);
    }
}
