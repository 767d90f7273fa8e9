//! The rate limit of a feature's HTTP requests, and how many it may have in flight.

use std::time::Instant;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::http::HttpError;
use conductor_package::admission::Grantee;
use conductor_stdx::rate::RateLimiter;

/// Requests per second that one feature may send, after a burst.
pub const RATE: f64 = 10.0;
/// Requests that one feature may send at once.
pub const BURST: f64 = 20.0;
/// Requests that one feature may have under way: as many as its tools may be called at once, so that none fails for others
/// that wait.
pub const MAX_IN_FLIGHT: usize = 8;
/// Exchanges with models that the host may have under way for the providers of one feature. Each has an instance of its
/// own, and all of them have to fit into the memory of one feature.
pub const MAX_STREAMS: usize = 12;

/// What one feature has sent lately: [`RATE`], [`BURST`] and [`MAX_IN_FLIGHT`] hold for all that its instances send themselves,
/// so there is one for each feature. Answers of models are asked for by the host: how often is limited there
/// (`tools.per_minute.model_requests`), and there may be [`MAX_STREAMS`] at once.
#[derive(Debug)]
pub struct HttpAccount {
    feature: String,
    grantee: Grantee,
    rate: RateLimiter,
    places: Semaphore,
    streams: Semaphore,
}

impl HttpAccount {
    /// An account that nothing was sent from. `feature` is the feature's whole id, for the record.
    pub fn new(feature: impl Into<String>, grantee: Grantee) -> Self {
        Self {
            feature: feature.into(),
            grantee,
            rate: RateLimiter::new(RATE, BURST),
            places: Semaphore::new(MAX_IN_FLIGHT),
            streams: Semaphore::new(MAX_STREAMS),
        }
    }

    /// The feature's whole id.
    pub(super) fn feature(&self) -> &str {
        &self.feature
    }

    /// How advice about its grants names it.
    pub(super) fn grantee(&self) -> &Grantee {
        &self.grantee
    }

    /// Lets one request pass at `now`; its place is taken until the permit is dropped.
    pub(super) fn enter(&self, now: Instant) -> Result<SemaphorePermit<'_>, HttpError> {
        let place = self.places.try_acquire().map_err(|_| {
            HttpError::Exhausted(format!("{MAX_IN_FLIGHT} requests of this feature are under way; wait for one to end"))
        })?;
        if self.rate.take(now) {
            Ok(place)
        } else {
            Err(HttpError::Exhausted(format!("more than {RATE} requests a second; try again later")))
        }
    }

    /// Waits for a place among the exchanges with models, first come, first served; it is taken until the permit is dropped.
    pub(super) async fn enter_stream(&self) -> SemaphorePermit<'_> {
        match self.streams.acquire().await {
            Ok(place) => place,
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use conductor_package::admission::Provenance;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let account =
            HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled });
        let start = Instant::now();
        for _ in 0..20 {
            drop(account.enter(start).unwrap());
        }
        assert!(matches!(account.enter(start), Err(HttpError::Exhausted(_))));
        let later = start + Duration::from_millis(100);
        drop(account.enter(later).unwrap());
        assert!(account.enter(later).is_err());
    }

    #[test]
    fn one_request_more_finds_no_place_until_one_ends() {
        let account =
            HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled });
        let now = Instant::now();
        let mut places: Vec<_> = (0..MAX_IN_FLIGHT).map(|_| account.enter(now).unwrap()).collect();
        assert!(matches!(account.enter(now), Err(HttpError::Exhausted(_))));
        places.pop();
        drop(account.enter(now).unwrap());
    }

    #[tokio::test]
    async fn exchanges_with_models_wait_for_a_place_in_their_order() {
        let account =
            HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled });
        let mut places = Vec::new();
        for _ in 0..MAX_STREAMS {
            places.push(account.enter_stream().await);
        }
        let (mut first, mut second) = (Box::pin(account.enter_stream()), Box::pin(account.enter_stream()));
        let is_there =
            async |waits: &mut std::pin::Pin<Box<_>>| tokio::time::timeout(Duration::ZERO, waits).await.is_ok();
        assert!(!is_there(&mut first).await && !is_there(&mut second).await);
        places.pop();
        assert!(!is_there(&mut second).await, "the other one came first");
        assert!(is_there(&mut first).await);
        assert!(account.enter(Instant::now()).is_ok(), "what the feature sends itself has places of its own");
    }
}
