//! What is kept of conversations: listed, shown, exported, forked, deleted and streamed, with what they cost, and after a
//! host was killed. Turns themselves are tested in `chat.rs`.
//!
//! The guests are built by `cargo xtask features`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use conductor::api::client::Client;
use conductor::api::types::{ConversationEvents, Say, StreamItem, StreamQuery};
use conductor_chat::charge::Charge;
use conductor_chat::record::{ChatEvent, Outcome, Recorded, Tokens};
use conductor_chat::store::ConversationStore;
use conductor_chat::store::usage::{UsageBy, Used, UsedBy};
use conductor_observation::ObservationView;
use conductor_ports::simulated::SimulatedPorts;
use serde_json::{Value, json};

mod stage;

use stage::*;

// CLI-1, LLM-4, LLM-5
#[test]
fn the_command_line_talks_lists_exports_and_says_what_it_cost() {
    let model = Model::new(|_, _| Reply::Text("Hello\nthere."));
    let stage = Stage::new(&model, "");
    let output = stage.run(&["chat", "say hello to the kraken"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello\nthere.\n");
    let output = stage.run(&["chat", "--conversation", "1", "--json", "again"]);
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Recorded> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(matches!(&lines[0].event, ChatEvent::Message { text } if text == "again"), "{lines:?}");
    assert!(matches!(lines.last().unwrap().event, ChatEvent::TurnEnded { outcome: Outcome::Done, .. }));

    let text = |arguments: &[&str]| String::from_utf8(stage.run(arguments).stdout).unwrap();
    assert!(text(&["chat", "search", "kraken hello"]).contains("say hello to the kraken"));
    assert!(!text(&["chat", "search", "squid"]).contains("kraken"));
    let exported = text(&["chat", "export", "1"]);
    assert!(exported.contains("## You\n\nagain") && exported.contains("$0.0000"), "{exported}");
    let usage = text(&["models", "usage", "--by", "model"]);
    // LLM-8: on this computer it costs nothing, and that is known.
    assert!(usage.contains("local") && usage.contains("$0.0000") && !usage.contains("unknown"), "{usage}");
    let rows = stage.client.usage(UsageBy::Model).unwrap();
    assert_eq!((rows[0].exchanges, rows[0].tokens.input, rows[0].unknown), (2, 200, 0));
    assert!(text(&["models", "list"]).contains("openai-compatible"));
    assert!(text(&["models", "check"]).contains("local answers"));
    assert!(stage.run(&["chat", "delete", "1", "--yes"]).status.success());
    assert!(text(&["chat", "list"]).contains("there is no conversation"));
    let refused = stage.run(&["chat", "--conversation", "1", "x"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("there is no conversation 1"));
}

// CLI-1, LLM-4
#[test]
fn a_conversation_is_shown_and_forked_at_the_command_line() {
    let model = Model::new(|number, _| match number {
        0 => Reply::Text("Hello."),
        1 => Reply::Text("Once upon a time."),
        _ => Reply::Text("Well?"),
    });
    let stage = Stage::new(&model, "");
    let text = |arguments: &[&str]| {
        let output = stage.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |arguments: &[&str]| serde_json::from_str::<Value>(&text(arguments)).unwrap();
    text(&["chat", "greet me"]);
    text(&["chat", "--conversation", "1", "now a story"]);
    let shown = text(&["chat", "show", "1"]);
    assert!(shown.contains("# greet me") && shown.contains("## You") && shown.contains("Once upon a time."), "{shown}");
    let whole = json(&["chat", "show", "1", "--json"]);
    assert_eq!(whole, json(&["chat", "export", "1", "--json"]));
    assert_eq!((&whole["conversation"]["id"], &whole["conversation"]["title"]), (&json!(1), &json!("greet me")));
    let events = whole["events"].as_array().unwrap();
    let first = events.iter().find(|event| event["kind"] == "turn_ended").unwrap()["number"].as_u64().unwrap();
    assert!((first as usize) < events.len(), "{events:?}");

    // Up to the end of the first turn, as a program and as a person has it forked.
    let fork = json(&["chat", "fork", "1", "--through", &first.to_string(), "--json"]);
    assert_eq!((&fork["id"], &fork["last"]), (&json!(2), &json!(first)));
    assert_eq!(text(&["chat", "fork", "1"]), "conversation 3; go on with: conductor chat --conversation 3\n");
    text(&["chat", "--conversation", "2", "go on"]);
    let sent = model.requests()[2]["messages"].to_string();
    assert!(sent.contains("greet me") && !sent.contains("Once upon a time."), "{sent}");
    text(&["chat", "--conversation", "3", "go on"]);
    assert!(model.requests()[3]["messages"].to_string().contains("Once upon a time."));
    assert_eq!(json(&["chat", "show", "1", "--json"]), whole, "the first one is as it was");
    let missing = stage.run(&["chat", "fork", "9"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("there is no conversation 9"));
}

// LLM-5: of which day the prices are is said wherever a cost is that was calculated by them.
#[test]
fn a_cost_is_by_prices_of_a_day() {
    let (folder, compiled) = compile("dated", &["openai-compatible", "anthropic"], |_, component| component);
    let claude = "provider = 'anthropic'\nmodel = 'claude-opus-5-5'";
    let model = Model::new(|_, _| Reply::Text("?"));
    let more = format!(
        "[models.claude]\n{claude}\n\n[models.mine]\n{claude}\nprice = {{ input = 1, output = 2 }}\n\n\
         [models.here]\n{claude}\nurl = 'http://127.0.0.1:9'\n"
    );
    let home = Home::beside(&compiled, &Home::text(&model, &more));
    // What was asked before this host.
    let store = ConversationStore::open(&home.0).unwrap();
    let id = store.begin(Some("claude")).unwrap().id;
    let day = Some("2026-01-02".to_owned());
    let tokens = Tokens { input: 1000, cached: 0, output: 100 };
    let charge = Charge { tokens, estimated: false, cost: Some(7_500_000), prices_as_of: day.clone() };
    let answered = ChatEvent::Answered {
        model: "claude".into(),
        stop: "done".into(),
        usage: tokens,
        cost: charge.cost,
        estimated: false,
        prices_as_of: day,
        notes: Vec::new(),
    };
    let events = [
        ChatEvent::Message { text: "hello".into() },
        ChatEvent::Asked { model: "claude".into() },
        ChatEvent::Text { text: "Hello.".into() },
        answered,
        ChatEvent::TurnEnded { outcome: Outcome::Done, why: None },
    ];
    let by = UsedBy::Conversation(id);
    store.append_answer(&Used { by, model: "claude", provider: "anthropic", charge: &charge }, &events).unwrap();
    drop(store);

    let stage = Stage::with_features(&folder, home, SimulatedPorts::new());
    let models = stage.conductor.as_ref().unwrap().host().models();
    let day = |name: &str| models.prices_as_of(name);
    let declared = day("claude").unwrap();
    assert!(declared.len() == "2026-01-02".len() && declared.starts_with("20"), "{declared}");
    assert_eq!(
        (day("mine"), day("here"), day("local")),
        (None, None, None),
        "these are the person's, or there is none"
    );
    let text = |arguments: &[&str]| String::from_utf8(stage.run(arguments).stdout).unwrap();
    let usage = text(&["models", "usage"]);
    let row = usage.lines().find(|line| line.contains("$0.0075")).unwrap_or_else(|| panic!("{usage}"));
    assert!(usage.contains("PRICES AS OF") && row.ends_with("2026-01-02"), "{usage}");
    let exported = text(&["chat", "export", "1"]);
    assert!(exported.contains("100 written, $0.0075 by prices as of 2026-01-02*"), "{exported}");
    assert!(text(&["chat", "export", "1", "--json"]).contains("\"prices_as_of\": \"2026-01-02\""));
}

// LLM-4: the process of the host is killed in the middle of an answer; all that was shown is there afterwards.
#[test]
fn a_host_that_is_killed_loses_nothing_that_was_shown() {
    let model = Model::new(|number, _| match number {
        0 => Reply::Calls(vec![("conductor_get_modes", json!({}))]),
        1 => Reply::Hang("Half of"),
        _ => Reply::Text("the story."),
    });
    let home = Home::new(&model, "");
    let mut child = Command::new(env!("CARGO_BIN_EXE_conductor"))
        .arg("--home")
        .arg(&home.0)
        .arg("run")
        .env("CONDUCTOR_FEATURES", &compiled().0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let client = Client::new(&home.0);
    until("the host answers", || client.status().is_ok());
    let id = client.begin_conversation(None).unwrap().id;
    client.say(id, &Say { text: "a story".into(), model: None }).unwrap();
    let mut shown = Vec::new();
    client
        .conversation_events(id, &ConversationEvents { after: 0, follow: true }, |one| {
            let is_half = matches!(&one.event, ChatEvent::Text { text } if text == "Half of");
            shown.push(one);
            !is_half
        })
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let stage = Stage::start(home, SimulatedPorts::new());
    let mut kept = Vec::new();
    let all = ConversationEvents::default();
    stage
        .client
        .conversation_events(id, &all, |one| {
            kept.push(one);
            true
        })
        .unwrap();
    let end = kept.pop().unwrap();
    assert!(
        matches!(&end.event, ChatEvent::TurnEnded { outcome: Outcome::CutOff, why: Some(why) } if why.contains("go on"))
    );
    assert_eq!(kept, shown);
    assert_eq!(said(&stage.turn(id, "go on")), "the story.");
}

#[test]
fn the_file_is_the_owners() {
    use std::os::unix::fs::PermissionsExt as _;
    let model = Model::new(|_, _| Reply::Text("x"));
    let stage = Stage::new(&model, "");
    stage.turn(stage.begin(), "x");
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&stage.home.0.join("conversations.sqlite")), 0o600);
}

// LLM-10, LLM-8: the stream of the host tells its owner of conversations, from any point on, and of the health of models.
#[test]
fn the_event_stream_tells_of_conversations_and_of_the_health_of_models() {
    let model = Model::new(|number, _| match number {
        0 => Reply::Calls(vec![("conductor_get_modes", json!({}))]),
        1 => Reply::Text("two modes"),
        _ => Reply::Status(404, "no such model"),
    });
    let stage = Stage::new(&model, "");
    let id = stage.begin();
    let kept = stage.turn(id, "which modes are there?");
    stage.turn(id, "and now?");
    let read = |after: &str| {
        let which = StreamQuery { after: Some(after.to_owned()), kinds: Some("chat,model".into()) };
        let (mut told, mut ended) = (Vec::new(), 0);
        let each = |item: StreamItem| {
            ended +=
                usize::from(matches!(&item.what, ObservationView::Chat { event, .. } if event["kind"] == "turn_ended"));
            told.push(item);
            ended < 2
        };
        stage.client.events(&which, each).unwrap();
        told
    };
    let told = read("start");
    let chat: Vec<&Value> = told
        .iter()
        .filter_map(|item| match &item.what {
            ObservationView::Chat { conversation, event, .. } if *conversation == id => Some(event),
            _ => None,
        })
        .collect();
    let same: Vec<Value> = kept.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    assert_eq!(chat[..same.len()].iter().copied().cloned().collect::<Vec<_>>(), same);
    for kind in ["message", "asked", "call", "call_ended", "text", "answered", "turn_ended", "model_failed"] {
        assert!(chat.iter().any(|event| event["kind"] == kind), "{kind}: {chat:?}");
    }
    let health: Vec<bool> = told
        .iter()
        .filter_map(|item| match &item.what {
            ObservationView::Model { model, error } if model == "local" => Some(error.is_none()),
            _ => None,
        })
        .collect();
    assert_eq!(health, [true, false], "a change is reported, and nothing else");
    assert!(stage.client.models().unwrap()[0].error.as_ref().is_some_and(|why| why.contains("no such model")));

    // Gone on with at any cursor, it is the rest.
    let middle = told.len() / 2;
    let rest: Vec<String> = told[middle + 1..].iter().map(|item| item.cursor.clone()).collect();
    let which = StreamQuery { after: Some(told[middle].cursor.clone()), kinds: Some("chat,model".into()) };
    let mut again = Vec::new();
    stage
        .client
        .events(&which, |item| {
            again.push(item.cursor);
            again.len() < rest.len()
        })
        .unwrap();
    assert_eq!(again, rest);
}
