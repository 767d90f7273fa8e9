//! Services behind the host functions: files, git, HTTP, programs, secrets, signatures, stores. Each works on the disk or over the network
//! within a scope that its caller passes; none depends on instances, handles or the contract.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

pub mod added_files;
pub mod error;
pub mod files;
pub mod git;
pub mod http;
pub mod keychain;
pub mod programs;
pub mod secret_store;
pub mod signing;
pub mod store;
pub mod token_account;
