//! The actor of a feature in the control lane: a mailbox, and instances that are made for calls, kept, and dropped.
//!
//! There is none until the first call. A feature whose descriptor says `stateless` has its calls made side by side, up to
//! [`limits::MAX_PARALLEL_INSTANCES`], each in an instance that no other call is in; what is not used for [`limits::IDLE_TIMEOUT`] is
//! dropped. Any other feature has one instance, which makes one call at a time, in the order they come, and stays: it may
//! hold something. Calls beyond wait, and beyond [`MAILBOX_CAPACITY`] are refused. When one traps it fails, its instance is dropped,
//! and the next one finds a fresh instance; the other calls under way go on.
//!
//! The thread that brings a call makes it if calls of this feature are known to be short, up to the first wait or tick;
//! see [`first_step`]. All others are made in the lane.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::control::{Change, ChatDecision, ChatHook, Decision, ToolCall};
use crate::handles::OnProgress;
use crate::limits;
use crate::runnable::{check_quarantine, record_trap};
use crate::{CallError, ControlInstance, InstallError, PreparedFeature, Registrations, ServiceError, ToolOutput};
use conductor_audit::caller::Caller;
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::{HookPoint, Tier};
use conductor_stdx::first_step::{self, Step};
use conductor_stdx::pace::Pace;
use conductor_stdx::pool::{Full, Pool, Share};

/// Calls that may wait. Beyond that a call is refused.
pub const MAILBOX_CAPACITY: usize = 32;

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
    /// Calls that the threads that brought them made.
    pub brought: AtomicU64,
}

/// The way to a feature in the control lane. Clones share it, and the instances go with the last one, or when the
/// feature's grants are taken back.
#[derive(Debug, Clone)]
pub struct Actor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    feature: PreparedFeature,
    registered: Arc<Registrations>,
    counters: ActorCounters,
    instances: Arc<Pool<PooledInstance>>,
    pace: Mutex<Pace>,
    /// Whether nothing that its calls may ask of the host takes long.
    asks_little: bool,
}

/// An instance that is kept for the next call, with its share of all that actors may have.
#[derive(Debug)]
struct PooledInstance {
    instance: ControlInstance,
    _share: Share,
}

/// A call in an instance.
type Calling<'i, T> = Pin<Box<dyn Future<Output = Result<T, CallError>> + Send + 'i>>;

impl Actor {
    /// Has the feature install itself, and keeps what it registered, not the instance. Waits for the installation; not
    /// to be called where nothing may wait.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is left behind.
    pub fn start(feature: PreparedFeature) -> Result<Self, InstallError> {
        let (installed, wait) = std::sync::mpsc::sync_channel(1);
        let prepared = feature.clone();
        feature.runtime().spawn(async move {
            let instance = prepared.instantiate_control().await;
            let _ = installed.send(instance.map(|instance| instance.registered().without_checks()));
        });
        let gone = |_| InstallError::Instantiate("the control lane is shut down".into());
        let registered = Arc::new(wait.recv().map_err(gone)??);
        let has_tools = !feature.facts().descriptor.tools.is_empty();
        Ok(Self::new(feature, registered, has_tools))
    }

    /// Another way to the same feature, for its hooks alone, with instances of its own.
    #[must_use]
    pub fn for_hooks(&self) -> Self {
        Self::new(self.0.feature.clone(), Arc::clone(&self.0.registered), false)
    }

    fn new(feature: PreparedFeature, registered: Arc<Registrations>, for_tools: bool) -> Self {
        let facts = feature.facts();
        let descriptor = &facts.descriptor;
        let changes = [HookPoint::PortChange, HookPoint::ModeChange, HookPoint::ConfigApplied];
        // Changes come in their order, one after the other.
        let in_order = !for_tools && changes.into_iter().any(|point| descriptor.hooks_at(point));
        let size = if descriptor.stateless && !in_order { limits::MAX_PARALLEL_INSTANCES } else { 1 };
        let idle_timeout = descriptor.stateless.then_some(limits::IDLE_TIMEOUT);
        let instances = Arc::new(Pool::new(size, MAILBOX_CAPACITY, idle_timeout));
        facts.shared.instances.add(&instances);
        let slow = [
            CapabilityKind::Files,
            CapabilityKind::GitSnapshot,
            CapabilityKind::RunProgram,
            CapabilityKind::ConfigPropose,
        ];
        let asks_little = !slow.into_iter().any(|kind| descriptor.requests(kind));
        let (counters, pace) = (ActorCounters::default(), Mutex::new(Pace::new(limits::SHORT_CALL)));
        Self(Arc::new(Inner { feature, registered, counters, instances, pace, asks_little }))
    }

    /// What the feature registered.
    pub fn registered(&self) -> &Registrations {
        &self.0.registered
    }

    /// What it has done so far.
    pub fn counters(&self) -> &ActorCounters {
        &self.0.counters
    }

    /// Calls that wait.
    pub fn waiting(&self) -> usize {
        self.0.instances.waiting()
    }

    /// Calls that are being made: that neither wait nor have ended.
    pub fn under_way(&self) -> usize {
        self.0.instances.in_use()
    }

    /// Instances that are kept and in no call.
    pub fn idle(&self) -> usize {
        self.0.instances.idle()
    }

    /// Drops the instances that by `now` were in no call for [`limits::IDLE_TIMEOUT`]. Actors do so by themselves.
    pub fn drop_idle(&self, now: Instant) {
        self.0.instances.drop_idle(now);
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
        let name = name.to_owned();
        // What changes something may wait for what it changes.
        let may_be_short = tier == Tier::ReadOnly;
        self.order(may_be_short, move |instance| {
            Box::pin(async move { instance.call_tool(caller, tier, &name, &args, &cancelled, progress).await })
        })
        .await
    }

    /// Asks its hook before a tool runs.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn before(&self, call: Arc<ToolCall>) -> Result<Decision, CallError> {
        self.order(true, move |instance| Box::pin(async move { instance.before_call(&call).await })).await
    }

    /// Tells its hook after a tool ran.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn after(&self, call: Arc<ToolCall>, failed: Option<String>) -> Result<Option<String>, CallError> {
        self.order(true, move |instance| Box::pin(async move { instance.after_call(&call, failed.as_deref()).await }))
            .await
    }

    /// Asks or tells its hook around what models are asked.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn chat_hook(&self, hook: ChatHook) -> Result<ChatDecision, CallError> {
        self.order(true, move |instance| Box::pin(async move { instance.chat_hook(&hook).await })).await
    }

    /// Tells its hook of a change, without waiting. What finds no room is left out.
    pub fn changed(&self, change: Change) {
        drop(self.begin(false, move |instance| Box::pin(async move { instance.changed(&change).await })));
    }

    /// Takes over the state of the instance that this one replaces, before any call that comes later. Returns at once;
    /// `keep` is kept until `from` has exported its state.
    pub fn take_over(&self, from: Self, keep: Box<dyn Any + Send + Sync>) {
        let this = Arc::clone(&self.0);
        drop(self.bring(async move {
            let result = this.take_over(&from).await;
            if let Err(error) = &result {
                let feature = &this.feature.facts().descriptor.id;
                tracing::warn!(%feature, "it starts without the state of the instance before: {error}");
            }
            drop(keep);
            result
        }));
    }

    /// Has the instance export its state.
    async fn export_state(&self) -> Result<Vec<u8>, CallError> {
        self.order(false, |instance| Box::pin(instance.export_state())).await
    }

    async fn order<T: Send + 'static>(
        &self,
        may_be_short: bool,
        call: impl for<'i> FnOnce(&'i mut ControlInstance) -> Calling<'i, T> + Send + 'static,
    ) -> Result<T, CallError> {
        match self.begin(may_be_short, call) {
            Step::Ended(result) => result.unwrap_or_else(|| Err(gone())),
            Step::Goes(rest) => rest.await.unwrap_or_else(|_| Err(gone())),
        }
    }

    /// Begins a call, which then goes on whether or not it is waited for.
    fn begin<T: Send + 'static>(
        &self,
        may_be_short: bool,
        call: impl for<'i> FnOnce(&'i mut ControlInstance) -> Calling<'i, T> + Send + 'static,
    ) -> Step<Result<T, CallError>> {
        let this = Arc::clone(&self.0);
        let is_short = may_be_short && this.asks_little && this.pace.lock().is_quick();
        self.bring(async move {
            let busy =
                |Full(most)| CallError::Refused(ServiceError::Exhausted(format!("{most} calls are waiting already")));
            let _place = this.instances.enter().await.map_err(busy)?;
            this.make(is_short, call).await
        })
    }

    /// Takes the first step of `work` here. Whatever it is at when the grants are taken back ends there and then.
    fn bring<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Step<Result<T, CallError>> {
        let ended = self.0.feature.facts().ended().clone();
        let work = async move {
            tokio::select! {
                // In this order: work that ends in its first step has not to register for the end of its grants.
                biased;
                result = work => result,
                () = ended.cancelled() => Err(gone()),
            }
        };
        first_step::take(Box::pin(work), self.0.feature.runtime())
    }
}

fn gone() -> CallError {
    CallError::Refused(ServiceError::Denied("the feature was taken away while it worked".into()))
}

impl Inner {
    /// Makes a call, which has a place: in an instance that is kept, or in a fresh one. In the lane, unless it
    /// `is_short`.
    async fn make<T>(
        &self,
        is_short: bool,
        call: impl for<'i> FnOnce(&'i mut ControlInstance) -> Calling<'i, T>,
    ) -> Result<T, CallError> {
        let kept = self.may_be_called().map(|()| self.instances.take());
        if !is_short || matches!(kept, Ok(None)) {
            first_step::end().await;
        }
        let began = Instant::now();
        let result = match kept {
            Ok(kept) => self.call_in(kept, call).await,
            Err(error) => Err(error),
        };
        let counters = &self.counters;
        counters.brought.fetch_add(first_step::is_under_way().into(), Ordering::Relaxed);
        match &result {
            Ok(_) => counters.done.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                if matches!(error, CallError::Trapped(_)) {
                    record_trap(self.feature.facts());
                    counters.trapped.fetch_add(1, Ordering::Relaxed);
                }
                counters.failed.fetch_add(1, Ordering::Relaxed)
            }
        };
        let busy = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counters.busy.fetch_add(busy, Ordering::Relaxed);
        result
    }

    async fn call_in<T>(
        &self,
        kept: Option<PooledInstance>,
        call: impl for<'i> FnOnce(&'i mut ControlInstance) -> Calling<'i, T>,
    ) -> Result<T, CallError> {
        // The first call of an instance says little about the next one: its memory is still on the way.
        let (mut kept, is_first) = match kept {
            Some(kept) => (kept, false),
            None => (self.instantiate().await?, true),
        };
        // Time that passes says nothing here: a busy machine interrupts calls, and what waits holds up no thread.
        let meter = Arc::clone(&kept.instance.store.data().meter);
        let before = meter.used();
        let result = call(&mut kept.instance).await;
        if matches!(result, Err(CallError::Trapped(_))) {
            self.pace.lock().failed(Instant::now());
            return result;
        }
        if !is_first {
            self.pace.lock().called(meter.used().saturating_sub(before), Instant::now());
        }
        self.keep(kept, Instant::now());
        result
    }

    async fn instantiate(&self) -> Result<PooledInstance, CallError> {
        let many = || {
            let text = format!("{} instances of features are at work already", limits::ACTOR_INSTANCES);
            CallError::Refused(ServiceError::Exhausted(text))
        };
        let share = self.feature.facts().shared.instances.take().ok_or_else(many)?;
        Ok(PooledInstance { instance: self.feature.instantiate_control().await?, _share: share })
    }

    /// Keeps an instance for the next call, unless it is one of a stateless feature that has much of its memory in use.
    fn keep(&self, kept: PooledInstance, now: Instant) {
        let facts = self.feature.facts();
        if !facts.descriptor.stateless || facts.memory.linear() <= limits::FEATURE_MEMORY_BYTES / 2 {
            self.instances.keep(kept, now);
            self.instances.watch(self.feature.runtime(), || facts.ended().clone().cancelled_owned());
        }
    }

    /// Imports the state of the instance of another actor, if that has one.
    async fn take_over(&self, from: &Actor) -> Result<(), CallError> {
        let Ok(_place) = self.instances.enter().await else { return Ok(()) };
        first_step::end().await;
        if from.0.instances.is_empty() {
            return Ok(());
        }
        let late = |_| {
            let text = format!("it did not export its state within {} s", limits::HANDOVER_TIMEOUT.as_secs());
            Err(CallError::Refused(ServiceError::Exhausted(text)))
        };
        let state = tokio::time::timeout(limits::HANDOVER_TIMEOUT, from.export_state()).await.unwrap_or_else(late)?;
        self.make(false, move |instance| Box::pin(async move { instance.import_state(&state).await })).await
    }

    fn may_be_called(&self) -> Result<(), CallError> {
        // The end of one call by revocation must not be the beginning of the next.
        if self.feature.facts().is_revoked() {
            return Err(gone());
        }
        check_quarantine(self.feature.facts())
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
