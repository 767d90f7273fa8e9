//! Calls that take long, as tasks of the extension `io.modelcontextprotocol/tasks`: a client that declares it gets a
//! handle instead of waiting, and asks for the result later.
//!
//! A call becomes a task if it has not ended after [`TASK_AFTER`]. With the places for tasks taken it is waited for, as
//! it is for clients without the extension. A task belongs to the client that made the call; others do not find it.
//! Its user is asked nothing: a plan that it proposes waits for a person at the command line.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, GetTaskResult, Task};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::ClientKey;

/// How long a call is waited for before its client gets a handle.
pub(super) const TASK_AFTER: Duration = Duration::from_secs(1);
/// How long a task may take, and its result is kept after it.
const TASK_RETENTION: Duration = Duration::from_secs(300);
/// How often a client should ask.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Tasks of all clients behind one door that are kept at once. Each result has at most 256 KiB.
const MAX_TASKS: usize = 32;
/// Tasks of one client that are kept at once.
const MAX_OWN: usize = 4;

/// A call that runs in the background.
pub(super) struct Running<T> {
    /// Its end.
    pub(super) call: JoinHandle<T>,
    /// How far it is, from 0 to 1, and what it does, as it reports them.
    pub(super) steps: UnboundedReceiver<(f32, String)>,
    /// Ends it.
    pub(super) cancel: CancellationToken,
}

/// The tasks of the clients behind one door.
#[derive(Default)]
pub(super) struct Tasks {
    manager: TaskManager,
    owners: Mutex<HashMap<String, ClientKey>>,
}

impl Tasks {
    fn owners(&self) -> MutexGuard<'_, HashMap<String, ClientKey>> {
        self.owners.lock()
    }

    /// Makes a task of a call; `finish` makes the client's result of how it ends.
    ///
    /// # Errors
    /// The call again if this client, or all together, have as many tasks as are kept.
    pub(super) fn adopt<T: Send + 'static>(
        &self,
        owner: ClientKey,
        running: Running<T>,
        finish: impl FnOnce(T) -> CallToolResult + Send + 'static,
    ) -> Result<Task, Running<T>> {
        let mut owners = self.owners();
        owners.retain(|id, _| self.manager.get_task(id).is_ok());
        if owners.len() >= MAX_TASKS || owners.values().filter(|other| **other == owner).count() >= MAX_OWN {
            return Err(running);
        }
        let Running { mut call, mut steps, cancel } = running;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options =
            TaskOptions::new().with_ttl_ms(millis(TASK_RETENTION)).with_poll_interval_ms(millis(POLL_INTERVAL));
        let task = self.manager.spawn(options, |context| {
            // Ends the call also if the task itself is ended, because its time is up.
            let guard = cancel.clone().drop_guard();
            Box::pin(async move {
                let _guard = guard;
                loop {
                    tokio::select! {
                        ended = &mut call => return match ended {
                            Ok(ended) => Ok(finish(ended)),
                            Err(_) => Err(TaskExit::Error(ErrorData::internal_error("the host is stopping", None))),
                        },
                        Some((_, message)) = steps.recv() => context.set_status_message(message),
                        () = context.cancelled() => {
                            cancel.cancel();
                            return Err(TaskExit::Cancelled);
                        }
                    }
                }
            })
        });
        owners.insert(task.task_id.clone(), owner);
        Ok(task)
    }

    /// Checks that a task is there and this client's.
    fn check(&self, client: &ClientKey, id: &str) -> Result<(), ErrorData> {
        if self.owners().get(id) == Some(client) {
            return Ok(());
        }
        Err(ErrorData::invalid_params("this client has no task of this id, or it has expired", None))
    }

    /// The state of a task, and its result if it has ended.
    ///
    /// # Errors
    /// If this client has no such task.
    pub(super) fn get(&self, client: &ClientKey, id: &str) -> Result<GetTaskResult, ErrorData> {
        self.check(client, id)?;
        self.manager.get_task(id).map(GetTaskResult::new)
    }

    /// Takes answers for a task. None of ours asks anything, so they are left aside, as the extension says.
    ///
    /// # Errors
    /// If this client has no such task.
    pub(super) fn update(&self, client: &ClientKey, id: &str) -> Result<(), ErrorData> {
        self.check(client, id)?;
        self.manager.update_task(id, [])
    }

    /// Ends a task, if it has not ended by itself.
    ///
    /// # Errors
    /// If this client has no such task.
    pub(super) fn cancel(&self, client: &ClientKey, id: &str) -> Result<(), ErrorData> {
        self.check(client, id)?;
        self.manager.cancel_task(id)
    }

    /// Ends the tasks of a client that is gone. They keep their places until they expire, so that a client gets no
    /// new ones by leaving and coming back.
    pub(super) fn leave(&self, client: &ClientKey) {
        for (id, _) in self.owners().iter().filter(|(_, owner)| *owner == client) {
            // It may have expired.
            let _ = self.manager.cancel_task(id);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rmcp::model::{ContentBlock, TaskStatus};
    use tokio::sync::{mpsc, oneshot};

    /// A call that ends when the sender is used, and says what ended it.
    fn call() -> (Running<&'static str>, oneshot::Sender<()>, mpsc::UnboundedSender<(f32, String)>) {
        let (end, ended) = oneshot::channel();
        let (step, steps) = mpsc::unbounded_channel();
        let work = async move {
            let _ = ended.await;
            "done"
        };
        (Running { call: tokio::spawn(work), steps, cancel: CancellationToken::new() }, end, step)
    }

    fn finish(text: &'static str) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text(text)])
    }

    async fn until(tasks: &Tasks, client: &ClientKey, id: &str, what: impl Fn(&GetTaskResult) -> bool) {
        tokio::time::timeout(Duration::from_secs(10), async {
            while !what(&tasks.get(client, id).unwrap()) {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_task_is_its_clients_and_says_how_far_it_is() {
        let (tasks, one, other) = (Tasks::default(), ClientKey::Server(1), ClientKey::Server(2));
        let (running, end, step) = call();
        let id = tasks.adopt(one.clone(), running, finish).ok().unwrap().task_id;
        assert!(tasks.get(&other, &id).is_err() && tasks.cancel(&other, &id).is_err());
        assert!(tasks.update(&other, &id).is_err() && tasks.update(&one, &id).is_ok());
        step.send((0.5, "half".to_owned())).unwrap();
        until(&tasks, &one, &id, |task| task.task.task.status_message.as_deref() == Some("half")).await;
        end.send(()).unwrap();
        until(&tasks, &one, &id, |task| task.task.status() == TaskStatus::Completed).await;
    }

    #[tokio::test]
    async fn a_cancelled_task_ends_its_call() {
        let (tasks, client) = (Tasks::default(), ClientKey::Server(1));
        for leaves in [false, true] {
            let (running, _end, _step) = call();
            let cancel = running.cancel.clone();
            let id = tasks.adopt(client.clone(), running, finish).ok().unwrap().task_id;
            if leaves {
                tasks.leave(&client);
            } else {
                tasks.cancel(&client, &id).unwrap();
            }
            tokio::time::timeout(Duration::from_secs(10), cancel.cancelled()).await.unwrap();
            until(&tasks, &client, &id, |task| task.task.status() == TaskStatus::Cancelled).await;
        }
    }

    #[tokio::test]
    async fn so_many_are_kept_of_one_client_and_of_all() {
        let tasks = Tasks::default();
        let mut ends = Vec::new();
        let mut adopt = |client| {
            let (running, end, step) = call();
            ends.push((end, step));
            tasks.adopt(ClientKey::Server(client), running, finish).is_ok()
        };
        assert_eq!((0..2 * MAX_OWN).filter(|_| adopt(0)).count(), MAX_OWN);
        assert_eq!((1..2 * MAX_TASKS as u64).filter(|client| adopt(*client)).count(), MAX_TASKS - MAX_OWN);
        tasks.leave(&ClientKey::Server(0));
        assert!(!adopt(0), "who leaves keeps their places taken");
    }
}
