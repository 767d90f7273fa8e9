//! What one configuration sends elsewhere than another.
//!
//! Data are sent elsewhere if an address is no longer sent to by what a mapping waits for, and another one is: by the
//! same events, or by any if nothing was sent there before. So neither a trigger that is spelt a little otherwise nor
//! a mapping that is removed while another is added hides that a destination was exchanged. A plan that only adds
//! destinations, or only takes some away, sends nothing elsewhere.

use std::collections::BTreeSet;

use crate::destination::{Sender, endpoints};
use crate::effect::{canonical, quoted};
use crate::reach::Reach;
use crate::rule::MAX_PAIRS;
use conductor_rules::engine_trigger;
use conductor_trigger_overlap::Overlap as _;

/// What is sent elsewhere with `to` than with `from`: by what mappings wait for, and by the name of a binding. A text
/// each.
pub(crate) fn sent_elsewhere(from: &Reach<'_>, to: &Reach<'_>) -> Vec<String> {
    let mut texts = by_mappings(from, to);
    let (before, after) = (endpoints(from.config), endpoints(to.config));
    for (alias, old) in before {
        if let Some(new) = after.get(alias).filter(|new| **new != old) {
            texts.push(format!(
                "what is sent to {} goes to {} instead of {}",
                quoted(alias),
                quoted(new),
                quoted(&old)
            ));
        }
    }
    texts
}

/// An address that a trigger in a mode sends to in one configuration only.
struct Only<'r, 'c> {
    place: &'r str,
    sender: &'r Sender<'c>,
    address: &'r str,
}

fn by_mappings(from: &Reach<'_>, to: &Reach<'_>) -> Vec<String> {
    let (lost, gained) = (only_in(from, to), only_in(to, from));
    let known: BTreeSet<&str> = from.sent.values().flat_map(|sender| sender.targets.values()).map(|it| &**it).collect();
    let bound: BTreeSet<String> = endpoints(from.config).into_values().collect();
    let comparable = lost.len().saturating_mul(gained.len()) <= MAX_PAIRS;
    let mut texts = Vec::new();
    for new in &gained {
        let others = || lost.iter().filter(|old| old.address != new.address);
        if let Some(old) = others().find(|old| old.place == new.place) {
            let occasion = &new.sender.occasion;
            texts.push(format!(
                "what {occasion} sends goes to {} instead of {}",
                quoted(new.address),
                quoted(old.address)
            ));
            continue;
        }
        let stranger = !known.contains(new.address) && !bound.contains(new.address);
        // Of too many to compare, each may be one of the same events.
        let anyway = stranger || !comparable;
        if let Some(old) = others().find(|old| anyway || same_events(from, old.sender, to, new.sender)) {
            texts.push(format!(
                "{} sends to {}, while {} no longer sends to {}",
                new.sender.occasion,
                quoted(new.address),
                old.sender.occasion,
                quoted(old.address)
            ));
        }
    }
    texts
}

/// The addresses that triggers send to in the first configuration and not in the second. A target that both have has
/// another address by the binding of its name, of which there is a text of its own.
fn only_in<'r, 'c>(these: &'r Reach<'c>, those: &Reach<'_>) -> Vec<Only<'r, 'c>> {
    let mut only = Vec::new();
    for (place, sender) in &these.sent {
        let other = those.sent.get(place);
        let known: BTreeSet<&String> = other.into_iter().flat_map(|other| other.targets.values()).collect();
        for (target, address) in &sender.targets {
            if !known.contains(address) && !other.is_some_and(|other| other.targets.contains_key(target)) {
                only.push(Only { place, sender, address });
            }
        }
    }
    only
}

/// Whether an event may have been for the first and be for the second now. In doubt it may.
fn same_events(from: &Reach<'_>, old: &Sender<'_>, to: &Reach<'_>, new: &Sender<'_>) -> bool {
    let has = |reach: &Reach<'_>, name: &str| reach.config.modes.iter().any(|mode| mode.name == name);
    let same_mode = match (old.mode, new.mode) {
        // A mode that only one of them has may be the other by another name.
        (Some(before), Some(after)) => before == after || !has(to, before) || !has(from, after),
        _ => true,
    };
    let devices = (&old.mapping.trigger.device, &new.mapping.trigger.device);
    let same_device = devices.0.is_none() || devices.1.is_none() || devices.0 == devices.1;
    same_mode
        && same_device
        && match (engine_trigger(old.mapping), engine_trigger(new.mapping)) {
            (Some(one), Some(other)) => one.may_keep_from(false, &other),
            _ => canonical(&old.mapping.trigger) == canonical(&new.mapping.trigger),
        }
}
