//! The MIDI output workers, by the target that rules call them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::midi_out::{MidiJob, MidiQueue};
use crate::observer::Observer;
use crate::ports::MidiOut;

type Workers = BTreeMap<String, (MidiQueue, JoinHandle<()>)>;

/// The workers. Clones share them.
#[derive(Debug, Clone)]
pub struct Outputs {
    workers: Arc<Mutex<Workers>>,
    observer: Observer,
}

impl Outputs {
    /// No worker yet.
    pub fn new(observer: Observer) -> Self {
        Self { workers: Arc::default(), observer }
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to the output called `target`; its worker is started when it is first asked for.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn queue(&self, target: &str) -> std::io::Result<MidiQueue> {
        let mut workers = self.workers();
        if let Some((queue, _)) = workers.get(target) {
            return Ok(queue.clone());
        }
        let (queue, thread) = MidiQueue::start(target, self.observer.clone())?;
        workers.insert(target.to_owned(), (queue.clone(), thread));
        Ok(queue)
    }

    /// Gives the worker its port.
    pub fn attach(&self, target: &str, port: Box<dyn MidiOut>) {
        // Not under the lock: a worker with a full queue makes this wait.
        let queue = self.workers().get(target).map(|(queue, _)| queue.clone());
        if let Some(queue) = queue {
            queue.put(MidiJob::Attach(port));
        }
    }

    /// Takes the worker's port away.
    pub fn detach(&self, target: &str) {
        let queue = self.workers().get(target).map(|(queue, _)| queue.clone());
        if let Some(queue) = queue {
            queue.put(MidiJob::Detach);
        }
    }

    /// Every way there is.
    pub fn queues(&self) -> Vec<MidiQueue> {
        self.workers().values().map(|(queue, _)| queue.clone()).collect()
    }

    /// Has every worker do what is in its queue, switch off what is on, and end.
    pub fn stop(&self) {
        let workers = std::mem::take(&mut *self.workers());
        for (queue, _) in workers.values() {
            queue.put(MidiJob::Stop);
        }
        for (_, (_, thread)) in workers {
            let _ = thread.join();
        }
    }
}
