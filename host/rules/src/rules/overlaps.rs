//! Overlaps: mappings that fire for the same events, which the author of a new one may not have intended.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use conductor_engine::Trigger;
use conductor_trigger_overlap::Overlap;

use super::trigger::{some_number, trigger};
use conductor_config::{Config, Mapping, Mode};
use conductor_stdx::plural::plural;
use conductor_terminal::excerpt;

/// Pairs that are listed; the others are counted.
const MAX_LISTED: usize = 8;
/// Pairs of mappings that are compared at most: a plan of two changes may move every mapping there is.
const MAX_PAIRS: usize = 4_000_000;
/// Bytes of a mapping's name that are shown.
const MAX_NAME: usize = 120;

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
    let mut all: Vec<Placed<'_>> = Vec::new();
    let by_name: HashMap<&str, &Mode> = before.modes.iter().rev().map(|mode| (mode.name.as_str(), mode)).collect();
    for (number, mode) in after.modes.iter().enumerate() {
        // One that has another name now stands where it stood.
        let known = by_name.get(mode.name.as_str()).copied().or(before.modes.get(number));
        let known = known.map_or(&[][..], |known| &known.mappings);
        all.extend(placed(format!("modes/{number}/mappings"), Some(&mode.name), known, &mode.mappings));
    }
    all.extend(placed("global_mappings".into(), None, &before.global_mappings, &after.global_mappings));

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
            // The order in which rules are asked.
            let order = |placed: &Placed<'_>, at| {
                (Reverse(placed.mapping.priority), placed.mapping.trigger.device.is_none(), at)
            };
            let one_is_first = order(one, at) < order(other, other_at);
            found.push(if one_is_first { together(one, other) } else { together(other, one) });
        }
    }
    if more > 0 {
        found.push(format!("and {} of mappings that answer to some of the same events", plural(more, "more pair")));
    }
    found
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

fn differing(before: &[Arc<Mapping>], after: &[Arc<Mapping>]) -> Range<usize> {
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

    fn called(&self) -> String {
        let place = format!("{}/{}", self.list, self.index);
        match self.mapping.name.as_ref().or(self.mapping.description.as_ref()) {
            Some(name) => format!("{place} ({})", excerpt(name, MAX_NAME)),
            None => place,
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
    fn of_many_the_first_are_told() {
        let said = said(&[], &[FADER; 6]);
        assert_eq!(said.len(), MAX_LISTED + 1);
        assert_eq!(said[MAX_LISTED], "and 7 more pairs of mappings that answer to some of the same events");
    }
}
