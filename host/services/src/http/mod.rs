//! HTTP egress: requests to the hosts on a grant's allow-list.
//!
//! A request passes `request`, which looks at nothing but the request and the `net::http_scope`; then the
//! feature's [`account`], which limits how many there are; then [`client`], which resolves the name,
//! has `address` judge where it leads, and hands the request with those very addresses to the
//! [`network`]. A value from [`secrets`] goes into one header on that last step, and is taken out of
//! the response, byte for byte. A host that would send it back in another form, or in the response
//! to a later request, must not be granted the secret.
//!
//! Nothing here knows guests or the contract's types.

pub mod account;
pub mod client;
pub mod network;
mod request;
pub mod secrets;

use conductor_terminal::{MAX_TEXT, excerpt};

pub use account::HttpAccount;
pub use client::{HttpClient, StreamLimits, Streamed};
pub use conductor_net::http_scope::{HostPattern, HttpScope, SecretGrant, Site};
pub use network::{Network, SystemNetwork};
pub use secrets::{EnvironmentSecrets, SecretAudit, Secrets};

/// Where requests to this URL go.
///
/// # Errors
/// [`HttpError::Invalid`]: no request may have this URL.
pub fn site_of(url: &str) -> Result<Site, HttpError> {
    request::checked_url(url).map(|(_, site)| site)
}

/// What a feature asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `POST`, `PUT`, `PATCH`, `DELETE` or `HEAD`.
    pub method: String,
    /// `https://host/path?query`; `http` only to this machine. At most 8 KiB.
    pub url: String,
    /// Names in lower case, and values; at most 64 and 16 KiB.
    pub headers: Vec<(String, String)>,
    /// At most 1 MiB.
    pub body: Vec<u8>,
    /// A secret for the host to put into a header.
    pub secret: Option<SecretUse>,
    /// The variable of this process's environment that has the secret's value; `None` if it is where secrets are kept.
    /// For what a person configured, never for what a guest asks.
    pub variable: Option<String>,
}

/// A secret's use within one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUse {
    /// Its id, as the grant names it.
    pub id: String,
    /// The header, in lower case.
    pub header: String,
    /// What stands before the secret, such as `Bearer `.
    pub prefix: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// 200-599. Redirects come as they are.
    pub status: u16,
    /// Names in lower case, and values. Bytes that are not UTF-8 are replaced.
    pub headers: Vec<(String, String)>,
    /// At most 4 MiB.
    pub body: Vec<u8>,
}

/// Why there is no response. The kinds are those of the contract's `error`; no text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// No grant covers this, or it was revoked.
    #[error("{0}")]
    Denied(String),
    /// Granted, but not there now: a name that does not resolve, a host that nothing answers at, a
    /// secret that is not set.
    #[error("{0}")]
    Unavailable(String),
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// A limit was reached: of the rate, of requests under way, of the response's size.
    #[error("{0}")]
    Exhausted(String),
    /// It was tried and it failed: the connection broke, the time ran out.
    #[error("{0}")]
    Failed(String),
}

impl HttpError {
    /// As much of the text as is kept, and nothing in it that controls a terminal.
    fn kept(self) -> Self {
        let text = |text: String| excerpt(&text, MAX_TEXT);
        match self {
            Self::Denied(why) => Self::Denied(text(why)),
            Self::Unavailable(why) => Self::Unavailable(text(why)),
            Self::Invalid(why) => Self::Invalid(text(why)),
            Self::Exhausted(why) => Self::Exhausted(text(why)),
            Self::Failed(why) => Self::Failed(text(why)),
        }
    }
}
