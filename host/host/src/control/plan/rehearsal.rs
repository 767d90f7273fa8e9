//! The rehearsal, a dry run: what would have fired differently, had a plan been in force for the events that the
//! flight recorder still has.

use std::sync::Arc;

use conductor_engine::explain::stand_ins;
use conductor_engine::{Engine, EnvironmentHandle, Firing, Rule, RuleSet, RuleSetHandle, Sink, Trigger};
use conductor_event::{Cause, DeviceEvent, DeviceId, ModeIx, Record};
use conductor_stdx::plural::plural;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Differences that are listed; the others are counted.
const MAX_DIFFERENCES: usize = 20;
/// Mappings that are listed as not tried; the others are counted.
const MAX_UNTRIED: usize = 20;
/// Pairs of a mapping and an event that are compared at most: a plan may change every mapping there is.
const MAX_COMPARED: usize = 4_000_000;

/// An event that was recorded.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The event, and what came of it.
    pub record: Record,
    /// The device that it would have come from, had the plan been in force.
    pub device: DeviceId,
}

/// A mapping that the plan adds or changes.
#[derive(Debug, Clone)]
pub struct NewMapping {
    /// Its name, or its place.
    pub name: String,
    /// The mode that it is in; `None` if it applies in every mode.
    pub mode: Option<String>,
    /// The device whose events it waits for; `None` if it is for every device.
    pub device: Option<DeviceId>,
    /// What it waits for.
    pub trigger: Trigger,
}

impl NewMapping {
    /// Whether a rule was made of it, as far as its place, trigger and name tell.
    fn is_of<A>(&self, rule: &Rule<A>, rules: &RuleSet<A>) -> bool {
        let mode = self.mode.as_deref().and_then(|mode| rules.mode_index(mode));
        (rule.mode, rule.device.as_ref()) == (mode, self.device.as_ref())
            && rule.name.as_deref().is_none_or(|name| name == self.name)
            && rule.trigger == self.trigger
    }
}

/// What would have been different.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rehearsal {
    /// The events that were played again.
    pub events: usize,
    /// How many of them would have done something else.
    pub different: usize,
    /// The last of those.
    pub shown: Vec<Difference>,
    /// The mappings that the plan adds or changes and that none of the events could have triggered, by their names, or
    /// their places: what they do was not tried. At most 20.
    #[serde(default)]
    pub untried: Vec<String>,
    /// How many more of those there are.
    #[serde(default)]
    pub more_untried: usize,
    /// Why it could not be tried on any; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impossible: Option<String>,
}

impl Rehearsal {
    /// A rehearsal that could not be.
    pub fn impossible(reason: String) -> Self {
        Self { impossible: Some(reason), ..Self::default() }
    }

    /// What came of it, as text without a full stop.
    pub fn summary(&self) -> String {
        if let Some(reason) = &self.impossible {
            return format!("not rehearsed: {reason}");
        }
        let tried = format!("tried on {} since the last change", plural(self.events, "event"));
        match self.different {
            _ if self.events == 0 => "no event has come since the last change that it could be tried on".to_owned(),
            0 => format!("{tried}: with it, all of them do the same as before"),
            other => format!("{tried}: with it, {other} do something else than before"),
        }
    }

    /// The mappings that were not tried, a line each without a full stop. None if no event came at all, as the
    /// [summary](Self::summary) says.
    pub fn untried_lines(&self) -> Vec<String> {
        if self.events == 0 {
            return Vec::new();
        }
        let named = self.untried.iter().map(|name| format!("not tried: {name} (nothing like its trigger came)"));
        let more = (self.more_untried > 0).then(|| format!("not tried: {}", plural(self.more_untried, "more mapping")));
        named.chain(more).collect()
    }
}

/// An event that would have done something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// When it came, in nanoseconds since the host started.
    pub at: u64,
    /// Where it came from.
    pub device: String,
    /// What it was, in the words of the timeline language.
    pub event: String,
    /// What fired.
    pub was: Vec<String>,
    /// What would have fired.
    pub would_be: Vec<String>,
}

/// Plays recorded events against two sets of rules, gestures and all. `name` says what a rule does, in
/// words that mean the same in both; `mappings` are those that `before` does not have. One of these that fires in the
/// place of a rule with the same words does something else, too: it sends elsewhere, for example.
///
/// Modes are taken as they were when the events came: that a rule would have switched to another one is not
/// followed. What the system said then, such as the time of day, is taken to be what `environment` say now. A
/// gesture counts for the last event before it is found.
pub fn rehearse<A>(
    heard: &[Heard],
    before: Arc<RuleSetHandle<A>>,
    after: Arc<RuleSetHandle<A>>,
    environment: &Arc<EnvironmentHandle>,
    name: impl Fn(&Rule<A>) -> String,
    mappings: &[NewMapping],
) -> Rehearsal {
    let modes = before.load().modes().to_vec();
    let heard: Vec<&Heard> = heard.iter().filter(|heard| heard.record.cause == Cause::Input).collect();
    let engine = |rules| Engine::new(rules, Arc::clone(environment));
    let was = play(&heard, |heard| &heard.record.device, &modes, engine(before), &name);
    let planned = after.load();
    let compared = MAX_COMPARED / heard.len().max(1);
    let is_new = |rule: &Rule<A>| mappings.iter().take(compared).any(|mapping| mapping.is_of(rule, &planned));
    let told = |rule: &Rule<A>| (name(rule), is_new(rule));
    let would_be = play(&heard, |heard| &heard.device, &modes, engine(Arc::clone(&after)), told);
    let mut untried = untried(&heard, &would_be.modes, &planned, mappings);
    let more_untried = untried.len().saturating_sub(MAX_UNTRIED);
    untried.truncate(MAX_UNTRIED);
    let both = was.fired.into_iter().zip(would_be.fired).map(|(was, would_be)| {
        let would_be = told_apart(&was, would_be);
        (was, would_be)
    });
    let differences = heard.iter().zip(both).filter(|(_, (was, would_be))| was != would_be);
    let mut different: Vec<_> = differences
        .map(|(Heard { record, .. }, (was, would_be))| Difference {
            at: record.at,
            device: record.device.to_string(),
            event: record.event.to_string(),
            was,
            would_be,
        })
        .collect();
    Rehearsal {
        events: heard.len(),
        different: different.len(),
        shown: different.split_off(different.len().saturating_sub(MAX_DIFFERENCES)),
        untried,
        more_untried,
        impossible: None,
    }
}

/// The words for what would fire. Where they are those for what fired, a new mapping among it is said to be changed.
fn told_apart(was: &[String], would_be: Vec<(String, bool)>) -> Vec<String> {
    let is_same = would_be.iter().map(|(rule, _)| rule).eq(was);
    let told = |(rule, is_new): (String, bool)| if is_same && is_new { format!("{rule}, changed") } else { rule };
    would_be.into_iter().map(told).collect()
}

/// What came of events that were played.
struct Played<T> {
    /// What fired for each of them.
    fired: Vec<Vec<T>>,
    /// The mode in which each met the rules.
    modes: Vec<ModeIx>,
}

/// Plays the events, each as if it came from `device`.
fn play<A, T>(
    heard: &[&Heard],
    device: impl Fn(&Heard) -> &DeviceId,
    modes: &[Arc<str>],
    mut engine: Engine<A>,
    name: impl Fn(&Rule<A>) -> T,
) -> Played<T> {
    let mut recorder = FiringRecorder { name, fired: Vec::with_capacity(heard.len()) };
    let mut met_in = Vec::with_capacity(heard.len());
    for &heard in heard {
        let record = &heard.record;
        engine.advance(record.at, &mut recorder);
        if let Some(mode) = modes.get(usize::from(record.mode.0)) {
            // One that is not there any more: then it is the one that a reload would have gone to.
            let _ = engine.set_mode(mode, &mut recorder);
        }
        met_in.push(engine.mode_index());
        recorder.fired.push(Vec::new());
        let event = DeviceEvent { device: device(heard).clone(), event: record.event.clone() };
        engine.event(record.at, event, &mut recorder);
    }
    while let Some(deadline) = engine.deadline() {
        engine.advance(deadline, &mut recorder);
    }
    Played { fired: recorder.fired, modes: met_in }
}

/// The names of those mappings that none of the events could have triggered, each of which met the rules in one of `modes`.
/// Of so many that it would take long the first are looked at. A gesture needs one event that it could begin or go on with.
fn untried<A>(heard: &[&Heard], modes: &[ModeIx], rules: &RuleSet<A>, mappings: &[NewMapping]) -> Vec<String> {
    let is_untried = |mapping: &&NewMapping| {
        let events = stand_ins(&mapping.trigger);
        let mode = mapping.mode.as_deref().map(|mode| rules.mode_index(mode));
        let mut met = heard.iter().zip(modes);
        !met.any(|(heard, met_in)| {
            mapping.device.as_ref().is_none_or(|device| *device == heard.device)
                && mode.is_none_or(|mode| rules.layers(*met_in).any(|layer| Some(layer) == mode))
                && events.iter().any(|event| event.matches(&heard.record.event).is_some())
        })
    };
    let compared = mappings.iter().take(MAX_COMPARED / heard.len().max(1));
    compared.filter(is_untried).map(|mapping| mapping.name.clone()).collect()
}

/// Records the rules that fire, for the last event.
struct FiringRecorder<N, T> {
    name: N,
    fired: Vec<Vec<T>>,
}

impl<A, T, N: Fn(&Rule<A>) -> T> Sink<A> for FiringRecorder<N, T> {
    fn fire(&mut self, firing: Firing<'_, A>) -> Option<Arc<str>> {
        if let Some(last) = self.fired.last_mut() {
            last.push((self.name)(firing.rule));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_engine::{Edge, NumberRange, RuleSource, RuleSpec, Scope, ValueRange, compile};
    use conductor_event::{Event, Fired, MidiMessage};

    type Rules = Arc<RuleSetHandle<&'static str>>;

    fn press_of(note: u16) -> Trigger {
        Trigger::Note {
            notes: NumberRange::one(note),
            velocity: ValueRange::SEVEN_BIT,
            edge: Edge::Press,
            channel: None,
        }
    }

    fn hold_of(note: u16, after: u64) -> Trigger {
        Trigger::LongPress { keys: NumberRange::one(note), velocity: ValueRange::SEVEN_BIT, channel: None, after }
    }

    fn rules(rules: impl IntoIterator<Item = (Trigger, &'static str)>) -> Rules {
        let rules = rules.into_iter().map(|(trigger, action)| RuleSpec::new(trigger, action)).collect();
        let set = compile(RuleSource { modes: vec!["Play".into()], rules }).expect("rules");
        Arc::new(RuleSetHandle::new(set))
    }

    fn press(at: u64, note: u8) -> Heard {
        let record = Record {
            at,
            device: DeviceId::new("pads"),
            event: Event::from(MidiMessage::NoteOn { channel: 0, note, velocity: 100 }),
            cause: Cause::Input,
            mode: ModeIx(0),
            generation: 0,
            fired: Fired::new(),
        };
        Heard { device: record.device.clone(), record }
    }

    fn rehearsed(heard: &[Heard], before: Rules, after: Rules, mappings: &[NewMapping]) -> Rehearsal {
        let environment = Arc::new(EnvironmentHandle::new());
        rehearse(heard, before, after, &environment, |rule| rule.action.to_owned(), mappings)
    }

    fn told(heard: &[Heard], before: Rules, after: Rules) -> (usize, Vec<(u64, String, String)>) {
        let told = rehearsed(heard, before, after, &[]);
        assert_eq!(told.different, told.shown.len());
        let shown = told.shown.iter().map(|it| (it.at, it.was.join(","), it.would_be.join(",")));
        (told.events, shown.collect())
    }

    #[test]
    fn only_what_would_be_different_is_told() {
        let before = rules([(press_of(36), "kick"), (press_of(38), "snare")]);
        let after = rules([(press_of(36), "boom"), (press_of(38), "snare"), (press_of(40), "new")]);
        let records = [press(1, 36), press(2, 38), press(3, 40), press(4, 41)];
        let (events, shown) = told(&records, before, after);
        assert_eq!(events, 4);
        assert_eq!(shown, [(1, "kick".into(), "boom".into()), (3, String::new(), "new".into())]);
    }

    // Its words are the same when its target is another.
    #[test]
    fn a_mapping_that_is_changed_does_something_else_whatever_it_is_called() {
        let same = || rules([(press_of(36), "OscSend"), (press_of(38), "snare")]);
        let in_play = || {
            let scope = Scope::Mode("Play".into());
            let rules = vec![RuleSpec { scope, ..RuleSpec::new(press_of(36), "OscSend") }];
            Arc::new(RuleSetHandle::new(compile(RuleSource { modes: vec!["Play".into()], rules }).expect("rules")))
        };
        let of_play = NewMapping { mode: Some("Play".into()), ..new_mapping("cue", press_of(36)) };
        let heard = [press(1, 36), press(2, 38)];
        let told = rehearsed(&heard, same(), same(), &[new_mapping("cue", press_of(36))]);
        let shown: Vec<_> = told.shown.iter().map(|it| (it.at, it.was.join("; "), it.would_be.join("; "))).collect();
        assert_eq!(shown, [(1, "OscSend".into(), "OscSend, changed".into())]);
        let in_mode = rehearsed(&heard, in_play(), in_play(), std::slice::from_ref(&of_play));
        assert_eq!(in_mode.different, 1, "{in_mode:?}");
        let elsewhere = rehearsed(&heard, same(), same(), &[of_play]);
        assert_eq!(elsewhere.different, 0, "it is in a mode, and the rules are in none: {elsewhere:?}");
    }

    #[test]
    fn gestures_are_played_too() {
        let before = rules([(press_of(36), "kick")]);
        let after = rules([(press_of(36), "kick"), (hold_of(36, 100), "hold")]);
        // Found between two events, and after the last one; what is no input was made of them.
        let mut gesture = press(150, 36);
        gesture.record.cause = Cause::Gesture;
        let records = [press(1, 36), gesture, press(200, 38), press(300, 36)];
        let (events, shown) = told(&records, before, after);
        assert_eq!(events, 3);
        assert_eq!(shown, [(1, "kick".into(), "kick,hold".into()), (300, "kick".into(), "kick,hold".into())]);
    }

    #[test]
    fn an_event_meets_the_new_rules_as_of_the_device_that_it_would_have_come_from() {
        let of_device = |device: &str, action| {
            let rule = RuleSpec { device: Some(device.to_owned()), ..RuleSpec::new(press_of(36), action) };
            let set = compile(RuleSource { modes: vec!["Play".into()], rules: vec![rule] }).expect("rules");
            Arc::new(RuleSetHandle::new(set))
        };
        let bound = Heard { device: DeviceId::new("drums"), ..press(1, 36) };
        let (before, after) = (of_device("pads", "kick"), of_device("drums", "boom"));
        let told = rehearsed(&[bound, press(2, 36)], before, after, &[]);
        let shown: Vec<_> =
            told.shown.iter().map(|it| (&*it.device, it.was.join(","), it.would_be.join(","))).collect();
        assert_eq!(shown, [("pads", "kick".into(), "boom".into()), ("pads", "kick".into(), String::new())]);
    }

    fn new_mapping(name: &str, trigger: Trigger) -> NewMapping {
        NewMapping { name: name.to_owned(), mode: None, device: None, trigger }
    }

    #[test]
    fn a_mapping_that_no_event_could_have_triggered_is_not_tried() {
        let of = |device: &str| Some(DeviceId::new(device));
        let chord = Trigger::Chord { keys: vec![36, 50], channel: None, within: 9 };
        let mappings = [
            new_mapping("kick", press_of(36)),
            new_mapping("snare", press_of(38)),
            NewMapping { device: of("pads"), ..new_mapping("here", press_of(36)) },
            NewMapping { device: of("keys"), ..new_mapping("elsewhere", press_of(36)) },
            NewMapping { mode: Some("Play".into()), ..new_mapping("in this mode", press_of(36)) },
            NewMapping { mode: Some("Mix".into()), ..new_mapping("in another mode", press_of(36)) },
            new_mapping("hold", hold_of(36, 100)),
            new_mapping("hold another", hold_of(37, 100)),
            new_mapping("chord", chord),
        ];
        let spec =
            |name: &str, action| RuleSpec { scope: Scope::Mode(name.into()), ..RuleSpec::new(press_of(36), action) };
        let modes = || {
            let rules = vec![spec("Play", "kick"), spec("Mix", "mute")];
            let set = compile(RuleSource { modes: vec!["Play".into(), "Mix".into()], rules }).expect("rules");
            Arc::new(RuleSetHandle::new(set))
        };
        let told = rehearsed(&[press(1, 36)], modes(), modes(), &mappings);
        assert_eq!(told.untried, ["snare", "elsewhere", "in another mode", "hold another"]);
        assert_eq!(told.untried_lines()[0], "not tried: snare (nothing like its trigger came)");
        let nothing = rehearsed(&[], modes(), modes(), &mappings);
        assert_eq!(nothing.untried.len(), mappings.len());
        assert_eq!(nothing.untried_lines(), [""; 0], "the summary says that no event came");
    }

    #[test]
    fn of_many_that_were_not_tried_the_first_are_named() {
        let mappings: Vec<_> =
            (0..MAX_UNTRIED + 3).map(|number| new_mapping(&number.to_string(), press_of(40))).collect();
        let told = rehearsed(&[press(1, 36)], rules([]), rules([]), &mappings);
        assert_eq!((told.untried.len(), told.more_untried), (MAX_UNTRIED, 3));
        assert_eq!(told.untried_lines().last().map(String::as_str), Some("not tried: 3 more mappings"));
    }

    #[test]
    fn no_more_pairs_are_compared_than_the_limit_allows() {
        let heard: Vec<_> = (0..1000).map(|at| press(at, 36)).collect();
        let mappings = vec![new_mapping("snare", press_of(38)); MAX_COMPARED / heard.len() + 5];
        let told = rehearsed(&heard, rules([]), rules([]), &mappings);
        assert_eq!(told.untried.len() + told.more_untried, MAX_COMPARED / heard.len());
    }
}
