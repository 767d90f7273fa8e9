//! Every route, by subject. To add one: a handler in the file of its subject, its description beside it, and a method
//! of the [client](crate::client::Client).

pub(super) mod audit;
pub(super) mod config;
pub(super) mod conversations;
pub(super) mod devices;
pub(super) mod events;
pub(super) mod features;
pub(super) mod install;
pub(super) mod ipc;
pub(super) mod lock;
pub(super) mod models;
pub(super) mod modes;
pub(super) mod notifications;
pub mod openapi;
pub(super) mod plans;
pub(super) mod secrets;
pub(super) mod skills;
pub(super) mod status;
pub(super) mod tools;

use super::door::Client;
use super::error::ErrorResponse;
use super::route::Route;

/// Every route of the API, in the order of the document.
pub(super) fn all() -> Vec<Route> {
    [
        status::routes(),
        devices::routes(),
        modes::routes(),
        config::routes(),
        plans::routes(),
        features::routes(),
        install::routes(),
        secrets::routes(),
        skills::routes(),
        tools::routes(),
        models::routes(),
        conversations::routes(),
        lock::routes(),
        events::routes(),
        notifications::routes(),
        audit::routes(),
        ipc::routes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns what `work` returns, which compiles rules, looks at ports or waits for the disk: on another thread, within
/// the number of jobs that the client may have at once, and with a timeout.
async fn look<T, E>(client: &Client, work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, ErrorResponse>
where
    T: Send + 'static,
    E: Send + 'static,
    ErrorResponse: From<E>,
{
    Ok(client.quota.jobs().read(work).await??)
}

/// The same for work that changes something, whose result is waited for however long it takes.
async fn change<T, E>(client: &Client, work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, ErrorResponse>
where
    T: Send + 'static,
    E: Send + 'static,
    ErrorResponse: From<E>,
{
    Ok(client.quota.jobs().write(work).await??)
}
