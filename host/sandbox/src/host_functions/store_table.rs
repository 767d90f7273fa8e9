//! The contract's `store`: the guest's handle to its feature's data.

use std::sync::Arc;

use wasmtime::component::Resource;

use crate::bindings::imports::store;
use crate::bindings::{Error, Lane};
use crate::handles::{Context, Table};
use crate::state::InstanceState;
use conductor_package::capability::{Capability, CapabilityKind};
use conductor_services::error::ServiceError;
use conductor_services::store::StoreHandle;

impl InstanceState {
    /// The store of this feature, as large as was both asked for and granted.
    fn open_store(&self) -> Result<Option<Arc<StoreHandle>>, Error> {
        self.granted(CapabilityKind::Store)?;
        let Some(Capability::Store { quota }) =
            self.facts.descriptor.request(CapabilityKind::Store).map(|it| &it.capability)
        else {
            return Ok(None);
        };
        if self.lane == Lane::RealTime {
            return Ok(None);
        }
        let stores = self.facts.services.stores.as_ref();
        let stores = stores.ok_or_else(|| Error::Unavailable("the host has no home to keep data in".into()))?;
        let quota = (*quota).min(self.facts.grants.store);
        let opened = super::waiting(|| stores.feature(self.facts.data.as_str(), quota))?;
        if let Some(aside) = opened.set_aside {
            let feature = &self.facts.descriptor.id;
            tracing::warn!(%feature, "its store was damaged and begins anew; what was there is in {}", aside.display());
        }
        let version = self.facts.descriptor.data_version();
        let handle = Arc::new(super::waiting(|| opened.handle.of_version(version))?);
        *self.facts.store.lock() = Some(Arc::clone(&handle));
        Ok(Some(handle))
    }

    fn with_store<T>(
        &self,
        table: &Resource<Table>,
        work: impl FnOnce(&StoreHandle) -> Result<T, ServiceError>,
    ) -> wasmtime::Result<Result<T, Error>> {
        let table = self.table.get(table)?;
        if self.facts.is_revoked() {
            return Ok(Err(super::revoked()));
        }
        Ok(match &table.store {
            Some(store) => super::waiting(|| work(store)).map_err(Error::from),
            None => Err(Error::Unavailable("a store waits, and nothing may wait in the real-time lane".into())),
        })
    }
}

impl store::Host for InstanceState {}

impl store::HostTable for InstanceState {
    fn open(&mut self, context: Resource<Context>) -> wasmtime::Result<Result<Resource<Table>, Error>> {
        self.table.get(&context)?;
        Ok(match self.open_store() {
            Ok(store) => Ok(self.table.push(Table { store })?),
            Err(error) => Err(error),
        })
    }

    fn get(&mut self, table: Resource<Table>, key: String) -> wasmtime::Result<Result<Option<Vec<u8>>, Error>> {
        self.with_store(&table, |store| store.get(&key))
    }

    fn set(&mut self, table: Resource<Table>, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), Error>> {
        self.with_store(&table, |store| store.set(&key, &value))
    }

    fn swap(
        &mut self,
        table: Resource<Table>,
        key: String,
        expected: Option<Vec<u8>>,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, Error>> {
        self.with_store(&table, |store| store.swap(&key, expected.as_deref(), &value))
    }

    fn delete(&mut self, table: Resource<Table>, key: String) -> wasmtime::Result<Result<bool, Error>> {
        self.with_store(&table, |store| store.delete(&key))
    }

    fn keys(
        &mut self,
        table: Resource<Table>,
        prefix: String,
        after: Option<String>,
    ) -> wasmtime::Result<Result<Vec<String>, Error>> {
        self.with_store(&table, |store| store.keys(&prefix, after.as_deref()))
    }

    fn drop(&mut self, table: Resource<Table>) -> wasmtime::Result<()> {
        self.table.delete(table)?;
        Ok(())
    }
}
