//! OSC peers of others: the tools of liblo, the C library that much OSC software is made with.

use std::process::Command;

use crate::osc::{Tablet, free_port};
use crate::process::Process;
use crate::wait;

/// Sends one message with `oscsend`; `types` and `values` as it takes them.
pub fn oscsend(port: u16, address: &str, types: &str, values: &[&str]) {
    let mut command = Command::new("oscsend");
    command.args(["127.0.0.1", &port.to_string(), address, types]).args(values);
    let (end, _) = Process::start(&mut command).wait();
    assert_eq!(end.code, Some(0), "oscsend: {}{}", end.out, end.err);
}

/// A running `oscdump`, which prints what it receives.
#[derive(Debug)]
pub struct OscDump {
    process: Process,
    port: u16,
}

/// What is sent to see whether it listens yet.
const KNOCK: &str = "/knock";

impl OscDump {
    /// Starts it on a free port, and waits until it listens.
    pub fn start() -> Self {
        let port = free_port();
        // -L: every line at once, not when there are many.
        let process = Process::start(Command::new("oscdump").args(["-L", &port.to_string()]));
        let dump = Self { process, port };
        let knock = Tablet::to(port);
        wait::until(
            || {
                knock.try_send(KNOCK);
                dump.process.out.text().contains(KNOCK).then_some(())
            },
            || format!("oscdump does not listen: {}", dump.process.err.text()),
        );
        dump
    }

    /// Where it listens, as configuration writes it.
    pub fn target(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The first `count` messages, as it printed them, without the times.
    pub fn lines(&self, count: usize) -> Vec<String> {
        self.process.out.find(&format!("message {count} at oscdump"), |lines| {
            let lines = lines.iter().filter_map(|line| line.split_once(' ')).map(|(_, message)| message.to_owned());
            let messages: Vec<_> = lines.filter(|line| !line.starts_with(KNOCK)).collect();
            (messages.len() >= count).then_some(messages)
        })
    }
}
