//! Clients that were throttled, refused or disconnected, for the status.
//!
//! The list is bounded: a client that keeps changing its name displaces other entries of the same list and nothing
//! else. What is on record for good is in the audit.

use parking_lot::Mutex;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use conductor_audit::caller::{Caller, Door, Scope};

/// Entries that are kept; the one that was seen least recently gives way.
const MAX_ENTRIES: usize = 32;

/// What a client did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Misconduct {
    /// It has too many connections, or did not say what they are for. New ones were rejected.
    Connections,
    /// It has too many event streams. New ones were rejected.
    Streams,
    /// It has more sessions than fit. The longest idle one was closed.
    Sessions,
    /// It sends more requests than allowed. They were rejected.
    Rate,
    /// It sends its requests too slowly. They were rejected.
    SlowRequest,
    /// Its requests are too long, or too many of them are on their way. They were rejected.
    LongRequest,
    /// It does not read its answers. It was not listened to, or further answers were replaced by errors.
    UnreadAnswers,
    /// It read nothing for so long that it was cut off.
    Stalled,
    /// Its user has too many questions to answer. Further ones were not asked.
    Questions,
}

impl Misconduct {
    /// What it did, in a word or two.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Streams => "streams",
            Self::Sessions => "sessions",
            Self::Rate => "rate",
            Self::SlowRequest => "slow request",
            Self::LongRequest => "long request",
            Self::UnreadAnswers => "unread answers",
            Self::Stalled => "stalled",
            Self::Questions => "questions",
        }
    }
}

/// A client that did something of the kind, once or more often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TroublesomeClient {
    /// What it calls itself, with escapes, which may be false; `null` if it has not said.
    pub name: Option<String>,
    /// The door.
    pub door: Door,
    /// How much it may do there; `null` if it showed no token.
    pub scope: Option<Scope>,
    /// What it did.
    pub what: Misconduct,
    /// When it did so first, in milliseconds since 1970.
    pub first: u64,
    /// When it did so last, in milliseconds since 1970.
    pub last: u64,
    /// How often.
    pub count: u64,
}

/// The list of a host.
#[derive(Debug, Default)]
pub struct TroubleLog(Mutex<Vec<TroublesomeClient>>);

impl TroubleLog {
    /// Adds a case at `now`, in milliseconds since 1970.
    pub fn note(&self, now: u64, who: &Caller, what: Misconduct) {
        let (name, door, scope) = (who.name().map(str::to_owned), who.door(), who.scope());
        let mut all = self.0.lock();
        let is_same = |other: &&mut TroublesomeClient| {
            other.name == name && other.door == door && other.scope == scope && other.what == what
        };
        if let Some(known) = all.iter_mut().find(is_same) {
            known.last = now;
            known.count += 1;
            return;
        }
        if all.len() >= MAX_ENTRIES
            && let Some(oldest) = (0..all.len()).min_by_key(|at| all[*at].last)
        {
            all.swap_remove(oldest);
        }
        tracing::debug!(%who, ?what, "a client was slowed, turned away or cut off");
        all.push(TroublesomeClient { name, door, scope, what, first: now, last: now, count: 1 });
    }

    /// All of them, the most recent first.
    pub fn list(&self) -> Vec<TroublesomeClient> {
        let mut all = self.0.lock().clone();
        all.sort_by_key(|one| std::cmp::Reverse(one.last));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_names_is_bounded_and_printable() {
        let log = TroubleLog::default();
        for at in 0..10_000 {
            let name = format!("\u{1b}[2J{at}{}", "x".repeat(1000));
            log.note(at, &Caller::client(Door::Tcp, Scope::Read, Some(&name)), Misconduct::Rate);
        }
        let all = log.list();
        assert_eq!((all.len(), all[0].last), (MAX_ENTRIES, 9_999));
        for one in &all {
            let name = one.name.as_deref().unwrap();
            assert!(name.len() <= 80 && !name.contains('\u{1b}'), "{name:?}");
        }
    }

    #[test]
    fn the_same_again_is_counted() {
        let log = TroubleLog::default();
        let agent = Caller::client(Door::McpSocket, Scope::Agent, Some("x"));
        (1..4).for_each(|at| log.note(at, &agent, Misconduct::Stalled));
        log.note(9, &agent, Misconduct::Questions);
        let all = log.list();
        let [newer, older] = &all[..] else { panic!("{all:?}") };
        assert_eq!((newer.what, newer.count), (Misconduct::Questions, 1));
        assert_eq!((older.what, older.first, older.last, older.count), (Misconduct::Stalled, 1, 3, 3));
    }
}
