//! The actor that owns one feature's instance in the control lane, with a bounded mailbox.
//!
//! One call at a time, in the order they come. When one traps it fails, and the next one finds a
//! fresh instance.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::control::{Change, ChatDecision, ChatHook, Decision, ToolCall};
use crate::host_functions::invocation::OnProgress;
use crate::limits;
use crate::state::FeatureFacts;
use crate::{CallError, ControlInstance, InstallError, PreparedFeature, Registrations, ServiceError, ToolOutput};
use conductor_audit::caller::Caller;
use conductor_package::descriptor::Tier;

/// Calls that may wait. Beyond that a call is refused.
pub const MAILBOX: usize = 32;

type Reply<T> = oneshot::Sender<Result<T, CallError>>;

enum Request {
    Call {
        caller: Caller,
        tier: Tier,
        name: String,
        args: String,
        cancelled: CancellationToken,
        progress: OnProgress,
        reply: Reply<ToolOutput>,
    },
    Before {
        call: Arc<ToolCall>,
        reply: Reply<Decision>,
    },
    After {
        call: Arc<ToolCall>,
        failed: Option<String>,
        reply: Reply<Option<String>>,
    },
    Chat {
        hook: ChatHook,
        reply: Reply<ChatDecision>,
    },
    Changed(Change),
    Export {
        reply: Reply<Vec<u8>>,
    },
    TakeOver {
        from: Actor,
        keep: Box<dyn Any + Send + Sync>,
    },
}

/// What an actor has done so far.
#[derive(Debug, Default)]
pub struct ActorCounters {
    /// Calls that gave a result.
    pub done: AtomicU64,
    /// Calls that gave none.
    pub failed: AtomicU64,
    /// Of those: traps and overruns.
    pub trapped: AtomicU64,
    /// Nanoseconds that calls took, waiting included.
    pub busy: AtomicU64,
}

/// The way to a feature in the control lane. Clones share it; the actor ends with the last one, or
/// when the feature's grants are taken back.
#[derive(Debug, Clone)]
pub struct Actor {
    orders: mpsc::Sender<Request>,
    registered: Arc<Registrations>,
    counters: Arc<ActorCounters>,
}

impl Actor {
    /// Makes the first instance, which installs the feature, and starts the actor around it. Waits
    /// for the installation; not to be called where nothing may wait.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is left behind.
    pub fn start(feature: PreparedFeature) -> Result<Self, InstallError> {
        let (installed, wait) = std::sync::mpsc::sync_channel(1);
        let runtime = feature.runtime().clone();
        let (orders, mailbox) = mpsc::channel(MAILBOX);
        let counters = Arc::<ActorCounters>::default();
        let kept = Arc::clone(&counters);
        runtime.spawn(async move {
            let instance = match feature.instantiate_control().await {
                Ok(instance) => instance,
                Err(error) => return drop(installed.send(Err(error))),
            };
            if installed.send(Ok(instance.registered().clone())).is_err() {
                return;
            }
            let ended = feature.facts().ended().clone();
            let worker = Worker { feature, instance: Some(instance), counters: kept };
            // Whatever it is at when the grants are taken back ends there and then.
            tokio::select! {
                () = worker.run(mailbox) => {}
                () = ended.cancelled() => {}
            }
        });
        let gone = |_| InstallError::Instantiate("the control lane is shut down".into());
        let registered = wait.recv().map_err(gone)??;
        Ok(Self { orders, registered: Arc::new(registered), counters })
    }

    /// What the feature registered.
    pub fn registered(&self) -> &Registrations {
        &self.registered
    }

    /// What it has done so far.
    pub fn counters(&self) -> &ActorCounters {
        &self.counters
    }

    /// Calls that wait.
    pub fn waiting(&self) -> usize {
        MAILBOX - self.orders.capacity()
    }

    /// Calls a tool that it registered, for `caller`; `args` is a JSON object.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(
        &self,
        caller: Caller,
        tier: Tier,
        name: &str,
        args: String,
        cancelled: CancellationToken,
        progress: OnProgress,
    ) -> Result<ToolOutput, CallError> {
        let (name, (reply, answer)) = (name.to_owned(), oneshot::channel());
        self.order(Request::Call { caller, tier, name, args, cancelled, progress, reply }, answer).await
    }

    /// Asks its hook before a tool runs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn before(&self, call: Arc<ToolCall>) -> Result<Decision, CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(Request::Before { call, reply }, answer).await
    }

    /// Tells its hook after a tool ran.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn after(&self, call: Arc<ToolCall>, failed: Option<String>) -> Result<Option<String>, CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(Request::After { call, failed, reply }, answer).await
    }

    /// Asks or tells its hook around what models are asked.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn chat_hook(&self, hook: ChatHook) -> Result<ChatDecision, CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(Request::Chat { hook, reply }, answer).await
    }

    /// Tells its hook of a change, without waiting. What finds no room is left out.
    pub fn changed(&self, change: Change) {
        let _ = self.orders.try_send(Request::Changed(change));
    }

    /// Takes over the state of the instance that this one replaces, before any call that comes later. Returns at once;
    /// `keep` is kept until `from` has exported its state.
    pub fn take_over(&self, from: Self, keep: Box<dyn Any + Send + Sync>) {
        let _ = self.orders.try_send(Request::TakeOver { from, keep });
    }

    /// Has the instance export its state.
    async fn export_state(&self) -> Result<Vec<u8>, CallError> {
        let (reply, answer) = oneshot::channel();
        self.order(Request::Export { reply }, answer).await
    }

    async fn order<T>(&self, order: Request, answer: oneshot::Receiver<Result<T, CallError>>) -> Result<T, CallError> {
        let refused = |error: mpsc::error::TrySendError<Request>| match error {
            mpsc::error::TrySendError::Full(_) => {
                CallError::Refused(ServiceError::Exhausted(format!("{MAILBOX} calls are waiting already")))
            }
            mpsc::error::TrySendError::Closed(_) => gone(),
        };
        self.orders.try_send(order).map_err(refused)?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> CallError {
    CallError::Refused(ServiceError::Denied("the feature was taken away while it worked".into()))
}

struct Worker {
    feature: PreparedFeature,
    instance: Option<ControlInstance>,
    counters: Arc<ActorCounters>,
}

impl Worker {
    async fn run(mut self, mut mailbox: mpsc::Receiver<Request>) {
        while let Some(order) = mailbox.recv().await {
            let began = Instant::now();
            match order {
                Request::Call { caller, tier, name, args, cancelled, progress, reply } => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.call_tool(caller, tier, &name, &args, &cancelled, progress).await,
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(self.account(result));
                }
                Request::Before { call, reply } => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.before_call(&call).await,
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(self.account(result));
                }
                Request::After { call, failed, reply } => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.after_call(&call, failed.as_deref()).await,
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(self.account(result));
                }
                Request::Chat { hook, reply } => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.chat_hook(&hook).await,
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(self.account(result));
                }
                Request::Export { reply } => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.export_state().await,
                        Err(error) => Err(error),
                    };
                    let _ = reply.send(self.account(result));
                }
                Request::TakeOver { from, keep } => {
                    if let Err(error) = self.take_over(&from).await {
                        let feature = &self.feature.facts().descriptor.id;
                        tracing::warn!(%feature, "it starts without the state of the instance before: {error}");
                    }
                    drop(keep);
                }
                Request::Changed(change) => {
                    let result = match self.instance().await {
                        Ok(instance) => instance.changed(&change).await,
                        Err(error) => Err(error),
                    };
                    let _ = self.account(result);
                }
            }
            let busy = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.counters.busy.fetch_add(busy, Ordering::Relaxed);
        }
    }

    /// Imports the state of another instance.
    async fn take_over(&mut self, from: &Actor) -> Result<(), CallError> {
        let late = |_| {
            let text = format!("it did not export its state within {} s", limits::HANDOVER_TIMEOUT.as_secs());
            Err(CallError::Refused(ServiceError::Exhausted(text)))
        };
        let state = tokio::time::timeout(limits::HANDOVER_TIMEOUT, from.export_state()).await.unwrap_or_else(late)?;
        let result = self.instance().await?.import_state(&state).await;
        self.account(result)
    }

    /// The instance, or a fresh one.
    async fn instance(&mut self) -> Result<&mut ControlInstance, CallError> {
        // The end of one call by revocation must not be the beginning of the next.
        if self.feature.facts().is_revoked() {
            return Err(gone());
        }
        check_quarantine(self.feature.facts())?;
        let instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.feature.instantiate_control().await?,
        };
        Ok(self.instance.insert(instance))
    }

    fn account<T>(&mut self, result: Result<T, CallError>) -> Result<T, CallError> {
        match &result {
            Ok(_) => self.counters.done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                if matches!(error, CallError::Trapped(_)) {
                    self.instance = None;
                    record_trap(self.feature.facts());
                    self.counters.trapped.fetch_add(1, Ordering::Relaxed);
                }
                self.counters.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
        result
    }
}

/// Refuses while a feature is in quarantine.
///
/// # Errors
/// [`ServiceError::Unavailable`], with how long it will be.
pub fn check_quarantine(facts: &FeatureFacts) -> Result<(), CallError> {
    match facts.quarantine.left(Instant::now()) {
        None => Ok(()),
        Some(left) => Err(CallError::Refused(ServiceError::Unavailable(format!(
            "it kept trapping and is quarantined for {} s more",
            left.max(Duration::from_secs(1)).as_secs()
        )))),
    }
}

/// Refuses while a feature is in quarantine, or its calls in the real-time lane have used up their share of
/// the processor.
///
/// # Errors
/// Those of [`check_quarantine`], or [`ServiceError::Exhausted`].
pub fn may_run_now(facts: &FeatureFacts) -> Result<(), CallError> {
    check_quarantine(facts)?;
    if facts.cpu_share.is_spent(Instant::now) {
        if facts.cpu_share.strikes(Instant::now()) {
            record_trap(facts);
        }
        let text = format!("it used up its {} ms of CPU time a second and is left out", limits::REALTIME_CPU_RATE);
        return Err(CallError::Refused(ServiceError::Exhausted(text)));
    }
    Ok(())
}

/// Refuses a batch of events in the same cases, and when all features together leave none of the control lane's
/// share for it.
///
/// # Errors
/// Those of [`may_run_now`].
pub fn may_watch_now(facts: &FeatureFacts) -> Result<(), CallError> {
    may_run_now(facts)?;
    if facts.leaves_out_events(Instant::now()) {
        let text = format!("features used up their {} ms of CPU time a second", limits::LANE_CPU.rate);
        return Err(CallError::Refused(ServiceError::Exhausted(text)));
    }
    Ok(())
}

/// Counts a trap of a feature.
pub fn record_trap(facts: &FeatureFacts) {
    if facts.quarantine.record_trap(Instant::now()) {
        tracing::warn!(feature = %facts.descriptor.id, "keeps trapping; it is quarantined");
    }
}

/// A hook's answer, in time: a hook's own limit does not count what waits before it in its mailbox.
///
/// # Errors
/// Those of the hook, and [`ServiceError::Exhausted`] when the time is up.
pub async fn hook_answer<T>(answer: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    let late = |_| Err(CallError::Refused(ServiceError::Exhausted("it is busy".into())));
    tokio::time::timeout(limits::HOOK_TIMEOUT * 2, answer).await.unwrap_or_else(late)
}
