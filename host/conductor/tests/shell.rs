//! The example of a shell, played: the host as a library, without the process.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use conductor::api::client::Client;
use conductor::{Conductor, OpenError};
use conductor_audit::caller::Caller;
use conductor_config_text::edit::Change;

#[allow(dead_code, reason = "the program's main is not a test's")]
#[path = "../examples/shell.rs"]
mod example;

// API-2
#[test]
fn the_example_shell_plays_and_answers() {
    let mut said = Vec::new();
    example::shell(&b"mode Mixx\nnote 36\nstatus\nnote x\ndance\nquit\nnote 36\n"[..], &mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("there is no mode \"Mixx\"; there are Play, Mix"), "{said}");
    assert!(said.contains(r#""kind":"event""#) && said.contains("ModeChange"), "{said}");
    assert!(said.contains(r#"(Some("Mix"), ["Play", "Mix"]), 1 events"#), "{said}");
    assert!(said.contains("\"x\" is no note") && said.contains("\"dance\" is no command"), "{said}");
}

struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("conductor-shell-{name}-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        Self(home)
    }

    fn configure(&self, text: &str) {
        fs::write(self.0.join("config.toml"), text).unwrap();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

// API-2, CLI-1: one home, one host; the second says who is there.
#[test]
#[cfg(unix)]
fn a_home_has_one_host_and_serves_who_asks() {
    let home = Home::new("one");
    home.configure("[[modes]]\nname = 'Play'\n");
    let first = Conductor::builder().home(&home.0).start().unwrap();
    let refused = Conductor::builder().home(&home.0).start().unwrap_err().to_string();
    let who = format!("already: process {}, since 20", std::process::id());
    assert!(refused.contains(&who) && refused.contains("config.toml; stop it first"), "{refused}");
    let asked = Client::new(&home.0).status().unwrap();
    assert_eq!((asked.mode.as_deref(), asked.home.as_deref()), (Some("Play"), Some(&*home.0)));
    first.stop();
    let again = Conductor::builder().home(&home.0).start().unwrap();
    // Only its own process can reach a host that is alone; dropping it stops it.
    drop(again);
    drop(Conductor::builder().home(&home.0).alone().start().unwrap());
}

// API-2: what is wrong is an error with its reason, and what changes in the file is put in force.
#[test]
fn a_configuration_is_refused_with_its_place_and_followed_as_it_changes() {
    assert!(matches!(Conductor::builder().start(), Err(OpenError::Nothing)));
    let home = Home::new("changes");
    let named = Conductor::builder().home(&home.0).config_file(home.0.join("named.toml"));
    let missing = named.alone().start().unwrap_err();
    assert!(matches!(&missing, OpenError::File { file, .. } if file.ends_with("named.toml")), "{missing}");
    home.configure("[[modes]]\nnam = 'Play'\n");
    let wrong = Conductor::builder().home(&home.0).alone().start().unwrap_err();
    assert!(matches!(wrong, OpenError::Config(_)) && wrong.to_string().contains("config.toml:2:1"), "{wrong}");

    home.configure("[[modes]]\nname = 'Play'\n");
    let (told, tells) = channel();
    let conductor = Conductor::builder().home(&home.0).alone().on_diagnostics(move |found| {
        let _ = told.send(found.render(false));
    });
    let conductor = conductor.start().unwrap();
    let happens = conductor.host().subscribe();
    home.configure("[[modes]]\nname = 'Mix'\n");
    let reloaded = |text: &str| {
        let seen = happens.iter().map(|seen| format!("{seen:?}")).find(|seen| seen.contains(text));
        seen.unwrap_or_else(|| panic!("the host has ended before {text:?}"))
    };
    reloaded("reloaded");
    assert_eq!(conductor.host().modes().1, ["Mix"]);
    home.configure("[[modes]]\nnam = 'Play'\n");
    let said = tells.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(said.contains("config.toml:2:1"), "{said}");
    assert_eq!(conductor.host().modes().1, ["Mix"]);
}

// CLI-1: a new home starts, and what is written into it is put in force.
#[test]
fn a_home_without_a_configuration_starts_and_takes_it_over_once_it_is_there() {
    let home = Home::new("empty");
    let conductor = Conductor::builder().home(&home.0).alone().start().unwrap();
    let host = conductor.host();
    assert!(host.modes().1.is_empty() && host.config().is_empty());
    let happens = host.subscribe();
    let happened = |text: &str| {
        let seen = happens.iter().map(|seen| format!("{seen:?}")).find(|seen| seen.contains(text));
        seen.unwrap_or_else(|| panic!("the host has ended before {text:?}"))
    };
    home.configure("[[modes]]\nname = 'Play'\n");
    happened("reloaded");
    assert_eq!(host.modes().1, ["Play"]);
}

// CLI-1, PLAN-1: the first plan that is applied writes the file.
#[test]
fn a_plan_is_the_first_to_write_the_configuration_of_a_home() {
    let home = Home::new("first-plan");
    let conductor = Conductor::builder().home(&home.0).alone().start().unwrap();
    let (host, person) = (conductor.host(), Caller::library());
    let mode = Change { path: vec!["modes".into(), "0".into()], value: Some(serde_json::json!({ "name": "Play" })) };
    let plan = host.propose_plan(&person, "the first mode", vec![mode]).unwrap();
    assert!(!home.0.join("config.toml").exists(), "a plan that waits writes nothing");
    host.apply_plan(&person, &plan.id).unwrap();
    assert_eq!(host.modes().1, ["Play"]);
    assert_eq!(fs::read_to_string(home.0.join("config.toml")).unwrap(), "[[modes]]\nname = \"Play\"\n");
    host.undo(&person).unwrap();
    assert!(host.modes().1.is_empty());
}

// PLN-1: a text that was read before a plan was applied does not take the plan back.
#[test]
fn no_plan_is_applied_while_the_file_is_read() {
    let home = Home::new("read");
    home.configure("[[modes]]\nname = 'Play'\n");
    let conductor = Conductor::builder().home(&home.0).alone().start().unwrap();
    let (host, person) = (conductor.host(), Caller::library());
    let file = home.0.join("config.toml");
    let mode = Change { path: vec!["modes".into(), "1".into()], value: Some(serde_json::json!({ "name": "Live" })) };
    let plan = host.propose_plan(&person, "one more", vec![mode]).unwrap();
    let (applied, is_applied) = channel();
    std::thread::scope(|scope| {
        let read = || {
            let text = fs::read_to_string(&file)?;
            scope.spawn(|| applied.send(host.apply_plan(&person, &plan.id).map(drop)).unwrap());
            assert!(is_applied.recv_timeout(Duration::from_millis(100)).is_err(), "it waits for what is read");
            Ok::<_, std::io::Error>(text)
        };
        host.reload_read(file.to_str().unwrap(), read).unwrap().unwrap();
    });
    is_applied.recv().unwrap().unwrap();
    assert_eq!(host.modes().1, ["Play", "Live"]);
}

// CFG-1, CFG-2: a configuration of several files is followed in all of them.
#[test]
fn a_change_of_an_included_file_is_put_in_force() {
    let home = Home::new("included");
    let shows = home.0.join("shows");
    fs::create_dir_all(&shows).unwrap();
    let show = |name: &str, text: &str| fs::write(shows.join(name), text).unwrap();
    show("a.toml", "[[modes]]\nname = 'A'\n");
    home.configure("include = ['shows/*.toml']\n[[modes]]\nname = 'Play'\n");
    let (told, tells) = channel();
    let conductor = Conductor::builder().home(&home.0).alone().on_diagnostics(move |found| {
        let _ = told.send(found.render(false));
    });
    let conductor = conductor.start().unwrap();
    let host = conductor.host();
    assert_eq!(host.modes().1, ["Play", "A"]);
    let happens = host.subscribe();
    let reloaded = || {
        let seen = happens.iter().map(|seen| format!("{seen:?}")).find(|seen| seen.contains("reloaded"));
        seen.unwrap_or_else(|| panic!("the host has ended before it has reloaded"));
    };
    show("b.toml", "[[modes]]\nname = 'B'\n");
    reloaded();
    assert_eq!(host.modes().1, ["Play", "A", "B"]);
    show("a.toml", "[[modes]]\nname = 'Other'\n");
    reloaded();
    assert_eq!(host.modes().1, ["Play", "Other", "B"]);
    show("b.toml", "\n[[modes]]\nnam = 'B'\n");
    let said = tells.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(said.contains("shows/b.toml:3:1: unknown key `nam`"), "{said}");
    assert_eq!(host.modes().1, ["Play", "Other", "B"], "the old rules stay");

    // What a plan changes is the file itself. What is included is a person's.
    show("b.toml", "[[modes]]\nname = 'B'\n");
    let person = Caller::library();
    let change = |path: &[&str], value: serde_json::Value| Change {
        path: path.iter().map(|step| (*step).to_owned()).collect(),
        value: Some(value),
    };
    let name = serde_json::json!({ "name": "A2" });
    let added = host.propose_plan(&person, "one more", vec![change(&["modes", "1"], name)]).unwrap();
    host.apply_plan(&person, &added.id).unwrap();
    assert_eq!(host.modes().1, ["Play", "A2", "Other", "B"]);
    let twice = host.propose_plan(&person, "taken", vec![change(&["modes", "2"], serde_json::json!({ "name": "B" }))]);
    let twice = twice.unwrap_err().to_string();
    assert!(
        twice.contains("shows/b.toml:2:8: a second mode is called \"B\"") && twice.contains("config.toml"),
        "{twice}"
    );
    fs::write(home.0.join("x.toml"), "").unwrap();
    for files in [serde_json::json!([]), serde_json::json!(["shows/*.toml", "x.toml"])] {
        let refused = host.propose_plan(&person, "files", vec![change(&["include"], files)]).unwrap_err().to_string();
        assert!(refused.contains("include") || refused.contains("x.toml"), "{refused}");
    }
}
