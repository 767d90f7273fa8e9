//! The thread that talks to the desktop's keyring (the Secret Service of GNOME, KDE, KeePassXC).
//!
//! A desktop may ask a person to unlock its keyring, and the person may be away. So one thread talks to it, one
//! request after the other, and a caller waits until a timeout.

use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};
use keyring_core::{Error, Result};

/// How long a person has to unlock the keyring.
const UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// How many may wait; more are refused at once.
const QUEUE_CAPACITY: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// Does `work` on that thread when its turn comes, if that is soon enough.
///
/// # Errors
/// Those of `work`; [`Error::NoStorageAccess`] when it was not done within a minute, or too many wait.
pub fn in_turn<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    static THREAD: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let Some(thread) = THREAD.get_or_init(start) else {
        return Err(no_access("no thread could be started for it"));
    };
    on(thread, UNLOCK_TIMEOUT, work)
}

fn start() -> Option<Sender<Job>> {
    let (sender, jobs) = crossbeam_channel::bounded::<Job>(QUEUE_CAPACITY);
    let thread = std::thread::Builder::new().name("keyring".into());
    match thread.spawn(move || jobs.iter().for_each(|job| job())) {
        Ok(_) => Some(sender),
        Err(error) => {
            tracing::warn!("the desktop's keyring can't be used: {error}");
            None
        }
    }
}

fn on<T: Send + 'static>(
    thread: &Sender<Job>,
    within: Duration,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, outcome) = mpsc::sync_channel(1);
    let until = Instant::now() + within;
    let job = Box::new(move || {
        // What was reported as failed must not be done later.
        if Instant::now() < until {
            let _ = done.send(work());
        }
    });
    match thread.try_send(job) {
        Ok(()) => outcome.recv_timeout(within).unwrap_or_else(|_| Err(no_access("it was not unlocked in time"))),
        Err(TrySendError::Full(_)) => Err(no_access("too many requests wait for it to be unlocked")),
        Err(TrySendError::Disconnected(_)) => Err(no_access("its thread has ended")),
    }
}

fn no_access(why: &str) -> Error {
    Error::NoStorageAccess(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why<T>(outcome: Result<T>) -> String {
        match outcome {
            Err(Error::NoStorageAccess(why)) => why.to_string(),
            Err(other) => other.to_string(),
            Ok(_) => "it was done".into(),
        }
    }

    #[test]
    fn nobody_waits_longer_than_their_time_for_a_person() {
        let thread = start().unwrap();
        assert_eq!(on(&thread, UNLOCK_TIMEOUT, || Ok(7)).unwrap(), 7);
        assert_eq!(why(on::<()>(&thread, UNLOCK_TIMEOUT, || Err(no_access("locked")))), "locked");

        let (unlock, locked) = mpsc::channel::<()>();
        let asked = on(&thread, Duration::from_millis(20), move || Ok(locked.recv().is_ok()));
        assert_eq!(why(asked), "it was not unlocked in time");

        // The person is still away. Those who come now queue behind, and give up; none of it is done later.
        let (did, done) = mpsc::channel();
        for _ in 0..QUEUE_CAPACITY {
            let did = did.clone();
            assert_eq!(why(on(&thread, Duration::ZERO, move || Ok(did.send(())))), "it was not unlocked in time");
        }
        assert_eq!(why(on(&thread, UNLOCK_TIMEOUT, || Ok(()))), "too many requests wait for it to be unlocked");
        drop(did);
        unlock.send(()).unwrap();
        assert!(done.recv().is_err(), "a request that had timed out was done");
        // All of them are gone, so there is room again.
        assert_eq!(on(&thread, UNLOCK_TIMEOUT, || Ok(7)).unwrap(), 7);
    }
}
