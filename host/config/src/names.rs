//! Names of modes and bindings: their definitions, and references to names that are not defined.

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
    /// A few: looked through from the first, which costs less than a hash of every use.
    kinds: Vec<(&'k str, Kind)>,
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
        self.of(kind).given.push((name.to_owned(), place));
    }

    /// A thing of this kind is referred to by name.
    pub(super) fn refer(&mut self, kind: &'k str, name: Arc<str>, place: Range<usize>, must_exist: bool) {
        self.of(kind).uses.push(Use { name, place, must_exist });
    }

    fn of(&mut self, kind: &'k str) -> &mut Kind {
        let at = self.kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.kinds.push((kind, Kind::default()));
            self.kinds.len() - 1
        });
        &mut self.kinds[at].1
    }

    /// Moves every place on by as many bytes as are missing before its first one.
    pub(super) fn shift(&mut self, missing: impl Fn(usize) -> usize) {
        for (_, kind) in &mut self.kinds {
            let given = kind.given.iter_mut().map(|(_, place)| place);
            for place in given.chain(kind.uses.iter_mut().map(|its| &mut its.place)) {
                let missing = missing(place.start);
                *place = place.start + missing..place.end + missing;
            }
        }
    }

    /// Whether anything from this byte on has a name.
    pub(super) fn gives_after(&self, byte: usize) -> bool {
        self.kinds.iter().flat_map(|(_, kind)| &kind.given).any(|(_, place)| place.start >= byte)
    }

    /// Everything that is referred to by name: what kind of thing, and how.
    pub(super) fn uses(self) -> impl Iterator<Item = (&'k str, Use)> {
        self.kinds.into_iter().flat_map(|(kind, names)| names.uses.into_iter().map(move |its| (kind, its)))
    }

    /// Reports names that two things have, and names that nothing has. `more` are uses beside those that were collected:
    /// of what kind of thing, and at which byte the text begins that their places are counted in.
    pub(super) fn check<'u>(
        &'u self,
        more: impl Iterator<Item = (&'u str, &'u Use, usize)>,
        source: &Source,
        report: &mut impl FnMut(Diagnostic),
    ) {
        let nothing = Kind::default();
        let mut checks: Vec<Check<'_>> = self.kinds.iter().map(|(name, kind)| Check::new(name, kind)).collect();
        checks.iter().for_each(|check| check.kind.report_twice(check.name, source, report));
        let own = self.kinds.iter().flat_map(|(kind, names)| names.uses.iter().map(|its| (*kind, its, 0)));
        for (kind, its, start) in own.chain(more) {
            let at = checks.iter().position(|check| check.name == kind).unwrap_or_else(|| {
                checks.push(Check::new(kind, &nothing));
                checks.len() - 1
            });
            checks[at].look_up(its, start, report);
        }
        checks.into_iter().for_each(|check| check.report_doubted(report));
    }
}

/// Looks up the names of one kind of thing.
struct Check<'u> {
    name: &'u str,
    kind: &'u Kind,
    given: HashSet<&'u str>,
    /// What may be written, as a message lists it. Made for the first mistake.
    listed: Option<String>,
    unknown: Vec<Unknown<'u>>,
    /// Where each of them is in `unknown`.
    places: HashMap<&'u str, usize>,
    /// The name that was looked up last, and where it is in `unknown`; `None` if something has it. Mappings for one device
    /// mostly stand together.
    last: Option<(&'u str, Option<usize>)>,
}

/// A name that nothing has.
struct Unknown<'u> {
    name: &'u str,
    /// The name that may have been meant. A misspelt name is often misspelt many times.
    nearest: Option<String>,
    /// If it may be right all the same: where it comes first, and how often. It is doubted once.
    doubted: Option<(Range<usize>, usize)>,
}

impl<'u> Check<'u> {
    fn new(name: &'u str, kind: &'u Kind) -> Self {
        let given = kind.given.iter().map(|(name, _)| name.as_str()).collect();
        Self { name, kind, given, listed: None, unknown: Vec::new(), places: HashMap::new(), last: None }
    }

    /// Where a name is in `unknown`; `None` if something has it.
    fn find(&mut self, name: &'u str) -> Option<usize> {
        if let Some((last, at)) = self.last
            && last == name
        {
            return at;
        }
        let at = (!self.given.contains(name)).then(|| {
            *self.places.entry(name).or_insert_with(|| {
                // An expression may mean a number of the event.
                let of_event = if self.name == "variable" { &EVENT_NAMES[..] } else { &[] };
                let nearest = nearest(name, self.kind.names().chain(of_event.iter().copied()));
                self.unknown.push(Unknown { name, nearest, doubted: None });
                self.unknown.len() - 1
            })
        });
        self.last = Some((name, at));
        at
    }

    fn look_up(&mut self, its: &'u Use, start: usize, report: &mut impl FnMut(Diagnostic)) {
        let name = &*its.name;
        let Some(at) = self.find(name) else { return };
        let Self { name: kind, kind: names, listed, unknown, .. } = self;
        let unknown = &mut unknown[at];
        let place = its.place.start + start..its.place.end + start;
        if its.must_exist {
            let listed = listed.get_or_insert_with(|| names.listed(kind));
            let error = Diagnostic::error(place, format!("no {kind} is called {name:?}")).with_allowed(listed.as_str());
            report(error.with_nearest(unknown.nearest.clone()));
        } else if let Some((first, times)) = &mut unknown.doubted {
            *times += 1;
            if place.start < first.start {
                *first = place;
            }
        } else {
            unknown.doubted = Some((place, 1));
        }
    }

    fn report_doubted(self, report: &mut impl FnMut(Diagnostic)) {
        let kind = self.name;
        for Unknown { name, nearest, doubted } in self.unknown {
            let Some((place, times)) = doubted else { continue };
            let everywhere = match times {
                1 => String::new(),
                2 => ", here and in one more place".to_owned(),
                more => format!(", here and in {} more places", more - 1),
            };
            let message = format!("no {kind} is called {name:?}: it is taken for a port's name{everywhere}");
            report(Diagnostic::warning(place, message).with_nearest(nearest));
        }
    }
}

impl Kind {
    /// Reports names that two things have.
    fn report_twice(&self, kind: &str, source: &Source, report: &mut impl FnMut(Diagnostic)) {
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
