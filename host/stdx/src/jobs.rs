//! Jobs: long work for clients, on a thread pool beside the threads that answer, with a limit
//! of jobs at once for each kind of client.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// How long work for a client may take before the client gets an error instead of its result.
const JOB_TIMEOUT: Duration = Duration::from_secs(30);

/// Work that is done on other threads, so that no other client waits for it: limited in number and in time.
#[derive(Debug, Clone)]
pub struct Jobs {
    /// Of the client, or of all that have this together.
    places: Arc<Semaphore>,
    /// Of all clients behind a door that have some of their own each.
    shared: Option<Arc<Semaphore>>,
    timeout: Duration,
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It took too long, or earlier jobs of the same client did.
    #[error("it took longer than {} s; ask for less at once, or later", JOB_TIMEOUT.as_secs())]
    TimedOut,
    /// It was not finished.
    #[error("the host could not finish it")]
    Unfinished,
}

impl Jobs {
    /// At most `places` jobs at once, each for at most 30 seconds.
    pub fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), shared: None, timeout: JOB_TIMEOUT }
    }

    /// At most `places` of these for one client of several.
    pub fn part(&self, places: usize) -> Self {
        Self { shared: Some(Arc::clone(&self.places)), ..Self::new(places) }
    }

    /// Returns what `work` returns, if that is in time. Work that is late goes on, but keeps its place: a client that
    /// does not wait can't have more under way than one that does.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn read<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JobError> {
        tokio::time::timeout(self.timeout, self.run(work)).await.unwrap_or(Err(JobError::TimedOut))
    }

    /// The same for work that changes something: once begun, its result is waited for.
    ///
    /// # Errors
    /// See [`JobError`].
    pub async fn write<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JobError> {
        self.run(work).await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, JobError> {
        let place =
            async |places: &Arc<Semaphore>| Arc::clone(places).acquire_owned().await.map_err(|_| JobError::Unfinished);
        let own = place(&self.places).await?;
        let shared = match &self.shared {
            Some(shared) => Some(place(shared).await?),
            None => None,
        };
        let work = move || {
            let done = work();
            drop((own, shared));
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| JobError::Unfinished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_parts_of_what_all_have() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let all = Jobs::new(2);
        let part = || Jobs { timeout: Duration::from_millis(20), ..all.part(1) };
        let (greedy, modest, third) = (part(), part(), part());
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (end_other, other_ended) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            assert_eq!(greedy.read(move || ended.recv()).await, Err(JobError::TimedOut));
            assert_eq!(greedy.read(|| 1).await, Err(JobError::TimedOut), "its one place is taken");
            let patient = Jobs { timeout: JOB_TIMEOUT, ..modest.clone() };
            assert_eq!(patient.read(|| 2).await, Ok(2));
            assert_eq!(modest.read(move || other_ended.recv()).await, Err(JobError::TimedOut));
            assert_eq!(third.read(|| 3).await, Err(JobError::TimedOut), "those of all are taken");
            end.send(()).unwrap();
            end_other.send(()).unwrap();
            assert_eq!(third.write(|| 3).await, Ok(3));
        });
    }

    #[test]
    fn late_work_keeps_its_place() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let jobs = Jobs { timeout: Duration::from_millis(20), ..Jobs::new(1) };
        let (end, ended) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            assert_eq!(jobs.read(move || ended.recv()).await, Err(JobError::TimedOut));
            assert_eq!(jobs.read(|| 1).await, Err(JobError::TimedOut), "the first one still works");
            end.send(()).unwrap();
            assert_eq!(jobs.write(|| 2).await, Ok(2));
        });
    }
}
