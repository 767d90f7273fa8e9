//! Programs: those that a person named are run, with their arguments, and none outlives its feature.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use conductor_audit::caller::Caller;
use conductor_package::Grants;
use conductor_package::descriptor::Tier;
use conductor_services::programs::MAX_RUNNING;

use crate::lab::{Lab, Tools, until};

fn run(tools: &Tools, how: &str, program: &str) -> Result<String, String> {
    let args = serde_json::json!({ "how": how, "program": program });
    tools.look(&args.to_string()).map_err(|error| error.to_string())
}

/// Processes of this test that nap, by what their wrapper is called with: the folder that the run was handed.
fn naps() -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = std::process::id();
    let is_nap = |folder: &std::path::Path| {
        let line = fs::read(folder.join("cmdline")).unwrap_or_default();
        let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        line.split(|byte| *byte == 0).any(|word| word == b"/bin/sleep") && parent == Some(own)
    };
    all.into_iter().filter(|process| is_nap(&process.path())).count()
}

#[test]
fn only_the_programs_of_the_grant_are_run_and_with_their_arguments_alone() {
    let lab = Lab::new();
    let tools = lab.tools();
    assert_eq!(run(&tools, "run", "echo").unwrap(), r#"[0,"exactly this and that\n",""]"#);
    assert_eq!(run(&tools, "run", "sh").unwrap(), r#"[3,"",""]"#);
    for name in ["cat", "/bin/cat", "/bin/echo", "echo x", "../echo", "", "ECHO", "echo\0"] {
        let error = run(&tools, "run", name).unwrap_err();
        assert!(error.contains("is not granted"), "{name:?}: {error}");
    }
    let error = run(&tools, "wait-twice", "echo").unwrap_err();
    assert!(error.contains("it was waited for before"), "{error}");
    tools.goes_on();

    // Nor any, where none was granted.
    let grants = Grants { programs: Vec::new(), ..lab.grants() };
    let feature = lab.sandbox.prepare(&crate::lab::guest("tests/hostile-tools"), grants).unwrap();
    let error = run(&Tools::new(feature), "run", "echo").unwrap_err();
    assert!(error.contains("hostile: no programs"), "{error}");
}

/// One test, since it counts processes of its own.
#[test]
fn programs_are_counted_and_end_with_their_feature_and_its_grant() {
    let lab = Lab::new();
    {
        let tools = lab.tools();
        for number in 0..MAX_RUNNING {
            assert_eq!(run(&tools, "run-and-keep", "sleep").unwrap(), "\"done\"", "{number}");
        }
        let error = run(&tools, "run-and-keep", "sleep").unwrap_err();
        assert!(error.contains("as many programs of this feature run as may"), "{error}");
        until("they nap", || naps() == MAX_RUNNING);
        tools.goes_on();
    }
    until("they end with the instance that started them", || naps() == 0);

    let feature = lab.prepare("tests/hostile-tools");
    feature.runtime().clone().block_on(async {
        let mut instance = feature.instantiate_control().await.unwrap();
        let args = r#"{"how": "run", "program": "sleep"}"#;
        let cancelled = tokio_util::sync::CancellationToken::new();
        let call = instance.call_tool(Caller::library(), Tier::ReadOnly, "look", args, &cancelled, Arc::new(|_, _| {}));
        let mut call = Box::pin(call);
        while naps() == 0 {
            assert!(tokio::time::timeout(Duration::from_millis(5), &mut call).await.is_err(), "it naps");
        }
        feature.facts().revoke();
        let error = call.await.unwrap_err().to_string();
        assert!(error.contains("the grant was revoked"), "{error}");
    });
    until("they end with the grant", || naps() == 0);
}
