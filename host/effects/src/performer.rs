//! Performs the actions of rules on recorded sinks, in the time of a script.
//!
//! Each action is waited for before the next one, so that what went out is known to be its. Nothing waits for time: the
//! clock that features see, and that scripts go by, is moved by hand.

use std::any::Any;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_dispatch::desktop::DesktopQueue;
use conductor_dispatch::feature_worker::FeatureWorker;
use conductor_dispatch::ledger::Release;
use conductor_dispatch::midi_out::{MidiJob, MidiQueue};
use conductor_dispatch::queue::Queue;
use conductor_dispatch::script::{MAX_RUNNING, Runs, Script};
use conductor_dispatch::workers::Workers;
use conductor_dispatch::{Action, Envelope, Reason, WorkerCounters};
use conductor_engine::Firing;
use conductor_event::{DeviceEvent, DeviceId, Event, ModeIx, Nanos, RuleId};
use conductor_stdx::clock::{Clock, ManualClock};
use conductor_timeline::Effect;
use conductor_timeline::player::{Performer, Request, Sent};

use crate::Recorder;

/// How long one action may take before it counts as failed.
const ACTION_TIMEOUT: Duration = Duration::from_secs(20);

/// Performs actions on recorded sinks.
pub struct RecordedActions {
    workers: Workers,
    recorder: Recorder,
    clock: Clock,
    hand: ManualClock,
    /// The moment that stands for the time 0.
    start: Instant,
    runs: Runs,
    /// Scripts that were handed over and have not begun.
    begun: Vec<(Envelope, Arc<Script>)>,
    /// The features that have performed, and when their next pending calls are due.
    features: Vec<(FeatureWorker, Option<Nanos>)>,
    desktop: Option<DesktopQueue>,
    requests: Vec<Request>,
    sent: Vec<Sent>,
    /// Steps of scripts that may still be performed.
    steps_left: u64,
    /// Steps that were not performed, for want of those.
    left_out: u64,
    _features: Box<dyn Any>,
}

impl std::fmt::Debug for RecordedActions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordedActions").field("now", &self.clock.now()).finish_non_exhaustive()
    }
}

impl RecordedActions {
    /// Performs what rules hand over to `workers`, which are [rehearsing](Workers::rehearsing), and whose sinks are those of
    /// `recorder`. What has gone out so far, such as the first lights, is forgotten. `hand` moves the clock of the features
    /// that belong to it; it stands at 0. `features` is what has to be kept so that they go on performing.
    pub fn new(workers: Workers, recorder: Recorder, clock: Clock, hand: ManualClock, features: Box<dyn Any>) -> Self {
        let performer = Self {
            workers,
            recorder,
            clock,
            hand,
            start: Instant::now(),
            runs: Runs::default(),
            begun: Vec::new(),
            features: Vec::new(),
            desktop: None,
            requests: Vec::new(),
            sent: Vec::new(),
            steps_left: u64::MAX,
            left_out: 0,
            _features: features,
        };
        performer.workers.outputs.queues().iter().for_each(settle);
        performer.recorder.take();
        performer
    }

    /// Notes datagrams as their bytes from now on, whatever these say.
    pub fn keep_bytes(&self) {
        self.recorder.keep_bytes();
    }

    /// Performs at most so many steps of scripts from now on: a script may have a million of them at one time.
    pub fn limit_steps(&mut self, steps: u64) {
        self.steps_left = steps;
    }

    /// How many steps were not performed, because there were more than the limit.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn moment(&self, at: Nanos) -> Instant {
        self.start + Duration::from_nanos(at)
    }

    fn move_to(&self, at: Nanos) {
        let by = at.saturating_sub(self.clock.now());
        if by > 0 {
            self.hand.advance(Duration::from_nanos(by));
        }
    }

    /// Notes what went out since the last call, as asked for by this rule.
    fn note(&mut self, rule: Option<RuleId>) {
        let at = self.clock.now();
        self.sent.extend(self.recorder.take().into_iter().map(|effect| Sent { at, rule, effect }));
    }

    fn failed(&self, worker: &str, reason: &Reason) {
        self.recorder.put(Effect::Failed { worker: worker.to_owned(), reason: reason.to_string() });
    }

    /// Performs an action and waits for its end.
    fn perform(&mut self, action: &Action, envelope: &Envelope) {
        match action {
            Action::Conditional { .. } => self.perform(action.chosen(envelope.answers, &envelope.event), envelope),
            Action::Shown { queue, feedback, action } => {
                let light = MidiJob::Light(envelope.clone(), Arc::clone(feedback));
                self.wait_for(queue, || queue.try_put(light));
                self.perform(action, envelope);
            }
            Action::LightEnd { queue, feedback, mode } => {
                let light = MidiJob::Light(Envelope { mode: *mode, ..envelope.clone() }, Arc::clone(feedback));
                self.wait_for(queue, || queue.try_put(light));
            }
            Action::Retried { action, .. } => self.perform(action, envelope),
            Action::Feature(prepared) => {
                let worker = prepared.worker();
                let before = Failures::of(worker.counters());
                let settled = prepared.put(envelope.clone()).and_then(|()| worker.settle(ACTION_TIMEOUT));
                if let Some(reason) = before.reason_since(worker.counters()) {
                    self.failed(prepared.feature(), &reason);
                }
                match settled {
                    Ok(due) => self.learn_due(worker, due),
                    Err(reason) => self.failed(prepared.feature(), &reason),
                }
            }
            Action::SendMidi { queue, .. } | Action::MidiForward { queue, .. } => {
                self.wait_for(queue, || hand_over(action, envelope));
            }
            Action::Desktop { queue, .. } => {
                self.desktop.get_or_insert_with(|| queue.clone());
                self.wait_for(queue, || hand_over(action, envelope));
            }
            Action::Process { action, .. } => self.recorder.put(Effect::Program(action.command_line(envelope))),
            Action::Script { script, .. } => self.begun.push((envelope.clone(), Arc::clone(script))),
            // The rule does these at once.
            Action::Variable(_) | Action::ModeChange { .. } | Action::Suppress => {}
            Action::Missing { name, reason } => self.failed(name, &Reason::Missing(Arc::clone(reason))),
        }
    }

    /// Performs a step of a script: the engine is asked for what a rule would do at once.
    fn step(&mut self, action: &Action, envelope: &Envelope) {
        let Some(left) = self.steps_left.checked_sub(1) else {
            self.left_out += 1;
            return;
        };
        self.steps_left = left;
        match action {
            Action::Variable(action) => {
                let changed = action.perform(envelope.at, &envelope.device, &envelope.numbers());
                self.requests.extend(changed.map(Request::Event));
            }
            Action::ModeChange { mode } => self.requests.push(Request::Mode(Arc::clone(mode))),
            action => self.perform(action, envelope),
        }
    }

    /// Has a job put into the queue of a worker, and waits until it is done.
    fn wait_for<J, O>(&self, queue: &Queue<J, O>, put: impl FnOnce() -> Result<(), Reason>) {
        let before = Failures::of(queue.counters());
        let settle = || if queue.settle(ACTION_TIMEOUT) { Ok(()) } else { Err(Reason::Timeout(ACTION_TIMEOUT)) };
        let done = put().and_then(|()| settle());
        if let Some(reason) = done.err().or_else(|| before.reason_since(queue.counters())) {
            self.failed(queue.name(), &reason);
        }
    }

    fn learn_due(&mut self, worker: &FeatureWorker, next: Option<Nanos>) {
        match self.features.iter_mut().find(|(known, _)| known.is(worker)) {
            Some((_, due)) => *due = next,
            None => self.features.push((worker.clone(), next)),
        }
    }

    /// Waits until features have done what is due, and learns when they go on.
    fn settle_features(&mut self) {
        for (worker, due) in &mut self.features {
            *due = worker.settle(ACTION_TIMEOUT).unwrap_or_default();
        }
    }

    /// Has what was switched on go off with its owner.
    fn release(&mut self, release: &Release) {
        let ended = self.runs.release(release);
        let releases = self.workers.releases();
        releases.notify(release);
        ended.into_iter().for_each(|owner| releases.notify(&Release::Owner(owner)));
        self.settle_features();
        self.workers.outputs.queues().iter().for_each(settle);
        if let Some(desktop) = &self.desktop {
            desktop.settle(ACTION_TIMEOUT);
        }
        self.note(None);
    }

    /// Waits for what follows by itself: lights that show variables, and what gets the clock. False if there is nothing such.
    fn settle_followers(&self) -> bool {
        let follow = self.workers.outputs.follow_something();
        if follow {
            self.workers.outputs.queues().iter().for_each(settle);
        }
        follow
    }

    fn begin_scripts(&mut self) {
        for (envelope, script) in mem::take(&mut self.begun) {
            if self.runs.are_full() {
                self.failed("scripts", &Reason::TooMany(MAX_RUNNING));
                self.note(Some(envelope.rule));
            } else {
                self.runs.begin(envelope, script, self.moment(self.clock.now()));
            }
        }
    }
}

/// Waits for an output; one that has ended has nothing to wait for.
fn settle(queue: &MidiQueue) {
    queue.settle(ACTION_TIMEOUT);
}

/// Hands an event over to the worker of an action.
fn hand_over(action: &Action, envelope: &Envelope) -> Result<(), Reason> {
    action.hand_over(|| envelope.clone(), &mut FeatureWorker::ring).map_err(|(_, reason)| reason)
}

/// How often a worker has failed.
struct Failures(u64);

impl Failures {
    fn of(counters: &WorkerCounters) -> Self {
        Self(counters.failed.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Why it has failed since; `None` if it has not.
    fn reason_since(&self, counters: &WorkerCounters) -> Option<Reason> {
        let failed = Self::of(counters).0 > self.0;
        failed.then(|| Reason::Failed(counters.last_failure().unwrap_or_default()))
    }
}

impl Performer<Action> for RecordedActions {
    fn fire(
        &mut self,
        firing: &Firing<'_, Action>,
        brought_about: &mut VecDeque<DeviceEvent<Event>>,
    ) -> Option<Arc<str>> {
        self.move_to(firing.at);
        let envelope = Envelope::of(firing);
        self.perform(&firing.rule.action, &envelope);
        self.begin_scripts();
        self.note(Some(envelope.rule));
        Action::at_once(firing, brought_about)
    }

    fn mode(&mut self, at: Nanos, mode: ModeIx) {
        self.move_to(at);
        self.release(&Release::Mode(mode));
    }

    fn gone(&mut self, at: Nanos, device: &DeviceId) {
        self.move_to(at);
        self.release(&Release::Device(device.clone()));
    }

    fn follow(&mut self, at: Nanos) {
        self.move_to(at);
    }

    fn due(&self) -> Option<Nanos> {
        let script = self.runs.due().map(|due| {
            let since = due.saturating_duration_since(self.start);
            u64::try_from(since.as_nanos()).unwrap_or(Nanos::MAX)
        });
        self.features.iter().filter_map(|(_, due)| *due).chain(script).min()
    }

    fn advance(&mut self, at: Nanos) -> Vec<Request> {
        self.move_to(at);
        if self.features.iter().any(|(_, due)| due.is_some_and(|due| due <= at)) {
            self.settle_features();
            self.note(None);
        }
        let now = self.moment(at);
        if self.runs.due().is_some_and(|due| due <= now) {
            let mut runs = mem::take(&mut self.runs);
            runs.go_on(
                || now,
                |action, envelope| {
                    self.step(action, envelope);
                    self.settle_followers();
                    self.note(Some(envelope.rule));
                },
            );
            self.runs = runs;
            self.begin_scripts();
        }
        mem::take(&mut self.requests)
    }

    fn sent(&mut self) -> Vec<Sent> {
        if self.settle_followers() {
            self.note(None);
        }
        mem::take(&mut self.sent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use conductor_config::Shell;
    use conductor_dispatch::desktop::DesktopAction;
    use conductor_dispatch::midi_out::MidiQueue;
    use conductor_dispatch::process::ProcessAction;
    use conductor_dispatch::script::Step;
    use conductor_dispatch::variables::View;
    use conductor_engine::{
        EnvironmentHandle, NumberRange, RuleSetHandle, RuleSource, RuleSpec, Scope, Trigger, ValueRange, compile,
    };
    use conductor_event::MidiMessage;
    use conductor_observer as observer;
    use conductor_observer::sink_message::SinkQueue;
    use conductor_timeline::Player;
    use conductor_timeline::player::Happened;

    use super::*;

    struct Stage {
        workers: Workers,
        recorder: Recorder,
        rules: Vec<RuleSpec<Action>>,
    }

    impl Stage {
        fn new() -> Self {
            let (_, said) = SinkQueue::new();
            let (observer, _, _) = observer::start(said, None).unwrap();
            let recorder = Recorder::default();
            let workers = Workers::rehearsing(observer, recorder.desktop());
            Self { workers, recorder, rules: Vec::new() }
        }

        /// Note-ons and note-offs of a note do this in the mode `Play`.
        fn rule(&mut self, note: u16, action: Action) {
            let (notes, velocity) = (NumberRange::one(note), ValueRange::SEVEN_BIT);
            let trigger = Trigger::Note { notes, velocity, edge: conductor_engine::Edge::Both, channel: None };
            self.rules.push(RuleSpec { scope: Scope::Mode("Play".into()), ..RuleSpec::new(trigger, action) });
        }

        fn keys(&self, toml: &str) -> Action {
            let action = Arc::new(DesktopAction::Keystroke(toml::from_str(toml).unwrap()));
            Action::Desktop { queue: self.workers.desktop().unwrap(), action }
        }

        fn forward(&self) -> (MidiQueue, Action) {
            let queue = self.workers.outputs.queue("synth").unwrap();
            (queue.clone(), Action::MidiForward { queue, forwarding: None })
        }

        /// Note-ons, and note-offs below 0, at these times in ms; what goes out, with the time.
        fn play(self, notes: &[(u64, i16)], then: impl FnOnce(&mut Player<'_, Action>)) -> Vec<String> {
            let rules = RuleSource { modes: vec!["Play".into(), "Mix".into()], rules: self.rules };
            let rules = Arc::new(RuleSetHandle::new(compile(rules).unwrap()));
            let (clock, hand) = Clock::manual();
            let mut actions = RecordedActions::new(self.workers, self.recorder, clock, hand, Box::new(()));
            let mut player = Player::new(&rules, &Arc::new(EnvironmentHandle::new()), &mut actions);
            for &(at, number) in notes {
                let note = u8::try_from(number.abs()).unwrap();
                let message = match number {
                    1.. => MidiMessage::NoteOn { channel: 0, note, velocity: 100 },
                    _ => MidiMessage::NoteOff { channel: 0, note, velocity: 0 },
                };
                player.event(at * 1_000_000, DeviceEvent { device: DeviceId::new("pads"), event: message.into() });
            }
            then(&mut player);
            assert!(player.finish());
            let sent = player.happened().into_iter().filter_map(|happened| match happened {
                Happened::Sent(sent) => Some(format!("{} {}", sent.at / 1_000_000, sent.effect)),
                _ => None,
            });
            sent.collect()
        }
    }

    #[test]
    fn an_action_is_waited_for_so_that_its_effects_are_its_own() {
        let mut stage = Stage::new();
        let (queue, forward) = stage.forward();
        stage.workers.outputs.attach("synth", stage.recorder.output("synth"));
        stage.rule(36, forward);
        stage.rule(36, stage.keys("keys = ['a']"));
        let sent = stage.play(&[(0, 36), (0, 36)], |_| ());
        assert_eq!(sent, ["0 MIDI synth 90 24 64", "0 key a", "0 MIDI synth 90 24 64", "0 key a"]);
        assert_eq!(queue.counters().done.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_is_held_goes_off_with_its_mode_and_its_device() {
        let hold = "keys = ['a']\nstroke = 'hold'";
        let mut stage = Stage::new();
        stage.rule(36, stage.keys(hold));
        let sent = stage.play(&[(0, 36), (7, 1)], |player| player.set_mode("Mix").unwrap());
        assert_eq!(sent, ["0 key down a", "7 key up a"]);
        let mut stage = Stage::new();
        stage.rule(36, stage.keys(hold));
        let sent = stage.play(&[(0, 36)], |player| player.forget(&DeviceId::new("pads")));
        assert_eq!(sent, ["0 key down a", "0 key up a"]);
    }

    #[test]
    fn a_script_goes_by_the_time_of_the_events() {
        let mut stage = Stage::new();
        let say: Shell = toml::from_str("command = 'say'").unwrap();
        let program = Action::Process {
            queue: stage.workers.processes().unwrap(),
            action: Arc::new(ProcessAction::Shell(say, View::default())),
        };
        let hour = Duration::from_secs(3599);
        let steps =
            [Step::Do(stage.keys("keys = ['a']")), Step::Wait(hour), Step::Do(program), Step::Do(Action::Suppress)];
        let script = Script {
            name: "Sequence".into(),
            steps: steps.into(),
            cancel_on_mode_change: true,
            cancel_on_reload: true,
        };
        let queue = stage.workers.scripts().unwrap();
        stage.rule(36, Action::Script { queue, script: Arc::new(script) });
        let began = Instant::now();
        let (rules, workers, recorder) = (stage.rules.clone(), stage.workers.clone(), stage.recorder.clone());
        assert_eq!(stage.play(&[(5, 36)], |_| ()), ["5 key a", "3599005 program say"]);
        assert!(began.elapsed() < hour, "nothing waits");
        let again = Stage { workers, recorder, rules };
        assert_eq!(again.play(&[(5, 36)], |player| player.set_mode("Mix").unwrap()), ["5 key a"], "it is cancelled");
    }

    #[test]
    fn what_fails_says_why() {
        let mut stage = Stage::new();
        let (_, forward) = stage.forward();
        stage.rule(36, forward);
        stage.rule(37, Action::Missing { name: "OscSend".into(), reason: "no feature has it".into() });
        let sent = stage.play(&[(0, 36), (1, 37)], |_| ());
        assert_eq!(
            sent,
            ["0 failed synth \"no port is bound to \\\"synth\\\"\"", "1 failed OscSend \"no feature has it\""]
        );
    }
}
