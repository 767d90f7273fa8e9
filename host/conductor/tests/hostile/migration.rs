//! Migrations of data: one that fails in any way leaves the data and its version as they were, and the package is
//! refused. (FEA-19)

use std::sync::Arc;

use conductor_observer::{self as observer, Observed, Observer, sink_message::SinkQueue};
use conductor_package::id::{DataKey, FeatureId};
use conductor_registry::{FeatureSource, Registry};
use conductor_services::store::{FeatureStores, Originals, StoreHandle};

use crate::lab::{Folder, Lab, bytes_with};

const QUOTA: u64 = 65_536;

fn key() -> String {
    let id = FeatureId::try_from("project:hostile-tools".to_owned()).unwrap();
    DataKey::new(&id, None).as_str().to_owned()
}

fn stores(lab: &Lab) -> &FeatureStores {
    lab.services.stores.as_ref().unwrap()
}

/// Data of this version, as a package before has left it, and a handle that works with that.
fn seed(stores: &FeatureStores, version: u32) -> StoreHandle {
    let handle = stores.feature(&key(), QUOTA).unwrap().handle.of_version(version).unwrap();
    handle.set("colour", b"blue").unwrap();
    handle
}

/// Loads the hostile tools, whose data has version 2 and whose migration goes in this way.
fn load(lab: &Lab, how: &str) -> (Registry, Observer, Observed) {
    let folder = Folder::new();
    let path = folder.path().join("hostile-tools.wasm");
    let way = format!("MIGRATE:{how}");
    std::fs::write(&path, bytes_with("tests/hostile-tools", &[("MIGRATE:quiet           ", &way)])).unwrap();
    let source = FeatureSource { name: "hostile-tools".into(), path, grants: lab.grants(), ..FeatureSource::default() };
    let (_, silence) = SinkQueue::new();
    let (observer, observed, _) = observer::start(silence, None).unwrap();
    (Registry::default().with(vec![source], &lab.sandbox, &observer), observer, observed)
}

fn is_as_it_was(data: &StoreHandle) {
    assert_eq!(data.keys("", None).unwrap(), ["colour"]);
    assert_eq!(data.get("colour").unwrap().as_deref(), Some(&b"blue"[..]));
}

#[test]
fn a_migration_that_hangs_traps_fails_or_fills_the_quota_leaves_the_data_as_it_was() {
    for (how, why) in [
        ("loop", "it ran longer than its 5000 ms"),
        ("trap", "trapped"),
        ("fail", "the data is not understood"),
        ("fill", "its quota is 65536"),
    ] {
        let lab = Lab::new();
        let data = seed(stores(&lab), 1);
        let (registry, _observer, _observed) = load(&lab, how);
        let [(name, reason)] = &registry.refused()[..] else { panic!("{how}: it was not refused") };
        assert_eq!(name, "hostile-tools");
        assert!(reason.contains("was not migrated from version 1 to 2 and is as it was"), "{how}: {reason}");
        assert!(reason.contains(why), "{how}: {reason}");
        is_as_it_was(&data);
        assert_eq!(stores(&lab).data_version(&key()).unwrap(), Some(1), "{how}");
    }
}

#[test]
fn a_migration_counts_when_the_feature_is_in_force() {
    let lab = Lab::new();
    let before = seed(stores(&lab), 1);
    let version = || stores(&lab).data_version(&key()).unwrap();
    let now = || stores(&lab).feature(&key(), QUOTA).unwrap().handle.get("colour").unwrap();

    let (registry, observer, observed) = load(&lab, "quiet");
    assert!(registry.refused().is_empty(), "{:?}", registry.refused());
    assert_eq!((version(), now().as_deref()), (Some(2), Some(&b"blue-1-2"[..])));
    let refused = before.set("colour", b"red").unwrap_err().to_string();
    assert!(refused.contains("its data has version 2 now, and this instance works with version 1"), "{refused}");
    // The rest of the configuration was refused, so what ran before runs on.
    drop((registry, observer, observed));
    assert_eq!(version(), Some(1));
    is_as_it_was(&before);

    let (registry, observer, observed) = load(&lab, "quiet");
    registry.begin(&observed);
    drop((registry, observer, observed));
    assert_eq!((version(), now().as_deref()), (Some(2), Some(&b"blue-1-2"[..])));
    let (registry, _observer, _observed) = load(&lab, "fail");
    assert!(registry.refused().is_empty(), "there is nothing more to migrate: {:?}", registry.refused());
}

#[test]
fn a_package_for_an_older_version_of_the_data_is_refused() {
    let lab = Lab::new();
    let data = seed(stores(&lab), 3);
    let (registry, _observer, _observed) = load(&lab, "quiet");
    let [(_, reason)] = &registry.refused()[..] else { panic!("it was not refused") };
    assert!(reason.contains("its data has version 3, and this package works with version 2"), "{reason}");
    assert!(reason.contains("conductor feature upgrade hostile-tools"), "{reason}");
    assert!(reason.contains("conductor feature remove hostile-tools --data"), "{reason}");
    is_as_it_was(&data);
}

#[test]
fn a_migration_is_tried_on_a_copy() {
    let home = Folder::new();
    let live = Arc::new(FeatureStores::open(home.path()).unwrap());
    drop(seed(&live, 1));
    for originals in [Originals::Live(Arc::clone(&live)), Originals::Home(home.path().to_owned())] {
        for (how, refused) in [("fail", 1), ("empty", 0)] {
            let trial = FeatureStores::trial(Some(originals.clone()));
            let lab = Lab::with(|services| services.stores = Some(Arc::new(trial)));
            let (registry, _observer, observed) = load(&lab, how);
            assert_eq!(registry.refused().len(), refused, "{how}: {:?}", registry.refused());
            registry.begin(&observed);
        }
        is_as_it_was(&live.feature(&key(), QUOTA).unwrap().handle.of_version(1).unwrap());
    }
}
