//! Fault isolation of backends (a bulkhead and a watchdog): each has a thread of its own, so one that hangs or panics
//! stops no other.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::{PortBackend, PortError};

/// How long an answer is waited for. Together with the time between two looks it is less than the two seconds
/// within which the ports of the others have to be open.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

type Call = Box<dyn FnOnce(&mut dyn PortBackend) + Send>;

/// The way to a backend.
pub struct BackendThread {
    name: &'static str,
    calls: Option<Sender<Call>>,
    /// Whether a question is still open.
    unanswered: Arc<AtomicBool>,
    ended: Receiver<()>,
}

/// No answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// Not yet: the system's driver hangs. What is open stays so.
    Hangs,
    /// There will be none.
    Failed(PortError),
}

impl BackendThread {
    /// Moves the backend to a thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(mut backend: Box<dyn PortBackend>) -> std::io::Result<Self> {
        let name = backend.name();
        let (sender, calls) = crossbeam_channel::unbounded::<Call>();
        let (end, ended) = crossbeam_channel::bounded(0);
        let thread = std::thread::Builder::new().name(format!("ports {name}"));
        thread.spawn(move || {
            calls.iter().for_each(|call| call(backend.as_mut()));
            // Before the end is reported: a server whose client is cut off while it says goodbye stands still for
            // seconds.
            drop(backend);
            drop::<Sender<()>>(end);
        })?;
        Ok(Self { name, calls: Some(sender), unanswered: Arc::default(), ended })
    }

    /// The backend's word for listings.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Has the backend do something and waits for the result, but not for ever.
    ///
    /// # Errors
    /// See [`NoAnswer`]. A result that comes too late is dropped, on the backend's thread.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn PortBackend) -> T + Send + 'static,
    ) -> Result<T, NoAnswer> {
        // It was waited for already.
        if self.unanswered.load(Ordering::Acquire) {
            return Err(NoAnswer::Hangs);
        }
        let (answer, answered) = crossbeam_channel::bounded(1);
        self.unanswered.store(true, Ordering::Release);
        let unanswered = Arc::clone(&self.unanswered);
        self.send(move |backend| {
            let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(backend)));
            unanswered.store(false, Ordering::Release);
            let _ = answer.send(result);
        });
        match answered.recv_timeout(REPLY_TIMEOUT) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(NoAnswer::Failed(PortError(format!("{} failed inside (a panic)", self.name)))),
            Err(RecvTimeoutError::Timeout) => Err(NoAnswer::Hangs),
            Err(RecvTimeoutError::Disconnected) => Err(NoAnswer::Failed(PortError(format!("{} is gone", self.name)))),
        }
    }

    /// Drops something on the backend's thread: closing a port may hang like opening it.
    pub fn put_away<T: Send + 'static>(&self, thing: T) {
        self.send(move |_| {
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop(thing)));
        });
    }

    /// Waits until everything that was put away is closed, but not for ever.
    pub fn finish(&self) {
        let _ = self.ask(|_| ());
    }

    fn send(&self, work: impl FnOnce(&mut dyn PortBackend) + Send + 'static) {
        if let Some(calls) = &self.calls {
            let _ = calls.send(Box::new(work));
        }
    }
}

impl Drop for BackendThread {
    /// Lets the thread finish, but leaves one that hangs behind.
    fn drop(&mut self) {
        self.calls = None;
        let _ = self.ended.recv_timeout(REPLY_TIMEOUT);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test a panic is a result")]
mod tests {
    use super::super::{Connection, EventSink, MidiOut, PortInfo};
    use super::*;

    /// A backend that takes a while to say goodbye.
    struct Slow(Arc<AtomicBool>);

    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(50));
            self.0.store(true, Ordering::Release);
        }
    }

    impl PortBackend for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn list(&mut self) -> Result<Vec<PortInfo>, PortError> {
            Ok(Vec::new())
        }

        fn open_input(&mut self, _: &PortInfo, _: EventSink) -> Result<Box<dyn Connection>, PortError> {
            Err(PortError("there is none".into()))
        }

        fn open_output(&mut self, _: &PortInfo) -> Result<Box<dyn MidiOut>, PortError> {
            Err(PortError("there is none".into()))
        }
    }

    #[test]
    fn the_end_waits_until_the_backend_has_said_goodbye() {
        let gone: Arc<AtomicBool> = Arc::default();
        let thread = BackendThread::start(Box::new(Slow(Arc::clone(&gone)))).unwrap();
        assert!(thread.ask(|backend| backend.list()).unwrap().unwrap().is_empty());
        drop(thread);
        assert!(gone.load(Ordering::Acquire));
    }
}
