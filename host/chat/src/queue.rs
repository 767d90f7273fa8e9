//! The fair queue in front of a provider: exchanges beyond its limits wait for their turn, and are not refused.
//!
//! A provider's feature has at most [`MAX_EXCHANGES`] exchanges under way, and a provider so many requests in a minute.
//! Askers that wait take turns, whatever the number of their exchanges: a feature that asks a hundred times delays a
//! conversation by one exchange and not by a hundred. [`RESERVED_FOR_CONVERSATIONS`] places are not for features that ask,
//! so that answers that never end keep no conversation waiting. An exchange whose provider may not be asked again yet has
//! no place while it waits for that, so that the feature's other providers are asked meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

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
/// Exchanges that wait for one provider.
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
struct Line {
    exchanges: Mutex<Exchanges>,
    /// Notified when an exchange that waited has a place: its provider may then not be asked again for longer.
    served: Notify,
}

#[derive(Debug, Default)]
struct Exchanges {
    /// Under way.
    taken: usize,
    /// Of these, the ones of features that ask.
    taken_by_features: usize,
    /// In the order in which they are served.
    askers: VecDeque<Asker>,
}

/// An asker that waits.
#[derive(Debug)]
struct Asker {
    name: String,
    kind: AskerKind,
    /// Its exchanges, of those with one provider first come first served.
    exchanges: VecDeque<Waiting>,
}

/// An exchange that waits.
#[derive(Debug)]
struct Waiting {
    /// That of its provider.
    rate: Arc<RateLimiter>,
    given: oneshot::Sender<Place>,
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

    /// Has an exchange of `asker` wait, behind the others that wait.
    fn add(&mut self, asker: &str, kind: AskerKind, rate: Arc<RateLimiter>) -> oneshot::Receiver<Place> {
        let (given, came) = oneshot::channel();
        let waiting = Waiting { rate, given };
        match self.askers.iter_mut().find(|other| other.kind == kind && other.name == asker) {
            Some(known) => known.exchanges.push_back(waiting),
            None => {
                let exchanges = VecDeque::from([waiting]);
                self.askers.push_back(Asker { name: asker.to_owned(), kind, exchanges });
            }
        }
        came
    }

    /// The next exchange that there is a place for, and whose provider may be asked at `now`. It has both then.
    fn next(&mut self, now: Instant) -> Option<(AskerKind, oneshot::Sender<Place>)> {
        self.forget_gone();
        let (at, first) = self.askers.iter().enumerate().find_map(|(at, asker)| {
            let mut exchanges = self.has_place_for(asker.kind).then(|| asker.exchanges.iter())?;
            Some((at, exchanges.position(|one| one.rate.take(now))?))
        })?;
        let mut asker = self.askers.remove(at)?;
        let next = asker.exchanges.remove(first)?;
        let kind = asker.kind;
        if !asker.exchanges.is_empty() {
            self.askers.push_back(asker);
        }
        self.take(kind);
        Some((kind, next.given))
    }

    /// Forgets exchanges that are no longer waited for.
    fn forget_gone(&mut self) {
        for asker in &mut self.askers {
            asker.exchanges.retain(|one| !one.given.is_closed());
        }
        self.askers.retain(|asker| !asker.exchanges.is_empty());
    }

    /// How many wait for the provider with this rate.
    fn waiting_for(&self, rate: &Arc<RateLimiter>) -> usize {
        let exchanges = self.askers.iter().flat_map(|asker| &asker.exchanges);
        exchanges.filter(|one| Arc::ptr_eq(&one.rate, rate)).count()
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
        self.exchanges.lock().give_back(kind);
        self.serve();
    }

    /// Gives places to the exchanges that may begin now.
    fn serve(self: &Arc<Self>) {
        loop {
            let Some((kind, next)) = self.exchanges.lock().next(Instant::now()) else { return };
            // Its asker may have gone. Dropped here its place would come back to this line.
            if let Err(mut place) = next.send(Place(Some((Arc::clone(self), kind)))) {
                place.0 = None;
                self.exchanges.lock().give_back(kind);
            }
            self.served.notify_waiters();
        }
    }

    /// Waits for a place and for the provider's rate; in turn, and for one as long as for the other.
    async fn enter(self: Arc<Self>, asker: &str, kind: AskerKind, rate: &Arc<RateLimiter>) -> Result<Place, NotServed> {
        let mut came = {
            let mut exchanges = self.exchanges.lock();
            exchanges.forget_gone();
            if exchanges.waiting_for(rate) >= MAX_WAITING {
                return Err(NotServed::TooMany);
            }
            exchanges.add(asker, kind, Arc::clone(rate))
        };
        self.serve();
        if let Ok(place) = came.try_recv() {
            return Ok(place);
        }
        let served = async {
            loop {
                // Heard from here on, so that no change is missed after the rate was looked at.
                let others = self.served.notified();
                let wait = rate.wait(Instant::now());
                tokio::select! {
                    biased;
                    place = &mut came => return place.map_err(|_| NotServed::NoPlace),
                    () = others => {}
                    // Without a wait it is for a place, and whatever leaves gives it one.
                    () = tokio::time::sleep(wait), if !wait.is_zero() => self.serve(),
                }
            }
        };
        match tokio::time::timeout(MAX_WAIT, served).await {
            Ok(served) => served,
            Err(_) if !rate.wait(Instant::now()).is_zero() => Err(NotServed::Rate),
            Err(_) => Err(NotServed::NoPlace),
        }
    }
}

/// Why an exchange got no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotServed {
    /// As many wait as may.
    TooMany,
    /// None came free in time.
    NoPlace,
    /// The provider may still not be asked again.
    Rate,
}

impl Queues {
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute, ..Self::default() }
    }

    /// The queues of a configuration that replaces this one's, with at most `per_minute` requests a minute. Exchanges
    /// under way, and those that wait, keep their places.
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
        let entered = line.enter(asker, kind, &self.rate(provider)).await;
        entered.map_err(|why| {
            Error::Exhausted(match why {
                NotServed::TooMany => format!("{MAX_WAITING} exchanges wait for this provider; try again later"),
                NotServed::NoPlace => {
                    format!("the provider had no place for it within {} s; try again later", MAX_WAIT.as_secs())
                }
                NotServed::Rate => format!(
                    "too many requests to the provider {provider}: {} a minute may be made to its models \
                     (`model_requests` under [tools.per_minute])",
                    self.per_minute
                ),
            })
        })
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

    // LLM-2
    #[tokio::test]
    async fn what_waits_for_the_rate_of_a_provider_holds_no_place_of_the_others() {
        // One at once, and ten seconds until the next.
        let queues = Queues::new(6);
        let enter = |provider| -> Wait<'_> { Box::pin(queues.enter("f", provider, "a", AskerKind::Conversation)) };
        let _first = now(&mut enter("slow")).expect("the first one").unwrap();
        let mut slow: Vec<Wait<'_>> = (0..MAX_EXCHANGES + MAX_WAITING).map(|_| enter("slow")).collect();
        let refused = slow.iter_mut().filter_map(now).map(Result::unwrap_err).count();
        assert_eq!(refused, MAX_EXCHANGES, "as many wait as may");
        let other = now(&mut enter("other")).expect("it waits for no other provider");
        assert!(other.is_ok(), "{other:?}");
    }

    #[test]
    fn askers_take_turns_where_they_wait_for_a_rate() {
        let (mut exchanges, start) = (Exchanges::default(), Instant::now());
        let rate = Arc::new(RateLimiter::new(1.0, 1.0));
        assert!(rate.take(start));
        let mut add = |asker| exchanges.add(asker, AskerKind::Conversation, Arc::clone(&rate));
        let mut waits = [add("greedy"), add("greedy"), add("modest")];
        assert!(exchanges.next(start).is_none());
        let mut order = Vec::new();
        for second in 1..=3 {
            let (_, next) = exchanges.next(start + Duration::from_secs(second * 2)).expect("one has its turn");
            next.send(Place::free()).unwrap();
            order.extend(waits.iter_mut().position(|wait| wait.try_recv().is_ok()));
        }
        assert_eq!(order, [0, 2, 1]);
    }

    #[tokio::test]
    async fn what_waits_for_a_rate_has_its_turn_when_it_comes_also_where_there_was_no_place() {
        let queues = Queues::new(600);
        let mut held = Vec::new();
        for _ in 0..MAX_EXCHANGES {
            held.push(enter(&queues, "a").await.unwrap());
        }
        queues.left("p");
        let (mut first, mut second) = (wait(&queues, "b"), wait(&queues, "c"));
        assert!(now(&mut first).is_none() && now(&mut second).is_none());
        held.clear();
        let both = async { (first.await, second.await) };
        let (first, second) = tokio::time::timeout(Duration::from_secs(60), both).await.expect("both have their turn");
        assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
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
