//! Changes of the configuration that give a feature other grants, and leave no empty table behind.

use conductor_config::{Config, Feature};
use conductor_config_text::edit::Change;
use conductor_package::Grants;
use serde_json::{Map, Value};

/// The changes after which `feature` has these grants; none if it has them.
pub(super) fn changes(config: &Config, feature: &str, grants: &Grants) -> Vec<Change> {
    let none = Grants::default();
    let known = config.features.get(feature);
    let had = known.map_or(&none, |known| &known.grants);
    if had == grants {
        return Vec::new();
    }
    let change = |path: &[&str], value| Change { path: path.iter().map(|&key| key.to_owned()).collect(), value };
    if *grants != none {
        let (had, none) = (fields(had), fields(&none));
        let differ = fields(grants).into_iter().filter(|(key, value)| had.get(key) != Some(value));
        let set = |(key, value): (String, Value)| {
            let value = (none.get(&key) != Some(&value)).then_some(value);
            change(&["features", feature, "grants", &key], value)
        };
        return differ.map(set).collect();
    }
    vec![match known {
        Some(Feature { path: None, id: None, digest: None, enabled: true, refused, .. }) if refused.is_empty() => {
            let own = (config.features.len() > 1).then_some(feature);
            change(&[&["features"], own.as_slice()].concat(), None)
        }
        _ => change(&["features", feature, "grants"], None),
    }]
}

fn fields(grants: &Grants) -> Map<String, Value> {
    match serde_json::to_value(grants) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_services::http::HostPattern;

    fn grants(hosts: &[&str]) -> Grants {
        let http = hosts.iter().map(|host| host.parse::<HostPattern>().unwrap()).collect();
        Grants { http, ..Grants::default() }
    }

    /// The paths that change in this configuration, each with what it becomes.
    fn changed(config: &str, to: &Grants) -> Vec<(String, Option<String>)> {
        let config = conductor_config::parse(config, "config.toml").unwrap().config;
        let changes = changes(&config, "openai", to);
        changes.into_iter().map(|c| (c.path.join("."), c.value.map(|value| value.to_string()))).collect()
    }

    #[test]
    fn only_what_differs_is_written_and_nothing_empty_stays() {
        let (none, one, two) = (grants(&[]), grants(&["a.example"]), grants(&["a.example", "b.example"]));
        let path = |path: &str, value: Option<&str>| vec![(path.to_owned(), value.map(str::to_owned))];
        let alone = "[features.openai.grants]\nhttp = ['a.example']\n";
        assert_eq!(changed("", &one), path("features.openai.grants.http", Some(r#"["a.example"]"#)));
        assert_eq!(changed(alone, &one), []);
        assert_eq!(changed(alone, &two), path("features.openai.grants.http", Some(r#"["a.example","b.example"]"#)));
        assert_eq!(changed(alone, &none), path("features", None));
        assert_eq!(
            changed(&format!("{alone}[features.other]\nenabled = false\n"), &none),
            path("features.openai", None)
        );
        let off = "[features.openai]\nenabled = false\ngrants = { http = ['a.example'], store = 9 }\n";
        assert_eq!(changed(off, &none), path("features.openai.grants", None));
        let less = Grants { store: 9, ..Grants::default() };
        assert_eq!(changed(off, &less), path("features.openai.grants.http", None));
    }
}
