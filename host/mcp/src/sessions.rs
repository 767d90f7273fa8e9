//! Sessions of agents over HTTP, which clients of 2025-11-25 and before open, and often forget to close.
//!
//! Their number is limited; for one more, the one that has been idle longest is closed. One with a request or a stream
//! under way is not idle, and goes only if all are busy.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};

use conductor_host::control::trouble::Misconduct;

/// Sessions at once.
const MAX_SESSIONS: usize = 64;
/// How long a session stays that is not used, while there is room: an agent's user may be away for a while.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// How long a session may take to close before the one that it gives way to is opened.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The sessions of the HTTP door.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    used: Arc<Used>,
    note: Note,
}

/// Puts the clients of the HTTP door on the list of those that misbehave.
pub(super) type Note = Box<dyn Fn(Misconduct) + Send + Sync>;

/// How the sessions are used.
#[derive(Debug, Default)]
struct Used {
    sessions: Mutex<HashMap<SessionId, Use>>,
    next: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    /// Larger the later something was asked in it, or answered to the end.
    last: u64,
    /// Streams of answers that its client has open.
    open: usize,
}

impl Used {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Use>> {
        self.sessions.lock()
    }

    fn now(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a session, and returns the one that gives way to it, if one has to.
    fn add(&self, id: SessionId) -> Option<SessionId> {
        let mut all = self.all();
        let longest_idle = |(_, one): &(&SessionId, &Use)| (one.open > 0, one.last);
        let gone = if all.len() >= MAX_SESSIONS { all.iter().min_by_key(longest_idle) } else { None };
        let gone = gone.map(|(id, _)| id.clone());
        if let Some(gone) = &gone {
            all.remove(gone);
        }
        all.insert(id, Use { last: self.now(), open: 0 });
        gone
    }

    /// Begins a use of a session, which lasts until what is returned is dropped.
    fn begin(self: &Arc<Self>, id: &SessionId) -> InUse {
        if let Some(one) = self.all().get_mut(id) {
            one.last = self.now();
            one.open += 1;
        }
        InUse { used: Arc::clone(self), id: id.clone() }
    }

    /// Forgets those that are not among these.
    fn retain(&self, there: impl Fn(&SessionId) -> bool) {
        self.all().retain(|id, _| there(id));
    }
}

/// A use of a session.
struct InUse {
    used: Arc<Used>,
    id: SessionId,
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Some(one) = self.used.all().get_mut(&self.id) {
            one.last = self.used.now();
            one.open = one.open.saturating_sub(1);
        }
    }
}

/// A stream of answers, during which its session is in use.
struct Answers<S> {
    inner: Pin<Box<S>>,
    _use: InUse,
}

impl<S: Stream> Stream for Answers<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.inner.as_mut().poll_next(context)
    }
}

impl Sessions {
    pub(super) fn new(note: Note) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(IDLE_TIMEOUT);
        // Responses are not kept for clients that reconnect: a client could fill the memory with them.
        inner.session_config.completed_cache_ttl = Duration::ZERO;
        Self { inner, used: Arc::default(), note }
    }

    fn answers<S: Stream>(&self, id: &SessionId, answers: S) -> Answers<S> {
        Answers { inner: Box::pin(answers), _use: self.used.begin(id) }
    }
}

type Result<T> = std::result::Result<T, LocalSessionManagerError>;

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport)> {
        let (id, transport) = self.inner.create_session().await?;
        // Those that ended by themselves leave no room to be made.
        let there: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        self.used.retain(|id| there.contains(id));
        if let Some(gone) = self.used.add(id.clone()) {
            (self.note)(Misconduct::Sessions);
            // One whose client does not read may not hear of it; without its handle it ends all the same.
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.inner.close_session(&gone)).await;
        }
        Ok((id, transport))
    }

    async fn initialize_session(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<ServerJsonRpcMessage> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<()> {
        self.used.retain(|other| other != id);
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.answers(id, self.inner.create_stream(id, message).await?))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<()> {
        let _use = self.used.begin(id);
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.answers(id, self.inner.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static> {
        Ok(self.answers(id, self.inner.resume(id, last_event_id).await?))
    }

    async fn restore_session(&self, _: SessionId) -> Result<RestoreOutcome<Self::Transport>> {
        Ok(RestoreOutcome::NotSupported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> SessionId {
        number.to_string().into()
    }

    #[test]
    fn the_session_that_is_idle_longest_gives_way() {
        let used = Arc::<Used>::default();
        for number in 0..MAX_SESSIONS {
            assert_eq!(used.add(id(number)), None);
        }
        drop(used.begin(&id(0)));
        let busy = used.begin(&id(1));
        assert_eq!(used.add(id(1000)), Some(id(2)), "the first was used since, the second is in use");
        drop(busy);
        assert_eq!(used.add(id(1001)), Some(id(3)), "what ended just now is not idle for long");
        used.retain(|one| *one != id(0));
        assert_eq!(used.add(id(1002)), None, "one that was closed leaves its place");
    }

    #[test]
    fn with_all_sessions_busy_the_oldest_gives_way() {
        let used = Arc::<Used>::default();
        let _busy: Vec<_> = (0..MAX_SESSIONS)
            .map(|number| {
                used.add(id(number));
                used.begin(&id(number))
            })
            .collect();
        assert!(used.add(id(1000)).is_some());
        assert_eq!(used.all().len(), MAX_SESSIONS);
    }
}
