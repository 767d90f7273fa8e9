//! Installing, upgrading and removing: compare, let a person decide, then change the set atomically.
//!
//! Grants belong to a feature's id and to the digest of one package. An upgrade takes over what was
//! granted to the same id as far as the new package still asks for it, and asks for the difference.
//! It takes over nothing where a signer that a person trusts signed the old package and not the new.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use crate::grant_words::{GrantWords, GrantWordsError};
use crate::receipt::{FeatureInstallReport, What};
use crate::signature::{self, PublicKey, SignatureError, TrustedSigners};
use crate::source::{Fetched, Origin};
use crate::store::{Installed, InstalledFeature, PackageStore, Release, StoreError};
use conductor_package::capability::CapabilityRequest;
use conductor_package::check::{self, CheckError};
use conductor_package::descriptor::SkipReason;
use conductor_package::id::DataKey;
use conductor_package::{Contributions, Descriptor, Grants, Package, PackageError, consent};
use conductor_stdx::clock::unix_millis;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The store.
    #[error(transparent)]
    PackageStore(#[from] StoreError),
    /// A signature of the package.
    #[error("{package}: {source}")]
    Signature {
        /// The package.
        package: String,
        /// Why.
        source: SignatureError,
    },
    /// The installed file is no longer a valid package.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The component does not fit its descriptor.
    #[error("{package}: {}", join(.errors))]
    Check {
        /// The package.
        package: String,
        /// Everything that does not fit.
        errors: Vec<CheckError>,
    },
    /// It has another digest than the person named.
    #[error("{package}: has the digest sha256:{found}, not sha256:{wanted}")]
    Digest {
        /// The package.
        package: String,
        /// Lower-case hex.
        wanted: String,
        /// Lower-case hex.
        found: String,
    },
    /// It calls itself otherwise than the person does.
    #[error("{package}: calls itself {found:?}, not {wanted:?}")]
    Name {
        /// The package.
        package: String,
        /// What the person said.
        wanted: String,
        /// What the descriptor says.
        found: String,
    },
    /// It claims to come with the host, or comes with it and says otherwise.
    #[error("{package}: calls itself {id}; only features that come with the host are `builtin:`")]
    FalseSource {
        /// The package.
        package: String,
        /// What it says.
        id: String,
    },
    /// The name has a feature already.
    #[error("{name} is installed already, version {version}; `conductor feature upgrade {name}` brings another one")]
    Taken {
        /// The name.
        name: String,
        /// Its version.
        version: String,
    },
    /// An upgrade must be of the same feature.
    #[error("{name} is {before}, and the new package is {after}: another feature; remove {name} first")]
    OtherFeature {
        /// The name.
        name: String,
        /// The id that is installed.
        before: String,
        /// The id of the package.
        after: String,
    },
    /// No feature of this name is installed here.
    #[error("no feature {name} is installed; {}", known(.installed))]
    Unknown {
        /// What the person said.
        name: String,
        /// What there is.
        installed: Vec<String>,
    },
    /// There is nothing to go back to.
    #[error("{name} was never upgraded: there is no version to go back to")]
    NoPrevious {
        /// The name.
        name: String,
    },
    /// A required capability was not granted.
    #[error("{name} needs {}; grant it with {}", needs(.missing), flags(.missing))]
    NotGranted {
        /// The feature's name.
        name: String,
        /// What is missing.
        missing: Vec<CapabilityRequest>,
    },
    /// What should be granted, revoked or refused is not there.
    #[error("{0}")]
    Words(String),
    /// It would take the place of a feature that comes with the host.
    #[error(
        "{package}: calls itself {id}, and {name} is the name of builtin:{name}, which comes with Conductor: installing \
         it would put {id} in its place. With --replace-bundled it does; it gets none of the grants of builtin:{name}"
    )]
    Displaces {
        /// The package.
        package: String,
        /// What it calls itself.
        id: String,
        /// The name that both have.
        name: String,
    },
    /// Another process changed the feature in between.
    #[error("{name} was changed by another process in the meantime; look at it again and repeat")]
    Raced {
        /// The feature's name.
        name: String,
    },
}

impl From<GrantWordsError> for ChangeError {
    fn from(error: GrantWordsError) -> Self {
        Self::Words(error.to_string())
    }
}

fn join(errors: &[CheckError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn known(installed: &[String]) -> String {
    if installed.is_empty() { "none is".to_owned() } else { format!("these are: {}", installed.join(", ")) }
}

fn needs(missing: &[CapabilityRequest]) -> String {
    missing.iter().map(|request| format!("{} ({})", request.key(), request.reason)).collect::<Vec<_>>().join(", ")
}

fn flags(missing: &[CapabilityRequest]) -> String {
    let words = missing.iter().flat_map(|request| consent::words(&request.capability));
    words.map(|word| format!("--grant {word}")).collect::<Vec<_>>().join(" ")
}

/// What a person wants to be true of a package, and whom they trust.
#[derive(Debug, Clone, Default)]
pub struct InstallRequest {
    /// What it has to call itself.
    pub name: Option<String>,
    /// The digest that it has to have: 64 hex digits, perhaps after `sha256:`.
    pub digest: Option<String>,
    /// Whom they trust.
    pub trusted: TrustedSigners,
    /// The folder of the features that come with the host; `None` if there is none.
    pub bundled: Option<PathBuf>,
    /// Whether the package may take the place of a feature that comes with the host.
    pub replace_bundled: bool,
}

/// An installation or an upgrade that was looked at, and waits for a decision. Nothing has changed.
#[derive(Debug, Clone)]
pub struct InstallPlan {
    /// [`What::Install`], [`What::Upgrade`] or [`What::Downgrade`].
    pub what: What,
    /// The feature's name.
    pub name: String,
    /// The package.
    pub package: Package,
    /// Where it came from.
    pub origin: Origin,
    /// Whose signatures it carries.
    pub signers: Vec<PublicKey>,
    /// What it may use without a new decision.
    pub kept: Vec<CapabilityRequest>,
    /// What it asks for beyond that.
    pub asked: Vec<CapabilityRequest>,
    /// What a person should know before they decide, in sentences.
    pub notes: Vec<String>,
    trusted: TrustedSigners,
    before: Option<InstalledFeature>,
    /// Whom its data belongs to.
    owner: String,
    replaces_bundled: bool,
}

impl InstallPlan {
    /// Looks at a package that is to be installed, or with `upgrade` to take the place of the one
    /// that is.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub fn new(
        store: &PackageStore,
        fetched: Fetched,
        wanted: InstallRequest,
        upgrade: bool,
    ) -> Result<Self, ChangeError> {
        let Fetched { package, origin } = fetched;
        let descriptor = &package.info.descriptor;
        let shown = || package.path.display().to_string();
        let name = descriptor.id.name().to_owned();
        if let Some(digest) = &wanted.digest {
            let digest = digest.strip_prefix("sha256:").unwrap_or(digest).to_ascii_lowercase();
            if digest != package.info.digest {
                let found = package.info.digest.clone();
                return Err(ChangeError::Digest { package: shown(), wanted: digest, found });
            }
        }
        if let Some(wanted) = wanted.name.filter(|wanted| *wanted != name) {
            return Err(ChangeError::Name { package: shown(), wanted, found: name });
        }
        if descriptor.id.is_builtin() != matches!(origin, Origin::Bundled { .. }) {
            return Err(ChangeError::FalseSource { package: shown(), id: descriptor.id.to_string() });
        }
        check::check(&package.info).map_err(|errors| ChangeError::Check { package: shown(), errors })?;
        let signers =
            signature::verify(&package.bytes).map_err(|source| ChangeError::Signature { package: shown(), source })?;

        let mut installed = store.installed()?;
        let before = installed.features.remove(&name);
        match &before {
            Some(before) if !upgrade => {
                return Err(ChangeError::Taken { name, version: before.current.version.clone() });
            }
            Some(before) if before.id != descriptor.id => {
                let (before, after) = (before.id.to_string(), descriptor.id.to_string());
                return Err(ChangeError::OtherFeature { name, before, after });
            }
            None if upgrade => return Err(unknown(&name, &installed)),
            _ => {}
        }
        let is_bundled = |folder: PathBuf| folder.join(format!("{name}.wasm")).is_file();
        let displaces = !descriptor.id.is_builtin() && wanted.bundled.is_some_and(is_bundled);
        let said = wanted.replace_bundled || before.as_ref().is_some_and(|before| before.replaces_bundled);
        if displaces && !said {
            return Err(ChangeError::Displaces { package: shown(), id: descriptor.id.to_string(), name });
        }
        let what = if upgrade { What::Upgrade } else { What::Install };
        let mut plan = Self::compared(what, name, package, origin, signers, wanted.trusted, before);
        plan.replaces_bundled = displaces;
        if displaces {
            plan.notes.push(displacement(&plan.name));
        }
        Ok(plan)
    }

    /// Looks at the package that was in use before, which is to be in use again.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub fn back(store: &PackageStore, name: &str, trusted: TrustedSigners) -> Result<Self, ChangeError> {
        let installed = store.installed()?;
        let before = find(&installed, name)?.clone();
        let release = before.previous.clone().ok_or_else(|| ChangeError::NoPrevious { name: name.to_owned() })?;
        let package = Package::from_bytes(&store.blob(&release.digest), store.read(&release.digest)?)?;
        let mut plan = Self::compared(
            What::Downgrade,
            name.to_owned(),
            package,
            release.origin.clone(),
            release.signers.clone(),
            trusted,
            Some(before),
        );
        // These very bytes have been decided about.
        release.owner().clone_into(&mut plan.owner);
        plan.settle(release.grants);
        Ok(plan)
    }

    fn compared(
        what: What,
        name: String,
        package: Package,
        origin: Origin,
        signers: Vec<PublicKey>,
        trusted: TrustedSigners,
        before: Option<InstalledFeature>,
    ) -> Self {
        let mut notes = Vec::new();
        for signer in signers.iter().map(|key| trusted.signer(*key)).filter(|signer| signer.name.is_none()) {
            notes.push(format!(
                "{signer}: the key has no name in trusted-signers.toml, so the signature gives no trust"
            ));
        }
        if signers.is_empty() && !matches!(origin, Origin::Bundled { .. }) {
            notes.push("the package is not signed".to_owned());
        }
        let mut held = Vec::new();
        let signer = signers.iter().find(|key| trusted.trusts(**key));
        let mut owner = signer.map_or_else(|| package.info.digest.clone(), ToString::to_string);
        if let Some(before) = &before {
            let vouched = |key: &&PublicKey| trusted.trusts(**key);
            let mut trusted_before = before.current.signers.iter().filter(vouched).peekable();
            if trusted_before.peek().is_some() && !trusted_before.any(|key| signers.contains(key)) {
                notes.push(
                    "whom you trusted signed the version before, but not this one: nothing granted is taken over, and \
                     no data"
                        .to_owned(),
                );
            } else {
                held.clone_from(&before.current.grants);
                before.current.owner().clone_into(&mut owner);
            }
        }
        let asks = &package.info.descriptor.capabilities;
        if matches!(origin, Origin::Bundled { .. }) {
            for grant in asks.iter().filter_map(CapabilityRequest::preapproved) {
                CapabilityRequest::merge(&mut held, grant);
            }
        }
        let replaces_bundled = before.as_ref().is_some_and(|before| before.replaces_bundled);
        let mut plan = Self {
            what,
            name,
            package,
            origin,
            signers,
            kept: Vec::new(),
            asked: Vec::new(),
            notes,
            trusted,
            before,
            owner,
            replaces_bundled,
        };
        plan.settle(held);
        if plan.is_in_use() {
            plan.notes.push("this very package was in use already".to_owned());
        }
        plan
    }

    fn settle(&mut self, held: Vec<CapabilityRequest>) {
        let asks = &self.package.info.descriptor.capabilities;
        self.asked = asks.iter().filter_map(|request| request.beyond(&held)).collect();
        self.kept = asks.iter().filter_map(|request| request.within(&held)).collect();
    }

    /// Whether just this package is in use already.
    pub fn is_in_use(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.current.digest == self.package.info.digest)
    }

    /// What it may use in the end, when `given` is granted of what it asks for.
    ///
    /// # Errors
    /// [`ChangeError::NotGranted`].
    pub fn grants(&self, given: Vec<CapabilityRequest>) -> Result<Vec<CapabilityRequest>, ChangeError> {
        let mut grants = self.kept.clone();
        for grant in given {
            CapabilityRequest::merge(&mut grants, grant);
        }
        enough(&self.name, &self.package.info.descriptor, &grants)?;
        Ok(grants)
    }

    /// Under what its data will be kept.
    pub fn data(&self) -> DataKey {
        DataKey::new(&self.package.info.descriptor.id, self.owner())
    }

    /// Who will own its data beside its id; `None` if it comes with the host.
    pub fn owner(&self) -> Option<&str> {
        (!self.package.info.descriptor.id.is_builtin()).then_some(self.owner.as_str())
    }

    /// Whether it takes the place of a feature that comes with the host.
    pub fn replaces_bundled(&self) -> bool {
        self.replaces_bundled
    }

    /// The contributions that a person refused, which an upgrade does not take back.
    pub fn refused(&self) -> Contributions {
        self.before.as_ref().map(|before| before.refused.clone()).unwrap_or_default()
    }

    /// Whether hosts would load it.
    pub fn enabled(&self) -> bool {
        self.before.as_ref().is_none_or(|before| before.enabled)
    }

    /// Makes it so.
    ///
    /// # Errors
    /// See [`ChangeError`]; then nothing has changed.
    pub fn commit(
        self,
        store: &PackageStore,
        grants: Vec<CapabilityRequest>,
    ) -> Result<FeatureInstallReport, ChangeError> {
        enough(&self.name, &self.package.info.descriptor, &grants)?;
        store.change(Some(&self.package.bytes), |installed| {
            if installed.features.get(&self.name) != self.before.as_ref() {
                return Err(ChangeError::Raced { name: self.name.clone() });
            }
            let descriptor = &self.package.info.descriptor;
            let current = Release {
                version: descriptor.version.clone(),
                digest: self.package.info.digest.clone(),
                installed_at: unix_millis(),
                signers: self.signers.clone(),
                origin: self.origin.clone(),
                grants,
                owner: Some(self.owner.clone()),
            };
            let in_use = self.is_in_use();
            let (enabled, refused) = (self.enabled(), self.refused());
            let previous = match self.before.clone() {
                // Other grants for the same bytes are no other version.
                Some(before) if in_use => before.previous,
                Some(before) => Some(before.current),
                None => None,
            };
            let feature = InstalledFeature {
                id: descriptor.id.clone(),
                enabled,
                current,
                previous,
                replaces_bundled: self.replaces_bundled,
                refused,
            };
            let report = report(self.what, &self.name, &feature, Some(descriptor), &self.trusted, self.notes.clone());
            installed.features.insert(self.name.clone(), feature);
            Ok(report)
        })
    }
}

/// What is said of a package that takes the place of one that comes with the host.
fn displacement(name: &str) -> String {
    format!("displaces builtin:{name}, which comes with Conductor and is not loaded as long as this is installed")
}

fn enough(name: &str, descriptor: &Descriptor, grants: &[CapabilityRequest]) -> Result<(), ChangeError> {
    let missing = lacking(descriptor, grants);
    if missing.is_empty() { Ok(()) } else { Err(ChangeError::NotGranted { name: name.to_owned(), missing }) }
}

/// What the feature can't do without and was not granted in any part.
fn lacking(descriptor: &Descriptor, grants: &[CapabilityRequest]) -> Vec<CapabilityRequest> {
    let lacks = |request: &&CapabilityRequest| request.required && request.within(grants).is_none();
    descriptor.capabilities.iter().filter(lacks).cloned().collect()
}

fn unknown(name: &str, installed: &Installed) -> ChangeError {
    ChangeError::Unknown { name: name.to_owned(), installed: installed.features.keys().cloned().collect() }
}

/// The installed feature of this name.
///
/// # Errors
/// [`ChangeError::Unknown`].
pub fn find<'i>(installed: &'i Installed, name: &str) -> Result<&'i InstalledFeature, ChangeError> {
    installed.features.get(name).ok_or_else(|| unknown(name, installed))
}

/// What the package says that is in use, without running anything.
///
/// # Errors
/// It can't be read, or was altered.
pub fn describe(store: &PackageStore, feature: &InstalledFeature) -> Result<Package, ChangeError> {
    let digest = &feature.current.digest;
    Ok(Package::from_bytes(&store.blob(digest), store.read(digest)?)?)
}

/// What a change is to do to one feature that is installed.
#[derive(Debug, Clone)]
pub enum Change {
    /// Let this release use what [`granted`] said, unless another one is in use by now.
    Grant(Release, Vec<CapabilityRequest>),
    /// Take away what these words mean; everything, without any.
    Revoke(Vec<GrantWords>),
    /// Have hosts load it, or not.
    Enable(bool),
    /// Leave these contributions out.
    Refuse(Contributions),
    /// Leave these contributions out no longer.
    Accept(Contributions),
    /// Take it out of the set.
    Remove,
}

/// What a feature may use when these words are granted besides.
///
/// # Errors
/// [`ChangeError::Words`], or the package can't be read.
pub fn granted(
    store: &PackageStore,
    feature: &InstalledFeature,
    words: &[GrantWords],
) -> Result<Vec<CapabilityRequest>, ChangeError> {
    let asks = describe(store, feature)?.info.descriptor.capabilities;
    let mut grants = feature.current.grants.clone();
    for grant in GrantWords::select(words, &asks)? {
        CapabilityRequest::merge(&mut grants, grant);
    }
    Ok(grants)
}

/// Changes one feature that is installed.
///
/// # Errors
/// See [`ChangeError`]; then nothing has changed.
pub fn change(
    store: &PackageStore,
    name: &str,
    change: Change,
    trusted: &TrustedSigners,
) -> Result<FeatureInstallReport, ChangeError> {
    store.change(None, |installed| {
        let mut feature = find(installed, name)?.clone();
        // A damaged package can still be removed.
        let package = describe(store, &feature);
        let mut notes: Vec<String> = package.as_ref().err().map(ToString::to_string).into_iter().collect();
        let descriptor = package.ok().map(|package| package.info.descriptor);
        let what = match change {
            Change::Grant(release, _) if release != feature.current => {
                return Err(ChangeError::Raced { name: name.to_owned() });
            }
            Change::Grant(_, grants) => {
                feature.current.grants = grants;
                What::Grant
            }
            Change::Revoke(words) => {
                let before = feature.current.grants.clone();
                take_away(&mut feature.current.grants, &words);
                if feature.current.grants == before {
                    let keys: Vec<String> = before.iter().map(CapabilityRequest::key).collect();
                    let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
                    return Err(ChangeError::Words(format!("{name} was not granted that; it was granted {keys}")));
                }
                // Going back must not bring back what was taken away.
                if let Some(previous) = &mut feature.previous {
                    take_away(&mut previous.grants, &words);
                }
                What::Revoke
            }
            Change::Enable(enabled) => {
                feature.enabled = enabled;
                if enabled { What::Enable } else { What::Disable }
            }
            Change::Refuse(more) => {
                let Some(descriptor) = &descriptor else { return Err(ChangeError::Words(notes.join("; "))) };
                more.check_known(descriptor, &feature.refused).map_err(ChangeError::Words)?;
                feature.refused = feature.refused.union(&more);
                What::Refuse
            }
            Change::Accept(gone) => {
                let Some(descriptor) = &descriptor else { return Err(ChangeError::Words(notes.join("; "))) };
                gone.check_known(descriptor, &feature.refused).map_err(ChangeError::Words)?;
                feature.refused = feature.refused.without(&gone);
                What::Accept
            }
            Change::Remove => {
                feature.enabled = false;
                What::Remove
            }
        };
        if feature.enabled {
            let lacks = descriptor.as_ref().map(|descriptor| lacking(descriptor, &feature.current.grants));
            notes.extend(lacks.iter().flatten().map(|request| {
                let words = consent::words(&request.capability).join(" ");
                format!(
                    "hosts don't load it: it requires {} ({}); `conductor feature grant {name} {words}`",
                    request.key(),
                    request.reason
                )
            }));
        }
        let report = report(what, name, &feature, descriptor.as_ref(), trusted, notes);
        if what == What::Remove {
            installed.features.remove(name);
        } else {
            installed.features.insert(name.to_owned(), feature);
        }
        Ok(report)
    })
}

/// Takes away what these words mean; everything, without any.
pub fn take_away(grants: &mut Vec<CapabilityRequest>, words: &[GrantWords]) {
    if words.is_empty() {
        grants.clear();
    }
    for one in words {
        *grants = std::mem::take(grants)
            .into_iter()
            .filter_map(|grant| match one {
                _ if !one.means(&grant) => Some(grant),
                GrantWords::One { word: Some(word), .. } => grant.without(word),
                _ => None,
            })
            .collect();
    }
}

/// What was done to a feature, and how it stands. `descriptor` is `None` if the package can't be read.
pub fn report(
    what: What,
    name: &str,
    feature: &InstalledFeature,
    descriptor: Option<&Descriptor>,
    trusted: &TrustedSigners,
    mut diagnostics: Vec<String>,
) -> FeatureInstallReport {
    let current = &feature.current;
    let listed = |descriptor: &Descriptor| -> BTreeMap<String, Vec<String>> {
        descriptor.contributions().into_iter().map(|(kind, names)| (kind.to_owned(), names)).collect()
    };
    let contributions = descriptor.map(listed).unwrap_or_default();
    let loads = feature.enabled && descriptor.is_some_and(|descriptor| lacking(descriptor, &current.grants).is_empty());
    let asks = descriptor.map(|descriptor| descriptor.capabilities.as_slice()).unwrap_or_default();
    let grants = Grants::of(&current.grants);
    let mut stays = BTreeMap::new();
    if let Some(descriptor) = descriptor {
        let (rest, left_out) = descriptor.granted(&grants, &feature.refused);
        let refused = left_out.iter().filter(|skipped| matches!(skipped.reason, SkipReason::Refused(_)));
        diagnostics.extend(refused.map(ToString::to_string));
        if loads {
            stays = listed(&rest);
        }
    }
    let mut skipped = contributions;
    for (kind, names) in &mut skipped {
        names.retain(|name| !stays.get(kind).is_some_and(|stays| stays.contains(name)));
    }
    skipped.retain(|_, names| !names.is_empty());
    let name_of = |key: &PublicKey| {
        let signer = trusted.signer(*key);
        signer.name.unwrap_or_else(|| signer.key.to_string())
    };
    FeatureInstallReport {
        what,
        feature: name.to_owned(),
        id: feature.id.clone(),
        version: current.version.clone(),
        digest: current.digest.clone(),
        source: current.origin.clone(),
        signers: current.signers.iter().map(name_of).collect(),
        enabled: feature.enabled,
        displaces: feature.replaces_bundled.then(|| format!("builtin:{name}")),
        granted: current.grants.clone(),
        denied: asks.iter().filter_map(|request| request.beyond(&current.grants)).collect(),
        installed: stays,
        skipped,
        diagnostics,
        at: unix_millis(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_package::capability::Capability;

    #[test]
    fn words_take_away_a_kind_a_purpose_or_one_thing() {
        let network = |purpose: &str, udp: &str| CapabilityRequest {
            capability: Capability::Network {
                purpose: purpose.into(),
                udp: vec![udp.parse().unwrap()],
                http: Vec::new(),
            },
            required: false,
            reason: String::new(),
        };
        let mut grants = vec![network("lamp", "10.0.0.1:*"), network("fan", "10.0.0.2:*")];
        take_away(&mut grants, &["network:lamp".parse().unwrap()]);
        assert_eq!(grants, [network("fan", "10.0.0.2:*")]);
        take_away(&mut grants, &["network=10.0.0.2:*".parse().unwrap()]);
        assert!(grants.is_empty());
    }
}
