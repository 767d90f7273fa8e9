//! The contract's `git`: the guest's handles to a granted repository and to its commits.

use wasmtime::component::Resource;

use crate::bindings::imports::git as contract;
use crate::bindings::{Error, Lane};
use crate::handles::{Context, Repository, Snapshot};
use crate::state::InstanceState;
use conductor_package::capability::Capability;
use conductor_services::error::ServiceError;
use conductor_services::git::{self, Kind};

impl InstanceState {
    /// The repository that was granted for a purpose.
    fn open_repository(&self, purpose: &str) -> Result<Option<git::Repository>, Error> {
        let requested = self.facts.descriptor.capabilities.iter().find_map(|request| match &request.capability {
            it @ Capability::GitSnapshot { purpose: asked, .. } if asked == purpose => Some(it),
            _ => None,
        });
        let Some(capability) = requested else {
            return Err(Error::Denied(format!("the descriptor requests no repository for the purpose {purpose:?}")));
        };
        let Some(grant) = self.facts.grants.git.iter().find(|grant| grant.purpose == purpose) else {
            return Err(self.facts.not_granted(capability));
        };
        match self.lane {
            Lane::RealTime => Ok(None),
            Lane::Control => Ok(Some(super::waiting(|| git::Repository::open(&grant.path))?)),
        }
    }

    fn at(&self, repository: &Resource<Repository>, revision: &str) -> wasmtime::Result<Result<Snapshot, Error>> {
        let repository = self.table.get(repository)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(match &repository.repository {
            Some(repository) => super::waiting(|| repository.at(revision)).map(Snapshot).map_err(Error::from),
            None => Err(Error::Unavailable("a repository waits, and nothing may wait in the real-time lane".into())),
        })
    }

    fn with_snapshot<T>(
        &self,
        snapshot: &Resource<Snapshot>,
        work: impl FnOnce(&git::Snapshot) -> Result<T, ServiceError>,
    ) -> wasmtime::Result<Result<T, Error>> {
        let snapshot = self.table.get(snapshot)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(super::waiting(|| work(&snapshot.0)).map_err(Error::from))
    }
}

impl contract::Host for InstanceState {}

impl contract::HostRepository for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<Repository>, Error>> {
        self.table.get(&context)?;
        Ok(match self.open_repository(&purpose) {
            Ok(repository) => Ok(self.table.push(Repository { repository })?),
            Err(error) => Err(error),
        })
    }

    fn at(
        &mut self,
        repository: Resource<Repository>,
        revision: String,
    ) -> wasmtime::Result<Result<Resource<Snapshot>, Error>> {
        Ok(match InstanceState::at(self, &repository, &revision)? {
            Ok(snapshot) => Ok(self.table.push(snapshot)?),
            Err(error) => Err(error),
        })
    }

    fn drop(&mut self, repository: Resource<Repository>) -> wasmtime::Result<()> {
        self.table.delete(repository)?;
        Ok(())
    }
}

impl contract::HostSnapshot for InstanceState {
    fn commit(&mut self, snapshot: Resource<Snapshot>) -> wasmtime::Result<String> {
        Ok(self.table.get(&snapshot)?.0.commit())
    }

    fn read(&mut self, snapshot: Resource<Snapshot>, path: String) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        self.with_snapshot(&snapshot, |snapshot| snapshot.read(&path))
    }

    fn names(
        &mut self,
        snapshot: Resource<Snapshot>,
        path: String,
    ) -> wasmtime::Result<Result<Vec<contract::Entry>, Error>> {
        let names = self.with_snapshot(&snapshot, |snapshot| snapshot.names(&path))?;
        let entry = |entry: git::Entry| contract::Entry {
            name: entry.name,
            kind: match entry.kind {
                Kind::File => contract::Kind::File,
                Kind::Folder => contract::Kind::Folder,
                Kind::Link => contract::Kind::Link,
                Kind::Module => contract::Kind::Module,
            },
            size: entry.size,
        };
        Ok(names.map(|names| names.into_iter().map(entry).collect()))
    }

    fn drop(&mut self, snapshot: Resource<Snapshot>) -> wasmtime::Result<()> {
        self.table.delete(snapshot)?;
        Ok(())
    }
}
