//! Secrets that are sent, on record.

use crate::audit::{Audit, Entry, Kind};
use crate::caller::Caller;
use crate::services::http::SecretWitness;
use crate::services::http::secrets::Secret;

impl SecretWitness for Audit {
    fn sent(&self, feature: &str, id: &str, site: &str, secret: &Secret) {
        self.learn_secret(secret.expose());
        self.note(Entry::new(Kind::Secret, "send", &Caller::feature(feature), id).with("to", site));
    }
}
