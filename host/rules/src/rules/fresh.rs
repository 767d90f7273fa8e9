//! Fresh mappings: those that a change of the configuration adds, or that do something else with it.

use std::collections::HashMap;

use conductor_engine::Trigger;

use super::overlaps::{MappingList, PlacedMapping, differing, lists};
use super::trigger::trigger;
use super::{clock, comes_from_no_port, variable};
use conductor_config::{Config, Mapping};

/// A mapping that was not there before, or was another one.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshMapping {
    /// Which it is.
    pub placed: PlacedMapping,
    /// The mode that it is in; `None` if it applies in every mode.
    pub mode: Option<String>,
    /// The device whose events it waits for; `None` if it is for every device.
    pub device: Option<String>,
    /// What it waits for.
    pub trigger: Trigger,
}

/// The mappings of `after` that the same mode of `before` does not have, in the configuration's order. A name, a
/// description, lights, and another place in the list make no other mapping.
pub fn fresh_mappings(before: &Config, after: &Config) -> Vec<FreshMapping> {
    // A mistake in one is reported where the configuration is compiled.
    let variables = [variable::declarations(after).unwrap_or_default(), clock::declarations(after)].concat();
    let number = |name: &str| {
        let at = variables.iter().position(|variable| variable.name == name)?;
        u16::try_from(at).ok()
    };
    let mut fresh = Vec::new();
    for MappingList { place, mode, before, after } in lists(before, after) {
        let range = differing(before, after);
        let same_at_end = after.len() - range.end;
        let mut known: HashMap<String, usize> = HashMap::new();
        for mapping in &before[range.start..before.len() - same_at_end] {
            *known.entry(written(mapping)).or_default() += 1;
        }
        for index in range {
            let mapping = &after[index];
            if let Some(count) = known.get_mut(&written(mapping)).filter(|count| **count > 0) {
                *count -= 1;
                continue;
            }
            let Ok(trigger) = trigger(&mapping.trigger.event, &mapping.action, number) else { continue };
            fresh.push(FreshMapping {
                placed: PlacedMapping::new(&place, index, mapping),
                mode: mode.map(str::to_owned),
                device: mapping.trigger.device.clone().filter(|_| !comes_from_no_port(&trigger)),
                trigger,
            });
        }
    }
    fresh
}

/// All that decides when a mapping fires and what it does.
fn written(mapping: &Mapping) -> String {
    let bare = Mapping { name: None, description: None, feedback: None, ..mapping.clone() };
    serde_json::to_string(&bare).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use conductor_config::parse;

    fn mapping(name: &str, trigger: &str) -> String {
        format!("name = '{name}'\ntrigger = {{ {trigger} }}\naction = {{ type = 'Suppress' }}\n")
    }

    fn config(modes: &[(&str, &[String])], more: &str) -> Config {
        let mode = |(name, mappings): &(&str, &[String])| {
            let mappings: String = mappings.iter().map(|mapping| format!("[[modes.mappings]]\n{mapping}")).collect();
            format!("[[modes]]\nname = '{name}'\n{mappings}")
        };
        let modes: String = modes.iter().map(mode).collect();
        parse(&format!("{modes}{more}"), "c.toml").unwrap().config
    }

    /// The names of the fresh ones, with their places.
    fn fresh(before: &Config, after: &Config) -> Vec<String> {
        let fresh = fresh_mappings(before, after).into_iter();
        fresh.map(|one| format!("{} {}", one.placed.place, one.placed.name.unwrap_or_default())).collect()
    }

    #[test]
    fn what_is_added_or_does_something_else_is_fresh() {
        let [kick, snare, hat] = [("kick", 36), ("snare", 38), ("hat", 42)]
            .map(|(name, note)| mapping(name, &format!("type = 'Note', note = {note}")));
        let before = config(&[("Play", &[kick.clone(), snare.clone()])], "");
        let after = |mappings: &[String]| fresh(&before, &config(&[("Play", mappings)], ""));
        assert_eq!(after(&[kick.clone(), hat.clone(), snare.clone()]), ["modes/0/mappings/1 hat"]);
        let louder = snare.replace("38", "38, velocity_range = [100, 127]");
        assert_eq!(after(&[kick.clone(), louder]), ["modes/0/mappings/1 snare"]);
        let other = kick.replace("'Suppress'", "'ModeChange', mode = 'Play'");
        assert_eq!(after(&[other, snare.clone()]), ["modes/0/mappings/0 kick"]);
        assert_eq!(after(&[snare.clone(), kick.clone()]), [""; 0], "moved");
        assert_eq!(after(&[kick.replace("kick", "boom"), snare.clone()]), [""; 0], "called otherwise");
        assert_eq!(after(&[kick.clone(), kick.clone(), snare.clone()]), ["modes/0/mappings/1 kick"], "once more");
        assert_eq!(after(&[]), [""; 0], "what is gone is not there");
        let elsewhere = config(&[("Play", from_ref(&snare)), ("Mix", from_ref(&kick))], "");
        assert_eq!(fresh(&before, &elsewhere), ["modes/1/mappings/0 kick"]);
        let renamed = config(&[("Live", &[kick, snare])], "");
        assert_eq!(fresh(&before, &renamed), [""; 0], "the mode has another name");
    }

    // Who shows it escapes it, and compares it with the names of rules before that.
    #[test]
    fn a_fresh_mapping_has_its_name_as_it_is_written() {
        let odd = mapping("a\u{202e}b", "type = 'Note', note = 36");
        assert_eq!(fresh(&Config::default(), &config(&[("Play", &[odd])], "")), ["modes/0/mappings/0 a\u{202e}b"]);
    }

    #[test]
    fn a_variable_has_the_number_that_its_rule_gets() {
        let changes = "[[global_mappings]]\ntrigger = { type = 'Variable', variable = 'gain', device = 'pads' }\n\
                       action = { type = 'Suppress' }\n\
                       [[variables]]\nname = 'mute'\ntype = 'boolean'\n[[variables]]\nname = 'gain'\ntype = 'number'\n";
        let fresh = fresh_mappings(&Config::default(), &config(&[], changes));
        assert_eq!(fresh[0].trigger, Trigger::Variable { variable: 1 });
        assert_eq!((&fresh[0].mode, &fresh[0].device), (&None, &None));
    }
}
