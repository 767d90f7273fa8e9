//! Background tasks: started, watched, restarted and ended by the host. Each has an instance of
//! its own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::actor::{check_quarantine, record_trap};
use crate::{CallError, PreparedFeature};
use conductor_package::descriptor::{Restart, TaskDeclaration};

/// The pause before the first restart; it doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause, and how long a run has to last for the next pause to be the first again.
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// How a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum TaskState {
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
    /// The host ended it.
    Ended,
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Done => f.write_str("done"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Waiting { reason, .. } => write!(f, "waiting: {reason}"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

/// A background task. Dropping it tells the task to end.
#[derive(Debug)]
pub struct Task {
    name: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    ending: CancellationToken,
    state: Mutex<(TaskState, u64)>,
}

impl Shared {
    fn set(&self, state: TaskState) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = state;
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
    /// Starts a task.
    pub fn start(feature: PreparedFeature, declared: &TaskDeclaration) -> Self {
        let shared = Arc::new(Shared { ending: CancellationToken::new(), state: Mutex::new((TaskState::Running, 0)) });
        let (task, name, declared) = (Arc::clone(&shared), declared.name.clone(), declared.clone());
        let runtime = feature.runtime().clone();
        runtime.spawn(async move { supervise(&feature, &declared, &task).await });
        Self { name, shared }
    }

    /// How it is.
    pub fn report(&self) -> TaskReport {
        let (state, starts) = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        TaskReport { name: self.name.clone(), state, starts }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.shared.ending.cancel();
    }
}

async fn supervise(feature: &PreparedFeature, declared: &TaskDeclaration, task: &Shared) {
    let mut pause = INITIAL_BACKOFF;
    loop {
        {
            let mut state = task.state.lock().unwrap_or_else(PoisonError::into_inner);
            *state = (TaskState::Running, state.1 + 1);
        }
        let began = Instant::now();
        let result = run(feature, &declared.name, &task.ending).await;
        if task.ending.is_cancelled() || feature.facts().is_revoked() {
            return task.set(TaskState::Ended);
        }
        let reason = match result {
            Ok(()) => return task.set(TaskState::Done),
            Err(error) => {
                if matches!(error, CallError::Trapped(_)) {
                    record_trap(feature.facts());
                }
                error.to_string()
            }
        };
        tracing::warn!(feature = %feature.facts().descriptor.id, "the task {} failed: {reason}", declared.name);
        if declared.restart == Restart::Never {
            return task.set(TaskState::Failed { reason });
        }
        if began.elapsed() >= MAX_BACKOFF {
            pause = INITIAL_BACKOFF;
        }
        task.set(TaskState::Waiting { reason, pause: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX) });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = task.ending.cancelled() => return task.set(TaskState::Ended),
            () = feature.facts().ended().cancelled() => return task.set(TaskState::Ended),
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
