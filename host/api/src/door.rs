//! Who a request is from: the kind of token that it came with, what is left for that kind, and the list that a client
//! gets on that takes too much.

use std::sync::{Arc, Weak};

use axum::http::{HeaderMap, header};

use super::holder::Holder;
use super::quota::Quota;
use conductor_audit::caller::{Caller, Door};
use conductor_host::control::trouble::Misconduct;
use conductor_host::host::Host;

/// The client of a request, as its token tells: an extension of every request that was let in.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) holder: Holder,
    pub(super) quota: Quota,
    pub(super) entrance: Arc<Entrance>,
}

/// A way in.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) door: Door,
    pub(super) host: Weak<Host>,
}

impl Entrance {
    pub(super) fn new(door: Door, host: Weak<Host>) -> Arc<Self> {
        Arc::new(Self { door, host })
    }

    /// Puts a client without a token on the list of those that misbehave.
    pub(super) fn note_stranger(&self, what: Misconduct) {
        if let Some(host) = self.host.upgrade() {
            host.note_misconduct(&Caller::refused(self.door), what);
        }
    }
}

impl Client {
    pub(super) fn new(holder: Holder, quota: Quota, entrance: Arc<Entrance>) -> Self {
        Self { holder, quota, entrance }
    }

    /// Whether this is the owner, who is never cut off.
    pub(super) fn is_owner(&self) -> bool {
        self.holder == Holder::Owner
    }

    /// Puts it on the list of clients that misbehave, by the name that it gives itself.
    pub(super) fn note(&self, name: Option<&str>, what: Misconduct) {
        if let Some(host) = self.entrance.host.upgrade() {
            host.note_misconduct(&self.caller(name), what);
        }
    }

    /// Who asks, with the name that it gives itself.
    pub(super) fn caller(&self, name: Option<&str>) -> Caller {
        Caller::client(self.entrance.door, self.holder.scope(), name)
    }
}

/// What a client calls itself.
pub(super) fn name(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok())
}
