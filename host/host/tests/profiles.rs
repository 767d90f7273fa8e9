//! Profiles and the application in front in a whole host, on a desktop of one's own: conditions see it, the mode
//! goes with it and back, and what was held in a mode that is left comes up.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::time::{Duration, Instant};

use conductor_active_window::ActiveWindow;
use conductor_active_window::simulated::SimulatedActiveWindow;
use conductor_config as config;
use conductor_dispatch::desktop::recorded::Recording;
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::simulated::SimulatedPorts;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until it is so.
fn until(mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !so() {
        assert!(Instant::now() < deadline, "it never was so");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const SHOW: &str = r#"
    [[modes]]
    name = "Play"
    [[modes.mappings]]
    trigger = { type = "Note", note = 36 }
    action = { type = "Keystroke", keys = ["shift"], stroke = "hold" }
    [[modes]]
    name = "Mix"
    [[modes.mappings]]
    trigger = { type = "Note", note = 36 }
    action = { type = "Text", text = "mix" }
    [[modes]]
    name = "Write"
    [[global_mappings]]
    trigger = { type = "Note", note = 37 }
    condition = { type = "AppFrontmost", app = "surf" }
    action = { type = "Text", text = "surf" }
    [[profiles]]
    name = "Live"
    apps = ["live"]
    mode = "Mix"
    [[profiles]]
    name = "Songs"
    apps = ["surf"]
    title = "lyrics"
    mode = "Write"
"#;

struct Stage {
    ports: SimulatedPorts,
    front: SimulatedActiveWindow,
    desktop: Recording,
    host: Host,
}

impl Stage {
    fn new() -> Self {
        let (ports, front, desktop) = (SimulatedPorts::new(), SimulatedActiveWindow::new(), Recording::default());
        ports.plug("pads", Direction::Input);
        let loaded = config::parse(SHOW, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
        let builder = Host::builder().backend(ports.backend()).desktop(desktop.connect()).listen_to_all();
        let host = builder.active_window(front.watch()).start(&loaded).unwrap();
        Self { ports, front, desktop, host }
    }

    fn play(&self, bytes: [u8; 3]) {
        assert!(self.ports.play("pads", &bytes));
    }

    /// Waits for a mode.
    fn mode(&self, mode: &str) {
        until(|| self.host.status().mode.as_deref() == Some(mode));
    }

    fn reload(&self, text: &str) {
        self.host.reload(text, "c.toml").map_err(|wrong| wrong.to_string()).unwrap();
    }
}

// ENG-10: what a mode holds comes up when a profile leaves it.
#[test]
fn the_mode_goes_with_the_application_and_back() {
    let stage = Stage::new();
    stage.play([0x90, 36, 1]);
    until(|| stage.desktop.lines() == ["down shift"]);
    stage.front.application("Live", "song");
    stage.mode("Mix");
    until(|| stage.desktop.lines() == ["down shift", "up shift"]);
    stage.play([0x90, 36, 1]);
    until(|| stage.desktop.lines()[2..] == ["text mix"]);
    let status = stage.host.status();
    assert_eq!((status.front.as_deref(), status.front_unknown), (Some("Live"), None));
    assert_eq!(status.profiles.iter().filter(|profile| profile.applies).count(), 1);
    stage.front.put(ActiveWindow::Nothing);
    stage.mode("Play");
    stage.host.stop();
}

#[test]
fn a_mode_that_a_person_chose_stays_when_the_application_goes() {
    let stage = Stage::new();
    stage.front.application("live", "");
    stage.mode("Mix");
    stage.host.set_mode("Play");
    stage.mode("Play");
    stage.host.set_mode("Write");
    stage.mode("Write");
    stage.front.put(ActiveWindow::Nothing);
    until(|| stage.host.status().profiles.iter().all(|profile| !profile.applies));
    // All earlier inputs of the engine are done before this one.
    stage.front.application("surf", "Lyrics");
    until(|| stage.host.status().profiles.iter().any(|profile| profile.applies));
    stage.front.application("live", "");
    stage.mode("Mix");
    stage.front.put(ActiveWindow::Unknown("the desktop is gone".into()));
    stage.mode("Write");
    assert_eq!(stage.host.status().front_unknown.as_deref(), Some("the desktop is gone"));
    stage.host.stop();
}

// ENG-6: a condition uses the last active window that was reported.
#[test]
fn a_condition_sees_what_is_in_front() {
    let stage = Stage::new();
    stage.play([0x90, 37, 1]);
    stage.front.application("SURF", "news");
    until(|| stage.host.status().front.as_deref() == Some("SURF"));
    until(|| {
        stage.play([0x90, 37, 1]);
        !stage.desktop.lines().is_empty()
    });
    assert!(stage.desktop.lines().iter().all(|line| line == "text surf"));
    stage.host.stop();
}

#[test]
fn a_reload_looks_again_which_profile_applies() {
    let stage = Stage::new();
    stage.front.application("live", "");
    stage.mode("Mix");
    stage.reload(&SHOW.replace("mode = \"Mix\"", "mode = \"Write\""));
    stage.mode("Write");
    stage.reload(&SHOW.replace("apps = [\"live\"]", "apps = [\"dead\"]"));
    stage.mode("Play");
    stage.reload(SHOW);
    stage.mode("Mix");
    // The mode to go back to is gone: the first is active.
    stage.reload(&SHOW.replace("\"Play\"", "\"Perform\""));
    stage.front.put(ActiveWindow::Nothing);
    stage.mode("Perform");
    let wrong = stage.host.reload(&SHOW.replace("[\"surf\"]\n    title = \"lyrics\"", "[\"LIVE\"]"), "c.toml");
    let text = wrong.unwrap_err().render(false);
    assert!(text.contains(r#"the profile "Live" is for "LIVE" already"#), "{text}");
    stage.host.stop();
}
