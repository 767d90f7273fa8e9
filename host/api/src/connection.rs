//! HTTP connections: their limits and timeouts, also for clients that do not read their responses.
//!
//! Who connects over TCP is known only when the first request has shown its token. Until then a connection stays in a
//! [`WaitingRoom`], which has a capacity and lets the one that has waited longest go for a new one; afterwards
//! it has a place of its client's [`Quota`].

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::door::{Client, Entrance};
use super::error::ErrorResponse;
use conductor_host::control::trouble::Misconduct;

/// Connections over TCP whose client has not shown a token.
const MAX_WAITING: usize = 256;
/// How long a client may take to send the head of a request, and how long a connection may be idle.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may read nothing of an answer before it is cut off. The owner's clients are not.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a request's head, and of an answer that are handed to the system at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// Connections whose client is not known yet.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    waiting: Mutex<VecDeque<(u64, CancellationToken)>>,
    next: AtomicU64,
}

impl WaitingRoom {
    fn enter(self: &Arc<Self>) -> (Waiting, CancellationToken, bool) {
        let (cut, number) = (CancellationToken::new(), self.next.fetch_add(1, Ordering::Relaxed));
        let mut waiting = self.waiting.lock();
        let longest = if waiting.len() >= MAX_WAITING { waiting.pop_front() } else { None };
        let is_full = longest.is_some_and(|(_, cut)| {
            cut.cancel();
            true
        });
        waiting.push_back((number, cut.clone()));
        (Waiting { room: Arc::clone(self), number }, cut, is_full)
    }
}

/// A place in the waiting room, given up by being dropped.
#[derive(Debug)]
struct Waiting {
    room: Arc<WaitingRoom>,
    number: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiting = self.room.waiting.lock();
        if let Ok(at) = waiting.binary_search_by_key(&self.number, |(number, _)| *number) {
            waiting.remove(at);
        }
    }
}

/// What a connection holds while it is open, shared with the requests on it.
#[derive(Debug, Clone)]
pub(super) struct Connection(Arc<Mutex<Place>>);

#[derive(Debug)]
enum Place {
    Waiting {
        _room: Waiting,
    },
    /// Of this client's quota.
    Known {
        client: Client,
        _permit: OwnedSemaphorePermit,
    },
}

impl Connection {
    fn place(&self) -> parking_lot::MutexGuard<'_, Place> {
        self.0.lock()
    }

    /// Gives the connection a place of this client's quota, if it does not have one.
    ///
    /// # Errors
    /// 503 if all are taken; then the connection keeps the place that it has.
    pub(super) fn identify(&self, client: &Client) -> Result<(), ErrorResponse> {
        let mut place = self.place();
        match &*place {
            Place::Known { client: known, .. } if known.holder == client.holder => {}
            _ => *place = Place::Known { client: client.clone(), _permit: client.quota.connection()? },
        }
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        matches!(&*self.place(), Place::Waiting { .. })
    }

    /// Whose it is; `None` if that is not known yet.
    fn client(&self) -> Option<Client> {
        match &*self.place() {
            Place::Waiting { .. } => None,
            Place::Known { client, .. } => Some(client.clone()),
        }
    }
}

/// Serves HTTP/1.1 at this listener until the future is dropped. Each request has its [`Connection`] as an extension.
/// `known` is the client behind every connection, if the door lets in only one kind.
pub(super) async fn serve<L>(mut listener: L, router: Router, door: Arc<Entrance>, known: Option<Client>)
where
    L: Listener,
{
    let room = Arc::new(WaitingRoom::default());
    loop {
        // It waits by itself where the system has no handles left.
        let (stream, _) = listener.accept().await;
        let admitted = match &known {
            Some(client) => client.quota.connection().map(|permit| {
                let place = Place::Known { client: client.clone(), _permit: permit };
                (place, CancellationToken::new())
            }),
            None => {
                let (waiting, cut, is_full) = room.enter();
                if is_full {
                    door.note_stranger(Misconduct::Connections);
                }
                Ok((Place::Waiting { _room: waiting }, cut))
            }
        };
        let Ok((place, cut)) = admitted else {
            turn_away(stream);
            if let Some(client) = &known {
                client.note(None, Misconduct::Connections);
            }
            continue;
        };
        let connection = Connection(Arc::new(Mutex::new(place)));
        let io = Guarded {
            inner: stream,
            connection: connection.clone(),
            door: Arc::clone(&door),
            cut: Box::pin(cut.cancelled_owned()),
            stalled: None,
        };
        let router = TowerToHyperService::new(router.clone());
        let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(connection.clone());
            hyper::service::Service::call(&router, request)
        });
        tokio::spawn(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(BUFFER_BYTES);
            // A client that leaves in the middle is no trouble of ours.
            let _ = http.serve_connection(TokioIo::new(io), service).with_upgrades().await;
        });
    }
}

/// What a client gets for which there is no place.
fn no_place() -> String {
    const BODY: &str = "{\"error\":\"too many clients are here already; try again later\",\"code\":\"unavailable\"}\n";
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: application/json\r\nretry-after: 1";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len())
}

/// Says that there is no place, without waiting for the client to read it.
fn turn_away(mut stream: impl AsyncWrite + Unpin) {
    let _ = stream.write(no_place().as_bytes()).now_or_never();
}

/// A client's bytes, and the end of them if its place went to another, or if it does not read.
struct Guarded<S> {
    inner: S,
    connection: Connection,
    door: Arc<Entrance>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Runs while the system takes no more bytes for this client.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    /// Passes on what a write came to, unless the client has read nothing for too long.
    fn unless_stalled<T>(&mut self, context: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.stalled = None;
            return wrote;
        }
        let sleep = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_TIMEOUT)));
        if sleep.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.stalled = None;
        match self.connection.client() {
            Some(client) if client.is_owner() => return Poll::Pending,
            Some(client) => client.note(None, Misconduct::Stalled),
            None => self.door.note_stranger(Misconduct::Stalled),
        }
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Only while its client is not known, and so without an answer under way.
        if this.connection.is_waiting() && this.cut.as_mut().poll(context).is_ready() {
            let _ = Pin::new(&mut this.inner).poll_write(context, no_place().as_bytes());
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.unless_stalled(context, wrote)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let wrote = Pin::new(&mut this.inner).poll_write_vectored(context, bytes);
        this.unless_stalled(context, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.inner).poll_flush(context);
        this.unless_stalled(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}
