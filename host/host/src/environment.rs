//! The environment for conditions: OS state (local time, running applications, the active window), pushed to the
//! engine.
//!
//! A thread of its own polls the first two every few seconds; it is notified of the third, and
//! then finds the profile that applies. The engine never asks the system; it reads the last snapshot.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Duration;

use chrono::{Datelike as _, Local, Timelike as _};
use conductor_engine::{Condition, Day, Environment, EnvironmentHandle, LocalTime, RuleSetHandle};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use conductor_active_window::{ActiveWindow, ActiveWindowWatch};
use conductor_dispatch::Action;
use conductor_ports::engine_input::Input;
use conductor_rules::profile::{Profile, applying};
use conductor_stdx::clock::Clock;
use conductor_stdx::doorbell;

/// How often the thread looks. The clock goes on by itself between; what it may miss for so long is that
/// the clock was set, that summer time began, and that an application was started or ended.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Keeps the environment up to date, until it is dropped.
pub struct EnvironmentMonitor {
    commands: Sender<Command>,
    seen: Arc<Mutex<EnvironmentView>>,
    /// The watch of the active window.
    _front: Mutex<Box<dyn Send>>,
}

/// Commands to the thread.
enum Command {
    ActiveWindow(ActiveWindow),
    Profiles(Vec<Arc<Profile>>),
    Stop,
}

/// The environment as status shows it.
#[derive(Debug, Clone)]
pub struct EnvironmentView {
    /// What is in front.
    pub active_window: ActiveWindow,
    /// The profiles there are.
    pub profiles: Vec<Arc<Profile>>,
    /// The one that applies.
    pub profile: Option<Arc<Profile>>,
}

impl std::fmt::Debug for EnvironmentMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EnvironmentMonitor").field("seen", &*self.lock()).finish_non_exhaustive()
    }
}

impl Drop for EnvironmentMonitor {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
    }
}

impl EnvironmentMonitor {
    fn lock(&self) -> MutexGuard<'_, EnvironmentView> {
        self.seen.lock()
    }

    /// What is known now of what is in front.
    pub fn seen(&self) -> EnvironmentView {
        self.lock().clone()
    }

    /// There are other profiles, and maybe other rules that ask for applications.
    pub fn set_profiles(&self, profiles: Vec<Arc<Profile>>) {
        let _ = self.commands.send(Command::Profiles(profiles));
    }
}

/// What the facts are made of and for.
#[derive(Debug)]
pub struct EnvironmentSources {
    /// Where they go.
    pub handle: Arc<EnvironmentHandle>,
    /// Whose conditions ask for them.
    pub rules: Arc<RuleSetHandle<Action>>,
    /// The clock of events.
    pub clock: Clock,
    /// The way to the engine, for profiles.
    pub queue: doorbell::Sender<Input>,
    /// The profiles there are.
    pub profiles: Vec<Arc<Profile>>,
}

/// Starts the monitor. The first snapshot is in place when this returns, but for the active window, which follows
/// as soon as it is known.
///
/// # Errors
/// When the system has no thread left.
pub fn start(of: EnvironmentSources, active_window: Box<dyn ActiveWindowWatch>) -> std::io::Result<EnvironmentMonitor> {
    let (commands, received) = crossbeam_channel::bounded(64);
    let unknown = ActiveWindow::Unknown("it is not known yet which application is in front".to_owned());
    let seen =
        Arc::new(Mutex::new(EnvironmentView { active_window: unknown, profiles: of.profiles.clone(), profile: None }));
    let mut watcher = Watcher { of, seen: Arc::clone(&seen), running: Vec::new() };
    watcher.look();
    std::thread::Builder::new().name("environment".into()).spawn(move || watcher.run(&received))?;
    let window_commands = commands.clone();
    let active_window = active_window
        .start(Box::new(move |active_window| drop(window_commands.send(Command::ActiveWindow(active_window)))));
    match active_window {
        Ok(active_window) => Ok(EnvironmentMonitor { commands, seen, _front: Mutex::new(active_window) }),
        Err(error) => {
            let _ = commands.send(Command::Stop);
            Err(error)
        }
    }
}

struct Watcher {
    of: EnvironmentSources,
    seen: Arc<Mutex<EnvironmentView>>,
    /// The applications that run, if a condition needs them.
    running: Vec<String>,
}

impl Watcher {
    fn run(mut self, received: &Receiver<Command>) {
        loop {
            match received.recv_timeout(POLL_INTERVAL) {
                // First what conditions see, then the mode in which they are asked.
                Ok(Command::ActiveWindow(active_window)) => {
                    self.lock().active_window = active_window;
                    self.push();
                    self.turn();
                }
                Ok(Command::Profiles(profiles)) => {
                    self.lock().profiles = profiles;
                    self.look();
                    self.turn();
                }
                Err(RecvTimeoutError::Timeout) => self.look(),
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, EnvironmentView> {
        self.seen.lock()
    }

    /// Looks which applications run, and pushes what is known.
    fn look(&mut self) {
        self.running = if asks_for_applications(&self.of.rules) { running() } else { Vec::new() };
        self.push();
    }

    fn push(&self) {
        let environment = environment(&self.running, &self.lock().active_window, self.of.clock);
        self.of.handle.set(environment);
    }

    /// Tells the engine where another profile applies.
    fn turn(&self) {
        let next = {
            let mut seen = self.lock();
            let next = applying(&seen.profiles, &seen.active_window).cloned();
            if next == seen.profile {
                return;
            }
            seen.profile.clone_from(&next);
            next
        };
        match &next {
            Some(profile) => tracing::info!("profile: {}, mode {}", profile.name, profile.mode),
            None => tracing::info!("profile: none"),
        }
        // Fails only while the host stops.
        let _ = self.of.queue.send(Input::Profile(next.map(|profile| Arc::clone(&profile.mode))));
    }
}

/// What the system says now, asked once.
pub fn now(clock: Clock) -> Environment {
    environment(&running(), &front_now(), clock)
}

fn environment(running: &[String], active_window: &ActiveWindow, clock: Clock) -> Environment {
    // One moment for both: a clock by hand may leap between two looks at it.
    let moment = clock.now();
    let wall = i64::try_from(clock.wall_at(moment)).unwrap_or(0);
    let local = chrono::DateTime::from_timestamp_millis(wall).unwrap_or_default();
    let local = local.with_timezone(&Local);
    let environment = Environment::unknown().running(running.iter().map(String::as_str)).local(LocalTime {
        moment,
        day: Day::Monday.after(local.weekday().num_days_from_monday().into()),
        second: local.num_seconds_from_midnight(),
    });
    match active_window {
        ActiveWindow::Application(application) => {
            application.names.iter().fold(environment, |environment, name| environment.frontmost(name))
        }
        ActiveWindow::Nothing | ActiveWindow::Unknown(_) => environment,
    }
}

/// What is in front: said within a second, or not at all.
fn front_now() -> ActiveWindow {
    let (commands, received) = crossbeam_channel::unbounded();
    let watch =
        conductor_active_window::system().start(Box::new(move |active_window| drop(commands.send(active_window))));
    let unknown = || ActiveWindow::Unknown("the desktop did not answer".to_owned());
    watch.ok().and_then(|_watch| received.recv_timeout(Duration::from_secs(1)).ok()).unwrap_or_else(unknown)
}

fn asks_for_applications(rules: &RuleSetHandle<Action>) -> bool {
    let mut asks = false;
    for condition in rules.load().rules().iter().flat_map(|rule| rule.conditions()) {
        condition.each(&mut |condition| asks |= matches!(condition, Condition::AppRunning(_)));
    }
    asks
}

/// The names of the programs that run.
#[cfg(target_os = "linux")]
fn running() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let name = |process: std::fs::DirEntry| {
        process.file_name().to_str()?.parse::<u32>().ok()?;
        conductor_active_window::names::program_name(&process.path())
    };
    let mut names: Vec<String> = processes.filter_map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Nothing is known of them here, so no `AppRunning` holds.
#[cfg(not(target_os = "linux"))]
fn running() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use conductor_engine::{
        AppName, Edge, EvalContext, InputState, NumberRange, RuleSource, RuleSpec, TimeRange, Trigger, ValueRange,
    };

    use super::*;
    use conductor_active_window::simulated::SimulatedActiveWindow;

    #[test]
    fn the_time_and_this_very_program_are_known() {
        let clock = Clock::start();
        let handle = Arc::new(EnvironmentHandle::new());
        let note = Trigger::Note {
            notes: NumberRange::ALL,
            velocity: ValueRange::SEVEN_BIT,
            edge: Edge::Press,
            channel: None,
        };
        let asks = RuleSpec {
            condition: Some(Condition::Not(Box::new(Condition::AppRunning(AppName::new("anything"))))),
            ..RuleSpec::new(note, Action::Suppress)
        };
        let rules = conductor_engine::compile(RuleSource { modes: Vec::new(), rules: vec![asks] }).unwrap();
        let (queue, _inputs) = conductor_ports::engine_input::queue();
        let rules = Arc::new(RuleSetHandle::new(rules));
        let of = EnvironmentSources { handle: Arc::clone(&handle), rules, clock, queue, profiles: Vec::new() };
        let _watch = start(of, SimulatedActiveWindow::new().watch()).unwrap();
        let environment = handle.load();
        let held = InputState::new();
        let holds = |condition: Condition| {
            condition.holds(&EvalContext { at: clock.now(), mode: None, environment: &environment, held: &held })
        };
        assert!(holds(Condition::TimeRange(TimeRange { from: 0, to: 86_400 })), "the time of day is known");
        if cfg!(target_os = "linux") {
            let program = std::env::current_exe().unwrap();
            let name = program.file_name().unwrap().to_str().unwrap();
            assert!(holds(Condition::AppRunning(AppName::new(name))), "{name} runs");
        }
        assert!(!holds(Condition::AppRunning(AppName::new("no such program"))));
    }
}
