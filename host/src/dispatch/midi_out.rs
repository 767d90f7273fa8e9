//! The worker behind one MIDI output.
//!
//! It lives as long as a rule names its target, whether a port is there or not: ports come and go
//! under it. What it has switched on it switches off before it lets go of a port.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use conductor_engine::{Event, MidiMessage, MidiTransform};
use crossbeam_channel::{Receiver, Sender, TrySendError};

use super::midi_message::MidiTemplate;
use super::{Envelope, Failure, QUEUE, Reason, WorkerCounters};
use crate::observer::{Observation, Observer};
use crate::ports::MidiOut;

/// What the worker is told.
pub enum MidiJob {
    /// Send a message made from the event.
    Send(Envelope, Arc<MidiTemplate>),
    /// Pass the event's message on.
    Forward(Envelope, Option<Arc<MidiTransform>>),
    /// Send this message, for a feature.
    Message(MidiMessage),
    /// Here is the port.
    Attach(Box<dyn MidiOut>),
    /// The port is gone.
    Detach,
    /// Switch off what is on, and end.
    Stop,
}

/// The way to a worker. Clones share it.
#[derive(Debug, Clone)]
pub struct MidiQueue {
    target: Arc<str>,
    sender: Sender<MidiJob>,
    counters: Arc<WorkerCounters>,
}

impl MidiQueue {
    /// Starts the worker for the output that configuration calls `target`.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(target: &str, observer: Observer) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = crossbeam_channel::bounded(QUEUE);
        let queue = Self { target: target.into(), sender, counters: Arc::default() };
        let worker = Worker {
            target: Arc::clone(&queue.target),
            counters: Arc::clone(&queue.counters),
            observer,
            port: None,
            held: [0; 16],
            bytes: Vec::with_capacity(64),
        };
        let thread = std::thread::Builder::new().name(format!("midi-out {target}")).spawn(move || worker.run(&jobs))?;
        Ok((queue, thread))
    }

    /// What configuration calls the output.
    pub fn target(&self) -> &Arc<str> {
        &self.target
    }

    /// What the worker has done so far.
    pub fn counters(&self) -> &WorkerCounters {
        &self.counters
    }

    /// Hands a job over without waiting.
    ///
    /// # Errors
    /// [`Reason::QueueFull`] or [`Reason::Gone`].
    pub fn try_put(&self, job: MidiJob) -> Result<(), Reason> {
        self.sender.try_send(job).map_err(|error| {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    self.counters.queue_full.fetch_add(1, Ordering::Relaxed);
                    Reason::QueueFull
                }
                TrySendError::Disconnected(_) => Reason::Gone,
            }
        })
    }

    /// Hands a job over, waiting for room. For the control side only.
    pub fn put(&self, job: MidiJob) {
        let _ = self.sender.send(job);
    }
}

struct Worker {
    target: Arc<str>,
    counters: Arc<WorkerCounters>,
    observer: Observer,
    port: Option<Box<dyn MidiOut>>,
    /// A bit per note that is on, per channel.
    held: [u128; 16],
    bytes: Vec<u8>,
}

impl Worker {
    fn run(mut self, jobs: &Receiver<MidiJob>) {
        for job in jobs {
            match job {
                MidiJob::Send(envelope, template) => {
                    let message = template.message(&envelope);
                    let sent = self.send(&message);
                    self.account(&envelope, sent);
                }
                MidiJob::Forward(envelope, transform) => {
                    let sent = match &envelope.event {
                        Event::Midi(message) => match transform {
                            Some(transform) => self.send(&transform.apply(message)),
                            None => self.send(message),
                        },
                        Event::Osc(_) => Err(Reason::NotMidi),
                    };
                    self.account(&envelope, sent);
                }
                MidiJob::Message(message) => match self.send(&message) {
                    Ok(()) => drop(self.counters.done.fetch_add(1, Ordering::Relaxed)),
                    Err(reason) => self.counters.failure(&reason),
                },
                MidiJob::Attach(port) => {
                    self.port = Some(port);
                    self.held = [0; 16];
                }
                MidiJob::Detach => {
                    self.release();
                    self.port = None;
                }
                MidiJob::Stop => break,
            }
        }
        self.release();
    }

    fn send(&mut self, message: &MidiMessage) -> Result<(), Reason> {
        let Some(port) = &mut self.port else {
            return Err(Reason::TargetNotBound(self.target.to_string()));
        };
        self.bytes.clear();
        message.encode(&mut self.bytes);
        port.send(&self.bytes).map_err(|error| Reason::Failed(error.to_string()))?;
        match *message {
            MidiMessage::NoteOn { channel, note, .. } => self.held[usize::from(channel & 15)] |= 1 << (note & 127),
            MidiMessage::NoteOff { channel, note, .. } => self.held[usize::from(channel & 15)] &= !(1 << (note & 127)),
            _ => {}
        }
        Ok(())
    }

    /// Ends every note that this worker began.
    fn release(&mut self) {
        for (channel, held) in (0_u8..).zip(std::mem::take(&mut self.held)) {
            for note in (0..128_u8).filter(|note| held & (1 << note) != 0) {
                let _ = self.send(&MidiMessage::NoteOff { channel, note, velocity: 0 });
            }
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
