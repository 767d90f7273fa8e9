//! Why nothing was fetched, whatever it was to be fetched by.

use conductor_package::PackageError;

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source.
    #[error(
        "\"{0}\" is no source: {1}. Write a file, https://…#sha256=HEX, oci://host/repository:tag, or the name of a bundled feature"
    )]
    Unknown(String, String),
    /// The fetched file is not a valid package.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The network or the server.
    #[error("{url}: {message}")]
    Fetch {
        /// What was asked for.
        url: String,
        /// Why it did not come.
        message: String,
    },
    /// Other bytes came.
    #[error("{url}: has the digest sha256:{found}, not sha256:{wanted}; it was altered, or is another package")]
    Digest {
        /// What was asked for.
        url: String,
        /// Lower-case hex.
        wanted: String,
        /// Lower-case hex.
        found: String,
    },
    /// What lies in the registry is no package.
    #[error("{reference}: is no package: {message}")]
    Manifest {
        /// The reference.
        reference: String,
        /// Why.
        message: String,
    },
}
