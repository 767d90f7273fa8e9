//! Tests of mappings that a person keeps beside the configuration: what happens, and what should follow from
//! it.
//!
//! A file has one test or more. In a test, the lines of a [`Timeline`](crate::Timeline) say what happens,
//! and lines that begin with `->` say which rules then fire, by name and in order:
//!
//! ```text
//! test "a quick double tap is no press"
//! 0ms    pads  note-on 36 100
//! +80ms  pads  note-off 36
//! +80ms  pads  note-on 36 90
//! -> "next song"
//!
//! test "a long press, some time after a mode was left"
//! mode Live
//! 0ms    pads  note-on 40 64
//! -> 500ms  "blackout" "house lights"
//! ```
//!
//! `-> NAME…` is at the time of the last line that has one, `-> TIME NAME…` at that time, which may be
//! given from there (`+20ms`). A test is passed if exactly these rules fire, at exactly these times; rules
//! without a name are called by their number, `rule 3`. When the lines end, everything that is due
//! later still happens.
//!
//! Lines that begin with `=>` say what goes out, where actions are performed on recorded sinks: `=> EFFECT` at the time of
//! the last line that has one, `=> TIME EFFECT` at that time, `=> nothing` where nothing does. See [`effect`](crate::effect)
//! for how effects are written. A test with such a line is passed if exactly these effects go out, at exactly these
//! times, in this order; in one without, they are not looked at. A test that has only these does not check rules.
//!
//! Of a rule whose action decides by conditions, what it decides may be said behind its name: `-> loop [then]`,
//! `-> loop [then else]` for two conditions in the order of the file. Without this either will do.
//!
//! | Write | for |
//! |---|---|
//! | `mode NAME` | another mode, as of the next event |
//! | `clock DAY HH:MM` | the local time at this point: `clock monday 22:30` |
//! | `front NAME` | the application in front; `front` alone: none |
//! | `runs NAME…` | the applications that run |
//! | `gone DEVICE` | a device is unplugged |

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use conductor_engine::{Day, Environment, EnvironmentHandle, Firing, LocalTime, RuleSetHandle};
use conductor_event::{DeviceEvent, DeviceId, Event, Nanos};

use crate::effect::Effect;
use crate::player::{AtOnce, Happened, Performer, Player, Sent};
use crate::timeline::{Found, Line, Mistake, Parsed, Time, TimelineError, Token, mistake, parse_line, parse_time};

/// One test.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingTest {
    /// What it is called.
    pub name: String,
    /// The line that it begins in, from 1.
    pub line: usize,
    steps: Vec<Step>,
    expected: Vec<Expected>,
    effects: Vec<ExpectedEffect>,
}

#[derive(Clone, Debug, PartialEq)]
struct Step {
    line: usize,
    at: Nanos,
    act: Act,
}

#[derive(Clone, Debug, PartialEq)]
enum Act {
    Event(DeviceEvent<Event>),
    Mode(String),
    Clock(Day, u32),
    Front(Option<String>),
    Runs(Vec<String>),
    Gone(DeviceId),
}

#[derive(Clone, Debug, PartialEq)]
struct Expected {
    line: usize,
    at: Nanos,
    rule: String,
    /// Which of its conditions held; `None` if it does not matter.
    decided: Option<Vec<bool>>,
}

/// What goes out at a time; `None` if nothing does.
#[derive(Clone, Debug, PartialEq)]
struct ExpectedEffect {
    line: usize,
    at: Nanos,
    effect: Option<Effect>,
}

impl Expected {
    fn is_met_by(&self, fired: &Fired) -> bool {
        self.rule == fired.rule && self.decided.as_ref().is_none_or(|decided| *decided == fired.decided)
    }
}

/// A rule that fired in a test.
struct Fired {
    at: Nanos,
    rule: String,
    /// Which of the conditions held by which its action decides.
    decided: Vec<bool>,
}

/// A rule as tests write it, with what it decided: `"loop" [then]`.
struct Named<'a>(&'a str, &'a [bool]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(rule, decided) = self;
        let branches: Vec<_> = decided.iter().map(|&held| if held { "then" } else { "else" }).collect();
        write!(f, "{rule:?}")?;
        if branches.is_empty() { Ok(()) } else { write!(f, " [{}]", branches.join(" ")) }
    }
}

/// Where what happened is not what should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the expectation; `None` if it was not expected.
    pub line: Option<usize>,
    /// What is different, as text.
    pub message: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Reads a file of tests. What stands before the first `test` is a test without a name.
///
/// # Errors
/// The first mistake of every line that has one.
pub fn parse_mapping_tests(text: &str) -> Result<Vec<MappingTest>, Vec<TimelineError>> {
    let mut tests = Vec::new();
    let mut errors = Vec::new();
    let mut test = MappingTest::begun(String::new(), 1);
    let mut now = 0;
    for (index, text) in text.lines().enumerate() {
        match test.take_line(index + 1, text, &mut now) {
            Ok(None) => {}
            Ok(Some(name)) => {
                tests.push(std::mem::replace(&mut test, MappingTest::begun(name, index + 1)));
                now = 0;
            }
            Err(mistake) => errors.push(mistake.in_line(index + 1, text)),
        }
    }
    tests.push(test);
    // A clock runs beside the lines after it.
    tests.iter_mut().for_each(|test| test.steps.sort_by_key(|step| step.at));
    tests.retain(|test| !(test.name.is_empty() && test.is_empty() && test.steps.is_empty()));
    if errors.is_empty() { Ok(tests) } else { Err(errors) }
}

impl MappingTest {
    fn begun(name: String, line: usize) -> Self {
        Self { name, line, steps: Vec::new(), expected: Vec::new(), effects: Vec::new() }
    }

    /// Whether it expects nothing of its events.
    fn is_empty(&self) -> bool {
        self.expected.is_empty() && self.effects.is_empty()
    }

    /// Whether it says what goes out.
    pub fn demands_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// The rules that it expects, with the lines that name them.
    pub fn rules(&self) -> impl Iterator<Item = (usize, &str)> {
        self.expected.iter().map(|expected| (expected.line, expected.rule.as_str()))
    }

    /// The devices that its lines name, with the lines.
    pub fn devices(&self) -> impl Iterator<Item = (usize, &DeviceId)> {
        self.steps.iter().filter_map(|step| match &step.act {
            Act::Event(event) => Some((step.line, &event.device)),
            Act::Gone(device) => Some((step.line, device)),
            _ => None,
        })
    }

    /// Reads a line. Returns the name of the next test if it begins one.
    fn take_line(&mut self, number: usize, text: &str, now: &mut Nanos) -> Parsed<Option<String>> {
        let mut line = Line::new(text);
        let Some(first) = line.next()? else { return Ok(None) };
        let Token::Word(word) = first.token else {
            return mistake(
                first.at,
                "a line begins with a time, or with one of test, ->, =>, mode, clock, front, runs, gone",
            );
        };
        let act = match word {
            "test" => {
                let name = line.name("the name of the test")?;
                return ended(&mut line, Some(name));
            }
            "->" => {
                self.take_expectation(number, &mut line, *now)?;
                return Ok(None);
            }
            "=>" => {
                self.take_effect(number, &mut line, *now)?;
                return Ok(None);
            }
            "mode" => Act::Mode(line.name("the name of a mode")?),
            "gone" => Act::Gone(DeviceId::new(&line.name("the name of a device")?)),
            "clock" => clock(&mut line)?,
            "front" => Act::Front(line.names()?.pop()),
            "runs" => Act::Runs(line.names()?),
            _ => {
                for entry in parse_line(text, now)? {
                    let event = DeviceEvent { device: DeviceId::new(&entry.device), event: entry.event };
                    self.steps.push(Step { line: number, at: entry.at, act: Act::Event(event) });
                }
                return Ok(None);
            }
        };
        self.steps.push(Step { line: number, at: *now, act });
        ended(&mut line, None)
    }

    fn take_expectation(&mut self, number: usize, line: &mut Line<'_>, now: Nanos) -> Parsed<()> {
        let mut at = now;
        let mut is_first = true;
        while let Some(found) = line.next()? {
            let time = if is_first { time_of(&found, now)? } else { None };
            if let Some(time) = time {
                at = time;
            } else if let (Token::Open, Some(expected)) = (&found.token, self.expected.last_mut())
                && expected.line == number
                && expected.decided.is_none()
            {
                expected.decided = Some(decisions(line)?);
            } else {
                let rule = match found.token {
                    Token::Word(word) => word.to_owned(),
                    Token::Text(text) => text,
                    _ => return mistake(found.at, "the name of a rule goes here: a word, or text in double quotes"),
                };
                self.expected.push(Expected { line: number, at, rule, decided: None });
            }
            is_first = false;
        }
        Ok(())
    }

    /// `=> [TIME] EFFECT`, or `=> [TIME] nothing`.
    fn take_effect(&mut self, number: usize, line: &mut Line<'_>, now: Nanos) -> Parsed<()> {
        let mut at = now;
        let mut before = line.at();
        let mut first = line.next()?;
        if let Some(found) = &first
            && let Some(time) = time_of(found, now)?
        {
            at = time;
            before = line.at();
            first = line.next()?;
        }
        let effect = if first.is_some_and(|found| matches!(found.token, Token::Word("nothing"))) {
            ended(line, None)?
        } else {
            line.back_to(before);
            Some(Effect::parse(line)?)
        };
        self.effects.push(ExpectedEffect { line: number, at, effect });
        Ok(())
    }

    /// Plays the test against rules, and says which rules fire differently; what goes out is not looked at. `at_once`
    /// does what the action of a rule that fires does at once: it returns the mode that it changes to, and adds the events
    /// that it brings about.
    pub fn run<A>(
        &self,
        rules: &Arc<RuleSetHandle<A>>,
        at_once: impl Fn(&Firing<'_, A>, &mut VecDeque<DeviceEvent<Event>>) -> Option<Arc<str>>,
    ) -> Vec<Difference> {
        let mut differences = Vec::new();
        let (fired, _) = self.play(rules, &mut AtOnce(at_once), &mut differences);
        self.compare(fired, &mut differences);
        differences
    }

    /// Plays the test against rules, has `performer` do what they start, and says what fires differently and goes out
    /// differently. Effects are shown by `show`, and one that is demanded as it is shown is met.
    pub fn run_on<A>(
        &self,
        rules: &Arc<RuleSetHandle<A>>,
        performer: &mut dyn Performer<A>,
        show: impl Fn(&Effect) -> String,
    ) -> Vec<Difference> {
        let mut differences = Vec::new();
        if self.steps.is_empty() {
            let message = "nothing happens in this test: it has no event".to_owned();
            differences.push(Difference { line: Some(self.line), message });
        }
        let (fired, sent) = self.play(rules, performer, &mut differences);
        if !self.expected.is_empty() || self.effects.is_empty() {
            self.compare(fired, &mut differences);
        }
        if self.demands_effects() {
            self.compare_effects(&sent, show, &mut differences);
        }
        differences
    }

    fn play<A>(
        &self,
        rules: &Arc<RuleSetHandle<A>>,
        performer: &mut dyn Performer<A>,
        differences: &mut Vec<Difference>,
    ) -> (Vec<Fired>, Vec<Sent>) {
        let environment = Arc::new(EnvironmentHandle::new());
        let mut player = Player::new(rules, &environment, performer);
        let mut known = Known::default();
        for step in &self.steps {
            player.advance(step.at);
            match &step.act {
                Act::Event(event) => player.event(step.at, event.clone()),
                Act::Mode(name) => {
                    if let Err(error) = player.set_mode(name) {
                        differences.push(Difference { line: None, message: error.to_string() });
                    }
                }
                Act::Gone(device) => player.forget(device),
                act => environment.set(known.learn(step.at, act)),
            }
        }
        // A clock goes on without end; up to where something is expected it is followed.
        let expected = self.expected.iter().map(|expected| expected.at);
        if let Some(last) = expected.chain(self.effects.iter().map(|expected| expected.at)).max()
            && player.keeps_time()
        {
            player.advance(player.now().max(last));
        }
        if !player.finish() {
            let message = "what was started does not end, and was not followed any longer".to_owned();
            differences.push(Difference { line: None, message });
        }
        let (mut fired, mut sent) = (Vec::new(), Vec::new());
        for happened in player.happened() {
            match happened {
                Happened::Fired { at, name, decided, .. } => fired.push(Fired { at, rule: name, decided }),
                Happened::Sent(one) => sent.push(one),
                Happened::Asked(_) => {}
            }
        }
        (fired, sent)
    }

    /// Pairs what went out with what should have: at each time, one by one in order.
    fn compare_effects(&self, sent: &[Sent], show: impl Fn(&Effect) -> String, differences: &mut Vec<Difference>) {
        let mut times: Vec<Nanos> = self.effects.iter().map(|expected| expected.at).collect();
        times.extend(sent.iter().map(|sent| sent.at));
        times.sort_unstable();
        times.dedup();
        for at in times {
            let here = || self.effects.iter().filter(|expected| expected.at == at);
            let mut sent = sent.iter().filter(|sent| sent.at == at).map(|sent| &sent.effect);
            for ExpectedEffect { line, effect, .. } in here() {
                let Some(wanted) = effect else { continue };
                let sent = sent.next();
                let shown = sent.map(&show);
                if sent.is_some_and(|sent| wanted.is_met_by(sent)) || shown.as_ref() == Some(&wanted.to_string()) {
                    continue;
                }
                let did = shown.map_or_else(|| "nothing did".to_owned(), |shown| format!("this did\n  {shown}"));
                let message = format!("at {} should go out\n  {}\nbut {did}", Time(at), show(wanted));
                differences.push(Difference { line: Some(*line), message });
            }
            let nothing = here().find(|expected| expected.effect.is_none()).map(|expected| expected.line);
            for sent in sent {
                let more = if nothing.is_none() && here().next().is_some() { "else " } else { "" };
                let message = format!("at {} nothing {more}should go out\nbut this did\n  {}", Time(at), show(sent));
                differences.push(Difference { line: nothing, message });
            }
        }
    }

    /// Pairs what fired with what should have: at each time, name by name in order.
    fn compare(&self, fired: Vec<Fired>, differences: &mut Vec<Difference>) {
        let mut expected: Vec<&Expected> = self.expected.iter().collect();
        expected.sort_by_key(|expected| expected.at);
        let mut fired = VecDeque::from(fired);
        for expected in expected {
            let Expected { line, at, rule, decided } = expected;
            let wanted = Named(rule, decided.as_deref().unwrap_or_default());
            let mut report = |message| differences.push(Difference { line: Some(*line), message });
            while let Some(early) = fired.pop_front_if(|fired| fired.at < *at) {
                report(early.out_of_place());
            }
            match fired.front() {
                Some(found) if found.at == *at && expected.is_met_by(found) => {
                    fired.pop_front();
                }
                Some(found) => {
                    let mut message = format!("{wanted} should have fired at {}", Time(*at));
                    // What it decided is of interest where somebody asked for it.
                    let decided = if decided.is_some() { &found.decided[..] } else { &[] };
                    let _ = write!(message, "; {} fired at {}", Named(&found.rule, decided), Time(found.at));
                    report(message);
                    if found.at == *at {
                        fired.pop_front();
                    }
                }
                None => report(format!("{wanted} should have fired at {}, and nothing did", Time(*at))),
            }
        }
        let left = fired.into_iter();
        differences.extend(left.map(|fired| Difference { line: None, message: fired.out_of_place() }));
    }
}

impl Fired {
    fn out_of_place(&self) -> String {
        format!("{:?} fired at {}, and should not have", self.rule, Time(self.at))
    }
}

/// The time of an expectation, if this is one. Times of what should happen need not come in order, and may lie before the
/// last event.
fn time_of(found: &Found<'_>, now: Nanos) -> Parsed<Option<Nanos>> {
    match found.token {
        Token::Word(word) if word.starts_with('+') => parse_time(found, now).map(Some),
        Token::Word(word) if word.starts_with(|c: char| c.is_ascii_digit()) => parse_time(found, 0).map(Some),
        _ => Ok(None),
    }
}

/// What a test has said of the system so far.
#[derive(Default)]
struct Known {
    local: Option<LocalTime>,
    front: Option<String>,
    runs: Vec<String>,
}

impl Known {
    fn learn(&mut self, moment: Nanos, act: &Act) -> Environment {
        match act {
            Act::Clock(day, second) => self.local = Some(LocalTime { moment, day: *day, second: *second }),
            Act::Front(name) => self.front.clone_from(name),
            Act::Runs(names) => self.runs.clone_from(names),
            Act::Event(_) | Act::Mode(_) | Act::Gone(_) => {}
        }
        let mut environment = Environment::unknown().running(self.runs.iter().map(String::as_str));
        if let Some(local) = self.local {
            environment = environment.local(local);
        }
        if let Some(front) = &self.front {
            environment = environment.frontmost(front);
        }
        environment
    }
}

/// `then` and `else` up to the bracket's end.
fn decisions(line: &mut Line<'_>) -> Parsed<Vec<bool>> {
    let mut decided = Vec::new();
    loop {
        let found = line.expect("then, else, or ]")?;
        match found.token {
            Token::Word("then") => decided.push(true),
            Token::Word("else") => decided.push(false),
            Token::Close if !decided.is_empty() => return Ok(decided),
            _ => return mistake(found.at, "in brackets goes what the rule decides: then or else"),
        }
    }
}

fn ended<T>(line: &mut Line<'_>, value: T) -> Parsed<T> {
    match line.next()? {
        Some(extra) => mistake(extra.at, "the line should end here"),
        None => Ok(value),
    }
}

fn clock(line: &mut Line<'_>) -> Parsed<Act> {
    let word = line.name("a day, such as monday")?;
    let day = Day::ALL.into_iter().find(|day| format!("{day:?}").eq_ignore_ascii_case(&word));
    let found = line.expect("a time, such as 22:30")?;
    let wrong = |message: String| Mistake { at: found.at, message };
    let day = day.ok_or_else(|| wrong(format!("`{word}` is no day of the week")))?;
    let second = match found.token {
        Token::Word(time) => time.split_once(':').and_then(|(hours, minutes)| {
            let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
            (hours < 24 && minutes < 60).then_some(hours * 3600 + minutes * 60)
        }),
        _ => None,
    };
    let second = second.ok_or_else(|| wrong("a time is written 22:30".to_owned()))?;
    Ok(Act::Clock(day, second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::Request;
    use conductor_engine::{
        AppName, Choices, Condition, Edge, NumberRange, RuleSource, RuleSpec, Scope, Trigger, ValueRange, compile,
    };

    fn rules() -> Arc<RuleSetHandle<Option<Arc<str>>>> {
        let note = |note| Trigger::Note {
            notes: NumberRange::one(note),
            velocity: ValueRange::SEVEN_BIT,
            edge: Edge::Press,
            channel: None,
        };
        let rule = |number, name: &str, scope, mode: Option<&str>| RuleSpec {
            name: Some(name.into()),
            scope,
            ..RuleSpec::new(note(number), mode.map(Arc::from))
        };
        let conditions = vec![Condition::ModeIs("Live".into()), Condition::AppFrontmost(AppName::new("Live"))];
        let choices = Choices { conditions, holds: false };
        let rules = vec![
            rule(36, "kick", Scope::Global, None),
            rule(37, "go live", Scope::Global, Some("Live")),
            rule(36, "live kick", Scope::Mode("Live".into()), None),
            RuleSpec { name: None, ..rule(38, "", Scope::Global, None) },
            RuleSpec { choices, ..rule(39, "loop", Scope::Global, None) },
        ];
        let set = compile(RuleSource { modes: vec!["Play".into(), "Live".into()], rules }).unwrap();
        Arc::new(RuleSetHandle::new(set))
    }

    fn told(text: &str) -> Vec<String> {
        let tests = parse_mapping_tests(text).unwrap();
        let differences = tests.iter().flat_map(|test| test.run(&rules(), |firing, _| firing.rule.action.clone()));
        differences.map(|difference| difference.to_string()).collect()
    }

    #[test]
    fn a_test_that_says_what_happens_passes() {
        let text = r#"
            test "one"
            0ms pads note-on 36 1
            -> kick
            10ms pads note-on 37 1
            -> "go live"
            +5ms pads note-on 36 1
            +5ms pads note-on 38 1
            -> 15ms kick "live kick"
            -> "rule 4"
            test "two begins anew"
            mode Live
            1s pads note-on 36 1
            -> kick "live kick"
            2s pads note-on 39 1
            -> loop [then else]
            front Live
            3s pads note-on 39 1
            4s pads note-on 39 1
            -> 3s "loop" [then then]
            -> loop
        "#;
        assert_eq!(told(text), [""; 0]);
    }

    #[test]
    fn every_difference_is_told() {
        let text = "0ms pads note-on 36 1\n5ms pads note-on 38 1\n-> 5ms kick\n-> 9ms kick\nmode Nowhere";
        assert_eq!(
            told(text),
            [
                r#"there is no mode called "Nowhere""#,
                r#"line 3: "kick" fired at 0s, and should not have"#,
                r#"line 3: "kick" should have fired at 5ms; "rule 4" fired at 5ms"#,
                r#"line 4: "kick" should have fired at 9ms, and nothing did"#,
            ]
        );
        let text =
            "0ms pads note-on 39 1\n-> loop [then else]\n1ms pads note-on 39 1\n-> loop [else]\n-> 2ms loop [else]";
        assert_eq!(
            told(text),
            [
                r#"line 2: "loop" [then else] should have fired at 0s; "loop" [else else] fired at 0s"#,
                r#"line 4: "loop" [else] should have fired at 1ms; "loop" [else else] fired at 1ms"#,
                r#"line 5: "loop" [else] should have fired at 2ms, and nothing did"#,
            ]
        );
    }

    /// Sends the number of the rule, from 1, as a MIDI clock to that many outputs, and once more 5 ms later.
    #[derive(Default)]
    struct Clocks {
        due: Vec<(Nanos, usize)>,
        sent: Vec<Sent>,
    }

    impl Clocks {
        fn send(&mut self, at: Nanos, number: usize) {
            let effect = Effect::Midi { output: format!("out{number}"), message: vec![0xF8] };
            self.sent.push(Sent { at, rule: None, effect });
        }
    }

    impl Performer<Option<Arc<str>>> for Clocks {
        fn fire(
            &mut self,
            firing: &Firing<'_, Option<Arc<str>>>,
            _: &mut VecDeque<DeviceEvent<Event>>,
        ) -> Option<Arc<str>> {
            let number = firing.rule.id.0 as usize + 1;
            self.send(firing.at, number);
            self.due.push((firing.at + 5_000_000, number));
            firing.rule.action.clone()
        }

        fn due(&self) -> Option<Nanos> {
            self.due.first().map(|(at, _)| *at)
        }

        fn advance(&mut self, at: Nanos) -> Vec<Request> {
            let (_, number) = self.due.remove(0);
            self.send(at, number);
            Vec::new()
        }

        fn sent(&mut self) -> Vec<Sent> {
            std::mem::take(&mut self.sent)
        }
    }

    fn told_of_effects(text: &str) -> Vec<String> {
        let tests = parse_mapping_tests(text).unwrap();
        let differences =
            tests.iter().flat_map(|test| test.run_on(&rules(), &mut Clocks::default(), ToString::to_string));
        differences.map(|difference| difference.to_string()).collect()
    }

    #[test]
    fn what_goes_out_is_demanded_with_its_time() {
        let text = "test a\n0ms pads note-on 38 1\n-> \"rule 4\"\n=> MIDI out4 F8\n=> +5ms MIDI out4 clock\n\
                    test b\n7ms pads note-on 38 1\n=> 12ms MIDI out4 F8\n=> 7ms MIDI out4 F8\n\
                    test c\n0ms pads note-on 1 1\n=> nothing\n\
                    test d\n0ms pads note-on 38 1\n-> \"rule 4\"\n\
                    test e\n0ms pads note-on 38 1\n=> MIDI out4 F8\n=> 1ms nothing\n=> 5ms MIDI out4 F8";
        assert_eq!(told_of_effects(text), [""; 0]);
    }

    #[test]
    fn what_goes_out_differently_is_shown_beside_what_should() {
        let text = "0ms pads note-on 38 1\n=> MIDI out9 F8\n=> MIDI out1 F8\n=> 5ms nothing";
        assert_eq!(
            told_of_effects(text),
            [
                "line 2: at 0s should go out\n  MIDI out9 F8\nbut this did\n  MIDI out4 F8",
                "line 3: at 0s should go out\n  MIDI out1 F8\nbut nothing did",
                "line 4: at 5ms nothing should go out\nbut this did\n  MIDI out4 F8",
            ]
        );
        let text = "0ms pads note-on 38 1\n=> MIDI out4 F8";
        let missed = "at 5ms nothing should go out\nbut this did\n  MIDI out4 F8";
        assert_eq!(told_of_effects(text), [missed]);
        let both = told_of_effects("0ms pads note-on 38 1\n-> kick\n=> MIDI out4 F8\n=> 5ms MIDI out4 F8");
        assert_eq!(both, [r#"line 2: "kick" should have fired at 0s; "rule 4" fired at 0s"#]);
        assert_eq!(told_of_effects("test x"), ["line 1: nothing happens in this test: it has no event"]);
    }

    #[test]
    fn every_line_with_a_mistake_is_reported() {
        let text = "test\n\"x\"\nclock today 22:30\nclock monday 25:00\n-> [\nsoon pads clock\nmode a b\n-> a [now]\n-> a []\n-> a [then] [else]";
        let errors = parse_mapping_tests(text).unwrap_err();
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let starts = [
            "line 1, column 5: missing here: the name of the test",
            "line 2, column 1: a line begins with a time, or with one of test",
            "line 3, column 13: `today` is no day of the week",
            "line 4, column 14: a time is written 22:30",
            "line 5, column 4: the name of a rule goes here",
            "line 6, column 1: `soon` is not a time",
            "line 7, column 8: the line should end here",
            "line 8, column 7: in brackets goes what the rule decides",
            "line 9, column 7: in brackets goes what the rule decides",
            "line 10, column 13: the name of a rule goes here",
        ];
        assert_eq!(told.len(), starts.len(), "{told:#?}");
        for (told, start) in told.iter().zip(starts) {
            assert!(told.starts_with(start), "{told}\n{start}");
        }
    }
}
