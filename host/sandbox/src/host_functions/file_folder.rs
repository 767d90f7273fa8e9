//! The contract's `files`: the guest's handle to a granted folder.

use wasmtime::component::Resource;

use crate::bindings::imports::files;
use crate::bindings::{Error, Lane};
use crate::handles::{Context, Folder};
use crate::state::InstanceState;
use conductor_package::capability::Capability;
use conductor_services::error::ServiceError;
use conductor_services::files::{GrantedFolder, Kind};

impl InstanceState {
    /// The folder that was granted for a purpose; to write only if that was asked for and granted.
    fn open_folder(&self, purpose: &str) -> Result<Option<GrantedFolder>, Error> {
        let requested = self.facts.descriptor.capabilities.iter().find_map(|request| match &request.capability {
            it @ Capability::Files { purpose: asked, write, .. } if asked == purpose => Some((it, *write)),
            _ => None,
        });
        let Some((capability, write)) = requested else {
            return Err(Error::Denied(format!("the descriptor requests no files for the purpose {purpose:?}")));
        };
        let Some(grant) = self.facts.grants.files.iter().find(|grant| grant.purpose == purpose) else {
            return Err(self.facts.not_granted(capability));
        };
        if self.lane == Lane::RealTime {
            return Ok(None);
        }
        Ok(Some(GrantedFolder::open(&grant.path, write && grant.write)?.counted(&self.facts.added)))
    }

    fn with_folder<T>(
        &self,
        folder: &Resource<Folder>,
        work: impl FnOnce(&GrantedFolder) -> Result<T, ServiceError>,
    ) -> wasmtime::Result<Result<T, Error>> {
        let folder = self.table.get(folder)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(match &folder.folder {
            Some(folder) => super::waiting(|| work(folder)).map_err(Error::from),
            None => Err(Error::Unavailable("a folder waits, and nothing may wait in the real-time lane".into())),
        })
    }
}

impl files::Host for InstanceState {}

impl files::HostFolder for InstanceState {
    fn open(
        &mut self,
        context: Resource<Context>,
        purpose: String,
    ) -> wasmtime::Result<Result<Resource<Folder>, Error>> {
        self.table.get(&context)?;
        Ok(match self.open_folder(&purpose) {
            Ok(folder) => Ok(self.table.push(Folder { folder })?),
            Err(error) => Err(error),
        })
    }

    fn read(&mut self, folder: Resource<Folder>, path: String) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        self.with_folder(&folder, |folder| folder.read(&path))
    }

    fn write(&mut self, folder: Resource<Folder>, path: String, data: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        self.with_folder(&folder, |folder| folder.write(&path, &data))
    }

    fn remove(&mut self, folder: Resource<Folder>, path: String) -> wasmtime::Result<Result<(), Error>> {
        self.with_folder(&folder, |folder| folder.remove(&path))
    }

    fn names(&mut self, folder: Resource<Folder>, path: String) -> wasmtime::Result<Result<Vec<files::Entry>, Error>> {
        let names = self.with_folder(&folder, |folder| folder.names(&path))?;
        let entry = |entry: conductor_services::files::Entry| files::Entry {
            name: entry.name,
            kind: match entry.kind {
                Kind::File => files::Kind::File,
                Kind::Folder => files::Kind::Folder,
                Kind::Other => files::Kind::Other,
            },
            size: entry.size,
        };
        Ok(names.map(|names| names.into_iter().map(entry).collect()))
    }

    fn drop(&mut self, folder: Resource<Folder>) -> wasmtime::Result<()> {
        self.table.delete(folder)?;
        Ok(())
    }
}
