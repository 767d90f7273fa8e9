//! The queue in front of a provider: exchanges beyond its limits wait for their turn, and are not refused.
//!
//! A feature has so many requests under way ([`PLACES`]), and a provider so many in a minute. Who waits gets a place in
//! turn with the other askers, and not in the order of exchanges: a feature that asks a hundred times delays a
//! conversation by one exchange and not by a hundred.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use conductor_sandbox::bindings::Error;
use conductor_sandbox::limits;
use conductor_services::http::account::STREAMS;
use conductor_stdx::rate::RateLimiter;

/// Exchanges of one feature's providers at once: as many as the host may have under way for them.
pub const PLACES: usize = STREAMS;
/// What an instance may take, on average, while all places are taken: a question of 200 000 tokens is about 1 MiB of text.
const INSTANCE_BYTES: usize = 8 << 20;
// A quarter is left for what else the feature does.
const _: () = assert!(PLACES * (limits::HANDED_OVER_LARGE + INSTANCE_BYTES) <= limits::FEATURE_MEMORY_BYTES / 4 * 3);
/// Exchanges that wait for the providers of one feature.
pub const MAX_WAITING: usize = 512;
/// How long an exchange waits for its turn.
pub const MAX_WAIT: Duration = Duration::from_secs(600);
/// Seconds' worth of requests that may be made at once to one provider.
const BURST_SECONDS: f64 = 10.0;

/// The queues of all providers.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    per_minute: u32,
    /// Of each feature with providers that were asked.
    lines: Mutex<HashMap<String, Arc<Line>>>,
    /// Of each provider that was asked.
    rates: Mutex<HashMap<String, Arc<RateLimiter>>>,
}

/// Those who wait for the providers of one feature.
#[derive(Debug, Default)]
struct Line(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    taken: usize,
    count: usize,
    /// In the order in which they are served; each with what it waits for, first come first served.
    askers: VecDeque<(String, VecDeque<oneshot::Sender<Place>>)>,
}

impl Waiting {
    /// Forgets who has left.
    fn forget_gone(&mut self) {
        for (_, theirs) in &mut self.askers {
            theirs.retain(|one| !one.is_closed());
        }
        self.askers.retain(|(_, theirs)| !theirs.is_empty());
        self.count = self.askers.iter().map(|(_, theirs)| theirs.len()).sum();
    }
}

/// The right to one exchange; dropping it gives it to who is next.
#[derive(Debug)]
pub struct Place(Option<Arc<Line>>);

impl Place {
    /// One of no queue.
    pub fn free() -> Self {
        Self(None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(line) = self.0.take() {
            line.pass_on();
        }
    }
}

impl Line {
    /// Gives a place that has become free to who is next.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let next = {
                let mut waiting = self.0.lock();
                let Some((asker, mut theirs)) = waiting.askers.pop_front() else {
                    waiting.taken -= 1;
                    return;
                };
                let next = theirs.pop_front();
                waiting.count -= usize::from(next.is_some());
                if !theirs.is_empty() {
                    waiting.askers.push_back((asker, theirs));
                }
                next
            };
            let Some(next) = next else { continue };
            match next.send(Place(Some(Arc::clone(self)))) {
                Ok(()) => return,
                // Who waited has left, so the next one has it. Dropped here it would come back to this line.
                Err(mut place) => place.0 = None,
            }
        }
    }

    async fn enter(self: Arc<Self>, asker: &str) -> Result<Place, Error> {
        let came = {
            let mut waiting = self.0.lock();
            if waiting.taken < PLACES {
                waiting.taken += 1;
                return Ok(Place(Some(Arc::clone(&self))));
            }
            if waiting.count >= MAX_WAITING {
                waiting.forget_gone();
            }
            if waiting.count >= MAX_WAITING {
                return Err(Error::Exhausted(format!(
                    "{MAX_WAITING} exchanges wait for this provider; try again later"
                )));
            }
            waiting.count += 1;
            let (given, came) = oneshot::channel();
            match waiting.askers.iter_mut().find(|(other, _)| other == asker) {
                Some((_, theirs)) => theirs.push_back(given),
                None => waiting.askers.push_back((asker.to_owned(), VecDeque::from([given]))),
            }
            came
        };
        match tokio::time::timeout(MAX_WAIT, came).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Error::Exhausted(format!(
                "the provider had no place for it within {} s; try again later",
                MAX_WAIT.as_secs()
            ))),
        }
    }
}

impl Queues {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute, ..Self::default() }
    }

    /// How many requests may be made to a provider in a minute.
    pub(crate) fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Waits until `asker` may have an exchange with a provider of a feature.
    ///
    /// # Errors
    /// `Exhausted` if too many wait, or it took too long.
    pub(crate) async fn enter(&self, feature: &str, provider: &str, asker: &str) -> Result<Place, Error> {
        let line = Arc::clone(self.lines.lock().entry(feature.to_owned()).or_default());
        let place = line.enter(asker).await?;
        let rate = self.rate(provider);
        // Who holds a place waits for the rate, so that the order stays.
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let now = Instant::now();
            if rate.take(now) {
                return Ok(place);
            }
            let wait = rate.wait(now).max(Duration::from_millis(1));
            if now + wait > deadline {
                return Err(Error::Exhausted(format!(
                    "too many requests to the provider {provider}: {} a minute may be made to its models \
                     (`model_requests` under [tools.per_minute])",
                    self.per_minute
                )));
            }
            tokio::time::sleep(wait).await;
        }
    }

    fn rate(&self, provider: &str) -> Arc<RateLimiter> {
        let per_second = f64::from(self.per_minute.max(1)) / 60.0;
        let new = || Arc::new(RateLimiter::new(per_second, (per_second * BURST_SECONDS).max(1.0)));
        // Providers are named in the configuration, so there are few.
        Arc::clone(self.rates.lock().entry(provider.to_owned()).or_insert_with(new))
    }

    /// Requests to a provider that may be made right now.
    #[cfg(test)]
    pub(crate) fn left(&self, provider: &str) -> usize {
        let rate = self.rate(provider);
        (0..1000).take_while(|_| rate.take(Instant::now())).count()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn queues() -> Queues {
        Queues::new(1_000_000)
    }

    /// What has come so far of a wait, without waiting.
    fn now<T>(future: &mut Pin<Box<dyn Future<Output = T> + '_>>) -> Option<T> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    type Wait<'q> = Pin<Box<dyn Future<Output = Result<Place, Error>> + 'q>>;

    fn wait<'q>(queues: &'q Queues, asker: &'q str) -> Wait<'q> {
        Box::pin(queues.enter("f", "p", asker))
    }

    #[tokio::test]
    async fn askers_take_turns_however_much_one_asks() {
        let queues = queues();
        let mut held = Vec::new();
        for _ in 0..PLACES {
            held.push(queues.enter("f", "p", "greedy").await.unwrap());
        }
        let mut greedy: Vec<Wait<'_>> = (0..3).map(|_| wait(&queues, "greedy")).collect();
        greedy.iter_mut().for_each(|one| assert!(now(one).is_none()));
        let mut modest = wait(&queues, "modest");
        assert!(now(&mut modest).is_none());
        held.pop();
        assert!(now(&mut greedy[0]).is_some_and(|place| place.map(|place| held.push(place)).is_ok()));
        held.pop();
        let place = now(&mut modest).expect("it is the other one's turn").unwrap();
        assert!(now(&mut greedy[1]).is_none());
        drop(place);
        assert!(now(&mut greedy[1]).is_some());
    }

    #[tokio::test]
    async fn who_leaves_the_queue_is_passed_over_and_no_place_is_lost() {
        let queues = queues();
        let mut held = Vec::new();
        for _ in 0..PLACES {
            held.push(queues.enter("f", "p", "a").await.unwrap());
        }
        let (mut gone, mut stays) = (wait(&queues, "b"), wait(&queues, "c"));
        assert!(now(&mut gone).is_none() && now(&mut stays).is_none());
        drop(gone);
        held.pop();
        held.push(now(&mut stays).expect("the place of who has left").unwrap());
        held.clear();
        for _ in 0..PLACES {
            held.push(queues.enter("f", "p", "d").await.unwrap());
        }
        let mut more = wait(&queues, "d");
        assert!(now(&mut more).is_none(), "no more places than there were");
    }

    #[tokio::test]
    async fn beyond_a_bound_no_more_wait() {
        let queues = queues();
        let _held: Vec<Wait<'_>> = (0..PLACES + MAX_WAITING)
            .map(|_| {
                let mut one = wait(&queues, "a");
                // A place that came is kept by what is forgotten here.
                if let Some(place) = now(&mut one) {
                    std::mem::forget(place);
                }
                one
            })
            .collect();
        let refused = queues.enter("f", "p", "a").await.unwrap_err();
        assert!(matches!(refused, Error::Exhausted(_)), "{refused:?}");
    }
}
