//! Text that is none, and text that would rewrite a terminal.

use conductor_package::descriptor::Tier;
use conductor_sandbox::actor::Actor;
use conductor_sandbox::bindings::Event;

use crate::lab::{Lab, guest_with};

#[test]
fn no_utf_8_in_anything_that_a_tool_gives_or_calls() {
    let lab = Lab::new();
    for how in ["no-text", "error-no-text", "say-no-text", "store-no-text"] {
        let tools = lab.tools();
        let error = tools.how(how).unwrap_err().to_string();
        assert!(error.contains("utf-8") || error.contains("UTF-8") || error.contains("trapped"), "{how}: {error}");
        tools.goes_on();
    }
    let tools = lab.tools();
    assert!(tools.call(Tier::ConfigChange, r#"{"how": "no-text"}"#).is_err());
    assert!(lab.view.plans.waiting().unwrap().is_empty());
    assert_eq!(lab.said.try_iter().count(), 0);
}

#[test]
fn no_utf_8_in_an_actions_error() {
    let lab = Lab::new();
    let mut hostile = lab.prepare("tests/hostile").instantiate().unwrap();
    let id = hostile.prepare("Misbehave", r#"{"how": "no-text"}"#).unwrap();
    let event = Event { at: 0, device: 0, kind: 2, channel: 0, number: 3, position: 0, value: 0.0, unit: 0.0 };
    assert!(hostile.perform(id, event).is_err());
}

#[test]
fn no_utf_8_in_the_error_of_install() {
    let lab = Lab::new();
    let package = guest_with("tests/hostile-tools", &[("INSTALL:quiet  ", "INSTALL:no-text")]);
    let feature = lab.sandbox.prepare(&package, lab.grants()).unwrap();
    assert!(Actor::start(feature).is_err());
}

#[test]
fn errors_are_cut_and_rewrite_nothing() {
    let lab = Lab::new();
    let error = lab.tools().how("nonsense").unwrap_err().to_string();
    assert!(error.len() <= 1024 + '…'.len_utf8(), "{}", error.len());
    assert!(!error.chars().any(|c| c.is_control() || c == '\u{202e}'), "{error:?}");
}
