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
/// Exchanges that one feature may have under way.
pub const IN_FLIGHT: usize = 4;

/// What one feature has sent lately: [`RATE`], [`BURST`] and [`IN_FLIGHT`] hold for all its instances
/// and purposes together, so there is one for each feature.
#[derive(Debug)]
pub struct HttpAccount {
    feature: String,
    grantee: Grantee,
    rate: RateLimiter,
    places: Semaphore,
}

impl HttpAccount {
    /// An account that nothing was sent from. `feature` is the feature's whole id, for the record.
    pub fn new(feature: impl Into<String>, grantee: Grantee) -> Self {
        Self {
            feature: feature.into(),
            grantee,
            rate: RateLimiter::new(RATE, BURST),
            places: Semaphore::new(IN_FLIGHT),
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
            HttpError::Exhausted(format!("{IN_FLIGHT} requests of this feature are under way; wait for one to end"))
        })?;
        if self.rate.take(now) {
            Ok(place)
        } else {
            Err(HttpError::Exhausted(format!("more than {RATE} requests a second; try again later")))
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
    fn a_fifth_request_finds_no_place_until_one_ends() {
        let account =
            HttpAccount::new("project:chat", Grantee { name: "chat".into(), provenance: Provenance::Bundled });
        let now = Instant::now();
        let mut places: Vec<_> = (0..4).map(|_| account.enter(now).unwrap()).collect();
        assert!(matches!(account.enter(now), Err(HttpError::Exhausted(_))));
        places.pop();
        drop(account.enter(now).unwrap());
    }
}
