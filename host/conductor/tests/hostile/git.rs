//! Git: what was committed to the granted repository is read, and nothing beside it.

use std::process::Command;
use std::sync::Arc;

use conductor_audit::caller::Caller;
use conductor_package::descriptor::Tier;

use crate::lab::{Lab, Tools};

/// A laboratory whose granted repository has one file in one commit, and one that was not committed.
fn lab() -> Lab {
    let lab = Lab::new();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(lab.look.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(arguments);
        assert!(command.status().unwrap().success(), "{arguments:?}");
    };
    git(&["init", "--quiet"]);
    std::fs::write(lab.look.path().join("committed"), "committed").unwrap();
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=one"]);
    std::fs::write(lab.look.path().join("draft"), "draft").unwrap();
    lab
}

fn read(tools: &Tools, revision: &str, path: &str) -> Result<String, String> {
    let args = serde_json::json!({ "how": "read-commit", "revision": revision, "path": path });
    tools.look(&args.to_string()).map_err(|error| error.to_string())
}

#[test]
fn only_what_was_committed_is_read() {
    let lab = lab();
    let tools = lab.tools();
    assert_eq!(read(&tools, "HEAD", "committed").unwrap(), "\"committed\"");
    let names = tools.look(r#"{"how": "names-in-commit", "revision": "HEAD", "path": "."}"#).unwrap();
    assert_eq!(names, r#"["committed"]"#);
    for path in ["draft", ".git/config", ".git", "..", "../committed", "/etc/passwd", "committed/x", "", "a\0b"] {
        assert!(read(&tools, "HEAD", path).is_err(), "{path:?}");
    }
    for revision in ["HEAD:committed", "HEAD~1", "HEAD..HEAD", "--all", "../../etc/passwd", "config", "@{upstream}", ""]
    {
        assert!(read(&tools, revision, "committed").is_err(), "{revision:?}");
    }
    tools.goes_on();
}

#[test]
fn snapshots_are_not_hoarded() {
    let lab = lab();
    let tools = lab.tools();
    assert!(tools.how("hoard-commits").is_err());
    tools.goes_on();
}

#[test]
fn a_folder_that_is_no_repository_opens_none() {
    let tools = Lab::new();
    assert!(read(&tools.tools(), "HEAD", "committed").unwrap_err().contains("repository"));
}

#[test]
fn a_repository_that_is_taken_back_is_closed() {
    let lab = lab();
    let feature = lab.prepare("tests/hostile-tools");
    feature.runtime().clone().block_on(async {
        let mut instance = feature.instantiate_control().await.unwrap();
        let args = r#"{"how": "read-commit", "revision": "HEAD", "path": "committed"}"#;
        let cancelled = tokio_util::sync::CancellationToken::new();
        instance
            .call_tool(Caller::library(), Tier::ReadOnly, "look", args, &cancelled, Arc::new(|_, _| {}))
            .await
            .unwrap();
        feature.facts().revoke();
        let call = instance.call_tool(Caller::library(), Tier::ReadOnly, "look", args, &cancelled, Arc::new(|_, _| {}));
        let error = call.await.unwrap_err().to_string();
        assert!(error.contains("the grant was revoked"), "{error}");
    });
}
