//! The server: connections within their limits, and what each request is answered with.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::answer::{Body, ErrorAnswer, fresh, page, protect, whole};
use super::forward::{ConnectionPlace, forward};
use super::guard::{self, Place};
use super::pages::Pages;
use super::sessions::Sessions;
use super::stall::Timed;
use super::{Limits, peer};

/// How long to wait before the next connection, where the system has no handle left for one.
const NO_HANDLE_PAUSE: Duration = Duration::from_millis(100);

/// Before the code of a link.
const SIGN_IN: &str = "/sign-in/";

/// For a person who opens a link that signs in no longer.
const USED: &str = "This link was used already, or is too old. Press Enter where <code>conductor ui</code> runs: it \
                    prints another.";

/// The server, bound to its port. Dropping [`serve`](Self::serve) ends it, and all sessions.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    shell: Arc<Shell>,
}

/// What requests are answered from.
#[derive(Debug)]
struct Shell {
    port: u16,
    /// The socket of the host's API.
    socket: PathBuf,
    pages: Pages,
    limits: Limits,
    sessions: Sessions,
}

/// Makes links that sign a browser in.
#[derive(Debug, Clone)]
pub struct Links(Arc<Shell>);

impl Links {
    /// A new link, `http://127.0.0.1:PORT/sign-in/CODE`. It serves once, within [`Limits::link_life`], and ends the link
    /// before it.
    ///
    /// # Errors
    /// Where the system has no randomness.
    pub fn link(&self) -> io::Result<String> {
        Ok(format!("http://127.0.0.1:{}{SIGN_IN}{}", self.0.port, self.0.sessions.link()?))
    }
}

impl Server {
    /// Takes this port of 127.0.0.1 for the host behind `socket`; 0 takes a port that is free.
    ///
    /// # Errors
    /// When the port is taken.
    pub fn bind(socket: &Path, port: u16, pages: Pages, limits: Limits) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| io::Error::new(error.kind(), format!("127.0.0.1:{port}: {error}")))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let sessions = Sessions::new(port, &limits);
        let shell = Shell { port, socket: socket.to_owned(), pages, limits, sessions };
        Ok(Self { listener, shell: Arc::new(shell) })
    }

    /// What makes its links.
    pub fn links(&self) -> Links {
        Links(Arc::clone(&self.shell))
    }

    /// Serves until the future is dropped, on a runtime with I/O and time.
    ///
    /// # Errors
    /// If the runtime can't listen.
    pub async fn serve(self) -> io::Result<()> {
        let Self { listener, shell } = self;
        let listener = TcpListener::from_std(listener)?;
        let places = Arc::new(Semaphore::new(shell.limits.connections));
        loop {
            let (stream, client) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!("a connection can't be accepted: {error}");
                    tokio::time::sleep(NO_HANDLE_PAUSE).await;
                    continue;
                }
            };
            if !peer::may_connect(client, shell.port) {
                tracing::debug!("a connection of another user was closed");
                continue;
            }
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                turn_away(&stream);
                continue;
            };
            tokio::spawn(Arc::clone(&shell).converse(stream, Arc::new(place)));
        }
    }
}

/// Says that there is no place, without waiting for the client to read it.
fn turn_away(stream: &TcpStream) {
    const BODY: &str =
        "{\"error\":\"too many connections are open already; try again later\",\"code\":\"unavailable\"}\n";
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: application/json\r\nretry-after: 1";
    let _ = stream.try_write(format!("{head}\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len()).as_bytes());
}

impl Shell {
    /// Answers the requests of a connection, until it ends.
    async fn converse(self: Arc<Self>, stream: TcpStream, place: ConnectionPlace) {
        // Messages of a stream are small, and are not to wait for each other.
        let _ = stream.set_nodelay(true);
        let limits = self.limits.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let shell = Arc::clone(&self);
            request.extensions_mut().insert(Arc::clone(&place));
            async move { Ok::<_, Infallible>(shell.answer(request).await) }
        });
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.head_timeout).max_buf_size(limits.head_bytes);
        let io = TokioIo::new(Timed::new(stream, limits.stall_timeout));
        // A client that leaves in the middle is no trouble of ours.
        let _ = http.serve_connection(io, service).with_upgrades().await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let mut response = self.done(request).await.unwrap_or_else(ErrorAnswer::into_response);
        protect(response.headers_mut());
        response
    }

    async fn done(&self, request: Request<Incoming>) -> Result<Response<Body>, ErrorAnswer> {
        match guard::check(self.port, &request)? {
            Place::Page => self.pages.answer(&request),
            Place::SignIn => self.sign_in(&request).await,
            Place::Api => {
                let session = self.sessions.of(request.headers()).await?;
                forward(&self.socket, self.limits.body_bytes, session, request).await
            }
        }
    }

    /// Signs a browser in with the link that it opens, and sends it to the first page.
    async fn sign_in(&self, request: &Request<Incoming>) -> Result<Response<Body>, ErrorAnswer> {
        if request.method() != Method::GET {
            return Err(ErrorAnswer::new(StatusCode::METHOD_NOT_ALLOWED, "bad_request", "a link is opened by GET"));
        }
        let code = request.uri().path().strip_prefix(SIGN_IN).unwrap_or_default();
        let cookie = match self.sessions.sign_in(code).await {
            Ok(signed_in) => Some(signed_in.cookie),
            // It went back to the link.
            Err(_) if self.sessions.has(request.headers()) => None,
            Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return Ok(page(refusal.status, USED)),
            Err(refusal) => return Err(refusal),
        };
        let mut response = fresh(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", whole(""));
        let headers = response.headers_mut();
        headers.insert(header::LOCATION, HeaderValue::from_static("/"));
        if let Some(cookie) = cookie {
            let cookie = HeaderValue::try_from(cookie)
                .map_err(|error| ErrorAnswer::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string()))?;
            headers.insert(header::SET_COOKIE, cookie);
        }
        Ok(response)
    }
}
