//! The rehearsal, a dry run: what would have fired differently, had a plan been in force for the events that the
//! flight recorder still has.

use std::sync::Arc;

use conductor_engine::{Engine, EnvironmentHandle, Firing, Rule, RuleSetHandle, Sink};
use conductor_event::{Cause, DeviceEvent, Record};
use conductor_stdx::plural::plural;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Differences that are listed; the others are counted.
const MAX_DIFFERENCES: usize = 20;

/// What would have been different.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rehearsal {
    /// The events that were played again.
    pub events: usize,
    /// How many of them would have done something else.
    pub different: usize,
    /// The last of those.
    pub shown: Vec<Difference>,
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
            0 => format!("{tried}: nothing would have been done otherwise"),
            other => format!("{tried}: {other} would have done something else"),
        }
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
/// words that mean the same in both.
///
/// Modes are taken as they were when the events came: that a rule would have switched to another one is not
/// followed. What the system said then, such as the time of day, is taken to be what `environment` say now. A
/// gesture counts for the last event before it is found.
pub fn rehearse<A>(
    records: &[Record],
    before: Arc<RuleSetHandle<A>>,
    after: Arc<RuleSetHandle<A>>,
    environment: &Arc<EnvironmentHandle>,
    name: impl Fn(&Rule<A>) -> String,
) -> Rehearsal {
    let modes = before.load().modes().to_vec();
    let records: Vec<_> = records.iter().filter(|record| record.cause == Cause::Input).collect();
    let played = |rules| play(&records, &modes, Engine::new(rules, Arc::clone(environment)), &name);
    let both = played(before).into_iter().zip(played(after));
    let differences = records.iter().zip(both).filter(|(_, (was, would_be))| was != would_be);
    let mut different: Vec<_> = differences
        .map(|(record, (was, would_be))| Difference {
            at: record.at,
            device: record.device.to_string(),
            event: record.event.to_string(),
            was,
            would_be,
        })
        .collect();
    Rehearsal {
        events: records.len(),
        different: different.len(),
        shown: different.split_off(different.len().saturating_sub(MAX_DIFFERENCES)),
        impossible: None,
    }
}

/// What fires for each of the events.
fn play<A>(
    records: &[&Record],
    modes: &[Arc<str>],
    mut engine: Engine<A>,
    name: impl Fn(&Rule<A>) -> String,
) -> Vec<Vec<String>> {
    let mut heard = FiringRecorder { name, fired: Vec::with_capacity(records.len()) };
    for record in records {
        engine.advance(record.at, &mut heard);
        if let Some(mode) = modes.get(usize::from(record.mode.0)) {
            // One that is not there any more: then it is the one that a reload would have gone to.
            let _ = engine.set_mode(mode, &mut heard);
        }
        heard.fired.push(Vec::new());
        let event = DeviceEvent { device: record.device.clone(), event: record.event.clone() };
        engine.event(record.at, event, &mut heard);
    }
    while let Some(deadline) = engine.deadline() {
        engine.advance(deadline, &mut heard);
    }
    heard.fired
}

/// Records the rules that fire, for the last event.
struct FiringRecorder<N> {
    name: N,
    fired: Vec<Vec<String>>,
}

impl<A, N: Fn(&Rule<A>) -> String> Sink<A> for FiringRecorder<N> {
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
    use conductor_engine::{Edge, NumberRange, RuleSource, RuleSpec, Trigger, ValueRange, compile};
    use conductor_event::{DeviceId, Event, Fired, MidiMessage, ModeIx};

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

    fn press(at: u64, note: u8) -> Record {
        Record {
            at,
            device: DeviceId::new("pads"),
            event: Event::from(MidiMessage::NoteOn { channel: 0, note, velocity: 100 }),
            cause: Cause::Input,
            mode: ModeIx(0),
            generation: 0,
            fired: Fired::new(),
        }
    }

    fn told(records: &[Record], before: Rules, after: Rules) -> (usize, Vec<(u64, String, String)>) {
        let environment = Arc::new(EnvironmentHandle::new());
        let told = rehearse(records, before, after, &environment, |rule| rule.action.to_owned());
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

    #[test]
    fn gestures_are_played_too() {
        let before = rules([(press_of(36), "kick")]);
        let after = rules([(press_of(36), "kick"), (hold_of(36, 100), "hold")]);
        // Found between two events, and after the last one; what is no input was made of them.
        let gesture = Record { cause: Cause::Gesture, ..press(150, 36) };
        let records = [press(1, 36), gesture, press(200, 38), press(300, 36)];
        let (events, shown) = told(&records, before, after);
        assert_eq!(events, 3);
        assert_eq!(shown, [(1, "kick".into(), "kick,hold".into()), (300, "kick".into(), "kick,hold".into())]);
    }
}
