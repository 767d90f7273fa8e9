//! Migration: a package that works with a higher version of its feature's data changes the data before it starts.
//!
//! It does so in an instance of its own, which has nothing but the store, in one transaction of that. What it has done
//! counts when the feature is in force: [`Migrated`] brings the data before back unless that is confirmed.

use std::sync::Arc;

use crate::bindings::Lane;
use crate::bindings::control_exports::migration;
use crate::control::{ControlInstance, MIGRATION, export};
use crate::handles::Table;
use crate::meter::{self, Call};
use crate::outcome::{CallError, InstallError};
use crate::state::InstanceState;
use crate::{PreparedFeature, ServiceError};
use conductor_package::capability::{Capability, CapabilityKind};
pub use conductor_services::store::Migrated;
use conductor_services::store::StoreHandle;

/// Why a package can't work with the existing data. The data is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// A later package has changed the data.
    #[error(
        "its data has version {found}, and this package works with version {works_with}: install a package of {name} for \
         version {found} or later (`conductor feature upgrade {name} SOURCE`); or remove the feature with its data \
         (`conductor feature remove {name} --data`) and install this one anew"
    )]
    Newer {
        /// The feature.
        name: String,
        /// The version of the data.
        found: u32,
        /// That of the package.
        works_with: u32,
    },
    /// The feature did not migrate its data.
    #[error("its data was not migrated from version {from} to {to} and is as it was: {source}")]
    Migrate {
        /// The version of the data.
        from: u32,
        /// That of the package.
        to: u32,
        /// Why.
        source: CallError,
    },
}

impl MigrateError {
    /// Whether the guest trapped or was stopped.
    pub fn is_trap(&self) -> bool {
        matches!(self, Self::Migrate { source: CallError::Trapped(_), .. })
    }
}

impl PreparedFeature {
    /// Has the feature migrate its data, if that has a lower version than the package works with. `None` if there is
    /// nothing to migrate. A store that can't be opened now is left to the feature, which is refused its data then.
    ///
    /// Waits for the migration; not to be called where nothing may wait.
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn migrate(&self) -> Result<Option<Migrated>, MigrateError> {
        let facts = &self.facts;
        let requested = facts.descriptor.request(CapabilityKind::Store).map(|request| &request.capability);
        let (Some(Capability::Store { quota }), Some(stores), true) =
            (requested, facts.services.stores.as_ref(), self.has_control())
        else {
            return Ok(None);
        };
        let quota = (*quota).min(facts.grants.store);
        if quota == 0 {
            return Ok(None);
        }
        let (name, to) = (facts.data.as_str(), facts.descriptor.data_version());
        let found = stores.existing(name).and_then(|held| {
            // Its file is checked whole when it is opened; it stays open for the feature.
            *facts.store.lock() = held.map(Arc::new);
            stores.data_version(name)
        });
        match found {
            Err(error) => {
                tracing::warn!(feature = %facts.descriptor.id, "its data can't be looked at: {error}");
                Ok(None)
            }
            Ok(None) => Ok(None),
            Ok(Some(found)) if found == to => Ok(None),
            Ok(Some(found)) if found > to => {
                Err(MigrateError::Newer { name: facts.descriptor.id.name().to_owned(), found, works_with: to })
            }
            Ok(Some(from)) => {
                let failed = |source| MigrateError::Migrate { from, to, source };
                let migration = stores.to_migrate(name, quota).map_err(|error| failed(error.into()))?;
                self.call_migrate(migration.table(), migration.from(), to).map_err(failed)?;
                let migrated = migration.commit(to).map_err(|error| failed(error.into()))?;
                tracing::info!(feature = %facts.descriptor.id, "its data was migrated from version {from} to {to}");
                Ok(Some(migrated))
            }
        }
    }

    /// Calls the guest's `migrate` on the control lane, and waits for it.
    fn call_migrate(&self, table: StoreHandle, from: u32, to: u32) -> Result<(), CallError> {
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        let feature = self.clone();
        self.runtime.spawn(async move {
            let _ = done.send(feature.migrated(table, from, to).await);
        });
        let gone = || CallError::Refused(ServiceError::Unavailable("the control lane is shut down".into()));
        wait.recv().unwrap_or_else(|_| Err(gone()))
    }

    async fn migrated(&self, table: StoreHandle, from: u32, to: u32) -> Result<(), CallError> {
        let Some(linked) = &self.control else { return Ok(()) };
        let instantiate = |error: wasmtime::Error| CallError::from(InstallError::instantiate(&error));
        let pre = linked.get().map_err(instantiate)?;
        let mut store = InstanceState::store(pre.engine(), Arc::clone(&self.facts), Lane::Control);
        store.epoch_deadline_callback(meter::on_tick);
        let call = Call::begin(&mut store, MIGRATION);
        let instance = call.within(pre.instantiate_async(&mut store)).await?.map_err(instantiate)?;
        let mut this = ControlInstance { pre, store, instance };
        let exported = export!(this, migration);
        let table = this.lend(Table::lent(table))?;
        let rep = table.rep();
        let result = call.within(exported.call_migrate(&mut this.store, from, to, table)).await?;
        this.end::<Table>(rep);
        this.outcome(result, MIGRATION)
    }
}
