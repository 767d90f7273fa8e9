//! The application in front, on a real X server and on real Wayland compositors: what the host knows of it, and which
//! mode that makes active.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use conductor_tests::compositor::{KWin, Sway};
use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::osc::{Tablet, free_port};
use conductor_tests::screen::Screen;
use conductor_tests::wayland_window::WaylandWindow;
use conductor_tests::windows::WindowManager;
use serde_json::Value;

/// Three profiles, and what a tablet does while "Paint" is in front.
fn show(port: u16) -> String {
    format!(
        r#"
        [[bindings]]
        alias = "tablet"
        protocol = "osc"
        input = {{ port = {port} }}
        [[modes]]
        name = "Play"
        [[modes]]
        name = "Mix"
        [[modes]]
        name = "Write"
        [[modes]]
        name = "Draw"
        [[profiles]]
        name = "Live"
        apps = ["Ableton Live"]
        mode = "Mix"
        [[profiles]]
        name = "Songs"
        apps = ["browser"]
        title = "lyrics"
        mode = "Write"
        [[global_mappings]]
        trigger = {{ type = "OscMessage", address = "/draw" }}
        [global_mappings.action]
        type = "Conditional"
        condition = {{ type = "AppFrontmost", app = "paint" }}
        then = {{ type = "ModeChange", mode = "Draw" }}
        else = {{ type = "ModeChange", mode = "Play" }}
        "#
    )
}

/// A host that runs at this display.
fn run_at(home: &Home, display: &str) -> Host {
    let mut run = command(home.path(), &["run"]);
    run.env("DISPLAY", display).env_remove("WAYLAND_DISPLAY");
    Host::ready(&mut run, home.socket())
}

fn applying(status: &Value) -> Vec<&str> {
    let profiles = status["profiles"].as_array().unwrap().iter();
    profiles.filter(|profile| profile["applies"] == true).map(|profile| profile["name"].as_str().unwrap()).collect()
}

// ENG-6, CLI-1: the window that is active decides what is in front and which mode is active, by each of its names
// and by its title; conditions see the same.
#[test]
fn the_mode_goes_with_the_window_that_is_active() {
    let Some(screen) = Screen::start() else { return };
    let port = free_port();
    let home = Home::new(&show(port));
    let host = run_at(&home, screen.display());
    // There is no window manager yet.
    let (status, _) =
        host.status_when(|status| status["front_unknown"] == "no window manager tells which window is active");
    assert_eq!((status["mode"].as_str(), applying(&status).len()), (Some("Play"), 0));

    let manager = WindowManager::start(screen.display());
    host.status_when(|status| status["front_unknown"].is_null() && status["front"].is_null());
    let live = manager.window("live", "Ableton Live", "song.als");
    manager.activate(Some(live));
    let (status, _) = host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    assert_eq!(applying(&status), ["Live"]);

    // The browser is in front: at first with something else.
    let browser = manager.window("BROWSER", "Surf", "News");
    manager.activate(Some(browser));
    host.status_when(|status| status["front"] == "Surf" && status["mode"] == "Play");
    manager.retitle(browser, "All Lyrics – Surf");
    let (status, _) = host.status_when(|status| status["mode"] == "Write");
    assert_eq!(applying(&status), ["Songs"]);
    let list = home.conductor(&["profile", "list"]);
    let songs = list.out.lines().find(|line| line.starts_with("Songs ")).unwrap();
    assert_eq!(songs.split_whitespace().collect::<Vec<_>>(), ["Songs", "Write", "yes", "browser", "lyrics"]);
    assert!(list.out.ends_with("in front: Surf"), "{}", list.out);
    // It closes; the next active window is reported a moment later.
    manager.close(browser);
    manager.activate(None);
    host.status_when(|status| status["front"].is_null() && status["mode"] == "Play");

    // A condition knows a window by its instance, too.
    let tablet = Tablet::to(port);
    let paint = manager.window("paint", "Gallery", "");
    manager.activate(Some(paint));
    host.status_when(|status| status["front"] == "Gallery");
    tablet.send("/draw", []);
    host.status_when(|status| status["mode"] == "Draw");
    manager.activate(Some(live));
    host.status_when(|status| status["mode"] == "Mix");
    manager.activate(None);
    host.status_when(|status| status["mode"] == "Draw");
    tablet.send("/draw", []);
    host.status_when(|status| status["mode"] == "Play");
    assert_eq!(host.stop().0.code, Some(0));
}

// ENG-6: by the program's name, too, where the window says its process and the machine is this one.
#[test]
fn a_window_goes_by_the_name_of_its_program() {
    let Some(screen) = Screen::start() else { return };
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    let home = Home::new(&format!(
        "[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Test'\n\
         [[profiles]]\nname = 'Tests'\napps = ['{program}']\nmode = 'Test'\n"
    ));
    let manager = WindowManager::start(screen.display());
    manager.activate(Some(manager.window("", "", "")));
    let host = run_at(&home, screen.display());
    host.status_when(|status| status["front"] == program && status["mode"] == "Test");
    // A configuration without the profile: the mode from before.
    home.configure("[[modes]]\nname = 'Play'\n[[modes]]\nname = 'Test'\n");
    host.status_when(|status| status["profiles"].as_array().unwrap().is_empty() && status["mode"] == "Play");
    assert_eq!(host.stop().0.code, Some(0));
}

// ENG-6: under Wayland the compositor reports every application, by its id and its title; one that goes away is
// looked for again, and takes nothing with it.
#[test]
fn the_mode_goes_with_the_window_that_sway_has_in_front() {
    let Some(sway) = Sway::start() else { return };
    let home = Home::new(&show(free_port()));
    let mut run = command(home.path(), &["run"]);
    let host = Host::ready(run.env("WAYLAND_DISPLAY", sway.display()).env_remove("DISPLAY"), home.socket());
    host.status_when(|status| status["front_unknown"].is_null() && status["front"].is_null());

    let live = WaylandWindow::open(sway.display(), "Ableton Live", "song.als");
    let (status, _) = host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    assert_eq!(applying(&status), ["Live"]);
    let browser = WaylandWindow::open(sway.display(), "org.example.Browser", "All Lyrics");
    host.status_when(|status| status["front"] == "Browser" && status["mode"] == "Write");
    sway.focus("Ableton Live");
    host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    drop(live);
    host.status_when(|status| status["front"] == "Browser" && status["mode"] == "Write");
    drop(browser);
    host.status_when(|status| status["front"].is_null() && status["mode"] == "Play");

    drop(sway);
    let (status, _) = host.status_when(|status| status["front_unknown"].is_string());
    let said = status["front_unknown"].as_str().unwrap();
    assert!(said.starts_with("no Wayland compositor reports which application is in front: "), "{said}");
    assert_eq!(host.stop().0.code, Some(0));
}

// ENG-6: under KDE, too, whose compositor tells it to a script of ours, which goes when the host does, and comes back
// when the compositor does.
#[test]
fn the_mode_goes_with_the_window_that_kde_has_in_front() {
    let (Some(mut kwin), Some(screen)) = (KWin::start(), Screen::start()) else { return };
    let home = Home::new(&show(free_port()));
    let mut run = command(home.path(), &["run"]);
    kwin.bus().around(&mut run).env("WAYLAND_DISPLAY", kwin.display()).env("DISPLAY", screen.display());
    let host = Host::ready(&mut run, home.socket());
    host.status_when(|status| status["front_unknown"].is_null() && status["front"].is_null());
    let script = format!("conductor-active-window-{}", host.id());
    assert!(kwin.has_script(&script));

    let live = WaylandWindow::open(kwin.display(), "Ableton Live", "song.als");
    let (status, _) = host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    assert_eq!(applying(&status), ["Live"]);
    let browser = WaylandWindow::open(kwin.display(), "org.example.Browser", "News");
    host.status_when(|status| status["front"] == "Browser" && status["mode"] == "Play");
    browser.retitle("All Lyrics");
    host.status_when(|status| status["front"] == "Browser" && status["mode"] == "Write");
    // What another program on the bus says is nothing to go by.
    let lies = ["Ableton Live", "", "", "song.als", ""];
    let told = kwin.bus().connections(host.id()).into_iter();
    let told: Vec<_> =
        told.map(|it| kwin.bus().call(&it, "/front", "org.conductor.ActiveWindow.IsInFront", &lies)).collect();
    assert!(told.iter().any(|answer| matches!(answer, Err(why) if why.contains("AccessDenied"))), "{told:?}");
    let status = host.status();
    assert_eq!((status["front"].as_str(), status["mode"].as_str()), (Some("Browser"), Some("Write")));
    drop(browser);
    host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    drop(live);
    host.status_when(|status| status["front"].is_null() && status["mode"] == "Play");

    assert_eq!(host.stop().0.code, Some(0));
    assert!(!kwin.has_script(&script));

    let host = Host::ready(&mut run, home.socket());
    host.status_when(|status| status["front_unknown"].is_null());
    kwin.kill();
    let (status, _) = host.status_when(|status| status["front_unknown"].is_string());
    let said = status["front_unknown"].as_str().unwrap();
    assert!(said.ends_with("KWin does not report which application is in front: it has ended"), "{said}");
    // It is asked again, although the X server could be asked meanwhile, which knows less.
    kwin.start_again();
    let _live = WaylandWindow::open(kwin.display(), "Ableton Live", "song.als");
    host.status_when(|status| status["front"] == "Ableton Live" && status["mode"] == "Mix");
    assert_eq!(host.stop().0.code, Some(0));
}

// ENG-6: where it is not known what is in front, that is said; a display that goes away takes nothing with it.
#[test]
fn what_is_not_known_is_said() {
    let Some(screen) = Screen::start() else { return };
    let home = Home::new(&show(free_port()));
    let host = run_at(&home, screen.display());
    let manager = WindowManager::start(screen.display());
    manager.activate(Some(manager.window("live", "Ableton Live", "")));
    host.status_when(|status| status["mode"] == "Mix");
    drop(manager);
    drop(screen);
    let (status, _) = host.status_when(|status| status["front_unknown"].is_string() && status["mode"] == "Play");
    let said = status["front_unknown"].as_str().unwrap();
    assert!(said.starts_with("no X display reports which application is in front: "), "{said}");
    assert_eq!(host.stop().0.code, Some(0));

    let mut run = command(home.path(), &["run"]);
    let host = Host::ready(run.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY"), home.socket());
    let (status, _) =
        host.status_when(|status| status["front_unknown"] != "it is not known yet which application is in front");
    let said = status["front_unknown"].as_str().unwrap();
    assert!(said.starts_with("there is no desktop (neither DISPLAY nor WAYLAND_DISPLAY is set)"), "{said}");
    let list = home.conductor(&["profile", "list"]);
    assert!(list.out.contains("in front: not known: there is no desktop"), "{}", list.out);
    assert_eq!(host.stop().0.code, Some(0));
    // Without a host the configuration is shown.
    let show = home.conductor(&["profile", "show", "Songs"]);
    assert_eq!(show.out, "profile       Songs\nmode          Write\napplications  browser\ntitle         lyrics");
    let wrong = home.conductor(&["profile", "show", "Song"]);
    assert_eq!((wrong.code, wrong.err.contains("did you mean \"Songs\"?")), (Some(2), true), "{}", wrong.err);
}
