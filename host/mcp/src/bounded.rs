//! Bounds for an agent on the socket: requests in flight, and bytes that it has not read (backpressure).
//!
//! An agent that does not read its answers is not listened to until it has ([`MAX_UNDER_WAY`], [`PAUSE_BYTES`]). What
//! it asked for before is answered by errors beyond [`MAX_CLIENT_BYTES`], or if all agents together leave more than
//! [`MAX_BYTES`] unread; an agent that reads has at most one answer waiting, which it always gets. One that reads
//! nothing for [`STALL_TIMEOUT`] is cut off.

use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::{MAX_UNDER_WAY, SERVER_BUSY};
use conductor_host::control::trouble::Misconduct;

/// Bytes that one client has not read, with which nothing more is taken from it.
const PAUSE_BYTES: usize = 1024 * 1024;
/// Bytes that one client may leave unread.
const MAX_CLIENT_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that all clients together may leave unread.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// How long a client is not listened to before the status names it.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long an answer waits to be taken before its client is cut off.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Room for what all clients have not read. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_BYTES)))
    }

    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_many_owned(u32::try_from(bytes).ok()?).ok()
    }
}

/// A transport that takes nothing in while too much is under way.
pub(super) struct Bounded<T> {
    inner: T,
    budget: Budget,
    under_way: Arc<UnderWay>,
}

/// Is called with what a client did and the name that it gave itself.
pub(super) type Note = Box<dyn Fn(Option<&str>, Misconduct) + Send + Sync>;

struct UnderWay {
    ids: Mutex<Vec<RequestId>>,
    /// Messages that wait to be written: also those that answer what was no request.
    unwritten: AtomicUsize,
    /// Bytes of them.
    bytes: AtomicUsize,
    changed: Notify,
    is_cut: AtomicBool,
    name: OnceLock<String>,
    note: Note,
}

impl UnderWay {
    fn begin(&self, id: RequestId) {
        self.ids.lock().push(id);
    }

    /// Ends one request of this id: a client may have given it to several.
    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock();
        if let Some(at) = ids.iter().position(|other| other == id) {
            ids.swap_remove(at);
            self.changed.notify_one();
        }
    }

    fn is_full(&self) -> bool {
        let asked = self.ids.lock().len();
        asked >= MAX_UNDER_WAY
            || self.unwritten.load(Ordering::Relaxed) >= MAX_UNDER_WAY
            || self.bytes.load(Ordering::Relaxed) >= PAUSE_BYTES
    }

    /// Waits until there is room for another request. False if the client was cut off.
    async fn has_room(&self) -> bool {
        let room = async {
            while self.is_full() && !self.is_cut.load(Ordering::Relaxed) {
                self.changed.notified().await;
            }
        };
        let mut room = std::pin::pin!(room);
        if tokio::time::timeout(SLOW_AFTER, &mut room).await.is_err() {
            // Long work of the host's fills the places too, and is no fault of the client's.
            if self.bytes.load(Ordering::Relaxed) > 0 {
                self.note(Misconduct::UnreadAnswers);
            }
            room.await;
        }
        !self.is_cut.load(Ordering::Relaxed)
    }

    async fn is_cut_off(&self) {
        while !self.is_cut.load(Ordering::Relaxed) {
            self.changed.notified().await;
        }
    }

    fn cut(&self) {
        // Once, though each of its answers is late.
        if !self.is_cut.swap(true, Ordering::Relaxed) {
            self.note(Misconduct::Stalled);
        }
        self.changed.notify_one();
    }

    fn note(&self, what: Misconduct) {
        (self.note)(self.name.get().map(String::as_str), what);
    }
}

/// A message that waits to be written, and its share of the budgets.
struct Unread {
    bytes: usize,
    _permit: Option<OwnedSemaphorePermit>,
    under_way: Arc<UnderWay>,
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.under_way.unwritten.fetch_sub(1, Ordering::Relaxed);
        self.under_way.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.under_way.changed.notify_one();
    }
}

impl<T> Bounded<T> {
    pub(super) fn new(inner: T, budget: Budget, note: Note) -> Self {
        let under_way = UnderWay {
            ids: Mutex::default(),
            unwritten: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            changed: Notify::new(),
            is_cut: AtomicBool::new(false),
            name: OnceLock::new(),
            note,
        };
        Self { inner, budget, under_way: Arc::new(under_way) }
    }

    /// The message, or an error in its place, and its share of the budgets.
    fn within_budget(&self, item: TxJsonRpcMessage<RoleServer>) -> (TxJsonRpcMessage<RoleServer>, Unread) {
        let bytes = written_length(&item);
        let waiting = self.under_way.bytes.load(Ordering::Relaxed);
        let permit = if waiting + bytes <= MAX_CLIENT_BYTES { self.budget.take(bytes) } else { None };
        let (item, bytes) = match (&permit, item) {
            (None, JsonRpcMessage::Response(response)) if waiting > 0 => {
                self.under_way.note(Misconduct::UnreadAnswers);
                let why = "answers wait to be read, and there is no room for this one; read them, and ask again";
                let error = ErrorData::new(SERVER_BUSY, why, Some(json!({ "retryAfterMs": 1000 })));
                let item = JsonRpcMessage::error(error, Some(response.id));
                let bytes = written_length(&item);
                (item, bytes)
            }
            (_, item) => (item, bytes),
        };
        self.under_way.unwritten.fetch_add(1, Ordering::Relaxed);
        self.under_way.bytes.fetch_add(bytes, Ordering::Relaxed);
        (item, Unread { bytes, _permit: permit, under_way: Arc::clone(&self.under_way) })
    }
}

/// Bytes of a message as it is sent.
fn written_length(item: &TxJsonRpcMessage<RoleServer>) -> usize {
    struct Length(usize);
    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // Fails for nothing that can be sent.
    let _ = serde_json::to_writer(&mut length, item);
    length.0
}

impl<T: Transport<RoleServer, Error = io::Error>> Transport<RoleServer> for Bounded<T> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let ended = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (item, unread) = self.within_budget(item);
        let (sent, under_way) = (self.inner.send(item), Arc::clone(&self.under_way));
        async move {
            let sent = tokio::time::timeout(STALL_TIMEOUT, sent).await;
            drop(unread);
            if let Some(id) = ended {
                under_way.end(&id);
            }
            sent.unwrap_or_else(|_| {
                under_way.cut();
                Err(io::ErrorKind::TimedOut.into())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if !self.under_way.has_room().await {
            return None;
        }
        let said = tokio::select! {
            said = self.inner.receive() => said,
            () = self.under_way.is_cut_off() => None,
        };
        match &said {
            Some(JsonRpcMessage::Request(request)) => {
                if let ClientRequest::InitializeRequest(hello) = &request.request {
                    let _ = self.under_way.name.set(hello.params.client_info.name.clone());
                }
                self.under_way.begin(request.id.clone());
            }
            // What is cancelled gets no answer.
            Some(JsonRpcMessage::Notification(said)) => {
                if let ClientNotification::CancelledNotification(cancelled) = &said.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.under_way.end(id);
                }
            }
            _ => {}
        }
        said
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.inner.close().await
    }
}
