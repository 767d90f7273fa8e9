//! Scripts: the scheduler of multi-step actions (sequences, repeats, delays).
//!
//! They are compiled into a list of [`Step`]s. One thread runs all of them by a queue of deadlines, a few
//! steps at a time, and hands their actions to the workers as the engine thread does, without waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_event::{DeviceEvent, Event, Nanos};
use conductor_observer::{Observation, Observer};
use conductor_scheduling::timer_slack;
use conductor_stdx::pace::CARRY_BUDGET;
use conductor_variables::{Key, Variable};

use super::ledger::{Owner, Release};
use super::queue::{Inbox, Job, Next, Queue};
use super::releases::Releases;
use super::{Action, Envelope, Reason, WorkerCounters};

/// Scripts that run at once.
pub const MAX_RUNNING: usize = 256;
/// Steps of one script.
pub const MAX_STEPS: usize = 4096;
/// Repetitions in repetitions.
pub const MAX_DEPTH: usize = 8;
/// Steps that one run of a script takes, with all its repetitions.
pub const MAX_WORK: u64 = 1_000_000;
/// Steps that a script takes before others have their turn.
const BURST: usize = 64;

/// One step of a script.
#[derive(Debug, Clone)]
pub enum Step {
    /// Have a worker do something.
    Do(Action),
    /// Wait.
    Wait(Duration),
    /// Wait for this many beats, by the tempo that this variable holds then.
    WaitBeats {
        /// How many.
        beats: f64,
        /// Beats per minute.
        tempo: Variable,
    },
    /// Go back to the step `to`, after a pause, until the steps since there were done this many times.
    Again {
        /// Which counter: how many repetitions are around this one, 0 to [`MAX_DEPTH`] - 1.
        counter: usize,
        /// Where the repetition begins.
        to: usize,
        /// How many times in all, at least 1.
        times: u16,
        /// How long to wait before each time but the first.
        pause: Duration,
    },
    /// Go on at the step `to`, which comes later, unless the condition of this choice held when the rule fired.
    Unless {
        /// The number of the choice.
        choice: usize,
        /// Where what is done otherwise begins.
        to: usize,
    },
    /// Go on at the step `to`, which comes later.
    Skip {
        /// Where to go on.
        to: usize,
    },
}

/// What a composite action does, step by step.
#[derive(Debug, Clone)]
pub struct Script {
    /// What it is, for people.
    pub name: Box<str>,
    /// The steps.
    pub steps: Box<[Step]>,
    /// Whether another mode ends it.
    pub cancel_on_mode_change: bool,
    /// Whether other rules end it.
    pub cancel_on_reload: bool,
}

impl Script {
    /// What it is and what it does, for people: `Sequence (Keystroke cmd+c, Shell say)`.
    pub fn describe(&self) -> String {
        const MAX_DESCRIBED: usize = 4;
        let actions = self.steps.iter().filter_map(|step| match step {
            Step::Do(action) => Some(action.describe().into_owned()),
            _ => None,
        });
        let mut parts: Vec<String> = actions.take(MAX_DESCRIBED + 1).collect();
        if parts.len() > MAX_DESCRIBED {
            parts[MAX_DESCRIBED] = "...".to_owned();
        }
        if parts.is_empty() { self.name.to_string() } else { format!("{} ({})", self.name, parts.join(", ")) }
    }

    /// How many steps one run takes at most, with all repetitions.
    pub fn work(&self) -> u64 {
        // From the innermost repetition outwards, what a repetition repeats counts as often.
        let mut counts = vec![1_u64; self.steps.len()];
        for (end, step) in self.steps.iter().enumerate() {
            if let Step::Again { to, times, .. } = *step {
                counts[to..=end].iter_mut().for_each(|count| *count = count.saturating_mul(times.into()));
            }
        }
        counts.into_iter().fold(0, u64::saturating_add)
    }
}

/// The way to the thread. Clones share it.
pub type ScriptQueue = Queue<(Envelope, Arc<Script>)>;

impl Job for (Envelope, Arc<Script>) {
    fn may_switch_off(&self) -> bool {
        false
    }
}

/// How a script makes another mode active.
pub type ChangeMode = Box<dyn Fn(ToEngine) -> Result<(), Reason> + Send>;

/// What a script asks of the engine.
#[derive(Debug)]
pub enum ToEngine {
    /// Another mode.
    Mode(Arc<str>),
    /// That a variable has changed.
    Changed(Nanos, DeviceEvent<Event>),
}

/// Starts the thread. `holders` are the workers that hold things for scripts.
///
/// # Errors
/// When the system has no thread left.
pub fn start(
    change_mode: ChangeMode,
    holders: Releases,
    observer: Observer,
) -> std::io::Result<(ScriptQueue, JoinHandle<()>)> {
    let (queue, inbox) = Queue::new("scripts");
    let runner = Runner {
        name: Arc::clone(queue.name()),
        counters: Arc::clone(queue.counters()),
        observer,
        change_mode,
        holders,
        runs: Runs::default(),
    };
    let thread = std::thread::Builder::new().name("scripts".into()).spawn(move || {
        timer_slack::remove();
        runner.run(inbox);
    })?;
    Ok((queue, thread))
}

/// A script that runs.
struct Run {
    due: Instant,
    /// Which of those that are due at the same time goes first.
    turn: u64,
    envelope: Envelope,
    script: Arc<Script>,
    next: usize,
    counters: [u16; MAX_DEPTH],
}

impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl Eq for Run {}

impl PartialOrd for Run {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Run {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.turn).cmp(&(other.due, other.turn))
    }
}

/// The scripts that run, by when they go on. It has no clock and does nothing itself: a thread's time moves it, or that
/// of a rehearsal.
#[derive(Default)]
pub struct Runs {
    /// The earliest first.
    runs: BinaryHeap<Reverse<Run>>,
    begun: u64,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("runs", &self.runs.len()).finish_non_exhaustive()
    }
}

impl Runs {
    /// When one of them goes on; `None` if none runs.
    pub fn due(&self) -> Option<Instant> {
        self.runs.peek().map(|Reverse(run)| run.due)
    }

    /// Whether there is no room for another one.
    pub fn are_full(&self) -> bool {
        self.runs.len() >= MAX_RUNNING
    }

    /// Begins a script, whose first step is due at `now`. The caller sees that there is room.
    pub fn begin(&mut self, envelope: Envelope, script: Arc<Script>, now: Instant) {
        self.begun += 1;
        let run = Run { due: now, turn: self.begun, envelope, script, next: 0, counters: [0; MAX_DEPTH] };
        self.runs.push(Reverse(run));
    }

    /// Has the script that is due do what it does until its next pause, by `perform`. True if it has ended. What has much
    /// to do goes on behind those that are due by `now`.
    pub fn go_on(&mut self, now: impl FnOnce() -> Instant, mut perform: impl FnMut(&Action, &Envelope)) -> bool {
        let Some(Reverse(mut run)) = self.runs.pop() else { return false };
        for _ in 0..BURST {
            let Some(step) = run.script.steps.get(run.next) else { return true };
            run.next += 1;
            let pause = match step {
                Step::Do(action) => {
                    perform(action, &run.envelope);
                    continue;
                }
                Step::Wait(pause) => *pause,
                Step::WaitBeats { beats, tempo } => {
                    let seconds = beats * 60.0 / tempo.get(Key::EVERYONE);
                    Duration::try_from_secs_f64(seconds).unwrap_or_default()
                }
                Step::Unless { choice, to } => {
                    if !run.envelope.answers.holds(*choice) {
                        run.next = *to;
                    }
                    continue;
                }
                Step::Skip { to } => {
                    run.next = *to;
                    continue;
                }
                Step::Again { counter, to, times, pause } => {
                    run.counters[*counter] += 1;
                    if run.counters[*counter] >= *times {
                        run.counters[*counter] = 0;
                        continue;
                    }
                    run.next = *to;
                    *pause
                }
            };
            if !pause.is_zero() {
                // From when it was due, not from now: delays don't add up their lateness.
                run.due += pause;
                self.runs.push(Reverse(run));
                return false;
            }
        }
        self.begun += 1;
        (run.due, run.turn) = (now(), self.begun);
        self.runs.push(Reverse(run));
        false
    }

    /// Ends the scripts whose owner goes, and returns the owners of what they have switched on.
    pub fn release(&mut self, release: &Release) -> Vec<Owner> {
        match release {
            Release::Mode(active) => {
                let ended = self.cancel(|script| script.cancel_on_mode_change);
                // What goes on outlives its mode: what it switches on from now on belongs to none.
                let mut runs = std::mem::take(&mut self.runs).into_vec();
                for Reverse(run) in &mut runs {
                    if run.envelope.mode.is_some_and(|mode| mode != *active) {
                        run.envelope.mode = None;
                    }
                }
                self.runs = runs.into();
                ended
            }
            Release::Rules(_) => self.cancel(|script| script.cancel_on_reload),
            Release::Device(_) | Release::Owner(_) => Vec::new(),
        }
    }

    /// Ends the scripts that are to be ended, and returns the owners of what they have switched on.
    fn cancel(&mut self, ends: impl Fn(&Script) -> bool) -> Vec<Owner> {
        let mut runs = std::mem::take(&mut self.runs).into_vec();
        let ended = runs.extract_if(.., |Reverse(run)| ends(&run.script));
        let ended = ended.map(|Reverse(run)| Owner::from(&run.envelope)).collect();
        self.runs = runs.into();
        ended
    }
}

struct Runner {
    name: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    change_mode: ChangeMode,
    holders: Releases,
    runs: Runs,
}

impl Runner {
    fn run(mut self, mut inbox: Inbox<(Envelope, Arc<Script>)>) {
        loop {
            match inbox.next(self.runs.due()) {
                Next::Job((envelope, _)) if self.runs.are_full() => {
                    self.failed(&envelope, &self.name, Reason::TooMany(MAX_RUNNING));
                }
                Next::Job((envelope, script)) => self.runs.begin(envelope, script, Instant::now()),
                Next::Timeout => self.go_on(),
                Next::Release(release) => {
                    let ended = self.runs.release(&release);
                    self.let_go(ended);
                }
                // It is unknown which one was missed: it may have been either.
                Next::ReleaseAll => {
                    let ended = self.runs.cancel(|script| script.cancel_on_mode_change || script.cancel_on_reload);
                    self.let_go(ended);
                }
                Next::Command(()) | Next::Look => {}
                Next::Stop => return,
            }
        }
    }

    fn go_on(&mut self) {
        let mut runs = std::mem::take(&mut self.runs);
        if runs.go_on(Instant::now, |action, envelope| self.perform(action, envelope)) {
            self.counters.done.fetch_add(1, Ordering::Relaxed);
        }
        self.runs = runs;
    }

    fn perform(&self, action: &Action, envelope: &Envelope) {
        let result = match action {
            Action::ModeChange { mode } => {
                (self.change_mode)(ToEngine::Mode(Arc::clone(mode))).map_err(|reason| (&self.name, reason))
            }
            Action::Variable(action) => match action.perform(envelope.at, &envelope.device, &envelope.numbers()) {
                Some(changed) => {
                    (self.change_mode)(ToEngine::Changed(envelope.at, changed)).map_err(|reason| (&self.name, reason))
                }
                None => Ok(()),
            },
            action => {
                action.hand_over(|| envelope.clone(), &mut |feature| feature.carry(Instant::now() + CARRY_BUDGET))
            }
        };
        if let Err((worker, reason)) = result {
            self.failed(envelope, worker, reason);
        }
    }

    fn failed(&self, envelope: &Envelope, worker: &Arc<str>, reason: Reason) {
        self.counters.failure(&reason);
        self.observer.put(Observation::Failure(envelope.failure(worker, reason)));
    }

    /// Has what scripts that were ended have switched on go off.
    fn let_go(&self, owners: Vec<Owner>) {
        owners.into_iter().for_each(|owner| self.holders.notify(&Release::Owner(owner)));
    }
}

#[cfg(test)]
mod tests {
    use conductor_event::{Answers, DeviceId, MidiMessage, ModeIx, RuleId};
    use crossbeam_channel::Receiver;

    use super::*;
    use crate::desktop::{self, DesktopAction, recorded::Recording};
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);
    const LONG: Duration = Duration::from_secs(3600);

    struct Stage {
        scripts: ScriptQueue,
        desktop: desktop::DesktopQueue,
        recording: Recording,
        modes: Receiver<Arc<str>>,
        observations: Receiver<Observation>,
    }

    impl Stage {
        fn new() -> Self {
            let (_, said) = SinkQueue::new();
            let (observer, observed, _) = observer::start(said, None).unwrap();
            let observations = observed.subscribe();
            let (recording, holders) = (Recording::default(), Releases::default());
            let (desktop, _) = desktop::start(recording.connect(), observer.clone()).unwrap();
            holders.add(Arc::new(desktop.clone()));
            // Without room: a script that changes the mode goes on when the test looks.
            let (changed, modes) = crossbeam_channel::bounded(0);
            let change_mode = move |to_engine| match to_engine {
                ToEngine::Mode(mode) => changed.send(mode).map_err(|_| Reason::Gone),
                ToEngine::Changed(..) => Ok(()),
            };
            let (scripts, _) = start(Box::new(change_mode), holders, observer).unwrap();
            Self { scripts, desktop, recording, modes, observations }
        }

        fn types(&self, text: &str) -> Step {
            self.act(DesktopAction::Text(text.into()))
        }

        fn presses(&self, key: &str) -> Step {
            let keystroke = toml::from_str(&format!("keys = ['{key}']\nstroke = 'press'")).unwrap();
            self.act(DesktopAction::Keystroke(keystroke))
        }

        fn act(&self, action: DesktopAction) -> Step {
            Step::Do(Action::Desktop { queue: self.desktop.clone(), action: Arc::new(action) })
        }

        fn begin(&self, steps: Vec<Step>, cancel: bool) {
            let script = script(steps, cancel);
            self.scripts.try_put((envelope(), Arc::new(script))).unwrap();
        }

        /// Waits until this many things were done, and returns them.
        fn lines(&self, count: usize) -> Vec<String> {
            let deadline = Instant::now() + TEST_TIMEOUT;
            loop {
                let lines = self.recording.lines();
                if lines.len() >= count {
                    return lines;
                }
                assert!(Instant::now() < deadline, "only {lines:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn script(steps: Vec<Step>, cancel: bool) -> Script {
        Script { name: "Sequence".into(), steps: steps.into(), cancel_on_mode_change: cancel, cancel_on_reload: cancel }
    }

    fn envelope() -> Envelope {
        Envelope {
            at: 0,
            device: DeviceId::new("pads"),
            event: MidiMessage::NoteOn { channel: 9, note: 39, velocity: 64 }.into(),
            position: 0,
            pattern: None,
            answers: Answers::default(),
            rule: RuleId(0),
            generation: 0,
            mode: None,
            tries: None,
        }
    }

    fn again(counter: usize, to: usize, times: u16) -> Step {
        Step::Again { counter, to, times, pause: Duration::ZERO }
    }

    #[test]
    fn steps_come_in_order_and_repetitions_nest() {
        let stage = Stage::new();
        let (a, b, c) = (stage.types("a"), stage.types("b"), stage.types("c"));
        let pause = Step::Wait(Duration::from_millis(1));
        stage.begin(vec![a, b, again(1, 1, 2), pause, again(0, 0, 2), c], false);
        let lines = stage.lines(7);
        assert_eq!(lines.concat(), "text atext btext btext atext btext btext c");
    }

    // ACT-1: what was true when the rule fired decides, each time that a step comes to it.
    #[test]
    fn steps_are_left_out_as_the_rule_has_decided() {
        let stage = Stage::new();
        let begin = |answers: [bool; 2]| {
            let types = |text| stage.types(text);
            let steps = vec![
                types("a"),
                Step::Unless { choice: 0, to: 4 },
                types("b"),
                Step::Skip { to: 5 },
                types("c"),
                Step::Unless { choice: 1, to: 7 },
                types("d"),
                again(0, 1, 2),
                types("e"),
            ];
            let envelope = Envelope { answers: answers.into_iter().collect(), ..envelope() };
            stage.scripts.try_put((envelope, Arc::new(script(steps, false)))).unwrap();
        };
        begin([true, false]);
        assert_eq!(stage.lines(4).concat(), "text atext btext btext e");
        begin([false, true]);
        assert_eq!(stage.lines(10)[4..].concat(), "text atext ctext dtext ctext dtext e");
    }

    #[test]
    fn work_counts_repetitions_of_repetitions() {
        let stage = Stage::new();
        let steps = vec![stage.types("a"), stage.types("b"), again(1, 1, 3), again(0, 0, 100), stage.types("c")];
        assert_eq!(script(steps, false).work(), 100 + 300 + 300 + 100 + 1);
        let deep = vec![
            Step::Wait(LONG),
            again(7, 0, u16::MAX),
            again(6, 0, u16::MAX),
            again(5, 0, u16::MAX),
            again(4, 0, u16::MAX),
            again(3, 0, u16::MAX),
        ];
        assert_eq!(script(deep, false).work(), u64::MAX);
    }

    // ACT-1: one that waits holds up no other, and neither does one that does much.
    #[test]
    fn a_script_that_waits_holds_up_no_other() {
        let stage = Stage::new();
        let mode = |name: &str| Step::Do(Action::ModeChange { mode: name.into() });
        stage.begin(vec![Step::Wait(LONG), mode("never")], false);
        stage.begin(vec![mode("busy"), again(0, 0, u16::MAX)], false);
        let next = || stage.modes.recv_timeout(TEST_TIMEOUT).unwrap();
        assert_eq!(&*next(), "busy");
        stage.begin(vec![mode("other")], false);
        let before = (0..).take_while(|_| &*next() == "busy").count();
        assert!(before <= 2 * BURST, "{before}");
    }

    // ENG-10: what a script has switched on goes off with it.
    #[test]
    fn a_script_is_called_off_with_what_it_holds() {
        let stage = Stage::new();
        let steps = |key| vec![stage.presses(key), Step::Wait(LONG), stage.types("never")];
        stage.begin(steps("x"), false);
        stage.lines(1);
        use crate::queue::ReleaseListener as _;
        stage.scripts.release(&Release::Mode(ModeIx(0)));
        stage.begin(steps("y"), true);
        stage.lines(2);
        stage.scripts.release(&Release::Rules(1));
        // The same rule holds both, so both go.
        let mut lines = stage.lines(4);
        lines[2..].sort();
        assert_eq!(lines, ["down x", "down y", "up x", "up y"]);
    }

    #[test]
    fn more_than_can_run_fail_and_say_so() {
        let stage = Stage::new();
        for _ in 0..=MAX_RUNNING {
            stage.begin(vec![Step::Wait(LONG)], false);
        }
        match stage.observations.recv_timeout(TEST_TIMEOUT).unwrap() {
            Observation::Failure(failure) => assert_eq!(failure.reason, Reason::TooMany(MAX_RUNNING)),
            other => panic!("{other:?}"),
        }
    }
}
