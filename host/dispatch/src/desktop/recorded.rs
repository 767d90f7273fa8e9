//! A desktop that only records actions; for tests, and for trying a configuration out.

use parking_lot::Mutex;
use std::sync::Arc;

use super::{Connect, Desktop, Speed};
use conductor_config::{Axis, Key, MouseButton};

/// What was done, in the words of [`Recording::lines`]. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recording {
    /// A way to a desktop that is always there.
    pub fn connect(&self) -> Connect {
        let recording = self.clone();
        Box::new(move || Ok(Box::new(recording.clone())))
    }

    /// Everything that was done so far: `down cmd`, `up cmd`, `text hello`, `point 3 4`,
    /// `move 3 -4`, `speed 300 0`, `scroll 1 Vertical`, `down gamepad 128`, `axis 128 -32767`.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    fn put(&self, line: String) -> Result<(), String> {
        self.lines.lock().push(line);
        Ok(())
    }
}

fn way(down: bool) -> &'static str {
    if down { "down" } else { "up" }
}

impl Desktop for Recording {
    fn key(&mut self, key: Key, down: bool) -> Result<(), String> {
        self.put(format!("{} {key}", way(down)))
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.put(format!("text {text}"))
    }

    fn button(&mut self, button: MouseButton, down: bool) -> Result<(), String> {
        self.put(format!("{} {button:?}", way(down)))
    }

    fn point(&mut self, x: u16, y: u16) -> Result<(), String> {
        self.put(format!("point {x} {y}"))
    }

    fn move_by(&mut self, x: i32, y: i32) -> Result<(), String> {
        self.put(format!("move {x} {y}"))
    }

    fn set_speed(&mut self, speed: Speed) -> Result<(), String> {
        self.put(format!("speed {} {}", speed.x, speed.y))
    }

    fn scroll(&mut self, clicks: i32, axis: Axis) -> Result<(), String> {
        self.put(format!("scroll {clicks} {axis:?}"))
    }

    fn gamepad_button(&mut self, button: u8, down: bool) -> Result<(), String> {
        self.put(format!("{} gamepad {button}", way(down)))
    }

    fn gamepad_axis(&mut self, axis: u8, value: i16) -> Result<(), String> {
        self.put(format!("axis {axis} {value}"))
    }
}
