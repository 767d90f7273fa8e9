//! Rollback of upgrades that fail: the previous version is still in the package store, and is installed again.

use std::time::Duration;

use super::Host;
use conductor_install::installation::InstallPlan;
use conductor_install::signature::TrustedSigners;
use conductor_observer::Observation;

/// How long a new version is watched.
const PROBATION: Duration = Duration::from_secs(60);
/// Traps within it that are too many.
const TRAPS: usize = 3;

impl Host {
    /// Takes upgrades of the last minute back whose feature can't be installed, or traps again and
    /// again. To be called about once a second by the program that runs the host. Returns what was done, in
    /// sentences; a person should see them.
    ///
    /// A version that was taken back is not gone back to, so two bad ones do not take turns.
    pub fn roll_back_bad_upgrades(&self) -> Vec<String> {
        let mut state = self.state();
        let (Some(store), Some(home)) = (self.assembler.packages.clone(), self.home.clone()) else { return Vec::new() };
        let current = self.in_force.load();
        let Ok(installed) = store.installed() else { return Vec::new() };
        let mut done = Vec::new();
        for (name, feature) in &installed.features {
            let Some(previous) = &feature.previous else { continue };
            let age = conductor_stdx::clock::unix_millis().saturating_sub(feature.current.installed_at);
            let watched = feature.enabled && u128::from(age) < PROBATION.as_millis();
            if !watched || state.taken_back.contains(&previous.digest) {
                continue;
            }
            let Some(trouble) = current.registry.trouble(name, TRAPS) else { continue };
            state.taken_back.insert(feature.current.digest.clone());
            let (bad, good) = (&feature.current.version, &previous.version);
            let back = TrustedSigners::read(&home).map_err(|error| error.to_string()).and_then(|trusted| {
                let plan = InstallPlan::back(&store, name, trusted).map_err(|error| error.to_string())?;
                self.works_with_data(&plan)?;
                let grants = plan.kept.clone();
                plan.commit(&store, grants).map_err(|error| error.to_string())
            });
            done.push(match back {
                Ok(_) => format!("feature {name}: version {bad} was taken back for {good}: {trouble}"),
                Err(error) => format!("feature {name}: version {bad} can't be taken back ({trouble}): {error}"),
            });
        }
        drop(state);
        if !done.is_empty() {
            for text in &done {
                self.observer.put(Observation::Refused(text.clone()));
            }
            let _ = self.reload_features();
        }
        done
    }

    /// Checks that a package works with the existing data. Hosts would refuse one that does not.
    ///
    /// # Errors
    /// A sentence.
    fn works_with_data(&self, plan: &InstallPlan) -> Result<(), String> {
        let works_with = plan.package.info.descriptor.data_version();
        let stores = self.services.stores.as_ref();
        match stores.and_then(|stores| stores.data_version(plan.data().as_str()).ok().flatten()) {
            Some(found) if found > works_with => {
                Err(format!("its data has version {found} by now, and that package works with version {works_with}"))
            }
            _ => Ok(()),
        }
    }
}
