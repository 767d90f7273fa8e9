//! The bodies of requests and responses: their timeouts, and the memory budget for bytes in flight.
//!
//! A request's body is read here, whole, before anything else sees it. An answer takes room in its client's budget
//! until the client has read it, so that clients that do not read can't fill the memory.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::MAX_BODY;
use super::door::{self, Client};
use super::error::{Code, ErrorResponse};
use super::quota::FREE_BYTES;
use conductor_host::control::trouble::Misconduct;

/// How long the body of a request may take to come.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of an answer that are handed to the connection at once; what it does not take stays in the budget.
const CHUNK_BYTES: usize = 16 * 1024;

/// Passes a client's request on, and its answer back, within the client's quota.
pub(super) async fn metered(client: Client, request: Request, next: Next) -> Response {
    let name = door::name(request.headers()).map(str::to_owned);
    let note = |what| client.note(name.as_deref(), what);
    if let Err(refusal) = client.quota.request(Instant::now()) {
        note(Misconduct::Rate);
        return closed(refusal.into_response());
    }
    let (request, _permits) = match whole(&client, request).await {
        Ok(whole) => whole,
        Err((refusal, what)) => {
            note(what);
            return closed(refusal.into_response());
        }
    };
    let response = next.run(request).await;
    // A stream of events, or an answer that is small.
    let Some(length) = response.body().size_hint().exact().filter(|length| *length > FREE_BYTES as u64) else {
        return response;
    };
    let permit = match client.quota.answer_bytes(usize::try_from(length).unwrap_or(usize::MAX)) {
        Ok(permit) => permit,
        Err(refusal) => {
            note(Misconduct::UnreadAnswers);
            return refusal.into_response();
        }
    };
    let (parts, body) = response.into_parts();
    match body.collect().await {
        Ok(body) => Response::from_parts(parts, Body::new(Unread { bytes: body.to_bytes(), _permit: permit })),
        Err(error) => ErrorResponse::internal(error).into_response(),
    }
}

/// A response to a request whose remaining body will not be read, which closes the connection.
pub(super) fn closed(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

/// The request with its body in memory, and the room that it takes.
async fn whole(
    client: &Client,
    request: Request,
) -> Result<(Request, Vec<OwnedSemaphorePermit>), (ErrorResponse, Misconduct)> {
    if request.body().is_end_stream() {
        return Ok((request, Vec::new()));
    }
    let too_long = || {
        let error = format!("the request is too long; at most {MAX_BODY} bytes are taken");
        (ErrorResponse::new(StatusCode::PAYLOAD_TOO_LARGE, Code::TooLong, error), Misconduct::LongRequest)
    };
    if request.body().size_hint().lower() > MAX_BODY as u64 {
        return Err(too_long());
    }
    let (parts, mut body) = request.into_parts();
    let (mut bytes, mut permits) = (Vec::new(), Vec::new());
    let read = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| (ErrorResponse::bad_request(error), Misconduct::SlowRequest))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > MAX_BODY {
                return Err(too_long());
            }
            let paid = bytes.len().max(FREE_BYTES);
            bytes.extend_from_slice(&data);
            if bytes.len() > paid {
                let permit = client.quota.request_bytes(bytes.len() - paid);
                permits.push(permit.map_err(|refusal| (refusal, Misconduct::LongRequest))?);
            }
        }
        Ok(())
    };
    match tokio::time::timeout(BODY_TIMEOUT, read).await {
        Ok(read) => read?,
        Err(_) => {
            let error = format!("the request did not come whole within {} s", BODY_TIMEOUT.as_secs());
            let refusal = ErrorResponse::new(StatusCode::REQUEST_TIMEOUT, Code::Timeout, error);
            return Err((refusal, Misconduct::SlowRequest));
        }
    }
    Ok((Request::from_parts(parts, Body::from(bytes)), permits))
}

/// An answer that its client has not read to the end.
struct Unread {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let count = self.bytes.len().min(CHUNK_BYTES);
        if count == 0 {
            return Poll::Ready(None);
        }
        // A copy, for a part would keep the whole in memory after this, and its permit, are gone.
        let chunk = Bytes::copy_from_slice(&self.bytes.split_to(count));
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
