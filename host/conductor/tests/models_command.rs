//! `conductor models add` and `remove`, and the switches of `[llm]`, with a host and a scripted API on this machine.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use conductor::api::client::AskError;
use conductor::api::types::{AuditQuery, AuditRow, GrantRequest, Say};
use conductor_chat::record::{ChatEvent, Outcome};
use conductor_ports::simulated::SimulatedPorts;
use serde_json::{Value, json};

mod stage;

use stage::*;

/// An API with two models.
fn api() -> Model {
    Model::new(|_, request| match request["path"].as_str() {
        Some("/v1/models") => Reply::Json(json!({ "data": [{ "id": "small" }, { "id": "large" }] })),
        Some(_) => Reply::Status(404, "no such page"),
        None => Reply::Text("ok"),
    })
}

/// A host in a home without a model.
fn empty() -> Stage {
    Stage::start(Home::with("# mine\n[[modes]]\nname = 'Play'\n"), SimulatedPorts::new())
}

fn lines(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

// LLM-1, LLM-6, PLN-3: from nothing to a model that answers, and back.
#[test]
fn a_model_is_added_by_a_plan_asked_and_removed_with_all_that_only_it_needed() {
    let (model, stage) = (api(), empty());
    let before = stage.home.config();
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    // A variable that every process has, and whose value can stand in a header.
    let add = ["models", "add", "openai-compatible", "small", "--name", "mine", "--url", &url];
    let added = stage.run(&[&add[..], &["--secret", "model-key", "--env", "PATH", "--yes", "--json"]].concat());
    assert!(added.status.success(), "{}", lines(&added));
    let said: Value = serde_json::from_slice(&added.stdout).unwrap();
    assert_eq!((&said["name"], &said["check"]["error"]), (&json!("mine"), &Value::Null), "{said}");
    let key = format!("Bearer {}", std::env::var("PATH").unwrap());
    let asked = model.requests();
    assert!(asked.iter().any(|one| one["path"] == "/v1/models" && one["key"] == key.as_str()), "{asked:?}");

    let config = stage.home.config();
    for part in ["# mine", "[models.mine]", "model = \"small\"", "secret = \"model-key\""] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert!(!config.contains(&key), "no key is in the configuration");
    let list = lines(&stage.run(&["models", "list"]));
    assert!(list.contains("mine") && list.contains("free: on this computer"), "{list}");
    assert!(stage.run(&["chat", "hello"]).status.success());
    let again = stage.run(&[&add[..], &["--yes"]].concat());
    assert!(again.status.code() == Some(2) && lines(&again).contains("there is a model \"mine\" already"));

    let removed = stage.run(&["models", "remove", "mine", "--all", "--yes", "--json"]);
    assert!(removed.status.success(), "{}", lines(&removed));
    let said: Value = serde_json::from_slice(&removed.stdout).unwrap();
    let site = format!("127.0.0.1:{}", model.port);
    let taken_back = [format!("network:chat=http:{site}"), format!("secret:model-key={site}")];
    assert_eq!(said, json!({ "removed": "mine", "forgotten": "model-key", "taken_back": taken_back }));
    let after = stage.home.config();
    assert!(after.starts_with(before.trim_end()) && !after.contains("mine]") && !after.contains(&site), "{after}");
    assert!(stage.client.secrets().unwrap().is_empty());
    assert!(stage.client.models().unwrap().is_empty());
}

// FEA-4, API-1
#[test]
fn what_a_bundled_feature_may_use_is_changed_over_the_api_on_record_and_undone() {
    let stage = empty();
    let before = stage.home.config();
    let grant = |feature: &str, words: &str| {
        stage.client.grant(feature, &GrantRequest { capabilities: vec![words.to_owned()] })
    };
    let site = "127.0.0.1:9";
    let may = || {
        let features = stage.client.features().unwrap();
        let feature = features.into_iter().find(|feature| feature.name == "openai-compatible").unwrap();
        feature.grants.http.iter().any(|host| host.to_string() == site)
    };
    let word = format!("network:chat=http:{site}");
    let report = grant("openai-compatible", &word).unwrap();
    assert!(report.granted.iter().any(|granted| granted.capability.scope().contains(&format!("http:{site}"))));
    assert!(may() && stage.home.config().contains(site), "it is in the file, and in force when the answer comes");
    assert!(grant("openai-compatible", &word).unwrap().diagnostics.iter().any(|note| note.contains("says so already")));

    for (feature, word) in
        [("openai-compatible", "alert"), ("nothing", "alert"), ("openai-compatible", "network=x:y:z")]
    {
        let refused = grant(feature, word);
        assert!(matches!(refused, Err(AskError::ApiError(_))), "{feature} {word}: {refused:?}");
    }
    let rows = stage.client.audit(AuditQuery { after: None, limit: Some(100) }).unwrap();
    let is_on_record = |row: &AuditRow| row.what == "apply" && row.subject == "features/openai-compatible";
    assert!(rows.iter().any(is_on_record), "{rows:#?}");

    assert_eq!(stage.client.next_undo().unwrap().description, "grant the feature openai-compatible");
    stage.client.undo().unwrap();
    assert!(!may());
    assert_eq!(stage.home.config(), before);

    // A file that is not in force is not overwritten.
    let mine = format!("{before}# by hand\n[[modes]]\nname = 7\n");
    std::fs::write(stage.home.0.join("config.toml"), &mine).unwrap();
    let refused = grant("openai-compatible", &word);
    assert!(matches!(refused, Err(AskError::ApiError(_))), "{refused:?}");
    assert_eq!(stage.home.config(), mine);
}

#[test]
fn what_can_t_be_added_is_told_with_what_can() {
    let (model, stage) = (api(), empty());
    let url = format!("http://127.0.0.1:{}/v1", model.port);
    let refused = |arguments: &[&str]| {
        let output = stage.run(&[&["models"], arguments].concat());
        (output.status.code(), lines(&output))
    };
    let (code, said) = refused(&["add", "--yes"]);
    assert!(code == Some(2) && said.contains("name the provider; there are "), "{said}");
    assert!(said.contains("openai-compatible --url http://localhost:11434/v1"), "{said}");
    let (code, said) = refused(&["add", "litelm", "--yes"]);
    assert!(code == Some(2) && said.contains("did you mean litellm?"), "{said}");
    let (code, said) = refused(&["add", "openai-compatible", "--url", "no address", "--yes"]);
    assert!(code == Some(2) && said.contains("is no address of an API"), "{said}");
    let (code, said) = refused(&["add", "openai-compatible", "--url", &url]);
    assert!(code == Some(2) && said.contains("a person decides"), "nothing is granted without a yes: {said}");
    let (code, said) = refused(&["add", "openai-compatible", "--url", &url, "--yes"]);
    assert!(code == Some(2) && said.contains("the API has large, small"), "{said}");
    let elsewhere = url.replace("/v1", "/other");
    let (code, said) = refused(&["add", "openai-compatible", "--url", &elsewhere, "--yes"]);
    assert!(code == Some(1) && said.contains("status 404: "), "{said}");
    let (code, said) = refused(&["remove", "mine", "--yes"]);
    assert!(code == Some(2) && said.contains("there is no model \"mine\""), "{said}");
    assert!(stage.client.models().unwrap().is_empty());
}

// LLM-7
#[test]
fn one_switch_turns_models_and_agents_off() {
    let model = api();
    let stage = Stage::new(&model, "[llm]\nenabled = false\n");
    let refused = stage.client.say(stage.begin(), &Say { text: "hello".into(), model: None });
    assert!(
        matches!(&refused, Err(AskError::ApiError(why)) if why.contains("`enabled = false` under [llm]")),
        "{refused:?}"
    );
    let check = stage.client.check_model("local").unwrap();
    assert!(check.error.as_ref().is_some_and(|why| why.contains("switched off")), "{check:?}");
    assert!(!stage.conductor.as_ref().unwrap().host().allows_agents());
    assert_eq!(model.requests().len(), 0);
}

// LLM-8
#[test]
fn only_models_on_this_computer_are_asked_where_that_is_wanted() {
    let model = api();
    let far = "[llm]\nlocal_only = true\n\n[chat]\nmodels = ['far', 'proxy', 'local']\n\n\
               [models.far]\nprovider = 'openai-compatible'\nmodel = 'm'\n\n\
               [models.proxy]\nprovider = 'litellm'\nmodel = 'm'\nurl = 'http://localhost:1'\n";
    let stage = Stage::new(&model, far);
    let events = stage.turn(stage.begin(), "hello");
    let refused = |name: &str| {
        let is = |event: &ChatEvent| matches!(event, ChatEvent::ModelFailed { model, error } if model == name && error.contains("local_only"));
        events.iter().any(is)
    };
    assert!(refused("far") && refused("proxy") && !refused("local"), "{events:?}");
    assert!(matches!(events.last(), Some(ChatEvent::TurnEnded { outcome: Outcome::Done, .. })), "{events:?}");
}
