//! Admission: on which terms a package is loaded, by its provenance, and for which package grants are meant.
//!
//! A grant is for one id and, unless the package comes with the host, for the digest of its bytes. Where the
//! two differ from those of the package that is loaded, it is as if nothing had been granted.

use crate::contributions::Contributions;
use crate::file::PackageInfo;
use crate::grants::Grants;
use crate::id::FeatureId;

/// How a package came to be loaded, which decides where a person writes its grants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Provenance {
    /// It comes with the host. Its grants beyond the bundled policy are in the configuration.
    Bundled,
    /// `conductor feature install` put it into the package store, with its grants.
    Installed,
    /// The configuration names its file. Its grants are there, for one digest.
    #[default]
    File,
}

/// A feature as advice about its grants names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grantee {
    /// The last part of its id.
    pub name: String,
    /// How it came to be loaded.
    pub provenance: Provenance,
}

impl Grantee {
    /// What a person does to grant just this, to follow "not granted; ". `line` is what it is in the
    /// configuration, `word` what it is on the command line.
    pub fn advice(&self, line: &str, word: &str) -> String {
        let Self { name, provenance } = self;
        match provenance {
            Provenance::Bundled => format!("write `{line}` under [features.{name}.grants]"),
            Provenance::Installed => format!("run `conductor feature grant {name} {word}`"),
            Provenance::File => {
                format!("write `{line}` under [features.{name}.grants], then run `conductor feature pin {name}`")
            }
        }
    }
}

/// The terms on which a package is loaded.
#[derive(Debug, Clone)]
pub struct Admission {
    /// What it was granted, as far as the grants are meant for this package.
    pub grants: Grants,
    /// The contributions that a person refused.
    pub refused: Contributions,
    /// How it came to be loaded.
    pub provenance: Provenance,
    /// Whose data it works with beside those of its id: a signer's key or a digest, in hex; see
    /// [`DataKey`](crate::id::DataKey). `None` if the id alone decides.
    pub owner: Option<String>,
}

impl From<Grants> for Admission {
    /// A package of a file, without an owner, of which nothing is refused.
    fn from(grants: Grants) -> Self {
        Self { grants, refused: Contributions::default(), provenance: Provenance::File, owner: None }
    }
}

/// What the configuration grants under one name, and for which package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredGrants {
    /// The id that the package must have.
    pub id: FeatureId,
    /// The SHA-256 that the package must have, lower-case hex; `None` if the configuration names none.
    pub digest: Option<String>,
    /// What such a package gets.
    pub grants: Grants,
}

/// Why grants of the configuration are not for the package that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// They are for another id.
    Id,
    /// They are for other bytes.
    Digest,
    /// They don't say for which bytes, and only what comes with the host needs none.
    NoDigest,
}

impl ConfiguredGrants {
    /// Whether the package with this id and this digest gets these grants.
    ///
    /// # Errors
    /// Why it gets none of them.
    pub fn meant_for(&self, id: &FeatureId, digest: &str) -> Result<(), Mismatch> {
        if self.id != *id {
            return Err(Mismatch::Id);
        }
        match &self.digest {
            Some(wanted) if wanted == digest => Ok(()),
            Some(_) => Err(Mismatch::Digest),
            // Nothing but a file of the host's own folder is loaded under such an id.
            None if id.is_builtin() => Ok(()),
            None => Err(Mismatch::NoDigest),
        }
    }

    /// What of it a package gets.
    pub fn for_package(&self, package: &PackageInfo) -> Option<&Grants> {
        self.meant_for(&package.descriptor.id, &package.digest).ok().map(|()| &self.grants)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn id(text: &str) -> FeatureId {
        FeatureId::try_from(text.to_owned()).unwrap()
    }

    // FEA-22: a name gives nothing, an id of a package from elsewhere gives nothing without its digest.
    #[test]
    fn grants_are_for_an_id_and_a_digest() {
        let grants = |of: &str, digest: Option<&str>| ConfiguredGrants {
            id: id(of),
            digest: digest.map(str::to_owned),
            grants: Grants::default(),
        };
        assert_eq!(grants("builtin:lamp", None).meant_for(&id("builtin:lamp"), "aa"), Ok(()));
        assert_eq!(grants("builtin:lamp", None).meant_for(&id("project:lamp"), "aa"), Err(Mismatch::Id));
        assert_eq!(grants("builtin:lamp", Some("bb")).meant_for(&id("builtin:lamp"), "aa"), Err(Mismatch::Digest));
        assert_eq!(grants("project:lamp", None).meant_for(&id("project:lamp"), "aa"), Err(Mismatch::NoDigest));
        assert_eq!(grants("project:lamp", Some("bb")).meant_for(&id("project:lamp"), "aa"), Err(Mismatch::Digest));
        assert_eq!(grants("project:lamp", Some("aa")).meant_for(&id("project:lamp"), "aa"), Ok(()));
        assert_eq!(grants("plugin:a:lamp", Some("aa")).meant_for(&id("plugin:b:lamp"), "aa"), Err(Mismatch::Id));
    }

    #[test]
    fn advice_names_the_place_where_the_grants_of_a_feature_are() {
        let advice = |provenance| {
            Grantee { name: "lamp".into(), provenance }.advice("udp = [\"10.0.0.5:9000\"]", "network=10.0.0.5:9000")
        };
        assert_eq!(advice(Provenance::Bundled), "write `udp = [\"10.0.0.5:9000\"]` under [features.lamp.grants]");
        assert_eq!(advice(Provenance::Installed), "run `conductor feature grant lamp network=10.0.0.5:9000`");
        assert!(advice(Provenance::File).ends_with("then run `conductor feature pin lamp`"));
    }
}
