//! Dispatch: the actions of rules, and the workers that perform them.
//!
//! The engine hands an [`Envelope`] to a worker's bounded queue and goes on; it never waits.
//! One worker owns one backend: a MIDI output ([`midi_out`]), one feature ([`feature_worker`]), the
//! [`desktop`], the programs that are started ([`process`]). A slow or dead backend delays no other,
//! and each worker keeps its order. Multi-step actions (delays, repeats) run as a [`script`], which hands its steps
//! over one by one. What is switched on is in the worker's ledger ([`ledger`]) and goes off with its owner.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use conductor_engine::{Firing, Rule, RuleSet, Trigger};
use conductor_event::{Answers, DeviceEvent, DeviceId, Event, HidEvent, MidiMessage, ModeIx, Nanos, RuleId};
use conductor_message_pattern::OscPattern;
use parking_lot::Mutex;

pub mod clock_message;
pub mod clock_out;
pub mod conditioner;
pub mod desktop;
pub mod event_hook;
pub mod event_numbers;
pub mod feature_worker;
mod kept_variables;
pub mod ledger;
pub mod light_states;
pub mod lights;
pub mod midi_message;
pub mod midi_out;
pub mod outputs;
mod prepared_instance;
pub mod process;
pub mod queue;
pub mod releases;
pub mod retry;
pub mod script;
pub mod smoothing;
pub mod variables;
pub mod workers;

use conditioner::Forwarding;
pub use conductor_observer::failure::{Failure, QUEUE_CAPACITY, Reason};
use desktop::{DesktopAction, DesktopQueue};
use event_numbers::EventNumbers;
use feature_worker::FeatureWorker;
pub use feature_worker::{feature_queue, prepared_action};
use midi_message::MidiTemplate;
use midi_out::{Feedback, MidiJob, MidiQueue};
use prepared_action::PreparedAction;
use process::{ProcessAction, ProcessQueue};
use retry::{Retry, Tries};
use script::{Script, ScriptQueue};
use variables::VariableAction;

/// What a rule does, ready to be done. Cloning is cheap.
#[derive(Debug, Clone)]
pub enum Action {
    /// An action of a feature, prepared there.
    Feature(Arc<PreparedAction>),
    /// A MIDI message, made from the event.
    SendMidi {
        /// The output.
        queue: MidiQueue,
        /// The message.
        message: Arc<MidiTemplate>,
    },
    /// The event's own message, passed on.
    MidiForward {
        /// The output.
        queue: MidiQueue,
        /// What is changed on the way.
        forwarding: Option<Arc<Forwarding>>,
    },
    /// Keys, text, the mouse.
    Desktop {
        /// The worker.
        queue: DesktopQueue,
        /// What to do.
        action: Arc<DesktopAction>,
    },
    /// A program.
    Process {
        /// The worker.
        queue: ProcessQueue,
        /// What to start.
        action: Arc<ProcessAction>,
    },
    /// Several actions, or one later.
    Script {
        /// The worker.
        queue: ScriptQueue,
        /// What to do, step by step.
        script: Arc<Script>,
    },
    /// A variable changes, at once, on the thread that fires the rule.
    Variable(Arc<VariableAction>),
    /// Another mode, for all devices. The engine thread does it itself.
    ModeChange {
        /// The mode's name.
        mode: Arc<str>,
    },
    /// One action or another, as the rule's choices say.
    Conditional {
        /// The number of the choice.
        choice: usize,
        /// What is done where its condition holds.
        then: Box<Branch>,
        /// What is done where it does not.
        otherwise: Option<Box<Branch>>,
    },
    /// An action, and what lights show of it.
    Shown {
        /// The output with the lights.
        queue: MidiQueue,
        /// What they show.
        feedback: Arc<Feedback>,
        /// The action.
        action: Box<Action>,
    },
    /// The end of what lights show while a control is held.
    LightEnd {
        /// The output with the lights.
        queue: MidiQueue,
        /// What they show.
        feedback: Arc<Feedback>,
        /// The mode whose lights they are, which may be left by now; `None` if they are every mode's.
        mode: Option<ModeIx>,
    },
    /// An action that is tried again where it fails.
    Retried {
        /// How.
        retry: Arc<Retry>,
        /// The action.
        action: Box<Action>,
    },
    /// Nothing.
    Suppress,
    /// Nothing yet: no installed feature has the action that the mapping names.
    Missing {
        /// What the mapping names.
        name: Arc<str>,
        /// Why it is not there.
        reason: Arc<str>,
    },
}

/// A rule for people: its name if it has one, and what it does.
pub fn describe_rule_id(id: RuleId, rules: &RuleSet<Action>, known: bool) -> String {
    match rules.rules().get(id.0 as usize).filter(|_| known) {
        Some(rule) => describe_rule(rule).to_string(),
        None => format!("rule {}", id.0),
    }
}

/// A rule for people, wherever it is from.
pub fn describe_rule(rule: &Rule<Action>) -> impl fmt::Display {
    fmt::from_fn(move |f| match &rule.name {
        Some(name) => write!(f, "{name} ({})", rule.action.describe()),
        None => f.write_str(&rule.action.describe()),
    })
}

/// An action that is done on a condition.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The action.
    pub action: Action,
    /// Whether it is only for presses, where the rule hears of releases for the sake of another branch.
    pub presses_only: bool,
}

impl Branch {
    fn chosen(&self, answers: Answers, event: &Event) -> &Action {
        if self.presses_only && lets_go(event) { &Action::Suppress } else { self.action.chosen(answers, event) }
    }
}

impl Action {
    /// What it is and where it goes, for people: `OscSend`, `MidiForward to synth`.
    pub fn describe(&self) -> Cow<'_, str> {
        match self {
            Self::Feature(action) => action.name().into(),
            Self::SendMidi { queue, .. } => format!("SendMidi to {}", queue.name()).into(),
            Self::MidiForward { queue, .. } => format!("MidiForward to {}", queue.name()).into(),
            Self::Desktop { action, .. } => action.describe().into(),
            Self::Process { action, .. } => action.describe().into(),
            Self::Script { script, .. } => script.describe().into(),
            Self::Variable(action) => action.name.to_string().into(),
            Self::ModeChange { mode } => format!("ModeChange to {mode}").into(),
            Self::Conditional { then, otherwise, .. } => match otherwise {
                None => format!("Conditional ({})", then.action.describe()).into(),
                Some(otherwise) => {
                    format!("Conditional ({}, else {})", then.action.describe(), otherwise.action.describe()).into()
                }
            },
            Self::Shown { action, .. } | Self::Retried { action, .. } => action.describe(),
            Self::LightEnd { .. } => "light ends".into(),
            Self::Suppress => "Suppress".into(),
            Self::Missing { name, .. } => format!("{name} (missing)").into(),
        }
    }

    /// The mode that it makes active for an event, by the rule's answers.
    #[inline]
    pub fn mode(&self, answers: Answers, event: &Event) -> Option<&Arc<str>> {
        match self.chosen(answers, event) {
            Self::ModeChange { mode } => Some(mode),
            _ => None,
        }
    }

    /// What a rule that fires does at once, without a worker: it changes variables, and what follows is noted in
    /// `brought_about`; and it makes a mode active, which is returned.
    #[inline]
    pub fn at_once(firing: &Firing<'_, Self>, brought_about: &mut VecDeque<DeviceEvent<Event>>) -> Option<Arc<str>> {
        match firing.rule.action.chosen(firing.answers, firing.event) {
            Self::ModeChange { mode } => Some(Arc::clone(mode)),
            Self::Variable(action) => {
                let pattern = osc_pattern(&firing.rule.trigger).map(|pattern| &**pattern);
                let numbers = EventNumbers::new(firing.event, firing.position, pattern);
                variables::note(action.perform(firing.at, firing.device, &numbers), brought_about);
                None
            }
            _ => None,
        }
    }

    /// What is done of it for an event, by the rule's answers; lights aside.
    #[inline]
    pub fn chosen(&self, answers: Answers, event: &Event) -> &Self {
        match self {
            Self::Conditional { choice, then, .. } if answers.holds(*choice) => then.chosen(answers, event),
            Self::Conditional { otherwise: Some(otherwise), .. } => otherwise.chosen(answers, event),
            Self::Conditional { otherwise: None, .. } => &Self::Suppress,
            Self::Shown { action, .. } | Self::Retried { action, .. } => action.chosen(answers, event),
            other => other,
        }
    }

    /// Hands an event to the worker of this action, without waiting. A mode is changed by the caller, and
    /// `Suppress` is done already. A feature whose worker has got a job goes to `wake`, which sees to it that it is done.
    ///
    /// # Errors
    /// Whose it was to do, and why it is not done.
    #[inline]
    pub fn hand_over(
        &self,
        envelope: impl Fn() -> Envelope,
        wake: &mut dyn FnMut(&FeatureWorker),
    ) -> Result<(), (&Arc<str>, Reason)> {
        match self {
            Self::Feature(action) => match action.put(envelope()) {
                Ok(()) => {
                    wake(action.worker());
                    Ok(())
                }
                Err(reason) => Err((action.feature(), reason)),
            },
            Self::SendMidi { queue, message } => {
                // Made now: what variables hold may be another thing when the worker comes to it.
                let envelope = envelope();
                let message = message.message(&envelope);
                queue.try_put(MidiJob::Send(envelope, message)).map_err(|reason| (queue.name(), reason))
            }
            Self::MidiForward { queue, forwarding } => {
                queue.try_put(MidiJob::Forward(envelope(), forwarding.clone())).map_err(|reason| (queue.name(), reason))
            }
            Self::Desktop { queue, action } => {
                queue.try_put((envelope(), Arc::clone(action))).map_err(|reason| (queue.name(), reason))
            }
            Self::Process { queue, action } => {
                queue.try_put((envelope(), Arc::clone(action))).map_err(|reason| (queue.name(), reason))
            }
            Self::Script { queue, script } => {
                queue.try_put((envelope(), Arc::clone(script))).map_err(|reason| (queue.name(), reason))
            }
            Self::Conditional { .. } => {
                let envelope = envelope();
                let chosen = self.chosen(envelope.answers, &envelope.event);
                chosen.hand_over(&(|| envelope.clone()) as &dyn Fn() -> Envelope, wake)
            }
            Self::Shown { queue, feedback, action } => {
                let shown = queue.try_put(MidiJob::Light(envelope(), Arc::clone(feedback)));
                // Dark lights are no reason to do nothing.
                action.hand_over(&envelope as &dyn Fn() -> Envelope, wake)?;
                shown.map_err(|reason| (queue.name(), reason))
            }
            Self::LightEnd { queue, feedback, mode } => {
                let envelope = Envelope { mode: *mode, ..envelope() };
                queue.try_put(MidiJob::Light(envelope, Arc::clone(feedback))).map_err(|reason| (queue.name(), reason))
            }
            Self::Retried { retry, action } => {
                let tried = || Envelope { tries: Some(retry.tries()), ..envelope() };
                action.hand_over(&tried as &dyn Fn() -> Envelope, wake)
            }
            Self::Variable(_) | Self::ModeChange { .. } | Self::Suppress => Ok(()),
            Self::Missing { name, reason } => Err((name, Reason::Missing(Arc::clone(reason)))),
        }
    }
}

/// An event on its way to a worker, and which rule sent it.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// When the event reached the host.
    pub at: Nanos,
    /// Where it came from.
    pub device: DeviceId,
    /// What it is.
    pub event: Event,
    /// Position in the trigger's range.
    pub position: u16,
    /// The rule's OSC address pattern; `None` if it waits for no pattern.
    pub pattern: Option<Arc<OscPattern>>,
    /// What the conditions have said by which the rule's action decides.
    pub answers: Answers,
    /// The rule that fired, in the set of [`generation`](Self::generation).
    pub rule: RuleId,
    /// Which rule set.
    pub generation: u64,
    /// The mode that the rule is active in; `None` if it is active in every mode.
    pub mode: Option<ModeIx>,
    /// The tries that are left where the action fails; `None` if it is not tried again.
    pub tries: Option<Tries>,
}

impl Envelope {
    /// The event that a rule fires for, as it is handed over.
    #[inline]
    pub fn of<A>(firing: &Firing<'_, A>) -> Self {
        Self {
            at: firing.at,
            device: firing.device.clone(),
            event: firing.event.clone(),
            position: firing.position,
            pattern: osc_pattern(&firing.rule.trigger).cloned(),
            answers: firing.answers,
            rule: firing.rule.id,
            generation: firing.generation,
            mode: firing.rule.mode,
            tries: None,
        }
    }

    /// That this was not done by `worker`, and why. It is tried again if it is to be.
    pub fn failure(&self, worker: &Arc<str>, reason: Reason) -> Failure {
        if let Some(tries) = &self.tries {
            tries.go_on(self);
        }
        Failure {
            at: self.at,
            device: self.device.clone(),
            rule: self.rule,
            generation: self.generation,
            worker: Arc::clone(worker),
            reason,
        }
    }

    /// What the event gives to numbers that an action takes from it.
    pub fn numbers(&self) -> EventNumbers<'_> {
        EventNumbers::new(&self.event, self.position, self.pattern.as_deref())
    }

    /// Whether the event lets go of something that was pressed.
    pub fn lets_go(&self) -> bool {
        lets_go(&self.event)
    }

    /// Whether the event presses something, rather than letting go of it: a note begins; what moves is
    /// in the upper half of its way, a stick at least half out.
    pub fn presses(&self) -> bool {
        match self.event {
            Event::Midi(MidiMessage::NoteOn { .. }) => true,
            Event::Midi(MidiMessage::NoteOff { .. }) => false,
            ref moved => moved.is_pressed(),
        }
    }
}

/// The address pattern that a trigger waits for.
fn osc_pattern(trigger: &Trigger) -> Option<&Arc<OscPattern>> {
    match trigger {
        Trigger::OscPattern { pattern, .. } => Some(pattern),
        _ => None,
    }
}

fn lets_go(event: &Event) -> bool {
    matches!(event, Event::Midi(MidiMessage::NoteOff { .. }) | Event::Hid(HidEvent::Button { pressed: false, .. }))
}

/// Waits for a thread's end until a deadline. False when it has not ended by then; it is left to itself.
pub(crate) fn join_by(thread: JoinHandle<()>, deadline: Instant) -> bool {
    while !thread.is_finished() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    thread.join().is_ok()
}

/// What a worker has done so far.
#[derive(Debug, Default)]
pub struct WorkerCounters {
    /// Actions done.
    pub done: AtomicU64,
    /// Actions that failed, whatever the reason.
    pub failed: AtomicU64,
    /// Of those, the ones that cost the instance: traps and overruns.
    pub trapped: AtomicU64,
    /// Values that a later one of the same controller has replaced while they waited for a slow port.
    pub merged: AtomicU64,
    /// Of those that failed, the ones that found the queue full.
    pub queue_full: AtomicU64,
    /// Jobs done by the thread that had brought them, instead of the worker's own; only features have such.
    pub carried: AtomicU64,
    /// Nanoseconds at work.
    pub busy: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl WorkerCounters {
    /// Counts a failure and remembers its text. For workers; the engine thread only counts.
    pub(crate) fn failure(&self, reason: &Reason) {
        // The text first: a reader that sees the count finds it.
        self.remember(reason);
        self.failed.fetch_add(1, Ordering::Release);
    }

    /// Remembers a failure's text, before it is counted.
    pub(crate) fn remember(&self, reason: &Reason) {
        *self.last_failure.lock() = Some(reason.to_string());
    }

    /// Why the last action that failed did.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().clone()
    }
}
