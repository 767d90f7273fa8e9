//! Background tasks and their supervisor: the host starts, watches, restarts (with backoff) and stops them. Each has an
//! instance of its own.
//!
//! A task starts with its feature or on demand, and may be started again when it has ended. One run at a time.

use parking_lot::{Mutex, MutexGuard};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::runnable::{check_quarantine, record_trap};
use crate::task_set::OnDemand;
use crate::{CallError, PreparedFeature};
use conductor_package::descriptor::{Restart, TaskDeclaration};

pub use crate::task_set::StillEnding;

/// The pause before the first restart; it doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause, and how long a run has to last for the next pause to be the first again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TaskState {
    /// It starts on demand, and was not started yet.
    Idle,
    /// It runs.
    Running,
    /// It is done.
    Done,
    /// It failed, and will not be started again.
    Failed {
        /// Why.
        reason: String,
    },
    /// It failed, and will be started again.
    Waiting {
        /// Why it failed.
        reason: String,
        /// Until it is started again, in milliseconds.
        pause: u64,
    },
    /// It is being stopped.
    Stopping,
    /// It was stopped.
    Ended,
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Running => f.write_str("running"),
            Self::Done => f.write_str("done"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Waiting { reason, .. } => write!(f, "waiting: {reason}"),
            Self::Stopping => f.write_str("stopping"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

/// A background task. Dropping it stops it for good.
#[derive(Debug)]
pub struct Task {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    feature: PreparedFeature,
    declared: TaskDeclaration,
    run: Mutex<Run>,
}

/// The run under way, or the last one.
#[derive(Debug)]
struct Run {
    state: TaskState,
    starts: u64,
    /// Cancelled when it should end.
    ending: CancellationToken,
    /// Cancelled when it has ended.
    ended: CancellationToken,
    /// Whether it must not be started any more.
    is_closed: bool,
}

impl Shared {
    fn run(&self) -> MutexGuard<'_, Run> {
        self.run.lock()
    }

    fn set(&self, state: TaskState) {
        self.run().state = state;
    }

    fn stop(&self) {
        let mut run = self.run();
        if matches!(run.state, TaskState::Running | TaskState::Waiting { .. }) {
            run.state = TaskState::Stopping;
        }
        run.ending.cancel();
    }
}

impl OnDemand for Shared {
    fn name(&self) -> &str {
        &self.declared.name
    }

    fn start(self: Arc<Self>) -> Result<(), StillEnding> {
        let mut run = self.run();
        match run.state {
            TaskState::Running | TaskState::Waiting { .. } => return Ok(()),
            TaskState::Stopping => return Err(StillEnding),
            _ => {}
        }
        if run.is_closed {
            return Err(StillEnding);
        }
        run.state = TaskState::Running;
        (run.ending, run.ended) = (CancellationToken::new(), CancellationToken::new());
        let (shared, ending) = (Arc::clone(&self), run.ending.clone());
        let ended = run.ended.clone().drop_guard();
        self.feature.runtime().spawn(async move {
            let state = supervise(&shared, &ending).await;
            shared.set(state);
            drop(ended);
        });
        Ok(())
    }

    fn end(&self) {
        self.stop();
    }
}

/// A task as text and numbers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TaskReport {
    /// Its name.
    pub name: String,
    /// How it is.
    #[serde(flatten)]
    pub state: TaskState,
    /// How often it was started.
    pub starts: u64,
}

impl Task {
    /// A task that does not run yet. Its feature can start it by its name, if it declares that it starts on demand.
    pub fn new(feature: PreparedFeature, declared: &TaskDeclaration) -> Self {
        let ended = CancellationToken::new();
        ended.cancel();
        let run = Run { state: TaskState::Idle, starts: 0, ending: CancellationToken::new(), ended, is_closed: false };
        let shared = Arc::new(Shared { declared: declared.clone(), run: Mutex::new(run), feature });
        let found = Arc::downgrade(&shared);
        shared.feature.facts().tasks.add(found);
        Self { shared }
    }

    /// A task that runs.
    pub fn start(feature: PreparedFeature, declared: &TaskDeclaration) -> Self {
        let task = Self::new(feature, declared);
        // Nothing ends before it began.
        let _ = task.run();
        task
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.declared.name
    }

    /// Starts it, and returns before it runs. Without effect if it runs, or waits to be started again.
    ///
    /// # Errors
    /// [`StillEnding`].
    pub fn run(&self) -> Result<(), StillEnding> {
        Arc::clone(&self.shared).start()
    }

    /// Stops it, if it runs, and returns before it has ended. It can be started again.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Cancelled when it does not run any more.
    pub fn ended(&self) -> CancellationToken {
        self.shared.run().ended.clone()
    }

    /// How it is.
    pub fn report(&self) -> TaskReport {
        let run = self.shared.run();
        TaskReport { name: self.name().to_owned(), state: run.state.clone(), starts: run.starts }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.shared.run().is_closed = true;
        self.shared.stop();
    }
}

/// Runs a task until it is done, has failed for good, or is stopped. Returns its state then.
async fn supervise(task: &Shared, ending: &CancellationToken) -> TaskState {
    let Shared { feature, declared, .. } = task;
    let mut pause = INITIAL_BACKOFF;
    loop {
        {
            let mut run = task.run();
            run.starts += 1;
            if run.state != TaskState::Stopping {
                run.state = TaskState::Running;
            }
        }
        let began = Instant::now();
        let result = run(feature, &declared.name, ending).await;
        if ending.is_cancelled() || feature.facts().is_revoked() {
            return TaskState::Ended;
        }
        let reason = match result {
            Ok(()) => return TaskState::Done,
            Err(error) => {
                if matches!(error, CallError::Trapped(_)) {
                    record_trap(feature.facts());
                }
                error.to_string()
            }
        };
        tracing::warn!(feature = %feature.facts().descriptor.id, "the task {} failed: {reason}", declared.name);
        if declared.restart == Restart::Never {
            return TaskState::Failed { reason };
        }
        if began.elapsed() >= MAX_BACKOFF {
            pause = INITIAL_BACKOFF;
        }
        {
            let mut run = task.run();
            if run.state != TaskState::Stopping {
                let pause = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
                run.state = TaskState::Waiting { reason, pause };
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ending.cancelled() => return TaskState::Ended,
            () = feature.facts().ended().cancelled() => return TaskState::Ended,
        }
        pause = (pause * 2).min(MAX_BACKOFF);
    }
}

async fn run(feature: &PreparedFeature, name: &str, ending: &CancellationToken) -> Result<(), CallError> {
    check_quarantine(feature.facts())?;
    let mut instance = feature.instantiate_control().await?;
    tokio::select! {
        result = instance.run_task(name, ending) => result,
        () = feature.facts().ended().cancelled() => Ok(()),
    }
}
