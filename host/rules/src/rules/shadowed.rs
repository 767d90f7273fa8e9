//! Shadowed mappings: no event reaches them, since one before them consumes all that they wait for.

use std::cmp::Reverse;

use conductor_engine::Trigger;
use conductor_trigger_overlap::Overlap;

use super::trigger::{some_number, trigger};
use conductor_config::{Config, Mapping, PathStep};

/// Mappings that consume and are looked at; more are rare, and each is held against all others.
const MAX_CONSUMERS: usize = 256;

/// A mapping in the order in which rules are asked.
struct Placed<'c> {
    path: Vec<PathStep<'static>>,
    name: String,
    /// `None` for every mode.
    mode: Option<&'c str>,
    mapping: &'c Mapping,
    trigger: Trigger,
}

/// The places of those mappings, each with what the first that keeps everything from it is called.
pub fn shadowed(config: &Config) -> Vec<(Vec<PathStep<'static>>, String)> {
    let in_modes = config.modes.iter().enumerate().flat_map(|(number, mode)| {
        let list: [PathStep<'static>; 3] = ["modes".into(), number.into(), "mappings".into()];
        placed(list.to_vec(), format!("modes/{number}/mappings"), Some(mode.name.as_str()), &mode.mappings)
    });
    let global = placed(vec!["global_mappings".into()], "global_mappings".into(), None, &config.global_mappings);
    let mut all: Vec<Placed<'_>> = in_modes.chain(global).collect();
    // Stable, as the engine's own sorting is.
    all.sort_by_key(|placed| (Reverse(placed.mapping.priority), placed.mapping.trigger.device.is_none()));

    let mut consumers: Vec<&Placed<'_>> = Vec::new();
    let mut found = Vec::new();
    for one in &all {
        if let Some(consumer) = consumers.iter().find(|consumer| consumer.takes_all_of(one)) {
            found.push((one.path.clone(), consumer.name.clone()));
        } else if one.mapping.consume && consumers.len() < MAX_CONSUMERS {
            consumers.push(one);
        }
    }
    found
}

fn placed<'c>(
    list: Vec<PathStep<'static>>,
    called: String,
    mode: Option<&'c str>,
    mappings: &'c [Mapping],
) -> impl Iterator<Item = Placed<'c>> {
    mappings.iter().enumerate().filter_map(move |(index, mapping)| {
        let path = [list.as_slice(), &[index.into()]].concat();
        let place = format!("{called}/{index}");
        let name = mapping.name.as_ref().map_or_else(|| place.clone(), |name| format!("{place} ({name})"));
        let trigger = trigger(&mapping.trigger.event, &mapping.action, some_number).ok()?;
        Some(Placed { path, name, mode, mapping, trigger })
    })
}

impl Placed<'_> {
    /// Whether this one, which is asked first, always consumes whatever the other waits for.
    fn takes_all_of(&self, other: &Self) -> bool {
        let always = self.mapping.condition.is_none() && !self.mapping.defer;
        let (device, others) = (&self.mapping.trigger.device, &other.mapping.trigger.device);
        always
            && (self.mode.is_none() || self.mode == other.mode)
            && (device.is_none() || device == others)
            && self.trigger.covers(&other.trigger)
    }
}
