//! Routes of the event stream: in lines, and as a WebSocket.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header;
use axum::response::IntoResponse;

use crate::door::Client;
use crate::error::{ErrorResponse, Query};
use crate::route::{Route, get};
use crate::socket;
use crate::stream::{Reader, StreamItem, StreamQuery};
use conductor_control_names::ControlNames;
use conductor_host::host::Host;

pub(super) fn routes() -> Vec<Route> {
    vec![
        get::<StreamItem>("/v1/events", "readEvents", "What happens, one JSON object a line, until the client leaves")
            .query::<StreamQuery>()
            .refuses(&[400, 403, 429])
            .lines()
            .by(events),
        get::<StreamItem>("/v1/stream", "streamEvents", "What happens, as a WebSocket: one JSON object a message")
            .query::<StreamQuery>()
            .refuses(&[400, 403, 426, 429])
            .socket()
            .by(socket::stream),
    ]
}

async fn events(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Extension(names): Extension<Arc<ControlNames>>,
    Query(which): Query<StreamQuery>,
) -> Result<impl IntoResponse, ErrorResponse> {
    let reader = Reader::new(&host, names, &client, which)?;
    let lines = futures_util::stream::unfold(reader, async |mut reader| {
        let lines = reader.next().await?;
        let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in &lines {
            text.push_str(line);
            text.push('\n');
        }
        Some((Ok::<_, Infallible>(Bytes::from(text)), reader))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)))
}
