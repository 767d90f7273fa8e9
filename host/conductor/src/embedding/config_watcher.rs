//! The configuration watcher: one thread that reloads the host when the configuration file or the set of installed
//! features changes (hot reload).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use notify::Watcher as _;

use super::OnDiagnostics;
use conductor_host::host::Host;
use conductor_stdx::plain_file;

/// How often the host looks whether an upgrade went wrong.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Debounce of file changes: editors write a file in several steps; the last one counts.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// What wakes the watcher.
enum Wake {
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

/// Watched files, and what was noticed since.
pub(super) struct Watching {
    wake: Sender<Wake>,
    woken: Receiver<Wake>,
    watchers: Vec<notify::RecommendedWatcher>,
}

impl Watching {
    /// Watches the configuration file, and the list of what is installed, where there are any.
    pub(super) fn start(config: Option<&Path>, installed: Option<&Path>) -> Self {
        let (wake, woken) = crossbeam_channel::unbounded();
        let watch = |path: Option<&Path>, changes| watch(path?, wake.clone(), changes);
        let watchers = [
            watch(config, Changes { config: true, features: false }),
            watch(installed, Changes { config: false, features: true }),
        ];
        let watchers = watchers.into_iter().flatten().collect();
        Self { wake, woken, watchers }
    }
}

/// The running thread.
pub(super) struct ConfigWatcher {
    wake: Sender<Wake>,
    thread: JoinHandle<()>,
}

impl ConfigWatcher {
    /// Keeps `host`, whose configuration is `text` from `file`.
    pub(super) fn start(
        host: Arc<Host>,
        watching: Watching,
        file: Option<PathBuf>,
        text: String,
        on_diagnostics: OnDiagnostics,
    ) -> std::io::Result<Self> {
        let wake = watching.wake.clone();
        let mut kept = WatchedConfig { host, file, text, on_diagnostics };
        let thread = std::thread::Builder::new().name("config_watcher".into()).spawn(move || {
            kept.serve(&watching.woken);
            drop(watching.watchers);
        })?;
        Ok(Self { wake, thread })
    }

    /// Looks at everything anew.
    pub(super) fn look(&self) {
        let _ = self.wake.send(Wake::Changed(Changes { config: true, features: true }));
    }

    /// Ends it. What it has begun is done.
    pub(super) fn stop(self) {
        let _ = self.wake.send(Wake::Stop);
        let _ = self.thread.join();
    }
}

struct WatchedConfig {
    host: Arc<Host>,
    file: Option<PathBuf>,
    /// What the file said when it was last looked at.
    text: String,
    on_diagnostics: OnDiagnostics,
}

impl WatchedConfig {
    fn serve(&mut self, woken: &Receiver<Wake>) {
        loop {
            let mut changes = match woken.recv_timeout(CHECK_INTERVAL) {
                Ok(Wake::Changed(changes)) => changes,
                Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    self.host.expire_plans();
                    self.host.roll_back_bad_upgrades();
                    continue;
                }
            };
            // What else comes while the file settles belongs to the same change.
            let settled = crossbeam_channel::after(DEBOUNCE);
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
                let (Ok(found) | Err(found)) = self.host.reload_features().map(|reloaded| reloaded.warnings);
                self.report(&found);
            }
            if changes.config {
                self.reload();
            }
        }
    }

    fn reload(&mut self) {
        let Some(file) = &self.file else { return };
        let text = match plain_file::read_text(file, plain_file::MAX_TEXT) {
            Ok(text) if text == self.text && !self.host.is_in_force(&text) => return,
            // An applied plan, which is in force already.
            Ok(text) if self.host.is_in_force(&text) => {
                self.text = text;
                return;
            }
            Ok(text) => text,
            Err(error) => return tracing::error!("{}: {error}; the old rules stay", file.display()),
        };
        let reloaded = self.host.reload(&text, &file.display().to_string());
        let (Ok(found) | Err(found)) = reloaded.map(|reloaded| reloaded.warnings);
        self.report(&found);
        self.text = text;
    }

    fn report(&self, found: &conductor_config::Diagnostics) {
        if !found.is_empty() {
            (self.on_diagnostics)(found);
        }
    }
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
