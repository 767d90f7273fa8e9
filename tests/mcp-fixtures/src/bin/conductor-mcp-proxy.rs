//! A way to a running host for clients that can't send headers: it puts the token of agents into their requests.
//!
//! `conductor-mcp-proxy HOME` prints where it is. Everything else of a request and of its answer goes through as it
//! came, so that the host's own checks are what a client meets. In `Host` and `Origin`, the proxy's port becomes the
//! host's; names stay.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The host, as `api.json` and `mcp.token` in its home describe it.
struct Target {
    /// Such as `http://127.0.0.1:4800`.
    origin: String,
    bearer: HeaderValue,
    /// How `Host` and `Origin` end that name this proxy: `:` and its port.
    own: String,
    /// How they end that name the host.
    port: String,
    client: reqwest::Client,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let home: PathBuf = std::env::args_os().nth(1).context("usage: conductor-mcp-proxy HOME")?.into();
    let read = |name: &str| {
        let path = home.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let door: serde_json::Value = serde_json::from_str(&read("api.json")?)?;
    let origin = door["url"].as_str().ok_or_else(|| anyhow!("api.json names no url: {door}"))?;
    // The client can't be built without one, though it speaks no TLS here. Fails only if there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let own = listener.local_addr()?;
    let port = origin.rsplit(':').next().unwrap_or_default();
    let target = Target {
        origin: origin.to_owned(),
        bearer: HeaderValue::from_str(&format!("Bearer {}", read("mcp.token")?.trim()))?,
        own: format!(":{}", own.port()),
        port: format!(":{port}"),
        client: reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?,
    };
    println!("http://{own}/mcp");
    axum::serve(listener, Router::new().fallback(pass).with_state(Arc::new(target))).await?;
    Ok(())
}

async fn pass(State(target): State<Arc<Target>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = through(&head.headers);
    for name in [header::HOST, header::ORIGIN] {
        let named = headers.get(&name).and_then(|value| value.to_str().ok()?.strip_suffix(&target.own));
        if let Some(value) = named.and_then(|named| HeaderValue::from_str(&format!("{named}{}", target.port)).ok()) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::AUTHORIZATION, target.bearer.clone());
    let body = reqwest::Body::wrap_stream(body.into_data_stream());
    let request = target.client.request(head.method, format!("{}{path}", target.origin)).headers(headers).body(body);
    match request.send().await {
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        Ok(answer) => {
            let (status, headers) = (answer.status(), through(answer.headers()));
            (status, headers, Body::from_stream(answer.bytes_stream())).into_response()
        }
    }
}

/// The headers that are not about one connection.
fn through(headers: &HeaderMap) -> HeaderMap {
    const OF_CONNECTION: [HeaderName; 3] = [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH];
    let mut through = headers.clone();
    for name in OF_CONNECTION {
        through.remove(name);
    }
    through
}
