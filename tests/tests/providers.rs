//! A person at a terminal with a model behind each provider, over the wire format of its API: words, a mapping by a plan that is
//! applied, pressed and undone, a control that is learned by a skill, and all of it handed back as the API wants it, over a
//! restart; and how much the model is asked to think.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::sync::Mutex;

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;
use conductor_tests::model_server::{Server, stream};
use conductor_tests::osc::{Tablet, free_port};
use conductor_tests::screen::Screen;
use conductor_tests::scripted::{ANTHROPIC, Api, GEMINI, LITELLM, OPENAI, OPENROUTER, Part};
use rosc::OscType;
use serde_json::{Value, json};

#[path = "../../host/conductor/tests/terminal/pty.rs"]
mod pty;

use pty::Terminal;

/// What gets nowhere but to the server.
const KEY: &str = "sk-Hunter2-of-the-providers";

/// What the model says to a conversation.
fn script(conversation: &[Part]) -> Vec<Part> {
    let text = |text: &str| vec![Part::Text(text.to_owned())];
    // A mark as an API has it, another one each time.
    let thought = || Part::Thought(format!("c2lnbmVk{:03}==", conversation.len()));
    let call = |name: &str, args| Part::Call(name.to_owned(), args);
    match conversation.last() {
        // The host may have said something before the person.
        Some(Part::User(said)) => match said.lines().last().unwrap_or_default() {
            "hello" => text("Hello there."),
            "map pad 36 to copy" => {
                vec![thought(), call("conductor_get_modes", json!({})), call("conductor_list_mappings", json!({}))]
            }
            "which control is this?" => {
                vec![thought(), call("conductor_read_skill", json!({ "name": "conductor-learn" }))]
            }
            "done" => vec![thought(), call("conductor_stop_learn", json!({}))],
            "are you there?" => text("Here I am again."),
            other => text(&format!("I don't know {other:?}.")),
        },
        Some(Part::Result(tool, result)) => match tool.as_str() {
            "conductor_list_mappings" => {
                let mapping = json!({
                    "mode": "Play", "trigger": { "type": "OscMessage", "address": "/pad/36" },
                    "action": { "type": "Keystroke", "keys": ["c"], "modifiers": ["ctrl"] },
                });
                vec![thought(), call("conductor_create_mapping", mapping)]
            }
            "conductor_create_mapping" => vec![thought(), Part::Text("Pad 36 will press Ctrl+C.".to_owned())],
            // The skill says by which tool.
            "conductor_read_skill" if result.contains("`conductor_start_learn`") => {
                vec![thought(), call("conductor_start_learn", json!({}))]
            }
            "conductor_start_learn" => text("Touch it once."),
            "conductor_stop_learn" if result.contains("/cue/go") => text("It sends /cue/go."),
            other => text(&format!("{other} answered {result}")),
        },
        other => text(&format!("I don't know {other:?}.")),
    }
}

/// The server. Each question has to hand back the whole conversation before it: what was asked then, and what was answered,
/// thoughts with their marks.
fn model(api: Api) -> Server {
    let before = Mutex::new((0, Vec::<Part>::new()));
    Server::start(move |request| {
        let conversation = api.conversation(&request.body);
        let mut before = before.lock().unwrap();
        let (number, known) = &mut *before;
        assert!(conversation.starts_with(known), "{known:#?}\nis not the beginning of\n{conversation:#?}");
        let answer = script(&conversation);
        *known = [conversation, answer.clone()].concat();
        *number += 1;
        stream(api.answer(*number, &answer))
    })
}

/// A host, at this display if there is one.
fn run(home: &Home, screen: Option<&Screen>) -> Host {
    let mut run = command(home.path(), &["run"]);
    run.env("CONDUCTOR_SECRET_MODEL_KEY", KEY);
    if let Some(screen) = screen {
        run.env("DISPLAY", screen.display()).env_remove("WAYLAND_DISPLAY");
    }
    Host::ready(&mut run, home.socket())
}

// The seed's runs; LLM-1, LLM-3, LLM-4, LLM-6, PLN-3, SKL-4
fn talks_maps_learns_and_remembers(api: Api) {
    let (model, osc) = (model(api), free_port());
    let config = format!(
        "[[modes]]\nname = 'Play'\n\n[[bindings]]\nalias = 'tablet'\nprotocol = 'osc'\ninput = {{ port = {osc} }}\n\n{}",
        api.config("m", model.port)
    );
    let home = Home::new(&config);
    let screen = Screen::start();
    let host = run(&home, screen.as_ref());
    let tablet = Tablet::to(osc);
    let mut terminal = Terminal::start(command(home.path(), &["chat"]));
    let say = |terminal: &mut Terminal, words: &str, answer: &str| {
        terminal.prompt();
        terminal.type_line(words);
        terminal.expect(answer);
    };

    say(&mut terminal, "hello", "Hello there.");

    say(&mut terminal, "map pad 36 to copy", "Pad 36 will press Ctrl+C.");
    terminal.expect("strikes the keys ctrl+c on OscMessage \"/pad/36\"");
    terminal.expect("Apply it? [y = yes");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), config, "a plan alone changes nothing");
    terminal.type_line("y");
    terminal.expect("applied: ");
    let applied = fs::read_to_string(home.config()).unwrap();
    assert!(applied.contains("/pad/36"), "{applied}");
    host.status_when(|status| status["rules"] == 1);
    tablet.send("/pad/36", []);
    let copy = ["+Control_L", "+c", "-c", "-Control_L"];
    if let Some(screen) = &screen {
        assert_eq!(screen.strokes(copy.len()), copy);
    }
    say(&mut terminal, "/undo", "taken back: ");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), config);
    host.status_when(|status| status["rules"] == 0);
    let events = host.status()["events"].as_u64().unwrap();
    tablet.send("/pad/36", []);
    host.status_when(|status| status["events"].as_u64() > Some(events));

    // Listening is more than looking: the person is asked.
    say(&mut terminal, "which control is this?", "conductor_start_learn changes what holds");
    terminal.expect("Call it? [y/N]");
    terminal.type_line("y");
    terminal.expect("Touch it once.");
    let events = host.status()["events"].as_u64().unwrap();
    tablet.send("/cue/go", [OscType::Float(1.0)]);
    host.status_when(|status| status["events"].as_u64() > Some(events));
    say(&mut terminal, "done", "conductor_stop_learn changes what holds");
    terminal.expect("Call it? [y/N]");
    terminal.type_line("y");
    terminal.expect("It sends /cue/go.");
    say(&mut terminal, "/quit", "go on with: conductor chat --conversation 1");
    let (code, lines) = terminal.end();
    assert_eq!(code, Some(0), "{lines:?}");

    assert_eq!(host.stop().0.code, Some(0));
    if let Some(screen) = &screen {
        assert_eq!(screen.strokes(copy.len()), copy, "a mapping that is taken back strikes no key");
    }
    let host = run(&home, None);
    let again = home.conductor(&["chat", "--conversation", "1", "are you there?"]);
    assert_eq!((again.code, again.out.trim_end()), (Some(0), "Here I am again."), "{}", again.err);

    let requests = model.requests();
    assert_eq!(requests.len(), 10, "{lines:#?}");
    for request in &requests {
        assert_eq!(request.path, api.path);
        assert!(request.head.contains(&format!("\r\n{}{KEY}\r\n", api.header)), "{}", request.head);
        assert!(!request.body.to_string().contains(KEY));
    }
    // What became of the plan was heard of.
    let heard = api.conversation(&requests[5].body);
    let applied = |part: &Part| matches!(part, Part::User(said) if said.contains("the person applied the plan"));
    assert!(heard.iter().any(applied), "{heard:?}");
    let exported = home.conductor(&["chat", "export", "1", "--json"]);
    assert!(exported.out.contains("Touch it once.") && !exported.out.contains(KEY), "{}", exported.out);
    drop(host);
}

#[test]
fn anthropic_talks_maps_learns_and_remembers() {
    talks_maps_learns_and_remembers(ANTHROPIC);
}

#[test]
fn gemini_talks_maps_learns_and_remembers() {
    talks_maps_learns_and_remembers(GEMINI);
}

#[test]
fn openai_talks_maps_learns_and_remembers() {
    talks_maps_learns_and_remembers(OPENAI);
}

#[test]
fn openrouter_talks_maps_learns_and_remembers() {
    talks_maps_learns_and_remembers(OPENROUTER);
}

#[test]
fn litellm_talks_maps_learns_and_remembers() {
    talks_maps_learns_and_remembers(LITELLM);
}

// LLM-2
#[test]
fn each_api_is_asked_to_think_as_much_as_the_configuration_says() {
    const EFFORTS: [&str; 4] = ["minimal", "low", "medium", "high"];
    const KNOWN: [&str; 4] = ["low", "low", "medium", "high"];
    for (api, path, words) in [
        (ANTHROPIC, "/output_config/effort", KNOWN),
        (GEMINI, "/generationConfig/thinkingConfig/thinkingLevel", KNOWN),
        (OPENAI, "/reasoning/effort", KNOWN),
        (OPENROUTER, "/reasoning/effort", EFFORTS),
        (LITELLM, "/reasoning_effort", EFFORTS),
    ] {
        let server = Server::start(move |_| stream(api.answer(1, &[Part::Text("Hm.".to_owned())])));
        let model = |name: &str| api.wire.model_of(api.provider, name, server.port);
        let thinks = |effort: &str| model(effort).replace("secret =", &format!("effort = '{effort}'\nsecret ="));
        let config = model("plain") + &EFFORTS.map(thinks).concat() + &api.wire.grants(server.port);
        let home = Home::new(&config);
        let host = run(&home, None);
        for name in ["plain"].into_iter().chain(EFFORTS) {
            let answered = home.conductor(&["chat", "--model", name, "think"]);
            assert_eq!((answered.code, answered.out.trim_end()), (Some(0), "Hm."), "{}", answered.err);
        }
        let asked: Vec<Value> =
            server.requests().iter().map(|request| request.body.pointer(path).cloned().unwrap_or_default()).collect();
        let expected: Vec<Value> = [Value::Null].into_iter().chain(words.map(Value::from)).collect();
        assert_eq!(asked, expected, "{}", api.provider);
        drop(host);
    }
}
