//! The contract's `programs`: the guest's handles to the programs of its grant, and to those that it started.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use wasmtime::component::Resource;

use crate::bindings::imports::programs;
use crate::bindings::{Error, waiting_programs};
use crate::handles::{Context, Process, ProgramAccess};
use crate::state::InstanceState;
use conductor_package::capability::CapabilityKind;
use conductor_package::consent;
use conductor_package::program;
use conductor_services::error::{ServiceError, shown};
use conductor_services::programs::{Files, Outcome, run};

impl InstanceState {
    fn open_programs(
        &mut self,
        context: &Resource<Context>,
    ) -> wasmtime::Result<Result<Resource<ProgramAccess>, Error>> {
        self.table.get(context)?;
        Ok(match self.granted(CapabilityKind::RunProgram) {
            Ok(()) => Ok(self.table.push(ProgramAccess)?),
            Err(error) => Err(error),
        })
    }

    fn program_names(&self, access: &Resource<ProgramAccess>) -> wasmtime::Result<Vec<String>> {
        self.table.get(access)?;
        Ok(if self.facts.is_revoked() { Vec::new() } else { program::names(&self.facts.grants.programs) })
    }

    fn start_program(&self, command: waiting_programs::Command) -> Result<Process, Error> {
        if self.facts.is_revoked() {
            return Err(super::revoked());
        }
        let names = program::names(&self.facts.grants.programs);
        let found = names.iter().position(|name| *name == command.program);
        let Some(program) = found.and_then(|index| self.facts.grants.programs.get(index)) else {
            let advice = consent::word(CapabilityKind::RunProgram.as_str(), "/A/PATH ARGUMENT");
            let advice = self.facts.grantee.advice("programs = [\"/A/PATH ARGUMENT\"]", &advice);
            let shown = shown(&command.program);
            return Err(Error::Denied(format!("the program {shown} is not granted; {advice}")));
        };
        let full = |_| Error::Exhausted("as many programs of this feature run as may; wait for one to end".into());
        let place = Arc::clone(&self.facts.programs).try_acquire_owned().map_err(full)?;
        let runtime = Handle::try_current().map_err(|_| super::waits("a program"))?;
        let files = command.files.iter().map(|file| (&*file.path, &*file.contents));
        let files = super::waiting(|| Files::new(files))?;
        let (program, ended) = (program.clone(), self.facts.ended().clone());
        let timeout = Duration::from_millis(command.timeout_ms.into());
        let task = runtime.spawn(async move {
            let _place = place;
            let revoked = || ServiceError::Denied("the grant was revoked".into());
            let outcome = ended.run_until_cancelled(run(&program, &command.input, &files, timeout)).await;
            outcome.unwrap_or_else(|| Err(revoked()))
        });
        Ok(Process { task: Some(AbortOnDropHandle::new(task)) })
    }
}

impl programs::Host for InstanceState {}

impl programs::HostAccess for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ProgramAccess>, Error>> {
        self.open_programs(&context)
    }

    fn names(&mut self, access: Resource<ProgramAccess>) -> wasmtime::Result<Vec<String>> {
        self.program_names(&access)
    }

    fn start(
        &mut self,
        access: Resource<ProgramAccess>,
        _: programs::Command,
    ) -> wasmtime::Result<Result<Resource<Process>, Error>> {
        self.table.get(&access)?;
        Ok(Err(super::waits("a program")))
    }

    fn drop(&mut self, access: Resource<ProgramAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}

impl programs::HostProcess for InstanceState {
    fn wait(&mut self, process: Resource<Process>) -> wasmtime::Result<Result<programs::Outcome, Error>> {
        self.table.get(&process)?;
        Ok(Err(super::waits("a program")))
    }

    fn drop(&mut self, process: Resource<Process>) -> wasmtime::Result<()> {
        self.table.delete(process)?;
        Ok(())
    }
}

impl waiting_programs::Host for InstanceState {}

impl waiting_programs::HostAccess for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<ProgramAccess>, Error>> {
        self.open_programs(&context)
    }

    fn names(&mut self, access: Resource<ProgramAccess>) -> wasmtime::Result<Vec<String>> {
        self.program_names(&access)
    }

    fn start(
        &mut self,
        access: Resource<ProgramAccess>,
        command: waiting_programs::Command,
    ) -> wasmtime::Result<Result<Resource<Process>, Error>> {
        self.table.get(&access)?;
        Ok(match self.start_program(command) {
            Ok(process) => Ok(self.table.push(process)?),
            Err(error) => Err(error),
        })
    }

    fn drop(&mut self, access: Resource<ProgramAccess>) -> wasmtime::Result<()> {
        self.table.delete(access)?;
        Ok(())
    }
}

impl waiting_programs::HostProcess for InstanceState {
    async fn wait(&mut self, process: Resource<Process>) -> wasmtime::Result<Result<waiting_programs::Outcome, Error>> {
        let Some(task) = self.table.get_mut(&process)?.task.take() else {
            return Ok(Err(Error::Invalid("it was waited for before".into())));
        };
        let outcome = match task.await {
            Ok(outcome) => outcome,
            Err(error) => Err(ServiceError::Failed(error.to_string())),
        };
        let known = |Outcome { status, output, complaint }| waiting_programs::Outcome { status, output, complaint };
        Ok(outcome.map(known).map_err(Error::from))
    }

    fn drop(&mut self, process: Resource<Process>) -> wasmtime::Result<()> {
        self.table.delete(process)?;
        Ok(())
    }
}
