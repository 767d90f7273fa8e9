//! The tool call under way: whether it is still wanted, and how far it is.

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;

use crate::bindings::imports::invocations;
use crate::limits;
use crate::state::InstanceState;
use conductor_stdx::rate::RateLimiter;
use conductor_terminal::excerpt;

/// Bytes kept of a word about progress.
const MAX_PROGRESS: usize = 256;

/// Told how far a call is: 0.0-1.0, and a few words.
pub type OnProgress = Arc<dyn Fn(f32, String) + Send + Sync>;

/// The guest's handle to its call.
pub struct Invocation {
    cancelled: CancellationToken,
    progress: OnProgress,
    rate: RateLimiter,
}

impl std::fmt::Debug for Invocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invocation").field("cancelled", &self.cancelled.is_cancelled()).finish_non_exhaustive()
    }
}

impl Invocation {
    /// For a call that `cancelled` ends.
    pub fn new(cancelled: CancellationToken, progress: OnProgress) -> Self {
        Self { cancelled, progress, rate: RateLimiter::new(limits::PROGRESS_RATE, limits::PROGRESS_RATE) }
    }
}

impl invocations::Host for InstanceState {}

impl invocations::HostInvocation for InstanceState {
    fn cancelled(&mut self, invocation: Resource<Invocation>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&invocation)?.cancelled.is_cancelled())
    }

    fn progress(&mut self, invocation: Resource<Invocation>, done: f32, text: String) -> wasmtime::Result<()> {
        let invocation = self.table.get(&invocation)?;
        if invocation.rate.take(Instant::now()) {
            let done = if done.is_nan() { 0.0 } else { done.clamp(0.0, 1.0) };
            (invocation.progress)(done, excerpt(&text, MAX_PROGRESS));
        }
        Ok(())
    }

    fn drop(&mut self, invocation: Resource<Invocation>) -> wasmtime::Result<()> {
        self.table.delete(invocation)?;
        Ok(())
    }
}
