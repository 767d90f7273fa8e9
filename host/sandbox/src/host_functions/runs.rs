//! The run of a background task: waiting, until the host wants it to end.

use std::time::Duration;

use wasmtime::component::Resource;

use crate::bindings::imports::runs;
use crate::bindings::waiting_runs;
use crate::handles::Run;
use crate::state::InstanceState;

/// The longest wait: a day.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

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
        let sleep = async {
            match pause {
                // A timer would take up to a millisecond; without a pause it is enough to yield.
                Duration::ZERO => tokio::task::yield_now().await,
                pause => clock.sleep(pause).await,
            }
        };
        let goes_on = tokio::select! {
            () = ending.cancelled() => false,
            () = sleep => true,
        };
        if goes_on {
            self.meter.give_back(pause);
        }
        Ok(goes_on)
    }

    fn drop(&mut self, run: Resource<Run>) -> wasmtime::Result<()> {
        self.table.delete(run)?;
        Ok(())
    }
}
