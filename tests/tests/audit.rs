//! The audit through a running host and its command line: what was asked is on record, tampering is detected, and
//! what can't be put on record is not done.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use conductor_tests::conductor::{self, Host};
#[cfg(target_os = "linux")]
use conductor_tests::full_disk;
use conductor_tests::home::Home;
use conductor_tests::process::Process;
use conductor_tests::wait;
use serde_json::{Value, json};

const SHOW: &str = "[[modes]]\nname = \"Play\"\n\n[[modes]]\nname = \"Mix\"\n";

fn call(home: &Home, tool: &str, args: &Value) -> Result<Value, String> {
    let end = home.conductor(&["tool", "call", tool, &args.to_string()]);
    match end.code {
        Some(0) => Ok(serde_json::from_str(&end.out).unwrap()),
        _ => Err(end.err),
    }
}

fn propose(home: &Home, note: u8) -> String {
    let action = json!({ "type": "ModeChange", "mode": "Play" });
    let mapping = json!({ "mode": "Mix", "trigger": { "type": "Note", "note": note }, "action": action });
    call(home, "conductor_create_mapping", &mapping).unwrap()["plan"].as_str().unwrap().to_owned()
}

fn refused(home: &Home, args: &[&str]) -> String {
    let end = home.conductor(args);
    assert_ne!(end.code, Some(0), "{args:?}: {}", end.out);
    end.err
}

fn text(home: &Home) -> String {
    fs::read_to_string(home.config()).unwrap()
}

fn rows(home: &Home) -> Vec<Value> {
    home.json(&["audit", "list", "--limit", "1000", "--json"]).as_array().unwrap().clone()
}

/// Waits for a row that is written in the background.
fn row(home: &Home, is: impl Fn(&Value) -> bool) -> Value {
    wait::until(|| rows(home).into_iter().find(&is), || format!("{:#?}", rows(home))).0
}

fn is(row: &Value, kind: &str, what: &str, subject: &str, outcome: &str) -> bool {
    row["kind"] == kind && row["what"] == what && row["subject"] == subject && row["outcome"] == outcome
}

fn verified(home: &Home) {
    let end = home.conductor(&["audit", "verify"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
}

// PLN-4: who asked for which tool with what, what came of it, and what the plan did; no secret among it.
#[test]
fn what_was_asked_and_done_is_on_record() {
    let home = Home::new(SHOW);
    let secret = "hunter2-hunter2-hunter2";
    let mut run = conductor::command(home.path(), &["run"]);
    let host = Host::ready(run.env("CONDUCTOR_SECRET_LAMP", secret), home.socket());
    let args = json!({ "title": format!("Use {secret}"), "password": "swordfish" });
    // Whether or not the tool takes such arguments: they are on record.
    let _ = call(&home, "work_item_create", &args);
    call(&home, "conductor_get_modes", &json!({})).unwrap();
    assert!(call(&home, "conductor_get_mods", &json!({})).is_err());
    let plan = propose(&home, 40);
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    assert!(refused(&home, &["undo"]).contains("a person decides"));
    assert_eq!(home.conductor(&["undo", "--yes"]).code, Some(0));

    let asked = row(&home, |row| row["subject"] == "work_item_create");
    assert_eq!((&asked["kind"], &asked["who"]), (&json!("tool"), &json!("socket:owner \"conductor-cli\"")));
    assert!(asked["took_us"].is_u64(), "{asked}");
    assert_eq!(asked["detail"]["tier"], "stateful");
    let args = asked["detail"]["args"].as_str().unwrap();
    assert!(args.contains("Use ***") && args.contains(r#""password":"***""#), "{args}");
    row(&home, |row| is(row, "tool", "call", "conductor_get_modes", "done"));
    let unknown = row(&home, |row| is(row, "tool", "call", "conductor_get_mods", "refused"));
    assert!(unknown["detail"]["reason"].as_str().unwrap().contains("did you mean"), "{unknown}");
    let proposed = row(&home, |row| is(row, "plan", "propose", &plan, "done"));
    assert_eq!(proposed["who"], "feature \"builtin:mapping-tools\"");
    let begun = row(&home, |row| is(row, "plan", "apply", &plan, "begun"));
    let done = row(&home, |row| is(row, "plan", "apply", &plan, "done"));
    assert!(begun["number"].as_i64() < done["number"].as_i64(), "{begun} {done}");
    row(&home, |row| is(row, "plan", "undo", "revision 1", "done"));

    let only = home.json(&["audit", "list", "--kind", "plan", "--client", "conductor-cli", "--since", "1h", "--json"]);
    assert_eq!(only.as_array().unwrap().len(), 4, "{only:#}");
    assert!(home.conductor(&["audit", "list"]).out.contains("apply"));
    let exported = home.conductor(&["audit", "export"]).out;
    let numbers = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_i64().unwrap());
    assert!(numbers.eq(1..=i64::try_from(exported.lines().count()).unwrap()));
    host.stop();
    verified(&home);
    for file in ["audit.sqlite", "audit.head"] {
        let bytes = fs::read(home.path().join(file)).unwrap();
        assert!(!bytes.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()), "{file}");
        assert_eq!(fs::metadata(home.path().join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

// PLN-4, FEA-11: the command line writes the same chain as a host that runs.
#[test]
fn what_is_installed_and_granted_is_on_record_and_a_tail_follows() {
    let home = Home::new(SHOW);
    let _host = home.run();
    let tail = Process::start(&mut conductor::command(home.path(), &["audit", "tail", "--json"]));
    tail.out.line("\"what\":\"start\"");
    let hello = conductor::guest("hello");
    let installed = home.conductor(&["feature", "install", hello.to_str().unwrap()]);
    assert_eq!(installed.code, Some(0), "{}", installed.err);
    tail.out.line("\"what\":\"install\"");
    assert_eq!(home.conductor(&["feature", "disable", "hello"]).code, Some(0));
    assert_eq!(home.conductor(&["feature", "remove", "hello"]).code, Some(0));
    assert!(refused(&home, &["feature", "remove", "hello"]).contains("no feature hello"));
    for what in ["install", "disable", "remove"] {
        for outcome in ["begun", "done"] {
            let row = row(&home, |row| is(row, "package", what, "project:hello", outcome));
            assert_eq!((&row["who"], row["detail"]["digest"].as_str().unwrap().len()), (&json!("cli:owner"), 64));
        }
    }
    row(&home, |row| is(row, "package", "change", "", "refused"));
    home.configure(&format!("{SHOW}\n[features.osc-output.grants]\nudp = [\"192.0.2.1:9000\"]\n"));
    let granted = row(&home, |row| is(row, "grant", "grant", "builtin:osc-output", "done"));
    assert_eq!(granted["detail"]["grants"], r#"{"udp":["192.0.2.1:9000"]}"#);
    home.configure(SHOW);
    row(&home, |row| is(row, "grant", "revoke", "builtin:osc-output", "done"));
    verified(&home);
}

// PLN-4
#[test]
fn a_record_that_somebody_has_altered_is_found() {
    let home = Home::new(SHOW);
    let host = home.run();
    let plan = propose(&home, 40);
    row(&home, |row| is(row, "plan", "propose", &plan, "done"));
    let called = row(&home, |row| is(row, "tool", "call", "conductor_create_mapping", "done"));
    host.stop();
    verified(&home);
    let older = fs::read(home.path().join("audit.sqlite")).unwrap();
    let needle = b"conductor_create_mapping";
    let at = older.windows(needle.len()).position(|bytes| bytes == needle).unwrap();
    let mut altered = older.clone();
    altered[at + needle.len() - 1] ^= 1;
    fs::write(home.path().join("audit.sqlite"), &altered).unwrap();
    let said = refused(&home, &["audit", "verify"]);
    let here = format!("the audit was altered: row {}: its content is not what was written", called["number"]);
    assert!(said.contains(&here), "{said}");

    fs::write(home.path().join("audit.sqlite"), &older).unwrap();
    verified(&home);
    // The host goes on in a home from which the record was taken away, and does not hide it.
    fs::remove_file(home.path().join("audit.sqlite")).unwrap();
    let host = home.run();
    row(&home, |row| is(row, "audit", "altered", "audit", "failed"));
    host.stop();
    let said = refused(&home, &["audit", "verify"]);
    assert!(said.contains("row 1: before it was written, the host found that audit.head knows a row"), "{said}");
}

// PLN-2, REL-3: what can't be put on record is not done; the host goes on, and says so.
#[test]
#[cfg(target_os = "linux")]
fn on_a_full_disk_nothing_is_applied_and_the_host_goes_on() {
    let home = Home::new(SHOW);
    let mut run = full_disk::stoppable(&conductor::command(home.path(), &["run"]));
    let host = Host::ready(&mut run, home.socket());
    let (plan, other) = (propose(&home, 40), propose(&home, 41));
    row(&home, |row| is(row, "plan", "propose", &other, "done"));

    full_disk::fill(host.id(), true);
    let said = refused(&home, &["plan", "apply", &plan, "--yes"]);
    assert!(said.contains("the audit can't be written") && said.contains("make room"), "{said}");
    assert_eq!((text(&home).as_str(), &host.status()["rules"]), (SHOW, &json!(0)));
    call(&home, "conductor_get_modes", &json!({})).unwrap();
    let (status, _) = host.status_when(|status| status["audit"]["lost"].as_u64() >= Some(2));
    assert!(status["audit"]["trouble"].as_str().unwrap().contains("audit.sqlite"), "{status:#}");
    assert!(refused(&home, &["undo", "--yes"]).contains("nothing to undo"));
    // What looks at the machine says the same of the record.
    let found = home.conductor(&["doctor", "--json"]);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    let of_the_audit = found["findings"].as_array().unwrap().iter().find(|finding| finding["about"] == "audit");
    assert_eq!(of_the_audit.unwrap()["level"], "trouble", "{found:#}");

    full_disk::fill(host.id(), false);
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    assert_eq!(host.status()["audit"]["trouble"], Value::Null);
    assert!(text(&home).contains("note = 40"));
    let missed = row(&home, |row| row["kind"] == "audit" && row["what"] == "missed");
    assert!(missed["detail"]["entries"].as_u64() >= Some(2), "{missed}");
    verified(&home);
}

/// A user whom the permissions of files bind, as they do not bind root.
fn bound(command: &Command) -> Command {
    let id = Command::new("id").arg("-u").output().unwrap();
    let mut bound = match id.stdout.trim_ascii() {
        b"0" => {
            let mut bound = Command::new("setpriv");
            let without = "=-dac_override,-dac_read_search";
            bound.args([format!("--bounding-set{without}"), format!("--inh-caps{without}")]);
            bound.arg(command.get_program());
            bound
        }
        _ => Command::new(command.get_program()),
    };
    bound.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bound.env(name, value),
            None => bound.env_remove(name),
        };
    }
    bound
}

/// The home, and what lies in it, for reading only; or writable again.
fn read_only(home: &Home, on: bool) {
    let (folder, file) = if on { (0o500, 0o400) } else { (0o700, 0o600) };
    for entry in fs::read_dir(home.path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(file)).unwrap();
        }
    }
    fs::set_permissions(home.path(), fs::Permissions::from_mode(folder)).unwrap();
}

// PLN-2, REL-3
#[test]
#[cfg(target_os = "linux")]
fn in_a_read_only_home_nothing_is_applied_or_installed_and_the_host_goes_on() {
    let home = Home::new(SHOW);
    let host = Host::ready(&mut bound(&conductor::command(home.path(), &["run"])), home.socket());
    let plan = propose(&home, 40);
    row(&home, |row| is(row, "plan", "propose", &plan, "done"));
    read_only(&home, true);
    let said = refused(&home, &["plan", "apply", &plan, "--yes"]);
    assert!(said.contains("the audit can't be written") && said.contains("make the folder writable"), "{said}");
    assert_eq!((text(&home).as_str(), &host.status()["rules"]), (SHOW, &json!(0)));
    call(&home, "conductor_get_modes", &json!({})).unwrap();
    assert!(host.status()["audit"]["trouble"].is_string());
    let hello = conductor::guest("hello");
    let install = conductor::command(home.path(), &["feature", "install", hello.to_str().unwrap()]);
    let (end, _) = Process::start(&mut bound(&install)).wait();
    assert_ne!(end.code, Some(0), "{}", end.out);

    read_only(&home, false);
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    assert!(text(&home).contains("note = 40"));
    verified(&home);
}

// PLN-2: the file itself can't be replaced.
#[test]
fn an_apply_that_fails_at_the_file_is_on_record_and_changes_nothing() {
    let home = Home::new(SHOW);
    let host = home.run();
    let plan = propose(&home, 40);
    let in_the_way = home.path().join("config.toml.bak");
    fs::create_dir(&in_the_way).unwrap();
    assert!(refused(&home, &["plan", "apply", &plan, "--yes"]).contains("config.toml"));
    assert_eq!((text(&home).as_str(), &host.status()["rules"]), (SHOW, &json!(0)));
    row(&home, |row| is(row, "plan", "apply", &plan, "failed"));
    fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(home.conductor(&["plan", "apply", &plan, "--yes"]).code, Some(0));
    row(&home, |row| is(row, "plan", "apply", &plan, "done"));
    verified(&home);
}

// PLN-2, PLN-4: each refusal has its reason on record.
#[test]
fn a_plan_that_is_unknown_done_stale_or_expired_is_refused_on_record() {
    let home = Home::new(SHOW);
    let mut run = conductor::command(home.path(), &["run"]);
    let host = Host::ready(run.env("CONDUCTOR_PLAN_TTL_SECONDS", "5"), home.socket());
    let post = |id: &str| http(&home, &format!("POST /v1/plans/{id}/apply"), "content-type: application/json", b"{}");
    let (status, said) = post("0123456789abcdef");
    assert_eq!((status, said["error"].as_str().unwrap().contains("no plan")), (404, true), "{said}");
    row(&home, |row| is(row, "plan", "apply", "0123456789abcdef", "refused"));

    let plan = propose(&home, 40);
    assert_eq!(post(&plan).0, 200);
    let after = text(&home);
    assert_eq!(post(&plan).0, 404, "once only");
    row(&home, |row| is(row, "plan", "apply", &plan, "refused"));

    let stale = propose(&home, 41);
    let mine = after.replace("Play", "Jam");
    home.configure(&mine);
    let (status, said) = post(&stale);
    assert_eq!((status, said["error"].as_str().unwrap().contains("has changed since")), (409, true), "{said}");
    row(&home, |row| is(row, "plan", "apply", &stale, "refused"));

    row(&home, |row| is(row, "plan", "expire", &stale, "done"));
    let (status, said) = post(&stale);
    assert_eq!((status, said["error"].as_str().unwrap().contains("has expired")), (410, true), "{said}");
    assert_eq!(text(&home), mine);
    host.stop();
    verified(&home);
}

/// A request to the API, and its answer.
fn http(home: &Home, request: &str, header: &str, body: &[u8]) -> (u16, Value) {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    let length = body.len();
    let head =
        format!("{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{header}\r\n\r\n");
    let mut answer = Vec::new();
    std::thread::scope(|scope| {
        let mut sink = stream.try_clone().unwrap();
        // The host may answer, and hang up, before it has heard all of it.
        scope.spawn(move || sink.write_all(head.as_bytes()).and_then(|()| sink.write_all(body)));
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..count]);
        }
    });
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {answer}")))
}

// PLN-4, REL-1: an argument of 100 MB, and brackets within brackets.
#[test]
fn what_is_too_long_or_too_deep_is_refused_on_record() {
    let home = Home::new(SHOW);
    let host = home.run();
    let tool = "POST /v1/tools/conductor_create_mapping";
    let json = "content-type: application/json";
    let long = format!("{{\"args\":{{\"mode\":\"{}\"}}}}", "x".repeat(100_000_000));
    let (status, said) = http(&home, tool, json, long.as_bytes());
    assert_eq!(status, 413, "{said}");
    assert!(said["error"].as_str().unwrap().contains("at most 2097152 bytes"), "{said}");
    let deep = format!("{{\"args\":{{\"mode\":{}1{}}}}}", "[".repeat(10_000), "]".repeat(10_000));
    let (status, said) = http(&home, tool, json, deep.as_bytes());
    assert!(status == 400 && said["error"].as_str().unwrap().contains("recursion limit"), "{status} {said}");
    let much = format!("{{\"args\":{{\"mode\":\"{}\"}}}}", "x".repeat(300_000));
    let (status, said) = http(&home, tool, json, much.as_bytes());
    assert!(status == 413 && said["error"].as_str().unwrap().contains("at most 262144"), "{status} {said}");
    // What is too long to be read is no call yet: the status names its client.
    let named = host.status()["troublesome_clients"].to_string();
    assert!(named.contains("long"), "{named}");
    for reason in ["recursion limit", "at most 262144"] {
        let is_it = |row: &Value| row["detail"]["reason"].as_str().is_some_and(|text| text.contains(reason));
        let row = row(&home, |row| row["subject"] == "conductor_create_mapping" && is_it(row));
        assert_eq!(row["outcome"], "refused");
        assert!(row.to_string().len() < 5000, "what is on record is short");
    }
    assert_eq!(text(&home), SHOW);
    assert_eq!(host.status()["rules"], 0);
    verified(&home);
}

// PLN-4: what may be called, and how often; and no plan changes that.
#[test]
fn tools_that_are_not_allowed_and_calls_that_come_too_often_are_refused() {
    let limits = "[tools]\nallowed = [\"conductor_*\", \"work_item_crate\"]\n[tools.per_minute]\nread_only = 1\n";
    let home = Home::new(&format!("{SHOW}\n{limits}"));
    let host = home.run();
    host.log().line("there is no tool \"work_item_crate\"");
    let listed = home.conductor(&["tool", "list"]).out;
    assert!(listed.contains("conductor_get_modes") && !listed.contains("work_item_create"), "{listed}");
    let said = call(&home, "work_item_create", &json!({ "title": "x" })).unwrap_err();
    assert!(said.contains("not among the tools that may be called"), "{said}");
    row(&home, |row| is(row, "tool", "call", "work_item_create", "refused"));

    call(&home, "conductor_get_modes", &json!({})).unwrap();
    let (status, said) = http(
        &home,
        "POST /v1/tools/conductor_get_modes",
        "user-agent: conductor-cli\r\ncontent-type: application/json",
        b"{}",
    );
    let said = said["error"].as_str().unwrap();
    assert!(
        status == 429 && said.contains("read-only tools may be called 1 times a minute; try again in"),
        "{status} {said}"
    );
    for _ in 0..3 {
        assert!(call(&home, "conductor_get_modes", &json!({})).is_err());
    }
    row(&home, |row| is(row, "tool", "call", "conductor_get_modes", "refused"));
    let refusals = |row: &&Value| is(row, "tool", "call", "conductor_get_modes", "refused");
    assert_eq!(rows(&home).iter().filter(refusals).count(), 1, "a flood does not fill the disk");

    let changes = json!([{ "path": "tools/allowed", "value": ["*"] }]);
    let said = call(&home, "conductor_batch_changes", &json!({ "description": "x", "changes": changes })).unwrap_err();
    assert!(said.contains("a person writes that into the file"), "{said}");
    let refused = row(&home, |row| is(row, "plan", "propose", "", "refused"));
    assert_eq!(refused["who"], "feature \"builtin:mapping-tools\"");
    home.configure(SHOW);
    host.log().line("reloaded");
    call(&home, "work_item_create", &json!({ "title": "x" })).unwrap();
}
