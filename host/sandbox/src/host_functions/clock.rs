//! Time and randomness, for features: what std has elsewhere.

use crate::bindings::imports::{clock, random};
use crate::state::InstanceState;

/// The most bytes of randomness that are given at once.
const MAX_RANDOM: u32 = 1024;

impl clock::Host for InstanceState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.facts.services.clock.wall())
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        Ok(self.facts.services.clock.now())
    }
}

impl random::Host for InstanceState {
    fn bytes(&mut self, count: u32) -> wasmtime::Result<Vec<u8>> {
        let mut bytes = vec![0; count.min(MAX_RANDOM) as usize];
        getrandom::fill(&mut bytes).map_err(|error| wasmtime::format_err!("no randomness: {error}"))?;
        Ok(bytes)
    }
}
