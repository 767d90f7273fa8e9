//! That something is different now: for those who show it, and would have to look all the time otherwise.
//!
//! What exactly is different, whoever is told looks up. Nobody waits for anybody: who is too slow is told less often.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// News that wait for one listener.
const MAX_WAITING: usize = 64;

/// What is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum New {
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
    /// Perhaps all of it: too much happened for it to be told one by one.
    Everything,
}

/// The way to all who want to know. Clones share it.
#[derive(Debug, Clone)]
pub struct News(broadcast::Sender<New>);

impl Default for News {
    fn default() -> Self {
        Self(broadcast::channel(MAX_WAITING).0)
    }
}

impl News {
    /// Tells everybody who listens.
    pub fn tell(&self, new: New) {
        // It fails where nobody does.
        let _ = self.0.send(new);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub struct Listener(broadcast::Receiver<New>);

impl Listener {
    /// The next news; none when there will be no more.
    pub async fn next(&mut self) -> Option<New> {
        match self.0.recv().await {
            Ok(new) => Some(new),
            Err(RecvError::Lagged(_)) => Some(New::Everything),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_slow_is_told_that_anything_may_be_different() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (news, mut quick) = (News::default(), News::default().listen());
        let mut slow = news.listen();
        news.tell(New::Plans);
        assert_eq!(runtime.block_on(slow.next()), Some(New::Plans));
        (0..1000).for_each(|_| news.tell(New::Ports));
        assert_eq!(runtime.block_on(slow.next()), Some(New::Everything));
        assert_eq!(runtime.block_on(slow.next()), Some(New::Ports));
        assert_eq!(runtime.block_on(quick.next()), None, "nobody is there to tell it anything");
    }
}
