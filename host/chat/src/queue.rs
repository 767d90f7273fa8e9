//! The fair queue in front of a provider: exchanges beyond its limits wait for their turn, and are not refused.
//!
//! A provider's feature has at most [`MAX_EXCHANGES`] exchanges under way, and a provider so many requests in a minute.
//! Askers that wait take turns, whatever the number of their exchanges: a feature that asks a hundred times delays a
//! conversation by one exchange and not by a hundred. [`RESERVED_FOR_CONVERSATIONS`] places are not for features that ask,
//! so that answers that never end keep no conversation waiting.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use conductor_audit::caller::{Caller, Door};
use conductor_sandbox::bindings::Error;
use conductor_sandbox::limits;
use conductor_services::http::account::MAX_STREAMS;
use conductor_stdx::rate::RateLimiter;

/// Exchanges of one feature's providers at once: as many as the host may have under way for them.
pub const MAX_EXCHANGES: usize = MAX_STREAMS;
/// What an instance may take, on average, while all places are taken: a question of 200 000 tokens is about 1 MiB of text.
const INSTANCE_BYTES: usize = 8 << 20;
// A quarter is left for what else the feature does.
const _: () =
    assert!(MAX_EXCHANGES * (limits::MAX_HANDED_OVER_LARGE + INSTANCE_BYTES) <= limits::FEATURE_MEMORY_BYTES / 4 * 3);
/// Places that features which ask models do not get: they are for conversations.
pub const RESERVED_FOR_CONVERSATIONS: usize = 2;
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
    /// Of each feature with providers that were asked. They outlive configurations, as exchanges do.
    lines: Arc<Mutex<HashMap<String, Arc<Line>>>>,
    /// Of each provider that was asked.
    rates: Mutex<HashMap<String, Arc<RateLimiter>>>,
}

/// The exchanges with the providers of one feature.
#[derive(Debug, Default)]
struct Line(Mutex<Exchanges>);

#[derive(Debug, Default)]
struct Exchanges {
    /// Under way.
    taken: usize,
    /// Of these, the ones of features that ask.
    taken_by_features: usize,
    /// Waiting.
    count: usize,
    /// In the order in which they are served.
    askers: VecDeque<Asker>,
}

/// An asker that waits.
#[derive(Debug)]
struct Asker {
    name: String,
    kind: AskerKind,
    /// Its exchanges, first come first served.
    exchanges: VecDeque<oneshot::Sender<Place>>,
}

/// What asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskerKind {
    /// A person, in a conversation.
    Conversation,
    /// A feature that may ask models.
    Feature,
}

impl AskerKind {
    /// What this caller is. A conversation's caller is the model's, not the person's, with what a model may do.
    pub(crate) fn of(caller: &Caller) -> Self {
        if caller.door() == Door::Feature { Self::Feature } else { Self::Conversation }
    }
}

impl Exchanges {
    /// Whether there is a place for this kind of asker.
    fn has_place_for(&self, kind: AskerKind) -> bool {
        let is_within_share =
            kind == AskerKind::Conversation || self.taken_by_features < MAX_EXCHANGES - RESERVED_FOR_CONVERSATIONS;
        self.taken < MAX_EXCHANGES && is_within_share
    }

    fn take(&mut self, kind: AskerKind) {
        self.taken += 1;
        self.taken_by_features += usize::from(kind == AskerKind::Feature);
    }

    fn give_back(&mut self, kind: AskerKind) {
        self.taken -= 1;
        self.taken_by_features -= usize::from(kind == AskerKind::Feature);
    }

    /// The next exchange that there is a place for, which it then has.
    fn next(&mut self) -> Option<(AskerKind, oneshot::Sender<Place>)> {
        loop {
            let at = self.askers.iter().position(|asker| self.has_place_for(asker.kind))?;
            let mut asker = self.askers.remove(at)?;
            let next = asker.exchanges.pop_front();
            let kind = asker.kind;
            if !asker.exchanges.is_empty() {
                self.askers.push_back(asker);
            }
            if let Some(next) = next {
                self.count -= 1;
                self.take(kind);
                return Some((kind, next));
            }
        }
    }

    /// Forgets exchanges that are no longer waited for.
    fn forget_gone(&mut self) {
        for asker in &mut self.askers {
            asker.exchanges.retain(|one| !one.is_closed());
        }
        self.askers.retain(|asker| !asker.exchanges.is_empty());
        self.count = self.askers.iter().map(|asker| asker.exchanges.len()).sum();
    }
}

/// The right to one exchange; dropping it gives it to the next one that waits.
#[derive(Debug)]
pub struct Place(Option<(Arc<Line>, AskerKind)>);

impl Place {
    /// One of no queue.
    pub fn free() -> Self {
        Self(None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((line, kind)) = self.0.take() {
            line.leave(kind);
        }
    }
}

impl Line {
    /// Gives a place back, and the next exchange that waits gets it.
    fn leave(self: &Arc<Self>, kind: AskerKind) {
        self.0.lock().give_back(kind);
        loop {
            let Some((kind, next)) = self.0.lock().next() else { return };
            match next.send(Place(Some((Arc::clone(self), kind)))) {
                Ok(()) => return,
                // Its asker has gone, so the next one has it. Dropped here it would come back to this line.
                Err(mut place) => {
                    place.0 = None;
                    self.0.lock().give_back(kind);
                }
            }
        }
    }

    async fn enter(self: Arc<Self>, asker: &str, kind: AskerKind) -> Result<Place, Error> {
        let came = {
            let mut waiting = self.0.lock();
            if waiting.has_place_for(kind) {
                waiting.take(kind);
                return Ok(Place(Some((Arc::clone(&self), kind))));
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
            match waiting.askers.iter_mut().find(|other| other.kind == kind && other.name == asker) {
                Some(known) => known.exchanges.push_back(given),
                None => {
                    let exchanges = VecDeque::from([given]);
                    waiting.askers.push_back(Asker { name: asker.to_owned(), kind, exchanges });
                }
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

    /// Those of a configuration with so many requests a minute that replaces this one's. Exchanges under way, and those that
    /// wait, keep their places.
    pub(crate) fn following(&self, per_minute: u32) -> Self {
        Self { lines: Arc::clone(&self.lines), ..Self::new(per_minute) }
    }

    /// How many requests may be made to a provider in a minute.
    pub(crate) fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Waits until `asker` may have an exchange with a provider of a feature.
    ///
    /// # Errors
    /// `Exhausted` if too many wait, or it took too long.
    pub(crate) async fn enter(
        &self,
        feature: &str,
        provider: &str,
        asker: &str,
        kind: AskerKind,
    ) -> Result<Place, Error> {
        let line = Arc::clone(self.lines.lock().entry(feature.to_owned()).or_default());
        let place = line.enter(asker, kind).await?;
        let rate = self.rate(provider);
        // The place is held while it waits for the rate, so that the order stays.
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
        Box::pin(enter(queues, asker))
    }

    /// As a conversation.
    async fn enter(queues: &Queues, asker: &str) -> Result<Place, Error> {
        queues.enter("f", "p", asker, AskerKind::Conversation).await
    }

    /// As a feature that asks.
    fn ask<'q>(queues: &'q Queues, asker: &'q str) -> Wait<'q> {
        Box::pin(queues.enter("f", "p", asker, AskerKind::Feature))
    }

    #[tokio::test]
    async fn features_that_ask_leave_places_for_conversations() {
        let queues = queues();
        let mut held: VecDeque<Place> = (0..MAX_EXCHANGES - RESERVED_FOR_CONVERSATIONS)
            .map(|_| now(&mut ask(&queues, "greedy")).expect("a place of the features").unwrap())
            .collect();
        let (mut greedy, mut other) = (ask(&queues, "greedy"), ask(&queues, "another"));
        assert!(now(&mut greedy).is_none() && now(&mut other).is_none(), "no more for features");
        for _ in 0..RESERVED_FOR_CONVERSATIONS {
            let place = now(&mut wait(&queues, "person")).expect("kept for it").unwrap();
            drop(place);
            assert!(now(&mut greedy).is_none(), "what a conversation gives back is not for features");
        }
        let mut kept: Vec<Place> = Vec::new();
        for _ in 0..RESERVED_FOR_CONVERSATIONS {
            kept.push(now(&mut wait(&queues, "person")).expect("kept for it").unwrap());
        }
        // Each waits in turn where there is none left, and no place is lost.
        let mut person = wait(&queues, "person");
        assert!(now(&mut person).is_none());
        held.pop_front();
        held.push_back(now(&mut greedy).expect("it came first").unwrap());
        assert!(now(&mut person).is_none() && now(&mut other).is_none());
        kept.pop();
        kept.push(now(&mut person).expect("a place of the conversations").unwrap());
        held.pop_front();
        held.push_back(now(&mut other).expect("a place of the features").unwrap());
        assert_eq!(held.len() + kept.len(), MAX_EXCHANGES);
    }

    #[tokio::test]
    async fn askers_take_turns_however_much_one_asks() {
        let queues = queues();
        let mut held = Vec::new();
        for _ in 0..MAX_EXCHANGES {
            held.push(enter(&queues, "greedy").await.unwrap());
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
        for _ in 0..MAX_EXCHANGES {
            held.push(enter(&queues, "a").await.unwrap());
        }
        let (mut gone, mut stays) = (wait(&queues, "b"), wait(&queues, "c"));
        assert!(now(&mut gone).is_none() && now(&mut stays).is_none());
        drop(gone);
        held.pop();
        held.push(now(&mut stays).expect("the place of who has left").unwrap());
        held.clear();
        for _ in 0..MAX_EXCHANGES {
            held.push(enter(&queues, "d").await.unwrap());
        }
        let mut more = wait(&queues, "d");
        assert!(now(&mut more).is_none(), "no more places than there were");
    }

    // LLM-2
    #[tokio::test]
    async fn exchanges_of_the_configuration_before_keep_their_places() {
        let queues = queues();
        let mut held = Vec::new();
        for _ in 0..MAX_EXCHANGES {
            held.push(enter(&queues, "a").await.unwrap());
        }
        let next = queues.following(2_000_000);
        let mut more = wait(&next, "b");
        assert!(now(&mut more).is_none(), "no more places than there were");
        held.pop();
        assert!(now(&mut more).is_some());
    }

    #[tokio::test]
    async fn beyond_a_bound_no_more_wait() {
        let queues = queues();
        let _held: Vec<Wait<'_>> = (0..MAX_EXCHANGES + MAX_WAITING)
            .map(|_| {
                let mut one = wait(&queues, "a");
                // A place that came is kept by what is forgotten here.
                if let Some(place) = now(&mut one) {
                    std::mem::forget(place);
                }
                one
            })
            .collect();
        let refused = enter(&queues, "a").await.unwrap_err();
        assert!(matches!(refused, Error::Exhausted(_)), "{refused:?}");
    }
}
