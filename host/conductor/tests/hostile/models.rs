//! Models: what a provider may send and tell, what hooks may stop, and what asking costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use conductor_audit::Audit;
use conductor_audit::caller::Caller;
use conductor_chat::completion::Ask;
use conductor_chat::queue::Place;
use conductor_chat::{Message, Models, Parameters, Part, Question, Speaker, ToolChoice, complete};
use conductor_config as config;
use conductor_host::control::gate::{Gate, ToolRequest, ToolSet};
use conductor_observer::{Observed, Observer};
use conductor_policy::Policy;
use conductor_registry::Registry;
use conductor_sandbox::exchange::Abilities;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, Play, SECRET};

/// A lab with the hostile provider, and a model for each way in which it misbehaves.
struct Room {
    lab: Lab,
    registry: Registry,
    _observer: (Observer, Observed),
}

const WAYS: [&str; 26] = [
    "good",
    "loop",
    "trap",
    "no-text",
    "elsewhere",
    "inside",
    "secret-elsewhere",
    "another-secret",
    "host-header",
    "large",
    "loop-body",
    "trap-body",
    "no-text-body",
    "flood",
    "long",
    "nonsense",
    "half",
    "half-call",
    "free",
    "trap-turn",
    "loop-expect",
    "loop-report",
    "trap-report",
    "no-text-report",
    "notes",
    "missing",
];

impl Room {
    fn new() -> Self {
        let lab = Lab::new();
        let (registry, observer, observed) = lab.registry(&["tests/hostile-models"]);
        let model = |way: &str| config::Model {
            provider: if way == "missing" { "no-such-provider".into() } else { "hostile".into() },
            model: way.into(),
            streams: (way == "loop-expect").then_some(false),
            ..config::Model::default()
        };
        let models: BTreeMap<String, _> = WAYS.iter().map(|way| ((*way).to_owned(), model(way))).collect();
        lab.models.set(Models::new(Audit::none(), models, registry.clone(), 6000));
        Self { lab, registry, _observer: (observer, observed) }
    }

    /// Has the feature ask; its tool's answer, or why there is none.
    fn ask(&self, args: &Value) -> Result<Value, String> {
        let Value::Object(args) = args.clone() else { panic!() };
        let runtime = self.registry.provider("hostile").unwrap().feature.runtime().clone();
        let request = ToolRequest { args, confirmed: false, confirmation: None };
        let (gate, policy, caller) = (Gate::default(), Policy::default(), Caller::library());
        let tools = ToolSet { registry: &self.registry, policy: &policy };
        let call = gate.call(tools, &caller, "ask", request, CancellationToken::new(), Arc::new(|_, _| {}));
        runtime.block_on(call).map(|answer| answer.result).map_err(|error| error.to_string())
    }

    fn refused(&self, model: &str, text: &str) -> String {
        self.ask(&json!({ "model": model, "text": text, "max": 500 })).unwrap_err()
    }

    fn dialled(&self) -> usize {
        self.lab.stage.dialled.lock().unwrap().len()
    }

    /// What the server answers next.
    fn answers(&self, body: &str) {
        self.lab.stage.plays.lock().unwrap().push_back(Play::Answer(200, vec![], body.into()));
    }

    #[track_caller]
    fn goes_on(&self) {
        self.lab.stage.plays.lock().unwrap().clear();
        self.answers("fine");
        let answer = self.ask(&json!({ "model": "good", "text": "well?" })).unwrap();
        assert_eq!(answer["parts"][0], "Part::Text(\"fine\")");
    }
}

/// LLM-1: what a provider sends goes where its feature's grant says, and nowhere else.
#[test]
fn a_provider_sends_where_it_was_granted() {
    let room = Room::new();
    for (way, why) in [
        ("elsewhere", "evil.example is not granted"),
        ("inside", "is http"),
        ("secret-elsewhere", "\"key\" is not granted for other.example"),
        ("another-secret", "\"another\" is not granted"),
        ("host-header", "host is the host's to set"),
        ("large", "at most 4 MiB"),
    ] {
        let error = room.refused(way, "");
        assert!(error.contains(why), "{way}: {error}");
    }
    assert_eq!(room.dialled(), 0);
    room.goes_on();
}

#[test]
fn a_provider_that_loops_traps_or_babbles_ends_its_exchange() {
    for (way, why) in [
        ("loop", "2000 ms"),
        ("trap", "trapped"),
        ("no-text", "trapped"),
        ("loop-body", "2000 ms"),
        ("trap-body", "trapped"),
        ("no-text-body", "trapped"),
        ("loop-expect", "2000 ms"),
    ] {
        let room = Room::new();
        room.answers("some");
        let error = room.refused(way, "");
        assert!(error.contains(why), "{way}: {error}");
        room.goes_on();
    }
}

#[test]
fn a_provider_that_keeps_trapping_is_left_alone() {
    let room = Room::new();
    for _ in 0..5 {
        assert!(room.refused("trap", "").contains("trapped"));
    }
    let error = room.refused("good", "");
    assert!(error.contains("quarantined"), "{error}");
    assert_eq!(room.dialled(), 0);
}

#[test]
fn what_a_provider_tells_is_bounded_and_makes_an_answer() {
    let room = Room::new();
    for (way, why) in [
        ("flood", "2000 events"),
        ("long", "307200 bytes"),
        ("nonsense", "a tool call that it is not making"),
        ("half-call", "ends within a tool call"),
        ("half", "cut off"),
    ] {
        room.answers("some");
        let error = room.refused(way, "");
        assert!(error.contains(why), "{way}: {error}");
    }
    room.goes_on();
}

#[test]
fn a_report_that_loops_or_traps_changes_nothing_about_the_answer() {
    for way in ["loop-report", "trap-report", "no-text-report"] {
        let room = Room::new();
        room.answers("fine");
        let answer = room.ask(&json!({ "model": way, "text": "well?" })).unwrap();
        assert_eq!(answer["parts"][0], "Part::Text(\"fine\")", "{way}");
        room.goes_on();
    }
}

#[test]
fn what_a_provider_reports_is_bounded() {
    let room = Room::new();
    room.answers("some");
    let how = Parameters { max_tokens: None, temperature: None, top_p: None, stop: vec![], schema: None, effort: None };
    let messages = vec![Message { speaker: Speaker::User, parts: vec![Part::Text("well?".into())] }];
    let question = Question { instructions: String::new(), messages, tools: vec![], choice: ToolChoice::Auto, how };
    let ask = Ask {
        provider: "hostile".into(),
        model: "notes".into(),
        url: None,
        secret: None,
        variable: None,
        local_only: false,
        abilities: Abilities { tools: true, streams: true, schema: true, output: None },
        question,
    };
    let provider = room.registry.provider("hostile").unwrap();
    let runtime = provider.feature.runtime().clone();
    let mut completion = complete(provider, ask, Place::free(), CancellationToken::new());
    runtime.block_on(async { while completion.next().await.is_some() {} });
    let report = completion.report().unwrap();
    assert_eq!(report.notes.len(), 8);
    assert!(report.notes.iter().all(|note| note.len() <= 300 && !note.contains('\u{1b}')), "{:?}", report.notes);
    room.goes_on();
}

/// LLM-6: neither the provider nor the asker sees the key, not even when the server sends it back.
#[test]
fn a_key_that_is_echoed_is_taken_out_of_the_answer() {
    let room = Room::new();
    room.answers(&format!("you sent {SECRET}"));
    let answer = room.ask(&json!({ "model": "good", "text": "what did I send?" })).unwrap();
    assert_eq!(answer["parts"][0], "Part::Text(\"you sent ***\")");
    let dialled = room.lab.stage.dialled.lock().unwrap();
    assert_eq!(dialled[0].headers["authorization"], format!("Bearer {SECRET}"));
}

/// FEA-6: a hook can stop a question and keep an answer back; one that gives no answer does so, too.
#[test]
fn hooks_deny_and_a_hook_without_an_answer_denies() {
    for (text, why, sent) in [
        ("before: deny", "denied it: ", 0),
        ("before: trap", "gave no answer", 0),
        ("before: loop", "gave no answer", 0),
        ("before: no-text", "gave no answer", 0),
        ("after: deny", "denied it: not this", 1),
        ("after: trap", "gave no answer", 1),
    ] {
        let room = Room::new();
        room.answers("an answer");
        let error = room.refused("good", text);
        assert!(error.contains(why) && !error.contains('\u{1b}') && error.len() < 1300, "{text}: {error}");
        assert!(!error.contains("an answer"), "{error}");
        assert_eq!(room.dialled(), sent, "{text}");
    }
}

#[test]
fn a_hook_that_traps_after_a_turn_changes_nothing_about_it() {
    let room = Room::new();
    room.answers("fine");
    room.ask(&json!({ "model": "trap-turn", "text": "well?" })).unwrap();
    room.goes_on();
}

/// FEA-4: the tokens per minute hold for what is read and written, not for what the provider counts.
#[test]
fn asking_costs_and_the_budget_holds() {
    let room = Room::new();
    // 100 000 bytes for which nothing is counted: charged all the same, as about 12 500 tokens.
    room.answers("some");
    room.ask(&json!({ "model": "free", "text": "more!" })).unwrap();
    // 40 000 bytes of question are about 10 000 tokens, and there are not as many left.
    let error = room.ask(&json!({ "model": "good", "text": "x", "times": 40_000 })).unwrap_err();
    assert!(error.contains("20000 per minute"), "{error}");
    assert_eq!(room.dialled(), 1);
    // A small one still goes.
    room.goes_on();
    let large = room.ask(&json!({ "model": "good", "text": "x", "times": 240_000 })).unwrap_err();
    assert!(large.contains("about 60000 tokens"), "{large}");
}

#[test]
fn models_that_are_not_there_or_not_granted_are_not_asked() {
    let room = Room::new();
    assert!(room.refused("goood", "").contains("did you mean \"good\"?"));
    assert!(room.refused("missing", "").contains("no feature has the provider"));
    let names = room.ask(&json!({ "names": true })).unwrap();
    assert!(names.as_array().unwrap().iter().all(|name| name != "missing"), "{names}");
    assert_eq!(room.dialled(), 0);
}

/// FEA-4: of models that are asked at once, each has its own answer, within the time and the grants of all.
#[test]
fn of_models_that_are_asked_at_once_each_has_its_own_answer() {
    let room = Room::new();
    room.answers("fine");
    let answers = room.ask(&json!({ "all": ["goood", "trap", "good", "missing"], "text": "well?" })).unwrap();
    for (number, text) in
        ["did you mean", "trapped", "Part::Text(\"fine\")", "no feature has the provider"].iter().enumerate()
    {
        assert!(answers[number].as_str().unwrap().contains(text), "{number}: {answers}");
    }
    assert_eq!(room.dialled(), 1);

    room.lab.stage.plays.lock().unwrap().push_back(Play::Hang);
    let answers = room.ask(&json!({ "all": ["good"], "text": "well?", "timeout": 50 })).unwrap();
    assert!(answers[0].as_str().unwrap().contains("it did not answer within 50 ms"), "{answers}");

    let many = room.ask(&json!({ "all": vec!["missing"; 20], "text": "well?" })).unwrap();
    let refused = |answer: &&Value| answer.as_str().unwrap().contains("at most 16 models are asked at once");
    assert_eq!(many.as_array().unwrap().iter().filter(refused).count(), 4, "{many}");
    room.goes_on();
}

#[test]
fn the_tokens_per_minute_hold_for_models_that_are_asked_at_once() {
    let room = Room::new();
    room.answers("fine");
    // Each has about 6000 tokens, and there are 20 000 in a minute.
    let asked = json!({ "all": vec!["good"; 4], "text": "x", "times": 24_000, "max": 500, "timeout": 2000 });
    let answers = room.ask(&asked).unwrap();
    let refused = |answer: &&Value| answer.as_str().unwrap().contains("20000 per minute");
    assert_eq!(answers.as_array().unwrap().iter().filter(refused).count(), 1, "{answers}");
}
