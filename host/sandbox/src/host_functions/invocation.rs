//! The tool call under way: whether it is still wanted, and how far it is.

use std::time::Instant;

use wasmtime::component::Resource;

use crate::bindings::imports::invocations;
use crate::handles::Invocation;
use crate::state::InstanceState;
use conductor_terminal::excerpt;

/// Bytes kept of a word about progress.
const MAX_PROGRESS: usize = 256;

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
