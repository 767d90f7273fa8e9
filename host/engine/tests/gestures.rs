//! Every decision about gestures, written down as timelines in `tests/gestures/` (ENG-1, ENG-4, ENG-6).
//!
//! A file has sections. A section begins with a line of `===` and a heading; then come its rules, one a
//! line (see [`Section::rule`]); after a line `---` come mapping tests, as people write them.

use std::fmt::Write as _;
use std::sync::Arc;

use conductor_engine::*;
use conductor_timeline::{MappingTest, Timeline, parse_mapping_tests};

/// What the rules of these tests do: perhaps change the mode.
type Action = Option<Arc<str>>;

struct Section {
    heading: String,
    rules: Arc<RuleSetHandle<Action>>,
    tests: Vec<MappingTest>,
}

impl Section {
    fn parse(file: &str, text: &str) -> Self {
        let (heading, rest) = text.split_once('\n').unwrap_or((text, ""));
        let (rules, tests) = rest.split_once("---\n").unwrap_or_else(|| panic!("{file}: {heading}: no line ---"));
        let mut source = RuleSource { modes: Vec::new(), rules: Vec::new() };
        let mut over: Vec<(&str, &str)> = Vec::new();
        for line in rules.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(modes) = line.strip_prefix("modes ") {
                source.modes = modes.split_whitespace().map(Into::into).collect();
            } else if let Some(pair) = line.strip_prefix("over ") {
                over.push(pair.split_once(' ').expect("a mode and the one below it"));
            } else {
                source.rules.push(Self::rule(line));
            }
        }
        let number = |name: &str| source.modes.iter().position(|mode| mode == name).map(|at| ModeIx(at as u16));
        let below = |name: &String| over.iter().find(|(upper, _)| upper == name).and_then(|(_, lower)| number(lower));
        let below = source.modes.iter().map(|name| below(name).unwrap_or(ModeIx::NONE)).collect();
        let set = compile(source)
            .map(|set| set.layered(below))
            .unwrap_or_else(|errors| panic!("{file}: {heading}: {errors:?}"));
        let tests = parse_mapping_tests(tests).unwrap_or_else(|errors| panic!("{file}: {heading}: {errors:#?}"));
        Self { heading: heading.into(), rules: Arc::new(RuleSetHandle::new(set)), tests }
    }

    /// `NAME TRIGGER ARGUMENTS [OPTION]…`: the trigger's own arguments in order, then options in any.
    fn rule(line: &str) -> RuleSpec<Action> {
        let mut words = line.split_whitespace();
        let mut next = || words.next().unwrap_or_else(|| panic!("{line}: a word is missing"));
        let name = next().trim_end_matches(':').to_owned();
        let velocity = ValueRange::SEVEN_BIT;
        let wide = ValueRange::FOURTEEN_BIT;
        let channel = None;
        let trigger = match next() {
            "press" => Trigger::Note { notes: numbers(next()), velocity, edge: Edge::Press, channel },
            "both" => Trigger::Note { notes: numbers(next()), velocity, edge: Edge::Both, channel },
            "release" => Trigger::Note { notes: numbers(next()), velocity, edge: Edge::Release, channel },
            "button" => Trigger::Button { buttons: numbers(next()), edge: Edge::Press },
            "cc" => Trigger::ControlChange { controllers: numbers(next()), value: velocity, channel },
            "long" => Trigger::LongPress { keys: numbers(next()), velocity, channel, after: time(next()) },
            "double" => Trigger::DoubleTap { keys: numbers(next()), velocity, channel, taps: 2, within: time(next()) },
            "taps" => {
                let (taps, keys) = (number(next()), numbers(next()));
                Trigger::DoubleTap { keys, velocity, channel, taps, within: time(next()) }
            }
            "sequence" => {
                let keys = next().split('+').map(|key| key.parse().expect("a key")).collect();
                Trigger::Sequence { keys, channel, within: time(next()) }
            }
            "chord" => {
                let keys = next().split('+').map(|key| key.parse().expect("a key")).collect();
                Trigger::Chord { keys, channel, within: time(next()) }
            }
            "turn" => Trigger::Turn {
                controllers: numbers(next()),
                encoding: match next() {
                    "twos" => Encoding::TwosComplement,
                    "signed" => Encoding::SignedBit,
                    "offset" => Encoding::BinaryOffset,
                    "incdec" => Encoding::IncDec,
                    "difference" => Encoding::Difference,
                    "wrapping" => Encoding::Wrapping,
                    other => panic!("{line}: {other}"),
                },
                way: match next() {
                    "right" => Rotation::Clockwise,
                    "left" => Rotation::CounterClockwise,
                    _ => Rotation::Any,
                },
                channel,
            },
            kind @ ("fine" | "fine-first") => Trigger::FineControl {
                controllers: numbers(next()),
                value: wide,
                channel,
                fine_first: kind == "fine-first",
            },
            kind @ ("rpn" | "nrpn") => Trigger::Parameter {
                registered: kind == "rpn",
                parameter: next().parse().expect("a parameter"),
                value: wide,
                channel,
            },
            kind @ ("push" | "move") => Trigger::GamepadStick {
                sticks: numbers(next()),
                push: match next() {
                    "positive" => Push::Positive,
                    "negative" => Push::Negative,
                    _ => Push::Any,
                },
                dead_zone: next().parse().expect("a dead zone"),
                readings: if kind == "push" { Readings::First } else { Readings::Each },
            },
            kind @ ("pull" | "follow") => Trigger::GamepadTrigger {
                triggers: numbers(next()),
                threshold: next().parse().expect("a threshold"),
                readings: if kind == "pull" { Readings::First } else { Readings::Each },
            },
            other => panic!("{line}: there is no trigger {other}"),
        };
        let mut spec = RuleSpec { name: Some(name), ..RuleSpec::new(trigger, None) };
        for option in words {
            match option.split_once('=').unwrap_or((option, "")) {
                ("defer", _) => spec.defer = true,
                ("consume", _) => spec.consume = true,
                ("prio", value) => spec.priority = value.parse().expect("a priority"),
                ("mode", value) => spec.scope = Scope::Mode(value.into()),
                ("device", value) => spec.device = Some(value.into()),
                ("goto", value) => spec.action = Some(value.into()),
                ("while", value) => (spec.action, spec.lasts) = (Some(value.into()), Lasts::WhileHeld),
                ("once", value) => (spec.action, spec.lasts) = (Some(value.into()), Lasts::OnePress),
                ("ch", value) => set_channel(&mut spec.trigger, number(value)),
                ("vel", value) | ("val", value) => set_values(&mut spec.trigger, value),
                ("if", value) => spec.condition = Some(condition(value)),
                ("decide", value) => spec.choices.conditions.push(condition(value)),
                ("hold", _) => spec.choices.holds = true,
                (other, _) => panic!("{line}: there is no option {other}"),
            }
        }
        spec
    }
}

fn number(text: &str) -> u8 {
    text.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

fn numbers(text: &str) -> NumberRange {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    NumberRange { first: first.parse().expect("a number"), last: last.parse().expect("a number") }
}

fn values(text: &str) -> ValueRange {
    let (min, max) = text.split_once('-').unwrap_or((text, text));
    ValueRange { min: min.parse().expect("a value"), max: max.parse().expect("a value") }
}

fn time(text: &str) -> Nanos {
    let line = format!("{text} x clock");
    Timeline::parse(&line).unwrap_or_else(|_| panic!("{text} is no time")).entries[0].at
}

fn set_channel(trigger: &mut Trigger, on: u8) {
    match trigger {
        Trigger::Note { channel, .. }
        | Trigger::LongPress { channel, .. }
        | Trigger::DoubleTap { channel, .. }
        | Trigger::Chord { channel, .. }
        | Trigger::Sequence { channel, .. }
        | Trigger::Turn { channel, .. }
        | Trigger::FineControl { channel, .. }
        | Trigger::Parameter { channel, .. } => *channel = Some(on),
        other => panic!("no channel in {other:?}"),
    }
}

fn set_values(trigger: &mut Trigger, text: &str) {
    match trigger {
        Trigger::Note { velocity: range, .. }
        | Trigger::LongPress { velocity: range, .. }
        | Trigger::DoubleTap { velocity: range, .. }
        | Trigger::ControlChange { value: range, .. }
        | Trigger::FineControl { value: range, .. }
        | Trigger::Parameter { value: range, .. } => *range = values(text),
        other => panic!("no values in {other:?}"),
    }
}

/// `held:40`, `cc:7:0-63`, `mode:Live`, `front:Live`, `runs:Live`, `clock:22-6`, `day:monday`, `never`; with
/// `!` in front for the opposite.
fn condition(text: &str) -> Condition {
    if let Some(inner) = text.strip_prefix('!') {
        return Condition::Not(Box::new(condition(inner)));
    }
    let (kind, value) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "held" => Condition::NoteHeld { notes: numbers(value), channel: None, device: None },
        "cc" => {
            let (controller, range) = value.split_once(':').expect("a controller and its values");
            let (controller, value) = (number(controller), values(range));
            Condition::CcValueInRange { controller, value, channel: None, device: None }
        }
        "mode" => Condition::ModeIs(value.into()),
        "front" => Condition::AppFrontmost(AppName::new(value)),
        "runs" => Condition::AppRunning(AppName::new(value)),
        "clock" => {
            let ValueRange { min, max } = values(value);
            Condition::TimeRange(TimeRange { from: u32::from(min) * 3600, to: u32::from(max) * 3600 })
        }
        "day" => Condition::DayOfWeek(
            Day::ALL.into_iter().filter(|day| format!("{day:?}").eq_ignore_ascii_case(value)).collect(),
        ),
        "never" => Condition::Never,
        other => panic!("there is no condition {other}"),
    }
}

#[test]
fn every_decision_is_as_it_is_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gestures");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the cases").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let (mut count, mut report) = (0, String::new());
    for path in files {
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        for section in text.split("=== ").skip(1).map(|text| Section::parse(&file, text)) {
            for test in &section.tests {
                count += 1;
                let differences = test.run(&section.rules, |firing, _| firing.rule.action.clone());
                if !differences.is_empty() {
                    let _ = writeln!(report, "{file}: {}: {}", section.heading, test.name);
                    differences.iter().for_each(|difference| {
                        let _ = writeln!(report, "    {}", difference.message);
                    });
                }
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
    assert!(count >= 200, "only {count} cases");
}
