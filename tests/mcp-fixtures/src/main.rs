//! The host's MCP server, with what the official conformance suite wants to call beside it.
//!
//! `conductor-mcp-fixtures HOME` prints where it is. It is the server, the door and the guard of the host; what the
//! suite asks for by name is answered here, and all else there. The suite can't send headers, so the token is put
//! into its requests on the way.

mod fixtures;
mod rounds;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware;
use conductor_api::{tcp, token::Holder};
use conductor_config as config;
use conductor_host::host::Host;
use conductor_mcp as mcp;
use conductor_skills::library::Library;

use fixtures::Fixtures;

fn main() -> anyhow::Result<()> {
    let home: PathBuf = std::env::args_os().nth(1).context("usage: conductor-mcp-fixtures HOME")?.into();
    std::fs::create_dir_all(&home)?;
    let loaded = config::parse("", "config.toml").map_err(|wrong| anyhow::anyhow!("{wrong}"))?;
    let mut host = Host::builder().home(&home);
    if let Some(features) = std::env::var_os("CONDUCTOR_FEATURES") {
        host = host.features(features);
    }
    let host = Arc::new(host.start(&loaded)?);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let served = Arc::downgrade(&host);
        let router = mcp::http::router(
            mcp::server(Arc::downgrade(&host), Arc::new(Library::new(Some(&home), None)))
                .map(move |inner| Fixtures::new(inner, served.clone())),
        );
        let router = tcp::guarded(router, &home, port, Arc::downgrade(&host))?;
        let token = std::fs::read_to_string(Holder::Agent.file(&home))?;
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"))?;
        let router = router.layer(middleware::map_request(move |mut request: Request| {
            request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
            std::future::ready(request)
        }));
        println!("http://127.0.0.1:{port}/mcp");
        Ok(axum::serve(listener, router).await?)
    })
}
