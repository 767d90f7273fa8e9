//! Keys for APIs in a desktop's own keyring: kept, found by other programs, locked, and lost.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::io::Write as _;
use std::process::{Output, Stdio};

use conductor_tests::conductor::command;
use conductor_tests::home::Home;
use conductor_tests::keyring::Keyring;

const VALUE: &str = "sk-a-key-of-no-worth";

/// What `conductor` does on that desktop, with this on its standard input.
fn conductor(home: &Home, keyring: &Keyring, arguments: &[&str], input: &str) -> Output {
    let mut conductor = command(home.path(), arguments);
    let piped = keyring.around(&mut conductor).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut conductor = piped.spawn().unwrap();
    conductor.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    conductor.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// LLM-6: a key is kept in the desktop's keyring where there is one, and nowhere else.
#[test]
fn a_key_is_kept_in_the_desktops_keyring() {
    let Some(keyring) = Keyring::start() else { return };
    let home = Home::untouched();
    let set = conductor(&home, &keyring, &["secret", "set", "model-key"], VALUE);
    assert_eq!(text(&set.stdout), "model-key is kept in the desktop's keyring\n", "{}", text(&set.stderr));
    assert_eq!(keyring.kept("model-key"), VALUE);
    let listed = conductor(&home, &keyring, &["secret", "list", "--json"], "");
    assert_eq!(text(&listed.stdout), "{\n  \"model-key\": {\n    \"in\": \"secret-service\"\n  }\n}\n");
    let everywhere = std::process::Command::new("grep").arg("-r").arg(VALUE).arg(home.path()).output().unwrap();
    assert_eq!(text(&everywhere.stdout), "", "the value is in no file of ours");

    let doctor = || text(&conductor(&home, &keyring, &["doctor"], "").stdout);
    assert!(doctor().contains("the desktop's keyring answers"), "{}", doctor());

    // Its person goes away. Nothing waits, nothing is lost.
    keyring.lock();
    let locked = conductor(&home, &keyring, &["secret", "set", "model-key"], "sk-another-one");
    let why = text(&locked.stderr);
    assert!(!locked.status.success() && why.contains("the desktop's keyring can't be used"), "{why}");
    assert!(why.contains("--in kernel"), "it says what does without: {why}");
    assert!(doctor().contains("model-key: the desktop's keyring can't be used"), "{}", doctor());
    keyring.unlock();
    assert_eq!(keyring.kept("model-key"), VALUE);

    let removed = conductor(&home, &keyring, &["secret", "remove", "model-key"], "");
    assert_eq!(text(&removed.stdout), "model-key is forgotten\n", "{}", text(&removed.stderr));
    assert_eq!(keyring.kept("model-key"), "");
}

/// A key that is moved elsewhere is not left behind.
#[test]
fn a_key_that_is_read_from_the_environment_from_now_on_leaves_the_keyring() {
    let Some(keyring) = Keyring::start() else { return };
    let home = Home::untouched();
    conductor(&home, &keyring, &["secret", "set", "model-key", "--in", "secret-service"], VALUE);
    assert_eq!(keyring.kept("model-key"), VALUE);
    conductor(&home, &keyring, &["secret", "set", "model-key", "--env", "MODEL_KEY"], "");
    assert_eq!(keyring.kept("model-key"), "");
}
