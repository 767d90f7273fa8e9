//! What tools report of the time before the configuration changed.

use serde_json::json;

use crate::stage::{CONFIG, Stage};

/// Puts the configuration in force in which the one mapping of the pads has this action.
fn reload_with(stage: &Stage, action: &str) {
    let before = "action = { type = \"ModeChange\", mode = \"Mix\" }";
    assert!(CONFIG.contains(before));
    let text = CONFIG.replace(before, action);
    std::fs::write(stage.file(), &text).unwrap();
    stage.host.reload(&text, "config.toml").unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
}

// MCP-2: what fired keeps its name when other rules have its number.
#[test]
fn what_fired_is_called_what_it_was_then() {
    let stage = Stage::new();
    stage.play("Pads", &[0x99, 36, 100]);
    let fired = || stage.call("conductor_get_captured_events", json!({})).unwrap()["events"][0]["fired"].clone();
    let was = fired();
    assert_eq!(was, json!(["ModeChange to Mix"]));
    for action in ["action = { type = \"Suppress\" }", "action = { type = \"MidiForward\", target = \"synth\" }"] {
        reload_with(&stage, action);
        assert_eq!(fired(), was);
    }
}
