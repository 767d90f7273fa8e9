//! What this program does as another process: be a peer, or be measured.

use std::net::UdpSocket;
use std::path::PathBuf;

use anyhow::Result;
use conductor_scheduling as scheduling;

use crate::{agents, memory};

/// Which part it plays.
#[derive(Debug, clap::Subcommand)]
pub enum Helper {
    /// Send every datagram back
    #[command(hide = true)]
    Echo {
        /// The port on 127.0.0.1
        port: u16,
    },
    /// Serve a tool over MCP
    #[command(hide = true)]
    ToolServer {
        /// The socket
        socket: PathBuf,
    },
    /// Hold idle features, and say what they take
    #[command(hide = true)]
    Idle {
        /// The folder for compiled code
        home: PathBuf,
        /// The package
        feature: PathBuf,
        /// How many of it
        count: usize,
    },
}

/// Plays the part.
pub fn run(helper: &Helper) -> Result<()> {
    match helper {
        Helper::Echo { port } => echo(*port),
        Helper::ToolServer { socket } => agents::serve(socket),
        Helper::Idle { home, feature, count } => memory::idle(home, feature, *count),
    }
}

/// The least that a process can do with a datagram: what it costs is the sockets and being woken, of a thread that is scheduled
/// as those of `conductor run`.
fn echo(port: u16) -> Result<()> {
    let realtime_priority = scheduling::RealtimePriority::ByRight;
    scheduling::configure(scheduling::Settings { short_time_slices: true, realtime_priority });
    scheduling::event_thread();
    let socket = UdpSocket::bind(("127.0.0.1", port))?;
    let mut buffer = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        socket.send_to(&buffer[..length], from)?;
    }
}
