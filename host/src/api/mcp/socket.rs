//! MCP on the Unix socket, one message a line: what `conductor mcp` passes on.

use std::sync::{Arc, Weak};

use rmcp::ServiceExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::Server;
use super::call::Questions;
use crate::api::lines::Lines;
use crate::control::caller::Caller;
use crate::host::Host;

/// Clients at once.
const MAX_CLIENTS: usize = 64;

/// Serves clients until the future is dropped.
pub(in crate::api) async fn serve(listener: UnixListener, host: Weak<Host>) {
    let places = Arc::new(Semaphore::new(MAX_CLIENTS));
    let questions = Arc::<Questions>::default();
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
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            turn_away(&stream);
            continue;
        };
        let (host, questions) = (Weak::clone(&host), Arc::clone(&questions));
        tokio::spawn(async move {
            client(stream, host, questions).await;
            drop(place);
        });
    }
}

/// Says that there is no place, without waiting for the client to read it.
fn turn_away(stream: &UnixStream) {
    tracing::warn!("an agent was turned away: {MAX_CLIENTS} are here already");
    let why = format!("{MAX_CLIENTS} agents are here already; try again later");
    let error = serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": why } });
    let _ = stream.try_write(format!("{error}\n").as_bytes());
}

async fn client(stream: UnixStream, host: Weak<Host>, questions: Arc<Questions>) {
    let (said, answers) = stream.into_split();
    let refused = {
        let host = Weak::clone(&host);
        move |why: &str| {
            let (host, why) = (Weak::clone(&host), why.to_owned());
            tokio::spawn(async move {
                if let Some(host) = host.upgrade() {
                    host.refuse_call(&Caller::mcp(None), "", &why).await;
                }
            });
        }
    };
    let served = match Server::new(host, questions, None).serve((Lines::new(said, refused), answers)).await {
        Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = served {
        tracing::debug!("an agent left: {error}");
    }
}
