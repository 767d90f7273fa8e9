//! Pending elicitations: questions to users that wait for an answer in an agent's window.
//!
//! One client has at most [`MAX_OWN`] of them: further questions are not asked, and wait for a person at
//! the command line. All clients together have [`MAX_QUESTIONS`]; for one more, the oldest of the client with the most
//! is evicted, so that a client that asks much, or under many names, can't keep the others from asking.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::CallToolResult;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::ClientKey;
use super::ask::Decision;
use conductor_audit::caller::Caller;
use conductor_stdx::digest::hex;

/// How long a question waits for an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);
/// Questions that wait at once behind one door.
const MAX_QUESTIONS: usize = 32;
/// Questions of one client that wait at once.
const MAX_OWN: usize = 4;

/// The questions of the clients behind one door.
#[derive(Debug, Default)]
pub(super) struct PendingElicitations(Mutex<HashMap<String, Pending>>);

#[derive(Debug)]
struct Pending {
    asker: ClientKey,
    since: Instant,
    what: Waiting,
}

#[derive(Debug)]
enum Waiting {
    /// A call that goes on as soon as it is answered, or this is cancelled.
    Call(CancellationToken),
    /// A call that is sent again with the answer.
    PendingCall(Box<PendingCall>),
}

/// A call whose user was asked.
#[derive(Debug)]
pub(super) struct PendingCall {
    pub(super) caller: Caller,
    pub(super) tool: String,
    pub(super) args: Map<String, Value>,
    pub(super) matter: Decision,
    /// Questions that were answered with yes.
    pub(super) answered: usize,
    /// The tool's result; `None` if there is none yet.
    pub(super) result: Option<CallToolResult>,
}

/// The place of a call that waits for an answer, given up by being dropped.
pub(super) struct Place {
    questions: Arc<PendingElicitations>,
    number: String,
    gave_way: CancellationToken,
}

impl Place {
    /// Returns when the question has to give way to another one.
    pub(super) async fn gave_way(&self) {
        self.gave_way.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.questions.all().remove(&self.number);
    }
}

impl PendingElicitations {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.0.lock()
    }

    /// A place for a question that is answered while its call waits; `None` if the client has too many.
    pub(super) fn ask(self: &Arc<Self>, asker: ClientKey) -> Option<Place> {
        let gave_way = CancellationToken::new();
        let number = self.add(asker, Waiting::Call(gave_way.clone()))?;
        Some(Place { questions: Arc::clone(self), number, gave_way })
    }

    /// Keeps a call until it is sent again, and returns its unguessable number; `None` if the client has too many.
    pub(super) fn keep(&self, asker: ClientKey, kept: PendingCall) -> Option<String> {
        self.add(asker, Waiting::PendingCall(Box::new(kept)))
    }

    /// The call of this number, once, for the client that made it. For others it stays as it is.
    pub(super) fn take(&self, number: &str, caller: &Caller) -> Option<PendingCall> {
        let mut all = self.all();
        match &all.get(number)?.what {
            Waiting::PendingCall(kept) if kept.caller == *caller => {}
            _ => return None,
        }
        let pending = all.remove(number)?;
        match pending.what {
            Waiting::PendingCall(kept) if pending.since.elapsed() < ANSWER_TIMEOUT => Some(*kept),
            _ => None,
        }
    }

    fn add(&self, asker: ClientKey, what: Waiting) -> Option<String> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).ok()?;
        let number = hex(&number);
        let mut all = self.all();
        all.retain(|_, pending| pending.since.elapsed() < ANSWER_TIMEOUT);
        if all.values().filter(|pending| pending.asker == asker).count() >= MAX_OWN {
            return None;
        }
        if all.len() >= MAX_QUESTIONS
            && let Some(oldest) = oldest_of_greediest(&all)
            && let Some(Pending { what: Waiting::Call(gave_way), .. }) = all.remove(&oldest)
        {
            gave_way.cancel();
        }
        all.insert(number.clone(), Pending { asker, since: Instant::now(), what });
        Some(number)
    }
}

/// The number of the oldest question of the client that has most; of two that have as many, of the one with the older.
fn oldest_of_greediest(all: &HashMap<String, Pending>) -> Option<String> {
    let mut by_asker = HashMap::<&ClientKey, (usize, Instant, &String)>::new();
    for (number, pending) in all {
        let (count, since, oldest) = by_asker.entry(&pending.asker).or_insert((0, pending.since, number));
        *count += 1;
        if pending.since <= *since {
            (*since, *oldest) = (pending.since, number);
        }
    }
    let greediest = by_asker.into_values().max_by_key(|(count, since, _)| (*count, std::cmp::Reverse(*since)));
    greediest.map(|(_, _, oldest)| oldest.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_audit::caller::{Door, Scope};
    use conductor_host::control::confirmation::Confirmation;

    #[test]
    fn one_client_has_a_few_questions_and_the_others_theirs() {
        let questions = Arc::<PendingElicitations>::default();
        let _greedy: Vec<_> = std::iter::from_fn(|| questions.ask(ClientKey::Server(1))).collect();
        assert_eq!(questions.all().len(), MAX_OWN);
        let other = questions.ask(ClientKey::Server(2));
        assert!(other.is_some());
        drop(other);
        assert_eq!(questions.all().len(), MAX_OWN, "an answered question leaves its place");
    }

    #[test]
    fn with_all_places_taken_the_greediest_gives_way() {
        let questions = Arc::<PendingElicitations>::default();
        let greedy = [1, 2, 3].map(|_| questions.ask(ClientKey::Server(0)).unwrap());
        let modest: Vec<_> =
            (3..MAX_QUESTIONS as u64).map(|one| questions.ask(ClientKey::Server(one)).unwrap()).collect();
        let _newer = questions.ask(ClientKey::Server(1000)).unwrap();
        assert_eq!(questions.all().len(), MAX_QUESTIONS);
        assert!(greedy[0].gave_way.is_cancelled() && !greedy[1].gave_way.is_cancelled(), "its oldest one");
        assert!(modest.iter().all(|one| !one.gave_way.is_cancelled()));
    }

    fn agent(name: u32) -> Caller {
        Caller::client(Door::McpHttp, Scope::Agent, Some(&name.to_string()))
    }

    #[test]
    fn a_stranger_does_not_use_up_a_question() {
        let questions = PendingElicitations::default();
        let asked = Confirmation {
            id: String::new(),
            expires_in_ms: 1,
            tool: "send".into(),
            effect: "sends".into(),
            shown: String::new(),
            phrase: None,
        };
        let matter = Decision::call(&asked, "x").unwrap();
        let (tool, args) = ("send".to_owned(), Map::new());
        let kept = PendingCall { caller: agent(1), tool, args, matter, answered: 0, result: None };
        let number = questions.keep(ClientKey::Name(agent(1)), kept).unwrap();
        assert!(questions.take(&number, &agent(2)).is_none());
        assert!(questions.take(&number, &agent(1)).is_some(), "it still waits for its own client");
        assert!(questions.take(&number, &agent(1)).is_none(), "once");
    }

    // Names are free: a client that asks under a new one each time does not shut out the others.
    #[test]
    fn a_flood_of_names_does_not_keep_others_from_asking() {
        let questions = Arc::<PendingElicitations>::default();
        let _flood: Vec<_> = (0..1000).map(|name| questions.ask(ClientKey::Name(agent(name))).unwrap()).collect();
        assert_eq!(questions.all().len(), MAX_QUESTIONS);
        assert!(questions.ask(ClientKey::Server(1)).is_some());
    }
}
