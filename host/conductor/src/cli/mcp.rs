//! `conductor mcp`: a stdio proxy between an agent and the MCP socket of the running host.

use super::{CommandResult, Paths};

#[cfg(unix)]
pub(super) fn run(places: &Paths) -> CommandResult {
    use anyhow::Context as _;

    let socket = conductor_api::mcp_socket(&places.home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let stream = tokio::net::UnixStream::connect(&socket).await.with_context(|| {
            format!("no host is running in {}; start one with `conductor run`", places.home.display())
        })?;
        let (mut from_host, mut to_host) = stream.into_split();
        #[expect(clippy::disallowed_methods, reason = "a program reads this, and its messages are JSON")]
        let (mut input, mut output) = (tokio::io::stdin(), tokio::io::stdout());
        tokio::select! {
            // The host has said all that it will.
            said = tokio::io::copy(&mut from_host, &mut output) => said.map(drop)?,
            // The agent has; the host may still be answering.
            asked = async {
                tokio::io::copy(&mut input, &mut to_host).await?;
                tokio::io::AsyncWriteExt::shutdown(&mut to_host).await?;
                std::future::pending::<std::io::Result<()>>().await
            } => asked?,
        }
        Ok::<_, anyhow::Error>(())
    })?;
    // A thread of the runtime may still be reading an input that never ends.
    runtime.shutdown_background();
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn run(_: &Paths) -> CommandResult {
    Err(super::Failure::Wrong("conductor: a running host can't be asked on this system yet".into()))
}
