//! The run of a background task: waiting, until the host wants it to end.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;

use crate::feature::sandbox::bindings::imports::runs;
use crate::feature::sandbox::bindings::waiting_runs;
use crate::feature::sandbox::limits;
use crate::feature::sandbox::state::InstanceState;

/// The longest wait: a day.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Ticks that a task has left after a pause: one back for each millisecond, up to the budget.
fn rested(ticks: u64, pause: Duration) -> u64 {
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    ticks.saturating_add(milliseconds(pause)).min(milliseconds(limits::CALL_BUDGET))
}

/// The guest's handle to its run.
#[derive(Debug)]
pub struct Run {
    /// Told when it should end.
    pub(crate) ending: CancellationToken,
}

impl runs::Host for InstanceState {}

impl runs::HostRun for InstanceState {
    /// No task runs in the real-time lane, but the import is there.
    fn wait(&mut self, run: Resource<Run>, _: u32) -> wasmtime::Result<bool> {
        self.table.get(&run)?;
        Ok(false)
    }

    fn drop(&mut self, run: Resource<Run>) -> wasmtime::Result<()> {
        self.table.delete(run)?;
        Ok(())
    }
}

impl waiting_runs::Host for InstanceState {}

impl waiting_runs::HostRun for InstanceState {
    async fn wait(&mut self, run: Resource<Run>, milliseconds: u32) -> wasmtime::Result<bool> {
        let ending = self.table.get(&run)?.ending.clone();
        let clock = self.facts.services.clock;
        let pause = Duration::from_millis(milliseconds.into()).min(MAX_WAIT);
        let goes_on = tokio::select! {
            () = ending.cancelled() => false,
            () = clock.sleep(pause) => true,
        };
        if goes_on {
            // As much as it waited, so that a task which waits for no time has no more CPU time
            // than one that never waits.
            self.ticks = rested(self.ticks, pause);
        }
        Ok(goes_on)
    }

    fn drop(&mut self, run: Resource<Run>) -> wasmtime::Result<()> {
        self.table.delete(run)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_gives_back_as_much_time_as_it_took() {
        let all = limits::CALL_BUDGET.as_millis() as u64;
        assert_eq!(rested(10, Duration::ZERO), 10);
        assert_eq!(rested(10, Duration::from_millis(5)), 15);
        assert_eq!(rested(10, MAX_WAIT), all);
    }
}
