//! What a person at the machine asks: what is wrong, how is it, run it for me, bring my old file along.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use conductor_tests::conductor;
use conductor_tests::home::Home;
use conductor_tests::process::{End, Process};
use serde_json::Value;

const SHOW: &str =
    "[[bindings]]\nalias = \"desk\"\nprotocol = \"osc\"\ninput = { port = 0 }\n\n[[modes]]\nname = \"Play\"\n";

fn show(port: u16) -> String {
    SHOW.replace("port = 0", &format!("port = {port}"))
}

/// A port that was free a moment ago.
fn free() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn doctor(home: &Home) -> (Option<i32>, Vec<Value>) {
    let end = home.conductor(&["doctor", "--json"]);
    let answer: Value = serde_json::from_str(&end.out).unwrap_or_else(|error| panic!("{error}: {}", end.err));
    (end.code, answer["findings"].as_array().unwrap().clone())
}

fn found<'f>(findings: &'f [Value], about: &str, what: &str) -> &'f Value {
    let is = |finding: &&Value| finding["about"] == about && finding["what"].as_str().unwrap().contains(what);
    findings.iter().find(is).unwrap_or_else(|| panic!("no {what:?} about {about} in {findings:#?}"))
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// CLI-1: the doctor finds what is wrong, says how to mend it, and is content afterwards.
#[test]
fn a_doctor_finds_what_is_wrong_and_is_content_when_it_is_mended() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = Home::new(&show(port));
    mode(home.path(), 0o770);
    let (code, findings) = doctor(&home);
    assert_eq!(code, Some(1));
    let wide = found(&findings, "home", "others than its owner may write");
    assert_eq!(wide["level"], "trouble");
    assert!(wide["mend"].as_str().unwrap().contains("chmod 700"));
    assert_eq!(found(&findings, "network", "is taken by")["level"], "trouble");
    assert_eq!(found(&findings, "configuration", "is valid")["level"], "ok");

    mode(home.path(), 0o700);
    drop(taken);
    let (code, findings) = doctor(&home);
    assert_eq!(code, Some(0), "{findings:#?}");
    assert_eq!(found(&findings, "network", "is free for desk")["level"], "ok");

    home.configure("[[modes]]\nnme = \"Play\"\n");
    let (code, findings) = doctor(&home);
    assert_eq!(code, Some(1));
    let mistakes = found(&findings, "configuration", "has mistakes");
    assert!(mistakes["mend"].as_str().unwrap().contains("did you mean \"name\""), "{mistakes}");
    assert!(home.conductor(&["doctor"]).out.contains("TROUBLE  configuration"));
}

#[test]
fn a_doctor_tells_a_host_that_runs_from_one_that_was_killed() {
    let port = free();
    let home = Home::new(&show(port));
    let host = home.run();
    let (_, findings) = doctor(&home);
    assert_eq!(found(&findings, "host", &format!("process {}", host.id()))["level"], "ok");
    assert_eq!(found(&findings, "sockets", "only their owner")["level"], "ok");
    assert_eq!(found(&findings, "network", "the running host listens there")["level"], "ok");
    mode(&home.socket(), 0o666);
    assert_eq!(found(&doctor(&home).1, "sockets", "others than its owner")["level"], "trouble");

    host.kill();
    let (_, findings) = doctor(&home);
    assert_eq!(found(&findings, "host", "the last one was killed")["level"], "warning");
}

#[test]
fn a_status_fits_on_a_screen() {
    let home = Home::new(&show(free()));
    let end = home.conductor(&["status"]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("no host is running"), "{}", end.err);
    let host = home.run();
    let end = home.conductor(&["status"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert!(end.out.lines().count() <= 24, "{}", end.out);
    for expected in [&format!("process {}", host.id()), "mode       Play", "bindings   1 of 1", "plans      none waits"]
    {
        assert!(end.out.contains(expected), "{expected}: {}", end.out);
    }
    assert_eq!(home.json(&["status", "--json"])["pid"], host.id());
}

// CFG-3: a file is rewritten because a person says so; comments stay, and so does the file as it was.
#[test]
fn old_forms_are_brought_to_todays_by_a_persons_yes() {
    let old = "# mine\n[device] # the pads\nname = \"Pads\"\n\n[[modes]]\nname = \"Play\"\n";
    let home = Home::new(old);
    let text = || fs::read_to_string(home.config()).unwrap();
    let end = home.conductor(&["config", "migrate"]);
    assert_eq!(end.code, Some(2));
    assert!(end.err.contains("+[[bindings]] # the pads") && end.err.contains("a person decides"), "{}", end.err);
    assert_eq!(text(), old, "it was not confirmed");

    let told = home.json(&["config", "migrate", "--yes", "--json"]);
    assert_eq!(told["changed"], true);
    assert!(told["backup"].as_str().unwrap().ends_with("config.toml.bak"), "{told}");
    assert_eq!(text(), old.replace("[device] # the pads", "[[bindings]] # the pads\nalias = \"main\""));
    assert_eq!(fs::read_to_string(home.path().join("config.toml.bak")).unwrap(), old);
    let end = home.conductor(&["config", "migrate", "--yes"]);
    assert!(end.out.contains("has no old form in it"), "{}", end.out);
}

#[test]
fn a_file_is_compared_with_what_is_in_force() {
    let home = Home::new("[[modes]]\nname = \"Play\"\n");
    let host = home.run();
    assert!(home.conductor(&["config", "diff"]).out.contains("is in force as it is"));
    // The host says no, and goes on with what it had.
    home.configure("[[modes]]\nname = \"Play\"\n[[modes]]\nname = \"Play\"\n");
    host.status_when(|status| status["refused"].is_string());
    let diff = home.json(&["config", "diff", "--json"]);
    assert_eq!(diff["same"], false);
    assert!(diff["diff"].as_str().unwrap().contains("+[[modes]]"), "{diff}");
    assert!(diff["refused"].is_string(), "{diff}");
    let end = home.conductor(&["config", "diff"]);
    assert!(end.out.contains("+[[modes]]") && end.err.contains("conductor config validate"), "{}", end.err);
}

/// A fake systemctl that records its calls, and knows whether the unit runs.
fn systemctl(home: &Home) -> PathBuf {
    let folder = home.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let script = format!(
        "#!/bin/sh\nS='{0}/active'; echo \"$*\" >> '{0}/told'\n\
         case \"$2\" in\n\
         restart) touch \"$S\";;\n\
         disable) rm -f \"$S\";;\n\
         is-active) if [ -e \"$S\" ]; then echo active; else echo inactive; exit 3; fi;;\n\
         is-enabled) if [ -e \"$S\" ]; then echo enabled; else echo disabled; exit 1; fi;;\n\
         esac\n",
        home.path().display()
    );
    let program = folder.join("systemctl");
    fs::write(&program, script).unwrap();
    mode(&program, 0o755);
    folder
}

fn service(home: &Home, path: &str, arguments: &[&str]) -> End {
    let mut command = conductor::command(home.path(), &[&["service"], arguments].concat());
    Process::start(command.env("PATH", path).env("XDG_CONFIG_HOME", home.path().join("xdg"))).wait().0
}

// CLI-1: a user unit is written, started, looked at and taken away again.
#[cfg(target_os = "linux")]
#[test]
fn a_service_comes_and_goes() {
    let home = Home::new("[[modes]]\nname = \"Play\"\n");
    let path = format!("{}:/usr/bin:/bin", systemctl(&home).display());
    let unit = home.path().join("xdg/systemd/user/conductor.service");
    let told = || fs::read_to_string(home.path().join("told")).unwrap();

    let printed = service(&home, &path, &["install", "--print"]);
    assert!(printed.out.contains("ExecStart=") && !unit.exists(), "{}", printed.out);
    let end = service(&home, &path, &["install"]);
    assert_eq!(end.code, Some(0), "{}", end.err);
    assert_eq!(fs::read_to_string(&unit).unwrap().trim_end(), printed.out);
    let steps = "--user daemon-reload\n--user enable conductor.service\n--user restart conductor.service\n";
    assert!(told().ends_with(steps), "{}", told());

    let status = service(&home, &path, &["status", "--json"]);
    let status: Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!((&status["installed"], &status["current"]), (&true.into(), &true.into()));
    assert_eq!((&status["active"], &status["enabled"]), (&"active".into(), &"enabled".into()));
    fs::write(&unit, fs::read_to_string(&unit).unwrap().replace("\"run\"", "\"demo\"")).unwrap();
    assert!(service(&home, &path, &["status"]).out.contains("another program, home or configuration"));

    assert_eq!(service(&home, &path, &["uninstall"]).code, Some(0));
    assert!(!unit.exists());
    assert!(told().contains("--user disable --now conductor.service\n--user daemon-reload\n"), "{}", told());
    assert!(service(&home, &path, &["uninstall"]).out.contains("it is not installed"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_service_is_not_installed_over_something_else_or_with_a_wrong_file() {
    let home = Home::new("[[modes]]\nname = \"Play\"\n");
    let path = format!("{}:/usr/bin:/bin", systemctl(&home).display());
    let unit = home.path().join("xdg/systemd/user/conductor.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "[Unit]\nDescription=mine\n").unwrap();
    for command in ["install", "uninstall"] {
        let end = service(&home, &path, &[command]);
        assert_eq!(end.code, Some(2), "{}", end.err);
        assert!(fs::read_to_string(&unit).unwrap().contains("mine"));
    }
    fs::remove_file(&unit).unwrap();

    let host = home.run();
    let end = service(&home, &path, &["install"]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains(&format!("process {}", host.id())), "{}", end.err);
    drop(host);

    // Without systemd the unit is there, and what is left to do is said.
    let end = service(&home, "/nowhere", &["install"]);
    assert_eq!(end.code, Some(1));
    assert!(end.err.contains("systemctl --user daemon-reload\n  |   systemctl --user enable"), "{}", end.err);
    assert!(unit.exists());
    home.configure("[[modes]\n");
    fs::remove_file(&unit).unwrap();
    assert_eq!(service(&home, &path, &["install"]).code, Some(2));
    assert!(!unit.exists(), "a host that would refuse its file is not installed");
}

// systemd itself has nothing against the unit, where it is there to be asked.
#[cfg(target_os = "linux")]
#[test]
fn systemd_takes_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("skipped: no systemd-analyze on this machine");
        return;
    }
    let home = Home::new("[[modes]]\nname = \"Play\"\n");
    let unit = service(&home, "/usr/bin:/bin", &["install", "--print"]).out;
    let file = home.write("conductor.service", unit);
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user"]).arg(&file).env("XDG_RUNTIME_DIR", home.path());
    let output = verify.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // Of other units of this machine, and of a manager that is not there, it may complain.
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("conductor.service")).collect();
    assert!(complaints.is_empty(), "{said}");
}
