//! The stream as a WebSocket (RFC 6455): the handshake, then one message of text for each observation.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::SinkExt as _;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_stream::StreamExt as _;
use tokio_websockets::{Limits, Message, ServerBuilder, WebSocketStream};

use super::door::Client;
use super::error::{Code, ErrorResponse, Query};
use super::stream::{Reader, StreamQuery};
use conductor_control_names::ControlNames;
use conductor_host::host::Host;

/// How often an idle client gets a ping (keep-alive), to which it has to respond.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// Bytes that a client may say at once. It has nothing to say.
const MAX_SAID: usize = 4096;
/// What the key of a handshake is hashed with.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Answers a handshake, and then tells what happens until the client leaves.
pub(super) async fn stream(
    State(host): State<Arc<Host>>,
    Extension(client): Extension<Client>,
    Extension(names): Extension<Arc<ControlNames>>,
    Query(which): Query<StreamQuery>,
    request: Request,
) -> Result<Response, ErrorResponse> {
    let accept = accepted(request.headers())?;
    let reader = Reader::new(&host, names, &client, which)?;
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        match upgrade.await {
            Ok(stream) => {
                let limits = Limits::default().max_payload_len(Some(MAX_SAID));
                send_stream(ServerBuilder::new().limits(limits).serve(TokioIo::new(stream)), reader).await;
            }
            Err(error) => tracing::debug!("a client left before its stream began: {error}"),
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// What a handshake is accepted with.
fn accepted(headers: &HeaderMap) -> Result<HeaderValue, ErrorResponse> {
    let has = |name: HeaderName, wanted: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
    };
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let (Some(key), true, true, true) = (
        key,
        has(header::CONNECTION, "upgrade"),
        has(header::UPGRADE, "websocket"),
        has(header::SEC_WEBSOCKET_VERSION, "13"),
    ) else {
        let error = "this is a WebSocket (version 13): ask with its handshake, or read /v1/events, a line at a time";
        return Err(ErrorResponse::new(StatusCode::UPGRADE_REQUIRED, Code::BadRequest, error));
    };
    // As the protocol has it; nothing is kept secret by it.
    let mut hash = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(GUID);
    HeaderValue::try_from(BASE64_STANDARD.encode(hash.finish())).map_err(ErrorResponse::internal)
}

async fn send_stream(mut socket: WebSocketStream<TokioIo<Upgraded>>, mut reader: Reader) {
    let mut quiet = tokio::time::interval(PING_INTERVAL);
    // Now, which is too early.
    quiet.tick().await;
    loop {
        tokio::select! {
            // Sent as a whole before anything else is looked at: a client that does not read stops here, alone.
            lines = reader.next() => {
                let Some(lines) = lines else { break };
                for line in lines {
                    if socket.feed(Message::text(line.to_string())).await.is_err() {
                        return;
                    }
                }
                if socket.flush().await.is_err() {
                    return;
                }
            }
            // Pings are answered on the way.
            said = socket.next() => match said {
                Some(Ok(message)) if !message.is_close() => {}
                // Closing answers a close.
                _ => break,
            },
            _ = quiet.tick() => if socket.send(Message::ping("")).await.is_err() {
                return;
            },
        }
    }
    let _ = socket.close().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of RFC 6455, section 1.3.
    #[test]
    fn a_handshake_is_answered_as_the_protocol_has_it() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(accepted(&headers).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for missing in ["connection", "upgrade", "sec-websocket-version", "sec-websocket-key"] {
            let mut headers = headers.clone();
            headers.remove(missing);
            assert!(accepted(&headers).is_err(), "{missing}");
        }
    }
}
