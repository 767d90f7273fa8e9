//! The limits of a feature and of one instance, and the object that enforces those of memory and tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wasmtime::ResourceLimiter;

pub use conductor_services::added_files::{MAX_ADDED_BYTES, MAX_ADDED_FILES};
pub use conductor_terminal::MAX_TEXT;

/// How often the epoch advances; the grain of every CPU budget. Budgets count from the first tick
/// within a call.
pub const TICK: Duration = Duration::from_millis(1);
/// The same where no guest was found at work lately: so late may the first tick of a call be then.
pub const IDLE_TICK: Duration = Duration::from_millis(20);
/// CPU time of one `perform`; a feature's first one has [`PREPARE_BUDGET`].
pub const PERFORM_BUDGET: Duration = Duration::from_millis(20);
/// CPU time of one `prepare` or `release`; a feature's first `prepare` has [`INSTALL_BUDGET`].
pub const PREPARE_BUDGET: Duration = Duration::from_millis(200);
/// CPU time of one batch of events in a hook.
pub const EVENTS_BUDGET: Duration = Duration::from_millis(50);
/// CPU time of `install`.
pub const INSTALL_BUDGET: Duration = Duration::from_millis(1000);
/// CPU time of one tool call, and of a background task, host functions included. A task gets back as much as it waits.
pub const CALL_BUDGET: Duration = Duration::from_secs(2);
/// CPU time of a migration of a feature's data, host functions included.
pub const MIGRATION_BUDGET: Duration = Duration::from_secs(5);
/// Time that may pass in one.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_secs(30);
/// CPU time of one hook in the control lane.
pub const HOOK_BUDGET: Duration = Duration::from_millis(200);
/// Time that may pass in one tool call, whatever it waits for, where its declaration says nothing else.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(conductor_package::descriptor::CALL_TIMEOUT);
/// Time that may pass in `install` in the control lane: it may wait for a disk.
pub const INSTALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that may pass in one hook of the control lane.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that may pass in one call of a provider's exchange: nothing in it waits.
pub const EXCHANGE_CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a cancelled tool call may go on. A task says itself how long it may; see
/// [`TaskDeclaration::stop_timeout`](conductor_package::descriptor::TaskDeclaration::stop_timeout).
pub const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Linear memory of one instance, all its memories together. An engine of JavaScript begins with 9 MiB and
/// does not get far within 16.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Linear memory of all instances of one feature together, and what each may hand over to the host at once.
pub const FEATURE_MEMORY_BYTES: usize = 256 * 1024 * 1024;
/// Elements of each table.
pub const TABLE_ELEMENTS: usize = 20_000;
/// Tables of one instance.
pub const MAX_TABLES: u32 = 8;
/// Memories of one instance.
pub const MAX_MEMORIES: u32 = 4;
/// Core modules instantiated within one component.
pub const MAX_CORE_INSTANCES: u32 = 64;
/// Instances in the whole lane; spares count.
pub const MAX_INSTANCES: u32 = 128;
/// Instances of a stateless feature that its tools, and as many that its hooks, are called in side by side.
pub const MAX_PARALLEL_INSTANCES: usize = 8;
/// The longest call of a tool or hook that the thread which brings it makes again.
pub const SHORT_CALL: Duration = Duration::from_micros(250);
/// How long an instance of a stateless feature is kept that no call is in.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Instances of all features that tools and hooks are called in, those that are kept included; the rest of
/// [`MAX_INSTANCES`] is for tasks and providers.
pub const ACTOR_INSTANCES: usize = 96;
/// WebAssembly stack of a call.
pub const STACK_BYTES: usize = 512 * 1024;
/// Handles (targets, sinks, registrars) that one instance may hold.
pub const MAX_HANDLES: usize = 1024;
/// Bytes that a guest may hand over in one call of the host, or in one result, and of what the host makes of them (a
/// list's entries count with their size in the host's memory). Beyond it the guest traps before anything is copied.
/// Twice the largest that any interface takes, so that what is only a little too large gets an answer.
pub const MAX_HANDED_OVER: usize = 2 * 1024 * 1024;
/// The same for features that have files, programs, requests or models, which take up to 4 MiB.
pub const MAX_HANDED_OVER_LARGE: usize = 8 * 1024 * 1024;
/// Bytes of a tool's arguments, and of its result.
pub const MAX_RESULT: usize = 256 * 1024;
/// Bytes of the state that an instance hands over.
pub const MAX_STATE: usize = 256 * 1024;
/// Time that may pass until an instance has exported its state, with the calls that wait before.
pub const HANDOVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a skill.
pub const MAX_SKILL: usize = 64 * 1024;
/// Bytes of a JSON Schema: an action's parameters, a tool's arguments or result.
pub const MAX_SCHEMA: usize = 64 * 1024;
/// Bytes of all schemas and skills that one instance registers, together.
pub const MAX_REGISTERED: usize = 1024 * 1024;
/// Milliseconds of CPU time that a feature's calls in the real-time lane may take per second, all its
/// instances together, after a burst. Each call has its own limit beside that.
pub const REALTIME_CPU_RATE: f64 = 500.0;
/// Milliseconds of CPU time that a feature's calls in the real-time lane may take at once.
pub const REALTIME_CPU_BURST: f64 = 2_000.0;
/// How often it counts as a strike that calls in the real-time lane are left out because their CPU time is used up.
pub const OVERUSE_STRIKE: Duration = Duration::from_secs(10);
/// What a feature's calls in the control lane (tools, hooks, tasks, exchanges) may take of a processor, all its
/// instances together: two whole tool calls at once, of which background tasks may use up half. Beyond it they are
/// made to wait.
pub const CONTROL_CPU: Share = Share { rate: 500.0, burst: 4_000.0 };
/// The same for all features together, and what their hooks on events take: less than one processor's worth, so that
/// there is always some left for the host.
pub const LANE_CPU: Share = Share { rate: 800.0, burst: 8_000.0 };
/// Messages that one feature may send per second to all sinks together, after a burst.
pub const SINK_RATE: f64 = 20.0;
/// Messages that one feature may send to the sinks at once.
pub const SINK_BURST: f64 = 50.0;
/// Words about its progress that one call may send per second, after as many at once.
pub const PROGRESS_RATE: f64 = 20.0;
/// Datagrams that one feature may send per second, after a burst.
pub const DATAGRAM_RATE: f64 = 20_000.0;
/// Datagrams that one feature may send at once.
pub const DATAGRAM_BURST: f64 = 4_000.0;

/// A share of a processor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Milliseconds of CPU time per second.
    pub rate: f64,
    /// Milliseconds of CPU time at once.
    pub burst: f64,
}

/// What all instances of a feature have of this machine's memory.
#[derive(Debug, Default)]
pub struct FeatureMemory {
    linear: AtomicUsize,
    handed_over: AtomicUsize,
}

impl FeatureMemory {
    /// Bytes of linear memory.
    pub fn linear(&self) -> usize {
        self.linear.load(Ordering::Relaxed)
    }
}

/// Refuses growth of memories (summed over all) and of tables ([`TABLE_ELEMENTS`]), and
/// remembers that it did, so that the trap which usually follows can be explained.
#[derive(Debug)]
pub struct Limiter {
    memory: usize,
    max_memory: usize,
    /// What all instances of the feature have.
    together: Arc<FeatureMemory>,
    /// What the host may need for an instance while a call hands something over; counted as if it always did.
    handed_over: usize,
    refused: Option<String>,
}

impl Limiter {
    /// For an instance with `max_memory` bytes, which hands over `handed_over` bytes at once at most; `together` counts
    /// those of all the feature's.
    pub fn new(max_memory: usize, handed_over: usize, together: Arc<FeatureMemory>) -> Self {
        together.handed_over.fetch_add(handed_over, Ordering::Relaxed);
        Self { memory: 0, max_memory, together, handed_over, refused: None }
    }

    /// The limit that was hit since the last call, if any.
    pub fn take_refusal(&mut self) -> Option<String> {
        self.refused.take()
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_sub(current).saturating_add(desired);
        if total > self.max_memory {
            self.refused = Some(format!("its memory limit of {} MiB", self.max_memory / (1024 * 1024)));
            return Ok(false);
        }
        let more = total.saturating_sub(self.memory);
        let linear = self.together.linear.fetch_add(more, Ordering::Relaxed) + more;
        if linear + self.together.handed_over.load(Ordering::Relaxed) > FEATURE_MEMORY_BYTES {
            self.together.linear.fetch_sub(more, Ordering::Relaxed);
            self.refused =
                Some(format!("the limit of {} MiB for all its instances", FEATURE_MEMORY_BYTES / (1024 * 1024)));
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(&mut self, _current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > TABLE_ELEMENTS {
            self.refused = Some(format!("its table limit of {TABLE_ELEMENTS} elements"));
            return Ok(false);
        }
        Ok(true)
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        self.together.linear.fetch_sub(self.memory, Ordering::Relaxed);
        self.together.handed_over.fetch_sub(self.handed_over, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_all_memories() {
        let together = Arc::<FeatureMemory>::default();
        let mut limiter = Limiter::new(MEMORY_BYTES, 0, Arc::clone(&together));
        let mib = 1024 * 1024;
        assert!(limiter.memory_growing(0, 40 * mib, None).is_ok_and(|grown| grown));
        assert!(limiter.memory_growing(0, 25 * mib, None).is_ok_and(|grown| !grown), "40 + 25 is over 64");
        assert_eq!(limiter.take_refusal().as_deref(), Some("its memory limit of 64 MiB"));
        assert!(limiter.memory_growing(40 * mib, 64 * mib, None).is_ok_and(|grown| grown));
        assert_eq!(limiter.take_refusal(), None);
        assert_eq!(together.linear(), 64 * mib);
        drop(limiter);
        assert_eq!(together.linear(), 0, "an instance that is gone has none");
    }

    #[test]
    fn memory_is_summed_over_all_instances_of_a_feature() {
        let together = Arc::<FeatureMemory>::default();
        let limiter = || Limiter::new(MEMORY_BYTES, 0, Arc::clone(&together));
        let mut full: Vec<Limiter> = (0..FEATURE_MEMORY_BYTES / MEMORY_BYTES).map(|_| limiter()).collect();
        for one in &mut full {
            assert!(one.memory_growing(0, MEMORY_BYTES, None).is_ok_and(|grown| grown));
        }
        let mut another = limiter();
        assert!(another.memory_growing(0, 1, None).is_ok_and(|grown| !grown));
        assert_eq!(another.take_refusal().as_deref(), Some("the limit of 256 MiB for all its instances"));
        full.pop();
        assert!(another.memory_growing(0, 1, None).is_ok_and(|grown| grown));
    }

    #[test]
    fn what_the_host_may_hold_for_an_instance_counts_as_the_features() {
        let together = Arc::<FeatureMemory>::default();
        let instances: Vec<Limiter> =
            (0..31).map(|_| Limiter::new(MEMORY_BYTES, MAX_HANDED_OVER_LARGE, Arc::clone(&together))).collect();
        let mut last = Limiter::new(MEMORY_BYTES, MAX_HANDED_OVER_LARGE, Arc::clone(&together));
        assert!(last.memory_growing(0, 1, None).is_ok_and(|grown| !grown), "32 times 8 MiB are 256 MiB");
        drop(instances);
        assert!(last.memory_growing(0, 1, None).is_ok_and(|grown| grown));
        drop(last);
        assert_eq!((together.linear(), together.handed_over.load(Ordering::Relaxed)), (0, 0));
    }
}
