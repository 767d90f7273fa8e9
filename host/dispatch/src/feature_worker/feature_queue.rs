//! The way to a feature's actions, which costs nothing until one is used.
//!
//! Until a mapping uses an action, the feature has no worker: no thread, no queue, no instance. [`FeatureQueue::prepare`]
//! starts the worker, and waits until the action is ready, so that the event path finds everything there: a rule holds the
//! worker itself, by its [`PreparedAction`]. The worker ends by itself when no action has been in use for
//! [`IDLE_TIMEOUT`](super::IDLE_TIMEOUT).
//!
//! Orders are given under a lock, and a worker that ends looks for orders and leaves under the same lock. So none reaches
//! a worker that has decided to end. Only the control side takes it, and the worker's own thread at its end.

use std::mem;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use parking_lot::{Mutex, MutexGuard};

use super::prepared_action::PreparedAction;
use super::{ControlRequest, FeatureWorker};
use crate::WorkerCounters;
use conductor_observer::Observer;
use conductor_sandbox::runnable::check_quarantine;
use conductor_sandbox::{CallError, InstallError, PreparedFeature, RegisteredAction};

/// How long a feature may take to begin and end with a `prepare`.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(5);

/// The way to a feature. Clones share it.
#[derive(Debug, Clone)]
pub struct FeatureQueue(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    feature: PreparedFeature,
    observer: Observer,
    /// Of all its workers, one after the other.
    counters: Arc<WorkerCounters>,
    place: Arc<Place>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FeatureQueue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Where a feature's worker is, as long as there is one.
#[derive(Debug, Default)]
pub(crate) struct Place(Mutex<WorkerSlot>);

impl Place {
    /// For giving orders, starting and ending.
    pub(super) fn lock(&self) -> MutexGuard<'_, WorkerSlot> {
        self.0.lock()
    }
}

/// The worker, as long as there is one.
#[derive(Debug, Default)]
pub(super) enum WorkerSlot {
    /// No action is in use.
    #[default]
    Unused,
    Running(FeatureWorker, JoinHandle<()>),
    /// The feature is ended, and gets no worker any more.
    Ended(Option<JoinHandle<()>>),
}

impl WorkerSlot {
    /// The worker ends because it is not used.
    pub(super) fn leave(&mut self) {
        if matches!(self, Self::Running(..)) {
            *self = Self::Unused;
        }
    }

    fn worker(&self) -> Option<&FeatureWorker> {
        match self {
            Self::Running(worker, _) => Some(worker),
            Self::Unused | Self::Ended(_) => None,
        }
    }
}

impl FeatureQueue {
    /// Has the feature install itself, which finds its mistakes, and returns the actions that it registered. Nothing of that
    /// stays.
    ///
    /// # Errors
    /// See [`InstallError`].
    pub fn new(feature: PreparedFeature, observer: Observer) -> Result<(Self, Vec<RegisteredAction>), InstallError> {
        let registered = feature.instantiate()?.registered().to_vec();
        let name = feature.facts().descriptor.id.name().into();
        let shared = Shared { name, feature, observer, counters: Arc::default(), place: Arc::default() };
        Ok((Self(Arc::new(shared)), registered))
    }

    /// The feature's short name.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// What its workers have done so far.
    pub fn counters(&self) -> &WorkerCounters {
        &self.0.counters
    }

    /// Has the feature prepare an action; `params` is a JSON object. The same action with the same
    /// parameters is prepared once. While the feature is in quarantine this only notes what is wanted; see
    /// [`unavailable`](Self::unavailable). For the control side: it starts the worker if there is none, and waits for it.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn prepare(&self, action: &str, params: &str) -> Result<Arc<PreparedAction>, CallError> {
        let gone = || CallError::Trapped("the feature is shut down".into());
        let (reply, answer) = crossbeam_channel::bounded(1);
        {
            let mut kept = self.0.place.lock();
            let worker = match &*kept {
                WorkerSlot::Running(worker, _) => worker.clone(),
                WorkerSlot::Ended(_) => return Err(gone()),
                WorkerSlot::Unused => {
                    let (worker, thread) = self.start()?;
                    *kept = WorkerSlot::Running(worker.clone(), thread);
                    worker
                }
            };
            let (name, params, to) = (action.into(), params.into(), worker.clone());
            worker.order(ControlRequest::Prepare { name, params, worker: to, reply });
        }
        let action = answer.recv_timeout(PREPARE_TIMEOUT).map_err(|error| match error {
            RecvTimeoutError::Disconnected => gone(),
            RecvTimeoutError::Timeout => {
                CallError::Trapped(format!("the feature did not answer within {} s", PREPARE_TIMEOUT.as_secs()))
            }
        })??;
        Ok(Arc::new(action))
    }

    fn start(&self) -> Result<(FeatureWorker, JoinHandle<()>), CallError> {
        let Shared { feature, observer, counters, place, .. } = &*self.0;
        let place: Weak<Place> = Arc::downgrade(place);
        FeatureWorker::start(feature.clone(), Arc::clone(counters), observer.clone(), place)
            .map_err(|error| CallError::Trapped(format!("its thread can't be started: {error}")))
    }

    /// Why the feature does nothing now, if it is in quarantine.
    pub fn unavailable(&self) -> Option<String> {
        check_quarantine(self.0.feature.facts()).err().map(|error| error.to_string())
    }

    /// Whether it has a worker: an action is in use, or was a short while ago.
    pub fn has_worker(&self) -> bool {
        self.0.place.lock().worker().is_some()
    }

    /// Jobs that wait.
    pub fn waiting(&self) -> usize {
        self.0.place.lock().worker().map_or(0, FeatureWorker::waiting)
    }

    /// Ends the worker once it has done what is in its queue. There is none after that.
    pub fn finish(&self) {
        self.end(ControlRequest::Finish);
    }

    /// Ends the worker after the job that it is at; what is in its queue is left undone. There is none after that.
    pub fn abandon(&self) {
        self.end(ControlRequest::Abandon);
    }

    fn end(&self, order: ControlRequest) {
        let mut kept = self.0.place.lock();
        *kept = match mem::take(&mut *kept) {
            WorkerSlot::Running(worker, thread) => {
                worker.order(order);
                WorkerSlot::Ended(Some(thread))
            }
            WorkerSlot::Unused => WorkerSlot::Ended(None),
            ended @ WorkerSlot::Ended(_) => ended,
        };
    }

    /// Whether it has ended after [`finish`](Self::finish) or [`abandon`](Self::abandon).
    pub fn has_ended(&self) -> bool {
        match &*self.0.place.lock() {
            WorkerSlot::Ended(thread) => thread.as_ref().is_none_or(JoinHandle::is_finished),
            WorkerSlot::Unused | WorkerSlot::Running(..) => false,
        }
    }
}
