//! Quotas and rate limits of a door, for each kind of client.
//!
//! A door has a [`Quota`] for each kind of token, so that one kind can't use up the quota of another: agents can take
//! all connections of agents, and the owner's stay free. No kind queues behind another.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{Code, ErrorResponse};
use super::holder::Holder;
use conductor_stdx::jobs::Jobs;
use conductor_stdx::rate::RateLimiter;

/// Bytes of requests that are being read, for one kind of client.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of answers that clients of one kind have not read yet.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a request or an answer that its connection pays for: they count against no budget.
pub(super) const FREE_BYTES: usize = 16 * 1024;
/// Seconds after which a client that found no room may ask again.
const RETRY_AFTER: u64 = 1;

/// What one kind of client may use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections, idle ones among them.
    pub(super) connections: usize,
    /// Event streams; fewer than connections, so that requests always have some.
    pub(super) streams: usize,
    /// Requests that are worked on by threads of their own, such as a check of a configuration.
    pub(super) jobs: usize,
    /// Requests a second after a burst of twice as many; `None` if there is no limit.
    pub(super) per_second: Option<f64>,
}

impl Limits {
    /// The owner, at a socket that only the owner can open.
    pub(super) const OWNER_SOCKET: Self = Self { connections: 256, streams: 192, jobs: 8, per_second: None };

    fn of(holder: Holder) -> Self {
        match holder {
            Holder::Owner => Self { connections: 64, streams: 48, jobs: 4, per_second: None },
            Holder::Control => Self { connections: 48, streams: 32, jobs: 2, per_second: Some(200.0) },
            Holder::Read => Self { connections: 48, streams: 32, jobs: 2, per_second: Some(200.0) },
            Holder::Agent => Self { connections: 96, streams: 64, jobs: 4, per_second: Some(200.0) },
        }
    }
}

/// What is left for one kind of client at one door. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    limits: Limits,
    connections: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    request_bytes: Arc<Semaphore>,
    answer_bytes: Arc<Semaphore>,
    jobs: Jobs,
    rate: Option<Arc<RateLimiter>>,
}

impl Quota {
    pub(super) fn new(limits: Limits) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count));
        Self {
            limits,
            connections: places(limits.connections),
            streams: places(limits.streams),
            request_bytes: places(MAX_REQUEST_BYTES),
            answer_bytes: places(MAX_ANSWER_BYTES),
            jobs: Jobs::new(limits.jobs),
            rate: limits.per_second.map(|rate| Arc::new(RateLimiter::new(rate, rate * 2.0))),
        }
    }

    /// A place for a connection.
    ///
    /// # Errors
    /// 503 if all are taken.
    pub(super) fn connection(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        let many = || format!("{} connections with this token are open already", self.limits.connections);
        Arc::clone(&self.connections).try_acquire_owned().map_err(|_| busy(&many()))
    }

    /// A place for an event stream.
    ///
    /// # Errors
    /// 429 if all are taken.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        let many = || format!("{} streams are open already; close one first", self.limits.streams);
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, Code::TooMany, many()).retry_after(RETRY_AFTER)
        })
    }

    /// Takes one request off the rate.
    ///
    /// # Errors
    /// 429 with the time to wait.
    pub(super) fn request(&self, now: Instant) -> Result<(), ErrorResponse> {
        let Some(rate) = self.rate.as_ref().filter(|rate| !rate.take(now)) else { return Ok(()) };
        let per_second = self.limits.per_second.unwrap_or_default();
        let error = format!("too many requests: clients with this token may send {per_second} a second");
        let seconds = rate.wait(now).as_secs() + 1;
        Err(ErrorResponse::new(StatusCode::TOO_MANY_REQUESTS, Code::TooMany, error).retry_after(seconds))
    }

    /// Room for this many more bytes of a request.
    ///
    /// # Errors
    /// 503 if requests of this kind of client fill the budget.
    pub(super) fn request_bytes(&self, count: usize) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        bytes(&self.request_bytes, count, MAX_REQUEST_BYTES)
            .ok_or_else(|| busy("too many bytes of other requests with this token are on their way"))
    }

    /// Room for an answer until it has been read.
    ///
    /// # Errors
    /// 503 if answers that were not read fill the budget.
    pub(super) fn answer_bytes(&self, count: usize) -> Result<OwnedSemaphorePermit, ErrorResponse> {
        bytes(&self.answer_bytes, count, MAX_ANSWER_BYTES)
            .ok_or_else(|| busy("too many answers to clients with this token wait to be read"))
    }

    /// The threads that work for this kind of client.
    pub(super) fn jobs(&self) -> &Jobs {
        &self.jobs
    }
}

/// Permits for this many bytes; for all there are if more are wanted than that.
fn bytes(budget: &Arc<Semaphore>, count: usize, all: usize) -> Option<OwnedSemaphorePermit> {
    let count = u32::try_from(count.min(all)).ok()?;
    Arc::clone(budget).try_acquire_many_owned(count).ok()
}

/// 503: there may be room soon.
fn busy(why: &str) -> ErrorResponse {
    let error = format!("{why}; try again later");
    ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, error).retry_after(RETRY_AFTER)
}

/// The quotas of a door that tells its clients apart by their tokens.
#[derive(Debug, Clone)]
pub(super) struct Quotas([Quota; Holder::ALL.len()]);

impl Quotas {
    pub(super) fn new() -> Self {
        Self(Holder::ALL.map(|holder| Quota::new(Limits::of(holder))))
    }

    pub(super) fn of(&self, holder: Holder) -> &Quota {
        let [owner, control, read, agent] = &self.0;
        match holder {
            Holder::Owner => owner,
            Holder::Control => control,
            Holder::Read => read,
            Holder::Agent => agent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_kind_of_client_uses_up_the_others_still_have() {
        let quotas = Quotas::new();
        let agent = quotas.of(Holder::Agent);
        let taken: Vec<_> = std::iter::from_fn(|| agent.connection().ok()).collect();
        assert_eq!(taken.len(), Limits::of(Holder::Agent).connections);
        let _streams: Vec<_> = std::iter::from_fn(|| agent.stream().ok()).collect();
        let _bytes = agent.answer_bytes(MAX_ANSWER_BYTES).unwrap();
        assert!(agent.answer_bytes(1).is_err());
        assert!((0..1_000_000).any(|_| agent.request(Instant::now()).is_err()), "requests are not limited");
        for other in [Holder::Owner, Holder::Control, Holder::Read] {
            let other = quotas.of(other);
            assert!(other.connection().is_ok() && other.stream().is_ok() && other.answer_bytes(1).is_ok());
            assert!(other.request(Instant::now()).is_ok());
        }
        drop(taken);
        assert!(agent.connection().is_ok(), "a place that is given back is free");
    }

    #[test]
    fn an_answer_that_is_longer_than_the_budget_takes_all_of_it() {
        let quota = Quota::new(Limits::OWNER_SOCKET);
        let whole = quota.answer_bytes(usize::MAX).unwrap();
        assert!(quota.answer_bytes(1).is_err());
        drop(whole);
        assert!(quota.answer_bytes(1).is_ok());
    }
}
