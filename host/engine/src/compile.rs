//! The rule compiler: from rules as written to a rule set, or to all of their mistakes.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use conductor_event::hash::StableState;
use conductor_event::{ArtNetChange, ChordEvent, DeviceId, HidEvent, ModeIx, Nanos, RuleId};
use conductor_message_pattern::SysExPatternError;
use conductor_message_pattern::{OscAddressError, check_address};

use crate::choice::Choices;
use crate::condition::Condition;
use crate::rule::{Place, Rule, RuleSource, RuleSpec, Scope};
use crate::rule_set::RuleSet;
use crate::trigger::{DmxRange, NumberRange, OscArgTest, Trigger, ValueRange};

/// One thing that is wrong with the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileError {
    /// Where the rule stands in the file.
    pub place: Place,
    /// The rule, by its index in [`RuleSource::rules`]; `None` if it concerns the modes.
    pub rule: Option<usize>,
    /// The rule's name, if it has one.
    pub name: Option<String>,
    /// What is wrong.
    pub kind: CompileErrorKind,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.rule) {
            (Some(name), _) => write!(f, "rule {name:?}: {}", self.kind),
            (None, Some(index)) => write!(f, "rule {}: {}", index + 1, self.kind),
            (None, None) => self.kind.fmt(f),
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

/// The ways rules can be wrong. The texts say what to write instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CompileErrorKind {
    /// A mode without a name.
    #[error("a mode needs a name")]
    UnnamedMode,
    /// Two modes with one name.
    #[error("there are two modes called {0:?}; give each its own name")]
    DuplicateMode(String),
    /// More modes than can be counted.
    #[error("there are {0} modes; at most {max} are possible", max = ModeIx::MAX_MODES)]
    TooManyModes(usize),
    /// More rules than can be counted.
    #[error("there are {0} rules; at most {max} are possible", max = MAX_RULES)]
    TooManyRules(usize),
    /// A rule for a mode that is not there.
    #[error("there is no mode called {mode:?}{}", known_modes(.known))]
    UnknownMode {
        /// The name.
        mode: String,
        /// The names there are, shared by all errors.
        known: Arc<[String]>,
    },
    /// A device filter without a name.
    #[error("the device has no name; leave the filter out to listen to every device")]
    UnnamedDevice,
    /// A channel above 15.
    #[error("channel {0} does not exist; channels are 0 to 15")]
    Channel(u8),
    /// A number range that is empty or goes beyond 127.
    #[error("{what} {first} to {last} is not a range; write two numbers from 0 to 127, the lower first")]
    Numbers {
        /// "notes", "controllers" or "programs".
        what: &'static str,
        /// The first number.
        first: u16,
        /// The last number.
        last: u16,
    },
    /// A range of a gamepad's numbers, or of keys, that is empty or goes beyond what there is.
    #[error("{what} {first} to {last} is not a range; write two numbers from {lowest} to {highest}, the lower first")]
    Hid {
        /// "buttons", "keys", "sticks" or "triggers".
        what: &'static str,
        /// The first number.
        first: u16,
        /// The last number.
        last: u16,
        /// The lowest number there is.
        lowest: u16,
        /// The highest number there is.
        highest: u16,
    },
    /// A range of DMX channels that is empty or goes beyond what there is.
    #[error("channels {first} to {last} is not a range; write two numbers from 1 to {most}, the lower first", most = ArtNetChange::LAST_CHANNEL)]
    DmxChannels {
        /// The first channel.
        first: u16,
        /// The last channel.
        last: u16,
    },
    /// A port address above 32 767.
    #[error("universe {0} does not exist; universes are 0 to {most}", most = ArtNetChange::LAST_UNIVERSE)]
    Universe(u16),
    /// A part of a way that is not 0 to 1.
    #[error("{what} {value} is not a part of the way; write a number from 0 to 1")]
    Part {
        /// "dead zone" or "threshold".
        what: &'static str,
        /// The number.
        value: f32,
    },
    /// Keys that make no chord.
    #[error("{keys:?} is no chord; write two to {most} different keys", most = ChordEvent::MAX_KEYS)]
    Chord {
        /// The keys.
        keys: Vec<u16>,
    },
    /// Keys that make no sequence.
    #[error("{keys:?} is no sequence; write two to {most} keys", most = ChordEvent::MAX_KEYS)]
    Sequence {
        /// The keys.
        keys: Vec<u16>,
    },
    /// Taps that can't be counted.
    #[error("a key can't be tapped {0} times; write a number from 2 to {most}", most = ChordEvent::MAX_KEYS)]
    Taps(u8),
    /// Controllers that have no fine part.
    #[error("controllers {first} to {last} have no fine part; write numbers from 0 to 31, the lower first")]
    Coarse {
        /// The first controller.
        first: u16,
        /// The last controller.
        last: u16,
    },
    /// A parameter above 16 383.
    #[error("parameter {0} does not exist; parameters are 0 to 16383")]
    Parameter(u16),
    /// A duration out of range.
    #[error("{0} ns is no time to wait; it is more than 0 and at most an hour")]
    Time(Nanos),
    /// A rule that is to wait, and has nothing to wait for.
    #[error("only a press, a long press, a double tap or a chord can wait for other gestures")]
    Defer,
    /// Days of the week, and none of them.
    #[error("the condition is for no day of the week, so it would never hold; name one")]
    NoDay,
    /// A time of day beyond midnight.
    #[error("{from} s to {to} s is not a part of the day; a day has 86400 seconds")]
    TimeRange {
        /// The first second.
        from: u32,
        /// The second it ends before.
        to: u32,
    },
    /// More conditions than an action may decide by.
    #[error("the action decides by {0} conditions; at most {most} are possible", most = Choices::MAX_CHOICES)]
    TooManyChoices(usize),
    /// Conditions in conditions without end.
    #[error("conditions go no deeper than {most}", most = Condition::MAX_DEPTH)]
    ConditionDepth,
    /// A value range that is empty or goes beyond what the message can hold.
    #[error("{what} {min} to {max} is not a range; write two numbers from 0 to {most}, the lower first")]
    Values {
        /// "velocity", "value" or "pressure".
        what: &'static str,
        /// The lowest value.
        min: u16,
        /// The highest value.
        max: u16,
        /// The highest value possible.
        most: u16,
    },
    /// A SysEx pattern that nothing could match.
    #[error(transparent)]
    SysEx(#[from] SysExPatternError),
    /// An invalid OSC address.
    #[error("OSC address {address:?}: {source}")]
    OscAddress {
        /// The address.
        address: String,
        /// What is wrong with it.
        source: OscAddressError,
    },
    /// An argument test that nothing could pass.
    #[error("argument {index}: {min} to {max} is not a range; write two numbers, the lower first")]
    OscArg {
        /// Which argument.
        index: usize,
        /// The lowest value.
        min: f64,
        /// The highest value.
        max: f64,
    },
}

/// The longest time that a gesture takes: an hour.
const MAX_GESTURE: Nanos = 3_600_000_000_000;

/// The most rules in one set: a rule may take 254 entries of the index, which 32 bits must count.
const MAX_RULES: usize = 10_000_000;

fn known_modes(known: &[String]) -> String {
    /// More names would not help anyone find the right one.
    const MAX_NAMES_SHOWN: usize = 12;
    if known.is_empty() {
        return "; no modes are defined".to_owned();
    }
    let names: Vec<_> = known.iter().take(MAX_NAMES_SHOWN).map(|name| format!("{name:?}")).collect();
    let more = if known.len() > MAX_NAMES_SHOWN { ", …" } else { "" };
    format!("; there are {}{more}", names.join(", "))
}

/// Compiles rules into a set. The same source always gives the same set.
///
/// # Errors
/// Everything that is wrong, modes first, then rules in the order of the file.
pub fn compile<A>(source: RuleSource<A>) -> Result<RuleSet<A>, Vec<CompileError>> {
    let RuleSource { modes, rules } = source;
    let mut errors = Vec::new();
    let by_name = check_modes(&modes, &mut errors);
    let known: Arc<[String]> = modes.as_slice().into();
    if rules.len() > MAX_RULES {
        errors.push(about_all(CompileErrorKind::TooManyRules(rules.len())));
    }
    for (index, rule) in rules.iter().enumerate() {
        check_rule(rule, &known, &by_name, &mut |kind| {
            errors.push(CompileError { place: rule.place, rule: Some(index), name: rule.name.clone(), kind });
        });
    }
    if !errors.is_empty() {
        return Err(errors);
    }

    let mut devices = HashMap::<String, DeviceId, StableState>::default();
    let mut rules: Vec<Rule<A>> = rules
        .into_iter()
        .map(|spec| Rule {
            id: RuleId::default(),
            name: spec.name.map(Into::into),
            place: spec.place,
            device: spec.device.map(|name| match devices.get(&name) {
                Some(device) => device.clone(),
                None => {
                    let device = DeviceId::new(&name);
                    devices.insert(name, device.clone());
                    device
                }
            }),
            mode: match spec.scope {
                Scope::Global => None,
                Scope::Mode(name) => by_name.get(&*name).copied(),
            },
            trigger: spec.trigger,
            condition: spec.condition,
            lasts: spec.lasts,
            swallows_release: spec.swallows_release,
            quantize: spec.quantize,
            choices: (!spec.choices.conditions.is_empty()).then(|| Box::new(spec.choices)),
            defer: spec.defer,
            consume: spec.consume,
            priority: spec.priority,
            action: spec.action,
        })
        .collect();
    // Stable, so that rules of equal rank stay in the order of the file.
    rules.sort_by_key(|rule| (std::cmp::Reverse(rule.priority), rule.device.is_none()));
    for (rank, rule) in rules.iter_mut().enumerate() {
        rule.id = RuleId(rank as u32);
    }
    let modes = modes.iter().map(|name| name.as_str().into()).collect();
    Ok(RuleSet::build(modes, rules))
}

fn about_all(kind: CompileErrorKind) -> CompileError {
    CompileError { place: Place::NONE, rule: None, name: None, kind }
}

fn check_modes<'a>(modes: &'a [String], errors: &mut Vec<CompileError>) -> HashMap<&'a str, ModeIx, StableState> {
    let mut by_name = HashMap::default();
    if modes.len() > ModeIx::MAX_MODES {
        errors.push(about_all(CompileErrorKind::TooManyModes(modes.len())));
    }
    for (index, name) in modes.iter().enumerate().take(ModeIx::MAX_MODES) {
        if name.is_empty() {
            errors.push(about_all(CompileErrorKind::UnnamedMode));
        } else if by_name.insert(name.as_str(), ModeIx(index as u16)).is_some() {
            errors.push(about_all(CompileErrorKind::DuplicateMode(name.clone())));
        }
    }
    by_name
}

fn check_rule<A>(
    rule: &RuleSpec<A>,
    known: &Arc<[String]>,
    by_name: &HashMap<&str, ModeIx, StableState>,
    wrong: &mut impl FnMut(CompileErrorKind),
) {
    if let Scope::Mode(mode) = &rule.scope
        && !by_name.contains_key(mode.as_str())
    {
        wrong(CompileErrorKind::UnknownMode { mode: mode.clone(), known: Arc::clone(known) });
    }
    check_device(rule.device.as_deref(), wrong);
    match &rule.trigger {
        Trigger::Note { notes, velocity, edge: _, channel } => {
            check_numbers("notes", *notes, wrong);
            check_values("velocity", *velocity, 127, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::ControlChange { controllers, value, channel } => {
            check_numbers("controllers", *controllers, wrong);
            check_values("value", *value, 127, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::Aftertouch { value, channel } => {
            check_values("pressure", *value, 127, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::PolyAftertouch { notes, value, channel } => {
            check_numbers("notes", *notes, wrong);
            check_values("pressure", *value, 127, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::PitchBend { value, channel } => {
            check_values("value", *value, 16_383, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::ProgramChange { programs, channel } => {
            check_numbers("programs", *programs, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::SysEx { pattern } => {
            if let Err(error) = pattern.check() {
                wrong(error.into());
            }
        }
        Trigger::MidiAny { channel } => check_channel(*channel, wrong),
        Trigger::Osc { address, arg } => {
            if let Err(source) = check_address(address) {
                wrong(CompileErrorKind::OscAddress { address: address.clone(), source });
            }
            check_arg(*arg, wrong);
        }
        Trigger::OscPattern { pattern: _, arg } => check_arg(*arg, wrong),
        Trigger::Button { buttons, edge: _ } => check_buttons(*buttons, wrong),
        Trigger::GamepadStick { sticks, push: _, dead_zone, readings: _ } => {
            check_hid("sticks", *sticks, HidEvent::STICKS, wrong);
            check_part("dead zone", *dead_zone, wrong);
        }
        Trigger::GamepadTrigger { triggers, threshold, readings: _ } => {
            check_hid("triggers", *triggers, HidEvent::TRIGGERS, wrong);
            check_part("threshold", *threshold, wrong);
        }
        Trigger::ArtNet { universe, channels: DmxRange { first, last }, value } => {
            if *universe > ArtNetChange::LAST_UNIVERSE {
                wrong(CompileErrorKind::Universe(*universe));
            }
            if *first < 1 || first > last || *last > ArtNetChange::LAST_CHANNEL {
                wrong(CompileErrorKind::DmxChannels { first: *first, last: *last });
            }
            check_values("value", *value, 255, wrong);
        }
        // The caller numbers variables, so it knows how many there are.
        Trigger::Variable { .. } | Trigger::Beat { .. } | Trigger::Transport { .. } => {}
        Trigger::LongPress { keys, velocity, channel, after: time }
        | Trigger::DoubleTap { keys, velocity, channel, taps: _, within: time } => {
            if let Trigger::DoubleTap { taps, .. } = &rule.trigger
                && !(2..=ChordEvent::MAX_KEYS).contains(&usize::from(*taps))
            {
                wrong(CompileErrorKind::Taps(*taps));
            }
            check_keys(*keys, wrong);
            check_values("velocity", *velocity, 127, wrong);
            check_channel(*channel, wrong);
            check_time(*time, wrong);
        }
        Trigger::Chord { keys, channel, within } => {
            let is_set = keys.is_sorted_by(|a, b| a < b) && (2..=ChordEvent::MAX_KEYS).contains(&keys.len());
            match (keys.first(), keys.last()) {
                (Some(&first), Some(&last)) if is_set => check_keys(NumberRange { first, last }, wrong),
                _ => wrong(CompileErrorKind::Chord { keys: keys.clone() }),
            }
            check_channel(*channel, wrong);
            check_time(*within, wrong);
        }
        Trigger::Sequence { keys, channel, within } => {
            match (keys.iter().min(), keys.iter().max()) {
                (Some(&first), Some(&last)) if (2..=ChordEvent::MAX_KEYS).contains(&keys.len()) => {
                    check_keys(NumberRange { first, last }, wrong);
                }
                _ => wrong(CompileErrorKind::Sequence { keys: keys.clone() }),
            }
            check_channel(*channel, wrong);
            check_time(*within, wrong);
        }
        Trigger::Turn { controllers, encoding: _, way: _, channel } => {
            check_numbers("controllers", *controllers, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::FineControl { controllers: NumberRange { first, last }, value, channel, .. } => {
            if first > last || *last > 31 {
                wrong(CompileErrorKind::Coarse { first: *first, last: *last });
            }
            check_values("value", *value, 16_383, wrong);
            check_channel(*channel, wrong);
        }
        Trigger::Parameter { registered: _, parameter, value, channel } => {
            if *parameter > 16_383 {
                wrong(CompileErrorKind::Parameter(*parameter));
            }
            check_values("value", *value, 16_383, wrong);
            check_channel(*channel, wrong);
        }
    }
    if rule.defer && !rule.trigger.can_defer() {
        wrong(CompileErrorKind::Defer);
    }
    if let Some(condition) = &rule.condition {
        check_condition(condition, known, by_name, wrong);
    }
    if rule.choices.conditions.len() > Choices::MAX_CHOICES {
        wrong(CompileErrorKind::TooManyChoices(rule.choices.conditions.len()));
    }
    for condition in &rule.choices.conditions {
        check_condition(condition, known, by_name, wrong);
    }
}

/// Checks a condition, wherever it stands: in a rule, or in what the caller's actions decide by.
///
/// `modes` are the modes of the rule set.
pub fn check_standalone_condition(condition: &Condition, modes: &[String]) -> Vec<CompileErrorKind> {
    let mut errors = Vec::new();
    let by_name = check_modes(modes, &mut Vec::new());
    check_condition(condition, &modes.into(), &by_name, &mut |kind| errors.push(kind));
    errors
}

fn check_condition(
    condition: &Condition,
    known: &Arc<[String]>,
    by_name: &HashMap<&str, ModeIx, StableState>,
    wrong: &mut impl FnMut(CompileErrorKind),
) {
    if condition.depth() > Condition::MAX_DEPTH {
        return wrong(CompileErrorKind::ConditionDepth);
    }
    condition.each(&mut |condition| match condition {
        Condition::ModeIs(mode) if !by_name.contains_key(&**mode) => {
            wrong(CompileErrorKind::UnknownMode { mode: mode.to_string(), known: Arc::clone(known) });
        }
        Condition::TimeRange(range) if range.from >= 86_400 || range.to > 86_400 => {
            wrong(CompileErrorKind::TimeRange { from: range.from, to: range.to });
        }
        Condition::DayOfWeek(days) if days.is_empty() => wrong(CompileErrorKind::NoDay),
        Condition::NoteHeld { notes, channel, device } => {
            check_numbers("notes", *notes, wrong);
            check_channel(*channel, wrong);
            check_device(device.as_ref().map(DeviceId::as_str), wrong);
        }
        Condition::CcValueInRange { controller, value, channel, device } => {
            check_numbers("controllers", NumberRange::one((*controller).into()), wrong);
            check_values("value", *value, 127, wrong);
            check_channel(*channel, wrong);
            check_device(device.as_ref().map(DeviceId::as_str), wrong);
        }
        _ => {}
    });
}

/// Keys are notes, buttons or a keyboard's, and never of two kinds.
fn check_keys(keys: NumberRange, wrong: &mut impl FnMut(CompileErrorKind)) {
    if keys.first > 127 { check_buttons(keys, wrong) } else { check_numbers("notes", keys, wrong) }
}

fn check_buttons(buttons: NumberRange, wrong: &mut impl FnMut(CompileErrorKind)) {
    let is_key = buttons.first >= *HidEvent::KEYS.start();
    let (what, there) = if is_key { ("keys", HidEvent::KEYS) } else { ("buttons", HidEvent::BUTTONS) };
    check_hid(what, buttons, there, wrong);
}

fn check_time(time: Nanos, wrong: &mut impl FnMut(CompileErrorKind)) {
    if time == 0 || time > MAX_GESTURE {
        wrong(CompileErrorKind::Time(time));
    }
}

fn check_device(device: Option<&str>, wrong: &mut impl FnMut(CompileErrorKind)) {
    if device == Some("") {
        wrong(CompileErrorKind::UnnamedDevice);
    }
}

fn check_hid(
    what: &'static str,
    NumberRange { first, last }: NumberRange,
    there: RangeInclusive<u16>,
    wrong: &mut impl FnMut(CompileErrorKind),
) {
    if first > last || !there.contains(&first) || !there.contains(&last) {
        let (lowest, highest) = there.into_inner();
        wrong(CompileErrorKind::Hid { what, first, last, lowest, highest });
    }
}

fn check_part(what: &'static str, value: f32, wrong: &mut impl FnMut(CompileErrorKind)) {
    if !(0.0..=1.0).contains(&value) {
        wrong(CompileErrorKind::Part { what, value });
    }
}

fn check_channel(channel: Option<u8>, wrong: &mut impl FnMut(CompileErrorKind)) {
    if let Some(channel) = channel
        && channel > 15
    {
        wrong(CompileErrorKind::Channel(channel));
    }
}

fn check_numbers(
    what: &'static str,
    NumberRange { first, last }: NumberRange,
    wrong: &mut impl FnMut(CompileErrorKind),
) {
    if first > last || last > 127 {
        wrong(CompileErrorKind::Numbers { what, first, last });
    }
}

fn check_values(
    what: &'static str,
    ValueRange { min, max }: ValueRange,
    most: u16,
    wrong: &mut impl FnMut(CompileErrorKind),
) {
    if min > max || max > most {
        wrong(CompileErrorKind::Values { what, min, max, most });
    }
}

fn check_arg(test: Option<OscArgTest>, wrong: &mut impl FnMut(CompileErrorKind)) {
    if let Some(OscArgTest { index, min, max }) = test {
        // NaN is neither below nor above anything, so it is refused here as well.
        let is_range = min <= max;
        if !is_range {
            wrong(CompileErrorKind::OscArg { index, min, max });
        }
    }
}

#[cfg(test)]
mod tests;
