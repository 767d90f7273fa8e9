//! A desktop program: the host within this process, and the pages of the web shell in a window of its own, as programs
//! made with Tauri have one. Closing the window ends the program, and the host with it.
//!
//! The window is Chromium's, without tabs and address: `cargo run --example desktop -- HOME [CHROMIUM]`. A program that has
//! a webview, such as that of `wry`, gives [`run`] a function that opens the link in it and comes back when it was closed.

#[cfg(unix)]
use std::{io, path::Path, process::Command};

#[cfg(unix)]
use conductor::{Conductor, api};
#[cfg(unix)]
use conductor_web::{Limits, Pages, Server};

/// Runs a host in this home until its window is closed. `window` is called with the link that signs the window in, once.
///
/// # Errors
/// If the host can't start, the pages can't be served, or there is no window.
#[cfg(unix)]
pub fn run(home: &Path, window: impl FnOnce(&str) -> io::Result<()>) -> Result<(), Box<dyn std::error::Error>> {
    let conductor = Conductor::builder().home(home).system_ports().start()?;
    // The pages ask the host as everyone does, at its socket: a window can do what its owner can, and nothing else.
    let server = Server::bind(&api::socket(home), 0, Pages::embedded(), Limits::default())?;
    let links = server.links();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let served = runtime.spawn(server.serve());
    let closed = links.link().and_then(|link| window(&link));
    served.abort();
    conductor.stop();
    Ok(closed?)
}

/// A window of Chromium's that belongs to this program: with a profile of its own, its process ends as the window does.
#[cfg(unix)]
fn chromium(program: &str, home: &Path, link: &str) -> io::Result<()> {
    let profile = format!("--user-data-dir={}", home.join("window").display());
    let ended = Command::new(program).args([&format!("--app={link}"), &profile, "--no-first-run"]).status()?;
    if ended.success() { Ok(()) } else { Err(io::Error::other(format!("{program} has ended with {ended}"))) }
}

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().ok_or("which home? write `desktop HOME [CHROMIUM]`")?;
    let program = arguments.next().unwrap_or_else(|| "chromium".to_owned());
    run(Path::new(&home), |link| chromium(&program, Path::new(&home), link))
}

#[cfg(not(unix))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    Err("a running host can't be asked on this system yet".into())
}
