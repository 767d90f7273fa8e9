//! The whole host in a home, on a simulated controller that is played on by lines, and a desktop that prints.
//!
//! `conductor-played HOME` prints `ready`, and then what is done on the desktop: `down c`, `up c`. A line on its
//! standard input is a MIDI message to the controller, `Launchpad`, in hex: `90 24 64`. It stops when there are no more.

use std::io::Write as _;

use anyhow::Context as _;
use conductor::Conductor;
use conductor_config::{Axis, Key, MouseButton};
use conductor_dispatch::desktop::{Desktop, Speed};
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;

const CONTROLLER: &str = "Launchpad";
/// Plugged in as well, and without a binding.
const OTHER: &str = "Keystation";

fn main() -> anyhow::Result<()> {
    let home = std::env::args_os().nth(1).context("usage: conductor-played HOME")?;
    let features = std::env::var_os("CONDUCTOR_FEATURES").context("CONDUCTOR_FEATURES names no features")?;
    let ports = SimulatedPorts::new();
    ports.plug(CONTROLLER, Direction::Input);
    ports.plug(OTHER, Direction::Input);
    let builder = Conductor::builder().home(home).features(features).ports(ports.backend()).http(Some(0));
    let conductor = builder.host(|host| host.desktop(Box::new(|| Ok(Box::new(Printed))))).start()?;
    print("ready")?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let bytes = line.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<Vec<_>, _>>()?;
        anyhow::ensure!(ports.play(CONTROLLER, &bytes), "no binding has opened {CONTROLLER}");
    }
    conductor.stop();
    Ok(())
}

/// The parent process reads every line as it comes.
fn print(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// A desktop that prints what is done on it.
struct Printed;

impl Printed {
    fn done(&mut self, what: &str) -> Result<(), String> {
        print(what).map_err(|error| error.to_string())
    }
}

impl Desktop for Printed {
    fn key(&mut self, key: Key, down: bool) -> Result<(), String> {
        self.done(&format!("{} {key}", if down { "down" } else { "up" }))
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.done(&format!("text {text}"))
    }

    fn button(&mut self, button: MouseButton, down: bool) -> Result<(), String> {
        self.done(&format!("{} {button:?}", if down { "down" } else { "up" }))
    }

    fn point(&mut self, x: u16, y: u16) -> Result<(), String> {
        self.done(&format!("point {x} {y}"))
    }

    fn move_by(&mut self, x: i32, y: i32) -> Result<(), String> {
        self.done(&format!("move {x} {y}"))
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), String> {
        self.done(&format!("speed {} {}", speed.x, speed.y))
    }

    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String> {
        self.done(&format!("scroll {clicks} {axis:?}"))
    }

    fn gamepad_button(&mut self, button: u8, down: bool) -> Result<(), String> {
        self.done(&format!("{} gamepad {button}", if down { "down" } else { "up" }))
    }

    fn gamepad_axis(&mut self, axis: u8, value: i16) -> Result<(), String> {
        self.done(&format!("axis {axis} {value}"))
    }
}
