//! Audit entries for secrets that are sent.

use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Entry, Kind};
use conductor_services::http::SecretAudit;
use conductor_services::http::secrets::Secret;

/// Puts on record which secret went where.
#[derive(Debug)]
pub(super) struct AuditedSecrets(pub(super) Audit);

impl SecretAudit for AuditedSecrets {
    fn sent(&self, feature: &str, id: &str, site: &str, secret: &Secret) {
        self.0.learn_secret(secret.expose());
        self.0.note(Entry::new(Kind::Secret, "send", &Caller::feature(feature), id).with("to", site));
    }
}
