//! Hooks: they can deny, they can't approve, and they block callers for a short time at most.

use std::sync::Arc;
use std::time::{Duration, Instant};

use conductor_audit::caller::Caller;
use conductor_audit::{Audit, Chain, Kind};
use conductor_config as config;
use conductor_host::control::gate::{Gate, ToolError, ToolRequest, ToolResult, ToolSet};
use conductor_host::control::lock::ShowLock;
use conductor_host::host::Host;
use conductor_observer as observer;
use conductor_observer::sink_message::SinkQueue;
use conductor_policy::Policy;
use conductor_registry::{FeatureSource, Registry};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, bytes_with, path, pins, until};

fn call(lab: &Lab, registry: &Registry, name: &str, args: serde_json::Value) -> Result<ToolResult, ToolError> {
    call_at(&Gate::default(), lab, registry, name, args)
}

fn call_at(
    gate: &Gate,
    lab: &Lab,
    registry: &Registry,
    name: &str,
    args: serde_json::Value,
) -> Result<ToolResult, ToolError> {
    let request = ToolRequest { args: args.as_object().unwrap().clone(), confirmed: false, confirmation: None };
    let (policy, caller) = (Policy::default(), Caller::library());
    let call = gate.call(
        ToolSet { registry, policy: &policy },
        &caller,
        name,
        request,
        CancellationToken::new(),
        Arc::new(|_, _| {}),
    );
    lab.prepare("tests/hostile-hooks").runtime().block_on(call)
}

const BOTH: [&str; 2] = ["tests/hostile-hooks", "tests/hostile-tools"];

#[test]
fn a_hook_can_not_approve_what_the_host_refused() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let refused = call(&lab, &registry, "send", serde_json::json!({ "how": "midi", "before": "annotate" }));
    assert!(matches!(refused, Err(ToolError::NeedsConfirmation { .. })), "{refused:?}");
    assert!(lab.view.midi.lock().unwrap().is_empty());
}

// Callers rely on a tool's output schema.
#[test]
fn a_result_that_is_not_what_its_schema_says_is_none() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let refused = call(&lab, &registry, "propose", serde_json::json!({ "how": "not-as-promised" })).unwrap_err();
    assert!(
        refused.to_string().contains("is not what its output schema says: the result: an object is not string"),
        "{refused}"
    );
    call(&lab, &registry, "propose", serde_json::json!({ "how": "nothing" })).unwrap();
}

#[test]
fn what_a_hook_says_is_cut_and_made_plain() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let annotated =
        call(&lab, &registry, "look", serde_json::json!({ "before": "annotate", "after": "remark" })).unwrap();
    assert_eq!(annotated.remarks.len(), 2);
    for remark in &annotated.remarks {
        assert!(remark.len() < 1200 && !remark.chars().any(char::is_control), "{remark:?}");
    }
    let Err(ToolError::Denied { reason, .. }) = call(&lab, &registry, "look", serde_json::json!({ "before": "deny" }))
    else {
        panic!("it was not denied")
    };
    assert!(reason.len() < 1100 && !reason.chars().any(char::is_control), "{reason:?}");
}

/// The contract says that remarks are for the audit: those of hooks before the call, and of those after it.
#[test]
fn the_remarks_of_hooks_are_on_record() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let audit = Audit::start(lab.home.path(), lab.services.clock).unwrap();
    let gate = Gate::new(audit.clone(), ShowLock::default());
    call_at(&gate, &lab, &registry, "look", serde_json::json!({ "before": "annotate", "after": "remark" })).unwrap();
    call_at(&gate, &lab, &registry, "look", serde_json::json!({})).unwrap();
    audit.flush(Duration::from_secs(20));
    let rows = Chain::at(lab.home.path()).find(Some(Kind::Tool), None, 0, 10).unwrap();
    let [remarked, silent] = rows.as_slice() else { panic!("{rows:?}") };
    let detail: serde_json::Value = serde_json::from_str(&remarked.detail).unwrap();
    for (key, word) in [("before:project:hostile-hooks", "well"), ("after:project:hostile-hooks", "fine")] {
        let remark = detail[key].as_str().unwrap_or_else(|| panic!("{key}: {detail}"));
        assert!(remark.contains(word) && remark.len() > 1000 && !remark.chars().any(char::is_control), "{remark}");
    }
    assert!(!silent.detail.contains("hostile-hooks"), "{}", silent.detail);
}

#[test]
fn a_hook_that_traps_stalls_or_babbles_denies_the_call() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    for before in ["trap", "loop", "no-text"] {
        let began = Instant::now();
        let args = serde_json::json!({ "how": "mode", "mode": "two", "before": before });
        let denied = call(&lab, &registry, "change", args);
        assert!(
            matches!(&denied, Err(ToolError::Denied { reason, .. }) if reason.contains("gave no answer")),
            "{before}: {denied:?}"
        );
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    assert!(lab.view.modes.lock().unwrap().is_empty(), "none of these calls came through");
}

/// A hook sees calls of the tools that its package names, and no others.
#[test]
fn a_hook_that_names_tools_is_asked_about_no_others() {
    let lab = Lab::new();
    let named =
        [("summary = \"Decides as the argument `before` says.\"", "summary = \"\"\ntools = [\"lo*\", \"propose\"]")];
    let hooks = lab.home.path().join("named.wasm");
    std::fs::write(&hooks, bytes_with("tests/hostile-hooks", &named)).unwrap();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let source = |name: &str, path| {
        let (name, grants) = (name.to_owned(), lab.grants());
        FeatureSource { name, path, bundled: false, grants, ..FeatureSource::default() }
    };
    let sources = vec![source("hostile-hooks", hooks), source("hostile-tools", path("tests/hostile-tools"))];
    let registry = Registry::default().with(sources, &lab.sandbox, &observer);
    assert_eq!(registry.refused(), []);
    let denied = |tool, args| matches!(call(&lab, &registry, tool, args), Err(ToolError::Denied { .. }));
    assert!(denied("look", serde_json::json!({ "before": "deny" })));
    assert!(denied("propose", serde_json::json!({ "how": "nothing", "before": "deny" })));
    assert!(!denied("change", serde_json::json!({ "how": "mode", "mode": "two", "before": "deny" })));
    let remarks =
        call(&lab, &registry, "change", serde_json::json!({ "how": "mode", "mode": "two", "after": "remark" }));
    assert_eq!(remarks.unwrap().remarks.len(), 1, "its other hook names none, and sees all");
}

/// One hook that lets a call pass is no answer for the next.
#[test]
fn every_hook_is_asked() {
    let lab = Lab::new();
    let changes = [("KEY:before", "KEY:second"), ("project:hostile-hooks", "project:hostile-hookz"), ("hold", "held")];
    let second = lab.home.path().join("second.wasm");
    std::fs::write(&second, bytes_with("tests/hostile-hooks", &changes)).unwrap();
    let (_, silence) = SinkQueue::new();
    let (observer, _, _) = observer::start(silence, None).unwrap();
    let source = |name: &str, path: std::path::PathBuf| FeatureSource {
        name: name.into(),
        path,
        bundled: false,
        grants: lab.grants(),
        ..FeatureSource::default()
    };
    let sources = vec![
        source("hostile-hooks", path("tests/hostile-hooks")),
        source("hostile-hookz", second),
        source("hostile-tools", path("tests/hostile-tools")),
    ];
    let registry = Registry::default().with(sources, &lab.sandbox, &observer);
    assert_eq!(registry.refused(), []);
    for (before, second, denied_by) in [
        ("annotate", "deny", "project:hostile-hookz"),
        ("deny", "annotate", "project:hostile-hooks"),
        ("nothing", "trap", "project:hostile-hookz"),
    ] {
        let args = serde_json::json!({ "how": "mode", "mode": "two", "before": before, "second": second });
        let denied = call(&lab, &registry, "change", args);
        assert!(
            matches!(&denied, Err(ToolError::Denied { feature, .. }) if feature == denied_by),
            "{before} {second}: {denied:?}"
        );
    }
    assert!(lab.view.modes.lock().unwrap().is_empty(), "none of these calls came through");
}

#[test]
fn a_hook_after_a_call_changes_nothing_about_it() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    for after in ["trap", "loop", "no-text"] {
        let done = call(&lab, &registry, "look", serde_json::json!({ "after": after })).unwrap();
        assert_eq!(done.result, "done");
        assert!(done.remarks[0].contains("its hook gave no answer"), "{:?}", done.remarks);
    }
}

#[test]
fn a_result_that_is_no_json_is_a_failure() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    for how in ["no-json", "deep"] {
        let failed = call(&lab, &registry, "look", serde_json::json!({ "how": how }));
        assert!(failed.as_ref().is_err_and(|error| error.to_string().contains("is not JSON")), "{how}: {failed:?}");
    }
}

#[test]
fn arguments_that_are_too_long_reach_nobody() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let refused = call(&lab, &registry, "look", serde_json::json!({ "x": "y".repeat(300_000) }));
    assert!(matches!(refused, Err(ToolError::TooLong(_))), "{refused:?}");
}

/// A feature that is busy with a tool of its own is asked all the same: its hooks have an instance of
/// their own.
#[test]
fn a_tool_that_never_answers_does_not_hold_up_the_hooks_of_its_feature() {
    let lab = Lab::new();
    let (registry, ..) = lab.registry(&BOTH);
    let request = || ToolRequest { args: serde_json::Map::new(), confirmed: false, confirmation: None };
    let (cancelled, gate, policy) = (CancellationToken::new(), Gate::default(), Policy::default());
    let (caller, tools) = (Caller::library(), ToolSet { registry: &registry, policy: &policy });
    let ask = |name| gate.call(tools, &caller, name, request(), cancelled.clone(), Arc::new(|_, _| {}));
    lab.prepare("tests/hostile-hooks").runtime().block_on(async {
        let held = ask("hold");
        tokio::pin!(held);
        // It is at it from here on: its hooks were asked, and let it pass.
        let busy = |name: &str| registry.reports().iter().any(|report| report.name == name && report.calls == 1);
        tokio::select! {
            came = &mut held => panic!("{came:?}"),
            () = async { while !busy("hostile-hooks") { tokio::task::yield_now().await } } => {}
        }
        tokio::select! {
            biased;
            came = ask("look") => assert_eq!(came.unwrap().result, "done"),
            came = &mut held => panic!("the other call waited for it: {came:?}"),
        }
        assert!(held.await.is_err());
    });
}

/// FEA-6: a host notifies features of another mode, and of another configuration.
#[test]
fn a_host_tells_of_changes() {
    let text = |extra: &str| {
        format!(
            "{extra}[features.hostile-hooks]\n{}[features.hostile-hooks.grants]\nobserve_events = ['*']\n\
             [[modes]]\nname = 'Play'\n[[modes]]\nname = 'trap'\n[[modes]]\nname = 'next-trap'\n",
            pins(&path("tests/hostile-hooks"))
        )
    };
    let host = Host::builder().start(&config::parse(&text(""), "config.toml").unwrap()).unwrap();
    let traps = || {
        let features = host.status().features;
        let hooks = features.into_iter().find(|feature| feature.name == "hostile-hooks").unwrap();
        assert_eq!(hooks.refused, None);
        hooks.trapped
    };
    host.set_mode("trap");
    until("the hook is notified of the mode", || traps() == 1);
    host.set_mode("next-trap");
    until("the mode", || host.status().mode.as_deref() == Some("next-trap"));
    until("the hook is notified of a configuration", || {
        host.reload(&text("# again\n"), "config.toml").unwrap();
        traps() > 1
    });
    host.stop();
}
