//! Plans of configurations that know every key (PLN-1, FEA-22): seeded, so that they are the same in every run, and by
//! a shrinking generator.
#![cfg(feature = "host")]

use std::collections::BTreeSet;

use conductor_config::json_schema;
use conductor_fuzz::plans::plan;
use conductor_host::control::plan::risk::Level;
use proptest::prelude::*;
use serde_json::Value;

/// Plans that are made.
const PLANS: usize = 300;
/// Bytes that one is made of.
const BYTES: usize = 400;

/// The keys that the schema has anywhere.
fn keys_of(schema: &Value, into: &mut BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get("properties") {
                into.extend(properties.keys().cloned());
            }
            object.values().for_each(|inner| keys_of(inner, into));
        }
        Value::Array(list) => list.iter().for_each(|inner| keys_of(inner, into)),
        _ => {}
    }
}

/// The keys that a value has anywhere.
fn keys_in(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => object.iter().for_each(|(key, inner)| {
            into.insert(key.clone());
            keys_in(inner, into);
        }),
        Value::Array(list) => list.iter().for_each(|inner| keys_in(inner, into)),
        _ => {}
    }
}

#[test]
fn of_many_plans_none_that_starts_or_redirects_something_is_below_privileged() {
    let mut seed = 0x5eed_u64;
    let mut byte = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as u8
    };
    let mut wanted = BTreeSet::new();
    keys_of(&json_schema(), &mut wanted);
    // Older spellings, which are gone when a configuration is read; what only grants hold, which no plan changes; a
    // curve that is spelt as a table; and other files, which plans may not name.
    for key in ["devices", "a2a", "default_provider", "hosts", "purpose", "write", "lut", "include"] {
        assert!(wanted.remove(key), "{key} is no key any more");
    }
    let (mut made, mut tried) = (Vec::new(), 0);
    // Rare keys may need some more.
    while made.len() < PLANS || !wanted.is_empty() {
        tried += 1;
        assert!(tried < 20 * PLANS, "{} plans of {tried} tries; none has {wanted:?}", made.len());
        let bytes: Vec<u8> = (0..BYTES).map(|_| byte()).collect();
        if let Some(outcome) = plan(&bytes) {
            let mut keys = BTreeSet::new();
            keys_in(&outcome.after, &mut keys);
            wanted.retain(|key| !keys.contains(key));
            made.push(outcome);
        }
    }

    let of = |level: Option<Level>| made.iter().filter(|outcome| outcome.level == level).count();
    let (starts, redirects) = (made.iter().filter(|it| it.starts), made.iter().filter(|it| it.redirects));
    let below = |level: Option<Level>| level.is_some_and(|level| level < Level::Privileged);
    println!(
        "{} plans of {tried} tries: {} usual, {} raised, {} privileged, {} denied; {} start programs, {} redirect or switch",
        made.len(),
        of(Some(Level::Usual)),
        of(Some(Level::Raised)),
        of(Some(Level::Privileged)),
        of(None),
        starts.clone().count(),
        redirects.clone().count()
    );
    assert_eq!(starts.chain(redirects).filter(|outcome| below(outcome.level)).count(), 0);
    // Levels that nothing has would prove nothing.
    assert!(of(Some(Level::Raised)) > 0 && of(Some(Level::Privileged)) > 0 && of(None) > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_risk_does_not_depend_on_the_way(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        plan(&bytes);
    }
}
