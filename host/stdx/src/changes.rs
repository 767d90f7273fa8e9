//! Change notification: broadcasts that a part of the host's state changed, so that shells need not poll.
//!
//! A change names the part only; a listener reads the new state itself. Sending never waits: a listener that is too
//! slow gets [`HostChange::Everything`] in place of what it missed.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Changes that wait for one listener.
const MAX_WAITING: usize = 64;

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChange {
    /// The configuration in force, or what is installed.
    Config,
    /// The plans that wait.
    Plans,
    /// Ports that came or went.
    Ports,
    /// What prompts there are.
    Prompts,
    /// The lock for the show.
    Lock,
    /// Possibly all of it: this listener missed changes.
    Everything,
}

/// Sends changes to every listener. Clones share the listeners.
#[derive(Debug, Clone)]
pub struct ChangeBroadcast(broadcast::Sender<HostChange>);

impl Default for ChangeBroadcast {
    fn default() -> Self {
        Self(broadcast::channel(MAX_WAITING).0)
    }
}

impl ChangeBroadcast {
    /// Sends a change to every listener.
    pub fn send(&self, change: HostChange) {
        // It fails if there is no listener.
        let _ = self.0.send(change);
    }

    /// Returns a listener that gets every change from now on.
    pub fn subscribe(&self) -> ChangeListener {
        ChangeListener(self.0.subscribe())
    }
}

/// Receives changes.
#[derive(Debug)]
pub struct ChangeListener(broadcast::Receiver<HostChange>);

impl ChangeListener {
    /// Waits for the next change. `None` if the host is gone.
    pub async fn next(&mut self) -> Option<HostChange> {
        match self.0.recv().await {
            Ok(new) => Some(new),
            Err(RecvError::Lagged(_)) => Some(HostChange::Everything),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_listener_gets_everything_in_place_of_what_it_missed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (changes, mut quick) = (ChangeBroadcast::default(), ChangeBroadcast::default().subscribe());
        let mut slow = changes.subscribe();
        changes.send(HostChange::Plans);
        assert_eq!(runtime.block_on(slow.next()), Some(HostChange::Plans));
        (0..1000).for_each(|_| changes.send(HostChange::Ports));
        assert_eq!(runtime.block_on(slow.next()), Some(HostChange::Everything));
        assert_eq!(runtime.block_on(slow.next()), Some(HostChange::Ports));
        assert_eq!(runtime.block_on(quick.next()), None, "the broadcast is gone");
    }
}
