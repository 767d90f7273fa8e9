//! The worker behind one MIDI output.
//!
//! It lives as long as a rule names its target, whether a port is there or not: ports come and go
//! under it. What it has switched on it switches off before it lets go of a port.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use conductor_engine::{Event, MidiMessage, ModeIx};

use super::conditioner::{Conditioner, Forwarding};
use super::held::{Held, Owner, Release};
use super::lights::Lights;
use super::midi_message::MidiTemplate;
use super::queue::{Inbox, Job, Next, Queue};
use super::{Envelope, Failure, Reason, WorkerCounters};
use crate::observer::{Observation, Observer};
use crate::ports::MidiOut;

/// What the worker is asked to do.
#[derive(Debug)]
pub enum MidiJob {
    /// Send a message made from the event.
    Send(Envelope, Arc<MidiTemplate>),
    /// Pass the event's message on.
    Forward(Envelope, Option<Arc<Forwarding>>),
    /// Show that a mapping has fired, or that what fired it was let go of.
    Light(Envelope, Arc<Feedback>),
    /// Send this message, for a feature.
    Message(MidiMessage),
}

impl Job for MidiJob {
    fn may_switch_off(&self) -> bool {
        match self {
            Self::Send(envelope, template) => switches_off(&template.message(envelope)),
            Self::Forward(envelope, _) => match &envelope.event {
                // What the pedal says may be turned round on the way.
                Event::Midi(MidiMessage::ControlChange { controller: SUSTAIN, .. }) => true,
                Event::Midi(message) => switches_off(message),
                _ => false,
            },
            Self::Message(message) => switches_off(message),
            Self::Light(..) => false,
        }
    }
}

/// Whether the message ends a note, or lets the sustain pedal up.
fn switches_off(message: &MidiMessage) -> bool {
    match *message {
        MidiMessage::NoteOff { .. } => true,
        MidiMessage::ControlChange { controller: SUSTAIN, value, .. } => value < 64,
        _ => false,
    }
}

/// What the worker is told about its port.
pub enum MidiOrder {
    /// Here it is.
    Attach(Box<dyn MidiOut>),
    /// It is gone.
    Detach,
    /// Have it end all notes when it is there, whoever began them.
    EndAllNotes,
    /// Other rules are in use: what lights show while nothing has happened, by mode.
    Lights(Vec<(Option<ModeIx>, MidiMessage)>),
}

/// What lights show of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Feedback {
    /// When it has fired.
    pub fired: Option<MidiTemplate>,
    /// While it waits, and when what fired it is let go of.
    pub idle: Option<MidiTemplate>,
}

impl std::fmt::Debug for MidiOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Attach(_) => "Attach",
            Self::Detach => "Detach",
            Self::EndAllNotes => "EndAllNotes",
            Self::Lights(_) => "Lights",
        })
    }
}

/// The way to a worker; its name is the output's, as configuration has it. Clones share it.
pub type MidiQueue = Queue<MidiJob, MidiOrder>;

/// Starts the worker for the output that configuration calls `target`.
///
/// # Errors
/// When the system has no thread left.
pub fn start(target: &str, observer: Observer) -> std::io::Result<(MidiQueue, JoinHandle<()>)> {
    let (queue, inbox) = Queue::new(target);
    let worker = Worker {
        target: Arc::clone(queue.name()),
        counters: Arc::clone(queue.counters()),
        observer,
        port: None,
        held: Held::default(),
        of_features: [0; 16],
        cut_off: Vec::new(),
        ends_all_notes: false,
        conditioner: Conditioner::default(),
        lights: Lights::default(),
        bytes: Vec::with_capacity(64),
    };
    let thread = std::thread::Builder::new().name(format!("midi-out {target}")).spawn(move || worker.run(inbox))?;
    Ok((queue, thread))
}

/// Something that sounds until it is ended, on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Note {
        channel: u8,
        note: u8,
    },
    /// The sustain pedal, which keeps notes from ending.
    Pedal {
        channel: u8,
    },
    /// Whatever sounds.
    Channel {
        channel: u8,
    },
}

impl On {
    fn end(self) -> MidiMessage {
        match self {
            Self::Note { channel, note } => MidiMessage::NoteOff { channel, note, velocity: 0 },
            Self::Pedal { channel } => MidiMessage::ControlChange { channel, controller: SUSTAIN, value: 0 },
            Self::Channel { channel } => MidiMessage::ControlChange { channel, controller: ALL_NOTES_OFF, value: 0 },
        }
    }
}

/// The controller that the sustain pedal moves; it is down from 64 on (MIDI 1.0).
const SUSTAIN: u8 = 64;
/// The controller that ends all notes of a channel (MIDI 1.0).
const ALL_NOTES_OFF: u8 = 123;

struct Worker {
    target: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    port: Option<Box<dyn MidiOut>>,
    /// What rules have switched on.
    held: Held<On>,
    /// What features have switched on: a bit per note, per channel.
    of_features: [u128; 16],
    /// What was on when the port was lost. Should it come back, this may sound still.
    cut_off: Vec<On>,
    /// Whether the port is to end all notes when it comes.
    ends_all_notes: bool,
    conditioner: Conditioner,
    lights: Lights,
    bytes: Vec<u8>,
}

impl Worker {
    fn run(mut self, mut inbox: Inbox<MidiJob, MidiOrder>) {
        loop {
            match inbox.next(None) {
                Next::Job(job) => self.perform(job),
                Next::Order(MidiOrder::Attach(port)) => {
                    self.port = Some(port);
                    if std::mem::take(&mut self.ends_all_notes) {
                        self.end((0..16).map(|channel| On::Channel { channel }));
                    }
                    let sounding = self.everything_on();
                    let cut_off = std::mem::take(&mut self.cut_off);
                    self.end(cut_off.into_iter().chain(sounding));
                    let all = self.lights.all();
                    self.show(&all);
                }
                Next::Order(MidiOrder::Detach) => {
                    let on = self.everything_on();
                    self.end(on.iter().copied());
                    self.cut_off = on;
                    self.port = None;
                }
                Next::Order(MidiOrder::EndAllNotes) => self.ends_all_notes = true,
                Next::Order(MidiOrder::Lights(idle)) => {
                    let changes = self.lights.replace(&idle, Some(inbox.mode()));
                    self.show(&changes);
                }
                Next::Release(release) => {
                    if let Release::Mode(mode) = release {
                        let changes = self.lights.turn_to(mode);
                        self.show(&changes);
                    }
                    self.conditioner.release(&release);
                    let off = self.held.release(&release);
                    self.end(off);
                }
                Next::ReleaseAll => {
                    let changes = self.lights.turn_to(inbox.mode());
                    self.show(&changes);
                    let off = self.everything_on();
                    self.end(off);
                }
                Next::Timeout => {}
                Next::Stop => break,
            }
        }
        let on = self.everything_on();
        self.end(on);
        let dark = self.lights.out();
        self.show(&dark);
    }

    fn perform(&mut self, job: MidiJob) {
        match job {
            MidiJob::Send(envelope, template) => {
                let message = template.message(&envelope);
                let sent = self.send(&message, Some(&envelope));
                self.account(&envelope, sent);
            }
            MidiJob::Forward(envelope, forwarding) => {
                let sent = match &envelope.event {
                    Event::Midi(message) => match forwarding {
                        None => self.send(message, Some(&envelope)),
                        Some(forwarding) => match self.conditioner.forward(&envelope, &forwarding, message) {
                            Some(message) => self.send(&message, Some(&envelope)),
                            // Held back, as it was asked for.
                            None => Ok(()),
                        },
                    },
                    _ => Err(Reason::NotMidi),
                };
                self.account(&envelope, sent);
            }
            MidiJob::Light(envelope, feedback) => {
                let template = if envelope.lets_go() { &feedback.idle } else { &feedback.fired };
                if let Some(message) = template.as_ref().map(|template| template.message(&envelope))
                    && self.lights.set(envelope.mode, &message)
                    && let Err(reason) = self.put(&message)
                {
                    self.account(&envelope, Err(reason));
                }
            }
            MidiJob::Message(message) => match self.send(&message, None) {
                Ok(()) => drop(self.counters.done.fetch_add(1, Ordering::Relaxed)),
                Err(reason) => self.counters.failure(&reason),
            },
        }
    }

    /// Sends a message, and remembers what it switches on and for whom: the event's rule, or a feature.
    fn send(&mut self, message: &MidiMessage, envelope: Option<&Envelope>) -> Result<(), Reason> {
        self.put(message)?;
        self.conditioner.sent(message);
        match *message {
            MidiMessage::NoteOn { channel, note, .. } => match envelope {
                Some(envelope) => drop(self.held.hold(On::Note { channel, note }, Owner::from(envelope))),
                None => self.of_features[usize::from(channel & 15)] |= 1 << (note & 127),
            },
            MidiMessage::NoteOff { channel, note, .. } => {
                self.held.is_off_now(On::Note { channel, note });
                self.of_features[usize::from(channel & 15)] &= !(1 << (note & 127));
            }
            MidiMessage::ControlChange { channel, controller: SUSTAIN, value } => match envelope {
                Some(envelope) if value >= 64 => drop(self.held.hold(On::Pedal { channel }, Owner::from(envelope))),
                _ => drop(self.held.is_off_now(On::Pedal { channel })),
            },
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, message: &MidiMessage) -> Result<(), Reason> {
        let Some(port) = &mut self.port else {
            return Err(Reason::TargetNotBound(self.target.to_string()));
        };
        self.bytes.clear();
        message.encode(&mut self.bytes);
        port.send(&self.bytes).map_err(|error| Reason::Failed(error.to_string()))
    }

    /// Sends what lights show. Where the port is not there, it gets everything when it comes.
    fn show(&mut self, messages: &[MidiMessage]) {
        for message in messages {
            let _ = self.put(message);
        }
    }

    /// Forgets everything that is on, and returns it.
    fn everything_on(&mut self) -> Vec<On> {
        let mut on = self.held.release_all();
        for (channel, notes) in (0_u8..).zip(std::mem::take(&mut self.of_features)) {
            on.extend((0..128_u8).filter(|note| notes & (1 << note) != 0).map(|note| On::Note { channel, note }));
        }
        on
    }

    fn end(&mut self, on: impl IntoIterator<Item = On>) {
        for on in on {
            let _ = self.put(&on.end());
        }
    }

    fn account(&self, envelope: &Envelope, result: Result<(), Reason>) {
        match result {
            Ok(()) => {
                self.counters.done.fetch_add(1, Ordering::Relaxed);
            }
            Err(reason) => {
                self.counters.failure(&reason);
                self.observer.put(Observation::Failure(Failure::new(envelope, &self.target, reason)));
            }
        }
    }
}
