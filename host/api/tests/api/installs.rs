//! Installing over the API: a package is looked at, and installed by the digest of what was shown. Secrets go in and
//! don't come out.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::client::{get, post};
use super::{SHOW, Stage, code};

/// A package of the tests' own guests.
fn package(name: &str) -> String {
    let features = std::env::var_os("CONDUCTOR_FEATURES")
        .map_or_else(|| std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("features"), PathBuf::from);
    features.join(format!("tests/{name}.wasm")).display().to_string()
}

// FEA-8, API-1
#[test]
fn a_feature_is_installed_by_the_digest_that_was_shown() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let source = package("hello");
    let (status, view) = post(home, "/v1/install/look", &json!({ "source": source }));
    assert_eq!((status, &view["what"], &view["id"]), (200, &json!("install"), &json!("project:hello")), "{view}");
    assert_eq!(get(home, "/v1/receipts"), (200, json!([])), "nothing has changed");

    let install = |package: Value| post(home, "/v1/install", &json!({ "package": package }));
    assert_eq!(code(&install(json!({ "source": source }))), (422, "bad_request"), "without a digest");
    let other = "0".repeat(64);
    assert_eq!(code(&install(json!({ "source": source, "digest": other }))), (409, "stale"));
    assert_eq!(code(&install(json!({ "digest": other }))), (422, "bad_request"), "from nowhere");
    assert_eq!(get(home, "/v1/features"), (200, json!([])));

    let shown = json!({ "source": source, "digest": view["digest"] });
    let (status, report) = install(shown.clone());
    assert_eq!((status, &report["feature"], &report["enabled"]), (200, &json!("hello"), &json!(true)), "{report}");
    let running = || get(home, "/v1/features").1.as_array().unwrap().len();
    assert_eq!(running(), 1, "it is in force when the answer comes");
    assert_eq!(code(&install(shown)), (409, "conflict"), "it is there already");

    let change = |what: &str, body: Value| post(home, &format!("/v1/features/hello/{what}"), &body);
    assert_eq!(change("disable", json!({})).1["what"], "disable");
    assert_eq!(running(), 0);
    assert_eq!(change("enable", json!({})).1["what"], "enable");
    assert_eq!(running(), 1);
    let only = json!({ "actions": ["Hello"] });
    assert_eq!(change("disable", only.clone()).1["what"], "refuse");
    let skipped = || get(home, "/v1/features").1[0]["skipped"].clone();
    assert!(skipped()[0].as_str().unwrap().contains("action Hello: refused by a person"), "{}", skipped());
    assert_eq!(code(&change("enable", json!({ "tools": ["none"] }))), (422, "bad_request"), "it has none");
    assert_eq!(change("enable", only).1["what"], "accept");
    assert_eq!(skipped(), json!([]));
    assert_eq!(code(&change("grant", json!({ "capabilities": ["alert"] }))), (422, "bad_request"), "it asks for none");
    assert_eq!(code(&change("downgrade", json!({}))), (409, "conflict"), "there was none before");
    assert_eq!(code(&post(home, "/v1/features/nothing/enable", &json!({}))), (404, "not_found"));
    let (status, removed) = change("remove", json!({ "data": false }));
    assert_eq!((status, &removed["feature"]["what"], &removed["deleted"]), (200, &json!("remove"), &json!([])));
    assert_eq!(running(), 0);

    let receipts = get(home, "/v1/receipts").1;
    let whats: Vec<&Value> = receipts.as_array().unwrap().iter().map(|receipt| &receipt["what"]).collect();
    assert_eq!(whats, ["install", "disable", "enable", "refuse", "accept", "remove"]);
}

// FEA-8: the words of a capability grant what was shown, wildcards included, and an example is marked as one.
#[test]
fn what_is_ticked_is_granted_as_it_was_shown() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let source = package("metronome");
    let view = post(home, "/v1/install/look", &json!({ "source": source })).1;
    let asked = view["asked"].as_array().unwrap();
    let of = |key: &str| asked.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("words"), [json!(["timers"]), json!(["network:ticks"])], "{view}");
    assert_eq!(of("examples"), [json!(["timers"]), json!(["network:ticks=127.0.0.1:PORT"])], "{view}");
    let install = |grant: &[&str]| {
        let package = json!({ "source": source, "digest": view["digest"] });
        post(home, "/v1/install", &json!({ "package": package, "grant": grant }))
    };
    assert_eq!(code(&install(&["network:ticks=127.0.0.1:PORT"])), (422, "bad_request"), "a placeholder is no port");
    let (status, report) = install(&["timers", "network:ticks"]);
    assert_eq!((status, &report["denied"]), (200, &json!([])), "{report}");
    assert_eq!(report["granted"][1]["udp"], json!(["127.0.0.1:*"]), "{report}");
}

#[test]
fn a_secret_is_kept_on_record_and_never_told() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let set = |id: &str, body: Value| post(home, &format!("/v1/secrets/{id}"), &body);
    assert_eq!(set("lamp-key", json!({ "env": "LAMP_KEY" })), (200, json!({ "place": { "env": "LAMP_KEY" } })));
    assert_eq!(get(home, "/v1/secrets"), (200, json!({ "lamp-key": { "env": "LAMP_KEY" } })));
    for wrong in [json!({}), json!({ "env": "A", "value": "hunter2hunter2" }), json!({ "env": "no name" })] {
        let answer = set("lamp-key", wrong);
        assert_eq!(code(&answer), (422, "bad_request"));
        assert!(!answer.1.to_string().contains("hunter2"), "{answer:?}");
    }
    assert_eq!(code(&set("No%20Id", json!({ "env": "A" }))), (422, "bad_request"));
    assert_eq!(set("lamp-key/remove", json!({})), (200, Value::Null));
    assert_eq!(code(&set("lamp-key/remove", json!({}))), (404, "not_found"));
    let rows = get(home, "/v1/audit?limit=1000").1;
    let of_secrets = rows.as_array().unwrap().iter().filter(|row| row["kind"] == "secret" && row["outcome"] == "done");
    assert_eq!(of_secrets.count(), 2, "set and removed: {rows:#}");
}

#[test]
fn what_changes_features_or_secrets_is_the_owners() {
    let stage = Stage::new(SHOW);
    let document = get(stage.home(), "/v1/openapi.json").1;
    let scope = |path: &str, method: &str| document["paths"][path][method]["x-conductor-scope"].clone();
    for path in ["/v1/install/look", "/v1/install", "/v1/secrets/{id}", "/v1/secrets/{id}/remove"] {
        assert_eq!(scope(path, "post"), "owner", "{path}");
    }
    for what in ["downgrade", "grant", "revoke", "enable", "disable", "remove", "lift"] {
        assert_eq!(scope(&format!("/v1/features/{{name}}/{what}"), "post"), "owner", "{what}");
    }
    for what in ["start", "stop"] {
        assert_eq!(scope(&format!("/v1/features/{{name}}/tasks/{{task}}/{what}"), "post"), "owner", "{what}");
        let task = format!("/v1/features/nothing/tasks/watch/{what}");
        assert_eq!(code(&post(stage.home(), &task, &json!({}))), (404, "not_found"));
    }
    for path in ["/v1/receipts", "/v1/secrets"] {
        assert_eq!(scope(path, "get"), "owner", "{path}");
    }
}
