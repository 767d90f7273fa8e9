//! `conductor run`: the host as a process, until a signal ends it.

use std::time::Duration;

use super::signals::{self, Signal};
use super::{CommandResult, Failure, Paths, unreadable, warn, wrong};
use crate::embedding::{Conductor, OpenError};
use conductor_host::control::plan::store::PLAN_TIMEOUT;
use conductor_ports::supervisor::PortState;
use conductor_sandbox::Compiler;
use conductor_stdx::heap;
use conductor_stdx::plural::plural;
use conductor_terminal::{self as terminal, errln};

/// Where a person goes on from here.
const SHELLS: &str = "look at it from another terminal: `conductor ui` (browser), `conductor tui` (terminal)";

/// The arguments of `conductor run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunArguments {
    /// Serve the API and MCP over HTTP too, on this TCP port of 127.0.0.1, for clients with a token of the home; 0
    /// takes one that is free [default: http_port under [api], else not at all]
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
}

pub(super) fn run(places: &Paths, arguments: &RunArguments) -> CommandResult {
    let compiler = Compiler::find().with_released(places.features.as_deref());
    let mut builder = Conductor::builder()
        .host(|host| host.compiler(compiler.clone()).realtime_priority_by_right())
        .home(&places.home)
        .config_file(&places.config)
        .plans_expire(plans_expire()?)
        .system_ports()
        .http(arguments.http)
        .on_diagnostics(warn);
    if let Some(features) = &places.features {
        builder = builder.features(features);
    }
    if let Some(project) = super::skills::project() {
        builder = builder.project(project);
    }
    // Before the host, so that nothing that comes during the start is missed.
    let (sender, signals) = crossbeam_channel::unbounded();
    let cancelled = compiler.clone();
    signals::listen(sender, move |signal| {
        if signal == Signal::End {
            // A start that compiles packages goes on without them, and then ends.
            cancelled.cancel();
        }
        signal
    })?;
    let conductor = builder.start().map_err(opened)?;

    let status = conductor.host().status();
    let open = status.ports.ports.iter().filter(|port| port.state == PortState::Open).count();
    let features = status.features.iter().filter(|feature| feature.refused.is_none()).count();
    let (rules, features) = (plural(status.rules, "rule"), plural(features, "feature"));
    heap::give_back_free_memory();
    tracing::info!("ready: {rules}, {} open, {features}; Ctrl-C ends", plural(open, "port"));
    if terminal::is_interactive() {
        errln!("{SHELLS}");
    }
    let stop_asked = conductor.host().stop_asked();
    loop {
        crossbeam_channel::select! {
            recv(signals) -> signal => match signal {
                Ok(Signal::Reload) => conductor.reload(),
                Ok(Signal::End) | Err(_) => break,
            },
            recv(stop_asked) -> _ => break,
        }
    }
    tracing::info!("stopping");
    conductor.stop();
    Ok(())
}

/// What is wrong with the configuration is another failure than what is wrong with the machine.
fn opened(error: OpenError) -> Failure {
    match error {
        OpenError::Config(diagnostics) => wrong(diagnostics),
        OpenError::File { file, source } => unreadable(&file, &source),
        other => Failure::Failed(other.into()),
    }
}

/// What `CONDUCTOR_PLAN_TTL_SECONDS` says.
fn plans_expire() -> Result<Duration, Failure> {
    const NAME: &str = "CONDUCTOR_PLAN_TTL_SECONDS";
    let Ok(text) = std::env::var(NAME) else { return Ok(PLAN_TIMEOUT) };
    match text.parse() {
        Ok(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err(Failure::Wrong(format!("conductor: {NAME} is {text:?}; write seconds, 1 to 604800 (a week)"))),
    }
}
