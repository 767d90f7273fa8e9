//! The typed client: it has a method for each route, and its types hold all that a host says.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use conductor_api::client::{AskError, Client, if_running};
use conductor_api::openapi;
use conductor_api::types::{
    ApprovalAnswer, AuditQuery, ConversationEvents, GrantRequest, InstallRequest, PackageSource, ProposePlan,
    RemoveRequest, Say, SetLock, SetSecret, StreamQuery,
};
use conductor_chat::listing::Endpoint;
use conductor_chat::model_setup::NewModel;
use conductor_chat::store::ConversationQuery;
use conductor_chat::store::usage::UsageBy;
use conductor_host::control::gate::ToolRequest;
use conductor_observer::notification_log::NotificationQuery;
use conductor_package::Contributions;
use serde::Serialize;
use serde_json::{Value, json};

use super::client::get;
use super::{SHOW, Stage};

/// What the listener below refuses everything with.
const REFUSAL: &str = "not here";

/// Answers requests with a refusal, and returns their first lines, until a request asks for `/end`.
fn refuse_all(listener: &UnixListener) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    for stream in listener.incoming() {
        let request = refuse(stream.unwrap());
        if request == "GET /end" {
            break;
        }
        asked.insert(request);
    }
    asked
}

fn refuse(stream: UnixStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "{head:?}");
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    reader.read_exact(&mut vec![0; length.unwrap_or(0)]).unwrap();
    let body = json!({ "error": REFUSAL, "code": "not_found" }).to_string();
    let length = body.len();
    write!(reader.get_mut(), "HTTP/1.1 404 Not Found\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        .unwrap();
    head[0].strip_suffix(" HTTP/1.1").unwrap().to_owned()
}

/// Whether a request is of a route: `{...}` in the route's path stands for one part.
fn is_of(request: &str, method: &str, route: &str) -> bool {
    let Some((asked, path)) = request.split_once(' ') else { return false };
    let path = path.split('?').next().unwrap_or_default();
    let (parts, wanted): (Vec<_>, Vec<_>) = (path.split('/').collect(), route.split('/').collect());
    let is_alike = |(part, wanted): (&&str, &&str)| part == wanted || wanted.starts_with('{');
    asked.eq_ignore_ascii_case(method) && parts.len() == wanted.len() && parts.iter().zip(&wanted).all(is_alike)
}

// API-1
#[test]
fn each_route_has_a_method_and_each_method_a_route() {
    let home = std::env::temp_dir().join(format!("conductor-api-methods-{}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    let listener = UnixListener::bind(conductor_api::socket(&home)).unwrap();
    let listening = std::thread::spawn(move || refuse_all(&listener));

    let client = Client::new(&home);
    let package = PackageSource { source: None, upgrade: None, digest: None, replace_bundled: false };
    let words = GrantRequest { capabilities: Vec::new() };
    let call = ToolRequest { args: serde_json::Map::new(), confirmed: false, confirmation: None };
    let secret = SetSecret { env: Some("A".into()), ..SetSecret::default() };
    let after = StreamQuery { after: Some("start".into()), kinds: None };
    let refused = [
        client.status().map(drop),
        client.document().map(drop),
        client.ports().map(drop),
        client.bindings().map(drop),
        client.lights().map(drop),
        client.mute("x", true).map(drop),
        client.play("x", "clock").map(drop),
        client.modes().map(drop),
        client.switch_mode("x").map(drop),
        client.profiles().map(drop),
        client.config().map(drop),
        client.mappings().map(drop),
        client.overlaps().map(drop),
        client.validate_config(None).map(drop),
        client.reload().map(drop),
        client.plans().map(drop),
        client.propose_plan(&ProposePlan { description: "x".into(), changes: Vec::new() }).map(drop),
        client.plan("x").map(drop),
        client.apply_plan("x").map(drop),
        client.reject_plan("x"),
        client.next_undo().map(drop),
        client.next_redo().map(drop),
        client.undo().map(drop),
        client.redo().map(drop),
        client.features().map(drop),
        client.lift_quarantine("x").map(drop),
        client.skills().map(drop),
        client.skill("x").map(drop),
        client.skill_file("x", "x").map(drop),
        client.notifications(&NotificationQuery::default()).map(drop),
        client.look_at_package(&package).map(drop),
        client.install(&InstallRequest { package: package.clone(), grant: Vec::new() }).map(drop),
        client.downgrade("x").map(drop),
        client.grant("x", &words).map(drop),
        client.revoke("x", &words).map(drop),
        client.enable("x", &Contributions::default()).map(drop),
        client.disable("x", &Contributions::default()).map(drop),
        client.switch_task("x", "x", true).map(drop),
        client.switch_task("x", "x", false).map(drop),
        client.remove("x", &RemoveRequest { data: false }).map(drop),
        client.receipts().map(drop),
        client.secrets().map(drop),
        client.set_secret("x", &secret).map(drop),
        client.remove_secret("x"),
        client.tools().map(drop),
        client.call_tool("x", &call).map(drop),
        client.call_route("x", "y", &call.args).map(drop),
        client.models().map(drop),
        client.check_model("x").map(drop),
        client.providers().map(drop),
        client.available_models("x", &Endpoint::default()).map(drop),
        client.model_access("x", &Endpoint::default()).map(drop),
        client.propose_model(&NewModel::default()).map(drop),
        client.propose_model_removal("x").map(drop),
        client.usage(UsageBy::Model).map(drop),
        client.conversations(&ConversationQuery::default()).map(drop),
        client.begin_conversation(None).map(drop),
        client.conversation(1).map(drop),
        client.conversation_events(1, &ConversationEvents { after: 1, follow: true }, |_| false),
        client.say(1, &Say { text: "x".into(), model: None }).map(drop),
        client.cancel_turn(1),
        client.approve(1, &ApprovalAnswer { id: "x".into(), agreed: false, phrase: None }),
        client.fork_conversation(1, None).map(drop),
        client.delete_conversation(1),
        client.lock().map(drop),
        client.set_lock(SetLock { locked: true, persistent: false }).map(drop),
        client.events(&after, |_| false),
        client.audit(AuditQuery { after: Some(1), limit: None }).map(drop),
    ];
    for (number, refused) in refused.iter().enumerate() {
        let is_refusal = matches!(refused, Err(AskError::ApiError(said)) if said == REFUSAL);
        assert!(is_refusal, "method {number}: {refused:?}");
    }
    client.get::<Value>("/end").unwrap_err();
    let asked = listening.join().unwrap();
    fs::remove_dir_all(&home).unwrap();
    assert_eq!(asked.len(), refused.len(), "two methods ask the same: {asked:?}");

    let document = openapi::document();
    let paths = document["paths"].as_object().unwrap().iter();
    let routes =
        paths.flat_map(|(path, methods)| methods.as_object().unwrap().keys().map(move |method| (method, path)));
    let routes: Vec<(&String, &String)> = routes.collect();
    // Of two routes that a request fits, the host takes the one with fewer parts that stand for any.
    let open = |path: &str| path.matches('{').count();
    let route_of = |request: &String| {
        let fitting = routes.iter().filter(|(method, path)| is_of(request, method, path));
        fitting.min_by_key(|(_, path)| open(path))
    };
    let known: Vec<_> = asked.iter().filter_map(route_of).collect();
    let missing: Vec<String> =
        routes.iter().filter(|route| !known.contains(route)).map(|(method, path)| format!("{method} {path}")).collect();
    // The WebSocket says what the lines of `/v1/events` do; the commands of the daemon that came before are other
    // routes.
    assert_eq!(missing, ["get /v1/stream", "post /v1/ipc"]);
    assert_eq!(known.len(), asked.len(), "a method asks what is no route: {asked:?}");
}

fn written(value: Result<impl Serialize, AskError>) -> Value {
    serde_json::to_value(value.unwrap()).unwrap()
}

// API-1: what a program gets by a method is what the host says, and nothing is lost on the way.
#[test]
fn types_hold_all_that_a_host_says() {
    let stage = Stage::new(&format!("{SHOW}[[profiles]]\nname = 'Live'\napps = ['live']\nmode = 'Mix'\n"));
    let home = stage.home();
    let client = Client::new(home);
    let read = |path: &str| get(home, path).1;
    let until = |holds: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !holds() {
            assert!(Instant::now() < deadline, "{:#}", read("/v1/status"));
        }
    };
    until(&|| client.ports().unwrap().ports.iter().any(|found| found.connected));
    assert_eq!(written(client.ports()), read("/v1/ports"));
    assert_eq!(written(client.bindings()), read("/v1/bindings"));
    assert_eq!(written(client.lights()), read("/v1/lights"));
    // What is in front may become known in between.
    let profiles = client.profiles().unwrap().profiles;
    assert_eq!(written(Ok(&profiles)), read("/v1/profiles")["profiles"]);
    assert_eq!(profiles[0].apps, ["live"]);
    assert_eq!(written(client.config()), read("/v1/config"));
    assert_eq!(written(client.mappings()), read("/v1/mappings"));
    assert_eq!(written(client.overlaps()), read("/v1/overlaps"));
    assert_eq!(written(client.features()), read("/v1/features"));
    assert_eq!(written(client.document()), read("/v1/openapi.json"));

    assert_eq!(client.switch_mode("Mix").unwrap().mode, "Mix");
    until(&|| client.modes().unwrap().mode.as_deref() == Some("Mix"));
    assert_eq!(written(client.modes()), read("/v1/modes"));
    assert!(client.mute("pads", true).unwrap().muted && client.bindings().unwrap()[0].muted);
    assert!(client.set_lock(SetLock { locked: true, persistent: false }).unwrap().lock.is_some());
    assert_eq!(written(client.lock()), read("/v1/lock"));
    assert!(!client.set_lock(SetLock { locked: false, persistent: false }).unwrap().locked);

    let verdict = client.validate_config(Some("colour = 1\n")).unwrap();
    assert!(!verdict.valid && verdict.errors == 1 && verdict.diagnostics[0]["line"] == 1, "{verdict:?}");
    assert!(client.validate_config(None).unwrap().valid);
    assert_eq!(client.reload().unwrap().rules, 0);

    let secret = SetSecret { env: Some("LAMP_KEY".into()), ..SetSecret::default() };
    client.set_secret("lamp-key", &secret).unwrap();
    assert_eq!(written(client.secrets()), read("/v1/secrets"));
    client.remove_secret("lamp-key").unwrap();
    assert!(client.secrets().unwrap().is_empty() && client.receipts().unwrap().is_empty());

    let first = AuditQuery { after: Some(0), limit: Some(3) };
    until(&|| client.audit(first).unwrap().len() == 3);
    let rows = client.audit(first).unwrap();
    assert_eq!(written(Ok(&rows)), read("/v1/audit?after=0&limit=3"));
    assert_eq!(rows.iter().map(|row| row.number).collect::<Vec<_>>(), [1, 2, 3]);

    let mut seen = Vec::new();
    let which = StreamQuery { after: Some("start".into()), kinds: Some("lock,alert".into()) };
    client
        .events(&which, |item| {
            seen.push(item);
            seen.len() < 2
        })
        .unwrap();
    let seen = serde_json::to_value(seen).unwrap();
    let locked = [&seen[0]["locked"], &seen[1]["locked"]];
    assert_eq!(locked, [true, false], "{seen:#}");
    assert!(seen[0]["cursor"].is_string() && seen[0]["kind"] == "lock", "{seen:#}");
    let unknown = StreamQuery { after: None, kinds: Some("x&y".into()) };
    let error = client.events(&unknown, |_| true).unwrap_err().to_string();
    assert!(error.contains("of the kind \"x&y\""), "{error}");
}

#[test]
fn a_home_without_a_host_is_no_failure_for_what_can_do_without() {
    let nowhere = PathBuf::from("/nowhere/conductor");
    let error = Client::new(&nowhere).modes().unwrap_err();
    assert!(matches!(&error, AskError::NotRunning(home) if home == "/nowhere/conductor"), "{error:?}");
    assert!(if_running(Err::<(), _>(error)).unwrap().is_none());
    let refused = if_running(Err::<(), _>(AskError::ApiError("no".into())));
    assert!(refused.is_err());
}
