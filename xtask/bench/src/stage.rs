//! A whole host in this process, with simulated ports that are played at a steady pace.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use conductor_config as config;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;

/// Events in a second.
pub const RATE: u64 = 10_000;
/// Controllers.
pub const PORTS: usize = 16;

/// The host and its ports.
pub struct Stage {
    pub host: Host,
    pub ports: SimulatedPorts,
}

/// What a port is called.
pub fn port(index: usize) -> String {
    format!("port {index}")
}

impl Stage {
    /// A host with this configuration, every port open.
    pub fn new(config: &str) -> Result<Self> {
        let ports = SimulatedPorts::new();
        (0..PORTS).for_each(|index| ports.plug(&port(index), Direction::Input));
        ports.plug("synth", Direction::Output);
        let loaded = config::parse(config, "config.toml").map_err(|wrong| anyhow!("{wrong}"))?;
        let host = Host::builder().backend(ports.backend()).listen_to_all().start(&loaded)?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while !(0..PORTS).all(|index| ports.is_open(&port(index))) {
            ensure!(Instant::now() < deadline, "the ports were not opened");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { host, ports })
    }

    /// Plays for a while: what `bytes` says for each event, on each port in turn.
    pub fn play(&self, time: Duration, mut bytes: impl FnMut(u64) -> [u8; 3]) {
        let (start, mut played) = (Instant::now(), 0_u64);
        while start.elapsed() < time {
            let due = start.elapsed().as_micros() as u64 * RATE / 1_000_000;
            while played < due {
                self.ports.play(&port(played as usize % PORTS), &bytes(played));
                played += 1;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
