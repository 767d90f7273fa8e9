//! Names of modes and bindings: their definitions, and references to names that are not defined.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::diagnostic::Diagnostic;
use super::place::Source;
use conductor_expression::EVENT_NAMES;
use conductor_stdx::nearest::nearest;

/// How many names are listed as allowed, at most.
const MAX_LISTED: usize = 12;

/// The names in a file, collected while it is checked.
#[derive(Default)]
pub(super) struct Names<'k> {
    kinds: HashMap<&'k str, Kind>,
}

/// The names of one kind of thing.
#[derive(Default)]
struct Kind {
    given: Vec<(String, Range<usize>)>,
    uses: Vec<Use>,
}

/// A name that something refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) name: Arc<str>,
    pub(super) place: Range<usize>,
    /// Whether it is a mistake if nothing has the name.
    pub(super) must_exist: bool,
}

impl<'k> Names<'k> {
    /// A thing of this kind has the name.
    pub(super) fn give(&mut self, kind: &'k str, name: &str, place: Range<usize>) {
        let kind = self.kinds.entry(kind).or_default();
        kind.given.push((name.to_owned(), place));
    }

    /// A thing of this kind is referred to by name.
    pub(super) fn refer(&mut self, kind: &'k str, name: Arc<str>, place: Range<usize>, must_exist: bool) {
        self.kinds.entry(kind).or_default().uses.push(Use { name, place, must_exist });
    }

    /// Moves every place on by as many bytes as are missing before its first one.
    pub(super) fn shift(&mut self, missing: impl Fn(usize) -> usize) {
        for kind in self.kinds.values_mut() {
            let given = kind.given.iter_mut().map(|(_, place)| place);
            for place in given.chain(kind.uses.iter_mut().map(|its| &mut its.place)) {
                let missing = missing(place.start);
                *place = place.start + missing..place.end + missing;
            }
        }
    }

    /// Whether anything from this byte on has a name.
    pub(super) fn gives_after(&self, byte: usize) -> bool {
        self.kinds.values().flat_map(|kind| &kind.given).any(|(_, place)| place.start >= byte)
    }

    /// Everything that is referred to by name: what kind of thing, and how.
    pub(super) fn uses(self) -> impl Iterator<Item = (&'k str, Use)> {
        self.kinds.into_iter().flat_map(|(kind, names)| names.uses.into_iter().map(move |its| (kind, its)))
    }

    /// Reports names that two things have, and names that nothing has.
    pub(super) fn check(&self, source: &Source, report: &mut impl FnMut(Diagnostic)) {
        for (kind, names) in &self.kinds {
            names.check(kind, source, report);
        }
    }
}

impl Kind {
    fn check(&self, kind: &str, source: &Source, report: &mut impl FnMut(Diagnostic)) {
        let mut owners: HashMap<&str, &Range<usize>> = HashMap::new();
        for (name, place) in &self.given {
            if let Some(first) = owners.get(name.as_str()) {
                let message = format!("a second {kind} is called {name:?}");
                let help = format!("the first is at {}", source.location(first.start));
                report(Diagnostic::error(place.clone(), message).with_help(help));
            } else {
                owners.insert(name, place);
            }
        }

        // A misspelt name is often misspelt many times.
        let listed = LazyCell::new(|| self.listed(kind));
        let mut meant: HashMap<&str, Option<String>> = HashMap::new();
        // One that may be right is doubted once, where it comes first.
        let mut doubted: HashMap<&str, (&Range<usize>, usize)> = HashMap::new();
        for Use { name, place, must_exist } in &self.uses {
            if owners.contains_key(&**name) {
                continue;
            }
            // An expression may mean a number of the event.
            let of_event = if kind == "variable" { &EVENT_NAMES[..] } else { &[] };
            let known = || self.names().chain(of_event.iter().copied());
            let meant = meant.entry(name).or_insert_with(|| nearest(name, known()));
            if *must_exist {
                let message = format!("no {kind} is called {name:?}");
                let error = Diagnostic::error(place.clone(), message).with_allowed(listed.as_str());
                report(error.with_nearest(meant.clone()));
            } else {
                let (first, times) = doubted.entry(name).or_insert((place, 0));
                *times += 1;
                if place.start < first.start {
                    *first = place;
                }
            }
        }
        for (name, (place, times)) in doubted {
            let everywhere = match times {
                1 => String::new(),
                2 => ", here and in one more place".to_owned(),
                more => format!(", here and in {} more places", more - 1),
            };
            let message = format!("no {kind} is called {name:?}: it is taken for a port's name{everywhere}");
            report(Diagnostic::warning(place.clone(), message).with_nearest(meant.remove(name).flatten()));
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(|(name, _)| name.as_str())
    }

    fn listed(&self, kind: &str) -> String {
        let mut seen = HashSet::new();
        let distinct = self.names().filter(|name| seen.insert(*name));
        let names: Vec<String> = distinct.map(|name| format!("{name:?}")).collect();
        let listed = &names[..names.len().min(MAX_LISTED)];
        match names.len() - listed.len() {
            _ if listed.is_empty() => format!("nothing, since there is no {kind}"),
            0 => listed.join(", "),
            more => format!("{} and {more} more", listed.join(", ")),
        }
    }
}
