//! The example of a shell, played: the host as a library, without the process.
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use conductor::api::client::Client;
use conductor::{Conductor, OpenError};

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
    let missing = Conductor::builder().home(&home.0).alone().start().unwrap_err();
    assert!(matches!(&missing, OpenError::File { file, .. } if file.ends_with("config.toml")), "{missing}");
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
