//! The meter: processor time of calls into guests in the control lane, with throttling by the shares of a feature
//! and of the lane.
//!
//! A call is a future, and `Call::within` puts `Metered` around it. Whatever is done for the guest on the way is
//! done in one of its polls, on one thread: the guest's code, the lifting and lowering of values, host functions, the
//! check of a result. So the thread's CPU clock before and after a poll says what the call cost, and no host function
//! can be left out. A guest that a tick finds outside of a metered poll traps.
//!
//! ```text
//! Call::within(future) ─▶ poll: share spent? wait ─▶ clock ─▶ guest + host functions ─▶ clock ─▶ charge
//!                                                            └▶ tick: budget spent? trap : yield
//! ```
//!
//! A guest yields at each tick, so between two polls it ran for about a millisecond. There it is made to wait while
//! its feature, or the lane, has used up its share; time that passes for a call goes on meanwhile. Background tasks
//! may use only half of what there is at once, so that they give way to calls.
//!
//! A tick comes only while a guest runs: one host function runs to its end, and has to be bounded itself. What it cost
//! is charged, and the guest is stopped at its next step.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;
use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline};

use crate::cpu::thread_time;
use crate::outcome::CallError;
use crate::share::{Class, Meter};
use crate::state::{FeatureFacts, InstanceState};

impl FeatureFacts {
    /// How long a call of this class has to wait for the feature's share, and for the lane's.
    ///
    /// A call of a feature that has used little lately does not wait for the lane: it must not pay for what others
    /// have used up.
    fn wait(&self, now: Instant, class: Class) -> Duration {
        let own = self.control_share.wait(now, class);
        let modest = self.control_share.is_modest(now);
        if class == Class::Call && modest { own } else { own.max(self.shared.lane_share.wait(now, class)) }
    }

    /// Whether a batch of events has to be left out: hooks on events take from the lane's share as tasks do, unless
    /// the feature has used little of the real-time lane lately.
    pub(crate) fn leaves_out_events(&self, now: Instant) -> bool {
        !self.cpu_share.is_modest(now) && !self.shared.lane_share.wait(now, Class::Task).is_zero()
    }
}

/// What a call may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Processor time, host functions included.
    pub(super) cpu: Duration,
    /// Time that may pass.
    pub(super) within: Duration,
    pub(super) class: Class,
}

/// A call that begins, with its limits.
pub(super) struct Call {
    meter: Arc<Meter>,
    facts: Arc<FeatureFacts>,
    limits: Limits,
}

impl Call {
    /// Gives the call that comes its processor time.
    pub(super) fn begin(store: &mut Store<InstanceState>, limits: Limits) -> Self {
        store.data().meter.begin(limits.cpu);
        Self::resume(store, limits)
    }

    /// One more call that has what the calls before it left over.
    pub(super) fn resume(store: &mut Store<InstanceState>, limits: Limits) -> Self {
        store.set_epoch_deadline(1);
        let state = store.data();
        Self { meter: Arc::clone(&state.meter), facts: Arc::clone(&state.facts), limits }
    }

    /// Does a part of the call, metered.
    ///
    /// # Errors
    /// When more time passes than may.
    pub(super) async fn within<T>(&self, work: impl Future<Output = T>) -> Result<T, CallError> {
        let within = self.limits.within;
        tokio::time::timeout(within, self.metered(work))
            .await
            .map_err(|_| CallError::Trapped(format!("stopped: it took longer than {} s", within.as_secs())))
    }

    /// Does a part of the call, metered, however much time passes.
    pub(super) fn metered<F: Future>(&self, work: F) -> Metered<'_, F> {
        Metered { call: self, work: Box::pin(work), pause: None }
    }
}

/// A future whose processor time is counted, and which waits while a share is spent.
pub(super) struct Metered<'c, F> {
    call: &'c Call,
    work: Pin<Box<F>>,
    /// While it is made to wait: until when, and since when.
    pause: Option<(Pin<Box<Sleep>>, Instant)>,
}

impl<F: Future> Future for Metered<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Call { meter, facts, limits } = this.call;
        loop {
            if let Some((pause, since)) = &mut this.pause {
                std::task::ready!(pause.as_mut().poll(context));
                facts.throttled.add(since.elapsed());
                this.pause = None;
            }
            let now = Instant::now();
            let wait = facts.wait(now, limits.class);
            if wait.is_zero() {
                break;
            }
            this.pause = Some((Box::pin(tokio::time::sleep(wait)), now));
        }
        let charged = Charged::begin(meter, facts);
        let polled = this.work.as_mut().poll(context);
        drop(charged);
        polled
    }
}

/// Charges what a poll took when it ends, also by a panic.
struct Charged<'c> {
    meter: &'c Meter,
    facts: &'c FeatureFacts,
}

impl<'c> Charged<'c> {
    fn begin(meter: &'c Meter, facts: &'c FeatureFacts) -> Self {
        meter.enter(thread_time());
        Self { meter, facts }
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        let took = self.meter.leave(thread_time());
        let now = Instant::now();
        self.facts.control_share.charge(now, took);
        self.facts.shared.lane_share.charge(now, took);
    }
}

/// Called at every tick of a call in the control lane: lets others run, or traps.
pub(super) fn on_tick(mut store: StoreContextMut<'_, InstanceState>) -> wasmtime::Result<UpdateDeadline> {
    let state = store.data_mut();
    state.facts.shared.at_work.note();
    if state.meter.is_spent(thread_time()) { Err(Trap::Interrupt.into()) } else { Ok(UpdateDeadline::Yield(1)) }
}
