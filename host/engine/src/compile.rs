//! Compiling: from what was written to a rule set, or to everything that is wrong with it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::device::DeviceId;
use crate::hash::StableState;
use crate::osc::{OscAddressError, check_address};
use crate::rule::{Place, Rule, RuleId, RuleSource, RuleSpec, Scope};
use crate::rule_set::{ModeIx, RuleSet};
use crate::trigger::{NumberRange, OscArgTest, SysExPatternError, Trigger, ValueRange};

/// One thing that is wrong with the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct CompileError {
    /// Where the rule stands in the file.
    pub place: Place,
    /// The rule, by its index in [`RuleSource::rules`]; none where it is about the modes.
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
        first: u8,
        /// The last number.
        last: u8,
    },
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
    /// An OSC address that is none.
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

/// The most rules in one set: a rule may take 254 entries of the index, which 32 bits must count.
const MAX_RULES: usize = 10_000_000;

fn known_modes(known: &[String]) -> String {
    /// More names would not help anyone find the right one.
    const SHOWN: usize = 12;
    if known.is_empty() {
        return "; no modes are defined".to_owned();
    }
    let names: Vec<_> = known.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = if known.len() > SHOWN { ", …" } else { "" };
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
    if rule.device.as_deref() == Some("") {
        wrong(CompileErrorKind::UnnamedDevice);
    }
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
mod tests {
    use super::*;
    use crate::osc::OscPattern;
    use crate::trigger::{Edge, SysExPattern};

    fn note(first: u8, last: u8, min: u16, max: u16, channel: Option<u8>) -> Trigger {
        Trigger::Note {
            notes: NumberRange { first, last },
            velocity: ValueRange { min, max },
            edge: Edge::Press,
            channel,
        }
    }

    fn rule(trigger: Trigger) -> RuleSpec<()> {
        RuleSpec::new(trigger, ())
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        let mut first = rule(note(60, 50, 100, 20, Some(16)));
        first.place = Place::bytes(10..40);
        first.name = Some("Boom".into());
        first.scope = Scope::Mode("Live".into());
        let mut second =
            rule(Trigger::Osc { address: "fader".into(), arg: Some(OscArgTest { index: 0, min: f64::NAN, max: 1.0 }) });
        second.place = Place::bytes(50..80);
        second.device = Some(String::new());
        let source = RuleSource { modes: vec!["A".into(), "A".into(), "".into()], rules: vec![first, second] };

        let errors = compile(source).unwrap_err();
        let told: Vec<_> = errors.iter().map(|e| (e.place.range().map(|r| r.start), e.to_string())).collect();
        assert_eq!(
            told.iter().map(|(at, text)| (*at, text.as_str())).collect::<Vec<_>>(),
            [
                (None, r#"there are two modes called "A"; give each its own name"#),
                (None, "a mode needs a name"),
                (Some(10), r#"rule "Boom": there is no mode called "Live"; there are "A", "A", """#),
                (
                    Some(10),
                    r#"rule "Boom": notes 60 to 50 is not a range; write two numbers from 0 to 127, the lower first"#
                ),
                (
                    Some(10),
                    r#"rule "Boom": velocity 100 to 20 is not a range; write two numbers from 0 to 127, the lower first"#
                ),
                (Some(10), r#"rule "Boom": channel 16 does not exist; channels are 0 to 15"#),
                (Some(50), "rule 2: the device has no name; leave the filter out to listen to every device"),
                (Some(50), r#"rule 2: OSC address "fader": an OSC address starts with '/', as in /mixer/1/fader"#),
                (Some(50), "rule 2: argument 0: NaN to 1 is not a range; write two numbers, the lower first"),
            ]
        );
    }

    #[test]
    fn every_trigger_is_checked() {
        let all = NumberRange::ALL;
        let too_far = NumberRange { first: 0, last: 128 };
        let (seven, too_much) = (ValueRange::SEVEN_BIT, ValueRange { min: 0, max: 128 });
        let channel = Some(99);
        let bad_arg = Some(OscArgTest { index: 0, min: 1.0, max: 0.0 });
        let wrong = [
            note(0, 128, 0, 127, None),
            note(0, 0, 0, 128, None),
            Trigger::ControlChange { controllers: too_far, value: seven, channel: None },
            Trigger::ControlChange { controllers: all, value: too_much, channel: None },
            Trigger::ControlChange { controllers: all, value: seven, channel },
            Trigger::Aftertouch { value: too_much, channel: None },
            Trigger::Aftertouch { value: seven, channel },
            Trigger::PolyAftertouch { notes: too_far, value: seven, channel: None },
            Trigger::PolyAftertouch { notes: all, value: too_much, channel: None },
            Trigger::PolyAftertouch { notes: all, value: seven, channel },
            Trigger::PitchBend { value: ValueRange { min: 0, max: 16_384 }, channel: None },
            Trigger::PitchBend { value: seven, channel },
            Trigger::ProgramChange { programs: too_far, channel: None },
            Trigger::ProgramChange { programs: all, channel },
            Trigger::SysEx { pattern: SysExPattern::new([]) },
            Trigger::SysEx { pattern: SysExPattern::new([(0x7E, 0xFF)]) },
            Trigger::MidiAny { channel },
            Trigger::Osc { address: "/a b".into(), arg: None },
            Trigger::Osc { address: "/a".into(), arg: bad_arg },
            Trigger::OscPattern { pattern: OscPattern::parse("/*").unwrap(), arg: bad_arg },
        ];
        for trigger in wrong {
            let source = RuleSource { modes: vec![], rules: vec![rule(trigger.clone())] };
            let errors = compile(source).expect_err(&format!("{trigger:?}"));
            assert_eq!(errors.len(), 1, "{trigger:?}: {errors:?}");
        }
    }

    #[test]
    fn order_is_priority_then_device_then_file() {
        let spec = |priority, device: Option<&str>, action| RuleSpec {
            priority,
            device: device.map(Into::into),
            ..RuleSpec::new(note(1, 1, 0, 127, None), action)
        };
        let source = RuleSource {
            modes: vec![],
            rules: vec![
                spec(0, None, "e"),
                spec(0, Some("pads"), "c"),
                spec(5, None, "b"),
                spec(0, Some("keys"), "d"),
                spec(-1, Some("pads"), "g"),
                spec(0, None, "f"),
                spec(5, Some("pads"), "a"),
            ],
        };
        let set = compile(source).unwrap();
        let order: String = set.rules().iter().map(|rule| rule.action).collect();
        assert_eq!(order, "abcdefg");
        assert!(set.rules().iter().enumerate().all(|(rank, rule)| rule.id.0 as usize == rank));
    }

    #[test]
    fn too_many_modes_is_one_error() {
        let modes = (0..=ModeIx::MAX_MODES).map(|n| n.to_string()).collect();
        let errors = compile(RuleSource::<()> { modes, rules: vec![] }).unwrap_err();
        assert_eq!(errors.len(), 1);
    }
}
