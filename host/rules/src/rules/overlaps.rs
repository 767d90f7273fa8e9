//! Overlaps: mappings that fire for the same events, which the author of a new one may not have intended.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use conductor_engine::Trigger;
use conductor_trigger_overlap::{Overlap, shared_event};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trigger::{some_number, trigger};
use conductor_config::{Config, Mapping, Mode};
use conductor_stdx::plural::plural;
use conductor_terminal::{excerpt, shortened};

/// Pairs that are listed; the others are counted.
const MAX_LISTED: usize = 8;
/// Pairs of mappings that are compared at most: a plan of two changes may move every mapping there is.
const MAX_PAIRS: usize = 4_000_000;
/// Bytes of a mapping's name that are shown.
const MAX_NAME: usize = 120;
/// Pairs of a whole configuration that are listed; the others are counted.
const MAX_PAIRS_LISTED: usize = 1000;
/// Mappings of a whole configuration that are held against each other: two million pairs.
const MAX_COMPARED: usize = 2000;

/// Mappings of a configuration that fire for some of the same events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overlaps {
    /// The pairs.
    pub overlaps: Vec<OverlappingPair>,
    /// How many more pairs there are, which are not listed.
    pub more: usize,
    /// How many mappings at the end of the configuration were not compared, since there are too many.
    pub not_compared: usize,
}

/// Two mappings that fire for some of the same events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverlappingPair {
    /// The one that is asked first.
    pub first: PlacedMapping,
    /// The other one.
    pub second: PlacedMapping,
    /// An event that both wait for, as the event stream has it: `note-on 36 127`. `null` if there is no such line, as of
    /// beats and variables.
    pub event: Option<String>,
    /// Whether the first one consumes such an event, so that the second does not fire for it.
    pub consumed: bool,
}

/// A mapping by its place in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacedMapping {
    /// Its place: `modes/0/mappings/3`, `global_mappings/3`. Mappings of included files come after those of the
    /// configuration's own file.
    pub place: String,
    /// Its name, or its description; `null` if it has neither.
    pub name: Option<String>,
}

impl PlacedMapping {
    /// The mapping at this index of a list.
    pub(super) fn new(list: &str, index: usize, mapping: &Mapping) -> Self {
        let name = mapping.name.as_ref().or(mapping.description.as_ref());
        Self { place: format!("{list}/{index}"), name: name.map(|name| shortened(name, MAX_NAME)) }
    }
}

/// A mapping with what it comes to.
struct Placed<'c> {
    /// The place of its list: `modes/0/mappings`.
    list: String,
    index: usize,
    /// Its mode's name; none is every mode.
    mode: Option<&'c str>,
    mapping: &'c Mapping,
    trigger: Option<Trigger>,
    /// Whether it is new, or other than it was.
    fresh: bool,
}

/// A sentence for each mapping of `after` that is other than in `before` and shares events with one that stays, and
/// for each two such that share some. At most nine.
pub fn overlaps(before: &Config, after: &Config) -> Vec<String> {
    let all = all_placed(before, after);
    let fresh = all.iter().filter(|one| one.fresh).count();
    if fresh.saturating_mul(all.len()) > MAX_PAIRS {
        return vec![format!(
            "{} are new or stand elsewhere: too many to tell which answer to the same events",
            plural(fresh, "mapping")
        )];
    }
    let (mut found, mut more) = (Vec::new(), 0);
    for (at, one) in all.iter().enumerate().filter(|(_, one)| one.fresh) {
        let others = all.iter().enumerate().filter(|(other_at, other)| !other.fresh || *other_at > at);
        for (other_at, other) in others.filter(|(_, other)| one.meets(other)) {
            if found.len() == MAX_LISTED {
                more += 1;
                continue;
            }
            let one_is_first = one.order(at) < other.order(other_at);
            found.push(if one_is_first { together(one, other) } else { together(other, one) });
        }
    }
    if more > 0 {
        found.push(format!("and {} of mappings that answer to some of the same events", plural(more, "more pair")));
    }
    found
}

/// The pairs of mappings of a configuration that fire for some of the same events.
pub fn overlapping_pairs(config: &Config) -> Overlaps {
    let mut all = all_placed(&Config::default(), config);
    let not_compared = all.len().saturating_sub(MAX_COMPARED);
    all.truncate(MAX_COMPARED);
    let mut found = Overlaps { not_compared, ..Overlaps::default() };
    for (at, one) in all.iter().enumerate() {
        for (other_at, other) in all.iter().enumerate().skip(at + 1).filter(|(_, other)| one.meets(other)) {
            if found.overlaps.len() == MAX_PAIRS_LISTED {
                found.more += 1;
                continue;
            }
            let one_is_first = one.order(at) < other.order(other_at);
            found.overlaps.push(if one_is_first { pair(one, other) } else { pair(other, one) });
        }
    }
    found
}

fn pair(first: &Placed<'_>, second: &Placed<'_>) -> OverlappingPair {
    let event = first.trigger.as_ref().zip(second.trigger.as_ref()).and_then(|(one, other)| shared_event(one, other));
    let event = event.map(|event| event.to_string());
    let consumed = first.mapping.consume && first.mapping.condition.is_none();
    OverlappingPair { first: first.shown(), second: second.shown(), event, consumed }
}

/// Every mapping of `after`, in the configuration's order, the global ones last.
fn all_placed<'c>(before: &Config, after: &'c Config) -> Vec<Placed<'c>> {
    let mut all: Vec<Placed<'_>> = Vec::new();
    for MappingList { place, mode, before, after } in lists(before, after) {
        all.extend(placed(place, mode, before, after));
    }
    all
}

/// A list of mappings, as it was and as it is.
pub(super) struct MappingList<'b, 'a> {
    /// Its place: `modes/0/mappings`.
    pub place: String,
    /// Its mode's name; none is every mode.
    pub mode: Option<&'a str>,
    pub before: &'b [Arc<Mapping>],
    pub after: &'a [Arc<Mapping>],
}

/// The lists of mappings of `after`, in the configuration's order, the global one last.
pub(super) fn lists<'b, 'a>(before: &'b Config, after: &'a Config) -> Vec<MappingList<'b, 'a>> {
    let by_name: HashMap<&str, &'b Mode> = before.modes.iter().rev().map(|mode| (mode.name.as_str(), mode)).collect();
    let modes = after.modes.iter().enumerate().map(|(number, mode)| {
        // One that has another name now stands where it stood.
        let known = by_name.get(mode.name.as_str()).copied().or(before.modes.get(number));
        MappingList {
            place: format!("modes/{number}/mappings"),
            mode: Some(&mode.name),
            before: known.map_or(&[][..], |known| &known.mappings),
            after: &mode.mappings,
        }
    });
    let global = MappingList {
        place: "global_mappings".into(),
        mode: None,
        before: &before.global_mappings,
        after: &after.global_mappings,
    };
    modes.chain([global]).collect()
}

/// The mappings of a list; those that differ from the list as it was stand between what is the same at both ends.
fn placed<'c>(
    list: String,
    mode: Option<&'c str>,
    before: &[Arc<Mapping>],
    after: &'c [Arc<Mapping>],
) -> impl Iterator<Item = Placed<'c>> {
    let fresh = differing(before, after);
    after.iter().enumerate().map(move |(index, mapping)| Placed {
        list: list.clone(),
        index,
        mode,
        mapping,
        trigger: trigger(&mapping.trigger.event, &mapping.action, some_number).ok(),
        fresh: fresh.contains(&index),
    })
}

/// Where `after` differs from `before`, between what is the same at both ends.
pub(super) fn differing(before: &[Arc<Mapping>], after: &[Arc<Mapping>]) -> Range<usize> {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let ends = before[start..].iter().rev().zip(after[start..].iter().rev());
    start..after.len() - ends.take_while(|(one, other)| one == other).count()
}

impl Placed<'_> {
    fn meets(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let (one, another) = (&self.mapping.trigger.device, &other.mapping.trigger.device);
        let overlap = self.trigger.as_ref().zip(other.trigger.as_ref()).is_some_and(|(one, other)| one.overlaps(other));
        overlap && same(self.mode, other.mode) && same(one.as_ref(), another.as_ref())
    }

    /// The order in which rules are asked, for the one that is at this place among all mappings.
    fn order(&self, at: usize) -> (Reverse<i32>, bool, usize) {
        (Reverse(self.mapping.priority), self.mapping.trigger.device.is_none(), at)
    }

    fn shown(&self) -> PlacedMapping {
        PlacedMapping::new(&self.list, self.index, self.mapping)
    }

    fn called(&self) -> String {
        match self.shown() {
            PlacedMapping { place, name: Some(name) } => format!("{place} ({})", excerpt(&name, MAX_NAME)),
            PlacedMapping { place, name: None } => place,
        }
    }
}

/// What becomes of an event that both answer to, where `first` is asked first.
fn together(first: &Placed<'_>, second: &Placed<'_>) -> String {
    let (one, other) = (first.called(), second.called());
    let sure = [first, second].iter().all(|placed| placed.mapping.condition.is_none());
    let what = match (first.mapping.consume, sure) {
        (true, true) => format!("{one} is asked first and keeps them from the other"),
        (true, false) => format!("{one} is asked first and keeps them from the other when it fires"),
        (false, true) => "both fire".to_owned(),
        (false, false) => "both may fire".to_owned(),
    };
    format!("{one} and {other} answer to some of the same events: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_config::parse;

    fn config(mappings: &[&str]) -> Config {
        let text: String = mappings.iter().map(|mapping| format!("[[modes.mappings]]\n{mapping}\n")).collect();
        let global = "[[global_mappings]]\nname = 'panic'\ntrigger = { type = 'Note', note = 99 }\naction = { type = 'Suppress' }";
        parse(&format!("[[modes]]\nname = 'Play'\n{text}{global}"), "c.toml").unwrap().config
    }

    const LIGHTS: &str = "name = 'lights'\ntrigger = { type = 'Note', note = '36..51', device = 'pads' }\naction = { type = 'Suppress' }";
    const FADER: &str = "trigger = { type = 'CC', cc = 1 }\naction = { type = 'Suppress' }";

    fn said(before: &[&str], after: &[&str]) -> Vec<String> {
        overlaps(&config(before), &config(after))
    }

    #[test]
    fn a_pad_that_has_a_mapping_already_is_told_of() {
        let copy = "trigger = { type = 'Note', note = 36 }\naction = { type = 'Suppress' }";
        let both = "modes/0/mappings/0 (lights) and modes/0/mappings/1 answer to some of the same events: both fire";
        assert_eq!(said(&[LIGHTS], &[LIGHTS, copy]), [both]);
        let over = format!("name = 'copy'\npriority = 1\nconsume = true\n{copy}");
        let takes = "modes/0/mappings/1 (copy) and modes/0/mappings/0 (lights) answer to some of the same events: \
                     modes/0/mappings/1 (copy) is asked first and keeps them from the other";
        assert_eq!(said(&[LIGHTS], &[LIGHTS, &over]), [takes]);
        let sometimes = format!("condition = {{ type = 'Always' }}\n{copy}");
        assert!(said(&[LIGHTS], &[LIGHTS, &sometimes])[0].ends_with("both may fire"));
        let elsewhere = copy.replace("36", "36, device = 'keys'");
        assert_eq!(said(&[LIGHTS], &[LIGHTS, &elsewhere]), [""; 0]);
        let panic = copy.replace("36", "99");
        assert!(said(&[], &[&panic])[0].contains("global_mappings/0 (panic)"), "a global one is there in every mode");
    }

    #[test]
    fn what_was_so_before_is_not_told_again() {
        assert_eq!(said(&[LIGHTS, LIGHTS], &[LIGHTS, FADER, LIGHTS]), [""; 0]);
        assert_eq!(said(&[LIGHTS, LIGHTS, FADER], &[LIGHTS, LIGHTS]), [""; 0]);
        assert_eq!(said(&[LIGHTS], &[LIGHTS, FADER, FADER]).len(), 1, "two new ones");
    }

    #[test]
    fn so_many_that_all_pairs_would_take_long_are_counted() {
        let mut mappings: Vec<String> =
            (0..3000).map(|n| format!("trigger = {{ type = 'CC', cc = {} }}\npriority = {n}\n", n % 128)).collect();
        mappings.iter_mut().for_each(|mapping| mapping.push_str("action = { type = 'Suppress' }"));
        let before: Vec<&str> = mappings.iter().map(String::as_str).collect();
        let mut after = before.clone();
        // One change moves all of them.
        after.rotate_left(1);
        let told = said(&before, &after);
        assert_eq!(
            told,
            ["3000 mappings are new or stand elsewhere: too many to tell which answer to the same events"]
        );
    }

    #[test]
    fn pairs_of_a_whole_configuration_are_listed_with_an_event_that_both_wait_for() {
        let copy = "name = 'copy'\npriority = 1\nconsume = true\ntrigger = { type = 'Note', note = 36 }\naction = { type = 'Suppress' }";
        let panic = "trigger = { type = 'NoteRange', note_min = 90, note_max = 100, device = 'keys' }\naction = { type = 'Suppress' }";
        let Overlaps { overlaps, more, not_compared } = overlapping_pairs(&config(&[LIGHTS, copy, FADER, panic]));
        assert_eq!((more, not_compared), (0, 0));
        let shown: Vec<_> = overlaps
            .iter()
            .map(|pair| (&*pair.first.place, &*pair.second.place, pair.event.as_deref(), pair.consumed))
            .collect();
        assert_eq!(
            shown,
            [
                ("modes/0/mappings/1", "modes/0/mappings/0", Some("note-on 36 127"), true),
                ("modes/0/mappings/3", "global_mappings/0", Some("note-on 99 127"), false),
            ]
        );
        let names = [&overlaps[0].first, &overlaps[0].second, &overlaps[1].first].map(|one| one.name.as_deref());
        assert_eq!(names, [Some("copy"), Some("lights"), None]);
    }

    #[test]
    fn pairs_beyond_the_limit_are_counted() {
        let Overlaps { overlaps, more, .. } = overlapping_pairs(&config(&[FADER; 50]));
        assert_eq!((overlaps.len(), more), (MAX_PAIRS_LISTED, 50 * 49 / 2 - MAX_PAIRS_LISTED));
        let many = vec![FADER; MAX_COMPARED + 6];
        assert_eq!(overlapping_pairs(&config(&many)).not_compared, 7, "the global one comes last");
    }

    #[test]
    fn of_many_the_first_are_told() {
        let said = said(&[], &[FADER; 6]);
        assert_eq!(said.len(), MAX_LISTED + 1);
        assert_eq!(said[MAX_LISTED], "and 7 more pairs of mappings that answer to some of the same events");
    }
}
