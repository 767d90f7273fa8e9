//! The API of a whole host on its socket: what every route answers, what it refuses, and the stream of what happens.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

mod client;
mod conversations;
mod installs;
mod ipc;
mod methods;
mod notifications;
mod stream;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conductor_api::server::Server;
use conductor_config as config;
use conductor_event::{DeviceEvent, DeviceId, Event, MidiMessage};
use conductor_host::host::Host;
use conductor_ports::Direction;
use conductor_ports::engine_input::Input;
use conductor_ports::simulated::SimulatedPorts;
use conductor_sandbox::Compiler;
use conductor_skills::library::Library;
use serde_json::{Value, json};

use client::{get, get_by, post, post_by, raw};

const SHOW: &str = "[[modes]]\nname = 'Play'\n\n[[modes]]\nname = 'Mix'\n\n[[bindings]]\nalias = 'pads'\n\
                    matchers = [{ type = 'exact_name', value = 'Pads' }]\n";

/// A host with its API, in a home of its own.
struct Stage {
    home: PathBuf,
    host: Option<Arc<Host>>,
    server: Option<Server>,
}

impl Stage {
    fn new(config: &str) -> Self {
        Self::start(config, None)
    }

    /// With a TCP port, too.
    fn with_http(config: &str) -> Self {
        Self::start(config, Some(0))
    }

    fn start(config: &str, http: Option<u16>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("conductor-api-{}-{number}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let file = home.join("config.toml");
        fs::write(&file, config).unwrap();
        let loaded = config::parse(config, &file.display().to_string()).unwrap();
        let ports = SimulatedPorts::new();
        ports.plug("Pads", Direction::Input);
        // There is no program beside this test that could compile packages.
        let compiler = Compiler::in_process();
        let host = Host::builder().home(&home).config_file(&file).backend(ports.backend()).compiler(compiler);
        let host = Arc::new(host.start(&loaded).unwrap());
        let server = Server::start(&home, Arc::clone(&host), Library::new(Some(&home), None), http).unwrap();
        Self { home, host: Some(host), server: Some(server) }
    }

    fn host(&self) -> &Host {
        self.host.as_deref().unwrap()
    }

    fn home(&self) -> &Path {
        &self.home
    }

    /// Has the host see a fader move.
    fn fader(&self, value: u8) {
        let event = Event::Midi(MidiMessage::ControlChange { channel: 0, controller: 7, value });
        let event = DeviceEvent { device: DeviceId::new("pads"), event };
        self.host().queue().send(Input::Event { at: self.host().clock().now(), event }).unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.server.take());
        if let Some(host) = self.host.take().and_then(Arc::into_inner) {
            host.stop();
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    assert!(answer.1["error"].as_str().is_some_and(|error| !error.is_empty()), "{answer:?}");
    (answer.0, answer.1["code"].as_str().unwrap())
}

// API-1: one shape for all that is not done.
#[test]
fn what_is_refused_says_why_in_one_shape() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let refused = |request: &str, head: &str, body: &[u8]| {
        let (status, _, body) = raw(home, request, head, body);
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    const JSON: &str = "content-type: application/json\r\n";
    assert_eq!(code(&get(home, "/v1/nothing")), (404, "not_found"));
    assert_eq!(code(&get(home, "/")), (404, "not_found"));
    assert_eq!(code(&refused("DELETE /v1/status", "", b"")), (405, "bad_request"));
    assert_eq!(code(&get(home, "/v1/plans/0123")), (404, "not_found"));
    assert_eq!(code(&get(home, "/v1/plans/%ff")), (400, "bad_request"));
    assert_eq!(code(&post(home, "/v1/undo", &json!({}))), (409, "conflict"));
    assert_eq!(code(&refused("POST /v1/mode", JSON, b"{")), (400, "bad_request"));
    assert_eq!(code(&refused("POST /v1/mode", "", b"{}")), (415, "bad_request"));
    assert_eq!(code(&refused("POST /v1/config/validate", JSON, b"[]")), (422, "bad_request"));
    assert_eq!(code(&refused("POST /v1/mode", JSON, b"[\"Mix\"]")), (422, "bad_request"));
    assert_eq!(code(&post(home, "/v1/mode", &json!({ "mode": "Mix", "now": true }))), (422, "bad_request"));
    assert_eq!(code(&post(home, "/v1/mode", &json!({ "mode": "Mixx" }))), (404, "not_found"));
    assert_eq!(code(&refused("POST /v1/tools/x", JSON, &vec![b' '; 3 * 1024 * 1024])), (413, "too_long"));
    assert_eq!(code(&post(home, "/v1/tools/x", &json!({}))), (404, "not_found"));
    assert_eq!(code(&get(home, "/v1/audit?limit=0")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/audit?before=1")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/notifications?limit=1001")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/notifications?order=best")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/events?kinds=events")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/events?after=7")), (400, "bad_request"));
    assert_eq!(code(&get(home, "/v1/stream")), (426, "bad_request"));
    let (_, head, _) = raw(home, "DELETE /v1/status", "", b"");
    assert!(head.to_lowercase().contains("allow: get"), "{head}");
}

// API-1
#[test]
fn what_there_is_can_be_read_part_by_part() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let read = |path: &str| {
        let (status, answer) = get(home, path);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    };
    let status = read("/v1/status");
    assert_eq!(read("/v1/ports")["ports"][0]["name"], "Pads");
    assert_eq!(read("/v1/ports")["unreachable"], json!([]));
    assert_eq!(read("/v1/bindings")[0]["alias"], "pads");
    assert_eq!(read("/v1/modes"), json!({ "mode": "Play", "modes": ["Play", "Mix"] }));
    assert_eq!(read("/v1/features"), status["features"]);
    assert_eq!(read("/v1/profiles")["profiles"], json!([]));
    let config = read("/v1/config");
    assert_eq!((&config["text"], &config["refused"]), (&json!(SHOW), &Value::Null));
    assert_eq!(config["state"].as_str().unwrap().len(), 64);
    for path in ["/v1/plans", "/v1/tools"] {
        assert_eq!(read(path), json!([]));
    }
    let skills = read("/v1/skills");
    assert!(!skills[0].is_null() && skills.as_array().unwrap().iter().all(|skill| skill["place"] == "bundled"));
    let document = read("/v1/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/v1/plans/{id}/apply"]["post"]["x-conductor-scope"] == "owner");
}

/// The record, once these rows are on it.
fn wait_for_rows(home: &Path, wanted: &[(&str, &str)]) -> Value {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let (_, rows) = get(home, "/v1/audit?limit=1000");
        let is = |(what, outcome): &(&str, &str)| {
            rows.as_array().unwrap().iter().any(|row| row["what"] == *what && row["outcome"] == *outcome)
        };
        if wanted.iter().all(is) {
            return rows;
        }
        assert!(std::time::Instant::now() < deadline, "{rows:#}");
    }
}

// API-1: commands that hold until the host stops.
#[test]
fn modes_are_switched_and_devices_muted_on_record() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let mut lines = client::Lines::open(home, "?kinds=mode");
    assert_eq!(post(home, "/v1/mode", &json!({ "mode": "Mix" })), (200, json!({ "mode": "Mix" })));
    let told = lines.next();
    assert_eq!((&told["kind"], &told["mode"]), (&json!("mode"), &json!("Mix")));
    assert_eq!(get(home, "/v1/modes").1["mode"], "Mix");
    assert_eq!(post(home, "/v1/mute", &json!({ "device": "pads", "muted": true })), (200, json!({ "muted": true })));
    assert_eq!(get(home, "/v1/bindings").1[0]["muted"], true);
    assert_eq!(code(&post(home, "/v1/mute", &json!({ "device": "pods", "muted": true }))), (404, "not_found"));

    let rows = wait_for_rows(home, &[("mode", "done"), ("mute", "done"), ("mute", "refused")]);
    // A page after another.
    let all = rows.as_array().unwrap();
    let (_, later) = get(home, "/v1/audit?after=1&limit=2");
    assert_eq!(later.as_array().unwrap().as_slice(), &all[1..3]);
    assert_eq!(get(home, "/v1/audit?limit=1").1[0]["number"], all.len());
}

// SHL-4, API-1: what a mapping does can be tried without the device.
#[test]
fn an_event_is_played_for_a_device_that_is_not_there() {
    let away = "\n[[bindings]]\nalias = 'away'\nname = 'Nowhere'\n\n[[global_mappings]]\nname = 'mix'\n\
                trigger = { type = 'Note', note = 36, device = 'away' }\naction = { type = 'ModeChange', mode = 'Mix' }\n";
    let stage = Stage::new(&format!("{SHOW}{away}"));
    let home = stage.home();
    let play = |device: &str, event: &str| post(home, "/v1/play", &json!({ "device": device, "event": event }));
    let mut lines = client::Lines::open(home, "?kinds=event,mode");
    assert_eq!(play("Pads", "note-on 36 100"), (200, json!({})), "a port's own name");
    assert_eq!(play("away", "note-on C2 100"), (200, json!({})));
    let mut heard = Vec::new();
    while heard.last() != Some(&json!("Mix")) {
        let line = lines.next();
        heard.push(if line["kind"] == "mode" { line["mode"].clone() } else { line["device"].clone() });
    }
    assert_eq!(heard, ["pads", "away", "Mix"]);

    let nobody = play("nobody", "note-on 36 100");
    assert_eq!(code(&nobody), (404, "not_found"));
    assert!(nobody.1["error"].as_str().unwrap().ends_with("there are Pads, away, pads"), "{nobody:?}");
    for (event, why) in [
        ("note-on 136 100", "136"),
        ("", "missing here"),
        ("note-on 36 100\n0s pads note-on 37 100", "one event"),
        ("variable 0 1", "the host makes these events itself"),
        ("transport stop", "the host makes these events itself"),
    ] {
        let wrong = play("pads", event);
        assert_eq!(code(&wrong), (422, "invalid"), "{event}");
        assert!(wrong.1["error"].as_str().unwrap().contains(why), "{wrong:?}");
    }
    wait_for_rows(home, &[("play", "done"), ("play", "refused")]);
}

// API-1, SHL-4: what is played fires mappings, so a token that is lent plays nothing.
#[test]
fn only_the_owner_plays_events() {
    let stage = Stage::with_http(SHOW);
    let home = stage.home();
    let mut lines = client::Lines::open(home, "?kinds=event");
    let play = |token: &str, note: u8| {
        post_by(home, token, "/v1/play", &json!({ "device": "pads", "event": format!("note-on {note} 100") }))
    };
    for token in ["api-control.token", "api-read.token", "mcp.token"] {
        assert_eq!(code(&play(token, 36)), (403, "forbidden"), "{token}");
    }
    assert_eq!(play("api.token", 37), (200, json!({})));
    // Events are in the stream in the order in which they were played.
    assert_eq!(lines.next()["event"], "note-on 37 100");
    let rows = wait_for_rows(home, &[("play", "done")]);
    let played = rows.as_array().unwrap().iter().filter(|row| row["what"] == "play");
    assert_eq!(played.count(), 1, "{rows:#}");
}

// API-1: a shell shows every mapping, however many: more than a tool of a feature may answer with.
#[test]
fn mappings_are_listed_as_they_are_written_and_without_secrets_for_others() {
    let mapping = |number: usize| {
        format!(
            "\n[[global_mappings]]\nname = 'cue {number}'\ndescription = 'http://me:word-{number}@stage/'\n\
             trigger = {{ type = 'CC', cc = 7 }}\naction = {{ type = 'Suppress' }}\n"
        )
    };
    let many: String = (0..3000).map(mapping).collect();
    let stage = Stage::with_http(&format!("{SHOW}{many}"));
    let (status, found) = get(stage.home(), "/v1/mappings");
    assert_eq!(status, 200, "{found:#}");
    let all = found["mappings"].as_array().unwrap();
    assert_eq!(all.len(), 3000);
    let written = json!({ "name": "cue 2999", "description": "http://me:word-2999@stage/",
                          "trigger": { "type": "CC", "cc": 7 }, "action": { "type": "Suppress" } });
    assert_eq!(all[2999], json!({ "place": "global_mappings/2999", "mode": null, "mapping": written }));
    assert_eq!(found["same_trigger"][0].as_array().map(Vec::len), Some(3000));
    let (status, hidden) = get_by(stage.home(), "api-read.token", "/v1/mappings");
    assert_eq!(status, 200, "{hidden:#}");
    assert_eq!(hidden["mappings"][2999]["mapping"]["name"], "cue 2999");
    assert!(!hidden.to_string().contains("word-"), "a token that reads gets no password");
}

// API-1: who makes a mapping sees which others answer to the same events, whatever the words of their triggers.
#[test]
fn mappings_that_answer_to_the_same_events_are_listed_in_pairs() {
    let mapping = |name: &str, trigger: &str| {
        format!("\n[[global_mappings]]\nname = '{name}'\ntrigger = {{ {trigger} }}\naction = {{ type = 'Suppress' }}\n")
    };
    let mappings = [
        mapping("row", "type = 'NoteRange', note_min = 36, note_max = 39, device = 'pads'"),
        mapping("pad", "type = 'Note', note = 38, channel = 9"),
        mapping("fader", "type = 'CC', cc = 7"),
    ];
    let stage = Stage::new(&format!("{SHOW}{}", mappings.concat()));
    let first = json!({ "place": "global_mappings/0", "name": "row" });
    let second = json!({ "place": "global_mappings/1", "name": "pad" });
    let pair = json!({ "first": first, "second": second, "event": "note-on 38 127 ch 9", "consumed": false });
    let expected = json!({ "overlaps": [pair], "more": 0, "not_compared": 0 });
    assert_eq!(get(stage.home(), "/v1/overlaps"), (200, expected));
}

// CFG-2, API-1: errors are reported with their place, and nothing changes before a reload.
#[test]
fn a_configuration_is_looked_at_and_read_anew() {
    let stage = Stage::new(SHOW);
    let home = stage.home();
    let wrong = "[[modes]]\nname = 'Play'\n[[modes.mappings]]\ntrigger = { type = 'Nota', note = 1 }\n\
                 action = { type = 'ModeChange', mode = 'Play' }\n";
    let (status, verdict) = post(home, "/v1/config/validate", &json!({ "text": wrong }));
    assert_eq!((status, &verdict["valid"], &verdict["errors"]), (200, &json!(false), &json!(1)), "{verdict:#}");
    assert_eq!(verdict["diagnostics"][0]["line"], 4);
    assert_eq!(verdict["diagnostics"][0]["nearest"], "Note");
    assert_eq!(post(home, "/v1/config/validate", &json!({})).1["valid"], true);

    let file = home.join("config.toml");
    fs::write(&file, wrong).unwrap();
    assert_eq!(post(home, "/v1/config/validate", &json!({})).1["valid"], false);
    assert_eq!(code(&post(home, "/v1/reload", &json!({}))), (422, "invalid"));
    let config = get(home, "/v1/config").1;
    assert!(config["text"] == SHOW && config["refused"].as_str().unwrap().contains("1 mistake)"), "{config:#}");

    let right = wrong.replace("Nota", "Note");
    fs::write(&file, &right).unwrap();
    let (status, reloaded) = post(home, "/v1/reload", &json!({}));
    assert_eq!((status, &reloaded["rules"]), (200, &json!(1)), "{reloaded}");
    assert_eq!(get(home, "/v1/config").1["text"], right);
    fs::remove_file(&file).unwrap();
    assert_eq!(code(&post(home, "/v1/reload", &json!({}))), (500, "internal"));
    assert_eq!(get(home, "/v1/config").1["text"], right);
}
