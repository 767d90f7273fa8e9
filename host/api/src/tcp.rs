//! The HTTP door: the API and MCP on a TCP port of the loopback address, for clients with a token.
//!
//! A web page that a browser shows can reach this port, under any name that its author has point here, and so can
//! any user of the computer. So before anything else of a request is read, its `Host` has to be this door, its
//! `Origin` (which browsers send) this door too, and its token right. Where the door is stands in `<home>/api.json`
//! while it is open.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use tokio::net::TcpListener;

use super::connection::{self, Connection};
use super::door::{self, Client, Entrance};
use super::error::{ApiError, Code};
use super::exchange::{closed, metered};
use super::quota::Quotas;
use super::token::{Holder, Tokens};
use conductor_audit::caller::Door;
use conductor_host::control::trouble::Misconduct;
use conductor_host::host::Host;
use conductor_mcp as mcp;
use conductor_mcp::http::PATH as MCP;
use conductor_stdx::rate::RateLimiter;

/// Refusals a second that go on record, and how many may come at once: a flood must not fill the disk.
const RECORDED_REFUSALS_RATE: (f64, f64) = (1.0, 10.0);

/// Where the address of the open door is, in this home.
pub fn address_file(home: &Path) -> PathBuf {
    home.join("api.json")
}

/// The HTTP door, bound but not open yet.
#[derive(Debug)]
pub(super) struct HttpListener {
    listener: std::net::TcpListener,
    port: u16,
    tokens: Tokens,
    file: PathBuf,
}

impl HttpListener {
    /// Takes this port; 0 takes one that is free. Says in the home which.
    ///
    /// # Errors
    /// When the port is taken, or the home can't be written; see [`Tokens::of`], too.
    pub(super) fn bind(home: &Path, port: u16) -> io::Result<Self> {
        let tokens = Tokens::of(home)?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| io::Error::new(error.kind(), format!("127.0.0.1:{port}: {error}")))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let url = format!("http://127.0.0.1:{port}");
        let limiter = serde_json::json!({ "url": url, "mcp": format!("{url}{MCP}"), "pid": std::process::id() });
        let file = address_file(home);
        // What a killed host left behind.
        let _ = std::fs::remove_file(&file);
        conductor_stdx::host_key::write_private(home, "api.json", format!("{limiter}\n").as_bytes())?;
        tracing::info!("the API is at {url}, for clients with a token of {}", home.display());
        Ok(Self { listener, port, tokens, file })
    }

    /// The file that says where it is.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Lets clients in until the future is dropped.
    pub(super) async fn serve(self, router: Router, host: Weak<Host>) {
        let Self { listener, port, tokens, .. } = self;
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("the API can't listen on TCP: {error}"),
        };
        let guard = Guard::new(port, tokens, host);
        let router = router.layer(middleware::from_fn_with_state(Arc::clone(&guard), admitted));
        connection::serve(listener, router, Arc::clone(&guard.api), None).await;
    }
}

/// This router behind the guard of a door at this port, with the tokens of this home: for programs that embed the host
/// and has a listener of their own, which has to be on 127.0.0.1.
///
/// # Errors
/// When the tokens can't be made or read.
pub fn guarded(router: Router, home: &Path, port: u16, host: Weak<Host>) -> io::Result<Router> {
    let guard = Guard::new(port, Tokens::of(home)?, host);
    Ok(router.layer(middleware::from_fn_with_state(guard, admitted)))
}

/// What a request has to have.
struct Guard {
    port: u16,
    tokens: Tokens,
    quotas: Quotas,
    api: Arc<Entrance>,
    mcp: Arc<Entrance>,
    refusals: Refusals,
}

/// Why a request is not looked at.
type ErrorResponse = (StatusCode, String);

impl Guard {
    fn new(port: u16, tokens: Tokens, host: Weak<Host>) -> Arc<Self> {
        let (rate, burst) = RECORDED_REFUSALS_RATE;
        let (api, mcp) =
            (Entrance::new(Door::Tcp, Weak::clone(&host)), Entrance::new(mcp::http::DOOR, Weak::clone(&host)));
        let refusals = Refusals { host, limiter: RateLimiter::new(rate, burst), more: 0.into() };
        Arc::new(Self { port, tokens, quotas: Quotas::new(), api, mcp, refusals })
    }

    fn client(&self, holder: Holder) -> Client {
        let door = if holder == Holder::Agent { &self.mcp } else { &self.api };
        Client::new(holder, self.quotas.of(holder).clone(), Arc::clone(door))
    }

    fn check(&self, request: &Request) -> Result<Holder, ErrorResponse> {
        let headers = request.headers();
        let port = self.port;
        let here = |authority: &str| {
            let (name, said) = authority.rsplit_once(':').unwrap_or((authority, "80"));
            let local = ["127.0.0.1", "localhost", "[::1]"].iter().any(|local| name.eq_ignore_ascii_case(local));
            local && said == port.to_string()
        };
        let named = request.uri().authority().is_none_or(|authority| here(authority.as_str()));
        if !named || !only(headers, header::HOST).is_some_and(here) {
            let why = format!("the Host has to be 127.0.0.1:{port}, localhost:{port} or [::1]:{port}");
            return Err((StatusCode::FORBIDDEN, why));
        }
        let origins: Vec<_> = headers.get_all(header::ORIGIN).iter().collect();
        let own = |origin: &str| origin.strip_prefix("http://").is_some_and(here);
        if !origins.iter().all(|origin| origin.to_str().is_ok_and(own)) {
            return Err((StatusCode::FORBIDDEN, "web pages of another origin may not ask".into()));
        }
        let token = only(headers, header::AUTHORIZATION).and_then(|said| {
            let (scheme, token) = said.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(token) = token else {
            let why = "a token is wanted, as `Authorization: Bearer TOKEN`; it is in mcp.token of the host's home for \
                       agents, in api.token for shells";
            return Err((StatusCode::UNAUTHORIZED, why.into()));
        };
        let Some(holder) = self.tokens.holder(token.as_bytes()) else {
            return Err((StatusCode::UNAUTHORIZED, "this is not a token of this host".into()));
        };
        // Neither stands for the other: settings for an agent can't hold the owner's by mistake.
        match (holder, request.uri().path() == MCP) {
            (Holder::Owner | Holder::Control | Holder::Read, false) | (Holder::Agent, true) => Ok(holder),
            (Holder::Agent, false) => {
                Err((StatusCode::FORBIDDEN, format!("the token of agents (mcp.token) opens {MCP} only")))
            }
            (_, true) => {
                let why = format!("{MCP} is for the token of agents (mcp.token), not for one of the API");
                Err((StatusCode::FORBIDDEN, why))
            }
        }
    }
}

/// The value of a header that occurs exactly once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

async fn admitted(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    match guard.check(&request) {
        Ok(holder) => {
            let client = guard.client(holder);
            let connection = request.extensions().get::<Connection>();
            if let Err(refusal) = connection.map_or(Ok(()), |connection| connection.identify(&client)) {
                client.note(door::name(request.headers()), Misconduct::Connections);
                return closed(refusal.into_response());
            }
            request.extensions_mut().insert(client.clone());
            metered(client, request, next).await
        }
        Err((status, why)) => {
            let asked = format!("{} {}", request.method(), request.uri().path());
            guard.refusals.record(&asked, &why);
            let code = if status == StatusCode::UNAUTHORIZED { Code::Unauthorized } else { Code::Forbidden };
            let mut response = (status, Json(ApiError { error: why, code, confirmation: None })).into_response();
            if status == StatusCode::UNAUTHORIZED {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            }
            closed(response)
        }
    }
}

/// Audit entries of refused clients, rate-limited.
struct Refusals {
    host: Weak<Host>,
    limiter: RateLimiter,
    /// Those since the last that went on record.
    more: std::sync::atomic::AtomicU64,
}

impl Refusals {
    fn record(&self, asked: &str, why: &str) {
        use std::sync::atomic::Ordering::Relaxed;
        if !self.limiter.take(Instant::now()) {
            self.more.fetch_add(1, Relaxed);
            return;
        }
        let Some(host) = self.host.upgrade() else { return };
        host.note_refused_client(Door::Tcp, asked, why, self.more.swap(0, Relaxed));
    }
}
