//! A headless desktop: an X server without a screen, and a window that records its events.

use std::process::Command;

use crate::process::{Process, are_there};

/// A running X server (Xvfb) with one window (xev).
#[derive(Debug)]
pub struct Screen {
    display: String,
    window: Option<Process>,
    // Ended after the window.
    _server: Process,
}

impl Screen {
    /// Starts both; none, with a line that says why, where there is no Xvfb or no xev.
    pub fn start() -> Option<Self> {
        if !are_there(&["Xvfb", "xev", "stdbuf"]) {
            return None;
        }
        // It looks for a free display itself, and says which.
        let server = Process::start(Command::new("Xvfb").args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            "1024x768x24",
            "-nolisten",
            "tcp",
            "-noreset",
        ]));
        let number = server.out.find("the number of the display", |lines| lines.first().cloned());
        let mut screen = Self { display: format!(":{number}"), window: None, _server: server };
        // Without a window manager the keys go to the window under the pointer, which begins in the middle.
        let xev = ["-oL", "xev", "-display", &screen.display, "-geometry", "1024x768+0+0"];
        let window = Process::start(Command::new("stdbuf").args(xev).env("LC_ALL", "C.UTF-8"));
        window.out.line("MapNotify event");
        screen.window = Some(window);
        Some(screen)
    }

    /// What `DISPLAY` is for it.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Waits until so many keys and buttons have moved, and returns how: `+Shift_L` went down, `-a` up,
    /// `+button 1` is the left mouse button.
    ///
    /// # Panics
    /// When they do not come.
    pub fn strokes(&self, count: usize) -> Vec<String> {
        let window = self.window.as_ref().expect("started");
        window.out.find(&format!("{count} strokes"), |lines| Some(strokes(lines)).filter(|found| found.len() >= count))
    }

    /// Waits until the pointer is at such a place, and returns it: pixels from the left, and from the top.
    ///
    /// # Panics
    /// When it does not get there.
    pub fn pointer(&self, what: &str, is_there: impl Fn((i32, i32)) -> bool) -> (i32, i32) {
        let window = self.window.as_ref().expect("started");
        window.out.find(what, |lines| moved_to(lines).filter(|place| is_there(*place)))
    }
}

/// Where the pointer has moved to last, by what xev prints: two lines for each motion, the second one with the place.
fn moved_to(lines: &[String]) -> Option<(i32, i32)> {
    let motion = lines.windows(2).rfind(|pair| pair[0].starts_with("MotionNotify event"))?;
    let (x, y) = motion[1].split_once("root:(")?.1.split_once(')')?.0.split_once(',')?;
    Some((x.parse().ok()?, y.parse().ok()?))
}

/// The strokes in what xev prints: a line says what kind of event it is, and one below which key.
fn strokes(lines: &[String]) -> Vec<String> {
    let (mut found, mut way) = (Vec::new(), None);
    for line in lines {
        if let Some((event, _)) = line.split_once(" event, serial") {
            way = match event {
                "KeyPress" | "ButtonPress" => Some('+'),
                "KeyRelease" | "ButtonRelease" => Some('-'),
                _ => None,
            };
        }
        let Some(sign) = way else { continue };
        let key = line.split_once("(keysym ").and_then(|(_, rest)| rest.split_once(", ")?.1.split(')').next());
        let button = line.split_once(", button ").and_then(|(_, rest)| rest.split(',').next());
        if let Some(key) = key {
            found.push(format!("{sign}{key}"));
            way = None;
        } else if let Some(button) = button {
            found.push(format!("{sign}button {button}"));
            way = None;
        }
    }
    found
}
