//! When the host sends something to a simulated output.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use conductor_ports::simulated::SimulatedPorts;
use crossbeam_channel::Receiver;

/// The moments, taken by the thread that sends.
///
/// A thread that waited for the message would measure itself too: it has just played, so beside a thread that is busy Linux lets
/// it wait until that one has run as long, and then until the next tick, up to 4 ms.
pub struct Arrivals(Receiver<Instant>);

impl Arrivals {
    /// From now on. Once for each output.
    pub fn at(ports: &SimulatedPorts, output: &str) -> Result<Self> {
        let (sender, moments) = crossbeam_channel::unbounded();
        let note = move |_: &[u8]| {
            let _ = sender.send(Instant::now());
        };
        ensure!(ports.on_sent(output, note), "nothing can be measured of the output {output}");
        Ok(Self(moments))
    }

    /// When the next message was sent.
    pub fn next(&self, longest: Duration) -> Result<Instant> {
        self.0.recv_timeout(longest).map_err(|_| anyhow!("an event was lost"))
    }
}
