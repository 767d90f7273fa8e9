//! Who is asked: an echo, `conductor run`, and MIDIMonster.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::client::Numbers;
use crate::process::{self, Process};

/// The name of what is measured beside the others.
pub const CONDUCTOR: &str = "conductor";

/// A process that answers messages.
#[derive(Debug)]
pub struct Peer {
    pub name: &'static str,
    pub process: Process,
    /// Where it listens: messages go to each in turn.
    pub addresses: Vec<SocketAddr>,
    pub numbers: Numbers,
}

impl Peer {
    /// A host that listens at this port.
    pub fn conductor(process: Process, port: u16) -> Self {
        Self { name: CONDUCTOR, process, addresses: vec![local(port)], numbers: Numbers::Whole }
    }
}

/// The least a process can do.
pub fn echo() -> Result<Peer> {
    let port = free_port()?;
    let mut command = Command::new(std::env::current_exe()?);
    let process = Process::start(command.args(["echo", &port.to_string()]))?;
    Ok(Peer { name: "echo", process, addresses: vec![local(port)], numbers: Numbers::Whole })
}

/// The host, with one rule, at so many ports.
pub fn conductor(program: &Path, features: &Path, home: &Path, answers: u16, ports: usize) -> Result<Peer> {
    let ports = (0..ports).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
    let mut configuration = String::new();
    for (number, port) in ports.iter().enumerate() {
        configuration += &format!(
            "[[bindings]]\nalias = 'in{number}'\nprotocol = 'osc'\ninput = {{ host = '127.0.0.1', port = {port} }}\n"
        );
    }
    configuration += &format!(
        r#"
        [[global_mappings]]
        trigger = {{ type = "OscMessage", address = "/in/fader" }}
        action = {{ type = "OscSend", target = "127.0.0.1:{answers}", address = "/out/level", args = ["{{value:i}}"] }}
        "#
    );
    let (process, _) = process::conductor(program, features, home, &configuration)?;
    let addresses = ports.into_iter().map(local).collect();
    Ok(Peer { name: CONDUCTOR, process, addresses, numbers: Numbers::Whole })
}

/// MIDIMonster with the same rule. By its design it may send one answer for several messages that come at
/// once, as only the last value counts to it.
pub fn midimonster(program: &Path, folder: &Path, answers: u16) -> Result<Peer> {
    let (port, own) = (free_port()?, free_port()?);
    let configuration = format!(
        "[osc in]\nbind = 127.0.0.1 {port}\n/in/fader = f 0.0 1.0\n\n\
         [osc out]\nbind = 127.0.0.1 {own}\ndestination = 127.0.0.1 {answers}\n/out/level = f 0.0 1.0\n\n\
         [map]\nin./in/fader > out./out/level\n"
    );
    let file = folder.join("midimonster.cfg");
    fs::write(&file, configuration)?;
    let program = fs::canonicalize(program).with_context(|| format!("{} is not there", program.display()))?;
    // It looks for its backends below the folder that it is started in.
    let beside = program.parent().context("MIDIMonster is in no folder")?;
    let process = Process::start(Command::new(&program).arg(file).current_dir(beside))?;
    Ok(Peer { name: "MIDIMonster", process, addresses: vec![local(port)], numbers: Numbers::Unit })
}

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// A port that was free a moment ago.
pub fn free_port() -> Result<u16> {
    Ok(UdpSocket::bind(local(0))?.local_addr()?.port())
}
