//! MCP on the Unix socket, one message a line: what `conductor mcp` passes on.
//!
//! A client stays on the thread on which it was when it connected: the one with the fewest clients then.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use rmcp::ServiceExt as _;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::bounded::{Bounded, Budget};
use super::{MAX_JOBS, MAX_SOCKET_JOBS, SERVER_BUSY, Server, Shared};
use crate::lines::Lines;
use conductor_audit::caller::{Caller, Door, Scope};
use conductor_host::control::trouble::Misconduct;
use conductor_host::host::Host;
use conductor_skills::library::Library;
use conductor_stdx::jobs::Jobs;

/// This door, as the status calls it.
const DOOR: Door = Door::McpSocket;
/// Clients at once.
const MAX_CLIENTS: usize = 64;
/// Clients at once that are one process: `conductor mcp` is one for each agent.
const MAX_OF_PROCESS: usize = 16;

/// What the clients share.
struct Clients {
    host: Weak<Host>,
    places: Arc<Semaphore>,
    /// How many of them are one process, by its id.
    of_process: Mutex<HashMap<i32, usize>>,
    threads: Vec<ServingThread>,
    shared: Arc<Shared>,
    unread: Budget,
    jobs: Jobs,
}

/// A thread with a runtime that serves clients.
struct ServingThread {
    runtime: Handle,
    clients: AtomicUsize,
}

/// A client's place, given up by being dropped.
struct Place {
    clients: Arc<Clients>,
    /// `None` if the system does not say.
    process: Option<i32>,
    /// Which of the threads serves it.
    thread: usize,
    _permit: OwnedSemaphorePermit,
}

impl Clients {
    /// A place for this client, or why there is none.
    fn place(self: &Arc<Self>, stream: &UnixStream) -> Result<Place, String> {
        let process = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let full = || format!("{MAX_CLIENTS} agents are here already; try again later");
        let permit = Arc::clone(&self.places).try_acquire_owned().map_err(|_| full())?;
        if let Some(process) = process {
            let mut of_process = self.of_process();
            let count = of_process.entry(process).or_default();
            if *count >= MAX_OF_PROCESS {
                return Err(format!("{MAX_OF_PROCESS} agents are here already that are your process; close one first"));
            }
            *count += 1;
        }
        let has = |thread: &usize| self.threads[*thread].clients.load(Ordering::Relaxed);
        let thread = (0..self.threads.len()).min_by_key(has).unwrap_or_default();
        self.threads[thread].clients.fetch_add(1, Ordering::Relaxed);
        Ok(Place { clients: Arc::clone(self), process, thread, _permit: permit })
    }

    fn of_process(&self) -> MutexGuard<'_, HashMap<i32, usize>> {
        self.of_process.lock()
    }

    fn note(&self, name: Option<&str>, what: Misconduct) {
        if let Some(host) = self.host.upgrade() {
            host.note_misconduct(&Caller::client(DOOR, Scope::Agent, name), what);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clients.threads[self.thread].clients.fetch_sub(1, Ordering::Relaxed);
        let Some(process) = self.process else { return };
        let mut of_process = self.clients.of_process();
        if let Some(count) = of_process.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                of_process.remove(&process);
            }
        }
    }
}

/// Lets clients in until the future is dropped, and serves them with the skills of a library: on this thread, or on that
/// of one of the runtimes `more`, each of which has one thread. Clients are served until their runtime is shut down.
pub async fn serve(listener: UnixListener, host: Weak<Host>, library: Arc<Library>, more: Vec<Handle>) {
    let thread = |runtime| ServingThread { runtime, clients: AtomicUsize::new(0) };
    let clients = Arc::new(Clients {
        host,
        places: Arc::new(Semaphore::new(MAX_CLIENTS)),
        of_process: Mutex::default(),
        threads: std::iter::once(Handle::current()).chain(more).map(thread).collect(),
        shared: Arc::new(Shared::new(library)),
        unread: Budget::new(),
        jobs: Jobs::new(MAX_SOCKET_JOBS),
    });
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, say: that passes.
                tracing::warn!("an agent could not be let in: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        match clients.place(&stream) {
            Ok(place) => hand_over(stream, place),
            Err(why) => {
                clients.note(None, Misconduct::Connections);
                turn_away(&stream, &why);
            }
        }
    }
}

/// Has the thread of this place serve a client.
fn hand_over(stream: UnixStream, place: Place) {
    let runtime = place.clients.threads[place.thread].runtime.clone();
    // A stream belongs to the runtime that waits for it.
    let stream = stream.into_std();
    runtime.spawn(async move {
        match stream.and_then(UnixStream::from_std) {
            Ok(stream) => client(stream, place).await,
            Err(error) => tracing::warn!("an agent could not be let in: {error}"),
        }
    });
}

/// Says why there is no place, without waiting for the client to read it.
fn turn_away(stream: &UnixStream, why: &str) {
    let error = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": SERVER_BUSY.0, "message": why } });
    let _ = stream.try_write(format!("{error}\n").as_bytes());
}

async fn client(stream: UnixStream, place: Place) {
    let (said, answers) = stream.into_split();
    let clients = Arc::clone(&place.clients);
    let refused = {
        let host = Weak::clone(&clients.host);
        move |why: &str| {
            let (host, why) = (Weak::clone(&host), why.to_owned());
            tokio::spawn(async move {
                if let Some(host) = host.upgrade() {
                    host.refuse_call(&Caller::client(Door::McpSocket, Scope::Agent, None), "", &why).await;
                }
            });
        }
    };
    let note = {
        let clients = Arc::clone(&clients);
        Box::new(move |name: Option<&str>, what| clients.note(name, what))
    };
    let lines = AsyncRwTransport::new_server(Lines::new(said, refused), answers);
    let transport = Bounded::new(lines, clients.unread.clone(), note);
    let (host, shared) = (Weak::clone(&clients.host), Arc::clone(&clients.shared));
    let server = Server::new(host, DOOR, shared, clients.jobs.part(MAX_JOBS));
    let served = match server.serve(transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = served {
        tracing::debug!("an agent left: {error}");
    }
    drop(place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_goes_to_the_thread_with_the_fewest() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let thread = || ServingThread { runtime: runtime.handle().clone(), clients: AtomicUsize::new(0) };
        let clients = Arc::new(Clients {
            host: Weak::new(),
            places: Arc::new(Semaphore::new(MAX_CLIENTS)),
            of_process: Mutex::default(),
            threads: vec![thread(), thread()],
            shared: Arc::new(Shared::new(Arc::new(Library::of(Vec::new())))),
            unread: Budget::new(),
            jobs: Jobs::new(1),
        });
        runtime.block_on(async {
            let (stream, _other) = UnixStream::pair().unwrap();
            let place = || clients.place(&stream).unwrap();
            let (first, second, third) = (place(), place(), place());
            assert_eq!([first.thread, second.thread, third.thread], [0, 1, 0]);
            drop((first, third));
            let (fourth, fifth) = (place(), place());
            assert_eq!(
                [fourth.thread, fifth.thread],
                [0, 0],
                "the first thread has none and then as many as the second"
            );
        });
    }
}
