//! The MIDI output workers, by the target that rules call them.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use conductor_engine::{MidiMessage, ModeIx};

use super::join_by;
use super::midi_out::{self, MidiCommand, MidiQueue};
use super::releases::Releases;
use conductor_observer::Observer;
use conductor_ports::MidiOut;

type Workers = BTreeMap<String, (MidiQueue, JoinHandle<()>)>;

/// The workers. Clones share them.
#[derive(Debug, Clone)]
pub struct Outputs {
    workers: Arc<Mutex<Workers>>,
    observer: Observer,
    releases: Releases,
    /// Whether workers that are started from now on begin by ending all notes.
    ends_all_notes: Arc<AtomicBool>,
    /// Whether none is started at all.
    unattended: bool,
}

impl Outputs {
    /// No worker yet; those that come hear of releases through `releases`.
    pub fn new(observer: Observer, releases: Releases) -> Self {
        Self { workers: Arc::default(), observer, releases, ends_all_notes: Arc::default(), unattended: false }
    }

    /// No worker, ever: for rules that are compiled and never used.
    pub fn unattended(self) -> Self {
        Self { unattended: true, ..self }
    }

    /// Has every worker that is started from now on tell its port to end all notes when it first has one.
    pub fn end_all_notes(&self) {
        self.ends_all_notes.store(true, Ordering::Relaxed);
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock()
    }

    /// The way to the output called `target`; its worker is started when it is first asked for.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn queue(&self, target: &str) -> std::io::Result<MidiQueue> {
        if self.unattended {
            return Ok(MidiQueue::unattended(target));
        }
        let mut workers = self.workers();
        if let Some((queue, _)) = workers.get(target) {
            return Ok(queue.clone());
        }
        let (queue, thread) = midi_out::start(target, self.observer.clone())?;
        if self.ends_all_notes.load(Ordering::Relaxed) {
            queue.command(MidiCommand::EndAllNotes);
        }
        self.releases.add(Arc::new(queue.clone()));
        workers.insert(target.to_owned(), (queue.clone(), thread));
        Ok(queue)
    }

    /// Gives the worker its port.
    pub fn attach(&self, target: &str, port: Box<dyn MidiOut>) {
        if let Some((queue, _)) = self.workers().get(target) {
            queue.command(MidiCommand::Attach(port));
        }
    }

    /// Takes the worker's port away.
    pub fn detach(&self, target: &str) {
        if let Some((queue, _)) = self.workers().get(target) {
            queue.command(MidiCommand::Detach);
        }
    }

    /// Has every output show what is idle in the rules that are in use now, by target.
    pub fn show(&self, lights: &BTreeMap<String, Vec<(Option<ModeIx>, MidiMessage)>>) {
        for (target, (queue, _)) in &*self.workers() {
            queue.command(MidiCommand::Lights(lights.get(target).cloned().unwrap_or_default()));
        }
    }

    /// Every way there is.
    pub fn queues(&self) -> Vec<MidiQueue> {
        self.workers().values().map(|(queue, _)| queue.clone()).collect()
    }

    /// Has every worker do what is in its queue, switch off what is on, and end. False when one has not
    /// ended at `deadline`: its port hangs.
    pub fn stop(&self, deadline: Instant) -> bool {
        let workers = std::mem::take(&mut *self.workers());
        workers.values().for_each(|(queue, _)| queue.stop());
        workers.into_values().all(|(_, thread)| join_by(thread, deadline))
    }
}
