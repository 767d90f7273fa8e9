//! The contract's `task-control`: a feature starts and stops its own on-demand tasks.

use std::sync::Arc;

use wasmtime::component::Resource;

use crate::bindings::Error;
use crate::bindings::imports::task_control;
use crate::handles::{Context, Controller};
use crate::state::InstanceState;
use crate::task_set::OnDemand;
use conductor_package::capability::CapabilityKind;
use conductor_package::descriptor::TaskStart;
use conductor_terminal::excerpt;

impl InstanceState {
    /// Does something with the on-demand task of this name.
    fn with_task(
        &self,
        controller: &Resource<Controller>,
        name: &str,
        work: impl FnOnce(Arc<dyn OnDemand>) -> Result<(), Error>,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.table.get(controller)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        let on_demand = || self.facts.descriptor.tasks.iter().filter(|task| task.start == TaskStart::OnDemand);
        if !on_demand().any(|task| task.name == name) {
            let names: Vec<&str> = on_demand().map(|task| task.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Ok(Err(Error::Invalid(format!(
                "the feature has no on-demand task {:?}; it has {names}",
                excerpt(name, 64)
            ))));
        }
        Ok(match self.facts.tasks.find(name) {
            Some(task) => work(task),
            None => Err(Error::Unavailable("the feature is not in force".into())),
        })
    }
}

impl task_control::Host for InstanceState {}

impl task_control::HostController for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Controller>, Error>> {
        self.table.get(&context)?;
        if let Err(error) = self.granted(CapabilityKind::BackgroundTask) {
            return Ok(Err(error));
        }
        Ok(Ok(self.table.push(Controller)?))
    }

    fn start(&mut self, controller: Resource<Controller>, name: String) -> wasmtime::Result<Result<(), Error>> {
        let ending = |_| Error::Unavailable(format!("the task {name} is still ending"));
        self.with_task(&controller, &name, |task| task.start().map_err(ending))
    }

    fn stop(&mut self, controller: Resource<Controller>, name: String) -> wasmtime::Result<Result<(), Error>> {
        self.with_task(&controller, &name, |task| {
            task.end();
            Ok(())
        })
    }

    fn drop(&mut self, controller: Resource<Controller>) -> wasmtime::Result<()> {
        self.table.delete(controller)?;
        Ok(())
    }
}
