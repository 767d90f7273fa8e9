//! State that is handed over when a feature is replaced: within limits, to the same feature only, and never in the way
//! of what replaces it. (FEA-19)

use conductor_audit::caller::Caller;
use conductor_observer::{self as observer, Observer, sink_message::SinkQueue};
use conductor_package::Grants;
use conductor_package::descriptor::Tier;
use conductor_registry::{FeatureSource, Registry};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::lab::{Folder, Lab, bytes_with};

/// One lab, whose feature is replaced by another build of it.
struct Upgrade {
    lab: Lab,
    folder: Folder,
    observer: Observer,
}

impl Upgrade {
    fn new() -> Self {
        let (_, silence) = SinkQueue::new();
        let (observer, _, _) = observer::start(silence, None).unwrap();
        Self { lab: Lab::new(), folder: Folder::new(), observer }
    }

    /// The hostile tools, which hand over in this way, beside `before`.
    fn load(&self, before: &Registry, how: &str, owner: Option<&str>) -> Registry {
        let way = format!("HANDOVER:{how}");
        let folder = self.folder.path().join(how);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("hostile-tools.wasm");
        std::fs::write(&path, bytes_with("tests/hostile-tools", &[("HANDOVER:quiet          ", &way)])).unwrap();
        let grants = Grants { store: 0, ..self.lab.grants() };
        let owner = owner.map(str::to_owned);
        let source = FeatureSource { name: "hostile-tools".into(), path, grants, owner, ..FeatureSource::default() };
        let next = before.with(vec![source], &self.lab.sandbox, &self.observer);
        assert!(next.refused().is_empty(), "{how}: {:?}", next.refused());
        next.take_over(before);
        before.give_way(&next);
        next
    }

    fn ask(&self, registry: &Registry, args: &str) -> String {
        let tool = registry.tools().find(|tool| tool.registered.name == "look").unwrap();
        let (args, cancelled) = (args.to_owned(), CancellationToken::new());
        let call = tool.actor.call(Caller::library(), Tier::ReadOnly, "look", args, cancelled, Arc::new(|_, _| {}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(call).unwrap().result.to_string()
    }

    fn remembers(&self, registry: &Registry) -> String {
        self.ask(registry, r#"{"how": "recall"}"#)
    }

    /// A feature that hands over in this way, with something to remember.
    fn first(&self, how: &str) -> Registry {
        let first = self.load(&Registry::default(), how, None);
        self.ask(&first, r#"{"how": "remember", "what": "blue"}"#);
        first
    }
}

#[test]
fn what_replaces_an_instance_has_its_state_before_the_first_call() {
    let upgrade = Upgrade::new();
    let first = upgrade.first("quiet");
    let second = upgrade.load(&first, "other", None);
    drop(first);
    assert_eq!(upgrade.remembers(&second), "\"blue\"");
}

#[test]
fn a_state_that_is_not_exported_is_missed_and_nothing_else() {
    for how in ["loop", "trap", "fail", "large"] {
        let upgrade = Upgrade::new();
        let first = upgrade.first(how);
        let second = upgrade.load(&first, "quiet", None);
        drop(first);
        assert_eq!(upgrade.remembers(&second), "\"\"", "{how}");
    }
}

#[test]
fn a_state_that_is_not_imported_is_missed_and_nothing_else() {
    for how in ["import-loop", "import-trap", "import-fail"] {
        let upgrade = Upgrade::new();
        let first = upgrade.first("quiet");
        let second = upgrade.load(&first, how, None);
        drop(first);
        assert_eq!(upgrade.remembers(&second), "\"\"", "{how}");
    }
}

#[test]
fn no_package_of_another_owner_gets_the_state() {
    let upgrade = Upgrade::new();
    let first = upgrade.first("quiet");
    let second = upgrade.load(&first, "other", Some(&"a".repeat(64)));
    drop(first);
    assert_eq!(upgrade.remembers(&second), "\"\"");
}
