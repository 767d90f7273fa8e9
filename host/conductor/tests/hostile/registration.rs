//! Registration: a feature has the names that its descriptor declares, and no other.

use conductor_package::admission::Admission;
use conductor_package::descriptor::Tier;
use conductor_package::{Contributions, Grants};
use conductor_sandbox::actor::Actor;

use crate::lab::{Folder, Lab, Tools, bytes_with, guest, guest_with, path};
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_registry::{FeatureSource, Registry};

#[test]
fn what_is_registered_is_what_is_declared() {
    let lab = Lab::new();
    for (how, why) in [
        ("undeclared", "\"elsewhere\" is not declared under [[tools]]"),
        ("no-schema", "the schema of look is not JSON"),
        ("large-schema", "at most 65536 are taken"),
        ("enum-schema", "has \"enum\" with 20000 values; at most 1024 are taken"),
        ("deep-schema", "is nested deeper than 64 levels"),
        ("wide-schema", "has more than 8192 values"),
        ("pattern-schema", "has \"pattern\" with 5000 bytes; at most 1024 are taken"),
        ("lost-schema", "the schema has no #/nowhere"),
        ("outside-schema", "a reference is to a place of the same schema"),
        ("ring-schema", "leads in a circle without an end"),
        ("control", "\"lo\\\\u{1b}[2Jok\" is not declared"),
        ("many", "\"tool9999\" is not declared"),
        ("nothing", "declares the tool look, but did not register it"),
        ("refuse", "its install failed"),
    ] {
        let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet           ", &format!("INSTALL:{how}"))]);
        let feature = lab.sandbox.prepare(&package, lab.grants()).unwrap();
        let error = Actor::start(feature).unwrap_err().to_string();
        assert!(error.contains(why), "{how}: {error}");
        assert!(error.len() < 1200 && !error.chars().any(char::is_control), "{how}: {error:?}");
    }
}

/// A contribution that says which capability it needs is left out without it; the rest of the feature works.
#[test]
fn what_needs_a_capability_that_was_not_granted_is_left_out() {
    let lab = Lab::new();
    let grants = Grants { alert: false, ..lab.grants() };
    let tools = Tools::new(lab.sandbox.prepare(&guest("tests/hostile-tools"), grants).unwrap());
    let names: Vec<&str> = tools.actor.registered().tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["look", "claim", "send", "rule", "propose"]);
    let [skipped] = tools.feature.facts().skipped.as_slice() else { panic!("not one") };
    assert_eq!(skipped.to_string(), "tool change: needs \"alert\", which is not granted");
    tools.goes_on();
}

fn refused_tools(names: &[&str]) -> Contributions {
    Contributions { tools: names.iter().map(|name| (*name).to_owned()).collect(), ..Contributions::default() }
}

// FEA-17
#[test]
fn a_feature_cant_enable_its_refused_tool() {
    let lab = Lab::new();
    let admission = Admission { refused: refused_tools(&["change", "claim"]), ..Admission::from(lab.grants()) };
    let tools = Tools::new(lab.sandbox.prepare(&guest("tests/hostile-tools"), admission).unwrap());
    let registered =
        || -> Vec<String> { tools.actor.registered().tools.iter().map(|tool| tool.name.clone()).collect() };
    assert_eq!(registered(), ["look", "send", "rule", "propose"]);
    let skipped: Vec<String> = tools.feature.facts().skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        skipped,
        ["change", "claim"].map(|name| format!(
            "tool {name}: refused by a person; `conductor feature enable hostile-tools --tool {name}` takes it back"
        ))
    );
    // It still has its registrar, and tries again.
    let _ = tools.look(r#"{"how": "register-late", "name": "change"}"#);
    assert_eq!(registered(), ["look", "send", "rule", "propose"]);
    tools.goes_on();
}

// FEA-17
#[test]
fn a_refused_contribution_is_in_no_registry_and_the_rest_works() {
    let lab = Lab::new();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let source = |name: &str, refused: &[&str]| FeatureSource {
        name: name.to_owned(),
        path: path(&format!("tests/{name}")),
        grants: lab.grants(),
        refused: refused_tools(refused),
        ..FeatureSource::default()
    };
    let names =
        |registry: &Registry| -> Vec<String> { registry.tools().map(|tool| tool.registered.name.clone()).collect() };
    let whole = Registry::default().with(vec![source("hostile-tools", &[])], &lab.sandbox, &observer);
    let refused = whole.with(vec![source("hostile-tools", &["rule"])], &lab.sandbox, &observer);
    assert!(names(&whole).contains(&"rule".to_owned()));
    assert_eq!(names(&refused), ["look", "change", "claim", "send", "propose"]);
    let [report] = &refused.reports()[..] else { panic!("not one") };
    assert!(report.skipped[0].contains("refused by a person"), "{report:?}");
    whole.give_way(&refused);
    let facts = &whole.reports()[0];
    assert!(facts.refused.as_ref().is_some_and(|why| why.contains("lost a grant or a contribution")), "{facts:?}");
}

#[test]
fn a_registrar_registers_nothing_after_install() {
    let lab = Lab::new();
    let tools = lab.tools();
    for name in ["look", "new", "work_items_list"] {
        let error = tools.refused(&format!(r#"{{"how": "register-late", "name": "{name}"}}"#));
        assert!(error.contains("is registered already") || error.contains("is not declared"), "{error}");
    }
    assert_eq!(
        tools.actor.registered().tools.len(),
        Tier::ALL.len() + 1,
        "one for each tier, and one that claims plans"
    );
}

#[test]
fn the_context_opens_nothing_after_install() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert!(tools.how("context-late").unwrap_err().to_string().contains("trapped"));
    tools.goes_on();
}

/// Installs files of these names, with these contents, as a configuration would.
fn installed(files: &[(&str, Vec<u8>)]) -> Vec<(String, String)> {
    let (lab, folder) = (Lab::new(), Folder::new());
    let sources = files.iter().map(|(name, bytes)| {
        let path = folder.path().join(format!("{name}.wasm"));
        std::fs::write(&path, bytes).unwrap();
        FeatureSource { name: (*name).into(), path, grants: lab.grants(), ..FeatureSource::default() }
    });
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    Registry::default().with(sources.collect(), &lab.sandbox, &observer).refused()
}

#[test]
fn another_features_names_are_taken() {
    let tools = |changes: &[_]| bytes_with("tests/hostile-tools", changes);
    let refused = installed(&[
        ("hostile-tools", tools(&[])),
        ("hostile-twins", tools(&[("project:hostile-tools", "project:hostile-twins")])),
    ]);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].1.contains("its tool look belongs to project:hostile-tools already"), "{refused:?}");
}

#[test]
fn a_descriptor_that_lies_about_its_id_is_refused() {
    let tools = |changes: &[_]| bytes_with("tests/hostile-tools", changes);
    let refused = installed(&[
        ("hostile-tools", tools(&[("project:hostile-tools", "builtin:hostile-tools")])),
        ("other", tools(&[])),
    ]);
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(refused[0].1.contains("only features that come with the host are `builtin:`"), "{refused:?}");
    assert!(refused[1].1.contains("is called \"hostile-tools\" in its descriptor"), "{refused:?}");
}
