//! The way to the API: a browser's request goes to the host's socket, and the answer comes back as it is made.
//!
//! Nothing is kept of either: what one side does not read, the other can't send. Of the headers only those go on that are
//! named here. Each request has a connection of its own, so that a host that was restarted is found again by itself.

use std::error::Error as _;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{Body, BodyError, ErrorAnswer, fresh};
use super::guard::only;
use super::sessions::Session;

/// Headers of a request that go on to the host.
const ASKED: [HeaderName; 2] = [header::ACCEPT, header::CONTENT_TYPE];
/// Those of a WebSocket's handshake, without its extensions: both ends would have to know them.
const HANDSHAKE: [HeaderName; 2] = [header::SEC_WEBSOCKET_KEY, header::SEC_WEBSOCKET_VERSION];
/// Headers of an answer that go back to the browser.
const ANSWERED: [HeaderName; 3] = [header::CONTENT_TYPE, header::RETRY_AFTER, header::ALLOW];
/// What the host calls this client.
const NAME: &str = "conductor-ui";

/// A place among the connections, which a WebSocket holds beyond its request.
pub(super) type ConnectionPlace = Arc<OwnedSemaphorePermit>;

/// What drives a connection to the host. It ends when this is dropped.
type Driver = AbortOnDropHandle<hyper::Result<()>>;

/// Has the host behind `socket` answer a request. The response ends with the session.
///
/// # Errors
/// 413 for a body of more than `max` bytes; 502 if no host answers.
pub(super) async fn forward(
    socket: &Path,
    max: usize,
    session: Session,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, ErrorAnswer> {
    let is_socket =
        only(request.headers(), header::UPGRADE).is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"));
    let browser = is_socket.then(|| hyper::upgrade::on(&mut request));
    let place = request.extensions().get::<ConnectionPlace>().cloned();
    if request.body().size_hint().lower() > max as u64 {
        return Err(too_long(max));
    }
    let gone = |error: &dyn std::fmt::Display| {
        let error = format!("no host answers at {}: {error}; start one with `conductor run`", socket.display());
        ErrorAnswer::new(StatusCode::BAD_GATEWAY, "unavailable", error)
    };
    let stream = UnixStream::connect(socket).await.map_err(|error| gone(&error))?;
    let handshake = hyper::client::conn::http1::handshake::<_, Limited<Incoming>>(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| gone(&error))?;
    let driver = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let answer = sender.send_request(asked(request, is_socket, max)).await;
    let mut response = answer.map_err(|error| match error.source() {
        Some(cause) if cause.is::<LengthLimitError>() => too_long(max),
        _ => gone(&error),
    })?;
    match browser {
        Some(browser) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            let host = hyper::upgrade::on(&mut response);
            let joined = join(browser, host, session);
            tokio::spawn(async move {
                joined.await;
                drop((place, driver));
            });
            Ok(switched(response.headers()))
        }
        _ => Ok(answered(response, session, driver)),
    }
}

fn too_long(max: usize) -> ErrorAnswer {
    let error = format!("the request is too long; at most {max} bytes are taken");
    ErrorAnswer::new(StatusCode::PAYLOAD_TOO_LARGE, "too_long", error)
}

/// The request as the host gets it.
fn asked(request: Request<Incoming>, is_socket: bool, max: usize) -> Request<Limited<Incoming>> {
    let (parts, body) = request.into_parts();
    let mut asked = Request::new(Limited::new(body, max));
    *asked.method_mut() = parts.method;
    // Without the authority, which was looked at.
    *asked.uri_mut() = parts.uri.path_and_query().cloned().map(Into::into).unwrap_or_default();
    let headers = asked.headers_mut();
    copy(&parts.headers, headers, &ASKED);
    if is_socket {
        copy(&parts.headers, headers, &HANDSHAKE);
        upgrade(headers);
    }
    headers.insert(header::HOST, HeaderValue::from_static("conductor"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(NAME));
    asked
}

fn copy(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}

fn upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// The answer as the browser gets it.
fn answered(response: Response<Incoming>, session: Session, driver: Driver) -> Response<Body> {
    let (parts, body) = response.into_parts();
    let body = Coming { body, ended: Box::pin(session.ended()), _driver: driver };
    let mut answered = fresh(parts.status, "application/json", body.boxed_unsync());
    let headers = answered.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    copy(&parts.headers, headers, &ANSWERED);
    answered
}

/// The answer to the handshake of a WebSocket.
fn switched(from: &HeaderMap) -> Response<Body> {
    let mut response = fresh(StatusCode::SWITCHING_PROTOCOLS, "application/json", super::answer::whole(Bytes::new()));
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    copy(from, headers, &[header::SEC_WEBSOCKET_ACCEPT]);
    upgrade(headers);
    response
}

/// Carries the bytes of a WebSocket both ways, until one side or the session ends.
async fn join(browser: OnUpgrade, host: OnUpgrade, session: Session) {
    let carried = async {
        let (browser, host): (Upgraded, Upgraded) = tokio::try_join!(browser, host).map_err(io::Error::other)?;
        tokio::io::copy_bidirectional(&mut TokioIo::new(browser), &mut TokioIo::new(host)).await
    };
    tokio::select! {
        carried = carried => drop(carried.inspect_err(|error| tracing::debug!("a stream has ended: {error}"))),
        () = session.ended() => {}
    }
}

/// A body that comes from the host. It is cut off when the session ends.
struct Coming<F> {
    body: Incoming,
    ended: Pin<Box<F>>,
    _driver: Driver,
}

impl<F: Future<Output = ()>> HttpBody for Coming<F> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the session has ended".into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
