//! The tool policy of `[tools]`: the allow-list, and a rate limiter for each caller and tier.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use regex::Regex;

use conductor_audit::caller::{Caller, Door, Scope};
use conductor_config::{self as config, Access};
use conductor_package::descriptor::Tier;
use conductor_stdx::rate::RateLimiter;

/// Seconds' worth of calls that may be made at once.
const BURST_SECONDS: f64 = 10.0;
/// How much more often all callers of one scope behind a door may call than one of them: names are cheap.
const SCOPE_FACTOR: f64 = 4.0;
/// Callers that are tracked at once.
const MAX_CALLERS: usize = 1024;

/// Whose consent a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// None is needed.
    Free,
    /// A person's, for each call.
    Confirmation,
    /// The caller may not make it at all, by this setting under `[tools.agents]`.
    Denied(&'static str),
}

/// What the configuration says, with what was used of it.
#[derive(Debug)]
pub struct Policy {
    tools: config::Tools,
    /// `None` if every tool may be called.
    allowed: Option<Vec<Regex>>,
    used: Used,
}

impl Policy {
    /// The policy of a configuration.
    pub fn new(tools: &config::Tools) -> Self {
        let allowed = tools.allowed.as_ref().map(|names| names.iter().filter_map(|name| matcher(name)).collect());
        Self { tools: tools.clone(), allowed, used: Used::default() }
    }

    /// The policy of the configuration that replaces this one's: the same, with what was used of it, if it says the
    /// same.
    pub fn following(self: &Arc<Self>, tools: &config::Tools) -> Arc<Self> {
        if self.tools == *tools { Arc::clone(self) } else { Arc::new(Self::new(tools)) }
    }

    /// Counts a call of this tier by this caller at `now`, and decides whether it may be made.
    pub fn take(&self, caller: &Caller, tier: Tier, now: Instant) -> RateDecision {
        self.used.take(self, caller, tier, now)
    }

    /// Whether this tool may be called at all.
    pub fn allows(&self, tool: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name.is_match(tool)))
    }

    /// Whose consent a call of this tier needs. What a person has to agree to, no setting makes free.
    pub fn consent(&self, caller: &Caller, tier: Tier) -> Consent {
        let agents = &self.tools.agents;
        let (access, key) = match tier {
            Tier::ReadOnly => (Access::Allow, ""),
            Tier::Stateful => (agents.stateful.unwrap_or(unasked(caller)), "stateful"),
            Tier::ConfigChange => (agents.config_change, "config_change"),
            Tier::HardwareIo => (agents.hardware_io.into(), "hardware_io"),
            Tier::Privileged => (agents.privileged.into(), "privileged"),
        };
        match access {
            Access::Deny if caller.scope() == Some(Scope::Agent) => Consent::Denied(key),
            Access::Ask if caller.scope() == Some(Scope::Agent) => Consent::Confirmation,
            _ if tier.is_confirmed() => Consent::Confirmation,
            _ => Consent::Free,
        }
    }

    /// Calls of this tier that one caller may make per minute.
    pub fn per_minute(&self, tier: Tier) -> u32 {
        let per_minute = &self.tools.per_minute;
        match tier {
            Tier::ReadOnly => per_minute.read_only,
            Tier::Stateful => per_minute.stateful,
            Tier::ConfigChange => per_minute.config_change,
            Tier::HardwareIo => per_minute.hardware_io,
            Tier::Privileged => per_minute.privileged,
        }
    }

    fn rate(&self, tier: Tier, times: f64) -> RateLimiter {
        let per_second = f64::from(self.per_minute(tier).max(1)) * times / 60.0;
        RateLimiter::new(per_second, (per_second * BURST_SECONDS).max(1.0))
    }
}

/// Whether an agent changes what holds until the host stops where the configuration does not say: not behind the back of a
/// person who talks with it.
fn unasked(caller: &Caller) -> Access {
    if caller.door() == Door::Chat { Access::Ask } else { Access::Allow }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(&config::Tools::default())
    }
}

/// A name with `*` for any text. `None` if it is too long, which the schema rejects.
fn matcher(name: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{})$", regex::escape(name).replace(r"\*", ".*"))).ok()
}

/// The names among these patterns that stand for no tool.
pub fn without_tool<'n>(patterns: &'n [String], tools: &[String]) -> Vec<(usize, &'n str)> {
    let known = |pattern: &str| matcher(pattern).is_some_and(|matcher| tools.iter().any(|tool| matcher.is_match(tool)));
    patterns.iter().enumerate().map(|(at, name)| (at, name.as_str())).filter(|(_, name)| !known(name)).collect()
}

/// What was used. A call takes one of its caller's, and one of all callers' of this scope behind this door.
#[derive(Debug, Default)]
struct Used {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    callers: HashMap<(Caller, Tier), Bucket>,
    doors: HashMap<(Door, Option<Scope>, Tier), Bucket>,
}

#[derive(Debug)]
struct Bucket {
    rate: RateLimiter,
    refused: u64,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateDecision {
    /// It may; this many calls of this caller and tier were refused since the last that was not.
    Go {
        /// How many.
        refused: u64,
    },
    /// It may not before this time is over. It is the first that was refused in a row, or a later one.
    Wait {
        /// How long.
        left: Duration,
        /// Whether it is the first.
        first: bool,
    },
}

impl Used {
    fn take(&self, policy: &Policy, caller: &Caller, tier: Tier, now: Instant) -> RateDecision {
        let mut state = self.state.lock();
        let State { callers, doors } = &mut *state;
        if callers.len() >= MAX_CALLERS {
            // What one gains by this is still bounded by the door.
            callers.clear();
        }
        let own = bucket(callers, (caller.clone(), tier), || policy.rate(tier, 1.0));
        let door = bucket(doors, (caller.door(), caller.scope(), tier), || policy.rate(tier, SCOPE_FACTOR));
        // One that is refused takes nothing of the others'.
        let left = if own.rate.take(now) {
            if door.rate.take(now) { None } else { Some(door.rate.wait(now)) }
        } else {
            Some(own.rate.wait(now))
        };
        match left {
            None => RateDecision::Go { refused: std::mem::take(&mut own.refused).saturating_sub(1) },
            Some(left) => {
                own.refused += 1;
                RateDecision::Wait { left: left.max(Duration::from_millis(1)), first: own.refused == 1 }
            }
        }
    }
}

fn bucket<K: Eq + Hash>(of: &mut HashMap<K, Bucket>, key: K, rate: impl FnOnce() -> RateLimiter) -> &mut Bucket {
    of.entry(key).or_insert_with(|| Bucket { rate: rate(), refused: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(toml: &str) -> Policy {
        let loaded = config::parse(toml, "config.toml").map_err(|wrong| wrong.to_string()).unwrap();
        Policy::new(&loaded.config.tools)
    }

    fn agent(name: &str) -> Caller {
        Caller::client(Door::McpSocket, Scope::Agent, Some(name))
    }

    #[test]
    fn a_list_of_allowed_tools_allows_those_and_no_other() {
        assert!(policy("").allows("anything"));
        let policy = policy("[tools]\nallowed = ['conductor_get_*', 'look']");
        assert!(policy.allows("conductor_get_modes") && policy.allows("look"));
        assert!(!policy.allows("conductor_send_midi") && !policy.allows("look_again") && !policy.allows("overlook"));
        assert!(!self::policy("[tools]\nallowed = []").allows("look"), "nothing is nothing");
        let tools = ["look".to_owned(), "conductor_get_modes".to_owned()];
        let patterns = ["conductor_*".to_owned(), "lok".to_owned()];
        assert_eq!(without_tool(&patterns, &tools), [(1, "lok")]);
    }

    #[test]
    fn agents_are_let_do_what_the_configuration_says_and_never_more_than_the_tier() {
        let owner = Caller::client(Door::Socket, Scope::Owner, None);
        let consent = |policy: &Policy, caller: &Caller| Tier::ALL.map(|tier| policy.consent(caller, tier));
        let usual = [Consent::Free, Consent::Free, Consent::Free, Consent::Confirmation, Consent::Confirmation];
        assert_eq!(consent(&policy(""), &agent("x")), usual);
        let strict = policy("[tools.agents]\nstateful = 'ask'\nconfig_change = 'deny'\nhardware_io = 'deny'");
        let denied = Consent::Denied;
        let expected = [
            Consent::Free,
            Consent::Confirmation,
            denied("config_change"),
            denied("hardware_io"),
            Consent::Confirmation,
        ];
        assert_eq!(consent(&strict, &agent("x")), expected);
        assert_eq!(consent(&strict, &agent("x").by_elicitation()), expected);
        assert_eq!(consent(&strict, &owner), usual, "a person is none");
        let conversation = Caller::client(Door::Chat, Scope::Agent, None);
        let stateful = |text: &str| policy(text).consent(&conversation, Tier::Stateful);
        assert_eq!(stateful(""), Consent::Confirmation, "there is a person to be asked");
        assert_eq!(stateful("[tools.agents]\nstateful = 'allow'"), Consent::Free);
        for none in ["hardware_io = 'allow'", "privileged = 'allow'"] {
            assert!(config::parse(&format!("[tools.agents]\n{none}"), "x").is_err(), "{none}");
        }
    }

    #[test]
    fn a_caller_that_calls_too_often_waits_and_the_others_go_on() {
        let policy = policy("[tools.per_minute]\nread_only = 6\nstateful = 60");
        let now = Instant::now();
        let (one, other) = (agent("one"), agent("other"));
        let take = |caller: &Caller, tier, now| policy.take(caller, tier, now);
        assert_eq!(take(&one, Tier::ReadOnly, now), RateDecision::Go { refused: 0 });
        let RateDecision::Wait { left, first: true } = take(&one, Tier::ReadOnly, now) else { panic!() };
        assert!(left > Duration::from_secs(9) && left <= Duration::from_secs(10), "{left:?}");
        assert!(matches!(take(&one, Tier::ReadOnly, now), RateDecision::Wait { first: false, .. }));
        assert_eq!(take(&one, Tier::Stateful, now), RateDecision::Go { refused: 0 }, "another tier");
        assert_eq!(take(&other, Tier::ReadOnly, now), RateDecision::Go { refused: 0 }, "another caller");
        let later = now + Duration::from_secs(11);
        assert_eq!(take(&one, Tier::ReadOnly, later), RateDecision::Go { refused: 1 }, "one was not told of");
    }

    #[test]
    fn another_name_for_each_call_is_no_way_around_it() {
        let policy = policy("[tools.per_minute]\nhardware_io = 60");
        let now = Instant::now();
        let call = |number: usize| {
            let caller = agent(&format!("agent {number}"));
            matches!(policy.take(&caller, Tier::HardwareIo, now), RateDecision::Go { .. })
        };
        assert_eq!((0..3000).filter(|number| call(*number)).count(), 40, "four times one caller's burst");
    }

    #[test]
    fn what_was_used_is_used_until_the_policy_says_otherwise() {
        let tools = |text: &str| config::parse(text, "config.toml").unwrap().config.tools;
        let (few, more) = (tools("[tools.per_minute]\nread_only = 6"), tools("[tools.per_minute]\nread_only = 12"));
        let (policy, now, caller) = (Arc::new(Policy::new(&few)), Instant::now(), agent("x"));
        let goes = |policy: &Policy| matches!(policy.take(&caller, Tier::ReadOnly, now), RateDecision::Go { .. });
        assert!(goes(&policy) && !goes(&policy));
        assert!(!goes(&policy.following(&few)), "a reload gives nothing back");
        let other = policy.following(&more);
        assert!(goes(&other) && goes(&other) && !goes(&other));
    }
}
