//! The configuration watcher: one thread that reloads the host when the configuration file or the set of installed
//! features changes (hot reload), after a debounce.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use notify::Watcher as _;

use super::OnDiagnostics;
use conductor_config::include::{Included, Watched};
use conductor_host::host::Host;
use conductor_stdx::plain_file;

/// How often the host looks whether an upgrade went wrong.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Debounce of file changes: editors write a file in several steps; the last one counts.
const DEBOUNCE_INTERVAL: Duration = Duration::from_millis(50);

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
    #[expect(dead_code, reason = "they watch for as long as they are there")]
    watchers: Vec<notify::RecommendedWatcher>,
    /// What the configuration includes, and what watches that.
    included: Vec<(Watched, Option<notify::RecommendedWatcher>)>,
}

impl Watching {
    /// Watches the configuration file, and the list of what is installed, where there are any.
    pub(super) fn start(config: Option<&Path>, installed: Option<&Path>) -> Self {
        let (wake, woken) = crossbeam_channel::unbounded();
        let watch = |path: Option<&Path>, changes| {
            let path = std::path::absolute(path?).ok()?;
            let watched =
                Watched { folder: path.parent()?.to_owned(), name: path.file_name()?.to_string_lossy().into() };
            watch(&watched, wake.clone(), changes)
        };
        let watchers = [
            watch(config, Changes { config: true, features: false }),
            watch(installed, Changes { config: false, features: true }),
        ];
        let watchers = watchers.into_iter().flatten().collect();
        Self { wake, woken, watchers, included: Vec::new() }
    }

    /// Watches what a configuration includes, and what one included before no longer.
    fn follow(&mut self, included: &Included) {
        let wanted = included.watched();
        self.included.retain(|(watched, watcher)| watcher.is_some() && wanted.contains(watched));
        for watched in wanted {
            if !self.included.iter().any(|(known, _)| *known == watched) {
                let changes = Changes { config: true, features: false };
                let watcher = watch(&watched, self.wake.clone(), changes);
                if watcher.is_some() {
                    // It may have changed after it was read and before it was watched.
                    let _ = self.wake.send(Wake::Changed(changes));
                }
                self.included.push((watched, watcher));
            }
        }
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
        included: Included,
        on_diagnostics: OnDiagnostics,
    ) -> std::io::Result<Self> {
        let wake = watching.wake.clone();
        let mut kept = WatchedConfig { host, file, text, included, on_diagnostics };
        let thread = std::thread::Builder::new().name("config_watcher".into()).spawn(move || {
            let mut watching = watching;
            watching.follow(&kept.included);
            kept.serve(&mut watching);
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
    /// What the file said when it was last looked at, and those that it includes.
    text: String,
    included: Included,
    on_diagnostics: OnDiagnostics,
}

impl WatchedConfig {
    fn serve(&mut self, watching: &mut Watching) {
        loop {
            let woken = &watching.woken;
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
            let settled = crossbeam_channel::after(DEBOUNCE_INTERVAL);
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
                watching.follow(&self.included);
            }
        }
    }

    fn reload(&mut self) {
        let Some(file) = self.file.clone() else { return };
        let name = file.display().to_string();
        let host = Arc::clone(&self.host);
        let reloaded = host.reload_read(&name, || self.changed_text(&file, &name).ok_or(()));
        if let Ok(reloaded) = reloaded {
            let (Ok(found) | Err(found)) = reloaded.map(|reloaded| reloaded.warnings);
            self.report(&found);
        }
    }

    /// What the file says; `None` if that is in force, such as that of an applied plan, was refused already, or can't
    /// be read.
    fn changed_text(&mut self, file: &Path, name: &str) -> Option<String> {
        let text = plain_file::read_text(file, plain_file::MAX_TEXT)
            .inspect_err(|error| tracing::error!("{name}: {error}; the old rules stay"))
            .ok()?;
        let included = Included::read(&text, name);
        let is_known = self.host.is_in_force(&text, &included) || (text == self.text && included == self.included);
        (self.text, self.included) = (text, included);
        (!is_known).then(|| self.text.clone())
    }

    fn report(&self, found: &conductor_config::Diagnostics) {
        if !found.is_empty() {
            (self.on_diagnostics)(found);
        }
    }
}

/// Watches the folder of files: editors replace files, and a watch on the file would follow the old one.
fn watch(watched: &Watched, wake: Sender<Wake>, changes: Changes) -> Option<notify::RecommendedWatcher> {
    let files = watched.clone();
    let on_change = move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let is_one = |changed: &PathBuf| changed.file_name().is_some_and(|name| files.is(&name.to_string_lossy()));
        if !event.kind.is_access() && event.paths.iter().any(is_one) {
            let _ = wake.send(Wake::Changed(changes));
        }
    };
    let Watched { folder, name } = watched;
    let watching = notify::recommended_watcher(on_change).and_then(|mut watcher| {
        watcher.watch(folder, notify::RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| {
            tracing::warn!("changes of {} are not noticed: {error}; send SIGHUP to reload", folder.join(name).display())
        })
        .ok()
}
