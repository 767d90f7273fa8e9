//! Shadowed mappings: no event reaches them, since one before them consumes all that they wait for.

use std::cmp::Reverse;

use conductor_engine::Trigger;
use conductor_trigger_overlap::Overlap;

use super::trigger::{some_number, trigger};
use conductor_config::{Config, Mapping, PathStep};

/// Mappings that consume and are looked at; more are rare, and each is held against all others.
const MAX_CONSUMERS: usize = 256;

/// A mapping in the order in which rules are asked.
#[derive(Clone, Copy)]
struct Placed<'c> {
    /// The number of its mode and that mode's name; `None` for every mode.
    mode: Option<(usize, &'c str)>,
    index: usize,
    mapping: &'c Mapping,
}

/// One that consumes.
struct Consumer<'c> {
    placed: Placed<'c>,
    trigger: Trigger,
}

/// The places of those mappings, each with what the first that keeps everything from it is called.
pub fn shadowed(config: &Config) -> Vec<(Vec<PathStep<'static>>, String)> {
    let lists = config.modes.iter().enumerate().map(|(number, mode)| (Some((number, &*mode.name)), &mode.mappings));
    let lists = lists.chain([(None, &config.global_mappings)]);
    let all = lists.flat_map(|(mode, mappings)| {
        mappings.iter().enumerate().map(move |(index, mapping)| Placed { mode, index, mapping })
    });
    // Nearly every configuration ends here, however long it is.
    if !all.clone().any(|placed| placed.mapping.consume) {
        return Vec::new();
    }
    let mut all: Vec<Placed<'_>> = all.collect();
    // Stable, as the engine's own sorting is.
    all.sort_by_key(|placed| (Reverse(placed.mapping.priority), placed.mapping.trigger.device.is_none()));

    let mut consumers: Vec<Consumer<'_>> = Vec::new();
    let mut found = Vec::new();
    for placed in all {
        if consumers.is_empty() && !placed.mapping.consume {
            continue;
        }
        let Ok(trigger) = trigger(&placed.mapping.trigger.event, &placed.mapping.action, some_number) else { continue };
        if let Some(consumer) = consumers.iter().find(|consumer| consumer.takes_all_of(&placed, &trigger)) {
            found.push((placed.path(), consumer.placed.name()));
        } else if placed.mapping.consume && consumers.len() < MAX_CONSUMERS {
            consumers.push(Consumer { placed, trigger });
        }
    }
    found
}

impl Placed<'_> {
    fn path(&self) -> Vec<PathStep<'static>> {
        match self.mode {
            None => vec!["global_mappings".into(), self.index.into()],
            Some((number, _)) => vec!["modes".into(), number.into(), "mappings".into(), self.index.into()],
        }
    }

    /// Its path and, if it has one, its own name.
    fn name(&self) -> String {
        let place = match self.mode {
            None => format!("global_mappings/{}", self.index),
            Some((number, _)) => format!("modes/{number}/mappings/{}", self.index),
        };
        self.mapping.name.as_ref().map_or_else(|| place.clone(), |name| format!("{place} ({name})"))
    }
}

impl Consumer<'_> {
    /// Whether this one, which is asked first, always consumes whatever the other waits for.
    fn takes_all_of(&self, other: &Placed<'_>, its: &Trigger) -> bool {
        let Placed { mode, mapping, .. } = self.placed;
        let always = mapping.condition.is_none() && !mapping.defer;
        let (device, others) = (&mapping.trigger.device, &other.mapping.trigger.device);
        always
            && (mode.is_none() || mode == other.mode)
            && (device.is_none() || device == others)
            && self.trigger.covers(its)
    }
}
