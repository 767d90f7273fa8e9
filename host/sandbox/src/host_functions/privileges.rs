//! What a person agrees to each time: the guest's handle to it, within one call that was confirmed.

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::privileges;
use crate::handles::Authority;
use crate::limits;
use crate::state::InstanceState;
use conductor_stdx::hidden::{self, HIDDEN};

impl InstanceState {
    fn perform(&self, action: &str) -> Result<String, Error> {
        if self.facts.is_revoked() {
            return Err(super::revoked());
        }
        if action.len() > limits::MAX_SCHEMA {
            let (size, most) = (action.len(), limits::MAX_SCHEMA);
            return Err(Error::Invalid(format!("the action has {size} bytes; at most {most} are taken")));
        }
        let action =
            serde_json::from_str(action).map_err(|error| Error::Invalid(format!("the action is not JSON: {error}")))?;
        if hidden::mentions_hidden(&action) {
            let why = format!("the action has {HIDDEN:?} in it, which stands for a value that is not shown to you");
            return Err(Error::Invalid(why));
        }
        self.view()?.perform(action).map_err(Error::Invalid)
    }
}

impl privileges::Host for InstanceState {}

impl privileges::HostAuthority for InstanceState {
    fn perform(&mut self, authority: Resource<Authority>, action: String) -> wasmtime::Result<Result<String, Error>> {
        if !self.table.get(&authority)?.is_confirmed {
            let why = "this tool only proposes, as its descriptor says (`proposes = true`), so it was not confirmed";
            return Ok(Err(Error::Denied(why.to_owned())));
        }
        // A feature may have to prepare it.
        Ok(super::waiting(|| InstanceState::perform(self, &action)))
    }

    fn drop(&mut self, authority: Resource<Authority>) -> wasmtime::Result<()> {
        self.table.delete(authority)?;
        Ok(())
    }
}
