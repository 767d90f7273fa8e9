//! `conductor mcp`: a stdio proxy between an agent and the MCP socket of the running host.

use super::{CommandResult, Paths};

/// Options of `conductor mcp`.
#[derive(Debug, clap::Args)]
pub(super) struct McpOptions {
    /// How long to wait for a host that is not there yet: agents and hosts are started at the same login, and a first
    /// start compiles features. 0 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(..=600))]
    wait: u64,
}

#[cfg(unix)]
pub(super) fn run(places: &Paths, options: &McpOptions) -> CommandResult {
    use std::time::Duration;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let stream = connected(&places.home, Duration::from_secs(options.wait)).await?;
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

/// A connection to the host in `home`, as soon as there is one.
#[cfg(unix)]
async fn connected(home: &std::path::Path, wait: std::time::Duration) -> anyhow::Result<tokio::net::UnixStream> {
    use anyhow::Context as _;

    /// No host says anywhere that it starts: it is there when its socket answers.
    const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);

    let socket = conductor_api::mcp_socket(home);
    let deadline = tokio::time::Instant::now() + wait;
    let mut said = false;
    loop {
        match tokio::net::UnixStream::connect(&socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) if tokio::time::Instant::now() >= deadline => {
                return Err(error).with_context(|| {
                    format!("no host is running in {}; start one with `conductor run`", home.display())
                });
            }
            Err(_) if !said => {
                said = true;
                let seconds = wait.as_secs();
                conductor_terminal::errln!("no host is running in {} yet; waiting {seconds} s", home.display());
            }
            Err(_) => {}
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[cfg(not(unix))]
pub(super) fn run(_: &Paths, _: &McpOptions) -> CommandResult {
    Err(super::Failure::Wrong("conductor: a running host can't be asked on this system yet".into()))
}
