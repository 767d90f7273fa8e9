//! Conditions: guards that must hold for a rule to fire.
//!
//! A condition is evaluated at the moment of the event, without I/O: by the mode, the
//! keys that are down and the positions of controllers ([`InputState`]), and a snapshot of OS state
//! ([`Environment`]), which another thread publishes through an [`EnvironmentHandle`]. A condition on something
//! unknown does not hold.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use conductor_event::{DeviceId, Nanos};
use conductor_local_time::{Days, LocalTime, TimeRange};

use crate::input_state::InputState;
use crate::snapshot::{Shared, SharedGuard};
use crate::trigger::{NumberRange, ValueRange};

/// What must be so for a rule to fire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// It always holds.
    Always,
    /// It never holds: the rule is switched off.
    Never,
    /// The active mode has this name.
    ModeIs(Box<str>),
    /// The local time of day is in the range.
    TimeRange(TimeRange),
    /// It is one of these days, by the local calendar.
    DayOfWeek(Days),
    /// An application of this name runs.
    AppRunning(AppName),
    /// The application in front has this name.
    AppFrontmost(AppName),
    /// One of these notes is down.
    NoteHeld {
        /// Which notes.
        notes: NumberRange,
        /// On which channel; `None` if on any.
        channel: Option<u8>,
        /// Of which device; `None` if of any.
        device: Option<DeviceId>,
    },
    /// A controller stands there. One that has not moved yet is nowhere.
    CcValueInRange {
        /// Which controller, 0 to 127.
        controller: u8,
        /// Where, 0 to 127.
        value: ValueRange,
        /// On which channel; `None` if on any.
        channel: Option<u8>,
        /// Of which device; `None` if of any.
        device: Option<DeviceId>,
    },
    /// A function that the maker of the condition gave decides.
    Predicate(Predicate),
    /// Holds if each of them holds; an empty list holds.
    And(Vec<Condition>),
    /// Holds if one of them holds; an empty list does not.
    Or(Vec<Condition>),
    /// Holds if the condition in it does not.
    Not(Box<Condition>),
}

/// A condition that its maker evaluates, such as one on variables.
#[derive(Clone)]
pub struct Predicate {
    /// What it is called in explanations. What is called alike is the same condition.
    text: Arc<str>,
    holds: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl Predicate {
    /// A condition that holds if `holds` says so, which takes no lock and allocates nothing.
    pub fn new(text: &str, holds: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { text: text.into(), holds: Arc::new(holds) }
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Predicate {}

impl Hash for Predicate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// The moment at which a condition is asked.
#[derive(Clone, Copy, Debug)]
pub struct EvalContext<'a> {
    /// When it is.
    pub at: Nanos,
    /// The name of the active mode.
    pub mode: Option<&'a str>,
    /// What the operating system knows.
    pub environment: &'a Environment,
    /// Which keys are down and where controllers stand.
    pub held: &'a InputState,
}

impl Condition {
    /// Conditions may stand in conditions; this deep.
    pub const MAX_DEPTH: usize = 16;

    /// Whether it holds. Takes no lock and allocates nothing.
    pub fn holds(&self, context: &EvalContext<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::ModeIs(name) => context.mode == Some(name),
            Self::TimeRange(range) => {
                context.environment.local.is_some_and(|local| range.contains(local.at(context.at).second))
            }
            Self::DayOfWeek(days) => {
                context.environment.local.is_some_and(|local| days.contains(local.at(context.at).day))
            }
            Self::AppRunning(name) => context.environment.running.binary_search(name).is_ok(),
            Self::AppFrontmost(name) => context.environment.frontmost.contains(name),
            Self::NoteHeld { notes, channel, device } => context.held.is_note_down(*notes, *channel, device.as_ref()),
            Self::CcValueInRange { controller, value, channel, device } => {
                context.held.is_controller_at(*controller, *value, *channel, device.as_ref())
            }
            Self::Predicate(asked) => (asked.holds)(),
            Self::And(all) => all.iter().all(|condition| condition.holds(context)),
            Self::Or(any) => any.iter().any(|condition| condition.holds(context)),
            Self::Not(condition) => !condition.holds(context),
        }
    }

    /// Shows each condition in this one to `look`, itself first.
    pub fn each(&self, look: &mut impl FnMut(&Self)) {
        look(self);
        match self {
            Self::And(several) | Self::Or(several) => several.iter().for_each(|condition| condition.each(look)),
            Self::Not(condition) => condition.each(look),
            _ => {}
        }
    }

    /// How deep conditions stand in conditions; 1 for one that has none in it.
    pub fn depth(&self) -> usize {
        let inside = match self {
            Self::And(several) | Self::Or(several) => several.iter().map(Self::depth).max().unwrap_or(0),
            Self::Not(condition) => condition.depth(),
            _ => 0,
        };
        inside + 1
    }
}

/// A condition as text, for explanations: `mode is "Play" and note 36 is down`.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, several: &[Self], word: &str, none: &str| match several {
            [] => f.write_str(none),
            [first, rest @ ..] => {
                write!(f, "({first}")?;
                rest.iter().try_for_each(|condition| write!(f, " {word} {condition}"))?;
                f.write_str(")")
            }
        };
        match self {
            Self::Always => f.write_str("always"),
            Self::Never => f.write_str("never"),
            Self::ModeIs(name) => write!(f, "the mode is {name:?}"),
            Self::TimeRange(range) => write!(f, "the time is {range}"),
            Self::DayOfWeek(days) => write!(f, "the day is {days}"),
            Self::AppRunning(name) => write!(f, "{:?} runs", name.as_str()),
            Self::AppFrontmost(name) => write!(f, "{:?} is in front", name.as_str()),
            Self::NoteHeld { notes: NumberRange { first, last }, channel, device } => {
                if first == last {
                    write!(f, "note {first}")?;
                } else {
                    write!(f, "one of the notes {first} to {last}")?;
                }
                write_source(f, *channel, device.as_ref())?;
                f.write_str(" is down")
            }
            Self::CcValueInRange { controller, value, channel, device } => {
                write!(f, "controller {controller}")?;
                write_source(f, *channel, device.as_ref())?;
                write!(f, " is at {} to {}", value.min, value.max)
            }
            Self::Predicate(asked) => f.write_str(&asked.text),
            Self::And(all) => joined(f, all, "and", "always"),
            Self::Or(any) => joined(f, any, "or", "never"),
            Self::Not(condition) => write!(f, "not {condition}"),
        }
    }
}

fn write_source(f: &mut fmt::Formatter<'_>, channel: Option<u8>, device: Option<&DeviceId>) -> fmt::Result {
    if let Some(channel) = channel {
        write!(f, " on channel {channel}")?;
    }
    device.map_or(Ok(()), |device| write!(f, " of {:?}", device.as_str()))
}

/// The name of an application. Upper and lower case are the same, since systems don't agree on it.
#[derive(Clone, Debug, Eq, PartialOrd, Ord)]
pub struct AppName(Box<str>);

impl AppName {
    /// The application of this name.
    pub fn new(name: &str) -> Self {
        Self(name.to_lowercase().into())
    }

    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialEq for AppName {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Hash for AppName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// OS state for conditions (local time, applications): an immutable snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    local: Option<LocalTime>,
    /// By all its names.
    frontmost: Vec<AppName>,
    /// Sorted.
    running: Vec<AppName>,
}

impl Environment {
    /// Nothing is known.
    pub const fn unknown() -> Self {
        Self { local: None, frontmost: Vec::new(), running: Vec::new() }
    }

    /// It was this time; what time it is later follows from it.
    #[must_use]
    pub fn local(mut self, local: LocalTime) -> Self {
        self.local = Some(local);
        self
    }

    /// The application of this name is in front. It may go by more: each is said by itself.
    #[must_use]
    pub fn frontmost(mut self, name: &str) -> Self {
        self.frontmost.push(AppName::new(name));
        self
    }

    /// The applications of these names run.
    #[must_use]
    pub fn running<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.running = names.into_iter().map(AppName::new).collect();
        self.running.sort_unstable();
        self.running.dedup();
        self
    }
}

/// The current [`Environment`]. Reading is wait-free; the thread that replaces it frees the old one.
pub struct EnvironmentHandle(Shared<Environment>);

impl EnvironmentHandle {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self(Shared::new(Environment::unknown()))
    }

    /// Replaces the environment.
    pub fn set(&self, environment: Environment) {
        self.0.swap_with(|_| environment);
    }

    /// The current environment.
    pub fn load(&self) -> EnvironmentGuard {
        EnvironmentGuard(self.0.load())
    }
}

impl Default for EnvironmentHandle {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EnvironmentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EnvironmentHandle").field(&*self.load()).finish()
    }
}

/// An environment that is being read. See [`EnvironmentHandle::load`].
pub struct EnvironmentGuard(SharedGuard<Environment>);

impl std::ops::Deref for EnvironmentGuard {
    type Target = Environment;

    fn deref(&self) -> &Environment {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_local_time::Day;

    const MONDAY_NOON: LocalTime = LocalTime { moment: 1_000_000_000, day: Day::Monday, second: 12 * 3600 };
    const HOUR: Nanos = 3_600_000_000_000;

    fn holds(condition: &Condition, at: Nanos, environment: &Environment) -> bool {
        condition.holds(&EvalContext { at, mode: Some("Play"), environment, held: &InputState::new() })
    }

    #[test]
    fn the_clock_goes_on_after_the_snapshot() {
        let environment = Environment::unknown().local(MONDAY_NOON);
        let night = Condition::TimeRange(TimeRange { from: 22 * 3600, to: 6 * 3600 });
        let tuesday = Condition::DayOfWeek([Day::Tuesday].into_iter().collect());
        let at = |hours: Nanos| 1_000_000_000 + hours * HOUR;
        assert!(!holds(&night, at(0), &environment));
        assert!(!holds(&night, at(10) - 1, &environment));
        assert!(holds(&night, at(10), &environment));
        assert!(holds(&night, at(18) - 1, &environment), "past midnight");
        assert!(!holds(&night, at(18), &environment));
        assert!(!holds(&tuesday, at(12) - 1, &environment));
        assert!(holds(&tuesday, at(12), &environment));
        assert!(holds(&tuesday, at(12 + 7 * 24), &environment), "a week later");
        assert_eq!(MONDAY_NOON.at(0).second, MONDAY_NOON.second, "before the snapshot it stands");
    }

    #[test]
    fn what_is_not_known_does_not_hold() {
        let environment = Environment::unknown();
        for condition in [
            Condition::TimeRange(TimeRange { from: 0, to: 0 }),
            Condition::DayOfWeek(Day::ALL.into_iter().collect()),
            Condition::AppRunning(AppName::new("live")),
            Condition::AppFrontmost(AppName::new("live")),
        ] {
            assert!(!holds(&condition, 0, &environment), "{condition}");
            assert!(holds(&Condition::Not(Box::new(condition)), 0, &environment));
        }
    }

    #[test]
    fn applications_are_found_by_name_in_any_case() {
        let environment = Environment::unknown().frontmost("Ableton Live").running(["firefox", "Ableton Live", "Xorg"]);
        assert!(holds(&Condition::AppRunning(AppName::new("Firefox")), 0, &environment));
        assert!(!holds(&Condition::AppRunning(AppName::new("fire")), 0, &environment), "the whole name");
        assert!(holds(&Condition::AppFrontmost(AppName::new("ABLETON LIVE")), 0, &environment));
        assert!(!holds(&Condition::AppFrontmost(AppName::new("firefox")), 0, &environment));
    }

    #[test]
    fn conditions_are_joined() {
        use Condition::{Always, And, ModeIs, Never, Not, Or};
        let environment = Environment::unknown();
        let cases = [
            (And(vec![]), true),
            (Or(vec![]), false),
            (And(vec![Always, ModeIs("Play".into())]), true),
            (And(vec![Always, ModeIs("play".into())]), false),
            (Or(vec![Never, Always]), true),
            (Not(Box::new(Or(vec![Never, And(vec![Never])]))), true),
        ];
        for (condition, wanted) in cases {
            assert_eq!(holds(&condition, 0, &environment), wanted, "{condition}");
        }
    }

    #[test]
    fn a_condition_says_itself_in_words() {
        let condition = Condition::And(vec![
            Condition::ModeIs("Play".into()),
            Condition::Not(Box::new(Condition::NoteHeld {
                notes: NumberRange::one(36),
                channel: Some(9),
                device: Some(DeviceId::new("pads")),
            })),
            Condition::TimeRange(TimeRange { from: 22 * 3600, to: 6 * 3600 + 61 }),
            Condition::DayOfWeek([Day::Sunday, Day::Friday].into_iter().collect()),
        ]);
        assert_eq!(
            condition.to_string(),
            r#"(the mode is "Play" and not note 36 on channel 9 of "pads" is down and the time is 22:00 to 06:01:01 and the day is Friday or Sunday)"#
        );
        assert_eq!(condition.depth(), 3);
    }

    #[test]
    fn the_handle_gives_the_newest_facts() {
        let handle = EnvironmentHandle::new();
        let old = handle.load();
        handle.set(Environment::unknown().local(MONDAY_NOON));
        assert_eq!(*old, Environment::unknown());
        assert_eq!(handle.load().local, Some(MONDAY_NOON));
    }
}
