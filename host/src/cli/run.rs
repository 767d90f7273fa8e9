//! `conductor run`: the host as a process, until a signal ends it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use notify::Watcher as _;

use super::signals::{self, Signal};
use super::{Done, Failure, Places, load, make_home, started, system_backends, warn};
use crate::control::plan::desk::EXPIRES;
use crate::host::Host;
use crate::package::store::Store;

/// What wakes the main thread.
enum Wake {
    /// SIGINT or SIGTERM.
    Stop,
    /// The configuration may have changed, what is installed, or both.
    Changed(Changes),
}

/// What may have changed.
#[derive(Clone, Copy, Default)]
struct Changes {
    config: bool,
    features: bool,
}

/// How often the host looks whether an upgrade went wrong.
const TEND: Duration = Duration::from_secs(1);
/// Editors write a file in several steps; the last one counts.
const SETTLE: Duration = Duration::from_millis(50);

/// What `conductor run` is told.
#[derive(Debug, clap::Args)]
pub(super) struct RunArguments {
    /// Serve the API and MCP over HTTP too, on this TCP port of 127.0.0.1, for whoever has a token of the home; 0
    /// takes one that is free [default: http_port under [api], else not at all]
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
}

pub(super) fn run(places: &Places, arguments: &RunArguments) -> Done {
    make_home(&places.home);
    #[cfg(unix)]
    crate::api::server::claim(&places.home)?;
    let loaded = load(&places.config)?;
    let mut builder = Host::builder().home(&places.home).config_file(&places.config).plans_expire(plans_expire()?);
    if let Some(features) = &places.features {
        builder = builder.features(features);
    }
    for backend in system_backends() {
        builder = builder.backend(backend);
    }
    #[cfg(unix)]
    if crate::api::server::was_cut_off(&places.home) {
        tracing::warn!("the last run did not end by itself; outputs are told to end all notes");
        builder = builder.end_all_notes();
    }
    // Both before the host, so that nothing that comes during the start is missed.
    let (wake, woken) = crossbeam_channel::unbounded();
    signals::listen(wake.clone(), |signal| match signal {
        Signal::End => Wake::Stop,
        Signal::HangUp => Wake::Changed(Changes { config: true, features: true }),
    })?;
    let watchers = [
        watch(&places.config, wake.clone(), Changes { config: true, features: false }),
        Store::open(&places.home)
            .inspect_err(|error| tracing::warn!("features can't be installed: {error}"))
            .ok()
            .and_then(|store| watch(&store.state_file(), wake, Changes { config: false, features: true })),
    ];
    let host = Arc::new(builder.start(&loaded).map_err(started)?);
    warn(host.warnings());
    #[cfg(unix)]
    let http = arguments.http.or(loaded.config.api.http_port);
    #[cfg(unix)]
    let server = crate::api::server::Server::start(&places.home, Arc::clone(&host), http)
        .inspect_err(|error| tracing::warn!("other processes can't ask this host: {error}"))
        .ok();

    let status = host.status();
    let open = status.ports.ports.iter().filter(|port| port.state == crate::ports::supervisor::PortState::Open).count();
    let features = status.features.iter().filter(|feature| feature.refused.is_none()).count();
    tracing::info!("ready: {} rules, {open} ports open, {features} features; Ctrl-C ends", status.rules);

    let mut text = loaded.source.text().to_owned();
    serve(&host, &places.config, &mut text, &woken);

    drop(watchers);
    #[cfg(unix)]
    drop(server);
    tracing::info!("stopping");
    // The API's threads let go of the host as they end.
    match wait_for_last(host) {
        Some(host) => host.stop(),
        None => tracing::warn!("a client still holds on to the host"),
    }
    Ok(())
}

/// What `CONDUCTOR_PLAN_TTL_SECONDS` says.
fn plans_expire() -> Result<Duration, Failure> {
    const NAME: &str = "CONDUCTOR_PLAN_TTL_SECONDS";
    let Ok(text) = std::env::var(NAME) else { return Ok(EXPIRES) };
    match text.parse() {
        Ok(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err(Failure::Wrong(format!("conductor: {NAME} is {text:?}; write seconds, 1 to 604800 (a week)"))),
    }
}

fn wait_for_last(mut host: Arc<Host>) -> Option<Host> {
    for _ in 0..1000 {
        match Arc::try_unwrap(host) {
            Ok(host) => return Some(host),
            Err(shared) => host = shared,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

fn serve(host: &Host, path: &Path, text: &mut String, woken: &Receiver<Wake>) {
    loop {
        let mut changes = match woken.recv_timeout(TEND) {
            Ok(Wake::Changed(changes)) => changes,
            Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                host.roll_back_bad_upgrades();
                continue;
            }
        };
        // What else comes while the file settles belongs to the same change.
        let settled = crossbeam_channel::after(SETTLE);
        loop {
            crossbeam_channel::select! {
                recv(woken) -> wake => match wake {
                    Ok(Wake::Changed(more)) => {
                        changes.config |= more.config;
                        changes.features |= more.features;
                    }
                    Ok(Wake::Stop) | Err(_) => return,
                },
                recv(settled) -> _ => break,
            }
        }
        // Features first: rules that are new may need what is new.
        if changes.features {
            match host.reload_features() {
                Ok(reloaded) => warn(&reloaded.warnings),
                Err(diagnostics) => eprintln!("{}", diagnostics.render(super::colour())),
            }
        }
        if changes.config {
            reload(host, path, text);
        }
    }
}

fn reload(host: &Host, path: &Path, before: &mut String) {
    let text = match std::fs::read_to_string(path) {
        Ok(text) if text == *before && !host.is_in_force(&text) => return,
        // An applied plan, which is in force already.
        Ok(text) if host.is_in_force(&text) => {
            *before = text;
            return;
        }
        Ok(text) => text,
        Err(error) => return tracing::error!("{}: {error}; the old rules stay", path.display()),
    };
    match host.reload(&text, &path.display().to_string()) {
        Ok(reloaded) => warn(&reloaded.warnings),
        Err(diagnostics) => eprintln!("{}", diagnostics.render(super::colour())),
    }
    *before = text;
}

/// Watches the file's folder: editors replace files, and a watch on the file would follow the old one.
fn watch(path: &Path, wake: Sender<Wake>, changes: Changes) -> Option<notify::RecommendedWatcher> {
    let path = std::path::absolute(path).ok()?;
    let folder = path.parent()?.to_owned();
    let name = path.file_name()?.to_owned();
    let on_change = move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        if !event.kind.is_access() && event.paths.iter().any(|changed| changed.file_name() == Some(&name)) {
            let _ = wake.send(Wake::Changed(changes));
        }
    };
    let watching = notify::recommended_watcher(on_change).and_then(|mut watcher| {
        watcher.watch(&folder, notify::RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| {
            tracing::warn!("changes of {} are not noticed: {error}; send SIGHUP to reload", path.display())
        })
        .ok()
}
