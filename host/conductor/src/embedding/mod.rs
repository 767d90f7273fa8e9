//! Embedding: Conductor as a library, with all that `conductor run` does, in a process of your own.
//!
//! ```no_run
//! use conductor::Conductor;
//! use conductor::observation::ObservationView;
//!
//! let conductor = Conductor::builder().home("/home/me/.conductor").system_ports().start()?;
//! println!("{} rules", conductor.host().status().rules);
//! for observation in conductor.host().subscribe().iter().take(10) {
//!     println!("{:?}", ObservationView::of(&observation, conductor.host()));
//! }
//! conductor.stop();
//! # Ok::<(), conductor::OpenError>(())
//! ```
//!
//! A [`Host`] is the engine, the ports and the features; this adds what a process around it has to do: it claims the
//! home, serves the API there, and puts in force what changes in the configuration file and among what is installed.

mod config_watcher;
mod newer_home;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::config_watcher::ConfigWatcher;
#[cfg(unix)]
use conductor_api::server::{self, ServeError, Server};
#[cfg(unix)]
use conductor_chat::Conversations;
use conductor_config::include::Included;
use conductor_config::{self as config, Diagnostics};
use conductor_host::host::{Host, HostBuilder, StartError};
use conductor_install::store::PackageStore;
use conductor_ports::PortBackend;
use conductor_ports::artnet::ArtNetBackend;
use conductor_ports::gamepad::GamepadBackend;
#[cfg(target_os = "linux")]
use conductor_ports::keyboard::KeyboardBackend;
use conductor_ports::midi::MidiBackend;
use conductor_ports::osc::OscBackend;
#[cfg(feature = "stream-deck")]
use conductor_ports::stream_deck::StreamDeckBackend;
#[cfg(unix)]
use conductor_skills::library::Library;
use conductor_stdx::plain_file;

pub use self::newer_home::{NewerHome, NewerRecord};

/// Called with warnings and errors of the configuration, at the start and after each change of it.
pub type OnDiagnostics = Box<dyn Fn(&Diagnostics) + Send + Sync>;

/// A host with what belongs around it. Dropping it stops it, as [`Conductor::stop`] does.
pub struct Conductor {
    /// None once it has stopped.
    host: Option<Arc<Host>>,
    config_watcher: Option<ConfigWatcher>,
    #[cfg(unix)]
    server: Option<Server>,
}

/// What a [`Conductor`] is made of. Nothing is started before [`ConductorBuilder::start`].
pub struct ConductorBuilder {
    host: HostBuilder,
    home: Option<PathBuf>,
    project: Option<PathBuf>,
    config: Option<Written>,
    serve: bool,
    http: Option<u16>,
    on_diagnostics: OnDiagnostics,
}

/// Where a configuration is from.
enum Written {
    File(PathBuf),
    Text(String),
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Neither a home nor a configuration was named.
    #[error("there is nothing to start with: name a home, a configuration file or its text")]
    Nothing,
    /// The configuration file can't be read.
    #[error("{}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The configuration is wrong.
    #[error("{}", .0.render(false))]
    Config(Diagnostics),
    /// Another host has this home.
    #[cfg(unix)]
    #[error(transparent)]
    Taken(ServeError),
    /// A newer version was used in this home.
    #[error(transparent)]
    Newer(#[from] NewerHome),
    /// The host did not start.
    #[error(transparent)]
    Start(StartError),
}

impl std::fmt::Debug for Conductor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conductor").field("host", &self.host).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ConductorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConductorBuilder").field("host", &self.host).finish_non_exhaustive()
    }
}

impl ConductorBuilder {
    /// The folder for the configuration, the cache and the sockets; it is made if it is missing. Without one
    /// nothing is persisted, and the API is not served.
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The root of a project, whose skills agents read beside those of the home. Default: none.
    #[must_use]
    pub fn project(mut self, root: impl Into<PathBuf>) -> Self {
        self.project = Some(root.into());
        self
    }

    /// The configuration file, which applied plans are written to and whose changes are put in force. Default:
    /// `config.toml` in the home, which need not be there yet: then nothing is mapped until it is written.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = Some(Written::File(file.into()));
        self
    }

    /// A configuration without a file, TOML. No plan can be applied then.
    #[must_use]
    pub fn config_text(mut self, text: impl Into<String>) -> Self {
        self.config = Some(Written::Text(text.into()));
        self
    }

    /// The folder with the bundled features, one `.wasm` file each. Default: none are bundled.
    #[must_use]
    pub fn features(mut self, folder: impl Into<PathBuf>) -> Self {
        self.host = self.host.features(folder);
        self
    }

    /// One more way to reach ports, such as [simulated ones](conductor_ports::simulated::SimulatedPorts).
    #[must_use]
    pub fn ports(mut self, backend: Box<dyn PortBackend>) -> Self {
        self.host = self.host.backend(backend);
        self
    }

    /// Every way to reach ports that this system has.
    #[must_use]
    pub fn system_ports(mut self) -> Self {
        self.host = system_ports().into_iter().fold(self.host, HostBuilder::backend);
        self
    }

    /// How long a plan waits for a person. Default: 300 s.
    #[must_use]
    pub fn plans_expire(mut self, after: Duration) -> Self {
        self.host = self.host.plans_expire(after);
        self
    }

    /// Does not serve the API in the home, for a shell that other processes are not to reach. The home must not be
    /// that of a running host; this is not checked.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.serve = false;
        self
    }

    /// Serves the API and MCP on this TCP port of 127.0.0.1 too, for clients with a token of the home; 0 takes one
    /// that is free. Default: `http_port` under `[api]`, else not at all.
    #[must_use]
    pub fn http(mut self, port: Option<u16>) -> Self {
        self.http = port;
        self
    }

    /// A callback that gets the warnings and errors of the configuration. Default: they are logged.
    #[must_use]
    pub fn on_diagnostics(mut self, callback: impl Fn(&Diagnostics) + Send + Sync + 'static) -> Self {
        self.on_diagnostics = Box::new(callback);
        self
    }

    /// Changes what the host itself is made of: its clock, its desktop, its network.
    #[must_use]
    pub fn host(mut self, change: impl FnOnce(HostBuilder) -> HostBuilder) -> Self {
        self.host = change(self.host);
        self
    }

    /// Starts: claims the home, reads the configuration, installs the features, opens the ports, serves the API.
    ///
    /// A feature or a port that can't be had is reported and skipped, and so is the API.
    ///
    /// # Errors
    /// [`OpenError`]; nothing keeps running.
    pub fn start(self) -> Result<Conductor, OpenError> {
        let Self { mut host, home, project, config, serve, http, on_diagnostics } = self;
        let serve = serve && home.is_some();
        if let Some(home) = &home {
            make_home(home);
            host = host.home(home);
            #[cfg(unix)]
            if serve {
                server::claim(home).map_err(OpenError::Taken)?;
                if server::was_cut_off(home) {
                    tracing::warn!("the last run did not end by itself; all notes of the outputs are ended");
                    host = host.end_all_notes();
                }
            }
            newer_home::check(home)?;
        }
        let in_home = || home.as_deref().map(|home| Written::File(home.join("config.toml")));
        let is_homes = |file: &Path| home.as_deref().is_some_and(|home| file == home.join("config.toml"));
        let (text, name, file) = match config.or_else(in_home).ok_or(OpenError::Nothing)? {
            Written::Text(text) => (text, "the configuration".to_owned(), None),
            Written::File(file) => match plain_file::read_text(&file, plain_file::MAX_TEXT) {
                Ok(text) => (text, file.display().to_string(), Some(file)),
                // A new home: nothing is mapped yet, and the file is read as soon as it is there.
                Err(error) if error.kind() == ErrorKind::NotFound && is_homes(&file) => {
                    tracing::warn!(
                        "there is no {} yet, so nothing is mapped; tools, learn and monitor work, and `conductor init` \
                         writes one, which is read at once",
                        file.display()
                    );
                    (String::new(), file.display().to_string(), Some(file))
                }
                Err(source) => return Err(OpenError::File { file, source }),
            },
        };
        let included = file.as_ref().map(|_| Included::read(&text, &name)).unwrap_or_default();
        let loaded = config::parse_with(&text, &name, &included).map_err(OpenError::Config)?;
        let store = home.as_deref().and_then(|home| {
            PackageStore::open(home).inspect_err(|error| tracing::warn!("features can't be installed: {error}")).ok()
        });
        if let Some(file) = &file {
            host = host.config_file(file);
        }
        // Watched before it starts, so that nothing that comes meanwhile is missed.
        let watching =
            config_watcher::Watching::start(file.as_deref(), store.map(|store| store.state_file()).as_deref());
        let host = Arc::new(host.start(&loaded).map_err(|error| match error {
            StartError::Config(wrong) => OpenError::Config(wrong),
            other => OpenError::Start(other),
        })?);
        if !host.warnings().is_empty() {
            on_diagnostics(host.warnings());
        }
        #[cfg(unix)]
        let server = home.as_deref().filter(|_| serve).and_then(|home| {
            let skills = Library::new(Some(home), project.as_deref());
            Server::start(home, Arc::clone(&host), skills, http.or(loaded.config.api.http_port))
                .inspect_err(|error| tracing::warn!("other processes can't ask this host: {error}"))
                .ok()
        });
        #[cfg(not(unix))]
        let _ = (serve, http, project);
        let config_watcher = ConfigWatcher::start(Arc::clone(&host), watching, file, text, included, on_diagnostics);
        let config_watcher = Some(config_watcher.map_err(|error| OpenError::Start(error.into()))?);
        Ok(Conductor {
            host: Some(host),
            config_watcher,
            #[cfg(unix)]
            server,
        })
    }
}

impl Conductor {
    /// What to make one of.
    pub fn builder() -> ConductorBuilder {
        ConductorBuilder {
            host: Host::builder(),
            home: None,
            project: None,
            config: None,
            serve: true,
            http: None,
            on_diagnostics: Box::new(|found| tracing::warn!("{}", found.render(false))),
        }
    }

    /// The host: what can be asked of it, and told to it.
    pub fn host(&self) -> &Host {
        // It is taken out only as this is dropped.
        self.host.as_deref().unwrap_or_else(|| unreachable!("it is used after it was dropped"))
    }

    /// The conversations that the home keeps. `None` without a home, where it is [alone](ConductorBuilder::alone), or if they
    /// can't be kept; [`conductor_conversation::open`] opens them for a host.
    #[cfg(unix)]
    pub fn chat(&self) -> Option<&Arc<Conversations>> {
        self.server.as_ref()?.chat()
    }

    /// Has what is installed, and the configuration file, read anew soon, as if both had changed.
    pub fn reload(&self) {
        if let Some(config_watcher) = &self.config_watcher {
            config_watcher.look();
        }
    }

    /// Stops: ends the API, closes the ports, lets workers and features finish, switches off what is on.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        if let Some(host) = &self.host {
            // The config_watcher may be waiting for a compiler.
            host.cancel_compilation();
        }
        if let Some(config_watcher) = self.config_watcher.take() {
            config_watcher.stop();
        }
        #[cfg(unix)]
        drop(self.server.take());
        // The API's threads let go of the host as they end.
        match self.host.take().and_then(wait_for_last) {
            Some(host) => host.stop(),
            None => tracing::warn!("a client still holds on to the host"),
        }
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

/// Every way to reach ports that this system has.
pub fn system_ports() -> Vec<Box<dyn PortBackend>> {
    vec![
        Box::new(MidiBackend::new()),
        #[cfg(feature = "stream-deck")]
        Box::new(StreamDeckBackend::new()),
        Box::new(GamepadBackend::new()),
        #[cfg(target_os = "linux")]
        Box::new(KeyboardBackend::new()),
        Box::new(OscBackend::new()),
        Box::new(ArtNetBackend::new()),
    ]
}

/// Makes the home if it is not there. Without one the host still runs; it only keeps nothing.
pub(crate) fn make_home(home: &Path) {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    if let Err(error) = builder.create(home) {
        tracing::warn!("{} can't be made: {error}; nothing will be cached", home.display());
    }
}
