//! `conductor ui`: shows the running host in a browser on this computer.
//!
//! The server of the pages runs in this process, and ends with it; to the host it is a client as any other command is.

use clap::Args;

use super::{CommandResult, Paths};

#[derive(Debug, Args)]
pub(super) struct UiArguments {
    /// The port of 127.0.0.1 to serve at; 0 takes one that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Print the link, and open no browser
    #[arg(long)]
    no_open: bool,
}

#[cfg(unix)]
pub(super) fn run(places: &Paths, arguments: &UiArguments) -> CommandResult {
    use anyhow::Context as _;
    use conductor_api::client::Client;
    use conductor_terminal::outln;
    use conductor_web::{Limits, Pages, Server};

    // Says what to do where no host runs.
    Client::new(&places.home).status()?;
    let socket = conductor_api::socket(&places.home);
    let server = Server::bind(&socket, arguments.port, Pages::embedded(), Limits::default())
        .context("the web shell can't be served there")?;
    let links = server.links();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (sender, told) = crossbeam_channel::unbounded();
    super::signals::listen(sender.clone(), |_| WaitEvent::End)?;
    let ended = sender.clone();
    std::thread::Builder::new().name("web".into()).spawn(move || {
        let served = runtime.block_on(server.serve());
        let _ = ended.send(WaitEvent::Failed(served.err()));
    })?;
    std::thread::Builder::new().name("keys".into()).spawn(move || lines(&sender))?;
    loop {
        let link = links.link()?;
        outln!("{link}");
        outln!("It signs one browser in, once, within a minute. Press Enter for another link, Ctrl-C to end.");
        if !arguments.no_open {
            browser::open(&link);
        }
        match told.recv() {
            Ok(WaitEvent::Another) => {}
            Ok(WaitEvent::End) | Err(_) => return Ok(()),
            Ok(WaitEvent::Failed(error)) => {
                return Err(anyhow::anyhow!("the web shell's server has ended: {error:?}").into());
            }
        }
    }
}

#[cfg(not(unix))]
pub(super) fn run(_: &Paths, _: &UiArguments) -> CommandResult {
    Err(super::Failure::Wrong("conductor: a running host can't be asked on this system yet".into()))
}

/// What ends the wait of the command.
#[cfg(unix)]
enum WaitEvent {
    /// A person wants another link.
    Another,
    End,
    Failed(Option<std::io::Error>),
}

/// Wants another link for every line that is typed, as long as there is an input.
#[cfg(unix)]
fn lines(sender: &crossbeam_channel::Sender<WaitEvent>) {
    for _ in std::io::stdin().lines().map_while(Result::ok) {
        if sender.send(WaitEvent::Another).is_err() {
            break;
        }
    }
}

/// The browser of the person at this desktop.
#[cfg(unix)]
mod browser {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use conductor_terminal::errln;

    const OPENER: &str = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };

    /// Opens a link, or says why a person has to.
    pub(super) fn open(link: &str) {
        if !has_desktop() {
            return errln!("there is no desktop here to open a browser on: open the link in one on this computer");
        }
        let mut command = Command::new(OPENER);
        command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A browser that this starts goes on when Ctrl-C ends the command.
        command.process_group(0);
        match command.spawn() {
            // It may run for as long as the browser does.
            Ok(mut child) => {
                let _ = std::thread::Builder::new().name("browser".into()).spawn(move || {
                    if !child.wait().is_ok_and(|status| status.success()) {
                        errln!("{OPENER} opened no browser: open the link yourself");
                    }
                });
            }
            Err(error) => errln!("{OPENER} can't be started ({error}): open the link yourself"),
        }
    }

    /// Without one, some openers start a browser in the terminal.
    fn has_desktop() -> bool {
        let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
    }
}
