//! Timers: when an instance in the real-time lane asks to be called again.
//!
//! A call on the event path sets them, and each is a call that the instance has pending: the worker that owns the
//! instance waits for the next one and has it made.
//! Room for all is made when the guest opens its scheduler, so that setting one does not allocate.

use conductor_event::Nanos;
use conductor_package::capability::CapabilityKind;
use wasmtime::component::Resource;

use crate::bindings::imports::timers;
use crate::bindings::{Error, Lane};
use crate::handles::{Context, Scheduler};
use crate::pending_calls::{MAX_PENDING, NotPending};
use crate::state::InstanceState;

impl timers::Host for InstanceState {}

impl timers::HostScheduler for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Scheduler>, Error>> {
        self.table.get(&context)?;
        if let Err(error) = self.granted(CapabilityKind::Timers) {
            return Ok(Err(error));
        }
        if self.lane == Lane::RealTime {
            self.pending.make_room();
        }
        Ok(Ok(self.table.push(Scheduler)?))
    }

    fn after(
        &mut self,
        scheduler: Resource<Scheduler>,
        id: u32,
        nanoseconds: u64,
    ) -> wasmtime::Result<Result<u64, Error>> {
        self.set_timer(&scheduler, id, |at| at.saturating_add(nanoseconds))
    }

    fn at(&mut self, scheduler: Resource<Scheduler>, id: u32, at: u64) -> wasmtime::Result<Result<u64, Error>> {
        self.set_timer(&scheduler, id, |_| at)
    }

    fn cancel(&mut self, scheduler: Resource<Scheduler>, id: u32) -> wasmtime::Result<bool> {
        self.table.get(&scheduler)?;
        Ok(self.pending.remove(id))
    }

    fn deadline(&mut self, scheduler: Resource<Scheduler>, id: u32) -> wasmtime::Result<Option<u64>> {
        self.table.get(&scheduler)?;
        Ok(self.pending.deadline(id))
    }

    fn drop(&mut self, scheduler: Resource<Scheduler>) -> wasmtime::Result<()> {
        self.table.delete(scheduler)?;
        Ok(())
    }
}

impl InstanceState {
    fn set_timer(
        &mut self,
        scheduler: &Resource<Scheduler>,
        id: u32,
        deadline: impl FnOnce(Nanos) -> Nanos,
    ) -> wasmtime::Result<Result<u64, Error>> {
        self.table.get(scheduler)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(self.pending.add(id, deadline).map_err(|why| match why {
            NotPending::NothingUnderWay => {
                Error::Unavailable("a timer is set while an action is performed or a timer is due".into())
            }
            NotPending::Full => Error::Exhausted(format!("{MAX_PENDING} timers are pending")),
        }))
    }
}
