//! No agent has more than a few questions under way: who does not read the answers is not listened to until they do.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

/// Questions of one client that wait for an answer, or whose answer waits to be read.
const MAX_UNDER_WAY: usize = 64;

/// A transport that takes nothing in while too much is under way.
pub(super) struct Bounded<T> {
    inner: T,
    under_way: Arc<UnderWay>,
}

#[derive(Default)]
struct UnderWay {
    ids: Mutex<Vec<RequestId>>,
    /// Messages that wait to be written: also those that answer what was no question.
    unwritten: AtomicUsize,
    fewer: Notify,
}

impl UnderWay {
    fn begin(&self, id: RequestId) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }

    /// Ends one question of this id: a client may have given it to several.
    fn end(&self, id: &RequestId) {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = ids.iter().position(|other| other == id) {
            ids.swap_remove(at);
            self.fewer.notify_one();
        }
    }

    async fn has_place(&self) {
        let full = || {
            let asked = self.ids.lock().unwrap_or_else(PoisonError::into_inner).len();
            asked >= MAX_UNDER_WAY || self.unwritten.load(Ordering::Relaxed) >= MAX_UNDER_WAY
        };
        while full() {
            self.fewer.notified().await;
        }
    }
}

impl<T> Bounded<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, under_way: Arc::default() }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Bounded<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let ended = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sent, under_way) = (self.inner.send(item), Arc::clone(&self.under_way));
        under_way.unwritten.fetch_add(1, Ordering::Relaxed);
        async move {
            let sent = sent.await;
            under_way.unwritten.fetch_sub(1, Ordering::Relaxed);
            under_way.fewer.notify_one();
            if let Some(id) = ended {
                under_way.end(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.under_way.has_place().await;
        let said = self.inner.receive().await;
        match &said {
            Some(JsonRpcMessage::Request(request)) => self.under_way.begin(request.id.clone()),
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

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}
